use std::path::PathBuf;

use clap::{Args, ValueEnum};
use trackway_flows::training::rehearsal;

use super::values::Seconds;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway rehearse trackway.toml                  overfit one batch, save, resume
  trackway rehearse trackway.toml --kind overfit   overfit ten batches
  trackway rehearse wine.toml --steps 400 --json

The script trains on its first batch, or its first few, repeatedly until the loss reaches the target. It must take its batches \
from its recorder: `run.batches(loader)`, or `step_of_batch` in Rust. See docs/rehearsals.md.

Exit codes: 0 target reached, or not applicable; 3 a finding blocks the run, or the rehearsal could not run")]
pub struct RehearseArgs {
    /// Run file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Kind of rehearsal
    #[arg(long, value_enum, default_value_t = RehearsalKind::OneBatch)]
    pub kind: RehearsalKind,
    /// Number of batches of an overfit test
    #[arg(long, value_name = "N", default_value_t = rehearsal::OVERFIT_BATCHES)]
    pub batches: u64,
    /// Maximum number of steps [default: 200 for one batch, 500 for an overfit test]
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,
    /// Time limit of one launch
    #[arg(long, value_name = "DURATION", default_value_t = Seconds(rehearsal::TIMEOUT_SECONDS))]
    pub timeout: Seconds,
    /// Time limit for the first call of the script to its recorder
    #[arg(long, value_name = "DURATION", default_value_t = Seconds(rehearsal::HANDSHAKE_SECONDS))]
    pub handshake_timeout: Seconds,
    /// Target loss [default: half the loss of the best constant prediction]
    #[arg(long, value_name = "LOSS")]
    pub target_loss: Option<f64>,
    /// Override a key of the run file; the value is parsed as TOML, otherwise taken as a string
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
}

/// Kind of rehearsal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum RehearsalKind {
    /// One batch
    OneBatch,
    /// A few batches, overfitted
    Overfit,
}
