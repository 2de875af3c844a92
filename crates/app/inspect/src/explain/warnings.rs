//! What a person is warned of whatever the end was. Pure: rows in, sentences out.

use trackway_core::AttemptId;
use trackway_formats::EventKind;
use trackway_ledger::EventRow;

/// What a script read instead of the checkpoint that it was to continue from, as the event says it.
const READ_ELSEWHERE: [&str; 4] = ["other", "unnamed", "none", "began_again"];

/// That the attempt did not continue from what its run had committed.
pub(super) fn warnings(attempt_id: AttemptId, events: &[EventRow]) -> Vec<String> {
    let is_own = |event: &&EventRow| {
        event.attempt_id == Some(attempt_id) && EventKind::CheckpointOtherResume.is(&event.kind)
    };
    let is_elsewhere =
        |event: &&EventRow| event.field("read").is_some_and(|read| READ_ELSEWHERE.contains(&read));
    events.iter().filter(is_own).filter(is_elsewhere).map(|event| event.message.clone()).collect()
}

#[cfg(test)]
mod tests {
    use trackway_core::{RunId, SequentialIds, Timestamp};

    use super::*;

    /// Proves that a resume from something else is warned of, of this attempt alone, and one of which nothing is known is not.
    #[test]
    fn a_resume_from_elsewhere_is_warned_of() {
        let ids = SequentialIds::default();
        let (run_id, attempt_id) = (RunId::new(&ids), AttemptId::new(&ids));
        let event = |attempt_id, read: &str| EventRow {
            event_id: "1".into(),
            run_id,
            attempt_id: Some(attempt_id),
            at: Timestamp::from_micros(0),
            kind: EventKind::CheckpointOtherResume.as_str().into(),
            step: None,
            message: format!("it read {read}"),
            fields_json: Some(serde_json::json!({ "read": read })),
            source: "engine".into(),
        };
        let of = |events: &[EventRow]| warnings(attempt_id, events);
        assert_eq!(of(&[event(attempt_id, "unknown"), event(attempt_id, "other")]), ["it read other"]);
        assert!(of(&[event(AttemptId::new(&ids), "other")]).is_empty());
    }
}
