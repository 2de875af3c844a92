use super::decode::{Decoded, decode};
use super::frame::Frame;
use super::layout::{
    CHECKSUM_BYTES, FILE_MAGIC, FORMAT_VERSION, FRAME_OVERHEAD_BYTES, HEADER_BYTES, MAX_PAYLOAD_BYTES,
    RESYNC_MARK, crc32c, header_check,
};

/// Why a segment cannot be read at all. Damage is not such a reason: it is reported and skipped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The header frame is whole and names a version above [`FORMAT_VERSION`].
    #[error(
        "the segment has format version {version}, but this program reads up to {FORMAT_VERSION}: use a newer Trackway"
    )]
    UnsupportedVersion { version: u16 },
}

/// A frame and its position.
#[derive(Debug, Clone, PartialEq)]
pub struct Located {
    /// The offset of its first byte in the file.
    pub offset: u64,
    /// Its number in the segment, counted from 0 by the writer; a gap shows how many frames were lost.
    pub sequence: u32,
    pub frame: Frame,
}

/// What kind of damage was passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DamageKind {
    /// Bytes that are no whole frame; a good frame follows.
    Torn,
    /// Bytes that are no whole frame, up to the end of the file: a write that was cut off.
    TornTail,
    /// A frame whose checksum holds but whose payload does not match its type.
    Malformed,
}

/// Bytes that were passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// The offset of the first of them.
    pub offset: u64,
    /// How many there are.
    pub skipped_bytes: u64,
    pub kind: DamageKind,
}

/// What a reader finds next.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A whole frame.
    Frame(Located),
    /// Something that is none.
    Damage(Damage),
}

/// What follows the last item, so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// Nothing: the last frame was whole.
    Clean,
    /// Bytes that may yet become a frame when the file grows.
    Incomplete {
        /// The offset of the first of them.
        offset: u64,
        /// How many there are so far.
        pending_bytes: u64,
    },
}

/// Reads a segment that may still be growing: push bytes as they come, take items out, and call
/// [`SegmentReader::finish`] when nothing more will come.
///
/// Never panics on any bytes. Holds the pushed bytes that are not yet read and no more.
///
/// ```
/// use trackway_formats::record::{Encoder, Heartbeat, Item, SegmentReader};
/// let mut bytes = Vec::new();
/// let heartbeat = Heartbeat { at: trackway_core::Timestamp::from_micros(1), step: 7 };
/// Encoder::new().heartbeat(&mut bytes, &heartbeat);
/// let mut reader = SegmentReader::new();
/// reader.push(&bytes);
/// // The file's magic is missing, which is damage of no length here: the frame itself is read.
/// assert!(matches!(reader.next_item(), Ok(Some(Item::Frame(_)))));
/// ```
#[derive(Debug, Default)]
pub struct SegmentReader {
    buffer: Vec<u8>,
    /// Bytes at the front of the buffer that are read.
    consumed: usize,
    /// The file offset of `buffer[consumed]`.
    offset: u64,
    /// Where the damage began that is being passed.
    damage_from: Option<u64>,
    magic_passed: bool,
    finished: bool,
    error: Option<RecordError>,
}

/// What is at one position.
enum Attempt {
    Whole { frame_type: u8, sequence: u32, payload_bytes: usize },
    Incomplete,
    Broken,
}

impl SegmentReader {
    /// A reader at the beginning of a segment.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next bytes of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.consumed);
        self.consumed = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Gives back the memory of what was read.
    pub fn release(&mut self) {
        self.buffer.drain(..self.consumed);
        self.consumed = 0;
        self.buffer.shrink_to_fit();
    }

    /// Marks the end of the bytes; what is left is then damage, not an unfinished frame.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// The offset up to which everything was given out.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.damage_from.unwrap_or(self.offset)
    }

    /// What follows the last item, so far.
    #[must_use]
    pub fn tail(&self) -> Tail {
        let end = self.offset + self.rest().len() as u64;
        match end - self.offset() {
            0 => Tail::Clean,
            pending_bytes => Tail::Incomplete { offset: self.offset(), pending_bytes },
        }
    }

    /// The next frame or piece of damage, or `None` when more bytes are needed (or, after
    /// [`SegmentReader::finish`], when there is nothing left).
    ///
    /// # Errors
    /// [`RecordError::UnsupportedVersion`] according to the header; every later call returns it again.
    pub fn next_item(&mut self) -> Result<Option<Item>, RecordError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        if !self.magic_passed && !self.pass_magic() {
            return Ok(None);
        }
        loop {
            match look(self.rest()) {
                Attempt::Whole { frame_type, sequence, payload_bytes } => {
                    if let Some(damage) = self.end_of_damage(DamageKind::Torn) {
                        return Ok(Some(damage));
                    }
                    return self.take_frame(frame_type, sequence, payload_bytes);
                }
                Attempt::Incomplete if !self.finished => return Ok(None),
                Attempt::Incomplete | Attempt::Broken => {
                    if !self.skip_to_next_mark() {
                        return Ok(None);
                    }
                }
            }
            if self.finished && self.rest().is_empty() {
                return Ok(self.end_of_damage(DamageKind::TornTail));
            }
        }
    }

    fn rest(&self) -> &[u8] {
        &self.buffer[self.consumed..]
    }

    fn advance(&mut self, bytes: usize) {
        self.consumed += bytes;
        self.offset += bytes as u64;
    }

    /// Passes the file's magic; a file without it is read from its first mark on. False: too few bytes.
    fn pass_magic(&mut self) -> bool {
        let rest = self.rest();
        if rest.starts_with(&FILE_MAGIC) {
            self.advance(FILE_MAGIC.len());
        } else if FILE_MAGIC.starts_with(rest) && !self.finished {
            return false;
        }
        self.magic_passed = true;
        true
    }

    fn take_frame(
        &mut self,
        frame_type: u8,
        sequence: u32,
        payload_bytes: usize,
    ) -> Result<Option<Item>, RecordError> {
        let payload = &self.rest()[HEADER_BYTES..HEADER_BYTES + payload_bytes];
        let decoded = decode(frame_type, payload, FORMAT_VERSION);
        let offset = self.offset;
        let frame_bytes = payload_bytes + FRAME_OVERHEAD_BYTES;
        self.advance(frame_bytes);
        match decoded {
            Some(Decoded::Frame(frame)) => Ok(Some(Item::Frame(Located { offset, sequence, frame }))),
            Some(Decoded::UnsupportedVersion(version)) => {
                let error = RecordError::UnsupportedVersion { version };
                self.error = Some(error.clone());
                Err(error)
            }
            None => Ok(Some(Item::Damage(Damage {
                offset,
                skipped_bytes: frame_bytes as u64,
                kind: DamageKind::Malformed,
            }))),
        }
    }

    fn end_of_damage(&mut self, kind: DamageKind) -> Option<Item> {
        let from = self.damage_from.take()?;
        Some(Item::Damage(Damage { offset: from, skipped_bytes: self.offset - from, kind }))
    }

    /// Moves to the next position where a mark begins, or may begin. False: more bytes are needed.
    fn skip_to_next_mark(&mut self) -> bool {
        if self.rest().is_empty() {
            return self.finished;
        }
        self.damage_from.get_or_insert(self.offset);
        let rest = self.rest();
        let next = (1..rest.len()).find(|&start| {
            let candidate = &rest[start..rest.len().min(start + RESYNC_MARK.len())];
            RESYNC_MARK.starts_with(candidate)
        });
        let skipped = next.unwrap_or(rest.len());
        self.advance(skipped);
        true
    }
}

/// What is at the beginning of `bytes`.
fn look(bytes: &[u8]) -> Attempt {
    let mark = &bytes[..bytes.len().min(RESYNC_MARK.len())];
    if !RESYNC_MARK.starts_with(mark) {
        return Attempt::Broken;
    }
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Attempt::Incomplete;
    };
    let payload_bytes = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
    let check = u16::from_le_bytes([header[14], header[15]]);
    if payload_bytes > MAX_PAYLOAD_BYTES || header_check(&header[4..14]) != check {
        return Attempt::Broken;
    }
    let checked_bytes = HEADER_BYTES + payload_bytes;
    let Some(frame) = bytes.get(..checked_bytes + CHECKSUM_BYTES) else {
        return Attempt::Incomplete;
    };
    let (checked, checksum) = frame.split_at(checked_bytes);
    if crc32c(&checked[RESYNC_MARK.len()..]).to_le_bytes() != checksum {
        return Attempt::Broken;
    }
    let sequence = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
    Attempt::Whole { frame_type: header[12], sequence, payload_bytes }
}
