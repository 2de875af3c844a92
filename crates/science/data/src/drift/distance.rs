//! The distances of two columns, and the one that decides.

use serde::{Deserialize, Serialize};
use trackway_core::closed_list;

closed_list!(
    /// The distance that decides about a column.
    DriftTest, "distance", {
        /// Of two distribution functions.
        KolmogorovSmirnov = "kolmogorov_smirnov",
        /// In standard deviations of the reference.
        Wasserstein = "wasserstein",
        /// From the chi-square statistic.
        CramersV = "cramers_v",
        /// In bits, its root.
        JensenShannon = "jensen_shannon",
        /// The largest change of a value's fraction.
        LInfinity = "l_infinity",
        /// The change of the fraction of missing values: a side has no value.
        MissingFraction = "missing_fraction",
    }
);

/// Every distance that makes sense for the column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Distances {
    /// Numbers and times.
    pub kolmogorov_smirnov: Option<f64>,
    /// Numbers and times, in standard deviations of the reference.
    pub wasserstein: Option<f64>,
    /// Categories.
    pub cramers_v: Option<f64>,
    /// Over the values of a category, or ten bins with equal fractions of the reference.
    pub jensen_shannon: Option<f64>,
    /// Over the same.
    pub population_stability_index: Option<f64>,
    /// Over the same.
    pub l_infinity: Option<f64>,
}

/// A distance with what it is compared to.
pub(super) struct Judged {
    pub(super) test: DriftTest,
    pub(super) statistic: f64,
    pub(super) effect_min: f64,
    pub(super) noise: f64,
    pub(super) p_value: f64,
    pub(super) distances: Distances,
}
