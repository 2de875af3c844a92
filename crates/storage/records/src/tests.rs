//! What closing a record finds in segments of several writers.

mod mutants;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow::array::{AsArray as _, RecordBatch};
use arrow::datatypes::{Float64Type, Int64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::json;
use trackway_core::name::{Name, NameKind};
use trackway_core::{
    AttemptId, LaunchKind, Rng as _, RunId, SequentialIds, SplitMix64, Step, TerminationReason, Timestamp,
};
use trackway_formats::EventKind;
use trackway_formats::frames::MAX_PAYLOAD_BYTES;
use trackway_formats::layout::HomeLayout;
use trackway_formats::record::{
    Encoder, METRIC_NAMES_MAX, Origin, OriginOfEach, Param, RankEnd, SEGMENT_EXTENSION, SegmentHeader,
    read_segment,
};
use trackway_formats::runfile::RunSection;
use trackway_ledger::{AttemptRow, AttemptSeal, Ledger, MetricSummaryRow, RunRow};

use crate::close::close_files;
use crate::parquet_file::{ROW_GROUP_ROWS, write_metrics};
use crate::parts::{PART_BYTES, Part, SegmentFile, segment_files};
use crate::rounds::{Rounds, add_rounds};
use crate::summaries::Summaries;
use crate::*;

/// A home with an attempt whose segments are written by tests.
struct HomeWithAttempt {
    home: tempfile::TempDir,
    attempt: AttemptRow,
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

impl HomeWithAttempt {
    fn new() -> Self {
        let ids = SequentialIds::default();
        let name = Name::renamed(NameKind::Run, "closed");
        let run = RunRow::planned(RunId::new(&ids), &name, "c", json!({}), at(1));
        let attempt = AttemptRow::planned(AttemptId::new(&ids), 1, LaunchKind::Train, &run);
        Self { home: tempfile::tempdir().unwrap(), attempt }
    }

    fn write(&self, name: &str, origin: Origin, frames: impl FnOnce(&mut Encoder, &mut Vec<u8>)) {
        self.write_bytes(name, &self.segment(origin, frames));
    }

    fn segment(&self, origin: Origin, frames: impl FnOnce(&mut Encoder, &mut Vec<u8>)) -> Vec<u8> {
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
        bytes
    }

    fn write_bytes(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        let folder = HomeLayout::new(self.home.path()).attempt(self.attempt.attempt_id).records();
        folder.join(format!("{name}.{SEGMENT_EXTENSION}"))
    }

    fn files(&self) -> Vec<SegmentFile> {
        segment_files(self.home.path(), self.attempt.attempt_id).unwrap()
    }

    fn open(&self) -> OpenRecord {
        OpenRecord::of(self.home.path(), &self.attempt).unwrap()
    }

    /// The metrics in short, read at once.
    fn live(&self) -> Vec<MetricSummaryRow> {
        self.look(&LiveRecords::of(self.home.path()))
    }

    fn look(&self, records: &LiveRecords) -> Vec<MetricSummaryRow> {
        records.summaries(std::slice::from_ref(&self.attempt)).unwrap()
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
    let recorded = HomeWithAttempt::new();
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
    let recorded = HomeWithAttempt::new();
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
    let steps: Vec<i64> = rows_of(&recorded.open(), Points::Metrics).into_iter().map(|row| row.3).collect();
    assert_eq!(steps, [-1, 0, -2]);
}

/// Proves that the message of an event about something left out is a sentence with its place.
#[test]
fn what_is_left_out_is_a_sentence() {
    let recorded = HomeWithAttempt::new();
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
    let recorded = HomeWithAttempt::new();
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
    let recorded = HomeWithAttempt::new();
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
    let recorded = HomeWithAttempt::new();
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
    let recorded = HomeWithAttempt::new();
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
    let recorded = HomeWithAttempt::new();
    recorded.write("a", Origin::Stdout, |encoder, bytes| {
        encoder.metrics(bytes, at(1), 1, &[("loss", 9.0), ("speed", 4.0)]);
    });
    assert!(recorded.open().origins.is_empty(), "one writer counts as a whole");
    recorded.write("b", Origin::Sdk, |encoder, bytes| encoder.metrics(bytes, at(1), 1, &[("loss", 0.5)]));
    let live = recorded.live();
    let values: Vec<_> = live.iter().map(|row| (row.name.as_str(), row.last_value)).collect();
    assert_eq!(values, [("loss", Some(0.5)), ("speed", Some(4.0))]);
    assert_eq!(recorded.close(&RunSection::default()).summaries, live);
}

/// Proves that rounds which XGBoost prints from 0 again are counted from those of the model that the attempt was seen to continue from,
/// live and closed, and that every other step stays: where the model was not read, or too late, is another framework's or was not
/// planned, and where the printed steps are higher already or go back.
#[test]
fn printed_rounds_continue_those_of_the_model() {
    let read = [("layout", "xgboost"), ("planned", "yes"), ("by", "attempt")];
    let [layout, planned, by] = read;
    let steps = |printed: &[Step], fields: &[(&str, &str)], seconds: i64| {
        let recorded = HomeWithAttempt::new();
        recorded.write("a", Origin::Stdout, |encoder, bytes| {
            printed.iter().for_each(|step| encoder.metrics(bytes, at(10), *step, &[("train-rmse", 0.5)]));
        });
        recorded.write("b", Origin::Telemetry, |encoder, bytes| {
            encoder.event_parts(bytes, at(seconds), Some(41), "checkpoint_opened", fields);
        });
        let closed = recorded.close(&RunSection::default());
        assert_eq!(closed.summaries, recorded.live());
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
    let recorded = HomeWithAttempt::new();
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
    let recorded = HomeWithAttempt::new();
    let ledger = Ledger::open(recorded.home.path().join("ledger.db").to_str().unwrap()).unwrap();
    let planned = &recorded.attempt;
    let name = Name::renamed(NameKind::Run, "imported");
    let run = RunRow::planned(planned.run_id, &name, "c", json!({}), at(1));
    let ended = AttemptRow { termination_reason: Some(TerminationReason::Completed), ..planned.clone() };
    ledger.insert_sealed(&run, planned, &AttemptSeal::of(ended), at(5)).unwrap();
    assert_eq!(ledger.verify_receipt(planned.attempt_id).unwrap(), Some(true));
}

/// Proves that the values at a step are the last finite ones of the writer that counts, without those of the machine and of Trackway.
#[test]
fn values_at_a_step_are_those_that_count() {
    let recorded = HomeWithAttempt::new();
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
    let recorded = HomeWithAttempt::new();
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

/// Proves that a record with more metrics, parameters, tags and events than a person reads takes bounded room in the
/// ledger, keeps the first and the last events, and says what is in the record alone; that all values are in the closed
/// record; and that the time grows with the record only.
#[test]
fn a_record_of_any_size_takes_bounded_room() {
    const MANY: u64 = 30_000;
    let recorded = HomeWithAttempt::new();
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
    let recorded = HomeWithAttempt::new();
    recorded.write("a", Origin::Sdk, |encoder, bytes| {
        encoder.event_parts(bytes, at(1), None, "rank", &[("rank", "3")]);
        for step in 1..=100_000 {
            encoder.metrics(bytes, at(2), step, &[("loss", 1.0 / step as f64)]);
        }
    });
    let whole = read_segment(&fs::read(recorded.path("a")).unwrap()).unwrap();
    let closed = recorded.close_at(&RunSection::default(), &[99_999]);
    assert!(closed.segments[0].size_bytes > 4 << 20, "it has several parts");
    assert_eq!(closed.segments[0].frame_count, whole.frames.len() as u64 + 1);
    assert_eq!(closed.ranks, whole.rank_end().into_iter().collect::<Vec<_>>());
    let summary = &closed.summaries[0];
    assert_eq!((summary.point_count, summary.last_step, closed.last_step), (100_000, 100_000, Some(100_000)));
    assert_eq!(closed.at_steps[&99_999]["loss"], 1.0 / 99_999.0);
}

/// Proves that an attempt that left no record can be closed, and that nothing is made for it.
#[test]
fn a_missing_record_hinders_nothing() {
    let recorded = HomeWithAttempt::new();
    let closed = recorded.close(&RunSection::default());
    assert_eq!((closed.segments.len(), closed.parquet_path, closed.last_step), (0, None, None));
    assert!(!recorded.home.path().join("records").exists());
    assert!(recorded.live().is_empty());
}

/// A row of `metrics`: segment, origin, metric, step, the bits of the value, time and sequence.
type MetricRow = (String, String, String, i64, u64, i64, i64);

fn take_rows(rows: &mut Vec<MetricRow>, batch: &RecordBatch) {
    let column = |name: &str| batch.column_by_name(name).unwrap();
    let text = |name: &str, row: usize| column(name).as_string::<i32>().value(row).to_owned();
    let number = |name: &str, row: usize| column(name).as_primitive::<Int64Type>().value(row);
    let times = column("recorded_at").as_primitive::<arrow::datatypes::TimestampMicrosecondType>();
    let values = column("value").as_primitive::<Float64Type>();
    rows.extend((0..batch.num_rows()).map(|row| {
        let (segment, origin, name) = (text("segment", row), text("origin", row), text("name", row));
        let value = values.value(row).to_bits();
        (segment, origin, name, number("step", row), value, times.value(row), number("sequence", row))
    }));
}

fn rows_of(record: &OpenRecord, points: Points) -> Vec<MetricRow> {
    let mut rows = Vec::new();
    let take = |batch: RecordBatch| {
        take_rows(&mut rows, &batch);
        Ok(())
    };
    record.each_batch(points, take).unwrap();
    rows
}

fn rows_in(path: &Path) -> Vec<MetricRow> {
    let mut rows = Vec::new();
    if let Ok(file) = File::open(path) {
        let batches = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
        batches.for_each(|batch| take_rows(&mut rows, &batch.unwrap()));
    }
    rows
}

/// All segments of a record in memory, as one reading of whole files gives them.
fn whole(recorded: &HomeWithAttempt) -> Vec<Part> {
    let read = |file: &SegmentFile| {
        let path = recorded.path(file.name.strip_suffix(&format!(".{SEGMENT_EXTENSION}")).unwrap());
        Part { name: file.name.clone(), segment: read_segment(&fs::read(path).unwrap()).unwrap() }
    };
    let mut parts: Vec<Part> = recorded.files().iter().map(read).collect();
    let mut rounds = Rounds::default();
    parts.iter().for_each(|part| rounds.take(&part.segment));
    if let Some(before) = rounds.before() {
        parts.iter_mut().for_each(|part| add_rounds(&mut part.segment, before));
    }
    parts
}

fn whole_rows(parts: &[Part], points: Points) -> Vec<MetricRow> {
    let is_telemetry =
        |part: &&Part| (part.origin() == Some(Origin::Telemetry)) == (points == Points::Telemetry);
    let rows = parts.iter().filter(is_telemetry).flat_map(|part| {
        let origin = part.origin().map_or_else(|| "unknown".into(), |origin| origin.to_string());
        part.segment.metric_points_of_any_step().map(move |point| {
            let (name, value) = (point.name.into_owned(), point.value.to_bits());
            let (at, sequence) = (point.at.as_micros(), i64::from(point.sequence));
            (part.name.clone(), origin.clone(), name, point.step, value, at, sequence)
        })
    });
    rows.collect()
}

/// The metrics in short of whole segments, value by value in the order of the files.
fn whole_summaries(parts: &[Part], attempt: &AttemptRow) -> Vec<MetricSummaryRow> {
    let of_training = || parts.iter().filter(|part| part.origin() != Some(Origin::Telemetry));
    let mut origins = OriginOfEach::default();
    for part in of_training() {
        for point in part.segment.metric_points_of_any_step() {
            origins.take(&point.name, part.origin());
        }
    }
    let mut summaries = Summaries::default();
    of_training().for_each(|part| summaries.take(part, &origins));
    summaries.rows(attempt)
}

/// Writes frames of every kind that rows depend on.
fn any_frames(random: &mut SplitMix64, origin: Origin, encoder: &mut Encoder, bytes: &mut Vec<u8>) {
    const NAMES: [&str; 5] = ["loss", "val_loss", "lr", "trackway/saved", "speed"];
    const VALUES: [f64; 7] = [0.5, -0.0, 3.25, f64::NAN, f64::INFINITY, 1e300, -7.125];
    let mut below = |count: u64| random.next_u64() % count;
    let mut step = 0;
    for _ in 0..below(60) {
        let time = at(10 + below(4) as i64);
        step += below(3);
        let first = below(4) as usize;
        let mut values: Vec<(&str, f64)> = Vec::new();
        for name in &NAMES[first..=first + below(2) as usize] {
            values.push((*name, VALUES[below(7) as usize]));
        }
        match below(12) {
            0 => encoder.early_metrics(bytes, time, -1 - below(4) as i64, &values),
            1 => encoder.event_parts(bytes, time, Some(step), "checked", &[("name", "a")]),
            2 => step = below(step + 1),
            3 if origin == Origin::Telemetry => {
                let read = [("layout", "xgboost"), ("planned", "yes"), ("by", "attempt")];
                let kind = EventKind::CheckpointOpened.as_str();
                encoder.event_parts(bytes, at(9), Some(41), kind, &read);
            }
            _ => encoder.metrics(bytes, time, step, &values),
        }
    }
}

/// A mean depends in its last digits on how values are added up.
fn without_means(mut rows: Vec<MetricSummaryRow>) -> (Vec<MetricSummaryRow>, Vec<Option<f64>>) {
    let means = rows.iter_mut().map(|row| row.mean_value.take()).collect();
    (rows, means)
}

/// Proves, for records of several writers with damage, restarts and printed rounds, that segments read in small parts
/// are closed as the same rows in the same order and the same summaries as whole segments in memory; that an open
/// record has these rows; and that summaries of a record which is looked at while it grows are those of one look at its
/// end.
#[test]
fn parts_and_looks_change_no_row() {
    const ORIGINS: [Origin; 6] =
        [Origin::Sdk, Origin::Sdk, Origin::Stdout, Origin::TensorBoard, Origin::Files, Origin::Telemetry];
    for seed in 0..150 {
        let (recorded, mut random) = (HomeWithAttempt::new(), SplitMix64::new(seed));
        let mut segments = Vec::new();
        for number in 0..=random.next_u64() % 5 {
            let origin = ORIGINS[random.next_u64() as usize % ORIGINS.len()];
            let mut bytes =
                recorded.segment(origin, |encoder, bytes| any_frames(&mut random, origin, encoder, bytes));
            if random.next_u64().is_multiple_of(3) {
                let place = random.next_u64() as usize % bytes.len();
                bytes[place] ^= 1 << (random.next_u64() % 8);
            }
            segments.push((format!("s{number}"), bytes));
        }
        let records = LiveRecords::of(recorded.home.path());
        for _ in 0..4 {
            for (name, bytes) in &segments {
                let written = fs::metadata(recorded.path(name)).map_or(0, |metadata| metadata.len() as usize);
                let more = random.next_u64() as usize % (bytes.len() - written + 1);
                recorded.write_bytes(name, &bytes[..written + more]);
            }
            assert_eq!(recorded.look(&records), recorded.live(), "seed {seed}: while it grows");
        }
        segments.iter().for_each(|(name, bytes)| recorded.write_bytes(name, bytes));
        let parts = whole(&recorded);
        let expected = whole_summaries(&parts, &recorded.attempt);
        let mut files = recorded.files();
        files.iter_mut().for_each(|file| file.part_bytes = 1 + random.next_u64() as usize % 300);
        let (given, steps) = (RunSection::default(), BTreeSet::new());
        let closed = close_files(recorded.home.path(), &recorded.attempt, (&given, &steps), files).unwrap();
        let of_training = closed.summaries.iter().take(expected.len()).cloned().collect::<Vec<_>>();
        assert_eq!(of_training, expected, "seed {seed}");
        for points in [Points::Metrics, Points::Telemetry] {
            let rows = whole_rows(&parts, points);
            let path = points.path(recorded.home.path(), recorded.attempt.attempt_id);
            assert_eq!(rows_in(&path), rows, "seed {seed}: {points:?}, closed");
            assert_eq!(rows_of(&recorded.open(), points), rows, "seed {seed}: {points:?}, open");
        }
        let (live, means) = without_means(recorded.look(&records));
        let (expected, expected_means) = without_means(expected);
        assert_eq!(live, expected, "seed {seed}: live");
        for (mean, expected) in means.into_iter().zip(expected_means) {
            let (mean, expected) = (mean.unwrap_or(f64::MAX), expected.unwrap_or(f64::MAX));
            assert!((mean - expected).abs() <= 1e-9 * expected.abs(), "seed {seed}: {mean} {expected}");
        }
    }
}

/// Proves that a second look at live records reads only the bytes that were added, that one without news reads none, and that a file
/// which took the place of another is read from its beginning.
#[test]
fn a_second_look_reads_what_is_new() {
    let recorded = HomeWithAttempt::new();
    let bytes = recorded.segment(Origin::Sdk, |encoder, bytes| {
        (1..=1000).for_each(|step| encoder.metrics(bytes, at(1), step, &[("loss", 1.0 / step as f64)]));
    });
    let records = LiveRecords::of(recorded.home.path());
    let mut read = 0;
    let mut look = |size: usize| {
        recorded.write_bytes("a", &bytes[..size]);
        let last_step = recorded.look(&records).pop().map(|row| row.last_step);
        let before = std::mem::replace(&mut read, records.read_bytes());
        (last_step, read - before)
    };
    let half = bytes.len() / 2;
    let (first, read_first) = look(half);
    assert!(first.is_some_and(|step| step > 400) && read_first == half as u64);
    assert_eq!(look(half), (first, 0));
    assert_eq!(look(bytes.len()), (Some(1000), (bytes.len() - half) as u64));
    let (again, read_again) = look(half);
    assert_eq!((again, read_again), (first, half as u64), "it is shorter than before");
    assert_eq!(records.summaries(&[]).unwrap(), []);
    assert_eq!(recorded.look(&records).len(), 1, "what was forgotten is read again");
}

/// Proves that of a million values so many rows are in memory at once as one row group and one part have.
#[test]
fn many_values_are_few_rows_at_once() {
    const STEPS: u64 = 125_000;
    /// The bytes of a value in a frame.
    const VALUE_BYTES: usize = 12;
    let names: [String; 8] = std::array::from_fn(|number| format!("metric_{number}"));
    let recorded = HomeWithAttempt::new();
    for (name, steps) in [("a", 0..STEPS / 2), ("b", STEPS / 2..STEPS)] {
        recorded.write(name, Origin::Sdk, |encoder, bytes| {
            for step in steps {
                let values: [(&str, f64); 8] = std::array::from_fn(|number| (&*names[number], step as f64));
                encoder.metrics(bytes, at(1), step, &values);
            }
        });
    }
    let (path, files) = (recorded.home.path().join("all.parquet"), recorded.files());
    let rows_max = write_metrics(&path, &recorded.attempt, &files.iter().collect::<Vec<_>>()).unwrap();
    assert!(rows_max <= ROW_GROUP_ROWS + (PART_BYTES + MAX_PAYLOAD_BYTES) / VALUE_BYTES, "{rows_max}");
    let written = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
    let groups: Vec<i64> = written.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
    let group_rows = ROW_GROUP_ROWS as i64;
    assert_eq!(groups, [group_rows, group_rows, group_rows, 8 * STEPS as i64 - 3 * group_rows]);
}
