//! Saves in the background: the training loop only waits for a copy into memory, and a thread does the rest.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use trackway_checkpoint::bulk::{
    BackgroundSaver, Draft, DraftSave, Region, SaveEnd, Saved, TensorRef, TensorSpec,
};
use trackway_checkpoint::{CheckpointError, Commit, Kind};
use trackway_core::Step;
use trackway_formats::{EventKind, SaveReason};

use crate::cost::SaveCost;
use crate::inner::Inner;
use crate::pending::Pending;
use crate::process::{ProcessSlot, once};
use crate::recorder::{NO_ROOT, Recorder};
use crate::together::is_given_up;

/// How long a save that must not be skipped (the last one before an end) waits for the one before it.
pub const LAST_SAVE_WAIT_SECONDS_MAX: f64 = 600.0;

/// A checkpoint that is being filled: copy everything into it, then [`CheckpointDraft::submit`]. Dropped, it saves
/// nothing. See [`trackway_checkpoint::bulk::Draft`].
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
        let begun = {
            let mut saver = slot.saver();
            let saver = match saver.as_mut() {
                Some(saver) => saver,
                None => saver.insert(inner.new_saver()?),
            };
            if matches!(reason, SaveReason::End | SaveReason::Sigterm) {
                let _ = saver.wait(inner.last_save_wait());
            }
            let mut begun = saver.begin(step);
            // That the ranks gave a save up is recorded, and no reason to stop; a call takes out one failure.
            while begun.as_ref().is_err_and(is_given_up) {
                begun = saver.begin(step);
            }
            begun?
        };
        let Some(draft) = begun else {
            inner.tell_skipped(slot, step);
            slot.go_on_unsaved(step);
            slot.decline(step);
            return Ok(None);
        };
        slot.pace().save_begins(began_micros, step);
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
        let mut saver = inner.slot().saver();
        match saver.as_mut() {
            Some(saver) => saver.prepare(size_bytes),
            None => saver.insert(inner.new_saver()?).prepare(size_bytes),
        }
    }

    /// Waits until the checkpoint that was submitted last is committed or has failed; `false`: it is neither, after
    /// that time.
    #[must_use]
    pub fn wait_for_checkpoint(&self, at_most: Duration) -> bool {
        let Some(inner) = self.shared() else { return true };
        inner.slot().saver().as_ref().is_none_or(|saver| saver.wait(at_most))
    }
}

impl Recorder {
    /// The error of a checkpoint that was submitted since the last call, once; otherwise the next
    /// [`Recorder::draft_checkpoint`] returns it.
    #[must_use]
    pub fn checkpoint_failure(&self) -> Option<CheckpointError> {
        let inner = self.shared()?;
        let outcomes = inner.slot().saver().as_ref().map(BackgroundSaver::poll)?;
        outcomes.into_iter().find_map(|outcome| match outcome.end {
            SaveEnd::Failed(error) => Some(error),
            _ => None,
        })
    }
}

impl CheckpointDraft {
    /// The step whose end it will hold.
    #[must_use]
    pub fn step(&self) -> Step {
        self.draft.step()
    }

    /// Copies tensors into files `STEM.safetensors`; see [`Draft::tensors`].
    ///
    /// # Errors
    /// As [`Draft::tensors`].
    pub fn tensors(
        &mut self,
        stem: &str,
        kind: Kind,
        tensors: &[TensorRef<'_>],
        metadata: &BTreeMap<String, String>,
    ) -> Result<(), CheckpointError> {
        self.draft.tensors(stem, kind, tensors, metadata)
    }

    /// Lays out such files and returns where each tensor goes; see [`Draft::reserve`].
    ///
    /// # Errors
    /// As [`Draft::reserve`].
    pub fn reserve(
        &mut self,
        stem: &str,
        kind: Kind,
        specs: &[TensorSpec],
        metadata: &BTreeMap<String, String>,
    ) -> Result<Vec<Region>, CheckpointError> {
        self.draft.reserve(stem, kind, specs, metadata)
    }

    /// Makes room for so many more bytes, and lets a GPU write there at the speed of the bus; see [`Draft::pin`].
    ///
    /// # Errors
    /// As [`Draft::pin`].
    pub fn pin(&mut self, size_bytes: usize) -> Result<bool, CheckpointError> {
        self.draft.pin(size_bytes)
    }

    /// Copies a file of any other content.
    ///
    /// # Errors
    /// As [`Draft::bytes`].
    pub fn bytes(&mut self, name: &str, kind: Kind, bytes: &[u8]) -> Result<(), CheckpointError> {
        self.draft.bytes(name, kind, bytes)
    }

    /// Adds a file that another program wrote, which is copied when the checkpoint is written; see [`Draft::file`].
    ///
    /// # Errors
    /// As [`Draft::file`].
    pub fn file(&mut self, name: &str, kind: Kind, path: &Path) -> Result<(), CheckpointError> {
        self.draft.file(name, kind, path)
    }

    /// Sets the position in the data of all ranks together, if there are several: the same on each, or nothing is
    /// committed.
    pub fn set_global_cursor(&mut self, global_cursor: &[u8]) {
        self.draft.set_global_cursor(global_cursor);
    }

    /// Hands the checkpoint to the background thread and returns at once.
    pub fn submit(self, metrics: &[(&str, f64)]) {
        let Self { inner, draft, mut pending } = self;
        let slot = inner.slot();
        let step = draft.step();
        pending.asked = inner.take_asked(slot);
        *slot.pending() = Some(pending);
        // Decided by what the loop knew when it made the copy: an older save that ends later does not contain this
        // step.
        slot.saved_for_stop.store(inner.stopping(slot), Ordering::Relaxed);
        inner.remember_checkpoint(slot, step);
        let metrics = inner.with_best(slot, step, metrics);
        draft.submit(metrics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect());
    }
}

impl Inner {
    fn new_saver(self: &Arc<Self>) -> Result<BackgroundSaver<Commit>, CheckpointError> {
        let inner = Arc::clone(self);
        let commit = move |save: &DraftSave| inner.commit_draft(save);
        BackgroundSaver::new(self.clock(), Box::new(commit))
    }

    /// Writes and commits a draft and records what came of it. Runs on the saver's thread.
    fn commit_draft(&self, save: &DraftSave) -> Result<Saved<Commit>, CheckpointError> {
        let slot = self.slot();
        let step = save.step();
        let pending = slot.pending().take();
        let before_commit = || {
            self.hold_in_save_if_requested(slot, step);
            Ok(())
        };
        let saved = self.with_root(slot, |root| root.save_draft(save, before_commit));
        let Some(pending) = pending else { return saved };
        if let Some(saved) = saved.as_ref().ok().filter(|_| self.leads()) {
            slot.pace().committed_behind(self.now_micros(), slot.seen_step());
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

    fn tell_skipped(&self, slot: &ProcessSlot, step: Step) {
        slot.asks.busy.fetch_add(1, Ordering::Relaxed);
        if once(&slot.reported.skipped) {
            let why = "the previous checkpoint is still being written";
            slot.segment().event(EventKind::CheckpointSkipped.as_str(), Some(step), &[("why", why)]);
        }
    }

    /// Waits for the last save, and records the outcomes that were not reported yet.
    pub(crate) fn close_saver(&self, slot: &ProcessSlot) {
        let Some(saver) = slot.saver().take() else { return };
        for outcome in saver.close(self.last_save_wait()) {
            if matches!(outcome.end, SaveEnd::Abandoned) {
                let why = "the process exits before it is committed";
                slot.segment().event(
                    EventKind::CheckpointAbandoned.as_str(),
                    Some(outcome.step),
                    &[("why", why)],
                );
            }
        }
    }

    pub(crate) fn last_save_wait(&self) -> Duration {
        let seconds = self.grace_seconds_left().unwrap_or(LAST_SAVE_WAIT_SECONDS_MAX);
        Duration::from_secs_f64(seconds.clamp(0.0, LAST_SAVE_WAIT_SECONDS_MAX))
    }
}
