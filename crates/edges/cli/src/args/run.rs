//! `trackway run` and `trackway resume`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use trackway_formats::queue::QueueName;

use super::SkipArgs;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway run trackway.toml
  trackway run trackway.toml --set run.seed=18
  trackway run wine.toml --inject kill@step=120   simulate the loss of a machine
  trackway run wine.toml --inject kill@save=300   … in the middle of a checkpoint
  trackway run trackway.toml --skip data.drift --why 'the split is by time'
  trackway run --name baseline -- python train.py --lr 0.01
  trackway run trackway.toml --detach             retries outlive the terminal; print the run's id
  trackway run trackway.toml --queue gpu --detach wait until a place in the queue is free
  trackway run trackway.toml --param lr=3e-4 --tag sweep=august   found by runs --where")]
pub struct RunArgs {
    /// Run file
    #[arg(value_name = "FILE", required_unless_present = "argv", conflicts_with = "argv")]
    pub file: Option<PathBuf>,
    /// Override a key of the run file; the value is parsed as TOML, otherwise taken as a string
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Inject a fault into the first attempt: `kill@step=N`, `kill@save=N`, `term@step=N` or `term@save=N`
    #[arg(long, value_name = "FAULT")]
    pub inject: Option<String>,
    /// Exit with the exit code of the script (128 + N for signal N)
    #[arg(long)]
    pub exit_with_child: bool,
    /// Exit with 5 if the run completes with this health or a worse one
    #[arg(long, value_name = "LEVEL", value_enum, conflicts_with = "exit_with_child")]
    pub fail_on: Option<FailOnHealth>,
    /// Return when the first attempt is launched; the supervisor continues without the terminal, with its retries
    #[arg(long, conflicts_with = "exit_with_child")]
    pub detach: bool,
    /// The supervisor that --detach starts
    #[arg(long, hide = true, conflicts_with = "detach")]
    pub detached: bool,
    /// Wait for a place in this queue first: at most `queues.NAME.at_most` (1) of its runs run at once on this host
    #[arg(long, value_name = "NAME")]
    pub queue: Option<QueueName>,
    /// Give the script pipes, and an empty input, although this is a terminal
    #[arg(long)]
    pub no_tty: bool,
    /// Launch although the last attempt with the same data and config ended in a data error
    #[arg(long)]
    pub retry_data_error: bool,
    #[command(flatten)]
    pub skip: SkipArgs,
    /// Launch without pre-flight checks
    #[arg(long, requires = "why")]
    pub skip_preflight: bool,
    /// Name of a run without a run file
    #[arg(long)]
    pub name: Option<String>,
    /// Record a parameter of the run; one that the script records takes precedence. It is not passed to the script
    #[arg(long = "param", value_name = "NAME=VALUE")]
    pub parameters: Vec<String>,
    /// Record a tag of the run
    #[arg(long = "tag", value_name = "NAME=VALUE")]
    pub tags: Vec<String>,
    /// Command to run; it is not passed to a shell
    #[arg(last = true, value_name = "COMMAND")]
    pub argv: Vec<String>,
}

/// The best health at which a run that completed is a failure for its starter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOnHealth {
    /// Broken alone
    Broken,
    /// Suspect or broken
    Suspect,
    /// Anything but ok
    Unknown,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway resume last
  trackway resume last --detach
  trackway resume --all           # at boot")]
pub struct ResumeArgs {
    /// Run: id, unique part of an id, name, or `last`
    #[arg(required_unless_present = "all")]
    pub run: Option<String>,
    /// Resume every run of this home that waits for its next attempt or lost its supervisor, each detached, as at boot
    #[arg(long, conflicts_with_all = ["run", "unsafe_why", "fail_on", "detached"])]
    pub all: bool,
    /// Exit with 5 if the run completes with this health or a worse one
    #[arg(long, value_name = "LEVEL", value_enum)]
    pub fail_on: Option<FailOnHealth>,
    /// Return when an attempt is running; the supervisor continues without the terminal, with its retries
    #[arg(long)]
    pub detach: bool,
    /// The supervisor that --detach starts
    #[arg(long, hide = true, conflicts_with = "detach")]
    pub detached: bool,
    /// Give the script pipes, and an empty input, although this is a terminal
    #[arg(long)]
    pub no_tty: bool,
    #[command(flatten)]
    pub accepts: UnsafeArgs,
}

/// The decision to use an unsafe checkpoint.
#[derive(Debug, Args)]
pub struct UnsafeArgs {
    /// Use a checkpoint although it is unsafe: NaN or infinite values, or a training that diverged
    #[arg(long = "unsafe", requires = "unsafe_why")]
    pub accepts_unsafe: bool,
    /// Reason for using it, recorded
    #[arg(id = "unsafe_why", long = "why", value_name = "TEXT", requires = "accepts_unsafe")]
    pub unsafe_why: Option<String>,
}

impl UnsafeArgs {
    /// Why an unsafe checkpoint is used; none: it is not.
    pub fn why(&self) -> Option<String> {
        self.unsafe_why.clone().filter(|_| self.accepts_unsafe)
    }
}
