//! Searching, comparing, exporting, amending, importing and clearing away runs.

use std::path::PathBuf;

use clap::builder::TypedValueParser as _;
use clap::{Args, Subcommand};
use trackway_api::runs::export::ExportFormat;
use trackway_ledger::ForeignTool;

use super::values::{DeletionArgs, PageArgs, Seconds};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway runs
  trackway runs --where 'val_loss < 0.3 and param.optimizer = \"adam\"' --sort val_loss
  trackway runs --sort -max.val_accuracy --columns name,max.val_accuracy,param.lr --limit 5
  trackway runs --sort -eval.accuracy --where 'eval.slice.older.recall > 0.8'
  trackway runs --where 'tag.sweep = \"august\"' --columns name,note,tag.sweep
  trackway runs --where 'state = \"failed\" and `train/loss` > 10' --json
  trackway runs --limit 100 --after 01kabc

Names are columns of `runs` (docs/ledger.md), metrics (the last value; prefix `min.`, `max.` or `first.` for another one), \
`eval.METRIC` and `eval.slice.NAME.METRIC` (of the newest completed evaluation that has it), `param.NAME` and `tag.NAME`. \
Quote names with special characters in backticks.")]
#[command(args_conflicts_with_subcommands = true)]
pub struct RunsArgs {
    #[command(subcommand)]
    pub action: Option<RunsAction>,
    /// Show the health of each run: whether its results can be trusted
    #[arg(long)]
    pub health: bool,
    /// SQL condition on columns, metrics, evaluations, parameters and tags
    #[arg(long = "where", value_name = "CONDITION")]
    pub condition: Option<String>,
    /// Sort by this name, ascending; prefix `-` for descending
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub sort: Vec<String>,
    /// Columns to show
    #[arg(long, value_name = "NAMES")]
    pub columns: Vec<String>,
    #[command(flatten)]
    pub page: PageArgs,
    /// Include hidden runs
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Subcommand)]
pub enum RunsAction {
    /// Vouch for a run whose health is suspect or broken: it counts as good again
    Bless(BlessArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway runs bless last --why 'the loss is flat because the model is a finished one'
  trackway amend last --untag blessed        # takes it back")]
pub struct BlessArgs {
    /// Run: id, unique part of an id, name, or `last`
    pub run: String,
    /// Reason, recorded as the tag `blessed`
    #[arg(long, value_name = "TEXT")]
    pub why: String,
    /// Person who vouches for it [default: the login]
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway amend last --name baseline --note 'the one for the paper'
  trackway amend 01kabc --tag sweep=august --untag draft
  trackway amend 01kabc --hide --why 'started with the wrong data'
  trackway amend last termination_reason node_failure --why 'the node log shows ECC errors'
  trackway amend att_01kabc cost_usd 12.40 --why 'the invoice of March'
  trackway amend att_01kabc owner --unknown --why 'the account was shared'

Changes of a run are in the table `run_amendments`, late facts about an attempt in `amendments`; no receipt changes. `trackway explain` \
shows both; the view `amended_attempts` has the newest values of attempts in SQL, the view `run_tags` the tags.")]
pub struct AmendArgs {
    /// Run or attempt: id, unique part of an id, name, or `last`; for a column of the receipt, a run means its last attempt
    #[arg(value_name = "RUN|ATTEMPT")]
    pub subject: String,
    /// Column of the receipt
    #[arg(required_unless_present = "of_run", conflicts_with = "of_run", requires = "why")]
    pub field: Option<String>,
    /// The value as it is known now
    #[arg(required_unless_present_any = ["unknown", "of_run"], conflicts_with_all = ["unknown", "of_run"])]
    pub value: Option<String>,
    /// The value in the receipt is wrong, and the right one is not known
    #[arg(long, conflicts_with = "of_run")]
    pub unknown: bool,
    #[command(flatten)]
    pub run: AmendRunArgs,
    /// Reason; required for a column of the receipt
    #[arg(long, value_name = "TEXT")]
    pub why: Option<String>,
    /// Author of the change [default: the login]
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
}

/// What of a run may change at any time.
#[derive(Debug, Args)]
#[group(id = "of_run", multiple = true)]
pub struct AmendRunArgs {
    /// Rename the run
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Note something about the run, in place of its note; an empty text removes it
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
    /// Set a tag of the run
    #[arg(long = "tag", value_name = "NAME=VALUE")]
    pub tags: Vec<String>,
    /// Remove a tag of the run
    #[arg(long, value_name = "NAME")]
    pub untag: Vec<String>,
    /// Leave the run out of lists
    #[arg(long, conflicts_with = "unhide")]
    pub hide: bool,
    /// Show the run in lists again
    #[arg(long)]
    pub unhide: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway compare baseline larger
  trackway compare 01kabc 01kdef --metrics loss,val_loss --html comparison.html
  trackway compare baseline larger --metrics eval.accuracy,eval.slice.older.recall
  trackway compare $(trackway runs --where 'val_loss < 0.3' --json | jq -r '.[].run_id')

Metrics are those of the effective curve: steps that were trained again after a resume count once.")]
pub struct CompareArgs {
    /// Two or more runs: ids, unique parts of ids, names, or `last`
    #[arg(value_name = "RUN", num_args = 2.., required = true)]
    pub runs: Vec<String>,
    /// Only these metrics, and numbers of evaluations (`eval.accuracy`, as in `runs --sort`)
    #[arg(long, value_name = "NAMES")]
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
  trackway export last --out income   metrics.parquet, parameters.parquet, attempts.parquet, …
  trackway export income --out csv --format csv

Tables without rows are not written. Metrics are those of the effective curve: steps that were trained again \
after a resume count once. In Python: trackway.read(\"income\").metrics")]
pub struct RunExportArgs {
    /// Run: id, unique part of an id, name, or `last`
    #[arg(default_value = "last")]
    pub run: String,
    /// The folder to write; it must be new or empty
    #[arg(long, short = 'o', value_name = "DIR", default_value = "export")]
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

Every run of the store becomes a run with one sealed attempt, with its parameters, tags and metrics. Importing again adds only \
new runs. What cannot be read is left out and named, with its place and number. Exit code 3: nothing could be imported, or --strict was \
given and something would be left out or changed.")]
pub struct ImportArgs {
    /// Tool that wrote the store
    #[arg(value_parser = words!(ForeignTool))]
    pub tool: ForeignTool,
    /// Store: a folder, or MLflow's SQLite file
    pub path: PathBuf,
    /// Import nothing if anything would be left out or changed; exit code 3
    #[arg(long)]
    pub strict: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway gc --older-than 90d                      dry run
  trackway gc --older-than 90d --keep-last 100 --yes
  trackway gc --where 'state = \"failed\"' --older-than 14d --yes
  trackway gc --run 01kabc --checkpoints --yes      all files of one run

It deletes logs and flight records of attempts and evaluators, and files that evaluators wrote. Receipts are kept: metrics, \
parameters, events, costs, artifacts and evaluation rows. Runs that are running, being evaluated or have a pinned checkpoint are \
skipped; for checkpoints use `trackway checkpoint gc`.")]
pub struct RunsGcArgs {
    /// Only this run, whatever its age (repeatable); exit code 3 if it is kept. To leave it out of lists: `trackway amend RUN --hide`
    #[arg(long = "run", value_name = "RUN", conflicts_with_all = ["older_than", "keep_last", "condition"])]
    pub runs: Vec<String>,
    /// Also delete the checkpoints on this disk of the runs named with --run
    #[arg(long, requires = "runs")]
    pub checkpoints: bool,
    /// Also delete files that were moved away from a script before a resume; otherwise they are listed and kept
    #[arg(long = "quarantined")]
    pub quarantine: bool,
    /// Only runs that ended at least this long ago, such as `90d`
    #[arg(long, value_name = "DURATION")]
    pub older_than: Option<Seconds>,
    /// Keep the N most recently ended runs
    #[arg(long, value_name = "N")]
    pub keep_last: Option<usize>,
    /// Only runs that match this SQL condition, as in `trackway runs`
    #[arg(long = "where", value_name = "CONDITION")]
    pub condition: Option<String>,
    #[command(flatten)]
    pub deletion: DeletionArgs,
}
