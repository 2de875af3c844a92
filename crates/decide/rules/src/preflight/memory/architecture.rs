use serde::{Deserialize, Serialize};
use trackway_core::closed_list;

/// Feed-forward width of a gated block over its hidden width, as Llama has it: two thirds of four.
const GATED_RATIO: f64 = 8.0 / 3.0;
/// Widths are multiples of this: the width of an attention head, and of a tensor core's tile.
const HEAD_WIDTH: u64 = 128;
/// Vocabulary of an architecture that is only known by its parameter count.
const USUAL_VOCABULARY: u64 = 32_000;

/// The shape of a transformer: what its parameters and activations can be counted from.
///
/// Widths and counts are of the whole model, before anything is sharded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Architecture {
    /// Where the shape comes from: a `model_type` of Hugging Face, `flags`, or `parameters` when it was guessed.
    pub family: String,
    /// Decoder layers, or the layers of an encoder without a decoder.
    pub layers: u64,
    /// Layers of the encoder beside a decoder that attends to it (T5); else 0.
    pub encoder_layers: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Attention heads.
    pub heads: u64,
    /// Heads that keys and values have (grouped-query attention).
    pub key_value_heads: u64,
    /// Width of one head.
    pub head_width: u64,
    /// Inner width of the feed-forward block; of one expert in a mixture.
    pub feed_forward: u64,
    /// Three matrices instead of two in the feed-forward block (SwiGLU, GeGLU).
    pub gated: bool,
    /// Tokens in the vocabulary.
    pub vocabulary: u64,
    /// The output head is the embedding.
    pub tied_embeddings: bool,
    /// Vectors looked up beside the token's: learned positions and token types.
    pub position_vectors: u64,
    /// Experts of a mixture; 1: a dense model.
    pub experts: u64,
    /// Experts that see a token.
    pub experts_per_token: u64,
    /// Queries, keys and values have a bias.
    pub attention_bias: bool,
    /// What attention gives has a bias.
    pub attention_output_bias: bool,
    /// The feed-forward block has biases.
    pub feed_forward_bias: bool,
    /// How activations are normed.
    pub norm: Norm,
    /// Norms of a layer, those of a cross attention not counted.
    pub norms_per_layer: u64,
    /// Norms outside the layers: after the last one, of the embedding.
    pub outer_norms: u64,
    /// Queries and keys are normed head by head (Qwen3, Gemma 3).
    pub head_norms: bool,
    /// Whether training uses dropout after attention and feed-forward blocks.
    pub dropout: bool,
    /// Parameters outside the pattern: a pooler, relative positions, a bias of the head.
    pub extra_parameters: u64,
    /// The parameter count as it was given or read, where it is known better than by the shape.
    pub known_parameters: Option<u64>,
}

/// How activations are normed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Norm {
    /// By the root of their mean square: a weight.
    Rms,
    /// By mean and variance: a weight and a bias.
    Layer,
}

closed_list!(
    /// Which matrices have low-rank adapters beside them.
    Targets, "adapter target", {
        /// Queries and values, as in the paper.
        QueryValue = "query-value",
        /// The four matrices of attention.
        Attention = "attention",
        /// Every matrix of a layer.
        All = "all",
    }
);

impl Architecture {
    /// A decoder like Llama's: gated, without biases, RMS-normed, with separate embeddings for the head.
    #[must_use]
    pub fn decoder(layers: u64, hidden: u64, heads: u64, feed_forward: u64, vocabulary: u64) -> Self {
        Self {
            family: "flags".into(),
            layers,
            encoder_layers: 0,
            hidden,
            heads,
            key_value_heads: heads,
            head_width: hidden / heads.max(1),
            feed_forward,
            gated: true,
            vocabulary,
            tied_embeddings: false,
            position_vectors: 0,
            experts: 1,
            experts_per_token: 1,
            attention_bias: false,
            attention_output_bias: false,
            feed_forward_bias: false,
            norm: Norm::Rms,
            norms_per_layer: 2,
            outer_norms: 1,
            head_norms: false,
            dropout: false,
            extra_parameters: 0,
            known_parameters: None,
        }
    }

    /// A Llama-like decoder of about so many parameters, whose count is then taken as given.
    ///
    /// Published decoders are about as many heads of 128 wide as they are layers deep (7B: 32 and 32; 65B: 64 and 80;
    /// 405B: 128 and 126), and a gated layer has 12 hidden² parameters, so that parameters = 12 · 128² · layers³ + 2
    /// · vocabulary · hidden.
    #[must_use]
    pub fn of_parameters(parameters: u64) -> Self {
        let guess = |layers: u64| {
            let hidden = HEAD_WIDTH * layers;
            let feed_forward = (hidden as f64 * GATED_RATIO / HEAD_WIDTH as f64).round() as u64 * HEAD_WIDTH;
            Self::decoder(layers, hidden, layers, feed_forward, USUAL_VOCABULARY)
        };
        let deep_enough = (1..=MAX_GUESSED_LAYERS).find(|layers| guess(*layers).counted() >= parameters);
        let mut found = guess(deep_enough.unwrap_or(MAX_GUESSED_LAYERS));
        found.family = "parameters".into();
        found.known_parameters = Some(parameters);
        found
    }

    /// Whether counts of this shape stay below the largest count taken: no model is larger, and nothing overflows.
    #[must_use]
    pub fn plausible(&self) -> bool {
        let wide = |count: u64| count as f64;
        let (hidden, layers) = (wide(self.hidden), wide(self.layers) + wide(self.encoder_layers));
        let attention = wide(self.head_width) * (wide(self.heads) + wide(self.key_value_heads));
        let feed_forward = wide(self.experts) * (wide(self.feed_forward) + 1.0);
        let layer = (hidden + 1.0) * (8.0 * attention + 3.0 * feed_forward + 8.0);
        let outside = hidden * 2.0 * (wide(self.vocabulary) + wide(self.position_vectors) + 8.0);
        let all = layers * layer + outside + wide(self.extra_parameters);
        all.max(wide(self.parameters_given())) <= MAX_PARAMETERS
    }

    fn parameters_given(&self) -> u64 {
        self.known_parameters.unwrap_or(0)
    }

    /// Whether the shape was guessed from a parameter count.
    #[must_use]
    pub fn guessed(&self) -> bool {
        self.family == "parameters"
    }

    /// All parameters: as known, else counted from the shape.
    #[must_use]
    pub fn parameters(&self) -> u64 {
        self.known_parameters.unwrap_or_else(|| self.counted())
    }

    /// Parameters that work on one token: in a mixture, the experts it does not see are left out.
    #[must_use]
    pub fn active_parameters(&self) -> u64 {
        let idle = self.experts.saturating_sub(self.experts_per_token);
        self.parameters().saturating_sub(self.all_layers() * idle * self.expert_parameters())
    }

    /// Parameters counted from the shape.
    #[must_use]
    pub fn counted(&self) -> u64 {
        self.embedding_parameters()
            + self.head_parameters()
            + self.layers * self.layer_parameters()
            + self.encoder_layers * self.encoder_layer_parameters()
            + self.outer_norms * self.norm_parameters(self.hidden)
            + self.extra_parameters
    }

    /// Parameters of the token embedding and what is looked up beside it.
    #[must_use]
    pub fn embedding_parameters(&self) -> u64 {
        (self.vocabulary + self.position_vectors) * self.hidden
    }

    /// Parameters of an output head that is not the embedding; else 0.
    #[must_use]
    pub fn head_parameters(&self) -> u64 {
        if self.tied_embeddings { 0 } else { self.vocabulary * self.hidden }
    }

    /// Parameters of a decoder layer (or of the only kind of layer).
    #[must_use]
    pub fn layer_parameters(&self) -> u64 {
        let cross = if self.encoder_layers > 0 {
            self.attention_parameters() + self.norm_parameters(self.hidden)
        } else {
            0
        };
        self.encoder_layer_parameters() + cross
    }

    fn encoder_layer_parameters(&self) -> u64 {
        let router = if self.experts > 1 { self.hidden * self.experts } else { 0 };
        self.attention_parameters()
            + self.experts * self.expert_parameters()
            + router
            + self.norms_per_layer * self.norm_parameters(self.hidden)
    }

    /// Layers of decoder and encoder together.
    #[must_use]
    pub fn all_layers(&self) -> u64 {
        self.layers + self.encoder_layers
    }

    /// Width of all query heads together; it is not always that of the residual stream.
    #[must_use]
    pub fn query_width(&self) -> u64 {
        self.heads * self.head_width
    }

    /// Width of all key heads together, and of all value heads.
    #[must_use]
    pub fn key_value_width(&self) -> u64 {
        self.key_value_heads * self.head_width
    }

    fn attention_parameters(&self) -> u64 {
        let (query, key_value) = (self.query_width(), self.key_value_width());
        let bias = if self.attention_bias { query + 2 * key_value } else { 0 };
        let output_bias = if self.attention_output_bias { self.hidden } else { 0 };
        let head_norms = if self.head_norms { 2 * self.head_width } else { 0 };
        self.hidden * (2 * query + 2 * key_value) + bias + output_bias + head_norms
    }

    fn expert_parameters(&self) -> u64 {
        let inputs = if self.gated { 2 } else { 1 };
        let bias = if self.feed_forward_bias { inputs * self.feed_forward + self.hidden } else { 0 };
        (inputs + 1) * self.hidden * self.feed_forward + bias
    }

    fn norm_parameters(&self, width: u64) -> u64 {
        match self.norm {
            Norm::Rms => width,
            Norm::Layer => 2 * width,
        }
    }

    /// Parameters of low-rank adapters (LoRA, arXiv 2106.09685): rank × (inputs + outputs) of each matrix they go beside.
    #[must_use]
    pub fn adapter_parameters(&self, rank: u64, targets: Targets) -> u64 {
        let (hidden, query, key_value) = (self.hidden, self.query_width(), self.key_value_width());
        let query_and_value = (hidden + query) + (hidden + key_value);
        let attention = query_and_value + (hidden + key_value) + (query + hidden);
        let inputs = if self.gated { 2 } else { 1 };
        let feed_forward = self.experts * (inputs + 1) * (hidden + self.feed_forward);
        let per_layer = match targets {
            Targets::QueryValue => query_and_value,
            Targets::Attention => attention,
            Targets::All => attention + feed_forward,
        };
        let attentions = self.layers
            + self.encoder_layers
            + if self.encoder_layers > 0 && targets != Targets::All { self.layers } else { 0 };
        rank * per_layer * attentions
    }

    /// Parameters in the big matrices of the layers: what a quantised base holds in few bits.
    #[must_use]
    pub fn matrix_parameters(&self) -> u64 {
        let small = self.embedding_parameters() + self.head_parameters();
        self.parameters().saturating_sub(small)
    }
}

/// Most parameters that are taken for a model's.
pub const MAX_PARAMETERS: f64 = 1e15;

/// Deepest architecture that is guessed from a parameter count: 3 trillion parameters.
const MAX_GUESSED_LAYERS: u64 = 250;

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a shape guessed from a parameter count is near the published ones of that size, and keeps the count.
    #[test]
    fn a_shape_is_guessed_from_a_count() {
        for (parameters, layers, hidden) in
            [(1_100_000_000_u64, 22, 2048), (6_738_415_616, 32, 4096), (70_553_706_496, 80, 8192)]
        {
            let guess = Architecture::of_parameters(parameters);
            assert_eq!(guess.parameters(), parameters);
            let near = |found: u64, published: u64| found.abs_diff(published) * 4 <= published;
            assert!(near(guess.layers, layers) && near(guess.hidden, hidden), "{guess:?}");
        }
    }

    /// Proves the adapter count that LitGPT prints for Llama 2 7B and 13B, queries and values at rank 8.
    #[test]
    fn adapters_are_counted_as_published() {
        let small = Architecture::decoder(32, 4096, 32, 11_008, 32_000);
        assert_eq!(small.adapter_parameters(8, Targets::QueryValue), 4_194_304);
        let large = Architecture::decoder(40, 5120, 40, 13_824, 32_000);
        assert_eq!(large.adapter_parameters(8, Targets::QueryValue), 6_553_600);
    }
}
