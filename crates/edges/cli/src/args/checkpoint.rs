use clap::{Args, Subcommand};

use super::values::{DeletionArgs, Seconds};

#[derive(Debug, Subcommand)]
pub enum CheckpointCommand {
    /// List checkpoints, newest first: state, size, shared files, location, pins
    #[command(after_help = "Examples:
  trackway checkpoint ls                    checkpoints of the last run
  trackway checkpoint ls income --all       include deleted ones
  trackway checkpoint ls ./train-100%       a checkpoint folder, without a home")]
    Ls {
        #[command(flatten)]
        subject: CheckpointSubject,
        /// Include deleted checkpoints, and copies that were begun and made again
        #[arg(long)]
        all: bool,
    },
    /// Verify committed checkpoints: read every byte and compare hashes
    #[command(after_help = "Examples:
  trackway checkpoint verify last
  trackway checkpoint verify last --step 1200
  trackway checkpoint verify last --remote     also verify the copies at the remote

Exit code 7: at least one checkpoint does not verify.")]
    Verify {
        #[command(flatten)]
        subject: CheckpointSubject,
        /// Also verify the copies at the remote of the run; they are downloaded and not kept
        #[arg(long)]
        remote: bool,
        /// Only the checkpoints of this step
        #[arg(long, value_name = "N")]
        step: Option<u64>,
    },
    /// Explain a checkpoint: attempt, parent, contents and location, and use by a resume
    #[command(after_help = "Examples:
  trackway checkpoint explain last
  trackway checkpoint explain last --step 1200 --json")]
    Explain {
        #[command(flatten)]
        subject: CheckpointSubject,
        /// Step, or `latest`
        #[arg(long, value_name = "N", default_value = "latest")]
        step: String,
    },
    /// Show the checkpoint that a resume would use, which ones were skipped and why, and the cost
    #[command(after_help = "Examples:
  trackway checkpoint resume-target last
  trackway checkpoint resume-target last --json

A run with a remote resumes from the newest checkpoint in the log of the remote, from an intact copy on this disk or at the \
remote. Exit code 1: the remote does not answer, so nothing can be launched; the local checkpoints are shown.")]
    ResumeTarget {
        #[command(flatten)]
        subject: CheckpointSubject,
    },
    /// Pin a checkpoint under a name: a pinned checkpoint is never deleted
    #[command(after_help = "Examples:
  trackway checkpoint pin promoted last --why \"in production since May\"
  trackway checkpoint pin eval-7 last --step 1200 --for 2h")]
    Pin(PinArgs),
    /// Remove a pin
    #[command(after_help = "Examples:
  trackway checkpoint unpin eval-7 last")]
    Unpin {
        /// Name of the pin
        name: String,
        #[command(flatten)]
        subject: CheckpointSubject,
        /// Also remove a pin that protects a registered model version
        #[arg(long, short = 'f')]
        force: bool,
    },
    /// Decide that a checkpoint is not unsafe: a resume may take it, and nothing marks it again
    #[command(after_help = "Examples:
  trackway checkpoint clear last --why \"NaN of a logging error only\"
  trackway checkpoint clear last --step 1200 --why TEXT")]
    Clear {
        /// Run: id, unique part of an id, name, or `last`
        #[arg(default_value = "last")]
        run: String,
        /// Step [default: the newest unsafe checkpoint]
        #[arg(long, value_name = "N")]
        step: Option<u64>,
        /// Reason, recorded in the checkpoint log and as an event
        #[arg(long, value_name = "TEXT")]
        why: String,
    },
    /// Delete checkpoints by the retention policy; a dry run without --yes
    #[command(after_help = "Examples:
  trackway checkpoint gc last   dry run with the policy of the run file
  trackway checkpoint gc last --yes
  trackway checkpoint gc last --keep-last 3 --keep-best \"min val_loss\" --yes

For logs and records of runs use `trackway gc`.")]
    Gc(GcArgs),
    /// Diagnose every file: what is damaged, what is still safe, and what to do
    #[command(after_help = "Examples:
  trackway checkpoint doctor last
  trackway checkpoint doctor ./train-100% --json

It changes nothing. Exit code 7: problems found.")]
    Doctor {
        #[command(flatten)]
        subject: CheckpointSubject,
    },
    /// Make the running attempt save a checkpoint now
    #[command(after_help = "Examples:
  trackway checkpoint now last --why \"before the power test\"
  trackway checkpoint now last --anomaly --why \"loss spike seen by the dashboard\"

Exit code 4: the script refused, or did not answer in time.")]
    Now {
        /// Run: id, unique part of an id, name, or `last`
        #[arg(default_value = "last")]
        run: String,
        /// Reason, recorded in the receipt
        #[arg(long, default_value = "requested with `trackway checkpoint now`", value_name = "TEXT")]
        why: String,
        /// Requested by a monitor, not by a person: recorded with reason `anomaly`
        #[arg(long)]
        anomaly: bool,
    },
}

/// The run or folder of the checkpoints.
#[derive(Debug, Args)]
pub struct CheckpointSubject {
    /// Run (id, unique part of an id, name, or `last`), or a checkpoint folder
    #[arg(value_name = "RUN|ROOT", default_value = "last")]
    pub subject: String,
}

#[derive(Debug, Args)]
pub struct PinArgs {
    /// Name of the pin; an existing pin of that name moves
    pub name: String,
    #[command(flatten)]
    pub subject: CheckpointSubject,
    /// Step, or `latest`
    #[arg(long, value_name = "N", default_value = "latest")]
    pub step: String,
    /// Reason, shown with the pin
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub why: String,
    /// Time at which the pin expires, such as `2027-01-31T12:00:00Z`
    #[arg(long, value_name = "TIME", conflicts_with = "lasting")]
    pub until: Option<String>,
    /// Lifetime of the pin, such as `2h`
    #[arg(long = "for", value_name = "DURATION")]
    pub lasting: Option<Seconds>,
}

#[derive(Debug, Args)]
pub struct GcArgs {
    #[command(flatten)]
    pub subject: CheckpointSubject,
    #[command(flatten)]
    pub deletion: DeletionArgs,
    /// Keep the N newest, at least two [default: `checkpoint.keep` of the run file]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub keep_last: Option<u32>,
    /// Keep one checkpoint every N steps
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub keep_every: Option<u64>,
    /// Keep the best checkpoint by a metric: `val_loss`, `min val_loss` or `max accuracy`
    #[arg(long, value_name = "METRIC")]
    pub keep_best: Option<String>,
    /// Delete suspect, orphaned and incomplete checkpoints older than this
    #[arg(long, value_name = "DURATION", default_value = "24h")]
    pub older_than: Seconds,
}
