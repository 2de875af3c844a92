use std::collections::VecDeque;

use super::decode::{Decoded, decode};
use super::layout::{FILE_MAGIC, FORMAT_VERSION};
use super::payloads::Frame;
use crate::frames::{Damage, FrameOrDamage, FrameReader, Tail};

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
    /// The offset of its first byte in the file. Metrics of a series have that of the frame which they are in.
    pub offset: u64,
    /// Its number in the segment, counted from 0 by the writer; a gap shows how many frames were lost.
    pub sequence: u32,
    pub frame: Frame,
}

/// What a reader finds next.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A whole frame.
    Frame(Located),
    /// Something that is none.
    Damage(Damage),
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
#[derive(Debug)]
pub struct SegmentReader {
    frames: FrameReader,
    /// What is left of a series.
    series: VecDeque<Located>,
    error: Option<RecordError>,
}

impl Default for SegmentReader {
    fn default() -> Self {
        Self { frames: FrameReader::new(&FILE_MAGIC), series: VecDeque::new(), error: None }
    }
}

impl SegmentReader {
    /// A reader at the beginning of a segment.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next bytes of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        self.frames.push(bytes);
    }

    /// Gives back the memory of what was read.
    pub fn release(&mut self) {
        self.frames.release();
    }

    /// Marks the end of the bytes; what is left is then damage, not an unfinished frame.
    pub fn finish(&mut self) {
        self.frames.finish();
    }

    /// The offset up to which everything was given out.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.series.front().map_or_else(|| self.frames.offset(), |left| left.offset)
    }

    /// What follows the last item, so far.
    #[must_use]
    pub fn tail(&self) -> Tail {
        self.frames.tail()
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
        if let Some(located) = self.series.pop_front() {
            return Ok(Some(Item::Frame(located)));
        }
        let whole = match self.frames.next_found() {
            Some(FrameOrDamage::Frame(whole)) => whole,
            Some(FrameOrDamage::Damage(damage)) => return Ok(Some(Item::Damage(damage))),
            None => return Ok(None),
        };
        match decode(whole.frame_type, whole.payload, FORMAT_VERSION) {
            Some(Decoded::Frame(frame)) => {
                let (offset, sequence) = (whole.offset, whole.sequence);
                Ok(Some(Item::Frame(Located { offset, sequence, frame })))
            }
            Some(Decoded::Series(series)) => {
                let (offset, sequence) = (whole.offset, whole.sequence);
                let located = |(place, frame): (u32, Frame)| Located {
                    offset,
                    sequence: sequence.saturating_add(place),
                    frame,
                };
                self.series = (0..).zip(series.frames()).map(located).collect();
                Ok(self.series.pop_front().map(Item::Frame))
            }
            Some(Decoded::UnsupportedVersion(version)) => {
                let error = RecordError::UnsupportedVersion { version };
                self.error = Some(error.clone());
                Err(error)
            }
            None => Ok(Some(Item::Damage(whole.as_malformed()))),
        }
    }
}
