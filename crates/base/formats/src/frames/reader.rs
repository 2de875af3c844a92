use super::layout::{
    CHECKSUM_BYTES, FRAME_OVERHEAD_BYTES, HEADER_BYTES, MAX_PAYLOAD_BYTES, RESYNC_MARK, crc32c, header_check,
};

/// A frame whose checksums hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WholeFrame<'a> {
    /// The offset of its first byte in the file.
    pub offset: u64,
    /// Its number in the file, counted from 0 by the writer; a gap shows how many frames were lost.
    pub sequence: u32,
    /// The number of its type. What it means is up to the record.
    pub frame_type: u8,
    pub payload: &'a [u8],
}

impl WholeFrame<'_> {
    /// The damage that it is to a record whose payloads of this type have another form.
    #[must_use]
    pub fn as_malformed(&self) -> Damage {
        let skipped_bytes = (self.payload.len() + FRAME_OVERHEAD_BYTES) as u64;
        Damage { offset: self.offset, skipped_bytes, kind: DamageKind::Malformed }
    }
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameOrDamage<'a> {
    Frame(WholeFrame<'a>),
    /// Something that is none.
    Damage(Damage),
}

/// What follows the last frame or damage, so far.
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

/// Reads the frames of a file that may still be growing: push bytes as they come, take out what they complete, and call
/// [`FrameReader::finish`] when nothing more will come.
///
/// Never panics on any bytes. Holds the pushed bytes that are not yet read and no more.
#[derive(Debug)]
pub struct FrameReader {
    magic: &'static [u8],
    buffer: Vec<u8>,
    /// Bytes at the front of the buffer that are read.
    consumed: usize,
    /// The file offset of `buffer[consumed]`.
    offset: u64,
    /// Where the damage began that is being passed.
    damage_from: Option<u64>,
    magic_passed: bool,
    finished: bool,
}

/// What is at one position.
enum Attempt {
    Whole { frame_type: u8, sequence: u32, payload_bytes: usize },
    Incomplete,
    Broken,
}

impl FrameReader {
    /// A reader at the beginning of a file that begins with `magic`. One that has lost it is read from its first mark on.
    #[must_use]
    pub fn new(magic: &'static [u8]) -> Self {
        Self {
            magic,
            buffer: Vec::new(),
            consumed: 0,
            offset: 0,
            damage_from: None,
            magic_passed: false,
            finished: false,
        }
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

    /// What follows the last frame or damage, so far.
    #[must_use]
    pub fn tail(&self) -> Tail {
        let end = self.offset + self.rest().len() as u64;
        match end - self.offset() {
            0 => Tail::Clean,
            pending_bytes => Tail::Incomplete { offset: self.offset(), pending_bytes },
        }
    }

    /// The next frame or piece of damage, or `None` when more bytes are needed (or, after [`FrameReader::finish`], when
    /// there is nothing left).
    pub fn next_found(&mut self) -> Option<FrameOrDamage<'_>> {
        if !self.magic_passed && !self.pass_magic() {
            return None;
        }
        loop {
            match look(self.rest()) {
                Attempt::Whole { frame_type, sequence, payload_bytes } => {
                    if let Some(damage) = self.end_of_damage(DamageKind::Torn) {
                        return Some(FrameOrDamage::Damage(damage));
                    }
                    return Some(FrameOrDamage::Frame(self.take_frame(frame_type, sequence, payload_bytes)));
                }
                Attempt::Incomplete if !self.finished => return None,
                Attempt::Incomplete | Attempt::Broken => {
                    if !self.skip_to_next_mark() {
                        return None;
                    }
                }
            }
            if self.finished && self.rest().is_empty() {
                return self.end_of_damage(DamageKind::TornTail).map(FrameOrDamage::Damage);
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
        if rest.starts_with(self.magic) {
            self.advance(self.magic.len());
        } else if self.magic.starts_with(rest) && !self.finished {
            return false;
        }
        self.magic_passed = true;
        true
    }

    fn take_frame(&mut self, frame_type: u8, sequence: u32, payload_bytes: usize) -> WholeFrame<'_> {
        let (offset, begin) = (self.offset, self.consumed + HEADER_BYTES);
        self.advance(payload_bytes + FRAME_OVERHEAD_BYTES);
        WholeFrame { offset, sequence, frame_type, payload: &self.buffer[begin..begin + payload_bytes] }
    }

    fn end_of_damage(&mut self, kind: DamageKind) -> Option<Damage> {
        let from = self.damage_from.take()?;
        Some(Damage { offset: from, skipped_bytes: self.offset - from, kind })
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
