//! What bytes that are not the expected ones look like: cut off, zero, longer, with one byte changed.

use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Bytes read at a time.
const CHUNK_BYTES: usize = 1 << 20;
/// Most bytes hashed in search of one byte that changed: more than that takes longer than a person waits.
pub(super) const MAX_SEARCH_BYTES: usize = 64 << 20;
/// The same for SHA-256, which is slower.
pub(super) const MAX_SHA256_SEARCH_BYTES: usize = 16 << 20;
/// Zeros at the end of a changed file are reported from this length: the least that a disk writes.
const MIN_ZERO_TAIL_BYTES: u64 = 512;

/// A file as it was found, read once however many names it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileFacts {
    pub size_bytes: u64,
    /// In lower-case hex.
    pub blake3: String,
    /// The hash of as many of its first bytes as were expected, when it has more.
    pub expected_part_blake3: Option<String>,
    /// From here to its end there are only zeros.
    pub zeros_from: u64,
    /// Which file it is, whatever it is called.
    pub inode: (u64, u64),
    /// All of its bytes, when they are few enough for a search.
    pub small: Option<Vec<u8>>,
}

/// Reads a file to its end.
pub(super) fn read_facts(
    path: &Path,
    expected_bytes: u64,
    read: &mut dyn FnMut(u64),
) -> io::Result<FileFacts> {
    let mut file = trackway_files::open_regular(path)?;
    let metadata = file.metadata()?;
    let mut whole = blake3::Hasher::new();
    let mut expected_part = None;
    let (mut offset, mut zeros_from) = (0, 0);
    let mut small = Some(Vec::new());
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let count = match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let bytes = &chunk[..count];
        if expected_part.is_none() && offset + count as u64 > expected_bytes {
            let mut part = whole.clone();
            part.update(&bytes[..(expected_bytes - offset) as usize]);
            expected_part = Some(part.finalize().to_hex().to_string());
        }
        whole.update(bytes);
        if let Some(last) = bytes.iter().rposition(|byte| *byte != 0) {
            zeros_from = offset + last as u64 + 1;
        }
        small =
            small.filter(|small| values_tried(small.len() + count, MAX_SEARCH_BYTES) > 0).map(|mut small| {
                small.extend_from_slice(bytes);
                small
            });
        offset += count as u64;
        read(count as u64);
    }
    Ok(FileFacts {
        size_bytes: offset,
        blake3: whole.finalize().to_hex().to_string(),
        expected_part_blake3: expected_part.filter(|_| offset > expected_bytes),
        zeros_from,
        inode: (metadata.dev(), metadata.ino()),
        small,
    })
}

impl FileFacts {
    /// What its bytes look like, when they look like something.
    pub fn appearance(&self) -> Option<String> {
        appearance(self.size_bytes, self.zeros_from)
    }
}

/// What bytes look like that end in zeros: what was never written to the disk reads as zero.
fn appearance(size_bytes: u64, zeros_from: u64) -> Option<String> {
    let zeros = size_bytes - zeros_from;
    match zeros_from {
        _ if size_bytes == 0 => Some("it is empty".into()),
        0 => Some("every byte of it is zero: its bytes never reached the disk".into()),
        _ if zeros >= MIN_ZERO_TAIL_BYTES => Some(format!(
            "it is zero from byte {zeros_from} on: its last {zeros} bytes never reached the disk"
        )),
        _ => None,
    }
}

/// The same for bytes at hand.
pub(super) fn appearance_of(bytes: &[u8]) -> Option<String> {
    let zeros_from = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
    appearance(bytes.len() as u64, zeros_from)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChangedByte {
    pub offset: u64,
    pub found: u8,
    pub expected: u8,
}

/// How many other values of each byte a search through so many bytes can try in time: all of them, those with one bit
/// turned (what disks and memory do), or none.
fn values_tried(count: usize, max_bytes: usize) -> usize {
    let fits = |values: usize| count.saturating_mul(count).saturating_mul(values) <= max_bytes;
    [255, 8].into_iter().find(|values| fits(*values)).unwrap_or(0)
}

/// The one byte that must be another for bytes to be the expected ones; a search that would hash more than `max_bytes`
/// is not begun.
pub(super) fn changed_byte(
    bytes: &[u8],
    max_bytes: usize,
    is_expected: impl Fn(&[u8]) -> bool,
) -> Option<ChangedByte> {
    let flips: Vec<u8> = match values_tried(bytes.len(), max_bytes) {
        0 => return None,
        8 => (0..8).map(|bit| 1 << bit).collect(),
        _ => (1..=255).collect(),
    };
    let mut bytes = bytes.to_vec();
    for offset in 0..bytes.len() {
        let found = bytes[offset];
        for flip in &flips {
            bytes[offset] = found ^ flip;
            if is_expected(&bytes) {
                return Some(ChangedByte { offset: offset as u64, found, expected: bytes[offset] });
            }
        }
        bytes[offset] = found;
    }
    None
}

impl ChangedByte {
    pub fn sentence(&self) -> String {
        let Self { offset, found, expected } = self;
        format!("byte {offset} is 0x{found:02x} and was 0x{expected:02x}, everything else is as written")
    }
}
