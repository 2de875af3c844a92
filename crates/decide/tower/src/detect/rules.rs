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
            let (threshold, patience) = defaults(*detector);
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
        match detector {
            Detector::NonFinite => ("not used", "values in a row"),
            Detector::GradientExplosion => ("times the usual norm", "steps in a row"),
            Detector::GradientVanishing => ("the norm itself", "steps in a row"),
            Detector::LossSpike => ("deviations above the median", "steps in a row"),
            Detector::LossShift => ("times the usual loss", "steps in a row"),
            Detector::Plateau => ("fraction by which the loss must fall", "steps from the beginning"),
            Detector::ValidationDivergence => ("times the best validation loss", "evaluations in a row"),
            Detector::DeadInput => ("not used", "repetitions in a row"),
            Detector::SeenBefore => ("not used", "repetitions at least"),
            Detector::DataStarvation => ("fraction of the step spent waiting", "steps in a row"),
            Detector::ThroughputDrop => ("fraction of the usual speed", "medians of 8 steps in a row"),
            Detector::Straggler => ("fraction of the other ranks' speed", "looks of 16 steps in a row"),
            Detector::MemoryCreep => {
                ("fraction by which memory must have grown", "blocks of 4 or of 16 values in a row")
            }
            Detector::Hang => ("times the longest step", "seconds at least"),
            Detector::LearningRate => ("the highest learning rate", "steps in a row"),
            Detector::LossScaleCollapse => ("the lowest loss scale", "halvings in 64 steps"),
            Detector::RankDivergence => ("relative difference", "steps in a row"),
        }
    }
}

/// The default threshold and patience. The header of the detector's file explains each value; `docs/detectors.md` has
/// measurements of what they find and how often they are wrong.
const fn defaults(detector: Detector) -> (f64, u32) {
    match detector {
        Detector::NonFinite => (0.0, 1),
        Detector::GradientExplosion => (10.0, 3),
        Detector::GradientVanishing => (1e-7, 10),
        Detector::LossSpike => (6.0, 3),
        Detector::LossShift => (2.0, 6),
        Detector::Plateau => (0.01, 500),
        Detector::ValidationDivergence => (1.1, 3),
        Detector::DeadInput => (0.0, 5),
        Detector::SeenBefore => (0.0, 1),
        Detector::DataStarvation => (0.2, 10),
        Detector::ThroughputDrop => (0.67, 3),
        Detector::Straggler => (0.75, 3),
        Detector::MemoryCreep => (0.05, 8),
        Detector::Hang => (5.0, 120),
        Detector::LearningRate => (10.0, 10),
        Detector::LossScaleCollapse => (1.0, 8),
        Detector::RankDivergence => (1e-4, 5),
    }
}
