//! Progressive validation: each batch is evaluated before the model is trained on it, so its loss is one on data that the
//! model has not seen (Blum, Kalai and Langford, COLT 1999), and no data is held back for it.
//!
//! The values come in windows. The mean of a window has a band that holds at any time; from a window to the next one
//! the mean falls by a value whose band holds at whichever window a caller stops.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::Step;
use trackway_statistics::{Interval, RunningMean, VALUES_MIN, fall_between};

/// Values in a window if the run file does not set it.
pub const WINDOW_DEFAULT: u64 = 1_000;
/// With fewer values in a window the estimate is too uncertain.
pub const WINDOW_MIN: u64 = VALUES_MIN;
/// The confidence of the bands.
pub const CONFIDENCE: f64 = 0.95;

/// The estimate of one stream of losses.
#[derive(Debug, Clone)]
pub struct Progressive {
    window: u64,
    now: Window,
    before: Option<Window>,
    fall: Option<Fall>,
    looks: u64,
    last_step: Option<Step>,
}

#[derive(Debug, Clone)]
struct Window {
    mean: RunningMean,
    first_step: Step,
    last_step: Step,
}

/// The estimate of a rung (`docs/progressive.md`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgressiveEstimate {
    /// The mean over the newest window that has enough values; null if it is not finite.
    pub mean: Option<f64>,
    /// Its 95 % band, as `low` and `high`; null with too few values.
    #[serde(flatten)]
    pub band: Interval,
    /// Number of values in that window.
    pub value_count: u64,
    pub first_step: Step,
    pub last_step: Step,
    /// The decrease of the mean between the last two complete windows; null before there are two.
    pub fall: Option<Fall>,
    /// Why this is not the loss on unseen data; null if nothing indicates so.
    pub invalid: Option<String>,
}

/// How far the mean fell from one whole window to the next.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fall {
    /// The mean of the earlier window.
    pub from: f64,
    /// The mean of the later one.
    pub to: f64,
    /// The band of `from - to`, as `low` and `high`.
    #[serde(flatten)]
    pub band: Interval,
    /// The last step of the later window.
    pub step: Step,
}

impl Fall {
    /// The most that the mean may have fallen, as a fraction of where it was.
    #[must_use]
    pub fn share_at_most(&self) -> f64 {
        self.band.high / self.from.abs()
    }
}

impl Window {
    fn at(step: Step) -> Self {
        Self { mean: RunningMean::new(CONFIDENCE), first_step: step, last_step: step }
    }
}

impl Progressive {
    /// With so many values in a window; [`WINDOW_MIN`] at least.
    #[must_use]
    pub fn new(window: u64) -> Self {
        let window = window.max(WINDOW_MIN);
        Self { window, now: Window::at(0), before: None, fall: None, looks: 0, last_step: None }
    }

    /// Takes the next loss. At the end of a window it returns how far the mean fell since the one before, if known.
    /// Steps that are repeated after a resume restart a window.
    pub fn take(&mut self, step: Step, loss: f64) -> Option<Fall> {
        let again = self.last_step.replace(step).is_some_and(|last| step <= last);
        if again {
            self.before = self.before.take().filter(|before| before.last_step < step);
        }
        if again || self.now.mean.count() == 0 {
            self.now = Window::at(step);
        }
        self.now.mean.push(loss);
        self.now.last_step = step;
        // A value that is not finite does not affect the others: they restart after it.
        if self.now.mean.mean().is_none() {
            (self.before, self.now) = (None, Window::at(step));
            return None;
        }
        if self.now.mean.count() < self.window {
            return None;
        }
        let after = std::mem::replace(&mut self.now, Window::at(step));
        let found = self.before.as_ref().and_then(|before| self.fall_to(before, &after));
        self.before = Some(after);
        self.looks += u64::from(found.is_some());
        self.fall = found.or(self.fall);
        found
    }

    fn fall_to(&self, before: &Window, after: &Window) -> Option<Fall> {
        let band = fall_between(&before.mean, &after.mean, self.looks + 1, CONFIDENCE)?;
        let (from, to) = (before.mean.mean()?, after.mean.mean()?);
        Some(Fall { from, to, band, step: after.last_step })
    }

    /// What is known now; `None` before the first value.
    #[must_use]
    pub fn estimate(&self) -> Option<ProgressiveEstimate> {
        let enough = |window: &&Window| window.mean.count() >= VALUES_MIN;
        let window = Some(&self.now).filter(enough).or(self.before.as_ref()).unwrap_or(&self.now);
        Some(ProgressiveEstimate {
            mean: Some(window.mean.mean()?).filter(|mean| mean.is_finite()),
            band: window.mean.band().unwrap_or(Interval::UNKNOWN),
            value_count: window.mean.count(),
            first_step: window.first_step,
            last_step: window.last_step,
            fall: self.fall,
            invalid: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use trackway_core::{Rng as _, SplitMix64};

    use super::*;

    fn fed(progressive: &mut Progressive, steps: std::ops::RangeInclusive<Step>, mean: f64) -> Vec<Fall> {
        let mut rng = SplitMix64::new(*steps.start());
        steps.filter_map(|step| progressive.take(step, mean * (0.9 + 0.2 * rng.next_unit()))).collect()
    }

    /// Proves that the estimate is that of the newest window with enough values, and that a fall is reported at the end
    /// of each window but the first, within a band that holds the true one.
    #[test]
    fn windows_follow_one_another() {
        let mut progressive = Progressive::new(200);
        assert_eq!(progressive.estimate(), None);
        assert!(fed(&mut progressive, 1..=50, 2.0).is_empty());
        let early = progressive.estimate().unwrap();
        assert_eq!((early.value_count, early.band.known_low(), early.fall), (50, None, None));
        assert!(fed(&mut progressive, 51..=200, 2.0).is_empty());
        let falls = fed(&mut progressive, 201..=420, 1.5);
        assert_eq!((falls.len(), falls[0].step), (1, 400));
        assert!(falls[0].band.low < 0.5 && falls[0].band.high > 0.5 && falls[0].band.low > 0.4, "{falls:?}");
        let estimate = progressive.estimate().unwrap();
        assert_eq!((estimate.first_step, estimate.last_step, estimate.value_count), (201, 400, 200));
        assert!(estimate.band.low < 1.5 && estimate.band.high > 1.5, "{estimate:?}");
        assert_eq!(estimate.fall, Some(falls[0]));
    }

    /// Proves that steps which a resume makes void are in no window, nor is a value that is not finite.
    #[test]
    fn void_steps_do_not_count() {
        let mut progressive = Progressive::new(100);
        fed(&mut progressive, 1..=150, 1.0);
        assert!(fed(&mut progressive, 131..=230, 1.0).first().is_some_and(|fall| fall.step == 230));
        fed(&mut progressive, 101..=150, 1.0);
        assert!(
            fed(&mut progressive, 151..=200, 1.0).is_empty(),
            "the window before was void from step 131 on"
        );
        progressive.take(201, f64::NAN);
        assert!(fed(&mut progressive, 202..=301, 1.0).is_empty());
        assert_eq!(fed(&mut progressive, 302..=401, 1.0).len(), 1);
    }
}
