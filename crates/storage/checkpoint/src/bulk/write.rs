use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use trackway_core::Clock;
use trackway_formats::checkpoint_manifest::{Kind, ManifestError, ManifestFile, check_file_name};
use trackway_store::{Disk, DiskFile};

use crate::bulk::chunks::{ChunkHash, chunk_texts, file_hash, hash_chunks};
use crate::bulk::mapping::BLOCK_BYTES;
use crate::bulk::parallel::{cores, lock};
use crate::error::{CheckpointError, Result};

const WRITE_BYTES: usize = 16 << 20;
/// Smaller files go through the page cache: a direct write costs them more than it saves.
const DIRECT_BYTES_MIN: usize = 1 << 20;
/// Smaller files are written again rather than shared. That costs next to nothing, and a flipped bit in one copy of a
/// cursor or a generator's state must not damage every checkpoint at once.
pub const SHARE_BYTES_MIN: u64 = 1 << 20;
/// Bytes written to find out which way is faster.
const PROBE_BYTES: usize = 32 << 20;
/// How often each way is tried at most.
const PROBE_ROUNDS_MAX: usize = 3;
const PROBE_NAME: &str = ".probe";
/// How much slower direct writes may be and still be preferred: they leave the page cache to the training data.
const DIRECT_HANDICAP: f64 = 1.1;
/// Files written at a time.
const WRITE_THREADS: usize = 2;
/// The most files hashed at a time; one core hashes faster than most disks write.
const MAX_HASH_THREADS: usize = 4;
/// Cores per hashing thread: the others are the training's.
const CORES_PER_HASH_THREAD: usize = 4;

/// A file in memory.
#[derive(Debug, Clone, Copy)]
pub struct DraftFile<'a> {
    name: &'a str,
    kind: Kind,
    size_bytes: usize,
    /// The file, and after it the padding that a direct write includes when the memory has it.
    memory: &'a [u8],
}

impl<'a> DraftFile<'a> {
    /// A file from any memory.
    #[must_use]
    pub fn new(name: &'a str, kind: Kind, bytes: &'a [u8]) -> Self {
        Self { name, kind, size_bytes: bytes.len(), memory: bytes }
    }

    /// A file of `size_bytes` in memory that extends to the end of its last block.
    pub(crate) fn in_blocks(name: &'a str, kind: Kind, size_bytes: usize, memory: &'a [u8]) -> Self {
        Self { name, kind, size_bytes, memory }
    }

    /// Its name in the checkpoint.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// What it holds.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        &self.memory[..self.size_bytes]
    }

    /// The bytes in whole blocks, when they are aligned for a direct write.
    fn blocks(&self) -> Option<&'a [u8]> {
        let aligned = self.memory.as_ptr().align_offset(BLOCK_BYTES) == 0;
        self.memory.get(..self.size_bytes.next_multiple_of(BLOCK_BYTES)).filter(|_| aligned)
    }
}

/// The checkpoint from which unchanged files are taken: it is committed, on the same file system, and its files are
/// durable.
#[derive(Debug, Clone, Copy)]
pub struct Parent<'a> {
    /// Where its files are.
    pub folder: &'a Path,
    /// Its prefix below the root.
    pub object_prefix: &'a str,
    /// What it consists of.
    pub files: &'a [ManifestFile],
}

/// What was written.
#[derive(Debug)]
pub struct WriteReport {
    /// The files, in the order they were given.
    pub files: Vec<WrittenFile>,
    /// What it took.
    pub figures: Figures,
}

/// What writing the files of a save took.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Figures {
    /// Bytes that went to the disk.
    pub bytes_written: u64,
    /// Bytes of files that became links to the parent's.
    pub bytes_shared: u64,
    /// What hashing took, on all threads together.
    pub hash_seconds: f64,
    /// What all of it took, hashing included.
    pub write_seconds: f64,
    /// Whether large files went past the page cache.
    pub direct: bool,
}

impl Figures {
    /// Adds those of another part of the same save.
    pub(crate) fn add(&mut self, other: &Self) {
        self.bytes_written += other.bytes_written;
        self.bytes_shared += other.bytes_shared;
        self.hash_seconds += other.hash_seconds;
        self.write_seconds += other.write_seconds;
        self.direct |= other.direct;
    }
}

/// A file that is durable; its name becomes so with its folder.
#[derive(Debug, Clone)]
pub struct WrittenFile {
    /// As the manifest lists it.
    pub file: ManifestFile,
    /// Whether it is a link to the parent's.
    pub shared: bool,
}

/// Writes the files of checkpoints below one root. It finds out by measuring whether that file system is written
/// faster past the page cache, and remembers it.
pub struct FileWriter {
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    share_bytes_min: u64,
    direct: Mutex<Option<bool>>,
    /// Files that were other than the parent's last time. They are written without waiting for their hash; one that
    /// stays the same after all is shared from the next save on.
    changing: Mutex<BTreeSet<String>>,
}

impl FileWriter {
    /// One that has written nothing yet.
    pub fn new(disk: Arc<dyn Disk>, clock: Arc<dyn Clock>) -> Self {
        let (direct, changing) = (Mutex::default(), Mutex::default());
        Self { disk, clock, share_bytes_min: SHARE_BYTES_MIN, direct, changing }
    }

    /// The same, sharing files from another size on.
    pub(crate) fn sharing_from(self, share_bytes_min: u64) -> Self {
        Self { share_bytes_min, ..self }
    }

    pub(crate) fn disk(&self) -> &dyn Disk {
        self.disk.as_ref()
    }

    pub(crate) fn share_bytes_min(&self) -> u64 {
        self.share_bytes_min
    }

    /// Writes, hashes and syncs files into a folder that is new and empty. A file of at least [`SHARE_BYTES_MIN`] that
    /// `parent` has too, with the same name, kind, size and bytes, becomes a hard link to it. The folder itself is not
    /// synced.
    ///
    /// # Errors
    /// [`CheckpointError::Manifest`] for a name that is not allowed or given twice, [`CheckpointError::Storage`] when
    /// the disk refuses; what was written by then is for the caller to remove.
    pub fn write(
        &self,
        folder: &Path,
        files: &[DraftFile<'_>],
        parent: Option<Parent<'_>>,
    ) -> Result<WriteReport> {
        check_names(files)?;
        let started = self.clock.monotonic_micros();
        let direct = self.choose_direct(folder, files);
        let mut save = Save::new(self, folder, direct, files, parent);
        save.run()?;
        let mut written = save.into_written();
        self.remember_changing(&written, parent);
        written.figures.write_seconds = (self.clock.monotonic_micros() - started) as f64 / 1e6;
        Ok(written)
    }

    fn remember_changing(&self, written: &WriteReport, parent: Option<Parent<'_>>) {
        let mut changing = lock(&self.changing);
        for WrittenFile { file, .. } in &written.files {
            let previous =
                parent.and_then(|parent| parent.files.iter().find(|previous| previous.name == file.name));
            match previous {
                Some(previous) if !previous.same_content(file) => changing.insert(file.name.clone()),
                _ => changing.remove(&file.name),
            };
        }
    }

    /// Whether large files go past the page cache: measured at the first save with a file that is large enough.
    fn choose_direct(&self, folder: &Path, files: &[DraftFile<'_>]) -> bool {
        let mut known = lock(&self.direct);
        if let Some(direct) = *known {
            return direct;
        }
        let sample = files.iter().filter_map(DraftFile::blocks).find_map(|blocks| blocks.get(..PROBE_BYTES));
        let Some(sample) = sample else { return true };
        // A disk that fails here fails again where errors are reported; until then nothing is known.
        *known = self.direct_is_faster(folder, sample).ok();
        known.unwrap_or(false)
    }

    /// One round is enough to choose the direct way; the other must win all of them, so that noise does not choose it.
    fn direct_is_faster(&self, folder: &Path, sample: &[u8]) -> io::Result<bool> {
        for _ in 0..PROBE_ROUNDS_MAX {
            let Some(direct_micros) = self.probe(folder, sample, true)? else { return Ok(false) };
            let buffered_micros = self.probe(folder, sample, false)?.unwrap_or(i64::MAX);
            if direct_micros as f64 <= buffered_micros as f64 * DIRECT_HANDICAP {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Microseconds until a sample is durable; `None`: this file system cannot do it that way.
    fn probe(&self, folder: &Path, sample: &[u8], direct: bool) -> io::Result<Option<i64>> {
        let path = folder.join(PROBE_NAME);
        let started = self.clock.monotonic_micros();
        let file = self.disk.create(&path, direct)?;
        let possible = file.direct() == direct;
        if possible {
            write_all(file.as_ref(), sample, || false)?;
            file.sync()?;
        }
        let micros = self.clock.monotonic_micros() - started;
        drop(file);
        self.disk.remove_file(&path)?;
        Ok(possible.then_some(micros))
    }
}

fn check_names(files: &[DraftFile<'_>]) -> Result<(), ManifestError> {
    let mut names = BTreeSet::new();
    for file in files {
        check_file_name(file.name).map_err(|rule| ManifestError::Rule { rule })?;
        if !names.insert(file.name) {
            return Err(ManifestError::Rule { rule: format!("`{}` was written already", file.name) });
        }
    }
    Ok(())
}

fn write_all(file: &dyn DiskFile, bytes: &[u8], stop: impl Fn() -> bool) -> io::Result<()> {
    let mut offset = 0;
    for piece in bytes.chunks(WRITE_BYTES) {
        if stop() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        file.write_at(offset, piece)?;
        offset += piece.len() as u64;
    }
    Ok(())
}

/// One call of [`FileWriter::write`]: hashing threads run ahead, writing threads follow.
struct Save<'a> {
    writer: &'a FileWriter,
    folder: &'a Path,
    direct: bool,
    parent: Option<Parent<'a>>,
    jobs: Vec<Job<'a>>,
    hash_micros: AtomicI64,
    failure: Mutex<Option<CheckpointError>>,
}

struct Job<'a> {
    file: DraftFile<'a>,
    /// The parent's file of the same name, kind and size, when it is large enough to be shared.
    previous: Option<&'a ManifestFile>,
    /// Whether it is written only when its hash is known and differs from the parent's file.
    waits: bool,
    hashed: OnceLock<(blake3::Hash, Vec<ChunkHash>)>,
    shared: AtomicBool,
}

impl<'a> Save<'a> {
    fn new(
        writer: &'a FileWriter,
        folder: &'a Path,
        direct: bool,
        files: &[DraftFile<'a>],
        parent: Option<Parent<'a>>,
    ) -> Self {
        let parent_files: BTreeMap<&str, &ManifestFile> =
            parent.iter().flat_map(|parent| parent.files).map(|file| (file.name.as_str(), file)).collect();
        let changing = lock(&writer.changing);
        let job = |file: &DraftFile<'a>| {
            let size_bytes = file.size_bytes as u64;
            let alike =
                |previous: &&ManifestFile| (previous.kind, previous.size_bytes) == (file.kind, size_bytes);
            let large = size_bytes >= writer.share_bytes_min;
            let previous = parent_files.get(file.name).copied().filter(alike).filter(|_| large);
            let waits = previous.is_some() && !changing.contains(file.name);
            Job { file: *file, previous, waits, hashed: OnceLock::new(), shared: AtomicBool::new(false) }
        };
        let jobs = files.iter().map(job).collect();
        drop(changing);
        Self {
            writer,
            folder,
            direct,
            parent,
            jobs,
            hash_micros: AtomicI64::new(0),
            failure: Mutex::default(),
        }
    }

    /// Hashing and writing threads. What is small is done on this thread alone before another one has started.
    fn threads(&self) -> (usize, usize) {
        let total_bytes: usize = self.jobs.iter().map(|job| job.file.size_bytes).sum();
        if total_bytes < DIRECT_BYTES_MIN {
            return (1, 0);
        }
        let hash_threads = (cores() / CORES_PER_HASH_THREAD).clamp(1, MAX_HASH_THREADS);
        (hash_threads, WRITE_THREADS.min(self.jobs.len()))
    }

    fn run(&mut self) -> Result<()> {
        let (hash_threads, write_threads) = self.threads();
        let (ready, to_write) = mpsc::channel();
        let to_write = Mutex::new(to_write);
        let (waiting, others): (Vec<_>, Vec<_>) =
            (0..self.jobs.len()).partition(|index| self.jobs[*index].waits);
        for index in &others {
            let _ = ready.send(*index);
        }
        // Those that the writing waits for are hashed first.
        let to_hash = Mutex::new(waiting.into_iter().chain(others));
        let this = &*self;
        thread::scope(|scope| {
            let (to_hash, to_write) = (&to_hash, &to_write);
            let writers: Vec<_> = (0..write_threads)
                .filter_map(|_| {
                    thread::Builder::new().spawn_scoped(scope, || this.write_ready(to_write)).ok()
                })
                .collect();
            for _ in 1..hash_threads {
                let ready = ready.clone();
                let _ = thread::Builder::new().spawn_scoped(scope, move || this.hash_each(to_hash, &ready));
            }
            this.hash_each(to_hash, &ready);
            // The writing threads end when all hashing has.
            drop(ready);
            if writers.is_empty() {
                this.write_ready(to_write);
            }
        });
        self.failure.get_mut().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    fn hash_each(&self, to_hash: &Mutex<impl Iterator<Item = usize>>, ready: &Sender<usize>) {
        while !self.failed() {
            let Some(index) = lock(to_hash).next() else { return };
            let job = &self.jobs[index];
            self.hash(job);
            // Those that do not wait were queued before their hashes were known.
            if job.waits && !self.share(job) {
                let _ = ready.send(index);
            }
        }
    }

    fn write_ready(&self, to_write: &Mutex<Receiver<usize>>) {
        loop {
            let next = lock(to_write).recv();
            let Ok(index) = next else { return };
            if self.failed() {
                return;
            }
            if let Err(error) = self.write_file(&self.jobs[index].file) {
                lock(&self.failure).get_or_insert(error);
            }
        }
    }

    fn failed(&self) -> bool {
        lock(&self.failure).is_some()
    }

    fn hash(&self, job: &Job<'_>) {
        let started = self.writer.clock.monotonic_micros();
        let chunks = hash_chunks(job.file.bytes());
        let _ = job.hashed.set((file_hash(&chunks), chunks));
        self.hash_micros.fetch_add(self.writer.clock.monotonic_micros() - started, Ordering::Relaxed);
    }

    /// Links a file to the parent's, when that has the same bytes and still its size. If this fails, the file is
    /// written, which reports what is wrong.
    fn share(&self, job: &Job<'_>) -> bool {
        let (Some(parent), Some(previous), Some((hash, _))) = (self.parent, job.previous, job.hashed.get())
        else {
            return false;
        };
        if previous.blake3 != hash.to_hex().as_str() {
            return false;
        }
        let (theirs, ours) = (parent.folder.join(&previous.name), self.folder.join(job.file.name));
        let shared = link(self.writer.disk(), &theirs, &ours, previous.size_bytes);
        job.shared.store(shared, Ordering::Relaxed);
        shared
    }

    /// Writes a file and syncs it.
    fn write_file(&self, draft: &DraftFile<'_>) -> Result<()> {
        let path = self.folder.join(draft.name);
        let blocks = draft.blocks().filter(|_| self.direct && draft.size_bytes >= DIRECT_BYTES_MIN);
        let file = self
            .writer
            .disk
            .create(&path, blocks.is_some())
            .map_err(CheckpointError::storage("create", &path))?;
        let bytes = blocks.filter(|_| file.direct()).unwrap_or(draft.bytes());
        write_all(file.as_ref(), bytes, || self.failed())
            .map_err(CheckpointError::storage("write", &path))?;
        // A direct write goes in whole blocks: the padding of the last one is cut off.
        if bytes.len() != draft.size_bytes {
            file.set_size(draft.size_bytes as u64).map_err(CheckpointError::storage("cut", &path))?;
        }
        file.sync().map_err(CheckpointError::storage("sync", &path))
    }

    fn into_written(self) -> WriteReport {
        let mut written = WriteReport {
            files: Vec::with_capacity(self.jobs.len()),
            figures: Figures {
                hash_seconds: self.hash_micros.into_inner() as f64 / 1e6,
                direct: self.direct,
                ..Figures::default()
            },
        };
        let prefix = self.parent.map_or("", |parent| parent.object_prefix);
        for job in self.jobs {
            let size_bytes = job.file.size_bytes as u64;
            let (hash, chunk_hashes) =
                job.hashed.into_inner().expect("a save without a failure hashed every file");
            let mut file = ManifestFile::new(job.file.name, job.file.kind, size_bytes, &hash);
            file.chunks = chunk_texts(&chunk_hashes);
            let shared = job.shared.into_inner();
            if shared {
                file.stored_in = job
                    .previous
                    .and_then(|previous| previous.stored_in.clone())
                    .or_else(|| Some(prefix.to_owned()));
            }
            let figures = &mut written.figures;
            *if shared { &mut figures.bytes_shared } else { &mut figures.bytes_written } += size_bytes;
            written.files.push(WrittenFile { file, shared });
        }
        written
    }
}

/// Links the parent's file, if it still has its size.
pub(crate) fn link(disk: &dyn Disk, theirs: &Path, target: &Path, size_bytes: u64) -> bool {
    let has_size =
        disk.open(theirs, false).and_then(|file| file.size_bytes()).is_ok_and(|size| size == size_bytes);
    has_size && disk.link(theirs, target).is_ok()
}
