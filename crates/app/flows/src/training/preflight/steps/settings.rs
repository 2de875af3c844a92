//! Settings, memory and cost, from the run file and the machine.

use std::path::Path;
use std::sync::PoisonError;

use trackway_core::checks::{CheckResult, Verdict};
use trackway_core::with_fields_of;
use trackway_engine::capture::{Capture, script_of};
use trackway_engine::error::AppError;
use trackway_formats::runfile::{DataRole, Plan, ResourcesSection, TrainingSection};
use trackway_rules::preflight::config_checks::{
    Compile, Loader, Measurements, Rungs, Strategy, TrainingConfig, config_checks,
};
use trackway_rules::preflight::cost::CostPlan;
use trackway_rules::preflight::memory::{
    Adapters, Base, Counter, Device, Fit, MemorySpec, Parallel, Targets,
};

use super::rehearsal::RehearsalResults;
use super::{Looker, Work};
use crate::training::memory::{MeasuredPeak, ModelSource, correction, read_model};
use crate::training::preflight::facts::{NEEDS_MEASUREMENT, NEEDS_SETTINGS};
use crate::training::preflight::history::{EarlierMeasures, earlier};
use crate::training::script::{compiles, imports_trackway, loads_weights};

/// Checks whose facts are in the run file anyway; the others need its `[training]`.
const ALWAYS_SET: &[&str] = &["config.seed"];
/// Checks that need a measurement.
const NEEDS_MEASURES: &[&str] =
    &["config.checkpoint_time", "config.model_size", "config.compile", "config.logging"];

/// Answers every check of settings.
pub fn settings(work: &Work<'_>, _: &Looker<'_>) -> Result<Vec<CheckResult>, AppError> {
    let plan = &work.job.plan;
    let rehearsed = work.shared.rehearsed.lock().unwrap_or_else(PoisonError::into_inner);
    let mut config = configured(plan, work.capture);
    let script = script_of(&plan.run.command, &work.job.working_directory());
    config.asks_for_checkpoints = script.as_deref().and_then(imports_trackway);
    add_seen(&mut config, &rehearsed);
    let earlier = earlier(work.context, plan)?;
    config.throughput = config.throughput.or(earlier.throughput);
    let rehearsed_seconds = rehearsed.measured.as_ref().and_then(|measured| measured.step_seconds);
    let step_seconds = rehearsed_seconds.or(earlier.step_seconds);
    config.checkpoint_interval_seconds = config.checkpoint_interval_seconds.or(plan
        .checkpoint
        .every_steps
        .zip(step_seconds)
        .map(|(steps, seconds)| steps as f64 * seconds));
    if let Some(cost) = config.cost {
        let _ = work.shared.cost.set(cost.estimate());
    }
    config.memory = spec(work)?;
    config.measured = measurements(work, &config, script.as_deref(), &earlier, step_seconds);
    let device = device(plan, work.capture);
    if let Some(spec) = &config.memory {
        let measured = rehearsed.measured.as_ref().and_then(peak).or(earlier.peak);
        // A peak that cannot be that of the described run corrects nothing.
        config.memory_correction = measured.and_then(|peak| correction(spec, peak).ok());
        let report = trackway_rules::preflight::memory::report(spec, device, config.memory_correction);
        let _ = work.shared.memory.set(report);
    }
    let training_is_set = plan.training.is_some();
    let answer = |result: CheckResult| match result.verdict {
        Verdict::NotRun if NEEDS_MEASURES.contains(&result.name.as_str()) => {
            let why = result.why.unwrap_or_default();
            CheckResult::not_applicable(&result.name, format!("{why} {NEEDS_MEASUREMENT}"))
        }
        Verdict::NotRun if !training_is_set && !ALWAYS_SET.contains(&result.name.as_str()) => {
            let why = result.why.unwrap_or_default();
            CheckResult::not_applicable(&result.name, format!("{why} {NEEDS_SETTINGS}"))
        }
        _ => result,
    };
    Ok(config_checks(&config).into_iter().map(answer).map(|result| advised(result, work)).collect())
}

/// What was measured, by the rehearsal of this run before earlier runs, and what is known of the model and its data.
fn measurements(
    work: &Work<'_>,
    config: &TrainingConfig,
    script: Option<&Path>,
    earlier: &EarlierMeasures,
    step_seconds: Option<f64>,
) -> Measurements {
    let (plan, rehearsed) = (&work.job.plan, &config.measured);
    let training = plan.training.clone().unwrap_or_default();
    let is_used = rehearsed.compile.map(|compile| compile.is_used).or_else(|| compiles(script?));
    let of_model = config.memory.as_ref().map(|spec| spec.model.parameters());
    Measurements {
        trained_parameters: rehearsed.trained_parameters.or(of_model),
        training_rows: training_rows(work),
        tokens_per_row: training.sequence_length,
        starts_trained: rehearsed.starts_trained
            || training.lora_rank.is_some()
            || plan.run.start_from.is_some()
            || script.is_some_and(loads_weights),
        step_seconds,
        compile: is_used.map(|is_used| Compile {
            is_used,
            seconds: rehearsed.compile.and_then(|compile| compile.seconds).or(earlier.first_step_seconds),
            again_seconds: rehearsed.compile.and_then(|compile| compile.again_seconds),
        }),
        logging: earlier.logging,
        save: earlier.save,
        interruptions: earlier.interruptions,
        grace_seconds: (training.preemptible == Some(true)).then_some(plan.supervise.grace_seconds),
    }
}

/// The rows of all training tables, where each was read.
fn training_rows(work: &Work<'_>) -> Option<u64> {
    let training = work.sets.all().iter().filter(|set| set.role == Some(DataRole::Train));
    let rows = training.map(|set| Some(work.shared.evidence.of(&set.name)?.coverage.rows_read));
    let rows: Vec<u64> = rows.collect::<Option<_>>()?;
    (!rows.is_empty()).then(|| rows.iter().sum())
}

/// Memory that does not fit is reported with what would make it fit.
fn advised(mut result: CheckResult, work: &Work<'_>) -> CheckResult {
    let advice = work.shared.memory.get().map(|report| report.advice.as_slice()).unwrap_or_default();
    let fits = advice.iter().find(|advice| advice.verdict == Fit::Fits);
    let advice = fits.or(advice.first());
    if let (Some(advice), "memory") = (advice, result.name.as_str()) {
        for finding in &mut result.findings {
            finding.action = Some(format!("{}: {} (`trackway memory` has more)", advice.text, advice.price));
        }
    }
    result
}

/// Adds what a rehearsal observed to the settings of the run file.
fn add_seen(config: &mut TrainingConfig, rehearsed: &RehearsalResults) {
    let of = &rehearsed.config;
    config.precision = config.precision.or(of.precision);
    config.loss_scaling = config.loss_scaling.or(of.loss_scaling);
    config.gradient_clip_norm = config.gradient_clip_norm.or(of.gradient_clip_norm);
    config.warmup_steps = config.warmup_steps.or(of.warmup_steps);
    config.total_steps = config.total_steps.or(of.total_steps);
    config.checkpointing = config.checkpointing.or(of.checkpointing);
    config.loader = config.loader.or(of.loader);
    config.strategy = config.strategy.or(of.strategy);
    config.throughput = config.throughput.or(of.throughput);
    config.measured = of.measured.clone();
}

/// The peak that a rehearsal measured on a device.
fn peak(measured: &trackway_rules::preflight::rehearsal::Measured) -> Option<MeasuredPeak> {
    let reserved = measured.peak_device_reserved_bytes.map(|bytes| (bytes, Counter::Reserved));
    let peak = reserved.or(measured.peak_device_bytes.map(|bytes| (bytes, Counter::Allocated)));
    peak.map(|(bytes, counter)| MeasuredPeak { bytes, counter })
}

/// The settings of the run file and the machine.
fn configured(plan: &Plan, capture: &Capture) -> TrainingConfig {
    let training = plan.training.clone().unwrap_or_default();
    let gpus = plan.resources.gpus;
    let checkpoint = &plan.checkpoint;
    with_fields_of!(
        TrainingConfig,
        training,
        [
            precision, loss_scaling, gradient_clip_norm, warmup_steps, total_steps, preemptible, strategy,
        ],
        nodes: training.nodes.or(plan.resources.nodes),
        seed: plan.run.seed,
        gpus: Some(gpus),
        // Without a cadence the script decides, in an unknown way.
        checkpointing: checkpoint.has_cadence().then_some(true),
        asks_for_checkpoints: None,
        checkpoint_interval_seconds: checkpoint.every_seconds,
        ladder: ladder(plan),
        loader: loader(plan, &training, capture),
        memory: None,
        memory_correction: None,
        usable_bytes: usable_bytes(plan, capture),
        throughput: None,
        cost: cost(plan, &training),
        budget_usd: plan.retry.max_usd,
        measured: Measurements::default(),
    )
}

/// The rungs, where checkpoints are due by steps or by time: an epoch ends in each rung, and a script that saves without Trackway
/// has its cadence in itself.
fn ladder(plan: &Plan) -> Option<Rungs> {
    let (ladder, checkpoint) = (plan.ladder.as_ref()?, &plan.checkpoint);
    let is_theirs = checkpoint.adopt.as_ref().is_some_and(|patterns| !patterns.is_empty());
    (checkpoint.has_cadence() && checkpoint.every_epochs.is_none() && !is_theirs).then(|| Rungs {
        fractions: ladder.rungs.clone(),
        warm_start: ladder.warm_start,
        every_steps: checkpoint.every_steps,
    })
}

fn loader(plan: &Plan, training: &TrainingSection, capture: &Capture) -> Option<Loader> {
    let facts = training.loader?;
    let of_host = || capture.host.cpu_count_usable.and_then(|count| u32::try_from(count).ok());
    let cpus = plan.resources.cpus.or_else(of_host);
    let cpus_per_gpu = cpus.map(|cpus| cpus / plan.resources.gpus.max(1));
    Some(with_fields_of!(Loader, facts, [workers, pin_memory, prefetch, persistent_workers], cpus_per_gpu))
}

/// Price × hours, where both are known.
fn cost(plan: &Plan, training: &TrainingSection) -> Option<CostPlan> {
    let usd_per_gpu_hour = plan.resources.usd_per_gpu_hour;
    let stores = training.usd_per_stored_gb.is_some() || training.usd_per_moved_gb.is_some();
    if (usd_per_gpu_hour.is_none() || training.hours_expected.is_none()) && !stores {
        return None;
    }
    Some(CostPlan {
        gpus: f64::from(plan.resources.gpus),
        usd_per_gpu_hour: usd_per_gpu_hour.unwrap_or(0.0),
        hours: training.hours_expected.unwrap_or(0.0),
        stored_gb: training.stored_gb.unwrap_or(0.0),
        usd_per_stored_gb: training.usd_per_stored_gb.unwrap_or(0.0),
        moved_gb: training.moved_gb.unwrap_or(0.0),
        usd_per_moved_gb: training.usd_per_moved_gb.unwrap_or(0.0),
    })
}

/// The device that the run file names, else one that this machine has and that is known by name.
fn device(plan: &Plan, capture: &Capture) -> Option<Device> {
    let here = || capture.gpus.gpus.iter().find_map(|gpu| gpu.name.as_deref());
    plan.resources.gpu.as_deref().or_else(here).and_then(Device::named).copied()
}

/// What a process can use of the device: by its name, else according to the driver of this machine.
fn usable_bytes(plan: &Plan, capture: &Capture) -> Option<u64> {
    let measured = || capture.gpus.gpus.iter().find_map(|gpu| gpu.memory_bytes);
    device(plan, capture).map(|device| device.usable_bytes()).or_else(measured)
}

/// What the run would put on a device; none without a description of the model.
fn spec(work: &Work<'_>) -> Result<Option<MemorySpec>, AppError> {
    let Some(training) = &work.job.plan.training else { return Ok(None) };
    if training.parameters.is_none() && training.model_config.is_none() {
        return Ok(None);
    }
    let source = ModelSource {
        config: training.model_config.as_ref().map(|path| work.job.base.join(path)),
        safetensors: Vec::new(),
        parameters: training.parameters,
    };
    Ok(Some(described(MemorySpec::new(read_model(&source)?.model), training, &work.job.plan.resources)))
}

fn described(plain: MemorySpec, training: &TrainingSection, resources: &ResourcesSection) -> MemorySpec {
    let sharded = matches!(training.strategy, Some(Strategy::FullySharded | Strategy::Offloaded));
    let ranks =
        if training.strategy == Some(Strategy::Single) { 1 } else { u64::from(resources.gpus.max(1)) };
    // With `resources.nodes` the GPUs are those of all of them.
    let nodes = if resources.nodes.is_some() { 1 } else { u64::from(training.nodes.unwrap_or(1)) };
    MemorySpec {
        sequence: training.sequence_length.unwrap_or(plain.sequence),
        micro_batch: training.micro_batch.unwrap_or(plain.micro_batch),
        accumulate: training.accumulate.unwrap_or(plain.accumulate),
        precision: training.precision.unwrap_or(plain.precision),
        master: training.master_weights.unwrap_or(plain.master),
        optimizer: training.optimizer.unwrap_or(plain.optimizer),
        recompute: training.recompute.unwrap_or(plain.recompute),
        attention: training.attention.unwrap_or(plain.attention),
        loss: training.loss.unwrap_or(plain.loss),
        offload: match training.strategy {
            Some(Strategy::Offloaded) => trackway_rules::preflight::memory::Offload::Optimizer,
            _ => plain.offload,
        },
        parallel: Parallel { data: ranks * nodes, zero: if sharded { 3 } else { 0 }, ..Parallel::ONE },
        adapters: training.lora_rank.map(|rank| Adapters { rank, targets: Targets::All, base: Base::Plain }),
        ..plain
    }
}
