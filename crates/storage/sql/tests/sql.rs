//! SQL over ledgers on real databases and real record files.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

#[allow(dead_code, reason = "the tests of the binary use the rest")]
#[allow(clippy::unwrap_used, reason = "a test's helper")]
#[path = "../../ledger/tests/postgres_cluster/mod.rs"]
mod postgres_cluster;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use tempfile::TempDir;
use trackway_core::name::{Name, NameKind};
use trackway_core::{AttemptId, LaunchKind, RunId, SequentialIds, TerminationReason, Timestamp};
use trackway_formats::record::{Encoder, Event, Origin, Param, SEGMENT_EXTENSION, SegmentHeader};
use trackway_formats::runfile::RunSection;
use trackway_ledger::{
    AttemptRow, AttemptSeal, AttemptState, Ledger, RunRow, conformance as ledger_conformance,
};
use trackway_records::{ClosedRecords, close_records};
use trackway_sql::conformance::{self, WEEKLY_REASONS};
use trackway_sql::sql;

use postgres_cluster::PostgresCluster;

/// Proves that questions and searches over SQLite find what plain reading finds.
#[test]
fn sqlite_conforms() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("home/ledger.db");
    ledger_conformance::run_all(&|options| Ledger::open_with(path.to_str().unwrap(), options));
    conformance::run_all(&Ledger::open(path.to_str().unwrap()).unwrap(), folder.path());
}

/// Proves that questions and searches over PostgreSQL find what plain reading finds, and that the weekly question gives
/// the same rows in `psql` and through the query engine.
#[test]
fn postgres_conforms() {
    let Some(cluster) = PostgresCluster::start_if_asked_for() else { return };
    let folder = TempDir::new().unwrap();
    let url = cluster.url();
    ledger_conformance::run_all(&|options| Ledger::open_with(&url, options));
    let ledger = Ledger::open(&url).unwrap();
    conformance::run_all(&ledger, folder.path());
    let now = cluster.now_micros();
    let run = store_run(&ledger, "weekly");
    for (number, reason, days) in [
        (1, TerminationReason::Preempted, 1),
        (2, TerminationReason::Preempted, 6),
        (3, TerminationReason::Hang, 2),
        (4, TerminationReason::Completed, 8),
    ] {
        let mut attempt = attempt_of(&run, number);
        attempt.model_family = Some("reasoning".into());
        attempt.started_at = Some(Timestamp::from_micros(now - days * 86_400_000_000));
        attempt.termination_reason = Some(reason);
        attempt.gpu_seconds = Some(f64::from(number * number) * 1800.0);
        ledger.insert_attempt(&attempt).unwrap();
    }
    let ours: Vec<String> = sql(&ledger, folder.path(), WEEKLY_REASONS)
        .unwrap()
        .text_rows()
        .unwrap()
        .iter()
        .map(|row| row.join("|"))
        .collect();
    assert_eq!(ours, ["hang|1|4.5", "preempted|2|2.5"].map(String::from), "{ours:?}");
    assert_eq!(cluster.psql(WEEKLY_REASONS), ours);
}

/// Proves that the steps a later attempt trained again count once, live and closed alike; that closing changes no
/// row of `metrics`; that closing twice gives the same file; and that damage costs only what it hit.
#[test]
fn closing_a_record_changes_no_row() {
    let home = TempDir::new().unwrap();
    let ledger = Ledger::open(home.path().join("ledger.db").to_str().unwrap()).unwrap();
    let run = store_run(&ledger, "curve");
    let mut first = attempt_of(&run, 1);
    let mut second = attempt_of(&run, 2);
    second.resumed_from_step = Some(2);
    let never_started = AttemptRow { started_at: None, resumed_from_step: Some(0), ..attempt_of(&run, 3) };
    for attempt in [&first, &second, &never_started] {
        ledger.insert_attempt(attempt).unwrap();
    }
    let values = [(1, 0.9), (2, f64::NAN), (3, f64::INFINITY), (4, 0.6)];
    write_segment(home.path(), &first, "a", Origin::Sdk, &values, b"torn tail \xff");
    write_segment(home.path(), &second, "b", Origin::Stdout, &[(3, 0.5), (4, 0.4)], b"");
    fs::write(records(home.path(), &second).join(format!("c.{SEGMENT_EXTENSION}")), b"").unwrap();
    let all = "select * from metrics order by attempt_number, segment, sequence, name";
    let effective = "select step, value from effective_metrics where name = 'loss' order by step, sequence";
    let live = (rows(&ledger, home.path(), all), rows(&ledger, home.path(), effective));
    assert_eq!(live.0.len(), 6);
    let curve: Vec<&Value> = live.1.iter().map(|row| &row["value"]).collect();
    assert_eq!(curve, [&json!(0.9), &Value::Null, &json!(0.5), &json!(0.4)]);

    let closed = close_records(home.path(), &first, &RunSection::default(), &BTreeSet::new()).unwrap();
    let bytes = fs::read(closed.parquet_path.as_ref().unwrap()).unwrap();
    close_records(home.path(), &first, &RunSection::default(), &BTreeSet::new()).unwrap();
    assert_eq!(
        fs::read(closed.parquet_path.as_ref().unwrap()).unwrap(),
        bytes,
        "closing again changes nothing"
    );
    let half = (rows(&ledger, home.path(), all), rows(&ledger, home.path(), effective));
    assert_eq!(half, live, "one closed, one live");
    let second_closed =
        close_records(home.path(), &second, &RunSection::default(), &BTreeSet::new()).unwrap();
    assert_eq!((rows(&ledger, home.path(), all), rows(&ledger, home.path(), effective)), live);
    assert_eq!((second_closed.segments.len(), second_closed.last_step), (2, Some(4)));

    let segment = &closed.segments[0];
    assert_eq!((segment.torn_bytes, segment.closed, segment.origin.as_deref()), (11, false, Some("sdk")));
    let loss = &closed.summaries[0];
    assert_eq!((loss.point_count, loss.non_finite_count), (4, 2));
    assert_eq!(
        (loss.non_finite_from_step, loss.non_finite_end_count),
        (None, None),
        "the last one is finite"
    );
    assert_eq!((loss.min_value, loss.max_value, loss.mean_value), (Some(0.6), Some(0.9), Some(0.75)));
    assert_eq!(
        (closed.parameters[0].value.as_str(), closed.events[0].kind.as_str()),
        ("0.01", "epoch_finished")
    );
    let tags: Vec<_> = closed.tags.iter().map(|tag| (&*tag.name, &*tag.value)).collect();
    assert_eq!(tags, [("report", "final")]);
    let kept: Vec<_> =
        closed.artifacts.iter().map(|one| (one.blake3.len(), one.size_bytes, one.step)).collect();
    assert_eq!(kept, [(64, 7, Some(2))], "one row for a content, and none for what is no hash");
    first = seal_with(&ledger, first, &closed);
    assert_eq!(ledger.tags_of(first.attempt_id).unwrap(), closed.tags);
    assert_eq!(ledger.artifacts_of(first.attempt_id).unwrap(), closed.artifacts);
    assert_eq!(ledger.metric_summaries_of(first.attempt_id).unwrap(), closed.summaries);
    assert_eq!(ledger.verify_receipt(first.attempt_id).unwrap(), Some(true));
    let bits =
        sql(&ledger, home.path(), "select value from metrics where step = 3 and attempt_number = 1").unwrap();
    assert_eq!(bits.text_rows().unwrap(), [["inf"]], "infinity is kept");
    let names = [
        ("attempt_id = '", first.attempt_id.to_string(), 4),
        ("run_id = '", run.run_id.to_string(), 6),
        ("run_id = '", "run_none".into(), 0),
    ];
    for (filter, id, expected) in names {
        let question = format!("select value from metrics where {filter}{id}'");
        assert_eq!(rows(&ledger, home.path(), &question).len(), expected, "{question}");
    }
}

/// Proves that an answer leaves as CSV and Parquet whole: quotes, commas and line ends survive, and Parquet reads
/// back the same number of rows.
#[test]
fn answers_leave_as_csv_and_parquet() {
    let home = TempDir::new().unwrap();
    let ledger = Ledger::open(home.path().join("ledger.db").to_str().unwrap()).unwrap();
    store_run(&ledger, "a \"b\", c\nd");
    let answer = sql(&ledger, home.path(), "select name, gpu_seconds, owner from runs").unwrap();
    let mut csv = Vec::new();
    answer.write_csv(&mut csv).unwrap();
    assert_eq!(String::from_utf8(csv).unwrap(), "name,gpu_seconds,owner\n\"a \"\"b\"\", c\nd\",0.0,\n");
    let path = home.path().join("out/answer.parquet");
    assert_eq!(answer.write_parquet(&path).unwrap(), 1);
    assert!(fs::read(&path).unwrap().starts_with(b"PAR1"));
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left aside");
}

fn rows(ledger: &Ledger, home: &Path, question: &str) -> Vec<Map<String, Value>> {
    sql(ledger, home, question).unwrap().json_rows().unwrap()
}

static IDS: LazyLock<SequentialIds> = LazyLock::new(SequentialIds::default);

fn store_run(ledger: &Ledger, name: &str) -> RunRow {
    let run = RunRow::planned(
        RunId::new(&*IDS),
        &Name::renamed(NameKind::Run, name),
        "c0ffee",
        json!({}),
        Timestamp::from_micros(1),
    );
    ledger.insert_run(&run, &[]).unwrap();
    run
}

fn attempt_of(run: &RunRow, number: u32) -> AttemptRow {
    let mut attempt = AttemptRow::planned(AttemptId::new(&*IDS), number, LaunchKind::Train, run);
    attempt.started_at = Some(Timestamp::from_micros(1));
    attempt.state = AttemptState::Running;
    attempt
}

fn seal_with(ledger: &Ledger, mut attempt: AttemptRow, closed: &ClosedRecords) -> AttemptRow {
    attempt.termination_reason = Some(TerminationReason::Completed);
    attempt.last_step = closed.last_step;
    let mut seal = AttemptSeal::of(attempt.clone());
    seal.metric_summaries = closed.summaries.clone();
    seal.parameters = closed.parameters.clone();
    seal.tags = closed.tags.clone();
    seal.artifacts = closed.artifacts.clone();
    seal.segments = closed.segments.clone();
    seal.events = closed.events.clone();
    ledger.seal_attempt(&seal, Timestamp::from_micros(5)).unwrap();
    attempt
}

fn records(home: &Path, attempt: &AttemptRow) -> PathBuf {
    home.join("attempts").join(attempt.attempt_id.to_string()).join("records")
}

/// Proves that of a metric which several writers recorded the values of one count, in `effective_metrics` and in the
/// summary, live and closed alike; that `metrics` keeps all; and that a parameter of the script's recorder replaces one
/// of the command.
#[test]
fn one_writer_counts_for_each_metric() {
    let home = TempDir::new().unwrap();
    let ledger = Ledger::open(home.path().join("ledger.db").to_str().unwrap()).unwrap();
    let run = store_run(&ledger, "origins");
    let command = ["python", "train.py", "--lr", "0.5", "--depth", "3"].map(String::from).to_vec();
    let attempt = AttemptRow { command, ..attempt_of(&run, 1) };
    let printed = attempt_of(&run, 2);
    let printed = AttemptRow { resumed_from_step: Some(200), ..printed };
    for attempt in [&attempt, &printed] {
        ledger.insert_attempt(attempt).unwrap();
    }
    write_segment(home.path(), &attempt, "a", Origin::TensorBoard, &[(159, 0.7), (161, 0.6)], b"");
    write_segment(home.path(), &attempt, "b", Origin::Sdk, &[(160, 0.7)], b"");
    write_segment(home.path(), &attempt, "c", Origin::Stdout, &[(160, 0.71)], b"");
    write_segment(home.path(), &printed, "d", Origin::Stdout, &[(201, 0.5)], b"");
    let curve = |table: &str| {
        let query = format!("select step, origin from {table} where name = 'loss' order by step, origin");
        rows(&ledger, home.path(), &query)
    };
    let one = |step: u64, origin: &str| json!({ "step": step, "origin": origin });
    let expected = [one(160, "sdk"), one(201, "stdout")];
    let shown = |rows: Vec<Map<String, Value>>| rows.into_iter().map(Value::Object).collect::<Vec<_>>();
    assert_eq!(shown(curve("effective_metrics")), expected);
    let closed = close_records(home.path(), &attempt, &RunSection::default(), &BTreeSet::new()).unwrap();
    assert_eq!(shown(curve("effective_metrics")), expected);
    assert_eq!(curve("metrics").len(), 5);
    assert_eq!((closed.point_count, closed.summaries[0].point_count), (4, 1));
    assert_eq!((closed.summaries[0].first_step, closed.summaries[0].last_step), (160, 160));
    let parameters: Vec<(&str, &str)> =
        closed.parameters.iter().map(|row| (row.name.as_str(), row.value.as_str())).collect();
    assert_eq!(parameters, [("lr", "0.01"), ("depth", "3")]);
}

fn write_segment(
    home: &Path,
    attempt: &AttemptRow,
    name: &str,
    origin: Origin,
    values: &[(u64, f64)],
    tail: &[u8],
) {
    let at = Timestamp::from_micros(1_795_000_000_000_000);
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new();
    let header = SegmentHeader {
        at,
        origin,
        pid: 1,
        segment_sequence: 0,
        boot_id: String::new(),
        run_id: attempt.run_id.to_string(),
        attempt_id: attempt.attempt_id.to_string(),
        writer: "test".into(),
    };
    encoder.begin(&mut bytes, &header);
    for value in ["0.1", "0.01"] {
        encoder.param(&mut bytes, &Param { at, name: "lr".into(), value: value.into() });
    }
    for (step, value) in values {
        encoder.metrics(&mut bytes, at, *step, &[("loss", *value)]);
    }
    let fields = vec![("epoch".to_owned(), "1".to_owned())];
    encoder.event(&mut bytes, &Event { at, step: Some(4), kind: "epoch_finished".into(), fields });
    for value in ["draft", "final"] {
        encoder.event_parts(&mut bytes, at, None, "tag", &[("name", "report"), ("value", value)]);
    }
    let hash = "a".repeat(64);
    for (step, blake3) in [(1, hash.as_str()), (2, hash.as_str()), (3, "../../ledger.db")] {
        let fields = [("name", "plot.png"), ("blake3", blake3), ("size_bytes", "7")];
        encoder.event_parts(&mut bytes, at, Some(step), "artifact", &fields);
    }
    bytes.extend_from_slice(tail);
    fs::create_dir_all(records(home, attempt)).unwrap();
    fs::write(records(home, attempt).join(format!("{name}.{SEGMENT_EXTENSION}")), bytes).unwrap();
}
