use std::collections::HashMap;

use trackway_core::{MetricStep, Step, Timestamp};

use super::frame::{CheckpointFrame, Close, ControlAck, Event, Heartbeat, Param, SegmentHeader};
use super::layout::{
    FILE_MAGIC, FORMAT_VERSION, HEADER_BYTES, MAX_METRICS_PER_FRAME, MAX_NAME_BYTES, MAX_NAMES_PER_SEGMENT,
    MAX_PAYLOAD_BYTES, MAX_TEXT_BYTES, RESYNC_MARK, crc32c, frame_type, header_check,
};

/// After so many metrics frames the definitions are repeated, so that a torn definition costs names only up to here.
const REPEAT_DEFINITIONS_EVERY_FRAMES: u32 = 4_096;

/// Turns the frames of one segment into bytes, numbering them and interning metric names.
///
/// Every method appends whole frames to `out`; the caller hands the bytes to one `write(2)`. Strings longer than
/// [`MAX_NAME_BYTES`] or [`MAX_TEXT_BYTES`] are cut at a character. The encoder never fails.
#[derive(Debug, Default)]
pub struct Encoder {
    next_sequence: u32,
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
        self.next_sequence
    }

    /// Whether these names still fit into the segment; when not, the caller begins another one.
    #[must_use]
    pub fn has_room_for(&self, name_count: usize) -> bool {
        self.names.len() + name_count <= MAX_NAMES_PER_SEGMENT && self.next_sequence < u32::MAX / 2
    }

    /// Takes back the frames encoded since [`Encoder::frame_count`] was `frame_count`, because they were not written.
    /// Names they defined stay known here and unknown to readers, so only [`Encoder::close`] may follow.
    pub fn rewind_to(&mut self, frame_count: u32) {
        self.next_sequence = frame_count;
    }

    /// The beginning of the file: magic and header frame.
    pub fn begin(&mut self, out: &mut Vec<u8>, header: &SegmentHeader) {
        out.extend_from_slice(&FILE_MAGIC);
        self.frame(out, frame_type::HEADER, |payload| {
            put_u16(payload, FORMAT_VERSION);
            payload.push(header.origin.code());
            payload.push(0);
            put_time(payload, header.at);
            put_u32(payload, header.pid);
            put_u32(payload, header.segment_sequence);
            put_name(payload, &header.boot_id);
            put_name(payload, &header.run_id);
            put_name(payload, &header.attempt_id);
            put_name(payload, &header.writer);
        });
    }

    /// Values of metrics at a step, with the definitions of names that are new to the segment in front.
    pub fn metrics(&mut self, out: &mut Vec<u8>, at: Timestamp, step: Step, values: &[(&str, f64)]) {
        for chunk in values.chunks(MAX_METRICS_PER_FRAME) {
            self.metrics_frame(out, frame_type::METRICS, (at, step), chunk);
        }
    }

    /// Values of metrics at a step below 0; readers skip those of any other step.
    pub fn early_metrics(
        &mut self,
        out: &mut Vec<u8>,
        at: Timestamp,
        step: MetricStep,
        values: &[(&str, f64)],
    ) {
        for chunk in values.chunks(MAX_METRICS_PER_FRAME) {
            self.metrics_frame(out, frame_type::EARLY_METRICS, (at, step as u64), chunk);
        }
    }

    /// A frame of values. A step below 0 is given as its bits.
    fn metrics_frame(
        &mut self,
        out: &mut Vec<u8>,
        frame_type: u8,
        (at, step): (Timestamp, u64),
        values: &[(&str, f64)],
    ) {
        if self.metrics_since_definitions >= REPEAT_DEFINITIONS_EVERY_FRAMES {
            self.repeat_definitions(out);
        }
        self.intern(out, values);
        self.metrics_since_definitions += 1;
        let ids = std::mem::take(&mut self.last_ids);
        self.frame(out, frame_type, |payload| {
            put_time(payload, at);
            put_u64(payload, step);
            put_u32(payload, values.len() as u32);
            for (id, (_, value)) in ids.iter().zip(values) {
                put_u32(payload, *id);
                put_u64(payload, value.to_bits());
            }
        });
        self.last_ids = ids;
    }

    /// Fills `last_ids` with the ids of these names, defining the new ones.
    fn intern(&mut self, out: &mut Vec<u8>, values: &[(&str, f64)]) {
        for (position, (name, _)) in values.iter().enumerate() {
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
        self.last_ids.truncate(values.len());
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
        self.frame(out, frame_type::NAME_DEFINITION, |payload| {
            put_u32(payload, id);
            put_name(payload, name);
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
        self.frame(out, frame_type::EVENT, |payload| {
            put_time(payload, at);
            put_step(payload, step);
            put_name(payload, kind);
            let count_at = payload.len();
            put_u16(payload, 0);
            let mut count = 0u16;
            for (name, value) in fields {
                let needed = 6 + cut(name, MAX_NAME_BYTES).len() + cut(value, MAX_TEXT_BYTES).len();
                if payload.len() + needed > MAX_PAYLOAD_BYTES || count == u16::MAX {
                    break;
                }
                put_name(payload, name);
                put_text(payload, value);
                count += 1;
            }
            payload.patch(count_at, &count.to_le_bytes());
        });
    }

    /// A parameter of the run.
    pub fn param(&mut self, out: &mut Vec<u8>, param: &Param) {
        self.frame(out, frame_type::PARAM, |payload| {
            put_time(payload, param.at);
            put_name(payload, &param.name);
            put_text(payload, &param.value);
        });
    }

    /// A sign of life.
    pub fn heartbeat(&mut self, out: &mut Vec<u8>, heartbeat: &Heartbeat) {
        self.frame(out, frame_type::HEARTBEAT, |payload| {
            put_time(payload, heartbeat.at);
            put_u64(payload, heartbeat.step);
        });
    }

    /// A checkpoint.
    pub fn checkpoint(&mut self, out: &mut Vec<u8>, checkpoint: &CheckpointFrame) {
        self.frame(out, frame_type::CHECKPOINT, |payload| {
            put_time(payload, checkpoint.at);
            put_u64(payload, checkpoint.step);
            put_u64(payload, checkpoint.epoch);
            payload.push(checkpoint.state.code());
            put_u64(payload, checkpoint.size_bytes);
            put_u64(payload, checkpoint.seconds.to_bits());
            put_text(payload, &checkpoint.object_prefix);
            put_name(payload, &checkpoint.manifest_sha256);
        });
    }

    /// The answer to a command of the control file.
    pub fn control_ack(&mut self, out: &mut Vec<u8>, ack: &ControlAck) {
        self.frame(out, frame_type::CONTROL_ACK, |payload| {
            put_time(payload, ack.at);
            put_u64(payload, ack.id);
            payload.push(ack.outcome.code());
            put_step(payload, ack.step);
        });
    }

    /// The end of the segment, in order.
    pub fn close(&mut self, out: &mut Vec<u8>, close: &Close) {
        self.frame(out, frame_type::CLOSE, |payload| {
            put_time(payload, close.at);
            put_u64(payload, close.dropped_frames);
        });
    }

    /// One frame around a payload: mark, length, sequence, type, flags, header check, payload, checksum.
    fn frame(&mut self, out: &mut Vec<u8>, frame_type: u8, fill: impl FnOnce(&mut Payload<'_>)) {
        let start = out.len();
        out.extend_from_slice(&RESYNC_MARK);
        out.extend_from_slice(&[0; HEADER_BYTES - RESYNC_MARK.len()]);
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

/// The payload under construction, at the end of the output.
struct Payload<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl Payload<'_> {
    fn len(&self) -> usize {
        self.out.len() - self.start
    }

    fn push(&mut self, byte: u8) {
        self.out.push(byte);
    }

    fn put(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    fn patch(&mut self, at: usize, bytes: &[u8]) {
        let at = self.start + at;
        self.out[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

fn put_u16(payload: &mut Payload<'_>, value: u16) {
    payload.put(&value.to_le_bytes());
}

fn put_u32(payload: &mut Payload<'_>, value: u32) {
    payload.put(&value.to_le_bytes());
}

fn put_u64(payload: &mut Payload<'_>, value: u64) {
    payload.put(&value.to_le_bytes());
}

fn put_time(payload: &mut Payload<'_>, at: Timestamp) {
    payload.put(&at.as_micros().to_le_bytes());
}

fn put_step(payload: &mut Payload<'_>, step: Option<Step>) {
    payload.push(u8::from(step.is_some()));
    put_u64(payload, step.unwrap_or(0));
}

fn put_name(payload: &mut Payload<'_>, name: &str) {
    let name = cut(name, MAX_NAME_BYTES);
    put_u16(payload, name.len() as u16);
    payload.put(name.as_bytes());
}

fn put_text(payload: &mut Payload<'_>, text: &str) {
    let text = cut(text, MAX_TEXT_BYTES);
    put_u32(payload, text.len() as u32);
    payload.put(text.as_bytes());
}

/// The longest beginning of `text` that has at most `max_bytes` bytes and ends at a character.
fn cut(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}
