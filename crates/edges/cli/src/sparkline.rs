//! A curve in one line of text.

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The values as at most `width` bars, oldest left; each bar is the mean of some consecutive values. Values that are
/// not finite are shown as `!`, and no values as nothing.
pub fn sparkline(values: &[f64], width: usize) -> String {
    if values.is_empty() || width == 0 {
        return String::new();
    }
    let columns = width.min(values.len());
    let means: Vec<f64> = (0..columns)
        .map(|column| {
            let share = &values[column * values.len() / columns..(column + 1) * values.len() / columns];
            share.iter().sum::<f64>() / share.len() as f64
        })
        .collect();
    let finite = means.iter().copied().filter(|mean| mean.is_finite());
    let low = finite.clone().fold(f64::INFINITY, f64::min);
    let high = finite.fold(f64::NEG_INFINITY, f64::max);
    means.iter().map(|mean| bar(*mean, low, high)).collect()
}

fn bar(mean: f64, low: f64, high: f64) -> char {
    if !mean.is_finite() {
        return '!';
    }
    let share = if high > low { (mean - low) / (high - low) } else { 0.0 };
    BARS[((share * 7.0).round() as usize).min(7)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a falling curve falls, that the width is kept, and that a NaN is seen.
    #[test]
    fn curves_fall_and_nan_shows() {
        assert_eq!(sparkline(&[8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0], 8), "█▇▆▅▄▃▂▁");
        assert_eq!(sparkline(&vec![1.0; 100], 10).chars().count(), 10);
        assert_eq!(sparkline(&[1.0, f64::NAN], 8), "▁!");
        assert_eq!(sparkline(&[], 8), "");
    }
}
