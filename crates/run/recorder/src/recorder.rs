use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use trackway_checkpoint::bulk::LoadedFile;
use trackway_checkpoint::{
    CheckpointError, CheckpointView, CheckpointWriter, Commit, LoadedCheckpoint, RankGroup, RankedSave,
};
use trackway_core::{Clock, Ids, SkippedBatches, Step};
use trackway_formats::record::{ControlOutcome, PROGRESSIVE_LOSS};
use trackway_formats::{EventKind, Variable};
use trackway_system::{SystemClock, SystemIds};

use crate::checkpoints::cost::SaveCost;
use crate::data_rung::{CountRows, DataRung};
use crate::process::inner::Inner;
use crate::process::pending::CheckpointRequest;
use crate::process::root::{NO_ROOT, Root};
use crate::process::{ProcessSlot, SlotChain, once};
use crate::segment_writer::SegmentWriter;
use crate::settings::{SKIP_BATCHES, Settings};
use crate::signal::{self, Arrival};

/// The flight recorder of a training process.
///
/// Outside a Trackway attempt it does nothing and costs nothing. Cloning gives another handle to the same recorder.
/// Every method may be called from any thread and after a fork; none of them panics. The methods that record never
/// fail and never wait for anything but one `write(2)`.
///
/// ```
/// let run = trackway_recorder::Recorder::attach();
/// for step in 1..=3 {
///     run.log(step, &[("loss", 1.0 / step as f64)]);
///     if run.should_stop() {
///         break;
///     }
/// }
/// run.finish();
/// ```
#[derive(Clone)]
pub struct Recorder {
    inner: Option<Arc<Owner>>,
}

/// Ends the record when the last handle goes. The thread that saves holds the rest too.
struct Owner(Arc<Inner>);

impl Deref for Owner {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Recorder {
    /// The recorder of this process, from the environment that `trackway run` sets. Never fails.
    #[must_use]
    pub fn attach() -> Self {
        Self::attach_as("rust")
    }

    /// The same for another language: `sdk` is what it calls itself in the handshake of a rehearsal.
    #[must_use]
    pub fn attach_as(sdk: &str) -> Self {
        let settings = Settings::from_environment();
        let run = Self::with(settings, Arc::new(SystemClock), Arc::new(SystemIds), &signal::SIGTERM);
        run.shake_hands(sdk);
        run.report_rank();
        run.report_unreadable();
        run
    }

    /// Records the number of this rank if there are several, so that their records can be distinguished.
    pub(crate) fn report_rank(&self) {
        if let Some(group) = self.inner.as_ref().and_then(|inner| inner.settings.group.clone())
            && let Ok(group) = group
        {
            let fields = [("rank", group.rank().to_string()), ("world_size", group.world_size().to_string())];
            self.record_event(
                EventKind::Rank,
                None,
                &fields.each_ref().map(|(name, value)| (*name, value.as_str())),
            );
        }
    }

    /// Records that ranges of batches cannot be read and are not skipped.
    fn report_unreadable(&self) {
        let why = self.inner.as_ref().and_then(|inner| inner.settings.skipped_unreadable.clone());
        if let Some(why) = why {
            self.record_event(
                EventKind::SkipBatchesUnreadable,
                None,
                &[("variable", SKIP_BATCHES), ("why", &why)],
            );
        }
    }

    /// A recorder that does nothing.
    #[must_use]
    pub fn disabled() -> Self {
        Self { inner: None }
    }

    pub(crate) fn with(
        settings: Settings,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
        sigterm: &'static Arrival,
    ) -> Self {
        if settings.record_folder.is_none() {
            return Self::disabled();
        }
        let inner = Inner { settings, clock, ids, sigterm, slots: SlotChain::new() };
        if inner.leads()
            && let Some(notices) = inner.notices()
        {
            // Notices of an earlier process.
            notices.clear();
        }
        inner.slot();
        Self { inner: Some(Arc::new(Owner(Arc::new(inner)))) }
    }

    /// What the handles and the saving thread have in common; none outside an attempt.
    pub(crate) fn shared(&self) -> Option<Arc<Inner>> {
        self.inner.as_ref().map(|owner| Arc::clone(&owner.0))
    }

    /// Whether anything is recorded: false outside an attempt.
    #[must_use]
    pub fn enabled(&self) -> bool {
        self.inner.is_some()
    }

    /// Which of the ranks that train together this is: rank 0 of one, unless a launcher such as
    /// torchrun says otherwise. Of several ranks every one makes the calls about checkpoints, at the same steps; what they
    /// save or resume is one checkpoint. Files of one rank are named by [`RankGroup::file_name`].
    ///
    /// # Errors
    /// [`CheckpointError::Ranks`] when the variables contradict each other.
    pub fn group(&self) -> Result<RankGroup, CheckpointError> {
        match self.inner.as_ref().and_then(|inner| inner.settings.group.clone()) {
            Some(group) => Ok(group?),
            None => Ok(RankGroup::new(0, 1)?),
        }
    }

    /// Records values of metrics at a step. NaN and infinities are kept as they are.
    pub fn log(&self, step: Step, values: &[(&str, f64)]) {
        let Some(inner) = &self.inner else { return };
        let slot = inner.slot();
        slot.see(step);
        slot.segment.get().metrics(step, values);
        inner.note_best(slot, step, values);
        if inner.settings.rehearsal.is_some() {
            inner.watch_loss(slot, step, values);
        }
    }

    /// Records something that happened, such as `epoch_finished`.
    pub fn event(&self, kind: &str, step: Option<Step>, fields: &[(&str, &str)]) {
        self.record(|segment| segment.event(kind, step, fields));
    }

    /// Records a parameter of the run.
    pub fn param(&self, name: &str, value: &str) {
        self.record(|segment| segment.param(name, value));
    }

    /// Tags the run; the last value of a name holds.
    pub fn tag(&self, name: &str, value: &str) {
        self.record_event(EventKind::Tag, None, &[("name", name), ("value", value)]);
    }

    /// Records the loss of a batch from before the model was trained on it: an estimate of how it does on what it has not
    /// seen, as long as it has seen none of the batch before (Blum, Kalai and Langford, COLT 1999).
    pub fn progressive(&self, step: Step, loss: f64) {
        self.log(step, &[(PROGRESSIVE_LOSS, loss)]);
    }

    /// Reports that the process is alive and at this step.
    pub fn heartbeat(&self, step: Step) {
        let Some(inner) = &self.inner else { return };
        let slot = inner.slot();
        slot.see(step);
        slot.segment.get().heartbeat(step);
    }

    /// The highest step that this process recorded, saved or resumed; 0 if none, and outside an attempt.
    #[must_use]
    pub fn reached_step(&self) -> Step {
        self.inner.as_ref().map_or(0, |inner| inner.slot().reached_step())
    }

    /// The recorder of an attempt that has a checkpoint root.
    fn with_checkpoints(&self) -> Option<&Inner> {
        self.inner.as_deref().map(Deref::deref).filter(|inner| inner.settings.checkpoint_root.is_some())
    }

    pub(crate) fn record_event(&self, kind: EventKind, step: Option<Step>, fields: &[(&str, &str)]) {
        self.event(kind.as_str(), step, fields);
    }

    fn record(&self, write: impl FnOnce(&mut SegmentWriter)) {
        if let Some(inner) = &self.inner {
            write(&mut inner.slot().segment.get());
        }
    }

    /// From now on SIGTERM makes [`Recorder::should_stop`] true instead of ending the process. Works outside an attempt
    /// too. A process that never calls [`Recorder::should_stop`] must not call this.
    pub fn stop_on_sigterm(&self) {
        if let Err(error) = signal::install() {
            self.record_event(EventKind::SigtermHandlerFailed, None, &[("why", &error.to_string())]);
        }
    }

    /// Whether the training loop should save a checkpoint and end: the control file or SIGTERM requested it, the
    /// attempt was fenced, or a step of `TRACKWAY_MAX_STEPS` or more was recorded. It may be called anywhere, also
    /// within a long evaluation: leave that, save at the end of the step, and end.
    ///
    /// A stop that arrives between [`Recorder::checkpoint_due`], which denied it, and this call is reported at the end
    /// of the next step: then a checkpoint is due first. Several ranks see it at the end of the same step, which is
    /// some steps after the stop arrived.
    #[must_use]
    pub fn should_stop(&self) -> bool {
        let Some(inner) = &self.inner else { return signal::SIGTERM.at_micros().is_some() };
        let slot = inner.poll_control();
        inner.hold_if_requested(slot);
        inner.should_end(slot)
    }

    /// Reports that a step begins: for loops that name no step before its end. [`Recorder::should_stop`] may then be
    /// called within the step.
    pub fn begin_step(&self, step: Step) {
        if let Some(inner) = &self.inner {
            let slot = inner.slot();
            slot.leave_unsaved();
            slot.begun_step.fetch_max(step, Ordering::Relaxed);
        }
    }

    /// The batch, counted from 0 over all passes through the data, that a step trains on: each step takes the next one,
    /// except those that the run skips since it was rolled back. Outside an attempt, of step N it is N - 1.
    ///
    /// It is recorded where it does not follow from the step before, so that a detection can name its data. A script
    /// that calls this method for every step trains on the right batches after a resume and after a rollback.
    #[must_use]
    pub fn batch_of(&self, step: Step) -> u64 {
        let Some(inner) = &self.inner else { return step.saturating_sub(1) };
        let batch = inner.settings.skipped.batch_of_step(step);
        let slot = inner.slot();
        if slot.moves_to(step, batch) {
            let fields = [("batch", batch.to_string())];
            let fields = fields.each_ref().map(|(name, value)| (*name, value.as_str()));
            slot.record_event(EventKind::DataCursor, Some(step), &fields);
        }
        batch
    }

    /// The batches that the run skips since it was rolled back, for a script that does not read its data by
    /// [`Recorder::batch_of`].
    #[must_use]
    pub fn skipped_batches(&self) -> SkippedBatches {
        self.inner.as_ref().map(|inner| inner.settings.skipped.clone()).unwrap_or_default()
    }

    /// Whether it is time to save a checkpoint at the end of this step. It is
    /// - when a command of the control file requests one;
    /// - once after the end was requested; after SIGTERM only if a save as long as the last one still fits into
    ///   `TRACKWAY_GRACE_SECONDS`;
    /// - by the cadence of `TRACKWAY_CHECKPOINT_EVERY_STEPS` (a multiple of it was passed since the last checkpoint) or
    ///   `TRACKWAY_CHECKPOINT_EVERY_SECONDS` (since the last one) or `TRACKWAY_CHECKPOINT_EVERY_EPOCHS`
    ///   ([`Recorder::epochs_finished`]), or at `TRACKWAY_CHECKPOINT_AT_STEPS` instead;
    /// - with none of these at each call, since the script chose the step; a loop that asks at each step gets a default
    ///   cadence: a minute at least, Young's interval for a failure a day, and a tenth of the attempt's age.
    ///
    /// Always false without a checkpoint root. Several ranks get the same answer for the same step: what does not follow
    /// from the step itself is decided by rank 0 for a step to come.
    #[must_use]
    pub fn checkpoint_due(&self, step: Step) -> bool {
        let Some(inner) = self.with_checkpoints() else { return false };
        let slot = inner.poll_control();
        slot.see(step);
        inner.note_asked(slot, step);
        inner.hold_if_requested(slot);
        let due = inner.due(slot, step).is_some();
        if due {
            slot.leave_unsaved()
        } else {
            inner.note_not_due(slot, step);
            slot.go_on_unsaved(step)
        }
        inner.record_asks(slot, false);
        due
    }

    /// Writes a checkpoint and commits it, records that, its cost and its reason ([`trackway_formats::SaveReason`]), and acknowledges a
    /// waiting `checkpoint_now`.
    ///
    /// `fill` writes the files; it may use the recorder to log, but must not save another checkpoint.
    ///
    /// # Errors
    /// The errors of [`crate::CheckpointRoot::save`]. [`CheckpointError::Fenced`] also makes [`Recorder::should_stop`] true.
    /// [`CheckpointError::NotInAttempt`] outside an attempt.
    pub fn save_checkpoint(
        &self,
        step: Step,
        metrics: &[(&str, f64)],
        fill: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<(), CheckpointError>,
    ) -> Result<Commit, CheckpointError> {
        self.save_together(&RankedSave { step, metrics, global_cursor: &[] }, fill)
    }

    /// The same for several ranks, with their common position in the data: see [`RankedSave`].
    ///
    /// # Errors
    /// As [`Recorder::save_checkpoint`]; [`crate::RankError::Abandoned`] when nothing was committed because of another
    /// rank: training may continue.
    pub fn save_together(
        &self,
        save: &RankedSave<'_>,
        fill: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<(), CheckpointError>,
    ) -> Result<Commit, CheckpointError> {
        let inner = self.inner.as_ref().ok_or(NO_ROOT)?;
        let slot = inner.slot();
        let step = save.step;
        slot.see(step);
        let reason = inner.reason_of_save(slot, step);
        let began_micros = inner.clock.monotonic_micros();
        slot.pace.get().save_begins(began_micros, step);
        let fill = |writer: &mut CheckpointWriter<'_>| {
            fill(writer)?;
            inner.hold_in_save_if_requested(slot, step);
            Ok(())
        };
        let metrics = inner.with_best(slot, step, save.metrics);
        let save = &RankedSave { metrics: &metrics, ..*save };
        let saved = inner.with_root(slot, |root| root.save(save, fill));
        if let Some(commit) = saved.as_ref().ok().filter(|_| inner.leads()) {
            let seconds = inner.seconds_since(began_micros);
            let cost = SaveCost {
                reason,
                stall_seconds: seconds,
                commit_lag_seconds: seconds,
                interval_seconds: inner.seconds_since_last_save(slot, began_micros),
                size_bytes: commit.size_bytes,
                written_bytes: commit.written_bytes,
            };
            inner.record_cost(slot, step, &cost);
        }
        let asked = inner.take_asked(slot);
        inner.record_save(slot, step, reason, &asked, saved.as_ref());
        if saved.is_ok() {
            slot.saved_for_stop.store(inner.stopping(slot), Ordering::Relaxed);
            inner.remember_checkpoint(slot, step);
        }
        saved
    }

    /// The newest committed checkpoint that verifies; `None` when nothing was ever committed, and outside an attempt.
    /// Newer ones that do not verify are recorded, marked suspect and skipped.
    ///
    /// # Errors
    /// The errors of [`crate::CheckpointRoot::resume_target`]; above all [`CheckpointError::NothingVerifies`], after which a
    /// script should not start over.
    pub fn resume(&self) -> Result<Option<LoadedCheckpoint>, CheckpointError> {
        let Some(inner) = self.with_checkpoints() else { return Ok(None) };
        let target = |root: &mut Root| Ok(root.resume_target()?.map(|loaded| (loaded, ())));
        Ok(inner.resume_by(target)?.map(|(loaded, ())| loaded))
    }

    /// The same, with its files in memory: every byte is read once, and checked while it is read. Of several ranks each
    /// gets its own files and those that all have alike; and all files when the number of ranks is another one now.
    ///
    /// # Errors
    /// As [`Recorder::resume`].
    pub fn resume_read(&self) -> Result<Option<(LoadedCheckpoint, Vec<LoadedFile>)>, CheckpointError> {
        let Some(inner) = self.with_checkpoints() else { return Ok(None) };
        inner.resume_by(Root::resume_read)
    }

    /// The checkpoint whose weights this attempt begins with: the newest of the rung before, if the run file sets
    /// `warm_start`, or that of another run (`run.start_from`), and nothing was committed in this rung yet. Call it
    /// after [`Recorder::resume`] found nothing. Take its weights only, and begin at step 1: the place in the data, the
    /// schedule and the optimizer are those of the other rung.
    ///
    /// # Errors
    /// As [`Recorder::resume`].
    pub fn warm_start(&self) -> Result<Option<LoadedCheckpoint>, CheckpointError> {
        let load = |view: &CheckpointView, number: Option<u64>| match number {
            Some(number) => Ok(Some((view.load(number)?, ()))),
            None => Ok(view.resume_target()?.map(|loaded| (loaded, ()))),
        };
        Ok(self.warm_start_by(load)?.map(|(loaded, ())| loaded))
    }

    /// The same, with its files in memory, every byte of them checked.
    ///
    /// # Errors
    /// As [`Recorder::resume`].
    pub fn warm_start_read(&self) -> Result<Option<(LoadedCheckpoint, Vec<LoadedFile>)>, CheckpointError> {
        self.warm_start_by(|view, number| match number {
            Some(number) => view.read(number).map(Some),
            None => view.resume_read(),
        })
    }

    fn warm_start_by<T>(
        &self,
        load: impl FnOnce(&CheckpointView, Option<u64>) -> Result<Option<(LoadedCheckpoint, T)>, CheckpointError>,
    ) -> Result<Option<(LoadedCheckpoint, T)>, CheckpointError> {
        let Some(settings) = self.inner.as_ref().map(|inner| &inner.settings) else { return Ok(None) };
        let Some(root) = &settings.warm_start else { return Ok(None) };
        let loaded = CheckpointView::open(root).and_then(|view| load(&view, settings.warm_start_number));
        match &loaded {
            Ok(None) => {}
            Ok(Some((loaded, _))) => {
                let manifest = loaded.info.manifest_sha256.clone().unwrap_or_default();
                let step = loaded.step.to_string();
                self.record_event(
                    EventKind::WarmStart,
                    None,
                    &[("step", &step), ("manifest_sha256", &manifest)],
                );
            }
            Err(error) => self.record_event(EventKind::WarmStartFailed, None, &[("why", &error.to_string())]),
        }
        loaded
    }

    /// The fraction of the data that this launch trains on. The rows that its methods keep are counted in the record: a run
    /// climbs to the next rung only if they were.
    #[must_use]
    pub fn rung(&self) -> DataRung {
        DataRung::from_environment().counted_by(Arc::new(self.clone()))
    }

    /// The seed of the run file, and the receipt says that the script took it; none without one.
    #[must_use]
    pub fn seed(&self) -> Option<u64> {
        let seed = std::env::var(Variable::Seed.as_str()).ok()?.parse().ok()?;
        self.took_seed(seed);
        Some(seed)
    }

    /// The script took this seed, wherever it is from: the receipt has it beside the one of the run file.
    pub fn took_seed(&self, seed: u64) {
        if let Some(inner) = &self.inner
            && once(&inner.slot().reported.seed)
        {
            self.record_event(EventKind::SeedTaken, None, &[("seed", &seed.to_string())]);
        }
    }

    /// Acknowledges an obeyed stop and ends the record in order. Happens by itself when the last handle is dropped;
    /// recording afterwards begins another segment.
    pub fn finish(&self) {
        if let Some(inner) = &self.inner {
            inner.finish();
        }
    }
}

impl CountRows for Recorder {
    fn count_key(&self, is_kept: bool) {
        if let Some(inner) = &self.inner {
            let slot = inner.slot();
            slot.rung_keys.fetch_add(1, Ordering::Relaxed);
            slot.rung_keys_kept.fetch_add(u64::from(is_kept), Ordering::Relaxed);
        }
    }

    fn count_rows(&self, fraction: f64, rows: u64, rows_total: u64) {
        if let Some(inner) = &self.inner {
            report_rung_cut(&mut inner.slot().segment.get(), fraction, "indexes", rows, rows_total);
        }
    }
}

impl Inner {
    fn resume_by<T>(
        &self,
        load: impl FnOnce(&mut Root) -> Result<Option<(LoadedCheckpoint, T)>, CheckpointError>,
    ) -> Result<Option<(LoadedCheckpoint, T)>, CheckpointError> {
        let slot = self.slot();
        let started_micros = self.clock.monotonic_micros();
        let loaded = self.with_root(slot, load);
        let reported = loaded.as_ref().map(|found| found.as_ref().map(|(loaded, _)| loaded));
        self.record_resume(slot, reported, started_micros);
        loaded
    }

    /// The requests that the save which begins now will answer.
    pub(crate) fn take_asked(&self, slot: &ProcessSlot) -> Vec<CheckpointRequest> {
        slot.checkpoint_asked.store(false, Ordering::Relaxed);
        std::mem::take(&mut slot.control.get().checkpoints)
    }

    pub(crate) fn remember_checkpoint(&self, slot: &ProcessSlot, step: Step) {
        let now_micros = self.clock.monotonic_micros();
        slot.see(step);
        slot.last_saved_step.store(step, Ordering::Relaxed);
        slot.epochs.get().saved();
        slot.last_saved_micros.store(now_micros, Ordering::Relaxed);
        slot.pace.get().continues(now_micros, step);
    }

    /// Ends the segment of this process, if it has one.
    fn finish(&self) {
        let Some(slot) = self.slots.find() else {
            return;
        };
        self.close_saver(slot);
        self.close_keeper(slot);
        self.record_asks(slot, true);
        let stops = std::mem::take(&mut slot.control.get().stops);
        let mut segment = slot.segment.get();
        let asked = slot.rung_keys.swap(0, Ordering::Relaxed);
        if asked > 0 {
            let kept = slot.rung_keys_kept.swap(0, Ordering::Relaxed);
            report_rung_cut(&mut segment, DataRung::from_environment().fraction(), "keys", kept, asked);
        }
        for id in stops {
            segment.control_ack(id, ControlOutcome::Done, None);
        }
        segment.finish();
    }
}

fn report_rung_cut(segment: &mut SegmentWriter, fraction: f64, by: &str, rows: u64, rows_total: u64) {
    let (rung, rows, total) = (fraction.to_string(), rows.to_string(), rows_total.to_string());
    let fields = [("rung", rung.as_str()), ("rows", &rows), ("rows_total", &total), ("by", by)];
    segment.event(EventKind::RungCut.as_str(), None, &fields);
}
