//! The directory of a ZIP archive (APPNOTE.TXT 6.3.10), and each entry against its local header. Only what checkpoints and logs need:
//! one volume.
//!
//! The crate `zip` (7.4) is not used: it reserves memory for as many entries as an archive claims to have. A sparse
//! file that takes 4 KiB of the disk ends the process with a request for 29 GB, and checkpoints are looked at by the
//! shim that keeps a run alive.

/// The bytes of an archive.
pub trait Pieces {
    /// Why a piece cannot be read, and what is wrong with the archive.
    type Error: From<ZipFault>;

    /// The length of the archive in bytes.
    fn size_bytes(&self) -> u64;

    /// Exactly `length` bytes from `offset` on.
    ///
    /// # Errors
    /// If there are fewer, or they cannot be read.
    fn piece(&mut self, offset: u64, length: usize) -> Result<Vec<u8>, Self::Error>;
}

/// Why an archive is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ZipFault {
    /// Its bytes are not what the format allows.
    Malformed(String),
    /// A bound of the caller was reached.
    Beyond(String),
}

impl From<ZipFault> for std::io::Error {
    fn from(fault: ZipFault) -> Self {
        let why = match fault {
            ZipFault::Malformed(what) => format!("the archive is damaged or cut short: {what}"),
            ZipFault::Beyond(why) => why,
        };
        Self::new(std::io::ErrorKind::InvalidData, why)
    }
}

/// An entry as the directory describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZipEntry {
    /// Its name; bytes that are not UTF-8 are replaced.
    pub name: String,
    /// How it is packed: 0 is not at all.
    pub method: u16,
    /// The checksum of the unpacked bytes.
    pub crc32: u32,
    pub packed_bytes: u64,
    /// Its unpacked bytes.
    pub size_bytes: u64,
    flags: u16,
    name_bytes: u16,
    offset: u64,
}

impl ZipEntry {
    /// Whether its bytes need a password.
    #[must_use]
    pub const fn is_encrypted(&self) -> bool {
        self.flags & 1 != 0
    }

    /// Whether its bytes are in the archive as they are.
    #[must_use]
    pub const fn is_stored(&self) -> bool {
        self.method == 0 && !self.is_encrypted()
    }
}

/// The directory at the end of an archive.
#[derive(Debug, Clone)]
pub struct ZipDirectory {
    /// In the order of the directory.
    pub entries: Vec<ZipEntry>,
    /// Where it begins, and with it the end of all entries.
    offset: u64,
}

const END_BYTES: u64 = 22;
const LOCATOR_BYTES: u64 = 20;
const END64_BYTES: u64 = 56;
const CENTRAL_BYTES: usize = 46;
const LOCAL_BYTES: u64 = 30;

impl ZipDirectory {
    /// Reads the directory: at most `entries_max` entries in `bytes_max` bytes.
    ///
    /// # Errors
    /// [`ZipFault`]; when a piece cannot be read.
    pub fn read<P: Pieces>(archive: &mut P, entries_max: u64, bytes_max: u64) -> Result<Self, P::Error> {
        let place = Place::find(archive)?;
        if place.entries > entries_max {
            let why = format!("it has {} zip entries, more than {entries_max}", place.entries);
            return Err(ZipFault::Beyond(why).into());
        }
        if place.end - place.offset > bytes_max {
            let why = format!("its zip directory has {} bytes", place.end - place.offset);
            return Err(ZipFault::Beyond(why).into());
        }
        let mut entries = Vec::new();
        let mut at = place.offset;
        for _ in 0..place.entries {
            let (entry, length) = central(archive, at, place.end - at)?;
            at += length;
            entries.push(entry);
        }
        if at == place.end {
            Ok(Self { entries, offset: place.offset })
        } else {
            Err(malformed("its zip directory has another length than it says"))
        }
    }

    /// Where the bytes of an entry begin. Its local header must agree, and its bytes must end before the directory.
    ///
    /// # Errors
    /// [`ZipFault::Malformed`]; when a piece cannot be read.
    pub fn data_at<P: Pieces>(&self, archive: &mut P, entry: &ZipEntry) -> Result<u64, P::Error> {
        let wrong = |what: &str| malformed(format!("zip entry `{}` {what}", entry.name));
        let length = LOCAL_BYTES + u64::from(entry.name_bytes);
        if entry.offset.checked_add(length).is_none_or(|end| end > self.offset) {
            return Err(wrong("is outside of the file"));
        }
        let header = archive.piece(entry.offset, LOCAL_BYTES as usize + usize::from(entry.name_bytes))?;
        let has_name = header.get(30..).is_some_and(|name| String::from_utf8_lossy(name) == entry.name);
        if !header.starts_with(b"PK\x03\x04") || !has_name || u16_at(&header, 8) != entry.method {
            return Err(wrong("has another local header"));
        }
        // Sizes are in the local header unless they follow the data (flag 3) or are in a zip64 field.
        let sizes = [u64::from(u32_at(&header, 18)), u64::from(u32_at(&header, 22))];
        let said_later = entry.flags & 0x8 != 0 || sizes.contains(&u64::from(u32::MAX));
        let has_sizes = said_later || sizes == [entry.size_bytes; 2];
        if entry.is_stored() && (entry.packed_bytes != entry.size_bytes || !has_sizes) {
            return Err(wrong("has other sizes in its local header"));
        }
        let data_at = entry.offset + length + u64::from(u16_at(&header, 28));
        if data_at.checked_add(entry.packed_bytes).is_none_or(|end| end > self.offset) {
            return Err(wrong("is outside of the file"));
        }
        Ok(data_at)
    }
}

fn malformed<E: From<ZipFault>>(what: impl Into<String>) -> E {
    ZipFault::Malformed(what.into()).into()
}

/// Where the directory is, and how many entries it has.
struct Place {
    entries: u64,
    offset: u64,
    end: u64,
}

impl Place {
    fn find<P: Pieces>(archive: &mut P) -> Result<Self, P::Error> {
        let size = archive.size_bytes();
        let no_end = || malformed("it has no zip directory at its end");
        if size < END_BYTES {
            return Err(no_end());
        }
        let tail_at = size.saturating_sub(END_BYTES + u64::from(u16::MAX));
        let tail = archive.piece(tail_at, usize::try_from(size - tail_at).unwrap_or(0))?;
        // The comment behind the record must reach exactly to the end of the file.
        let found = (0..=tail.len().saturating_sub(22)).rev().find(|&at| {
            tail[at..].starts_with(b"PK\x05\x06")
                && at + 22 + usize::from(u16_at(&tail, at + 20)) == tail.len()
        });
        let at = found.ok_or_else(no_end)?;
        let end_at = tail_at + at as u64;
        let mut entries = u64::from(u16_at(&tail, at + 10));
        let mut length = u64::from(u32_at(&tail, at + 12));
        let mut offset = u64::from(u32_at(&tail, at + 16));
        let mut end = end_at;
        if end_at >= LOCATOR_BYTES + END64_BYTES {
            let locator = archive.piece(end_at - LOCATOR_BYTES, 20)?;
            if locator.starts_with(b"PK\x06\x07") {
                end = u64_at(&locator, 8);
                let record = archive.piece(end, 56)?;
                if !record.starts_with(b"PK\x06\x06") {
                    return Err(malformed("its zip64 directory is not where the end says"));
                }
                (entries, length, offset) = (u64_at(&record, 32), u64_at(&record, 40), u64_at(&record, 48));
            }
        }
        if offset.checked_add(length) == Some(end) {
            Ok(Self { entries, offset, end })
        } else {
            Err(malformed("its zip directory is not where the end says"))
        }
    }
}

/// An entry of the directory, and its length there.
fn central<P: Pieces>(archive: &mut P, at: u64, room: u64) -> Result<(ZipEntry, u64), P::Error> {
    let wrong = || malformed("its zip directory has an entry that is not one");
    if room < CENTRAL_BYTES as u64 {
        return Err(wrong());
    }
    let fixed = archive.piece(at, CENTRAL_BYTES)?;
    let (name, extra, comment) = (u16_at(&fixed, 28), u16_at(&fixed, 30), u16_at(&fixed, 32));
    let length = CENTRAL_BYTES as u64 + u64::from(name) + u64::from(extra) + u64::from(comment);
    if !fixed.starts_with(b"PK\x01\x02") || length > room {
        return Err(wrong());
    }
    let texts = archive.piece(at + CENTRAL_BYTES as u64, usize::from(name) + usize::from(extra))?;
    let (text, extra) = texts.split_at_checked(usize::from(name)).ok_or_else(wrong)?;
    let mut entry = ZipEntry {
        name: String::from_utf8_lossy(text).into_owned(),
        method: u16_at(&fixed, 10),
        crc32: u32_at(&fixed, 16),
        packed_bytes: u64::from(u32_at(&fixed, 20)),
        size_bytes: u64::from(u32_at(&fixed, 24)),
        flags: u16_at(&fixed, 8),
        name_bytes: name,
        offset: u64::from(u32_at(&fixed, 42)),
    };
    let mut wide = zip64(extra);
    for field in [&mut entry.size_bytes, &mut entry.packed_bytes, &mut entry.offset] {
        if *field == u64::from(u32::MAX) {
            let (value, rest) = wide.split_first_chunk::<8>().ok_or_else(wrong)?;
            (*field, wide) = (u64::from_le_bytes(*value), rest);
        }
    }
    Ok((entry, length))
}

/// The content of the zip64 field among the extra fields.
fn zip64(mut extra: &[u8]) -> &[u8] {
    while let Some((header, rest)) = extra.split_first_chunk::<4>() {
        let length = usize::from(u16::from_le_bytes([header[2], header[3]]));
        let Some((field, after)) = rest.split_at_checked(length) else { break };
        if header[..2] == [1, 0] {
            return field;
        }
        extra = after;
    }
    &[]
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |two| u16::from_le_bytes([two[0], two[1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
