//! What lives in the training process: the flight record, the control file and the checkpoint client.
//!
//! ```no_run
//! use trackway_recorder::{Kind, Recorder};
//!
//! # fn train() -> Result<(), Box<dyn std::error::Error>> {
//! let run = Recorder::attach(); // does nothing outside `trackway run`
//! run.stop_on_sigterm();
//! let (first_step, mut weights) = match run.resume()? {
//!     Some(checkpoint) => (checkpoint.step + 1, checkpoint.read("weights.bin")?),
//!     None => (1, vec![0; 4]),
//! };
//! for step in first_step..=1_000 {
//!     weights[0] = weights[0].wrapping_add(1);
//!     run.log(step, &[("loss", 1.0 / step as f64)]);
//!     if run.checkpoint_due(step) || run.should_stop() {
//!         run.save_checkpoint(step, &[("loss", 0.1)], |writer| writer.file("weights.bin", Kind::Weights, &weights))?;
//!     }
//!     if run.should_stop() {
//!         break;
//!     }
//! }
//! run.finish();
//! # Ok(())
//! # }
//! ```
//!
//! Of several ranks (of torchrun, srun or another launcher) every one makes these calls, at the same steps, and what
//! they save and resume is one checkpoint: see [`Recorder::group`].
//!
//! Not here, on purpose: sockets, an async runtime, buffers of records that a crash could lose, Parquet, TLS. One thread
//! saves the drafts of checkpoints, and one copies artifacts; recording needs none.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests delete what they made"))]

mod artifacts;
mod checkpoints;
mod data_rung;
mod draft;
mod epoch_reports;
mod exception;
mod process;
mod recorder;
mod rehearsal;
mod rehearsal_plan;
mod segment_room;
mod segment_writer;
mod settings;
mod signal;
#[cfg(test)]
mod tests;

pub use trackway_checkpoint::{
    CheckpointError, CheckpointInfo, CheckpointRoot, CheckpointState, CheckpointView, CheckpointWriter,
    Commit, ErrorKind, Fallback, Kind, LoadedCheckpoint, RankError, RankGroup, RankedSave,
};
pub use trackway_core::{BatchRange, SkippedBatches};
pub use trackway_formats::record::{ControlOutcome, Origin};
pub use trackway_formats::rehearsal as facts;

pub use artifacts::{ARTIFACT_BYTES_MAX, ARTIFACT_FILES_MAX};
pub use checkpoints::cadence::STOP_PUT_OFF_SECONDS_MAX;
pub use checkpoints::cost;
pub use checkpoints::together::{NOTICE_SECONDS, is_given_up};
pub use data_rung::DataRung;
pub use draft::{CheckpointDraft, LAST_SAVE_WAIT_SECONDS_MAX};
pub use exception::record_panics;
pub use process::keeper::ARTIFACTS_WAITING_MAX;
pub use process::requests::{CONTROL_POLL_MICROS, HOLD_SECONDS_MAX};
pub use recorder::Recorder;
pub use rehearsal::{ParameterUpdate, UpdateWatch};
pub use rehearsal_plan::RehearsalPlan;
pub use segment_room::MAX_SEGMENT_BYTES;
pub use segment_writer::{RETRY_INTERVAL_MICROS, SegmentInfo, SegmentWriter, unnamed_drops};
pub use signal::outlive_sigterm_of_others;
pub use trackway_formats::rehearsal::loss_rank;
