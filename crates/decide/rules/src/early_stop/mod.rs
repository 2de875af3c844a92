//! Whether more training is worth nothing: by patience, when a metric was not better for so many evaluations in a row;
//! by progressive validation, when the loss on data that the model has not seen falls too little for certain.

pub mod progressive;

use trackway_core::Step;

use progressive::{CONFIDENCE, Fall, Progressive};

/// Evaluations that are remembered; of more the older half is forgotten, but for the best of them.
pub const EVALUATIONS_MAX: usize = 65_536;

/// When a metric has not been better for long enough.
#[derive(Debug, Clone)]
pub struct Patience {
    metric: String,
    greater_is_better: bool,
    evaluations: u32,
    /// The fraction of the best value by which a better one must be better.
    improvement: f64,
    values: Vec<(Step, f64)>,
    best: Option<(Step, f64)>,
    since_best: u32,
}

impl Patience {
    /// Stops after so many `evaluations` of `metric` in a row that were not better than the best one by more than the
    /// fraction `improvement` of it.
    #[must_use]
    pub fn new(metric: String, greater_is_better: bool, evaluations: u32, improvement: f64) -> Self {
        Self {
            metric,
            greater_is_better,
            evaluations,
            improvement,
            values: Vec::new(),
            best: None,
            since_best: 0,
        }
    }

    /// The metric.
    #[must_use]
    pub fn metric(&self) -> &str {
        &self.metric
    }

    /// Takes an evaluation; answers with why to stop. What a resume made void does not count.
    pub fn take(&mut self, step: Step, value: f64) -> Option<String> {
        if self.values.last().is_some_and(|(last, _)| step <= *last) {
            self.go_back_to(step);
        }
        if self.values.len() >= EVALUATIONS_MAX {
            self.forget();
        }
        self.values.push((step, value));
        self.judge(step, value);
        if self.since_best < self.evaluations {
            return None;
        }
        let (best_step, best) = self.best?;
        Some(format!(
            "`{}` was not better than the {best} of step {best_step} in {} evaluations; it is {value} at step {step}",
            self.metric, self.since_best
        ))
    }

    fn judge(&mut self, step: Step, value: f64) {
        if self.best.is_none_or(|(_, best)| self.is_better(value, best)) && value.is_finite() {
            (self.best, self.since_best) = (Some((step, value)), 0);
        } else {
            self.since_best += 1;
        }
    }

    fn is_better(&self, value: f64, best: f64) -> bool {
        let gain = if self.greater_is_better { value - best } else { best - value };
        gain > self.improvement * best.abs()
    }

    fn go_back_to(&mut self, step: Step) {
        let kept = self.values.partition_point(|(known, _)| *known < step);
        let values: Vec<(Step, f64)> = self.values.drain(..).take(kept).collect();
        (self.best, self.since_best) = (None, 0);
        values.iter().for_each(|(step, value)| self.judge(*step, *value));
        self.values = values;
    }

    fn forget(&mut self) {
        self.values.drain(..EVALUATIONS_MAX / 2);
        if let Some(best) = self.best
            && self.values.first().is_some_and(|first| best.0 < first.0)
        {
            self.values.insert(0, best);
        }
    }
}

/// When the loss on unseen data falls too little.
#[derive(Debug, Clone)]
pub struct BandStop {
    /// The stream and its bands.
    pub progressive: Progressive,
    /// The fraction by which the loss must fall from one window to the next.
    least_fall: f64,
    invalid: bool,
}

impl BandStop {
    /// Stops when the loss falls by less than the fraction `least_fall` from one window of so many values to the next.
    #[must_use]
    pub fn new(window: u64, least_fall: f64) -> Self {
        Self { progressive: Progressive::new(window), least_fall, invalid: false }
    }

    /// Batches came again: the losses are no longer those of unseen data, and nothing is concluded from them.
    pub fn invalidate(&mut self) {
        self.invalid = true;
    }

    /// Takes a progressive loss; answers with why to stop.
    pub fn take(&mut self, step: Step, loss: f64) -> Option<String> {
        let fall = self.progressive.take(step, loss)?;
        (!self.invalid && fall.share_at_most() < self.least_fall).then(|| self.why(&fall))
    }

    fn why(&self, fall: &Fall) -> String {
        format!(
            "the loss on unseen batches was {} in one window and {} in the next: at most {} % less, at {} % confidence, but {} % are required",
            rounded(fall.from),
            rounded(fall.to),
            rounded(100.0 * fall.share_at_most().max(0.0)),
            rounded(100.0 * CONFIDENCE),
            rounded(100.0 * self.least_fall)
        )
    }
}

/// Four digits that count.
fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use trackway_core::{Rng as _, SplitMix64};

    use super::*;

    fn stopped(patience: &mut Patience, values: &[f64]) -> Option<usize> {
        values.iter().enumerate().position(|(at, value)| patience.take(10 * at as Step, *value).is_some())
    }

    /// Proves that patience counts evaluations since the best one, that a gain below the wanted fraction does not
    /// count, either way round, nor a value which is not a number.
    #[test]
    fn patience_counts_what_is_no_better() {
        let patience = |greater, share| Patience::new("m".into(), greater, 3, share);
        assert_eq!(stopped(&mut patience(false, 0.0), &[3.0, 2.0, 2.5, 2.1, 1.9, 2.0, 2.0, 2.0]), Some(7));
        assert_eq!(stopped(&mut patience(false, 0.1), &[3.0, 2.0, 1.9, 1.85, 1.81]), Some(4));
        assert_eq!(stopped(&mut patience(true, 0.0), &[0.1, 0.2, 0.3, 0.4, 0.5]), None);
        assert_eq!(stopped(&mut patience(true, 0.0), &[0.5, f64::NAN, f64::INFINITY, 0.4]), Some(3));
        let mut rule = patience(false, 0.0);
        let why = [1.0, 2.0, 3.0, 4.0].iter().zip(1..).find_map(|(value, step)| rule.take(step, *value));
        assert_eq!(
            why.as_deref(),
            Some("`m` was not better than the 1 of step 1 in 3 evaluations; it is 4 at step 4")
        );
    }

    /// Proves that evaluations after a resume are forgotten, the best one too, and that memory has a bound.
    #[test]
    fn patience_forgets_what_is_void() {
        let mut patience = Patience::new("m".into(), false, 3, 0.0);
        for (step, value) in [(1, 5.0), (2, 1.0), (3, 2.0), (4, 2.0)] {
            assert_eq!(patience.take(step, value), None);
        }
        assert_eq!(patience.take(2, 4.0), None);
        assert_eq!((patience.best, patience.since_best), (Some((2, 4.0)), 0));
        let mut long = Patience::new("m".into(), false, u32::MAX, 0.0);
        for step in 0..3 * EVALUATIONS_MAX as Step {
            long.take(step, (step as f64 - 10.0).abs());
        }
        assert!(long.values.len() <= EVALUATIONS_MAX);
        long.take(2 * EVALUATIONS_MAX as Step + 7, 1.0);
        assert_eq!(long.best, Some((10, 0.0)));
    }

    fn losses(mean: impl Fn(Step) -> f64, invalid: bool) -> Option<(Step, String)> {
        let (mut band, mut rng) = (BandStop::new(500, 0.02), SplitMix64::new(9));
        if invalid {
            band.invalidate();
        }
        (1..=10_000).find_map(|step| {
            let loss = mean(step) * (0.9 + 0.2 * rng.next_unit());
            band.take(step, loss).map(|why| (step, why))
        })
    }

    /// Proves that a level loss stops the run at the end of a window, that one which keeps falling does not, and
    /// neither does one whose batches came again.
    #[test]
    fn a_level_loss_stops_the_run() {
        let flat = |step: Step| 1.0 + 2.0 * (-(step as f64) / 800.0).exp();
        let (step, why) = losses(flat, false).unwrap();
        assert!(step % 500 == 0 && (3_000..7_000).contains(&step), "{step}");
        assert!(why.contains("at 95 % confidence, but 2 % are required"), "{why}");
        assert_eq!(losses(|step| (-(step as f64) / 10_000.0).exp(), false), None);
        assert_eq!(losses(flat, true), None);
    }

    /// Proves that a loss which falls by as much as is required is stopped in at most 5 of 100 runs, over all windows.
    #[test]
    fn a_run_that_learns_enough_is_rarely_stopped() {
        let stopped = (0..1_000).filter(|seed| {
            let (mut band, mut rng) = (BandStop::new(200, 0.05), SplitMix64::new(*seed));
            (1..=4_000).any(|step| {
                let mean = 0.95_f64.powf(step as f64 / 200.0);
                band.take(step, -mean * (1.0 - rng.next_unit()).ln()).is_some()
            })
        });
        let share = stopped.count() as f64 / 1_000.0;
        assert!(share <= 0.05, "{share}");
    }
}
