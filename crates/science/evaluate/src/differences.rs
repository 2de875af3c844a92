//! How two numbers of different rows differ.

use trackway_statistics::{Interval, difference_interval, normal_p_value, normal_quantile};

use crate::{Estimate, Method};

/// `one` minus `other`, and the probability of such a difference if there is none. The interval is combined from those
/// of both sides (MOVER); the probability is by the normal distribution, with the width of the interval towards 0 as
/// its standard error. `None` if a side has no interval.
pub(crate) fn difference(one: &Estimate, other: &Estimate, confidence: f64) -> Option<(Estimate, f64)> {
    let (of_one, of_other) = (interval(one)?, interval(other)?);
    let value = one.value - other.value;
    let interval = difference_interval((one.value, of_one), (other.value, of_other));
    let towards_zero = if value > 0.0 { value - interval.low } else { interval.high - value };
    let error = towards_zero / normal_quantile(f64::midpoint(1.0, confidence));
    let p_value = if value == 0.0 { 1.0 } else { normal_p_value(value / error) };
    let method = match (one.method, other.method) {
        (one, other) if one == other => one,
        (Method::Clustered, _) | (_, Method::Clustered) => Method::Clustered,
        _ => Method::Bootstrap,
    };
    let estimate = Estimate {
        value,
        low: Some(interval.low),
        high: Some(interval.high),
        support: one.support.min(other.support),
        method,
        coverage: one.coverage.and(other.coverage),
    };
    Some((estimate, p_value))
}

/// The interval of a number that has one.
pub(crate) fn interval(estimate: &Estimate) -> Option<Interval> {
    Some(Interval { low: estimate.low?, high: estimate.high? })
}
