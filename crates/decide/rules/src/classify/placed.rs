//! A hit of the log where it is.

use std::ops::Deref;

use trackway_core::Confidence;

use super::evidence::{Stream, TerminationEvidence as Evidence};
use super::finding::{EvidenceItem, EvidenceSource, TerminationFinding as Finding};
use crate::scan::{Handling, Hit, OwnFrame};
use crate::signatures::Role;

/// A hit and its position in the streams.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacedHit<'a> {
    pub(super) hit: &'a Hit,
    pub(super) stream: Option<Stream>,
    pub(super) order: usize,
}

impl Deref for PlacedHit<'_> {
    type Target = Hit;

    fn deref(&self) -> &Hit {
        self.hit
    }
}

impl PlacedHit<'_> {
    /// Whether the line reports what happened, and nothing took it back.
    pub(super) fn is_open(&self) -> bool {
        self.handling == Handling::Open
    }

    /// Whether it is of a failure.
    pub(super) fn is_failure(&self) -> bool {
        matches!(self.role, Role::Verdict | Role::Cause | Role::Exception | Role::Consequence)
    }

    /// Whether it is a failure that was not dealt with.
    pub(super) fn is_doubt(&self) -> bool {
        self.is_failure() && matches!(self.handling, Handling::Open | Handling::Warned)
    }

    pub(super) fn is_on_line_of(&self, other: &Self) -> bool {
        self.stream == other.stream && self.line_number == other.line_number
    }

    /// Whether it is among the last lines of its stream.
    pub(super) fn is_within(&self, evidence: &Evidence, last_lines: u64) -> bool {
        let mut logs = evidence.logs.iter().filter(|log| Some(log.stream) == self.stream);
        logs.any(|log| self.line_number + last_lines > log.log.line_count)
    }

    /// The end that the line states, with the line as its evidence.
    pub(super) fn finding(self, confidence: Confidence) -> Finding {
        let mut finding = Finding::new(self.reason, self.signature, confidence);
        finding.items.push(item(self));
        finding
    }
}

/// Whether `second` is part of a chain of exceptions that `first` began.
pub(super) fn chained(placed: &[PlacedHit<'_>], first: PlacedHit<'_>, second: PlacedHit<'_>) -> bool {
    first.order < second.order
        && placed.iter().any(|found| {
            found.role == Role::Chain
                && found.order > first.order
                && (found.order < second.order || found.is_on_line_of(&second))
        })
}

/// As evidence of a verdict.
pub(super) fn item(found: PlacedHit<'_>) -> EvidenceItem {
    let source = if found.stream.is_some() { EvidenceSource::Log } else { EvidenceSource::ErrorFile };
    EvidenceItem {
        source,
        line_number: found.stream.map(|_| found.line_number),
        stream: found.stream,
        text: found.shown(),
    }
}

/// The frame of the user's code behind the line that it raised. It is shown, and decides nothing.
pub(super) fn frame_item(found: PlacedHit<'_>, frame: &OwnFrame) -> EvidenceItem {
    EvidenceItem {
        line_number: found.stream.map(|_| frame.line_number),
        text: format!("at {}", frame.text),
        ..item(found)
    }
}
