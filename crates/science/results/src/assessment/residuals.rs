//! Results about residuals, as plain data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_statistics::Estimate;

use super::Point;

/// What predictions leave over, by the prediction itself and by feature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Residuals {
    pub of: ResidualOf,
    /// Rows that have one.
    pub rows: u64,
    /// Their mean: how far predictions are too low (or, where classes are predicted, the fraction of wrong ones).
    pub mean: Estimate,
    /// By what was predicted; `None` where that is always the same.
    pub by_prediction: Option<ResidualCurve>,
    /// By each feature on which they depend at all, the most explained first; at most 40.
    pub by_feature: Vec<ResidualCurve>,
    /// Prediction (x) and residual (y) of some rows, drawn at random; at most 400.
    pub points: Vec<Point>,
    /// Features that were looked at. Those with one value, or hardly two rows with the same text, are not.
    pub features: u64,
}

/// The most features whose curve is included.
pub const CURVES_MAX: usize = 40;
/// The most rows that are drawn as points.
pub const POINTS_MAX: usize = 400;

/// What a residual is. It is positive where the prediction is too low.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResidualOf {
    /// The label minus the prediction: regression.
    Value,
    /// 1 or 0 for the positive class, minus its predicted probability.
    Probability,
    /// 1 where the class is wrong, else 0.
    WrongClass,
}

/// Residuals by the values of a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResidualCurve {
    /// The column.
    pub feature: String,
    /// Numbers in order, then strings by frequency, then missing and rare values.
    pub bins: Vec<ResidualBin>,
    /// Whether their mean depends on the column: then the model did not use all the information of the column.
    pub mean_depends: Option<Depends>,
    /// Whether the spread around it does, for regression: then the error variance differs.
    pub spread_depends: Option<Depends>,
}

/// Rows with values of a column that are close to each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResidualBin {
    /// The value or values: `17`, `[25, 31)`, `Private`; `None` for missing ones.
    pub values: Option<String>,
    pub mean: Estimate,
    /// The 10 % quantile of the residuals.
    pub low: f64,
    /// The 90 % quantile.
    pub high: f64,
}

/// How much of the residuals a column explains.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Dependency")]
pub struct Depends {
    /// The fraction of their variance, corrected for the number of bins.
    pub explained: f64,
    /// The probability of such differences between bins if there are none, corrected for the number of columns (Holm).
    pub adjusted_p_value: f64,
}
