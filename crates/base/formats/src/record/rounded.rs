//! Zeros that were printed: `lr 0.0000` says only that the value is too small for these decimals.

/// How such a zero is recorded: it is equal to 0, and has the sign that an exact zero does not have.
pub const ROUNDED_ZERO: f64 = -0.0;

/// Whether a value is a zero that its writer only knows to be smaller than what was printed: nothing shows that it is exactly 0.
#[must_use]
pub fn is_rounded_zero(value: f64) -> bool {
    value == 0.0 && value.is_sign_negative()
}

/// The value as it is shown and stored: a rounded zero is 0.
#[must_use]
pub fn unmarked(value: f64) -> f64 {
    if value == 0.0 { 0.0 } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a rounded zero is distinguished from an exact one, and is 0 for everything else.
    #[test]
    fn a_rounded_zero_is_a_zero() {
        assert!(is_rounded_zero(ROUNDED_ZERO) && ROUNDED_ZERO == 0.0);
        assert!([0.0, -1e-300, 1e-300, f64::NAN].into_iter().all(|value| !is_rounded_zero(value)));
        assert!(!is_rounded_zero(unmarked(ROUNDED_ZERO)));
        assert_eq!([unmarked(-1.5), unmarked(0.0)], [-1.5, 0.0]);
    }
}
