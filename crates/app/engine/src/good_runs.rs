//! The runs that later ones of the same name are compared with.

use trackway_checkpoint::CheckpointInfo;
use trackway_core::detect::DetectionSeverity;
use trackway_core::{CheckpointUse, Health, RunId, Step, Timestamp, Unfit, Weights};
use trackway_ledger::{AttemptRow, RunFilter, RunRow, RunState};

use crate::Context;
use crate::error::AppError;
use crate::ledger::rows::health_report;

/// Completed runs that are looked at, newest first.
const RUNS_MAX: usize = 20;
/// The tag by which a person vouches for a run, with the reason as its value.
pub const BLESSED: &str = "blessed";

/// The newest runs of a name that are good: completed, and of a health that is neither suspect nor broken, or blessed
/// by a person. Runs of older receipts have no health: no detector found anything critical in them. `before`: those
/// that are older.
///
/// # Errors
/// When the ledger cannot be read.
pub fn good_runs(
    context: &Context,
    run_name: &str,
    before: Option<Timestamp>,
) -> Result<Vec<RunRow>, AppError> {
    let filter = RunFilter {
        name: Some(run_name.to_owned()),
        state: Some(RunState::Completed),
        created_before: before,
        limit: Some(RUNS_MAX),
        ..RunFilter::default()
    };
    let mut good = Vec::new();
    for run in context.ledger_read(|ledger| ledger.list_runs(&filter))? {
        if is_good(context, &run)? || blessed_because(context, &run)?.is_some() {
            good.push(run);
        }
    }
    Ok(good)
}

fn is_good(context: &Context, run: &RunRow) -> Result<bool, AppError> {
    if run.health.is_some() {
        return Ok(Health::is_good(run.health));
    }
    let detections = context.ledger_read(|ledger| ledger.detections_of_run(run.run_id))?;
    Ok(detections.iter().all(|found| found.severity != DetectionSeverity::Critical))
}

/// Why a person vouches for a run whatever its health is, if one does. What a script calls itself does not count.
///
/// # Errors
/// When the ledger cannot be read.
pub fn blessed_because(context: &Context, run: &RunRow) -> Result<Option<String>, AppError> {
    let amendments = context.ledger_read(|ledger| ledger.amendments_of_run(run.run_id))?;
    let newest = amendments.into_iter().rfind(|amendment| amendment.tag.as_deref() == Some(BLESSED));
    Ok(newest.and_then(|amendment| amendment.new_text))
}

/// Why weights must not be used, and how a person decides otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfitWeights {
    /// In a sentence.
    pub why: String,
    /// The commands for that; none: they cannot be used.
    pub otherwise: Vec<String>,
}

/// Why a checkpoint of a run must not be used for `purpose`, by its state and by the health of the attempt that wrote it; none: it may.
///
/// # Errors
/// When the ledger cannot be read.
pub fn unfit_because(
    context: &Context,
    run_id: RunId,
    info: &CheckpointInfo,
    purpose: CheckpointUse,
) -> Result<Option<UnfitWeights>, AppError> {
    let attempt = context.ledger_read(|ledger| ledger.attempt(info.attempt_id))?;
    let health = attempt.as_ref().and_then(|row| row.health);
    let is_blessed = match health {
        Some(Health::Broken) => blessed_because(context, &context.run_by_id(run_id)?)?.is_some(),
        _ => false,
    };
    let weights = Weights { health, is_blessed, ..Weights::in_state(info.state) };
    let unfit = weights.unfit_for(purpose);
    Ok(unfit.first().map(|first| UnfitWeights {
        why: why_unfit(*first, (&format!("step {}", info.step), info), attempt.as_ref()),
        otherwise: decided_otherwise(&unfit, purpose, &run_id.to_string(), info.step),
    }))
}

/// In a sentence about a checkpoint, called `what`; `attempt`: the one that wrote it.
#[must_use]
pub fn why_unfit(
    unfit: Unfit,
    (what, info): (&str, &CheckpointInfo),
    attempt: Option<&AttemptRow>,
) -> String {
    let findings = attempt.and_then(health_report).map(|report| report.findings).unwrap_or_default();
    let why = match unfit {
        Unfit::NotWhole | Unfit::Unsafe => info.why.as_deref(),
        Unfit::Broken => findings.first().map(|found| found.evidence.as_str()),
    };
    let why = why.unwrap_or("what was found is not written down");
    match unfit {
        Unfit::NotWhole | Unfit::Unsafe => format!("{what} is {}: {why}", info.state),
        Unfit::Broken => format!("the attempt that wrote step {} is broken: {why}", info.step),
    }
}

/// The commands by which a person uses weights all the same, one for each thing that speaks against them.
#[must_use]
pub fn decided_otherwise(unfit: &[Unfit], purpose: CheckpointUse, run: &str, step: Step) -> Vec<String> {
    let command = |unfit: &Unfit| match (unfit, purpose) {
        (Unfit::NotWhole, _) => None,
        (Unfit::Unsafe, CheckpointUse::Evaluate | CheckpointUse::Register) => {
            Some(format!("use it all the same with: --checkpoint {step} --unsafe --why TEXT"))
        }
        (Unfit::Unsafe, _) => Some(format!(
            "if it is good all the same: trackway checkpoint clear {run} --step {step} --why TEXT"
        )),
        (Unfit::Broken, _) => {
            Some(format!("if it is good all the same: trackway runs bless {run} --why TEXT"))
        }
    };
    unfit.iter().map(command).collect::<Option<Vec<_>>>().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the command which is proposed exists where the weights were refused: only `eval run` and
    /// `registry register` have `--unsafe`.
    #[test]
    fn what_a_person_can_do_is_proposed() {
        let of = |unfit: &[Unfit], purpose| decided_otherwise(unfit, purpose, "RUN", 240);
        for purpose in CheckpointUse::ALL.iter().copied() {
            let has_flag = ["evaluate", "register"].contains(&purpose.as_str());
            let hints = of(&[Unfit::Unsafe, Unfit::Broken], purpose);
            assert_eq!(
                hints[0].contains("--checkpoint 240 --unsafe --why"),
                has_flag,
                "{purpose}: {hints:?}"
            );
            let clears = hints[0].contains("trackway checkpoint clear RUN --step 240 --why");
            assert_ne!(clears, has_flag, "{purpose}: {hints:?}");
            assert!(hints[1].contains("trackway runs bless RUN --why"), "{purpose}: {hints:?}");
            assert!(of(&[Unfit::NotWhole, Unfit::Broken], purpose).is_empty(), "{purpose}");
        }
    }
}
