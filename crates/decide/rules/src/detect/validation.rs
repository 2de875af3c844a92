//! Validation that parts from training.
//!
//! It fires when the validation loss is above its best by the ratio, by three times its own noise from one evaluation
//! to the next, and while the training loss kept falling, three evaluations in a row: a small validation set alone does
//! not do that. The second sign needs no best: the validation loss is higher than an untrained model's while the
//! training loss has fallen by half, as when the two are not prepared alike.

use trackway_core::detect::DetectionSeverity::Warn;

use super::anomaly::{DetectorChange, Sample, number};
use super::rules::Rule;
use super::series::streak::Streak;
use super::series::window::Window;

/// Noise by which a validation loss must be above its best.
const NOISE_FACTOR: f64 = 3.0;
/// A rise must be at least this fraction of the loss at the beginning: of next to nothing, a tenth is nothing.
const INITIAL_SHARE: f64 = 0.05;
/// Evaluations before anything is reported.
const START: usize = 3;
/// The training loss must have fallen to this fraction of the first one before validation is compared with an untrained
/// model.
const LEARNED_SHARE: f64 = 0.7;
/// A validation loss is worse than an untrained model's from this many times it on.
const UNTRAINED_FACTOR: f64 = 1.5;
/// The same while little is learned yet.
const FAR_FACTOR: f64 = 5.0;
/// Evaluations in a row after which it is over.
const CALM: u32 = 2;

#[derive(Debug, Clone, Default)]
pub(super) struct Validation {
    /// Differences from one evaluation to the next.
    noise: Window,
    last: Option<f64>,
    best: Option<BestLoss>,
    streak: Streak,
}

#[derive(Debug, Clone, Copy)]
struct BestLoss {
    loss: f64,
    step: u64,
    training: Option<f64>,
}

impl Validation {
    /// Takes a finite validation loss. `training` is the usual training loss now, `untrained` the one at the beginning.
    pub(super) fn take(
        &mut self,
        rule: Rule,
        sample: Sample,
        training: Option<f64>,
        untrained: Option<f64>,
    ) -> Option<DetectorChange> {
        let best = *self.best.get_or_insert(BestLoss { loss: sample.value, step: sample.step, training });
        let noise = self.noise.sigma();
        if let Some(last) = self.last.replace(sample.value) {
            self.noise.push(sample.value - last);
        }
        if sample.value < best.loss {
            self.best = Some(BestLoss { loss: sample.value, step: sample.step, training });
        }
        let rise = sample.value - best.loss;
        let apart = self.noise.len() >= START
            && rise > (rule.threshold - 1.0) * best.loss.abs()
            && rise > NOISE_FACTOR * noise
            && rise > INITIAL_SHARE * untrained.unwrap_or(0.0).abs()
            && training.zip(best.training).is_some_and(|(now, then)| now < then);
        let untrained = training.zip(untrained).filter(|(training, untrained)| {
            let learned = *training < LEARNED_SHARE * untrained;
            sample.value > if learned { UNTRAINED_FACTOR } else { FAR_FACTOR } * untrained
        });
        let turn = self.streak.take(apart || untrained.is_some(), sample.step, rule.patience, CALM);
        turn.change(Warn, Some(sample.value / best.loss), rule.threshold, || {
            let (now, training) = (number(sample.value), training.map_or("unknown".into(), number));
            match untrained {
                Some((_, begin)) => format!(
                    "the validation loss is {now}; the training loss is {training}, and was {} on average at its beginning",
                    number(begin)
                ),
                None => format!(
                    "the validation loss is {now}, its best was {} at step {}; the training loss is {training}",
                    number(best.loss),
                    best.step
                ),
            }
        })
    }
}
