//! The checkpoints of a run as `trackway explain` shows them.

use serde::Serialize;
use trackway_checkpoint::CheckpointInfo;
use trackway_core::{AttemptId, Step, Timestamp};
use trackway_engine::checkpoints::{FallBackCost, Pace, passed_over};
use trackway_engine::error::AppError;
use trackway_ledger::AttemptRow;

use super::remote_view::Remote;
use super::retention::reason_in_words;
use super::{CheckpointEntry, Checkpoints, KeepChanges};

/// One checkpoint.
#[derive(Debug, Clone, Serialize)]
pub struct CheckpointLine {
    /// Its step.
    pub step: Step,
    /// The attempt that wrote it.
    pub attempt_id: Option<AttemptId>,
    /// The epoch it was written under.
    pub epoch: u64,
    /// `writing`, `committed`, `superseded`, `suspect` …
    pub state: String,
    /// Why it was made: `cadence`, `asked`, `anomaly`, `sigterm`, `end` or `script`, with the requester's description;
    /// known once its attempt is sealed.
    pub reason: Option<String>,
    /// Bytes of its files.
    pub size_bytes: Option<u64>,
    /// SHA-256 of its manifest.
    pub manifest_sha256: Option<String>,
    /// Its folder, below the run's checkpoint root.
    pub object_prefix: String,
    /// When it was committed.
    pub committed_at: Option<Timestamp>,
    /// Where its bytes are, by the log: `local`, `remote`, `local+remote`, or `none` once they are deleted.
    #[serde(rename = "where")]
    pub location: String,
    /// Bytes that it shares with an earlier checkpoint; none if unknown.
    pub shared_bytes: Option<u64>,
    /// Names of the pins that hold it.
    pub pins: Vec<String>,
    /// Why retention keeps it; empty when it lets it go.
    pub kept_because: Vec<String>,
    /// Why it is suspect or abandoned.
    pub why: Option<String>,
}

/// An attempt that resumed from an older checkpoint than the newest.
#[derive(Debug, Clone, Serialize)]
pub struct FallBack {
    /// The step that was committed and skipped.
    pub from_step: Step,
    /// The step it resumed from.
    pub to_step: Step,
    /// Why the newer one was skipped.
    pub why: String,
    /// What it costs.
    #[serde(flatten)]
    pub cost: FallBackCost,
}

impl Checkpoints {
    /// Every checkpoint, newest first, with what retention thinks of it.
    pub fn lines(&self) -> Result<Vec<CheckpointLine>, AppError> {
        let view = self.view()?;
        let policy = self.policy(&KeepChanges::default())?;
        let plan = view.retention(&policy, self.now(), None);
        let kept_because = |number: u64| {
            let reasons = plan.keep.get(&number).into_iter().flatten();
            reasons.map(|reason| reason_in_words(reason, &policy)).collect()
        };
        // The page is made of receipts: it shows the log of this disk, without the remote.
        let placed = self.placed(view.list(), &Remote::None, true);
        let entries = self.listing(&view, placed, &Remote::None)?.checkpoints;
        let lines = entries.into_iter().map(|entry| {
            let kept_because = kept_because(entry.info.number);
            line(entry, kept_because)
        });
        Ok(lines.collect())
    }

    /// How many seconds each upload took, from the commit until all bytes were at the remote; oldest first.
    pub fn uploads(&self) -> Result<Vec<f64>, AppError> {
        let moment = |text: &str| text.parse::<Timestamp>().ok();
        let seconds = |info: &CheckpointInfo| {
            // An adopted one was committed, and perhaps uploaded, by another process.
            let own = info.number_there.is_none();
            let uploaded_at = moment(info.uploaded_at.as_ref().filter(|_| own)?)?;
            Some(uploaded_at.seconds_since(moment(&info.at)?).max(0.0))
        };
        Ok(self.view()?.list().iter().filter_map(seconds).collect())
    }

    /// What an attempt skipped when it resumed, and what that costs by the pace of the attempts before it.
    pub fn fall_back_of(&self, attempt: &AttemptRow) -> Result<Option<FallBack>, AppError> {
        let infos = self.view()?.list();
        let Some((passed, steps)) = passed_over(&infos, attempt) else { return Ok(None) };
        let before = self.attempts().iter().filter(|it| it.attempt_number < attempt.attempt_number);
        Ok(Some(FallBack {
            from_step: passed.step,
            to_step: passed.step - steps,
            why: passed.why.clone().unwrap_or_default(),
            cost: FallBackCost::of(steps, Pace::measured(before)),
        }))
    }
}

fn line(entry: CheckpointEntry, kept_because: Vec<String>) -> CheckpointLine {
    let info = entry.info;
    CheckpointLine {
        step: info.step,
        attempt_id: Some(info.attempt_id),
        epoch: info.epoch,
        state: info.state.as_str().into(),
        reason: entry.reason,
        size_bytes: info.size_bytes,
        manifest_sha256: info.manifest_sha256,
        object_prefix: info.object_prefix,
        committed_at: info.at.parse().ok(),
        location: entry.location,
        shared_bytes: entry.shared_bytes,
        pins: info.pins,
        kept_because,
        why: info.why,
    }
}
