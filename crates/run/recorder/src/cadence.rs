//! What makes a checkpoint due in one process: the cadence, and a requested end.

use std::sync::atomic::Ordering;

use trackway_core::Step;
use trackway_formats::SaveReason;

use crate::inner::Inner;
use crate::process::ProcessSlot;

/// A save must fit so many times into what is left of the grace period: the next one may take longer than the last.
pub(crate) const SAVE_MARGIN: f64 = 1.25;

/// How long a stop is delayed at most. A loop with longer steps does not check in between.
pub const STOP_PUT_OFF_SECONDS_MAX: f64 = 60.0;

impl Inner {
    /// One checkpoint is due once the end was requested.
    pub(crate) fn due_before_stop(&self, slot: &ProcessSlot) -> Option<SaveReason> {
        if slot.saved_for_stop.load(Ordering::Relaxed) || slot.fenced.load(Ordering::Relaxed) {
            return None;
        }
        let asked = slot.stop_wants_checkpoint.load(Ordering::Relaxed).then_some(SaveReason::End);
        self.sigterm.at_micros().map(|_| SaveReason::Sigterm).or(asked)
    }

    /// What follows from the time since the last save.
    pub(crate) fn due_by_time(&self, slot: &ProcessSlot) -> Option<SaveReason> {
        let every = self.settings.every_seconds.filter(|_| self.settings.at_steps.is_empty())?;
        let last_micros = slot.last_saved_micros.load(Ordering::Relaxed);
        (self.seconds_since(last_micros) >= every).then_some(SaveReason::Cadence)
    }

    /// What follows from the number of the step, when `last_step` was the last one that was saved.
    pub(crate) fn due_by_steps(&self, last_step: Step, step: Step) -> Option<SaveReason> {
        let settings = &self.settings;
        if !settings.at_steps.is_empty() {
            let due = settings.at_steps.iter().any(|at| (last_step + 1..=step).contains(at));
            return due.then(|| if self.is_last(step) { SaveReason::End } else { SaveReason::Cadence });
        }
        let due = settings.every_steps.is_some_and(|every| step / every > last_step / every);
        due.then_some(SaveReason::Cadence)
    }

    pub(crate) fn is_last(&self, step: Step) -> bool {
        self.settings.max_steps.is_some_and(|max| step >= max)
    }

    /// Whether a save as long as the last one ends before SIGKILL may come. One that was never measured may fit.
    pub(crate) fn save_fits(&self, slot: &ProcessSlot) -> bool {
        let left = self.grace_seconds_left();
        left.zip(slot.save_seconds()).is_none_or(|(left, needed)| needed * SAVE_MARGIN <= left)
    }

    /// What is left of the grace period; none before SIGTERM, or when its length is not set.
    pub(crate) fn grace_seconds_left(&self) -> Option<f64> {
        let arrived_micros = self.sigterm.at_micros()?;
        Some(self.settings.grace_seconds? - self.seconds_since(arrived_micros))
    }
}
