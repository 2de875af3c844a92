//! Whether the settings of a training run are those of a run that can be paid for, repeated and resumed.
//!
//! Each check is a function of the known settings. A check without its settings is *not run*, never *passed*; one that
//! makes no sense for the run, such as mixed precision without a device, is *not applicable*.

mod budget;
mod devices;
mod loader;
mod measured;
mod optimisation;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use trackway_core::checks::{CheckResult, Finding, NoRows, Severity};

pub use trackway_formats::runfile::training::Strategy;

pub use self::measured::{Compile, Interruptions, Logging, Measurements, SaveTime};
use crate::preflight::cost::CostPlan;
use crate::preflight::memory::{Calibration, MemorySpec, Precision};

/// The known settings of a run, from the run file, recorded parameters and arguments. `None`: not set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TrainingConfig {
    pub seed: Option<u64>,
    /// Devices that compute.
    pub gpus: Option<u32>,
    /// Machines they are in.
    pub nodes: Option<u32>,
    /// The type of the matrix products.
    pub precision: Option<Precision>,
    /// fp16 gradients are scaled so that small ones are not lost.
    pub loss_scaling: Option<bool>,
    /// The norm that gradients are cut to; 0 or less: they are not.
    pub gradient_clip_norm: Option<f64>,
    /// Steps in which the learning rate rises.
    pub warmup_steps: Option<u64>,
    /// Steps in all.
    pub total_steps: Option<u64>,
    /// Checkpoints are written.
    pub checkpointing: Option<bool>,
    /// The script's text shows that it may request them.
    pub asks_for_checkpoints: Option<bool>,
    /// How often, in seconds of work.
    pub checkpoint_interval_seconds: Option<f64>,
    /// The rungs that it climbs before it trains on all data, where checkpoints are due by steps or by time.
    pub ladder: Option<Rungs>,
    /// The devices may be taken away (spot, preemptible).
    pub preemptible: Option<bool>,
    /// How batches are loaded.
    pub loader: Option<Loader>,
    /// How the run is spread over devices.
    pub strategy: Option<Strategy>,
    /// What it would put on a device.
    pub memory: Option<MemorySpec>,
    /// How far a measured peak of such a run was from what is expected.
    pub memory_correction: Option<Calibration>,
    /// What a process can use of a device, in bytes.
    pub usable_bytes: Option<u64>,
    /// Samples a second of the whole run, and of one device alone, as measured.
    pub throughput: Option<Throughput>,
    /// What it is expected to cost.
    pub cost: Option<CostPlan>,
    /// What it may cost, in US dollars.
    pub budget_usd: Option<f64>,
    /// What a rehearsal or an earlier run measured.
    pub measured: Measurements,
}

/// The rungs of a ladder, beside the cadence of checkpoints.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rungs {
    /// Fractions of the data, ascending.
    pub fractions: Vec<f64>,
    /// A rung starts from the checkpoint of the one before.
    pub warm_start: bool,
    /// A checkpoint is due after so many steps.
    pub every_steps: Option<u64>,
}

/// How batches are loaded (the settings of PyTorch's `DataLoader`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Loader {
    /// Processes that load; 0: the training process itself.
    pub workers: Option<u32>,
    /// Processors for one device's processes.
    pub cpus_per_gpu: Option<u32>,
    /// Batches are put into memory that the device can read by itself.
    pub pin_memory: Option<bool>,
    /// Batches each worker prepares ahead.
    pub prefetch: Option<u32>,
    /// Workers live through epochs.
    pub persistent_workers: Option<bool>,
}

/// A measured rate against that of one device.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// Samples a second of the whole run.
    pub samples_per_second: f64,
    /// Samples a second of one device that works alone.
    pub samples_per_second_of_one: f64,
    /// Whether the devices are linked by NVLink; none: not known.
    pub nvlink: Option<bool>,
}

impl TrainingConfig {
    /// The run computes on the host's processors. Unknown counts as no: a check then names the missing setting.
    fn without_gpu(&self) -> bool {
        self.gpus == Some(0)
    }
}

/// All checks, in the order in which they are shown.
#[must_use]
pub fn config_checks(config: &TrainingConfig) -> Vec<CheckResult> {
    let checks: [(&str, Check); 14] = [
        ("config.seed", optimisation::seed),
        ("config.mixed_precision", optimisation::precision),
        ("config.gradient_clipping", optimisation::gradient_clipping),
        ("config.warmup", optimisation::warmup),
        ("config.checkpointing", optimisation::checkpointing),
        ("config.checkpoint_time", measured::checkpoint_time),
        ("config.model_size", measured::model_size),
        ("config.compile", measured::compile),
        ("config.logging", measured::logging),
        ("config.loader", loader::loader),
        ("memory", devices::memory),
        ("config.strategy", devices::strategy),
        ("config.scaling", devices::scaling),
        ("cost", budget::budget),
    ];
    let answer = |(name, check): (&str, Check)| {
        check(name, config).unwrap_or_else(|why| CheckResult::not_run(name, why))
    };
    checks.into_iter().map(answer).collect()
}

/// A warning about one setting, with what to do.
fn warning(check: &str, setting: &str, message: impl Into<String>, action: &str) -> Finding {
    Finding::new(check, Severity::Warn, message).about(setting).action(action)
}

/// A check of settings, with the name of its result.
type Check = fn(&str, &TrainingConfig) -> Answer;

/// The result of a check, or why it could not run.
type Answer = Result<CheckResult, &'static str>;

/// What the check found, if anything.
fn found(check: &str, findings: Vec<Finding>) -> Answer {
    Ok(CheckResult::about(check, NoRows::Settings, findings))
}

/// The check found nothing to change, for this reason.
fn passed(check: &str, why: impl Into<String>) -> Answer {
    found(check, Vec::new()).map(|result| result.because(why))
}

/// The check is not for this run, for this reason.
fn not_applicable(check: &str, why: impl Into<String>) -> Answer {
    Ok(CheckResult::not_applicable(check, why))
}

/// The check warns about one setting.
fn warned(check: &str, setting: &str, message: impl Into<String>, action: &str) -> Answer {
    found(check, vec![warning(check, setting, message, action)])
}

/// The run must not start with this setting.
fn blocked(check: &str, setting: &str, message: impl Into<String>, action: &str) -> Answer {
    let finding = Finding::new(check, Severity::Block, message).about(setting).action(action);
    found(check, vec![finding])
}
