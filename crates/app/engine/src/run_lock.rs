//! The lock file of a run: the process that holds it supervises the run on this machine.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::ops::RangeInclusive;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use nix::fcntl::{Flock, FlockArg};
use trackway_core::RunId;
use trackway_files::if_there;
use trackway_formats::layout::{HomeLayout, RunLayout};

/// How much of the file is read.
const HOLDER_BYTES_MAX: u64 = 512;
/// Numbers of one process: `kill` takes others for several.
const PIDS: RangeInclusive<u32> = 1..=i32::MAX.unsigned_abs();
/// What a process writes that makes the ledger again.
const REBUILDS: &str = "rebuild";

/// The process that holds the lock of a run, as it wrote it into the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    pub run_id: RunId,
    /// None: the file does not say which, as that of an earlier version.
    pub pid: Option<u32>,
    /// The name of its machine; none: it is not known.
    pub host: Option<String>,
    /// Whether it makes the ledger again, and supervises nothing.
    pub rebuilds: bool,
}

/// Held while this process supervises a run. The kernel releases it when the process ends, however it ends.
#[derive(Debug)]
pub struct RunLock {
    file: Flock<File>,
}

impl RunLock {
    /// Takes the lock, or answers `None` when another process holds it.
    ///
    /// # Errors
    /// When the folder cannot be made or the file cannot be opened.
    pub fn try_take(run: &RunLayout) -> io::Result<Option<Self>> {
        std::fs::create_dir_all(run.folder())?;
        // The file stays when the lock ends: a lease names the lock by its inode.
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(run.supervisor_lock())?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(file) => {
                // The lock holds without it: a full disk must not keep a run from its supervisor.
                let _ = write_holder(&file, "");
                Ok(Some(Self { file }))
            }
            Err((_, nix::errno::Errno::EWOULDBLOCK)) => Ok(None),
            Err((_, errno)) => Err(errno.into()),
        }
    }

    /// Notes that this process makes the ledger again, and supervises nothing.
    pub fn note_rebuild(&self) {
        let _ = write_holder(&self.file, REBUILDS);
    }

    /// Whether a process on this machine holds the lock; nothing is made.
    ///
    /// # Errors
    /// When the file is there and cannot be opened.
    pub fn is_held(run: &RunLayout) -> io::Result<bool> {
        let Some(file) = if_there(File::open(run.supervisor_lock()))? else { return Ok(false) };
        // Shared: of two processes that only look, none takes the other for a supervisor.
        match Flock::lock(file, FlockArg::LockSharedNonblock) {
            Ok(_) => Ok(false),
            Err((_, nix::errno::Errno::EWOULDBLOCK)) => Ok(true),
            Err((_, errno)) => Err(errno.into()),
        }
    }

    /// The processes on this machine that hold the locks of these runs.
    #[must_use]
    pub fn holders(home: &HomeLayout, runs: &[RunId]) -> Vec<LockHolder> {
        let is_held = |run_id: &&RunId| Self::is_held(&home.run(**run_id)).unwrap_or(false);
        runs.iter().filter(is_held).map(|run_id| holder_of(*run_id, &home.run(*run_id))).collect()
    }

    /// The file, by device and inode.
    pub fn id(&self) -> io::Result<String> {
        Ok(id_of(&self.file.metadata()?))
    }

    /// That of the lock of a run, held or not; none: there is no file.
    pub fn id_of(run: &RunLayout) -> io::Result<Option<String>> {
        Ok(if_there(std::fs::metadata(run.supervisor_lock()))?.as_ref().map(id_of))
    }
}

/// The number of this process, the name of its machine, and what it does if it does not supervise.
fn write_holder(file: &File, purpose: &str) -> io::Result<()> {
    // First: whatever fails then, the process before is not named.
    file.set_len(0)?;
    let host = nix::unistd::gethostname()?;
    let text = format!("{} {} {purpose}", std::process::id(), host.to_string_lossy());
    file.write_all_at(format!("{}\n", text.trim_end()).as_bytes(), 0)
}

/// What the file of a lock that is held says of the process.
fn holder_of(run_id: RunId, run: &RunLayout) -> LockHolder {
    let mut text = String::new();
    let opened = File::open(run.supervisor_lock());
    // A file that cannot be read, or that is being written, names none.
    let _ = opened.and_then(|file| file.take(HOLDER_BYTES_MAX).read_to_string(&mut text));
    let mut words = text.split_ascii_whitespace();
    let pid = words.next().and_then(|word| word.parse::<u32>().ok()).filter(|pid| PIDS.contains(pid));
    let host = words.next().filter(|_| pid.is_some()).map(str::to_owned);
    let rebuilds = pid.is_some() && words.next() == Some(REBUILDS);
    let named = LockHolder { run_id, pid, host, rebuilds };
    match named.pid {
        Some(pid) if !named.is_elsewhere() && !may_have_open(pid, run) => {
            LockHolder { run_id, pid: None, host: None, rebuilds: false }
        }
        _ => named,
    }
}

/// Whether a process of this machine has the lock file open: if not, its number is an old one, or that of another container. True
/// where it cannot be seen, as of another user.
fn may_have_open(pid: u32, run: &RunLayout) -> bool {
    let Ok(Some(lock_id)) = RunLock::id_of(run) else { return true };
    match std::fs::read_dir(format!("/proc/{pid}/fd")) {
        Ok(entries) => {
            let mut found = entries.flatten().filter_map(|entry| std::fs::metadata(entry.path()).ok());
            found.any(|metadata| id_of(&metadata) == lock_id)
        }
        Err(error) => error.kind() != io::ErrorKind::NotFound || !Path::new("/proc/self/fd").exists(),
    }
}

impl LockHolder {
    /// The process, as it is shown.
    #[must_use]
    pub fn name(&self) -> String {
        match (&self.host, self.pid) {
            (Some(host), Some(pid)) => format!("process {pid} on `{host}`"),
            (None, Some(pid)) => format!("process {pid}"),
            (_, None) => "a process that is not known".to_owned(),
        }
    }

    /// Whether it is known to be on another machine, where its number is that of another process than here.
    fn is_elsewhere(&self) -> bool {
        let here = nix::unistd::gethostname().ok();
        let here = here.as_ref().map(|here| here.to_string_lossy());
        self.host.as_deref().is_some_and(|host| here.as_deref() != Some(host))
    }

    /// How it is ended while its ledger is lost, so that the script continues.
    #[must_use]
    pub fn how_to_end(&self) -> String {
        let Self { run_id, pid, .. } = self;
        if self.rebuilds {
            return format!("{} makes the ledger again: wait until it is done", self.name());
        }
        let pid = pid.map_or_else(|| "PID".to_owned(), |pid| pid.to_string());
        let there = if self.is_elsewhere() { "there, " } else { "" };
        format!(
            "{} supervises run {run_id}: {there}`kill {pid}` stops the run; `kill -KILL {pid}` ends the supervisor alone, its script continues, and after the rebuild `trackway resume {run_id}` reattaches to it",
            self.name()
        )
    }
}

fn id_of(metadata: &Metadata) -> String {
    format!("{}:{}", metadata.dev(), metadata.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the process which holds the lock of a run is named, none where the lock is free, and that a file which does not
    /// name it fails nothing.
    #[test]
    fn the_holder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let home = HomeLayout::new(folder.path());
        let run_id: RunId = "run_01kajn4f3s0000000000000000".parse().unwrap();
        let run = home.run(run_id);
        assert_eq!(RunLock::holders(&home, &[run_id]), []);
        let lock = RunLock::try_take(&run).unwrap().unwrap();
        let host = nix::unistd::gethostname().unwrap().to_string_lossy().into_owned();
        let pid = std::process::id();
        let holder = LockHolder { run_id, pid: Some(pid), host: Some(host), rebuilds: false };
        assert_eq!(RunLock::holders(&home, &[run_id]), std::slice::from_ref(&holder));
        assert!(holder.how_to_end().contains(&format!("`kill -KILL {pid}`")), "{}", holder.how_to_end());
        for text in ["", "no number here", "\u{0}", "0 here", "4294967295 here", "-1 here"] {
            std::fs::write(run.supervisor_lock(), text).unwrap();
            assert_eq!(
                RunLock::holders(&home, &[run_id]),
                [LockHolder { run_id, pid: None, host: None, rebuilds: false }],
                "{text:?}"
            );
        }
        drop(lock);
        assert_eq!(RunLock::holders(&home, &[run_id]), []);
    }

    /// Proves that a process which does not have the lock open is not named, that one of another machine is said to be there, and
    /// that one which makes the ledger again is not to be ended.
    #[test]
    fn no_other_process_is_to_be_ended() {
        let folder = tempfile::tempdir().unwrap();
        let home = HomeLayout::new(folder.path());
        let run_id: RunId = "run_01kajn4f3s0000000000000000".parse().unwrap();
        let run = home.run(run_id);
        let lock = RunLock::try_take(&run).unwrap().unwrap();
        let holder = || RunLock::holders(&home, &[run_id]).remove(0);
        let host = holder().host.unwrap();
        if Path::new("/proc/self/fd").exists() {
            std::fs::write(run.supervisor_lock(), format!("{} {host}\n", i32::MAX)).unwrap();
            assert_eq!((holder().pid, holder().host), (None, None));
        }
        std::fs::write(run.supervisor_lock(), format!("7 {host}-2\n")).unwrap();
        let said = holder().how_to_end();
        assert!(said.starts_with(&format!("process 7 on `{host}-2`")), "{said}");
        assert!(said.contains("there, `kill 7`"), "{said}");
        lock.note_rebuild();
        let (pid, rebuilds) = (holder().pid, holder().rebuilds);
        assert_eq!((pid, rebuilds), (Some(std::process::id()), true));
        let said = holder().how_to_end();
        assert!(said.ends_with("wait until it is done") && !said.contains("kill"), "{said}");
    }

    /// Proves that a run has one supervisor at a time, and that the next one gets the same lock when the first ends.
    #[test]
    fn one_supervisor_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunLayout::new(folder.path());
        assert!(
            !RunLock::is_held(&run).unwrap() && RunLock::id_of(&run).unwrap().is_none(),
            "there is no file"
        );
        let first = RunLock::try_take(&run).unwrap().unwrap();
        assert!(RunLock::try_take(&run).unwrap().is_none() && RunLock::is_held(&run).unwrap());
        let id = first.id().unwrap();
        assert_eq!(RunLock::id_of(&run).unwrap().as_ref(), Some(&id));
        drop(first);
        assert!(!RunLock::is_held(&run).unwrap());
        assert_eq!(RunLock::try_take(&run).unwrap().unwrap().id().unwrap(), id);
    }
}
