//! From states and activations to a peak: the worst phase of a step, on the worst rank.

use super::activations::{Activations, dequantised_layer_bytes, key_value_cache};
use super::answer::{MemoryEstimate, Parts, Phase, PhaseName, PipelineRank};
use super::calibration::Calibration;
use super::device::CONTEXT_BYTES;
use super::spec::{Master, MemorySpec, Precision, Recompute, Step};
use super::states::{Copies, Share, Stage, States};

/// The rule of thumb: 40 GB of device memory for a billion parameters in training.
pub const RULE_OF_THUMB_BYTES_PER_PARAMETER: u64 = 40;
/// What an allocator holds beyond tensors, as a fraction of what comes and goes in a step: blocks that fit nothing.
const FRAGMENTATION: f64 = 0.25;
/// The same where it can grow and shrink what it holds.
const FRAGMENTATION_EXPANDABLE: f64 = 0.07;
/// Buffers of the library that moves data between devices, outside the allocator.
const COLLECTIVE_BYTES: f64 = 512.0 * 1_048_576.0;
/// Layers whose activations are on the device when they are kept on the host: one in use, one on its way.
const LAYERS_ON_THEIR_WAY: f64 = 2.0;

/// Estimates the peak of one rank.
#[must_use]
pub fn estimate(spec: &MemorySpec) -> MemoryEstimate {
    estimate_corrected(spec, None)
}

/// Estimates the peak of one rank, corrected by what a run of the same code was measured to need.
#[must_use]
pub fn estimate_corrected(spec: &MemorySpec, calibration: Option<Calibration>) -> MemoryEstimate {
    let only = Stage { first: true, last: true };
    let ends = [
        (PipelineRank::First, Stage { first: true, last: false }),
        (PipelineRank::Last, Stage { first: false, last: true }),
    ];
    let ranks = if spec.parallel.pipeline > 1 { &ends[..] } else { &[(PipelineRank::Only, only)] };
    let found = ranks.iter().map(|(rank, stage)| Account::of(spec, *stage, calibration).estimate(*rank));
    let worst =
        found.reduce(|worst, other| if other.total_bytes > worst.total_bytes { other } else { worst });
    worst.expect("there is at least one rank")
}

/// Everything a rank may hold, before it is decided what exists when.
struct Account<'a> {
    spec: &'a MemorySpec,
    calibration: Option<Calibration>,
    states: States,
    copies: Copies,
    activations: Activations,
    /// Kept activations of all layers and all micro-batches under way.
    kept: f64,
    logits: f64,
}

/// Bytes at one time, beside the states that are always there.
#[derive(Debug, Clone, Copy, Default)]
struct TransientBytes {
    gradients: f64,
    activations: f64,
    logits: f64,
    kv_cache: f64,
    copies: f64,
}

impl<'a> Account<'a> {
    fn of(spec: &'a MemorySpec, stage: Stage, calibration: Option<Calibration>) -> Self {
        let share = Share::of(spec, stage);
        let activations = Activations::of(spec);
        // One forward, one backward (1F1B): the first of p stages has p micro-batches under way, the last has one.
        let under_way = spec.parallel.pipeline.min(spec.parallel.pipeline_micro_batches);
        let under_way = if stage.last { 1.0 } else { under_way as f64 };
        let layers = if spec.offload_activations {
            share.layers.min(LAYERS_ON_THEIR_WAY)
        } else {
            share.layers * under_way
        };
        Self {
            spec,
            calibration,
            states: States::of(spec, &share),
            copies: Copies::of(spec, &share),
            activations,
            kept: layers * activations.kept_by_layer,
            logits: if stage.last { activations.logits } else { 0.0 },
        }
    }

    /// Gradients are there before the backward pass of the last micro-batch when earlier ones were added up, or when
    /// they are set to zero instead of dropped. Frameworks that keep 32-bit copies (Megatron, DeepSpeed) keep gradients
    /// in buffers.
    fn standing_gradients(&self) -> f64 {
        let spec = self.spec;
        let copied = spec.master == Master::Copy && spec.precision != Precision::Fp32;
        let buffers = copied || spec.keep_gradients;
        let standing = buffers || spec.accumulate > 1 || spec.parallel.pipeline > 1;
        if standing && spec.step != Step::InBackward { self.states.gradients } else { 0.0 }
    }

    fn layer_backward(&self) -> f64 {
        let largest_matrix = self.spec.model.hidden as f64 * self.spec.model.feed_forward as f64;
        self.activations.layer_backward + dequantised_layer_bytes(self.spec, largest_matrix)
    }

    fn moments(&self) -> Vec<(PhaseName, TransientBytes)> {
        let (copies, standing) = (self.copies, self.standing_gradients());
        let during = copies.weights + copies.buckets;
        let one_layer =
            if self.spec.recompute == Recompute::None { self.activations.kept_by_layer } else { 0.0 };
        let none = TransientBytes::default();
        let loss = TransientBytes {
            gradients: standing,
            activations: self.kept,
            logits: self.logits,
            copies: during,
            ..none
        };
        let backward = TransientBytes {
            gradients: standing,
            activations: self.kept + self.layer_backward(),
            copies: during + copies.head_gradients,
            ..none
        };
        let backward_end = TransientBytes {
            gradients: self.states.gradients,
            activations: one_layer + self.layer_backward(),
            copies: during + copies.layer_gradients,
            ..none
        };
        let step = copies.buckets + copies.step;
        let mut moments = vec![
            (PhaseName::Loss, loss),
            (PhaseName::Backward, backward),
            (PhaseName::BackwardEnd, backward_end),
            (PhaseName::Step, TransientBytes { gradients: self.states.gradients, copies: step, ..none }),
        ];
        if self.spec.generation.is_some() {
            let kv_cache = key_value_cache(self.spec);
            moments
                .push((PhaseName::Generation, TransientBytes { kv_cache, copies: copies.weights, ..none }));
        }
        moments
    }

    /// Holes in the allocator's blocks: a fraction of what comes and goes.
    fn fragmentation(&self, moment: &TransientBytes) -> f64 {
        let share = if self.spec.expandable_segments { FRAGMENTATION_EXPANDABLE } else { FRAGMENTATION };
        share * (moment.activations + moment.logits + moment.copies)
    }

    /// What is on the device beside the framework's allocator.
    fn outside(&self) -> f64 {
        CONTEXT_BYTES + if self.spec.parallel.devices() > 1 { COLLECTIVE_BYTES } else { 0.0 }
    }

    fn parts(&self, moment: &TransientBytes) -> Parts {
        let correction = self.calibration.map_or(1.0, |calibration| calibration.factor);
        Parts {
            parameters: bytes(self.states.parameters),
            gradients: bytes(moment.gradients),
            optimizer: bytes(self.states.optimizer),
            master_weights: bytes(self.states.master_weights),
            activations: bytes(moment.activations * correction),
            logits: bytes(moment.logits * correction),
            kv_cache: bytes(moment.kv_cache),
            copies: bytes(moment.copies * correction),
            overhead: bytes(self.outside() + self.fragmentation(moment) * correction),
        }
    }

    fn estimate(&self, rank: PipelineRank) -> MemoryEstimate {
        let all: Vec<(PhaseName, Parts)> =
            self.moments().iter().map(|(name, moment)| (*name, self.parts(moment))).collect();
        let (peak_phase, parts) =
            *all.iter().max_by_key(|(_, parts)| parts.total()).expect("a step has phases");
        let (low_bytes, high_bytes) = super::interval::of(&parts, self.spec, self.calibration.is_some());
        let model = &self.spec.model;
        MemoryEstimate {
            total_bytes: parts.total(),
            low_bytes,
            high_bytes,
            reserved_bytes: parts.total() - bytes(self.outside()),
            allocated_bytes: parts.total() - parts.overhead,
            rule_of_thumb_bytes: model.parameters().saturating_mul(RULE_OF_THUMB_BYTES_PER_PARAMETER),
            parts,
            phases: all
                .iter()
                .map(|(name, parts)| Phase { name: *name, total_bytes: parts.total() })
                .collect(),
            peak_phase,
            rank,
            parameter_count: model.parameters(),
            active_parameter_count: model.active_parameters(),
            trained_parameter_count: self.spec.adapters.map_or_else(
                || model.parameters(),
                |adapters| model.adapter_parameters(adapters.rank, adapters.targets),
            ),
            host_bytes: bytes(self.states.host),
            shape_guessed: model.guessed(),
            correction: self.calibration.map(|calibration| calibration.factor),
        }
    }
}

fn bytes(value: f64) -> u64 {
    value.max(0.0).round() as u64
}
