//! What an attempt recorded, how it used the machine, and what it cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::Step;

/// A metric of an attempt.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MetricSummary {
    pub name: String,
    /// Number of points.
    pub count: u64,
    /// The first value; null if it is not finite.
    pub first: Option<f64>,
    /// The last value; null if it is not finite.
    pub last: Option<f64>,
    /// The smallest finite value.
    pub min: Option<f64>,
    /// The greatest finite value.
    pub max: Option<f64>,
    /// Number of points that are not finite.
    pub non_finite_count: u64,
}

/// The use of the machine during an attempt, sampled once a second.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct MachineSummary {
    /// Number of samples; 0 if the attempt ended within a second.
    pub sample_count: u64,
    /// Each value over the whole attempt, by name (`docs/telemetry.md`).
    pub values: Vec<MachineValue>,
    /// How the time of the training loop was spent; null if the script did not record `step_seconds`.
    pub work: Option<LoopTime>,
}

/// A value of the machine over an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineValue {
    pub name: String,
    /// The mean over the samples.
    pub mean: Option<f64>,
    /// The smallest.
    pub min: Option<f64>,
    /// The greatest.
    pub max: Option<f64>,
    pub last: Option<f64>,
}

/// Fractions of the time of the training loop, over all ranks; they add up to 1. The utilization that a device's driver
/// reports is not used: it counts a kernel that waits for another rank as busy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopTime {
    /// Seconds of all steps and stalls, over all ranks.
    pub loop_seconds: f64,
    /// Steps without the wait for their batches.
    pub work_fraction: f64,
    /// The exposed wait for batches.
    pub batch_wait_fraction: f64,
    /// The stalls for checkpoints.
    pub checkpoint_stall_fraction: f64,
}

/// A file that is kept with the attempt.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AttemptArtifact {
    /// Its name, given by the script.
    pub name: String,
    /// The hash of its content: its name in the attempt's folder `artifacts`.
    pub blake3: String,
    pub size_bytes: u64,
    /// The step it was recorded at, if any.
    pub step: Option<Step>,
}

/// What an attempt and its run cost.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct AttemptCost {
    pub wall_seconds: Option<f64>,
    /// GPUs allocated × wall seconds.
    pub gpu_seconds: Option<f64>,
    /// CPU seconds of the script and its children.
    pub cpu_seconds: Option<f64>,
    /// Cost of the attempt in USD, if the run file has a price.
    pub cost_usd: Option<f64>,
    /// Cost of the run so far in USD.
    pub run_cost_usd: Option<f64>,
    /// GPU seconds of the run so far.
    pub run_gpu_seconds: f64,
    /// Wall seconds of all attempts so far.
    pub run_wall_seconds: f64,
    /// What the evaluations, diagnoses and rehearsals of the run took; null without any.
    pub beside: Option<CostBeside>,
    /// Steps of this attempt that do not count, as in `attempts`.
    pub lost_steps: Option<u64>,
    /// Such steps of all attempts of which they are known.
    #[serde(default)]
    pub run_lost_steps: Option<u64>,
    /// Wall seconds of an attempt that has not ended, so far; they are in `run_wall_seconds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_seconds: Option<f64>,
}

/// What launches for a run took that are not its attempts. They count in its budgets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostBeside {
    /// How many evaluations, diagnoses and rehearsals there were.
    pub runs: u64,
    pub wall_seconds: f64,
    /// GPUs allocated × their wall seconds.
    pub gpu_seconds: f64,
    /// Their cost in USD, if there is a price.
    pub cost_usd: Option<f64>,
}
