//! Saves in the background: the training loop only waits for a copy into memory, and a thread does the rest.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use trackway_checkpoint::bulk::{BackgroundSaver, Draft, DraftSave, SaveEnd, Saved};
use trackway_checkpoint::{CheckpointError, Commit};
use trackway_core::Step;
use trackway_formats::{EventKind, SaveReason};

use crate::checkpoints::cost::SaveCost;
use crate::checkpoints::together::is_given_up;
use crate::process::inner::Inner;
use crate::process::pending::Pending;
use crate::process::root::NO_ROOT;
use crate::process::{ProcessSlot, once};
use crate::recorder::Recorder;

/// How long a save that must not be skipped (the last one before an end) waits for the one before it.
pub const LAST_SAVE_WAIT_SECONDS_MAX: f64 = 600.0;

/// A checkpoint that is being filled: copy everything into it, then [`CheckpointDraft::submit`]. Dropped, it saves
/// nothing. It is filled as a [`Draft`] is.
pub struct CheckpointDraft {
    inner: Arc<Inner>,
    draft: Draft,
    pending: Pending,
}

impl Recorder {
    /// Begins a checkpoint that is written and committed in the background. `None`: the one before is still being
    /// written, so this one is skipped, which is recorded; the last one before a requested end waits instead, at most
    /// as long as the grace period allows.
    ///
    /// What becomes of it is recorded when it is committed or has failed.
    ///
    /// # Errors
    /// [`CheckpointError::NotInAttempt`] outside an attempt; [`CheckpointError::Fenced`], which also makes
    /// [`Recorder::should_stop`] true; what made the save before fail, once: call again to begin the next one.
    pub fn draft_checkpoint(&self, step: Step) -> Result<Option<CheckpointDraft>, CheckpointError> {
        let inner = self.shared().ok_or(NO_ROOT)?;
        let slot = inner.slot();
        slot.see(step);
        inner.open_root_unless_busy(slot)?;
        let reason = inner.reason_of_save(slot, step);
        let began_micros = inner.now_micros();
        let begun = inner.with_saver(slot, |saver| {
            if matches!(reason, SaveReason::End | SaveReason::Sigterm) {
                let _ = saver.wait(inner.last_save_wait());
            }
            let mut begun = saver.begin(step);
            // That the ranks gave a save up is recorded, and no reason to stop; a call takes out one failure.
            while begun.as_ref().is_err_and(is_given_up) {
                begun = saver.begin(step);
            }
            begun
        })?;
        let Some(draft) = begun else {
            inner.report_skipped(slot, step);
            slot.go_on_unsaved(step);
            slot.decline(step);
            return Ok(None);
        };
        slot.pace.get().save_begins(began_micros, step);
        let interval_seconds = inner.seconds_since_last_save(slot, began_micros);
        let pending = Pending { reason, asked: Vec::new(), began_micros, interval_seconds };
        Ok(Some(CheckpointDraft { inner, draft, pending }))
    }

    /// Takes memory for checkpoints of so many bytes ahead, in the background, so that the first one waits no longer
    /// than the others. Does nothing outside an attempt.
    ///
    /// # Errors
    /// [`CheckpointError::Memory`].
    pub fn prepare_checkpoints(&self, size_bytes: u64) -> Result<(), CheckpointError> {
        let Some(inner) = self.shared() else { return Ok(()) };
        inner.with_saver(inner.slot(), |saver| saver.prepare(size_bytes))
    }

    /// Waits until the checkpoint that was submitted last is committed or has failed; `false`: it is neither, after
    /// that time.
    #[must_use]
    pub fn wait_for_checkpoint(&self, at_most: Duration) -> bool {
        let Some(inner) = self.shared() else { return true };
        inner.slot().saver.get().as_ref().is_none_or(|saver| saver.wait(at_most))
    }

    /// The error of a checkpoint that was submitted since the last call, once; otherwise the next
    /// [`Recorder::draft_checkpoint`] returns it.
    #[must_use]
    pub fn checkpoint_failure(&self) -> Option<CheckpointError> {
        let inner = self.shared()?;
        let outcomes = inner.slot().saver.get().as_ref().map(BackgroundSaver::poll)?;
        outcomes.into_iter().find_map(|outcome| match outcome.end {
            SaveEnd::Failed(error) => Some(error),
            _ => None,
        })
    }
}

impl Deref for CheckpointDraft {
    type Target = Draft;

    fn deref(&self) -> &Draft {
        &self.draft
    }
}

impl DerefMut for CheckpointDraft {
    fn deref_mut(&mut self) -> &mut Draft {
        &mut self.draft
    }
}

impl CheckpointDraft {
    /// Hands the checkpoint to the background thread and returns at once.
    pub fn submit(self, metrics: &[(&str, f64)]) {
        let Self { inner, draft, mut pending } = self;
        let slot = inner.slot();
        let step = draft.step();
        pending.asked = inner.take_asked(slot);
        *slot.pending.get() = Some(pending);
        // Decided by what the loop knew when it made the copy: an older save that ends later does not contain this
        // step.
        slot.saved_for_stop.store(inner.stopping(slot), Ordering::Relaxed);
        inner.remember_checkpoint(slot, step);
        let metrics = inner.with_best(slot, step, metrics);
        draft.submit(metrics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect());
    }
}

impl Inner {
    /// Runs with the saver, which is made for the first draft.
    fn with_saver<T>(
        self: &Arc<Self>,
        slot: &ProcessSlot,
        run: impl FnOnce(&BackgroundSaver<Commit>) -> Result<T, CheckpointError>,
    ) -> Result<T, CheckpointError> {
        let mut saver = slot.saver.get();
        if let Some(saver) = &*saver {
            return run(saver);
        }
        let inner = Arc::clone(self);
        let commit = move |save: &DraftSave| inner.commit_draft(save);
        run(saver.insert(BackgroundSaver::new(self.clock(), Box::new(commit))?))
    }

    /// Writes and commits a draft and records what came of it. Runs on the saver's thread.
    fn commit_draft(&self, save: &DraftSave) -> Result<Saved<Commit>, CheckpointError> {
        let slot = self.slot();
        let step = save.step();
        let pending = slot.pending.get().take();
        let before_commit = || {
            self.hold_in_save_if_requested(slot, step);
            Ok(())
        };
        let saved = self.with_root(slot, |root| root.save_draft(save, before_commit));
        let Some(pending) = pending else { return saved };
        if let Some(saved) = saved.as_ref().ok().filter(|_| self.leads()) {
            slot.pace.get().committed_behind(self.now_micros(), slot.seen_step());
            let cost = SaveCost {
                reason: pending.reason,
                stall_seconds: save.stall_seconds,
                commit_lag_seconds: self.seconds_since(pending.began_micros),
                interval_seconds: pending.interval_seconds,
                size_bytes: saved.commit.size_bytes,
                written_bytes: saved.figures.bytes_written,
            };
            self.record_cost(slot, step, &cost);
        }
        let commit = saved.as_ref().map(|saved| &saved.commit);
        self.record_save(slot, step, pending.reason, &pending.asked, commit);
        slot.reported.skipped.store(false, Ordering::Relaxed);
        saved
    }

    fn report_skipped(&self, slot: &ProcessSlot, step: Step) {
        slot.asks.busy.fetch_add(1, Ordering::Relaxed);
        if once(&slot.reported.skipped) {
            let why = "the previous checkpoint is still being written";
            slot.record_event(EventKind::CheckpointSkipped, Some(step), &[("why", why)]);
        }
    }

    /// Waits for the last save, and records the outcomes that were not reported yet.
    pub(crate) fn close_saver(&self, slot: &ProcessSlot) {
        let Some(saver) = slot.saver.get().take() else { return };
        for outcome in saver.close(self.last_save_wait()) {
            if matches!(outcome.end, SaveEnd::Abandoned) {
                let why = "the process exits before it is committed";
                slot.record_event(EventKind::CheckpointAbandoned, Some(outcome.step), &[("why", why)]);
            }
        }
    }

    pub(crate) fn last_save_wait(&self) -> Duration {
        let seconds = self.grace_seconds_left().unwrap_or(LAST_SAVE_WAIT_SECONDS_MAX);
        Duration::from_secs_f64(seconds.clamp(0.0, LAST_SAVE_WAIT_SECONDS_MAX))
    }
}
