//! What a disk that was full to the end kept from the record of an attempt: its exit record has it, for which room was reserved.

use std::collections::BTreeMap;

use serde_json::json;
use trackway_core::text::counted;
use trackway_formats::EventKind;
use trackway_launch::ExitRecord;
use trackway_ledger::{AttemptRow, EventRow};
use trackway_records::ClosedRecords;

use super::evidence::End;

/// The kinds of what the record has not of what the script recorded and printed.
const VALUES: &str = "lost_values";
const FRAMES: &str = "dropped_frames";

/// What the exit record has and no record could take, as events, and values that it counts and the record has not.
pub(super) fn events(row: &AttemptRow, end: &End, closed: &ClosedRecords) -> Vec<EventRow> {
    let End::Recorded(exit) = end else { return Vec::new() };
    // Of files that are not all here, the receipt says that.
    let lost = lost_values(exit, closed).filter(|_| row.completeness.is_none());
    let found = exit.left_out.iter().cloned().chain(lost).enumerate();
    found.map(|(place, fields)| event(row, exit, place, &fields)).collect()
}

fn event(row: &AttemptRow, exit: &ExitRecord, place: usize, fields: &BTreeMap<String, String>) -> EventRow {
    let text = |name: &str| fields.get(name).map(String::as_str).filter(|text| !text.is_empty());
    let why = text("why").unwrap_or_default();
    let message = text("path").map_or_else(|| why.to_owned(), |path| format!("{path}: {why}"));
    let event = EventRow::of_attempt(row, EventKind::OutputLeftOut, exit.ended_at, message);
    EventRow {
        event_id: format!("{}:not_kept:{place}", row.attempt_id),
        fields_json: Some(json!(fields)),
        ..event
    }
}

/// What cannot be known of an attempt whose exit was not recorded, in a sentence.
pub(super) fn unknown_of(end: &End) -> Option<String> {
    matches!(end, End::Lost { .. })
        .then(|| "its exit was not recorded, nor what could not be kept".to_owned())
}

/// Whether an event is one of these.
pub(super) fn is_of_this(event: &EventRow) -> bool {
    EventKind::OutputLeftOut.is(&event.kind) && event.source == "supervisor"
}

/// Values that were read of what was printed and of files, and are not in the record. Where there were too many names, an event says so.
fn lost_values(exit: &ExitRecord, closed: &ClosedRecords) -> Option<BTreeMap<String, String>> {
    let is_full = |event: &EventRow| EventKind::MetricNamesFull.is(&event.kind) && event.source != "sdk";
    let count = exit.metric_values.saturating_sub(closed.read_count);
    let is_lost = count > 0 && !closed.events.iter().any(is_full);
    let (values, were) = (counted(count, "value"), were(count));
    let why = format!("{values} that {were} printed, or read from files, could not be kept");
    let fields = [("kind", VALUES.to_owned()), ("count", count.to_string()), ("why", why)];
    is_lost.then(|| fields.map(|(name, value)| (name.to_owned(), value)).into())
}

fn were(count: u64) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

/// What the record has not of what was recorded and printed, in a sentence; none if it has all.
pub fn not_kept_of<'e>(events: impl Iterator<Item = &'e EventRow> + Clone) -> Option<String> {
    let of_kind = |kind: &str| {
        let is_of_kind =
            |event: &&EventRow| EventKind::OutputLeftOut.is(&event.kind) && event.field("kind") == Some(kind);
        events.clone().find(is_of_kind).map(|event| event.message.clone())
    };
    let named = || {
        let event = events.clone().find(|event| EventKind::FramesDropped.is(&event.kind))?;
        let [count, why] = ["count", "why"].map(|name| event.field(name).unwrap_or_default());
        let count: u64 = count.parse().unwrap_or_default();
        let (frames, were) = (counted(count, "frame"), were(count));
        Some(format!("{frames} of the flight record {were} not written: {why}"))
    };
    of_kind(VALUES).or_else(|| of_kind(FRAMES)).or_else(named)
}

#[cfg(test)]
mod tests {
    use trackway_core::name::{Name, NameKind};
    use trackway_core::{AttemptId, LaunchKind, RunId, SequentialIds, Timestamp};
    use trackway_ledger::RunRow;

    use super::*;

    fn attempt() -> AttemptRow {
        let ids = SequentialIds::default();
        let name = Name::renamed(NameKind::Run, "full");
        let run = RunRow::planned(RunId::new(&ids), &name, "c", json!({}), Timestamp::from_micros(0));
        AttemptRow::planned(AttemptId::new(&ids), 1, LaunchKind::Train, &run)
    }

    /// Proves that what only the exit record has is an event like those of the record, that values which the record has not are one more,
    /// and that there is none of either where the record has all, or too many names are why.
    #[test]
    fn what_only_the_exit_record_has_is_an_event() {
        let row = attempt();
        let dropped =
            [("kind", "dropped_frames"), ("path", ""), ("count", "3"), ("why", "3 frames were not written")];
        let long =
            [("kind", "long_lines"), ("path", "stderr.log"), ("count", "2"), ("why", "2 lines are long")];
        let fields = |fields: [(&str, &str); 4]| {
            fields.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
        };
        let exit = ExitRecord {
            metric_values: 9,
            left_out: vec![fields(dropped), fields(long)],
            ..ExitRecord::default()
        };
        let mut closed = ClosedRecords { read_count: 4, point_count: 8, ..ClosedRecords::default() };
        let names_full = EventRow {
            source: "stdout".into(),
            ..EventRow::of_attempt(&row, EventKind::MetricNamesFull, exit.ended_at, String::new())
        };
        let whole = ExitRecord { metric_values: 4, ..ExitRecord::default() };
        assert_eq!(events(&row, &End::Recorded(Box::new(whole)), &closed), []);
        assert_eq!(not_kept_of(closed.events.iter()), None);
        let exit = End::Recorded(Box::new(exit));
        let found = events(&row, &exit, &closed);
        let short: Vec<_> = found.iter().map(|event| (event.field("kind"), event.field("count"))).collect();
        let expected = [("dropped_frames", "3"), ("long_lines", "2"), ("lost_values", "5")];
        assert_eq!(short, expected.map(|(kind, count)| (Some(kind), Some(count))));
        assert_eq!(found[1].message, "stderr.log: 2 lines are long");
        assert!(found[2].message.starts_with("5 values that were printed"), "{}", found[2].message);
        assert_eq!(not_kept_of(found.iter()).as_deref(), Some(&*found[2].message));
        assert_eq!(not_kept_of(found[..2].iter()).as_deref(), Some("3 frames were not written"));
        let fields_json = Some(json!({ "count": "1", "why": "the disk is full" }));
        let dropped =
            EventRow::of_attempt(&row, EventKind::FramesDropped, Timestamp::from_micros(0), String::new());
        let one = not_kept_of([EventRow { fields_json, ..dropped }].iter());
        assert_eq!(one.as_deref(), Some("1 frame of the flight record was not written: the disk is full"));
        closed.events = vec![names_full];
        assert_eq!(events(&row, &exit, &closed), found[..2]);
    }
}
