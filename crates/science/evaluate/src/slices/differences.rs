//! How two numbers of different rows differ.

use trackway_statistics::{difference_interval, normal_p_value, normal_quantile};

use crate::{Estimate, Method};

/// `one` minus `other`, and the probability of such a difference if there is none. The interval is combined from those
/// of both sides (MOVER); the probability is by the normal distribution, with the width of the interval towards 0 as
/// its standard error. `None` if a side has no interval.
pub(crate) fn difference(one: &Estimate, other: &Estimate, confidence: f64) -> Option<(Estimate, f64)> {
    if one.interval.bounds().is_none() || other.interval.bounds().is_none() {
        return None;
    }
    let value = one.value - other.value;
    let interval = difference_interval((one.value, one.interval), (other.value, other.interval));
    let towards_zero = if value > 0.0 { value - interval.low } else { interval.high - value };
    let error = towards_zero / normal_quantile(f64::midpoint(1.0, confidence));
    let p_value = if value == 0.0 { 1.0 } else { normal_p_value(value / error) };
    let method = match (one.method, other.method) {
        (one, other) if one == other => one,
        (Method::Clustered, _) | (_, Method::Clustered) => Method::Clustered,
        _ => Method::Bootstrap,
    };
    let estimate = Estimate::new(value, interval, one.support.min(other.support), method);
    Some((Estimate { coverage: one.coverage.and(other.coverage), ..estimate }, p_value))
}
