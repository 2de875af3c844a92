//! Significance tests: the probability of such a difference if there is none.

use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, Normal, StudentsT};
use statrs::function::gamma::gamma_ur;

use crate::association::Table;

/// The largest exponent of `e` worth a term: smaller terms change nothing.
const KOLMOGOROV_TERMS_MAX: u32 = 100;

/// A chi-square statistic with its p-value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChiSquare {
    /// `Σ (observed − expected)² / expected`.
    pub statistic: f64,
    /// (rows − 1) × (columns − 1), of the rows and columns that hold anything.
    pub degrees_of_freedom: usize,
    /// The probability of at least this statistic if rows and columns are independent.
    pub p_value: f64,
}

/// Pearson's chi-square test of independence, without Yates' correction: SciPy's
/// `chi2_contingency(table, correction=False)`. Empty rows and columns are left out. `None` when fewer than two rows
/// or columns hold anything.
#[must_use]
pub fn chi_square(table: &Table) -> Option<ChiSquare> {
    let (rows, columns) = (table.rows_used(), table.columns_used());
    if rows < 2 || columns < 2 {
        return None;
    }
    let statistic = table.chi_square_statistic();
    let degrees_of_freedom = (rows - 1) * (columns - 1);
    let p_value = chi_square_p_value(statistic, degrees_of_freedom);
    Some(ChiSquare { statistic, degrees_of_freedom, p_value })
}

/// The probability of a value of Student's t distribution above `statistic` (one-sided). NaN for fewer than one degree.
#[must_use]
pub fn student_t_p_value(statistic: f64, degrees_of_freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, degrees_of_freedom).map_or(f64::NAN, |student| student.sf(statistic))
}

/// The probability of a number of the normal distribution at least this far from 0, on either side.
#[must_use]
pub fn normal_p_value(statistic: f64) -> f64 {
    (2.0 * Normal::standard().sf(statistic.abs())).min(1.0)
}

/// Up to so many rows on which two sides part, McNemar's test is the binomial one.
pub const MCNEMAR_EXACT_MAX: u64 = 1_000;

/// McNemar's test (1947): of the rows on which two sides part, `one` went one way and `other` the other; how likely is
/// that, or more, if both ways are equally likely? Exact up to [`MCNEMAR_EXACT_MAX`] rows, from there on chi-square
/// with A. Edwards' correction (1948).
#[must_use]
pub fn mcnemar_p_value(one: u64, other: u64) -> f64 {
    let apart = one + other;
    if apart == 0 {
        return 1.0;
    }
    if apart > MCNEMAR_EXACT_MAX {
        let distance = (one.abs_diff(other) as f64 - 1.0).max(0.0);
        return chi_square_p_value(distance * distance / apart as f64, 1);
    }
    let binomial = Binomial::new(0.5, apart).expect("one half is a probability");
    (2.0 * binomial.cdf(one.min(other))).min(1.0)
}

/// The probability of a chi-square statistic at least this large.
#[must_use]
pub fn chi_square_p_value(statistic: f64, degrees_of_freedom: usize) -> f64 {
    if statistic <= 0.0 {
        return 1.0;
    }
    gamma_ur(degrees_of_freedom as f64 / 2.0, statistic / 2.0).clamp(0.0, 1.0)
}

/// The probability of a Kolmogorov–Smirnov distance of at least `statistic` between samples of `reference_rows` and
/// `current_rows` of one continuous distribution. NaN for an empty sample.
///
/// The limit distribution with Stephens' correction for finite samples (Stephens 1970), good to about 1 % from
/// effective sizes of ten on. Ties make it conservative: the true probability is smaller.
#[must_use]
pub fn kolmogorov_smirnov_p_value(statistic: f64, reference_rows: f64, current_rows: f64) -> f64 {
    let root = (reference_rows * current_rows / (reference_rows + current_rows)).sqrt();
    if statistic.is_nan() || root.is_nan() || root == 0.0 {
        return f64::NAN;
    }
    kolmogorov_survival((root + 0.12 + 0.11 / root) * statistic)
}

/// `Q(x) = 2 Σ (−1)^(k−1) e^(−2k²x²)`, and below 1.18 the equal series that converges there.
fn kolmogorov_survival(x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    if x < 1.18 {
        let base = -std::f64::consts::PI.powi(2) / (8.0 * x * x);
        let sum: f64 = (0..KOLMOGOROV_TERMS_MAX).map(|k| (base * f64::from(2 * k + 1).powi(2)).exp()).sum();
        return (1.0 - (2.0 * std::f64::consts::PI).sqrt() / x * sum).clamp(0.0, 1.0);
    }
    let term = |k: u32| (-2.0 * f64::from(k * k) * x * x).exp();
    let sum: f64 = (1..=KOLMOGOROV_TERMS_MAX).map(|k| if k % 2 == 1 { term(k) } else { -term(k) }).sum();
    (2.0 * sum).clamp(0.0, 1.0)
}
