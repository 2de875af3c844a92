//! `trackway memory` as a user meets it.

use serde_json::Value;

use crate::harness::Home;

const LLAMA_8B: &str = r#"{"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "tie_word_embeddings": false}"#;

/// Exit code, stdout and stderr as one text.
fn transcript(home: &Home, arguments: &[&str]) -> String {
    let answer = home.trackway(&[&["memory"], arguments].concat());
    let text = format!("exit {}\n-- stdout\n{}-- stderr\n{}", answer.code, answer.stdout, answer.stderr);
    text.replace(&*home.path().to_string_lossy(), "[folder]")
}

/// A home with a config and the headers of one small tensor file.
fn home() -> Home {
    let home = Home::new();
    home.write("config.json", LLAMA_8B);
    home.write("short.json", r#"{"model_type": "novel", "hidden_size": 64, "vocab_size": 9}"#);
    let header = r#"{"a":{"dtype":"BF16","shape":[4,8],"data_offsets":[0,64]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend([0; 64]);
    std::fs::write(home.path().join("model.safetensors"), bytes).unwrap();
    home
}

/// Proves what a person reads: of a run that fits, of one that does not, of one that is spread, of adapters, of a
/// measured peak.
#[test]
fn an_estimate_is_readable() {
    let home = home();
    for (name, arguments) in [
        ("guessed", &["--params", "7e9", "--gpu", "h100-80gb"][..]),
        ("alone", &["--config", "config.json", "--seq", "4096", "--micro-batch", "4", "--gpu", "a100-80gb"]),
        (
            "sharded",
            &[
                "--config", "config.json", "--seq", "8192", "--zero", "3", "--data-parallel", "8",
                "--recompute", "full", "--loss", "chunked", "--expandable-segments", "--gpu", "h100",
            ],
        ),
        (
            "qlora",
            &["--config", ".", "--lora", "16", "--base", "nf4", "--recompute", "full", "--gpu", "rtx4090"],
        ),
        (
            "measured",
            &[
                "--config", "config.json", "--zero", "3", "--data-parallel", "8", "--measured", "38e9",
                "--counter", "allocated",
            ],
        ),
        ("devices", &["--devices"]),
    ] {
        insta::assert_snapshot!(format!("memory_{name}"), transcript(&home, arguments));
    }
}

/// Proves that mistakes are reported with what is missing and what would help.
#[test]
fn mistakes_are_reported() {
    let home = home();
    for (name, arguments) in [
        ("nothing", &[][..]),
        ("missing_keys", &["--config", "short.json"]),
        ("absent", &["--config", "absent.json"]),
        ("device", &["--params", "7b", "--gpu", "abacus"]),
        ("word", &["--params", "7b", "--optimizer", "adam"]),
        ("count", &["--params", "many"]),
        ("no_tensors", &["--safetensors", "config.json"]),
        ("other_run", &["--config", "config.json", "--measured", "1e9"]),
        ("heads", &["--layers", "2", "--hidden", "10", "--heads", "3"]),
    ] {
        insta::assert_snapshot!(format!("memory_wrong_{name}"), transcript(&home, arguments));
    }
}

/// Proves that the help shows every option with examples.
#[test]
fn the_help_has_examples() {
    insta::assert_snapshot!("memory_help", transcript(&home(), &["--help"]));
}

/// Proves the fields of the contract, that parts add up to the total, and that headers alone are enough.
#[test]
fn json_has_the_fields_of_the_contract() {
    let home = home();
    let document = home.json(&["memory", "--config", "config.json", "--gpu", "h100-80gb"]);
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("a number, not {value}"));
    let total_bytes = number(&document["total_bytes"]);
    assert!(number(&document["low_bytes"]) <= total_bytes && total_bytes <= number(&document["high_bytes"]));
    assert_eq!(number(&document["rule_of_thumb_bytes"]), 40 * 8_030_261_248);
    let parts = document["parts"].as_object().unwrap();
    assert_eq!(parts.values().map(number).sum::<u64>(), total_bytes);
    for part in ["parameters", "gradients", "optimizer", "activations", "logits", "overhead"] {
        assert!(parts.contains_key(part), "{part}");
    }
    assert_eq!(document["fits"], false);
    assert!(document["advice"].as_array().is_some_and(|advice| !advice.is_empty()));
    let document = home.json(&["memory", "--safetensors", "."]);
    assert_eq!((number(&document["parameter_count"]), &document["fits"]), (32, &Value::Null));
}
