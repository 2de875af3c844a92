//! A hit of the log where it is.

use super::evidence::Stream;
use super::finding::{EvidenceItem, EvidenceSource};
use crate::scan::Hit;

/// A hit and its position in the streams.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed<'a> {
    pub(super) hit: &'a Hit,
    pub(super) stream: Option<Stream>,
    pub(super) order: usize,
}

/// As evidence of a verdict.
pub(super) fn item(found: Placed<'_>) -> EvidenceItem {
    let source = if found.stream.is_some() { EvidenceSource::Log } else { EvidenceSource::ErrorFile };
    EvidenceItem {
        source,
        line_number: found.stream.map(|_| found.hit.line_number),
        stream: found.stream,
        text: found.hit.text.clone(),
    }
}
