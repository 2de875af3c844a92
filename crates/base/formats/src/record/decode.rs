//! Payloads back into frames. A payload that is shorter than its type requires, or holds text that is not UTF-8, gives
//! `None`; bytes after the known fields are ignored, so that later versions may add some.

use trackway_core::{MetricStep, Step};

use super::layout::frame_type;
use super::payloads::{
    CheckpointChange, CheckpointFrame, Close, ControlAck, ControlOutcome, EarlyMetrics, Event, Frame,
    Heartbeat, Metrics, NameDefinition, NameId, Origin, Param, SegmentHeader,
};
use super::series::Series;
use crate::frames::Fields;

/// What a payload turned out to be.
pub(super) enum Decoded {
    Frame(Frame),
    /// Several metrics frames in one.
    Series(Series),
    /// A header frame of a version this crate does not read.
    UnsupportedVersion(u16),
}

/// Decodes the payload of a frame whose checksum holds.
pub(super) fn decode(frame_type: u8, payload: &[u8], highest_version: u16) -> Option<Decoded> {
    let mut fields = Fields::of(payload);
    if frame_type == frame_type::HEADER {
        let version = fields.u16()?;
        if version > highest_version {
            return Some(Decoded::UnsupportedVersion(version));
        }
    }
    if frame_type == frame_type::SERIES {
        return Series::of(fields).map(Decoded::Series);
    }
    let frame = match frame_type {
        frame_type::HEADER => Frame::Header(header(&mut fields)?),
        frame_type::NAME_DEFINITION => {
            Frame::NameDefinition(NameDefinition { id: NameId(fields.u32()?), name: fields.name()? })
        }
        frame_type::METRICS => Frame::Metrics(metrics(&mut fields)?),
        frame_type::EARLY_METRICS => Frame::EarlyMetrics(early_metrics(&mut fields)?),
        frame_type::EVENT => Frame::Event(event(&mut fields)?),
        frame_type::PARAM => {
            Frame::Param(Param { at: fields.time()?, name: fields.name()?, value: fields.text()? })
        }
        frame_type::HEARTBEAT => Frame::Heartbeat(Heartbeat { at: fields.time()?, step: fields.u64()? }),
        frame_type::CHECKPOINT => Frame::Checkpoint(checkpoint(&mut fields)?),
        frame_type::CONTROL_ACK => Frame::ControlAck(ControlAck {
            at: fields.time()?,
            id: fields.u64()?,
            outcome: ControlOutcome::from_code(fields.u8()?),
            step: step(&mut fields)?,
        }),
        frame_type::CLOSE => Frame::Close(Close { at: fields.time()?, dropped_frames: fields.u64()? }),
        other => Frame::Unknown { frame_type: other, payload_bytes: payload.len() },
    };
    Some(Decoded::Frame(frame))
}

fn header(fields: &mut Fields<'_>) -> Option<SegmentHeader> {
    let origin = Origin::from_code(fields.u8()?);
    fields.u8()?;
    Some(SegmentHeader {
        at: fields.time()?,
        origin,
        pid: fields.u32()?,
        segment_sequence: fields.u32()?,
        boot_id: fields.name()?,
        run_id: fields.name()?,
        attempt_id: fields.name()?,
        writer: fields.name()?,
    })
}

fn metrics(fields: &mut Fields<'_>) -> Option<Metrics> {
    let (at, step, count) = (fields.time()?, fields.u64()?, fields.u32()? as usize);
    // Checked before anything is reserved: a count alone must not make a reader allocate.
    if fields.bytes_left() < count.checked_mul(12)? {
        return None;
    }
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        values.push((NameId(fields.u32()?), fields.f64()?));
    }
    Some(Metrics { at, step, values })
}

/// The same payload, with a step below 0.
fn early_metrics(fields: &mut Fields<'_>) -> Option<EarlyMetrics> {
    let Metrics { at, step, values } = metrics(fields)?;
    let step = step as MetricStep;
    (step < 0).then_some(EarlyMetrics { at, step, values })
}

fn event(fields: &mut Fields<'_>) -> Option<Event> {
    let (at, step, kind, count) = (fields.time()?, step(fields)?, fields.name()?, fields.u16()?);
    let mut list = Vec::new();
    for _ in 0..count {
        list.push((fields.name()?, fields.text()?));
    }
    Some(Event { at, step, kind, fields: list })
}

fn checkpoint(fields: &mut Fields<'_>) -> Option<CheckpointFrame> {
    Some(CheckpointFrame {
        at: fields.time()?,
        step: fields.u64()?,
        epoch: fields.u64()?,
        state: CheckpointChange::from_code(fields.u8()?),
        size_bytes: fields.u64()?,
        seconds: fields.f64()?,
        object_prefix: fields.text()?,
        manifest_sha256: fields.name()?,
    })
}

fn step(fields: &mut Fields<'_>) -> Option<Option<Step>> {
    let (present, step) = (fields.u8()?, fields.u64()?);
    Some((present != 0).then_some(step))
}
