//! Why a checkpoint was made, from the flight record.

use trackway_core::{AttemptId, Step};
use trackway_formats::EventKind;
use trackway_ledger::EventRow;

/// Why a checkpoint was made, beside the event that it was: `cadence`, `asked: …`.
pub fn save_reason(events: &[EventRow], attempt_id: Option<AttemptId>, step: Option<Step>) -> Option<String> {
    let event_found = events.iter().find(|event| {
        EventKind::CheckpointReason.is(&event.kind) && event.attempt_id == attempt_id && event.step == step
    })?;
    Some(in_words(event_found.field("reason")?, event_found.field("why")))
}

/// `cadence`, or `asked: …` with the requester's description.
pub(crate) fn in_words(reason: &str, why: Option<&str>) -> String {
    why.map_or_else(|| reason.into(), |why| format!("{reason}: {why}"))
}
