//! What makes a checkpoint due in one process: the cadence, and a requested end.

use std::sync::atomic::Ordering;

use trackway_core::Step;
use trackway_formats::{EventKind, SaveReason};

use crate::process::inner::Inner;
use crate::process::{ProcessSlot, once};

/// A save must fit so many times into what is left of the grace period: the next one may take longer than the last.
pub(crate) const SAVE_MARGIN: f64 = 1.25;

/// Without a cadence of the run file, a loop that asks at each step saves no more often than this, in seconds.
pub const DEFAULT_INTERVAL_SECONDS_MIN: f64 = 60.0;
/// … nor before the attempt is older by this fraction: without a retention of the run file nothing is deleted.
pub const DEFAULT_INTERVAL_FRACTION: f64 = 0.1;
/// … nor more often than Young's interval √(2 · cost · time to failure), for this mean time to failure.
pub const DEFAULT_MTTF_SECONDS: f64 = 86_400.0;

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
        let asks_each_step = || !self.has_cadence(slot) && slot.asks_each_step();
        let every = match self.settings.every_seconds {
            Some(every) => Some(every).filter(|_| self.settings.at_steps.is_empty())?,
            None => Some(self.default_interval_seconds(slot)).filter(|_| asks_each_step())?,
        };
        let last_micros = slot.last_saved_micros.load(Ordering::Relaxed);
        (self.seconds_since(last_micros) >= every).then_some(SaveReason::Cadence)
    }

    /// What follows from the script's own choice of steps: without a cadence each call saves, unless the script asks at
    /// each step.
    pub(crate) fn due_by_call(&self, slot: &ProcessSlot, step: Step) -> Option<SaveReason> {
        let chosen = slot.asked_before(step).is_none_or(|before| before + 1 != step);
        (chosen && !self.has_cadence(slot)).then_some(SaveReason::Script)
    }

    /// Whether it is set when to save, by something that is known of the script.
    fn has_cadence(&self, slot: &ProcessSlot) -> bool {
        self.settings.has_cadence() || slot.epochs.get().is_reported() && self.settings.every_epochs.is_some()
    }

    /// How often to save for a script that asks at each step and leaves the choice to us.
    pub(crate) fn default_interval_seconds(&self, slot: &ProcessSlot) -> f64 {
        let cost_seconds = slot.save_seconds().unwrap_or(0.0);
        (2.0 * cost_seconds * DEFAULT_MTTF_SECONDS)
            .sqrt()
            .max(DEFAULT_INTERVAL_SECONDS_MIN)
            .max(DEFAULT_INTERVAL_FRACTION * self.seconds_since(slot.began_micros))
    }

    /// Records what decides when to save, at the first question, and the default cadence once it applies.
    pub(crate) fn note_asked(&self, slot: &ProcessSlot, step: Step) {
        if slot.ask(step) {
            slot.asks.asked.fetch_add(1, Ordering::Relaxed);
        }
        if !self.leads() {
            return;
        }
        if once(&slot.reported.asked) {
            let fields = [("cadence", &*self.settings.cadence())];
            slot.record_event(EventKind::CheckpointAsked, Some(step), &fields);
        }
        self.note_epochs_lacking(slot, step);
        if !self.has_cadence(slot) && slot.asks_each_step() && once(&slot.reported.default_cadence) {
            let seconds = format!("{:.0}", self.default_interval_seconds(slot));
            let fields = [("interval_seconds", &*seconds)];
            slot.record_event(EventKind::CheckpointDefaultCadence, Some(step), &fields);
        }
    }

    /// Counts a step at whose end nothing is saved, once.
    pub(crate) fn note_not_due(&self, slot: &ProcessSlot, step: Step) {
        if slot.is_unsaved(step) || slot.last_saved_step.load(Ordering::Relaxed) == step {
            return;
        }
        let has_time = self.sigterm.at_micros().is_none() || self.save_fits(slot);
        let count = if has_time { &slot.asks.not_due } else { &slot.asks.no_time };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Records how often the script asked, where it is time for it.
    pub(crate) fn record_asks(&self, slot: &ProcessSlot, is_final: bool) {
        if !self.leads() {
            return;
        }
        let Some(fields) = slot.asks.to_record(is_final) else { return };
        let fields = fields.each_ref().map(|(name, value)| (*name, value.as_str()));
        slot.record_event(EventKind::CheckpointAsks, Some(slot.seen_step()), &fields);
    }

    pub(crate) fn lacks_epochs(&self, slot: &ProcessSlot) -> bool {
        self.settings.every_epochs.is_some() && !slot.epochs.get().is_reported()
    }

    /// What follows from the epochs that were reported.
    pub(crate) fn due_by_epochs(&self, slot: &ProcessSlot) -> Option<SaveReason> {
        let every = self.settings.every_epochs.filter(|_| self.settings.at_steps.is_empty())?;
        slot.epochs.get().is_due(every).then_some(SaveReason::Cadence)
    }

    /// Records once that the cadence cannot be followed, and what applies instead.
    pub(crate) fn note_epochs_lacking(&self, slot: &ProcessSlot, step: Step) {
        if self.leads() && self.lacks_epochs(slot) && once(&slot.reported.epochs_lacking) {
            slot.record_event(EventKind::CheckpointEpochsUnknown, Some(step), &[]);
        }
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
