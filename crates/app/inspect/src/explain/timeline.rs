use trackway_api::explain::TimelineEvent;
use trackway_engine::save_reason::save_reason;
use trackway_formats::EventKind;
use trackway_ledger::{AttemptRow, EventRow, RetryRow};

/// Events that are part of other lines of the page.
const SHOWN_ELSEWHERE: [EventKind; 8] = [
    EventKind::CheckpointOpened,
    EventKind::CheckpointReason,
    EventKind::CheckpointAsks,
    EventKind::DataCursor,
    EventKind::DataOpened,
    EventKind::RungCut,
    EventKind::SeedTaken,
    EventKind::DiagnosisFacts,
];

/// What happened, oldest first: launches and ends of attempts, events, decisions.
pub fn timeline(attempts: &[AttemptRow], events: &[EventRow], retries: &[RetryRow]) -> Vec<TimelineEvent> {
    let number_of =
        |id| attempts.iter().find(|attempt| Some(attempt.attempt_id) == id).map(|it| it.attempt_number);
    let mut moments: Vec<TimelineEvent> = attempts.iter().flat_map(of_attempt).collect();
    let shown = events.iter().filter(|event| !SHOWN_ELSEWHERE.iter().any(|kind| kind.is(&event.kind)));
    moments.extend(shown.map(|event| TimelineEvent {
        at: event.at,
        attempt_number: number_of(event.attempt_id),
        kind: event.kind.clone(),
        step: event.step,
        text: event_text(event) + &reason_text(event, events),
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

fn of_attempt(attempt: &AttemptRow) -> Vec<TimelineEvent> {
    let moment = |at, kind: &str, step, text| TimelineEvent {
        at,
        attempt_number: Some(attempt.attempt_number),
        kind: kind.into(),
        step,
        text,
    };
    let mut moments = Vec::new();
    if let Some(at) = attempt.started_at {
        let host = attempt.hosts.as_deref().unwrap_or("an unknown host");
        let from = attempt.resumed_from_step.map(|step| format!(", from step {step}")).unwrap_or_default();
        moments.push(moment(at, "launched", attempt.resumed_from_step, format!("launched on {host}{from}")));
    }
    if let Some(at) = attempt.ended_at {
        let status = match (attempt.exit_code, attempt.signal) {
            (Some(code), _) => format!("with code {code}"),
            (None, Some(signal)) => format!("by signal {signal}"),
            (None, None) => "in an unknown way".into(),
        };
        let reason = attempt.termination_reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        moments.push(moment(at, "ended", attempt.last_step, format!("ended {status}{reason}")));
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
