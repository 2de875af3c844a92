//! The command line: what may be typed, and its help. Nothing is executed here.

mod checkpoint;
mod data;
mod evaluate;
mod memory;
mod metrics;
mod preflight;
mod probe;
mod registry;
mod rehearse;
mod score;
mod slices;
mod tracking;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use trackway_core::BatchRange;

pub use checkpoint::{CheckpointCommand, CheckpointSubject, GcArgs, PinArgs};
pub use data::{
    CheckArgs, DataCommand, DiffArgs, DriftArgs, ImagesArgs, InferArgs, LeakageArgs, ProfileArgs,
    ReadingArgs, SnapshotArgs, SplitArgs, SplitBy, TableArgs, ValidateArgs,
};
pub use evaluate::{
    EvaluateArgs, EvaluateCommand, EvaluateImportArgs, EvaluationCommand, EvaluationsArgs, ReportArgs,
};
pub use memory::MemoryArgs;
pub use metrics::{ColumnArgs, MetricsArgs, TaskName};
pub use preflight::{PreflightArgs, SkipArgs};
pub use probe::{ProbeArgs, ProbeBatches, ProbeOnly};
pub use registry::{
    AliasArgs, ApproveArgs, ExportArgs, FixtureArgs, GatesCommand, GatesTestArgs, HistoryArgs, HowArgs,
    JudgeArgs, PolicyArgs, PromoteArgs, RegisterArgs, RegistryCommand, RollbackArgs,
};
pub use rehearse::{RehearsalKind, RehearseArgs};
pub use score::ScoreArgs;
pub use slices::{SlicesCommand, SlicesFindArgs, SlicesLoss};
pub use tracking::{CompareArgs, ImportArgs, RunsArgs, RunsGcArgs};

/// Training runs that fail cheaply, recover by themselves and can be explained afterwards.
#[derive(Debug, Parser)]
#[command(name = "trackway", version, propagate_version = true, disable_help_subcommand = true)]
#[command(after_help = "Examples:
  trackway run trackway.toml            run a training job from its run file
  trackway run -- python train.py       no run file: receipt, logs and metrics for any command
  trackway explain last                 why did it end, and what now?

Exit codes:
  0  done                                   4  the run ended without completing
  1  a fault of Trackway's own              5  a gate failed, or nothing is proved
  2  wrong usage or run file                6  something asked for does not exist
  3  blocked before launch                  7  integrity: a hash, a fence or a sealed receipt")]
pub struct Cli {
    #[command(flatten)]
    pub global: GlobalArgs,
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub struct GlobalArgs {
    /// Print one JSON document on stdout (NDJSON for `watch` and `logs`)
    #[arg(long, global = true)]
    pub json: bool,
    /// The folder that holds Trackway's state [default: `.trackway` beside the run file]
    #[arg(long, global = true, env = "TRACKWAY_HOME", value_name = "DIR")]
    pub home: Option<PathBuf>,
    /// Where the ledger is: a SQLite file or a `postgres://` URL [default: `ledger.db` in the home]
    #[arg(long, global = true, env = "TRACKWAY_LEDGER", value_name = "URL", hide_env_values = true)]
    pub ledger: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a training job: launch, supervise, classify, retry, and leave a receipt of every attempt
    Run(RunArgs),
    /// Check everything that can be known before a run costs anything: data, settings, memory, cost, storage
    Preflight(PreflightArgs),
    /// Prove that a killed and resumed run ends in the state of an undisturbed one
    Prove(ProveArgs),
    /// Rehearse a training on one batch, or on a few: whether the script learns them, and why not
    Rehearse(RehearseArgs),
    /// Evaluate a checkpoint: verify it, hold it, launch the evaluator, and leave a receipt
    Evaluate(EvaluateArgs),
    /// List evaluations, newest first
    Evaluations(EvaluationsArgs),
    /// Look at one evaluation
    #[command(subcommand)]
    Evaluation(EvaluationCommand),
    /// Take up a run whose supervisor is gone: attach to the live attempt, or decide what comes next
    Resume(ResumeArgs),
    /// List runs, newest first; search and sort by metrics, parameters and tags
    Runs(RunsArgs),
    /// Compare runs: parameters, settings, data, environment, metrics and curves
    Compare(CompareArgs),
    /// List attempts, newest first
    Attempts(AttemptsArgs),
    /// Show what an attempt printed
    Logs(LogsArgs),
    /// Follow a run: step, rate, loss, last committed step, budget
    Watch(WatchArgs),
    /// Explain an attempt or a run: what was tried, why it ended, which checkpoint is real, what to do next
    Explain(ExplainArgs),
    /// Ask a run to stop (a second time: kill it)
    Stop(StopArgs),
    /// Send a run back to an earlier checkpoint, without the data that broke it
    RollBack(RollBackArgs),
    /// Query every receipt, event and metric with SQL
    Sql(SqlArgs),
    /// Judge evaluations by gates, and show that gates can say no
    #[command(subcommand)]
    Gates(GatesCommand),
    /// Versions of models: register, promote through gates, roll back
    #[command(subcommand)]
    Registry(Box<RegistryCommand>),
    /// Import runs of MLflow, Weights & Biases, TensorBoard or Neptune
    Import(ImportArgs),
    /// Delete logs and records of old runs by rule; without --yes only say what would go
    Gc(RunsGcArgs),
    /// Name the reason a log ended, from the log and what is known of the process
    Classify(ClassifyArgs),
    /// Estimate the device memory a training run needs: parameters, gradients, optimizer, activations, logits
    Memory(Box<MemoryArgs>),
    /// Look at checkpoints, keep house among them, find out what is wrong with them
    #[command(subcommand)]
    Checkpoint(CheckpointCommand),
    /// Look at data: what is in it, and what is wrong with it
    #[command(subcommand)]
    Data(DataCommand),
    /// Look at slices of a table of predictions
    #[command(subcommand)]
    Slices(SlicesCommand),
    /// Ask a model what it makes of its inputs: what it needs, what it expects, what confuses it, what would change its mind
    Probe(Box<ProbeArgs>),
    /// Ask a model about every row of a table, and write its predictions beside them
    Score(Box<ScoreArgs>),
    /// Judge a table of predictions: metrics with intervals, slices, fairness, comparison with a baseline
    Metrics(Box<MetricsArgs>),
    /// The process that owns one attempt (started by the local launcher)
    #[command(name = "__shim", hide = true)]
    Shim(ShimArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway run trackway.toml
  trackway run trackway.toml --set run.seed=18
  trackway run wine.toml --inject kill@step=120     rehearse the loss of a machine
  trackway run wine.toml --inject kill@save=300     … in the middle of a checkpoint
  trackway run trackway.toml --skip data.drift --why 'the split is by time'
  trackway run --name baseline -- python train.py --lr 0.01")]
pub struct RunArgs {
    /// The run file
    #[arg(value_name = "FILE", required_unless_present = "argv", conflicts_with = "argv")]
    pub file: Option<PathBuf>,
    /// Override a key of the run file; the value is read as TOML, or else as text
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Rehearse a fault in the first attempt: `kill@step=N`, `kill@save=N`, `term@step=N` or `term@save=N`
    #[arg(long, value_name = "FAULT")]
    pub inject: Option<String>,
    /// Exit with the script's own exit code (128 + N for signal N)
    #[arg(long)]
    pub exit_with_child: bool,
    /// Launch even though the last attempt on this very data and config ended in a data error
    #[arg(long)]
    pub retry_data_error: bool,
    #[command(flatten)]
    pub skip: SkipArgs,
    /// Launch without any check
    #[arg(long, requires = "why")]
    pub skip_preflight: bool,
    /// A name for a run without a run file
    #[arg(long)]
    pub name: Option<String>,
    /// The command to run, as is: no shell is involved
    #[arg(last = true, value_name = "COMMAND")]
    pub argv: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway prove trackway.toml --steps 100
  trackway prove wine.toml --steps 600 --json

It launches N steps twice, then N steps with SIGKILL in the middle and a resume, and compares what the checkpoints of
step N hold. The script must ask `checkpoint_due` and `should_stop` of its recorder.

Exit codes: 0 equal; 7 different; 5 nothing is proved: nondeterministic, not_proved, not_applicable")]
pub struct ProveArgs {
    /// The run file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Steps of every launch
    #[arg(long, value_name = "N")]
    pub steps: u64,
    /// Override a key of the run file; the value is read as TOML, or else as text
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// How long the script may take until it speaks to its recorder
    #[arg(long, value_name = "SECONDS", default_value_t = trackway_app::prove::HANDSHAKE_SECONDS)]
    pub handshake_seconds: f64,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway resume last")]
pub struct ResumeArgs {
    /// A run: its id, a unique part of it, its name, or `last`
    pub run: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway attempts
  trackway attempts last")]
pub struct AttemptsArgs {
    /// Only those of this run: its id, a unique part of it, its name, or `last`
    pub run: Option<String>,
    /// How many, at most
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub limit: u32,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway logs last
  trackway logs last --stream stderr
  trackway logs last --times --tail 50")]
pub struct LogsArgs {
    /// An attempt: its id, a unique part of it, a run (its last attempt), or `last`
    #[arg(default_value = "last")]
    pub attempt: String,
    /// Only one of the two streams
    #[arg(long, value_parser = ["stdout", "stderr"])]
    pub stream: Option<String>,
    /// Put the time before every line
    #[arg(long)]
    pub times: bool,
    /// Only the last N lines
    #[arg(long, value_name = "N")]
    pub tail: Option<usize>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway watch last
  trackway watch last --once --json")]
pub struct WatchArgs {
    /// A run: its id, a unique part of it, its name, or `last`
    #[arg(default_value = "last")]
    pub run: String,
    /// Look once and end
    #[arg(long)]
    pub once: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway explain last
  trackway explain att_01kabc --json")]
pub struct ExplainArgs {
    /// An attempt or a run: an id, a unique part of it, a run's name, or `last`
    #[arg(default_value = "last")]
    pub subject: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway stop last
  trackway stop last --kill")]
pub struct StopArgs {
    /// A run: its id, a unique part of it, its name, or `last`
    pub run: String,
    /// Do not wait for the grace period
    #[arg(long)]
    pub kill: bool,
    /// Why, for the receipt
    #[arg(long, default_value = "asked for with `trackway stop`", value_name = "TEXT")]
    pub why: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway roll-back last                                     to the checkpoint before the newest
  trackway roll-back last --to-step 4000 --skip-batches 4050..4400 --why 'a broken shard'
  trackway resume last                                        go on from there, when the run was at rest

A live attempt is ended at once, without another checkpoint, and its supervisor goes on from the earlier one.
Newer checkpoints are not resumed from any more; nothing is deleted.")]
pub struct RollBackArgs {
    /// A run: its id, a unique part of it, its name, or `last`
    pub run: String,
    /// Go back to the newest checkpoint of this step or before it [default: the one before the newest]
    #[arg(long, value_name = "N")]
    pub to_step: Option<u64>,
    /// Pass over these batches from then on; B is not one of them. Batches are counted from 0 over all passes through the data
    #[arg(long, value_name = "A..B")]
    pub skip_batches: Option<BatchRange>,
    /// Why, for the receipt
    #[arg(long, default_value = "asked for with `trackway roll-back`", value_name = "TEXT")]
    pub why: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway sql \"select termination_reason, count(*) from training_attempts group by 1\"
  trackway sql \"select step, value from effective_metrics where name = 'loss' order by step\" --csv
  trackway sql \"select * from metrics\" --parquet metrics.parquet")]
pub struct SqlArgs {
    /// One SELECT over the ledger's tables and `metrics`
    pub query: String,
    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Write a Parquet file instead of printing
    #[arg(long, value_name = "FILE", conflicts_with = "csv")]
    pub parquet: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway classify --log train.log --exit-code 1
  trackway classify --log slurm-123.out --launcher-state OUT_OF_MEMORY --json")]
pub struct ClassifyArgs {
    /// The log, or `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub log: PathBuf,
    /// The exit code of the process, where known
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub exit_code: Option<i32>,
    /// The signal that ended it, where known: a number or a name
    #[arg(long, value_name = "S")]
    pub signal: Option<String>,
    /// The state the scheduler gave, such as `OUT_OF_MEMORY`, `OOMKilled`, `PREEMPTED`
    #[arg(long, value_name = "S")]
    pub launcher_state: Option<String>,
}

#[derive(Debug, Args)]
pub struct ShimArgs {
    /// The attempt's folder
    pub folder: PathBuf,
    /// The command
    #[arg(last = true, required = true)]
    pub argv: Vec<String>,
}
