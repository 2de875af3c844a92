//! From states and activations to a peak: the worst phase of a step, on the worst rank.

use serde::Serialize;

use super::activations::{Activations, dequantised_layer_bytes, key_value_cache};
use super::calibration::{Calibration, Counter};
use super::device::CONTEXT_BYTES;
use super::spec::{Master, MemorySpec, Precision, Recompute, Step};
use super::states::{Copies, Share, Stage, States};

/// The rule of thumb: 40 GB of device memory for a billion parameters in training.
pub const RULE_OF_THUMB_BYTES_PER_PARAMETER: u64 = 40;
/// What an allocator holds beyond tensors, as a share of what comes and goes in a step: blocks that fit nothing.
const FRAGMENTATION: f64 = 0.25;
/// The same where it can grow and shrink what it holds.
const FRAGMENTATION_EXPANDABLE: f64 = 0.07;
/// Buffers of the library that moves data between devices, outside the allocator.
const COLLECTIVE_BYTES: f64 = 512.0 * 1_048_576.0;
/// Layers whose activations are on the device when they are kept on the host: one in use, one on its way.
const LAYERS_ON_THEIR_WAY: f64 = 2.0;

/// Device memory by what it is for, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Parts {
    /// Weights, where they stay.
    pub parameters: u64,
    /// Gradients, where they stay. They may not exist yet when a step is at its peak.
    pub gradients: u64,
    /// The optimizer's states.
    pub optimizer: u64,
    /// 32-bit copies of 16-bit weights.
    pub master_weights: u64,
    /// What the forward pass keeps, and what the backward pass of a layer adds.
    pub activations: u64,
    /// Logits, and what the loss makes of them.
    pub logits: u64,
    /// Keys and values of texts that are generated.
    pub kv_cache: u64,
    /// Weights gathered or cast, gradients in buckets, temporaries of the optimizer.
    pub copies: u64,
    /// The device's context, buffers of collectives, holes in the allocator's blocks.
    pub overhead: u64,
}

impl Parts {
    /// The parts by name, in the order in which they are shown.
    #[must_use]
    pub fn named(&self) -> [(&'static str, u64); 9] {
        [
            ("parameters", self.parameters),
            ("gradients", self.gradients),
            ("optimizer", self.optimizer),
            ("master_weights", self.master_weights),
            ("activations", self.activations),
            ("logits", self.logits),
            ("kv_cache", self.kv_cache),
            ("copies", self.copies),
            ("overhead", self.overhead),
        ]
    }

    /// What is counted from the spec: it is nearly exact.
    #[must_use]
    pub fn counted(&self) -> u64 {
        self.parameters + self.gradients + self.optimizer + self.master_weights
    }

    /// What depends on the code that runs.
    #[must_use]
    pub fn modelled(&self) -> u64 {
        self.activations + self.logits + self.kv_cache + self.copies
    }

    /// All of them together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.named().iter().map(|(_, bytes)| bytes).sum()
    }
}

/// A moment of a step that may be the one that needs most.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Phase {
    /// `loss`, `backward`, `backward_end`, `step` or `generation`.
    pub name: &'static str,
    /// What the device holds then, in bytes.
    pub total_bytes: u64,
}

/// What is expected of one rank: the one that needs most.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryEstimate {
    /// At the peak of a step, in bytes.
    pub total_bytes: u64,
    /// The lower end of the interval.
    pub low_bytes: u64,
    /// The upper end of the interval.
    pub high_bytes: u64,
    /// What the framework's allocator should have taken from the device by then (`max_memory_reserved`), in bytes.
    pub reserved_bytes: u64,
    /// What tensors should hold by then (`max_memory_allocated`), in bytes.
    pub allocated_bytes: u64,
    /// What 40 GB for a billion parameters gives for the whole model on one device, whatever is trained how.
    pub rule_of_thumb_bytes: u64,
    /// The peak by what it is for.
    pub parts: Parts,
    /// The phases of a step. The peak is the largest.
    pub phases: Vec<Phase>,
    /// The name of the largest.
    pub peak_phase: &'static str,
    /// Where in the pipeline the rank stands that needs most: `only`, `first` or `last`.
    pub rank: &'static str,
    /// Parameters of the model.
    pub parameter_count: u64,
    /// Of them, those that work on one token.
    pub active_parameter_count: u64,
    /// Parameters that are trained.
    pub trained_parameter_count: u64,
    /// What each rank keeps in its host's memory, in bytes.
    pub host_bytes: u64,
    /// The shape of the model was guessed from its parameter count.
    pub shape_guessed: bool,
    /// By how much a measured peak corrected what is modelled; `None`: nothing was measured.
    pub correction: Option<f64>,
}

impl MemoryEstimate {
    /// What a counter should show at the peak.
    #[must_use]
    pub fn counted_by(&self, counter: Counter) -> u64 {
        match counter {
            Counter::Allocated => self.allocated_bytes,
            Counter::Reserved => self.reserved_bytes,
            Counter::Device => self.total_bytes,
        }
    }
}

/// Estimates the peak of one rank.
#[must_use]
pub fn estimate(spec: &MemorySpec) -> MemoryEstimate {
    estimate_corrected(spec, None)
}

/// Estimates the peak of one rank, corrected by what a run of the same code was measured to need.
#[must_use]
pub fn estimate_corrected(spec: &MemorySpec, calibration: Option<Calibration>) -> MemoryEstimate {
    let only = Stage { first: true, last: true };
    let ends = [("first", Stage { first: true, last: false }), ("last", Stage { first: false, last: true })];
    let ranks = if spec.parallel.pipeline > 1 { &ends[..] } else { &[("only", only)] };
    let mut worst: Option<MemoryEstimate> = None;
    for (rank, stage) in ranks {
        let found = Account::of(spec, *stage, calibration).estimate(rank);
        if worst.as_ref().is_none_or(|worst| found.total_bytes > worst.total_bytes) {
            worst = Some(found);
        }
    }
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

/// Bytes at one moment, beside the states that are always there.
#[derive(Debug, Clone, Copy, Default)]
struct Moment {
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
    /// they are set to zero instead of dropped. Those who keep 32-bit copies (Megatron, DeepSpeed) keep gradients in buffers.
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

    fn moments(&self) -> Vec<(&'static str, Moment)> {
        let (copies, standing) = (self.copies, self.standing_gradients());
        let during = copies.weights + copies.buckets;
        let one_layer =
            if self.spec.recompute == Recompute::None { self.activations.kept_by_layer } else { 0.0 };
        let mut moments = vec![
            (
                "loss",
                Moment {
                    gradients: standing,
                    activations: self.kept,
                    logits: self.logits,
                    copies: during,
                    kv_cache: 0.0,
                },
            ),
            (
                "backward",
                Moment {
                    gradients: standing,
                    activations: self.kept + self.layer_backward(),
                    copies: during + copies.head_gradients,
                    ..Moment::default()
                },
            ),
            (
                "backward_end",
                Moment {
                    gradients: self.states.gradients,
                    activations: one_layer + self.layer_backward(),
                    copies: during + copies.layer_gradients,
                    ..Moment::default()
                },
            ),
            (
                "step",
                Moment {
                    gradients: self.states.gradients,
                    copies: copies.buckets + copies.step,
                    ..Moment::default()
                },
            ),
        ];
        if self.spec.generation.is_some() {
            let kv_cache = key_value_cache(self.spec);
            moments.push(("generation", Moment { kv_cache, copies: copies.weights, ..Moment::default() }));
        }
        moments
    }

    /// Holes in the allocator's blocks: a share of what comes and goes.
    fn fragmentation(&self, moment: &Moment) -> f64 {
        let share = if self.spec.expandable_segments { FRAGMENTATION_EXPANDABLE } else { FRAGMENTATION };
        share * (moment.activations + moment.logits + moment.copies)
    }

    /// What is on the device beside the framework's allocator.
    fn outside(&self) -> f64 {
        CONTEXT_BYTES + if self.spec.parallel.devices() > 1 { COLLECTIVE_BYTES } else { 0.0 }
    }

    fn parts(&self, moment: &Moment) -> Parts {
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

    fn estimate(&self, rank: &'static str) -> MemoryEstimate {
        let all: Vec<(&'static str, Parts)> =
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
            phases: all.iter().map(|(name, parts)| Phase { name, total_bytes: parts.total() }).collect(),
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
