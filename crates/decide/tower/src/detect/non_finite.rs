//! NaN and infinite values.
//!
//! A finite computation never makes one, so the first one counts. One exception: with a loss scale, gradients that
//! overflow are how the scale is found; the update is skipped, and only a row of them is a problem.

use trackway_core::Step;
use trackway_core::detect::DetectionSeverity::Critical;

use super::anomaly::{Anomaly, DetectorChange, Sample, number};
use super::rules::Rule;
use super::streak::{Streak, Turn};

/// Gradients that may overflow in a row while a loss scale is sought: from 2¹⁶, the usual beginning, down to 2⁶.
const OVERFLOWS_ALLOWED: u32 = 10;
/// Finite values in a row after which it is over.
const CALM: u32 = 20;

#[derive(Debug, Clone, Default)]
pub(super) struct NonFinite {
    streak: Streak,
    last_finite: Option<(Step, f64)>,
}

impl NonFinite {
    /// `count`: the metric counts non-finite gradients; `scaled`: overflows are part of the method.
    pub(super) fn take(
        &mut self,
        rule: Rule,
        sample: Sample,
        metric: &str,
        count: bool,
        scaled: bool,
    ) -> Option<DetectorChange> {
        let bad = !sample.value.is_finite() || (count && sample.value > 0.0);
        if !bad && !self.streak.is_bad() {
            self.last_finite = Some((sample.step, sample.value));
        }
        let patience = if scaled { rule.patience.max(OVERFLOWS_ALLOWED + 1) } else { rule.patience };
        match self.streak.take(bad, sample.step, patience, CALM) {
            Turn::Nothing => None,
            Turn::Rearmed => Some(DetectorChange::Rearmed),
            Turn::Fires(first_step) => Some(DetectorChange::fires(Anomaly {
                severity: Critical,
                first_step,
                value: None,
                threshold: 0.0,
                evidence: self.evidence(metric, first_step, sample.value, count),
            })),
        }
    }

    fn evidence(&self, metric: &str, first_step: Step, value: f64, count: bool) -> String {
        let what = if count {
            format!("`{metric}` counts {} at step {first_step}", number(value))
        } else {
            format!("`{metric}` is {value} from step {first_step} on")
        };
        match self.last_finite {
            Some((step, value)) => format!("{what}; it was {} at step {step}", number(value)),
            None => format!("{what}, its first value"),
        }
    }
}
