//! What several processes that train together save, and when they end: rank 0 decides, and all of them act at the end of
//! the same step.
//!
//! A cadence by steps and the last step are the same for all ranks without messages. Rank 0 announces what depends on
//! the time, on a request or on a signal ahead of the step ([`Notice`]). Ranks that train in lockstep (as all that wait
//! for gradients do) cannot miss it: rank 0 announces it before it begins the step itself. One that is too late
//! declines the checkpoint, so that it is abandoned; there is never a part of one.

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::Duration;

use trackway_checkpoint::{CheckpointError, Notice, RankError};
use trackway_core::Step;
use trackway_formats::{EventKind, SaveReason};

use crate::checkpoints::cadence::STOP_PUT_OFF_SECONDS_MAX;
use crate::process::board::Board;
use crate::process::inner::Inner;
use crate::process::{ProcessSlot, once};

/// Rank 0 announces a step so long before it, when that is more than a step: other machines may see changes of a shared
/// folder a little late.
pub const NOTICE_SECONDS: f64 = 1.0;
/// … but no more than this fraction of the grace period.
const NOTICE_GRACE_SHARE: f64 = 0.1;

impl ProcessSlot {
    /// The greatest step that the loop is known to have reached.
    fn step_in_hand(&self) -> Step {
        self.seen_step().max(self.begun_step.load(Ordering::Relaxed))
    }
}

impl Inner {
    pub(crate) fn due_together(
        &self,
        slot: &ProcessSlot,
        mut board: MutexGuard<'_, Board>,
        step: Step,
    ) -> Option<SaveReason> {
        if step == slot.last_saved_step.load(Ordering::Relaxed) {
            return None;
        }
        if let Some(answer) = board.answer_on(step) {
            return answer;
        }
        let now_micros = self.now_micros();
        board.note_pace(step, now_micros);
        self.look_ahead(slot, &mut board, step);
        let requested = board.take_saves(step).map(|reason| reason.max(self.asked_reason(slot)));
        let answer = requested
            .max(self.due_by_steps(board.decided_step, step))
            .max(self.due_by_epochs(slot))
            .max(self.due_by_call(slot, step));
        if answer.is_some() {
            board.decided_step = step;
            slot.epochs.get().saved();
        }
        board.asked = Some((step, now_micros, answer));
        answer
    }

    /// The reason of a checkpoint requested from rank 0, if any.
    fn asked_reason(&self, slot: &ProcessSlot) -> SaveReason {
        slot.control.get().checkpoints.iter().map(|asked| asked.reason).max().unwrap_or(SaveReason::Script)
    }

    /// Takes over the announcements of rank 0, or makes them. No rank has finished a step after `step`.
    fn look_ahead(&self, slot: &ProcessSlot, board: &mut Board, step: Step) {
        if self.leads() {
            self.decide(slot, board, step);
        } else {
            for notice in board.notices.look() {
                self.take_in(slot, board, notice);
            }
        }
        self.note_stop_wanted(slot, board);
    }

    /// Announces a coming step when there is something to announce. If that fails, it is decided again at the next
    /// call.
    fn decide(&self, slot: &ProcessSlot, board: &mut Board, step: Step) {
        if board.stop_step.is_some() {
            return;
        }
        let Some((stop, save)) = self.to_announce(slot, board) else { return };
        let grace = self.settings.grace_seconds.map_or(f64::INFINITY, |grace| grace * NOTICE_GRACE_SHARE);
        let ahead = board.steps_ahead(NOTICE_SECONDS.min(grace));
        let reason = save.unwrap_or(SaveReason::End).as_str();
        let notice = Notice { step: step + ahead, save: save.is_some(), stop, reason: reason.to_owned() };
        if board.notices.announce(&notice).is_ok() {
            let word = |it: bool| if it { "true" } else { "false" };
            let fields = [("save", word(notice.save)), ("stop", word(stop)), ("reason", reason)];
            slot.record_event(EventKind::StepAnnounced, Some(notice.step), &fields);
            self.take_in(slot, board, notice);
        }
    }

    /// Whether all ranks are to end, and why they are to save, if there is a reason for either.
    fn to_announce(&self, slot: &ProcessSlot, board: &Board) -> Option<(bool, Option<SaveReason>)> {
        let requested = board.notices.stop_requested();
        if requested {
            slot.stop_asked.store(true, Ordering::Relaxed);
            slot.stop_wants_checkpoint.store(true, Ordering::Relaxed);
        }
        if self.stop_wanted(slot) {
            let save = self.due_before_stop(slot).filter(|_| self.save_fits(slot));
            return Some((true, save.map(|reason| if requested { SaveReason::Sigterm } else { reason })));
        }
        // What is still being written then would make all ranks skip.
        let idle = || slot.saver.get().as_ref().is_none_or(|saver| saver.wait(Duration::ZERO));
        let asked = slot.checkpoint_asked.load(Ordering::Relaxed).then(|| self.asked_reason(slot));
        let save = asked.or_else(|| self.due_by_time(slot)).filter(|_| board.saves.is_empty() && idle());
        save.map(|reason| (false, Some(reason)))
    }

    fn take_in(&self, slot: &ProcessSlot, board: &mut Board, notice: Notice) {
        if notice.stop {
            board.stop_step = Some(notice.step);
        }
        if !notice.save {
            return;
        }
        if board.asked.is_none_or(|(asked, ..)| asked < notice.step) {
            board.saves.push(notice);
        } else {
            slot.record_event(
                EventKind::StepAnnouncedTooLate,
                Some(notice.step),
                &[("reason", &notice.reason)],
            );
            slot.decline(notice.step);
        }
    }

    fn stop_wanted(&self, slot: &ProcessSlot) -> bool {
        slot.stop_asked.load(Ordering::Relaxed) || self.sigterm.at_micros().is_some()
    }

    /// A rank that has to stop lets rank 0 know, once.
    fn note_stop_wanted(&self, slot: &ProcessSlot, board: &mut Board) {
        if board.stop_wanted_micros.is_some() || !self.stop_wanted(slot) {
            return;
        }
        board.stop_wanted_micros = Some(self.now_micros());
        if !self.leads() {
            // If this fails, this rank ends alone after a while.
            let _ = board.notices.request_stop();
        }
    }

    /// Whether the end was requested, or is reached, for all ranks; or rank 0 was silent for too long.
    pub(crate) fn stopping_together(&self, slot: &ProcessSlot, mut board: MutexGuard<'_, Board>) -> bool {
        let step = slot.step_in_hand();
        // A loop that does not report its steps may be within the next one.
        self.look_ahead(slot, &mut board, step + 1);
        let stops = board.stop_step.is_some_and(|stop| step >= stop);
        let waited_seconds = board.stop_wanted_micros.map(|since_micros| self.seconds_since(since_micros));
        let alone = board.stop_step.is_none()
            && waited_seconds.is_some_and(|seconds| seconds > STOP_PUT_OFF_SECONDS_MAX);
        stops || alone || slot.fenced.load(Ordering::Relaxed)
    }

    /// Records that all ranks abandoned a checkpoint.
    pub(crate) fn record_given_up(&self, slot: &ProcessSlot, step: Step, error: &CheckpointError) {
        if self.leads() && once(&slot.reported.given_up) {
            slot.record_event(EventKind::CheckpointGivenUp, Some(step), &[("why", &error.to_string())]);
        }
    }
}

/// Whether nothing is wrong with this process: the ranks did not agree.
#[must_use]
pub fn is_given_up(error: &CheckpointError) -> bool {
    matches!(error, CheckpointError::Ranks(RankError::Abandoned { .. }))
}
