//! Why an attempt committed no checkpoint. Pure: rows in, a sentence out.

use trackway_formats::EventKind;
use trackway_formats::runfile::CheckpointSection;
use trackway_ledger::{AttemptRow, AttemptState, EventRow};

use super::save_requests::save_requests;

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
    let requests = save_requests(attempt.attempt_id, events);
    let is_own = |event: &&EventRow| event.attempt_id == Some(attempt.attempt_id);
    let is_failure = |event: &&EventRow| FAILED.iter().any(|kind| kind.is(&event.kind));
    if let Some(failed) = events.iter().filter(is_own).rfind(is_failure) {
        let step = failed.step.map(|step| format!(" at step {step}")).unwrap_or_default();
        let requests = requests.map(|requests| format!("; {}", requests.sentence())).unwrap_or_default();
        return Some(format!(
            "no save was committed; the last one{step}: {} {}{requests}",
            failed.kind, failed.message
        ));
    }
    if let Some(requests) = requests {
        let from =
            requests.from_step.map(|step| format!("; it asked from step {step} on")).unwrap_or_default();
        let last = attempt.last_step.map(|step| format!(", step {step}")).unwrap_or_default();
        return Some(format!(
            "{}{from}, and no checkpoint was due before its end{last}",
            requests.sentence()
        ));
    }
    // The run file names where they are: only that nothing was there is left to say.
    let patterns = CheckpointSection::adopted(&attempt.config_json);
    if let Some(patterns) = patterns.filter(|patterns| !patterns.is_empty()) {
        let named: Vec<String> = patterns.iter().map(|pattern| format!("`{pattern}`")).collect();
        return Some(format!(
            "nothing that is a whole checkpoint was at {} before its end",
            named.join(", ")
        ));
    }
    Some(match uses_sdk {
        true => "the script never called `run.checkpoint(step)`, which saves one at the end of a step when it is due, and no checkpoint \
                 that it wrote itself was recognised: `checkpoint.adopt` names where it writes them"
            .into(),
        false => {
            "the script does not use the package `trackway`, and no checkpoint that it wrote itself was recognised: \
             `checkpoint.adopt` names where it writes them"
                .into()
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;
    use trackway_core::name::{Name, NameKind};
    use trackway_core::{AttemptId, LaunchKind, RunId, SequentialIds, Timestamp};
    use trackway_ledger::RunRow;

    use super::*;

    /// Proves that each way to have no checkpoint has its own reason, that a script that asked in vain is shown how often, and that
    /// others have none.
    #[test]
    fn every_way_to_have_none_is_named() {
        let ids = SequentialIds::default();
        let run = RunRow::planned(
            RunId::new(&ids),
            &Name::renamed(NameKind::Run, "run"),
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
        let counts = |asked: &str, is_final: &str| {
            let fields = serde_json::json!({ "asked": asked, "not_due": asked, "no_time": "0", "busy": "0", "final": is_final });
            event(EventKind::CheckpointAsks, Some(fields))
        };
        let (soon, all) = (counts("32", "false"), counts("60", "true"));
        let failed = event(EventKind::CheckpointFailed, None);
        assert_eq!(why_none(&attempt, &[], true), None, "it may still save");
        attempt.state = AttemptState::Sealed;
        attempt.last_step = Some(3500);
        let why = |events: &[EventRow], uses_sdk| why_none(&attempt, events, uses_sdk).unwrap();
        assert!(why(&[], false).contains("does not use the package"));
        assert!(why(&[], true).contains("never called"));
        let named = AttemptRow {
            config_json: serde_json::json!({ "checkpoint": { "adopt": ["ckpt/last.pt"] } }),
            ..attempt.clone()
        };
        let why_named = why_none(&named, &[], false).unwrap();
        assert_eq!(why_named, "nothing that is a whole checkpoint was at `ckpt/last.pt` before its end");
        let end = "it asked from step 7 on, and no checkpoint was due before its end, step 3500";
        let cadence = "whether to save (every 5000 steps)";
        for (events, times) in [
            (vec![asked.clone()], format!("at least once {cadence}")),
            (
                vec![asked.clone(), soon.clone()],
                format!("at least 32 times {cadence}: 32 times none was due"),
            ),
            (vec![asked.clone(), soon, all.clone()], format!("60 times {cadence}: 60 times none was due")),
        ] {
            assert_eq!(why(&events, true), format!("the script asked {times}; {end}"));
        }
        let lost = why(&[asked.clone(), all, failed.clone()], true);
        assert!(
            lost.ends_with(&format!("the script asked 60 times {cadence}: 60 times none was due")),
            "{lost}"
        );
        assert!(why(&[asked, failed], true).contains("at step 7: checkpoint_failed why=disk full"));
        attempt.last_committed_step = Some(5);
        assert_eq!(why_none(&attempt, &[], true), None);
    }
}
