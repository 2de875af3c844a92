//! The checkpoints of a run as `trackway explain` shows them.

use std::collections::{BTreeMap, BTreeSet};

use trackway_api::checkpoints::{Checkpoint, CheckpointStanding, FallBack};
use trackway_checkpoint::{CheckpointInfo, CheckpointView, KeepReason};
use trackway_core::Timestamp;
use trackway_engine::checkpoints::{Pace, fall_back_cost, skipped_newer};
use trackway_engine::error::AppError;
use trackway_ledger::AttemptRow;

use super::Checkpoints;
use super::remote_view::Remote;

impl Checkpoints {
    /// Every checkpoint, newest first, as the log of this disk has it.
    ///
    /// # Errors
    /// When the log cannot be read, or the run's plan.
    pub fn of_this_disk(&self) -> Result<Vec<Checkpoint>, AppError> {
        let view = self.view()?;
        // The page is made of receipts: the remote is not asked.
        let placed = self.placed(view.list(), &Remote::None, true);
        Ok(self.listing(&view, placed, &Remote::None)?.checkpoints)
    }

    /// The newest, the newest safe and the best checkpoint, as the log of this disk has them.
    ///
    /// # Errors
    /// When the log cannot be read, or the run's plan.
    pub fn standing_here(&self) -> Result<CheckpointStanding, AppError> {
        Ok(self.standing(&self.placed(self.view()?.list(), &Remote::None, false)))
    }

    /// Why retention keeps each checkpoint of the log, by its number.
    pub(super) fn kept(&self, view: &CheckpointView) -> Result<BTreeMap<u64, Vec<String>>, AppError> {
        let in_force = self.policy_in_force(view)?;
        let plan = view.retention(&in_force.policy, self.now(), None);
        let words = |(number, reasons): (&u64, &BTreeSet<KeepReason>)| {
            (*number, reasons.iter().map(|reason| in_force.reason_in_words(reason)).collect())
        };
        Ok(plan.keep.iter().map(words).collect())
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
        let Some((passed, steps)) = skipped_newer(&infos, attempt) else { return Ok(None) };
        let before = self.attempts().iter().filter(|it| it.attempt_number < attempt.attempt_number);
        Ok(Some(FallBack {
            from_step: passed.step,
            to_step: passed.step - steps,
            why: passed.why.clone().unwrap_or_default(),
            cost: fall_back_cost(steps, Pace::measured(before)),
        }))
    }
}
