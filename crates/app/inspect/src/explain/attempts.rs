//! The attempts of a run beside each other: how each ended, what it lost, and what it had that the one before it did not.

use std::collections::BTreeMap;

use trackway_api::checkpoints::CheckpointStanding;
use trackway_api::runs::explain::{AttemptSummary, Diff};
use trackway_core::{AttemptId, LaunchKind, Step, with_fields_of};
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_formats::EventKind;
use trackway_ledger::{AttemptRow, EventRow, RunRow};

use super::termination::termination;
use crate::inputs::{Inputs, compared};

pub(super) fn attempt_line(
    attempt: &AttemptRow,
    all: &[AttemptRow],
    diffs: &BTreeMap<AttemptId, Diff>,
    (standing, events): (&CheckpointStanding, &[EventRow]),
) -> AttemptSummary {
    let diff = diffs.get(&attempt.attempt_id);
    let termination = termination(attempt);
    let follower = all.iter().find(|other| other.parent_attempt_id == Some(attempt.attempt_id));
    let begins = all.iter().find(|first| first.rung == attempt.rung).and_then(|first| first.first_step);
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
        lost_steps: lost_steps(attempt, follower, begins, standing)
            .filter(|_| !follower.is_some_and(|follower| may_have_continued(follower, begins, events))),
        changes: diff.map(|diff| diff.changes.clone()).unwrap_or_default(),
        unknown: diff.map(|diff| diff.unknown.clone()).unwrap_or_default(),
        rule: attempt.termination_rule.clone(),
    )
}

/// The attempt that an attempt follows.
fn parent_of<'a>(attempt: &AttemptRow, all: &'a [AttemptRow]) -> Option<&'a AttemptRow> {
    let parent = attempt.parent_attempt_id?;
    all.iter().find(|candidate| candidate.attempt_id == parent)
}

/// Steps of a training attempt that did not succeed which do not count: those that its follower trained again; without
/// one, those after its last committed step that is safe, and where it committed none all that it made, since a resume
/// has nothing else to continue from. `begins`: the first step that the first attempt of the rung recorded, which is
/// where a script begins that continues from nothing.
fn lost_steps(
    attempt: &AttemptRow,
    follower: Option<&AttemptRow>,
    begins: Option<Step>,
    standing: &CheckpointStanding,
) -> Option<Step> {
    let ended_badly = attempt.termination_reason.is_some_and(|reason| !reason.is_success());
    let last = attempt.last_step.filter(|_| ended_badly && attempt.kind == LaunchKind::Train)?;
    let follower = follower.filter(|follower| follower.rung == attempt.rung && follower.first_step.is_some());
    let kept = match follower {
        Some(follower) => came_from(follower, begins),
        None if standing.newest_is_unsafe && standing.newest_step == attempt.last_committed_step => {
            standing.safe_step.unwrap_or(0)
        }
        None => attempt.last_committed_step.unwrap_or_else(|| came_from(attempt, begins)),
    };
    Some(last.saturating_sub(kept))
}

/// Whether it is not known if an attempt that recorded its steps from the first one on continued.
fn may_have_continued(attempt: &AttemptRow, begins: Option<Step>, events: &[EventRow]) -> bool {
    let is_unknown = |event: &EventRow| {
        event.attempt_id == Some(attempt.attempt_id)
            && EventKind::CheckpointOtherResume.is(&event.kind)
            && event.field("read") == Some("unknown")
    };
    attempt.first_step <= begins && events.iter().any(is_unknown)
}

/// The step from which an attempt continued. A script may continue from a file that is not seen.
fn came_from(attempt: &AttemptRow, begins: Option<Step>) -> Step {
    match (attempt.resumed_from_step, attempt.first_step, begins) {
        (Some(from), ..) => from,
        // It prints every so many steps: the first one that it recorded is not the first one that it made.
        (None, Some(first), Some(begins)) if first <= begins => 0,
        (None, Some(first), _) => first.saturating_sub(1),
        (None, None, _) => 0,
    }
}

/// What each attempt had that its parent did not.
pub(super) fn parent_diffs(
    context: &Context,
    run: &RunRow,
    attempts: &[AttemptRow],
) -> Result<BTreeMap<AttemptId, Diff>, AppError> {
    let mut inputs: BTreeMap<AttemptId, Inputs> = BTreeMap::new();
    for attempt in attempts {
        inputs.insert(attempt.attempt_id, Inputs::of(context, run, Some(attempt))?);
    }
    let diff = |attempt: &AttemptRow| {
        let parent = parent_of(attempt, attempts)?;
        let (before, after) = (inputs.get(&parent.attempt_id)?, inputs.get(&attempt.attempt_id)?);
        let named = (parent.attempt_id.to_string(), format!("attempt {}", parent.attempt_number));
        Some((attempt.attempt_id, compared(context, before, after, named)))
    };
    Ok(attempts.iter().filter_map(diff).collect())
}

#[cfg(test)]
mod tests {
    use trackway_core::name::{Name, NameKind};
    use trackway_core::{RunId, SequentialIds, TerminationReason, Timestamp};

    use super::*;

    /// Proves that a follower which continued lost what came after its checkpoint, one that began again everything, whatever steps a script
    /// prints, and that without a follower or a checkpoint all steps that an attempt made are lost; that one which
    /// succeeded, or was no training, lost none.
    #[test]
    fn what_a_follower_trains_again_is_lost() {
        let ids = SequentialIds::default();
        let name = Name::renamed(NameKind::Run, "r");
        let run =
            RunRow::planned(RunId::new(&ids), &name, "", serde_json::Value::Null, Timestamp::from_micros(0));
        let mut failed = AttemptRow::planned(AttemptId::new(&ids), 1, LaunchKind::Train, &run);
        (failed.first_step, failed.last_step) = (Some(5), Some(90));
        failed.termination_reason = Some(TerminationReason::CodeError);
        let next = |first: Option<Step>, resumed: Option<Step>| {
            let mut next = AttemptRow::planned(AttemptId::new(&ids), 2, LaunchKind::Train, &run);
            (next.first_step, next.resumed_from_step) = (first, resumed);
            next
        };
        let whole = CheckpointStanding::default();
        let lost = |next: Option<AttemptRow>| lost_steps(&failed, next.as_ref(), Some(5), &whole);
        assert_eq!(lost(Some(next(Some(85), Some(80)))), Some(10));
        assert_eq!(lost(Some(next(Some(5), None))), Some(90), "it began again");
        assert_eq!(lost(Some(next(Some(81), None))), Some(10), "from a file that is not seen");
        assert_eq!(lost(None), Some(90), "nothing is left to continue from");
        let last = |change: &dyn Fn(&mut AttemptRow)| {
            let mut last = failed.clone();
            change(&mut last);
            lost_steps(&last, None, Some(5), &whole)
        };
        assert_eq!(last(&|it| it.resumed_from_step = Some(80)), Some(10));
        assert_eq!(last(&|it| it.first_step = Some(81)), Some(10), "it came from a file that is not seen");
        assert_eq!(last(&|it| it.kind = LaunchKind::Prove), None);
        assert_eq!(last(&|it| it.termination_reason = Some(TerminationReason::Completed)), None);
        assert_eq!(last(&|it| it.last_step = None), None);
        failed.last_committed_step = Some(80);
        assert_eq!(lost_steps(&failed, None, Some(5), &whole), Some(10));
        let newest_unsafe = |safe_step| CheckpointStanding {
            newest_step: Some(80),
            newest_is_unsafe: true,
            safe_step,
            ..CheckpointStanding::default()
        };
        assert_eq!(lost_steps(&failed, None, Some(5), &newest_unsafe(Some(40))), Some(50), "80 is unsafe");
        assert_eq!(lost_steps(&failed, None, Some(5), &newest_unsafe(None)), Some(90), "nothing is safe");
    }
}
