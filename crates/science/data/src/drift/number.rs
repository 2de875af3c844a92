//! Numbers and times, compared by what their quantile sketches keep.

use trackway_core::SplitMix64;
use trackway_statistics::{
    WeightedSample, jensen_shannon, kolmogorov_smirnov_p_value, l_infinity, noise_floor,
    population_stability_index,
};
use trackway_tables::profile::{Moments, Quantiles};

use super::cells::{NOISE_QUANTILE, NOISE_ROUNDS};
use super::distance::ComparedDistance;
use super::{Distances, DriftTest, KOLMOGOROV_SMIRNOV_MIN, LARGE_SAMPLE_ROWS, WASSERSTEIN_MIN};

/// Bins with equal fractions of the reference, for the distances over cells.
const BINS: usize = 10;
/// Finer ones, to estimate the noise of the Wasserstein distance.
const NOISE_BINS: usize = 100;
/// Kolmogorov's distribution at 99 %: the distance of two samples times the root of their effective size.
const KOLMOGOROV_99: f64 = 1.628;

pub(super) fn judge(
    (before, moments): (&Quantiles, Moments),
    after: &Quantiles,
    seed: u64,
) -> ComparedDistance {
    let (reference_rows, current_rows) = (before.count() as f64, after.count() as f64);
    let effective_rows = reference_rows * current_rows / (reference_rows + current_rows);
    let (one, other) = (sample(before), sample(after));
    // A constant reference has no scale: its mean's size, or one.
    let deviation =
        moments.stddev().filter(|it| *it > 0.0).unwrap_or(moments.mean.abs()).max(f64::MIN_POSITIVE);
    let kolmogorov_smirnov = one.kolmogorov_smirnov(&other);
    let wasserstein = one.wasserstein(&other) / deviation;
    let sketched = rank_error(before) + rank_error(after);
    let edges = edges(&one, BINS);
    let (bins, other_bins) = (one.proportions(&edges), other.proportions(&edges));
    let distances = Distances {
        kolmogorov_smirnov: Some(kolmogorov_smirnov),
        wasserstein: Some(wasserstein),
        jensen_shannon: Some(jensen_shannon(&bins, &other_bins)),
        population_stability_index: Some(population_stability_index(&bins, &other_bins)),
        l_infinity: Some(l_infinity(&bins, &other_bins)),
        cramers_v: None,
    };
    // The error of the sketches is not evidence.
    let surely = (kolmogorov_smirnov - sketched).max(0.0);
    let p_value = kolmogorov_smirnov_p_value(surely, reference_rows, current_rows);
    let (test, statistic, effect_min, noise) = if effective_rows > LARGE_SAMPLE_ROWS {
        let noise = wasserstein_noise(&one, deviation, (reference_rows, current_rows), seed);
        (DriftTest::Wasserstein, wasserstein, WASSERSTEIN_MIN, noise)
    } else {
        let noise = KOLMOGOROV_99 / effective_rows.sqrt() + sketched;
        (DriftTest::KolmogorovSmirnov, kolmogorov_smirnov, KOLMOGOROV_SMIRNOV_MIN, noise)
    };
    ComparedDistance { test, statistic, effect_min, noise, p_value, distances }
}

fn sample(quantiles: &Quantiles) -> WeightedSample {
    WeightedSample::new(quantiles.weighted().into_iter().map(|(value, weight)| (value, weight as f64)))
}

/// A sketch that still holds every value is exact.
fn rank_error(quantiles: &Quantiles) -> f64 {
    let every_value = quantiles.weighted().iter().all(|(_, weight)| *weight == 1);
    if every_value { 0.0 } else { quantiles.rank_error() }
}

/// Edges that divide the sample into bins of about equal fractions; fewer if a value fills several.
fn edges(sample: &WeightedSample, bins: usize) -> Vec<f64> {
    let shares = (1..bins).map(|bin| bin as f64 / bins as f64);
    let mut edges: Vec<f64> = shares.filter_map(|share| sample.quantile(share)).collect();
    edges.dedup();
    edges
}

/// The distance between samples of the reference, with its values moved to the edges of fine bins.
fn wasserstein_noise(
    reference: &WeightedSample,
    deviation: f64,
    (reference_rows, current_rows): (f64, f64),
    seed: u64,
) -> f64 {
    let edges = edges(reference, NOISE_BINS);
    let widths: Vec<f64> = edges.windows(2).map(|pair| (pair[1] - pair[0]) / deviation).collect();
    let distance = |one: &[f64], other: &[f64]| {
        let (all_of_one, all_of_other) = (one.iter().sum::<f64>(), other.iter().sum::<f64>());
        let mut ahead = 0.0;
        // The distribution functions' distance after each cell but the last, over the way to the next edge.
        let steps = one.iter().zip(other).zip(&widths).map(|((one, other), width)| {
            ahead += one / all_of_one - other / all_of_other;
            f64::abs(ahead) * width
        });
        steps.sum()
    };
    let mut rng = SplitMix64::new(seed);
    let shares = reference.proportions(&edges);
    noise_floor(&shares, reference_rows, current_rows, distance, (NOISE_ROUNDS, NOISE_QUANTILE), &mut rng)
}
