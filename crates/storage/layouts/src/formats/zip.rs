//! Zip archives: the directory at the end against the file, and each entry against its local header.

use crate::limits::{MAX_PIECE_BYTES, MAX_ZIP_DIRECTORY_BYTES, MAX_ZIP_ENTRIES};
use crate::source::{Fault, Reader};

/// An entry of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub name: String,
    pub stored: bool,
    pub size: u64,
    /// Where its bytes begin in the archive.
    pub data_at: u64,
}

const END_BYTES: u64 = 22;
const LOCATOR_BYTES: u64 = 20;
const END64_BYTES: u64 = 56;
const CENTRAL_BYTES: usize = 46;
const LOCAL_BYTES: u64 = 30;

/// The entries, after every one was checked.
pub(crate) fn members(reader: &mut Reader) -> Result<Vec<Member>, Fault> {
    let directory = directory(reader)?;
    let mut members = Vec::new();
    let mut at = directory.offset;
    for _ in 0..directory.entries {
        let (entry, length) = central(reader, at, directory.end - at)?;
        at += length;
        members.push(local(reader, &entry, directory.offset)?);
    }
    if at == directory.end {
        Ok(members)
    } else {
        Err(Fault::malformed("its zip directory has another length than it says"))
    }
}

struct Directory {
    entries: u64,
    offset: u64,
    end: u64,
}

fn directory(reader: &mut Reader) -> Result<Directory, Fault> {
    let size = reader.len();
    let no_end = || Fault::malformed("it has no zip directory at its end");
    if size < END_BYTES {
        return Err(no_end());
    }
    let tail_at = size.saturating_sub(END_BYTES + u64::from(u16::MAX));
    let tail = reader.piece(tail_at, usize::try_from(size - tail_at).unwrap_or(0))?;
    // The comment behind the record must reach exactly to the end of the file.
    let found = (0..=tail.len() - 22).rev().find(|&at| {
        tail[at..].starts_with(b"PK\x05\x06") && at + 22 + usize::from(u16_at(&tail, at + 20)) == tail.len()
    });
    let at = found.ok_or_else(no_end)?;
    let end_at = tail_at + at as u64;
    let mut entries = u64::from(u16_at(&tail, at + 10));
    let mut length = u64::from(u32_at(&tail, at + 12));
    let mut offset = u64::from(u32_at(&tail, at + 16));
    let mut end = end_at;
    if end_at >= LOCATOR_BYTES + END64_BYTES {
        let locator = reader.piece(end_at - LOCATOR_BYTES, 20)?;
        if locator.starts_with(b"PK\x06\x07") {
            end = u64_at(&locator, 8);
            let record = reader.piece(end, 56)?;
            if !record.starts_with(b"PK\x06\x06") {
                return Err(Fault::malformed("its zip64 directory is not where the end says"));
            }
            (entries, length, offset) = (u64_at(&record, 32), u64_at(&record, 40), u64_at(&record, 48));
        }
    }
    if offset.checked_add(length) != Some(end) {
        return Err(Fault::malformed("its zip directory is not where the end says"));
    }
    if entries > MAX_ZIP_ENTRIES {
        return Err(Fault::Beyond(format!("it has {entries} zip entries, more than {MAX_ZIP_ENTRIES}")));
    }
    if length > MAX_ZIP_DIRECTORY_BYTES {
        return Err(Fault::Beyond(format!("its zip directory has {length} bytes")));
    }
    Ok(Directory { entries, offset, end })
}

struct Central {
    name: Vec<u8>,
    method: u16,
    flags: u16,
    compressed: u64,
    size: u64,
    offset: u64,
}

/// An entry of the directory, and its length there.
fn central(reader: &mut Reader, at: u64, room: u64) -> Result<(Central, u64), Fault> {
    let wrong = || Fault::malformed("its zip directory has an entry that is not one");
    if room < CENTRAL_BYTES as u64 {
        return Err(wrong());
    }
    let fixed = reader.piece(at, CENTRAL_BYTES)?;
    let (name, extra, comment) = (u16_at(&fixed, 28), u16_at(&fixed, 30), u16_at(&fixed, 32));
    let length = CENTRAL_BYTES as u64 + u64::from(name) + u64::from(extra) + u64::from(comment);
    if !fixed.starts_with(b"PK\x01\x02") || length > room {
        return Err(wrong());
    }
    let texts = reader.piece(at + CENTRAL_BYTES as u64, usize::from(name) + usize::from(extra))?;
    let (name, extra) = texts.split_at(usize::from(name));
    let mut entry = Central {
        name: name.to_vec(),
        method: u16_at(&fixed, 10),
        flags: u16_at(&fixed, 8),
        compressed: u64::from(u32_at(&fixed, 20)),
        size: u64::from(u32_at(&fixed, 24)),
        offset: u64::from(u32_at(&fixed, 42)),
    };
    let mut wide = zip64(extra);
    for field in [&mut entry.size, &mut entry.compressed, &mut entry.offset] {
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

/// The entry's own header, which must agree, and the place of its bytes, which must end before the directory.
fn local(reader: &mut Reader, entry: &Central, directory_at: u64) -> Result<Member, Fault> {
    let name = String::from_utf8_lossy(&entry.name).into_owned();
    let wrong = |what: &str| Fault::malformed(format!("zip entry `{name}` {what}"));
    let length = LOCAL_BYTES + entry.name.len() as u64;
    if entry.offset.checked_add(length).is_none_or(|end| end > directory_at) {
        return Err(wrong("is outside of the file"));
    }
    let header = reader.piece(entry.offset, usize::try_from(length).unwrap_or(MAX_PIECE_BYTES))?;
    if !header.starts_with(b"PK\x03\x04") || header[30..] != entry.name || u16_at(&header, 8) != entry.method
    {
        return Err(wrong("has another local header"));
    }
    // Sizes are in the local header unless they follow the data (flag 3) or are in a zip64 field.
    let sizes = [u64::from(u32_at(&header, 18)), u64::from(u32_at(&header, 22))];
    let said_later = entry.flags & 0x8 != 0 || sizes.contains(&u64::from(u32::MAX));
    let stored = entry.method == 0 && entry.flags & 1 == 0;
    if stored && (entry.compressed != entry.size || !said_later && sizes != [entry.size; 2]) {
        return Err(wrong("has other sizes in its local header"));
    }
    let data_at = entry.offset + length + u64::from(u16_at(&header, 28));
    if data_at.checked_add(entry.compressed).is_none_or(|end| end > directory_at) {
        return Err(wrong("is outside of the file"));
    }
    Ok(Member { name, stored, size: entry.size, data_at })
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
