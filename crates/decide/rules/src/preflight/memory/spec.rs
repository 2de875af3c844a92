use serde::{Deserialize, Serialize};
use trackway_core::closed_list;
pub use trackway_formats::runfile::training::{Attention, Loss, Master, Optimizer, Precision, Recompute};

use super::architecture::{Architecture, Targets};

closed_list!(
    /// How the optimizer's step is done.
    Step, "way to do the optimizer's step", {
        /// In place, a parameter after the other or all in one kernel.
        Fused = "fused",
        /// By lists of tensors, with a list of temporaries as large as the trained parameters (PyTorch's `foreach`).
        Foreach = "foreach",
        /// During the backward pass: each gradient is used and dropped at once. It rules accumulation out.
        InBackward = "in-backward",
    }
);

closed_list!(
    /// What is kept in the host's memory.
    Offload, "offload", {
        /// Nothing.
        None = "none",
        /// The optimizer's states and master weights (also: paged optimizers).
        Optimizer = "optimizer",
        /// The parameters too.
        Parameters = "parameters",
    }
);

closed_list!(
    /// In what the frozen base of adapters is held.
    Base, "type of a frozen base", {
        /// According to the precision.
        Plain = "plain",
        /// 8 bits each, a scale for each row (LLM.int8).
        Int8 = "int8",
        /// 4 bits each, a 32-bit scale for 64 (QLoRA).
        Nf4 = "nf4",
        /// The same, the scales in 8 bits (QLoRA's double quantisation).
        Nf4Double = "nf4-double",
    }
);

/// Low-rank adapters on a frozen base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Adapters {
    pub rank: u64,
    /// Where they are.
    pub targets: Targets,
    /// The weights that they adapt.
    pub base: Base,
}

/// Texts that are generated between steps (evaluation, reinforcement learning).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Generation {
    /// Texts at a time.
    pub batch: u64,
    /// Tokens of one, prompt included.
    pub sequence: u64,
}

/// Over how many devices what is split. The product of data, tensor, pipeline and context is the device count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Parallel {
    /// Ranks that see different samples.
    pub data: u64,
    /// ZeRO stage over the data ranks: 0 copies everything (DDP), 1 shards optimizer states, 2 gradients too, 3
    /// parameters too (FSDP).
    pub zero: u8,
    /// Ranks that split each matrix.
    pub tensor: u64,
    /// What tensor ranks do not split by matrices they split by tokens.
    pub sequence: bool,
    /// Ranks with consecutive layers.
    pub pipeline: u64,
    /// Micro-batches of a step that go through the pipeline.
    pub pipeline_micro_batches: u64,
    /// Ranks that split the tokens of each sample.
    pub context: u64,
}

impl Parallel {
    /// One device.
    pub const ONE: Self = Self {
        data: 1,
        zero: 0,
        tensor: 1,
        sequence: false,
        pipeline: 1,
        pipeline_micro_batches: 1,
        context: 1,
    };

    /// Devices in all.
    #[must_use]
    pub fn devices(self) -> u64 {
        self.data.saturating_mul(self.tensor).saturating_mul(self.pipeline).saturating_mul(self.context)
    }

    /// Ranks that ZeRO shards over: FSDP folds the context ranks in.
    #[must_use]
    pub fn shards(self) -> u64 {
        self.data.saturating_mul(self.context)
    }
}

/// What a training run would put on a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MemorySpec {
    pub model: Architecture,
    /// Tokens of a sample.
    pub sequence: u64,
    /// Tokens of a sample on the decoder's side of an encoder–decoder model; the same when absent.
    pub target_sequence: Option<u64>,
    /// Samples that one device works on at a time.
    pub micro_batch: u64,
    /// Micro-batches whose gradients are added up before a step.
    pub accumulate: u64,
    /// Gradients are set to zero instead of dropped (PyTorch before 2.0). With 32-bit copies they are always in
    /// buffers.
    pub keep_gradients: bool,
    /// The type of the matrix products.
    pub precision: Precision,
    /// Where 32-bit weights are; without meaning in fp32.
    pub master: Master,
    /// The type of gradients; by default that of the weights they belong to.
    pub gradients: Option<Precision>,
    /// What turns gradients into updates.
    pub optimizer: Optimizer,
    pub step: Step,
    /// What is computed twice.
    pub recompute: Recompute,
    /// How attention is computed.
    pub attention: Attention,
    /// How the loss is computed.
    pub loss: Loss,
    /// Layers are compiled: element-wise work is fused and its inputs are not kept.
    pub compiled: bool,
    /// Over what the run is spread.
    pub parallel: Parallel,
    /// Low-rank adapters; `None`: every parameter is trained.
    pub adapters: Option<Adapters>,
    /// What is kept in the host's memory.
    pub offload: Offload,
    /// Activations that are kept are in the host's memory.
    pub offload_activations: bool,
    /// The allocator may grow what it holds (`expandable_segments:True`), which leaves few holes.
    pub expandable_segments: bool,
    /// Texts generated between steps.
    pub generation: Option<Generation>,
}

impl MemorySpec {
    /// A plain run on one device: one sample of 2048 tokens, bf16 with a 32-bit copy, fused AdamW, flash attention.
    #[must_use]
    pub fn new(model: Architecture) -> Self {
        Self {
            model,
            sequence: 2048,
            target_sequence: None,
            micro_batch: 1,
            accumulate: 1,
            keep_gradients: false,
            precision: Precision::Bf16,
            master: Master::Copy,
            gradients: None,
            optimizer: Optimizer::Adamw,
            step: Step::Fused,
            recompute: Recompute::None,
            attention: Attention::Flash,
            loss: Loss::Eager,
            compiled: false,
            parallel: Parallel::ONE,
            adapters: None,
            offload: Offload::None,
            offload_activations: false,
            expandable_segments: false,
            generation: None,
        }
    }
}
