//! What of an event file could not be read.

use std::fmt;

use trackway_core::{MetricStep, closed_list};

closed_list!(
    /// Why a part of an event file is left out.
    DamageKind, "kind of damage", {
        /// The length of a record is right, and its content is not what was written.
        Checksum = "checksum",
        /// Bytes that belong to no record: the next one was searched for.
        NoRecord = "no_record",
        /// The file ends within a record.
        Incomplete = "incomplete",
        /// The content is what was written, and not an event: what can be read of it was taken.
        NotAnEvent = "not_an_event",
        /// The record is larger than what is held at once.
        TooLarge = "too_large",
    }
);

/// A part of an event file that is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    pub kind: DamageKind,
    /// Where it begins: bytes from the beginning of the file.
    pub offset: u64,
    /// How large it is, in bytes.
    pub bytes: u64,
    /// The tag that it seems to have, as far as it can be read.
    pub tag: Option<String>,
    /// The step that it seems to have.
    pub step: Option<MetricStep>,
}

impl Damage {
    pub(super) fn new(kind: DamageKind, offset: u64, bytes: u64) -> Self {
        Self { kind, offset, bytes, tag: None, step: None }
    }

    /// What it seems to be of; empty when nothing of it can be read.
    fn seems(&self) -> String {
        match (&self.tag, self.step) {
            (Some(tag), Some(step)) => format!(", probably of `{tag}` at step {step}"),
            (Some(tag), None) => format!(", probably of `{tag}`"),
            (None, _) => String::new(),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, offset, bytes, .. } = self;
        let seems = self.seems();
        match kind {
            DamageKind::Checksum => {
                write!(
                    formatter,
                    "the record at byte {offset} has a wrong checksum ({bytes} bytes{seems}) and is left out"
                )
            }
            DamageKind::NoRecord => {
                write!(formatter, "{bytes} bytes from byte {offset} on are not a record and are left out")
            }
            DamageKind::Incomplete => {
                write!(
                    formatter,
                    "the file ends within a record: its last {bytes} bytes, from byte {offset} on, are left out"
                )
            }
            DamageKind::NotAnEvent => {
                write!(
                    formatter,
                    "the record at byte {offset} is not a whole event ({bytes} bytes{seems}): a part of it is left out"
                )
            }
            DamageKind::TooLarge => {
                write!(
                    formatter,
                    "the record at byte {offset} is too large to be read ({bytes} bytes) and is left out"
                )
            }
        }
    }
}
