//! Compressed pickles of joblib. Nothing is decompressed: xz and lz4 say their lengths, gzip, zlib, bzip2 and lzma do not.

use crate::limits::MAX_BLOCKS;
use crate::source::{Fault, Reader};

pub(crate) const XZ_MAGIC: &[u8] = b"\xfd7zXZ\x00";
pub(crate) const LZ4_MAGIC: &[u8] = b"\x04\x22\x4d\x18";

/// Checks the footer and the index of one xz stream, which say the length of its blocks.
pub(crate) fn xz(reader: &mut Reader) -> Result<(), Fault> {
    let size = reader.len();
    if size < 32 || !size.is_multiple_of(4) {
        return Err(Fault::Ends);
    }
    let footer = reader.piece(size - 12, 12)?;
    if &footer[10..] != b"YZ" || crc32(&footer[4..10]) != word(&footer[..4]) {
        return Err(Fault::Ends);
    }
    let index_bytes = (u64::from(word(&footer[4..8])) + 1) * 4;
    let index_at = size.checked_sub(12 + index_bytes).filter(|at| *at >= 12).ok_or(Fault::Ends)?;
    let index = reader.piece(index_at, usize::try_from(index_bytes).unwrap_or(usize::MAX))?;
    let (body, checksum) = index.split_at(index.len() - 4);
    let wrong = || Fault::malformed("its xz index is damaged");
    if crc32(body) != word(checksum) || body.first() != Some(&0) {
        return Err(wrong());
    }
    let mut rest = &body[1..];
    let blocks = variable(&mut rest).ok_or_else(wrong)?;
    if blocks > MAX_BLOCKS {
        return Err(Fault::Beyond(format!("it has {blocks} xz blocks, more than {MAX_BLOCKS}")));
    }
    let mut data = 0_u64;
    for _ in 0..blocks {
        let unpadded = variable(&mut rest).ok_or_else(wrong)?;
        variable(&mut rest).ok_or_else(wrong)?;
        data =
            unpadded.checked_next_multiple_of(4).and_then(|size| data.checked_add(size)).ok_or_else(wrong)?;
    }
    if data == index_at - 12 {
        Ok(())
    } else {
        Err(Fault::malformed("its xz blocks have another length than its index says"))
    }
}

/// Walks the blocks of one lz4 frame to its end mark.
pub(crate) fn lz4(reader: &mut Reader) -> Result<(), Fault> {
    reader.skip(4)?;
    let flags = reader.byte()?;
    if flags >> 6 != 1 {
        return Err(Fault::malformed("its lz4 frame has an unknown version"));
    }
    let dictionary = if flags & 0x01 != 0 { 4 } else { 0 };
    let content_size = if flags & 0x08 != 0 { 8 } else { 0 };
    let (block_checksum, content_checksum) = (u64::from(flags >> 4 & 1) * 4, u64::from(flags >> 2 & 1) * 4);
    reader.skip(2 + content_size + dictionary)?;
    for _ in 0..MAX_BLOCKS {
        let block = u64::from(u32::from_le_bytes(reader.array()?) & 0x7fff_ffff);
        if block == 0 {
            reader.skip(content_checksum)?;
            return if reader.remaining() == 0 {
                Ok(())
            } else {
                Err(Fault::malformed("bytes follow its lz4 frame"))
            };
        }
        reader.skip(block + block_checksum)?;
    }
    Err(Fault::Beyond(format!("it has more than {MAX_BLOCKS} lz4 blocks")))
}

fn word(bytes: &[u8]) -> u32 {
    bytes.try_into().map_or(0, u32::from_le_bytes)
}

/// A number of xz: seven bits a byte, the lowest first.
fn variable(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..63).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// CRC-32 bit by bit: it is used for a few dozen bytes at the end of a file.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 != 0 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}
