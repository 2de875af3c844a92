use trackway_core::Timestamp;

use super::layout::{
    HEADER_BYTES, MAX_NAME_BYTES, MAX_PAYLOAD_BYTES, MAX_TEXT_BYTES, RESYNC_MARK, crc32c, header_check,
};

/// Numbers the frames of one file and turns them into bytes.
///
/// Every frame is appended whole to the output; the caller hands the bytes to one `write(2)`. Writing never fails.
#[derive(Debug, Default)]
pub struct FrameWriter {
    next_sequence: u32,
}

impl FrameWriter {
    /// How many frames were made so far.
    #[must_use]
    pub fn frame_count(&self) -> u32 {
        self.next_sequence
    }

    /// Takes back the frames made since [`FrameWriter::frame_count`] was `frame_count`, because they were not written.
    pub fn rewind_to(&mut self, frame_count: u32) {
        self.next_sequence = frame_count;
    }

    /// Whether the sequence numbers of a file suffice for very many more frames; when not, the caller begins another file.
    #[must_use]
    pub fn has_numbers(&self) -> bool {
        self.next_sequence < u32::MAX / 2
    }

    /// Takes so many more sequence numbers for the frame that was made last: it has what so many more frames would have had.
    pub fn take_numbers(&mut self, count: u32) {
        self.next_sequence = self.next_sequence.wrapping_add(count);
    }

    /// One frame around a payload of at most [`MAX_PAYLOAD_BYTES`], which `fill` writes: mark, length, sequence, type, flags, header check,
    /// payload, checksum.
    pub fn write(&mut self, out: &mut Vec<u8>, frame_type: u8, fill: impl FnOnce(&mut Payload<'_>)) {
        let start = out.len();
        let mut header = [0; HEADER_BYTES];
        header[..RESYNC_MARK.len()].copy_from_slice(&RESYNC_MARK);
        out.extend_from_slice(&header);
        let mut payload = Payload { start: out.len(), out };
        fill(&mut payload);
        let length = payload.len();
        debug_assert!(length <= MAX_PAYLOAD_BYTES, "a payload of {length} bytes is over the bound");
        out[start + 4..start + 8].copy_from_slice(&(length as u32).to_le_bytes());
        out[start + 8..start + 12].copy_from_slice(&self.next_sequence.to_le_bytes());
        out[start + 12] = frame_type;
        let check = header_check(&out[start + 4..start + 14]);
        out[start + 14..start + 16].copy_from_slice(&check.to_le_bytes());
        let checksum = crc32c(&out[start + 4..]);
        out.extend_from_slice(&checksum.to_le_bytes());
        self.next_sequence = self.next_sequence.wrapping_add(1);
    }
}

/// A payload under construction, at the end of the output. Numbers are little-endian.
pub struct Payload<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl Payload<'_> {
    fn len(&self) -> usize {
        self.out.len() - self.start
    }

    /// Whether so many more bytes fit into a frame.
    #[must_use]
    pub fn has_room_for(&self, bytes: usize) -> bool {
        self.len() + bytes <= MAX_PAYLOAD_BYTES
    }

    /// Makes room for so many more bytes at once.
    #[inline]
    pub fn reserve(&mut self, bytes: usize) {
        self.out.reserve(bytes);
    }

    /// Bytes as they are.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    #[inline]
    pub fn put_u8(&mut self, value: u8) {
        self.out.push(value);
    }

    #[inline]
    pub fn put_u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }

    #[inline]
    pub fn put_u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    #[inline]
    pub fn put_u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    /// Bit for bit: NaN payloads, infinities and −0 too.
    #[inline]
    pub fn put_f64(&mut self, value: f64) {
        self.put_u64(value.to_bits());
    }

    /// Microseconds since 1970 UTC.
    #[inline]
    pub fn put_time(&mut self, at: Timestamp) {
        self.put(&at.as_micros().to_le_bytes());
    }

    /// A string of at most [`MAX_NAME_BYTES`], behind a `u16` of its length.
    pub fn put_name(&mut self, name: &str) {
        let name = cut(name, MAX_NAME_BYTES);
        self.put_u16(name.len() as u16);
        self.put(name.as_bytes());
    }

    /// A string of at most [`MAX_TEXT_BYTES`], behind a `u32` of its length.
    pub fn put_text(&mut self, text: &str) {
        let text = cut(text, MAX_TEXT_BYTES);
        self.put_u32(text.len() as u32);
        self.put(text.as_bytes());
    }

    /// A count that is known only after what it counts is written: the number of times that `put_next` put something.
    pub fn put_counted(&mut self, mut put_next: impl FnMut(&mut Self) -> bool) {
        let count_at = self.out.len();
        self.put_u16(0);
        let mut count = 0u16;
        while count < u16::MAX && put_next(self) {
            count += 1;
        }
        self.out[count_at..count_at + 2].copy_from_slice(&count.to_le_bytes());
    }
}

/// The longest beginning of `text` that has at most `max_bytes` bytes and ends at a character.
pub(crate) fn cut(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}
