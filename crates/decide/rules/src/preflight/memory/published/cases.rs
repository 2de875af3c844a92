//! The cases. Nothing here may be changed to make a figure look better.

use super::models;
use super::{Case, Source};
use crate::preflight::memory::answer::Counter;
use crate::preflight::memory::architecture::{Architecture, Targets};
use crate::preflight::memory::spec::{
    Adapters, Attention, Base, Loss, Master, MemorySpec, Offload, Optimizer, Parallel, Precision, Recompute,
    Step,
};

const MIB: f64 = 1_048_576.0;
const GIB: f64 = 1_073_741_824.0;
const GB: f64 = 1e9;

pub(super) fn all() -> Vec<Case> {
    [
        hugging_face(),
        fit_check(),
        torch_titan_8b(),
        lit_gpt(),
        peft(),
        torch_titan_large(),
        trainy(),
        torch_tune(),
        long_lora(),
        torch_titan_chunked(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Runs of the same sources that ran out of memory, and on what.
pub(super) fn out_of_memory() -> Vec<(Case, &'static str)> {
    let lit = |name, model, micro_batch| {
        (
            case(
                Source::LitGpt,
                name,
                Counter::Device,
                f64::INFINITY,
                lit_gpt_spec(model, 1304, micro_batch, Base::Plain),
            ),
            "a100-40gb",
        )
    };
    let peft = |name, model| {
        (case(Source::Peft, name, Counter::Device, f64::INFINITY, peft_spec(model)), "a100-80gb")
    };
    vec![
        lit("Llama 2 7B, batch 4", models::llama2_7b(), 4),
        lit("Llama 2 13B, batch 2", models::llama2_13b(), 2),
        lit("Llama 2 13B, batch 4", models::llama2_13b(), 4),
        peft("mT0 XXL, all parameters", models::mt0_xxl()),
        peft("BLOOMZ 7B1, all parameters", models::bloomz_7b1()),
    ]
}

fn case(source: Source, name: &'static str, counter: Counter, measured_bytes: f64, spec: MemorySpec) -> Case {
    Case { name, source, measured_bytes, counter, context_bytes: None, spec }
}

fn hugging_face() -> Vec<Case> {
    let spec = |micro_batch, precision, optimizer, recompute| MemorySpec {
        sequence: 512,
        micro_batch,
        accumulate: 4 / micro_batch,
        // PyTorch of January 2022.
        keep_gradients: true,
        precision,
        master: Master::Weights,
        optimizer,
        recompute,
        attention: Attention::Eager,
        loss: Loss::Classes,
        ..MemorySpec::new(models::bert_large_classifier())
    };
    let (fp32, fp16) = (Precision::Fp32, Precision::Fp16);
    let (adamw, adafactor, adam8bit) = (Optimizer::Adamw, Optimizer::Adafactor, Optimizer::Adamw8bit);
    let (none, full) = (Recompute::None, Recompute::Full);
    [
        ("BERT-large, batch 4", 14_949.0, spec(4, fp32, adamw, none)),
        ("… batch 1, accumulated", 8_681.0, spec(1, fp32, adamw, none)),
        ("… batch 1, recomputed", 6_775.0, spec(1, fp32, adamw, full)),
        ("… batch 4, fp16", 13_939.0, spec(4, fp16, adamw, none)),
        ("… batch 1, recomputed, fp16", 7_275.0, spec(1, fp16, adamw, full)),
        ("… batch 4, Adafactor", 12_295.0, spec(4, fp32, adafactor, none)),
        ("… batch 1, recomputed, fp16, Adafactor", 4_847.0, spec(1, fp16, adafactor, full)),
        ("… batch 4, 8-bit Adam", 13_085.0, spec(4, fp32, adam8bit, none)),
        ("… batch 1, recomputed, fp16, 8-bit Adam", 5_363.0, spec(1, fp16, adam8bit, full)),
    ]
    .into_iter()
    .map(|(name, mebibytes, spec)| Case {
        context_bytes: Some(1_343.0 * MIB),
        ..case(Source::HuggingFaceSingleGpu, name, Counter::Device, mebibytes * MIB, spec)
    })
    .collect()
}

fn fit_check() -> Vec<Case> {
    let spec = |model: Architecture, micro_batch, sequence, attention| MemorySpec {
        sequence,
        micro_batch,
        precision: Precision::Fp16,
        master: Master::Weights,
        recompute: Recompute::Full,
        attention,
        adapters: Some(Adapters { rank: 32, targets: Targets::Attention, base: Base::Nf4 }),
        ..MemorySpec::new(model)
    };
    let (eager, flash) = (Attention::Eager, Attention::Flash);
    [
        ("TinyLlama 1.1B, 2 × 512, eager", 1_849.0, spec(models::tiny_llama(), 2, 512, eager)),
        ("… 2 × 1024, eager", 2_876.0, spec(models::tiny_llama(), 2, 1024, eager)),
        ("… 2 × 2048, eager", 6_655.0, spec(models::tiny_llama(), 2, 2048, eager)),
        ("… 2 × 512", 1_847.0, spec(models::tiny_llama(), 2, 512, flash)),
        ("… 2 × 1024", 2_528.0, spec(models::tiny_llama(), 2, 1024, flash)),
        ("… 2 × 2048", 3_897.0, spec(models::tiny_llama(), 2, 2048, flash)),
        ("SmolLM2 1.7B, 4 × 1024, eager", 5_297.0, spec(models::smol_lm2(), 4, 1024, eager)),
        ("… 4 × 1024", 5_281.0, spec(models::smol_lm2(), 4, 1024, flash)),
        ("Qwen2.5 1.5B, 2 × 1024, eager", 6_831.0, spec(models::qwen25_1b5(), 2, 1024, eager)),
        ("… 2 × 1024", 6_823.0, spec(models::qwen25_1b5(), 2, 1024, flash)),
    ]
    .into_iter()
    .map(|(name, mebibytes, spec)| case(Source::FitCheck, name, Counter::Allocated, mebibytes * MIB, spec))
    .collect()
}

/// torchtitan trains 32-bit weights under FSDP, 8,192 tokens a sample, and lets the allocator grow its segments.
fn titan(model: Architecture, data: u64) -> MemorySpec {
    MemorySpec {
        sequence: 8192,
        micro_batch: 2,
        master: Master::Weights,
        recompute: Recompute::Selective,
        parallel: Parallel { data, zero: 3, ..Parallel::ONE },
        expandable_segments: true,
        ..MemorySpec::new(model)
    }
}

fn torch_titan_8b() -> Vec<Case> {
    let plain = |data| titan(models::llama31_8b(), data);
    let compiled = |data| MemorySpec { compiled: true, ..plain(data) };
    let fp8 = |data| MemorySpec { precision: Precision::Fp8, ..compiled(data) };
    [
        ("Llama 3.1 8B, 8 GPUs", 82.4, plain(8)),
        ("… compiled", 77.0, compiled(8)),
        ("… compiled, fp8", 76.8, fp8(8)),
        ("Llama 3.1 8B, 128 GPUs", 67.0, plain(128)),
        ("… compiled (128)", 62.0, compiled(128)),
        ("… compiled, fp8 (128)", 61.8, fp8(128)),
    ]
    .into_iter()
    .map(|(name, gibibytes, spec)| case(Source::TorchTitan8B, name, Counter::Reserved, gibibytes * GIB, spec))
    .collect()
}

fn lit_gpt_spec(model: Architecture, sequence: u64, micro_batch: u64, base: Base) -> MemorySpec {
    MemorySpec {
        sequence,
        micro_batch,
        accumulate: 128 / micro_batch,
        master: Master::None,
        // It cuts the tokens into slices, but keeps the logits of all of them.
        loss: Loss::Compiled,
        adapters: Some(Adapters { rank: 8, targets: Targets::QueryValue, base }),
        ..MemorySpec::new(model)
    }
}

fn lit_gpt() -> Vec<Case> {
    let spec = lit_gpt_spec;
    let phi = |micro_batch, base| spec(models::phi15(), 1044, micro_batch, base);
    let stable = |micro_batch, base| spec(models::stable_lm_alpha_3b(), 1034, micro_batch, base);
    let small = |micro_batch, base| spec(models::llama2_7b(), 1304, micro_batch, base);
    let large = |base| spec(models::llama2_13b(), 1304, 1, base);
    let (plain, nf4) = (Base::Plain, Base::Nf4);
    [
        ("Phi 1.5, batch 1", 4.82, phi(1, plain)),
        ("… NF4", 3.78, phi(1, nf4)),
        ("… batch 2", 6.76, phi(2, plain)),
        ("… batch 4", 10.68, phi(4, plain)),
        ("StableLM Alpha 3B, batch 1", 9.69, stable(1, plain)),
        ("… NF4 (3B)", 6.35, stable(1, nf4)),
        ("… batch 2 (3B)", 12.10, stable(2, plain)),
        ("… batch 4 (3B)", 16.92, stable(4, plain)),
        ("Llama 2 7B, batch 1", 21.30, small(1, plain)),
        ("… NF4 (7B)", 14.14, small(1, nf4)),
        ("… batch 2 (7B)", 29.07, small(2, plain)),
        ("Llama 2 13B, batch 1", 38.12, large(plain)),
        ("… NF4 (13B)", 23.14, large(nf4)),
    ]
    .into_iter()
    .map(|(name, gigabytes, spec)| case(Source::LitGpt, name, Counter::Allocated, gigabytes * GB, spec))
    .collect()
}

/// Every parameter is trained.
fn peft_spec(model: Architecture) -> MemorySpec {
    MemorySpec {
        sequence: 64,
        // The answers are "complaint" and "no complaint".
        target_sequence: (model.encoder_layers > 0).then_some(8),
        micro_batch: 8,
        precision: Precision::Fp32,
        attention: Attention::Eager,
        ..MemorySpec::new(model)
    }
}

fn peft() -> Vec<Case> {
    let full = peft_spec;
    let adapters = Some(Adapters { rank: 8, targets: Targets::QueryValue, base: Base::Plain });
    let lora = |model| MemorySpec { adapters, ..full(model) };
    [
        ("T0 3B, all parameters", 47.14, full(models::t0_3b())),
        ("T0 3B, LoRA", 14.4, lora(models::t0_3b())),
        ("BLOOMZ 7B1, LoRA", 32.0, lora(models::bloomz_7b1())),
        ("mT0 XXL, LoRA", 56.0, lora(models::mt0_xxl())),
    ]
    .into_iter()
    .map(|(name, gigabytes, spec)| case(Source::Peft, name, Counter::Allocated, gigabytes * GB, spec))
    .collect()
}

fn torch_titan_large() -> Vec<Case> {
    let compiled = |model, parallel, micro_batch, sequence| MemorySpec {
        sequence,
        micro_batch,
        precision: Precision::Fp8,
        compiled: true,
        recompute: Recompute::Full,
        parallel,
        ..titan(model, 1)
    };
    let context = |data, context| {
        let parallel = Parallel { data, zero: 3, context, ..Parallel::ONE };
        compiled(models::llama31_8b(), parallel, 1, 32_768 * context)
    };
    let grid = Parallel { data: 32, zero: 3, tensor: 8, sequence: true, ..Parallel::ONE };
    let pipe = Parallel { data: 8, pipeline: 8, pipeline_micro_batches: 8, ..grid };
    [
        ("Llama 3.1 8B, 32,768 tokens on 8 GPUs", 83.9, context(8, 1)),
        ("… 65,536 tokens, context over 2", 84.2, context(4, 2)),
        ("… 131,072 tokens, context over 4", 84.0, context(2, 4)),
        ("… 262,144 tokens, context over 8", 84.5, context(1, 8)),
        ("Llama 3.1 70B, 32 × 8 GPUs, batch 16", 71.9, compiled(models::llama31_70b(), grid, 16, 8192)),
        ("Llama 3.1 405B, 8 × 8 × 8 GPUs, batch 32", 82.5, compiled(models::llama31_405b(), pipe, 4, 8192)),
        ("… 32,768 tokens, batch 8", 75.3, compiled(models::llama31_405b(), pipe, 1, 32_768)),
    ]
    .into_iter()
    .map(|(name, gibibytes, spec)| {
        case(Source::TorchTitanLarge, name, Counter::Reserved, gibibytes * GIB, spec)
    })
    .collect()
}

fn trainy() -> Vec<Case> {
    let spec = |data| MemorySpec {
        precision: Precision::Fp8,
        compiled: true,
        loss: Loss::Compiled,
        ..titan(models::llama31_8b(), data)
    };
    [("Llama 3.1 8B, 32 H200", 47.96, spec(32)), ("Llama 3.1 8B, 64 H200", 46.97, spec(64))]
        .into_iter()
        .map(|(name, gibibytes, spec)| case(Source::Trainy, name, Counter::Reserved, gibibytes * GIB, spec))
        .collect()
}

fn torch_tune() -> Vec<Case> {
    let packed = |model| MemorySpec {
        sequence: 2048,
        micro_batch: 2,
        master: Master::None,
        recompute: Recompute::Full,
        loss: Loss::Chunked,
        compiled: true,
        ..MemorySpec::new(model)
    };
    let low_memory = |spec| MemorySpec {
        optimizer: Optimizer::Adamw8bit,
        offload: Offload::Optimizer,
        step: Step::InBackward,
        ..spec
    };
    let lora = |base| Some(Adapters { rank: 8, targets: Targets::All, base });
    let sharded = MemorySpec {
        adapters: lora(Base::Plain),
        parallel: Parallel { data: 8, zero: 3, ..Parallel::ONE },
        ..packed(models::llama31_70b())
    };
    let alpaca = MemorySpec {
        sequence: 512,
        compiled: false,
        loss: Loss::Eager,
        ..low_memory(packed(models::llama2_7b()))
    };
    let pure = MemorySpec {
        sequence: 512,
        micro_batch: 1,
        master: Master::None,
        ..MemorySpec::new(models::llama2_7b())
    };
    let gib =
        |name, gibibytes, spec| case(Source::TorchTune, name, Counter::Allocated, gibibytes * GIB, spec);
    vec![
        gib("Llama 3.1 8B, all parameters, one 4090", 18.9, low_memory(packed(models::llama31_8b()))),
        gib(
            "Llama 3.1 8B, QLoRA, one 4090",
            7.4,
            MemorySpec { adapters: lora(Base::Nf4), ..packed(models::llama31_8b()) },
        ),
        gib("Llama 3.1 70B, LoRA, 8 A100", 27.6, sharded),
        gib("Llama 2 7B, paged AdamW in the backward pass", 13.993_540_096 * GB / GIB, alpaca),
        gib("Llama 2 7B, AdamW in pure bf16", 54.0 * GB / GIB, pure),
    ]
}

fn long_lora() -> Vec<Case> {
    let spec = MemorySpec {
        sequence: 8192,
        accumulate: 8,
        recompute: Recompute::Full,
        adapters: Some(Adapters { rank: 8, targets: Targets::Attention, base: Base::Plain }),
        parallel: Parallel { data: 8, zero: 2, ..Parallel::ONE },
        ..MemorySpec::new(models::llama2_7b())
    };
    vec![case(Source::LongLora, "Llama 2 7B, 8,192 tokens", Counter::Device, 25.7 * GB, spec)]
}

fn torch_titan_chunked() -> Vec<Case> {
    let spec = MemorySpec {
        micro_batch: 40,
        recompute: Recompute::Full,
        loss: Loss::Chunked,
        parallel: Parallel { data: 2, zero: 3, tensor: 4, sequence: true, ..Parallel::ONE },
        ..titan(models::qwen3_14b(), 2)
    };
    vec![case(
        Source::TorchTitanChunked,
        "Qwen3 14B, 2 × 4 GPUs, slices of 8,192",
        Counter::Allocated,
        83.56 * GIB,
        spec,
    )]
}
