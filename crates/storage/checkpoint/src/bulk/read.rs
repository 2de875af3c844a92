use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use trackway_files::if_there;
use trackway_formats::checkpoint_manifest::{Kind, ManifestFile};
use trackway_store::{Disk, DiskRead};

use crate::bulk::chunks::{CHUNK_BYTES, ChunkHash, ChunkHasher, chunk_count, file_hash};
use crate::bulk::mapping::{BLOCK_BYTES, Buffer};
use crate::bulk::memory::available_bytes;
use crate::bulk::parallel::try_for_each;
use crate::bulk::safetensors::{Header, LENGTH_BYTES, TensorInfo, header_bytes};
use crate::error::{Defect, TensorError, check_hash, check_size};

/// Chunks that are on their way at a time: while some are read, others are hashed.
const READ_THREADS: usize = 4;
/// Bytes read at a time from the page cache: few enough that they are hashed while the core's cache still has them.
const CACHED_READ_BYTES: usize = 256 << 10;
/// Smaller files are read through the page cache.
const DIRECT_BYTES_MIN: u64 = 1 << 20;

/// A file of a checkpoint in memory, verified.
pub struct LoadedFile {
    name: String,
    kind: Kind,
    buffer: Buffer,
    size_bytes: usize,
}

/// A tensor in a file's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorView<'a> {
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

    /// Its bytes, for a caller that is given the memory: another language, whose tensors are views of it.
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer.bytes_mut()[..self.size_bytes]
    }

    /// Its tensors, without copying them.
    ///
    /// # Errors
    /// When it is not a safetensors file.
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

/// Reads files of a checkpoint into memory and checks them on the way: all sizes first, then every hash. Returns
/// nothing unless all match the manifest.
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
    try_for_each(threads_for(files), tasks, no_tool, |(), task| {
        let (chunk, (memory, hash)) = task?;
        *hash = chunk.hash_into(memory)?;
        Ok(())
    })?;
    check_hashes(files, &hashes)?;
    Ok(loaded)
}

/// Checks that files of a checkpoint match the manifest, in a few chunks of memory whatever their size.
///
/// # Errors
/// The first [`Defect`] found.
pub fn verify_files(disk: &dyn Disk, folder: &Path, files: &[ManifestFile]) -> Result<(), Defect> {
    check_sizes(disk, folder, files)?;
    let pieces = files.iter().map(|file| no_pieces(file.size_bytes)).collect();
    stream(disk, folder, files, pieces)
}

/// Where bytes of a file go that is read into memory that exists already.
#[derive(Debug)]
pub struct Fill<'a> {
    pub file: ManifestFile,
    /// Stretches of the file: where each begins, and the memory for it.
    pub targets: Vec<(u64, &'a mut [u8])>,
}

/// Reads files of a checkpoint into memory that exists already, such as the tensors of a model, and checks them on the
/// way like [`read_files`]. It takes a few chunks of memory; if memory is expensive to get, it is the faster way.
///
/// After an error the targets hold something or other: fill them from another checkpoint, or do not use them.
///
/// # Errors
/// [`LoadError::Defect`], the first found; [`LoadError::Tensors`] for a target that ends after its file, before any is
/// touched.
pub fn read_into(disk: &dyn Disk, folder: &Path, fills: Vec<Fill<'_>>) -> Result<(), LoadError> {
    let (files, targets): (Vec<_>, Vec<_>) = fills.into_iter().map(|fill| (fill.file, fill.targets)).unzip();
    check_sizes(disk, folder, &files)?;
    let pieces =
        files.iter().zip(targets).map(|(file, targets)| cut(file, targets)).collect::<Result<_, _>>()?;
    Ok(stream(disk, folder, &files, pieces)?)
}

/// What is wanted of one chunk: where it begins in the chunk, and the memory for it.
type Pieces<'a> = Vec<(usize, &'a mut [u8])>;

fn no_pieces<'a>(size_bytes: u64) -> Vec<Pieces<'a>> {
    (0..chunk_count(size_bytes)).map(|_| Vec::new()).collect()
}

/// Cuts targets at the bounds of chunks.
fn cut<'a>(file: &ManifestFile, targets: Vec<(u64, &'a mut [u8])>) -> Result<Vec<Pieces<'a>>, TensorError> {
    let mut pieces = no_pieces(file.size_bytes);
    for (mut offset, mut target) in targets {
        if offset.checked_add(target.len() as u64).is_none_or(|end| end > file.size_bytes) {
            let rule =
                format!("{} bytes at {offset} reach past the end of the file `{}`", target.len(), file.name);
            return Err(TensorError::rule(rule));
        }
        while !target.is_empty() {
            let (index, begin) = (offset / CHUNK_BYTES as u64, (offset % CHUNK_BYTES as u64) as usize);
            let (piece, rest) = target.split_at_mut(target.len().min(CHUNK_BYTES - begin));
            offset += piece.len() as u64;
            target = rest;
            pieces[index as usize].push((begin, piece));
        }
    }
    Ok(pieces)
}

/// Reads files through a few buffers, checks them, and leaves the pieces where they are wanted.
fn stream(
    disk: &dyn Disk,
    folder: &Path,
    files: &[ManifestFile],
    pieces: Vec<Vec<Pieces<'_>>>,
) -> Result<(), Defect> {
    let mut hashes = no_hashes(files);
    let tasks = files
        .iter()
        .zip(pieces)
        .zip(&mut hashes)
        .flat_map(|((file, pieces), hashes)| tasks(disk, folder, file, pieces.into_iter().zip(hashes)));
    let largest = files.iter().map(|file| file.size_bytes).max().unwrap_or(0).min(CHUNK_BYTES as u64);
    let buffer = || Buffer::new(largest as usize).map_err(Defect::unreadable("a chunk"));
    try_for_each(threads_for(files), tasks, buffer, |buffer, task| {
        let (chunk, (pieces, hash)) = task?;
        *hash = chunk.hash_into(buffer.bytes_mut())?;
        for (begin, piece) in pieces {
            piece.copy_from_slice(&buffer.bytes()[begin..begin + piece.len()]);
        }
        Ok(())
    })?;
    check_hashes(files, &hashes)
}

/// Reads the header of a tensor file, to find what has to be filled. The hash of the file is not checked: that happens
/// when it is read.
///
/// # Errors
/// [`LoadError::Defect`] when it cannot be read or is damaged; [`LoadError::Tensors`] when it is not a safetensors
/// file.
pub fn read_header(disk: &dyn Disk, folder: &Path, file: &ManifestFile) -> Result<Header, LoadError> {
    let source = open(disk, folder, file, false)?;
    let read = |bytes: &mut [u8]| source.reader.read_at(0, bytes).map_err(Defect::unreadable(&file.name));
    let header = || -> Result<Header, LoadError> {
        let mut first = [0; LENGTH_BYTES];
        read(&mut first)?;
        let mut bytes = vec![0; header_bytes(first, file.size_bytes)? as usize];
        let count = read(&mut bytes)?;
        Ok(Header::from_bytes(&bytes[..count], file.size_bytes)?)
    };
    header().or_else(|error| {
        // Damage may be the reason why it is not a tensor file: that is the more useful error.
        verify_files(disk, folder, std::slice::from_ref(file))?;
        Err(error)
    })
}

/// Why tensors could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file is not what was committed.
    #[error(transparent)]
    Defect(#[from] Defect),
    /// The files lack a requested tensor, or hold no tensors.
    #[error(transparent)]
    Tensors(#[from] TensorError),
}

/// A file that is open and has the size it must have.
pub(crate) struct Source<'a> {
    file: &'a ManifestFile,
    pub reader: Box<dyn DiskRead>,
}

/// A part of a file that is read and hashed on its own. The file is closed with the last of its chunks.
struct Chunk<'a> {
    source: Arc<Source<'a>>,
    index: usize,
}

impl Chunk<'_> {
    /// Reads it to the front of `memory`, which extends at least to the end of its last block, and hashes it.
    fn hash_into(&self, memory: &mut [u8]) -> Result<ChunkHash, Defect> {
        let Source { file, reader } = &*self.source;
        let begin = (self.index * CHUNK_BYTES) as u64;
        let expected = (file.size_bytes - begin).min(CHUNK_BYTES as u64) as usize;
        let mut hasher = ChunkHasher::new(self.index, chunk_count(file.size_bytes));
        let piece_bytes = if reader.direct() { CHUNK_BYTES } else { CACHED_READ_BYTES };
        for done in (0..expected).step_by(piece_bytes) {
            let wanted = (expected - done).min(piece_bytes);
            let asked = if reader.direct() { wanted.next_multiple_of(BLOCK_BYTES) } else { wanted };
            let from = begin + done as u64;
            let piece = &mut memory[done..done + asked];
            let count = reader.read_at(from, piece).map_err(|source| {
                let bytes = format!("bytes {from} to {}: {source}", from + wanted as u64);
                Defect::unreadable(&file.name)(io::Error::new(source.kind(), bytes))
            })?;
            if count < wanted {
                check_size(file, from + count as u64)?;
            }
            hasher.update(&piece[..wanted]);
        }
        Ok(hasher.finish())
    }
}

/// What there is to do for one file, which is opened now: each chunk with what belongs to it.
fn tasks<'a, T>(
    disk: &dyn Disk,
    folder: &Path,
    file: &'a ManifestFile,
    belongings: impl IntoIterator<Item = T>,
) -> Vec<Result<(Chunk<'a>, T), Defect>> {
    match open_fast(disk, folder, file) {
        Err(defect) => vec![Err(defect)],
        Ok(source) => {
            let source = Arc::new(source);
            let task = |(index, belonging)| Ok((Chunk { source: source.clone(), index }, belonging));
            belongings.into_iter().enumerate().map(task).collect()
        }
    }
}

/// Opens a file in the way that reads it faster: past the page cache, unless it is cached.
///
/// From there it is copied and not mapped. A mapping would save the new memory, which costs more than copying and
/// hashing together; but its pages may be read again from the disk after they were checked, and a file that is cut
/// short, or removed on a network file system, would end the process that looks at them.
fn open_fast<'a>(disk: &dyn Disk, folder: &Path, file: &'a ManifestFile) -> Result<Source<'a>, Defect> {
    let source = open(disk, folder, file, false)?;
    let cached = source.reader.cached_bytes() >= file.size_bytes / 10 * 9;
    if file.size_bytes < DIRECT_BYTES_MIN || cached { Ok(source) } else { open(disk, folder, file, true) }
}

pub(crate) fn open<'a>(
    disk: &dyn Disk,
    folder: &Path,
    file: &'a ManifestFile,
    direct: bool,
) -> Result<Source<'a>, Defect> {
    let reader = open_named(disk, folder, &file.name, direct)?;
    check_size(file, reader.size_bytes().map_err(Defect::unreadable(&file.name))?)?;
    Ok(Source { file, reader })
}

pub(crate) fn open_named(
    disk: &dyn Disk,
    folder: &Path,
    name: &str,
    direct: bool,
) -> Result<Box<dyn DiskRead>, Defect> {
    let opened = if_there(disk.open(&folder.join(name), direct)).map_err(Defect::unreadable(name))?;
    opened.ok_or_else(|| Defect::Missing { name: name.into() })
}

/// What is small is read on this thread before another one has started.
fn threads_for(files: &[ManifestFile]) -> usize {
    let total_bytes = files.iter().fold(0u64, |sum, file| sum.saturating_add(file.size_bytes));
    if total_bytes < DIRECT_BYTES_MIN { 1 } else { READ_THREADS }
}

/// Checks what is cheap to check, before gigabytes are read.
fn check_sizes(disk: &dyn Disk, folder: &Path, files: &[ManifestFile]) -> Result<(), Defect> {
    files.iter().try_for_each(|file| open(disk, folder, file, false).map(drop))
}

fn rooms_for(files: &[ManifestFile]) -> Result<Vec<LoadedFile>, Defect> {
    // The files have these sizes, so the numbers are no attack; they may still be more than this machine has.
    let total_bytes = files.iter().fold(0u64, |sum, file| sum.saturating_add(file.size_bytes));
    let fits = available_bytes().is_none_or(|left| total_bytes <= left as u64);
    let room = |file: &ManifestFile| {
        let size_bytes = usize::try_from(file.size_bytes).ok().filter(|_| fits);
        let buffer = size_bytes.ok_or_else(|| io::ErrorKind::OutOfMemory.into()).and_then(Buffer::new);
        let buffer = buffer.map_err(Defect::unreadable(&file.name))?;
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
        check_hash(file, &file_hash(chunks))?;
    }
    Ok(())
}
