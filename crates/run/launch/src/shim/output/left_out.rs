//! What of the outputs was not read, not kept or not shown, as events of the attempt: the log and the record alone would not say it.

use std::collections::BTreeMap;

use trackway_formats::EventKind;
use trackway_formats::layout::AttemptLayout;
use trackway_formats::printed::{LeftOut, LeftOutKind, Printed};
use trackway_recorder::Origin;

use crate::shim::side::Records;

/// The log of an output, as an event names it; empty where it is of neither.
fn log_of(output: Option<Printed>) -> String {
    let logs = AttemptLayout::new("");
    let path = match output {
        Some(Printed::Stdout) => logs.stdout_log(),
        Some(Printed::Stderr) => logs.stderr_log(),
        None => return String::new(),
    };
    path.to_string_lossy().into_owned()
}

/// What was left out: of the reading, of the outputs, and frames that no writer of this process could write.
pub(in crate::shim) fn all(
    of_reading: Vec<LeftOut>,
    of_outputs: impl Iterator<Item = LeftOut>,
) -> Vec<LeftOut> {
    let dropped = trackway_recorder::unnamed_drops();
    let kind = LeftOutKind::DroppedFrames;
    let dropped = (dropped > 0).then_some(LeftOut { kind, output: None, count: dropped, line: None });
    // Those of printed values are among them.
    let of_reading = of_reading.into_iter().filter(|found| found.kind != kind);
    dropped.into_iter().chain(of_reading).chain(of_outputs).collect()
}

/// Records an event for each; nothing without any. The fields of those for which there was no room.
pub(in crate::shim) fn record(left_out: &[LeftOut], records: &Records) -> Vec<BTreeMap<String, String>> {
    if left_out.is_empty() {
        return Vec::new();
    }
    let mut writer = records.writer(Origin::Stdout);
    let mut is_recorded = |fields: &BTreeMap<String, String>| {
        let dropped = writer.dropped_frames();
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
        writer.event(EventKind::OutputLeftOut.as_str(), None, &fields);
        writer.dropped_frames() == dropped
    };
    let mut unrecorded: Vec<_> = left_out.iter().map(fields_of).collect();
    unrecorded.retain(|fields| !is_recorded(fields));
    writer.finish();
    unrecorded
}

fn fields_of(found: &LeftOut) -> BTreeMap<String, String> {
    let line = found.line.map(|line| ("line", line.to_string()));
    let fields = [
        ("kind", found.kind.as_str().to_owned()),
        ("path", log_of(found.output)),
        ("count", found.count.to_string()),
        ("why", found.sentence()),
    ];
    fields.into_iter().chain(line).map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trackway_core::{ManualClock, Timestamp};
    use trackway_formats::record::{Frame, read_segment};

    use super::*;

    /// Proves that what was left out is an event with its log, number, line and sentence, and that nothing is written where nothing was.
    #[test]
    fn what_was_left_out_is_an_event() {
        let folder = tempfile::tempdir().unwrap();
        let records = Records {
            folder: folder.path().to_owned(),
            run_id: "run".into(),
            attempt_id: "attempt".into(),
            clock: Arc::new(ManualClock::at(Timestamp::from_micros(1_000_000))),
        };
        assert_eq!(record(&[], &records), []);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let kind = LeftOutKind::LongLines;
        let found = [LeftOut { kind, output: Some(Printed::Stderr), count: 2, line: Some(7) }];
        assert_eq!(record(&found, &records), []);
        let written = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let segment = read_segment(&std::fs::read(written).unwrap()).unwrap();
        let events: Vec<_> = segment
            .frames
            .iter()
            .filter_map(|located| match &located.frame {
                Frame::Event(event) => Some(event),
                _ => None,
            })
            .collect();
        let [event] = events[..] else { panic!("{events:?}") };
        assert!(EventKind::OutputLeftOut.is(&event.kind));
        let fields = ["kind", "path", "count", "line"].map(|name| event.field(name).unwrap());
        assert_eq!(fields, ["long_lines", "stderr.log", "2", "7"]);
        assert!(event.field("why").unwrap().starts_with("2 lines are longer than 64 KiB"));
        // A file where the folder would be takes nothing.
        let nowhere = Records { folder: folder.path().join("file"), ..records };
        std::fs::write(&nowhere.folder, "").unwrap();
        let [unrecorded] = &record(&found, &nowhere)[..] else { panic!("it cannot be recorded") };
        let fields = ["kind", "path", "count", "line"].map(|name| &*unrecorded[name]);
        assert_eq!(fields, ["long_lines", "stderr.log", "2", "7"]);
    }
}
