use super::{Strategy, TrainingConfig, block, warning};
use crate::memory::{MemorySpec, Parallel, estimate};
use trackway_core::checks::CheckResult;

/// What devices of one machine linked by NVLink reach of as many times one device's rate.
const SCALING_MIN: f64 = 0.85;
const SCALING_USUAL_MAX: f64 = 0.95;
/// What nobody reaches: the rate of one device was measured wrong.
const SCALING_IMPLAUSIBLE: f64 = 1.05;

/// A run that surely does not fit is blocked before it costs anything.
pub(super) fn memory(config: &TrainingConfig) -> CheckResult {
    const NAME: &str = "memory";
    if config.without_gpu() {
        return CheckResult::not_applicable(NAME, "the run has no GPU");
    }
    let (Some(spec), Some(usable_bytes)) = (&config.memory, config.usable_bytes) else {
        return CheckResult::not_run(NAME, "nobody told the model's shape and the device");
    };
    let found = estimate(spec);
    let gib = |bytes: u64| bytes as f64 / 1_073_741_824.0;
    let interval = format!("{:.1} to {:.1} GiB", gib(found.low_bytes), gib(found.high_bytes));
    let usable = gib(usable_bytes);
    let action = "`trackway memory` names what would fit, cheapest first";
    if found.low_bytes > usable_bytes {
        let message = format!("a device has {usable:.1} GiB, the run needs {interval}");
        CheckResult::of(NAME, vec![block(NAME, "memory", message, action)])
    } else if found.high_bytes > usable_bytes {
        let message = format!("a device has {usable:.1} GiB, the run needs {interval}: it may run out");
        CheckResult::of(
            NAME,
            vec![warning(NAME, "memory", message, "rehearse one batch, or see `trackway memory`")],
        )
    } else {
        CheckResult::pass(NAME, format!("the run needs {interval} of {usable:.1} GiB"))
    }
}

/// DDP while everything fits one device, then FSDP, and offloading where that is not enough.
pub(super) fn strategy(config: &TrainingConfig) -> CheckResult {
    const NAME: &str = "config.strategy";
    if config.without_gpu() {
        return CheckResult::not_applicable(NAME, "the run has no GPU");
    }
    let (Some(gpus), Some(strategy)) = (config.gpus, config.strategy) else {
        return CheckResult::not_run(NAME, "nobody told how the run is spread over devices");
    };
    if gpus > 1 && strategy == Strategy::Single {
        let message = format!("{gpus} GPUs are held, and one is used");
        return CheckResult::of(
            NAME,
            vec![block(NAME, "resources.gpus", message, "ask for one, or use DDP")],
        );
    }
    if gpus <= 1 && strategy == Strategy::FullySharded {
        let message = "one GPU has nobody to share with";
        return CheckResult::of(NAME, vec![warning(NAME, "strategy", message, "run without FSDP")]);
    }
    let (Some(spec), Some(usable_bytes)) = (&config.memory, config.usable_bytes) else {
        return CheckResult::not_run(NAME, "nobody told the model's shape and the device");
    };
    let whole = estimate(&on_one_device(spec));
    match strategy {
        Strategy::DataParallel if whole.low_bytes > usable_bytes => {
            let message = "every device would hold everything (DDP), which does not fit one";
            CheckResult::of(
                NAME,
                vec![block(NAME, "strategy", message, "shard with FSDP, or with DeepSpeed ZeRO 3")],
            )
        }
        Strategy::FullySharded | Strategy::Offloaded if whole.high_bytes <= usable_bytes => {
            let message = "everything fits one device: sharding and offloading only cost communication";
            CheckResult::of(NAME, vec![warning(NAME, "strategy", message, "use DDP")])
        }
        _ => CheckResult::pass(NAME, "the strategy suits the size of the run"),
    }
}

fn on_one_device(spec: &MemorySpec) -> MemorySpec {
    let mut whole = spec.clone();
    whole.parallel = Parallel { data: spec.parallel.data, ..Parallel::ONE };
    whole
}

/// Devices of one NVLink node reach 85 to 95 % of as many times one device's rate.
pub(super) fn scaling(config: &TrainingConfig) -> CheckResult {
    const NAME: &str = "config.scaling";
    let Some(gpus) = config.gpus else {
        return CheckResult::not_run(NAME, "nobody told how many GPUs there are");
    };
    if gpus < 2 {
        return CheckResult::not_applicable(NAME, "the run has no second GPU");
    }
    let Some(rate) = config.throughput else {
        return CheckResult::not_run(NAME, "no rate of one device and of all was measured");
    };
    if config.nodes.is_some_and(|nodes| nodes > 1) || !rate.nvlink {
        return CheckResult::not_applicable(NAME, "the expectation is for one machine with NVLink");
    }
    let share = rate.samples_per_second / (rate.samples_per_second_of_one * f64::from(gpus));
    let percent = share * 100.0;
    if !share.is_finite() || share > SCALING_IMPLAUSIBLE {
        return CheckResult::not_run(
            NAME,
            "the measured rates cannot be right: together more than all alone",
        );
    }
    if share < SCALING_MIN {
        let message = format!(
            "{gpus} GPUs reach {percent:.0} % of {gpus} times one; {:.0} to {:.0} % is usual on one NVLink node",
            SCALING_MIN * 100.0,
            SCALING_USUAL_MAX * 100.0
        );
        let action = "look for waiting: data loading, small batches, gradients that are not overlapped";
        return CheckResult::of(NAME, vec![warning(NAME, "throughput", message, action)]);
    }
    CheckResult::pass(NAME, format!("{gpus} GPUs reach {percent:.0} % of {gpus} times one"))
}
