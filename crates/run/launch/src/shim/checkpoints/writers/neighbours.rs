//! Processes beside the attempt, as every user can see them: which work in the region, who has a file there open for writing, and who wrote
//! something since the last look.
//!
//! A shell that waits, an editor or a reader of logs works there too and writes nothing: the kernel counts for each
//! process what it and its ended children wrote.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};
use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use trackway_adopt::{How, Sightings, Who};
use trackway_core::Clock;

use super::Region;
use super::family::{Family, Kin};
use crate::process::{ProcessStat, all_processes};

/// Folders in which writes are noticed.
const FOLDERS_MAX: usize = 256;
/// Processes whose counters are read between two looks at all.
const NEIGHBOURS_MAX: usize = 256;
/// Files of one look whose state is noted.
const NOTICED_MAX: usize = 1024;
/// The kernel's own processes are below this one.
const KERNEL_THREADS: i32 = 2;

/// How much a process has written, by what can be read of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    /// Bytes, with those of its children that have ended.
    Bytes(u64),
    /// Where these cannot be read: how long processors worked for it.
    Ticks(u64),
}

#[derive(Debug)]
struct Neighbour {
    start_ticks: u64,
    parent: i32,
    who: String,
    count: Count,
    /// What it wrote later than this is not in the counter: when that was read last, or just before.
    counted_ns: i64,
}

/// What became of a neighbour since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Now {
    /// Also of one that has ended, until its parent knows that.
    Counts(Count),
    /// Its counters cannot be read any more.
    Ended,
    /// Its counters are in those of its parent.
    Gone,
}

/// Which processes work in the region and do not belong to the attempt.
#[derive(Debug)]
pub(super) struct Neighbours {
    standing: HashMap<i32, Neighbour>,
    /// When all processes were looked at last.
    scanned_ns: Option<i64>,
    /// Whether the bytes that reach a disk say nothing, since the files are in memory.
    in_memory: bool,
}

impl Neighbours {
    pub fn new(region: &Region) -> Self {
        let is_memory = |folder: &PathBuf| {
            let there = folder.ancestors().find(|folder| folder.exists());
            there
                .and_then(|folder| statfs(folder).ok())
                .is_some_and(|found| found.filesystem_type() == TMPFS_MAGIC)
        };
        let in_memory = region.folders.iter().any(is_memory);
        Self { standing: HashMap::new(), scanned_ns: None, in_memory }
    }

    pub fn is_empty(&self) -> bool {
        self.standing.is_empty()
    }

    /// Looks at every process, for what was written until then. Returns those of the attempt. `sees_writers`: the
    /// kernel names the writers, so that open files need not be looked at.
    pub fn scan(
        &mut self,
        until_ns: i64,
        (region, sees_writers): (&Region, bool),
        family: &mut Family,
        seen: &Mutex<Sightings>,
        clock: &dyn Clock,
    ) -> Vec<ProcessStat> {
        // What one writes that begins after this is found by the next look.
        let begun_ns = clock.now().as_nanos();
        let Ok(all) = all_processes() else { return Vec::new() };
        let from_ns = self.scanned_ns;
        self.look_at_others(until_ns, seen, clock);
        let now_ns = clock.now().as_nanos();
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let by_number: HashMap<i32, &ProcessStat> = all.iter().map(|stat| (stat.pid, stat)).collect();
        let (mut living, mut of_attempt) = (BTreeSet::new(), Vec::new());
        for stat in &all {
            if stat.parent == KERNEL_THREADS || stat.pid == KERNEL_THREADS {
                continue;
            }
            living.insert(stat.pid);
            match family.kin_among(stat, &by_number) {
                Kin::Own => {
                    of_attempt.push(stat.clone());
                    if sees_writers {
                        continue;
                    }
                    opened_by(stat.pid, region).for_each(|id| seen.saw(How::Open, id, Who::Own, now_ns));
                }
                Kin::Stranger(who) if !stat.has_ended() => {
                    let open: Vec<(u64, u64)> = opened_by(stat.pid, region).collect();
                    let cwd = fs::read_link(format!("/proc/{}/cwd", stat.pid));
                    if open.is_empty() && !cwd.is_ok_and(|cwd| region.holds(&cwd)) {
                        continue;
                    }
                    for id in open {
                        seen.saw(How::Open, id, Who::Other(who.clone()), now_ns);
                    }
                    self.meets(stat, who, from_ns, now_ns, &mut seen);
                }
                _ => {}
            }
        }
        family.keep(&living);
        self.scanned_ns = Some(begun_ns);
        seen.looked(until_ns);
        of_attempt
    }

    /// A process works there. What a new one wrote before, it wrote since the last look at all of them.
    fn meets(
        &mut self,
        stat: &ProcessStat,
        who: String,
        from_ns: Option<i64>,
        now_ns: i64,
        seen: &mut Sightings,
    ) {
        let is_known = self.standing.get(&stat.pid).is_some_and(|one| one.start_ticks == stat.start_ticks);
        if is_known {
            return;
        }
        if self.standing.len() >= NEIGHBOURS_MAX {
            // What is not followed may have written.
            seen.wrote_beside(&who, from_ns.unwrap_or(now_ns), now_ns);
            return;
        }
        let count = count_of(stat, self.in_memory);
        if let Some(from_ns) = from_ns.filter(|_| count != Count::Bytes(0)) {
            seen.wrote_beside(&who, from_ns, now_ns);
        }
        let (start_ticks, parent) = (stat.start_ticks, stat.parent);
        self.standing.insert(stat.pid, Neighbour { start_ticks, parent, who, count, counted_ns: now_ns });
    }

    /// Notes who wrote something since the last look, and at least until then.
    pub fn look_at_others(&mut self, until_ns: i64, seen: &Mutex<Sightings>, clock: &dyn Clock) {
        // What is written while the counters are read is in these or in the next ones.
        let begun_ns = clock.now().as_nanos();
        let found: HashMap<i32, Now> =
            self.standing.iter().map(|(pid, one)| (*pid, one.now(*pid, self.in_memory))).collect();
        // After the counters: what they count was written before.
        let now_ns = clock.now().as_nanos();
        let wrote = self.standing.iter().filter(|(pid, one)| self.has_written(one, found[*pid], &found));
        let wrote: Vec<(String, i64)> = wrote.map(|(_, one)| (one.who.clone(), one.counted_ns)).collect();
        self.standing.retain(|pid, one| match found[pid] {
            Now::Counts(count) => {
                (one.count, one.counted_ns) = (count, begun_ns);
                true
            }
            Now::Ended | Now::Gone => false,
        });
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        wrote.iter().for_each(|(who, from_ns)| seen.wrote_beside(who, *from_ns, now_ns));
        if seen.looked_until_ns().is_some() {
            seen.looked(until_ns);
        }
    }

    /// Whether a neighbour wrote something, or may have. One that is gone did not if its parent, to whose count its own
    /// was added, still has the count from before; else it is the parent that is named, while it lives.
    fn has_written(&self, one: &Neighbour, now: Now, all: &HashMap<i32, Now>) -> bool {
        match now {
            Now::Counts(count) => count != one.count,
            Now::Ended => true,
            // The parent is read after the child was found to be gone.
            Now::Gone => !self.standing.get(&one.parent).is_some_and(|parent| {
                let is_counted =
                    matches!(all.get(&one.parent), Some(Now::Counts(count)) if *count != parent.count);
                matches!(parent.count, Count::Bytes(_))
                    && (is_counted || parent.now(one.parent, self.in_memory) == Now::Counts(parent.count))
            }),
        }
    }

    /// Notes who has files of the region open for writing: the attempt's processes and those that work there.
    pub fn look_at_open_files(
        &self,
        region: &Region,
        family: &mut Family,
        seen: &Mutex<Sightings>,
        clock: &dyn Clock,
    ) {
        let own = family.own().into_iter().map(|pid| (pid, Who::Own));
        let others = self.standing.iter().map(|(pid, one)| (*pid, Who::Other(one.who.clone())));
        for (pid, who) in own.chain(others) {
            for id in opened_by(pid, region) {
                let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                seen.saw(How::Open, id, who.clone(), clock.now().as_nanos());
            }
        }
    }
}

impl Neighbour {
    fn now(&self, pid: i32, in_memory: bool) -> Now {
        let stat = ProcessStat::read(pid).ok().flatten().filter(|stat| stat.start_ticks == self.start_ticks);
        let Some(stat) = stat else { return Now::Gone };
        match count_of(&stat, in_memory) {
            Count::Ticks(_) if stat.has_ended() => Now::Ended,
            count => Now::Counts(count),
        }
    }
}

/// The files of the region that a process has open for writing, as far as they can be seen. The permissions of a link in `/proc/PID/fd` say
/// how a file was opened.
fn opened_by<'r>(pid: i32, region: &'r Region) -> impl Iterator<Item = (u64, u64)> + use<'r> {
    const WRITABLE: u32 = 0o200;
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let link = entry.path();
        // First what leaves most of them out, such as sockets and pipes: a process may have hundreds.
        let is_there = fs::read_link(&link).is_ok_and(|target| region.holds(&target));
        let is_writable =
            is_there && fs::symlink_metadata(&link).is_ok_and(|found| found.mode() & WRITABLE != 0);
        let found = is_writable.then(|| fs::metadata(&link).ok()).flatten().filter(fs::Metadata::is_file)?;
        Some((found.dev(), found.ino()))
    })
}

fn count_of(stat: &ProcessStat, in_memory: bool) -> Count {
    let name = if in_memory { "wchar: " } else { "write_bytes: " };
    let counted = fs::read_to_string(format!("/proc/{}/io", stat.pid))
        .ok()
        .and_then(|text| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()));
    counted.map_or(Count::Ticks(stat.cpu_ticks), Count::Bytes)
}

/// Reports that something was written in the region (inotify), though not by whom.
#[derive(Debug)]
pub(super) struct Notices {
    inotify: Inotify,
    folders: HashMap<WatchDescriptor, PathBuf>,
    /// What is there already, to know later how much is added to it.
    there: Noticed,
}

/// Files that were written or renamed, and whether their writer closed them.
pub(super) type Noticed = BTreeMap<PathBuf, bool>;

impl Notices {
    pub fn open(region: &Region) -> Option<Self> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).ok()?;
        let mut notices = Self { inotify, folders: HashMap::new(), there: Noticed::new() };
        let mut there = Noticed::new();
        region.folders.iter().for_each(|folder| notices.add(folder, region, &mut there));
        notices.there = there;
        Some(notices)
    }

    /// Watches a folder and those below it, but not hidden ones. `files`: gets those that are there already.
    fn add(&mut self, folder: &Path, region: &Region, files: &mut Noticed) {
        let flags = AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_MOVED_TO
            | AddWatchFlags::IN_MODIFY
            | AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_ONLYDIR;
        let mut folders = vec![folder.to_owned()];
        let mut met = HashSet::new();
        while let Some(folder) = folders.pop() {
            if self.folders.len() >= FOLDERS_MAX || !region.holds(&folder) || !met.insert(folder.clone()) {
                continue;
            }
            let Ok(descriptor) = self.inotify.add_watch(&folder, flags) else { continue };
            self.folders.insert(descriptor, folder.clone());
            let mut folders_left = FOLDERS_MAX;
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() && !is_hidden && folders_left > 0 => {
                        folders_left -= 1;
                        folders.push(entry.path());
                    }
                    Ok(kind) if kind.is_file() && files.len() < NOTICED_MAX => {
                        files.entry(entry.path()).or_insert(false);
                    }
                    _ => {}
                }
            }
        }
    }

    /// What was written since the last call; none: nothing was.
    pub fn take(&mut self, region: &Region) -> Option<Noticed> {
        let (mut is_new, mut files) = (!self.there.is_empty(), std::mem::take(&mut self.there));
        while let Ok(events) = self.inotify.read_events() {
            is_new |= !events.is_empty();
            for event in events {
                if event.mask.contains(AddWatchFlags::IN_IGNORED) {
                    self.folders.remove(&event.wd);
                    continue;
                }
                let (Some(folder), Some(name)) = (self.folders.get(&event.wd), &event.name) else { continue };
                let path = folder.join(name);
                if event.mask.contains(AddWatchFlags::IN_ISDIR) {
                    self.add(&path, region, &mut files);
                } else if files.len() < NOTICED_MAX {
                    let ends = AddWatchFlags::IN_CLOSE_WRITE | AddWatchFlags::IN_MOVED_TO;
                    *files.entry(path).or_insert(false) |= event.mask.intersects(ends);
                }
            }
        }
        is_new.then_some(files)
    }

    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the folder is of the test")]
mod tests {
    use std::process::{Child, Command};
    use std::time::Duration;

    use trackway_system::SystemClock;

    use super::super::family::MainProcess;
    use super::*;

    /// Who wrote beside an attempt that is not the parent of any process, while a shell runs these commands in the region.
    fn others_of(commands: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let folders = vec![folder.path().canonicalize().unwrap()];
        let region = Region { folders, home: "/absent".into() };
        // Another shim than this process, whose children would be the attempt's.
        let mut family =
            Family::of_this_process("att_x".into(), None, MainProcess::default()).below(i32::MAX);
        let seen = Mutex::new(Sightings::since(0, None));
        let mut neighbours = Neighbours::new(&region);
        let started: Child =
            Command::new("sh").args(["-c", commands]).current_dir(folder.path()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(200));
        for _ in 0..15 {
            let now_ns = SystemClock.now().as_nanos();
            neighbours.scan(now_ns, (&region, false), &mut family, &seen, &SystemClock);
            std::thread::sleep(Duration::from_millis(40));
        }
        let mut started = started;
        started.kill().ok();
        started.wait().unwrap();
        let seen = seen.lock().unwrap();
        seen.others().iter().map(|one| one.who.clone()).collect()
    }

    /// Proves that a process that ended without a write is none that wrote, and that one is which did.
    #[test]
    fn a_loop_that_waits_writes_nothing() {
        let waits = others_of("while true; do sleep 0.05; done");
        assert_eq!(waits, Vec::<String>::new());
        let writes = others_of("while true; do sleep 0.05; cp /bin/sh copy; done");
        assert!(!writes.is_empty());
    }
}
