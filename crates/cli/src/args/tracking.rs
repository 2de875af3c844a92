//! Searching, comparing, importing and clearing away runs.

use std::path::PathBuf;

use clap::Args;
use trackway_ledger::ForeignTool;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway runs
  trackway runs --where 'val_loss < 0.3 and param.optimizer = \"adam\"' --sort val_loss
  trackway runs --sort -max.val_accuracy --columns name,max.val_accuracy,param.lr --limit 5
  trackway runs --where 'state = \"failed\" and `train/loss` > 10' --json

Names are columns of `runs` (docs/ledger.md), metrics (the last value; `min.`, `max.`, `first.` in front for another one),
`param.NAME` and `tag.NAME`. Names with other letters stand in backticks.")]
pub struct RunsArgs {
    /// A condition in SQL over columns, metrics, parameters and tags
    #[arg(long = "where", value_name = "CONDITION")]
    pub condition: Option<String>,
    /// Order by this, the least first; with `-` in front the greatest first
    #[arg(long, value_name = "NAME", allow_hyphen_values = true, value_delimiter = ',')]
    pub sort: Vec<String>,
    /// Show these instead of the usual columns
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// How many, at most
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub limit: u32,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway compare baseline larger
  trackway compare 01kabc 01kdef --metrics loss,val_loss --html comparison.html
  trackway compare $(trackway runs --where 'val_loss < 0.3' --json | jq -r '.[].run_id')

Metrics are those of the effective curve: steps that a resume made void do not count.")]
pub struct CompareArgs {
    /// Two or more runs: ids, unique parts of them, names, or `last`
    #[arg(value_name = "RUN", num_args = 2.., required = true)]
    pub runs: Vec<String>,
    /// Only these metrics
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// Write one HTML page with tables and curves
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Show what is equal, too
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway import mlflow mlruns
  trackway import mlflow mlflow.db
  trackway import wandb wandb
  trackway import tensorboard runs
  trackway import neptune exports/data

Every run of the store becomes a run with one sealed attempt, with parameters, tags and metrics. Importing again adds only
what is new.")]
pub struct ImportArgs {
    /// Whose store it is
    #[arg(value_parser = ForeignTool::ALL.map(ForeignTool::as_str))]
    pub tool: String,
    /// The store: a folder, or MLflow's SQLite file
    pub path: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway gc --older-than 90d                      what would go
  trackway gc --older-than 90d --keep-last 100 --yes
  trackway gc --where 'state = \"failed\"' --older-than 14d --yes

Deleted are logs and flight records, those of evaluators and what these left included. Receipts stay: figures, parameters, events,
costs; artifacts and the rows of evaluations too. Runs that go on, are being evaluated or have a pinned checkpoint are never touched;
checkpoints have `trackway checkpoint gc`.")]
pub struct RunsGcArgs {
    /// Only runs that ended at least so long ago, such as `90d`
    #[arg(long, value_name = "DURATION")]
    pub older_than: Option<String>,
    /// Never the N that ended last
    #[arg(long, value_name = "N")]
    pub keep_last: Option<usize>,
    /// Only runs that meet this condition, as in `trackway runs`
    #[arg(long = "where", value_name = "CONDITION")]
    pub condition: Option<String>,
    /// Say what would go, and delete nothing; so it is without --yes
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Delete it
    #[arg(long)]
    pub yes: bool,
}
