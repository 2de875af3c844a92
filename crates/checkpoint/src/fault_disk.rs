//! A disk that fails at its n-th operation, and forgets what was never synced when the power goes. It keeps account
//! of syncs instead of waiting for them.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::disk::{Disk, DiskFile, RealDisk};

/// How the operation fails, and what is left afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// SIGKILL: what was done stays, nothing more is done.
    Kill,
    /// SIGKILL in the middle of a write: half of it is done.
    TornWrite,
    /// The power goes, and names that were never synced go with it.
    PowerLosesNames,
    /// The power goes, and names stay while bytes that were never synced are gone.
    PowerLosesBytes,
    /// The power goes with both.
    PowerLosesAll,
    /// The disk is full for this one operation; the process lives on.
    Full,
}

impl Fault {
    pub const DEADLY: [Self; 5] =
        [Self::Kill, Self::TornWrite, Self::PowerLosesNames, Self::PowerLosesBytes, Self::PowerLosesAll];
}

#[derive(Debug, Default)]
struct Journal {
    operations: usize,
    dead: bool,
    unsynced_names: BTreeSet<PathBuf>,
    unsynced_bytes: BTreeSet<PathBuf>,
}

/// A real disk behind a fault.
#[derive(Debug, Clone)]
pub(crate) struct FaultDisk {
    fault: Fault,
    fail_at: usize,
    journal: Arc<Mutex<Journal>>,
}

impl FaultDisk {
    pub fn new(fault: Fault, fail_at: usize) -> Self {
        Self { fault, fail_at, journal: Arc::default() }
    }

    /// A disk that never fails.
    pub fn sound() -> Self {
        Self::new(Fault::Kill, usize::MAX - 1)
    }

    /// Whether the fault happened.
    pub fn struck(&self) -> bool {
        self.journal().operations > self.fail_at
    }

    /// What the machine finds when it comes up again.
    pub fn after_crash(&self) {
        let journal = self.journal();
        let (names, bytes) = match self.fault {
            Fault::PowerLosesNames => (true, false),
            Fault::PowerLosesBytes => (false, true),
            Fault::PowerLosesAll => (true, true),
            Fault::Kill | Fault::TornWrite | Fault::Full => (false, false),
        };
        if bytes {
            for path in journal.unsynced_bytes.iter().filter(|path| path.exists()) {
                std::fs::write(path, b"").unwrap();
            }
        }
        if names {
            for path in journal.unsynced_names.iter().rev().filter(|path| path.exists()) {
                if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }
                    .unwrap();
            }
        }
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap()
    }

    /// Counts an operation. An error: it does not happen.
    fn step(&self) -> io::Result<()> {
        let mut journal = self.journal();
        if journal.dead {
            return Err(io::Error::other("the process is dead"));
        }
        journal.operations += 1;
        if journal.operations != self.fail_at + 1 {
            return Ok(());
        }
        if self.fault == Fault::Full {
            return Err(ErrorKind::StorageFull.into());
        }
        journal.dead = true;
        Err(io::Error::other("crash"))
    }
}

impl Disk for FaultDisk {
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        if !path.exists() {
            self.journal().unsynced_names.insert(path.to_owned());
        }
        RealDisk.make_folder(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.step()?;
        let file = RealDisk.create(path)?;
        self.journal().unsynced_names.insert(path.to_owned());
        Ok(Box::new(FaultFile { disk: self.clone(), path: path.to_owned(), file }))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        RealDisk.link(from, to)?;
        let mut journal = self.journal();
        journal.unsynced_names.insert(to.to_owned());
        if journal.unsynced_bytes.contains(from) {
            journal.unsynced_bytes.insert(to.to_owned());
        }
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        RealDisk.remove_file(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        RealDisk.remove_folder(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        self.journal().unsynced_names.retain(|name| name.parent() != Some(path));
        Ok(())
    }
}

struct FaultFile {
    disk: FaultDisk,
    path: PathBuf,
    file: Box<dyn DiskFile>,
}

impl DiskFile for FaultFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.disk.journal().unsynced_bytes.insert(self.path.clone());
        let step = self.disk.step();
        if step.is_err() && self.disk.fault == Fault::TornWrite {
            self.file.write(&bytes[..bytes.len() / 2])?;
        }
        step?;
        self.file.write(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.step()?;
        self.disk.journal().unsynced_bytes.remove(&self.path);
        Ok(())
    }
}
