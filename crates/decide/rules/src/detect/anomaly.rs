//! The finding of a detector; the caller knows the rest of a firing.

use trackway_core::Step;
use trackway_core::detect::DetectionSeverity;
pub(super) use trackway_core::text::number;

/// One value of one metric.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub step: Step,
    pub value: f64,
}

/// What a detector found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Anomaly {
    pub severity: DetectionSeverity,
    pub first_step: Step,
    /// What was seen, where it is not the metric's value itself.
    pub value: Option<f64>,
    pub threshold: f64,
    pub evidence: String,
}

/// What one observation changed; a detector answers nothing else.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum DetectorChange {
    /// An episode is certain.
    Fires(Box<Anomaly>),
    /// An episode that was reported is worse than that.
    Worsens(Box<Anomaly>),
    /// An episode is over.
    Rearmed,
}

impl DetectorChange {
    pub(super) fn fires(found: Anomaly) -> Self {
        Self::Fires(Box::new(found))
    }
}
