//! Nothing comes any more.
//!
//! A run is given five times its longest step so far (NVIDIA's resiliency extension), checkpoints and evaluations among them,
//! and never less than two minutes (DLRover's floor); before the first steps, half an hour (SageMaker Debugger's
//! `StalledTraining`): opening data and compiling take their time.

use trackway_core::Step;
use trackway_core::detect::DetectionSeverity::Critical;

use crate::detect::anomaly::{Anomaly, number};
use crate::detect::rules::Rule;

/// Steps before the longest one counts.
const START_STEPS: u32 = 5;
/// How long the beginning may take, in seconds, and the first steps after it.
const BEGINNING_SECONDS: f64 = 1800.0;

/// The steps of one rank, by the time of their values.
#[derive(Debug, Clone, Default)]
pub(in crate::detect) struct Hang {
    seen: u32,
    last: Option<(Step, f64)>,
    longest_seconds: f64,
    fired: bool,
}

impl Hang {
    /// A value of `step` that was recorded at `at_seconds`; returns whether an episode ended.
    pub(in crate::detect) fn alive(&mut self, step: Step, at_seconds: f64) -> bool {
        let Some((last_step, last_seconds)) = self.last else {
            self.last = Some((step, at_seconds));
            return false;
        };
        if step == last_step {
            return false;
        }
        self.seen = self.seen.saturating_add(1);
        // A wall clock may be set; a step does not take negative time.
        self.longest_seconds = self.longest_seconds.max(at_seconds - last_seconds);
        self.last = Some((step, at_seconds));
        std::mem::take(&mut self.fired)
    }

    /// Whether there was a second step.
    pub(in crate::detect) fn has_stepped(&self) -> bool {
        self.seen > 0
    }

    /// The time of the last value.
    pub(in crate::detect) fn last_seconds(&self) -> Option<f64> {
        self.last.map(|(_, seconds)| seconds)
    }

    /// Nothing came for `quiet_seconds`.
    pub(in crate::detect) fn tick(&mut self, rule: Rule, quiet_seconds: f64) -> Option<(Step, f64, Anomaly)> {
        let (step, _) = self.last?;
        let floor = f64::from(rule.patience);
        let limit = if self.seen < START_STEPS {
            BEGINNING_SECONDS.max(floor)
        } else {
            floor.max(rule.threshold * self.longest_seconds)
        };
        if self.fired || quiet_seconds <= limit {
            return None;
        }
        self.fired = true;
        let found = Anomaly {
            severity: Critical,
            first_step: step,
            value: Some(quiet_seconds),
            threshold: limit,
            evidence: format!(
                "no sign of life for {} s after step {step}; the longest step took {} s",
                number(quiet_seconds),
                number(self.longest_seconds)
            ),
        };
        Some((step, quiet_seconds, found))
    }
}
