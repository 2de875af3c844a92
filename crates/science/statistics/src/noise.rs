//! What two samples of one distribution look like to a distance.

use trackway_core::Rng;

/// Above this mean a Poisson number is drawn as a rounded normal one.
const POISSON_EXACT_MEAN_MAX: f64 = 64.0;

/// The distance that two samples of the *same* distribution stay below with probability `quantile`: what a drift
/// must exceed to be one.
///
/// `proportions` are those of the reference over its cells, `reference_rows` and `current_rows` the sizes compared.
/// Pairs of samples are drawn `rounds` times, each cell's count as a Poisson number (row counts that vary a little
/// change nothing of what is measured). With both sizes half of the reference's rows this is the distance between
/// random halves of the reference.
#[must_use]
pub fn noise_floor(
    proportions: &[f64],
    reference_rows: f64,
    current_rows: f64,
    distance: impl Fn(&[f64], &[f64]) -> f64,
    (rounds, quantile): (usize, f64),
    rng: &mut dyn Rng,
) -> f64 {
    let mut draw =
        |rows: f64| -> Vec<f64> { proportions.iter().map(|share| poisson(share * rows, rng)).collect() };
    let distances = (0..rounds).map(|_| distance(&draw(reference_rows), &draw(current_rows)));
    let mut distances: Vec<f64> = distances.filter(|it| !it.is_nan()).collect();
    distances.sort_by(f64::total_cmp);
    let index = (quantile * distances.len() as f64).ceil() as usize;
    distances.get(index.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

/// A Poisson number of this mean: products of uniform numbers (Knuth), above [`POISSON_EXACT_MEAN_MAX`] a rounded
/// normal one (Box and Muller).
fn poisson(mean: f64, rng: &mut dyn Rng) -> f64 {
    // `1 − unit` is never zero.
    if mean > POISSON_EXACT_MEAN_MAX {
        let (radius, angle) = (1.0 - rng.next_unit(), rng.next_unit());
        let normal = (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos();
        return (mean + mean.sqrt() * normal).round().max(0.0);
    }
    let limit = (-mean).exp();
    let mut product = 1.0 - rng.next_unit();
    let mut count = 0.0;
    while product > limit {
        product *= 1.0 - rng.next_unit();
        count += 1.0;
    }
    count
}
