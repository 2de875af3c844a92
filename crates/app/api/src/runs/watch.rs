//! A run that is not over.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::{AttemptId, RunId, Step, Timestamp};
use trackway_ledger::{AttemptState, RunState};

use crate::checkpoints::remote::RemoteStatus;
use crate::runs::RungSummary;
use crate::runs::detections::Detection;
use crate::runs::progressive::ProgressiveEstimate;

/// A sample of a run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RunSample {
    pub run_id: RunId,
    pub name: String,
    /// The project it belongs to; null: it is not known.
    pub project: Option<String>,
    pub state: RunState,
    /// The newest attempt.
    pub attempt_id: Option<AttemptId>,
    /// Its number in the run.
    pub attempt_number: Option<u32>,
    /// Whether the run file has a ladder of rungs.
    pub has_ladder: bool,
    /// The rung of the data that it trains on, such as `10%`.
    pub rung: Option<String>,
    /// The rungs of the run's ladder that were launched, from the smallest; empty without `[ladder]`.
    pub rungs: Vec<RungSummary>,
    /// The state of the newest attempt.
    pub attempt_state: Option<AttemptState>,
    /// How long it has been running, or ran; how long it waits, where it is in the queue of its engine.
    pub running_seconds: Option<f64>,
    /// Its wait for a place in its queue; null: it does not wait.
    pub queue: Option<QueuedRun>,
    pub progress: Progress,
    /// The number of steps that the script announced.
    pub total_steps: Option<u64>,
    /// Seconds left at the present rate.
    pub eta_seconds: Option<f64>,
    /// The last values of the metric in `progress`, oldest first; null where a value is not finite.
    pub curve: Vec<Option<f64>>,
    /// The last values of the most important metrics, that one included; at most six.
    pub curves: Vec<LiveCurve>,
    /// The loss on data that the model has not seen, by progressive validation, over this attempt.
    pub progressive: Option<ProgressiveEstimate>,
    /// The last sample of the machine: values by name (`docs/telemetry.md`); empty before the first one.
    pub machine: BTreeMap<String, f64>,
    /// The retry budgets of the run.
    pub budgets: Vec<Budget>,
    /// The last ten findings of detectors, oldest first.
    pub detections: Vec<Detection>,
    /// The state of its remote; null without one.
    pub remote: Option<RemoteStatus>,
    /// Whether it waits, for a place in its queue or for its next attempt, and no process supervises it: nothing happens before it is
    /// resumed, and this is the last line.
    pub unsupervised: bool,
    /// Whether the run has ended: this is the last line.
    pub ended: bool,
}

/// A run that waits for a place in its queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueuedRun {
    pub name: String,
    /// How many of its places are taken.
    pub running: u32,
    /// How long the run has been waiting.
    pub waited_seconds: f64,
}

/// The progress of the live attempt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    /// The last step in the flight record.
    pub step: Option<Step>,
    /// Steps per second over the last window.
    pub steps_per_second: Option<f64>,
    /// The metric named `loss`, or else the first one, and its last value.
    pub loss: Option<(String, Option<f64>)>,
    /// The last step with a committed checkpoint.
    pub last_committed_step: Option<Step>,
    /// Time of the last sign of life of the training process.
    pub heartbeat_at: Option<Timestamp>,
}

/// The last values of one metric.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveCurve {
    /// The metric.
    pub name: String,
    /// The step of the last value.
    pub last_step: Step,
    /// The values, oldest first; null where a value is not finite.
    pub values: Vec<Option<f64>>,
}

/// A retry budget of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Budget {
    pub name: String,
    pub spent: f64,
    /// What there is in all; null: no limit.
    pub limit: Option<f64>,
}
