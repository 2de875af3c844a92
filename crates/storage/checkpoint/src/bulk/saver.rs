use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use trackway_core::{Clock, Step};

use crate::bulk::arena::Arena;
use crate::bulk::draft::{Draft, DraftSave, Home};
use crate::bulk::mapping::Mapping;
use crate::bulk::parallel::lock;
use crate::bulk::write::Figures;
use crate::error::{CheckpointError, Result};

/// The most outcomes that wait to be polled. Beyond that, the oldest that is not a failure is dropped.
const MAX_OUTCOMES: usize = 256;
/// How long a dropped saver waits for its last save.
const DROP_WAIT: Duration = Duration::from_secs(60);
/// What headers and the ends of blocks may add to a save: this part of it, and this much at least. More is taken when
/// it is needed; too much would be memory that is touched and never used.
const HEADERS_SHARE: u64 = 1024;
const HEADERS_BYTES_MIN: u64 = 1 << 20;

/// How the owner saves a draft: begin, write, commit. `C` is what a commit returns.
pub type CommitCallback<C> = Box<dyn FnMut(&DraftSave) -> Result<Saved<C>> + Send>;

/// A save that was committed.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved<C> {
    pub commit: C,
    /// What writing its files took.
    pub figures: Figures,
}

/// What became of a save.
#[derive(Debug)]
pub struct SaveOutcome<C> {
    /// The step whose end it holds.
    pub step: Step,
    pub end: SaveEnd<C>,
    /// What the training loop waited for it.
    pub stall_seconds: f64,
    /// From its submission to its end: hashing, writing and committing.
    pub seconds: f64,
}

/// How a save ended.
#[derive(Debug)]
pub enum SaveEnd<C> {
    /// It is real.
    Committed(Saved<C>),
    /// Nothing was committed.
    Failed(CheckpointError),
    /// It was not begun, because the one before was not done.
    Skipped { running_step: Step },
    /// The caller stopped waiting; the log has whether it was committed.
    Abandoned,
}

/// Saves in the background: one at a time, from one arena, by one thread.
///
/// Belongs to the process that made it: a forked child can neither begin nor wait.
pub struct BackgroundSaver<C> {
    shared: Arc<SaverState<C>>,
    worker: Option<JoinHandle<()>>,
}

/// What the training thread and the worker have in common.
struct SaverState<C> {
    clock: Arc<dyn Clock>,
    process: u32,
    state: Mutex<State<C>>,
    /// Notified of every change of the state that a thread may wait for.
    changed: Condvar,
}

struct State<C> {
    /// Here while no save is drafted or running.
    arena: Option<Arena>,
    job: Option<Job>,
    /// The newest save that was begun.
    step: Step,
    /// A save was submitted and has not ended.
    saving: bool,
    closing: bool,
    outcomes: VecDeque<SaveOutcome<C>>,
}

struct Job {
    save: DraftSave,
    submitted_micros: i64,
}

impl<C: Send + 'static> BackgroundSaver<C> {
    /// Starts the thread. No memory is taken yet.
    ///
    /// # Errors
    /// [`CheckpointError::Memory`] when there are no addresses or no thread.
    pub fn new(clock: Arc<dyn Clock>, mut commit: CommitCallback<C>) -> Result<Self> {
        let no_memory = |source| CheckpointError::Memory { size_bytes: 0, source };
        let arena = Arena::new().map_err(no_memory)?;
        let memory = arena.mapping();
        let shared = Arc::new(SaverState {
            clock,
            process: std::process::id(),
            state: Mutex::new(State {
                arena: Some(arena),
                job: None,
                step: 0,
                saving: false,
                closing: false,
                outcomes: VecDeque::new(),
            }),
            changed: Condvar::new(),
        });
        let worker = shared.clone();
        let worker = thread::Builder::new()
            .name("trackway-save".into())
            .spawn(move || worker.work(&memory, &mut commit))
            .map_err(no_memory)?;
        Ok(Self { shared, worker: Some(worker) })
    }

    /// Takes memory for saves of so many bytes ahead, in the background, so that the first save waits no longer than
    /// the others: untouched memory costs several times what the copy does. Does nothing while a save is drafted or
    /// running.
    ///
    /// # Errors
    /// [`CheckpointError::Memory`] when the machine has not so much; [`CheckpointError::Forked`].
    pub fn prepare(&self, size_bytes: u64) -> Result<()> {
        self.shared.check_process()?;
        let mut state = self.shared.state();
        let Some(arena) = &mut state.arena else { return Ok(()) };
        let wanted = size_bytes.saturating_add(size_bytes / HEADERS_SHARE + HEADERS_BYTES_MIN);
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        arena.grow(wanted).map_err(|source| CheckpointError::Memory { size_bytes, source })?;
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Begins a save. `None`: the one before is not done, and this one is skipped; [`BackgroundSaver::poll`] reports
    /// that. Never waits.
    ///
    /// # Errors
    /// What made an earlier save fail, unless it was polled: then call again. [`CheckpointError::Forked`].
    pub fn begin(&self, step: Step) -> Result<Option<Draft>> {
        self.shared.check_process()?;
        let begun_micros = self.shared.clock.monotonic_micros();
        let mut state = self.shared.state();
        // By the next save at the latest: a loop that never polls must learn of it.
        if let Some(failure) = state.take_failure() {
            return Err(failure);
        }
        let Some(arena) = state.arena.take() else {
            let end = SaveEnd::Skipped { running_step: state.step };
            state.add_outcome(SaveOutcome { step, end, stall_seconds: 0.0, seconds: 0.0 });
            return Ok(None);
        };
        state.step = step;
        Ok(Some(Draft::new(self.shared.clone(), arena, step, begun_micros)))
    }

    /// What became of saves since the last call, oldest first.
    #[must_use]
    pub fn poll(&self) -> Vec<SaveOutcome<C>> {
        if self.shared.check_process().is_err() {
            return Vec::new();
        }
        self.shared.state().outcomes.drain(..).collect()
    }

    /// Waits until the save that was submitted last has ended; `false`: it has not, in that time.
    #[must_use]
    pub fn wait(&self, at_most: Duration) -> bool {
        self.shared.check_process().is_err() || self.shared.wait_for(at_most, |state| !state.saving)
    }

    /// Waits for the last save, ends the thread and returns the outcomes not polled yet. A save that does not end in
    /// that time continues while the process lives, and is reported as [`SaveEnd::Abandoned`].
    #[must_use]
    pub fn close(mut self, at_most: Duration) -> Vec<SaveOutcome<C>> {
        self.end(at_most)
    }
}

impl<C> BackgroundSaver<C> {
    fn end(&mut self, at_most: Duration) -> Vec<SaveOutcome<C>> {
        let Some(worker) = self.worker.take() else { return Vec::new() };
        if self.shared.check_process().is_err() {
            // The thread exists in the parent only; there is nothing to detach from.
            std::mem::forget(worker);
            return Vec::new();
        }
        // Before the wait: the thread ends after the save that runs.
        self.shared.state().closing = true;
        self.shared.changed.notify_all();
        let ended = self.shared.wait_for(at_most, |state| !state.saving);
        if ended {
            // It has nothing left to do, so this takes no time. A panic of it was reported as an outcome.
            let _ = worker.join();
        }
        let mut state = self.shared.state();
        if !ended {
            let step = state.step;
            state.add_outcome(SaveOutcome {
                step,
                end: SaveEnd::Abandoned,
                stall_seconds: 0.0,
                seconds: at_most.as_secs_f64(),
            });
        }
        state.outcomes.drain(..).collect()
    }
}

impl<C> Drop for BackgroundSaver<C> {
    fn drop(&mut self) {
        self.end(DROP_WAIT);
    }
}

impl<C> State<C> {
    fn add_outcome(&mut self, outcome: SaveOutcome<C>) {
        if self.outcomes.len() >= MAX_OUTCOMES {
            let forgotten =
                self.outcomes.iter().position(|outcome| !matches!(outcome.end, SaveEnd::Failed(_)));
            self.outcomes.remove(forgotten.unwrap_or(0));
        }
        self.outcomes.push_back(outcome);
    }

    fn take_failure(&mut self) -> Option<CheckpointError> {
        let failed = self.outcomes.iter().position(|outcome| matches!(outcome.end, SaveEnd::Failed(_)))?;
        match self.outcomes.remove(failed)?.end {
            SaveEnd::Failed(error) => Some(error),
            _ => None,
        }
    }
}

impl<C: Send> Home for SaverState<C> {
    fn seconds_since(&self, micros: i64) -> f64 {
        (self.clock.monotonic_micros() - micros) as f64 / 1e6
    }

    fn submit(&self, save: DraftSave) {
        if self.check_process().is_ok() {
            let submitted_micros = self.clock.monotonic_micros();
            let mut state = self.state();
            state.saving = true;
            state.job = Some(Job { save, submitted_micros });
            self.changed.notify_all();
        }
    }

    fn give_back(&self, mut arena: Arena) {
        if self.check_process().is_ok() {
            arena.clear();
            self.state().arena = Some(arena);
        }
    }
}

impl<C> SaverState<C> {
    fn state(&self) -> MutexGuard<'_, State<C>> {
        lock(&self.state)
    }

    /// Must come before any lock: in a forked child, it may be held by a thread that does not exist there.
    fn check_process(&self) -> Result<()> {
        if self.process == std::process::id() { Ok(()) } else { Err(CheckpointError::Forked) }
    }

    /// Waits until something holds; `false`: it does not, after that time.
    fn wait_for(&self, at_most: Duration, holds: impl Fn(&State<C>) -> bool) -> bool {
        let waited = self.changed.wait_timeout_while(self.state(), at_most, |state| !holds(state));
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        holds(&state)
    }
}

impl<C: Send> SaverState<C> {
    fn work(&self, memory: &Mapping, commit: &mut CommitCallback<C>) {
        loop {
            let mut state = self.state();
            match state.job.take() {
                Some(Job { save, submitted_micros }) => {
                    // A save takes long: the training must not wait for this lock.
                    drop(state);
                    self.save(save, submitted_micros, commit);
                }
                None if state.closing => return,
                None => {
                    drop(state);
                    if !memory.improve() {
                        self.wait_for_work();
                    }
                }
            }
        }
    }

    /// Waits for a save, for the end, or for more memory.
    fn wait_for_work(&self) {
        let state = self.state();
        // Under the lock: what was submitted since the last look does not signal again.
        if state.job.is_none() && !state.closing {
            drop(self.changed.wait(state).unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn save(&self, save: DraftSave, submitted_micros: i64, commit: &mut CommitCallback<C>) {
        // A panic ends this save alone: the next one needs the thread and the arena.
        let end = match catch_unwind(AssertUnwindSafe(|| commit(&save))) {
            Ok(Ok(saved)) => SaveEnd::Committed(saved),
            Ok(Err(error)) => SaveEnd::Failed(error),
            Err(panic) => SaveEnd::Failed(CheckpointError::Panicked { what: text_of(panic.as_ref()) }),
        };
        let DraftSave { content, stall_seconds, .. } = save;
        let seconds = self.seconds_since(submitted_micros);
        // Before the save counts as ended: a loop that waited for it begins the next one at once.
        self.give_back(content.arena);
        let mut state = self.state();
        state.saving = false;
        state.add_outcome(SaveOutcome { step: content.step, end, stall_seconds, seconds });
        self.changed.notify_all();
    }
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").into()
}
