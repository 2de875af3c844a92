use std::path::PathBuf;

use clap::{Args, ValueEnum};
use trackway_app::rehearsal;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway rehearse trackway.toml                      one batch, a checkpoint, and a resume from it
  trackway rehearse trackway.toml --kind overfit       ten batches, again and again
  trackway rehearse wine.toml --steps 400 --json

The script is launched with its first batch, or its first few, again and again until the loss is at its target. It must
take its batches from its recorder: `run.batches(loader)`, or `step_of_batch` in Rust. See docs/rehearsals.md.

Exit codes: 0 learned, or it does not apply; 3 a finding blocks the run, or the rehearsal could not run")]
pub struct RehearseArgs {
    /// The run file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// What to rehearse
    #[arg(long, value_enum, default_value_t = RehearsalKind::OneBatch)]
    pub kind: RehearsalKind,
    /// Batches of an overfit test
    #[arg(long, value_name = "N", default_value_t = rehearsal::OVERFIT_BATCHES)]
    pub batches: u64,
    /// Steps at most [default: 200 for one batch, 500 for an overfit test]
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,
    /// How long one launch may take
    #[arg(long, value_name = "SECONDS", default_value_t = rehearsal::TIMEOUT_SECONDS)]
    pub timeout_seconds: f64,
    /// How long the script may take until it speaks to its recorder
    #[arg(long, value_name = "SECONDS", default_value_t = rehearsal::HANDSHAKE_SECONDS)]
    pub handshake_seconds: f64,
    /// The loss to reach [default: half of what the best answer without looking at the input has]
    #[arg(long, value_name = "LOSS")]
    pub target_loss: Option<f64>,
    /// Override a key of the run file; the value is read as TOML, or else as text
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
}

/// What is rehearsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum RehearsalKind {
    /// One batch
    OneBatch,
    /// A few batches
    Overfit,
}
