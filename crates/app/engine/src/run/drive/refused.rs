//! A launch that is refused: what becomes of the run, and what is written down about it.

use serde_json::json;
use trackway_core::{Clock as _, RunId, Timestamp};
use trackway_formats::EventKind;
use trackway_ledger::{AttemptRow, EventRow, RunRow, RunState};

use crate::Context;
use crate::error::AppError;

/// How the error of a refused launch begins. Its event says so by its kind, and has the reason alone.
const NOT_LAUNCHED: &str = "not launched: ";

/// The reason in the text of a refusal: of an error, or of an event of an earlier version, which has the whole text.
#[must_use]
pub fn reason_alone(text: &str) -> &str {
    text.strip_prefix(NOT_LAUNCHED).unwrap_or(text)
}

/// A refused launch needs a person: the run does not stay one that runs, and its history has the reason. Returns the
/// reason, or why that cannot be written down.
pub(super) fn not_launched(
    context: &Context,
    run_id: RunId,
    previous: Option<&AttemptRow>,
    error: AppError,
) -> AppError {
    // Whether the attempt is written down is not known then: the run stays as it is.
    let Ok(last) = context.last_attempt_of(run_id) else { return error };
    let is_written_down = last.map(|last| last.attempt_id) != previous.map(|previous| previous.attempt_id);
    // An attempt that is written down may have begun: the next `trackway resume` finds out.
    if is_written_down { error } else { refuse_first(context, run_id, error) }
}

/// The launcher does not give what an attempt requests. A run that is resumed stays what it was, and a later resume
/// launches it; otherwise it is as any launch that is refused. `before`: the run where a person wants the launch.
pub(super) fn not_given(
    context: &Context,
    run_id: RunId,
    (previous, before): (Option<&AttemptRow>, Option<&RunRow>),
    error: AppError,
) -> AppError {
    match before.filter(|run| is_resumed(run)) {
        Some(before) => refuse_resume(context, before, error),
        None => not_launched(context, run_id, previous, error),
    }
}

/// Whether a supervisor continues a run. One that was only planned begins: its refusal is its end. `before`: the run
/// before that supervisor.
#[must_use]
pub fn is_resumed(before: &RunRow) -> bool {
    before.state != RunState::Planned
}

/// Refuses a resume: the run stays what it was, with the refusal in its history, and a later resume launches it.
/// Returns the reason, or why that cannot be written down.
#[must_use]
pub fn refuse_resume(context: &Context, before: &RunRow, error: AppError) -> AppError {
    if !error.kind.is_passing() {
        note_refused(context, before.run_id, &error);
    }
    context.put_back(before).err().unwrap_or(error)
}

/// Refuses the first launch of a run: it has failed, with the refusal in its history. Returns the reason, or why that
/// cannot be written down. What passes refuses nothing: the run stays as it is, and the next `trackway resume` tries again.
#[must_use]
pub fn refuse_first(context: &Context, run_id: RunId, error: AppError) -> AppError {
    if error.kind.is_passing() {
        return error;
    }
    note_refused(context, run_id, &error);
    context.fail_run(run_id, error)
}

/// Writes down that a launch was refused, and what a person does about it: once, however often that is repeated.
fn note_refused(context: &Context, run_id: RunId, error: &AppError) {
    let (at, kind) = (context.clock.now(), EventKind::LaunchRefused);
    let message = reason_alone(&error.to_string()).to_owned();
    // What cannot be looked at is not known to be written down.
    if is_noted(context, run_id, &message).unwrap_or(false) {
        return;
    }
    let event = EventRow {
        // It may be refused more than once.
        event_id: format!("{run_id}:{kind}:{}", at.as_micros()),
        fields_json: Some(json!({ "next": error.hints.join("; ") })),
        ..EventRow::of_run(run_id, kind, at, message)
    };
    // The state of the run counts more than its history.
    if context.ledger_write_now(|ledger| ledger.append_event(&event)).is_ok() {
        context.keep_event(&event);
    }
}

/// Whether the history of a run ends with a refusal of this text.
fn is_noted(context: &Context, run_id: RunId, message: &str) -> Result<bool, AppError> {
    let events = context.ledger_read(|ledger| ledger.events_of_run(run_id))?;
    let last = context.last_attempt_of(run_id)?;
    Ok(ends_with_refusal(&events, last.and_then(|last| last.ended_at), message))
}

/// The same of these events. `ended_at`: the end of the last attempt; after it, and after the run was stopped in its queue,
/// a refusal is another one.
fn ends_with_refusal(events: &[EventRow], ended_at: Option<Timestamp>, message: &str) -> bool {
    let kinds = [EventKind::LaunchRefused, EventKind::QueueLeft];
    let ends = events.iter().filter(|event| kinds.iter().any(|kind| kind.is(&event.kind)));
    ends.max_by_key(|event| event.at).is_some_and(|last| {
        let is_after = ended_at.is_none_or(|ended_at| last.at >= ended_at);
        is_after && EventKind::LaunchRefused.is(&last.kind) && reason_alone(&last.message) == message
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::testing::{SETTLES, World};

    /// Proves that a fault which passes refuses nothing, and that after any other one the run has failed, with the reason
    /// alone in its history.
    #[test]
    fn what_passes_refuses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        let context = world.context();
        for (kind, state, reasons) in [
            (ErrorKind::Unavailable, RunState::Planned, vec![]),
            (ErrorKind::Locked, RunState::Planned, vec![]),
            (ErrorKind::Blocked, RunState::Failed, vec!["no data"]),
        ] {
            let run_id = world.begun(&context, "true", "").run.run_id;
            let error = refuse_first(&context, run_id, AppError::new(kind, "not launched: no data"));
            assert_eq!(error.kind, kind);
            let events = context.ledger_read(|ledger| ledger.events_of_run(run_id)).unwrap();
            let found: Vec<&str> = events.iter().map(|event| event.message.as_str()).collect();
            assert_eq!((context.run_by_id(run_id).unwrap().state, found), (state, reasons), "{kind:?}");
        }
    }

    /// Proves that a refusal is written down already where the history ends with the same text, and not where it has
    /// another text, or where an attempt or a stop in the queue came after it; and that one of an earlier version is known too.
    #[test]
    fn a_repeated_refusal_is_known() {
        let run_id: RunId = "run_01jz0000000000000000000001".parse().unwrap();
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        let event = |kind, seconds, text: &str| EventRow::of_run(run_id, kind, at(seconds), text.into());
        let refused = event(EventKind::LaunchRefused, 10, "no data");
        let noted = |events: &[EventRow], ended_at: Option<i64>, text| {
            ends_with_refusal(events, ended_at.map(at), text)
        };
        assert!(!noted(&[], None, "no data"));
        let one = [refused.clone()];
        assert!(noted(&one, None, "no data") && noted(&one, Some(5), "no data"));
        assert!(!noted(&one, None, "no memory") && !noted(&one, Some(20), "no data"));
        let stopped = [event(EventKind::QueueLeft, 20, "stopped"), refused.clone()];
        assert!(!noted(&stopped, None, "no data"));
        assert!(noted(&[event(EventKind::LaunchRefused, 10, "not launched: no data")], None, "no data"));
        let two = [refused, event(EventKind::LaunchRefused, 20, "no memory")];
        assert!(noted(&two, None, "no memory") && !noted(&two, None, "no data"));
    }
}
