//! How often a script asked whether to save. Pure: events in, counts out.

use serde_json::Value as Json;
use trackway_api::runs::explain::SaveRequests;
use trackway_core::AttemptId;
use trackway_formats::EventKind;
use trackway_ledger::EventRow;

/// The counts of an attempt; none if it never asked. A process that is killed leaves those of its last power of two.
pub fn save_requests(attempt: AttemptId, events: &[EventRow]) -> Option<SaveRequests> {
    let last = |kind: EventKind| {
        events.iter().rfind(|event| event.attempt_id == Some(attempt) && kind.is(&event.kind))
    };
    let first = last(EventKind::CheckpointAsked)?;
    let counts = last(EventKind::CheckpointAsks);
    let field = |event: &EventRow, name: &str| {
        event.fields_json.as_ref()?.get(name).and_then(Json::as_str).map(str::to_owned)
    };
    let count = |name: &str| counts.and_then(|event| field(event, name)?.parse().ok());
    Some(SaveRequests {
        asked: count("asked").unwrap_or(1),
        is_complete: counts.is_some_and(|event| field(event, "final").as_deref() == Some("true")),
        from_step: first.step,
        cadence: field(first, "cadence"),
        not_due: count("not_due").unwrap_or(0),
        no_time: count("no_time").unwrap_or(0),
        busy: count("busy").unwrap_or(0),
    })
}
