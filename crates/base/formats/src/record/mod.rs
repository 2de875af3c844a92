//! The flight record: what a training process appends to a file while it trains.
//!
//! A segment file holds the [frames](crate::frames) of one process, in the order in which they happened: a reader passes a torn frame and
//! loses nothing but the frames that overlap the damage. What is in a payload is defined here: metrics, events, parameters, heartbeats,
//! checkpoints, answers to commands. `docs/formats/flight-record.md` states the format in MUST/MAY words, and
//! `docs/formats/vectors/flight-record/` holds files with the frames they must give.
//!
//! - [`Encoder`] turns frames into bytes; the caller must write them to the file with one `write(2)` per call.
//! - [`SegmentReader`] turns bytes, pushed as a file grows, into frames and reports of damage.
//! - [`read_segment`] reads a whole segment and names every metric.

mod decode;
mod encode;
mod known_events;
mod layout;
mod payloads;
mod precedence;
mod rank_end;
mod reader;
mod rounded;
mod segment;
mod series;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;

pub use encode::Encoder;
pub use known_events::{
    AVAILABLE_BYTES, ArtifactEvent, EARLY_STEP, PROGRESSIVE_LOSS, RESIDENT_BYTES, is_fingerprint,
    is_internal_metric, is_machine_metric, restarted_names,
};
pub use layout::{
    FILE_MAGIC, FORMAT_VERSION, MAX_METRICS_PER_FRAME, MAX_NAMES_PER_SEGMENT, MAX_STEPS_PER_SERIES,
    METRIC_NAMES_MAX, SEGMENT_EXTENSION,
};
pub use payloads::{
    CheckpointChange, CheckpointFrame, Close, ControlAck, ControlOutcome, EarlyMetrics, Event, Frame,
    Heartbeat, Metrics, NameDefinition, NameId, Origin, Param, SegmentHeader,
};
pub use precedence::OriginOfEach;
pub use rank_end::RankEnd;
pub use reader::{Item, Located, RecordError, SegmentReader};
pub use rounded::{ROUNDED_ZERO, is_rounded_zero, unmarked};
pub use segment::{GrowingSegment, MetricPoint, NameTable, Segment, SegmentParts, read_segment};
