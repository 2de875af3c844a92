//! Why an attempt committed no checkpoint. Pure: rows in, a sentence out.

use serde_json::Value as Json;
use trackway_formats::EventKind;
use trackway_ledger::{AttemptRow, AttemptState, EventRow};

/// Events of saves that were begun or tried and not committed.
const FAILED: [EventKind; 5] = [
    EventKind::CheckpointFailed,
    EventKind::CheckpointGivenUp,
    EventKind::CheckpointAbandoned,
    EventKind::CheckpointSkipped,
    EventKind::CheckpointDoesNotFit,
];

/// The reason, for an attempt that has ended and committed nothing. `uses_sdk`: its record has a segment of the package.
pub fn why_none(attempt: &AttemptRow, events: &[EventRow], uses_sdk: bool) -> Option<String> {
    if attempt.state != AttemptState::Sealed || attempt.last_committed_step.is_some() {
        return None;
    }
    let own = || events.iter().filter(|event| event.attempt_id == Some(attempt.attempt_id));
    let of_kind = |kind: EventKind| own().find(|event| event.kind == kind.as_str());
    let failed = own().rfind(|event| FAILED.iter().any(|kind| event.kind == kind.as_str()));
    if let Some(failed) = failed {
        let step = failed.step.map(|step| format!(" at step {step}")).unwrap_or_default();
        return Some(format!(
            "no save was committed; the last one{step}: {} {}",
            failed.kind, failed.message
        ));
    }
    if let Some(asked) = of_kind(EventKind::CheckpointAsked) {
        let cadence = asked.fields_json.as_ref().and_then(|fields| fields.get("cadence"));
        let cadence = cadence.and_then(Json::as_str).unwrap_or("unknown");
        let from = asked.step.map(|step| format!(" from step {step} on")).unwrap_or_default();
        let last = attempt.last_step.map(|step| format!(", step {step}")).unwrap_or_default();
        return Some(format!(
            "the script asked whether to save{from}, the cadence is {cadence}, and none was due before its end{last}"
        ));
    }
    Some(match uses_sdk {
        true => "the script never called `run.checkpoint(step)`, which saves one at the end of a step when it is due".into(),
        false => {
            "the script does not use the package `trackway`, and no checkpoint that it wrote itself was recognised: \
             `checkpoint.adopt` names where it writes them"
                .into()
        }
    })
}

#[cfg(test)]
mod tests {
    use trackway_core::name::{Name, Named};
    use trackway_core::{AttemptId, LaunchKind, RunId, SequentialIds, Timestamp};
    use trackway_ledger::RunRow;

    use super::*;

    /// Proves that each way to have no checkpoint has its own reason, and that others have none.
    #[test]
    fn every_way_to_have_none_is_named() {
        let ids = SequentialIds::default();
        let run = RunRow::planned(
            RunId::new(&ids),
            &Name::renamed(Named::Run, "run"),
            "",
            Json::Null,
            Timestamp::from_micros(0),
        );
        let mut attempt = AttemptRow::planned(AttemptId::new(&ids), 1, LaunchKind::Train, &run);
        let event = |kind: EventKind, fields: Option<Json>| EventRow {
            event_id: "1".into(),
            run_id: attempt.run_id,
            attempt_id: Some(attempt.attempt_id),
            at: Timestamp::from_micros(0),
            kind: kind.as_str().into(),
            step: Some(7),
            message: "why=disk full".into(),
            fields_json: fields,
            source: "sdk".into(),
        };
        let asked =
            event(EventKind::CheckpointAsked, Some(serde_json::json!({ "cadence": "every 5000 steps" })));
        let failed = event(EventKind::CheckpointFailed, None);
        assert_eq!(why_none(&attempt, &[], true), None, "it may still save");
        attempt.state = AttemptState::Sealed;
        attempt.last_step = Some(3500);
        let why = |events: &[EventRow], uses_sdk| why_none(&attempt, events, uses_sdk).unwrap();
        assert!(why(&[], false).contains("does not use the package"));
        assert!(why(&[], true).contains("never called"));
        assert_eq!(
            why(std::slice::from_ref(&asked), true),
            "the script asked whether to save from step 7 on, the cadence is every 5000 steps, and none was due before its end, step 3500"
        );
        assert!(why(&[asked, failed], true).contains("at step 7: checkpoint_failed why=disk full"));
        attempt.last_committed_step = Some(5);
        assert_eq!(why_none(&attempt, &[], true), None);
    }
}
