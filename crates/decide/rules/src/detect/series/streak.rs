//! One episode: it begins with the first bad observation, is reported when there were enough in a row, and is over when
//! there were enough good ones.

use trackway_core::Step;
use trackway_core::detect::DetectionSeverity;

use crate::detect::anomaly::{Anomaly, DetectorChange};

/// What an observation did to an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::detect) enum Turn {
    /// Nothing new.
    Nothing,
    /// It is certain now; the step at which it began.
    Fires(Step),
    /// It is over: the detector is armed again.
    Rearmed,
}

impl Turn {
    /// The change of the detector; `value` is what was seen, where it is not the metric's value itself, and `evidence` is called
    /// when it fires.
    pub(in crate::detect) fn change(
        self,
        severity: DetectionSeverity,
        value: Option<f64>,
        threshold: f64,
        evidence: impl FnOnce() -> String,
    ) -> Option<DetectorChange> {
        match self {
            Self::Nothing => None,
            Self::Rearmed => Some(DetectorChange::Rearmed),
            Self::Fires(first_step) => {
                let evidence = evidence();
                Some(DetectorChange::fires(Anomaly { severity, first_step, value, threshold, evidence }))
            }
        }
    }
}

/// Counts observations.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::detect) struct Streak {
    bad: u32,
    good: u32,
    first_step: Step,
    fired: bool,
}

impl Streak {
    /// Takes one observation. It fires with the `patience`th bad one in a row, and is armed again after `calm` good
    /// ones.
    pub(in crate::detect) fn take(&mut self, bad: bool, step: Step, patience: u32, calm: u32) -> Turn {
        if bad {
            self.good = 0;
            if self.bad == 0 {
                self.first_step = step;
            }
            self.bad = self.bad.saturating_add(1);
            if !self.fired && self.bad >= patience {
                self.fired = true;
                return Turn::Fires(self.first_step);
            }
            return Turn::Nothing;
        }
        self.bad = 0;
        if self.fired {
            self.good += 1;
            if self.good >= calm {
                (self.fired, self.good) = (false, 0);
                return Turn::Rearmed;
            }
        }
        Turn::Nothing
    }

    /// Whether the last observation was a bad one.
    pub(in crate::detect) fn is_bad(&self) -> bool {
        self.bad > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that an episode is reported once, that one good observation breaks a row, and that healthy steps reset
    /// it.
    #[test]
    fn an_episode_is_reported_once() {
        let mut streak = Streak::default();
        let turns: Vec<Turn> = "bbgbbbbbggbgggbbb"
            .chars()
            .zip(0..)
            .map(|(letter, step)| streak.take(letter == 'b', step, 3, 3))
            .filter(|turn| *turn != Turn::Nothing)
            .collect();
        assert_eq!(turns, [Turn::Fires(3), Turn::Rearmed, Turn::Fires(14)]);
    }
}
