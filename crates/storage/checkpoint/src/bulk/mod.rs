//! The fast path of a checkpoint's bytes.
//!
//! 1. The training loop copies its tensors into an **arena**: memory that is reserved once, touched once, aligned for
//!    direct I/O and reused by every save. That copy is all it waits for ([`BackgroundSaver`], [`Draft`]).
//! 2. Tensors are laid out as **safetensors** files while they are copied: header padded, data on a block, so the arena
//!    has the bytes that the disk will have.
//! 3. A thread hashes and writes the files past the page cache and syncs them ([`FileWriter`]). A large file that the
//!    parent checkpoint has with the same bytes becomes a hard link. The owner's callback then commits.
//! 4. Reading goes the same way back ([`read_files`]): past the page cache, each chunk hashed as it arrives, into
//!    memory that the tensors are views of.
//!
//! Every step on the disk goes through [`trackway_store::Disk`]. This module does not know the log: the owner commits
//! checkpoints.

mod arena;
mod chunks;
mod copy;
mod draft;
mod mapping;
mod memory;
pub(crate) mod parallel;
mod pinned;
mod plan;
pub(crate) mod read;
mod reshard;
mod safetensors;
mod saver;
mod write;

#[cfg(test)]
mod tests;

pub use crate::error::TensorError;
pub use arena::Region;
pub use chunks::{CHUNK_BYTES, ChunkHash};
pub(crate) use chunks::{ChunkHasher, chunk_count, chunk_texts, file_hash};
pub(crate) use draft::SourceFile;
pub use draft::{Draft, DraftSave, TensorRef};
pub use memory::available_bytes;
pub use plan::{MAX_FILE_BYTES, TensorSpec};
pub use read::{Fill, LoadError, LoadedFile, TensorView, read_files, read_header, read_into, verify_files};
pub use reshard::{Tensors, Want, read_tensors};
pub use safetensors::{Dtype, Header, TensorInfo, TensorSlice};
pub use saver::{BackgroundSaver, CommitCallback, SaveEnd, SaveOutcome, Saved};
pub(crate) use write::link;
pub use write::{DraftFile, Figures, FileWriter, Parent, SHARE_BYTES_MIN, WriteReport, WrittenFile};
