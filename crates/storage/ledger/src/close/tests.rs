//! What closing a record finds in segments of several writers.

use serde_json::json;
use trackway_core::name::{Name, Named};
use trackway_core::{LaunchKind, RunId, SequentialIds};
use trackway_formats::record::{Encoder, Param, SegmentHeader};

use super::*;
use crate::records::RunRow;

/// A home with an attempt whose segments are written by tests.
struct Recorded {
    home: tempfile::TempDir,
    attempt: AttemptRow,
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

impl Recorded {
    fn new() -> Self {
        let ids = SequentialIds::default();
        let name = Name::renamed(Named::Run, "closed");
        let run = RunRow::planned(RunId::new(&ids), &name, "c", json!({}), at(1));
        let attempt = AttemptRow::planned(AttemptId::new(&ids), 1, LaunchKind::Train, &run);
        Self { home: tempfile::tempdir().unwrap(), attempt }
    }

    fn write(&self, name: &str, origin: Origin, frames: impl FnOnce(&mut Encoder, &mut Vec<u8>)) {
        let (mut bytes, mut encoder) = (Vec::new(), Encoder::new());
        let header = SegmentHeader {
            at: at(1),
            origin,
            pid: 1,
            segment_sequence: 0,
            boot_id: String::new(),
            run_id: self.attempt.run_id.to_string(),
            attempt_id: self.attempt.attempt_id.to_string(),
            writer: "test".into(),
        };
        encoder.begin(&mut bytes, &header);
        frames(&mut encoder, &mut bytes);
        let folder = HomeLayout::new(self.home.path()).attempt(self.attempt.attempt_id).records();
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{name}.{SEGMENT_EXTENSION}")), bytes).unwrap();
    }

    fn close(&self, given: &RunSection) -> ClosedRecords {
        self.close_at(given, &[])
    }

    fn close_at(&self, given: &RunSection, steps: &[Step]) -> ClosedRecords {
        let steps = steps.iter().copied().collect();
        close_records(self.home.path(), &self.attempt, given, &steps).unwrap()
    }
}

/// Proves that the time of the last recorded step is that of its first report, and that a step which was only printed has none.
#[test]
fn the_last_recorded_step_has_a_time() {
    let recorded = Recorded::new();
    recorded.write("a", Origin::Sdk, |encoder, bytes| {
        encoder.metrics(bytes, at(10), 1, &[("loss", 0.5)]);
        encoder.metrics(bytes, at(11), 2, &[("loss", 0.5)]);
        encoder.metrics(bytes, at(15), 2, &[("accuracy", 0.5)]);
    });
    recorded.write("b", Origin::Stdout, |encoder, bytes| {
        encoder.metrics(bytes, at(20), 3, &[("loss", 0.5)]);
    });
    let closed = recorded.close(&RunSection::default());
    assert_eq!((closed.last_step, closed.last_recorded_step), (Some(3), Some((2, at(11)))));
}

/// Proves that values at steps below 0 are closed at their steps, beside that of step 0, and are no progress of the attempt.
#[test]
fn values_before_the_first_step_stay_there() {
    let recorded = Recorded::new();
    recorded.write("a", Origin::Import, |encoder, bytes| {
        encoder.early_metrics(bytes, at(10), -1, &[("loss", 0.9)]);
        encoder.metrics(bytes, at(11), 0, &[("loss", 0.5)]);
        encoder.early_metrics(bytes, at(12), -2, &[("acc", 0.1)]);
    });
    let closed = recorded.close(&RunSection::default());
    assert_eq!((closed.point_count, closed.first_step, closed.last_step), (3, Some(0), Some(0)));
    let steps: Vec<(&str, i64, i64)> =
        closed.summaries.iter().map(|row| (row.name.as_str(), row.first_step, row.last_step)).collect();
    assert_eq!(steps, [("acc", -2, -2), ("loss", -1, 0)]);
    let segments = read_segments(recorded.home.path(), recorded.attempt.attempt_id).unwrap();
    let batch = metric_batch(&recorded.attempt, &segments[0]).unwrap();
    let steps = arrow::array::AsArray::as_primitive::<arrow::datatypes::Int64Type>(
        batch.column_by_name("step").unwrap(),
    );
    assert_eq!(steps.values().to_vec(), [-1, 0, -2]);
}

/// Proves that the message of an event about something left out is a sentence with its place.
#[test]
fn what_is_left_out_is_a_sentence() {
    let recorded = Recorded::new();
    recorded.write("a", Origin::TensorBoard, |encoder, bytes| {
        let fields = [("path", "runs/a"), ("why", "the record at byte 3 is left out"), ("offset", "3")];
        encoder.event_parts(bytes, at(1), None, EventKind::EventFileSkipped.as_str(), &fields);
        encoder.event_parts(bytes, at(1), None, "other", &fields[1..]);
    });
    let closed = recorded.close(&RunSection::default());
    let messages: Vec<&str> = closed.events.iter().map(|row| row.message.as_str()).collect();
    let sentence = "the record at byte 3 is left out";
    assert_eq!(messages, [&*format!("runs/a: {sentence}"), &*format!("why={sentence} offset=3")]);
}

/// Proves that the machine's record is closed into a separate file, that its events are history and no sign of the script's life, and
/// that each segment names the file that has its points.
#[test]
fn telemetry_is_closed_beside_the_metrics() {
    let recorded = Recorded::new();
    recorded.write("a", Origin::Sdk, |encoder, bytes| encoder.metrics(bytes, at(10), 1, &[("loss", 0.5)]));
    recorded.write("b", Origin::Telemetry, |encoder, bytes| {
        encoder.metrics(bytes, at(99), 7, &[("system/rss_bytes", 1e9)]);
        encoder.event_parts(bytes, at(99), None, "data_opened", &[("data", "train"), ("by", "attempt")]);
    });
    let closed = recorded.close(&RunSection::default());
    assert_eq!((closed.heartbeat_at, closed.last_step, closed.point_count), (Some(at(10)), Some(1), 1));
    let names: Vec<&str> = closed.summaries.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["loss", "system/rss_bytes"]);
    let [metrics, telemetry] = closed_files(recorded.home.path(), recorded.attempt.attempt_id);
    assert!(metrics.exists() && telemetry.exists());
    assert_eq!(closed.parquet_path.as_deref(), Some(metrics.as_path()));
    let home = HomeLayout::new(recorded.home.path());
    let files: Vec<_> = closed.segments.iter().map(|row| row.parquet_path.clone().unwrap()).collect();
    assert_eq!(files, [home.below(&metrics), home.below(&telemetry)]);
    assert_eq!(closed.events.len(), 1);
    assert_eq!(closed.events[0].message, "data=train by=attempt");
    assert_eq!(closed.events[0].source, Origin::Telemetry.to_string());
}

/// Proves that given tags are replaced by the script's own of the same name, and that of an artifact each content is kept once.
#[test]
fn the_last_row_of_a_name_counts() {
    let recorded = Recorded::new();
    let (one, two) = ("1".repeat(64), "2".repeat(64));
    recorded.write("a", Origin::Sdk, |encoder, bytes| {
        encoder.event_parts(bytes, at(1), None, "tag", &[("name", "team"), ("value", "vision")]);
        for (step, name, blake3) in
            [(1, "plot", &one), (2, "plot", &one), (3, "plot", &two), (4, "log", &two)]
        {
            let fields = [("name", name), ("blake3", blake3.as_str()), ("size_bytes", "7")];
            encoder.event_parts(bytes, at(1), Some(step), "artifact", &fields);
        }
    });
    let tag = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let given =
        RunSection { tags: [tag("team", "search"), tag("goal", "speed")].into(), ..Default::default() };
    let closed = recorded.close(&given);
    let tags: Vec<_> = closed.tags.iter().map(|row| (row.name.as_str(), row.value.as_str())).collect();
    assert_eq!(tags, [("goal", "speed"), ("team", "vision")]);
    let artifacts: Vec<_> =
        closed.artifacts.iter().map(|row| (row.name.as_str(), row.step.unwrap())).collect();
    assert_eq!(artifacts, [("plot", 2), ("plot", 3), ("log", 4)]);
    assert!(closed.events.is_empty(), "tags and artifacts have tables");
}

/// Proves that an event has its fields and a message, an exception in the form that people know, and that one without fields has neither.
#[test]
fn events_have_fields_and_a_message() {
    let recorded = Recorded::new();
    recorded.write("a", Origin::Sdk, |encoder, bytes| {
        let fields = [("type", "ValueError"), ("message", "bad row"), ("digest", "d1")];
        encoder.event_parts(bytes, at(1), None, "exception", &fields);
        encoder.event_parts(bytes, at(2), Some(3), "checked", &[]);
    });
    let events = recorded.close(&RunSection::default()).events;
    assert_eq!(events[0].message, "ValueError: bad row [d1]");
    assert_eq!(events[0].fields_json.as_ref().unwrap()["digest"], "d1");
    assert_eq!((events[1].message.as_str(), &events[1].fields_json, events[1].step), ("", &None, Some(3)));
}

/// Proves that the frames of a segment are counted with its header.
#[test]
fn segments_are_counted_with_their_headers() {
    let recorded = Recorded::new();
    recorded.write("a", Origin::Sdk, |encoder, bytes| {
        encoder.metrics(bytes, at(1), 1, &[("loss", 1.0)]);
        encoder.metrics(bytes, at(2), 2, &[("loss", 2.0)]);
    });
    let closed = recorded.close(&RunSection::default());
    // Its header, the name of the metric, and two frames of values.
    assert_eq!((closed.segments[0].frame_count, closed.segments[0].torn_bytes), (4, 0));
}

/// Proves that of a metric which several writers recorded the best source counts, and that live summaries are those of the closed record.
#[test]
fn one_writer_of_a_metric_counts_live_too() {
    let recorded = Recorded::new();
    recorded.write("a", Origin::Stdout, |encoder, bytes| {
        encoder.metrics(bytes, at(1), 1, &[("loss", 9.0), ("speed", 4.0)]);
    });
    recorded.write("b", Origin::Sdk, |encoder, bytes| encoder.metrics(bytes, at(1), 1, &[("loss", 0.5)]));
    let live = live_summaries(recorded.home.path(), &recorded.attempt).unwrap();
    let values: Vec<_> = live.iter().map(|row| (row.name.as_str(), row.last_value)).collect();
    assert_eq!(values, [("loss", Some(0.5)), ("speed", Some(4.0))]);
    assert_eq!(recorded.close(&RunSection::default()).summaries, live);
    let segments = read_segments(recorded.home.path(), recorded.attempt.attempt_id).unwrap();
    assert_eq!(origins_of(&segments[..1]), OriginOfEach::default(), "one writer counts as a whole");
}

/// Proves that rounds which XGBoost prints from 0 again are counted from those of the model that the attempt was seen to continue from,
/// live and closed, and that every other step stays: where the model was not read, or too late, is another framework's or was not
/// planned, and where the printed steps are higher already or go back.
#[test]
fn printed_rounds_continue_those_of_the_model() {
    let read = [("layout", "xgboost"), ("planned", "yes"), ("by", "attempt")];
    let [layout, planned, by] = read;
    let steps = |printed: &[Step], fields: &[(&str, &str)], seconds: i64| {
        let recorded = Recorded::new();
        recorded.write("a", Origin::Stdout, |encoder, bytes| {
            printed.iter().for_each(|step| encoder.metrics(bytes, at(10), *step, &[("train-rmse", 0.5)]));
        });
        recorded.write("b", Origin::Telemetry, |encoder, bytes| {
            encoder.event_parts(bytes, at(seconds), Some(41), "checkpoint_opened", fields);
        });
        let closed = recorded.close(&RunSection::default());
        assert_eq!(closed.summaries, live_summaries(recorded.home.path(), &recorded.attempt).unwrap());
        (closed.first_step.unwrap(), closed.last_step.unwrap())
    };
    assert_eq!(steps(&[0, 1, 2], &read, 9), (41, 43));
    assert_eq!(steps(&[41, 42], &read, 9), (82, 83), "the first line has as many rounds as the model");
    assert_eq!(steps(&[0, 60], &read, 11), (41, 101), "more rounds than before; the event is a little late");
    for fields in [
        [("layout", "lightgbm"), planned, by],
        [layout, ("planned", "no"), by],
        [layout, planned, ("by", "none")],
    ] {
        assert_eq!(steps(&[0, 1], &fields, 9), (0, 1), "{fields:?}");
    }
    assert_eq!(steps(&[0, 1], &[planned, by], 9), (0, 1), "an older event, without the layout");
    assert_eq!(steps(&[0, 1], &read, 60), (0, 1), "read at the end");
    assert_eq!(steps(&[42, 43], &read, 9), (42, 43));
    assert_eq!(steps(&[0, 42, 1], &read, 9), (0, 42));
}

/// Proves that a metric without a finite value has no least, greatest or mean value, and that NaN does not count as a first or last value.
#[test]
fn what_is_not_finite_is_no_value() {
    let recorded = Recorded::new();
    recorded.write("a", Origin::Sdk, |encoder, bytes| {
        encoder.metrics(bytes, at(1), 1, &[("loss", f64::NAN), ("gain", f64::INFINITY), ("rate", 2.0)]);
        encoder.metrics(bytes, at(2), 2, &[("loss", f64::NAN), ("gain", f64::INFINITY), ("rate", 4.0)]);
    });
    let summaries = recorded.close(&RunSection::default()).summaries;
    let of = |name: &str| summaries.iter().find(|row| row.name == name).unwrap();
    let (loss, gain, rate) = (of("loss"), of("gain"), of("rate"));
    assert_eq!((loss.first_value, loss.last_value, loss.mean_value), (None, None, None));
    assert_eq!((loss.non_finite_from_step, loss.non_finite_end_count), (Some(1), Some(2)));
    let infinite = Some(f64::INFINITY);
    assert_eq!(
        (gain.first_value, gain.last_value, gain.min_value, gain.max_value),
        (infinite, infinite, None, None)
    );
    assert_eq!((rate.first_value, rate.last_value, rate.mean_value), (Some(2.0), Some(4.0), Some(3.0)));
    assert_eq!((rate.non_finite_count, rate.min_value, rate.max_value), (0, Some(2.0), Some(4.0)));
}

/// Proves that a run which is stored with a sealed attempt has a receipt that verifies.
#[test]
fn what_is_stored_sealed_verifies() {
    let recorded = Recorded::new();
    let ledger = crate::Ledger::open(recorded.home.path().join("ledger.db").to_str().unwrap()).unwrap();
    let planned = &recorded.attempt;
    let name = Name::renamed(Named::Run, "imported");
    let run = RunRow::planned(planned.run_id, &name, "c", json!({}), at(1));
    let ended = AttemptRow {
        termination_reason: Some(trackway_core::TerminationReason::Completed),
        ..planned.clone()
    };
    ledger.insert_sealed(&run, planned, &crate::AttemptSeal::of(ended), at(5)).unwrap();
    assert_eq!(ledger.verify_receipt(planned.attempt_id).unwrap(), Some(true));
}

/// Proves that the values at a step are the last finite ones of the writer that counts, without those of the machine and of Trackway.
#[test]
fn values_at_a_step_are_those_that_count() {
    let recorded = Recorded::new();
    recorded.write("a", Origin::Stdout, |encoder, bytes| {
        encoder.metrics(bytes, at(1), 2, &[("loss", 9.0), ("speed", 4.0)]);
    });
    recorded.write("b", Origin::Sdk, |encoder, bytes| {
        encoder.metrics(bytes, at(1), 1, &[("loss", 0.7)]);
        encoder.metrics(bytes, at(2), 2, &[("loss", 0.6), ("trackway/checkpoint_bytes", 5.0)]);
        encoder.metrics(bytes, at(3), 2, &[("loss", 0.5), ("rate", f64::NAN)]);
    });
    recorded.write("c", Origin::Telemetry, |encoder, bytes| {
        encoder.metrics(bytes, at(2), 2, &[("system/rss_bytes", 1e9)]);
    });
    let closed = recorded.close_at(&RunSection::default(), &[2, 3]);
    let two = [("loss".to_owned(), 0.5), ("speed".to_owned(), 4.0)].into();
    assert_eq!(closed.at_steps, ValuesAtSteps::from([(2, two)]));
    assert!(recorded.close(&RunSection::default()).at_steps.is_empty());
}

/// Proves that each rank that reported itself is closed with its last step and whether an exception ended it, and other processes are not.
#[test]
fn the_ends_of_ranks_are_closed() {
    let recorded = Recorded::new();
    recorded.write("a", Origin::Sdk, |encoder, bytes| {
        encoder.event_parts(bytes, at(9), None, EventKind::Rank.as_str(), &[("rank", "0")]);
        encoder.metrics(bytes, at(10), 11, &[("loss", 0.5)]);
        encoder.event_parts(bytes, at(19), None, EventKind::Exception.as_str(), &[("type", "RuntimeError")]);
    });
    recorded.write("b", Origin::Sdk, |encoder, bytes| {
        encoder.event_parts(bytes, at(9), None, EventKind::Rank.as_str(), &[("rank", "1")]);
        encoder.metrics(bytes, at(10), 10, &[("loss", 0.5)]);
    });
    recorded.write("c", Origin::Sdk, |encoder, bytes| encoder.metrics(bytes, at(10), 1, &[("loss", 0.5)]));
    let ranks = recorded.close(&RunSection::default()).ranks;
    let end = |rank, step, raised| RankEnd { rank, last_step: Some(step), raised };
    assert_eq!(ranks, [end(0, 11, true), end(1, 10, false)]);
}

/// Proves that a record with more metrics, parameters, tags and events than a person reads takes bounded room in the ledger, keeps the first and the
/// last events, and says what is in the record alone; that all values are in the closed record; and that the time grows with the record only.
#[test]
fn a_record_of_any_size_takes_bounded_room() {
    const MANY: u64 = 30_000;
    let recorded = Recorded::new();
    for part in 0..4 {
        let names: Vec<String> = (0..MANY / 4).map(|at| format!("m{}", part * MANY / 4 + at)).collect();
        recorded.write(&format!("a{part}"), Origin::Sdk, |encoder, bytes| {
            for (step, name) in (1..).zip(&names) {
                encoder.metrics(bytes, at(1), step, &[(name, 1.0)]);
                encoder.event_parts(bytes, at(1), Some(step), "tag", &[("name", name), ("value", "x")]);
                encoder.event_parts(bytes, at(1), Some(step), "checked", &[("name", name)]);
                let param = Param { at: at(1), name: name.clone(), value: "1".into() };
                encoder.param(bytes, &param);
            }
        });
    }
    let closed = recorded.close(&RunSection::default());
    assert_eq!((closed.summaries.len(), closed.point_count), (METRIC_NAMES_MAX, MANY));
    assert_eq!((closed.parameters.len(), closed.tags.len(), closed.events.len()), (10_000, 10_000, 20_001));
    assert_eq!(closed.events[0].message, "name=m0");
    assert_eq!(closed.events[19_999].message, format!("name=m{}", MANY - 1));
    let cut = &closed.events[20_000];
    assert_eq!(cut.kind, EventKind::RecordCut.as_str());
    assert_eq!(
        cut.message,
        "only in the flight record, not in the ledger: 20000 parameters, 20000 tags, 10000 events, 10000 values of metrics \
         beyond the first 20000"
    );
}

/// Proves that a segment of several parts closes as one that is read at once: the same summaries, counts and last steps.
#[test]
fn parts_of_a_segment_are_one_segment() {
    let recorded = Recorded::new();
    recorded.write("a", Origin::Sdk, |encoder, bytes| {
        encoder.event_parts(bytes, at(1), None, "rank", &[("rank", "3")]);
        for step in 1..=100_000 {
            encoder.metrics(bytes, at(2), step, &[("loss", 1.0 / step as f64)]);
        }
    });
    let segments = read_segments(recorded.home.path(), recorded.attempt.attempt_id).unwrap();
    let whole = segments[0].segment.as_ref().unwrap();
    let closed = recorded.close_at(&RunSection::default(), &[99_999]);
    assert!(closed.segments[0].size_bytes > 4 << 20, "it has several parts");
    assert_eq!(closed.segments[0].frame_count, whole.frames.len() as u64 + 1);
    assert_eq!(closed.ranks, whole.rank_end().into_iter().collect::<Vec<_>>());
    let summary = &closed.summaries[0];
    assert_eq!((summary.point_count, summary.last_step, closed.last_step), (100_000, 100_000, Some(100_000)));
    assert_eq!(closed.at_steps[&99_999]["loss"], 1.0 / 99_999.0);
}
