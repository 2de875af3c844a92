//! Which short launch shows the cause of a symptom ([`symptom`]), from which step to which ([`plan`]), and what its observations mean
//! ([`finding`]): a reason, detections and facts in, a kind, a plan and a sentence out.

mod collectives;
mod facts;
mod finding;
mod hang;
mod rank_names;
#[cfg(test)]
mod tests;

use trackway_core::detect::Detector;
use trackway_core::{DiagnosisKind, Step, TerminationReason};

use crate::advice::runbook::next_actions;
use crate::advice::symptoms::symptom_of_detector;

pub use collectives::{Collectives, Group, Operation};
pub use facts::{Facts, FirstGradient, Growth, Numeric, Share, TensorFacts, Throughput};
pub use finding::{DiagnosisLaunch, Finding, finding};
pub use hang::{RankStack, collective_warnings, hang_finding, missing_ranks, silent_ranks};

/// Steps that a numeric diagnosis and one of a hang make past the step of the symptom.
pub const STEPS_PAST: u64 = 20;
/// Steps that a diagnosis of throughput makes.
pub const THROUGHPUT_STEPS: u64 = 50;
/// Steps before the symptom from which on everything is observed.
const OBSERVED_BEFORE: u64 = 50;

/// What a detector found, as far as it decides about a diagnosis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DetectedSymptom {
    pub detector: Detector,
    /// The step at which the symptom began.
    pub first_step: Step,
}

/// What is known of the attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// Why it ended.
    pub reason: Option<TerminationReason>,
    /// The last step it reported.
    pub last_step: Option<Step>,
    /// What detectors found in it, oldest first.
    pub seen: Vec<DetectedSymptom>,
}

/// What is to be diagnosed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symptom {
    /// What is observed.
    pub kind: DiagnosisKind,
    /// The step at which it began; `None`: no step is known.
    pub step: Option<Step>,
    /// The last step of the attempt: a launch may end there by itself.
    pub last_step: Option<Step>,
    /// The evidence, as a sentence.
    pub why: String,
}

/// Why a launch would show nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NothingToRun {
    pub why: String,
    /// What to do instead, most useful first.
    pub instead: Vec<&'static str>,
}

/// The symptom of an attempt that a launch can show the cause of. `kind`: what a person wants to observe, whatever the evidence
/// suggests.
///
/// # Errors
/// Why there is no such symptom, and what to do instead.
pub fn symptom(subject: &Subject, kind: Option<DiagnosisKind>) -> Result<Symptom, NothingToRun> {
    let last_step = subject.last_step;
    let detected = |wanted: DiagnosisKind| {
        let found = subject.seen.iter().find(|seen| kind_of_detector(seen.detector) == Some(wanted))?;
        let (detector, step) = (found.detector, found.first_step);
        let why = format!("`{detector}` from step {step} on: {}", symptom_of_detector(detector).seen);
        Some(Symptom { kind: wanted, step: Some(step), last_step, why })
    };
    let ended = |wanted: DiagnosisKind, reason: TerminationReason| {
        let why = format!("it ended as `{reason}`");
        Symptom { kind: wanted, step: last_step, last_step, why }
    };
    let by_reason = subject.reason.and_then(kind_of_reason);
    if let Some(wanted) = kind.or(by_reason) {
        return Ok(detected(wanted).unwrap_or_else(|| {
            match subject.reason.filter(|_| by_reason == Some(wanted)) {
                Some(reason) => ended(wanted, reason),
                None => Symptom { kind: wanted, step: last_step, last_step, why: "requested".into() },
            }
        }));
    }
    // What spoils the numbers first, then what hangs, then what is slow.
    let order = [DiagnosisKind::Numeric, DiagnosisKind::Hang, DiagnosisKind::Throughput];
    order.into_iter().find_map(detected).ok_or_else(|| nothing(subject))
}

fn nothing(subject: &Subject) -> NothingToRun {
    let Some(reason) = subject.reason else {
        let why = "it has not ended, and no detector found anything".to_owned();
        return NothingToRun { why, instead: vec!["follow it: `trackway watch`"] };
    };
    let why =
        format!("it ended as `{reason}`, and no detector found what another launch could show the cause of");
    // What has to be filled in, or may not be there, is left to the explanation.
    let lines = next_actions(reason, None).iter().filter(|line| line.need.is_none());
    NothingToRun { why, instead: lines.map(|line| line.text).collect() }
}

fn kind_of_reason(reason: TerminationReason) -> Option<DiagnosisKind> {
    match reason {
        TerminationReason::NumericDivergence => Some(DiagnosisKind::Numeric),
        TerminationReason::Hang => Some(DiagnosisKind::Hang),
        _ => None,
    }
}

/// What shows the cause of what a detector found; `None`: no other launch does.
#[must_use]
pub const fn kind_of_detector(detector: Detector) -> Option<DiagnosisKind> {
    match detector {
        Detector::NonFinite
        | Detector::GradientExplosion
        | Detector::GradientVanishing
        | Detector::LossSpike
        | Detector::LossShift
        | Detector::LossScaleCollapse => Some(DiagnosisKind::Numeric),
        Detector::DeadInput | Detector::DataStarvation | Detector::ThroughputDrop | Detector::Straggler => {
            Some(DiagnosisKind::Throughput)
        }
        Detector::Hang => Some(DiagnosisKind::Hang),
        Detector::Plateau
        | Detector::ValidationDivergence
        | Detector::SeenBefore
        | Detector::MemoryCreep
        | Detector::LearningRate
        | Detector::RankDivergence => None,
    }
}

/// The launch of a diagnosis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The committed step that it continues from; `None`: the beginning.
    pub from_step: Option<Step>,
    /// The first step that is observed.
    pub observe_from_step: Step,
    /// The last step.
    pub until_step: Step,
}

/// From where to where a diagnosis trains. `committed`: the steps of checkpoints that can be read. `steps`: how many a person wants;
/// `from`: from which step on.
///
/// The newest checkpoint before the symptom is taken: one of the very step of a NaN would hold it.
///
/// # Errors
/// Why there is no such place.
pub fn plan(
    symptom: &Symptom,
    committed: &[Step],
    steps: Option<u64>,
    from: Option<Step>,
) -> Result<Plan, String> {
    let limit = match (from, symptom.kind, symptom.step) {
        (Some(from), _, _) => from,
        (None, DiagnosisKind::Numeric, Some(step)) => step.saturating_sub(1),
        // The script may end at its last step, and then nothing would be left to profile.
        (None, DiagnosisKind::Throughput, Some(step)) => {
            let wanted = steps.unwrap_or(THROUGHPUT_STEPS);
            step.min(symptom.last_step.unwrap_or(step).saturating_sub(wanted))
        }
        (None, _, Some(step)) => step,
        (None, _, None) => Step::MAX,
    };
    let from_step = committed.iter().copied().filter(|step| *step <= limit).max();
    if let (Some(wanted), None) = (from.filter(|from| *from > 0), from_step) {
        return Err(format!("no checkpoint of step {wanted} or before can be read"));
    }
    let first = from_step.unwrap_or(0) + 1;
    let default = match (symptom.kind, symptom.step) {
        (DiagnosisKind::Throughput, _) | (_, None) => first - 1 + THROUGHPUT_STEPS,
        (_, Some(step)) => step.max(first) + STEPS_PAST,
    };
    let until_step = steps.map_or(default, |steps| first - 1 + steps.max(1));
    let observe_from_step = match (symptom.kind, symptom.step) {
        (DiagnosisKind::Numeric, Some(step)) => {
            step.saturating_sub(OBSERVED_BEFORE).max(first).min(until_step)
        }
        _ => first,
    };
    Ok(Plan { from_step, observe_from_step, until_step })
}
