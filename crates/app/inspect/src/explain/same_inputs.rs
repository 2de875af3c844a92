//! Other runs with the same config, data and seed: whether their results are the same, and where nothing can be compared.

use trackway_api::runs::explain::{InputKind, SameInputsRun};
use trackway_core::{AttemptId, RunId, TerminationReason};
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_formats::record::{is_fingerprint, is_machine_metric};
use trackway_ledger::{AttemptRow, AttemptState, MetricSummaryRow, RunRow};

use crate::inputs::{Inputs, compared};

/// Runs with the same inputs that are compared.
const SAME_INPUTS_MAX: usize = 10;

/// What is known of another run's result.
#[derive(Debug, PartialEq)]
struct Outcome {
    compared_count: u64,
    differing: Vec<(String, f64, f64)>,
    not_comparable: Option<String>,
}

/// Other runs with the same config, data and seed, and where their last values differ from this one's.
pub(super) fn same_inputs(
    context: &Context,
    run: &RunRow,
    attempt: &AttemptRow,
    here: &[MetricSummaryRow],
) -> Result<Vec<SameInputsRun>, AppError> {
    let others = context.ledger_read(|ledger| ledger.runs_with_inputs_of(run, SAME_INPUTS_MAX))?;
    if others.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<RunId> = others.iter().map(|other| other.run_id).collect();
    let last = context.ledger_read(|ledger| ledger.last_attempts_of(&ids))?;
    let ids: Vec<AttemptId> = last.iter().map(|attempt| attempt.attempt_id).collect();
    let there = context.ledger_read(|ledger| ledger.metric_summaries_of_all(&ids, &[]))?;
    let inputs = Inputs::of(context, run, Some(attempt))?;
    let mut found = Vec::new();
    for other in others {
        let Some(last) = last.iter().find(|attempt| attempt.run_id == other.run_id) else { continue };
        let there: Vec<&MetricSummaryRow> =
            there.iter().filter(|row| row.attempt_id == last.attempt_id).collect();
        let Outcome { compared_count, differing, not_comparable } = result((last, &there), (attempt, here));
        let others = Inputs::of(context, &other, Some(last))?;
        let diff = compared(context, &others, &inputs, Default::default());
        let mut other_inputs: Vec<InputKind> = diff.changes.iter().map(|change| change.kind).collect();
        other_inputs
            .retain(|kind| !matches!(kind, InputKind::Setting | InputKind::Data | InputKind::Parameter));
        other_inputs.sort_unstable();
        other_inputs.dedup();
        found.push(SameInputsRun {
            run_id: other.run_id,
            state: other.state,
            differing_metrics: differing,
            compared_count,
            not_comparable,
            other_inputs,
        });
    }
    Ok(found)
}

/// Compares the last values of the metrics that both recorded up to the same step. A result is that of an attempt which completed.
fn result(
    (last, there): (&AttemptRow, &[&MetricSummaryRow]),
    (attempt, here): (&AttemptRow, &[MetricSummaryRow]),
) -> Outcome {
    let not_comparable =
        |why: String| Outcome { compared_count: 0, differing: Vec::new(), not_comparable: Some(why) };
    for (attempt, whose) in [(last, "that run"), (attempt, "this attempt")] {
        match attempt.termination_reason.filter(|_| attempt.state == AttemptState::Sealed) {
            None => return not_comparable(format!("{whose} has not ended")),
            Some(TerminationReason::Completed) => {}
            Some(reason) => return not_comparable(format!("{whose} ended as `{reason}`")),
        }
    }
    if last.rung != attempt.rung {
        return not_comparable(format!("it is of rung {} there, of {} here", last.rung, attempt.rung));
    }
    let here: Vec<&MetricSummaryRow> = here.iter().filter(|row| !is_of_machine(&row.name)).collect();
    let common: Vec<(&MetricSummaryRow, &MetricSummaryRow)> = here
        .iter()
        .filter_map(|row| Some((*there.iter().find(|other| other.name == row.name)?, *row)))
        .collect();
    let Some((first_there, first_here)) = common.first() else {
        return not_comparable("no metric was recorded in both".into());
    };
    let same_step: Vec<_> = common.iter().filter(|(there, here)| there.last_step == here.last_step).collect();
    if same_step.is_empty() {
        return not_comparable(format!(
            "`{}` ends at step {} there, at step {} here",
            first_here.name, first_there.last_step, first_here.last_step
        ));
    }
    let values =
        same_step.iter().filter_map(|(there, here)| Some((&here.name, there.last_value?, here.last_value?)));
    let values: Vec<_> = values.collect();
    if values.is_empty() {
        return not_comparable("no last value is finite in both".into());
    }
    let differing = values.iter().filter(|(_, there, here)| there != here);
    Outcome {
        compared_count: values.len() as u64,
        differing: differing.map(|(name, there, here)| ((*name).clone(), *there, *here)).collect(),
        not_comparable: None,
    }
}

/// Metrics that measure the machine, not the model, differ always.
fn is_of_machine(name: &str) -> bool {
    const MACHINE: [&str; 5] = ["per_second", "seconds", "millis", "bytes", "/s"];
    is_machine_metric(name) || is_fingerprint(name) || MACHINE.iter().any(|suffix| name.ends_with(suffix))
}
