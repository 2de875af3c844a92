//! The estimate of progressive validation as text.

use trackway_api::runs::progressive::ProgressiveEstimate;

use crate::units::metric;

/// The estimate with its band, and how it fell; a line each.
pub fn lines(estimate: &ProgressiveEstimate) -> Vec<String> {
    let band = match estimate.band.bounds() {
        Some((low, high)) => format!(" ({} … {}, 95 %, anytime-valid)", metric(low), metric(high)),
        None => " (too few values for a band)".into(),
    };
    let steps = format!("steps {} to {}", estimate.first_step, estimate.last_step);
    let mut lines = vec![format!("{}{band}, {steps}", metric(estimate.mean.unwrap_or(f64::NAN)))];
    lines.extend(estimate.fall.as_ref().map(|fall| {
        let (low, high) = (metric(fall.band.low), metric(fall.band.high));
        let (from, to) = (metric(fall.from), metric(fall.to));
        format!("fell from {from} to {to} in the window up to step {}: by {low} … {high}", fall.step)
    }));
    lines.extend(estimate.invalid.as_ref().map(|why| format!("not valid: {}", why)));
    lines
}
