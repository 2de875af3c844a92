//! Who read a checkpoint: by the kernel's word (fanotify, for root), else by the open files of the attempt's processes
//! and by how much they read, which also shows that they did not. Other processes may read a checkpoint, and Trackway
//! does: only what the attempt read may be what it continued from.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use nix::fcntl::AT_FDCWD;
use nix::sys::fanotify::{EventFFlags, Fanotify, InitFlags, MarkFlags, MaskFlags};
use nix::unistd::Pid;

use crate::StoredLaunch;
use crate::outside::awaited;
use crate::process::{ProcessStat, all_processes};
use crate::shim::checkpoints::writers::{Family, Kin, MainProcess};

/// A script that reads more than this beside a small file shows nothing by how much it read.
const BESIDE_BYTES: u64 = 4 << 10;
/// An attempt that read less than this part of a file while that was read did not read it.
const CLEARLY_LESS: u64 = 2;

/// What each process of the attempt had read, with its ended children; none: it does not show that.
pub(super) type Counts = HashMap<i32, Option<u64>>;

/// The processes of the attempt, and what they read.
#[derive(Debug)]
pub(super) struct Readers {
    kernel: Option<Fanotify>,
    family: Family,
    main: MainProcess,
    /// What was noted last.
    counts: Option<Counts>,
}

impl Readers {
    pub fn of(launch: &StoredLaunch) -> Self {
        let flags = InitFlags::FAN_CLASS_NOTIF | InitFlags::FAN_CLOEXEC | InitFlags::FAN_NONBLOCK;
        let events = EventFFlags::O_RDONLY | EventFFlags::O_CLOEXEC | EventFFlags::O_LARGEFILE;
        // As it does all users but root, the kernel may refuse.
        let kernel = Fanotify::init(flags, events).ok();
        let (main, attempt) = (MainProcess::default(), launch.attempt_id.to_string());
        let family = Family::of_this_process(attempt, awaited(&launch.argv), MainProcess::clone(&main));
        Self { kernel, family, main, counts: None }
    }

    /// Without the kernel's word.
    #[cfg(test)]
    pub fn without_kernel() -> Self {
        let main = MainProcess::default();
        let family = Family::of_this_process("att_x".into(), None, MainProcess::clone(&main));
        Self { kernel: None, family, main, counts: None }
    }

    /// The script has started.
    pub fn started(&self, main: Pid) {
        self.main.store(main.as_raw(), Ordering::SeqCst);
    }

    /// Whether the kernel says who reads.
    pub fn are_named(&self) -> bool {
        self.kernel.is_some()
    }

    pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.kernel.as_ref().map(Fanotify::as_fd)
    }

    /// Watches a file, or the files of a folder. Whether that is possible.
    pub fn watch(&self, path: &Path) -> bool {
        self.mark(MarkFlags::FAN_MARK_ADD, path)
    }

    /// Nothing more is to be learned of it.
    pub fn leave(&self, path: &Path) {
        self.mark(MarkFlags::FAN_MARK_REMOVE, path);
    }

    fn mark(&self, how: MarkFlags, path: &Path) -> bool {
        let Some(kernel) = &self.kernel else { return false };
        let reads = MaskFlags::FAN_OPEN | MaskFlags::FAN_ACCESS | MaskFlags::FAN_CLOSE_NOWRITE;
        let mask = if path.is_dir() { reads | MaskFlags::FAN_EVENT_ON_CHILD } else { reads };
        kernel.mark(how, mask, AT_FDCWD, Some(path)).is_ok()
    }

    /// What was read since the last call, by whom; `took` gets a link to each file. Whether nothing was lost.
    pub fn take(&mut self, mut took: impl FnMut(&Path, By)) -> bool {
        let Self { kernel: Some(kernel), family, .. } = self else { return true };
        let mut is_whole = true;
        while let Ok(events) = kernel.read_events() {
            if events.is_empty() {
                break;
            }
            for event in events {
                let Some(fd) = event.fd() else {
                    is_whole = false;
                    continue;
                };
                // At the open it is best known who that is: it may have ended at the read.
                let by = By::of(family.kin(event.pid()));
                if event.mask().intersects(MaskFlags::FAN_ACCESS | MaskFlags::FAN_CLOSE_NOWRITE) {
                    took(&PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd())), by);
                }
            }
        }
        is_whole
    }

    /// The links to the files that the attempt's processes have open now.
    pub fn open_files(&mut self) -> Vec<PathBuf> {
        self.find().iter().filter(|stat| !stat.has_ended()).flat_map(ProcessStat::open_files).collect()
    }

    /// The attempt's processes, whose counts are read from now on.
    pub fn find(&mut self) -> Vec<ProcessStat> {
        let mut all = all_processes().unwrap_or_default();
        self.family.keep(&all.iter().map(|stat| stat.pid).collect());
        all.retain(|stat| self.family.kin_of(stat) == Kin::Own);
        all
    }

    /// How much the attempt's processes read since [`Self::note`]; none if that is not known.
    pub fn grown(&self) -> Option<u64> {
        rise(self.counts.as_ref()?, &self.read_bytes())
    }

    /// The same since such counts, and none if it may be more.
    pub fn grown_at_most(&self, before: &Counts) -> Option<u64> {
        let now = self.read_bytes();
        rise(before, &now).filter(|_| are_the_same(before, &now))
    }

    /// What was noted last.
    pub fn noted(&self) -> Option<&Counts> {
        self.counts.as_ref()
    }

    /// What is read from now on is counted, unless `is_late`: something is reported that may be older than these counts.
    pub fn note(&mut self, is_late: impl Fn() -> bool) {
        let counts = self.read_bytes();
        if !is_late() {
            self.counts = Some(counts);
        }
    }

    fn read_bytes(&self) -> Counts {
        let count = |pid: i32| match fs::read_to_string(format!("/proc/{pid}/io")) {
            Ok(io) => {
                let value = io.lines().find_map(|line| line.strip_prefix("rchar: "));
                Some((pid, value.and_then(|value| value.trim().parse().ok())))
            }
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Some((pid, None)),
            Err(_) => None,
        };
        let main = Some(self.main.load(Ordering::SeqCst)).filter(|pid| *pid > 0);
        self.family.own().into_iter().chain(main).filter_map(count).collect()
    }
}

/// How much more the processes read, as far as they show it. None if there is a new one: it reads its program first.
fn rise(before: &Counts, now: &Counts) -> Option<u64> {
    let shown = now.iter().filter_map(|(pid, bytes)| Some((pid, (*bytes)?)));
    shown.map(|(pid, bytes)| Some(bytes.saturating_sub((*before.get(pid)?)?))).sum()
}

/// Whether these are the same processes, and all show what they read: of one that has ended the count may be lost.
fn are_the_same(before: &Counts, now: &Counts) -> bool {
    before.len() == now.len() && now.iter().all(|(pid, bytes)| bytes.is_some() && before.contains_key(pid))
}

/// Who read something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Attempt,
    /// Another process, such as one of Trackway.
    Other,
    Unknown,
}

impl By {
    fn of(kin: Option<Kin>) -> Self {
        match kin {
            Some(Kin::Own) => Self::Attempt,
            Some(Kin::Trackway | Kin::Ancestor | Kin::Stranger(_)) => Self::Other,
            None => Self::Unknown,
        }
    }

    /// Who read a file of so many bytes, where the kernel does not say it. `is_held`: a process of the attempt had it
    /// open. `grown`: how much the attempt read meanwhile; a script that reads much beside a small file, as when it
    /// begins, shows nothing by that.
    pub fn guessed(is_held: bool, grown: Option<u64>, bytes: u64) -> Self {
        let most = bytes.saturating_add(bytes / 4).saturating_add(BESIDE_BYTES);
        let is_read = grown.is_some_and(|grown| bytes > 0 && (bytes..=most).contains(&grown));
        if is_held || is_read { Self::Attempt } else { Self::Unknown }
    }

    /// Who read a file that was closed. `grown`: how much the attempt read at most since the look before it was opened;
    /// none if that is not known, or if the file was only mapped into memory.
    pub fn at_the_close(self, grown: Option<u64>, bytes: u64) -> Self {
        match (self, grown) {
            (Self::Unknown, Some(grown)) if grown < bytes / CLEARLY_LESS => Self::Other,
            _ => self,
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the folder is of the test")]
mod tests {
    use std::process::Command;

    use super::*;

    /// Proves that a read is the attempt's only if a process of it had the file open or read about as much, and that
    /// neither another's read nor much that is read beside it makes it that.
    #[test]
    fn a_read_needs_a_reader() {
        for (is_held, grown, bytes, expected) in [
            (true, None, 4_000, By::Attempt),
            (false, Some(4_100), 4_000, By::Attempt),
            (false, Some(0), 4_000, By::Unknown),
            (false, Some(3_999), 4_000, By::Unknown),
            (false, Some(30_000_000), 4_000, By::Unknown),
            (false, Some(24_000_000), 20_000_000, By::Attempt),
            (false, Some(15_000), 4_000, By::Unknown),
            (false, None, 4_000, By::Unknown),
            (false, Some(0), 0, By::Unknown),
        ] {
            assert_eq!(By::guessed(is_held, grown, bytes), expected, "{is_held} {grown:?} {bytes}");
        }
        for (by, grown, expected) in [
            (By::Unknown, Some(1_999), By::Other),
            (By::Unknown, Some(2_000), By::Unknown),
            (By::Unknown, None, By::Unknown),
            (By::Attempt, Some(0), By::Attempt),
        ] {
            assert_eq!(by.at_the_close(grown, 4_000), expected, "{by:?} {grown:?}");
        }
        assert_eq!(By::of(Some(Kin::Own)), By::Attempt);
        assert_eq!(By::of(Some(Kin::Trackway)), By::Other);
        assert_eq!(By::of(None), By::Unknown);
    }

    /// Proves that it is not known that no more was read where a process began or ended meanwhile, or does not show it.
    #[test]
    fn only_the_same_processes_read_no_more() {
        let before = Counts::from([(2, Some(100)), (3, Some(50))]);
        for (now, expected, are_same) in [
            (Counts::from([(2, Some(150)), (3, Some(51))]), Some(51), true),
            (Counts::from([(2, Some(150))]), Some(50), false),
            (Counts::from([(2, Some(150)), (3, None)]), Some(50), false),
            (Counts::from([(2, Some(150)), (3, Some(50)), (4, Some(1))]), None, false),
            (Counts::from([(2, Some(150)), (4, Some(1))]), None, false),
        ] {
            assert_eq!((rise(&before, &now), are_the_same(&before, &now)), (expected, are_same), "{now:?}");
        }
    }

    /// Proves, where the kernel names readers, that a read by a child is the attempt's and one by Trackway is not.
    #[test]
    fn the_kernel_names_the_reader() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "state").unwrap();
        let flags = InitFlags::FAN_CLASS_NOTIF | InitFlags::FAN_CLOEXEC | InitFlags::FAN_NONBLOCK;
        let Ok(kernel) = Fanotify::init(flags, EventFFlags::O_RDONLY | EventFFlags::O_CLOEXEC) else {
            trackway_skip::skip!("the kernel names readers to root alone");
            return;
        };
        let mut readers = Readers { kernel: Some(kernel), ..Readers::without_kernel() };
        assert!(readers.watch(&path) && readers.are_named());
        let read = |readers: &mut Readers| {
            let mut all = Vec::new();
            assert!(readers.take(|_, by| all.push(by)));
            all
        };
        fs::read(&path).unwrap();
        assert!(read(&mut readers).iter().all(|by| *by == By::Other));
        let mut child = Command::new("cat").arg(&path).stdout(std::process::Stdio::null()).spawn().unwrap();
        readers.started(Pid::from_raw(child.id() as i32));
        child.wait().unwrap();
        let all = read(&mut readers);
        assert!(!all.is_empty() && all.iter().all(|by| *by == By::Attempt), "{all:?}");
        readers.leave(&path);
        fs::read(&path).unwrap();
        assert_eq!(read(&mut readers), []);
    }
}
