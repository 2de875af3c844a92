//! The bounds of every list, buffer and walk of this crate. What exceeds one is an error or `cannot_tell`, never a guess.

/// The most files and folders of a listing; a folder with more is an error.
pub const MAX_FILES: usize = 200_000;
/// Most files and folders of a folder in which checkpoints are looked for.
pub const MAX_FILES_SEARCHED: usize = 20_000;
/// The deepest folder of a listing, counted from its root; what is deeper is named and not listed.
pub const MAX_FOLDER_DEPTH: usize = 64;
/// The most bytes that are read of one file to check it.
pub const MAX_READ_BYTES: u64 = 256 << 20;
/// The most bytes that are read of one file to find its step and components; behind them, these are not known.
pub const MAX_SEARCH_BYTES: u64 = 32 << 20;
/// The first bytes of a file that show its format.
pub const HEAD_BYTES: usize = 64;
/// The bytes that are read at once.
pub const BLOCK_BYTES: usize = 64 << 10;
/// The longest piece of a file that is held in memory.
pub const MAX_PIECE_BYTES: usize = 1 << 20;
/// The longest file that is read as a whole: trackers and small metadata files.
pub const MAX_SMALL_BYTES: u64 = 64 << 10;
/// The deepest nesting of JSON, UBJSON and MessagePack.
pub const MAX_NESTING: usize = 512;
/// The most marks that are open at once in a pickle.
pub const MAX_MARKS: usize = 10_000;
/// The most strings of a pickle that are kept, since later operations refer to them.
pub const MAX_MEMO: usize = 200_000;
/// The longest string that is kept: of a pickle, of JSON, UBJSON and MessagePack.
pub const MAX_TEXT_BYTES: usize = 4096;
/// The most entries at the top of a state whose names are kept.
pub const MAX_KEYS: usize = 4096;
/// The most entries of a zip archive.
pub const MAX_ZIP_ENTRIES: u64 = 100_000;
/// The most pickles and HDF5 files that are checked within a zip archive.
pub const MAX_INNER_FILES: usize = 16;
/// The longest directory of a zip archive.
pub const MAX_ZIP_DIRECTORY_BYTES: u64 = 64 << 20;
/// The longest header of a safetensors file, as its specification says.
pub const MAX_SAFETENSORS_HEADER_BYTES: u64 = 100_000_000;
/// The most blocks of an xz or lz4 file.
pub const MAX_BLOCKS: u64 = 1_000_000;
