//! Numbers of the command line as people read them.

use trackway_core::Timestamp;
pub use trackway_core::text::{bytes, counted, duration};
use trackway_flows::assess::Estimate;

/// A metric's value with as many digits as help: `0.3142`, `12.5`, `1.2e-7`, `NaN`.
pub fn metric(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || !value.is_finite() {
        format!("{value}")
    } else if !(1e-4..1e6).contains(&size) {
        format!("{value:.3e}")
    } else if size >= 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.4}")
    }
}

/// A range such as `[0.00019712422, 0.25)` with long numbers cut to three digits; anything else as it is.
pub fn short_range(text: &str) -> String {
    let number = |text: &str| {
        let value: f64 = text.parse().ok()?;
        let short = format!("{value:.2e}").parse::<f64>().ok()?;
        Some(if text.len() <= RANGE_DIGITS_MAX { text.to_owned() } else { short.to_string() })
    };
    let short = || {
        let inner = text.strip_prefix('[')?;
        let end = inner.chars().last().filter(|end| matches!(end, ')' | ']'))?;
        let (low, high) = inner.strip_suffix(end)?.split_once(", ")?;
        Some(format!("[{}, {}{end}", number(low)?, number(high)?))
    };
    short().unwrap_or_else(|| text.to_owned())
}

/// Longer numbers of a range are cut.
const RANGE_DIGITS_MAX: usize = 6;

/// A number that was estimated: `0.3142`, `12.5000`, `1.200e-7`.
pub fn number(value: f64) -> String {
    if value != 0.0 && (value.abs() < 1e-3 || value.abs() >= 1e6) {
        format!("{value:.3e}")
    } else {
        format!("{value:.4}")
    }
}

/// Its number of rows: `400`, or `10 of 1000` if it does not cover all that it should.
pub fn rows_behind(estimate: &Estimate) -> String {
    match estimate.coverage {
        coverage if coverage.is_partial() => format!("{} of {}", coverage.rows_used, coverage.rows_expected),
        _ => estimate.support.to_string(),
    }
}

/// Its interval: `0.3012 to 0.3271`; an unknown end is `?`.
pub fn interval(estimate: &Estimate) -> String {
    let end = |end: Option<f64>| end.map_or_else(|| "?".to_owned(), number);
    format!("{} to {}", end(estimate.low), end(estimate.high))
}

/// A timestamp to the second, in UTC: `2026-11-25 03:54:35`.
pub fn timestamp(at: Timestamp) -> String {
    at.to_rfc3339().get(..19).unwrap_or_default().replace('T', " ")
}

/// The first digits of a hash, enough to distinguish hashes by eye.
pub fn short_hash(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that metrics keep their order of magnitude.
    #[test]
    fn metrics_are_readable() {
        assert_eq!(metric(0.314_16), "0.3142");
        assert_eq!(metric(1.2e-7), "1.200e-7");
        assert_eq!(metric(f64::NAN), "NaN");
    }

    /// Proves that only long numbers of ranges are cut, and that what is not a range of numbers stays.
    #[test]
    fn ranges_are_short() {
        assert_eq!(short_range("[0.00019712422, 0.25)"), "[0.000197, 0.25)");
        assert_eq!(short_range("[17, 1484705]"), "[17, 1480000]");
        for same in
            ["Private", "[a, b)", "[17, 23)", "[2024-01-01T00:00:00Z, 2024-02-01T00:00:00Z)", "(others)", "["]
        {
            assert_eq!(short_range(same), same);
        }
    }
}
