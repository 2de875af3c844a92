//! What of the outputs was not read, not kept or not shown, as events of the attempt: the log and the record alone would not say it.

use trackway_formats::EventKind;
use trackway_formats::layout::AttemptLayout;
use trackway_formats::printed::{LeftOut, Printed};
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

/// Records an event for each; nothing without any.
pub(in crate::shim) fn record(left_out: &[LeftOut], records: &Records) {
    if left_out.is_empty() {
        return;
    }
    let mut writer = records.writer(Origin::Stdout);
    for found in left_out {
        let path = log_of(found.output);
        let (count, why) = (found.count.to_string(), found.sentence());
        let line = found.line.map(|line| line.to_string());
        let fields = [("kind", found.kind.as_str()), ("path", &path), ("count", &count), ("why", &why)];
        let line = line.as_ref().map(|line| ("line", line.as_str()));
        let fields: Vec<(&str, &str)> = fields.into_iter().chain(line).collect();
        writer.event(EventKind::OutputLeftOut.as_str(), None, &fields);
    }
    writer.finish();
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trackway_core::{ManualClock, Timestamp};
    use trackway_formats::printed::LeftOutKind;
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
        record(&[], &records);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let kind = LeftOutKind::LongLines;
        record(&[LeftOut { kind, output: Some(Printed::Stderr), count: 2, line: Some(7) }], &records);
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
    }
}
