//! Mean, variance, skewness and kurtosis that merge, and co-moments of two columns.
//!
//! Each chunk's powers are taken around its mean, in two runs over the cached values, and chunks are merged with the
//! pairwise formulas of P. Pébay, "Formulas for robust, one-pass parallel computation of covariances and
//! arbitrary-order statistical moments" (2008). Nothing large is ever subtracted from something large.

use serde::{Deserialize, Serialize};

/// Sums kept side by side, so that the processor adds several at once.
const LANES: usize = 8;

/// Central moments of finite numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    pub count: u64,
    /// Their mean; 0 without numbers.
    pub mean: f64,
    /// Sum of squared distances from the mean.
    pub m2: f64,
    /// Sum of third powers of the distances.
    pub m3: f64,
    /// Sum of fourth powers of the distances.
    pub m4: f64,
}

impl Moments {
    /// The moments of some numbers.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        let count = values.len() as f64;
        let rough = sum(values, |value| value) / count;
        let mut powers = [[0.0; LANES]; 4];
        let mut add = |lane: usize, value: f64| {
            let distance = value - rough;
            let square = distance * distance;
            powers[0][lane] += distance;
            powers[1][lane] += square;
            powers[2][lane] += square * distance;
            powers[3][lane] += square * square;
        };
        let chunks = values.chunks_exact(LANES);
        let rest = chunks.remainder();
        chunks.for_each(|chunk| (0..LANES).for_each(|lane| add(lane, chunk[lane])));
        rest.iter().for_each(|value| add(0, *value));
        let [d1, d2, d3, d4] = powers.map(|lanes| lanes.iter().sum::<f64>());
        // The rough mean is off by rounding; the powers are moved to the true one.
        let shift = d1 / count;
        Self {
            count: values.len() as u64,
            mean: rough + shift,
            m2: (d2 - shift * d1).max(0.0),
            m3: d3 - 3.0 * shift * d2 + 2.0 * shift * shift * d1,
            m4: d4 - 4.0 * shift * d3 + 6.0 * shift * shift * d2 - 3.0 * shift.powi(3) * d1,
        }
    }

    /// Adds other numbers' moments.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 || self.count == 0 {
            if self.count == 0 {
                *self = *other;
            }
            return;
        }
        let (na, nb) = (self.count as f64, other.count as f64);
        let n = na + nb;
        let delta = other.mean - self.mean;
        let step = delta / n;
        let cross = delta * step * na * nb;
        self.m4 += other.m4
            + cross * step * step * (na * na - na * nb + nb * nb)
            + 6.0 * step * step * (na * na * other.m2 + nb * nb * self.m2)
            + 4.0 * step * (na * other.m3 - nb * self.m3);
        self.m3 += other.m3 + cross * step * (na - nb) + 3.0 * step * (na * other.m2 - nb * self.m2);
        self.m2 += other.m2 + cross;
        self.mean += step * nb;
        self.count += other.count;
    }

    /// Sample variance (divided by the count less one); `None` for fewer than two numbers.
    #[must_use]
    pub fn variance(&self) -> Option<f64> {
        (self.count > 1).then(|| self.m2 / (self.count - 1) as f64)
    }

    /// Sample standard deviation.
    #[must_use]
    pub fn stddev(&self) -> Option<f64> {
        self.variance().map(f64::sqrt)
    }

    /// Skewness, m3 / m2^1.5 by population moments; `None` if all numbers are equal.
    #[must_use]
    pub fn skewness(&self) -> Option<f64> {
        (self.m2 > 0.0).then(|| (self.count as f64).sqrt() * self.m3 / self.m2.powf(1.5))
    }

    /// Kurtosis less the 3 of a normal distribution; `None` where all numbers are equal.
    #[must_use]
    pub fn excess_kurtosis(&self) -> Option<f64> {
        (self.m2 > 0.0).then(|| self.count as f64 * self.m4 / (self.m2 * self.m2) - 3.0)
    }
}

/// The sum of something over all values, in [`LANES`] partial sums.
#[inline]
pub(crate) fn sum(values: &[f64], of: impl Fn(f64) -> f64) -> f64 {
    let mut lanes = [0.0; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest: f64 = chunks.remainder().iter().map(|value| of(*value)).sum();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += of(*value);
        }
    }
    lanes.iter().sum::<f64>() + rest
}

/// Smallest and largest of finite values; infinite ones the wrong way round without values.
#[inline]
pub(crate) fn bounds(values: &[f64]) -> (f64, f64) {
    let mut lows = [f64::INFINITY; LANES];
    let mut highs = [f64::NEG_INFINITY; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest = chunks.remainder();
    let mut take = |lane: usize, value: f64| {
        lows[lane] = if value < lows[lane] { value } else { lows[lane] };
        highs[lane] = if value > highs[lane] { value } else { highs[lane] };
    };
    chunks.for_each(|chunk| (0..LANES).for_each(|lane| take(lane, chunk[lane])));
    rest.iter().for_each(|value| take(0, *value));
    (lows.into_iter().fold(f64::INFINITY, f64::min), highs.into_iter().fold(f64::NEG_INFINITY, f64::max))
}

/// Joint moments of two columns, over the rows where both are finite.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CoMoments {
    /// Rows.
    pub count: u64,
    mean_x: f64,
    mean_y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
}

impl CoMoments {
    /// The moments of some pairs.
    #[must_use]
    pub fn of(xs: &[f64], ys: &[f64]) -> Self {
        let count = xs.len().min(ys.len());
        if count == 0 {
            return Self::default();
        }
        let (xs, ys) = (&xs[..count], &ys[..count]);
        let n = count as f64;
        let (mean_x, mean_y) = (sum(xs, |x| x) / n, sum(ys, |y| y) / n);
        let mut sums = [[0.0; LANES]; 3];
        for (chunk_x, chunk_y) in xs.chunks(LANES).zip(ys.chunks(LANES)) {
            for (lane, (x, y)) in chunk_x.iter().zip(chunk_y).enumerate() {
                let (dx, dy) = (x - mean_x, y - mean_y);
                sums[0][lane] += dx * dx;
                sums[1][lane] += dy * dy;
                sums[2][lane] += dx * dy;
            }
        }
        let [xx, yy, xy] = sums.map(|lanes| lanes.iter().sum());
        Self { count: count as u64, mean_x, mean_y, xx, yy, xy }
    }

    /// Adds other pairs' moments.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 || self.count == 0 {
            if self.count == 0 {
                *self = *other;
            }
            return;
        }
        let (na, nb) = (self.count as f64, other.count as f64);
        let (dx, dy) = (other.mean_x - self.mean_x, other.mean_y - self.mean_y);
        let cross = na * nb / (na + nb);
        self.xx += other.xx + dx * dx * cross;
        self.yy += other.yy + dy * dy * cross;
        self.xy += other.xy + dx * dy * cross;
        self.mean_x += dx * nb / (na + nb);
        self.mean_y += dy * nb / (na + nb);
        self.count += other.count;
    }

    /// Pearson's correlation, -1 to 1; `None` where one column does not vary.
    #[must_use]
    pub fn correlation(&self) -> Option<f64> {
        (self.xx > 0.0 && self.yy > 0.0)
            .then(|| (self.xy / (self.xx.sqrt() * self.yy.sqrt())).clamp(-1.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The textbook's sums around the exact mean.
    fn by_definition(values: &[f64]) -> [f64; 4] {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let power = |exponent: i32| values.iter().map(|value| (value - mean).powi(exponent)).sum::<f64>();
        [mean, power(2), power(3), power(4)]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Proves that moments merged from parts in any cut equal the definition over the whole, far from zero too.
        #[test]
        fn merged_moments_equal_the_definition(
            values in prop::collection::vec(-1e3f64..1e3, 1..200), cut in 0usize..200, far in prop::sample::select(vec![0.0, 1e6]),
        ) {
            let values: Vec<f64> = values.iter().map(|value| value + far).collect();
            let (one, other) = values.split_at(cut.min(values.len()));
            let mut merged = Moments::of(one);
            merged.merge(&Moments::of(other));
            let expected = by_definition(&values);
            for (power, (found, expected)) in [merged.mean, merged.m2, merged.m3, merged.m4].into_iter().zip(expected).enumerate() {
                let scale = 1e3f64.powi(power as i32 + 1) * values.len() as f64 + expected.abs();
                prop_assert!((found - expected).abs() < 1e-7 * scale, "power {power}: {found} instead of {expected}");
            }
            prop_assert_eq!(merged.count, values.len() as u64);
        }

        /// Proves that co-moments merge, and that a linear relation has correlation 1 or -1.
        #[test]
        fn merged_correlation_is_that_of_the_whole(xs in prop::collection::vec(-1e3f64..1e3, 3..100), cut in 0usize..100, slope in -3.0f64..3.0) {
            prop_assume!(slope.abs() > 0.1 && Moments::of(&xs).m2 > 1.0);
            let ys: Vec<f64> = xs.iter().map(|x| slope * x + 5.0).collect();
            let cut = cut.min(xs.len());
            let mut merged = CoMoments::of(&xs[..cut], &ys[..cut]);
            merged.merge(&CoMoments::of(&xs[cut..], &ys[cut..]));
            prop_assert!((merged.correlation().unwrap() - slope.signum()).abs() < 1e-9);
        }
    }
}
