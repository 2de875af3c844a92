//! The distances of two columns, and the one that decides.

use trackway_results::drift::{Distances, DriftTest};

/// A distance with what it is compared to.
pub(super) struct ComparedDistance {
    pub(super) test: DriftTest,
    pub(super) statistic: f64,
    pub(super) effect_min: f64,
    pub(super) noise: f64,
    pub(super) p_value: f64,
    pub(super) distances: Distances,
}
