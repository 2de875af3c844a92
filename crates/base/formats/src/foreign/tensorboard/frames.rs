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
    /// A frame whose length is right and whose payload is not what was written: the payload, and the bytes it takes in all.
    Changed(&'a [u8], usize),
    /// So many bytes in all may make a frame; the file may still grow.
    Incomplete(usize),
    /// No frame begins here: the check of its length does not hold, or the length is absurd.
    NoFrame,
}

/// Looks at the frame at the beginning of `bytes`.
#[must_use]
pub fn frame(bytes: &[u8]) -> Framed<'_> {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        return Framed::Incomplete(HEADER_BYTES);
    };
    let Some(length) = length_of(header) else { return Framed::NoFrame };
    let total = HEADER_BYTES + length + FOOTER_BYTES;
    let Some((payload, footer)) = rest.get(..length + FOOTER_BYTES).map(|rest| rest.split_at(length)) else {
        return Framed::Incomplete(total);
    };
    match masked_crc32c(payload) == little_u32(footer) {
        true => Framed::Frame(payload, total),
        false => Framed::Changed(payload, total),
    }
}

/// Where a frame may begin next: at a header that holds, if there is one. Else none begins before the place that is given instead,
/// where too few bytes for a header are left.
pub fn next_header(bytes: &[u8]) -> Result<usize, usize> {
    let mut headers = bytes.windows(HEADER_BYTES);
    let found = headers.position(|header| header.first_chunk().and_then(length_of).is_some());
    found.ok_or(bytes.len().saturating_sub(HEADER_BYTES - 1))
}

/// The length in a header whose check holds.
fn length_of(header: &[u8; HEADER_BYTES]) -> Option<usize> {
    let (length, check) = header.split_at(8);
    let bytes = u64::from_le_bytes(length.try_into().unwrap_or_default());
    // Most places where no frame begins have an absurd length: only the others are summed.
    let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= FRAME_BYTES_MAX)?;
    (masked_crc32c(length) == little_u32(check)).then_some(bytes)
}

fn little_u32(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().unwrap_or_default())
}

fn masked_crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}
