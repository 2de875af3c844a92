//! Numbers of the command line as people read them.

pub use trackway_core::text::{bytes, counted, duration, metric, short_range, shortened, timestamp};
use trackway_flows::evaluation::assess::Estimate;

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

/// The first digits of a hash, enough to distinguish hashes by eye.
pub fn short_hash(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

/// A metric's value, or a dash.
pub fn known(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), metric)
}

/// Both ends of an interval with a word between them; empty if it is not known.
pub fn between(ends: Option<(f64, f64)>, word: &str) -> String {
    ends.map(|(low, high)| format!("{} {word} {}", metric(low), metric(high))).unwrap_or_default()
}

/// `0.0312`, `<0.0001`.
pub fn p_value(p_value: f64) -> String {
    if p_value < 1e-4 { "<0.0001".to_owned() } else { format!("{p_value:.4}") }
}
