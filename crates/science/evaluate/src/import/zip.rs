//! Entries of a ZIP archive, unpacked: stored, deflated, or packed with Zstandard as Inspect does it.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use trackway_formats::zip::{Pieces, ZipDirectory, ZipEntry};

/// An archive of which more is unpacked is not read.
pub const UNPACKED_BYTES_MAX: u64 = 1 << 30;
/// A larger entry is not read: while it is parsed, all of it is in memory.
pub const ENTRY_BYTES_MAX: u64 = 256 << 20;
/// An archive with more entries is not read.
const ENTRIES_MAX: u64 = 1_000_000;
/// An archive with a larger directory is not read.
const DIRECTORY_BYTES_MAX: u64 = 64 << 20;
/// Zstandard may look back so far, as a power of two: its memory.
const WINDOW_LOG_MAX: u32 = 25;

/// An archive, opened.
pub struct Archive<R> {
    file: InPieces<R>,
    directory: ZipDirectory,
    /// The place of each entry in the directory; of several of one name the last one.
    by_name: BTreeMap<String, usize>,
    /// What may still be unpacked.
    bytes_left: u64,
}

/// A file that is read from one piece to the next, mostly forwards.
struct InPieces<R> {
    reader: BufReader<R>,
    position: u64,
    size_bytes: u64,
}

impl<R: Read + Seek> Pieces for InPieces<R> {
    type Error = io::Error;

    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn piece(&mut self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.reader.seek_relative(offset.wrapping_sub(self.position).cast_signed())?;
        self.reader.by_ref().take(length as u64).read_to_end(&mut bytes)?;
        self.position = offset + bytes.len() as u64;
        if bytes.len() == length { Ok(bytes) } else { Err(damaged("it ends early")) }
    }
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

fn damaged(what: &str) -> io::Error {
    invalid(format!("the archive is damaged or cut short: {what}"))
}

impl<R: Read + Seek> Archive<R> {
    /// Reads the directory at the end.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] for a file that is not an archive.
    pub fn open(mut reader: R) -> io::Result<Self> {
        let size_bytes = reader.seek(SeekFrom::End(0))?;
        let mut file = InPieces { reader: BufReader::new(reader), position: size_bytes, size_bytes };
        let directory = ZipDirectory::read(&mut file, ENTRIES_MAX, DIRECTORY_BYTES_MAX)?;
        let entries = directory.entries.iter().enumerate();
        let by_name = entries.map(|(place, entry)| (entry.name.clone(), place)).collect();
        Ok(Self { file, directory, by_name, bytes_left: UNPACKED_BYTES_MAX })
    }

    /// The names of all entries, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// The unpacked bytes of an entry. `None`: there is none.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] for what cannot be unpacked, or where all that was read is more than [`UNPACKED_BYTES_MAX`].
    pub fn read(&mut self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let Some(entry) = self.by_name.get(name).map(|place| &self.directory.entries[*place]) else {
            return Ok(None);
        };
        if entry.is_encrypted() {
            return Err(damaged("an entry is encrypted"));
        }
        let bytes = entry.size_bytes.max(entry.packed_bytes);
        if bytes > ENTRY_BYTES_MAX {
            return Err(invalid(format!(
                "`{name}` has {bytes} bytes; at most {ENTRY_BYTES_MAX} of an entry are read"
            )));
        }
        if bytes > self.bytes_left {
            let message = format!(
                "it unpacks to more than {UNPACKED_BYTES_MAX} bytes, and no more are read: `{name}` alone has {}",
                entry.size_bytes
            );
            return Err(invalid(message));
        }
        self.bytes_left -= bytes;
        let data_at = self.directory.data_at(&mut self.file, entry)?;
        let packed = self.file.piece(data_at, usize::try_from(entry.packed_bytes).unwrap_or(usize::MAX))?;
        unpacked(entry, packed).map(Some)
    }
}

fn unpacked(entry: &ZipEntry, packed: Vec<u8>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than there should be shows an entry that unpacks to more than its size.
    let most = entry.size_bytes + 1;
    match entry.method {
        0 => bytes = packed,
        8 => drop(flate2::read::DeflateDecoder::new(packed.as_slice()).take(most).read_to_end(&mut bytes)?),
        93 => {
            let mut decoder = zstd::Decoder::new(packed.as_slice())?;
            decoder.window_log_max(WINDOW_LOG_MAX)?;
            decoder.take(most).read_to_end(&mut bytes)?;
        }
        other => {
            return Err(invalid(format!("`{}` is packed by method {other}, which is not known", entry.name)));
        }
    }
    if bytes.len() as u64 != entry.size_bytes {
        return Err(damaged("an entry has another size than the directory states"));
    }
    let mut crc = flate2::Crc::new();
    crc.update(&bytes);
    if crc.sum() == entry.crc32 {
        Ok(bytes)
    } else {
        Err(damaged("an entry has another checksum than the directory states"))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// An archive with one stored entry `a` that holds `b`.
    fn stored() -> Vec<u8> {
        let mut bytes = Vec::new();
        let head = |bytes: &mut Vec<u8>, word: u32, middle: &[u16]| {
            bytes.extend(word.to_le_bytes());
            middle.iter().for_each(|field| bytes.extend(field.to_le_bytes()));
        };
        // The CRC-32 of `b`.
        let (low, high) = (0xeff9, 0x71be);
        head(&mut bytes, 0x0403_4b50, &[20, 0, 0, 0, 0, low, high, 1, 0, 1, 0, 1, 0]);
        bytes.extend(b"ab");
        head(
            &mut bytes,
            0x0201_4b50,
            &[20, 20, 0, 0, 0, 0, low, high, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
        );
        bytes.extend(b"a");
        head(&mut bytes, 0x0605_4b50, &[0, 0, 1, 1, 47, 0, 32, 0, 0]);
        bytes
    }

    /// Proves that no more is unpacked of all entries together than of an archive may be.
    #[test]
    fn all_entries_together_are_bounded() {
        let mut archive = Archive::open(Cursor::new(stored())).unwrap();
        archive.bytes_left = 2;
        assert!(archive.read("a").unwrap().is_some() && archive.read("a").unwrap().is_some());
        let error = archive.read("a").unwrap_err().to_string();
        assert!(error.contains("unpacks to more than"), "{error}");
    }

    /// Proves that an entry that claims to unpack to more than fits in memory is refused before a byte of it is read.
    #[test]
    fn a_bomb_is_refused_before_it_is_unpacked() {
        let mut bytes = stored();
        let size_at = bytes.len() - 22 - 47 + 24;
        bytes[size_at..size_at + 4].copy_from_slice(&(ENTRY_BYTES_MAX as u32 + 1).to_le_bytes());
        let error = Archive::open(Cursor::new(bytes)).unwrap().read("a").unwrap_err().to_string();
        assert!(error.contains("`a` has 268435457 bytes; at most"), "{error}");
    }

    /// Proves that an entry whose bytes are others than those that were packed is refused.
    #[test]
    fn a_changed_entry_is_refused() {
        let mut bytes = stored();
        bytes[31] = b'c';
        let error = Archive::open(Cursor::new(bytes)).unwrap().read("a").unwrap_err().to_string();
        assert!(error.contains("another checksum"), "{error}");
    }

    /// Proves that an entry is refused whose local header has another name than the directory.
    #[test]
    fn a_local_header_must_agree() {
        let mut bytes = stored();
        bytes[30] = b'c';
        let error = Archive::open(Cursor::new(bytes)).unwrap().read("a").unwrap_err().to_string();
        assert!(error.contains("another local header"), "{error}");
    }

    /// Proves that an entry is read, that one that is not there is none, and that any damage is an error and no panic.
    #[test]
    fn entries_and_damage() {
        let whole = stored();
        let mut archive = Archive::open(Cursor::new(whole.clone())).unwrap();
        assert_eq!(archive.names().collect::<Vec<_>>(), ["a"]);
        assert_eq!(archive.read("a").unwrap().as_deref(), Some(&b"b"[..]));
        assert_eq!(archive.read("c").unwrap(), None);
        for end in 0..whole.len() {
            assert!(Archive::open(Cursor::new(whole[..end].to_vec())).is_err(), "cut at {end}");
        }
        for place in 0..whole.len() {
            let mut changed = whole.clone();
            changed[place] ^= 0xff;
            if let Ok(mut archive) = Archive::open(Cursor::new(changed)) {
                let _ = archive.read("a");
            }
        }
    }
}
