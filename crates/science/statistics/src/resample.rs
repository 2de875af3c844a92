//! The Poisson bootstrap: each row's count is sampled from the Poisson distribution of mean 1, which equals sampling as
//! many rows with replacement but for the number of rows, which ratios do not depend on (J. Hanley and B. MacGibbon
//! 2006). Counts of equal rows can be sampled at once: their sum is Poisson too.

use statrs::function::gamma::ln_gamma;
use trackway_core::Rng;

/// From this mean on, rejection is faster than adding up.
const REJECTION_MEAN_MIN: f64 = 10.0;

/// How many of the 65,536 numbers give a count of at most 0, 1, 2 …; those above give 8.
const SHARES: [u16; 8] = [24_109, 48_219, 60_273, 64_292, 65_296, 65_497, 65_531, 65_535];

/// A count for each of many rows, of mean 1. 16 random bits for each: the probabilities are right to 1 in 65,536.
pub fn fill_poisson_one(counts: &mut [u8], rng: &mut impl Rng) {
    for four in counts.chunks_mut(4) {
        let mut bits = rng.next_u64();
        for count in four {
            *count = poisson_one(bits as u16);
            bits >>= 16;
        }
    }
}

fn poisson_one(bits: u16) -> u8 {
    // Without a branch: the first few thresholds nearly always decide.
    let low = u8::from(bits >= SHARES[0]) + u8::from(bits >= SHARES[1]) + u8::from(bits >= SHARES[2]);
    if bits < SHARES[2] {
        return low;
    }
    low + SHARES[3..].iter().map(|share| u8::from(bits >= *share)).sum::<u8>()
}

/// A count of a mean: by inversion, or by transformed rejection (W. Hörmann 1993, PTRS) where it is large. 0 for a mean
/// that is not positive.
pub fn poisson(mean: f64, rng: &mut impl Rng) -> u64 {
    if mean >= REJECTION_MEAN_MIN { by_rejection(mean, rng) } else { by_inversion(mean, rng) }
}

fn by_inversion(mean: f64, rng: &mut impl Rng) -> u64 {
    if mean.is_nan() || mean <= 0.0 {
        return 0;
    }
    let mut left = rng.next_unit();
    let mut share = (-mean).exp();
    let mut count: u32 = 0;
    // The probabilities underflow long before.
    while left >= share && count < 200 {
        left -= share;
        count += 1;
        share *= mean / f64::from(count);
    }
    u64::from(count)
}

fn by_rejection(mean: f64, rng: &mut impl Rng) -> u64 {
    let b = 0.931 + 2.53 * mean.sqrt();
    let a = -0.059 + 0.024_83 * b;
    let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    let squeeze = 0.9277 - 3.6224 / (b - 2.0);
    loop {
        let u = rng.next_unit() - 0.5;
        let v = rng.next_unit();
        let us = 0.5 - u.abs();
        let count = ((2.0 * a / us + b) * u + mean + 0.43).floor();
        if us >= 0.07 && v <= squeeze {
            return count as u64;
        }
        if count < 0.0 || (us < 0.013 && v > us) {
            continue;
        }
        let height = v.ln() + inverse_alpha.ln() - (a / (us * us) + b).ln();
        if height <= count * mean.ln() - mean - ln_gamma(count + 1.0) {
            return count as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use trackway_core::SplitMix64;

    use super::*;

    /// Proves that drawn counts have the mean and the variance of the Poisson distribution, on both sides of the switch
    /// of method and for whole rows of counts.
    #[test]
    fn counts_are_poisson() {
        let mut rng = SplitMix64::new(7);
        for mean in [0.3, 1.0, 9.5, 10.5, 80.0, 250_000.0] {
            let drawn: Vec<f64> = (0..40_000).map(|_| poisson(mean, &mut rng) as f64).collect();
            check(&drawn, mean);
        }
        let mut counts = vec![0; 400_001];
        fill_poisson_one(&mut counts, &mut rng);
        check(&counts.iter().map(|count| f64::from(*count)).collect::<Vec<_>>(), 1.0);
        assert_eq!((poisson(0.0, &mut rng), poisson(f64::NAN, &mut rng)), (0, 0));
    }

    fn check(drawn: &[f64], mean: f64) {
        let count = drawn.len() as f64;
        let found = drawn.iter().sum::<f64>() / count;
        let variance = drawn.iter().map(|it| (it - found).powi(2)).sum::<f64>() / count;
        assert!((found - mean).abs() < 5.0 * (mean / count).sqrt(), "mean {found} of {mean}");
        let noise = ((2.0 * mean * mean + mean) / count).sqrt();
        assert!((variance - mean).abs() < 5.0 * noise, "variance {variance} of {mean}");
    }
}
