use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use trackway_tower::memory::{
    Attention, Base, Counter, Loss, Master, Offload, Optimizer, Precision, Recompute, Step, Targets,
};

/// The words of a closed list, shown in the help and in mistakes.
macro_rules! words {
    ($list:ident) => {
        PossibleValuesParser::new($list::ALL.iter().map(|word| word.as_str()))
            .map(|word| word.parse::<$list>().expect("the parser lets only words of the list through"))
    };
}

/// Largest count that is taken: no model and no run has more of anything.
const MAX_COUNT: u64 = 1 << 24;
const MAX_RANK: u64 = 1024;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway memory --params 7e9 --gpu h100-80gb
  trackway memory --params 7e9 --seq 4096 --zero 3 --data-parallel 8 --recompute full --gpu a100
  trackway memory --config config.json --safetensors model/ --lora 16 --base nf4 --gpu rtx4090
  trackway memory --config config.json --measured 61.3e9 --counter allocated --json
  trackway memory --devices

The estimate is an interval for the rank that needs most. Every formula, and how far it is off on
published peaks, is in docs/memory.md.")]
pub struct MemoryArgs {
    /// Parameters, such as 7e9, 7b or 350m; a shape is guessed from them
    #[arg(long, value_name = "N", value_parser = scaled, help_heading = "Model")]
    pub params: Option<u64>,
    /// A `config.json` of Hugging Face, or a folder with one
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub config: Option<PathBuf>,
    /// Safetensors files, or folders of them; only headers are read
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Model")]
    pub safetensors: Vec<PathBuf>,
    /// Layers, for a decoder described by hand
    #[arg(long, value_name = "N", requires_all = ["hidden", "heads"], value_parser = count(), help_heading = "Model")]
    pub layers: Option<u64>,
    /// Width of the residual stream
    #[arg(long, value_name = "N", requires = "layers", value_parser = count(), help_heading = "Model")]
    pub hidden: Option<u64>,
    /// Attention heads
    #[arg(long, value_name = "N", requires = "layers", value_parser = count(), help_heading = "Model")]
    pub heads: Option<u64>,
    /// Key and value heads [default: as many as heads]
    #[arg(long, value_name = "N", requires = "layers", value_parser = count(), help_heading = "Model")]
    pub kv_heads: Option<u64>,
    /// Width inside the feed-forward block [default: 4 × hidden]
    #[arg(long, value_name = "N", requires = "layers", value_parser = count(), help_heading = "Model")]
    pub ffn: Option<u64>,
    /// Tokens in the vocabulary
    #[arg(long, value_name = "N", default_value_t = 32_000, value_parser = count(), help_heading = "Model")]
    pub vocab: u64,
    /// The output head is the embedding
    #[arg(long, requires = "layers", help_heading = "Model")]
    pub tied_embeddings: bool,
    /// Two matrices in the feed-forward block, not three
    #[arg(long, requires = "layers", help_heading = "Model")]
    pub plain_mlp: bool,
    /// Training drops activations at random
    #[arg(long, help_heading = "Model")]
    pub dropout: bool,

    /// Tokens of a sample
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = count(), help_heading = "Step")]
    pub seq: u64,
    /// Tokens of a sample on the decoder's side of an encoder–decoder model
    #[arg(long, value_name = "N", value_parser = count(), help_heading = "Step")]
    pub target_seq: Option<u64>,
    /// Samples that a device works on at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count(), help_heading = "Step")]
    pub micro_batch: u64,
    /// Micro-batches added up before a step
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count(), help_heading = "Step")]
    pub accumulate: u64,
    /// Type of the matrix products
    #[arg(long, value_parser = words!(Precision), value_name = "TYPE", default_value_t = Precision::Bf16, help_heading = "Step")]
    pub precision: Precision,
    /// 32-bit weights: a copy beside 16-bit ones, the weights themselves (autocast, FSDP), or none
    #[arg(long, value_parser = words!(Master), value_name = "HOW", default_value_t = Master::Copy, help_heading = "Step")]
    pub master_weights: Master,
    /// Type of gradients [default: that of their weights]
    #[arg(long, value_parser = words!(Precision), value_name = "TYPE", help_heading = "Step")]
    pub gradients: Option<Precision>,
    /// What turns gradients into updates
    #[arg(long, value_parser = words!(Optimizer), value_name = "NAME", default_value_t = Optimizer::Adamw, help_heading = "Step")]
    pub optimizer: Optimizer,
    /// How the optimizer's step is done
    #[arg(long, value_parser = words!(Step), value_name = "HOW", default_value_t = Step::Fused, help_heading = "Step")]
    pub optimizer_step: Step,
    /// Activations that are computed again
    #[arg(long, value_parser = words!(Recompute), value_name = "WHICH", default_value_t = Recompute::None, help_heading = "Step")]
    pub recompute: Recompute,
    /// How attention is computed
    #[arg(long, value_parser = words!(Attention), value_name = "HOW", default_value_t = Attention::Flash, help_heading = "Step")]
    pub attention: Attention,
    /// How the loss is computed; `classes`: over a few classes, not a vocabulary
    #[arg(long, value_parser = words!(Loss), value_name = "HOW", default_value_t = Loss::Eager, help_heading = "Step")]
    pub loss: Loss,
    /// Layers are compiled (`torch.compile`)
    #[arg(long, help_heading = "Step")]
    pub compile: bool,
    /// Rank of low-rank adapters; without it every parameter is trained
    #[arg(long, value_name = "RANK", value_parser = clap::value_parser!(u64).range(1..=MAX_RANK), help_heading = "Step")]
    pub lora: Option<u64>,
    /// Where adapters are
    #[arg(long, value_parser = words!(Targets), value_name = "WHERE", requires = "lora", default_value_t = Targets::All, help_heading = "Step")]
    pub lora_targets: Targets,
    /// In what the frozen base of adapters is held
    #[arg(long, value_parser = words!(Base), value_name = "TYPE", requires = "lora", default_value_t = Base::Plain, help_heading = "Step")]
    pub base: Base,
    /// Texts generated at a time between steps, which need a cache of keys and values
    #[arg(long, value_name = "N", requires = "generate_seq", value_parser = count(), help_heading = "Step")]
    pub generate_batch: Option<u64>,
    /// Tokens of one
    #[arg(long, value_name = "N", requires = "generate_batch", value_parser = count(), help_heading = "Step")]
    pub generate_seq: Option<u64>,

    /// ZeRO stage: 0 (DDP), 1, 2, 3 (FSDP)
    #[arg(long, value_name = "STAGE", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=3), help_heading = "Devices")]
    pub zero: u8,
    /// Ranks that see different samples
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count(), help_heading = "Devices")]
    pub data_parallel: u64,
    /// Ranks that share matrices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count(), help_heading = "Devices")]
    pub tensor_parallel: u64,
    /// Tensor ranks share tokens where they do not share matrices
    #[arg(long, help_heading = "Devices")]
    pub sequence_parallel: bool,
    /// Ranks that hold layers one behind the other
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count(), help_heading = "Devices")]
    pub pipeline_parallel: u64,
    /// Micro-batches in the pipeline [default: as many as ranks]
    #[arg(long, value_name = "N", value_parser = count(), help_heading = "Devices")]
    pub pipeline_micro_batches: Option<u64>,
    /// Ranks that share the tokens of a sample
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count(), help_heading = "Devices")]
    pub context_parallel: u64,
    /// What is kept in the host's memory
    #[arg(long, value_parser = words!(Offload), value_name = "WHAT", default_value_t = Offload::None, help_heading = "Devices")]
    pub offload: Offload,
    /// Keep activations in the host's memory
    #[arg(long, help_heading = "Devices")]
    pub offload_activations: bool,
    /// The allocator may grow its segments (`expandable_segments:True`)
    #[arg(long, help_heading = "Devices")]
    pub expandable_segments: bool,
    /// The device, such as h100-80gb, a100, rtx4090
    #[arg(long, value_name = "NAME", help_heading = "Devices")]
    pub gpu: Option<String>,
    /// List the devices known by name
    #[arg(long, help_heading = "Devices")]
    pub devices: bool,

    /// A peak measured in a run of these settings, in bytes: it corrects the estimate
    #[arg(long, value_name = "BYTES", value_parser = scaled, help_heading = "Correction")]
    pub measured: Option<u64>,
    /// What it counts: two counters of the framework's allocator, or nvidia-smi
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
