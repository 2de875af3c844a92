//! P-values of many tests at once.

/// Adjusted p-values that keep the fraction of false discoveries among those at or below a level within that level
/// (Benjamini and Hochberg 1995). In the order given; a NaN stays one and does not count as a test.
#[must_use]
pub fn benjamini_hochberg(p_values: &[f64]) -> Vec<f64> {
    // From the largest down: each is at most what the larger ones became.
    let mut adjusted = vec![f64::NAN; p_values.len()];
    let order = ascending(p_values);
    let tests = order.len() as f64;
    let mut least: f64 = 1.0;
    for (rank, index) in order.iter().enumerate().rev() {
        least = least.min(p_values[*index] * tests / (rank + 1) as f64);
        adjusted[*index] = least;
    }
    adjusted
}

/// Adjusted p-values that keep the probability of even one false discovery within a level (Holm 1979). In the order
/// given; a NaN stays one and does not count as a test.
#[must_use]
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![f64::NAN; p_values.len()];
    let order = ascending(p_values);
    let mut most: f64 = 0.0;
    for (rank, index) in order.iter().enumerate() {
        most = most.max((p_values[*index] * (order.len() - rank) as f64).min(1.0));
        adjusted[*index] = most;
    }
    adjusted
}

/// Indexes of the p-values that are numbers, smallest first.
fn ascending(p_values: &[f64]) -> Vec<usize> {
    let mut order: Vec<_> = (0..p_values.len()).filter(|index| !p_values[*index].is_nan()).collect();
    order.sort_by(|one, other| p_values[*one].total_cmp(&p_values[*other]));
    order
}
