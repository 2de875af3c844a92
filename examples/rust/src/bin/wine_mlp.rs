//! Trains a small classifier on the red wine table; see `examples/README.md`.

use std::process::ExitCode;

use trackway_examples::{Defaults, WineClassifier, launch};

fn main() -> ExitCode {
    launch(Defaults { steps: 600, batch: 64, learning_rate: 1e-3 }, WineClassifier::new)
}
