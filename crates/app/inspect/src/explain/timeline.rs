use trackway_api::runs::explain::TimelineEvent;
use trackway_core::text::counted;
use trackway_core::{AttemptId, Step, Timestamp};
use trackway_engine::save_reason::save_reason;
use trackway_formats::EventKind;
use trackway_ledger::{AttemptRow, EventRow, RetryRow};

/// Events that are part of other lines of the page.
const SHOWN_ELSEWHERE: [EventKind; 11] = [
    EventKind::CheckpointFallback,
    EventKind::CheckpointOpened,
    EventKind::CheckpointReason,
    EventKind::CheckpointAsks,
    EventKind::CodeOpened,
    EventKind::DataCursor,
    EventKind::DataOpened,
    EventKind::OutputLeftOut,
    EventKind::RungCut,
    EventKind::SeedTaken,
    EventKind::DiagnosisFacts,
];

/// What happened, oldest first: launches and ends of attempts, events, decisions. `steps`: what the steps are, such as epochs.
pub fn timeline(
    attempts: &[AttemptRow],
    events: &[EventRow],
    retries: &[RetryRow],
    steps: Option<&str>,
) -> Vec<TimelineEvent> {
    let number_of =
        |id| attempts.iter().find(|attempt| Some(attempt.attempt_id) == id).map(|it| it.attempt_number);
    let mut moments: Vec<TimelineEvent> = attempts.iter().flat_map(|it| of_attempt(it, steps)).collect();
    let shown = events.iter().filter(|event| !SHOWN_ELSEWHERE.iter().any(|kind| kind.is(&event.kind)));
    moments.extend(shown.map(|event| TimelineEvent {
        at: event.at,
        attempt_number: number_of(event.attempt_id),
        kind: event.kind.clone(),
        step: event.step,
        text: event_text(event) + &reason_text(event, events),
    }));
    moments.extend(skipped_checkpoints(events).into_iter().map(|skipped| TimelineEvent {
        at: skipped.at,
        attempt_number: number_of(skipped.attempt_id),
        kind: EventKind::CheckpointFallback.as_str().into(),
        step: skipped.steps.map(|(_, last)| last),
        text: skipped.text(),
    }));
    moments.extend(retries.iter().map(|retry| TimelineEvent {
        at: retry.at,
        attempt_number: number_of(Some(retry.attempt_id)),
        kind: "decision".into(),
        step: None,
        text: format!("{}: {} (rule `{}`)", retry.decision, retry.why, retry.rule),
    }));
    moments.sort_by_key(|moment| moment.at);
    moments
}

/// Checkpoints that a resume skipped for one reason, such as a rollback that left them.
struct SkippedCheckpoints<'e> {
    at: Timestamp,
    attempt_id: Option<AttemptId>,
    why: &'e str,
    count: u64,
    /// The first and the last of their steps, as far as these are known.
    steps: Option<(Step, Step)>,
}

impl SkippedCheckpoints<'_> {
    fn text(&self) -> String {
        let steps = match self.steps {
            Some((first, last)) if first == last => format!(" of step {first}"),
            Some((first, last)) => format!(" of steps {first} to {last}"),
            None => String::new(),
        };
        let verb = if self.count == 1 { "was" } else { "were" };
        format!("{}{steps} {verb} not resumed from: {}", counted(self.count, "checkpoint"), self.why)
    }
}

/// One for each attempt and reason.
fn skipped_checkpoints(events: &[EventRow]) -> Vec<SkippedCheckpoints<'_>> {
    let mut skipped: Vec<SkippedCheckpoints<'_>> = Vec::new();
    for event in events.iter().filter(|event| EventKind::CheckpointFallback.is(&event.kind)) {
        let why = event.fields_json.as_ref().and_then(|fields| fields.get("why")?.as_str());
        let why = why.unwrap_or(&event.message);
        let known = skipped.iter_mut().find(|it| it.attempt_id == event.attempt_id && it.why == why);
        let step = event.step.map(|step| (step, step));
        match known {
            Some(known) => {
                known.count += 1;
                let both = known.steps.zip(step).map(|(known, new)| (known.0.min(new.0), known.1.max(new.1)));
                known.steps = both.or(known.steps).or(step);
            }
            None => {
                skipped.push(SkippedCheckpoints {
                    at: event.at,
                    attempt_id: event.attempt_id,
                    why,
                    count: 1,
                    steps: step,
                });
            }
        }
    }
    skipped
}

fn of_attempt(attempt: &AttemptRow, steps: Option<&str>) -> Vec<TimelineEvent> {
    let moment = |at, kind: &str, step, text| TimelineEvent {
        at,
        attempt_number: Some(attempt.attempt_number),
        kind: kind.into(),
        step,
        text,
    };
    let mut moments = Vec::new();
    // An engine that starts it at once has no queue to speak of.
    if let Some(at) = attempt.submitted_at.filter(|_| attempt.queued_seconds != Some(0.0)) {
        let queue = attempt.queue.as_deref().map(|queue| format!(", {queue}")).unwrap_or_default();
        moments.push(moment(at, "queued", None, format!("went into the queue of its engine{queue}")));
    }
    if let Some(at) = attempt.started_at {
        let host = attempt.hosts.as_deref().unwrap_or("an unknown host");
        let from = attempt.resumed_from_step.map(|step| format!(", from step {step}")).unwrap_or_default();
        let are = attempt.last_step.and(steps).map(|are| format!("; {are}")).unwrap_or_default();
        let text = format!("launched on {host}{from}{are}");
        moments.push(moment(at, "launched", attempt.resumed_from_step, text));
    }
    if let Some(at) = attempt.ended_at {
        let status = match (attempt.exit_code, attempt.signal) {
            (Some(code), _) => format!(" with code {code}"),
            (None, Some(signal)) => format!(" by signal {signal}"),
            // An imported run has no status, and its tool says how it ended.
            (None, None) if attempt.termination_reason.is_some() => String::new(),
            (None, None) => " in an unknown way".into(),
        };
        let reason = attempt.termination_reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        moments.push(moment(at, "ended", attempt.last_step, format!("ended{status}{reason}")));
    }
    moments
}

fn reason_text(event: &EventRow, events: &[EventRow]) -> String {
    if !EventKind::CheckpointCommitted.is(&event.kind) {
        return String::new();
    }
    let reason = save_reason(events, event.attempt_id, event.step);
    reason.map(|reason| format!(" ({reason})")).unwrap_or_default()
}

/// What is shown of a checkpoint that the script wrote itself; none for every other event.
fn adopted_text(event: &EventRow) -> Option<String> {
    let field = |name: &str| event.fields_json.as_ref()?.get(name)?.as_str();
    if EventKind::CheckpointAdopted.is(&event.kind) {
        let step = event.step.map(|step| format!(" of step {step}")).unwrap_or_default();
        return Some(format!("checkpoint{step} committed from `{}` ({})", field("path")?, field("layout")?));
    }
    if EventKind::CheckpointCandidate.is(&event.kind) {
        return Some(format!("`{}` was neither committed nor moved: {}", field("path")?, field("why")?));
    }
    let is_refused = EventKind::CheckpointNotAdopted.is(&event.kind);
    is_refused.then(|| Some(format!("`{}` was not committed: {}", field("path")?, field("why")?))).flatten()
}

fn event_text(event: &EventRow) -> String {
    if let Some(text) = adopted_text(event) {
        return text;
    }
    let step = event.step.map(|step| format!(" at step {step}")).unwrap_or_default();
    if event.message.is_empty() {
        format!("{}{step}", event.kind)
    } else {
        format!("{}{step}: {}", event.kind, event.message)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Proves that the checkpoints which a rollback left are one line for each attempt with their number and steps, and that one
    /// which was skipped for another reason has its line beside it.
    #[test]
    fn skipped_checkpoints_of_one_reason_are_one_line() {
        let event = |number: u32, attempt: u32, step: Option<Step>, why: &str| EventRow {
            event_id: format!("event {number}"),
            run_id: "run_00000000000000000000000001".parse().unwrap(),
            attempt_id: Some(format!("att_0000000000000000000000000{attempt}").parse().unwrap()),
            at: Timestamp::from_micros(i64::from(number)),
            kind: EventKind::CheckpointFallback.as_str().into(),
            step,
            message: format!("why={why}"),
            fields_json: Some(json!({ "why": why })),
            source: "sdk".into(),
        };
        let back = "marked suspect earlier: rolled back to step 40";
        let events = [
            event(1, 1, Some(160), back),
            event(2, 1, Some(120), "`w.bin` is missing"),
            event(3, 1, Some(60), back),
            event(4, 1, Some(100), back),
            event(5, 2, Some(160), back),
            event(6, 2, None, "log entry 7 cannot be used"),
        ];
        let lines: Vec<(Option<Step>, String)> =
            timeline(&[], &events, &[], None).into_iter().map(|it| (it.step, it.text)).collect();
        assert_eq!(
            lines,
            [
                (Some(160), format!("3 checkpoints of steps 60 to 160 were not resumed from: {back}")),
                (Some(120), "1 checkpoint of step 120 was not resumed from: `w.bin` is missing".to_owned()),
                (Some(160), format!("1 checkpoint of step 160 was not resumed from: {back}")),
                (None, "1 checkpoint was not resumed from: log entry 7 cannot be used".to_owned()),
            ]
        );
    }
}
