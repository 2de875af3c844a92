//! What the machine did during an attempt, and how much of the loop's time was work: from the receipt alone.

use trackway_api::runs::explain::{LoopTime, MachineSummary, MachineValue, MetricSummary};
use trackway_formats::record::{is_fingerprint, is_machine_metric};
use trackway_ledger::MetricSummaryRow;
use trackway_recorder::cost::STALL_SECONDS;

/// The machine's values and, apart from them, the script's own.
pub(super) fn machine_card(summaries: &[MetricSummaryRow]) -> (MachineSummary, Vec<MetricSummary>) {
    let shown = summaries.iter().filter(|row| !is_fingerprint(&row.name));
    let (machine, own): (Vec<_>, Vec<_>) = shown.partition(|row| is_machine_metric(&row.name));
    let card = MachineSummary {
        sample_count: machine.iter().map(|row| row.point_count).max().unwrap_or(0),
        values: machine.into_iter().map(machine_line).collect(),
        work: loop_time(summaries),
    };
    (card, own.into_iter().map(metric_line).collect())
}

fn loop_time(summaries: &[MetricSummaryRow]) -> Option<LoopTime> {
    let sum = |name: &str| {
        let row = summaries.iter().find(|row| row.name == name)?;
        Some(row.mean_value? * (row.point_count - row.non_finite_count) as f64)
    };
    let steps = sum("step_seconds").filter(|seconds| *seconds > 0.0)?;
    let waited = sum("batch_wait_seconds").unwrap_or(0.0).clamp(0.0, steps);
    let stalled = sum(STALL_SECONDS).unwrap_or(0.0).max(0.0);
    let loop_seconds = steps + stalled;
    Some(LoopTime {
        loop_seconds,
        work_fraction: (steps - waited) / loop_seconds,
        batch_wait_fraction: waited / loop_seconds,
        checkpoint_stall_fraction: stalled / loop_seconds,
    })
}

fn machine_line(row: &MetricSummaryRow) -> MachineValue {
    MachineValue {
        name: row.name.clone(),
        mean: row.mean_value,
        min: row.min_value,
        max: row.max_value,
        last: row.last_value,
    }
}

fn metric_line(row: &MetricSummaryRow) -> MetricSummary {
    MetricSummary {
        name: row.name.clone(),
        count: row.point_count,
        first: row.first_value,
        last: row.last_value,
        min: row.min_value,
        max: row.max_value,
        non_finite_count: row.non_finite_count,
    }
}

#[cfg(test)]
mod tests {
    use trackway_core::{AttemptId, RunId};

    use super::*;

    fn summary(name: &str, point_count: u64, mean: f64) -> MetricSummaryRow {
        MetricSummaryRow {
            attempt_id: "att_00000000000000000000000001".parse::<AttemptId>().unwrap(),
            run_id: "run_00000000000000000000000001".parse::<RunId>().unwrap(),
            name: name.into(),
            point_count,
            non_finite_count: 0,
            non_finite_from_step: None,
            non_finite_end_count: None,
            first_step: 0,
            last_step: 9,
            first_value: None,
            last_value: None,
            min_value: None,
            max_value: None,
            mean_value: Some(mean),
        }
    }

    /// Proves that the fractions are those of the loop's whole time, that they add up, and that there are none without
    /// steps.
    #[test]
    fn the_loops_time_is_shared_out() {
        let summaries = [
            summary("step_seconds", 100, 0.9),
            summary("batch_wait_seconds", 100, 0.3),
            summary(STALL_SECONDS, 2, 5.0),
        ];
        let shares = loop_time(&summaries).unwrap();
        assert_eq!(shares.loop_seconds, 100.0);
        assert!(
            (shares.work_fraction - 0.6).abs() < 1e-12 && (shares.batch_wait_fraction - 0.3).abs() < 1e-12
        );
        assert!((shares.checkpoint_stall_fraction - 0.1).abs() < 1e-12);
        assert_eq!(loop_time(&summaries[1..]), None);
    }

    /// Proves that the machine's values are separated from the script's, and that fingerprints of batches are neither.
    #[test]
    fn the_machine_is_no_metric() {
        let summaries = [
            summary("loss", 9, 1.0),
            summary("system/gpu/0/kernel_share", 60, 0.5),
            summary("system/gpu/3/kernel_share", 60, 1.0),
            summary("system/rss_bytes", 60, 1e9),
            summary("batch_digest", 9, 1e9),
            summary("input_digest", 9, 1e9),
        ];
        let (card, metrics) = machine_card(&summaries);
        assert_eq!((card.sample_count, card.values.len(), metrics.len()), (60, 3, 1));
    }
}
