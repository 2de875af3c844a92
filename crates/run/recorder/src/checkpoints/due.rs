//! When a checkpoint is due and when the loop should end, alone or together with other ranks.

use std::sync::atomic::Ordering;

use trackway_core::Step;
use trackway_formats::{EventKind, SaveReason};

use crate::checkpoints::cadence::STOP_PUT_OFF_SECONDS_MAX;
use crate::process::inner::Inner;
use crate::process::{ProcessSlot, once};

impl Inner {
    /// Why a checkpoint is due at the end of this step, if it is.
    pub(crate) fn due(&self, slot: &ProcessSlot, step: Step) -> Option<SaveReason> {
        if let Some(board) = slot.board() {
            return self.due_together(slot, board, step);
        }
        if self.sigterm.at_micros().is_some() && !self.save_fits(slot) {
            return None;
        }
        if slot.checkpoint_asked.load(Ordering::Relaxed) {
            return slot.control.get().checkpoints.iter().map(|asked| asked.reason).max();
        }
        if step == slot.last_saved_step.load(Ordering::Relaxed) {
            return None;
        }
        self.due_before_stop(slot).or_else(|| self.due_by_cadence(slot, step))
    }

    fn due_by_cadence(&self, slot: &ProcessSlot, step: Step) -> Option<SaveReason> {
        let last_step = slot.last_saved_step.load(Ordering::Relaxed);
        self.due_by_steps(last_step, step)
            .or_else(|| self.due_by_epochs(slot))
            .or_else(|| self.due_by_call(slot, step))
            .or_else(|| self.due_by_time(slot))
    }

    /// Why a checkpoint that is being saved is saved: what made it due, or else the end, or the script's own will.
    pub(crate) fn reason_of_save(&self, slot: &ProcessSlot, step: Step) -> SaveReason {
        let stopping = || {
            let reason = self.sigterm.at_micros().map_or(SaveReason::End, |_| SaveReason::Sigterm);
            self.stopping(slot).then_some(reason)
        };
        self.due(slot, step).or_else(stopping).unwrap_or(SaveReason::Script)
    }

    /// Whether the loop should end now. A stop that arrived after the loop had checked whether to save this step is
    /// delayed to the end of the next one, so that a checkpoint comes before it.
    pub(crate) fn should_end(&self, slot: &ProcessSlot) -> bool {
        let step = slot.seen_step();
        let save_comes = || {
            slot.is_unsaved(step)
                && !self.is_last(step)
                && self.due_before_stop(slot).is_some()
                && self.save_fits(slot)
                && self.group().is_none()
        };
        let micros_max = (STOP_PUT_OFF_SECONDS_MAX * 1e6) as i64;
        self.stopping(slot) && !(save_comes() && slot.put_off(step, self.now_micros(), micros_max))
    }

    /// Whether the end was requested, or is reached.
    pub(crate) fn stopping(&self, slot: &ProcessSlot) -> bool {
        let at_last_step = self.is_last(slot.seen_step());
        if at_last_step && once(&slot.reported.max_steps) {
            slot.record_event(EventKind::MaxStepsReached, Some(slot.seen_step()), &[]);
        }
        if let Some(board) = slot.board() {
            return at_last_step || self.stopping_together(slot, board);
        }
        at_last_step || slot.stop_asked.load(Ordering::Relaxed) || self.sigterm.at_micros().is_some()
    }

    /// Records once that SIGTERM arrived, and whether there is time for a checkpoint.
    pub(crate) fn notice_sigterm(&self, slot: &ProcessSlot) {
        if self.sigterm.at_micros().is_none() || !once(&slot.reported.sigterm) {
            return;
        }
        let text = |seconds: Option<f64>| seconds.map_or("unknown".into(), |it: f64| format!("{it:.3}"));
        let (left, needed) = (text(self.grace_seconds_left()), text(slot.save_seconds()));
        let fields = [("grace_seconds_left", &*left), ("save_seconds", &*needed)];
        let step = Some(slot.seen_step());
        slot.record_event(EventKind::SigtermNoticed, step, &fields);
        if self.settings.checkpoint_root.is_some() && !self.save_fits(slot) {
            slot.record_event(EventKind::CheckpointDoesNotFit, step, &fields);
        }
    }
}
