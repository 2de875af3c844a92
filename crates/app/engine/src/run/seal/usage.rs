//! What an attempt used of its machine.

use trackway_ledger::MetricSummaryRow;

/// Seconds in which a kernel ran, summed over the GPUs; none if no driver reported it.
pub(crate) fn gpu_busy_seconds(summaries: &[MetricSummaryRow], wall_seconds: f64) -> Option<f64> {
    let of_gpus =
        |row: &&MetricSummaryRow| row.name.starts_with("system/gpu/") && row.name.ends_with("/kernel_share");
    let shares: Vec<f64> = summaries.iter().filter(of_gpus).filter_map(|row| row.mean_value).collect();
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() * wall_seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the busy seconds of all GPUs are summed, and that without a GPU there are none.
    #[test]
    fn busy_seconds_are_summed_over_gpus() {
        let share = |name: &str, mean_value| MetricSummaryRow {
            attempt_id: "att_00000000000000000000000001".parse().unwrap(),
            run_id: "run_00000000000000000000000001".parse().unwrap(),
            name: name.into(),
            point_count: 60,
            non_finite_count: 0,
            non_finite_from_step: None,
            non_finite_end_count: None,
            first_step: 0,
            last_step: 9,
            first_value: None,
            last_value: None,
            min_value: None,
            max_value: None,
            mean_value: Some(mean_value),
        };
        let summaries = [
            share("system/gpu/0/kernel_share", 0.5),
            share("system/gpu/3/kernel_share", 1.0),
            share("system/rss_bytes", 1e9),
        ];
        assert_eq!(gpu_busy_seconds(&summaries, 100.0), Some(150.0));
        assert_eq!(gpu_busy_seconds(&summaries[2..], 100.0), None);
    }
}
