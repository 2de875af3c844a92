use trackway_core::checks::Finding;

use super::{Answer, TrainingConfig, found, passed, warning};

/// Batches ahead that hide a slow file now and then.
const PREFETCH_MIN: u32 = 2;
/// Beyond this, batches ahead only fill the memory.
const PREFETCH_MAX: u32 = 16;

/// A device that waits for data costs what it costs at work: about 30 % of job time is lost that way.
pub(super) fn loader(name: &str, config: &TrainingConfig) -> Answer {
    let loader = config.loader.ok_or("`training.loader` is not set")?;
    let on_gpu = !config.without_gpu();
    let mut findings = Vec::new();
    let mut say = |setting: &str, message: String, action: &str| {
        findings.push(warning(name, setting, message, action));
    };
    match (loader.workers, loader.cpus_per_gpu) {
        (Some(0), _) if on_gpu => say(
            "workers",
            "no loader workers: the GPU waits while each batch is read".into(),
            "use 4 per GPU, then measure the wait",
        ),
        (Some(workers), Some(cpus)) if workers > cpus => say(
            "workers",
            format!("{workers} loader workers compete for {cpus} CPUs"),
            "use at most one worker per CPU",
        ),
        _ => {}
    }
    let has_workers = loader.workers.is_some_and(|workers| workers > 0);
    if loader.pin_memory == Some(false) && on_gpu {
        say("pin_memory", "batches are copied twice on their way to the GPU".into(), "set `pin_memory=True`");
    }
    match loader.prefetch {
        Some(prefetch) if has_workers && prefetch < PREFETCH_MIN => {
            say(
                "prefetch",
                format!("prefetching {prefetch} batches per worker does not hide a slow read"),
                "set `prefetch_factor` to 2 to 4",
            );
        }
        Some(prefetch) if prefetch > PREFETCH_MAX => {
            say(
                "prefetch",
                format!("prefetching {prefetch} batches per worker fills the memory"),
                "set `prefetch_factor` to 2 to 4",
            );
        }
        _ => {}
    }
    if loader.persistent_workers == Some(false) && has_workers {
        let message = "loader workers restart at every epoch".into();
        say("persistent_workers", message, "set `persistent_workers=True`");
    }
    answer(name, findings, loader.workers)
}

fn answer(name: &str, findings: Vec<Finding>, workers: Option<u32>) -> Answer {
    match (findings.is_empty(), workers) {
        (false, _) => found(name, findings),
        (true, Some(workers)) => passed(name, format!("{workers} loader workers")),
        (true, None) => Err("`training.loader.workers` is not set"),
    }
}
