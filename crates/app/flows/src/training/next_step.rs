//! What a run without a run file showed, for the step that comes after it.

use trackway_api::runs::{NextStep, RunOutcome};
use trackway_core::{AttemptId, CheckpointState, LaunchKind};
use trackway_engine::Context;
use trackway_engine::checkpoints::view;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::run::seal::not_kept_of;
use trackway_formats::EventKind;
use trackway_formats::record::{is_internal_metric, is_machine_metric};
use trackway_launch::shim::steps_are;
use trackway_ledger::{EventRow, RunRow, RunState};
use trackway_rules::{RunShown, next_step};

use crate::training::init::{Draft, draft, evidence_of};

/// The next step after a run that has ended; none where it has a run file, was not launched, or could not be written as a run file.
pub(crate) fn next_of(context: &Context, outcome: &RunOutcome) -> Result<Option<NextStep>, AppError> {
    let run = context.run_by_id(outcome.run_id)?;
    let is_bare = run.run_file_path.is_none() && run.kind == LaunchKind::Train;
    if !is_bare || !run.state.is_final() || outcome.attempts.is_empty() {
        return Ok(None);
    }
    let evidence = match evidence_of(context, &run, None) {
        Err(error) if error.kind == ErrorKind::Usage => return Ok(None),
        evidence => evidence?,
    };
    let shown = shown_by(context, &run, outcome, draft(&evidence))?;
    let mut lines = next_step(&shown).to_vec();
    if let Some(step) = shown.resume_step {
        let last = outcome.attempts.iter().filter_map(|attempt| attempt.last_step).max();
        let are = steps_are(&context.home.layout.run(run.run_id), last.max(Some(step)));
        lines.iter_mut().take(1).zip(are).for_each(|(line, are)| *line = format!("{line}; {are}"));
    }
    let RunShown { metrics, checkpoint_count, resume_step, data, .. } = shown;
    let adopt = evidence.recorded.map(|recorded| recorded.adopt).unwrap_or_default();
    Ok(Some(NextStep { metrics, checkpoint_count, resume_step, adopt, data, lines }))
}

fn shown_by(
    context: &Context,
    run: &RunRow,
    outcome: &RunOutcome,
    draft: Draft,
) -> Result<RunShown, AppError> {
    let mut metrics = Vec::new();
    if let Some(last) = outcome.attempts.last() {
        let summaries = context.ledger_read(|ledger| ledger.metric_summaries_of(last.attempt_id))?;
        metrics.extend(summaries.into_iter().map(|summary| summary.name));
        metrics.retain(|name| !is_machine_metric(name) && !is_internal_metric(name));
    }
    let checkpoints = context.ledger_read(|ledger| ledger.checkpoints_of_run(run.run_id))?;
    let is_kept = |state| matches!(state, CheckpointState::Committed | CheckpointState::Superseded);
    let events = context.ledger_read(|ledger| ledger.events_of_run(run.run_id))?;
    Ok(RunShown {
        is_completed: run.state == RunState::Completed,
        metrics,
        not_kept: outcome.attempts.last().and_then(|last| {
            let of_last = events.iter().filter(|event| event.attempt_id == Some(last.attempt_id));
            not_kept_of(of_last)
        }),
        checkpoint_count: checkpoints.iter().filter(|row| is_kept(row.state)).count() as u64,
        resume_step: run.last_committed_step,
        unsafe_step: checkpoints
            .iter()
            .filter(|row| row.state == CheckpointState::Unsafe)
            .map(|row| row.step)
            .max(),
        starts_over: starts_over(context, run),
        reads_none: outcome.attempts.last().is_some_and(|last| read_none(&events, last.attempt_id)),
        resume_arguments: draft.resume_arguments,
        not_committed: events.iter().rev().find_map(not_committed),
        data: draft.data.into_iter().map(|set| set.path).collect(),
    })
}

/// What the checkpoint that a retry would continue from lacks. Nothing where it cannot be read: then nothing is known of it.
fn starts_over(context: &Context, run: &RunRow) -> Vec<String> {
    let attempts = context.attempts_of_kind(run.run_id, run.kind).unwrap_or_default();
    let Some(last) = attempts.last() else { return Vec::new() };
    let Ok(view) = view(&context.home.layout.checkpoint_root(run.run_id, run.kind, &last.rung)) else {
        return Vec::new();
    };
    let newest = view.list().into_iter().rfind(|info| {
        info.state.is_whole() && Some(info.step) == run.last_committed_step && info.manifest_sha256.is_some()
    });
    let manifest = newest.and_then(|info| view.manifest(info.number).ok());
    let missing = manifest.map(|manifest| manifest.missing()).unwrap_or_default();
    missing.into_iter().map(|kind| kind.as_str().replace('_', " ")).collect()
}

/// Whether the attempt was to continue from a checkpoint, and its script read none.
fn read_none(events: &[EventRow], attempt_id: AttemptId) -> bool {
    let of_attempt = events.iter().filter(|event| event.attempt_id == Some(attempt_id));
    let resumes = of_attempt.filter(|event| EventKind::CheckpointOtherResume.is(&event.kind));
    let mut fields = resumes.filter_map(|event| event.fields_json.as_ref());
    fields.any(|fields| fields["read"] == "none" && !fields["planned_step"].is_null())
}

/// The path that an event says was not committed, and why.
fn not_committed(event: &EventRow) -> Option<(String, String)> {
    let fields = event.fields_json.as_ref().filter(|_| EventKind::CheckpointNotAdopted.is(&event.kind))?;
    let text = |name: &str| Some(fields.get(name)?.as_str()?.to_owned());
    Some((text("path")?, text("why")?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trackway_core::{RunId, Timestamp};

    use super::*;

    /// Proves that a script is said to have read no checkpoint only where one was planned for this attempt.
    #[test]
    fn only_a_planned_checkpoint_can_be_left_unread() {
        let run_id: RunId = "run_00000000000000000000000001".parse().unwrap();
        let [mine, other]: [AttemptId; 2] =
            ["att_00000000000000000000000001", "att_00000000000000000000000002"]
                .map(|id| id.parse().unwrap());
        let at = Timestamp::from_micros(0);
        let is_unread = |attempt_id: AttemptId, fields: serde_json::Value| {
            let event = EventRow {
                attempt_id: Some(attempt_id),
                fields_json: Some(fields),
                ..EventRow::of_run(run_id, EventKind::CheckpointOtherResume, at, String::new())
            };
            read_none(&[event], mine)
        };
        assert!(is_unread(mine, json!({ "read": "none", "planned_step": 10 })));
        assert!(!is_unread(other, json!({ "read": "none", "planned_step": 10 })));
        assert!(!is_unread(mine, json!({ "read": "none", "planned_step": null })));
        assert!(!is_unread(mine, json!({ "read": "other", "planned_step": 10 })));
    }
}
