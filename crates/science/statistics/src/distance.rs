//! Distances between two distributions over the same cells: bins of a number, values of a category.
//!
//! Arguments are counts or proportions per cell, in the same order and of the same length; they need not sum to one.
//! No cell, or nothing in one of the two, gives NaN: there is no distance to speak of.

/// The least proportion a cell counts as in [`population_stability_index`], whose logarithm would be infinite.
pub const PSI_PROPORTION_MIN: f64 = 1e-4;

/// The Jensen–Shannon distance: the root of the divergence in bits, between 0 (alike) and 1 (nothing in common).
///
/// Source: Lin 1991; Endres and Schindelin 2003 (the root is a metric). The same as SciPy's
/// `jensenshannon(p, q, base=2)`.
#[must_use]
pub fn jensen_shannon(reference: &[f64], current: &[f64]) -> f64 {
    let divergence = pairs(reference, current).map(|(p, q)| {
        let middle = f64::midpoint(p, q);
        f64::midpoint(entropy_term(p, middle), entropy_term(q, middle))
    });
    // Rounding may leave the sum a hair below zero; NaN stays.
    total(divergence).clamp(0.0, 1.0).sqrt()
}

/// The largest difference of a cell's proportions, between 0 and 1: what TensorFlow Data Validation calls L-infinity.
#[must_use]
pub fn l_infinity(reference: &[f64], current: &[f64]) -> f64 {
    pairs(reference, current).map(|(p, q)| (p - q).abs()).fold(f64::NAN, f64::max)
}

/// The population stability index, `Σ (q − p) ln(q / p)`, with proportions of at least [`PSI_PROPORTION_MIN`].
///
/// Under the usual reading 0.1 is a small shift and 0.2 a large one; compare it with the noise of the sample size.
#[must_use]
pub fn population_stability_index(reference: &[f64], current: &[f64]) -> f64 {
    total(pairs(reference, current).map(|(p, q)| {
        let (p, q) = (p.max(PSI_PROPORTION_MIN), q.max(PSI_PROPORTION_MIN));
        (q - p) * (q / p).ln()
    }))
}

/// `p log₂(p / q)`, which is zero where `p` is.
fn entropy_term(p: f64, q: f64) -> f64 {
    if p > 0.0 { p * (p / q).log2() } else { 0.0 }
}

/// The proportions of each cell; none where one side holds nothing.
fn pairs<'a>(reference: &'a [f64], current: &'a [f64]) -> impl Iterator<Item = (f64, f64)> + 'a {
    assert_eq!(reference.len(), current.len(), "both sides have the same cells");
    let (of_reference, of_current) = (reference.iter().sum::<f64>(), current.iter().sum::<f64>());
    let comparable = if of_reference > 0.0 && of_current > 0.0 { reference.len() } else { 0 };
    let cells = reference.iter().zip(current).take(comparable);
    cells.map(move |(p, q)| (p / of_reference, q / of_current))
}

/// The sum, but NaN of nothing.
fn total(terms: impl Iterator<Item = f64>) -> f64 {
    terms.reduce(|sum, term| sum + term).unwrap_or(f64::NAN)
}
