//! Reads values of a run as JSON lines and prints what the detectors find, as JSON lines.
//!
//! In: `{"step": 7, "rank": 0, "seconds": 1.25, "values": {"loss": 0.5, "grad_norm": "NaN"}}`, or `{"quiet": 300}` for
//! a silence. `cargo run --release -p trackway-rules --example detect_stream < values.jsonl`

use std::collections::BTreeMap;
use std::io::{BufRead, Write};

use serde::Deserialize;
use trackway_rules::detect::Detectors;

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Quiet {
        quiet: f64,
    },
    Values {
        step: u64,
        #[serde(default)]
        rank: u32,
        seconds: f64,
        values: BTreeMap<String, Value>,
    },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Value {
    Number(f64),
    /// `NaN`, `inf`: JSON cannot express them.
    Text(String),
}

impl Value {
    fn number(&self) -> f64 {
        match self {
            Self::Number(number) => *number,
            Self::Text(text) => text.parse().unwrap_or(f64::NAN),
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut detectors, mut firings) = (Detectors::default(), Vec::new());
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        match serde_json::from_str(&line?)? {
            Line::Quiet { quiet } => detectors.tick(quiet, &mut firings),
            Line::Values { step, rank, seconds, values } => {
                for (name, value) in &values {
                    let watch = detectors.watch(rank, name);
                    detectors.take(watch, step, value.number(), seconds, &mut firings);
                }
            }
        }
        for firing in firings.drain(..) {
            writeln!(out, "{}", serde_json::to_string(&firing)?)?;
        }
    }
    Ok(())
}
