//! Who writes where the attempt has its checkpoints: named by the kernel (fanotify, for root), else seen with a file open for writing, else the
//! processes that work there and write at the time, and how much the attempt itself wrote. What follows from that is decided by [`trackway_adopt::owner`].
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
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use trackway_adopt::{Patterns, Seen, Sightings, WrittenFile, processor_time};
use trackway_core::Clock;
use trackway_core::boundary::contained;
use trackway_formats::writers::OthersTime;

use super::side::SideThread;
use crate::StoredLaunch;
use crate::outside::awaited;
use crate::process::ProcessStat;
use amounts::{Amounts, newest_process};
pub(super) use family::{Family, Kin, MainProcess};
use kernel::Kernel;
use neighbours::{Neighbours, Notices};

/// How often every process of the machine is looked at, at most.
const SCAN_EVERY: Duration = Duration::from_secs(1);
/// How often what others wrote is looked at while there are others.
const OTHERS_EVERY: Duration = Duration::from_millis(50);
/// After what was written there is one more look: what it counts holds the write.
const AFTER_WRITE: Duration = Duration::from_millis(20);
/// What the attempt wrote is not counted more often than this.
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
pub(super) struct Writers {
    seen: Arc<Mutex<Sightings>>,
    /// Closed to end the wait.
    stop: Option<UnixStream>,
    thread: Option<SideThread>,
    has_ended: bool,
}

impl Writers {
    /// Begins to look; to be called before the script starts. Where no thread can be had nothing is seen.
    pub fn begin(
        launch: &StoredLaunch,
        patterns: &Patterns,
        main: MainProcess,
        clock: Arc<dyn Clock>,
    ) -> Self {
        // In a container the user of a file may be another one.
        let user = launch.container.is_none().then(|| nix::unistd::geteuid().as_raw());
        let seen = Arc::new(Mutex::new(Sightings::since(clock.now().as_nanos(), user)));
        let home = launch.home();
        let region = Region {
            folders: patterns.region(),
            home: home.canonicalize().unwrap_or_else(|_| home.to_owned()),
        };
        let family = Family::of_this_process(launch.attempt_id.to_string(), awaited(&launch.argv), main);
        // In a container, and of a process that was there before, they are not.
        let is_below = launch.container.is_none() && awaited(&launch.argv).is_none();
        let mut watch = Watch::new(region, family, is_below, Arc::clone(&seen), clock);
        let now_ns = watch.clock.now().as_nanos();
        contained(|| {
            watch.scan(now_ns);
            watch.count(true);
        })
        .ok();
        let (stop, thread) = match UnixStream::pair() {
            Ok((stop, stopped)) => {
                let work = move |_: &Receiver<()>| {
                    // A file or process that is not as expected must not end the attempt.
                    contained(|| watch.run(&stopped)).ok();
                };
                (Some(stop), SideThread::begin("writers", LAST_LOOK, work))
            }
            Err(_) => (None, None),
        };
        let has_ended = thread.is_none();
        Self { seen, stop, thread, has_ended }
    }

    /// Looks for the last time, and ends.
    pub fn finish(&mut self) {
        self.stop.take();
        self.thread.take().and_then(SideThread::finish);
        self.has_ended = true;
    }

    /// What was seen of the writers of these files since a time in nanoseconds since 1970.
    pub fn of(&self, files: &[WrittenFile], since_ns: i64) -> Seen {
        self.lock().of(files, since_ns, self.has_ended)
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
        is_below: bool,
        seen: Arc<Mutex<Sightings>>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let kernel = Kernel::open(&region, is_below);
        let notices = if kernel.is_none() { Notices::open(&region) } else { None };
        // Of processes that others wait for, such as those in a container, the counts go elsewhere.
        let amounts = is_below.then(|| Amounts::of(&region)).flatten().map(|(amounts, devices)| {
            seen.lock().unwrap_or_else(PoisonError::into_inner).counts_on(devices);
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
        let mut is_new = false;
        // What was written until then is known after this look.
        let now_ns = self.clock.now().as_nanos();
        if let Some(kernel) = &mut self.kernel {
            let (region, family) = (&self.region, &mut self.family);
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            self.is_after_write = kernel.take(region, family, &mut seen, &*self.clock);
        }
        if let Some(notices) = &mut self.notices {
            is_new = notices.take(&self.region);
            self.is_after_write = is_new;
        }
        let rests = self.scanned_micros.is_some_and(|at| self.since(at) < SCAN_EVERY);
        match (ended || !rests, is_new) {
            (true, _) => self.scan(now_ns),
            (false, true) => {
                self.neighbours.look_at_open_files(&self.region, &mut self.family, &self.seen, &*self.clock);
                self.neighbours.look_at_others(now_ns, &self.seen, &*self.clock);
            }
            (false, false) => self.neighbours.look_at_others(now_ns, &self.seen, &*self.clock),
        }
        self.count(ended || !rests);
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
