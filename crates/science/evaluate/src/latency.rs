//! How fast a model answers: from the time that each batch of rows took to numbers with intervals.

use trackway_statistics::{Interval, mean_with_interval, quantile_ranks};

use crate::{Estimate, Metrics};

/// The median of the seconds per row over batches.
pub const LATENCY: &str = "latency_seconds";
/// The 95 % quantile of the seconds per row over batches.
pub const LATENCY_P95: &str = "latency_p95_seconds";
/// Rows answered in a second.
pub const THROUGHPUT: &str = "rows_per_second";

const CONFIDENCE: f64 = 0.95;

/// A batch that was answered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchTime {
    pub rows: usize,
    /// From when it was sent until its last answer was there.
    pub seconds: f64,
}

/// [`LATENCY`], [`LATENCY_P95`] and [`THROUGHPUT`], of batches in the order in which they were scored. Only full ones
/// count (of the most rows), and not the first one, for which the model was started; if none are left there are no
/// metrics. The support is the number of batches. Intervals of quantiles are those of order statistics, the other one
/// is Student's; all hold for batches that are independent.
#[must_use]
pub fn latency(batches: &[BatchTime]) -> Metrics {
    let full = batches.iter().map(|batch| batch.rows).max().unwrap_or(0);
    let counted = batches.iter().skip(1).filter(|batch| batch.rows == full);
    let mut seconds: Vec<f64> = counted.map(|batch| batch.seconds / full as f64).collect();
    if seconds.is_empty() {
        return Metrics::new();
    }
    seconds.sort_by(f64::total_cmp);
    Metrics::from([
        (LATENCY.to_owned(), quantile(&seconds, 0.5)),
        (LATENCY_P95.to_owned(), quantile(&seconds, 0.95)),
        (THROUGHPUT.to_owned(), throughput(&seconds)),
    ])
}

/// The numbers that have no upper end, or no interval, when so many rows are scored in batches of so many.
#[must_use]
pub fn without_interval(rows: u64, batch_rows: u64) -> Vec<&'static str> {
    let counted = (rows / batch_rows.max(1)).saturating_sub(1);
    let is_open = |share| counted == 0 || quantile_ranks(counted, share, CONFIDENCE).1.is_none();
    let of_all = [(LATENCY, is_open(0.5)), (LATENCY_P95, is_open(0.95)), (THROUGHPUT, counted < 2)];
    of_all.into_iter().filter(|(_, is_open)| *is_open).map(|(name, _)| name).collect()
}

/// Why none of the numbers is measured when so many rows are scored in batches of so many; `None` if they are.
#[must_use]
pub fn why_unmeasured(rows: u64, batch_rows: u64) -> Option<String> {
    (rows / batch_rows.max(1) < 2)
        .then(|| format!("latency needs at least two batches of {batch_rows} rows; the test set has {rows}"))
}

fn quantile(sorted: &[f64], share: f64) -> Estimate {
    let count = sorted.len();
    let at = |rank: u64| sorted[rank as usize - 1];
    let (low, high) = quantile_ranks(count as u64, share, CONFIDENCE);
    let rank = ((count as f64 * share).ceil() as u64).max(1);
    Estimate::analytic(at(rank), Interval::between(low.map(at), high.map(at)), count as u64)
}

fn throughput(seconds: &[f64]) -> Estimate {
    let (mean, interval) = mean_with_interval(seconds, CONFIDENCE);
    let per_second = |end: Option<f64>| end.filter(|seconds| *seconds > 0.0).map(f64::recip);
    let rate = Interval::between(per_second(interval.known_high()), per_second(interval.known_low()));
    Estimate::analytic(mean.recip(), rate, seconds.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Method;

    fn batches(seconds: impl IntoIterator<Item = f64>) -> Vec<BatchTime> {
        let full = seconds.into_iter().map(|seconds| BatchTime { rows: 10, seconds });
        // The model starts, and at the end a few rows are left.
        let started = std::iter::once(BatchTime { rows: 10, seconds: 99.0 });
        started.chain(full).chain([BatchTime { rows: 1, seconds: 50.0 }]).collect()
    }

    /// Proves the numbers of a hundred batches by hand, without the first one and the last one, in whatever order they came.
    #[test]
    fn a_hundred_batches() {
        let metrics = latency(&batches((1..=100).rev().map(f64::from)));
        let median = metrics[LATENCY];
        assert_eq!((median.value, median.interval.bounds(), median.support), (5.0, Some((4.0, 6.1)), 100));
        let p95 = metrics[LATENCY_P95];
        assert_eq!((p95.value, p95.interval.high), (9.5, 10.0));
        let throughput = metrics[THROUGHPUT];
        assert!((throughput.value - 1.0 / 5.05).abs() < 1e-12, "{throughput:?}");
        // Student's interval of the mean of 1 to 100 is 50.5 ± 5.7566.
        assert!((throughput.interval.low - 1.0 / 5.62566).abs() < 1e-5, "{throughput:?}");
        assert!((throughput.interval.high - 1.0 / 4.47434).abs() < 1e-5, "{throughput:?}");
    }

    /// Proves from how many rows on each number has an interval.
    #[test]
    fn so_many_rows_are_enough() {
        let open = |batches: u64| without_interval(10 * batches + 9, 10);
        assert_eq!(open(0), [LATENCY, LATENCY_P95, THROUGHPUT]);
        assert_eq!(open(2), [LATENCY, LATENCY_P95, THROUGHPUT]);
        assert_eq!(open(6), [LATENCY, LATENCY_P95]);
        assert_eq!(open(7), [LATENCY_P95]);
        assert_eq!(open(72), [LATENCY_P95]);
        assert!(open(73).is_empty());
    }

    /// Proves that it is known from the rows alone whether a batch will count.
    #[test]
    fn too_few_rows_measure_nothing() {
        let why = "latency needs at least two batches of 10 rows; the test set has 19";
        assert_eq!(why_unmeasured(19, 10).as_deref(), Some(why));
        assert_eq!(why_unmeasured(20, 10), None);
        let of = |rows: &[usize]| {
            latency(&rows.iter().map(|rows| BatchTime { rows: *rows, seconds: 1.0 }).collect::<Vec<_>>())
        };
        assert!(of(&[10, 9]).is_empty() && of(&[9]).is_empty());
        assert_eq!(of(&[10, 10]).len(), 3);
    }

    /// Proves that few batches have numbers without intervals, and that none give nothing.
    #[test]
    fn few_batches() {
        let one = latency(&batches([2.0]));
        assert_eq!(
            (one[LATENCY].value, one[LATENCY].interval.known_low(), one[LATENCY].method),
            (0.2, None, Method::None)
        );
        assert_eq!((one[THROUGHPUT].value, one[THROUGHPUT].interval), (5.0, Interval::UNKNOWN));
        assert_eq!(latency(&batches((0..6).map(f64::from)))[LATENCY].interval.high, 0.5);
        assert!(latency(&[]).is_empty() && latency(&batches([])[..1]).is_empty());
    }
}
