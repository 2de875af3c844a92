//! Commits checkpoints that the script writes itself, in a thread that leaves processor and disk to the training. The last ones are
//! committed by another thread once the script has ended: nothing is left to yield to, and the next attempt waits for them.

use std::cell::RefCell;
use std::fs;
use std::num::NonZero;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use nix::unistd::Pid;
use trackway_adopt::{
    Adopted, Adopter, AdopterSpec, DECIDED_NS, Facts, Look, NotAdopted, NotOwn, Patterns, Place, Steps,
    processor_time, yield_to_others,
};
use trackway_core::boundary::contained;
use trackway_core::{Clock, Step, Timestamp};
use trackway_files::TempFile;
use trackway_formats::EventKind;
use trackway_formats::layout::AttemptLayout;
use trackway_formats::writers::{OthersTime, OwnCheckpoint, WRITERS_VERSION, WritersRecord};
use trackway_recorder::{Origin, SegmentWriter};
use trackway_system::SystemIds;

use super::recorded::RecordedSteps;
use super::saves::FinishedSaves;
use super::writers::{EndedProcesses, Io, MainProcess, WriterView, Writers};
use crate::StoredLaunch;
use crate::process::own_descendants;
use crate::shim::side::{Records, SideThread};

/// How often the paths are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A look is followed by a wait this many times as long as the processor worked for it: below a hundredth of one processor.
const REST_PER_LOOK: u32 = 100;
/// Files that do not change for so long count as complete, where nothing else shows it.
const QUIET_NS: u64 = 2_000_000_000;
/// The longest the end of the attempt waits for what yields to leave off, and then for the last copies.
const LAST_LOOK: Duration = Duration::from_secs(600);

/// The steps that the script printed, as another thread sees them, and among them those that it recorded.
#[derive(Debug, Clone, Default)]
pub(in crate::shim) struct ReachedSteps(Arc<Mutex<Steps>>);

impl ReachedSteps {
    pub fn reached(&self, at: Timestamp, step: Step) {
        self.lock().reached(at.as_nanos(), step);
    }

    /// These steps were reached one after the other, as far as is known at this time.
    pub fn all_reached(&self, at: Timestamp, steps: &[Step]) {
        self.lock().all_reached(at.as_nanos(), steps);
    }

    fn when_written(&self, modified_ns: i64) -> Option<Step> {
        self.lock().when_written(modified_ns)
    }

    fn slack(&self) -> Step {
        self.lock().slack()
    }

    fn lock(&self) -> MutexGuard<'_, Steps> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that looks. It is stopped once every process of the attempt has ended, and leaves what looked, to look once more.
pub(in crate::shim) struct Adopting {
    thread: SideThread,
    follower: SharedFollower,
    main: MainProcess,
    ended: EndedProcesses,
    sight: WriterView,
    there: There,
}

/// What looks, until the end of the attempt takes it. The thread holds it only while it looks.
type SharedFollower = Arc<Mutex<Option<Follower>>>;

/// Where checkpoints are looked for, and what was there before the script started.
pub(in crate::shim) struct There {
    pub patterns: Patterns,
    pub places: Vec<Place>,
}

impl Adopting {
    /// Begins to look; to be called before the script starts. `None`: there is nothing to look for, or no thread can be had.
    /// What the script left behind, or another program, must not keep it from starting: a fault of looking at that is
    /// not one of the attempt.
    pub fn begin(
        launch: &StoredLaunch,
        files: &AttemptLayout,
        steps: ReachedSteps,
        records: Records,
    ) -> Option<Self> {
        contained(|| Self::begin_to_look(launch, files, steps, records)).ok().flatten()
    }

    fn begin_to_look(
        launch: &StoredLaunch,
        files: &AttemptLayout,
        steps: ReachedSteps,
        records: Records,
    ) -> Option<Self> {
        let (main, ended) = (MainProcess::default(), EndedProcesses::default());
        // The patterns were checked before the launch.
        let patterns = launch.adopt.patterns(&launch.working_directory, launch.home()).ok()??;
        let processes = (Arc::clone(&main), ended.clone());
        let writers = Writers::begin(launch, patterns.region(), processes, Arc::clone(&records.clock));
        let sight = writers.sight();
        // After the first look at the writers: what they had open then is of what is found here, or older. The folder
        // is searched once for all that need
        // to know what is there.
        let (since_ns, places) = (records.clock.now().as_nanos(), patterns.places());
        let record = files.writers_json();
        let spec = AdopterSpec {
            patterns: patterns.clone(),
            checkpoint_root: launch.checkpoint_root.clone(),
            run_id: launch.run_id,
            attempt_id: launch.attempt_id,
            epoch: launch.epoch,
            parent: launch.continues_from.as_ref().map(|from| from.number),
            quiet_ns: QUIET_NS,
        };
        let (clock, ids) = (Arc::clone(&records.clock), Arc::new(SystemIds));
        let adopter = Adopter::new(spec, (&places, since_ns), clock, ids);
        let mut saves = FinishedSaves::new(records.folder.clone());
        saves.watch(adopter.folders());
        let writer = records.writer(Origin::Telemetry);
        let recorded = RefCell::new(RecordedSteps::new(records.folder));
        let clock = records.clock;
        let (own, others) = (Vec::new(), Vec::new());
        let follower =
            Follower { adopter, writer, steps, recorded, saves, writers, clock, record, own, others };
        let follower: SharedFollower = Arc::new(Mutex::new(Some(follower)));
        let held = Arc::clone(&follower);
        let work = move |stopped: &Receiver<()>| {
            yield_to_others();
            // The last look begins again where a file made this one fail.
            contained(|| follow(&held, stopped)).ok();
        };
        let there = There { patterns, places };
        let begun = SideThread::begin("adopting", LAST_LOOK, work);
        begun.map(|thread| Self { thread, follower, main, ended, sight, there })
    }

    /// What is seen of writers.
    pub fn sight(&self) -> WriterView {
        self.sight.clone()
    }

    /// Where checkpoints are looked for, and what was there before.
    pub fn there(&self) -> &There {
        &self.there
    }

    /// The script has started.
    pub fn started(&self, main: Pid) {
        self.main.store(main.as_raw(), Ordering::SeqCst);
    }

    /// A process was waited for, before which the counts of the shim were these.
    pub fn waited_for(&self, pid: Pid, before: Option<Io>) {
        self.ended.put(pid.as_raw(), before);
    }

    /// Nothing of the attempt is left: the last look at who wrote, which is at every process of the machine, is taken
    /// beside what else ends. [`Self::begin_last_look`] waits for it.
    pub fn end(&mut self) {
        self.thread.end();
        if let Ok(mut free) = self.follower.try_lock() {
            free.iter_mut().for_each(|follower| follower.writers.end());
        }
    }

    /// Begins to commit what is complete now that nothing writes any more, and is done then. A thread that yields cannot
    /// stop yielding, so that another one does it. Who wrote was looked at for the last time when this returns.
    pub fn begin_last_look(self) -> Option<SideThread> {
        let Self { mut thread, follower, .. } = self;
        thread.end();
        // Only a look that has begun is waited for: where every processor is in use, what yields hardly wakes.
        let follower = taken(&follower).or_else(|| {
            thread.finish();
            taken(&follower)
        });
        let mut follower = follower?;
        follower.writers.finish();
        let finish = move |_: &Receiver<()>| {
            contained(|| follower.finish()).ok();
        };
        SideThread::begin("adopting-last", LAST_LOOK, finish)
    }
}

/// What is held, unless it is in use just now.
fn taken<T>(held: &Mutex<Option<T>>) -> Option<T> {
    match held.try_lock() {
        Ok(mut free) => free.take(),
        Err(TryLockError::Poisoned(free)) => free.into_inner().take(),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Looks until every process of the attempt has ended. A copy that is then being made is interrupted where this thread, which yields, would
/// hardly run: the last look makes it without yielding.
fn follow(held: &SharedFollower, stop: &Receiver<()>) {
    let mut rest = LOOK_EVERY;
    while stop.recv_timeout(rest) == Err(RecvTimeoutError::Timeout) {
        let started = processor_time();
        let has_ended = || stop.try_recv() == Err(TryRecvError::Disconnected);
        let mut free = held.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(follower) = free.as_mut() else { break };
        if follower.look(false, &|| has_ended() && processors_are_taken()).is_fenced {
            break;
        }
        rest = LOOK_EVERY.max(processor_time().saturating_sub(started) * REST_PER_LOOK);
    }
}

struct Follower {
    adopter: Adopter,
    writer: SegmentWriter,
    steps: ReachedSteps,
    recorded: RefCell<RecordedSteps>,
    saves: FinishedSaves,
    writers: Writers,
    clock: Arc<dyn Clock>,
    /// Where it is recorded who wrote, for later attempts.
    record: PathBuf,
    own: Vec<OwnCheckpoint>,
    /// The times of others that were recorded.
    others: Vec<OthersTime>,
}

impl Follower {
    /// Looks until nothing can become complete any more.
    fn finish(mut self) {
        loop {
            let look = self.look(true, &|| false);
            if !look.is_waiting || look.is_fenced {
                break;
            }
            // What is not yet quiet becomes so without a writer.
            std::thread::sleep(Duration::from_nanos(QUIET_NS / 4));
        }
        self.writer.finish();
    }

    fn look(&mut self, writers_ended: bool, is_interrupted: &dyn Fn() -> bool) -> Look {
        self.saves.watch(self.adopter.folders());
        let saves = self.saves.look(self.clock.now());
        read_recorded(&self.recorded, &self.steps);
        let facts = Facts {
            at_ns: u64::try_from(self.clock.monotonic_micros()).unwrap_or(0).saturating_mul(1000),
            saves,
            step_when_written: &|modified_ns| {
                await_records(self.clock.now(), modified_ns);
                // What was recorded before a file that was just seen is in the record by now.
                read_recorded(&self.recorded, &self.steps);
                self.steps.when_written(modified_ns)
            },
            step_slack: self.steps.slack(),
            writers: &|files, since_ns| self.writers.of(files, since_ns),
            writers_ended,
            is_open_for_writing: &is_open_for_writing,
            is_interrupted,
        };
        let look = self.adopter.look(&facts);
        look.adopted.iter().for_each(|adopted| self.record(adopted));
        look.not_adopted.iter().for_each(|one| self.record_refused(one));
        look.not_own.iter().for_each(|one| self.record_not_own(one));
        self.record_writers(writers_ended);
        look
    }

    /// Keeps what a later attempt needs to know of who wrote. Without it, it moves nothing.
    fn record_writers(&mut self, is_last: bool) {
        let changed = self.adopter.own_if_changed();
        let (looked_until_ns, others) = self.writers.others();
        if changed.is_none() && others == self.others && !is_last {
            return;
        }
        self.own = changed.unwrap_or_else(|| std::mem::take(&mut self.own));
        self.others.clone_from(&others);
        let own = self.own.clone();
        let record = WritersRecord { version: WRITERS_VERSION, looked_until_ns, own, others };
        TempFile::write_cache(&self.record, &record.to_bytes()).ok();
    }

    fn record_not_own(&mut self, one: &NotOwn) {
        let owner = if one.is_others { "other" } else { "unknown" };
        let fields = [("path", one.path.as_str()), ("owner", owner), ("why", one.why.as_str())];
        self.writer.event(EventKind::CheckpointCandidate.as_str(), one.step, &fields);
    }

    fn record(&mut self, adopted: &Adopted) {
        let because = serde_json::to_value(adopted.because).unwrap_or_default();
        let (bytes, seconds) =
            (adopted.commit.size_bytes.to_string(), format!("{:.3}", adopted.commit.seconds));
        // No name has a `/`.
        let beside = adopted.beside.join("/");
        let beside = (!beside.is_empty()).then_some(("beside", beside.as_str()));
        let fields = [
            ("path", adopted.path.as_str()),
            ("layout", adopted.layout),
            ("complete", because.as_str().unwrap_or("")),
            ("step_from", adopted.step_origin),
            ("shown_by", adopted.shown_by.as_str()),
            ("bytes", &bytes),
            ("seconds", &seconds),
        ];
        let fields: Vec<_> = fields.into_iter().chain(beside).collect();
        self.writer.event(EventKind::CheckpointAdopted.as_str(), Some(adopted.commit.step), &fields);
    }

    fn record_refused(&mut self, one: &NotAdopted) {
        let fields = [("path", one.path.as_str()), ("why", one.why.as_str())];
        self.writer.event(EventKind::CheckpointNotAdopted.as_str(), None, &fields);
    }
}

/// Waits for what may be recorded right after a file was written to, where that was just now.
fn await_records(now: Timestamp, modified_ns: i64) {
    let left_ns = modified_ns.saturating_add(DECIDED_NS).saturating_sub(now.as_nanos());
    // A file may have a time that is yet to come.
    if (1..=2 * DECIDED_NS).contains(&left_ns) {
        std::thread::sleep(Duration::from_nanos(left_ns.unsigned_abs()));
    }
}

/// Puts what the script recorded since the last call among the steps.
fn read_recorded(recorded: &RefCell<RecordedSteps>, steps: &ReachedSteps) {
    recorded.borrow_mut().read(|at, step| steps.reached(at, step));
}

/// Whether others want every processor now.
fn processors_are_taken() -> bool {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    fs::read_to_string("/proc/stat").is_ok_and(|stat| wanted_processors(&stat) > processors)
}

/// How many threads of the machine run or could run, this one among them, as `/proc/stat` has it; 0 where it does not.
fn wanted_processors(stat: &str) -> usize {
    let count = stat.lines().find_map(|line| line.strip_prefix("procs_running "));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// Whether a process of the attempt has one of the files open for writing; none if processes cannot be looked at.
fn is_open_for_writing(files: &[(u64, u64)]) -> Option<bool> {
    let of_attempt = own_descendants().ok()?;
    Some(of_attempt.iter().any(|process| process.open_files().any(|link| writes_to(&link, files))))
}

/// The permissions of a link in `/proc/PID/fd` say how the file was opened.
fn writes_to(link: &Path, files: &[(u64, u64)]) -> bool {
    const WRITABLE: u32 = 0o200;
    let is_writable = fs::symlink_metadata(link).is_ok_and(|found| found.mode() & WRITABLE != 0);
    is_writable && fs::metadata(link).is_ok_and(|found| files.contains(&(found.dev(), found.ino())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the end of an attempt takes what is free at once, waits for nothing that is in use, and takes it
    /// also where a look broke.
    #[test]
    fn what_is_in_use_is_not_taken() {
        let held = Arc::new(Mutex::new(Some(1)));
        let used = held.lock().unwrap();
        assert_eq!(taken(&held), None);
        drop(used);
        let other = Arc::clone(&held);
        let broken = std::thread::spawn(move || {
            let _used = other.lock().unwrap();
            panic!("a look breaks");
        });
        broken.join().unwrap_err();
        assert_eq!(taken(&held), Some(1));
        assert_eq!(taken(&held), None);
    }

    /// Proves that the kernel's count of what wants a processor is found, here with this thread at least, and that it
    /// is none where it is missing.
    #[test]
    fn what_wants_a_processor_is_counted() {
        assert_eq!(wanted_processors("cpu  1 2 3\nprocs_running 17\nprocs_blocked 4\n"), 17);
        assert_eq!(wanted_processors("cpu  1 2 3\nprocs_blocked 4\n"), 0);
        assert!(wanted_processors(&fs::read_to_string("/proc/stat").unwrap()) >= 1);
    }
}
