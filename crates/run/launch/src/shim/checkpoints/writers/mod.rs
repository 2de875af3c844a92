//! Who writes where the attempt has its checkpoints: named by the kernel (fanotify, for root), else seen with a file
//! open for writing, else the processes that work there and write at the time, and how much the attempt itself wrote.
//! What follows from that is decided by [`trackway_adopt::owner`].
//!
//! All of it together takes at most a hundredth of one processor, and a short burst: beyond that it rests, and less is seen.

mod amounts;
mod births;
mod family;
mod kernel;
mod neighbours;

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use trackway_adopt::{Sightings, WriterEvidence, WrittenFile, processor_time};
use trackway_core::Clock;
use trackway_core::boundary::contained;
use trackway_formats::writers::OthersTime;

use crate::StoredLaunch;
use crate::outside::awaited;
use crate::process::ProcessStat;
use crate::shim::side::WaitingThread;
use amounts::{Amounts, newest_process};
pub(in crate::shim) use amounts::{EndedProcesses, Io};
pub(in crate::shim) use family::{Family, Kin, MainProcess};
use kernel::Kernel;
use neighbours::{Neighbours, Notices};

/// How often every process of the machine is looked at, at most.
const SCAN_EVERY: Duration = Duration::from_secs(1);
/// How often what others wrote is looked at while there are others.
const OTHERS_EVERY: Duration = Duration::from_millis(50);
/// After what was written there is one more look: what it counts holds the write.
const AFTER_WRITE: Duration = Duration::from_millis(20);
/// What the attempt wrote is not counted more often than this, but where a file was finished.
const COUNT_EVERY: Duration = Duration::from_millis(5);
/// Work is followed by rests that are so many times as long.
const REST_PER_WORK: u32 = 100;
/// So much work needs no rest before it.
const BURST: Duration = Duration::from_millis(100);
/// The longest the end of the attempt waits for the last look.
const LAST_LOOK: Duration = Duration::from_secs(10);

/// Where processes may write what counts, and where Trackway itself does.
#[derive(Debug, Clone)]
struct Region {
    folders: Vec<PathBuf>,
    home: PathBuf,
}

impl Region {
    fn holds(&self, path: &Path) -> bool {
        self.folders.iter().any(|folder| path.starts_with(folder)) && !path.starts_with(&self.home)
    }
}

/// The thread that looks.
pub(in crate::shim) struct Writers {
    seen: Arc<Mutex<Sightings>>,
    thread: Option<WaitingThread>,
    has_ended: Arc<AtomicBool>,
}

/// What is seen of writers, for another thread.
#[derive(Clone)]
pub(in crate::shim) struct WriterView {
    seen: Arc<Mutex<Sightings>>,
    has_ended: Arc<AtomicBool>,
}

impl WriterView {
    /// What was seen of the writers of a file that is none of a checkpoint.
    pub fn of(&self, file: WrittenFile) -> WriterEvidence {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.of(&[file], 0, self.has_ended.load(Ordering::SeqCst))
    }
}

impl Writers {
    /// Begins to look at these folders and those below them; to be called before the script starts. Where no thread can
    /// be had nothing is seen.
    pub fn begin(
        launch: &StoredLaunch,
        folders: Vec<PathBuf>,
        (main, ended): (MainProcess, EndedProcesses),
        clock: Arc<dyn Clock>,
    ) -> Self {
        // In a container the user of a file may be another one.
        let user = launch.container.is_none().then(|| nix::unistd::geteuid().as_raw());
        let seen = Arc::new(Mutex::new(Sightings::since(clock.now().as_nanos(), user)));
        let home = launch.home();
        let region = Region { folders, home: home.canonicalize().unwrap_or_else(|_| home.to_owned()) };
        let family = Family::of_this_process(launch.attempt_id.to_string(), awaited(&launch.argv), main);
        // In a container, and of a process that was there before, they are not.
        let is_below = launch.container.is_none() && awaited(&launch.argv).is_none();
        let ended = is_below.then_some(ended);
        let mut watch = Watch::new(region, family, ended, Arc::clone(&seen), clock);
        let now_ns = watch.clock.now().as_nanos();
        contained(|| {
            watch.scan(now_ns);
            watch.count(true);
        })
        .ok();
        let thread = WaitingThread::begin("writers", LAST_LOOK, move |stopped| {
            // A file or process that is not as expected must not end the attempt.
            contained(|| watch.run(stopped)).ok();
        });
        let has_ended = Arc::new(AtomicBool::new(thread.is_none()));
        Self { seen, thread, has_ended }
    }

    /// Lets the last look be taken beside what the caller does.
    pub fn end(&mut self) {
        self.thread.iter_mut().for_each(WaitingThread::end);
    }

    /// Looks for the last time, and ends.
    pub fn finish(&mut self) {
        self.thread.take().into_iter().for_each(WaitingThread::finish);
        self.has_ended.store(true, Ordering::SeqCst);
    }

    /// The same for another thread.
    pub fn sight(&self) -> WriterView {
        WriterView { seen: Arc::clone(&self.seen), has_ended: Arc::clone(&self.has_ended) }
    }

    /// What was seen of the writers of these files since a time in nanoseconds since 1970.
    pub fn of(&self, files: &[WrittenFile], since_ns: i64) -> WriterEvidence {
        let mut seen = self.lock();
        seen.judges(files);
        seen.of(files, since_ns, self.has_ended.load(Ordering::SeqCst))
    }

    /// When others wrote, and until when the processes of the machine were looked at.
    pub fn others(&self) -> (Option<i64>, Vec<OthersTime>) {
        let seen = self.lock();
        (seen.looked_until_ns(), seen.others().to_vec())
    }

    fn lock(&self) -> MutexGuard<'_, Sightings> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is looked at, and how.
struct Watch {
    region: Region,
    family: Family,
    kernel: Option<Kernel>,
    notices: Option<Notices>,
    neighbours: Neighbours,
    amounts: Option<Amounts>,
    seen: Arc<Mutex<Sightings>>,
    clock: Arc<dyn Clock>,
    begun_micros: i64,
    scanned_micros: Option<i64>,
    counted_micros: Option<i64>,
    /// Whether something was written there at the last look.
    is_after_write: bool,
}

impl Watch {
    fn new(
        region: Region,
        family: Family,
        ended: Option<EndedProcesses>,
        seen: Arc<Mutex<Sightings>>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let kernel = Kernel::open(&region, ended.is_some());
        let notices = if kernel.is_none() { Notices::open(&region) } else { None };
        // Of processes that others wait for, such as those in a container, the counts go elsewhere.
        let amounts =
            ended.and_then(|ended| Amounts::of(&region, ended)).map(|(amounts, devices, on_disk)| {
                seen.lock().unwrap_or_else(PoisonError::into_inner).counts_on(devices, on_disk);
                amounts
            });
        Self {
            family,
            neighbours: Neighbours::new(&region),
            amounts,
            kernel,
            notices,
            region,
            seen,
            begun_micros: clock.monotonic_micros(),
            clock,
            scanned_micros: None,
            counted_micros: None,
            is_after_write: false,
        }
    }

    fn run(&mut self, stopped: &UnixStream) {
        loop {
            let ended = self.wait(stopped);
            self.look(ended);
            if ended {
                return;
            }
            // What is above the allowed part of a processor is followed by a rest; what happens meanwhile is kept by the kernel.
            if let Some(rest) = self.rest()
                && waited([stopped.as_fd()], rest)
            {
                self.look(true);
                return;
            }
        }
    }

    /// Waits until something is written, or it is time to look. Whether the attempt has ended.
    fn wait(&self, stopped: &UnixStream) -> bool {
        let is_crowded = self.kernel.is_none() && !self.neighbours.is_empty();
        let longest = match (self.is_after_write && self.amounts.is_some(), is_crowded) {
            (true, _) => AFTER_WRITE,
            (false, true) => OTHERS_EVERY,
            (false, false) => SCAN_EVERY,
        };
        let kernel = self.kernel.as_ref().map(Kernel::as_fd);
        let notices = self.notices.as_ref().map(Notices::as_fd);
        let fds = [Some(stopped.as_fd()), kernel, notices];
        waited(fds.into_iter().flatten(), longest)
    }

    /// The first descriptor of the wait is the end of the attempt.
    fn look(&mut self, ended: bool) {
        // A write that is not finished yet is in no count, and its file is open.
        let mut looks_at_files = self.is_after_write && self.kernel.is_none();
        // What was written until then is known after this look.
        let now_ns = self.clock.now().as_nanos();
        if let Some(kernel) = &mut self.kernel {
            let (region, family) = (&self.region, &mut self.family);
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            self.is_after_write = kernel.take(region, family, &mut seen, &*self.clock);
        }
        let is_finished = self.notice();
        looks_at_files |= self.notices.is_some() && self.is_after_write;
        // Who wrote next must not be in the counts of a file that is finished; of one that is not, it counts more who has it open.
        if is_finished {
            self.count(true);
            self.neighbours.look_at_others(now_ns, &self.seen, &*self.clock);
        }
        let rests = self.scanned_micros.is_some_and(|at| self.since(at) < SCAN_EVERY);
        match (ended || !rests, looks_at_files) {
            (true, _) => self.scan(now_ns),
            (false, true) => {
                self.neighbours.look_at_open_files(&self.region, &mut self.family, &self.seen, &*self.clock);
            }
            (false, false) => {}
        }
        if rests && !ended && !is_finished {
            self.neighbours.look_at_others(now_ns, &self.seen, &*self.clock);
        }
        self.count(ended || !rests);
    }

    /// Notes the state of the files that were written since the last look. Whether one was finished.
    fn notice(&mut self) -> bool {
        let Some(notices) = &mut self.notices else { return false };
        let noticed = notices.take(&self.region);
        self.is_after_write = noticed.is_some();
        let mut has_finished = false;
        for (path, is_finished) in noticed.into_iter().flatten().filter(|(path, _)| self.region.holds(path)) {
            let Some(file) = WrittenFile::at(&path) else { continue };
            has_finished |= is_finished;
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.noticed(file, is_finished, self.clock.now().as_nanos());
        }
        has_finished
    }

    /// How much the attempt wrote by now.
    fn count(&mut self, is_due: bool) {
        let is_early = self.counted_micros.is_some_and(|at| self.since(at) < COUNT_EVERY);
        let Some(amounts) = self.amounts.as_mut().filter(|_| is_due || !is_early) else { return };
        let amount = amounts.count(&mut self.family, &*self.clock);
        self.counted_micros = Some(self.clock.monotonic_micros());
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        amount.into_iter().for_each(|amount| seen.counted(amount));
    }

    fn scan(&mut self, until_ns: i64) {
        let sees_writers = self.kernel.is_some();
        let newest = newest_process();
        let own: Vec<ProcessStat> = self.neighbours.scan(
            until_ns,
            (&self.region, sees_writers),
            &mut self.family,
            &self.seen,
            &*self.clock,
        );
        self.amounts.iter_mut().for_each(|amounts| amounts.scanned(newest, &own));
        self.scanned_micros = Some(self.clock.monotonic_micros());
    }

    fn since(&self, micros: i64) -> Duration {
        Duration::from_micros(u64::try_from(self.clock.monotonic_micros() - micros).unwrap_or(0))
    }

    fn rest(&self) -> Option<Duration> {
        let allowed = BURST + self.since(self.begun_micros) / REST_PER_WORK;
        let beyond = processor_time().saturating_sub(allowed);
        (!beyond.is_zero()).then(|| (beyond * REST_PER_WORK).min(Duration::from_secs(30)))
    }
}

/// Waits for one of these descriptors, the first of which is the end of the attempt: whether that is what came.
fn waited<'f>(fds: impl IntoIterator<Item = BorrowedFd<'f>>, longest: Duration) -> bool {
    let mut waiting: Vec<PollFd<'_>> = fds.into_iter().map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
    let millis = i32::try_from(longest.as_millis()).unwrap_or(i32::MAX);
    // An interrupted wait only means that it is looked earlier.
    poll(&mut waiting, PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)).ok();
    waiting.first().is_some_and(|first| first.any().unwrap_or(true))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the folder is of the test")]
mod tests {
    use std::collections::BTreeMap;
    use std::process::{Child, Command};

    use trackway_adopt::{Company, WrittenFile};
    use trackway_system::SystemClock;

    use super::*;

    /// Saves a file of a thousand bytes again and again: folder, times, seconds between.
    const SAVES: &str = "x=$(printf '%01000d' 0); i=0; mkdir -p $1; \
        while [ $i -lt $2 ]; do i=$((i + 1)); sleep $3; printf %s $x > $1/tmp; mv $1/tmp $1/ckpt-$i; done; sleep 0.3";

    fn saves(folder: &Path, working: &Path, times: u32, seconds: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", SAVES, "sh", folder.to_str().unwrap(), &times.to_string(), seconds]);
        command.current_dir(working);
        command
    }

    /// How many saves of an attempt in `own` and of another process in `other` count as the attempt's, which works in `works_in`.
    fn counted_as_own(works_in: &Path, base: &Path, offset: Duration) -> BTreeMap<&'static str, usize> {
        let (own, other) = (base.join("own"), base.join("other"));
        let region = Region { folders: vec![base.to_owned()], home: "/absent".into() };
        // The other one is a child of the test too: it does not count as one of the attempt as long as the shim is another.
        let main = MainProcess::default();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let seen = Arc::new(Mutex::new(Sightings::since(clock.now().as_nanos(), None)));
        let family = Family::of_this_process("att_x".into(), None, MainProcess::clone(&main)).below(i32::MAX);
        let ended = EndedProcesses::default();
        let mut watch = Watch::new(region.clone(), family, Some(ended), Arc::clone(&seen), clock);
        // As an ordinary user.
        (watch.kernel, watch.notices) = (None, Notices::open(&region));
        let (stop, stopped) = UnixStream::pair().unwrap();
        watch.scan(watch.clock.now().as_nanos());
        watch.count(true);
        let looks = std::thread::spawn(move || watch.run(&stopped));
        let mut attempt: Child =
            saves(&own, base, 10, "0.15").env("TRACKWAY_ATTEMPT", "att_x").spawn().unwrap();
        std::thread::sleep(offset);
        let mut foreign = saves(&other, works_in, 10, "0.15").spawn().unwrap();
        attempt.wait().unwrap();
        foreign.wait().unwrap();
        std::thread::sleep(Duration::from_millis(200));
        drop(stop);
        looks.join().unwrap();
        let seen = seen.lock().unwrap();
        let is_own = |path: &Path| {
            let file = WrittenFile::at(path).unwrap();
            let found = seen.of(&[file], 0, true);
            let is_open = found.open.own && found.open.other.is_none();
            is_open || found.open.other.is_none() && found.company == Company::Alone && found.less.is_none()
        };
        let count =
            |folder: &Path| (1..=10).filter(|number| is_own(&folder.join(format!("ckpt-{number}")))).count();
        BTreeMap::from([("own", count(&own)), ("other", count(&other))])
    }

    /// Proves that no save of another process is the attempt's, wherever that works, also where both save small files at the same time.
    #[test]
    fn no_file_of_another_is_paid_for_by_an_own_one() {
        let mut own = 0;
        for (works_in, offset_ms) in [(Some("/"), 0), (Some("/"), 10), (None, 20)] {
            let folder = tempfile::tempdir().unwrap();
            let base = folder.path().canonicalize().unwrap();
            let works_in = works_in.map_or(base.clone(), PathBuf::from);
            let found = counted_as_own(&works_in, &base, Duration::from_millis(offset_ms));
            own += found["own"];
            assert_eq!(found["other"], 0, "{works_in:?}, {offset_ms} ms: {found:?}");
        }
        // How many depends on how busy the machine is.
        assert!(own > 0);
    }
}
