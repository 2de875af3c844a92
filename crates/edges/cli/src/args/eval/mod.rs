//! The arguments of `trackway eval`: of evaluations, and of what is computed from a table of predictions alone.

pub(super) mod cross_validate;
pub(super) mod metrics;
pub(super) mod probe;
pub(super) mod score;
pub(super) mod slices;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{CrossValidateArgs, MetricsArgs, PageArgs, ProbeArgs, ScoreArgs, SlicesArgs, UnsafeArgs};

#[derive(Debug, Subcommand)]
pub enum EvalCommand {
    /// Evaluate a checkpoint: verify it, pin it, launch the evaluator, and record a receipt
    Run(EvalRunArgs),
    /// List evaluations, newest first
    Ls(EvalLsArgs),
    /// Show an evaluation: evaluator, weights, tasks and results
    Show(EvalShowArgs),
    /// Import results of Inspect or lm-evaluation-harness for a checkpoint
    Import(EvalImportArgs),
    /// Train and evaluate a run for each fold of the training data; report mean and spread of every metric
    #[command(visible_alias = "cv")]
    CrossValidate(CrossValidateArgs),
    /// Compute metrics of a table of predictions: confidence intervals, slices, fairness, comparison with a baseline
    Metrics(Box<MetricsArgs>),
    /// Find slices of a table on which a model performs badly
    Slices(Box<SlicesArgs>),
    /// Batch-score a table: append the predictions of a model command
    Score(Box<ScoreArgs>),
    /// Probe a model: residuals, feature importance, partial dependence, robustness, sensitivity
    Probe(Box<ProbeArgs>),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway eval run trackway.toml            newest checkpoint of the newest run of the file
  trackway eval run last --checkpoint 1200
  trackway eval run last --checkpoint best   by `checkpoint.keep.best` of the run file
  trackway eval run trackway.toml --set evaluate.seed=7
  trackway eval run last --test-set rare     only `[evaluate.test_sets.rare]`

The checkpoint is verified and pinned while the evaluator of `[evaluate]` reads it. After a crash only the evaluator is \
relaunched. See docs/evaluations.md.

Exit codes: 0 completed; 4 the evaluator failed or wrote no results; 5 a gate did not pass; 6 nothing to evaluate; 7 the checkpoint \
does not verify")]
pub struct EvalRunArgs {
    /// Run file, or run: id, unique part of an id, name, or `last`
    #[arg(value_name = "FILE|RUN")]
    pub subject: String,
    /// Checkpoint: a step, `latest`, `best`, `min METRIC`, `max METRIC`, or a prefix of a manifest's SHA-256 [default:
    /// `evaluate.checkpoint` of the run file, else `latest`]
    #[arg(long, value_name = "REF")]
    pub checkpoint: Option<String>,
    /// Evaluate only on these of the run file's test sets; `main` is that of `[evaluate]` itself [default: all]
    #[arg(long = "test-set", value_name = "NAME")]
    pub test_sets: Vec<String>,
    /// Override a key of the run file; the value is parsed as TOML, otherwise taken as a string
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    #[command(flatten)]
    pub accepts: UnsafeArgs,
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

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway eval ls
  trackway eval ls last
  trackway eval ls --limit 100 --after evl_01kabc")]
pub struct EvalLsArgs {
    /// Only evaluations of this run: id, unique part of an id, name, or `last`
    pub run: Option<String>,
    #[command(flatten)]
    pub page: PageArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway eval show last
  trackway eval show evl_01kabc --json
  trackway eval show last --html report.html --parquet numbers.parquet")]
pub struct EvalShowArgs {
    /// Evaluation: id, unique part of an id, or `last`
    #[arg(default_value = "last")]
    pub evaluation: String,
    #[command(flatten)]
    pub files: ReportArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway eval import logs/2026-05-01T10-00-00_arc.eval --run last
  trackway eval import results/my-model --run last --checkpoint 1200")]
pub struct EvalImportArgs {
    /// Inspect log (`.eval` or `.json`), or results of lm-evaluation-harness (`results_*.json` or their folder)
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    /// Run whose checkpoint was evaluated: id, unique part of an id, name, or `last`
    #[arg(long)]
    pub run: String,
    /// Checkpoint: a step, `latest`, `best`, `first`, `min METRIC`, `max METRIC`, or a prefix of a manifest's SHA-256
    #[arg(long, value_name = "REF", default_value = "latest")]
    pub checkpoint: String,
}
