//! The checkpoints of a run as `trackway explain` shows them.

use trackway_ledger::{AttemptRow, EventRow};

use super::fall_back::{FallBackCost, Pace, passed_over};
use super::house::reason_in_words;
use super::{CheckpointEntry, Checkpoints, KeepChanges};
use crate::error::AppError;
use crate::explain::page::{CheckpointLine, FallBack};
use crate::explain::save_reason;

impl Checkpoints {
    /// Every checkpoint, newest first, with what retention thinks of it.
    pub(crate) fn lines(&self, events: &[EventRow]) -> Result<Vec<CheckpointLine>, AppError> {
        let view = self.view()?;
        let policy = self.policy(&KeepChanges::default())?;
        let plan = view.retention(&policy, self.now(), None);
        let kept_because = |number: u64| {
            let reasons = plan.keep.get(&number).into_iter().flatten();
            reasons.map(|reason| reason_in_words(reason, &policy)).collect()
        };
        let lines = view.list().into_iter().rev().map(|info| {
            let kept_because = kept_because(info.number);
            let reason = save_reason(events, Some(info.attempt_id), Some(info.step));
            line(self.entry(&view, info), reason, kept_because)
        });
        Ok(lines.collect())
    }

    /// What an attempt passed over when it resumed, and what that costs by the pace of the attempts before it.
    pub(crate) fn fall_back_of(&self, attempt: &AttemptRow) -> Result<Option<FallBack>, AppError> {
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

fn line(entry: CheckpointEntry, reason: Option<String>, kept_because: Vec<String>) -> CheckpointLine {
    CheckpointLine {
        step: entry.step,
        attempt_id: Some(entry.attempt_id),
        epoch: entry.epoch,
        state: entry.state,
        reason,
        size_bytes: entry.size_bytes,
        manifest_sha256: entry.manifest_sha256,
        object_prefix: entry.object_prefix,
        committed_at: entry.at.parse().ok(),
        location: entry.location,
        shared_bytes: entry.shared_bytes,
        pins: entry.pins,
        kept_because,
        why: entry.why,
    }
}
