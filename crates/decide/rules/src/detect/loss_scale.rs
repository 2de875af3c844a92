//! The loss scale of 16-bit training, when it falls to nothing.
//!
//! It is halved at each overflow and doubled after thousands of good steps, so a few halvings at the beginning are the
//! search for it. Below 1 it makes gradients smaller instead of larger, which is never intended (OPT-175B's log
//! restarts there). Eight halvings within 64 steps, once a hundred steps have gone by, are a run that overflows all the
//! time.

use trackway_core::detect::DetectionSeverity::Critical;

use super::anomaly::{DetectorChange, Sample, number};
use super::rules::Rule;
use super::series::streak::Streak;

/// Steps in which the scale is sought.
const SEARCH_STEPS: u32 = 100;
/// Steps in which halvings are counted.
const SPAN: usize = 64;
/// Steps without a problem after which it is over.
const CALM: u32 = 64;

#[derive(Debug, Clone)]
pub(super) struct LossScale {
    seen: u32,
    last: [f64; SPAN],
    streak: Streak,
}

impl Default for LossScale {
    fn default() -> Self {
        Self { seen: 0, last: [0.0; SPAN], streak: Streak::default() }
    }
}

impl LossScale {
    /// Takes a finite loss scale.
    pub(super) fn take(&mut self, rule: Rule, sample: Sample) -> Option<DetectorChange> {
        let place = self.seen as usize % SPAN;
        let before = std::mem::replace(&mut self.last[place], sample.value);
        self.seen = self.seen.saturating_add(1);
        let fell =
            self.seen > SEARCH_STEPS && sample.value * 2f64.powi(rule.patience.min(60) as i32) <= before;
        let turn = self.streak.take(sample.value < rule.threshold || fell, sample.step, 1, CALM);
        turn.change(Critical, None, rule.threshold, || {
            let now = format!("the loss scale is {}", number(sample.value));
            if fell { format!("{now}, and was {} some {SPAN} steps ago", number(before)) } else { now }
        })
    }
}
