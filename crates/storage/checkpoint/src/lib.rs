//! Checkpoints as a protocol: on a local disk, by many ranks, with a remote that holds the truth.
//!
//! The truth is a log of small numbered files, `log/00000042.json`, each created only if absent. Their order is the
//! order of what happened:
//!
//! 1. **claim** — an attempt takes the next epoch. From here on every writer with a lower epoch is fenced.
//! 2. **begin** — a checkpoint is being written below a prefix that is never used again
//!    (`step-00000120/epoch-0001-<ulid>/`). The files and the manifest are written and synced, then every folder.
//! 3. **commit** — names the prefix, the SHA-256 of the manifest, and the commit it was trained on from. This entry
//!    alone makes the checkpoint real.
//!
//! **Guarantee.** A crash, a power cut or a full disk at any point leaves the newest commit whole and loses no earlier
//! one: bytes are synced before the commit that names them, and a commit appears as a whole or not at all (written and
//! synced under another name, then linked). A writer must create the *next* number; if it is taken it reads that entry,
//! and if its epoch is higher it stops. So two writers never both commit.
//!
//! **Resume** walks from the newest commit of the newest epoch along its parents, checks sizes and then hashes, marks
//! what does not verify as **suspect** with the reason. State is never found by listing folders.
//!
//! **Many ranks** write one checkpoint together and go back together: [`RankedRoot`].
//!
//! The format is specified in `docs/formats/checkpoint-manifest.md`. The training process writes to a disk; uploads and
//! what several machines have in common are in the module `remote`, on which the rest does not depend.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests delete what they made"))]

pub mod bulk;
pub mod doctor;
mod error;
mod group;
mod history;
mod housekeeping;
mod ranks;
mod reading;
#[cfg(any(test, feature = "remote"))]
pub mod remote;
mod retention;
mod root;
mod settings;
mod writing;

#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;

pub use trackway_formats::checkpoint_manifest::{Kind, Manifest, ManifestFile};

pub use error::{CheckpointError, Defect, ErrorKind, Fallback, FallbackKind, RankError};
pub use group::RankGroup;
pub use history::{CheckpointInfo, CheckpointState, PinInfo};
pub use housekeeping::housekeeper::{Collected, Housekeeper};
pub use ranks::{Decliner, Notice, Notices, RankedRoot, RankedSave};
pub use reading::load::LoadedCheckpoint;
pub use reading::verify::{read_copy, verify_copy};
pub use reading::view::CheckpointView;
pub use reading::weights::{COMPARED_BYTES_MAX, CheckpointFiles, SameTensors, have_same_weights, weights_of};
pub use retention::{Best, KeepReason, MAX_ONLY_COPIES, MIN_KEPT, Retention, RetentionPlan, RetireReason};
pub use root::{CheckpointRoot, Commit};
pub use writing::foreign::{ForeignFile, Pace};
pub use writing::writer::CheckpointWriter;
