//! How much choosing by one set of rows weakens its evidence.

use trackway_statistics::normal_quantile;

/// A set is worn when the best of so many equal models is expected to look better by more than the half width of a 95 %
/// interval.
const WORN_STANDARD_ERRORS: f64 = 1.96;

/// By how many standard errors the best of `count` models that are equally good is expected to look better than they are, if
/// their errors are independent: the expected maximum of normal variates (G. Blom 1958).
#[must_use]
pub fn expected_best(count: u64) -> f64 {
    if count < 2 { 0.0 } else { normal_quantile((count as f64 - 0.375) / (count as f64 + 0.25)) }
}

/// What to know about a set of rows by which so many models were compared; nothing where there are few.
#[must_use]
pub fn worn(count: u64) -> Option<String> {
    let best = expected_best(count);
    (best > WORN_STANDARD_ERRORS).then(|| {
        format!(
            "{count} models were compared on it: the best of so many equal ones is expected to look {best:.1} standard errors \
             better than it is; confirm the choice on rows that decided nothing"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the expected maximum of normal variates against published values (H. Harter 1961), and from where on a set is
    /// worn.
    #[test]
    fn the_best_of_many_looks_better() {
        for (count, expected) in [(2, 0.564), (10, 1.539), (50, 2.249), (100, 2.508)] {
            assert!((expected_best(count) - expected).abs() < 0.03, "{count}: {}", expected_best(count));
        }
        assert_eq!((expected_best(0), expected_best(1)), (0.0, 0.0));
        assert!(worn(24).is_none());
        assert!(
            worn(25)
                .is_some_and(|words| words.starts_with("25 models") && words.contains("2.0 standard errors"))
        );
    }
}
