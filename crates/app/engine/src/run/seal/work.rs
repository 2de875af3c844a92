//! What an attempt added to its run, and what shows that it took what it was given.

use trackway_core::{SkippedBatches, Step, Timestamp};
use trackway_formats::EventKind;
use trackway_ledger::{AttemptRow, EventRow};
use trackway_rules::checkpoints::roll_back::skipped_count;

use crate::run::ladder::{OpenedData, cuts_in};
use crate::run::launch::row::listed;
use crate::run::record::earlier::EarlierAttempts;

const SECONDS_PER_HOUR: f64 = 3600.0;

/// How long it took to come back, and the steps that were committed for the first time. `earlier`: what the attempts of
/// its rung before it show.
pub(super) fn note_progress(
    row: &mut AttemptRow,
    first_step_at: Option<Timestamp>,
    earlier: &EarlierAttempts,
) {
    row.first_step_at = first_step_at;
    row.recovery_seconds = first_step_at
        .zip(earlier.ended_at)
        .map(|(first, died)| first.seconds_since(died))
        .filter(|seconds| *seconds >= 0.0);
    let committed_before = earlier.last_committed_step.unwrap_or(0);
    let committed = row.last_committed_step.or(row.last_step.map(|_| 0));
    row.new_committed_steps = committed.map(|step| step.saturating_sub(committed_before));
    row.gpu_hours_per_committed_step = row
        .new_committed_steps
        .filter(|steps| *steps > 0)
        .zip(row.gpu_seconds.filter(|seconds| *seconds > 0.0))
        .map(|(steps, seconds)| seconds / SECONDS_PER_HOUR / steps as f64);
}

/// The seed, the rows and the batches, as the script or Trackway's own loader recorded them.
pub(super) fn note_inputs(row: &mut AttemptRow, events: &[EventRow]) {
    let number = |event: &EventRow, name: &str| event.field(name)?.parse::<u64>().ok();
    let of_kind = |kind: EventKind| events.iter().filter(move |event| kind.is(&event.kind));
    row.seed_seen = of_kind(EventKind::SeedTaken).find_map(|event| number(event, "seed"));
    if let Some(cut) = cuts_in(events).into_iter().max_by_key(|cut| cut.rows_total) {
        (row.rung_rows, row.rung_rows_total) = (Some(cut.rows), Some(cut.rows_total));
    }
    let mut opened = OpenedData::default();
    opened.take(events);
    let names = |was: bool| listed(&opened.names(was).map(str::to_owned).collect::<Vec<_>>());
    (row.data_opened, row.data_not_opened) = (names(true), names(false));
    let skipped = row.skip_batches.as_deref().and_then(|text| text.parse::<SkippedBatches>().ok());
    let places: Vec<(Step, u64)> = of_kind(EventKind::DataCursor)
        .filter_map(|event| Some((event.step?, number(event, "batch")?)))
        .collect();
    row.skipped_batch_count =
        skipped.and_then(|skipped| skipped_count(&skipped, &places, row.last_step.unwrap_or(0)));
}
