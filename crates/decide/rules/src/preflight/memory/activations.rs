//! Bytes of activations: what the forward pass keeps for the backward pass, counted tensor by tensor.
//!
//! The count follows Korthikanti et al. 2022 (arXiv 2205.05198), whose 34 · s · b · h a layer with 16-bit numbers, four
//! times wider feed-forward blocks and dropout comes out exactly; it differs where PyTorch does: scores and norms in 32
//! bits, gated blocks, frozen weights whose inputs are not needed.

use super::architecture::{Architecture, Norm, Targets};
use super::spec::{Attention, Base, Loss, Master, MemorySpec, Precision, Recompute};

/// Bytes of a 32-bit number, and of an element of a dropout mask.
const FLOAT_BYTES: f64 = 4.0;
const MASK_BYTES: f64 = 1.0;
/// Score-shaped tensors that the backward pass of attention as written holds besides the kept ones, in bytes an
/// element: gradients of probabilities and of scores in 32 bits, and casts of both where the step has 16 bits.
const SCORE_GRADIENT_BYTES: f64 = 8.0;
const SCORE_CAST_BYTES: f64 = 4.0;
/// Vocabulary-wide tensors in 32 bits that exist at once when a loss is computed as written: log-probabilities, their
/// gradient, the gradient of the logits.
const LOSS_FLOATS: f64 = 3.0;
/// Tokens of one slice of a loss computed in slices.
const LOSS_SLICE_TOKENS: f64 = 1024.0;

/// What one layer keeps of one token, in bytes, on the ranks that split its matrices.
#[derive(Debug, Clone, Copy, Default)]
struct ActivationBytes {
    /// What every tensor rank holds whole unless tokens are shared out.
    whole: f64,
    /// What tensor ranks divide.
    divided: f64,
}

impl ActivationBytes {
    fn of_rank(self, spec: &MemorySpec) -> f64 {
        let tensor = spec.parallel.tensor as f64;
        let whole = if spec.parallel.sequence { self.whole / tensor } else { self.whole };
        whole + self.divided / tensor
    }
}

/// Activations of one rank, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Activations {
    /// Kept from the forward pass by one layer of the rank, on average.
    pub kept_by_layer: f64,
    /// What one layer computes again, with the gradients of its activations, in its backward pass.
    pub layer_backward: f64,
    /// Around the loss: logits and what is computed from them.
    pub logits: f64,
}

impl Activations {
    pub fn of(spec: &MemorySpec) -> Self {
        let tokens = tokens(spec, spec.sequence);
        let target_tokens = tokens_of_decoder(spec);
        let (model, tensor) = (&spec.model, spec.parallel.tensor as f64);
        let (decoder, encoder) = (Layer::new(spec, true), Layer::new(spec, false));
        let mean = |of_decoder: f64, of_encoder: f64| {
            let of_decoders = model.layers as f64 * target_tokens * of_decoder;
            let of_encoders = model.encoder_layers as f64 * tokens * of_encoder;
            (of_decoders + of_encoders) / model.all_layers().max(1) as f64
        };
        let gathered = gathered_tokens(spec, target_tokens);
        let kept = mean(decoder.kept(), encoder.kept());
        let everything = mean(decoder.everything(), encoder.everything());
        let recomputed = if spec.recompute == Recompute::None { 0.0 } else { everything };
        Self {
            kept_by_layer: kept,
            layer_backward: recomputed + mean(decoder.gradients(), encoder.gradients()) + gathered,
            logits: logits(spec, target_tokens) / tensor + gathered,
        }
    }
}

fn tokens(spec: &MemorySpec, sequence: u64) -> f64 {
    spec.micro_batch as f64 * sequence as f64 / spec.parallel.context as f64
}

fn tokens_of_decoder(spec: &MemorySpec) -> f64 {
    tokens(spec, spec.target_sequence.unwrap_or(spec.sequence))
}

/// Ranks that split tokens gather them all before a product, and its gradient after it (Korthikanti et al., section
/// 4.2.2).
fn gathered_tokens(spec: &MemorySpec, tokens: f64) -> f64 {
    let shared = spec.parallel.sequence && spec.parallel.tensor > 1;
    if shared { 2.0 * tokens * spec.model.hidden as f64 * spec.precision.bytes() } else { 0.0 }
}

/// Logits and what is computed from them: `tokens × vocabulary` numbers, in the type the head gives plus three times
/// 32 bits as written; twice in the type of the head when compiled (`docs/memory.md` shows the terms against measured
/// peaks).
fn logits(spec: &MemorySpec, tokens: f64) -> f64 {
    let number = residual_bytes(spec);
    let as_written = number + LOSS_FLOATS * FLOAT_BYTES;
    let vocabulary = spec.model.vocabulary as f64;
    match spec.loss {
        Loss::Eager => tokens * vocabulary * as_written,
        Loss::Compiled => tokens * vocabulary * 2.0 * number,
        Loss::Chunked => tokens.min(LOSS_SLICE_TOKENS) * vocabulary * as_written,
        Loss::Classes => 0.0,
    }
}

/// Bytes of a number of the residual stream: 32 bits where weights are 32-bit and products are cast one by one.
fn residual_bytes(spec: &MemorySpec) -> f64 {
    if autocast(spec) { FLOAT_BYTES } else { spec.precision.bytes() }
}

/// Products alone are in 16 bits, everything between them in 32 (`torch.autocast`, and quantised bases as PEFT
/// prepares them).
fn autocast(spec: &MemorySpec) -> bool {
    spec.master == Master::Weights && spec.precision != Precision::Fp32 && spec.parallel.zero < 3
}

/// One kind of layer: everything is in bytes for one token.
struct Layer<'a> {
    spec: &'a MemorySpec,
    model: &'a Architecture,
    /// Bytes of a number that a product takes or gives.
    number: f64,
    /// It attends twice: to itself and to the encoder.
    crossing: bool,
}

impl<'a> Layer<'a> {
    fn new(spec: &'a MemorySpec, decoder: bool) -> Self {
        let crossing = decoder && spec.model.encoder_layers > 0;
        Self { spec, model: &spec.model, number: spec.precision.bytes(), crossing }
    }

    /// What is kept until the backward pass.
    fn kept(&self) -> f64 {
        match self.spec.recompute {
            Recompute::None => self.everything(),
            Recompute::Selective => self.selected(),
            Recompute::Full => {
                let input = residual_bytes(self.spec) * self.model.hidden as f64;
                ActivationBytes { whole: input, divided: 0.0 }.of_rank(self.spec)
            }
        }
    }

    /// Everything the backward pass needs.
    fn everything(&self) -> f64 {
        let attentions = if self.crossing { 2.0 } else { 1.0 };
        let (attention, feed_forward) = (self.attention(), self.feed_forward());
        ActivationBytes {
            whole: attentions * attention.whole + feed_forward.whole,
            divided: attentions * attention.divided + feed_forward.divided,
        }
        .of_rank(self.spec)
    }

    /// The input, what attention gives, and the 1st, 3rd, 5th and 7th of the seven products.
    fn selected(&self) -> f64 {
        let (hidden, query) = (self.model.hidden as f64, self.model.query_width() as f64);
        let divided = 2.0 * query + self.model.key_value_width() as f64 + self.inner();
        ActivationBytes { whole: self.number * 2.0 * hidden, divided: self.number * divided }
            .of_rank(self.spec)
    }

    /// Gradients of a layer's activations, while its backward pass goes through them.
    fn gradients(&self) -> f64 {
        let (hidden, model) = (self.model.hidden as f64, self.model);
        let products = if model.gated { 3.0 } else { 2.0 } * self.inner();
        let attention = (model.query_width() + 2 * model.key_value_width()) as f64;
        // One part of the layer after the other.
        let widest = products.max(attention);
        let scores = match self.spec.attention {
            Attention::Flash => 0.0,
            Attention::Eager if self.number < FLOAT_BYTES => {
                self.scores() * (SCORE_GRADIENT_BYTES + SCORE_CAST_BYTES)
            }
            Attention::Eager => self.scores() * SCORE_GRADIENT_BYTES,
        };
        ActivationBytes {
            whole: 2.0 * residual_bytes(self.spec) * hidden,
            divided: self.number * widest + scores,
        }
        .of_rank(self.spec)
    }

    fn attention(&self) -> ActivationBytes {
        let model = self.model;
        let (query, key_value) = (model.query_width() as f64, model.key_value_width() as f64);
        let adapted = if self.reaches(Targets::Attention) { 3.0 } else { 2.0 };
        let from = self.norm() + self.inputs_of(Targets::QueryValue, adapted) + self.mask();
        // The output of attention is kept by attention itself; an adapter after it keeps a copy.
        let behind = if self.reaches(Targets::Attention) { self.number + MASK_BYTES } else { 0.0 };
        let flows = self.number * (2.0 * query + 2.0 * key_value) + behind * query;
        ActivationBytes { whole: from, divided: flows + self.score_bytes() }
    }

    /// Scores of one token: one for each head and each token it attends to.
    fn scores(&self) -> f64 {
        self.model.heads as f64 * self.spec.sequence as f64
    }

    /// As written, probabilities are kept in 32 bits, cast for the product that follows, and once more after dropout
    /// with its mask.
    fn score_bytes(&self) -> f64 {
        let cast = if self.number < FLOAT_BYTES { self.number } else { 0.0 };
        let dropout = if self.model.dropout { MASK_BYTES + FLOAT_BYTES } else { 0.0 };
        match self.spec.attention {
            Attention::Flash => 0.0,
            Attention::Eager => self.scores() * (FLOAT_BYTES + cast + dropout),
        }
    }

    fn feed_forward(&self) -> ActivationBytes {
        let seen = self.model.experts_per_token as f64;
        let mixture = if self.model.experts > 1 { seen } else { 0.0 };
        // Tokens are copied to the experts that see them, and what these give is kept to be weighed.
        let routed = mixture * 2.0 * self.number * self.model.hidden as f64;
        let norms = self.norm() * self.further_norms();
        let into = if self.model.gated { 2.0 } else { 1.0 };
        let whole = norms + self.inputs_of(Targets::All, into) + self.mask() + routed;
        ActivationBytes { whole, divided: self.inner_bytes() * self.inner() }
    }

    /// Width inside the feed-forward block for one token: of all experts that see it.
    fn inner(&self) -> f64 {
        (self.model.feed_forward * self.model.experts_per_token) as f64
    }

    /// Bytes kept for each unit of the inner width. Gated: gate, its activation, the other input, their product. Plain:
    /// before and after the activation. The last of them is the input of a product; compiled code computes element-wise
    /// ones again.
    fn inner_bytes(&self) -> f64 {
        let tensors = match (self.model.gated, self.spec.compiled) {
            (true, false) => 3.0,
            (true, true) => 2.0,
            (false, _) => 1.0,
        };
        let computed_again = self.spec.compiled && self.spec.adapters.is_none();
        let input = if computed_again { 0.0 } else { self.inputs(Targets::All, 1.0, 1.0) };
        self.number * tensors + input
    }

    /// What a norm keeps: its input; a mean-square norm written out keeps it in 32 bits.
    fn norm(&self) -> f64 {
        let hidden = self.model.hidden as f64;
        let written_out = self.model.norm == Norm::Rms && !self.spec.compiled;
        let input = if written_out || autocast(self.spec) { FLOAT_BYTES } else { self.number };
        let behind_weight = if written_out && self.spec.adapters.is_none() { self.number } else { 0.0 };
        (input + behind_weight) * hidden
    }

    /// Norms of the layer besides the one before attention.
    fn further_norms(&self) -> f64 {
        self.model.norms_per_layer.saturating_sub(1) as f64
    }

    /// What is kept of the inputs of `count` products that take the residual stream, the targets of adapters named
    /// `part`.
    ///
    /// A trained product keeps its input, which other products use too. An adapter keeps a copy after its dropout, and
    /// the mask (PEFT gives each matrix a dropout layer). A quantised product keeps its input though its weight is
    /// frozen (`MatMul4Bit` of bitsandbytes).
    fn inputs_of(&self, part: Targets, count: f64) -> f64 {
        self.inputs(part, count, self.model.hidden as f64)
    }

    fn inputs(&self, part: Targets, count: f64, width: f64) -> f64 {
        let Some(adapters) = self.spec.adapters else { return self.number * width };
        let quantised = if adapters.base == Base::Plain { 0.0 } else { self.number * width };
        let reached = adapters.targets >= part;
        quantised + if reached { count * (self.number + MASK_BYTES) * width } else { 0.0 }
    }

    /// Whether adapters are beside the matrices of `part`.
    fn reaches(&self, part: Targets) -> bool {
        self.spec.adapters.is_some_and(|adapters| adapters.targets >= part)
    }

    fn mask(&self) -> f64 {
        if self.model.dropout { MASK_BYTES * self.model.hidden as f64 } else { 0.0 }
    }
}

/// Whether a base is held in fewer bits than the step works in.
pub(super) fn dequantised_layer_bytes(spec: &MemorySpec, largest_matrix: f64) -> f64 {
    let quantised = spec.adapters.is_some_and(|adapters| adapters.base != Base::Plain);
    if quantised { largest_matrix * spec.precision.bytes() } else { 0.0 }
}

/// Keys and values of generated texts: 2 · layers · key-value width · tokens, on the ranks that split heads and layers.
pub(super) fn key_value_cache(spec: &MemorySpec) -> f64 {
    let Some(generation) = spec.generation else { return 0.0 };
    let numbers =
        2 * spec.model.layers * spec.model.key_value_width() * generation.batch * generation.sequence;
    numbers as f64 * spec.precision.bytes() / (spec.parallel.tensor * spec.parallel.pipeline) as f64
}
