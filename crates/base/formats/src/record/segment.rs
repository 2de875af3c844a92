use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Read};

use trackway_core::{MetricStep, Step, Timestamp};

use super::payloads::{Close, Frame, NameDefinition, NameId, Origin, SegmentHeader};
use super::reader::{Item, Located, RecordError, SegmentReader};
use super::rounded::unmarked;
use crate::frames::Damage;

/// The metric names of one segment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameTable(HashMap<NameId, String>);

impl NameTable {
    /// Takes a definition in. The first one of a number counts: a writer must not give a number a second name.
    pub fn learn(&mut self, definition: &NameDefinition) {
        self.0.entry(definition.id).or_insert_with(|| definition.name.clone());
    }

    /// The name of a number, when its definition was read.
    #[must_use]
    pub fn get(&self, id: NameId) -> Option<&str> {
        self.0.get(&id).map(String::as_str)
    }

    /// The name of a number, or `unnamed_7` when its definition was torn.
    #[must_use]
    pub fn name_or_placeholder(&self, id: NameId) -> Cow<'_, str> {
        self.get(id).map_or_else(|| Cow::Owned(format!("unnamed_{}", id.0)), Cow::Borrowed)
    }
}

/// One value of one metric. `S`: the type of its step.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricPoint<'a, S = Step> {
    /// When it was logged.
    pub at: Timestamp,
    /// The step it belongs to.
    pub step: S,
    /// The number of its frame in the segment: the order that does not depend on a clock.
    pub sequence: u32,
    pub name: Cow<'a, str>,
    /// The number of that name in the segment.
    pub name_id: NameId,
    /// The value, bit for bit; a zero that was printed with decimals is 0.
    pub value: f64,
}

/// A whole segment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Segment {
    /// Which process wrote it; `None` when the header frame was torn.
    pub header: Option<SegmentHeader>,
    /// Every other frame, in file order.
    pub frames: Vec<Located>,
    /// What was passed.
    pub damage: Vec<Damage>,
    /// The metric names.
    pub names: NameTable,
    /// The end, when it was ended in order.
    pub close: Option<Close>,
    /// Frames that the sequence numbers show to be missing between those that were read.
    pub lost_frames: u64,
}

impl Segment {
    /// Its writer; none when the header frame was torn.
    #[must_use]
    pub fn origin(&self) -> Option<Origin> {
        self.header.as_ref().map(|header| header.origin)
    }

    /// Every metric value of the training, in file order, with its name: none of a step below 0.
    pub fn metric_points(&self) -> impl Iterator<Item = MetricPoint<'_>> {
        self.points(|frame| match frame {
            Frame::Metrics(metrics) => Some((metrics.at, metrics.step, metrics.values.as_slice())),
            _ => None,
        })
    }

    /// Every metric value, in file order, with its name; those of steps below 0 too.
    pub fn metric_points_of_any_step(&self) -> impl Iterator<Item = MetricPoint<'_, MetricStep>> {
        self.points(|frame| match frame {
            Frame::Metrics(metrics) => {
                let step = MetricStep::try_from(metrics.step).unwrap_or(MetricStep::MAX);
                Some((metrics.at, step, metrics.values.as_slice()))
            }
            Frame::EarlyMetrics(metrics) => Some((metrics.at, metrics.step, metrics.values.as_slice())),
            _ => None,
        })
    }

    /// The values of the frames that `of` takes: their time, their step, and they themselves.
    fn points<'a, S: Copy + 'a>(
        &'a self,
        of: impl Fn(&'a Frame) -> Option<(Timestamp, S, &'a [(NameId, f64)])> + 'a,
    ) -> impl Iterator<Item = MetricPoint<'a, S>> {
        self.frames.iter().filter_map(move |located| Some((located.sequence, of(&located.frame)?))).flat_map(
            move |(sequence, (at, step, values))| {
                values.iter().map(move |(id, value)| MetricPoint {
                    at,
                    step,
                    sequence,
                    name: self.names.name_or_placeholder(*id),
                    name_id: *id,
                    value: self.as_recorded(*value),
                })
            },
        )
    }

    /// The value, without the mark of a zero that was printed with decimals.
    fn as_recorded(&self, value: f64) -> f64 {
        if self.origin() == Some(Origin::Stdout) { unmarked(value) } else { value }
    }

    fn take(&mut self, located: Located, next_sequence: &mut u32) {
        self.lost_frames += u64::from(located.sequence.saturating_sub(*next_sequence));
        *next_sequence = located.sequence.saturating_add(1);
        match &located.frame {
            Frame::Header(header) => {
                self.header.get_or_insert_with(|| header.clone());
                return;
            }
            Frame::NameDefinition(definition) => self.names.learn(definition),
            Frame::Close(close) => self.close = Some(*close),
            _ => {}
        }
        self.frames.push(located);
    }
}

/// Reads a whole segment. A name whose first definition was torn is found in a later one.
///
/// # Errors
/// [`RecordError::UnsupportedVersion`]; damage is not an error but listed in the result.
pub fn read_segment(bytes: &[u8]) -> Result<Segment, RecordError> {
    let mut growing = GrowingSegment::default();
    growing.reader.push(bytes);
    growing.finish()?;
    Ok(growing.segment)
}

/// A segment that grows: bytes are pushed as they come, and each push gives the part that they complete.
#[derive(Debug, Default)]
pub struct GrowingSegment {
    reader: SegmentReader,
    segment: Segment,
    next_sequence: u32,
}

impl GrowingSegment {
    /// With names that are known already: with all names of the segment a value has its name also where the first definition was torn.
    #[must_use]
    pub fn with_names(names: NameTable) -> Self {
        Self { segment: Segment { names, ..Segment::default() }, ..Self::default() }
    }

    /// Takes the next bytes. The frames and the damage of the part are those that they complete; its header, names, end and lost frames are
    /// of all that was pushed so far.
    ///
    /// # Errors
    /// [`RecordError`]; every later push returns it again.
    pub fn push(&mut self, bytes: &[u8]) -> Result<&mut Segment, RecordError> {
        self.reader.push(bytes);
        self.read()
    }

    /// The same of the end: what is left is damage.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn finish(&mut self) -> Result<&mut Segment, RecordError> {
        self.reader.finish();
        self.read()
    }

    /// The part of the last push.
    #[must_use]
    pub fn part(&self) -> &Segment {
        &self.segment
    }

    /// Gives back the memory of the part, and keeps what the next push needs.
    pub fn release(&mut self) {
        (self.segment.frames, self.segment.damage) = (Vec::new(), Vec::new());
        self.reader.release();
    }

    fn read(&mut self) -> Result<&mut Segment, RecordError> {
        self.segment.frames.clear();
        self.segment.damage.clear();
        while let Some(item) = self.reader.next_item()? {
            match item {
                Item::Frame(located) => self.segment.take(located, &mut self.next_sequence),
                Item::Damage(damage) => self.segment.damage.push(damage),
            }
        }
        Ok(&mut self.segment)
    }
}

/// Reads a segment of any size in parts of bounded memory.
#[derive(Debug)]
pub struct SegmentParts<R> {
    source: R,
    growing: GrowingSegment,
    part_bytes: usize,
    ended: bool,
}

impl<R: Read> SegmentParts<R> {
    /// The bytes of a segment that follow those that were pushed, so many for one part.
    pub fn new(source: R, growing: GrowingSegment, part_bytes: usize) -> Self {
        Self { source, growing, part_bytes, ended: false }
    }

    /// The next part, as [`GrowingSegment::push`] gives it. None at the end.
    ///
    /// # Errors
    /// The source cannot be read; [`RecordError`] within.
    pub fn next_part(&mut self) -> io::Result<Result<Option<&mut Segment>, RecordError>> {
        if self.ended {
            return Ok(Ok(None));
        }
        let mut piece = Vec::with_capacity(self.part_bytes);
        self.source.by_ref().take(self.part_bytes as u64).read_to_end(&mut piece)?;
        self.ended = piece.is_empty();
        let part = if self.ended { self.growing.finish() } else { self.growing.push(&piece) };
        self.ended |= part.is_err();
        Ok(part.map(Some))
    }
}
