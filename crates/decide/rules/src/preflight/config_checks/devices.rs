use super::{Answer, Strategy, TrainingConfig, blocked, not_applicable, passed, warned};
use crate::preflight::memory::{MemorySpec, Parallel, estimate_corrected};

/// What devices of one machine linked by NVLink reach of as many times one device's rate.
const SCALING_MIN: f64 = 0.85;
const SCALING_USUAL_MAX: f64 = 0.95;
/// Beyond this the rate of one device was measured wrong.
const SCALING_IMPLAUSIBLE: f64 = 1.05;

/// A run that surely does not fit is blocked before it costs anything.
pub(super) fn memory(name: &str, config: &TrainingConfig) -> Answer {
    if config.without_gpu() {
        return not_applicable(name, "the run has no GPU");
    }
    let (spec, usable_bytes) = needed(config)?;
    let found = estimate_corrected(spec, config.memory_correction);
    let gib = |bytes: u64| bytes as f64 / 1_073_741_824.0;
    let by = if config.memory_correction.is_some() { ", by a measured peak" } else { "" };
    let interval = format!("{:.1} to {:.1} GiB{by}", gib(found.low_bytes), gib(found.high_bytes));
    let usable = gib(usable_bytes);
    let action = "`trackway memory` lists what would fit, cheapest first";
    if found.low_bytes > usable_bytes {
        let message = format!("the run needs {interval}, a GPU has {usable:.1} GiB");
        blocked(name, "memory", message, action)
    } else if found.high_bytes > usable_bytes {
        let message =
            format!("the run needs {interval}, a GPU has {usable:.1} GiB: it may run out of memory");
        warned(name, "memory", message, "rehearse one batch, or see `trackway memory`")
    } else {
        passed(name, format!("the run needs {interval} of {usable:.1} GiB"))
    }
}

/// The model and the memory of a device, or which of them is not known.
fn needed(config: &TrainingConfig) -> Result<(&MemorySpec, u64), &'static str> {
    let spec = config.memory.as_ref();
    let spec = spec.ok_or("neither `training.parameters` nor `training.model_config` is set")?;
    let usable_bytes = config.usable_bytes;
    Ok((spec, usable_bytes.ok_or("the memory of the GPU is not known: set `resources.gpu`")?))
}

/// DDP while everything fits one device, then FSDP, and offloading where that is not enough.
pub(super) fn strategy(name: &str, config: &TrainingConfig) -> Answer {
    if config.without_gpu() {
        return not_applicable(name, "the run has no GPU");
    }
    let gpus = config.gpus.ok_or("`resources.gpus` is not set")?;
    let strategy = config.strategy.ok_or("`training.strategy` is not set")?;
    if gpus > 1 && strategy == Strategy::Single {
        let message = format!("{gpus} GPUs are requested, but `training.strategy` uses only one");
        return blocked(name, "resources.gpus", message, "request one GPU, or use DDP");
    }
    if gpus <= 1 && strategy == Strategy::FullySharded {
        let message = "FSDP on a single GPU shards nothing";
        return warned(name, "strategy", message, "run without FSDP");
    }
    let (spec, usable_bytes) = needed(config)?;
    let whole = estimate_corrected(&on_one_device(spec), config.memory_correction);
    match strategy {
        Strategy::DataParallel if whole.low_bytes > usable_bytes => {
            let message = "with DDP every GPU holds a full replica, which does not fit";
            blocked(name, "strategy", message, "use FSDP or DeepSpeed ZeRO-3")
        }
        Strategy::FullySharded | Strategy::Offloaded if whole.high_bytes <= usable_bytes => {
            let message = "a full replica fits one GPU: sharding and offloading only add communication";
            warned(name, "strategy", message, "use DDP")
        }
        _ => passed(name, "the strategy suits the size of the run"),
    }
}

fn on_one_device(spec: &MemorySpec) -> MemorySpec {
    let mut whole = spec.clone();
    whole.parallel = Parallel { data: spec.parallel.data, ..Parallel::ONE };
    whole
}

/// Devices of one NVLink node reach 85 to 95 % of as many times one device's rate.
pub(super) fn scaling(name: &str, config: &TrainingConfig) -> Answer {
    let gpus = config.gpus.ok_or("`resources.gpus` is not set")?;
    if gpus < 2 {
        return not_applicable(name, "the run has no second GPU");
    }
    let rate = config.throughput.ok_or("the throughput of one GPU and of all GPUs was not measured")?;
    if config.nodes.is_some_and(|nodes| nodes > 1) || rate.nvlink == Some(false) {
        return not_applicable(name, "the check applies to a single machine with NVLink");
    }
    let share = rate.samples_per_second / (rate.samples_per_second_of_one * f64::from(gpus));
    let percent = share * 100.0;
    if !share.is_finite() || share > SCALING_IMPLAUSIBLE {
        return Err("the measured throughput is implausible: scaling is better than linear");
    }
    if share < SCALING_MIN {
        let message = format!(
            "{gpus} GPUs reach {percent:.0} % of linear scaling; {:.0} to {:.0} % is usual on one NVLink node",
            SCALING_MIN * 100.0,
            SCALING_USUAL_MAX * 100.0
        );
        let action = "look for stalls: data loading, small batches, communication that does not overlap with computation";
        return warned(name, "throughput", message, action);
    }
    passed(name, format!("{gpus} GPUs reach {percent:.0} % of linear scaling"))
}
