use std::collections::HashMap;

use trackway_core::{MetricStep, Step, Timestamp};

use super::layout::{
    FILE_MAGIC, FORMAT_VERSION, MAX_METRICS_PER_FRAME, MAX_NAMES_PER_SEGMENT, MAX_STEPS_PER_SERIES,
    frame_type,
};
use super::payloads::{CheckpointFrame, Close, ControlAck, Event, Heartbeat, Param, SegmentHeader};
use crate::frames::{FrameWriter, MAX_NAME_BYTES, MAX_PAYLOAD_BYTES, MAX_TEXT_BYTES, Payload, cut};

/// After so many metrics frames the definitions are repeated, so that a torn definition costs names only up to here.
const REPEAT_DEFINITIONS_EVERY_FRAMES: u32 = 4_096;

/// The time, the step and the number of values.
const METRICS_HEAD_BYTES: usize = 20;
/// A name's number and a value.
const VALUE_BYTES: usize = 12;
/// Of a series the time, the number of names and the number of steps.
const SERIES_HEAD_BYTES: usize = 16;
/// A name's number.
const NAME_ID_BYTES: usize = 4;
/// A step, or a value of it.
const SERIES_NUMBER_BYTES: usize = 8;

/// Turns the frames of one segment into bytes, numbering them and interning metric names.
///
/// Every method appends whole frames to `out`; the caller hands the bytes to one `write(2)`. Strings longer than
/// [`MAX_NAME_BYTES`] or [`MAX_TEXT_BYTES`] are cut at a character. The encoder never fails.
#[derive(Debug, Default)]
pub struct Encoder {
    frames: FrameWriter,
    ids: HashMap<String, u32>,
    names: Vec<String>,
    /// The ids of the last metrics frame: a loop logs the same names in the same order, so a comparison
    /// replaces a hash.
    last_ids: Vec<u32>,
    metrics_since_definitions: u32,
}

impl Encoder {
    /// An encoder for a new segment.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many frames were encoded so far.
    #[must_use]
    pub fn frame_count(&self) -> u32 {
        self.frames.frame_count()
    }

    /// Whether these names still fit into the segment; when not, the caller begins another one.
    #[must_use]
    pub fn has_room_for(&self, name_count: usize) -> bool {
        self.names.len() + name_count <= MAX_NAMES_PER_SEGMENT && self.frames.has_numbers()
    }

    /// Takes back the frames encoded since [`Encoder::frame_count`] was `frame_count`, because they were not written.
    /// Names they defined stay known here and unknown to readers, so only [`Encoder::close`] may follow.
    pub fn rewind_to(&mut self, frame_count: u32) {
        self.frames.rewind_to(frame_count);
    }

    /// The beginning of the file: magic and header frame.
    pub fn begin(&mut self, out: &mut Vec<u8>, header: &SegmentHeader) {
        out.extend_from_slice(&FILE_MAGIC);
        self.frames.write(out, frame_type::HEADER, |payload| {
            payload.put_u16(FORMAT_VERSION);
            payload.put_u8(header.origin.code());
            payload.put_u8(0);
            payload.put_time(header.at);
            payload.put_u32(header.pid);
            payload.put_u32(header.segment_sequence);
            payload.put_name(&header.boot_id);
            payload.put_name(&header.run_id);
            payload.put_name(&header.attempt_id);
            payload.put_name(&header.writer);
        });
    }

    /// Values of metrics at a step, with the definitions of names that are new to the segment in front.
    pub fn metrics(
        &mut self,
        out: &mut Vec<u8>,
        at: Timestamp,
        step: Step,
        values: &[(impl AsRef<str>, f64)],
    ) {
        for chunk in values.chunks(MAX_METRICS_PER_FRAME) {
            self.intern_all(out, chunk.iter().map(|(name, _)| name.as_ref()));
            self.metrics_frame(out, frame_type::METRICS, (at, step), chunk.iter().map(|(_, value)| *value));
        }
    }

    /// How many steps one call of [`Encoder::series`] takes of so many metrics.
    #[must_use]
    pub fn steps_of_series(name_count: usize) -> usize {
        let room = MAX_PAYLOAD_BYTES.saturating_sub(SERIES_HEAD_BYTES + name_count * NAME_ID_BYTES);
        (room / ((1 + name_count) * SERIES_NUMBER_BYTES)).clamp(1, MAX_STEPS_PER_SERIES)
    }

    /// Values of the same metrics at one step after the other, in one frame, with the definitions of names that are new to the segment
    /// in front: at most [`MAX_METRICS_PER_FRAME`] names and [`Encoder::steps_of_series`] steps. `values` has those of the first step,
    /// then those of the next. One step is a metrics frame.
    pub fn series(
        &mut self,
        out: &mut Vec<u8>,
        at: Timestamp,
        names: &[impl AsRef<str>],
        steps: &[Step],
        values: &[f64],
    ) {
        let (count, of_each) = (steps.len() as u32, names.len());
        debug_assert!(
            values.len() == steps.len() * of_each && (1..=MAX_METRICS_PER_FRAME).contains(&of_each)
        );
        self.intern_all(out, names.iter().map(AsRef::as_ref));
        if let [step] = steps {
            return self.metrics_frame(out, frame_type::METRICS, (at, *step), values.iter().copied());
        }
        self.metrics_since_definitions = self.metrics_since_definitions.saturating_add(count);
        let Self { frames, last_ids, .. } = self;
        frames.write(out, frame_type::SERIES, |payload| {
            payload.reserve(SERIES_HEAD_BYTES + of_each * NAME_ID_BYTES);
            payload.put_time(at);
            payload.put_u32(of_each as u32);
            payload.put_u32(count);
            last_ids.iter().for_each(|id| payload.put_u32(*id));
            payload.reserve((steps.len() + values.len()) * SERIES_NUMBER_BYTES);
            for (step, values) in steps.iter().zip(values.chunks_exact(of_each)) {
                payload.put_u64(*step);
                values.iter().for_each(|value| payload.put_f64(*value));
            }
        });
        frames.take_numbers(count.saturating_sub(1));
    }

    /// Values of metrics at a step below 0; readers skip those of any other step.
    pub fn early_metrics(
        &mut self,
        out: &mut Vec<u8>,
        at: Timestamp,
        step: MetricStep,
        values: &[(impl AsRef<str>, f64)],
    ) {
        for chunk in values.chunks(MAX_METRICS_PER_FRAME) {
            self.intern_all(out, chunk.iter().map(|(name, _)| name.as_ref()));
            let (step, values) = (step as u64, chunk.iter().map(|(_, value)| *value));
            self.metrics_frame(out, frame_type::EARLY_METRICS, (at, step), values);
        }
    }

    /// A frame of values with the last names. A step below 0 is given as its bits.
    fn metrics_frame(
        &mut self,
        out: &mut Vec<u8>,
        frame_type: u8,
        (at, step): (Timestamp, u64),
        values: impl ExactSizeIterator<Item = f64>,
    ) {
        self.metrics_since_definitions += 1;
        let Self { frames, last_ids, .. } = self;
        frames.write(out, frame_type, |payload| {
            payload.reserve(METRICS_HEAD_BYTES + values.len() * VALUE_BYTES);
            payload.put_time(at);
            payload.put_u64(step);
            payload.put_u32(values.len() as u32);
            for (id, value) in last_ids.iter().zip(values) {
                payload.put_u32(*id);
                payload.put_f64(value);
            }
        });
    }

    /// Makes these names the last ones. All definitions are repeated before, if it is time to.
    fn intern_all<'n>(&mut self, out: &mut Vec<u8>, names: impl ExactSizeIterator<Item = &'n str>) {
        if self.metrics_since_definitions >= REPEAT_DEFINITIONS_EVERY_FRAMES {
            self.repeat_definitions(out);
        }
        self.intern(out, names);
    }

    /// Fills `last_ids` with the ids of these names, defining the new ones.
    fn intern<'n>(&mut self, out: &mut Vec<u8>, names: impl ExactSizeIterator<Item = &'n str>) {
        self.last_ids.truncate(names.len());
        for (position, name) in names.enumerate() {
            let name = cut(name, MAX_NAME_BYTES);
            let remembered = self.last_ids.get(position).copied();
            if remembered.is_some_and(|id| self.names[id as usize] == name) {
                continue;
            }
            let id = self.id_of(out, name);
            match self.last_ids.get_mut(position) {
                Some(slot) => *slot = id,
                None => self.last_ids.push(id),
            }
        }
    }

    fn id_of(&mut self, out: &mut Vec<u8>, name: &str) -> u32 {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = self.names.len() as u32;
        self.ids.insert(name.to_owned(), id);
        self.names.push(name.to_owned());
        self.definition(out, id, name);
        id
    }

    fn repeat_definitions(&mut self, out: &mut Vec<u8>) {
        self.metrics_since_definitions = 0;
        let names = std::mem::take(&mut self.names);
        for (id, name) in names.iter().enumerate() {
            self.definition(out, id as u32, name);
        }
        self.names = names;
    }

    fn definition(&mut self, out: &mut Vec<u8>, id: u32, name: &str) {
        self.frames.write(out, frame_type::NAME_DEFINITION, |payload| {
            payload.put_u32(id);
            payload.put_name(name);
        });
    }

    /// Something that happened. Fields that do not fit into a frame any more are left out.
    pub fn event(&mut self, out: &mut Vec<u8>, event: &Event) {
        let fields: Vec<_> =
            event.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.event_parts(out, event.at, event.step, &event.kind, &fields);
    }

    /// The same as [`Encoder::event`] from borrowed parts.
    pub fn event_parts(
        &mut self,
        out: &mut Vec<u8>,
        at: Timestamp,
        step: Option<Step>,
        kind: &str,
        fields: &[(&str, &str)],
    ) {
        self.frames.write(out, frame_type::EVENT, |payload| {
            payload.put_time(at);
            put_step(payload, step);
            payload.put_name(kind);
            let mut left = fields.iter();
            payload.put_counted(|payload| {
                let Some((name, value)) = left.next() else { return false };
                let needed = 6 + cut(name, MAX_NAME_BYTES).len() + cut(value, MAX_TEXT_BYTES).len();
                if !payload.has_room_for(needed) {
                    return false;
                }
                payload.put_name(name);
                payload.put_text(value);
                true
            });
        });
    }

    /// A parameter of the run.
    pub fn param(&mut self, out: &mut Vec<u8>, param: &Param) {
        self.frames.write(out, frame_type::PARAM, |payload| {
            payload.put_time(param.at);
            payload.put_name(&param.name);
            payload.put_text(&param.value);
        });
    }

    /// A sign of life.
    pub fn heartbeat(&mut self, out: &mut Vec<u8>, heartbeat: &Heartbeat) {
        self.frames.write(out, frame_type::HEARTBEAT, |payload| {
            payload.put_time(heartbeat.at);
            payload.put_u64(heartbeat.step);
        });
    }

    /// A checkpoint.
    pub fn checkpoint(&mut self, out: &mut Vec<u8>, checkpoint: &CheckpointFrame) {
        self.frames.write(out, frame_type::CHECKPOINT, |payload| {
            payload.put_time(checkpoint.at);
            payload.put_u64(checkpoint.step);
            payload.put_u64(checkpoint.epoch);
            payload.put_u8(checkpoint.state.code());
            payload.put_u64(checkpoint.size_bytes);
            payload.put_f64(checkpoint.seconds);
            payload.put_text(&checkpoint.object_prefix);
            payload.put_name(&checkpoint.manifest_sha256);
        });
    }

    /// The answer to a command of the control file.
    pub fn control_ack(&mut self, out: &mut Vec<u8>, ack: &ControlAck) {
        self.frames.write(out, frame_type::CONTROL_ACK, |payload| {
            payload.put_time(ack.at);
            payload.put_u64(ack.id);
            payload.put_u8(ack.outcome.code());
            put_step(payload, ack.step);
        });
    }

    /// The end of the segment, in order.
    pub fn close(&mut self, out: &mut Vec<u8>, close: &Close) {
        self.frames.write(out, frame_type::CLOSE, |payload| {
            payload.put_time(close.at);
            payload.put_u64(close.dropped_frames);
        });
    }
}

fn put_step(payload: &mut Payload<'_>, step: Option<Step>) {
    payload.put_u8(u8::from(step.is_some()));
    payload.put_u64(step.unwrap_or(0));
}
