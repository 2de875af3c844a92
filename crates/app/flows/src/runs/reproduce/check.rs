//! Compares a reproduction with its original, to the last bit.

use std::collections::BTreeMap;
use std::path::Path;

use trackway_api::checkpoints::{Checkpoint, CheckpointState};
use trackway_api::runs::reproduce::{ReproducedValue, ReproductionCheck, ReproductionVerdict};
use trackway_core::RunId;
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::rows::rung_of;
use trackway_ledger::AttemptRow;

use super::{EXPECTED_FILE, ExpectedResult};
use crate::checkpoints::checkpoints_at;

/// Beginnings of the names of metrics that are about the machine and about Trackway, and not about the training.
const BESIDE: [&str; 2] = ["system/", "trackway/"];
/// Metrics of time differ in every run.
const TIMES: [&str; 4] = ["seconds", "_per_second", "tokens_per", "time"];

/// What an attempt ended with.
pub(super) fn expected(context: &Context, attempt: &AttemptRow) -> Result<ExpectedResult, AppError> {
    Ok(ExpectedResult {
        attempt_id: attempt.attempt_id,
        run_id: attempt.run_id,
        states: states(context, attempt)?,
        metrics: metrics(context, attempt)?,
        environment_lock_sha256: attempt.environment_lock_sha256.clone(),
    })
}

/// Compares the last run of the home of a reproduction with what `folder` expects.
///
/// # Errors
/// [`ErrorKind::NotFound`] when the folder was not written by `trackway reproduce`, or nothing was run in it.
pub fn check(context: &Context, folder: &Path, run: RunId) -> Result<ReproductionCheck, AppError> {
    let path = folder.join(EXPECTED_FILE);
    let text = std::fs::read(&path).map_err(|error| AppError::file("read", &path, error))?;
    let expected: ExpectedResult = serde_json::from_slice(&text)
        .map_err(|error| AppError::fault(format!("`{}` is damaged", path.display()), error))?;
    let last = context.attempts_of(run)?.pop().ok_or_else(|| {
        AppError::new(ErrorKind::NotFound, format!("run {run} was never launched"))
            .hint("run reproduce.sh first")
    })?;
    let mut compared = compare(&expected, &states(context, &last)?, &metrics(context, &last)?);
    let verdict = verdict(&compared);
    compared.extend(environment(&expected, last.environment_lock_sha256));
    Ok(ReproductionCheck { attempt_id: expected.attempt_id, run_id: run, verdict, compared })
}

/// The packages of both, where those of the original are known.
fn environment(expected: &ExpectedResult, reproduced: Option<String>) -> Option<ReproducedValue> {
    let original = expected.environment_lock_sha256.clone()?;
    let equal = reproduced.as_ref() == Some(&original);
    Some(ReproducedValue { what: "environment lock".into(), original, reproduced, equal })
}

fn states(context: &Context, attempt: &AttemptRow) -> Result<Vec<(u64, String)>, AppError> {
    let run = context.run_by_id(attempt.run_id)?;
    let listing = checkpoints_at(context, run, rung_of(attempt))?.of_this_disk()?;
    // What a rollback left does not lead to the end of the run.
    let is_left = |one: &Checkpoint| one.state == CheckpointState::Suspect;
    let own = listing.into_iter().filter(|one| one.manifest_sha256.is_some() && !is_left(one));
    Ok(own.filter_map(|one| Some((one.step, one.state_digest?))).collect())
}

fn metrics(context: &Context, attempt: &AttemptRow) -> Result<Vec<(String, f64)>, AppError> {
    let rows = context.ledger_read(|ledger| ledger.metric_summaries_of(attempt.attempt_id))?;
    let own = rows.into_iter().filter(|row| is_of_training(&row.name));
    Ok(own.filter_map(|row| Some((row.name, row.last_value?))).collect())
}

/// Whether a metric must be the same when the training is.
fn is_of_training(name: &str) -> bool {
    !BESIDE.iter().any(|start| name.starts_with(start)) && !TIMES.iter().any(|word| name.contains(word))
}

/// What the original has, beside the same of the reproduction.
fn compare(
    expected: &ExpectedResult,
    states: &[(u64, String)],
    metrics: &[(String, f64)],
) -> Vec<ReproducedValue> {
    let states: BTreeMap<u64, &String> = states.iter().map(|(step, digest)| (*step, digest)).collect();
    let of_states = expected.states.iter().map(|(step, digest)| {
        let reproduced = states.get(step).map(|digest| (*digest).clone());
        let equal = reproduced.as_ref() == Some(digest);
        ReproducedValue { what: format!("state at step {step}"), original: digest.clone(), reproduced, equal }
    });
    let metrics: BTreeMap<&str, f64> = metrics.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let of_metrics = expected.metrics.iter().map(|(name, value)| {
        let reproduced = metrics.get(name.as_str());
        ReproducedValue {
            what: format!("last {name}"),
            original: value.to_string(),
            reproduced: reproduced.map(f64::to_string),
            equal: reproduced.is_some_and(|reproduced| reproduced.to_bits() == value.to_bits()),
        }
    });
    of_states.chain(of_metrics).collect()
}

/// A state that only one of them saved says nothing: retention and cadences in seconds keep others.
fn verdict(compared: &[ReproducedValue]) -> ReproductionVerdict {
    let both: Vec<&ReproducedValue> = compared.iter().filter(|value| value.reproduced.is_some()).collect();
    match both.is_empty() {
        true => ReproductionVerdict::CannotTell,
        false if both.iter().all(|value| value.equal) => ReproductionVerdict::Equal,
        false => ReproductionVerdict::Different,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that only metrics of the training are compared: not those of the machine, of a checkpoint's saves, and of time.
    #[test]
    fn only_metrics_of_the_training_are_compared() {
        for (name, is_compared) in [
            ("loss", true),
            ("val/accuracy", true),
            ("trackway/checkpoint_bytes", false),
            ("system/cpu_percent", false),
            ("samples_per_second", false),
        ] {
            assert_eq!(is_of_training(name), is_compared, "{name}");
        }
    }

    /// Proves that equal means equal to the last bit in everything that both have, and that nothing in common proves nothing.
    #[test]
    fn a_reproduction_is_compared_to_the_last_bit() {
        let expected = ExpectedResult {
            attempt_id: "att_00000000000000000000000001".parse().unwrap(),
            run_id: "run_00000000000000000000000001".parse().unwrap(),
            states: vec![(100, "aa".into()), (200, "bb".into())],
            metrics: vec![("loss".into(), 0.1 + 0.2)],
            environment_lock_sha256: Some("e1".into()),
        };
        let same_packages =
            |lock: Option<&str>| environment(&expected, lock.map(str::to_owned)).unwrap().equal;
        assert!(same_packages(Some("e1")) && !same_packages(Some("e2")) && !same_packages(None));
        let judged = |states: &[(u64, String)], loss: Option<f64>| {
            let metrics: Vec<_> = loss.map(|loss| ("loss".to_owned(), loss)).into_iter().collect();
            verdict(&compare(&expected, states, &metrics))
        };
        assert_eq!(judged(&[(200, "bb".into())], Some(0.1 + 0.2)), ReproductionVerdict::Equal);
        assert_eq!(judged(&[(200, "bb".into())], Some(0.3)), ReproductionVerdict::Different);
        assert_eq!(judged(&[(200, "cc".into())], None), ReproductionVerdict::Different);
        assert_eq!(judged(&[(300, "bb".into())], None), ReproductionVerdict::CannotTell);
    }
}
