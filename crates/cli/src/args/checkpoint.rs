use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum CheckpointCommand {
    /// List checkpoints, newest first: state, size, what is shared, where the bytes are, pins
    #[command(after_help = "Examples:
  trackway checkpoint ls                    of the last run
  trackway checkpoint ls income --all       those deleted already too
  trackway checkpoint ls ./train-100%       any folder with a `log`, without a home")]
    Ls {
        #[command(flatten)]
        subject: CheckpointSubject,
        /// Those deleted already too
        #[arg(long)]
        all: bool,
    },
    /// Read every byte of committed checkpoints and compare the hashes
    #[command(after_help = "Examples:
  trackway checkpoint verify last
  trackway checkpoint verify last --step 1200
  trackway checkpoint verify last --remote     the bytes at the remote too

Exit code 7: at least one does not verify.")]
    Verify {
        #[command(flatten)]
        subject: CheckpointSubject,
        /// Read what is at the run's remote too; that is downloaded, and not kept
        #[arg(long)]
        remote: bool,
        /// Only the checkpoints of this step
        #[arg(long, value_name = "N")]
        step: Option<u64>,
    },
    /// Tell one checkpoint's story: who wrote it, from what, what it holds, where it is, whether a resume takes it
    #[command(after_help = "Examples:
  trackway checkpoint explain last
  trackway checkpoint explain last --step 1200 --json")]
    Explain {
        #[command(flatten)]
        subject: CheckpointSubject,
        /// The step, or `latest`
        #[arg(long, value_name = "N", default_value = "latest")]
        step: String,
    },
    /// Name the checkpoint a resume would take, what was passed over, and what that costs
    #[command(after_help = "Examples:
  trackway checkpoint resume-target last
  trackway checkpoint resume-target last --json

A run with a remote resumes from what the remote's log says: the nearest copy of it that is whole, on this disk or at the
remote. Exit code 1: the remote does not answer, so that nothing can be launched; shown is what this disk has.")]
    ResumeTarget {
        #[command(flatten)]
        subject: CheckpointSubject,
    },
    /// Hold a checkpoint by a name: nothing deletes it while the pin stands
    #[command(after_help = "Examples:
  trackway checkpoint pin promoted last --why \"in production since May\"
  trackway checkpoint pin eval-7 last --step 1200 --for 2h")]
    Pin(PinArgs),
    /// Take a pin away
    #[command(after_help = "Examples:
  trackway checkpoint unpin eval-7 last")]
    Unpin {
        /// The pin's name
        name: String,
        #[command(flatten)]
        subject: CheckpointSubject,
    },
    /// Delete what retention lets go; without --yes only say what would go
    #[command(after_help = "Examples:
  trackway checkpoint gc last                                  what would go by the run file's rules
  trackway checkpoint gc last --yes
  trackway checkpoint gc last --keep-last 3 --keep-best \"min val_loss\" --yes")]
    Gc(GcArgs),
    /// Look at every file and say what is wrong with it, what is still safe, and what to do
    #[command(after_help = "Examples:
  trackway checkpoint doctor last
  trackway checkpoint doctor ./train-100% --json

It changes no checkpoint. Exit code 7: something needs repair.")]
    Doctor {
        #[command(flatten)]
        subject: CheckpointSubject,
    },
    /// Ask the live attempt of a run to save a checkpoint now
    #[command(after_help = "Examples:
  trackway checkpoint now last --why \"before the power test\"
  trackway checkpoint now last --anomaly --why \"loss spike seen by the dashboard\"

Exit code 4: the script refused, or did not answer in time.")]
    Now {
        /// A run: its id, a unique part of it, its name, or `last`
        #[arg(default_value = "last")]
        run: String,
        /// Why, for the receipt
        #[arg(long, default_value = "asked for with `trackway checkpoint now`", value_name = "TEXT")]
        why: String,
        /// Something that watches the run asks, not a person: the reason in the receipt is `anomaly`
        #[arg(long)]
        anomaly: bool,
    },
}

/// Whose checkpoints are meant.
#[derive(Debug, Args)]
pub struct CheckpointSubject {
    /// A run (its id, a unique part of it, its name, or `last`), or a folder of checkpoints
    #[arg(value_name = "RUN|ROOT", default_value = "last")]
    pub subject: String,
}

#[derive(Debug, Args)]
pub struct PinArgs {
    /// The pin's name; one of that name that stands already moves
    pub name: String,
    #[command(flatten)]
    pub subject: CheckpointSubject,
    /// The step, or `latest`
    #[arg(long, value_name = "N", default_value = "latest")]
    pub step: String,
    /// Why, for whoever finds it
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub why: String,
    /// The moment the pin ends by itself, such as `2027-01-31T12:00:00Z`
    #[arg(long, value_name = "TIME", conflicts_with = "lasting")]
    pub until: Option<String>,
    /// How long it stands, such as `2h`
    #[arg(long = "for", value_name = "DURATION")]
    pub lasting: Option<String>,
}

#[derive(Debug, Args)]
pub struct GcArgs {
    #[command(flatten)]
    pub subject: CheckpointSubject,
    /// Say what would go, and delete nothing; so it is without --yes
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Delete it
    #[arg(long)]
    pub yes: bool,
    /// Keep so many of the newest, two at least [default: the run file's `checkpoint.keep`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub keep_last: Option<u32>,
    /// Keep the first at or behind every multiple of so many steps
    #[arg(long, value_name = "STEPS", value_parser = clap::value_parser!(u64).range(1..))]
    pub keep_every: Option<u64>,
    /// Keep the best by a metric: `val_loss`, `min val_loss` or `max accuracy`
    #[arg(long, value_name = "METRIC")]
    pub keep_best: Option<String>,
    /// Suspect, left-behind and never finished ones go when they are older than this
    #[arg(long, value_name = "DURATION", default_value = "24h")]
    pub older_than: String,
}
