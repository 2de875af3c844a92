//! How much the attempt's processes write, by the kernel's count of each of them and of its children that have ended:
//! what a file has more than that, another one wrote.
//!
//! What is not sure counts as a gap, and between its two sides nothing is said: a process of the attempt that ended
//! with bytes that are in no other count, or one whose count cannot be read.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Display;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::statfs::{
    BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, FsType, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC, XFS_SUPER_MAGIC, statfs,
};
use trackway_adopt::Amount;
use trackway_core::Clock;

use super::Region;
use super::family::{Family, Kin};
use crate::process::{ProcessIdentity, ProcessStat};

/// New processes between two looks that are looked at one by one; after more of them the next look at all shows them.
const NEW_MAX: i32 = 256;
/// Processes of the attempt whose counts are read.
const OWN_MAX: usize = 512;
/// Ended processes that are remembered until the next look.
const ENDED_MAX: usize = 4096;
/// How often a look begins again because a process ended meanwhile.
const TRIES: u32 = 3;
/// The bit of `SIGCHLD` in a set of signals: the counts of the children of a parent that ignores it are lost.
const SIGCHLD_BIT: u64 = 1 << 16;

/// Which of the kernel's counts has what is written to a file of the region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    /// What is to reach the disk: all of a new file, and nothing of what is printed.
    ToDisk,
    /// What was passed to be written, anywhere: also what is printed.
    All,
}

impl Counted {
    /// None where another machine may write, or the counts mean something else.
    fn on(kind: FsType) -> Option<Self> {
        match kind {
            EXT4_SUPER_MAGIC | XFS_SUPER_MAGIC | BTRFS_SUPER_MAGIC => Some(Self::ToDisk),
            TMPFS_MAGIC | OVERLAYFS_SUPER_MAGIC => Some(Self::All),
            _ => None,
        }
    }
}

/// What a process and its ended children wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::shim) struct Io {
    /// What was passed to be written.
    chars: u64,
    to_disk: u64,
}

impl Io {
    pub fn of_this_process() -> Option<Self> {
        Self::of("self")
    }

    fn of(pid: impl Display) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/io")).ok()?)
    }

    fn parse(io: &str) -> Option<Self> {
        let field = |name: &str| {
            let value = io.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            value.and_then(|value| value.trim().parse::<u64>().ok())
        };
        Some(Self { chars: field("wchar")?, to_disk: field("write_bytes")? })
    }

    const fn since(self, before: Self) -> Self {
        let chars = self.chars.saturating_sub(before.chars);
        Self { chars, to_disk: self.to_disk.saturating_sub(before.to_disk) }
    }

    const fn and(self, other: Self) -> Self {
        let chars = self.chars.saturating_add(other.chars);
        Self { chars, to_disk: self.to_disk.saturating_add(other.to_disk) }
    }
}

/// A process that ended, and what it had written if that is known.
type EndedProcess = (i32, Option<Io>);

/// The processes that the shim waited for since the last look, with what they wrote; none: that is not known.
#[derive(Debug, Clone, Default)]
pub(in crate::shim) struct EndedProcesses(Arc<Mutex<Vec<EndedProcess>>>);

impl EndedProcesses {
    /// This process was waited for. What it wrote is since then in the counts of the shim, which were these before; its
    /// own are not shown to every user between its end and that.
    pub fn put(&self, pid: i32, before: Option<Io>) {
        let io = before.and_then(|before| Some(Io::of_this_process()?.since(before)));
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < ENDED_MAX {
            all.push((pid, io));
        }
    }

    /// None: those are not all.
    fn take(&self) -> Option<Vec<(i32, Io)>> {
        let all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let known = all.into_iter().map(|(pid, io)| Some((pid, io?))).collect::<Option<Vec<_>>>();
        known.filter(|all| all.len() < ENDED_MAX)
    }
}

/// A process of the attempt as it was counted last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Own {
    start_ticks: u64,
    parent: i32,
    io: Io,
}

/// The counts of the attempt's processes.
#[derive(Debug)]
pub(super) struct Amounts {
    shim: i32,
    own: HashMap<i32, Own>,
    /// Those that were found since, and are not counted yet.
    found: BTreeSet<ProcessIdentity>,
    ended: EndedProcesses,
    wrote: Io,
    series: u32,
    /// The number up to which every process was looked at; none if some were not.
    looked_to: Option<i32>,
}

impl Amounts {
    /// With the devices of the region, and whether what is written there is in what reaches a disk. None where the counts say nothing.
    pub fn of(region: &Region, ended: EndedProcesses) -> Option<(Self, Vec<u64>, bool)> {
        let mut kinds = Vec::new();
        let mut devices = Vec::new();
        for folder in &region.folders {
            let there = folder.ancestors().find(|folder| folder.exists())?;
            kinds.push(Counted::on(statfs(there).ok()?.filesystem_type())?);
            devices.push(fs::metadata(there).ok()?.dev());
        }
        let on_disk = kinds.iter().all(|kind| *kind == Counted::ToDisk);
        let amounts = Self {
            shim: std::process::id() as i32,
            own: HashMap::new(),
            found: BTreeSet::new(),
            ended,
            wrote: Io::default(),
            series: 0,
            looked_to: None,
        };
        Some((amounts, devices, on_disk))
    }

    /// Every process was looked at that had a number by then, and these are the attempt's.
    pub fn scanned(&mut self, newest: Option<i32>, own: &[ProcessStat]) {
        self.found.extend(own.iter().map(ProcessStat::identity));
        self.looked_to = newest;
        if own.iter().any(|stat| ignores_children(stat.pid)) {
            self.series += 1;
        }
    }

    /// Counts. None: processes came and went too fast for that.
    pub fn count(&mut self, family: &mut Family, clock: &dyn Clock) -> Option<Amount> {
        let from_ns = clock.now().as_nanos();
        let is_whole = self.find_new(family);
        let counted = (0..TRIES).find_map(|_| self.read());
        // After the counts: one that was waited for meanwhile is in both.
        let ended = self.ended.take();
        let Some((mut now, are_shown)) = counted else {
            self.series += 1;
            return None;
        };
        let is_gap = ended.is_none() || has_gap(&self.own, &now, self.shim);
        self.series += u32::from(is_gap);
        self.wrote = self.wrote.and(risen(&self.own, &now));
        for (pid, io) in ended.into_iter().flatten() {
            self.wrote = self.wrote.and(last_rise(pid, io, &self.own, &mut now));
        }
        self.own = now;
        self.found.clear();
        let until_ns = clock.now().as_nanos();
        let Io { chars, to_disk } = self.wrote;
        let is_whole = is_whole && are_shown;
        Some(Amount { from_ns, until_ns, chars, to_disk, is_whole, series: self.series })
    }

    /// Looks at the processes that were started since the last look. Whether those were all.
    fn find_new(&mut self, family: &mut Family) -> bool {
        let (Some(from), Some(to)) = (self.looked_to, newest_process()) else { return false };
        if to < from || to - from > NEW_MAX {
            self.looked_to = None;
            return false;
        }
        for pid in from + 1..=to {
            if is_process(pid)
                && let Ok(Some(stat)) = ProcessStat::read(pid)
                && family.kin_of(&stat) == Kin::Own
            {
                self.found.insert(stat.identity());
            }
        }
        self.looked_to = Some(to);
        true
    }

    /// The counts now, and whether all show theirs: one that is waited for next does to no one but root, and is as it
    /// was. A parent is read after its child was found to be gone: it may have the count of that. None: one ended
    /// meanwhile.
    fn read(&self) -> Option<(HashMap<i32, Own>, bool)> {
        let known =
            self.own.iter().map(|(pid, own)| ProcessIdentity { pid: *pid, start_ticks: own.start_ticks });
        let all: BTreeSet<ProcessIdentity> = known.chain(self.found.iter().copied()).collect();
        if all.len() > OWN_MAX {
            return None;
        }
        let living = all.into_iter().filter_map(|one| {
            ProcessStat::read(one.pid).ok().flatten().filter(|stat| stat.start_ticks == one.start_ticks)
        });
        let living: Vec<ProcessStat> = living.collect();
        let mut are_shown = true;
        let counted = |stat: &ProcessStat| {
            let known = self.own.get(&stat.pid).filter(|own| own.start_ticks == stat.start_ticks);
            known.map_or(Io::default(), |own| own.io)
        };
        let mut own = HashMap::new();
        for stat in &living {
            // It may have ended since it was looked at.
            let has_ended =
                || ProcessStat::read(stat.pid).ok().flatten().is_some_and(|stat| stat.has_ended());
            let shown = if stat.has_ended() && stat.parent == self.shim { None } else { Io::of(stat.pid) };
            if shown.is_none() && !has_ended() {
                return None;
            }
            are_shown &= shown.is_some();
            let io = shown.unwrap_or_else(|| counted(stat));
            own.insert(stat.pid, Own { start_ticks: stat.start_ticks, parent: stat.parent, io });
        }
        Some((own, are_shown))
    }
}

/// How much the counts rose. What was counted of a child that ended is in its parent's again: it is not counted twice.
fn risen(before: &HashMap<i32, Own>, now: &HashMap<i32, Own>) -> Io {
    let is_same = |pid: &i32, own: &Own| now.get(pid).is_some_and(|one| one.start_ticks == own.start_ticks);
    let rise = |(pid, own): (&i32, &Own)| {
        let known = before.get(pid).filter(|known| known.start_ticks == own.start_ticks);
        let Some(known) = known else { return own.io };
        let rise = own.io.since(known.io);
        let gone = before.iter().filter(|(child, one)| one.parent == *pid && !is_same(child, one));
        gone.fold(rise, |rise, (_, child)| rise.since(child.io))
    };
    now.iter().map(rise).fold(Io::default(), Io::and)
}

/// How much the count of a process rose before the shim waited for it, by all that it wrote. It is not there any more,
/// unless its number was given again.
fn last_rise(pid: i32, wrote: Io, before: &HashMap<i32, Own>, now: &mut HashMap<i32, Own>) -> Io {
    let Some(known) = before.get(&pid) else {
        now.remove(&pid);
        return wrote;
    };
    let is_same = |own: &Own| own.start_ticks == known.start_ticks;
    let last = if now.get(&pid).is_some_and(is_same) { now.remove(&pid) } else { None };
    wrote.since(last.map_or(known.io, |last| last.io))
}

/// Whether one is gone whose count no process of the attempt has got, nor the shim.
fn has_gap(before: &HashMap<i32, Own>, now: &HashMap<i32, Own>, shim: i32) -> bool {
    let is_there = |pid: &i32, own: &Own| now.get(pid).is_some_and(|one| one.start_ticks == own.start_ticks);
    let is_counted = |own: &Own| own.parent == shim || before.contains_key(&own.parent);
    before.iter().any(|(pid, own)| !is_there(pid, own) && !is_counted(own))
}

/// The highest number that was given last: every process since has a later one, until they begin again.
pub(super) fn newest_process() -> Option<i32> {
    fs::read_to_string("/proc/loadavg").ok()?.split_ascii_whitespace().last()?.parse().ok()
}

/// Whether a number is that of a process, and not of one of its threads.
fn is_process(pid: i32) -> bool {
    status_of(pid, "Tgid").is_some_and(|group| group.parse() == Ok(pid))
}

fn ignores_children(pid: i32) -> bool {
    let ignored = status_of(pid, "SigIgn").and_then(|set| u64::from_str_radix(&set, 16).ok());
    ignored.is_some_and(|set| set & SIGCHLD_BIT != 0)
}

fn status_of(pid: i32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned()))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the folder is of the test")]
mod tests {
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    use trackway_system::SystemClock;

    use super::super::family::MainProcess;
    use super::*;

    fn io(to_disk: u64) -> Io {
        Io { chars: 0, to_disk }
    }

    fn own(parent: i32, to_disk: u64) -> Own {
        Own { start_ticks: 1, parent, io: io(to_disk) }
    }

    fn all<const N: usize>(own: [(i32, Own); N]) -> HashMap<i32, Own> {
        own.into_iter().collect()
    }

    /// Proves that a process counts from its beginning, that nothing goes back, and that a number which was given again is a new process.
    #[test]
    fn counts_only_rise() {
        let before = all([(2, own(1, 100)), (3, own(2, 50))]);
        assert_eq!(risen(&before, &all([(2, own(1, 150)), (3, own(2, 50))])), io(50));
        assert_eq!(risen(&before, &all([(2, own(1, 180))])), io(30), "50 were those of the child");
        assert_eq!(risen(&before, &all([(2, own(1, 100)), (3, own(2, 50)), (4, own(2, 7))])), io(7));
        let again = Own { start_ticks: 9, ..own(1, 30) };
        assert_eq!(risen(&before, &all([(2, again)])), io(30));
    }

    /// Proves that of a process that was waited for all counts that it wrote since the last look, whether it was seen
    /// before, and still at this look, or not.
    #[test]
    fn the_last_rise_is_what_was_not_counted() {
        let before = all([(2, own(1, 100))]);
        let rise = |pid, mut now: HashMap<i32, Own>| {
            let rise = last_rise(pid, io(180), &before, &mut now);
            (rise, now.contains_key(&pid))
        };
        assert_eq!(rise(2, all([])), (io(80), false));
        assert_eq!(rise(2, all([(2, own(1, 150))])), (io(30), false), "the rest was counted");
        assert_eq!(rise(3, all([])), (io(180), false), "it was never seen");
        let again = Own { start_ticks: 9, ..own(1, 30) };
        assert_eq!(rise(2, all([(2, again)])), (io(80), true), "another one has its number");
    }

    /// Proves that the end of a process is a gap only where no process of the attempt, nor the shim, gets its count.
    #[test]
    fn an_end_that_is_not_counted_is_a_gap() {
        let before = all([(2, own(1, 100)), (3, own(2, 50)), (9, own(8, 5))]);
        let without = |pid: i32| {
            let mut now = before.clone();
            now.remove(&pid);
            has_gap(&before, &now, 1)
        };
        assert_eq!([without(2), without(3), without(9)], [false, false, true]);
        assert!(!has_gap(&before, &before, 1));
    }

    /// Proves that what was passed to be written and what is to reach a disk are found in the kernel's words, and that both are needed.
    #[test]
    fn the_counts_of_the_kernel_are_read() {
        let text = "rchar: 1\nwchar: 700\nsyscr: 1\nsyscw: 2\nread_bytes: 3\nwrite_bytes: 4096\ncancelled_write_bytes: 0\n";
        let io = Io::parse(text).unwrap();
        assert_eq!(io, Io { chars: 700, to_disk: 4096 });
        assert_eq!(Io::parse("wchar: 7\n"), None);
    }

    /// A shell that reads commands, and what counts it.
    fn shell(region: &Region) -> Option<(Child, Amounts, Family)> {
        let Some((mut amounts, ..)) = Amounts::of(region, EndedProcesses::default()) else {
            trackway_skip::skip!("nothing is counted on this file system");
            return None;
        };
        let shell = Command::new("sh").current_dir(&region.folders[0]).stdin(Stdio::piped()).spawn().unwrap();
        let family = Family::of_this_process("att_x".into(), None, MainProcess::default());
        let stat = ProcessStat::read(shell.id() as i32).unwrap().unwrap();
        amounts.scanned(newest_process(), &[stat]);
        Some((shell, amounts, family))
    }

    /// Proves that what a process writes to a file is counted, also by a child of it that has ended, and that a look
    /// says whether all were seen.
    #[test]
    fn what_children_wrote_is_counted() {
        use std::io::Write as _;
        let folder = tempfile::tempdir().unwrap();
        let folders = vec![folder.path().canonicalize().unwrap()];
        let region = Region { folders, home: "/absent".into() };
        let Some((mut shell, mut amounts, mut family)) = shell(&region) else { return };
        let mut count = || amounts.count(&mut family, &SystemClock).map(|amount| amount.chars);
        let before = count().unwrap();
        let stdin = shell.stdin.as_mut().unwrap();
        stdin.write_all(b"head -c 300000 /dev/zero > a; echo > done\n").unwrap();
        for _ in 0..200 {
            std::thread::sleep(Duration::from_millis(20));
            if folder.path().join("done").exists() {
                break;
            }
        }
        std::thread::sleep(Duration::from_millis(50));
        let wrote = count().unwrap() - before;
        assert!(wrote >= 300_000, "{wrote}");
        // What it writes last is known once it was waited for.
        let ended = amounts.ended.clone();
        shell.stdin.take().unwrap().write_all(b"head -c 500000 /dev/zero > b; exit\n").unwrap();
        while !ProcessStat::read(shell.id() as i32).unwrap().unwrap().has_ended() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let amount = amounts.count(&mut family, &SystemClock).unwrap();
        assert!(!amount.is_whole, "what it wrote is in no count yet");
        let shims = Io::of_this_process();
        shell.wait().unwrap();
        ended.put(shell.id() as i32, shims);
        let amount = amounts.count(&mut family, &SystemClock).unwrap();
        assert!(amount.chars >= before + wrote + 500_000, "{amount:?}");
    }
}
