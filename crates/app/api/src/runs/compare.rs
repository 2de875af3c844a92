//! Runs side by side. Each list of values has one entry for each run, in the order of `runs`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::text::duration;
use trackway_core::{MetricStep, RunId, TerminationReason, Timestamp};
use trackway_ledger::RunState;

use crate::runs::changes::Diff;

/// Runs side by side. Each list of values has one entry for each run, in the order of `runs`; null: the run lacks it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RunComparison {
    pub runs: Vec<ComparedRun>,
    /// What each other run started from, compared with the first one.
    pub changes: Vec<Diff>,
    /// The parameters of the commands and those that the scripts of sealed attempts recorded, equal ones too.
    pub parameters: Vec<ComparedValue>,
    /// The keys of the plan that differ.
    pub config: Vec<ComparedValue>,
    /// The content of each data set, by its hash.
    pub data: Vec<ComparedValue>,
    /// The environment of the last attempts.
    pub environment: Vec<ComparedValue>,
    /// The metrics over the effective curve of each run's rung: steps that a resume made void do not count.
    pub metrics: Vec<ComparedMetric>,
    /// The numbers of evaluations that were named (`--metrics eval.accuracy`), each of the newest completed evaluation
    /// of a run that has it.
    #[serde(default)]
    pub evaluations: Vec<ComparedNumber>,
    /// The curves, thinned out to means over equal ranges of steps.
    pub curves: Vec<ComparedCurve>,
}

/// A run that is compared.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ComparedRun {
    pub run_id: RunId,
    pub name: String,
    /// The rung of the data that its last attempt trained on, such as `10%`; metrics and curves are those of this rung.
    pub rung: String,
    pub state: RunState,
    /// Why its last attempt ended.
    pub termination_reason: Option<TerminationReason>,
    /// Number of attempts so far.
    pub attempt_count: u32,
    pub created_at: Timestamp,
    /// Wall seconds of all attempts that ended.
    pub wall_seconds: f64,
    /// Wall seconds of an attempt that has not ended, so far; they are not in `wall_seconds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_seconds: Option<f64>,
    /// GPU seconds of all attempts.
    pub gpu_seconds: f64,
    /// Cost of all attempts in USD.
    pub cost_usd: Option<f64>,
}

impl ComparedRun {
    /// How long its attempts took, as text: of one that runs, so far; empty where none has begun.
    #[must_use]
    pub fn took(&self) -> String {
        match self.running_seconds {
            Some(running) => format!("{} so far", duration(self.wall_seconds + running)),
            None if self.wall_seconds <= 0.0 => String::new(),
            None => duration(self.wall_seconds),
        }
    }
}

/// A key and its value in each run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedValue {
    /// The key.
    pub name: String,
    /// Whether the runs differ in it.
    pub differs: bool,
    /// Its value in each run, as JSON.
    pub values: Vec<Option<String>>,
}

/// A metric and its summary in each run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ComparedMetric {
    pub name: String,
    /// Its summary in each run.
    pub values: Vec<Option<CurveSummary>>,
}

/// A number of an evaluation and its value in each run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedNumber {
    /// The number, as `runs --sort` names it: `eval.accuracy`, `eval.slice.older.recall`.
    pub name: String,
    /// Its value in each run; null where the run has none, or a value that is not finite.
    pub values: Vec<Option<f64>>,
}

/// The summary of a curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurveSummary {
    pub point_count: u64,
    /// The last step with a value.
    pub last_step: MetricStep,
    /// The value there; null if it is not finite.
    pub last: Option<f64>,
    /// The smallest finite value.
    pub min: Option<f64>,
    /// The first step that had it.
    pub min_step: Option<MetricStep>,
    /// The greatest finite value.
    pub max: Option<f64>,
    /// The first step that had it.
    pub max_step: Option<MetricStep>,
}

/// A metric of all runs as curves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedCurve {
    /// The metric.
    pub name: String,
    /// Each point is the mean over this many steps.
    pub steps_per_point: u64,
    /// The points of each run as pairs of step and value; a value is null if it is not finite.
    pub series: Vec<Vec<(MetricStep, Option<f64>)>>,
}

impl ComparedCurve {
    /// Whether a run has more than one point, so that there is a curve to draw.
    #[must_use]
    pub fn has_line(&self) -> bool {
        self.series.iter().any(|series| series.len() > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a run which runs says how long it did so far, with its attempts before, and that one which never began says nothing.
    #[test]
    fn a_running_run_took_no_time_yet() {
        let took = |wall_seconds: f64, running_seconds: Option<f64>| {
            let run = ComparedRun {
                run_id: "run_01kajn4f3s0000000000000000".parse().unwrap(),
                name: "a".into(),
                rung: "100%".into(),
                state: RunState::Running,
                termination_reason: None,
                attempt_count: 1,
                created_at: Timestamp::from_micros(0),
                wall_seconds,
                running_seconds,
                gpu_seconds: 0.0,
                cost_usd: None,
            };
            run.took()
        };
        assert_eq!(took(90.0, None), "1 min 30 s");
        assert_eq!(took(0.0, Some(90.0)), "1 min 30 s so far");
        assert_eq!(took(60.0, Some(30.0)), "1 min 30 s so far");
        assert_eq!(took(0.0, None), "");
    }
}
