//! One metric of one rank, with the detectors that look at it.

use trackway_core::detect::{Detector, Detector as D};
use trackway_formats::record::{PROGRESSIVE_LOSS, is_rounded_zero};

use super::anomaly::{DetectorChange, Sample};
use super::batches::dead_input::{DeadInput, Repeated};
use super::gradient::GradientWatch;
use super::learning_rate::{LearningRateWatch, UpdateRatio};
use super::loss::LossWatch;
use super::loss_scale::LossScale;
use super::machine::memory::MemoryCreep;
use super::machine::pace::Each;
use super::non_finite::{NonFinite, Subject};
use super::plateau::Plateau;
use super::rank::Rank;
use super::role::Role;
use super::rules::{Rule, Rules};
use super::validation::Validation;
use crate::curves::began_again::BeganAgain;
use crate::curves::loss_level::falls_while_learning;

/// What a value is, if it is a loss.
#[derive(Debug, Clone, Copy)]
pub(super) struct LossKind {
    /// It is the main training loss of its rank.
    pub is_main: bool,
    /// It falls while the model learns.
    pub falls: bool,
}

/// What the detectors of a metric changed, as few of them do.
pub(super) type Changes = Vec<(Detector, DetectorChange)>;

#[derive(Debug)]
pub(super) struct MetricDetectors {
    pub role: Role,
    pub metric: Box<str>,
    /// The index of its rank in the list of ranks.
    pub place: usize,
    /// Its values are losses of batches from before they are trained on.
    pub is_progressive: bool,
    /// Whether another training of the script began with its last value.
    pub again: BeganAgain,
    non_finite: NonFinite,
    state: State,
}

/// The state that a role needs.
#[derive(Debug)]
enum State {
    Loss(Box<(LossWatch, Plateau, DeadInput)>),
    Validation(Box<Validation>),
    Gradient(Box<GradientWatch>),
    LearningRate(LearningRateWatch),
    UpdateRatio(Box<UpdateRatio>),
    LossScale(Box<LossScale>),
    Digest(DeadInput),
    Memory(MemoryCreep),
    /// No state here: the rank keeps it.
    None,
}

/// The rules, and what the detectors that are on changed.
struct DetectorCalls<'r> {
    rules: &'r Rules,
    changes: Changes,
}

impl DetectorCalls<'_> {
    /// Calls a detector that is not off.
    fn on(&mut self, detector: Detector, ask: impl FnOnce(Rule) -> Option<DetectorChange>) {
        let rule = self.rules.of(detector);
        if rule.enabled {
            self.changes.extend(ask(rule).map(|change| (detector, change)));
        }
    }

    fn main_loss(
        &mut self,
        (loss, plateau, dead): &mut (LossWatch, Plateau, DeadInput),
        sample: Sample,
        rank: &mut Rank,
        falls: bool,
    ) {
        let (spike, shift) = (self.rules.of(D::LossSpike), self.rules.of(D::LossShift));
        let [spiked, shifted] = loss.take(spike, shift, sample);
        if falls {
            self.on(D::LossSpike, |_| spiked);
            self.on(D::LossShift, |_| shifted);
            self.on(D::Plateau, |rule| plateau.take(rule, sample));
        }
        self.on(D::DeadInput, |rule| dead.take(rule, sample, Repeated::Loss));
        (rank.loss_usual, rank.loss_initial) = (loss.level.usual(), loss.level.initial());
        (rank.loss_mean, rank.loss_initial_mean) = (Some(loss.mean), Some(loss.initial_mean));
    }

    fn gradient(&mut self, state: &mut GradientWatch, sample: Sample, rank: &Rank) {
        let (explosion, vanishing) =
            (self.rules.of(D::GradientExplosion), self.rules.of(D::GradientVanishing));
        // A part without any gradient, while others have one, is odd at any loss.
        let cut_off = sample.value == 0.0 && rank.has_gradient();
        let learned = rank.learned() && !cut_off;
        let [exploded, vanished] = state.take(explosion, vanishing, sample, learned);
        self.on(D::GradientExplosion, |_| exploded);
        self.on(D::GradientVanishing, |_| vanished);
    }
}

impl MetricDetectors {
    pub(super) fn new(role: Role, metric: &str, place: usize) -> Self {
        let state = match role {
            Role::Loss(_) => State::Loss(Box::default()),
            Role::ValidationLoss => State::Validation(Box::default()),
            Role::GradientNorm | Role::PartGradientNorm => State::Gradient(Box::default()),
            Role::LearningRate => State::LearningRate(LearningRateWatch::default()),
            Role::UpdateRatio => State::UpdateRatio(Box::default()),
            Role::LossScale => State::LossScale(Box::default()),
            Role::BatchDigest | Role::InputDigest => State::Digest(DeadInput::default()),
            Role::MemoryBytes => State::Memory(MemoryCreep::default()),
            _ => State::None,
        };
        let is_progressive = metric == PROGRESSIVE_LOSS;
        let (again, non_finite) = (BeganAgain::default(), NonFinite::default());
        Self { role, metric: metric.into(), place, is_progressive, again, non_finite, state }
    }

    /// Takes a value.
    pub(super) fn take(
        &mut self,
        rules: &Rules,
        sample: Sample,
        rank: &mut Rank,
        loss: LossKind,
        memory_limit_bytes: Option<f64>,
    ) -> Changes {
        let mut calls = DetectorCalls { rules, changes: Changes::new() };
        calls.on(D::NonFinite, |rule| self.non_finite(rule, sample, rank, loss.is_main));
        if sample.value.is_finite() {
            self.finite(&mut calls, sample, rank, loss, memory_limit_bytes);
        }
        calls.changes
    }

    fn non_finite(&mut self, rule: Rule, sample: Sample, rank: &Rank, main: bool) -> Option<DetectorChange> {
        let of_gradient =
            matches!(self.role, Role::GradientNorm | Role::PartGradientNorm | Role::NonfiniteGradients);
        let judged = of_gradient
            || matches!(
                self.role,
                Role::Loss(_) | Role::ValidationLoss | Role::Norm | Role::UpdateRatio | Role::LearningRate
            );
        if !judged {
            return None;
        }
        let subject = Subject {
            is_count: self.role == Role::NonfiniteGradients,
            may_overflow: of_gradient && rank.may_overflow(),
            is_training_loss: main,
        };
        self.non_finite.take(rule, sample, &self.metric, subject)
    }

    fn finite(
        &mut self,
        calls: &mut DetectorCalls<'_>,
        sample: Sample,
        rank: &mut Rank,
        loss: LossKind,
        memory_limit_bytes: Option<f64>,
    ) {
        match (&mut self.state, self.role) {
            // What was printed says only that it is small.
            (State::Gradient(_) | State::LearningRate(_) | State::UpdateRatio(_), _)
                if is_rounded_zero(sample.value) => {}
            (State::Loss(state), _) if loss.is_main => calls.main_loss(state, sample, rank, loss.falls),
            // `value_loss` is that of a critic.
            (State::Validation(state), _) if loss.falls && falls_while_learning(&self.metric) => {
                let (mean, initial) = (rank.loss_mean, rank.loss_initial_mean);
                calls.on(D::ValidationDivergence, |rule| state.take(rule, sample, mean, initial));
            }
            (State::Gradient(state), role) => {
                if role == Role::GradientNorm {
                    rank.gradient_norm = Some(sample.value);
                }
                calls.gradient(state, sample, rank);
            }
            (State::LearningRate(state), _) => {
                rank.learning_rate(sample);
                calls.on(D::LearningRate, |rule| state.take(rule, sample));
            }
            (State::UpdateRatio(state), _) => {
                let rate = rank.rate();
                calls.on(D::LearningRate, |rule| state.take(rule, sample, rate));
            }
            (State::LossScale(state), _) => {
                rank.loss_scale = Some(sample.value);
                calls.on(D::LossScaleCollapse, |rule| state.take(rule, sample));
            }
            // Batches that are the same as a whole are reported by the digest of the whole batch.
            (State::Digest(_), Role::InputDigest) if rank.repeats_its_batch() => {}
            (State::Digest(state), Role::InputDigest) => {
                calls.on(D::DeadInput, |rule| state.take(rule, sample, Repeated::Inputs));
            }
            (State::Digest(state), _) => {
                rank.batch_digest(sample);
                calls.on(D::DeadInput, |rule| state.take(rule, sample, Repeated::Digest));
            }
            (State::Memory(state), _) => {
                calls.on(D::MemoryCreep, |rule| state.take(rule, sample, memory_limit_bytes));
            }
            (_, Role::BatchWaitSeconds) => {
                calls.on(D::DataStarvation, |rule| rank.starvation.wait(rule, sample));
            }
            (_, Role::StepSeconds) => {
                calls.on(D::ThroughputDrop, |rule| rank.drop.take(rule, sample, Each::Step));
                calls.on(D::DataStarvation, |rule| rank.starvation.step(rule, sample));
            }
            (_, Role::SamplesPerSecond) if !rank.has_step_seconds && sample.value > 0.0 => {
                let each = Sample { value: 1.0 / sample.value, ..sample };
                calls.on(D::ThroughputDrop, |rule| rank.drop.take(rule, each, Each::Sample));
            }
            _ => {}
        }
    }

    /// A new process writes the metric.
    pub(super) fn begins_again(&mut self) {
        match &mut self.state {
            State::Memory(state) => *state = MemoryCreep::default(),
            State::UpdateRatio(state) => state.begins_again(),
            _ => {}
        }
    }
}
