use std::path::PathBuf;

use clap::Args;
use clap::builder::TypedValueParser as _;
use trackway_rules::preflight::memory::{
    Attention, Base, Counter, Loss, Master, Offload, Optimizer, Precision, Recompute, Step, Targets,
};

use super::values::Bytes;

/// Largest count that is taken: no model and no run has more of anything.
const MAX_COUNT: u64 = 1 << 24;
const MAX_RANK: u64 = 1024;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway memory --params 7e9 --gpu h100-80gb
  trackway memory --params 7e9 --seq 4096 --zero 3 --data-parallel 8 --recompute full --gpu a100
  trackway memory --config config.json --safetensors model/ --lora 16 --base nf4 --gpu rtx4090
  trackway memory --config config.json --measured 61.3GB --counter allocated --json
  trackway memory --devices

The estimate is an interval for the rank with the highest peak. docs/memory.md has the formulas and their errors on \
published peaks.")]
pub struct MemoryArgs {
    /// Parameter count, such as 7e9, 7b or 350m; the architecture is guessed from it
    #[arg(long, value_name = "N", value_parser = scaled, help_heading = "Model")]
    pub params: Option<u64>,
    /// Hugging Face `config.json`, or a folder with one
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub config: Option<PathBuf>,
    /// Safetensors files or folders; only headers are read
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Model")]
    pub safetensors: Vec<PathBuf>,
    /// Number of layers, for a decoder described by hand
    #[arg(long, value_name = "N", requires_all = ["hidden", "heads"], value_parser = count(), help_heading = "Model")]
    pub layers: Option<u64>,
    /// Hidden size
    #[arg(long, value_name = "N", requires = "layers", value_parser = count(), help_heading = "Model")]
    pub hidden: Option<u64>,
    /// Number of attention heads
    #[arg(long, value_name = "N", requires = "layers", value_parser = count(), help_heading = "Model")]
    pub heads: Option<u64>,
    /// Number of key/value heads [default: number of attention heads]
    #[arg(long, value_name = "N", requires = "layers", value_parser = count(), help_heading = "Model")]
    pub kv_heads: Option<u64>,
    /// Intermediate size of the MLP [default: 4 × hidden size]
    #[arg(long, value_name = "N", requires = "layers", value_parser = count(), help_heading = "Model")]
    pub ffn: Option<u64>,
    /// Vocabulary size
    #[arg(long, value_name = "N", default_value_t = 32_000, value_parser = count(), help_heading = "Model")]
    pub vocab: u64,
    /// Tied input and output embeddings
    #[arg(long, requires = "layers", help_heading = "Model")]
    pub tied_embeddings: bool,
    /// Non-gated MLP (two weight matrices instead of three)
    #[arg(long, requires = "layers", help_heading = "Model")]
    pub plain_mlp: bool,
    /// Dropout during training
    #[arg(long, help_heading = "Model")]
    pub dropout: bool,

    /// Sequence length in tokens
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = count(), help_heading = "Step")]
    pub seq: u64,
    /// Target sequence length of an encoder–decoder model
    #[arg(long, value_name = "N", value_parser = count(), help_heading = "Step")]
    pub target_seq: Option<u64>,
    /// Micro-batch size per device
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count(), help_heading = "Step")]
    pub micro_batch: u64,
    /// Gradient accumulation steps
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count(), help_heading = "Step")]
    pub accumulate: u64,
    /// Compute dtype
    #[arg(long, value_parser = words!(Precision), value_name = "TYPE", default_value_t = Precision::Bf16, help_heading = "Step")]
    pub precision: Precision,
    /// Master weights: a 32-bit copy next to 16-bit weights, 32-bit weights (autocast, FSDP), or none
    #[arg(long, value_parser = words!(Master), value_name = "HOW", default_value_t = Master::Copy, help_heading = "Step")]
    pub master_weights: Master,
    /// Gradient dtype [default: dtype of the weights]
    #[arg(long, value_parser = words!(Precision), value_name = "TYPE", help_heading = "Step")]
    pub gradients: Option<Precision>,
    /// Optimizer
    #[arg(long, value_parser = words!(Optimizer), value_name = "NAME", default_value_t = Optimizer::Adamw, help_heading = "Step")]
    pub optimizer: Optimizer,
    /// Optimizer implementation
    #[arg(long, value_parser = words!(Step), value_name = "HOW", default_value_t = Step::Fused, help_heading = "Step")]
    pub optimizer_step: Step,
    /// Activation checkpointing (recomputation)
    #[arg(long, value_parser = words!(Recompute), value_name = "WHICH", default_value_t = Recompute::None, help_heading = "Step")]
    pub recompute: Recompute,
    /// Attention implementation
    #[arg(long, value_parser = words!(Attention), value_name = "HOW", default_value_t = Attention::Flash, help_heading = "Step")]
    pub attention: Attention,
    /// Loss implementation; `classes`: over a few classes instead of a vocabulary
    #[arg(long, value_parser = words!(Loss), value_name = "HOW", default_value_t = Loss::Eager, help_heading = "Step")]
    pub loss: Loss,
    /// Compiled layers (`torch.compile`)
    #[arg(long, help_heading = "Step")]
    pub compile: bool,
    /// LoRA rank; without it all parameters are trained
    #[arg(long, value_name = "RANK", value_parser = clap::value_parser!(u64).range(1..=MAX_RANK), help_heading = "Step")]
    pub lora: Option<u64>,
    /// LoRA target modules
    #[arg(long, value_parser = words!(Targets), value_name = "WHERE", requires = "lora", default_value_t = Targets::All, help_heading = "Step")]
    pub lora_targets: Targets,
    /// Dtype of the frozen base model (e.g. nf4)
    #[arg(long, value_parser = words!(Base), value_name = "TYPE", requires = "lora", default_value_t = Base::Plain, help_heading = "Step")]
    pub base: Base,
    /// Batch size of generation between steps (needs a KV cache)
    #[arg(long, value_name = "N", requires = "generate_seq", value_parser = count(), help_heading = "Step")]
    pub generate_batch: Option<u64>,
    /// Sequence length of generation in tokens
    #[arg(long, value_name = "N", requires = "generate_batch", value_parser = count(), help_heading = "Step")]
    pub generate_seq: Option<u64>,

    /// ZeRO stage: 0 (DDP), 1, 2, 3 (FSDP)
    #[arg(long, value_name = "STAGE", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=3), help_heading = "Devices")]
    pub zero: u8,
    /// Data-parallel size
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count(), help_heading = "Devices")]
    pub data_parallel: u64,
    /// Tensor-parallel size
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count(), help_heading = "Devices")]
    pub tensor_parallel: u64,
    /// Sequence parallelism across tensor-parallel ranks
    #[arg(long, help_heading = "Devices")]
    pub sequence_parallel: bool,
    /// Pipeline-parallel size
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count(), help_heading = "Devices")]
    pub pipeline_parallel: u64,
    /// Micro-batches in the pipeline [default: pipeline-parallel size]
    #[arg(long, value_name = "N", value_parser = count(), help_heading = "Devices")]
    pub pipeline_micro_batches: Option<u64>,
    /// Context-parallel size
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count(), help_heading = "Devices")]
    pub context_parallel: u64,
    /// State offloaded to host memory
    #[arg(long, value_parser = words!(Offload), value_name = "WHAT", default_value_t = Offload::None, help_heading = "Devices")]
    pub offload: Offload,
    /// Offload activations to host memory
    #[arg(long, help_heading = "Devices")]
    pub offload_activations: bool,
    /// Expandable allocator segments (`expandable_segments:True`)
    #[arg(long, help_heading = "Devices")]
    pub expandable_segments: bool,
    /// Device, such as h100-80gb, a100, rtx4090
    #[arg(long, value_name = "NAME", help_heading = "Devices")]
    pub gpu: Option<String>,
    /// List known devices
    #[arg(long, help_heading = "Devices")]
    pub devices: bool,

    /// Measured peak of a run with these settings: calibrates the estimate
    #[arg(long, value_name = "BYTES", help_heading = "Correction")]
    pub measured: Option<Bytes>,
    /// Source of the measured peak: a counter of the framework's allocator, or nvidia-smi
    #[arg(long, value_parser = words!(Counter), value_name = "WHAT", requires = "measured", default_value_t = Counter::Device, help_heading = "Correction")]
    pub counter: Counter,
}

fn count() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=MAX_COUNT)
}

/// `7000000000`, `7e9`, `7b`, `350m`, `1.1B`.
fn scaled(text: &str) -> Result<u64, String> {
    const MAX: f64 = 1e15;
    let lower = text.to_lowercase();
    let (number, scale) = match lower.char_indices().last() {
        Some((end, 'k')) => (&lower[..end], 1e3),
        Some((end, 'm')) => (&lower[..end], 1e6),
        Some((end, 'b' | 'g')) => (&lower[..end], 1e9),
        Some((end, 't')) => (&lower[..end], 1e12),
        _ => (lower.as_str(), 1.0),
    };
    let value = number.parse::<f64>().map_or(f64::NAN, |value| value * scale);
    if (1.0..=MAX).contains(&value) {
        Ok(value.round() as u64)
    } else {
        Err("expected a number from 1 to 1e15, such as 7e9, 7b or 350m".into())
    }
}
