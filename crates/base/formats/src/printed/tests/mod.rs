//! The reader against what real tools printed, and against bytes that nothing printed.

mod again;
mod bars;
mod named_rows;
mod names_and_values;
mod places;
mod pretty;
mod results;
mod titles;

use super::*;

/// Reads `crates/base/formats/tests/vectors/printed/NAME.jsonl`: the pieces of both outputs in the order they came.
fn replay(name: &str) -> Vec<String> {
    let path = format!("{}/tests/vectors/printed/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let (mut reader, mut found) = (PrintedReader::default(), Vec::new());
    for line in text.lines() {
        let (output, piece): (u8, String) = serde_json::from_str(line).unwrap();
        let output = if output == 1 { Printed::Stdout } else { Printed::Stderr };
        reader.push(output, piece.as_bytes(), |metrics| found.push(metrics.clone()));
    }
    reader.finish(|metrics| found.push(metrics.clone()));
    found.iter().map(shown).collect()
}

fn shown(metrics: &PrintedMetrics) -> String {
    let values: Vec<String> = metrics.values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("{}: {}", metrics.step, values.join(" "))
}

fn read(text: &str) -> Vec<String> {
    let (mut reader, mut found) = (PrintedReader::default(), Vec::new());
    reader.push(Printed::Stdout, text.as_bytes(), |metrics| found.push(shown(metrics)));
    reader.finish(|metrics| found.push(shown(metrics)));
    found
}

/// Proves lines that scripts print by themselves, on both outputs.
#[test]
fn plain_prints() {
    let found = replay("plain");
    for line in [
        "10: train_loss=4.1 val_loss=4.2",
        "10: loss=4.1 mfu=-100",
        "101: loss=1.99 learning_rate=0.0001 tokens_per_second=1234.5",
        "100: loss=0.3527",
        "200: loss=NaN",
    ] {
        assert!(found.contains(&line.to_owned()), "{line}: {found:?}");
    }
    assert_eq!(found.len(), 15, "{found:?}");
}

/// Proves that the output of a script which records its metrics itself is not read twice, but for the objects it prints
/// to be read.
#[test]
fn only_json_on_request() {
    let mut reader = PrintedReader::default();
    reader.read_only_json();
    let mut found = Vec::new();
    let text =
        "step 1: loss 2\n{'loss': 3}\n{\"step\": 2, \"loss\": 4}\n 50%|█| 1/2 [00:00<00:00, 1it/s, loss=5]\n";
    reader.push(Printed::Stdout, text.as_bytes(), |metrics| found.push(shown(metrics)));
    reader.finish(|metrics| found.push(shown(metrics)));
    assert_eq!(found, ["2: loss=4"]);
}

/// Proves for each of the formats of public training code in `formats.json`, in values of our own, that every value
/// which a person reads there is read at its step, and nothing has a name of something else. Names are compared by
/// their letters and digits.
#[test]
fn formats_of_public_training_code() {
    #[derive(serde::Deserialize)]
    struct Format {
        tool: String,
        prints: String,
        metrics: Vec<(String, i64, f64)>,
        /// Names that nothing may have.
        #[serde(default)]
        never: Vec<String>,
    }
    let path = format!("{}/tests/vectors/printed/formats.json", env!("CARGO_MANIFEST_DIR"));
    let formats: Vec<Format> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let letters = |name: &str| -> String {
        name.to_lowercase().chars().filter(|letter| letter.is_ascii_alphanumeric()).collect()
    };
    let mut missing = Vec::new();
    for format in &formats {
        let known = missing.len();
        let (mut reader, mut found) = (PrintedReader::default(), Vec::new());
        reader.push(Printed::Stdout, format.prints.as_bytes(), |metrics| found.push(metrics.clone()));
        reader.finish(|metrics| found.push(metrics.clone()));
        for (name, step, value) in &format.metrics {
            let is_there = found.iter().filter(|metrics| metrics.step == *step).any(|metrics| {
                metrics.values.iter().any(|(known, read)| letters(known) == letters(name) && read == value)
            });
            if !is_there {
                missing.push(format!("{}: {name}={value} at {step}", format.tool));
            }
        }
        let names = found.iter().flat_map(|metrics| &metrics.values).map(|(name, _)| name);
        let wrong = names.filter(|name| format.never.contains(name));
        missing.extend(wrong.map(|name| format!("{}: {name} is none", format.tool)));
        if missing.len() > known {
            missing.push(found.iter().map(shown).collect::<Vec<_>>().join(" · "));
        }
    }
    assert!(formats.len() >= 60 && missing.is_empty(), "{missing:#?}");
}

/// The steps of what is printed, after what an attempt before printed.
fn steps_after(before: &str, text: &str) -> Vec<u64> {
    let (mut first, mut second) = (PrintedReader::default(), PrintedReader::default());
    first.push(Printed::Stdout, before.as_bytes(), |_| {});
    first.finish(|_| {});
    let stored = serde_json::to_string(&first.course()).unwrap();
    second.count_on(serde_json::from_str(&stored).unwrap());
    let mut found = Vec::new();
    let mut take = |metrics: &PrintedMetrics| found.push(metrics.step.try_into().unwrap());
    second.push(Printed::Stdout, text.as_bytes(), &mut take);
    second.finish(&mut take);
    found
}

fn steps(text: &str) -> Vec<u64> {
    steps_after("", text)
}

/// The lines of some epochs, each with the steps.
fn lines(epochs: std::ops::RangeInclusive<u64>, steps: &[u64], line: impl Fn(u64, u64) -> String) -> String {
    epochs
        .flat_map(|epoch| steps.iter().map(move |step| (epoch, *step)))
        .map(|(epoch, step)| line(epoch, step) + "\n")
        .collect()
}
