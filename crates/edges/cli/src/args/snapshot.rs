//! `trackway data snapshot`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::reading::{StrictArgs, TableArgs};
use super::values::DeletionArgs;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct SnapshotArgs {
    #[command(subcommand)]
    pub command: Option<SnapshotCommand>,
    #[command(flatten)]
    pub table: TableArgs,
    #[command(flatten)]
    pub strict: StrictArgs,
    /// Keep the bytes of the files in the home, each content once: reflinks where the file system can, copies elsewhere
    #[arg(long)]
    pub keep_bytes: bool,
    /// Name of the snapshot; an existing name moves, and its history is kept
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Target column; the profile then includes associations with it
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
}

/// What is done with the kept bytes of snapshots.
#[derive(Debug, Subcommand)]
pub enum SnapshotCommand {
    /// Write the files of a snapshot into a new or empty folder, each verified; exits with 7 if bytes are missing or
    /// different
    #[command(after_help = "Examples:
  trackway data snapshot restore train --out restored/train
  trackway data snapshot restore 3f9a81c2 --out restored --json")]
    Restore {
        /// Snapshot (name, id or prefix of an id)
        #[arg(value_name = "SNAPSHOT")]
        snapshot: String,
        /// Folder, which must not exist or be empty
        #[arg(long, short = 'o', value_name = "DIR")]
        out: PathBuf,
    },
    /// Send a snapshot with its bytes to an object store; what is there already is not sent again
    #[command(after_help = "Examples:
  trackway data snapshot push train s3://data/snapshots
  trackway data snapshot push 3f9a81c2 gs://data/snapshots --json

Credentials come from the environment, as for checkpoints.")]
    Push {
        /// Snapshot (name, id or prefix of an id); a name is stored there too
        #[arg(value_name = "SNAPSHOT")]
        snapshot: String,
        /// Object store: s3://bucket/prefix, gs:// or az://
        #[arg(value_name = "URL")]
        url: String,
    },
    /// Bring a snapshot with its bytes from an object store into this home, each file verified
    #[command(after_help = "Examples:
  trackway data snapshot pull train s3://data/snapshots
  trackway data snapshot restore train --out restored/train")]
    Pull {
        /// Snapshot at the URL (name, id or prefix of an id)
        #[arg(value_name = "SNAPSHOT")]
        snapshot: String,
        /// Object store: s3://bucket/prefix, gs:// or az://
        #[arg(value_name = "URL")]
        url: String,
    },
    /// Hash the kept bytes of a snapshot again; exits with 7 and names what is missing or different
    #[command(after_help = "Examples:
  trackway data snapshot verify train
  trackway data snapshot verify train --url s3://data/snapshots
  trackway data snapshot verify 3f9a81c2 --json")]
    Verify {
        /// Snapshot (name, id or prefix of an id)
        #[arg(value_name = "SNAPSHOT")]
        snapshot: String,
        /// Verify the bytes in this object store instead, which reads all of them
        #[arg(long, value_name = "URL")]
        url: Option<String>,
    },
    /// Delete the kept bytes of snapshots unless another snapshot needs them; their record, profile and names stay
    #[command(after_help = "Examples:
  trackway data snapshot expire train              what would be deleted
  trackway data snapshot expire train 3f9a81c2 --yes
  trackway data snapshot expire train --url s3://data/snapshots --yes")]
    Expire {
        /// Snapshots (name, id or prefix of an id)
        #[arg(required = true, value_name = "SNAPSHOT")]
        snapshots: Vec<String>,
        /// Delete the snapshots in this object store instead, and what no other snapshot there needs
        #[arg(long, value_name = "URL")]
        url: Option<String>,
        #[command(flatten)]
        deletion: DeletionArgs,
    },
    /// Delete kept bytes that no snapshot needs, such as those of a command that was killed
    #[command(after_help = "Examples:
  trackway data snapshot gc
  trackway data snapshot gc --yes")]
    Gc {
        #[command(flatten)]
        deletion: DeletionArgs,
    },
}
