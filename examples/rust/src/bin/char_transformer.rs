//! Trains a small character-level language model on any text; see `examples/README.md`.

use std::process::ExitCode;

use trackway_examples::{CharTransformer, Defaults, launch};

fn main() -> ExitCode {
    launch(Defaults { steps: 300, batch: 16, learning_rate: 3e-3 }, CharTransformer::new)
}
