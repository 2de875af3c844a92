use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use trackway_formats::checkpoint_manifest::{Kind, ManifestFile};
use trackway_store::{Disk, DiskRead};

use crate::bulk::chunks::{CHUNK_BYTES, ChunkHash, chunk_count, chunk_hash, file_hash};
use crate::bulk::mapping::{BLOCK_BYTES, Buffer, available_bytes};
use crate::bulk::parallel::try_for_each;
use crate::bulk::safetensors::{Header, TensorError, TensorInfo};
use crate::verify::Defect;

/// Chunks that are on their way at a time: while some are read, others are hashed.
const READ_THREADS: usize = 4;
/// Smaller files are read through the page cache.
const DIRECT_BYTES_MIN: u64 = 1 << 20;

/// A file of a checkpoint in memory, verified.
pub struct LoadedFile {
    name: String,
    kind: Kind,
    buffer: Buffer,
    size_bytes: usize,
}

/// A tensor that lies in a file's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorView<'a> {
    /// What it is.
    pub info: TensorInfo,
    /// Its elements, in little-endian order, the last axis running fastest.
    pub bytes: &'a [u8],
}

impl LoadedFile {
    /// Its name in the checkpoint.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it holds.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its bytes; the first one is aligned to a page.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer.bytes()[..self.size_bytes]
    }

    /// Its tensors, without copying them.
    ///
    /// # Errors
    /// When it is no safetensors file.
    pub fn tensors(&self) -> Result<Vec<TensorView<'_>>, TensorError> {
        let header = Header::from_bytes(self.bytes(), self.size_bytes as u64)?;
        Ok(header.tensors.into_iter().map(|info| self.view(info)).collect())
    }

    fn view(&self, info: TensorInfo) -> TensorView<'_> {
        let begin = info.offset_bytes as usize;
        let bytes = &self.bytes()[begin..begin + info.size_bytes as usize];
        TensorView { info, bytes }
    }
}

impl fmt::Debug for LoadedFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = (&self.name, self.kind, self.size_bytes);
        formatter.debug_tuple("LoadedFile").field(&fields).finish()
    }
}

/// Reads files of a checkpoint into memory and checks them on the way: all sizes first, then every hash. Nothing is
/// returned unless all are what the manifest says.
///
/// # Errors
/// The first [`Defect`] found; [`Defect::Unreadable`] also when there is not enough memory.
pub fn read_files(disk: &dyn Disk, folder: &Path, files: &[ManifestFile]) -> Result<Vec<LoadedFile>, Defect> {
    check_sizes(disk, folder, files)?;
    let mut loaded = rooms_for(files)?;
    let mut hashes = no_hashes(files);
    let tasks = files.iter().zip(&mut loaded).zip(&mut hashes).flat_map(|((file, loaded), hashes)| {
        let memory = loaded.buffer.bytes_mut().chunks_mut(CHUNK_BYTES);
        tasks(disk, folder, file, memory.zip(hashes))
    });
    let no_tool = || Ok::<_, Defect>(());
    try_for_each(READ_THREADS, tasks, no_tool, |(), task| {
        let (chunk, (memory, hash)) = task?;
        *hash = chunk.hash_into(memory)?;
        Ok(())
    })?;
    check_hashes(files, &hashes)?;
    Ok(loaded)
}

/// Checks that files of a checkpoint are what the manifest says, with a few chunks of memory whatever their size.
///
/// # Errors
/// The first [`Defect`] found.
pub fn verify_files(disk: &dyn Disk, folder: &Path, files: &[ManifestFile]) -> Result<(), Defect> {
    check_sizes(disk, folder, files)?;
    let mut hashes = no_hashes(files);
    let tasks = files.iter().zip(&mut hashes).flat_map(|(file, hashes)| tasks(disk, folder, file, hashes));
    let largest = files.iter().map(|file| file.size_bytes).max().unwrap_or(0).min(CHUNK_BYTES as u64);
    let buffer = || Buffer::new(largest as usize).map_err(|source| unreadable("", source));
    try_for_each(READ_THREADS, tasks, buffer, |buffer, task| {
        let (chunk, hash) = task?;
        *hash = chunk.hash_into(buffer.bytes_mut())?;
        Ok(())
    })?;
    check_hashes(files, &hashes)
}

/// Which bytes of a file are not those that were written, by the chunk hashes of that time
/// ([`crate::bulk::WrittenFile::chunk_hashes`]).
///
/// # Errors
/// When the file cannot be read.
pub fn damaged_ranges(
    disk: &dyn Disk,
    path: &Path,
    chunk_hashes: &[ChunkHash],
) -> io::Result<Vec<Range<u64>>> {
    let reader = disk.open(path, false)?;
    let mut buffer = Buffer::new(CHUNK_BYTES)?;
    let mut damaged = Vec::new();
    for (index, expected) in chunk_hashes.iter().enumerate() {
        let begin = (index * CHUNK_BYTES) as u64;
        let count = reader.read_at(begin, &mut buffer.bytes_mut()[..CHUNK_BYTES])?;
        if chunk_hash(index, chunk_hashes.len(), &buffer.bytes()[..count]) != *expected {
            damaged.push(begin..begin + count as u64);
        }
    }
    Ok(damaged)
}

/// A file that is open and has the size it must have.
struct Source<'a> {
    name: &'a str,
    reader: Box<dyn DiskRead>,
    size_bytes: u64,
}

/// A part of a file that is read and hashed on its own. The file is closed with the last of its chunks.
struct Chunk<'a> {
    source: Arc<Source<'a>>,
    index: usize,
}

impl Chunk<'_> {
    /// Reads it to the front of `memory`, which goes on to the end of its last block at least, and hashes it.
    fn hash_into(&self, memory: &mut [u8]) -> Result<ChunkHash, Defect> {
        let Source { name, reader, size_bytes } = &*self.source;
        let begin = (self.index * CHUNK_BYTES) as u64;
        let expected = (size_bytes - begin).min(CHUNK_BYTES as u64) as usize;
        let asked = if reader.direct() { expected.next_multiple_of(BLOCK_BYTES) } else { expected };
        let count = reader.read_at(begin, &mut memory[..asked]).map_err(|source| {
            let end = begin + expected as u64;
            unreadable(name, io::Error::new(source.kind(), format!("bytes {begin} to {end}: {source}")))
        })?;
        if count < expected {
            let found_bytes = begin + count as u64;
            return Err(Defect::Size { name: (*name).into(), expected_bytes: *size_bytes, found_bytes });
        }
        Ok(chunk_hash(self.index, chunk_count(*size_bytes), &memory[..expected]))
    }
}

/// What there is to do for one file, which is opened now: each chunk with what belongs to it.
fn tasks<'a, T>(
    disk: &dyn Disk,
    folder: &Path,
    file: &'a ManifestFile,
    belongings: impl IntoIterator<Item = T>,
) -> Vec<Result<(Chunk<'a>, T), Defect>> {
    match open(disk, folder, file) {
        Err(defect) => vec![Err(defect)],
        Ok(source) => {
            let source = Arc::new(source);
            let task = |(index, belonging)| Ok((Chunk { source: source.clone(), index }, belonging));
            belongings.into_iter().enumerate().map(task).collect()
        }
    }
}

fn open<'a>(disk: &dyn Disk, folder: &Path, file: &'a ManifestFile) -> Result<Source<'a>, Defect> {
    let name = file.name.as_str();
    let reader = match disk.open(&folder.join(name), file.size_bytes >= DIRECT_BYTES_MIN) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Defect::Missing { name: name.into() });
        }
        result => result.map_err(|source| unreadable(name, source))?,
    };
    let found_bytes = reader.size_bytes().map_err(|source| unreadable(name, source))?;
    if found_bytes != file.size_bytes {
        return Err(Defect::Size { name: name.into(), expected_bytes: file.size_bytes, found_bytes });
    }
    Ok(Source { name, reader, size_bytes: found_bytes })
}

/// Checks what is cheap to check, before gigabytes are read.
fn check_sizes(disk: &dyn Disk, folder: &Path, files: &[ManifestFile]) -> Result<(), Defect> {
    files.iter().try_for_each(|file| open(disk, folder, file).map(drop))
}

fn rooms_for(files: &[ManifestFile]) -> Result<Vec<LoadedFile>, Defect> {
    // The files have these sizes, so the numbers are no attack; they may still be more than this machine has.
    let total_bytes = files.iter().fold(0u64, |sum, file| sum.saturating_add(file.size_bytes));
    let fits = total_bytes <= available_bytes() as u64;
    let room = |file: &ManifestFile| {
        let size_bytes = usize::try_from(file.size_bytes).ok().filter(|_| fits);
        let buffer = size_bytes.ok_or_else(|| io::ErrorKind::OutOfMemory.into()).and_then(Buffer::new);
        let buffer = buffer.map_err(|source| unreadable(&file.name, source))?;
        Ok(LoadedFile {
            name: file.name.clone(),
            kind: file.kind,
            buffer,
            size_bytes: file.size_bytes as usize,
        })
    };
    files.iter().map(room).collect()
}

fn no_hashes(files: &[ManifestFile]) -> Vec<Vec<ChunkHash>> {
    files.iter().map(|file| vec![ChunkHash::default(); chunk_count(file.size_bytes)]).collect()
}

fn check_hashes(files: &[ManifestFile], hashes: &[Vec<ChunkHash>]) -> Result<(), Defect> {
    for (file, chunks) in files.iter().zip(hashes) {
        let found = file_hash(chunks).to_hex().to_string();
        if found != file.blake3 {
            return Err(Defect::Hash { name: file.name.clone(), expected: file.blake3.clone(), found });
        }
    }
    Ok(())
}

pub(crate) fn unreadable(name: &str, source: io::Error) -> Defect {
    Defect::Unreadable { name: name.into(), source }
}
