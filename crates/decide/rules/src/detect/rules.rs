//! What a detector is set to: one limit and one patience each.

use trackway_core::detect::Detector;

/// One setting of a detector. [`Rules::meaning`] explains both numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// Whether it runs.
    pub enabled: bool,
    /// The limit.
    pub threshold: f64,
    /// How many observations in a row must be beyond it.
    pub patience: u32,
}

/// The settings of all detectors.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules([Rule; Detector::ALL.len()]);

impl Default for Rules {
    fn default() -> Self {
        let mut rules = [Rule { enabled: true, threshold: 0.0, patience: 1 }; Detector::ALL.len()];
        for detector in Detector::ALL {
            let ((threshold, _), (patience, _)) = numbers(*detector);
            rules[*detector as usize] = Rule { enabled: true, threshold, patience };
        }
        Self(rules)
    }
}

impl Rules {
    /// The setting of one detector.
    #[must_use]
    pub fn of(&self, detector: Detector) -> Rule {
        self.0[detector as usize]
    }

    /// Changes the setting of one detector.
    pub fn set(&mut self, detector: Detector, rule: Rule) {
        self.0[detector as usize] = rule;
    }

    /// What `threshold` and `patience` mean for a detector, for the documentation.
    #[must_use]
    pub const fn meaning(detector: Detector) -> (&'static str, &'static str) {
        let ((_, threshold), (_, patience)) = numbers(detector);
        (threshold, patience)
    }
}

/// The default threshold and patience, each with what it means. The header of the detector's file explains each value;
/// `docs/detectors.md` has measurements of what they find and how often they are wrong.
const fn numbers(detector: Detector) -> ((f64, &'static str), (u32, &'static str)) {
    match detector {
        Detector::NonFinite => ((0.0, "not used"), (1, "values in a row")),
        Detector::GradientExplosion => ((10.0, "times the usual norm"), (3, "steps in a row")),
        Detector::GradientVanishing => ((1e-7, "the norm itself"), (10, "steps in a row")),
        Detector::LossSpike => ((6.0, "deviations above the median"), (3, "steps in a row")),
        Detector::LossShift => ((2.0, "times the usual loss"), (6, "steps in a row")),
        Detector::Plateau => {
            ((0.01, "fraction by which the loss must fall"), (500, "steps from the beginning"))
        }
        Detector::ValidationDivergence => {
            ((1.1, "times the best validation loss"), (3, "evaluations in a row"))
        }
        Detector::DeadInput => ((0.0, "not used"), (5, "repetitions in a row")),
        Detector::SeenBefore => ((0.0, "not used"), (1, "repetitions at least")),
        Detector::DataStarvation => ((0.2, "fraction of the step spent waiting"), (10, "steps in a row")),
        Detector::ThroughputDrop => {
            ((0.67, "fraction of the usual speed"), (3, "medians of 8 steps in a row"))
        }
        Detector::Straggler => {
            ((0.75, "fraction of the other ranks' speed"), (3, "looks of 16 steps in a row"))
        }
        Detector::MemoryCreep => {
            ((0.05, "fraction by which memory must have grown"), (8, "blocks of 4 or of 16 values in a row"))
        }
        Detector::Hang => ((5.0, "times the longest step"), (120, "seconds at least")),
        Detector::LearningRate => ((10.0, "the highest learning rate"), (10, "steps in a row")),
        Detector::LossScaleCollapse => ((1.0, "the lowest loss scale"), (8, "halvings in 64 steps")),
        Detector::RankDivergence => ((1e-4, "relative difference"), (5, "steps in a row")),
    }
}
