//! The command line: what may be typed, and its help. Nothing is executed here.

/// The values of a closed list, shown in the help and in errors.
macro_rules! words {
    ($list:ident) => {
        clap::builder::PossibleValuesParser::new($list::ALL.iter().map(|word| word.as_str()))
            .map(|word| word.parse::<$list>().expect("the parser accepts only values of the list"))
    };
}

mod checkpoint;
mod data;
mod diagnose;
mod eval;
#[cfg(test)]
mod grammar_tests;
mod groups;
mod init;
mod memory;
#[cfg(test)]
mod page_tests;
mod preflight;
mod reading;
mod registry;
mod rehearse;
mod run;
mod shell;
mod snapshot;
#[cfg(test)]
mod tests;
mod tracking;
mod values;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use trackway_core::BatchRange;
use trackway_launch::SHIM_COMMAND;

use crate::exit::CODES;
use crate::settings::{HOME_VARIABLE, LEDGER_VARIABLE};
pub use checkpoint::{CheckpointCommand, CheckpointSubject, GcArgs, PinArgs};
pub use data::{
    AsOfArgs, CheckArgs, CleanArgs, DataCommand, DiffArgs, DriftArgs, FailOn, ImagesArgs, InferArgs,
    LeakageArgs, ProfileArgs, SkewArgs, SplitArgs, ValidateArgs,
};
pub use diagnose::DiagnoseArgs;
pub use eval::cross_validate::CrossValidateArgs;
pub use eval::metrics::{ColumnArgs, MetricsArgs};
pub use eval::probe::ProbeArgs;
pub use eval::score::ScoreArgs;
pub use eval::slices::SlicesArgs;
pub use eval::{EvalCommand, EvalImportArgs, EvalLsArgs, EvalRunArgs, EvalShowArgs, ReportArgs};
pub use init::InitArgs;
pub use memory::MemoryArgs;
pub use preflight::{PreflightArgs, SkipArgs};
pub use reading::{ReadingArgs, TableArgs};
pub use registry::{
    AliasArgs, ApproveArgs, ExportArgs, FixtureArgs, GatesCommand, GatesTestArgs, HistoryArgs, HowArgs,
    JudgeArgs, PolicyArgs, PromoteArgs, RegisterArgs, RegistryCommand, RollbackArgs, ShowArgs,
};
pub use rehearse::{RehearsalKind, RehearseArgs};
pub use run::{FailOnHealth, ResumeArgs, RunArgs, UnsafeArgs};
pub use shell::{CompletionsArgs, ConfigArgs, ConfigCommand, ManArgs, NotifyArgs, SchemaArgs};
pub use snapshot::{SnapshotArgs, SnapshotCommand};
pub use tracking::{
    AmendArgs, AmendRunArgs, BlessArgs, CompareArgs, ImportArgs, RunExportArgs, RunsAction, RunsArgs,
    RunsGcArgs,
};
pub use values::{Bytes, DeletionArgs, PageArgs, Seconds};

/// Training runs that fail cheaply, recover by themselves and can be explained afterwards.
#[derive(Debug, Parser)]
#[command(name = "trackway", version, propagate_version = true, disable_help_subcommand = true)]
#[command(after_help = after_help())]
pub struct Cli {
    #[command(flatten)]
    pub global: GlobalArgs,
    #[command(subcommand)]
    pub command: Command,
}

/// Examples of the program, and what its exit codes mean.
fn after_help() -> String {
    let codes = CODES.map(|(code, meaning)| format!("\n  {code}  {meaning}"));
    format!("{EXAMPLES}\n\nExit codes:{}", codes.concat())
}

const EXAMPLES: &str = "Examples:
  trackway init train.py                write a run file for a script
  trackway run trackway.toml            run a training job from its run file
  trackway run -- python train.py       no run file: receipt, logs and metrics for any command
  trackway explain last                 why did it end, and what to do next";

/// Heading of the options that every command has.
const GLOBAL: &str = "Global options";

/// Options of every command. This is the command line only: the environment is read with the settings.
#[derive(Debug, Clone, Default, Args)]
pub struct GlobalArgs {
    /// Print one JSON document on stdout (NDJSON for `watch` and `logs`)
    #[arg(long, short = 'j', global = true, help_heading = GLOBAL)]
    pub json: bool,
    /// Show personal data and secrets in data values, not masked
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub show_values: bool,
    /// Folder with Trackway's state [default: `.trackway` next to the run file]
    #[arg(long, global = true, help_heading = GLOBAL, env = HOME_VARIABLE, value_name = "DIR", hide_env_values = true)]
    pub home: Option<PathBuf>,
    /// Ledger: a SQLite file or a `postgres://` URL [default: `ledger.db` in the home]
    #[arg(long, global = true, help_heading = GLOBAL, env = LEDGER_VARIABLE, value_name = "URL", hide_env_values = true)]
    pub ledger: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write a commented run file for a script, from what the project holds
    Init(InitArgs),
    /// Run a training job: launch, supervise, classify, retry, and record a receipt for every attempt
    Run(RunArgs),
    /// Check a run before it costs anything: data, settings, memory, cost, storage
    Preflight(PreflightArgs),
    /// Prove that a run that is killed and resumed ends in the same state as an uninterrupted one
    Prove(ProveArgs),
    /// Smoke-test training: overfit one or a few batches and diagnose failures
    Rehearse(RehearseArgs),
    /// Evaluate checkpoints and tables of predictions: metrics, slices, probes, cross-validation
    #[command(subcommand)]
    Eval(Box<EvalCommand>),
    /// Reattach to a run, or continue it from its last checkpoint
    Resume(ResumeArgs),
    /// List runs, newest first; filter and sort by metrics, parameters and tags
    Runs(RunsArgs),
    /// Compare runs: parameters, settings, data, environment, metrics and curves
    Compare(CompareArgs),
    /// Export metrics, parameters, attempts and predictions of a run as Parquet or CSV
    Export(RunExportArgs),
    /// List attempts, newest first
    Attempts(AttemptsArgs),
    /// Show the output of an attempt
    Logs(LogsArgs),
    /// Follow a run: step, rate, loss, last committed step, budget
    Watch(WatchArgs),
    /// Explain an attempt or a run: what ran, why it ended, which checkpoint is valid, what to do next
    Explain(ExplainArgs),
    /// Launch an attempt's job again for a few steps to find the cause of NaN, slow steps or a hang
    Diagnose(DiagnoseArgs),
    /// Write the post-mortem of a run: what happened, what it cost, why, and what to do
    #[command(visible_alias = "incident")]
    Postmortem(PostmortemArgs),
    /// Recompute the digest of every receipt, evaluation, gate verdict and checkpoint manifest
    Verify(VerifyArgs),
    /// Write a folder that rebuilds an attempt, and say what cannot be rebuilt
    Reproduce(ReproduceArgs),
    /// Name, tag, note or hide a run, or write a late fact beside a sealed receipt, which itself never changes
    Amend(AmendArgs),
    /// Stop a run gracefully (a second time: kill it)
    Stop(StopArgs),
    /// Roll a run back to an earlier checkpoint, optionally skipping the batches that broke it
    Rollback(RunRollbackArgs),
    /// Query receipts, events and metrics with SQL
    Sql(SqlArgs),
    /// Judge evaluations by gates, and test gates against known-bad models
    #[command(subcommand)]
    Gates(GatesCommand),
    /// Manage model versions: register, promote through gates, roll back
    #[command(subcommand)]
    Registry(Box<RegistryCommand>),
    /// Import runs of MLflow, Weights & Biases or TensorBoard
    Import(ImportArgs),
    /// Diagnose the home and its ledger; rebuild a lost ledger
    Doctor(DoctorArgs),
    /// Do what is due although nothing runs: seal what ended, end approvals and pins, send notices; for cron
    Tick(TickArgs),
    /// Show every setting, its value and where it comes from; test notifications, set up the shell
    Config(ConfigArgs),
    /// List the JSON documents of all commands, or print the JSON Schema of one
    Schema(SchemaArgs),
    /// Delete logs and records of old runs; a dry run without --yes
    Gc(RunsGcArgs),
    /// Classify why a process ended, from its log, exit code, signal and scheduler state
    Classify(ClassifyArgs),
    /// Estimate the device memory a training run needs: parameters, gradients, optimizer, activations, logits
    Memory(Box<MemoryArgs>),
    /// List, verify, pin, garbage-collect and diagnose checkpoints
    #[command(subcommand)]
    Checkpoint(CheckpointCommand),
    /// Profile, validate, compare and split data sets
    #[command(subcommand)]
    Data(DataCommand),
    /// The process that owns one attempt (started by the local launcher)
    #[command(name = "__shim", hide = true)]
    Shim(ShimArgs),
    /// What is launched in place of a process that began its run itself
    #[command(name = "__await", hide = true)]
    Await(AwaitArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway prove trackway.toml --steps 100
  trackway prove wine.toml --steps 600 --json

It trains N steps twice, then N steps with a SIGKILL in the middle and a resume, and compares the contents of the \
checkpoints of step N. The script must call `checkpoint_due` and `should_stop` of its recorder.

Exit codes: 0 equal; 7 different; 4 nothing was proved: nondeterministic, not_proved, not_applicable")]
pub struct ProveArgs {
    /// Run file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Steps per launch
    #[arg(long, value_name = "N")]
    pub steps: u64,
    /// Override a key of the run file; the value is parsed as TOML, otherwise taken as a string
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Time limit for the first call of the script to its recorder
    #[arg(long, value_name = "DURATION", default_value_t = Seconds(trackway_flows::training::prove::HANDSHAKE_SECONDS))]
    pub handshake_timeout: Seconds,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway doctor
  trackway doctor --json
  trackway --home /data/.trackway doctor

It changes nothing. `trackway checkpoint doctor RUN` diagnoses checkpoints.

Exit codes: 0 healthy; 7 problems found; 6 no home")]
pub struct DoctorArgs {
    #[command(subcommand)]
    pub command: Option<DoctorCommand>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway tick                                       what is due, and nothing else
  trackway tick --dry-run                             what would be done
  * * * * * trackway --home /data/.trackway tick      each minute, in a crontab

It is safe to call it twice, or on several machines at once: each duty is done by one process at a time.

Exit codes: 0 done, or nothing was due; 1 a duty failed; 6 no home")]
pub struct TickArgs {
    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

#[derive(Debug, Subcommand)]
pub enum DoctorCommand {
    /// Rebuild the ledger from the files of the home
    #[command(after_help = "Examples:
  trackway doctor rebuild
  trackway doctor rebuild --json

A readable ledger is kept and completed. One that is missing, empty or damaged is replaced once the new one is complete; the \
old file is kept next to it.

Exit codes: 0 complete; 7 some file could not be used; 6 the home contains no run")]
    Rebuild,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway attempts
  trackway attempts last
  trackway attempts --limit 100 --after att_01kabc")]
pub struct AttemptsArgs {
    /// Only attempts of this run: id, unique part of an id, name, or `last`
    pub run: Option<String>,
    #[command(flatten)]
    pub page: PageArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway logs last
  trackway logs last --stream stderr
  trackway logs last --times --tail 50

What was left out of the output or not read as it was printed follows on stderr once the attempt has ended; `trackway explain --json` has it \
in `reading`.")]
pub struct LogsArgs {
    /// Attempt: id, unique part of an id, a run (its last attempt), or `last`
    #[arg(default_value = "last")]
    pub attempt: String,
    /// Only this stream
    #[arg(long, value_parser = ["stdout", "stderr"])]
    pub stream: Option<String>,
    /// Prefix each line with its time
    #[arg(long)]
    pub times: bool,
    /// Only the last N lines
    #[arg(long, value_name = "N")]
    pub tail: Option<usize>,
    /// Exit with 3 if output was left out or not read as it was printed, or the attempt has not ended
    #[arg(long)]
    pub strict: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway watch last
  trackway watch last --once --json")]
pub struct WatchArgs {
    /// Run: id, unique part of an id, name, or `last`
    #[arg(default_value = "last")]
    pub run: String,
    /// Print the state once and exit
    #[arg(long)]
    pub once: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway explain last
  trackway explain att_01kabc --json
  trackway explain last --html run.html   one page with curves, to send to others")]
pub struct ExplainArgs {
    /// Attempt or run: id, unique part of an id, run name, or `last`
    #[arg(default_value = "last")]
    pub subject: String,
    /// Print ten lines: cause, evidence, checkpoint, what changed, cost, what to do next
    #[arg(long)]
    pub short: bool,
    /// Write a self-contained HTML report with tables and curves
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway postmortem last                      Markdown on stdout
  trackway postmortem wine --out wine.md --html wine.html
  trackway postmortem 01kabc --json

Nothing in it is guessed: what no receipt, log, checkpoint or metric shows is `not known`. Digests are recomputed as by \
`trackway verify`; owners and dates of actions are left blank.")]
pub struct PostmortemArgs {
    /// Run: id, unique part of an id, name, or `last`
    #[arg(default_value = "last")]
    pub run: String,
    /// Write the Markdown to a file instead of printing it
    #[arg(long, short = 'o', value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write a self-contained HTML report
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway verify last
  trackway verify --all --verbose   also list what no hash and no copy proves
  trackway verify --all --json

Exit codes:
  0  everything is as it was sealed
  7  something differs; every difference is listed")]
pub struct VerifyArgs {
    /// Run: id, unique part of an id, name, or `last`
    #[arg(default_value = "last", conflicts_with = "all")]
    pub run: String,
    /// Everything in the ledger
    #[arg(long)]
    pub all: bool,
    /// List what is not covered, too
    #[arg(long, short = 'v')]
    pub verbose: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway reproduce last --out again   write again/reproduce.sh, README.md and what they need
  again/reproduce.sh                    rebuild it, run it, and compare
  trackway reproduce --check again      compare once more

Exit codes of --check:
  0  equal to the last bit
  4  nothing in common that could be compared
  7  different")]
pub struct ReproduceArgs {
    /// Attempt: id, unique part of an id, a run (its last attempt), or `last`
    #[arg(default_value = "last")]
    pub attempt: String,
    /// The folder to write; it must be new or empty
    #[arg(long, short = 'o', value_name = "DIR", required_unless_present = "check")]
    pub out: Option<PathBuf>,
    /// Compare what was run in this folder with the original
    #[arg(long, value_name = "DIR", conflicts_with = "out")]
    pub check: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway stop last
  trackway stop last --kill")]
pub struct StopArgs {
    /// Run: id, unique part of an id, name, or `last`
    pub run: String,
    /// Kill at once, without the grace period
    #[arg(long)]
    pub kill: bool,
    /// Reason, recorded in the receipt
    #[arg(long, default_value = "requested with `trackway stop`", value_name = "TEXT")]
    pub why: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway rollback last   to the second-newest checkpoint
  trackway rollback last --to-step 4000 --skip-batches 4050..4400 --why 'a broken shard'
  trackway resume last     continue, if it was not running

A running attempt is killed without another checkpoint, and its supervisor continues from the earlier one. Newer checkpoints \
are not resumed from any more; nothing is deleted.")]
pub struct RunRollbackArgs {
    /// Run: id, unique part of an id, name, or `last`
    pub run: String,
    /// Roll back to the newest checkpoint at or before this step [default: the second-newest checkpoint]
    #[arg(long, value_name = "N")]
    pub to_step: Option<u64>,
    /// Skip batches A to B (B excluded) from then on; batches are numbered from 0 across all epochs
    #[arg(long, value_name = "A..B")]
    pub skip_batches: Option<BatchRange>,
    /// Reason, recorded in the receipt
    #[arg(long, default_value = "requested with `trackway rollback`", value_name = "TEXT")]
    pub why: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway sql \"select termination_reason, count(*) from training_attempts group by 1\"
  trackway sql \"select step, value from effective_metrics where name = 'loss' order by step\" --csv
  trackway sql \"show tables\"     every table and view; `describe NAME` shows the columns of one
  trackway sql \"select * from metrics\" --out metrics.parquet")]
pub struct SqlArgs {
    /// A SELECT statement over the tables of the ledger and `metrics`
    pub query: String,
    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Write a Parquet file instead of printing
    #[arg(long, short = 'o', value_name = "FILE", conflicts_with = "csv")]
    pub out: Option<PathBuf>,
    /// Time limit of the query
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub timeout: Seconds,
    /// Memory for sorts, joins and aggregations before they spill to disk; a query that uses twice as much is cancelled
    #[arg(long, value_name = "BYTES", default_value = "512MiB")]
    pub memory_limit: Bytes,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway classify --log train.log --exit-code 1
  trackway classify --log slurm-123.out --launcher-state OUT_OF_MEMORY --json")]
pub struct ClassifyArgs {
    /// Log file, or `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub log: PathBuf,
    /// Exit code of the process
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub exit_code: Option<i32>,
    /// Signal that ended the process: a number or a name
    #[arg(long, value_name = "S")]
    pub signal: Option<String>,
    /// State reported by the scheduler, such as `OUT_OF_MEMORY`, `OOMKilled`, `PREEMPTED`
    #[arg(long, value_name = "S")]
    pub launcher_state: Option<String>,
}

#[derive(Debug, Args)]
pub struct AwaitArgs {
    /// The process
    pub pid: i32,
    /// When it started, in clock ticks since boot
    pub start_ticks: u64,
    /// The folder in which both leave messages
    pub folder: PathBuf,
}

#[derive(Debug, Args)]
pub struct ShimArgs {
    /// The attempt's folder
    pub folder: PathBuf,
    /// The command
    #[arg(last = true, required = true)]
    pub argv: Vec<OsString>,
}

impl ShimArgs {
    /// Read as the launcher writes it, without the grammar of all commands: the script waits for that. `None`: it is
    /// another command line.
    fn of_launcher(words: &[OsString]) -> Option<Self> {
        let [_, command, folder, dashes, argv @ ..] = words else { return None };
        let is_launch = command == SHIM_COMMAND && Path::new(folder).is_absolute() && dashes == "--";
        (is_launch && !argv.is_empty()).then(|| Self { folder: folder.into(), argv: argv.to_vec() })
    }
}

/// A value of an option: its word, what it means, and its help.
type Word<T> = (&'static str, T, &'static str);

/// Accepts the words of a table; the help of an option shows them with theirs.
fn one_of<T: Copy + Send + Sync + 'static>(words: &'static [Word<T>]) -> impl TypedValueParser<Value = T> {
    let shown = words.iter().map(|(word, _, help)| PossibleValue::new(*word).help(*help));
    PossibleValuesParser::new(shown).map(|word| {
        let (_, meant, _) = words.iter().find(|(known, ..)| *known == word).expect("only these are accepted");
        *meant
    })
}

/// Reads the words of a command line, the first of which names the program.
///
/// # Errors
/// Help or a version as requested, and wrong usage, both as clap prints it.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let words: Vec<OsString> = words.into_iter().collect();
    if let Some(shim) = ShimArgs::of_launcher(&words) {
        return Ok(Cli { global: GlobalArgs::default(), command: Command::Shim(shim) });
    }
    let mut command = Cli::command();
    let matches = command.try_get_matches_from_mut(&words).or_else(|_| {
        // Its groups are made where a help may be shown: they take as long as everything else of a command line.
        command = groups::grouped(Cli::command(), None);
        command.try_get_matches_from_mut(&words)
    })?;
    let mut cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
    let is_typed = |id| matches.value_source(id) == Some(ValueSource::CommandLine);
    cli.global.home = cli.global.home.filter(|_| is_typed("home"));
    cli.global.ledger = cli.global.ledger.filter(|_| is_typed("ledger"));
    Ok(cli)
}

impl Command {
    /// Whether it shows values of the user's data, in which personal data is masked.
    pub fn shows_values(&self) -> bool {
        matches!(self, Self::Data(_) | Self::Eval(_) | Self::Preflight(_) | Self::Rehearse(_))
    }
}
