//! Intervals that contain the true value with a given confidence.

use serde::{Deserialize, Deserializer, Serialize};
use statrs::distribution::{ChiSquared, ContinuousCDF, Normal, StudentsT};

/// A closed interval. An end that is not known is infinite; JSON has null for it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Interval {
    /// The lower end; null: not known.
    #[serde(default = "lowest", deserialize_with = "low_or_lowest")]
    #[schemars(with = "Option<f64>")]
    pub low: f64,
    /// The upper end; null: not known.
    #[serde(default = "highest", deserialize_with = "high_or_highest")]
    #[schemars(with = "Option<f64>")]
    pub high: f64,
}

fn lowest() -> f64 {
    Interval::UNKNOWN.low
}

fn highest() -> f64 {
    Interval::UNKNOWN.high
}

fn low_or_lowest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_else(lowest))
}

fn high_or_highest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_else(highest))
}

impl Interval {
    /// Every number: nothing is known of the value.
    pub const UNKNOWN: Self = Self { low: f64::NEG_INFINITY, high: f64::INFINITY };

    /// Everything from 0 to 1: nothing is known about a proportion.
    const UNIT: Self = Self { low: 0.0, high: 1.0 };

    /// Between two ends of which either may be unknown: `None`, or not finite.
    #[must_use]
    pub fn between(low: Option<f64>, high: Option<f64>) -> Self {
        let known = |end: Option<f64>| end.filter(|end| end.is_finite());
        Self { low: known(low).unwrap_or_else(lowest), high: known(high).unwrap_or_else(highest) }
    }

    /// A single value that is known exactly.
    #[must_use]
    pub fn point(value: f64) -> Self {
        Self { low: value, high: value }
    }

    /// A symmetric interval around a value as one that respects the range of the value: computed where the range has no end, on the
    /// scale of the logit between two ends and of the logarithm beside one, by the delta method (L. Brown, T. Cai and A. DasGupta 2001). A
    /// value at or beyond an end, and a range without ends, leave it as it is.
    #[must_use]
    pub fn in_range_of(self, value: f64, (least, greatest): (f64, f64)) -> Self {
        let Some((low, high)) = self.bounds().filter(|_| least < value && value < greatest) else {
            return self;
        };
        let half = (high - low) / 2.0;
        match (least.is_finite(), greatest.is_finite()) {
            (true, true) => {
                let odds = (value - least) / (greatest - value);
                let half = half * (greatest - least) / ((value - least) * (greatest - value));
                let at = |odds: f64| greatest - (greatest - least) / (1.0 + odds);
                Self { low: at(odds * (-half).exp()), high: at(odds * half.exp()) }
            }
            (true, false) => {
                let (above, half) = (value - least, half / (value - least));
                Self { low: least + above * (-half).exp(), high: least + above * half.exp() }
            }
            (false, true) => {
                let (below, half) = (greatest - value, half / (greatest - value));
                Self { low: greatest - below * half.exp(), high: greatest - below * (-half).exp() }
            }
            (false, false) => self,
        }
    }

    /// Whether the value is within.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// The lower end, where it is known.
    #[must_use]
    pub fn known_low(&self) -> Option<f64> {
        Some(self.low).filter(|end| end.is_finite())
    }

    /// The upper end, where it is known.
    #[must_use]
    pub fn known_high(&self) -> Option<f64> {
        Some(self.high).filter(|end| end.is_finite())
    }

    /// Both ends, where both are known.
    #[must_use]
    pub fn bounds(&self) -> Option<(f64, f64)> {
        self.known_low().zip(self.known_high())
    }

    /// Whether at least one end is known.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.known_low().or(self.known_high()).is_some()
    }

    /// The same ends within the values that are possible.
    #[must_use]
    pub fn within(self, least: f64, most: f64) -> Self {
        let end = |end: Option<f64>| end.map(|end| end.clamp(least, most));
        Self::between(end(self.known_low()), end(self.known_high()))
    }

    /// Of a sum of two numbers, as if both were off in the same direction.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { low: self.low + other.low, high: self.high + other.high }
    }

    /// Of a number times a constant.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        let (one, other) = (self.low * factor, self.high * factor);
        Self { low: one.min(other), high: one.max(other) }
    }

    /// Of a product of two numbers.
    #[must_use]
    pub fn product(self, other: Self) -> Self {
        let (one, two) = (other.times(self.low), other.times(self.high));
        Self { low: one.low.min(two.low), high: one.high.max(two.high) }
    }

    /// Of `1 / x`; `None` where `x` may be zero.
    #[must_use]
    pub fn reciprocal(self) -> Option<Self> {
        let spans_zero = self.low <= 0.0 && self.high >= 0.0;
        (!spans_zero).then(|| Self { low: 1.0 / self.high, high: 1.0 / self.low })
    }
}

/// A proportion's score interval (Wilson 1927): of `trials`, `successes` were; `confidence` such as 0.95. Everything
/// from 0 to 1 when nothing was tried.
#[must_use]
pub fn wilson(successes: f64, trials: f64, confidence: f64) -> Interval {
    if trials <= 0.0 {
        return Interval::UNIT;
    }
    let z = normal_quantile(f64::midpoint(1.0, confidence));
    let share = successes / trials;
    let denominator = 1.0 + z * z / trials;
    let centre = (share + z * z / (2.0 * trials)) / denominator;
    let half = z / denominator * (share * (1.0 - share) / trials + z * z / (4.0 * trials * trials)).sqrt();
    // At the ends the formula is exact but for rounding.
    let low = if successes <= 0.0 { 0.0 } else { (centre - half).max(0.0) };
    let high = if successes >= trials { 1.0 } else { (centre + half).min(1.0) };
    Interval { low, high }
}

/// The exact interval of the mean of a Poisson distribution of which `count` was seen (Garwood 1936).
#[must_use]
pub fn poisson_interval(count: f64, confidence: f64) -> Interval {
    let tail = (1.0 - confidence) / 2.0;
    let half_quantile = |fraction: f64, degrees_of_freedom: f64| {
        ChiSquared::new(degrees_of_freedom).map_or(f64::NAN, |it| it.inverse_cdf(fraction) / 2.0)
    };
    let low = if count <= 0.0 { 0.0 } else { half_quantile(tail, 2.0 * count) };
    Interval { low, high: half_quantile(1.0 - tail, 2.0 * count + 2.0) }
}

/// The interval of a mean of independent values by Student's t. Infinite for fewer than two values.
#[must_use]
pub fn mean_interval(mean: f64, standard_deviation: f64, count: f64, confidence: f64) -> Interval {
    let Ok(student) = StudentsT::new(0.0, 1.0, count - 1.0) else { return Interval::UNKNOWN };
    let half = student.inverse_cdf(f64::midpoint(1.0, confidence)) * standard_deviation / count.sqrt();
    Interval { low: mean - half, high: mean + half }
}

/// The interval of the mean over the folds of a cross-validation. Folds share most of their training rows, so that Student's
/// interval is too narrow: the variance is multiplied by `1 / folds + held out / training` rows (C. Nadeau and Y. Bengio 2003).
/// Within the `range` of the values: see [`Interval::in_range_of`]. Infinite for fewer than two folds.
#[must_use]
pub fn fold_mean_interval(
    mean: f64,
    standard_deviation: f64,
    folds: usize,
    held_out_by_training: f64,
    (confidence, range): (f64, (f64, f64)),
) -> Interval {
    let count = folds as f64;
    let corrected = standard_deviation * (1.0 / count + held_out_by_training).sqrt() * count.sqrt();
    mean_interval(mean, corrected, count, confidence).in_range_of(mean, range)
}

/// The interval of the difference of two independent numbers, from the interval of each (MOVER: G. Zou and A. Donner
/// 2008; with Wilson's intervals of two proportions it is R. Newcombe's of 1998, method 10).
#[must_use]
pub fn difference_interval((one, of_one): (f64, Interval), (other, of_other): (f64, Interval)) -> Interval {
    let difference = one - other;
    Interval {
        low: difference - (one - of_one.low).hypot(of_other.high - other),
        high: difference + (of_one.high - one).hypot(other - of_other.low),
    }
}

/// The interval of the ratio of two independent numbers, neither of which is negative (MOVER-R: A. Donner and G. Zou
/// 2012). No upper end if the lower end of the denominator is 0.
#[must_use]
pub fn ratio_interval((above, of_above): (f64, Interval), (below, of_below): (f64, Interval)) -> Interval {
    let product = above * below;
    let root = |end: f64, other_end: f64| {
        (product * product - end * other_end * (2.0 * above - end) * (2.0 * below - other_end))
            .max(0.0)
            .sqrt()
    };
    let low = (product - root(of_above.low, of_below.high)) / (of_below.high * (2.0 * below - of_below.high));
    let high = (product + root(of_above.high, of_below.low)) / (of_below.low * (2.0 * below - of_below.low));
    let low = if low.is_finite() { low.max(0.0) } else { 0.0 };
    Interval { low, high: if of_below.low > 0.0 && high >= 0.0 { high } else { f64::INFINITY } }
}

/// A quantile of Student's t distribution. NaN for fewer than one degree of freedom.
#[must_use]
pub fn student_quantile(share: f64, degrees_of_freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, degrees_of_freedom).map_or(f64::NAN, |student| student.inverse_cdf(share))
}

/// A quantile of the normal distribution.
#[must_use]
pub fn normal_quantile(share: f64) -> f64 {
    Normal::standard().inverse_cdf(share)
}
