//! Numbers of the command line as people read them.

use trackway_core::Timestamp;
pub use trackway_core::text::{budgeted, bytes, counted, duration, metric, short_range};
use trackway_flows::assess::Estimate;

/// A number that was estimated: `0.3142`, `12.5000`, `1.200e-7`.
pub fn number(value: f64) -> String {
    if value != 0.0 && (value.abs() < 1e-3 || value.abs() >= 1e6) {
        format!("{value:.3e}")
    } else {
        format!("{value:.4}")
    }
}

/// Its interval: `0.3012 to 0.3271`; an unknown end is `?`.
pub fn interval(estimate: &Estimate) -> String {
    let end = |end: Option<f64>| end.map_or_else(|| "?".to_owned(), number);
    format!("{} to {}", end(estimate.interval.known_low()), end(estimate.interval.known_high()))
}

/// A timestamp to the second, in UTC: `2026-11-25 03:54:35`.
pub fn timestamp(at: Timestamp) -> String {
    at.to_rfc3339().get(..19).unwrap_or_default().replace('T', " ")
}

/// The first digits of a hash, enough to distinguish hashes by eye.
pub fn short_hash(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}
