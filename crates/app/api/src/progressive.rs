//! The loss on data that the model has not seen, by progressive validation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::Step;
use trackway_statistics::Interval;
pub use trackway_tower::progressive::Fall;

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
    /// Its first step.
    pub first_step: Step,
    /// Its last step.
    pub last_step: Step,
    /// The decrease of the mean between the last two complete windows; null before there are two.
    pub fall: Option<Fall>,
    /// Why this is not the loss on unseen data; null if nothing indicates so.
    pub invalid: Option<String>,
}
