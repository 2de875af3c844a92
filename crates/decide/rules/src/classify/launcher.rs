//! What the words of an engine mean for an end; the tables are in `signatures::engine`.

use trackway_core::Confidence;

use super::evidence::TerminationEvidence as Evidence;
use super::finding::{EvidenceSource, TerminationFinding as Finding};
use crate::signatures::engine;

/// The launcher's statement, when it is more specific than "it failed".
pub(super) fn state(evidence: &Evidence) -> Option<Finding> {
    let stated = evidence.launcher.as_ref()?;
    let meaning = engine::meaning(&stated.source, &[&stated.state, &stated.reason])?;
    let confidence = if meaning.conclusive { Confidence::Certain } else { Confidence::Likely };
    let text = format!("{} reports {} {}", stated.source, stated.state, stated.reason);
    let finding = Finding::new(meaning.reason, meaning.rule, confidence);
    Some(finding.with(EvidenceSource::Launcher, text.trim_end()))
}
