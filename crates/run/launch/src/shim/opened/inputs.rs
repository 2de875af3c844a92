//! Which of the run's data was opened while the attempt ran, and which checkpoint that was there before: events `data_opened` and
//! `checkpoint_opened` of a flight record of origin `telemetry`.
//!
//! A script may train on other files than the run file names, whose hash the receipt holds, and continue from another checkpoint than was
//! planned. The kernel reports every open of a watched file (inotify), in any language and by any name of the file. It does not
//! say by whom; the open files of the attempt's processes show it, unless the file was closed again before they could be
//! looked at. Who reads a checkpoint is found by [`super::readers`].
//!
//! A checkpoint counts as opened when it is read, before it is written to: a script that overwrites `ckpt.pt` does not continue from it.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use nix::unistd::Pid;
use trackway_adopt::{Candidate, Commits, Committed, Patterns, Place};
use trackway_core::closed_list;
use trackway_formats::EventKind;
use trackway_recorder::{Origin, SegmentWriter};

use super::readers::{By, Counts, Readers};
use crate::StoredLaunch;
use crate::process::own_descendants;
use crate::shim::checkpoints::adopting::There;
use crate::shim::side::{Records, WaitingThread};

/// Of a data set at most so many files or folders are watched.
const PLACES_MAX: usize = 4096;
/// How often the open files of the attempt's processes are looked at for one data set.
const LOOKS_MAX: u32 = 32;
/// The same for one checkpoint: others may read it, too.
const CHECKPOINT_LOOKS_MAX: u32 = 512;
/// How often it is noted how much the attempt has read, and for how long: then it has begun.
const NOTE_EVERY: Duration = Duration::from_millis(100);
const NOTES_MAX: u32 = 600;
/// Of so many notes one looks for new processes of the attempt.
const FIND_NOTES: u32 = 10;
/// At most so many checkpoints are watched, the newest ones.
const CHECKPOINTS_MAX: usize = 64;
/// Files up to so many bytes are compared with what was committed before the script starts, as it may write them again
/// at once; larger ones when they are read.
const COMPARED_EARLY_BYTES: u64 = 64 << 20;
/// What the names of source files end with.
const SOURCES: [&str; 3] = ["py", "sh", "ipynb"];
/// The longest the end of the attempt waits for the last event.
const LAST_LOOK: Duration = Duration::from_secs(2);

closed_list!(
    /// Who opened it.
    Opener, "opener of a file", {
        /// Nothing did.
        None = "none",
        /// A process that was not identified.
        Unknown = "unknown",
        /// A process of the attempt.
        Attempt = "attempt",
    }
);

/// What is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Subject {
    /// A data set.
    Data { name: String },
    /// A checkpoint that the script wrote itself, in an earlier attempt or before the run.
    Checkpoint { shown: String, place: Place, planned: bool, committed: Option<Box<Committed>> },
}

impl Subject {
    /// What is read may be a copy of what was committed, under another name. Nothing else is compared with that.
    fn is_read(&mut self, commits: &Commits, patterns: &Patterns) {
        if let Self::Checkpoint { place, committed: committed @ None, .. } = self
            && let Ok(Some(found)) = Candidate::of(place)
        {
            *committed = commits.with_same_bytes(&found, patterns, &|| true).cloned().map(Box::new);
        }
    }

    /// What the kernel is to report.
    fn mask(&self, reads_are_named: bool) -> AddWatchFlags {
        // A mapped file is closed, if it is never read.
        let reads = AddWatchFlags::IN_OPEN | AddWatchFlags::IN_ACCESS | AddWatchFlags::IN_CLOSE_NOWRITE;
        match self {
            Self::Data { .. } => AddWatchFlags::IN_OPEN,
            Self::Checkpoint { .. } if reads_are_named => AddWatchFlags::IN_MODIFY,
            Self::Checkpoint { .. } => reads | AddWatchFlags::IN_MODIFY,
        }
    }

    fn looks_max(&self) -> u32 {
        if self.is_checkpoint() { CHECKPOINT_LOOKS_MAX } else { LOOKS_MAX }
    }

    fn is_checkpoint(&self) -> bool {
        matches!(self, Self::Checkpoint { .. })
    }
}

/// The files that are watched. The kernel remembers what is opened until it is read.
#[derive(Debug)]
pub(in crate::shim) struct Watch {
    inotify: Inotify,
    sets: Vec<Watched>,
    /// What was committed, and where that was.
    known: Option<(Commits, Patterns)>,
    /// What each watched file or folder is of.
    owners: HashMap<WatchDescriptor, Vec<usize>>,
    readers: Readers,
}

/// One data set or checkpoint.
#[derive(Debug)]
struct Watched {
    subject: Subject,
    /// Device and inode of its files, or of its folders.
    inodes: BTreeSet<(u64, u64)>,
    by_folder: bool,
    paths: Vec<PathBuf>,
    /// Whether a process of the attempt had it open at some look.
    is_held: bool,
    /// What the attempt had read before a file was opened that is not closed yet.
    before: Option<Counts>,
    /// Whether a file was read, and not only mapped, since the last close.
    is_accessed: bool,
    /// Whether every file is watched: only then it is known that none was opened.
    complete: bool,
    opener: Opener,
    looks: u32,
}

impl Watch {
    /// Watches the files of each data set and of each checkpoint that is there; to be called before the script starts. `None`: there are
    /// none, or the kernel refuses, and nothing is known then. Files of an overlay are not those below it.
    pub fn of(launch: &StoredLaunch, there: Option<&There>) -> Option<Self> {
        if launch.isolation.is_some() {
            return None;
        }
        let data = launch.data_files.iter().filter(|(_, files)| !files.is_empty());
        let data = data.map(|(name, files)| (Subject::Data { name: name.clone() }, files.clone()));
        let known = there.map(|there| (Commits::of(&launch.checkpoint_root), there.patterns.clone()));
        let of_log = known.iter().zip(there);
        let checkpoints = of_log.flat_map(|((commits, _), there)| checkpoints(launch, commits, there));
        let watched: Vec<(Subject, Vec<PathBuf>)> = data.chain(checkpoints).collect();
        if watched.is_empty() {
            return None;
        }
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).ok()?;
        let readers = Readers::of(launch);
        let mut watch = Self { inotify, sets: Vec::new(), known, owners: HashMap::new(), readers };
        watched.into_iter().for_each(|(subject, places)| watch.add(subject, &places));
        Some(watch)
    }

    fn add(&mut self, subject: Subject, paths: &[PathBuf]) {
        let by_folder = paths.iter().any(|path| path.is_dir());
        let place = self.sets.len();
        let mut set = Watched {
            subject,
            inodes: BTreeSet::new(),
            by_folder,
            paths: Vec::new(),
            is_held: false,
            before: None,
            is_accessed: false,
            complete: paths.len() <= PLACES_MAX,
            opener: Opener::None,
            looks: 0,
        };
        for path in paths.iter().take(PLACES_MAX) {
            let is_named = set.subject.is_checkpoint() && self.readers.watch(path);
            let watched = self.inotify.add_watch(path, set.subject.mask(is_named));
            match (watched, fs::metadata(path)) {
                (Ok(descriptor), Ok(found)) => {
                    set.paths.push(path.clone());
                    set.inodes.insert((found.dev(), found.ino()));
                    self.owners.entry(descriptor).or_default().push(place);
                }
                _ => set.complete = false,
            }
        }
        self.sets.push(set);
    }

    /// Begins to wait for what `main` and the processes below it open.
    pub fn begin(mut self, main: Pid, records: Records) -> Option<WaitingThread> {
        self.readers.started(main);
        WaitingThread::begin("opened-files", LAST_LOOK, move |stopped| {
            let mut writer = records.writer(Origin::Telemetry);
            self.run(stopped, &mut writer);
            writer.finish();
        })
    }

    fn run(&mut self, stopped: &UnixStream, writer: &mut SegmentWriter) {
        let (mut ended, mut notes) = (false, 0);
        while !ended && !self.owners.is_empty() {
            let is_noting = notes < NOTES_MAX && !self.readers.are_named() && self.awaits_readers();
            let timeout = if is_noting { NOTE_EVERY.as_millis() as u16 } else { 0 };
            let timeout = if is_noting { PollTimeout::from(timeout) } else { PollTimeout::NONE };
            let waited = |fd| PollFd::new(fd, PollFlags::POLLIN);
            let mut waiting = vec![waited(stopped.as_fd()), waited(self.inotify.as_fd())];
            waiting.extend(self.readers.as_fd().map(waited));
            // An interrupted wait only means that the loop looks again.
            let is_quiet = poll(&mut waiting, timeout) == Ok(0);
            ended = waiting[0].any().unwrap_or(true);
            if is_quiet {
                if notes.is_multiple_of(FIND_NOTES) {
                    self.readers.find();
                }
                notes += 1;
                self.note();
            } else {
                self.take(writer);
            }
        }
        (0..self.sets.len()).for_each(|place| self.end_unclosed(place, writer));
        for set in self.sets.iter().filter(|set| set.opener == Opener::None && set.complete) {
            record(writer, set);
        }
    }

    /// Notes how much the attempt has read, if no file was opened meanwhile.
    fn note(&mut self) {
        let Self { readers, inotify, .. } = self;
        readers.note(|| {
            poll(&mut [PollFd::new(inotify.as_fd(), PollFlags::POLLIN)], PollTimeout::ZERO) != Ok(0)
        });
    }

    /// Who read what was not closed is not known.
    fn end_unclosed(&mut self, place: usize, writer: &mut SegmentWriter) {
        let set = &mut self.sets[place];
        if set.is_accessed && set.opener == Opener::None {
            set.opener = Opener::Unknown;
            self.note_opened(place, Opener::Unknown, writer);
        }
    }

    /// Whether it is open who reads a checkpoint.
    fn awaits_readers(&self) -> bool {
        self.sets.iter().any(|set| set.subject.is_checkpoint() && set.opener != Opener::Attempt)
    }

    fn take(&mut self, writer: &mut SegmentWriter) {
        self.take_named(writer);
        let mut is_closed = false;
        while let Ok(events) = self.inotify.read_events() {
            let opened = events.iter().any(|event| !event.mask.contains(AddWatchFlags::IN_IGNORED));
            // Of all that happened since: one look.
            let held =
                if opened && self.waits_for_holders() { self.readers.open_files() } else { Vec::new() };
            for set in self.sets.iter_mut().filter(|set| set.subject.is_checkpoint() && !set.is_held) {
                set.is_held = held.iter().any(|link| is_of(set, link));
            }
            for event in events {
                if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
                    self.sets.iter_mut().for_each(|set| set.complete = false);
                    continue;
                }
                // A file that is deleted has no watch any more, and was not read.
                if event.mask.contains(AddWatchFlags::IN_IGNORED) {
                    self.owners.remove(&event.wd);
                    continue;
                }
                // A folder that is listed is not data that is read.
                if event.mask.contains(AddWatchFlags::IN_ISDIR) {
                    continue;
                }
                is_closed |= event.mask.contains(AddWatchFlags::IN_CLOSE_NOWRITE);
                for place in self.owners.get(&event.wd).cloned().unwrap_or_default() {
                    match event.mask.contains(AddWatchFlags::IN_MODIFY) {
                        true => {
                            self.end_unclosed(place, writer);
                            self.leave(place);
                        }
                        false => self.opened(place, &event, writer),
                    }
                }
            }
        }
        if is_closed {
            self.note();
        }
    }

    /// Takes what the kernel says of who read.
    fn take_named(&mut self, writer: &mut SegmentWriter) {
        let Self { readers, sets, .. } = self;
        let mut read: Vec<(usize, Opener)> = Vec::new();
        let is_whole = readers.take(|link, by| {
            let opener = opener_of(by);
            let of = |(place, set): (usize, &Watched)| {
                let is_new = set.subject.is_checkpoint() && opener > set.opener;
                (is_new && is_of(set, link)).then_some(place)
            };
            let places: Vec<usize> = sets.iter().enumerate().filter_map(of).collect();
            for place in places {
                sets[place].opener = opener;
                read.push((place, opener));
            }
        });
        if !is_whole {
            sets.iter_mut().filter(|set| set.subject.is_checkpoint()).for_each(|set| set.complete = false);
        }
        for (place, opener) in read {
            self.note_opened(place, opener, writer);
        }
    }

    /// Whether it matters which files the attempt's processes have open.
    fn waits_for_holders(&self) -> bool {
        !self.readers.are_named() && self.awaits_readers()
    }

    fn opened(&mut self, place: usize, event: &InotifyEvent, writer: &mut SegmentWriter) {
        let set = &mut self.sets[place];
        if set.by_folder && event.name.is_none() {
            return;
        }
        set.looks += 1;
        let opener = match &set.subject {
            Subject::Data { .. } if is_open_in_attempt(set) => Opener::Attempt,
            Subject::Data { .. } => Opener::Unknown,
            // It is read later, if at all.
            Subject::Checkpoint { .. } if event.mask.contains(AddWatchFlags::IN_OPEN) => {
                set.before = set.before.take().or_else(|| self.readers.noted().cloned());
                Opener::None
            }
            Subject::Checkpoint { .. } => {
                let bytes = set.bytes_of(event.name.as_ref());
                let by = By::guessed(set.is_held, self.readers.grown(), bytes);
                match event.mask.contains(AddWatchFlags::IN_CLOSE_NOWRITE) {
                    true => {
                        let is_accessed = std::mem::take(&mut set.is_accessed);
                        let before = set.before.take().filter(|_| is_accessed);
                        let grown = before.and_then(|before| self.readers.grown_at_most(&before));
                        opener_of(by.at_the_close(grown, bytes))
                    }
                    // What is read on is known at the close.
                    false => {
                        set.is_accessed = true;
                        if by == By::Attempt { Opener::Attempt } else { Opener::None }
                    }
                }
            }
        };
        if opener > set.opener {
            set.opener = opener;
            self.note_opened(place, opener, writer);
        }
        // Nothing more can be learned, and a file that is opened for each row should not wake anything again.
        if self.sets[place].looks >= self.sets[place].subject.looks_max() {
            self.end_unclosed(place, writer);
            self.leave(place);
        }
    }

    /// Records who opened it, and leaves it if that is all there is to know.
    fn note_opened(&mut self, place: usize, opener: Opener, writer: &mut SegmentWriter) {
        let set = &mut self.sets[place];
        if let Some((commits, patterns)) = &self.known {
            set.subject.is_read(commits, patterns);
        }
        record(writer, set);
        if opener == Opener::Attempt {
            self.leave(place);
        }
    }

    fn leave(&mut self, place: usize) {
        if self.sets[place].subject.is_checkpoint() {
            self.sets[place].paths.iter().for_each(|path| self.readers.leave(path));
        }
        let (inotify, mut unused) = (&self.inotify, Vec::new());
        for (descriptor, owners) in &mut self.owners {
            owners.retain(|owner| *owner != place);
            if owners.is_empty() {
                unused.push(*descriptor);
            }
        }
        for descriptor in unused {
            self.owners.remove(&descriptor);
            inotify.rm_watch(descriptor).ok();
        }
    }
}

impl Watched {
    /// The size of what was read: of one of its files, or of the one that it is.
    fn bytes_of(&self, name: Option<&OsString>) -> u64 {
        let at = |path: &PathBuf| match name {
            Some(name) => path.join(name),
            None => path.clone(),
        };
        let sizes = self.paths.iter().filter_map(|path| fs::metadata(at(path)).ok()).map(|found| found.len());
        sizes.min().unwrap_or(0)
    }
}

fn opener_of(by: By) -> Opener {
    match by {
        By::Attempt => Opener::Attempt,
        By::Other => Opener::None,
        By::Unknown => Opener::Unknown,
    }
}

/// The checkpoints that are there, those that were written to last first.
fn checkpoints(
    launch: &StoredLaunch,
    commits: &Commits,
    There { patterns, places }: &There,
) -> Vec<(Subject, Vec<PathBuf>)> {
    let candidates = places.iter().filter_map(|place| Candidate::of(place).ok()?);
    let mut candidates: Vec<Candidate> = candidates.filter(|candidate| !is_source(&candidate.path)).collect();
    candidates.sort_by_key(|candidate| Reverse(candidate.modified_ns()));
    let watched = candidates.into_iter().take(CHECKPOINTS_MAX).map(|candidate| {
        let shown = patterns.shown(&candidate.path);
        let planned = launch.continues_from.as_ref().is_some_and(|from| from.path == shown);
        let bytes: u64 = candidate.files().iter().map(|file| file.size).sum();
        let copied = || {
            let is_small = bytes <= COMPARED_EARLY_BYTES;
            is_small.then(|| commits.with_same_bytes(&candidate, patterns, &|| true)).flatten()
        };
        let committed = commits.of_candidate(&candidate, patterns).or_else(copied).cloned().map(Box::new);
        let places = candidate.folders_or_files().into_iter().collect();
        (Subject::Checkpoint { shown, place: candidate.at_place(), planned, committed }, places)
    });
    watched.collect()
}

/// Source code, which a pattern such as `*` matches beside checkpoints, and which is read at each start.
fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|extension| SOURCES.iter().any(|source| extension == *source))
}

fn record(writer: &mut SegmentWriter, set: &Watched) {
    let by = ("by", set.opener.as_str());
    match &set.subject {
        Subject::Data { name } => writer.event(EventKind::DataOpened.as_str(), None, &[("data", name), by]),
        Subject::Checkpoint { shown, place, planned, committed } => {
            let said =
                || Candidate::of(place).ok().flatten().and_then(|found| found.content().recognised.step);
            let step = match (set.opener, committed) {
                (Opener::None, _) => None,
                (_, Some(commit)) => Some(commit.step),
                (_, None) => said(),
            };
            let planned = ("planned", if *planned { "yes" } else { "no" });
            let of_commit = committed.as_ref().map(|commit| {
                [("manifest_sha256", commit.manifest_sha256.as_str()), ("layout", commit.layout())]
            });
            let of_commit = of_commit.into_iter().flatten();
            let fields: Vec<_> =
                [("path", shown.as_str()), by, planned].into_iter().chain(of_commit).collect();
            writer.event(EventKind::CheckpointOpened.as_str(), step, &fields);
        }
    }
}

/// Whether a process of the attempt has one of the files open now.
fn is_open_in_attempt(set: &Watched) -> bool {
    let of_attempt = own_descendants().unwrap_or_default();
    of_attempt.iter().any(|process| process.open_files().any(|link| is_of(set, &link)))
}

fn is_of(set: &Watched, link: &Path) -> bool {
    let of =
        |path: &Path| fs::metadata(path).is_ok_and(|found| set.inodes.contains(&(found.dev(), found.ino())));
    if !set.by_folder {
        return of(link);
    }
    fs::read_link(link).is_ok_and(|target| target.is_absolute() && target.parent().is_some_and(of))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the folder is of the test")]
mod tests {
    use std::sync::Arc;

    use trackway_recorder::SegmentInfo;

    use super::*;

    /// Proves that a checkpoint which is deleted, as by the retention of a script, does not count as read, and that one
    /// which is read does, also if it is deleted afterwards.
    #[test]
    fn what_is_deleted_was_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).unwrap();
        let readers = Readers::without_kernel();
        let mut watch = Watch { inotify, sets: Vec::new(), known: None, owners: HashMap::new(), readers };
        let paths = ["deleted", "read"].map(|name| folder.path().join(name));
        for path in &paths {
            fs::write(path, "state").unwrap();
            let shown = path.display().to_string();
            let subject =
                Subject::Checkpoint { shown, place: Place::of(path), planned: false, committed: None };
            watch.add(subject, std::slice::from_ref(path));
        }
        fs::read(&paths[1]).unwrap();
        paths.iter().for_each(|path| fs::remove_file(path).unwrap());
        let (run_id, attempt_id) = (String::new(), String::new());
        let info = SegmentInfo { run_id, attempt_id, origin: Origin::Telemetry };
        let clock = Arc::new(trackway_system::SystemClock);
        let mut writer = SegmentWriter::create(folder.path(), info, clock);
        // Who watches the whole file system holds a deleted file a little longer.
        for _ in 0..100 {
            watch.take(&mut writer);
            if watch.owners.is_empty() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let openers: Vec<Opener> = watch.sets.iter().map(|set| set.opener).collect();
        assert_eq!(openers, [Opener::None, Opener::Unknown]);
        assert!(watch.owners.is_empty(), "there is nothing to wait for any more");
    }
}
