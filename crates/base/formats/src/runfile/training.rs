//! What a training step does, in the words of run files and of estimates of memory.

use trackway_core::closed_list;

closed_list!(
    /// The type that the matrix products of a step work in.
    Precision, "precision", {
        /// 32-bit floats everywhere.
        Fp32 = "fp32",
        /// 16-bit brain floats.
        Bf16 = "bf16",
        /// 16-bit floats, with a loss scale.
        Fp16 = "fp16",
        /// 8-bit floats inside the products; what is kept between them is bf16.
        Fp8 = "fp8",
    }
);

impl Precision {
    /// Bytes of a number that is kept between two products.
    #[must_use]
    pub const fn bytes(self) -> f64 {
        match self {
            Self::Fp32 => 4.0,
            Self::Bf16 | Self::Fp16 | Self::Fp8 => 2.0,
        }
    }
}

closed_list!(
    /// How a run is spread over devices.
    Strategy, "strategy", {
        /// One device.
        Single = "single",
        /// Every device holds everything (DDP).
        DataParallel = "data_parallel",
        /// All states are sharded over the devices (FSDP, ZeRO 3).
        FullySharded = "fully_sharded",
        /// Some is kept in the host's memory (DeepSpeed offload).
        Offloaded = "offloaded",
    }
);

closed_list!(
    /// Where the 32-bit weights are that a 16-bit step needs for small updates not to be lost.
    Master, "way to keep master weights", {
        /// A 32-bit copy beside the 16-bit weights (Megatron, DeepSpeed, apex O2).
        Copy = "copy",
        /// The weights themselves are 32-bit; each use casts them (autocast, mixed precision of FSDP).
        Weights = "weights",
        /// There are none: weights, gradients and optimizer states are in the type of the step ("pure bf16").
        None = "none",
    }
);

closed_list!(
    /// What turns gradients into updates.
    Optimizer, "optimizer", {
        /// Two running means for each parameter.
        Adamw = "adamw",
        /// The same in 8 bits, a scale for each block (bitsandbytes, torchao).
        Adamw8bit = "adamw-8bit",
        /// Nothing is kept.
        Sgd = "sgd",
        /// One running mean.
        Momentum = "momentum",
        /// Second moments by row and column; no first moment.
        Adafactor = "adafactor",
        /// One running mean.
        Lion = "lion",
        /// One running mean of matrices; embeddings, head and vectors by AdamW.
        Muon = "muon",
    }
);

closed_list!(
    /// Which activations are dropped after the forward pass and computed again in the backward pass.
    Recompute, "kind of recomputation", {
        /// None.
        None = "none",
        /// Each layer keeps its input, what attention gave and every second matrix product (per-op policy of torchtitan).
        Selective = "selective",
        /// Each layer keeps its input only.
        Full = "full",
    }
);

closed_list!(
    /// How attention is computed.
    Attention, "kind of attention", {
        /// Tile by tile; the matrix of scores never exists (FlashAttention, memory-efficient attention).
        Flash = "flash",
        /// As written: the scores of every head exist, several times.
        Eager = "eager",
    }
);

closed_list!(
    /// How the loss is computed from the last hidden states.
    Loss, "kind of loss", {
        /// As written: logits, log-probabilities and the gradients of both exist at once.
        Eager = "eager",
        /// Compiled: logits and their gradient.
        Compiled = "compiled",
        /// A slice of the tokens at a time (chunked or fused with the head).
        Chunked = "chunked",
        /// A few classes for each sample instead of a vocabulary for each token.
        Classes = "classes",
    }
);
