//! What is known of one rank, over all of its metrics.

use std::collections::VecDeque;

use trackway_core::Step;

use super::anomaly::{Sample, number};
use super::machine::hang::Hang;
use super::machine::pace::{Drop, Starvation};

/// A rate that rises by more within a step is worth naming as a cause.
const RATE_ROSE_FACTOR: f64 = 2.0;
/// For how many steps a rise is a likely cause.
const RATE_ROSE_STEPS: Step = 50;
/// Batches whose digests are remembered.
const DIGESTS_MAX: usize = 64;
/// A loss below this fraction of the first one leaves next to no gradient.
const LEARNED_SHARE: f64 = 0.01;

#[derive(Debug, Clone, Default)]
pub(super) struct Rank {
    pub rank: u32,
    /// The main training loss: how likely its name is, and which metric it is.
    pub main_loss: Option<(u8, u32)>,
    pub loss_usual: Option<f64>,
    pub loss_initial: Option<f64>,
    pub loss_mean: Option<f64>,
    pub loss_initial_mean: Option<f64>,
    /// A loss scale is recorded: overflows are part of the method.
    pub scaled: bool,
    /// Durations come as such; speeds are not looked at as well.
    pub has_step_seconds: bool,
    pub hang: Hang,
    pub starvation: Starvation,
    pub drop: Drop,
    /// The digests of the last batches, by step.
    digests: VecDeque<(Step, u64)>,
    learning_rate: Option<f64>,
    rate_rose: Option<(Step, f64)>,
    pub gradient_norm: Option<f64>,
    pub loss_scale: Option<f64>,
}

impl Rank {
    pub(super) fn new(rank: u32) -> Self {
        Self { rank, ..Self::default() }
    }

    /// Whether the loss is next to nothing.
    pub(super) fn learned(&self) -> bool {
        self.loss_usual.zip(self.loss_initial).is_some_and(|(usual, initial)| usual < LEARNED_SHARE * initial)
    }

    /// Whether an overflow of gradients is part of the method; before the second step this is unknown.
    pub(super) fn may_overflow(&self) -> bool {
        self.scaled || !self.hang.has_stepped()
    }

    /// The last learning rate, where it is one to divide by.
    pub(super) fn rate(&self) -> Option<f64> {
        self.learning_rate.filter(|rate| *rate > 0.0 && rate.is_finite())
    }

    pub(super) fn learning_rate(&mut self, sample: Sample) {
        if let Some(last) = self.learning_rate.replace(sample.value)
            && last > 0.0
            && sample.value > RATE_ROSE_FACTOR * last
        {
            self.rate_rose = Some((sample.step, sample.value / last));
        }
    }

    /// Takes the digest of a batch: a whole number.
    pub(super) fn batch_digest(&mut self, sample: Sample) {
        if self.digests.len() == DIGESTS_MAX {
            self.digests.pop_front();
        }
        self.digests.push_back((sample.step, sample.value as u64));
    }

    /// Whether the last two batches were the same.
    pub(super) fn repeats_its_batch(&self) -> bool {
        let mut newest = self.digests.iter().rev().map(|(_, digest)| digest);
        newest.next().is_some_and(|last| newest.next() == Some(last))
    }

    /// The digest of the batch of a step that is not long ago.
    pub(super) fn digest_of(&self, step: Step) -> Option<u64> {
        self.digests.iter().find(|(known, _)| *known == step).map(|(_, digest)| *digest)
    }

    /// Whether the model as a whole has a gradient.
    pub(super) fn has_gradient(&self) -> bool {
        self.gradient_norm.is_some_and(|norm| norm > 0.0)
    }

    /// What else was recorded last, for the evidence of what goes wrong in the numbers.
    pub(super) fn beside(&self) -> String {
        let facts = [
            ("learning rate", self.learning_rate),
            ("gradient norm", self.gradient_norm),
            ("loss scale", self.loss_scale),
        ];
        let known: Vec<String> = facts
            .iter()
            .filter_map(|(name, value)| value.map(|value| format!("{name} {}", number(value))))
            .collect();
        if known.is_empty() { String::new() } else { format!("; also: {}", known.join(", ")) }
    }

    /// A cause that the numbers themselves show.
    pub(super) fn reported_cause(&self, step: Step) -> Option<String> {
        let (rose_at, factor) =
            self.rate_rose.filter(|(rose_at, _)| step.saturating_sub(*rose_at) <= RATE_ROSE_STEPS)?;
        Some(format!("the learning rate rose {}-fold at step {rose_at}", number(factor)))
    }

    /// Another training: what is known of its metrics is which ones there are.
    pub(super) fn forget(&mut self) {
        let Self { rank, main_loss, scaled, has_step_seconds, .. } = *self;
        *self = Self { rank, main_loss, scaled, has_step_seconds, ..Self::default() };
    }

    /// A new process took the rank's place: its behaviour is measured again, that of the model is kept.
    pub(super) fn begins_again(&mut self) {
        (self.hang, self.starvation, self.drop) = (Hang::default(), Starvation::default(), Drop::default());
    }
}
