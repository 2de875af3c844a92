//! What an attempt used of its machine.

use std::collections::BTreeMap;

use trackway_ledger::{AttemptRow, MetricSummaryRow};

/// What the machine's record has of one GPU.
#[derive(Debug, Default, Clone, Copy)]
struct GpuUse {
    /// Whether processes of the attempt had memory on it.
    was_used: bool,
    /// Whether any kernel ran on it, of this attempt or not.
    was_busy: bool,
}

/// Puts the GPUs that the attempt had into its row: those on which its processes were seen; else those that it was given or
/// could see alone; else as many as the run file names. A machine's GPUs on which nothing of it was seen are not its own.
pub(crate) fn note_gpus(row: &mut AttemptRow, summaries: &[MetricSummaryRow]) {
    let followed = followed(summaries);
    let with = |what: fn(&GpuUse) -> bool| -> Vec<String> {
        followed.iter().filter(|(_, gpu)| what(gpu)).map(|(index, _)| index.to_string()).collect()
    };
    let used = with(|gpu| gpu.was_used);
    let is_declared = row.gpu_count.is_some_and(|count| count > 0) || row.devices.is_some();
    let seen = match (used.is_empty(), is_declared) {
        (false, _) => used,
        // Processes in a container have other numbers for the driver: what ran is the best there is.
        (true, false) => with(|gpu| gpu.was_busy),
        (true, true) => return,
    };
    if !seen.is_empty() {
        row.gpu_count = u32::try_from(seen.len()).ok();
        row.devices = Some(seen.join(","));
    }
}

/// Number and value of a metric of a GPU.
fn gpu_value(row: &MetricSummaryRow) -> Option<(&str, &str)> {
    row.name.strip_prefix("system/gpu/")?.split_once('/')
}

/// The GPUs that were followed, by the driver's number.
fn followed(summaries: &[MetricSummaryRow]) -> BTreeMap<u32, GpuUse> {
    let mut gpus = BTreeMap::<u32, GpuUse>::new();
    for row in summaries {
        let Some((index, value)) = gpu_value(row) else { continue };
        let Ok(index) = index.parse() else { continue };
        let gpu = gpus.entry(index).or_default();
        let is_seen = row.max_value.is_some_and(|value| value > 0.0);
        gpu.was_used |= value == "attempt_memory_bytes" && is_seen;
        gpu.was_busy |= value == "kernel_share" && is_seen;
    }
    gpus
}

/// Seconds in which a kernel ran, summed over the GPUs that the attempt had, or over all that were followed where it is not known
/// which those are; none if no driver reported it.
pub(crate) fn gpu_busy_seconds(
    summaries: &[MetricSummaryRow],
    devices: Option<&str>,
    wall_seconds: f64,
) -> Option<f64> {
    let share = |row: &MetricSummaryRow| {
        let (index, value) = gpu_value(row)?;
        let mean = row.mean_value.filter(|_| value == "kernel_share")?;
        let is_own = devices.is_some_and(|devices| devices.split(',').any(|device| device == index));
        Some((is_own, mean))
    };
    let shares: Vec<(bool, f64)> = summaries.iter().filter_map(share).collect();
    let any_own = shares.iter().any(|(is_own, _)| *is_own);
    let counted = shares.iter().filter(|(is_own, _)| *is_own || !any_own).map(|(_, share)| share);
    (!shares.is_empty()).then(|| counted.sum::<f64>() * wall_seconds)
}

#[cfg(test)]
mod tests {
    use trackway_core::name::{Name, NameKind};
    use trackway_core::{AttemptId, LaunchKind, Timestamp};
    use trackway_ledger::RunRow;

    use super::*;

    fn summary(name: &str, value: f64) -> MetricSummaryRow {
        MetricSummaryRow {
            attempt_id: "att_00000000000000000000000001".parse().unwrap(),
            run_id: "run_00000000000000000000000001".parse().unwrap(),
            name: format!("system/{name}"),
            point_count: 60,
            non_finite_count: 0,
            non_finite_from_step: None,
            non_finite_end_count: None,
            first_step: 0,
            last_step: 9,
            first_value: None,
            last_value: None,
            min_value: None,
            max_value: Some(value),
            mean_value: Some(value),
        }
    }

    fn attempt(gpu_count: u32, devices: Option<&str>) -> AttemptRow {
        let id = "att_00000000000000000000000001".parse::<AttemptId>().unwrap();
        let run_id = "run_00000000000000000000000001".parse().unwrap();
        let name = Name::renamed(NameKind::Run, "gpus");
        let run = RunRow::planned(run_id, &name, "aa", serde_json::json!({}), Timestamp::from_micros(0));
        let planned = AttemptRow::planned(id, 1, LaunchKind::Train, &run);
        AttemptRow { gpu_count: Some(gpu_count), devices: devices.map(str::to_owned), ..planned }
    }

    /// Proves that the busy seconds of the attempt's GPUs are summed, of all where its own are not known, and that without a GPU there
    /// are none.
    #[test]
    fn busy_seconds_are_summed_over_gpus() {
        let summaries = [
            summary("gpu/0/kernel_share", 0.5),
            summary("gpu/3/kernel_share", 1.0),
            summary("rss_bytes", 1e9),
        ];
        assert_eq!(gpu_busy_seconds(&summaries, None, 100.0), Some(150.0));
        assert_eq!(gpu_busy_seconds(&summaries, Some("0"), 100.0), Some(50.0));
        assert_eq!(gpu_busy_seconds(&summaries, Some("GPU-ab"), 100.0), Some(150.0));
        assert_eq!(gpu_busy_seconds(&summaries[2..], None, 100.0), None);
    }

    /// Proves that a receipt has the GPUs on which the attempt was seen, whatever the run file names; those on which something ran
    /// only where nothing was named; and never those of a machine on which nothing of it was.
    #[test]
    fn gpus_are_those_on_which_the_attempt_was() {
        let idle = summary("gpu/0/kernel_share", 0.0);
        let busy = summary("gpu/1/kernel_share", 0.9);
        let used = summary("gpu/2/attempt_memory_bytes", 1e9);
        let seen = |row: &mut AttemptRow, summaries: &[MetricSummaryRow]| {
            note_gpus(row, summaries);
            (row.gpu_count.unwrap(), row.devices.clone())
        };
        let all = [idle.clone(), busy.clone(), used];
        assert_eq!(seen(&mut attempt(0, None), &all), (1, Some("2".into())), "a bare command");
        assert_eq!(
            seen(&mut attempt(8, None), &all),
            (1, Some("2".into())),
            "more were named than were used"
        );
        assert_eq!(seen(&mut attempt(0, None), &[idle.clone(), busy.clone()]), (1, Some("1".into())));
        assert_eq!(seen(&mut attempt(2, None), &[idle.clone(), busy]), (2, None), "as named");
        assert_eq!(seen(&mut attempt(0, None), &[idle]), (0, None), "an idle GPU is not its own");
    }
}
