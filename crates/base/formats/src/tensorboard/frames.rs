//! TFRecord: frames of a little-endian u64 length, its masked CRC-32C, the bytes, and theirs.
//!
//! Source: `tensorflow/core/lib/io/record_writer.h`. The mask is a rotation by 15 bits and an addition.

/// A frame larger than this is damage: events hold pictures and graphs, but not more than this.
pub const FRAME_BYTES_MAX: usize = 256 << 20;

const HEADER_BYTES: usize = 12;
const FOOTER_BYTES: usize = 4;

/// What is at the beginning of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framed<'a> {
    /// A whole frame: its payload, and the bytes it takes in all.
    Frame(&'a [u8], usize),
    /// So many bytes in all may make a frame; the file may still grow.
    Incomplete(usize),
    /// No frame: a checksum does not hold or the length is absurd. Frames after it cannot be found.
    Damaged,
}

/// Looks at the frame at the beginning of `bytes`.
#[must_use]
pub fn frame(bytes: &[u8]) -> Framed<'_> {
    let Some((header, rest)) = bytes.split_at_checked(HEADER_BYTES) else {
        return Framed::Incomplete(HEADER_BYTES);
    };
    let (length, check) = header.split_at(8);
    if masked_crc32c(length) != little_u32(check) {
        return Framed::Damaged;
    }
    let length = u64::from_le_bytes(length.try_into().unwrap_or_default());
    let Some(length) = usize::try_from(length).ok().filter(|length| *length <= FRAME_BYTES_MAX) else {
        return Framed::Damaged;
    };
    let total = HEADER_BYTES + length + FOOTER_BYTES;
    let Some((payload, footer)) = rest.get(..length + FOOTER_BYTES).map(|rest| rest.split_at(length)) else {
        return Framed::Incomplete(total);
    };
    if masked_crc32c(payload) == little_u32(footer) { Framed::Frame(payload, total) } else { Framed::Damaged }
}

fn little_u32(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().unwrap_or_default())
}

fn masked_crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}
