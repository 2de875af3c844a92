//! What was left out between a script and the record of its attempt: what it printed, its files of metrics, what an import read. Pure.

use std::collections::BTreeMap;

use trackway_core::text::counted;
use trackway_flows::data::{ReadNote, ReadNoteKind};
use trackway_formats::EventKind;
use trackway_ledger::{AttemptRow, EventRow};

/// The notes on an attempt, from its events.
pub(super) fn reading(attempt: &AttemptRow, events: &[EventRow]) -> Vec<ReadNote> {
    let own = || events.iter().filter(|event| event.attempt_id == Some(attempt.attempt_id));
    let mut notes: Vec<ReadNote> = own().filter_map(|event| note(attempt, event)).collect();
    notes.extend(surplus_names(own()));
    notes
}

fn note(attempt: &AttemptRow, event: &EventRow) -> Option<ReadNote> {
    let number = |name: &str| event.field(name).and_then(|text| text.parse::<u64>().ok());
    let is = |kind: EventKind| kind.is(&event.kind);
    let (kind, count) = if is(EventKind::OutputLeftOut) {
        (event.field("kind")?.parse::<ReadNoteKind>().ok()?, number("count"))
    } else if is(EventKind::OutputLost) {
        (ReadNoteKind::LostOutput, attempt.log_bytes_lost)
    } else if is(EventKind::EventFileSkipped) {
        (ReadNoteKind::SkippedParts, None)
    } else if is(EventKind::FramesDropped) {
        (ReadNoteKind::DroppedFrames, number("count"))
    } else if is(EventKind::RecordCut) {
        (ReadNoteKind::CutRecord, None)
    } else if is(EventKind::ImportSkipped) {
        (ReadNoteKind::NotImported, number("count"))
    } else if is(EventKind::ImportChanged) {
        (ReadNoteKind::ChangedImport, number("count"))
    } else {
        return None;
    };
    let count = count.unwrap_or(1);
    let message = if is(EventKind::FramesDropped) {
        let why = event.field("why").unwrap_or_default();
        format!("{} of the flight record were not written: {why}", counted(count, "frame"))
    } else if matches!(kind, ReadNoteKind::NotImported | ReadNoteKind::ChangedImport) && count > 1 {
        format!("{} ({count})", event.message)
    } else {
        event.message.clone()
    };
    let file = event.field("path").filter(|path| !path.is_empty()).map(str::to_owned);
    Some(ReadNote { kind, message, count, file, row: number("line"), column: None })
}

/// Values beyond the names that are recorded. A process says so at the first one and once more at its end: the greatest number counts.
fn surplus_names<'e>(events: impl Iterator<Item = &'e EventRow>) -> Vec<ReadNote> {
    let mut of_names: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
    for event in events.filter(|event| EventKind::MetricNamesFull.is(&event.kind)) {
        let [name, names_max] = ["name", "names_max"].map(|field| event.field(field).unwrap_or_default());
        let values = event.field("values").and_then(|values| values.parse().ok()).unwrap_or(1);
        let known = of_names.entry(name).or_insert((0, names_max));
        known.0 = known.0.max(values);
    }
    let note = |(name, (count, names_max)): (&str, (u64, &str))| ReadNote {
        kind: ReadNoteKind::SurplusNames,
        message: format!(
            "{} of metrics beyond the first {names_max} names were not recorded, the first of `{name}`",
            counted(count, "value")
        ),
        count,
        file: None,
        row: None,
        column: None,
    };
    of_names.into_iter().map(note).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trackway_core::name::{Name, NameKind};
    use trackway_core::{AttemptId, LaunchKind, RunId, SequentialIds, Timestamp};
    use trackway_formats::printed::LeftOutKind;
    use trackway_ledger::RunRow;

    use super::*;

    /// Proves that everything the shim may leave out is a note of the same kind.
    #[test]
    fn what_the_shim_leaves_out_has_a_kind() {
        for kind in LeftOutKind::ALL {
            assert!(kind.as_str().parse::<ReadNoteKind>().is_ok(), "{kind}");
        }
    }

    /// Proves that each event of something left out is a note with its number, file and line, that of two events on too many names the last
    /// counts, and that events of other attempts and other kinds are none.
    #[test]
    fn events_become_notes() {
        let ids = SequentialIds::default();
        let name = Name::renamed(NameKind::Run, "noted");
        let run = RunRow::planned(RunId::new(&ids), &name, "config", json!({}), Timestamp::from_micros(0));
        let mut attempt = AttemptRow::planned(AttemptId::new(&ids), 1, LaunchKind::Train, &run);
        attempt.log_bytes_lost = Some(4096);
        let event = |kind: EventKind, message: &str, fields: serde_json::Value| {
            let at = Timestamp::from_micros(0);
            EventRow {
                fields_json: Some(fields),
                ..EventRow::of_attempt(&attempt, kind, at, message.to_owned())
            }
        };
        let long = json!({ "kind": "long_lines", "path": "stdout.log", "count": "3", "why": "3 lines", "line": "7" });
        let full = |values: &str| json!({ "names_max": "20000", "name": "loss_9", "values": values });
        let import = json!({ "kind": "value", "path": "mlflow.db", "count": "2", "why": "`value` is NULL" });
        let mut other = event(EventKind::OutputLeftOut, "stdout.log: 3 lines", long.clone());
        other.attempt_id = Some(AttemptId::new(&ids));
        let events = [
            event(EventKind::OutputLeftOut, "stdout.log: 3 lines", long),
            event(EventKind::MetricNamesFull, "", full("1")),
            event(EventKind::OutputLost, "4096 bytes of output could not be stored", json!({})),
            event(EventKind::ImportSkipped, "mlflow.db: `value` is NULL", import),
            event(EventKind::FramesDropped, "", json!({ "count": "5", "why": "the disk is full" })),
            event(EventKind::OutputLeftOut, "3 frames", json!({ "kind": "dropped_frames", "count": "3" })),
            event(EventKind::OutputLeftOut, "2 values", json!({ "kind": "lost_values", "count": "2" })),
            event(EventKind::MetricNamesFull, "", full("12")),
            event(EventKind::CheckpointCommitted, "", json!({ "count": "5" })),
            other,
        ];
        let notes = reading(&attempt, &events);
        let short: Vec<(&str, u64, &str)> =
            notes.iter().map(|note| (note.kind.as_str(), note.count, note.message.as_str())).collect();
        assert_eq!(
            short,
            [
                ("long_lines", 3, "stdout.log: 3 lines"),
                ("lost_output", 4096, "4096 bytes of output could not be stored"),
                ("not_imported", 2, "mlflow.db: `value` is NULL (2)"),
                ("dropped_frames", 5, "5 frames of the flight record were not written: the disk is full"),
                ("dropped_frames", 3, "3 frames"),
                ("lost_values", 2, "2 values"),
                (
                    "surplus_names",
                    12,
                    "12 values of metrics beyond the first 20000 names were not recorded, the first of `loss_9`"
                ),
            ]
        );
        assert_eq!((notes[0].file.as_deref(), notes[0].row), (Some("stdout.log"), Some(7)));
        assert!(notes.iter().all(|note| note.kind.is_loss()));
    }
}
