//! Frames: how records are stored that grow at their end and may be cut or damaged anywhere.
//!
//! A frame carries a mark to find it again after damage, its length, a sequence number and checksums around a payload. Nothing here knows
//! what a payload means: that is what a record defines, by the magic of its files, the numbers of its frame types and
//! their fields. The first such record is the [flight record](crate::record), whose specification states the bytes too:
//! `docs/formats/flight-record.md`.
//!
//! - [`FrameWriter`] numbers frames and turns them into bytes.
//! - [`FrameReader`] turns bytes, pushed as a file grows, into frames and reports of damage.
//! - [`Payload`] and [`Fields`] write and read the fields of a payload.

mod fields;
mod layout;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use fields::Fields;
#[cfg(test)]
pub(crate) use layout::HEADER_BYTES;
pub use layout::{FRAME_OVERHEAD_BYTES, MAX_NAME_BYTES, MAX_PAYLOAD_BYTES, MAX_TEXT_BYTES, RESYNC_MARK};
pub use reader::{Damage, DamageKind, FrameOrDamage, FrameReader, Tail, WholeFrame};
pub(crate) use writer::cut;
pub use writer::{FrameWriter, Payload};
