use trackway_core::Step;

/// How fast the loop runs without a save, and during one in the background.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Since when the loop goes as it goes now: the monotonic clock, and the step then.
    since: Option<(i64, Step)>,
    /// Seconds a step takes while nothing is saved.
    pub step_seconds: Option<f64>,
    pub slowdown: Option<f64>,
}

impl Pace {
    /// The loop continues after a resume or a stall.
    pub fn continues(&mut self, now_micros: i64, step: Step) {
        self.since = Some((now_micros, step));
    }

    /// A save begins: up to here nothing disturbed the loop.
    pub fn save_begins(&mut self, now_micros: i64, step: Step) {
        self.step_seconds = self.seconds_per_step(now_micros, step).or(self.step_seconds);
        self.slowdown = None;
    }

    /// A save that ran in the background since [`Pace::continues`] is committed.
    pub fn committed_behind(&mut self, now_micros: i64, step: Step) {
        let during = self.seconds_per_step(now_micros, step);
        self.slowdown =
            during.zip(self.step_seconds).map(|(during, alone)| (1.0 - alone / during).clamp(0.0, 1.0));
        self.continues(now_micros, step);
    }

    fn seconds_per_step(&self, now_micros: i64, step: Step) -> Option<f64> {
        let (since_micros, since_step) = self.since?;
        let steps = step.checked_sub(since_step).filter(|steps| *steps > 0)?;
        Some((now_micros - since_micros) as f64 / 1e6 / steps as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the slowdown compares steps during a background save with undisturbed ones, and that there is none
    /// if nothing was measured.
    #[test]
    fn slowdown_is_measured_against_undisturbed_steps() {
        let mut pace = Pace::default();
        pace.continues(0, 0);
        pace.save_begins(10_000_000, 10);
        pace.continues(10_500_000, 10);
        pace.committed_behind(18_500_000, 14);
        assert_eq!((pace.step_seconds, pace.slowdown), (Some(1.0), Some(0.5)));
        pace.save_begins(18_500_000, 14);
        pace.continues(19_000_000, 14);
        pace.committed_behind(19_100_000, 14);
        assert_eq!((pace.step_seconds, pace.slowdown), (Some(1.0), None), "no step was made meanwhile");
    }
}
