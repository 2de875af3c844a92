//! Who read a checkpoint: by the kernel's word (fanotify, for root), else by the open files of the attempt's processes and by how much they read. Other
//! processes may read a checkpoint, and Trackway does: only what the attempt read may be what it continued from.

use std::collections::HashMap;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use nix::fcntl::AT_FDCWD;
use nix::sys::fanotify::{EventFFlags, Fanotify, InitFlags, MarkFlags, MaskFlags};
use nix::unistd::Pid;

use super::writers::{Family, Kin, MainProcess};
use crate::StoredLaunch;
use crate::outside::awaited;
use crate::process::{ProcessStat, all_processes};

/// A script that reads more than this beside a small file shows nothing by how much it read.
const BESIDE_BYTES: u64 = 4 << 10;

/// The processes of the attempt, and what they read.
#[derive(Debug)]
pub(super) struct Readers {
    kernel: Option<Fanotify>,
    family: Family,
    main: MainProcess,
    /// What each had read at the last look; none before the first.
    counts: Option<HashMap<i32, u64>>,
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
        let all = all_processes().unwrap_or_default();
        self.family.keep(&all.iter().map(|stat| stat.pid).collect());
        let own = all.iter().filter(|stat| !stat.has_ended() && self.family.kin_of(stat) == Kin::Own);
        own.flat_map(ProcessStat::open_files).collect()
    }

    /// How much the attempt's processes read since [`Self::note`]; none if that is not known.
    pub fn grown(&self) -> Option<u64> {
        let before = self.counts.as_ref()?;
        // A new process reads its program first.
        let rise = |(pid, bytes): (&i32, &u64)| Some(bytes.saturating_sub(*before.get(pid)?));
        self.read_bytes().iter().map(rise).sum()
    }

    /// What is read from now on is counted.
    pub fn note(&mut self) {
        let counts = self.read_bytes();
        self.counts = Some(counts);
    }

    fn read_bytes(&self) -> HashMap<i32, u64> {
        let count = |pid: i32| {
            let io = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
            let value = io.lines().find_map(|line| line.strip_prefix("rchar: "))?;
            Some((pid, value.trim().parse().ok()?))
        };
        let main = Some(self.main.load(Ordering::SeqCst)).filter(|pid| *pid > 0);
        self.family.own().into_iter().chain(main).filter_map(count).collect()
    }
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

    /// Who read a file of so many bytes, where the kernel does not say it. `is_held`: a process of the attempt had it open. `grown`: how much
    /// the attempt read meanwhile; a script that reads much beside a small file, as when it begins, shows nothing by that.
    pub fn guessed(is_held: bool, grown: Option<u64>, bytes: u64) -> Self {
        let most = bytes.saturating_add(bytes / 4).saturating_add(BESIDE_BYTES);
        let is_read = grown.is_some_and(|grown| bytes > 0 && (bytes..=most).contains(&grown));
        if is_held || is_read { Self::Attempt } else { Self::Unknown }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the folder is of the test")]
mod tests {
    use std::process::Command;

    use super::*;

    /// Proves that a read is the attempt's only if a process of it had the file open or read about as much, and that neither another's read nor much that
    /// is read beside it makes it that.
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
        assert_eq!(By::of(Some(Kin::Own)), By::Attempt);
        assert_eq!(By::of(Some(Kin::Trackway)), By::Other);
        assert_eq!(By::of(None), By::Unknown);
    }

    /// Proves, where the kernel names readers, that a read by a child is the attempt's and one by Trackway is not.
    #[test]
    fn the_kernel_names_the_reader() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "state").unwrap();
        let flags = InitFlags::FAN_CLASS_NOTIF | InitFlags::FAN_CLOEXEC | InitFlags::FAN_NONBLOCK;
        let Ok(kernel) = Fanotify::init(flags, EventFFlags::O_RDONLY | EventFFlags::O_CLOEXEC) else {
            println!("skipped: the kernel names readers to root alone");
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
