//! Statistics that several crates need: distances between samples, tests, and intervals. Pure: randomness comes in as a
//! [`trackway_core::Rng`].
//!
//! Nothing here decides. A caller compares a distance with the [noise](noise_floor) that two samples of the same
//! distribution show, and corrects its p-values for their number ([`benjamini_hochberg`]).

mod association;
mod correction;
mod distance;
mod estimate;
mod exact;
mod interval;
mod noise;
mod resample;
mod sample;
mod sequence;
mod significance;
mod summary;
mod variance;

pub use association::Table;
pub use correction::{benjamini_hochberg, holm};
pub use distance::{PSI_PROPORTION_MIN, jensen_shannon, l_infinity, population_stability_index};
pub use estimate::{Estimate, Method};
pub use exact::{binomial_p_value, hypergeometric_p_value, quantile_ranks};
pub use interval::{
    Interval, difference_interval, fold_mean_interval, mean_interval, normal_quantile, poisson_interval,
    ratio_interval, student_quantile, wilson,
};
pub use noise::noise_floor;
pub use resample::{fill_poisson_one, poisson};
pub use sample::WeightedSample;
pub use sequence::{BoundedMean, NARROWEST_AT, RunningMean, VALUES_MIN, fall_between};
pub use significance::{
    ChiSquare, MCNEMAR_EXACT_MAX, chi_square, chi_square_p_value, kolmogorov_smirnov_p_value,
    mcnemar_p_value, normal_p_value, student_t_p_value,
};
pub use summary::{mean, mean_with_interval, median, population_variance, quantile, variance};
pub use variance::{Group, VarianceAnalysis, variance_analysis};

#[cfg(test)]
mod tests;
