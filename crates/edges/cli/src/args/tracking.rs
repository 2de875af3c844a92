//! Searching, comparing, exporting, importing and clearing away runs.

use std::path::PathBuf;

use clap::Args;
use clap::builder::TypedValueParser as _;
use trackway_api::export::ExportFormat;
use trackway_ledger::ForeignTool;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway runs
  trackway runs --where 'val_loss < 0.3 and param.optimizer = \"adam\"' --sort val_loss
  trackway runs --sort -max.val_accuracy --columns name,max.val_accuracy,param.lr --limit 5
  trackway runs --where 'state = \"failed\" and `train/loss` > 10' --json
  trackway runs --limit 100 --after 01kabc

Names are columns of `runs` (docs/ledger.md), metrics (the last value; prefix `min.`, `max.` or `first.` for another one),
`param.NAME` and `tag.NAME`. Quote names with special characters in backticks.")]
pub struct RunsArgs {
    /// SQL condition on columns, metrics, parameters and tags
    #[arg(long = "where", value_name = "CONDITION")]
    pub condition: Option<String>,
    /// Sort by this name, ascending; prefix `-` for descending
    #[arg(long, value_name = "NAME", allow_hyphen_values = true, value_delimiter = ',')]
    pub sort: Vec<String>,
    /// Columns to show
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// Maximum number of rows
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub limit: u32,
    /// Only runs that come after this one in the order: the last run of the previous page
    #[arg(long, value_name = "RUN")]
    pub after: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway compare baseline larger
  trackway compare 01kabc 01kdef --metrics loss,val_loss --html comparison.html
  trackway compare $(trackway runs --where 'val_loss < 0.3' --json | jq -r '.[].run_id')

Metrics are those of the effective curve: steps that were trained again after a resume count once.")]
pub struct CompareArgs {
    /// Two or more runs: ids, unique parts of ids, names, or `last`
    #[arg(value_name = "RUN", num_args = 2.., required = true)]
    pub runs: Vec<String>,
    /// Only these metrics
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// Write a self-contained HTML report with tables and curves
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Show equal values too
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway export last --out income            metrics.parquet, parameters.parquet, attempts.parquet, …
  trackway export income --out csv --format csv

Tables without rows are not written. Metrics are those of the effective curve: steps that were trained again
after a resume count once. In Python: trackway.read(\"income\").metrics")]
pub struct RunExportArgs {
    /// Run: id, unique part of an id, name, or `last`
    #[arg(default_value = "last")]
    pub run: String,
    /// The folder to write; it must be new or empty
    #[arg(long, value_name = "DIR", default_value = "export")]
    pub out: PathBuf,
    /// Format of the files
    #[arg(long, default_value = "parquet", value_parser = words!(ExportFormat))]
    pub format: ExportFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway import mlflow mlruns
  trackway import mlflow mlflow.db
  trackway import wandb wandb
  trackway import tensorboard runs
  trackway import neptune exports/data

Every run of the store becomes a run with one sealed attempt, with its parameters, tags and metrics. Importing again adds only
new runs.")]
pub struct ImportArgs {
    /// Tool that wrote the store
    #[arg(value_parser = words!(ForeignTool))]
    pub tool: ForeignTool,
    /// Store: a folder, or MLflow's SQLite file
    pub path: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway gc --older-than 90d                      dry run
  trackway gc --older-than 90d --keep-last 100 --yes
  trackway gc --where 'state = \"failed\"' --older-than 14d --yes

It deletes logs and flight records of attempts and evaluators, and files that evaluators wrote. Receipts are kept: metrics,
parameters, events, costs, artifacts and evaluation rows. Runs that are running, being evaluated or have a pinned checkpoint are
skipped; for checkpoints use `trackway checkpoint gc`.")]
pub struct RunsGcArgs {
    /// Only runs that ended at least this long ago, such as `90d`
    #[arg(long, value_name = "DURATION")]
    pub older_than: Option<String>,
    /// Keep the N most recently ended runs
    #[arg(long, value_name = "N")]
    pub keep_last: Option<usize>,
    /// Only runs that match this SQL condition, as in `trackway runs`
    #[arg(long = "where", value_name = "CONDITION")]
    pub condition: Option<String>,
    /// Only show what would be deleted (default)
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Delete
    #[arg(long)]
    pub yes: bool,
}
