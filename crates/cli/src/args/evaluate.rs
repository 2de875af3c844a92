use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "Examples:
  trackway evaluate trackway.toml                      the newest checkpoint of the file's newest run
  trackway evaluate last --checkpoint 1200
  trackway evaluate trackway.toml --set evaluate.seed=7

The checkpoint is verified and held while the evaluator of `[evaluate]` reads it. A crash launches the evaluator alone again;
the training stays as it is. See docs/evaluations.md.

Exit codes: 0 completed; 4 the evaluator failed or left no answer; 5 a gate does not pass; 6 nothing to evaluate; 7 the checkpoint
does not verify")]
pub struct EvaluateArgs {
    #[command(subcommand)]
    pub command: Option<EvaluateCommand>,
    /// A run file, or a run: its id, a unique part of it, its name, or `last`
    #[arg(value_name = "FILE|RUN", required = true)]
    pub subject: Option<String>,
    /// A step, `latest`, or the beginning of a manifest's SHA-256
    #[arg(long, value_name = "REF", default_value = "latest")]
    pub checkpoint: String,
    /// Override a key of the run file; the value is read as TOML, or else as text
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub enum EvaluateCommand {
    /// Take over results of Inspect or of lm-evaluation-harness, bound to a checkpoint
    #[command(after_help = "Examples:
  trackway evaluate import logs/2026-05-01T10-00-00_arc.eval --run last
  trackway evaluate import results/my-model --run last --checkpoint 1200")]
    Import(EvaluateImportArgs),
}

#[derive(Debug, Args)]
pub struct EvaluateImportArgs {
    /// An Inspect log (`.eval` or `.json`), or a folder or file of lm-evaluation-harness (`results_*.json`)
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    /// The run whose checkpoint was judged: its id, a unique part of it, its name, or `last`
    #[arg(long)]
    pub run: String,
    /// A step, `latest`, or the beginning of a manifest's SHA-256
    #[arg(long, value_name = "REF", default_value = "latest")]
    pub checkpoint: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway evaluations
  trackway evaluations last")]
pub struct EvaluationsArgs {
    /// Only those of this run: its id, a unique part of it, its name, or `last`
    pub run: Option<String>,
    /// How many, at most
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub limit: u32,
}

#[derive(Debug, Subcommand)]
pub enum EvaluationCommand {
    /// Show one: what judged which weights on what, and what came out
    #[command(after_help = "Examples:
  trackway evaluation show last
  trackway evaluation show evl_01kabc --json")]
    Show {
        /// An evaluation: its id, a unique part of it, or `last`
        #[arg(default_value = "last")]
        evaluation: String,
    },
}
