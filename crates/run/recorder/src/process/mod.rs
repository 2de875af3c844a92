//! What a process owns of a recorder. A forked child must not touch its parent's: a mutex may be locked by a thread
//! that does not exist in the child, and two processes must not share a segment. So every process that uses the
//! recorder has a separate slot, found by its pid in a chain that only grows.

pub(crate) mod board;
pub(crate) mod control;
pub(crate) mod epochs;
pub(crate) mod inner;
pub(crate) mod keeper;
pub(crate) mod pace;
pub(crate) mod pending;
pub(crate) mod requests;
pub(crate) mod root;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use trackway_checkpoint::bulk::BackgroundSaver;
use trackway_checkpoint::{Commit, Decliner};
use trackway_core::Step;
use trackway_formats::EventKind;

use crate::process::board::Board;
use crate::process::control::ControlReader;
use crate::process::epochs::Epochs;
use crate::process::keeper::Keeper;
use crate::process::pace::Pace;
use crate::process::pending::{CheckpointRequest, Pending};
use crate::process::root::Root;
use crate::rehearsal_plan::LossWatch;
use crate::segment_writer::SegmentWriter;

/// A mutex whose content stays in use after a panic of who held it.
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub fn new(content: T) -> Self {
        Self(Mutex::new(content))
    }

    pub fn get(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The part of a recorder that belongs to one process.
pub(crate) struct ProcessSlot {
    pid: u32,
    pub segment: Lock<SegmentWriter>,
    pub control: Lock<Control>,
    checkpoints: Mutex<Option<Root>>,
    /// Where there are several ranks that save together.
    board: Option<Mutex<Board>>,
    decliner: Lock<Option<Decliner>>,
    pub saver: Lock<Option<BackgroundSaver<Commit>>>,
    /// What to report about the save that is drafted or being written.
    pub pending: Lock<Option<Pending>>,
    /// What copies artifacts, once there is one.
    pub keeper: Lock<Option<Keeper>>,
    /// On the monotonic clock: when the control file was last looked at.
    pub polled_at_micros: AtomicI64,
    /// The attempt has to end: a stop was requested, or it is fenced.
    pub stop_asked: AtomicBool,
    /// … and a checkpoint is wanted before, which a fenced attempt could not commit.
    pub stop_wants_checkpoint: AtomicBool,
    /// A checkpoint was saved since the end was requested.
    pub saved_for_stop: AtomicBool,
    pub checkpoint_asked: AtomicBool,
    /// A newer attempt took over: nothing this one saves can be committed.
    pub fenced: AtomicBool,
    /// The step at whose end no checkpoint was made, because none was due; [`NO_STEP`] while another one is in hand.
    unsaved_step: AtomicU64,
    /// The step at whose end a stop was put off, and when on the monotonic clock.
    put_off: Lock<Option<(Step, i64)>>,
    /// The greatest step that the loop has reported to begin.
    pub begun_step: AtomicU64,
    /// The step and the batch of which the record last heard.
    place: Lock<Option<(Step, u64)>>,
    /// The greatest step that was named in any call.
    seen_step: AtomicU64,
    /// The same over all recorders that this process has of the attempt: a callback attaches another one.
    reached_step: Arc<AtomicU64>,
    /// The last two steps at which the script asked whether to save, the newer one first; [`NO_STEP`]: it did not.
    asked_steps: [AtomicU64; 2],
    /// How often the script asked, and how often it got no save.
    pub asks: Asks,
    /// On the monotonic clock: when the process began to record.
    pub began_micros: i64,
    /// The step of the last checkpoint that was saved or resumed from.
    pub last_saved_step: AtomicU64,
    /// On the monotonic clock: when that was.
    pub last_saved_micros: AtomicI64,
    /// How long the last save took until it was committed; negative while none was.
    last_save_micros: AtomicI64,
    /// What is reported only once.
    pub reported: ReportedOnce,
    /// The last value of the metric that decides which checkpoint is the best, with its step.
    pub best_value: Lock<Option<(Step, f64)>>,
    /// Keys that the script asked about in a rung, and those that are part of it.
    pub rung_keys: AtomicU64,
    pub rung_keys_kept: AtomicU64,
    pub pace: Lock<Pace>,
    pub epochs: Lock<Epochs>,
    /// The losses of a rehearsal so far.
    pub losses: Lock<LossWatch>,
    next: AtomicPtr<ProcessSlot>,
}

/// A number that no step has.
const NO_STEP: Step = Step::MAX;

/// What was reported already.
#[derive(Default)]
pub(crate) struct ReportedOnce {
    pub sigterm: AtomicBool,
    pub seed: AtomicBool,
    pub max_steps: AtomicBool,
    pub held: AtomicBool,
    pub held_in_save: AtomicBool,
    pub skipped: AtomicBool,
    pub asked: AtomicBool,
    pub epochs_lacking: AtomicBool,
    pub default_cadence: AtomicBool,
    pub best_unknown: AtomicBool,
    pub given_up: AtomicBool,
    pub cadence_too_short: AtomicBool,
    pub exceeds_grace: AtomicBool,
}

/// Steps at whose end the script asked whether to save, and those of them that were not saved, by why.
#[derive(Default)]
pub(crate) struct Asks {
    pub asked: AtomicU64,
    /// The cadence did not require it.
    pub not_due: AtomicU64,
    /// SIGTERM had come, and a save as long as the last one does not fit into what is left of the grace period.
    pub no_time: AtomicU64,
    /// The previous save was still being written.
    pub busy: AtomicU64,
    /// What was asked when the event was last recorded.
    recorded: AtomicU64,
    /// The same of the last event at an end of the record.
    closed: AtomicU64,
}

impl Asks {
    /// The fields of the event, where it has to be recorded: at a power of two, so that there are few however often the script asks, and at
    /// the end.
    pub fn to_record(&self, is_final: bool) -> Option<[(&'static str, String); 5]> {
        let asked = self.asked.load(Ordering::Relaxed);
        let is_due = is_final || (asked > 1 && asked.is_power_of_two());
        let last = if is_final { &self.closed } else { &self.recorded };
        if !is_due || last.swap(asked, Ordering::Relaxed) == asked {
            return None;
        }
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed).to_string();
        Some([
            ("asked", asked.to_string()),
            ("not_due", count(&self.not_due)),
            ("no_time", count(&self.no_time)),
            ("busy", count(&self.busy)),
            ("final", is_final.to_string()),
        ])
    }
}

/// True the first time only.
pub(crate) fn once(reported: &AtomicBool) -> bool {
    !reported.swap(true, Ordering::Relaxed)
}

/// The control file and the commands that wait for being obeyed.
pub(crate) struct Control {
    pub reader: Option<ControlReader>,
    pub stops: Vec<u64>,
    pub checkpoints: Vec<CheckpointRequest>,
}

/// The greatest step that this process reached in the attempt with this folder of records.
fn reached_step_of(records: &Path) -> Arc<AtomicU64> {
    const TRIES: u32 = 1000;
    static REACHED: Mutex<BTreeMap<(u32, PathBuf), Arc<AtomicU64>>> = Mutex::new(BTreeMap::new());
    for _ in 0..TRIES {
        if let Ok(mut reached) = REACHED.try_lock() {
            return Arc::clone(reached.entry((std::process::id(), records.to_owned())).or_default());
        }
        std::thread::yield_now();
    }
    // A parent's thread had it when this process was forked: it stays locked.
    Arc::default()
}

impl ProcessSlot {
    pub fn new(
        segment: SegmentWriter,
        reader: Option<ControlReader>,
        board: Option<Board>,
        (records, now_micros): (&Path, i64),
    ) -> Self {
        let reached_step = reached_step_of(records);
        Self {
            pid: std::process::id(),
            segment: Lock::new(segment),
            control: Lock::new(Control { reader, stops: Vec::new(), checkpoints: Vec::new() }),
            checkpoints: Mutex::new(None),
            board: board.map(Mutex::new),
            decliner: Lock::new(None),
            saver: Lock::new(None),
            pending: Lock::new(None),
            keeper: Lock::new(None),
            polled_at_micros: AtomicI64::new(i64::MIN),
            stop_asked: AtomicBool::new(false),
            stop_wants_checkpoint: AtomicBool::new(false),
            saved_for_stop: AtomicBool::new(false),
            checkpoint_asked: AtomicBool::new(false),
            fenced: AtomicBool::new(false),
            unsaved_step: AtomicU64::new(NO_STEP),
            put_off: Lock::new(None),
            place: Lock::new(None),
            asked_steps: [const { AtomicU64::new(NO_STEP) }; 2],
            asks: Asks::default(),
            began_micros: now_micros,
            last_saved_step: AtomicU64::new(0),
            seen_step: AtomicU64::new(0),
            reached_step,
            begun_step: AtomicU64::new(0),
            last_saved_micros: AtomicI64::new(now_micros),
            last_save_micros: AtomicI64::new(-1),
            reported: ReportedOnce::default(),
            best_value: Lock::new(None),
            rung_keys: AtomicU64::new(0),
            rung_keys_kept: AtomicU64::new(0),
            pace: Lock::new(Pace::default()),
            epochs: Lock::new(Epochs::default()),
            losses: Lock::new(LossWatch::default()),
            next: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Records an event of Trackway.
    pub fn record_event(&self, kind: EventKind, step: Option<Step>, fields: &[(&str, &str)]) {
        self.segment.get().event(kind.as_str(), step, fields);
    }

    /// Notes which batch a step trains on; true where that does not follow from what was noted before.
    pub fn moves_to(&self, step: Step, batch: u64) -> bool {
        let mut place = self.place.get();
        let follows = place.is_some_and(|(reported_step, reported)| {
            step.checked_sub(reported_step) == batch.checked_sub(reported) && step >= reported_step
        });
        if !follows {
            *place = Some((step, batch));
        }
        !follows
    }

    /// Notes that the loop has come this far.
    pub fn see(&self, step: Step) {
        self.seen_step.fetch_max(step, Ordering::Relaxed);
        self.reached_step.fetch_max(step, Ordering::Relaxed);
    }

    /// The greatest step that any recorder of this process named.
    pub fn reached_step(&self) -> Step {
        self.reached_step.load(Ordering::Relaxed)
    }

    pub fn seen_step(&self) -> Step {
        self.seen_step.load(Ordering::Relaxed)
    }

    /// Whether no step was named since the start, the checkpoint that was resumed from, or the last save.
    pub fn has_made_no_step(&self) -> bool {
        let step = self.seen_step().max(self.begun_step.load(Ordering::Relaxed));
        step <= self.last_saved_step.load(Ordering::Relaxed)
    }

    /// Notes that the script asks whether to save at the end of this step; false where it did already.
    pub fn ask(&self, step: Step) -> bool {
        let newest = self.asked_steps[0].load(Ordering::Relaxed);
        if newest != step {
            self.asked_steps[1].store(newest, Ordering::Relaxed);
            self.asked_steps[0].store(step, Ordering::Relaxed);
        }
        newest != step
    }

    /// The last other step at which the script asked before it asked at this one, or the step that it resumed from.
    pub fn asked_before(&self, step: Step) -> Option<Step> {
        let [newest, before] = self.asked_steps.each_ref().map(|step| step.load(Ordering::Relaxed));
        let other = if newest == step { before } else { newest };
        let resumed =
            || Some(self.last_saved_step.load(Ordering::Relaxed)).filter(|saved| (1..step).contains(saved));
        Some(other).filter(|other| *other != NO_STEP).or_else(resumed)
    }

    /// Whether the script asks at each step, as far as is known.
    pub fn asks_each_step(&self) -> bool {
        let newest = self.asked_steps[0].load(Ordering::Relaxed);
        newest != NO_STEP && self.asked_before(newest).is_some_and(|before| before + 1 == newest)
    }

    /// Notes that the loop got the answer not to save at the end of this step, or could not save.
    pub fn go_on_unsaved(&self, step: Step) {
        self.unsaved_step.store(step, Ordering::Relaxed);
    }

    /// Notes that the loop left the step at which it did not save.
    pub fn leave_unsaved(&self) {
        self.unsaved_step.store(NO_STEP, Ordering::Relaxed);
    }

    /// Whether the loop is at the end of a step that it did not save.
    pub fn is_unsaved(&self, step: Step) -> bool {
        step == self.unsaved_step.load(Ordering::Relaxed)
            && step != self.last_saved_step.load(Ordering::Relaxed)
    }

    /// Puts a stop off at the end of this step. False: it was put off at another one, or for too long.
    pub fn put_off(&self, step: Step, now_micros: i64, micros_max: i64) -> bool {
        let mut put_off = self.put_off.get();
        let (put_off_step, since_micros) = *put_off.get_or_insert((step, now_micros));
        put_off_step == step && now_micros - since_micros <= micros_max
    }

    pub fn note_save_seconds(&self, seconds: f64) {
        self.last_save_micros.store((seconds * 1e6) as i64, Ordering::Relaxed);
    }

    /// How long the last save took; none before the first one.
    pub fn save_seconds(&self) -> Option<f64> {
        Some(self.last_save_micros.load(Ordering::Relaxed))
            .filter(|micros| *micros >= 0)
            .map(|it| it as f64 / 1e6)
    }

    pub fn board(&self) -> Option<MutexGuard<'_, Board>> {
        self.board.as_ref().map(|board| board.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// For a root of several ranks, once it is open.
    pub fn set_decliner(&self, decliner: Decliner) {
        *self.decliner.get() = Some(decliner);
    }

    /// Declines to save a step for this rank. Before the root is open no rank waits for it.
    pub fn decline(&self, step: Step) {
        if let Some(decliner) = &*self.decliner.get() {
            decliner.decline(step);
        }
    }

    pub fn checkpoints_unless_busy(&self) -> Option<MutexGuard<'_, Option<Root>>> {
        match self.checkpoints.try_lock() {
            Ok(root) => Some(root),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub fn checkpoints(&self) -> MutexGuard<'_, Option<Root>> {
        self.checkpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slots of the process that made the recorder and of the children it forked.
pub(crate) struct SlotChain {
    first: AtomicPtr<ProcessSlot>,
}

impl SlotChain {
    pub fn new() -> Self {
        Self { first: AtomicPtr::new(ptr::null_mut()) }
    }

    /// The slot of this process, if it has one.
    pub fn find(&self) -> Option<&ProcessSlot> {
        let pid = std::process::id();
        self.iter().find(|slot| slot.pid == pid)
    }

    /// The slot of this process, made if it has none. Waits for no lock, so a fork at any time is safe.
    pub fn find_or_add(&self, make: impl FnOnce() -> ProcessSlot) -> &ProcessSlot {
        if let Some(slot) = self.find() {
            return slot;
        }
        let new = Box::into_raw(Box::new(make()));
        loop {
            let mut end = &self.first;
            for slot in self.iter() {
                end = &slot.next;
            }
            if end.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                // SAFETY: `new` came from a box, is reachable from the chain now, and is freed only with the chain.
                return unsafe { &*new };
            }
            if let Some(slot) = self.find() {
                // SAFETY: another thread of this process was faster; no other code has seen `new`.
                drop(unsafe { Box::from_raw(new) });
                return slot;
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = &ProcessSlot> {
        let mut next = &self.first;
        std::iter::from_fn(move || {
            // SAFETY: a pointer in the chain came from a box and stays valid until the chain is dropped.
            let slot = unsafe { next.load(Ordering::Acquire).as_ref() }?;
            next = &slot.next;
            Some(slot)
        })
    }
}

impl Drop for SlotChain {
    fn drop(&mut self) {
        let pid = std::process::id();
        let mut next = *self.first.get_mut();
        while !next.is_null() {
            // SAFETY: dropping the chain ends every borrow of its slots, and each is visited once.
            let slot = unsafe { Box::from_raw(next) };
            next = slot.next.load(Ordering::Acquire);
            if slot.pid != pid {
                // A slot of the parent: its locks and its file are the parent's, so it is left as it is.
                Box::leak(slot);
            }
        }
    }
}
