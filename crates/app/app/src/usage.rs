//! What an attempt used of its machine.

use trackway_ledger::MetricSummaryRow;

/// Seconds in which a kernel ran, summed over the GPUs; none where no driver said so.
pub(crate) fn gpu_busy_seconds(summaries: &[MetricSummaryRow], wall_seconds: f64) -> Option<f64> {
    let of_gpus =
        |row: &&MetricSummaryRow| row.name.starts_with("system/gpu/") && row.name.ends_with("/kernel_share");
    let shares: Vec<f64> = summaries.iter().filter(of_gpus).filter_map(|row| row.mean_value).collect();
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() * wall_seconds)
}
