use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "Examples:
  trackway evaluate trackway.toml                      newest checkpoint of the newest run of the file
  trackway evaluate last --checkpoint 1200
  trackway evaluate trackway.toml --set evaluate.seed=7

The checkpoint is verified and pinned while the evaluator of `[evaluate]` reads it. After a crash only the evaluator is
relaunched. See docs/evaluations.md.

Exit codes: 0 completed; 4 the evaluator failed or wrote no results; 5 a gate did not pass; 6 nothing to evaluate; 7 the checkpoint
does not verify")]
pub struct EvaluateArgs {
    #[command(subcommand)]
    pub command: Option<EvaluateCommand>,
    /// Run file, or run: id, unique part of an id, name, or `last`
    #[arg(value_name = "FILE|RUN", required = true)]
    pub subject: Option<String>,
    /// Checkpoint: a step, `latest`, or a prefix of a manifest's SHA-256
    #[arg(long, value_name = "REF", default_value = "latest")]
    pub checkpoint: String,
    /// Override a key of the run file; the value is parsed as TOML, otherwise taken as a string
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    #[command(flatten)]
    pub files: ReportArgs,
}

/// Output files.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Write a self-contained HTML report
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write all numbers with their intervals to a Parquet file
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum EvaluateCommand {
    /// Import results of Inspect or lm-evaluation-harness for a checkpoint
    #[command(after_help = "Examples:
  trackway evaluate import logs/2026-05-01T10-00-00_arc.eval --run last
  trackway evaluate import results/my-model --run last --checkpoint 1200")]
    Import(EvaluateImportArgs),
}

#[derive(Debug, Args)]
pub struct EvaluateImportArgs {
    /// Inspect log (`.eval` or `.json`), or results of lm-evaluation-harness (`results_*.json` or their folder)
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    /// Run whose checkpoint was evaluated: id, unique part of an id, name, or `last`
    #[arg(long)]
    pub run: String,
    /// Checkpoint: a step, `latest`, or a prefix of a manifest's SHA-256
    #[arg(long, value_name = "REF", default_value = "latest")]
    pub checkpoint: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway evaluations
  trackway evaluations last")]
pub struct EvaluationsArgs {
    /// Only evaluations of this run: id, unique part of an id, name, or `last`
    pub run: Option<String>,
    /// Maximum number of rows
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub limit: u32,
}

#[derive(Debug, Subcommand)]
pub enum EvaluationCommand {
    /// Show an evaluation: evaluator, weights, tasks and results
    #[command(after_help = "Examples:
  trackway evaluation show last
  trackway evaluation show evl_01kabc --json
  trackway evaluation show last --html report.html --parquet numbers.parquet")]
    Show {
        /// Evaluation: id, unique part of an id, or `last`
        #[arg(default_value = "last")]
        evaluation: String,
        #[command(flatten)]
        files: ReportArgs,
    },
}
