use std::collections::BTreeMap;
use std::sync::Arc;

use trackway_api::checkpoints::Checkpoint;
use trackway_checkpoint::{CheckpointError, CheckpointInfo, CheckpointState, CheckpointView, Manifest};
use trackway_core::{AttemptId, Step, Timestamp, with_fields_of};
use trackway_engine::error::AppError;
use trackway_engine::run::live_record::LiveRecord;
use trackway_engine::save_reason::save_reason;
use trackway_launch::FolderChannel;
use trackway_ledger::AttemptState;

use super::Checkpoints;
use super::remote_view::PlacedCheckpoint;

/// Looks at the flight record of a live attempt, of a few MiB each, to learn why it saved.
const RECORD_LOOKS_MAX: u32 = 16;

/// Why checkpoints were saved, by attempt and step.
#[derive(Debug, Default)]
pub(super) struct SaveReasons(BTreeMap<(AttemptId, Step), String>);

/// What is the same for all checkpoints of a listing.
pub(super) struct Facts<'a> {
    pub view: &'a CheckpointView,
    pub reasons: SaveReasons,
    /// Why retention keeps each checkpoint of this disk, by its number in the log.
    pub kept: BTreeMap<u64, Vec<String>>,
    pub now: Timestamp,
}

/// One checkpoint as commands show it.
pub(super) fn checkpoint(placed: PlacedCheckpoint, facts: &Facts<'_>) -> Checkpoint {
    let place = placed.place();
    let PlacedCheckpoint { info, here, .. } = placed;
    let is_whole = here && info.manifest_sha256.is_some() && info.state != CheckpointState::Retired;
    let manifest = if is_whole { facts.view.manifest(info.number).ok() } else { None };
    let kept = facts.kept.get(&info.number).filter(|_| here);
    let ended = facts.view.pins().into_iter().filter(|pin| pin.has_expired(facts.now)).map(|pin| pin.name);
    let ended_pins = ended.filter(|name| info.pins.contains(name)).collect();
    with_fields_of!(
        Checkpoint,
        info,
        [
            number, run_id, attempt_id, step, epoch, object_prefix, folder, manifest_sha256, state,
            size_bytes, state_digest, parent, at, why, unsafe_evidence, cleared, on_branch, uploaded_to,
            uploaded_at, pins,
        ],
        place,
        ended_pins,
        reason: facts.reasons.0.get(&(info.attempt_id, info.step)).cloned(),
        shared_bytes: manifest.as_ref().map(shared_bytes),
        missing: manifest.as_ref().map(Manifest::missing),
        verified: None,
        age_seconds: info.at.parse::<Timestamp>().ok().map(|at| facts.now.seconds_since(at)),
        kept_because: kept.cloned().unwrap_or_default(),
        remote_number: info.number_there,
    )
}

/// Takes in what reading one copy showed; all copies must be whole.
pub(super) fn judge(checkpoint: &mut Checkpoint, read: Result<(), CheckpointError>) {
    checkpoint.verified = Some(read.is_ok() && checkpoint.verified != Some(false));
    if let Err(error) = read {
        checkpoint.why = Some(error.to_string());
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
            let reported = std::mem::take(&mut record.facts.save_reasons);
            reasons.0.extend(reported.into_iter().map(|(step, reason)| ((attempt.attempt_id, step), reason)));
        }
        Ok(reasons)
    }
}

fn shared_bytes(manifest: &Manifest) -> u64 {
    let shared = manifest.files.iter().filter(|file| file.stored_in.is_some());
    shared.map(|file| file.size_bytes).sum()
}
