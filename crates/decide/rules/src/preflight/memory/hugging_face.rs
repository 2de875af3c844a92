//! A model's shape from the `config.json` that Hugging Face keeps beside its weights.

use serde_json::{Map, Value};
use trackway_core::text::quoted_list;

use super::architecture::{Architecture, Norm};

/// A shape that was read, with notes for a reader.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadConfig {
    /// The shape.
    pub model: Architecture,
    /// What was assumed; empty for a family that is known.
    pub notes: Vec<String>,
}

/// Why a `config.json` gives no shape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("a model's config is a JSON object")]
    NotAnObject,
    #[error("the config of a `{family}` model has no {}", quoted_list(keys))]
    MissingKeys { family: String, keys: Vec<String> },
    #[error("the config describes more than 10^15 parameters")]
    TooLarge,
    #[error("`{key}` of the config is {found}, not a count above 0")]
    NotACount { key: String, found: String },
}

/// Reads the shape of a model from its `config.json`.
///
/// Known by `model_type`: `llama`, `mistral`, `mixtral`, `qwen2`, `qwen3`, `qwen3_moe`, `gemma`, `gemma2`, `gemma3`,
/// `phi`, `phi3`, `gpt2`, `gpt_neox`, `bloom`, `bert`, `roberta`, `t5`, `mt5`. Any other is read as a decoder like
/// Llama when it has that decoder's keys, with a note. A model that also sees images is read by its `text_config`.
///
/// # Errors
/// [`ConfigError`], naming every missing key.
pub fn read_config(config: &Value) -> Result<ReadConfig, ConfigError> {
    let whole = config.as_object().ok_or(ConfigError::NotAnObject)?;
    let text = whole.get("text_config").and_then(Value::as_object);
    let mut keys = Keys::new(text.unwrap_or(whole), whole);
    let mut notes = Vec::new();
    if text.is_some() {
        notes.push("only the text model is counted: the config has a `text_config`".into());
    }
    let model = match keys.family.as_str() {
        "gpt2" => gpt2(&mut keys),
        "gpt_neox" => neox(&mut keys),
        "bloom" => bloom(&mut keys),
        "bert" | "roberta" => bert(&mut keys),
        "t5" | "mt5" | "umt5" => t5(&mut keys),
        "phi" => phi(&mut keys),
        known => {
            if !LIKE_LLAMA.contains(&known) {
                notes.push(format!("the family `{known}` is not known: read as a decoder like Llama"));
            }
            like_llama(&mut keys)
        }
    };
    keys.finish(model).map(|model| ReadConfig { model, notes })
}

const LIKE_LLAMA: [&str; 12] = [
    "llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe", "gemma", "gemma2", "gemma3", "gemma3_text",
    "phi3", "smollm3",
];

/// Keys that are read, and those that were not there.
struct Keys<'a> {
    map: &'a Map<String, Value>,
    family: String,
    missing: Vec<String>,
    wrong: Option<ConfigError>,
}

impl<'a> Keys<'a> {
    fn new(map: &'a Map<String, Value>, whole: &'a Map<String, Value>) -> Self {
        let family = map.get("model_type").or_else(|| whole.get("model_type")).and_then(Value::as_str);
        Self { map, family: family.unwrap_or("unknown").into(), missing: Vec::new(), wrong: None }
    }

    fn finish(self, mut model: Architecture) -> Result<Architecture, ConfigError> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        if !self.missing.is_empty() {
            return Err(ConfigError::MissingKeys { family: self.family, keys: self.missing });
        }
        model.family = self.family;
        if model.plausible() { Ok(model) } else { Err(ConfigError::TooLarge) }
    }

    /// A count under the first of some names that is there and not null.
    fn optional(&mut self, names: &[&str]) -> Option<u64> {
        let name = names.iter().find(|name| self.map.get(**name).is_some_and(|value| !value.is_null()))?;
        let value = &self.map[*name];
        let count = value.as_u64().filter(|count| *count > 0 && *count < MAX_COUNT);
        if count.is_none() {
            self.wrong
                .get_or_insert(ConfigError::NotACount { key: (*name).into(), found: value.to_string() });
        }
        count
    }

    /// The same, noted as missing when it is not there. The value then does not matter: nothing is computed from it.
    fn count(&mut self, names: &[&str]) -> u64 {
        let found = self.optional(names);
        if found.is_none() && self.wrong.is_none() {
            self.missing.push(names[0].into());
        }
        found.unwrap_or(1)
    }

    fn flag(&self, name: &str, default: bool) -> bool {
        self.map.get(name).and_then(Value::as_bool).unwrap_or(default)
    }

    fn number(&self, name: &str) -> f64 {
        self.map.get(name).and_then(Value::as_f64).unwrap_or(0.0)
    }

    fn text(&self, name: &str) -> &'a str {
        self.map.get(name).and_then(Value::as_str).unwrap_or_default()
    }
}

/// A count that no model reaches.
const MAX_COUNT: u64 = 1 << 24;

fn like_llama(keys: &mut Keys<'_>) -> Architecture {
    let hidden = keys.count(&["hidden_size"]);
    let heads = keys.count(&["num_attention_heads"]);
    let layers = keys.count(&["num_hidden_layers"]);
    let dense = keys.count(&["intermediate_size"]);
    let vocabulary = keys.count(&["vocab_size"]);
    let family = keys.family.clone();
    let is = |name: &str| family.starts_with(name);
    let experts = keys.optional(&["num_local_experts", "num_experts", "n_routed_experts"]).unwrap_or(1);
    let expert_width = keys.optional(&["moe_intermediate_size"]).filter(|_| experts > 1);
    Architecture {
        key_value_heads: keys.optional(&["num_key_value_heads"]).unwrap_or(heads),
        head_width: keys.optional(&["head_dim"]).unwrap_or_else(|| hidden / heads),
        tied_embeddings: keys.flag("tie_word_embeddings", is("gemma")),
        experts,
        experts_per_token: keys.optional(&["num_experts_per_tok"]).unwrap_or(1).min(experts),
        attention_bias: keys.flag("attention_bias", is("qwen2")),
        attention_output_bias: keys.flag("attention_bias", false),
        feed_forward_bias: keys.flag("mlp_bias", false),
        norms_per_layer: if is("gemma2") || is("gemma3") { 4 } else { 2 },
        head_norms: is("qwen3") || is("gemma3"),
        dropout: keys.number("attention_dropout") > 0.0,
        ..Architecture::decoder(layers, hidden, heads, expert_width.unwrap_or(dense), vocabulary)
    }
}

/// Biases everywhere, norms with a mean, two matrices in the feed-forward block.
fn with_biases(layers: u64, hidden: u64, heads: u64, feed_forward: u64, vocabulary: u64) -> Architecture {
    Architecture {
        gated: false,
        norm: Norm::Layer,
        attention_bias: true,
        attention_output_bias: true,
        feed_forward_bias: true,
        ..Architecture::decoder(layers, hidden, heads, feed_forward, vocabulary)
    }
}

fn gpt2(keys: &mut Keys<'_>) -> Architecture {
    let hidden = keys.count(&["n_embd"]);
    let (layers, heads) = (keys.count(&["n_layer"]), keys.count(&["n_head"]));
    let feed_forward = keys.optional(&["n_inner"]).unwrap_or(4 * hidden);
    let vocabulary = keys.count(&["vocab_size"]);
    Architecture {
        position_vectors: keys.count(&["n_positions", "n_ctx"]),
        tied_embeddings: keys.flag("tie_word_embeddings", true),
        dropout: keys.number("resid_pdrop") > 0.0,
        ..with_biases(layers, hidden, heads, feed_forward, vocabulary)
    }
}

fn neox(keys: &mut Keys<'_>) -> Architecture {
    let (hidden, layers) = (keys.count(&["hidden_size"]), keys.count(&["num_hidden_layers"]));
    let (heads, feed_forward) = (keys.count(&["num_attention_heads"]), keys.count(&["intermediate_size"]));
    let vocabulary = keys.count(&["vocab_size"]);
    Architecture {
        tied_embeddings: keys.flag("tie_word_embeddings", false),
        dropout: keys.number("hidden_dropout") > 0.0,
        ..with_biases(layers, hidden, heads, feed_forward, vocabulary)
    }
}

fn bloom(keys: &mut Keys<'_>) -> Architecture {
    let hidden = keys.count(&["hidden_size", "n_embed"]);
    let layers = keys.count(&["n_layer", "num_hidden_layers"]);
    let heads = keys.count(&["n_head", "num_attention_heads"]);
    let vocabulary = keys.count(&["vocab_size"]);
    Architecture {
        tied_embeddings: keys.flag("tie_word_embeddings", true),
        // One norm after the embedding, one after the last layer.
        outer_norms: 2,
        dropout: keys.number("hidden_dropout") > 0.0,
        ..with_biases(layers, hidden, heads, 4 * hidden, vocabulary)
    }
}

/// The encoder with its pooler; heads of tasks are left out.
fn bert(keys: &mut Keys<'_>) -> Architecture {
    let (hidden, layers) = (keys.count(&["hidden_size"]), keys.count(&["num_hidden_layers"]));
    let (heads, feed_forward) = (keys.count(&["num_attention_heads"]), keys.count(&["intermediate_size"]));
    let vocabulary = keys.count(&["vocab_size"]);
    let positions = keys.count(&["max_position_embeddings"]);
    Architecture {
        position_vectors: positions + keys.optional(&["type_vocab_size"]).unwrap_or(2),
        tied_embeddings: true,
        dropout: keys.number("hidden_dropout_prob") > 0.0,
        extra_parameters: hidden * hidden + hidden,
        ..with_biases(layers, hidden, heads, feed_forward, vocabulary)
    }
}

/// Attention and feed-forward block are parallel after one norm.
fn phi(keys: &mut Keys<'_>) -> Architecture {
    let hidden = keys.count(&["hidden_size", "n_embd"]);
    let layers = keys.count(&["num_hidden_layers", "n_layer"]);
    let heads = keys.count(&["num_attention_heads", "n_head"]);
    let feed_forward = keys.optional(&["intermediate_size", "n_inner"]).unwrap_or(4 * hidden);
    let vocabulary = keys.count(&["vocab_size"]);
    Architecture {
        key_value_heads: keys.optional(&["num_key_value_heads"]).unwrap_or(heads),
        norms_per_layer: 1,
        dropout: keys.number("resid_pdrop") > 0.0,
        // The head has a bias.
        extra_parameters: vocabulary,
        ..with_biases(layers, hidden, heads, feed_forward, vocabulary)
    }
}

fn t5(keys: &mut Keys<'_>) -> Architecture {
    let (hidden, feed_forward) = (keys.count(&["d_model"]), keys.count(&["d_ff"]));
    let encoder_layers = keys.count(&["num_layers"]);
    let layers = keys.optional(&["num_decoder_layers"]).unwrap_or(encoder_layers);
    let (heads, vocabulary) = (keys.count(&["num_heads"]), keys.count(&["vocab_size"]));
    let buckets = keys.optional(&["relative_attention_num_buckets"]).unwrap_or(32);
    Architecture {
        encoder_layers,
        head_width: keys.count(&["d_kv"]),
        gated: keys.text("feed_forward_proj").starts_with("gated"),
        tied_embeddings: keys.flag("tie_word_embeddings", true),
        outer_norms: 2,
        dropout: keys.number("dropout_rate") > 0.0,
        extra_parameters: 2 * buckets * heads,
        ..Architecture::decoder(layers, hidden, heads, feed_forward, vocabulary)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::preflight::memory::{MemorySpec, estimate};

    const FAMILIES: [&str; 8] = ["llama", "gpt2", "bloom", "bert", "t5", "phi", "mixtral", "novel"];
    const KEYS: [&str; 17] = [
        "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
        "intermediate_size", "vocab_size", "num_local_experts", "num_experts_per_tok", "n_embd", "n_layer",
        "n_head", "n_positions", "d_model", "d_ff", "d_kv", "num_layers",
    ];

    proptest! {
        /// Proves that no config, however broken or large its counts, panics or overflows when it is read and
        /// estimated.
        #[test]
        fn no_config_panics(family in 0..FAMILIES.len(), counts in proptest::collection::vec((any::<u64>(), 36_u32..64), KEYS.len())) {
            let mut config = json!({"model_type": FAMILIES[family], "num_heads": 4, "max_position_embeddings": 8});
            for (key, (count, bits)) in KEYS.iter().zip(counts) {
                config[*key] = json!(count >> bits);
            }
            if let Ok(read) = read_config(&config) {
                let found = estimate(&MemorySpec::new(read.model));
                prop_assert!(found.total_bytes > 0 && found.low_bytes <= found.high_bytes);
            }
        }
    }

    /// Proves that configs as they are published give the parameter counts their publishers name, exactly.
    #[test]
    fn published_configs_count_exactly() {
        let llama = |layers: u64,
                     hidden: u64,
                     heads: u64,
                     key_value: u64,
                     wide: u64,
                     vocabulary: u64,
                     family: &str| {
            json!({"model_type": family, "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
                "num_key_value_heads": key_value, "intermediate_size": wide, "vocab_size": vocabulary, "tie_word_embeddings": false})
        };
        let with = |mut config: Value, more: Value| {
            let more = more.as_object().cloned().unwrap_or_default();
            config.as_object_mut().unwrap().extend(more);
            config
        };
        let tied = json!({"tie_word_embeddings": true});
        let table = [
            ("Llama 2 7B", llama(32, 4096, 32, 32, 11_008, 32_000, "llama"), 6_738_415_616),
            ("Llama 3.1 8B", llama(32, 4096, 32, 8, 14_336, 128_256, "llama"), 8_030_261_248),
            ("Mistral 7B", llama(32, 4096, 32, 8, 14_336, 32_000, "mistral"), 7_241_732_096),
            (
                "Mixtral 8x7B",
                with(
                    llama(32, 4096, 32, 8, 14_336, 32_000, "mixtral"),
                    json!({"num_local_experts": 8, "num_experts_per_tok": 2}),
                ),
                46_702_792_704,
            ),
            ("Qwen2 7B", llama(28, 3584, 28, 4, 18_944, 152_064, "qwen2"), 7_615_616_512),
            ("Qwen2.5 1.5B", with(llama(28, 1536, 12, 2, 8960, 151_936, "qwen2"), tied), 1_543_714_304),
            (
                "Qwen3 8B",
                with(llama(36, 4096, 32, 8, 12_288, 151_936, "qwen3"), json!({"head_dim": 128})),
                8_190_735_360,
            ),
            (
                "Qwen3 30B A3B",
                with(
                    llama(48, 2048, 32, 4, 6144, 151_936, "qwen3_moe"),
                    json!({"head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768}),
                ),
                30_532_122_624,
            ),
            (
                "Gemma 2B",
                json!({"model_type": "gemma", "hidden_size": 2048, "num_hidden_layers": 18, "num_attention_heads": 8,
                    "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 16_384, "vocab_size": 256_000}),
                2_506_172_416,
            ),
            (
                "Gemma 2 9B",
                json!({"model_type": "gemma2", "hidden_size": 3584, "num_hidden_layers": 42, "num_attention_heads": 16,
                    "num_key_value_heads": 8, "head_dim": 256, "intermediate_size": 14_336, "vocab_size": 256_000}),
                9_241_705_984,
            ),
            ("Phi-3 mini", llama(32, 3072, 32, 32, 8192, 32_064, "phi3"), 3_821_079_552),
            (
                "Phi-2",
                json!({"model_type": "phi", "hidden_size": 2560, "num_hidden_layers": 32, "num_attention_heads": 32,
                    "intermediate_size": 10_240, "vocab_size": 51_200}),
                2_779_683_840,
            ),
            (
                "GPT-2",
                json!({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024,
                    "n_inner": null, "vocab_size": 50_257, "resid_pdrop": 0.1}),
                124_439_808,
            ),
            (
                "Pythia 1.4B",
                json!({"model_type": "gpt_neox", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 16,
                    "intermediate_size": 8192, "vocab_size": 50_304}),
                1_414_647_808,
            ),
            (
                "BLOOM 560M",
                json!({"model_type": "bloom", "n_embed": 1024, "n_layer": 24, "num_attention_heads": 16, "vocab_size": 250_880}),
                559_214_592,
            ),
            (
                "BERT base",
                json!({"model_type": "bert", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
                    "intermediate_size": 3072, "vocab_size": 30_522, "max_position_embeddings": 512, "type_vocab_size": 2}),
                109_482_240,
            ),
            (
                "T5 small",
                json!({"model_type": "t5", "d_model": 512, "d_ff": 2048, "d_kv": 64, "num_layers": 6, "num_heads": 8,
                    "vocab_size": 32_128}),
                60_506_624,
            ),
            (
                "T5 1.1 XL",
                json!({"model_type": "t5", "d_model": 2048, "d_ff": 5120, "d_kv": 64, "num_layers": 24, "num_heads": 32,
                    "vocab_size": 32_128, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false}),
                2_849_757_184,
            ),
        ];
        for (name, config, published) in table {
            let read = read_config(&config).unwrap();
            assert_eq!(read.model.parameters(), published, "{name}");
            assert!(read.notes.is_empty(), "{name}: {:?}", read.notes);
        }
    }

    /// Proves that a mixture counts the parameters active for one token separately: 12.9 of Mixtral's 46.7 billion.
    #[test]
    fn a_mixture_counts_what_is_active() {
        let config = json!({"model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
            "num_key_value_heads": 8, "intermediate_size": 14_336, "vocab_size": 32_000, "num_local_experts": 8,
            "num_experts_per_tok": 2});
        assert_eq!(read_config(&config).unwrap().model.active_parameters(), 12_879_925_248);
    }

    /// Proves that an unknown family is read when it has the usual keys, and refused with every missing one named
    /// when it has not; and that impossible values are.
    #[test]
    fn unknown_and_broken_configs_are_reported() {
        let usual = json!({"model_type": "novel", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
            "intermediate_size": 128, "vocab_size": 100});
        assert_eq!(read_config(&usual).unwrap().notes.len(), 1);
        let error_of = |config: &Value| read_config(config).unwrap_err().to_string();
        assert_eq!(
            error_of(
                &json!({"model_type": "novel", "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 9})
            ),
            "the config of a `novel` model has no `num_hidden_layers`, `intermediate_size`"
        );
        assert_eq!(error_of(&json!([1])), "a model's config is a JSON object");
        for broken in [json!(0), json!(-1), json!("many"), json!(1_u64 << 40)] {
            let mut config = usual.clone();
            config["num_attention_heads"] = broken;
            assert!(error_of(&config).starts_with("`num_attention_heads` of the config is "));
        }
        let mut huge = usual;
        for key in ["hidden_size", "num_hidden_layers", "intermediate_size", "vocab_size"] {
            huge[key] = json!((1_u64 << 24) - 1);
        }
        assert_eq!(error_of(&huge), "the config describes more than 10^15 parameters");
    }
}
