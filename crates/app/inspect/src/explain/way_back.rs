//! How a run that diverged continues from a checkpoint before it did, as the command to type.

use trackway_api::runs::detections::Detection;
use trackway_core::detect::{DetectionPolicy, Detector};
use trackway_core::{DiagnosisKind, TerminationReason};
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_engine::roll_back::{FaultRange, WayBack, way_back};
use trackway_ledger::{AttemptRow, RunRow};
use trackway_rules::diagnosis::kind_of_detector;
use trackway_rules::trust::SAFE_AFTER;

/// The command, where the last attempt of a run that has ended diverged and a checkpoint from before is left.
pub fn way_back_action(
    context: &Context,
    run: &RunRow,
    attempt: &AttemptRow,
    attempts: &[AttemptRow],
    detections: &[Detection],
) -> Result<Option<String>, AppError> {
    let is_last = attempts.last().is_some_and(|last| last.attempt_id == attempt.attempt_id);
    let diverged = attempt.termination_reason == Some(TerminationReason::NumericDivergence);
    let Some(seen) = seen(attempt, detections).filter(|_| is_last && diverged && run.state.is_final()) else {
        return Ok(None);
    };
    let resume = format!("trackway resume {}", run.run_id);
    Ok(way_back(context, run, attempt, &seen)?.map(|way| match way {
        WayBack::Done(Some(step)) => {
            format!("to continue from step {step}, to which it was rolled back: {resume}")
        }
        WayBack::Done(None) => format!("it was rolled back to the beginning; to run again: {resume}"),
        WayBack::To { step, skip } => {
            let skip = skip.map(|range| format!(" --skip-batches {range}")).unwrap_or_default();
            let first = seen.first_step;
            format!(
                "to continue from the checkpoint of step {step}, before it diverged (by step {first}): \
                 trackway rollback {} --to-step {step}{skip} && {resume}",
                run.run_id
            )
        }
    }))
}

/// Where the numbers went wrong for good: as detectors saw it, or at the last step at the latest.
fn seen(attempt: &AttemptRow, detections: &[Detection]) -> Option<FaultRange> {
    let of_numbers: Vec<&Detection> = detections
        .iter()
        .filter(|found| found.attempt_id == attempt.attempt_id)
        .filter(|found| kind_of_detector(found.detector) == Some(DiagnosisKind::Numeric))
        .collect();
    let Some(last) = lasting(&of_numbers) else {
        let step = attempt.last_step?;
        return Some(FaultRange { first_step: step, step, first_batch: None, last_batch: None });
    };
    let Detection { first_step, first_batch, .. } = *first_of(&of_numbers, last);
    Some(FaultRange { first_step, step: last.step, first_batch, last_batch: last.last_batch })
}

/// The finding that was not over at the end: the one that ended the attempt, else the last one of numbers that are lost, else the last one.
fn lasting<'d>(found: &[&'d Detection]) -> Option<&'d Detection> {
    let ended = |one: &&&Detection| matches!(one.policy, DetectionPolicy::Stop | DetectionPolicy::RollBack);
    let is_lost = |one: &&&Detection| one.detector == Detector::NonFinite;
    let newest_first = || found.iter().rev();
    newest_first().find(ended).or_else(|| newest_first().find(is_lost)).or_else(|| found.last()).copied()
}

/// The finding with which the trouble began that ends with `last`. One that was over for as many steps as make a
/// checkpoint safe again is not part of it.
fn first_of<'d>(found: &[&'d Detection], last: &'d Detection) -> &'d Detection {
    let mut before: Vec<&Detection> =
        found.iter().copied().filter(|one| one.first_step < last.first_step).collect();
    before.sort_by_key(|one| std::cmp::Reverse(one.first_step));
    before.into_iter().fold(last, |first, one| {
        let is_near = first.first_step.saturating_sub(one.step) <= u64::from(SAFE_AFTER);
        if is_near { one } else { first }
    })
}

#[cfg(test)]
mod tests {
    use trackway_core::detect::DetectionSeverity;
    use trackway_core::name::{Name, NameKind};
    use trackway_core::{AttemptId, LaunchKind, RunId, SequentialIds, Timestamp};

    use super::*;

    /// Proves that the trouble begins with the finding that led to the end, and not with one that was over long before;
    /// and that without a finding it is there at the last step.
    #[test]
    fn the_trouble_is_the_one_that_lasted() {
        let ids = SequentialIds::default();
        let name = Name::renamed(NameKind::Run, "r");
        let run =
            RunRow::planned(RunId::new(&ids), &name, "", serde_json::Value::Null, Timestamp::from_micros(0));
        let mut attempt = AttemptRow::planned(AttemptId::new(&ids), 1, LaunchKind::Train, &run);
        attempt.last_step = Some(900);
        let found = |detector, policy, first_step| Detection {
            attempt_id: attempt.attempt_id,
            at: Timestamp::from_micros(0),
            detector,
            severity: DetectionSeverity::Warn,
            policy,
            rank: 0,
            first_step,
            step: first_step + 3,
            metric: None,
            value: None,
            threshold: 0.0,
            batch_digest: None,
            last_committed_step: None,
            evidence: String::new(),
            cause: String::new(),
            advice: String::new(),
            first_batch: Some(first_step - 1),
            last_batch: Some(first_step + 2),
            data_epoch: None,
            stacks_path: None,
            rolled_back: None,
            stacks: Vec::new(),
        };
        let note = DetectionPolicy::Note;
        let spike = |first_step| found(Detector::LossSpike, note, first_step);
        let (lost, ended) = (
            found(Detector::NonFinite, note, 500),
            found(Detector::GradientExplosion, DetectionPolicy::Stop, 600),
        );
        let at = |detections: &[Detection]| {
            let seen = seen(&attempt, detections).unwrap();
            (seen.first_step, seen.step, seen.first_batch)
        };
        assert_eq!(at(&[]), (900, 900, None));
        assert_eq!(at(&[spike(20), spike(300)]), (300, 303, Some(299)));
        assert_eq!(at(&[spike(20), lost.clone(), spike(700)]), (500, 503, Some(499)));
        assert_eq!(at(&[spike(20), spike(460), spike(480), lost.clone()]), (460, 503, Some(459)));
        assert_eq!(at(&[lost, ended]), (600, 603, Some(599)));
        let other = Detection { attempt_id: AttemptId::new(&ids), ..spike(20) };
        assert_eq!(at(&[other]), (900, 900, None));
    }
}
