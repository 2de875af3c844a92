//! How much the attempt's processes write, by the kernel's count of each of them and of its children that have ended: what a file has more than that,
//! another one wrote.
//!
//! What is not sure counts as a gap, and between its two sides nothing is said: a process of the attempt that ended with bytes that are in no other count, or one
//! whose count cannot be read.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt as _;

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
/// How often a look begins again because a process ended meanwhile.
const TRIES: u32 = 3;
/// The bit of `SIGCHLD` in a set of signals: the counts of the children of a parent that ignores it are lost.
const SIGCHLD_BIT: u64 = 1 << 16;

/// Which of the kernel's counts has what is written to a file of the region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    /// What is to reach the disk: all of a new file, and nothing of what is printed.
    ToDisk,
    /// What was passed to be written, anywhere, and what is to reach a disk from mapped memory.
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

    /// What `/proc/PID/io` says.
    fn bytes(self, io: &str) -> Option<u64> {
        let field = |name: &str| {
            let value = io.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            value.and_then(|value| value.trim().parse::<u64>().ok())
        };
        let to_disk = field("write_bytes")?;
        match self {
            Self::ToDisk => Some(to_disk),
            Self::All => Some(field("wchar")?.saturating_add(to_disk)),
        }
    }
}

/// A process of the attempt as it was counted last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Own {
    start_ticks: u64,
    parent: i32,
    bytes: u64,
}

/// The counts of the attempt's processes.
#[derive(Debug)]
pub(super) struct Amounts {
    shim: i32,
    counted: Counted,
    own: HashMap<i32, Own>,
    /// Those that were found since, and are not counted yet.
    found: BTreeSet<ProcessIdentity>,
    bytes: u64,
    series: u32,
    /// The number up to which every process was looked at; none if some were not.
    looked_to: Option<i32>,
    /// Faults of the ended children of this process: they rise whenever one is waited for.
    waited_for: Option<u64>,
}

impl Amounts {
    /// With the devices of the region. None where the counts say nothing.
    pub fn of(region: &Region) -> Option<(Self, Vec<u64>)> {
        let mut kinds = Vec::new();
        let mut devices = Vec::new();
        for folder in &region.folders {
            let there = folder.ancestors().find(|folder| folder.exists())?;
            kinds.push(Counted::on(statfs(there).ok()?.filesystem_type())?);
            devices.push(fs::metadata(there).ok()?.dev());
        }
        let counted = *kinds.first()?;
        let counted = if kinds.iter().all(|kind| *kind == counted) { counted } else { Counted::All };
        let amounts = Self {
            shim: std::process::id() as i32,
            counted,
            own: HashMap::new(),
            found: BTreeSet::new(),
            bytes: 0,
            series: 0,
            looked_to: None,
            waited_for: children_faults(),
        };
        Some((amounts, devices))
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
        let waited_for = children_faults();
        let Some(now) = counted else {
            self.series += 1;
            return None;
        };
        let is_gap = waited_for != self.waited_for || has_gap(&self.own, &now, self.shim);
        self.series += u32::from(is_gap);
        self.bytes = self.bytes.saturating_add(risen(&self.own, &now));
        (self.own, self.waited_for) = (now, waited_for);
        self.found.clear();
        let until_ns = clock.now().as_nanos();
        Some(Amount { from_ns, until_ns, bytes: self.bytes, is_whole, series: self.series })
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

    /// The counts now. A parent is read after its child was found to be gone: it may have the count of that. None: one ended meanwhile.
    fn read(&self) -> Option<HashMap<i32, Own>> {
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
        let own = living.iter().map(|stat| {
            let io = fs::read_to_string(format!("/proc/{}/io", stat.pid)).ok()?;
            let bytes = self.counted.bytes(&io)?;
            Some((stat.pid, Own { start_ticks: stat.start_ticks, parent: stat.parent, bytes }))
        });
        own.collect()
    }
}

/// How much the counts rose. That of a child which ended is in its parent's for a second time: rather too much than too little.
fn risen(before: &HashMap<i32, Own>, now: &HashMap<i32, Own>) -> u64 {
    let rise = |(pid, own): (&i32, &Own)| {
        let known = before.get(pid).filter(|known| known.start_ticks == own.start_ticks);
        own.bytes.saturating_sub(known.map_or(0, |known| known.bytes))
    };
    now.iter().map(rise).sum()
}

/// Whether one is gone whose count no process of the attempt has got. What the shim gets shows in its own faults.
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

/// Page faults of the children of this process that it waited for: every process has some.
fn children_faults() -> Option<u64> {
    faults_of_children(&fs::read_to_string("/proc/self/stat").ok()?)
}

fn faults_of_children(stat: &str) -> Option<u64> {
    // The kernel numbers the fields from 1, and the one behind the name is the third.
    const FIELD: usize = 11;
    let (_, behind) = stat.rsplit_once(") ")?;
    behind.split_ascii_whitespace().nth(FIELD - 3)?.parse().ok()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the folder is of the test")]
mod tests {
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    use trackway_system::SystemClock;

    use super::super::family::MainProcess;
    use super::*;

    fn own(parent: i32, bytes: u64) -> Own {
        Own { start_ticks: 1, parent, bytes }
    }

    fn all<const N: usize>(own: [(i32, Own); N]) -> HashMap<i32, Own> {
        own.into_iter().collect()
    }

    /// Proves that a process counts from its beginning, that nothing goes back, and that a number which was given again is a new process.
    #[test]
    fn counts_only_rise() {
        let before = all([(2, own(1, 100)), (3, own(2, 50))]);
        assert_eq!(risen(&before, &all([(2, own(1, 150)), (3, own(2, 50))])), 50);
        assert_eq!(risen(&before, &all([(2, own(1, 180))])), 80, "the child is gone");
        assert_eq!(risen(&before, &all([(2, own(1, 100)), (3, own(2, 50)), (4, own(2, 7))])), 7);
        let again = Own { start_ticks: 9, ..own(1, 30) };
        assert_eq!(risen(&before, &all([(2, again)])), 30);
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

    /// Proves that what is printed does not count as written to a disk, and that in memory all that was written counts.
    #[test]
    fn the_count_is_that_of_the_file_system() {
        let io = "rchar: 1\nwchar: 700\nsyscr: 1\nsyscw: 2\nread_bytes: 3\nwrite_bytes: 4096\ncancelled_write_bytes: 0\n";
        assert_eq!(Counted::ToDisk.bytes(io), Some(4096));
        assert_eq!(Counted::All.bytes(io), Some(4796));
        assert_eq!(Counted::All.bytes("wchar: 7\n"), None);
        assert_eq!(faults_of_children("7 (a) b) S 1 7 7 0 -1 4194560 33 44 0 0"), Some(44));
    }

    /// A shell that reads commands, and what counts it.
    fn shell(region: &Region) -> Option<(Child, Amounts, Family)> {
        let Some((mut amounts, _)) = Amounts::of(region) else {
            println!("skipped: nothing is counted on this file system");
            return None;
        };
        let shell = Command::new("sh").current_dir(&region.folders[0]).stdin(Stdio::piped()).spawn().unwrap();
        let family = Family::of_this_process("att_x".into(), None, MainProcess::default());
        let stat = ProcessStat::read(shell.id() as i32).unwrap().unwrap();
        amounts.scanned(newest_process(), &[stat]);
        // Other tests wait for children of this process.
        amounts.waited_for = None;
        Some((shell, amounts, family))
    }

    /// Proves that what a process writes to a file is counted, also by a child of it that has ended, and that a look says whether all were seen.
    #[test]
    fn what_children_wrote_is_counted() {
        use std::io::Write as _;
        let folder = tempfile::tempdir().unwrap();
        let folders = vec![folder.path().canonicalize().unwrap()];
        let region = Region { folders, home: "/absent".into() };
        let Some((mut shell, mut amounts, mut family)) = shell(&region) else { return };
        let mut count = || amounts.count(&mut family, &SystemClock).map(|amount| amount.bytes);
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
        shell.kill().unwrap();
        shell.wait().unwrap();
    }
}
