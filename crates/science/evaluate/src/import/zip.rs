//! Entries of a ZIP archive (APPNOTE.TXT 6.3.10): stored, deflated, or packed with Zstandard as Inspect does it. Only what logs need:
//! one volume, no encryption.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};

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

const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const END_64_LOCATOR: u32 = 0x0706_4b50;
const DIRECTORY_ENTRY: u32 = 0x0201_4b50;
const LOCAL_ENTRY: u32 = 0x0403_4b50;
/// The end record with the longest comment.
const END_BYTES_MAX: u64 = 22 + 0xffff;

/// An archive, opened.
pub struct Archive<R> {
    reader: R,
    /// By name; of several of one name the last one.
    entries: BTreeMap<String, Entry>,
    /// What may still be unpacked.
    bytes_left: u64,
}

#[derive(Debug, Clone)]
struct Entry {
    method: u16,
    encrypted: bool,
    crc32: u32,
    packed_bytes: u64,
    size_bytes: u64,
    offset: u64,
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

fn damaged(what: &str) -> io::Error {
    invalid(format!("the archive is damaged or cut short: {what}"))
}

fn u16_at(bytes: &[u8], at: usize) -> io::Result<u16> {
    let two = bytes.get(at..at + 2).ok_or_else(|| damaged("a record ends early"))?;
    Ok(u16::from_le_bytes([two[0], two[1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> io::Result<u32> {
    let four = bytes.get(at..at + 4).ok_or_else(|| damaged("a record ends early"))?;
    Ok(u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}

fn u64_at(bytes: &[u8], at: usize) -> io::Result<u64> {
    Ok(u64::from(u32_at(bytes, at)?) | (u64::from(u32_at(bytes, at + 4)?) << 32))
}

impl<R: Read + Seek> Archive<R> {
    /// Reads the directory at the end.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] for a file that is not an archive.
    pub fn open(mut reader: R) -> io::Result<Self> {
        let length = reader.seek(SeekFrom::End(0))?;
        let (count, size, offset) = directory(&mut reader, length)?;
        if offset.saturating_add(size) > length {
            return Err(damaged("its directory is outside of it"));
        }
        if count > ENTRIES_MAX || size > DIRECTORY_BYTES_MAX {
            let message = format!(
                "it has {count} entries in a directory of {size} bytes; at most {ENTRIES_MAX} entries and {DIRECTORY_BYTES_MAX} bytes are read"
            );
            return Err(invalid(message));
        }
        let bytes = read_at(&mut reader, offset, size)?;
        let (mut entries, mut at) = (BTreeMap::new(), 0);
        for _ in 0..count {
            let (name, entry, next) = entry(&bytes, at)?;
            entries.insert(name, entry);
            at = next;
        }
        Ok(Self { reader, entries, bytes_left: UNPACKED_BYTES_MAX })
    }

    /// The names of all entries, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// The unpacked bytes of an entry. `None`: there is none.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] for what cannot be unpacked, or where all that was read is more than [`UNPACKED_BYTES_MAX`].
    pub fn read(&mut self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let Some(entry) = self.entries.get(name).cloned() else {
            return Ok(None);
        };
        if entry.encrypted {
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
        let head = read_at(&mut self.reader, entry.offset, 30)?;
        if u32_at(&head, 0)? != LOCAL_ENTRY {
            return Err(damaged("an entry is not where the directory places it"));
        }
        let skipped = 30 + u64::from(u16_at(&head, 26)?) + u64::from(u16_at(&head, 28)?);
        let packed = read_at(&mut self.reader, entry.offset + skipped, entry.packed_bytes)?;
        unpacked(name, &entry, packed).map(Some)
    }
}

fn unpacked(name: &str, entry: &Entry, packed: Vec<u8>) -> io::Result<Vec<u8>> {
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
            return Err(invalid(format!("`{name}` is packed by method {other}, which is not known")));
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

fn read_at<R: Read + Seek>(reader: &mut R, offset: u64, size: u64) -> io::Result<Vec<u8>> {
    reader.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    reader.take(size).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == size { Ok(bytes) } else { Err(damaged("it ends early")) }
}

/// How many entries there are, and where their directory is.
fn directory<R: Read + Seek>(reader: &mut R, length: u64) -> io::Result<(u64, u64, u64)> {
    let from = length.saturating_sub(END_BYTES_MAX);
    let tail = read_at(reader, from, length - from)?;
    let is_end = |at: &usize| u32_at(&tail, *at).is_ok_and(|word| word == END);
    let Some(at) = (0..tail.len().saturating_sub(21)).rev().find(is_end) else {
        return Err(damaged("it has no directory"));
    };
    let narrow = (
        u64::from(u16_at(&tail, at + 10)?),
        u64::from(u32_at(&tail, at + 12)?),
        u64::from(u32_at(&tail, at + 16)?),
    );
    let is_wide = narrow.0 == 0xffff || narrow.1 == 0xffff_ffff || narrow.2 == 0xffff_ffff;
    let Some(locator) = (from + at as u64).checked_sub(20).filter(|_| is_wide) else { return Ok(narrow) };
    let locator = read_at(reader, locator, 20)?;
    if u32_at(&locator, 0)? != END_64_LOCATOR {
        return Ok(narrow);
    }
    let end = read_at(reader, u64_at(&locator, 8)?, 56)?;
    if u32_at(&end, 0)? != END_64 {
        return Err(damaged("its large directory is not where it should be"));
    }
    Ok((u64_at(&end, 32)?, u64_at(&end, 40)?, u64_at(&end, 48)?))
}

/// The entry at a place of the directory with its name, and the place of the next one.
fn entry(bytes: &[u8], at: usize) -> io::Result<(String, Entry, usize)> {
    if u32_at(bytes, at)? != DIRECTORY_ENTRY {
        return Err(damaged("an entry of its directory is none"));
    }
    let lengths = [28, 30, 32].map(|field| u16_at(bytes, at + field).map(usize::from));
    let [name_bytes, extra_bytes, comment_bytes] = lengths;
    let (name_bytes, extra_bytes, comment_bytes) = (name_bytes?, extra_bytes?, comment_bytes?);
    let name_at = at + 46;
    let missing = || damaged("a record ends early");
    let name = bytes.get(name_at..name_at + name_bytes).ok_or_else(missing)?;
    let extra = bytes.get(name_at + name_bytes..name_at + name_bytes + extra_bytes).ok_or_else(missing)?;
    let mut entry = Entry {
        method: u16_at(bytes, at + 10)?,
        encrypted: u16_at(bytes, at + 8)? & 1 != 0,
        crc32: u32_at(bytes, at + 16)?,
        packed_bytes: u64::from(u32_at(bytes, at + 20)?),
        size_bytes: u64::from(u32_at(bytes, at + 24)?),
        offset: u64::from(u32_at(bytes, at + 42)?),
    };
    widen(&mut entry, extra)?;
    let name = String::from_utf8_lossy(name).into_owned();
    Ok((name, entry, name_at + name_bytes + extra_bytes + comment_bytes))
}

/// Sizes that 32 bits do not hold are in an extra field, in this order, and only those.
fn widen(entry: &mut Entry, extra: &[u8]) -> io::Result<()> {
    let mut at = 0;
    while at + 4 <= extra.len() {
        let (kind, size) = (u16_at(extra, at)?, usize::from(u16_at(extra, at + 2)?));
        if kind == 1 {
            let mut field = at + 4;
            for wide in [&mut entry.size_bytes, &mut entry.packed_bytes, &mut entry.offset] {
                if *wide == 0xffff_ffff {
                    *wide = u64_at(extra, field)?;
                    field += 8;
                }
            }
        }
        at += 4 + size;
    }
    Ok(())
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
        head(&mut bytes, LOCAL_ENTRY, &[20, 0, 0, 0, 0, low, high, 1, 0, 1, 0, 1, 0]);
        bytes.extend(b"ab");
        head(
            &mut bytes,
            DIRECTORY_ENTRY,
            &[20, 20, 0, 0, 0, 0, low, high, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
        );
        bytes.extend(b"a");
        head(&mut bytes, END, &[0, 0, 1, 1, 47, 0, 32, 0, 0]);
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
