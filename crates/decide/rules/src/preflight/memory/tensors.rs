//! A model's size, and as much of its shape as possible, from the names and axes of its tensors.

use super::architecture::Architecture;

/// A tensor as a safetensors header lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorCount {
    /// Its name, such as `model.layers.0.mlp.up_proj.weight`.
    pub name: String,
    /// Its axes.
    pub shape: Vec<u64>,
}

impl TensorCount {
    fn elements(&self) -> u64 {
        if self.shape.contains(&0) { 0 } else { self.shape.iter().copied().fold(1, u64::saturating_mul) }
    }

    /// The number after the name that layers are counted under.
    fn layer(&self) -> Option<u64> {
        let mut words = self.name.split('.');
        words.find(|word| LAYER_WORDS.contains(word))?;
        words.next()?.parse().ok()
    }

    fn is(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.name.contains(word))
    }
}

/// The names that layers are counted under: Llama and its like, GPT-2, BERT, T5.
const LAYER_WORDS: [&str; 4] = ["layers", "h", "layer", "block"];
const EMBEDDING_WORDS: [&str; 5] =
    ["embed_tokens.weight", "wte.weight", "word_embeddings.weight", "shared.weight", "embed_in.weight"];
const HEAD_WORDS: [&str; 3] = ["lm_head.weight", "embed_out.weight", "output.weight"];
/// Width of a head that the tensors do not determine.
const USUAL_HEAD_WIDTH: u64 = 128;

/// The shape of a model, from its tensors; the parameter count is exact, what the names do not determine is guessed
/// from it. `None` without tensors.
///
/// Embedding, layers, hidden width, feed-forward width and key-value width are read where names follow the usual
/// patterns; the width of a head is taken as 128 or, where that does not divide, 64.
#[must_use]
pub fn architecture_of_tensors(tensors: &[TensorCount]) -> Option<Architecture> {
    let parameters = tensors.iter().map(TensorCount::elements).fold(0, u64::saturating_add);
    if parameters == 0 {
        return None;
    }
    let read = read_shape(tensors).map(|model| Architecture { family: "safetensors".into(), ..model });
    let model = read.unwrap_or_else(|| Architecture::of_parameters(parameters));
    Some(Architecture { known_parameters: Some(parameters), ..model })
}

fn read_shape(tensors: &[TensorCount]) -> Option<Architecture> {
    let matrix = |words: &[&str]| tensors.iter().find(|it| it.shape.len() == 2 && it.is(words));
    let embedding = matrix(&EMBEDDING_WORDS)?;
    let (vocabulary, hidden) = (embedding.shape[0], embedding.shape[1]);
    let layers = tensors.iter().filter_map(TensorCount::layer).max()?.saturating_add(1);
    let up = matrix(&["up_proj.weight", "c_fc.weight", "intermediate.dense.weight", "dense_h_to_4h.weight"])?;
    let feed_forward = up.shape.iter().copied().max()?;
    let width = if hidden.is_multiple_of(USUAL_HEAD_WIDTH) && hidden > 2048 { USUAL_HEAD_WIDTH } else { 64 };
    let query = matrix(&["q_proj.weight"]).map_or(hidden, |it| it.shape[0]);
    let key_value = matrix(&["k_proj.weight"]).map_or(hidden, |it| it.shape[0]);
    Some(Architecture {
        key_value_heads: (key_value / width).max(1),
        head_width: width,
        gated: matrix(&["gate_proj.weight"]).is_some(),
        tied_embeddings: matrix(&HEAD_WORDS).is_none(),
        ..Architecture::decoder(layers, hidden, (query / width).max(1), feed_forward, vocabulary)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(name: &str, shape: &[u64]) -> TensorCount {
        TensorCount { name: name.into(), shape: shape.to_vec() }
    }

    /// Proves that a Llama's tensors give its shape, its exact count, and grouped key-value heads.
    #[test]
    fn usual_names_give_the_shape() {
        let mut tensors = vec![
            tensor("model.embed_tokens.weight", &[128_256, 4096]),
            tensor("lm_head.weight", &[128_256, 4096]),
            tensor("model.norm.weight", &[4096]),
        ];
        for layer in 0..32 {
            for (name, shape) in [
                ("self_attn.q_proj", vec![4096, 4096]),
                ("self_attn.k_proj", vec![1024, 4096]),
                ("self_attn.v_proj", vec![1024, 4096]),
                ("self_attn.o_proj", vec![4096, 4096]),
                ("mlp.gate_proj", vec![14_336, 4096]),
                ("mlp.up_proj", vec![14_336, 4096]),
                ("mlp.down_proj", vec![4096, 14_336]),
                ("input_layernorm", vec![4096]),
                ("post_attention_layernorm", vec![4096]),
            ] {
                tensors.push(tensor(&format!("model.layers.{layer}.{name}.weight"), &shape));
            }
        }
        let model = architecture_of_tensors(&tensors).unwrap();
        assert_eq!((model.parameters(), model.counted()), (8_030_261_248, 8_030_261_248));
        assert_eq!((model.layers, model.heads, model.key_value_heads), (32, 32, 8));
    }

    /// Proves that tensors of other names still give the exact count, with a guessed shape; and none give nothing.
    #[test]
    fn other_names_give_the_count() {
        let model = architecture_of_tensors(&[tensor("conv1.weight", &[64, 3, 7, 7])]).unwrap();
        assert_eq!((model.parameters(), model.guessed()), (9408, true));
        assert_eq!(architecture_of_tensors(&[]), None);
    }
}
