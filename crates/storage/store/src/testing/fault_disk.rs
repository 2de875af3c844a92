//! A disk that fails at its n-th operation and forgets what was never synced in a power cut. It works on real files; it
//! records syncs instead of waiting for them, and alignment instead of asking the device.
#![allow(clippy::disallowed_methods)] // Only tests use it, on folders that they made.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trackway_core::{Rng as _, SplitMix64};
use trackway_files::OwnedFolder;

use crate::disk::{DIRECT_ALIGNMENT_BYTES, Disk, DiskFile, DiskRead, RealDisk};

/// What a disk writes as a whole.
const PAGE_BYTES: u64 = DIRECT_ALIGNMENT_BYTES as u64;

/// How the operation fails, and what is left afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// SIGKILL: what was done stays, nothing more is done.
    Kill,
    /// SIGKILL in the middle of an operation: half of a write, or of the removal of a folder, is done.
    Torn,
    /// The power goes, and names that were never synced go with it.
    PowerLosesNames,
    /// The power goes, and names stay while bytes that were never synced are gone.
    PowerLosesBytes,
    /// A power cut with both.
    PowerLosesAll,
    /// A power cut, after which any part is left of what was never synced: pages and names that were written later may
    /// be there without earlier ones, and removed names may be back. The seed chooses.
    PowerReorders {
        /// Where the choices come from.
        seed: u64,
    },
    /// The disk is full for the next operation that needs room; the process lives on.
    Full,
    /// The disk is full from there on.
    StaysFull,
    /// The disk is full in the middle of the next write: half of it is done; the process lives on.
    ShortWrite,
    /// The operation fails with EIO, whatever it is (a read too); the process lives on.
    InputOutput,
}

impl Fault {
    /// Those that end the process: [`FaultDisk::after_crash`] must be called before anything reads the files again.
    pub const DEADLY: [Self; 8] = [
        Self::Kill,
        Self::Torn,
        Self::PowerLosesNames,
        Self::PowerLosesBytes,
        Self::PowerLosesAll,
        Self::PowerReorders { seed: 1 },
        Self::PowerReorders { seed: 2 },
        Self::PowerReorders { seed: 3 },
    ];
    /// Those that the process gets as an error and survives.
    pub const RETURNED: [Self; 4] = [Self::Full, Self::StaysFull, Self::ShortWrite, Self::InputOutput];

    /// Whether the process ends with it.
    #[must_use]
    pub fn is_deadly(self) -> bool {
        !Self::RETURNED.contains(&self)
    }

    /// Whether it can strike such an operation.
    fn strikes(self, operation: Operation) -> bool {
        match self {
            Self::Full | Self::StaysFull => operation != Operation::Frugal,
            Self::ShortWrite => operation == Operation::Write,
            _ => true,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    /// Needs no room on the disk.
    Frugal,
    /// Needs room.
    Greedy,
    /// A write of bytes.
    Write,
    /// A sync: when it is cut short, nothing was synced.
    Sync,
}

/// A change of bytes that was not synced yet.
#[derive(Debug, Clone)]
enum ByteChange {
    Wrote { offset: u64, bytes: Vec<u8> },
    Sized(u64),
}

/// A file made through this disk.
#[derive(Debug, Default)]
struct TrackedFile {
    synced: Vec<u8>,
    unsynced: Vec<ByteChange>,
}

/// What a name referred to before it was removed.
#[derive(Debug, Clone)]
enum Node {
    Folder,
    File { bytes: Vec<u8>, id: Option<usize> },
}

/// A change of names that is not synced until its folder is.
#[derive(Debug, Clone)]
enum NameChange {
    Appeared(PathBuf),
    Vanished(PathBuf, Node),
    Renamed { from: PathBuf, to: PathBuf, replaced: Option<Node> },
}

impl NameChange {
    fn paths(&self) -> Vec<&PathBuf> {
        match self {
            Self::Appeared(path) | Self::Vanished(path, _) => vec![path],
            Self::Renamed { from, to, .. } => vec![from, to],
        }
    }

    /// The folder whose sync makes it durable.
    fn folder(&self) -> Option<&Path> {
        match self {
            Self::Appeared(path) | Self::Vanished(path, _) | Self::Renamed { to: path, .. } => path.parent(),
        }
    }
}

/// Gets the number of operations so far.
type Watcher = Arc<dyn Fn(usize) + Send + Sync>;

/// What runs on the machine: it fails by itself.
struct Process {
    fault: Fault,
    fail_at: usize,
    operations: usize,
    struck: bool,
    dead: bool,
    /// Called before each of its operations.
    watcher: Option<Watcher>,
}

/// The disk itself, which all processes share.
#[derive(Default)]
struct Journal {
    off: bool,
    files: Vec<TrackedFile>,
    ids: BTreeMap<PathBuf, usize>,
    names: Vec<NameChange>,
}

/// A real disk with a fault, as one process sees it. Clones are of the same process.
#[derive(Clone)]
pub struct FaultDisk {
    process: Arc<Mutex<Process>>,
    journal: Arc<Mutex<Journal>>,
}

impl FaultDisk {
    /// A disk that fails at operation number `fail_at`, counted from 0, or the first one after that the fault can
    /// strike.
    #[must_use]
    pub fn new(fault: Fault, fail_at: usize) -> Self {
        Self::of_process(fault, fail_at, Arc::default())
    }

    fn of_process(fault: Fault, fail_at: usize, journal: Arc<Mutex<Journal>>) -> Self {
        let process = Process { fault, fail_at, operations: 0, struck: false, dead: false, watcher: None };
        Self { process: Arc::new(Mutex::new(process)), journal }
    }

    /// A disk that never fails: for counting.
    #[must_use]
    pub fn sound() -> Self {
        Self::new(Fault::Kill, usize::MAX)
    }

    /// The same disk as another process on that machine sees it, which does not fail until it is set to. It continues
    /// when this one is killed, and a power cut affects both.
    #[must_use]
    pub fn another_process(&self) -> Self {
        Self::of_process(Fault::Kill, usize::MAX, Arc::clone(&self.journal))
    }

    /// From now on, fails at operation number `fail_at`, counted from here.
    pub fn arm(&self, fault: Fault, fail_at: usize) {
        let mut process = self.process();
        process.fault = fault;
        process.fail_at = process.operations.saturating_add(fail_at);
        process.struck = false;
    }

    /// Calls `watcher` before each operation, with the number of those before it: others may do something there.
    pub fn watch(&self, watcher: impl Fn(usize) + Send + Sync + 'static) {
        self.process().watcher = Some(Arc::new(watcher));
    }

    /// How many operations were requested.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.process().operations
    }

    /// Whether the fault happened.
    #[must_use]
    pub fn struck(&self) -> bool {
        self.process().struck
    }

    /// Whether the power went for the machine, by this process's fault.
    #[must_use]
    pub fn power_went(&self) -> bool {
        let process = self.process();
        process.dead && !matches!(process.fault, Fault::Kill | Fault::Torn)
    }

    /// Ends the process: what it did stays, nothing more is done.
    pub fn kill(&self) {
        let mut process = self.process();
        if !process.dead {
            (process.fault, process.dead) = (Fault::Kill, true);
        }
    }

    /// Whether the process ended, by itself or with its machine.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.process().dead || self.journal().off
    }

    /// Changes the files to what the machine finds after it boots again, or what other processes find after a kill.
    /// Nothing works on this disk any more.
    ///
    /// # Panics
    /// When the real disk fails.
    pub fn after_crash(&self) {
        let process = self.process();
        let (fault, fail_at) = (process.fault, process.fail_at);
        let mut journal = self.journal();
        journal.off = true;
        let mut rng = match fault {
            Fault::PowerReorders { seed } => Some(SplitMix64::new(seed ^ (fail_at as u64) << 20)),
            _ => None,
        };
        let mut keep = |lost: bool| match &mut rng {
            Some(rng) => rng.next_u64().is_multiple_of(2),
            None => !lost,
        };
        let (lost_names, lost_bytes) = match fault {
            Fault::PowerLosesNames => (true, false),
            Fault::PowerLosesBytes => (false, true),
            Fault::PowerLosesAll => (true, true),
            _ => (false, false),
        };
        journal.settle_bytes(&mut || keep(lost_bytes)).expect("the real disk works");
        journal.settle_names(&mut || keep(lost_names)).expect("the real disk works");
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the watcher, outside of every lock.
    fn report_watcher(&self) {
        let process = self.process();
        let (watcher, operations) = (process.watcher.clone(), process.operations);
        drop(process);
        if let Some(watcher) = watcher {
            watcher(operations);
        }
    }

    /// Counts an operation and does it, unless the fault strikes: then it does `half` of it, or nothing.
    fn step<T>(
        &self,
        operation: Operation,
        whole: impl FnOnce(&mut Journal) -> io::Result<T>,
        half: impl FnOnce(&mut Journal) -> io::Result<()>,
    ) -> io::Result<T> {
        self.report_watcher();
        let mut process = self.process();
        let mut journal = self.journal();
        if process.dead || journal.off {
            return Err(io::Error::other("the process is dead"));
        }
        let fault = process.fault;
        let due = process.operations >= process.fail_at && fault.strikes(operation);
        process.operations += 1;
        if !due || (process.struck && fault != Fault::StaysFull) {
            return whole(&mut journal);
        }
        process.struck = true;
        process.dead = fault.is_deadly();
        journal.off = process.dead && !matches!(fault, Fault::Kill | Fault::Torn);
        match fault {
            Fault::Torn | Fault::ShortWrite => half(&mut journal)?,
            // It was on its way to the disk: whether it gets there is chosen with the rest.
            Fault::PowerReorders { .. } if operation != Operation::Sync => drop(whole(&mut journal)?),
            _ => {}
        }
        Err(match fault {
            Fault::Full | Fault::StaysFull | Fault::ShortWrite => io::ErrorKind::StorageFull.into(),
            Fault::InputOutput => io::Error::from_raw_os_error(libc::EIO),
            _ => io::Error::other("crash"),
        })
    }

    /// The same for an operation that is done whole or not at all.
    fn atomic<T>(
        &self,
        operation: Operation,
        whole: impl FnOnce(&mut Journal) -> io::Result<T>,
    ) -> io::Result<T> {
        self.step(operation, whole, |_| Ok(()))
    }
}

impl Journal {
    fn node(&self, path: &Path) -> io::Result<Node> {
        if path.is_dir() {
            return Ok(Node::Folder);
        }
        Ok(Node::File { bytes: std::fs::read(path)?, id: self.ids.get(path).copied() })
    }

    fn remove_file(&mut self, path: &Path) -> io::Result<()> {
        let node = self.node(path)?;
        RealDisk.remove_file(path)?;
        self.ids.remove(path);
        self.names.push(NameChange::Vanished(path.to_owned(), node));
        Ok(())
    }

    /// Removes what is in a folder, and the folder with it, or only the first half.
    fn remove_folder(&mut self, path: &Path, all: bool) -> io::Result<()> {
        let mut entries =
            std::fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
        entries.sort();
        let count = if all { entries.len() } else { entries.len().div_ceil(2) };
        for entry in &entries[..count] {
            if entry.is_dir() { self.remove_folder(entry, true) } else { self.remove_file(entry) }?;
        }
        if all {
            std::fs::remove_dir(path)?;
            self.names.push(NameChange::Vanished(path.to_owned(), Node::Folder));
        }
        Ok(())
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let replaced = to.exists().then(|| self.node(to)).transpose()?;
        RealDisk.rename(from, to)?;
        if let Some(id) = self.ids.remove(from) {
            self.ids.insert(to.to_owned(), id);
        }
        self.names.push(NameChange::Renamed { from: from.to_owned(), to: to.to_owned(), replaced });
        Ok(())
    }

    /// Decides for every page that was never synced whether it reached the disk.
    fn settle_bytes(&mut self, keep: &mut dyn FnMut() -> bool) -> io::Result<()> {
        let mut changed = BTreeSet::new();
        for (id, file) in self.files.iter_mut().enumerate().filter(|(_, file)| !file.unsynced.is_empty()) {
            file.settle(keep);
            changed.insert(id);
        }
        for (path, id) in self.ids.iter().filter(|(path, id)| changed.contains(id) && path.exists()) {
            std::fs::write(path, &self.files[*id].synced)?;
        }
        Ok(())
    }

    /// Decides for every change of names that was never synced whether it reached the disk; of each name the first
    /// ones or none.
    fn settle_names(&mut self, keep: &mut dyn FnMut() -> bool) -> io::Result<()> {
        let mut settled = BTreeSet::new();
        let mut undone = Vec::new();
        for change in std::mem::take(&mut self.names) {
            let stopped = change.paths().into_iter().any(|path| settled.contains(path));
            if stopped || !keep() {
                settled.extend(change.paths().into_iter().cloned());
                undone.push(change);
            }
        }
        undone.into_iter().rev().try_for_each(|change| self.undo(change))
    }

    fn undo(&mut self, change: NameChange) -> io::Result<()> {
        match change {
            NameChange::Appeared(path) => self.forget(&path),
            NameChange::Vanished(path, node) => self.bring_back(&path, node),
            NameChange::Renamed { from, to, replaced } => {
                if to.exists() && from.parent().is_some_and(Path::exists) {
                    std::fs::rename(&to, &from)?;
                    if let Some(id) = self.ids.remove(&to) {
                        self.ids.insert(from, id);
                    }
                }
                replaced.map_or(Ok(()), |node| self.bring_back(&to, node))
            }
        }
    }

    fn forget(&mut self, path: &Path) -> io::Result<()> {
        self.ids.remove(path);
        match path {
            path if path.is_dir() => std::fs::remove_dir_all(path),
            path if path.exists() => std::fs::remove_file(path),
            _ => Ok(()),
        }
    }

    fn bring_back(&mut self, path: &Path, node: Node) -> io::Result<()> {
        if path.exists() || !path.parent().is_some_and(Path::exists) {
            return Ok(());
        }
        match node {
            Node::Folder => std::fs::create_dir(path),
            Node::File { bytes, id: None } => std::fs::write(path, bytes),
            Node::File { id: Some(id), .. } => {
                let other = self.ids.iter().find(|(other, found)| **found == id && other.exists());
                match other {
                    Some((other, _)) => std::fs::hard_link(other, path)?,
                    None => std::fs::write(path, &self.files[id].synced)?,
                }
                self.ids.insert(path.to_owned(), id);
                Ok(())
            }
        }
    }
}

impl TrackedFile {
    /// Applies what is kept of the changes that were never synced; of each page the first ones or none.
    fn settle(&mut self, keep: &mut dyn FnMut() -> bool) {
        let mut stopped = BTreeSet::new();
        for change in std::mem::take(&mut self.unsynced) {
            match change {
                ByteChange::Sized(size_bytes) => {
                    if keep() {
                        resize(&mut self.synced, size_bytes);
                    }
                }
                ByteChange::Wrote { offset, bytes } => {
                    for (offset, piece) in pieces(offset, &bytes) {
                        let page = offset / PAGE_BYTES;
                        if !stopped.contains(&page) && keep() {
                            overwrite(&mut self.synced, offset, piece);
                        } else {
                            stopped.insert(page);
                        }
                    }
                }
            }
        }
    }
}

/// Cuts a write at the bounds of pages.
fn pieces(offset: u64, bytes: &[u8]) -> Vec<(u64, &[u8])> {
    let mut pieces = Vec::new();
    let (mut offset, mut rest) = (offset, bytes);
    while !rest.is_empty() {
        let room = to_usize(PAGE_BYTES - offset % PAGE_BYTES);
        let (piece, behind) = rest.split_at(rest.len().min(room));
        pieces.push((offset, piece));
        offset += piece.len() as u64;
        rest = behind;
    }
    pieces
}

fn overwrite(content: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let begin = to_usize(offset);
    if content.len() < begin + bytes.len() {
        content.resize(begin + bytes.len(), 0);
    }
    content[begin..begin + bytes.len()].copy_from_slice(bytes);
}

fn resize(content: &mut Vec<u8>, size_bytes: u64) {
    content.resize(to_usize(size_bytes), 0);
}

fn to_usize(value: u64) -> usize {
    usize::try_from(value).expect("test files fit in memory")
}

/// The device's error for a direct read or write that is not aligned.
fn check_alignment(direct: bool, offset: u64, bytes: &[u8]) -> io::Result<()> {
    let odd = |value: u64| !value.is_multiple_of(PAGE_BYTES);
    if direct && (odd(offset) || odd(bytes.len() as u64) || odd(bytes.as_ptr() as u64)) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    Ok(())
}

impl Disk for FaultDisk {
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.atomic(Operation::Greedy, |journal| {
            let new = !path.exists();
            RealDisk.make_folder(path)?;
            if new {
                journal.names.push(NameChange::Appeared(path.to_owned()));
            }
            Ok(())
        })
    }

    fn create(&self, path: &Path, direct: bool) -> io::Result<Box<dyn DiskFile>> {
        self.atomic(Operation::Greedy, |journal| {
            let file = RealDisk.create(path, false)?;
            let id = journal.files.len();
            journal.files.push(TrackedFile::default());
            journal.ids.insert(path.to_owned(), id);
            journal.names.push(NameChange::Appeared(path.to_owned()));
            Ok(Box::new(FaultFile { disk: self.clone(), id, file, direct }) as Box<dyn DiskFile>)
        })
    }

    fn open(&self, path: &Path, direct: bool) -> io::Result<Box<dyn DiskRead>> {
        self.atomic(Operation::Frugal, |_| {
            let file = RealDisk.open(path, false)?;
            Ok(Box::new(FaultRead { disk: self.clone(), file, direct }) as Box<dyn DiskRead>)
        })
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.atomic(Operation::Greedy, |journal| {
            RealDisk.link(from, to)?;
            if let Some(id) = journal.ids.get(from).copied() {
                journal.ids.insert(to.to_owned(), id);
            }
            journal.names.push(NameChange::Appeared(to.to_owned()));
            Ok(())
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.atomic(Operation::Greedy, |journal| journal.rename(from, to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.atomic(Operation::Frugal, |journal| journal.remove_file(path))
    }

    fn remove_folder(&self, _: &OwnedFolder, path: &Path) -> io::Result<()> {
        self.step(
            Operation::Frugal,
            |journal| journal.remove_folder(path, true),
            |journal| journal.remove_folder(path, false),
        )
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.atomic(Operation::Sync, |journal| {
            journal.names.retain(|change| change.folder() != Some(path));
            Ok(())
        })
    }
}

struct FaultFile {
    disk: FaultDisk,
    id: usize,
    file: Box<dyn DiskFile>,
    direct: bool,
}

impl FaultFile {
    fn write(&self, journal: &mut Journal, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(offset, bytes)?;
        let change = ByteChange::Wrote { offset, bytes: bytes.to_owned() };
        journal.files[self.id].unsynced.push(change);
        Ok(())
    }
}

impl DiskFile for FaultFile {
    fn direct(&self) -> bool {
        self.direct
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        check_alignment(self.direct, offset, bytes)?;
        self.disk.step(
            Operation::Write,
            |journal| self.write(journal, offset, bytes),
            |journal| self.write(journal, offset, &bytes[..bytes.len() / 2]),
        )
    }

    fn set_size(&self, size_bytes: u64) -> io::Result<()> {
        self.disk.atomic(Operation::Greedy, |journal| {
            self.file.set_size(size_bytes)?;
            journal.files[self.id].unsynced.push(ByteChange::Sized(size_bytes));
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.atomic(Operation::Sync, |journal| {
            journal.files[self.id].settle(&mut || true);
            Ok(())
        })
    }
}

struct FaultRead {
    disk: FaultDisk,
    file: Box<dyn DiskRead>,
    direct: bool,
}

impl DiskRead for FaultRead {
    fn direct(&self) -> bool {
        self.direct
    }

    fn size_bytes(&self) -> io::Result<u64> {
        self.disk.atomic(Operation::Frugal, |_| self.file.size_bytes())
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        check_alignment(self.direct, offset, bytes)?;
        self.disk.atomic(Operation::Frugal, |_| self.file.read_at(offset, bytes))
    }
}
