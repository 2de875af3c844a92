//! Peaks that others measured and published, against the closed form.
//!
//! The cases, and which of them the form may be fitted to, were written down before a single one was computed: whole
//! sources are fitted or held out, so that nothing of a held-out stack leaks into the constants. A row of a source is
//! left out only where its settings are not published; `docs/memory.md` names those and why.

mod cases;
mod models;
mod report;

use super::answer::Counter;
use super::spec::MemorySpec;

/// The source of published figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    HuggingFaceSingleGpu,
    FitCheck,
    TorchTitan8B,
    LitGpt,
    Peft,
    TorchTitanLarge,
    Trainy,
    TorchTune,
    LongLora,
    TorchTitanChunked,
}

impl Source {
    const ALL: [Self; 10] = [
        Self::HuggingFaceSingleGpu,
        Self::FitCheck,
        Self::TorchTitan8B,
        Self::LitGpt,
        Self::Peft,
        Self::TorchTitanLarge,
        Self::Trainy,
        Self::TorchTune,
        Self::LongLora,
        Self::TorchTitanChunked,
    ];

    /// Whether constants may be fitted to its cases.
    fn fitted(self) -> bool {
        matches!(self, Self::HuggingFaceSingleGpu | Self::FitCheck | Self::TorchTitan8B)
    }

    /// What the runs ran on, where that is a device known by name; it differs by run in torchtune's table.
    fn device(self, run: &str) -> Option<&'static str> {
        match self {
            Self::HuggingFaceSingleGpu => Some("v100-16gb"),
            Self::FitCheck => Some("t4-16gb"),
            Self::LitGpt => Some("a100-40gb"),
            Self::Peft => Some("a100-80gb"),
            Self::Trainy => Some("h200-141gb"),
            Self::TorchTune if run.contains("4090") => Some("rtx4090-24gb"),
            Self::TorchTune | Self::LongLora => Some("a100-80gb"),
            Self::TorchTitanChunked => Some("h100-94gb"),
            // A model of the H100 with 96 GB that is not sold.
            Self::TorchTitan8B | Self::TorchTitanLarge => Some("h100-94gb"),
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::HuggingFaceSingleGpu => {
                "Hugging Face Transformers documentation 4.27, `perf_train_gpu_one`: BERT-large, 512 tokens, one V100 (`nvidia-smi`; \
                 its context is measured there as 1,343 MiB)"
            }
            Self::FitCheck => {
                "PyPI `fitcheck-llm` 0.2.0, validation table: QLoRA at rank 32 on attention, one T4 (`max_memory_allocated`)"
            }
            Self::TorchTitan8B => {
                "torchtitan `benchmarks/llama3_h100_202412_torchtitan.md`, tables 1 and 3: Llama 3.1 8B, FSDP, 8,192 tokens \
                 (`max_memory_reserved`)"
            }
            Self::LitGpt => {
                "LitGPT `tutorials/resource-tables.md`: LoRA at rank 8 on queries and values, the longest sample of Alpaca, one A100 \
                 (`max_memory_allocated`)"
            }
            Self::Peft => {
                "PEFT README: `ought/raft`, batches of 8, one A100 80 GB (`max_memory_allocated`); 64 tokens are taken, as the \
                 examples' scripts have it"
            }
            Self::TorchTitanLarge => {
                "torchtitan, the same file, tables 2, 4, 5 and 6: context, tensor and pipeline parallel; micro-batches of the \
                 pipeline are taken as its default then, as many as stages"
            }
            Self::Trainy => {
                "torchtitan `benchmarks/llama3_8b_h200_2025-06_torchtitan_trainy_whitefiber.md`: Llama 3.1 8B half a year later"
            }
            Self::TorchTune => {
                "torchtune README of September 2024 (settings: issue 2168 and its recipes) and pull requests 389 and 527"
            }
            Self::LongLora => "LongLoRA (arXiv 2309.12307), plain LoRA, ZeRO-2 on 8 A100",
            Self::TorchTitanChunked => {
                "torchtitan `docs/chunked_loss.md`: Qwen3 14B, 327,680 tokens a data rank (peak of active bytes)"
            }
        }
    }
}

/// One published peak.
pub(super) struct Case {
    pub name: &'static str,
    pub source: Source,
    pub measured_bytes: f64,
    pub counter: Counter,
    /// Bytes of the device's context, if the source has them.
    pub context_bytes: Option<f64>,
    pub spec: MemorySpec,
}
