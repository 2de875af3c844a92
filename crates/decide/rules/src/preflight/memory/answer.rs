//! The estimate for one rank: a peak, by its parts, and as each counter would show it.

use serde::{Deserialize, Serialize};
use trackway_core::closed_list;

closed_list!(
    /// What a measured peak counts.
    Counter, "counter", {
        /// Bytes in tensors (`torch.cuda.max_memory_allocated`).
        Allocated = "allocated",
        /// Bytes that the framework's allocator took from the device (`torch.cuda.max_memory_reserved`).
        Reserved = "reserved",
        /// Bytes in use according to the driver (`nvidia-smi`, NVML).
        Device = "device",
    }
);

/// Device memory by what it is for, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "MemoryParts")]
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
    /// Logits, and the intermediate values of the loss.
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

closed_list!(
    /// A part of a step whose memory is estimated.
    PhaseName, "phase", {
        /// The loss is computed.
        Loss = "loss",
        /// The backward pass begins.
        Backward = "backward",
        /// The backward pass ends.
        BackwardEnd = "backward_end",
        /// The optimizer updates the parameters.
        Step = "step",
        /// Texts are generated.
        Generation = "generation",
    }
);

closed_list!(
    /// A rank by its place in the pipeline.
    PipelineRank, "rank of a pipeline", {
        /// The only stage: the model is not split into a pipeline.
        Only = "only",
        /// The first stage.
        First = "first",
        /// The last stage.
        Last = "last",
    }
);

/// A phase of a step that may be the one that needs most.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "MemoryPhase")]
pub struct Phase {
    pub name: PhaseName,
    /// What the device holds then, in bytes.
    pub total_bytes: u64,
}

/// What is expected of one rank: the one that needs most.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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
    pub peak_phase: PhaseName,
    /// The rank of the pipeline that needs most.
    pub rank: PipelineRank,
    /// Parameters of the model.
    pub parameter_count: u64,
    /// Of them, those that work on one token.
    pub active_parameter_count: u64,
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
