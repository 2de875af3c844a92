//! The attempts of a run beside each other: how each ended, what it lost, and what it had that the one before it did not.

use trackway_api::explain::{AttemptSummary, Change, Diff};
use trackway_core::{Step, with_fields_of};
use trackway_engine::rows::rung_of;
use trackway_ledger::AttemptRow;

use super::diff::changes;
use super::termination::termination;

pub(super) fn attempt_line(attempt: &AttemptRow, all: &[AttemptRow]) -> AttemptSummary {
    let termination = termination(attempt);
    let follower = all.iter().find(|other| other.parent_attempt_id == Some(attempt.attempt_id));
    with_fields_of!(
        AttemptSummary,
        &attempt,
        [
            attempt_id, attempt_number, rung, started_at, ended_at, termination_reason, resumed_from_step,
            last_step, last_committed_step, wall_seconds, recovery_seconds, new_committed_steps, gpu_seconds,
            gpu_hours_per_committed_step, cost_usd,
        ],
        cause: termination.as_ref().map(|termination| termination.cause.clone()),
        runbook: termination.map(|termination| termination.runbook),
        lost_steps: lost_steps(attempt, follower),
        changes: parent_of(attempt, all).map(|parent| changed(parent, attempt)).unwrap_or_default(),
        rule: attempt.termination_rule.clone(),
    )
}

/// The attempt that an attempt follows.
pub(super) fn parent_of<'a>(attempt: &AttemptRow, all: &'a [AttemptRow]) -> Option<&'a AttemptRow> {
    let parent = attempt.parent_attempt_id?;
    all.iter().find(|candidate| candidate.attempt_id == parent)
}

/// Steps of an attempt that did not succeed which do not count: those that its follower trained again; without one, those after its
/// last committed step. `None` where no checkpoint is known: what a script saves by itself is not seen.
fn lost_steps(attempt: &AttemptRow, follower: Option<&AttemptRow>) -> Option<Step> {
    let ended_badly = attempt.termination_reason.is_some_and(|reason| !reason.is_success());
    let last = attempt.last_step.filter(|_| ended_badly)?;
    let continued = follower.filter(|follower| follower.rung == attempt.rung).and_then(|follower| {
        follower.first_step.map(|first| first.saturating_sub(1)).or(follower.resumed_from_step)
    });
    let kept = continued.or(attempt.last_committed_step).or(attempt.resumed_from_step)?;
    Some(last.saturating_sub(kept))
}

/// What an attempt had that its parent did not, against its parent.
pub(super) fn parent_diff(parent: &AttemptRow, attempt: &AttemptRow) -> Diff {
    Diff {
        against: parent.attempt_id.to_string(),
        label: format!("attempt {}", parent.attempt_number),
        changes: changed(parent, attempt),
    }
}

/// What differs in the plan, the rung, the data, the code, the packages and the place.
fn changed(parent: &AttemptRow, attempt: &AttemptRow) -> Vec<Change> {
    let mut found = changes(&parent.config_json, &attempt.config_json);
    let texts = |row: &AttemptRow| {
        [
            ("rung", Some(rung_of(row).to_string())),
            ("data", row.data_sha256.clone()),
            ("environment lock", row.environment_lock_sha256.clone()),
            ("git commit", row.git_commit.clone()),
            ("git diff", row.git_diff_blake3.clone()),
            ("script", row.script_blake3.clone()),
            ("hosts", row.hosts.clone()),
        ]
    };
    for ((key, before), (_, after)) in texts(parent).into_iter().zip(texts(attempt)) {
        if before != after {
            found.push(Change { key: key.into(), before, after });
        }
    }
    found
}
