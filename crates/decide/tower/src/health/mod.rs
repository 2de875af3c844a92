//! The health of an attempt that has ended: what its values show, beside how it ended. Curves, findings of detectors and the losses that are not
//! to be trusted in, one verdict with its evidence out. Pure.
//!
//! *ok*: something looked at its values to the end, and nothing was found. *suspect*: a warning was not over at its end. *broken*: what it computed is
//! most likely lost. *unknown*: nothing could be looked at.

mod curve;
mod looks;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use trackway_core::detect::{DetectionSeverity, Detector, Firing};
use trackway_core::{Health, HealthFinding, HealthReport, Step, TerminationReason};
use trackway_formats::rehearsal::loss_rank;

pub use curve::{Curve, Part};
pub use looks::EarlierEnd;

use crate::loss_level::falls_while_learning;
use crate::symptom_of_detector;
use crate::trust::{CHANCE_LEVEL, LOSS_EXPLODED, LOSS_WENT_BACK, LossRecord};

/// Metrics whose curves are kept.
const CURVES_MAX: usize = 1024;
/// Metrics that a report names.
const NAMED_MAX: usize = 8;
/// Findings that a report holds.
const FINDINGS_MAX: usize = 32;

/// The curves of an attempt by which it is judged: losses and accuracies, of the first rank that recorded each.
#[derive(Debug, Clone, Default)]
pub struct Curves {
    by_name: BTreeMap<String, (u32, Curve)>,
}

impl Curves {
    /// Takes a value.
    pub fn take(&mut self, rank: u32, metric: &str, step: Step, value: f64) {
        if let Some((first, curve)) = self.by_name.get_mut(metric) {
            if *first == rank {
                curve.take(step, value);
            }
            return;
        }
        if self.by_name.len() < CURVES_MAX && (is_loss(metric) || is_accuracy(metric)) {
            let mut curve = Curve::default();
            curve.take(step, value);
            self.by_name.insert(metric.to_owned(), (rank, curve));
        }
    }

    /// Values of this metric come from another writer from now on.
    pub fn forget(&mut self, metric: &str) {
        self.by_name.remove(metric);
    }

    /// The curve of the training loss: of several the one whose name is the likeliest; none of those that need not fall.
    #[must_use]
    pub fn training_loss(&self) -> Option<(&str, &Curve)> {
        let losses =
            self.by_name.iter().filter(|(name, _)| loss_rank(name) > 0 && falls_while_learning(name));
        losses
            .max_by_key(|(name, (_, curve))| (loss_rank(name), curve.count()))
            .map(|(name, (_, curve))| (&**name, curve))
    }

    /// From which step on the training loss has exploded, and its value there; none: it has not.
    #[must_use]
    pub fn exploded_from(&self) -> Option<(Step, f64)> {
        let (name, loss) = self.training_loss()?;
        looks::exploded(name, loss)?;
        loss.rose
    }

    /// That the model guesses, by its training loss and its accuracies.
    #[must_use]
    pub fn chance_level(&self) -> Option<HealthFinding> {
        let accuracies: Vec<_> = self.named().filter(|(name, _)| is_accuracy(name)).collect();
        looks::chance_level(self.training_loss()?, &accuracies)
    }

    fn named(&self) -> impl Iterator<Item = (&str, &Curve)> {
        self.by_name.iter().map(|(name, (_, curve))| (&**name, curve))
    }
}

/// What is known of an attempt that has ended.
#[derive(Debug, Clone)]
pub struct HealthEvidence<'a> {
    /// Why it ended.
    pub reason: TerminationReason,
    /// The last step that it reported.
    pub last_step: Option<Step>,
    /// Whether it began with nothing learned.
    pub from_the_beginning: bool,
    /// Whether it trained on all of its data: on a small part of it a model need not leave the level of a guess.
    pub on_all_data: bool,
    /// Its curves.
    pub curves: &'a Curves,
    /// Its losses, as far as they are not to be trusted.
    pub losses: &'a LossRecord,
    /// What detectors found that was not over at the end.
    pub standing: &'a [Firing],
    /// What shows that its weights never changed.
    pub unmoved: Option<String>,
    /// Where earlier good runs of the name ended, by the same loss.
    pub earlier: &'a [EarlierEnd],
}

/// Judges an attempt.
#[must_use]
pub fn judge(evidence: &HealthEvidence<'_>) -> (Health, HealthReport) {
    let looked_at = looked_at(evidence.curves);
    let mut findings = findings(evidence);
    findings.sort_by_key(|finding| (finding.health != Health::Broken, finding.first_step));
    let mut known = BTreeSet::new();
    findings.retain(|finding| known.insert(finding.found_by.clone()));
    findings.truncate(FINDINGS_MAX);
    let health = match findings.first() {
        Some(gravest) => gravest.health,
        None if looked_at.is_empty() => Health::Unknown,
        None => Health::Ok,
    };
    let missing = missing(evidence, looked_at.is_empty());
    (health, HealthReport { findings, looked_at, missing })
}

fn findings(evidence: &HealthEvidence<'_>) -> Vec<HealthFinding> {
    let mut found: Vec<HealthFinding> = evidence.standing.iter().map(of_firing).collect();
    found.extend(stopped(evidence));
    let unmoved = evidence.unmoved.clone();
    found.extend(unmoved.map(|evidence| HealthFinding {
        found_by: "unmoved_weights".into(),
        health: Health::Broken,
        first_step: None,
        evidence,
    }));
    let curves = evidence.curves;
    if let Some(loss) = curves.training_loss() {
        if evidence.from_the_beginning {
            let guesses = curves.chance_level().map(|found| match evidence.on_all_data {
                true => found,
                false => HealthFinding { health: Health::Suspect, ..found },
            });
            found.extend(guesses.or_else(|| looks::unlearned(loss.0, loss.1)));
            found.extend(looks::exploded(loss.0, loss.1));
            found.extend(looks::went_back(loss.0, loss.1));
        }
        found.extend(looks::unlike_earlier(loss.0, loss.1, evidence.earlier));
    }
    found.extend(pairs(curves).filter_map(|(pair, is_loss)| looks::gap(pair, is_loss)));
    // What a look found already is not said twice.
    found.extend(lost(evidence));
    found
}

/// A finding that is not over: non-finite values and what is critical have spoiled the weights.
fn of_firing(firing: &Firing) -> HealthFinding {
    let is_broken = firing.severity == DetectionSeverity::Critical
        && !matches!(firing.detector, Detector::MemoryCreep | Detector::Hang | Detector::Straggler);
    HealthFinding {
        found_by: firing.detector.to_string(),
        health: if is_broken { Health::Broken } else { Health::Suspect },
        first_step: Some(firing.first_step),
        evidence: firing.evidence.clone(),
    }
}

/// Losses at the last step that are not to be trusted.
fn lost(evidence: &HealthEvidence<'_>) -> Option<HealthFinding> {
    let found = evidence.losses.unsafe_at(evidence.last_step?)?;
    let (found_by, first_step) = (found.found_by, found.first_step);
    Some(HealthFinding { found_by, health: Health::Broken, first_step, evidence: found.why })
}

/// A policy ended it for what it computed.
fn stopped(evidence: &HealthEvidence<'_>) -> Option<HealthFinding> {
    let is_stopped =
        matches!(evidence.reason, TerminationReason::NumericDivergence | TerminationReason::Unhealthy);
    is_stopped.then(|| HealthFinding {
        found_by: evidence.reason.to_string(),
        health: Health::Broken,
        first_step: None,
        evidence: format!("it ended as `{}`", evidence.reason),
    })
}

/// The metrics that detectors saw to the end, the training loss first.
fn looked_at(curves: &Curves) -> Vec<String> {
    let main = curves.training_loss().map(|(name, _)| name);
    let others = curves.named().map(|(name, _)| name).filter(|name| Some(*name) != main);
    main.into_iter().chain(others.take(NAMED_MAX - 1)).map(str::to_owned).collect()
}

fn missing(evidence: &HealthEvidence<'_>, nothing: bool) -> Vec<String> {
    let mut missing = Vec::new();
    if nothing {
        missing.push("no loss and no accuracy was recorded or printed".to_owned());
    } else if evidence.curves.named().all(|(name, _)| loss_rank(name) == 0) {
        missing.push("no training loss was recorded or printed".to_owned());
    } else if evidence.curves.training_loss().is_none() {
        missing.push("no whole curve was judged: its losses need not fall while a model learns".to_owned());
    }
    missing
}

/// A curve with its name.
type Named<'c> = (&'c str, &'c Curve);

/// Curves of training and of held-out data that are the same measure, and whether it is a loss.
fn pairs(curves: &Curves) -> impl Iterator<Item = ((Named<'_>, Named<'_>), bool)> {
    curves.named().filter_map(move |held_out| {
        let measure = held_out_measure(held_out.0)?;
        let loss = measure == "loss";
        let train = match loss {
            true => curves.training_loss(),
            false => curves.named().find(|(name, _)| training_measure(name) == Some(measure)),
        }?;
        Some(((train, held_out), loss))
    })
}

const HELD_OUT: [&str; 7] = ["val", "valid", "validation", "eval", "test", "dev", "holdout"];

/// The measure of a metric on held-out data: `val_accuracy` is one of `accuracy`.
fn held_out_measure(name: &str) -> Option<&str> {
    let (word, measure) = name.split_once(['_', '/', '-'])?;
    HELD_OUT.contains(&word).then_some(measure)
}

/// The measure of a metric on training data.
fn training_measure(name: &str) -> Option<&str> {
    match name.split_once(['_', '/', '-']) {
        Some(("train" | "training", measure)) => Some(measure),
        Some((word, _)) if HELD_OUT.contains(&word) => None,
        _ => Some(name),
    }
}

fn is_loss(name: &str) -> bool {
    loss_rank(name) > 0 || held_out_measure(name).is_some_and(|measure| measure.ends_with("loss"))
}

fn is_accuracy(name: &str) -> bool {
    let measure = held_out_measure(name).or_else(|| training_measure(name)).unwrap_or(name);
    matches!(measure, "accuracy" | "acc" | "balanced_accuracy" | "top1" | "acc1")
}

/// What to try about a finding: of a detector what its runbook says.
#[must_use]
pub fn advice(found_by: &str) -> &'static str {
    match found_by {
        CHANCE_LEVEL => {
            "check that labels belong to their inputs, that the loss reaches the weights (a frozen layer, a detached tensor) and that the learning rate is not next to nothing"
        }
        LOSS_EXPLODED | LOSS_WENT_BACK => {
            "lower the learning rate, or clip gradients; look at the data of the step at which the loss rose"
        }
        "generalization_gap" => {
            "it knows its examples by heart: stop earlier, take more data or regularize; check that both are prepared alike"
        }
        "unmoved_weights" => {
            "the optimizer holds other parameters than those that are saved, or all are frozen: compare `model.parameters()` with its groups"
        }
        "unlike_earlier_runs" => "see what changed since the last good run",
        _ => match found_by.parse::<Detector>() {
            Ok(detector) => symptom_of_detector(detector).try_first,
            Err(_) => "see why it was stopped",
        },
    }
}
