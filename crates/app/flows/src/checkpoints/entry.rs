use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use trackway_checkpoint::{CheckpointError, CheckpointInfo, CheckpointState, CheckpointView};
use trackway_core::{AttemptId, Step, Timestamp};
use trackway_engine::error::AppError;
use trackway_engine::run::live_record::LiveRecord;
use trackway_engine::save_reason::save_reason;
use trackway_launch::FolderChannel;
use trackway_ledger::AttemptState;

use super::Checkpoints;
use super::remote_view::{Placed, RemoteAnswer};

/// Looks at the flight record of a live attempt, of a few MiB each, to learn why it saved.
const RECORD_LOOKS_MAX: u32 = 16;

/// One checkpoint. Field names are the JSON contract of `trackway checkpoint ls`.
#[derive(Debug, Clone, Serialize)]
pub struct CheckpointEntry {
    /// Its state in the log; with a remote that answers, in both logs.
    #[serde(flatten)]
    pub info: CheckpointInfo,
    /// Where its bytes are: `local`, `remote`, `local+remote`, `waiting` (here, and on their way to the remote) or `none`
    /// once they are deleted.
    #[serde(rename = "where")]
    pub location: String,
    /// Why it was saved: `cadence`, `asked`, `anomaly`, `sigterm`, `end` or `script`, with the requester's description.
    pub reason: Option<String>,
    /// Bytes of its files that are shared with an earlier checkpoint; none when its manifest cannot be read here.
    pub shared_bytes: Option<u64>,
    /// Whether every byte matched when it was read just now; none when it was not read.
    pub verified: Option<bool>,
    /// How long ago it was committed, or begun.
    pub age_seconds: Option<f64>,
}

/// Checkpoints, newest first, and whether the remote answered.
#[derive(Debug, Clone, Serialize)]
pub struct Listing {
    /// Newest first.
    pub checkpoints: Vec<CheckpointEntry>,
    /// Whether the remote answered; none: the run has none. Where it did not, `where` is as this disk's log has it.
    pub remote: Option<RemoteAnswer>,
}

/// Why checkpoints were saved, by attempt and step.
#[derive(Debug, Default)]
pub(super) struct SaveReasons(BTreeMap<(AttemptId, Step), String>);

impl CheckpointEntry {
    pub(super) fn new(view: &CheckpointView, placed: Placed, reasons: &SaveReasons, now: Timestamp) -> Self {
        let location = placed.location().into();
        let Placed { info, here, .. } = placed;
        let committed = here && info.manifest_sha256.is_some() && info.state != CheckpointState::Retired;
        Self {
            location,
            reason: reasons.0.get(&(info.attempt_id, info.step)).cloned(),
            shared_bytes: if committed { shared_bytes(view, info.number) } else { None },
            verified: None,
            age_seconds: info.at.parse::<Timestamp>().ok().map(|at| now.seconds_since(at)),
            info,
        }
    }
}

impl CheckpointEntry {
    /// Takes in what reading one copy showed; all copies must be whole.
    pub(super) fn judge(&mut self, read: Result<(), CheckpointError>) {
        self.verified = Some(read.is_ok() && self.verified != Some(false));
        if let Err(error) = read {
            self.info.why = Some(error.to_string());
        }
    }
}

impl Checkpoints {
    /// The reasons for each checkpoint, from the ledger and the records of live attempts.
    pub(super) fn save_reasons(&self, infos: &[CheckpointInfo]) -> Result<SaveReasons, AppError> {
        let mut reasons = SaveReasons::default();
        let Some(run) = &self.run else { return Ok(reasons) };
        for info in infos {
            if let Some(reason) = save_reason(&run.events, Some(info.attempt_id), Some(info.step)) {
                reasons.0.insert((info.attempt_id, info.step), reason);
            }
        }
        for attempt in run.attempts.iter().filter(|attempt| attempt.state != AttemptState::Sealed) {
            let mut record = LiveRecord::of(Arc::new(FolderChannel::new(&attempt.log_directory)));
            let mut seen = None;
            for _ in 0..RECORD_LOOKS_MAX {
                record.look();
                if seen.replace(record.facts.frame_count) == Some(record.facts.frame_count) {
                    break;
                }
            }
            let told = std::mem::take(&mut record.facts.save_reasons);
            reasons.0.extend(told.into_iter().map(|(step, reason)| ((attempt.attempt_id, step), reason)));
        }
        Ok(reasons)
    }
}

fn shared_bytes(view: &CheckpointView, number: u64) -> Option<u64> {
    let manifest = view.manifest(number).ok()?;
    let shared = manifest.files.iter().filter(|file| file.stored_in.is_some());
    Some(shared.map(|file| file.size_bytes).sum())
}
