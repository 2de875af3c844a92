use super::{TrainingConfig, warning};
use trackway_core::checks::{CheckResult, Finding};

const NAME: &str = "config.loader";
/// Batches ahead that hide a slow file now and then.
const PREFETCH_MIN: u32 = 2;
/// Beyond this, batches ahead only fill the memory.
const PREFETCH_MAX: u32 = 16;

/// A device that waits for data costs what it costs at work: about 30 % of job time is lost that way.
pub(super) fn loader(config: &TrainingConfig) -> CheckResult {
    let Some(loader) = config.loader else {
        return CheckResult::not_run(NAME, "nobody told how batches are loaded");
    };
    let on_gpu = !config.without_gpu();
    let mut findings = Vec::new();
    let mut say = |setting: &str, message: String, action: &str| {
        findings.push(warning(NAME, setting, message, action));
    };
    match (loader.workers, loader.cpus_per_gpu) {
        (Some(0), _) if on_gpu => say(
            "workers",
            "no loader processes: the device waits while each batch is read".into(),
            "use 4 for each device, then measure the wait",
        ),
        (Some(workers), Some(cpus)) if workers > cpus => say(
            "workers",
            format!("{workers} loader processes share {cpus} processors: they wait for one another"),
            "use at most as many as processors",
        ),
        _ => {}
    }
    let has_workers = loader.workers.is_some_and(|workers| workers > 0);
    if loader.pin_memory == Some(false) && on_gpu {
        say("pin_memory", "batches are copied twice on their way to the device".into(), "set `pin_memory`");
    }
    match loader.prefetch {
        Some(prefetch) if has_workers && prefetch < PREFETCH_MIN => {
            say("prefetch", format!("{prefetch} batch ahead does not hide a slow read"), "prefetch 2 to 4");
        }
        Some(prefetch) if prefetch > PREFETCH_MAX => {
            say(
                "prefetch",
                format!("{prefetch} batches ahead of each worker fill the memory"),
                "prefetch 2 to 4",
            );
        }
        _ => {}
    }
    if loader.persistent_workers == Some(false) && has_workers {
        let message = "loader processes start anew with every epoch".into();
        say("persistent_workers", message, "set `persistent_workers`");
    }
    answer(findings, loader.workers)
}

fn answer(findings: Vec<Finding>, workers: Option<u32>) -> CheckResult {
    match (findings.is_empty(), workers) {
        (false, _) => CheckResult::of(NAME, findings),
        (true, Some(workers)) => CheckResult::pass(NAME, format!("{workers} loader processes")),
        (true, None) => CheckResult::not_run(NAME, "nobody told how many processes load"),
    }
}
