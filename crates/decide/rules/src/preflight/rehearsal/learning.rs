use trackway_core::checks::{Finding, Severity};
pub(super) use trackway_core::text::number;
use trackway_core::{LaunchKind, Step};
use trackway_formats::rehearsal::{LossFunction, loss_rank};

use super::{LaunchEvidence, RehearsalEvidence};

/// The target: this fraction of the loss of the best constant prediction.
pub const TARGET_SHARE: f64 = 0.5;
/// The best constant prediction counts as beaten below this fraction of its loss.
pub const BEATEN_SHARE: f64 = 0.95;
/// With fewer steps a loss that does not fall proves nothing.
pub const STEPS_MIN: u64 = 20;
/// How far the recorded loss may begin from the loss function's own value and still be the same thing.
const SAME_LOSS_SHARE: f64 = 0.05;
/// A best constant answer with less loss than this leaves nothing to be learned from.
const BASELINE_MIN: f64 = 1e-3;

/// How much was learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learned {
    /// The loss became NaN or infinite.
    NotFinite,
    /// The best answer that does not look at the input was not beaten.
    NotAtAll,
    /// It was beaten, and the target was not reached.
    Partly,
    /// The target was reached.
    ToTarget,
    /// There is no loss, or there are too few steps.
    Unknown,
}

/// How the loss went, as means over one pass through the repeated batches.
#[derive(Debug, Clone, PartialEq)]
pub struct Learning {
    pub learned: Learned,
    /// Steps with a loss.
    pub steps: u64,
    /// The loss of the first pass.
    pub first: f64,
    /// The least loss of a pass.
    pub best: f64,
    /// The greatest loss of a step.
    pub worst: f64,
    /// The loss of the last pass.
    pub last: f64,
    /// The loss of the best answer that does not look at the input; the first loss where that is not known.
    pub baseline: f64,
    /// Whether it is known.
    pub baseline_known: bool,
    /// The loss that had to be reached.
    pub target: f64,
    /// The first step whose loss was not finite.
    pub not_finite_at: Option<Step>,
}

impl Learning {
    /// Reads the losses of the launch that learned.
    #[must_use]
    pub fn of(evidence: &RehearsalEvidence) -> Self {
        let launch = &evidence.learned;
        let function = launch.facts.loss_function.as_ref();
        let series = series_of(launch);
        let scale = scale_of(series, function);
        let passes = passes(series, evidence.batch_count.max(1) as usize, scale);
        let finite = || passes.iter().copied().filter(|loss| loss.is_finite());
        let first = passes.first().copied().unwrap_or(f64::NAN);
        let known = baseline_of(function, first, series, scale);
        let baseline = known.unwrap_or(first);
        let floor = function.map_or(0.0, |function| function.floor).min(baseline);
        let between = |share: f64| floor + share * (baseline - floor);
        let mut learning = Self {
            learned: Learned::Unknown,
            steps: series.len() as u64,
            first,
            best: finite().fold(f64::INFINITY, f64::min),
            worst: series.iter().map(|(_, loss)| loss / scale).fold(f64::NEG_INFINITY, f64::max),
            last: passes.last().copied().unwrap_or(f64::NAN),
            baseline,
            baseline_known: known.is_some(),
            target: evidence.target_loss.unwrap_or_else(|| between(evidence.target_share)),
            not_finite_at: series.iter().find(|(_, loss)| !loss.is_finite()).map(|(step, _)| *step),
        };
        learning.learned = learning.judged(between(BEATEN_SHARE), evidence.batch_count);
        learning
    }

    fn judged(&self, beaten: f64, batch_count: u64) -> Learned {
        if self.not_finite_at.is_some() {
            Learned::NotFinite
        } else if self.steps == 0 {
            Learned::Unknown
        } else if self.best <= self.target {
            Learned::ToTarget
        } else if self.steps < STEPS_MIN.max(2 * batch_count) {
            Learned::Unknown
        } else if self.best <= beaten {
            Learned::Partly
        } else {
            Learned::NotAtAll
        }
    }

    /// Whether the loss hardly changed at all.
    #[must_use]
    pub fn is_flat(&self) -> bool {
        (self.first - self.best).abs() < 0.01 * self.first.abs() && self.worst < 1.5 * self.first
    }

    /// The finding about the loss itself.
    pub(super) fn finding(&self, check: &str) -> Option<Finding> {
        let (steps, first, best) = (self.steps, number(self.first), number(self.best));
        let baseline = self.baseline_in_words();
        let (severity, message) = match self.learned {
            Learned::ToTarget | Learned::Unknown => return None,
            Learned::NotFinite => {
                let step = self.not_finite_at.unwrap_or(0);
                (
                    Severity::Block,
                    format!("the loss is NaN or infinite at step {step}; it started at {first}"),
                )
            }
            Learned::NotAtAll => (
                Severity::Block,
                format!(
                    "nothing was learned in {steps} steps: the loss went from {first} to {best} at best, {baseline}"
                ),
            ),
            Learned::Partly => (
                Severity::Warn,
                format!(
                    "the loss went from {first} to {best} at best in {steps} steps, {baseline}; the target was {}",
                    number(self.target)
                ),
            ),
        };
        let action = "a model that cannot overfit a few batches cannot learn: see the diagnosis, then inspect one batch and its gradients";
        Some(Finding::new(check, severity, message).action(action))
    }

    fn baseline_in_words(&self) -> String {
        if self.baseline_known {
            format!("and the best predictor that ignores the input has {}", number(self.baseline))
        } else {
            "and the loss of a predictor that ignores the input is not known".into()
        }
    }

    /// What happened, if it passed.
    pub(super) fn sentence(&self, evidence: &RehearsalEvidence) -> String {
        let what = match (evidence.kind, evidence.batch_count) {
            (LaunchKind::Overfit, count) if count > 1 => format!("{count} batches"),
            _ => "one batch".into(),
        };
        let (first, best, target) = (number(self.first), number(self.best), number(self.target));
        let mut parts = vec![match self.not_finite_at {
            Some(step) => format!("{what}: the loss is not finite at step {step}"),
            None if self.steps == 0 => format!("{what}: no loss was recorded"),
            None => format!("{what}: loss {first} → {best} in {} steps, target {target}", self.steps),
        }];
        let facts = &evidence.learned.facts;
        if let (Some(model), Some(updates)) = (&facts.model, &facts.updates) {
            let moving =
                model.parameters.tensors.saturating_sub(model.frozen.tensors + updates.unmoved.tensors);
            parts.push(format!("{moving} of {} parameters moved", model.parameters.tensors));
        }
        if let Some(step) = evidence.resumed.as_ref().and_then(|launch| launch.resumed_from_step) {
            parts.push(format!("resumed from the checkpoint of step {step}"));
        }
        parts.join("; ")
    }
}

/// The metric that is the training loss: the best name, unless it is recorded too seldom.
fn series_of(launch: &LaunchEvidence) -> &[(Step, f64)] {
    let longest = launch.losses.values().map(Vec::len).max().unwrap_or(0);
    let best =
        launch.losses.iter().max_by_key(|(name, values)| (2 * values.len() >= longest, loss_rank(name)));
    best.map_or(&[], |(_, values)| values)
}

/// What the recorded loss is divided by to be a mean: the terms of a sum, where it is one.
fn scale_of(series: &[(Step, f64)], function: Option<&LossFunction>) -> f64 {
    let Some(((_, first), function)) = series.first().zip(function) else { return 1.0 };
    let (Some(mean), terms) = (function.first_value, function.terms.max(1) as f64) else { return 1.0 };
    let is_sum = (first - mean * terms).abs() <= SAME_LOSS_SHARE * first.abs();
    if terms > 1.0 && is_sum { terms } else { 1.0 }
}

/// Means over each pass; the last ones of an unfinished pass are left out, unless there is no other.
fn passes(series: &[(Step, f64)], batch_count: usize, scale: f64) -> Vec<f64> {
    let size = batch_count.min(series.len()).max(1);
    let mean = |pass: &[(Step, f64)]| pass.iter().map(|(_, loss)| loss / scale).sum::<f64>() / size as f64;
    series.chunks_exact(size).map(mean).collect()
}

/// The loss of the best constant answer, where it is known and about the same loss.
fn baseline_of(
    function: Option<&LossFunction>,
    first: f64,
    series: &[(Step, f64)],
    scale: f64,
) -> Option<f64> {
    let function = function?;
    let begins = series.first()?.1 / scale;
    let own = function.first_value?;
    let same = (begins - own).abs() <= SAME_LOSS_SHARE * own.abs().max(BASELINE_MIN);
    let best = function.labels.best_constant_loss.filter(|loss| *loss > BASELINE_MIN)?;
    // A model that begins below it, such as a pretrained one, must still get better.
    same.then_some(best.min(first.max(BASELINE_MIN)))
}
