//! Searching runs: pages, filters of the database and early ends change nothing of what plain reading of everything finds.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use serde_json::json;
use trackway_core::name::{Name, NameKind};
use trackway_core::{AttemptId, LaunchKind, Rng, RunId, SplitMix64, TerminationReason, Timestamp};
use trackway_formats::layout::HomeLayout;
use trackway_formats::record::{Encoder, Origin, SEGMENT_EXTENSION, SegmentHeader};
use trackway_formats::runfile::Plan;
use trackway_ledger::conformance::rows::{SpreadIds, at, new_attempt, stored_run};
use trackway_ledger::scan::{Backend, Record as _, Value};
use trackway_ledger::{
    AttemptRow, AttemptSeal, AttemptState, ErrorKind, EvaluationMetricRow, EvaluationRow, EvaluationState,
    GATE_TEST_ORIGIN, Ledger, LedgerError, MetricSummaryRow, ParameterRow, RunAmendmentRow, RunField,
    RunFilter, RunRow, RunState, TagRow,
};
use trackway_records::LiveRecords;

use crate::query::RowPredicate;
use crate::search::{FoundRuns, Page, RunSearch, evaluated_names, search_runs};

/// Runs that are stored in one transaction.
const RUNS_AT_ONCE: u32 = 1_000;
/// Seconds between two runs; every other one is created at the same time as the one before.
const APART_SECONDS: f64 = 60.0;

/// Fills a ledger with sealed training runs, each with so many metrics, and with parameters and a tag; the newest one is created at
/// `newest`. One of ten has two attempts, and some lack some of it. The same numbers give the same runs.
pub fn fill_runs(
    ledger: &Ledger,
    run_count: u32,
    metric_count: u32,
    newest: Timestamp,
) -> Result<(), LedgerError> {
    let mut rng = SplitMix64::new(11);
    let mut first = 0;
    while first < run_count {
        let end = run_count.min(first + RUNS_AT_ONCE);
        ledger.backend().transaction(false, |backend| {
            for number in first..end {
                let made = newest.plus_seconds(-APART_SECONDS * f64::from((run_count - 1 - number) / 2));
                let run = run_of(number, made);
                backend.insert(&run)?;
                let seconds = run.wall_seconds / f64::from(run.attempt_count);
                for attempt_number in 1..=run.attempt_count {
                    let mut attempt =
                        AttemptRow::planned(AttemptId::new(&SpreadIds), attempt_number, run.kind, &run);
                    attempt.termination_reason = run.termination_reason;
                    backend.insert(&attempt)?;
                    let metrics = metrics_of(&attempt, number, metric_count, &mut rng);
                    let is_last = attempt_number == run.attempt_count;
                    seal(backend, filled(attempt, number, is_last, metrics), made, seconds)?;
                }
            }
            Ok(())
        })?;
        first = end;
    }
    Ok(())
}

/// What an attempt is sealed with: these metrics, and parameters and tags of its run's number.
fn filled(attempt: AttemptRow, number: u32, is_last: bool, metrics: Vec<MetricSummaryRow>) -> AttemptSeal {
    let (attempt_id, run_id) = (attempt.attempt_id, attempt.run_id);
    let parameters = parameters_of(number, is_last).into_iter().map(|(name, value)| ParameterRow {
        attempt_id,
        run_id,
        name: name.into(),
        value,
        origin: None,
    });
    let team = if number.is_multiple_of(2) { "search" } else { "Ranking é" };
    let tag = TagRow { attempt_id, run_id, name: "team".into(), value: team.into() };
    AttemptSeal {
        metric_summaries: metrics,
        parameters: parameters.collect(),
        tags: if number.is_multiple_of(3) { vec![tag] } else { Vec::new() },
        ..AttemptSeal::of(attempt)
    }
}

/// Seals an attempt without waiting for the disk: with the digest that its receipt has.
fn seal(
    backend: &mut Backend,
    mut seal: AttemptSeal,
    started_at: Timestamp,
    wall_seconds: f64,
) -> Result<(), LedgerError> {
    seal.metric_summaries.iter().try_for_each(|row| backend.insert(row))?;
    seal.parameters.iter().try_for_each(|row| backend.insert(row))?;
    seal.tags.iter().try_for_each(|row| backend.insert(row))?;
    seal.attempt.started_at = Some(started_at);
    seal.attempt.ended_at = Some(started_at.plus_seconds(wall_seconds));
    seal.attempt.wall_seconds = Some(wall_seconds);
    let mut attempt = AttemptRow { receipt_sha256: Some(seal.receipt_sha256()), ..seal.attempt };
    attempt.state = AttemptState::Sealed;
    attempt.sealed_at = attempt.ended_at;
    backend.update(&attempt, &["run_id", "kind"])?;
    Ok(())
}

fn run_of(number: u32, made: Timestamp) -> RunRow {
    let command =
        ["python".to_owned(), "train.py".to_owned(), format!("--lr={}", f64::from(number % 17) * 0.001)];
    let config = json!(Plan::for_command(&command));
    let name = Name::renamed(NameKind::Run, &format!("filled-{}", number % 97));
    let mut run =
        RunRow::planned(RunId::new(&SpreadIds), &name, &format!("config-{}", number % 500), config, made);
    let has_failed = number % 4 == 1;
    run.state = if has_failed { RunState::Failed } else { RunState::Completed };
    run.termination_reason =
        Some(if has_failed { TerminationReason::HostOom } else { TerminationReason::Completed });
    run.model_family = (!number.is_multiple_of(5)).then(|| format!("family-{}", number % 5));
    run.seed = (!number.is_multiple_of(7)).then_some(u64::from(number % 7));
    run.attempt_count = if number % 10 == 4 { 2 } else { 1 };
    run.wall_seconds = f64::from(number * 7919 % 36_000) + 0.5;
    run.gpu_seconds = run.wall_seconds * 8.0;
    run.cost_usd = (!number.is_multiple_of(6)).then(|| run.gpu_seconds / 900.0);
    run.ended_at = Some(made.plus_seconds(run.wall_seconds));
    run
}

/// `val_loss`, `loss`, `epoch`, and others up to the requested number; one of eleven runs lacks the first.
fn metrics_of(attempt: &AttemptRow, number: u32, count: u32, rng: &mut SplitMix64) -> Vec<MetricSummaryRow> {
    let names = (0..count).map(|place| match place {
        0 => "val_loss".to_owned(),
        1 => "loss".to_owned(),
        2 => "epoch".to_owned(),
        other => format!("metric_{other:02}"),
    });
    names
        .enumerate()
        .filter(|(place, _)| *place > 0 || !number.is_multiple_of(11))
        .map(|(place, name)| {
            let last = match (place, number % 13) {
                (2, _) => Some(10.0),
                (_, 0) => None,
                (_, 1) => Some(0.0),
                (_, 2) => Some(-0.0),
                (_, 3) => Some(f64::INFINITY),
                _ => Some(rng.next_unit() * 4.0 - 1.0),
            };
            MetricSummaryRow {
                attempt_id: attempt.attempt_id,
                run_id: attempt.run_id,
                name,
                point_count: 100,
                non_finite_count: 0,
                non_finite_from_step: None,
                non_finite_end_count: None,
                first_step: 1,
                last_step: 100,
                first_value: last.map(|value| value + 1.0),
                last_value: last,
                min_value: last.map(|value| value - rng.next_unit()),
                max_value: last.map(|value| value + 2.0),
                mean_value: last,
            }
        })
        .collect()
}

/// Strings, numbers, both, and numbers where the last attempt's count.
fn parameters_of(number: u32, is_last: bool) -> Vec<(&'static str, String)> {
    let mut found = vec![
        ("lr", format!("{}", f64::from(number % 17) * 0.001)),
        ("optimizer", ["adam", "sgd", "Adam", "lion"][number as usize % 4].to_owned()),
        ("late", if is_last { format!("{}", number % 5) } else { "not yet".to_owned() }),
    ];
    if number.is_multiple_of(2) {
        found.push((
            "mixed",
            if number.is_multiple_of(5) { "none".to_owned() } else { format!("{}", number % 3) },
        ));
    }
    found
}

/// Names that the searches below use.
const NAMES: [&str; 21] = [
    "state", "name", "model_family", "seed", "attempt_count", "wall_seconds", "gpu_seconds", "cost_usd",
    "val_loss", "first.val_loss", "min.loss", "max.loss", "epoch", "param.lr", "param.optimizer",
    "param.mixed", "param.late", "tag.team", "eval.f1", "eval.slice.old men.f1", "eval.test_set.night.f1",
];

/// A test set, a slice and a metric.
type NumberPlace = (Option<&'static str>, &'static str, &'static str);

/// What those of evaluations mean.
const NUMBERS: [(&str, NumberPlace); 3] = [
    ("eval.f1", (None, "", "f1")),
    ("eval.slice.old men.f1", (None, "old men", "f1")),
    ("eval.test_set.night.f1", (Some("night"), "", "f1")),
];

/// Conditions of one name.
const ATOMS: [&str; 42] = [
    "\"state\" = 'failed'",
    "\"state\" in ('failed', 'running')",
    "\"name\" = 'filled-3'",
    "\"name\" like 'filled-1%'",
    "\"model_family\" is null",
    "\"model_family\" > 'family-2'",
    "\"seed\" >= 4",
    "\"seed\" is not null",
    "\"attempt_count\" = 2",
    "\"attempt_count\" > 1.5",
    "\"gpu_seconds\" < 20000",
    "\"cost_usd\" between 10 and 90.5",
    "\"val_loss\" < 0.3",
    "\"val_loss\" > 0",
    "\"val_loss\" < 0",
    "\"val_loss\" = 0",
    "\"val_loss\" <> 0",
    "\"val_loss\" is null",
    "\"val_loss\" > 1000",
    "0.5 >= \"first.val_loss\"",
    "\"min.loss\" > -1.5",
    "\"max.loss\" < \"min.loss\" + 2.2",
    "\"epoch\" = 10",
    "\"param.lr\" < 0.004",
    "\"param.lr\" in (0.001, 0.005)",
    "\"param.lr\" = 0.016",
    "\"param.lr\" > 7",
    "\"val_loss\" < -0.98",
    "\"max.loss\" >= 4.9",
    "\"param.optimizer\" = 'adam'",
    "lower(\"param.optimizer\") = 'adam'",
    "\"param.mixed\" = '2'",
    "\"param.late\" >= 3",
    "\"tag.team\" = 'search'",
    "\"tag.team\" is not null",
    "\"eval.f1\" > 0.5",
    "\"eval.f1\" between 0.25 and 0.5",
    "\"eval.f1\" is null",
    "\"eval.f1\" is not null",
    "\"eval.f1\" > 40",
    "\"eval.slice.old men.f1\" <= 0.25",
    "\"eval.test_set.night.f1\" < \"eval.f1\"",
];

/// Orders: names, and whether the greatest comes first.
const ORDERS: [&[(&str, bool)]; 24] = [
    &[],
    &[("val_loss", false)],
    &[("val_loss", true)],
    &[("first.val_loss", true)],
    &[("min.loss", true)],
    &[("max.loss", false)],
    &[("max.loss", true)],
    &[("epoch", false)],
    &[("cost_usd", false)],
    &[("cost_usd", true)],
    &[("wall_seconds", false)],
    &[("attempt_count", true)],
    &[("name", false)],
    &[("name", true)],
    &[("param.lr", false)],
    &[("param.lr", true)],
    &[("param.late", true), ("wall_seconds", true)],
    &[("tag.team", true)],
    &[("param.mixed", true), ("val_loss", false)],
    &[("seed", false), ("tag.team", true), ("name", false)],
    &[("eval.f1", true)],
    &[("eval.f1", false)],
    &[("eval.slice.old men.f1", true), ("eval.f1", false)],
    &[("eval.test_set.night.f1", false)],
];

/// Runs of which there are more than any batch and any first pass holds.
const RUNS: u32 = 2_500;
/// Conditions that are tried, beside those of one name.
const CONDITIONS: usize = 8;

pub(super) fn searches_find_what_plain_reading_finds(ledger: &Ledger, home: &Path) {
    fill_runs(ledger, RUNS, 3, at(50_000)).unwrap();
    evaluate_runs(ledger);
    live_run(ledger, home);
    let plain = Plain::of(ledger, home);
    let mut rng = SplitMix64::new(5);
    let mut pick = |count: usize| (rng.next_u64() % count as u64) as usize;
    let mut conditions: Vec<Option<String>> = vec![None];
    conditions.extend(ATOMS.map(|atom| Some(atom.to_owned())));
    for _ in 0..CONDITIONS {
        let (one, two, three) =
            (ATOMS[pick(ATOMS.len())], ATOMS[pick(ATOMS.len())], ATOMS[pick(ATOMS.len())]);
        conditions.push(Some(match pick(4) {
            0 => format!("{one} and {two}"),
            1 => format!("({one} or {two}) and {three}"),
            2 => format!("not ({one}) and {two} and {three}"),
            _ => format!("{one} or {two} and not {three}"),
        }));
    }
    for (number, condition) in conditions.iter().enumerate() {
        let order = ORDERS[number % ORDERS.len()];
        let other = ORDERS[pick(ORDERS.len())];
        for (order, limit) in [(order, 20), (other, 700)] {
            let expected = plain.found(condition.as_deref(), order);
            let said = format!("{condition:?} by {order:?}, {limit} of {}", expected.len());
            let found = search(ledger, home, condition.as_deref(), order, Page { after: None, limit });
            let count = expected.len().min(limit);
            assert_eq!(shown(&found), plain.rows(&expected[..count]), "{said}");
            let next = (expected.len() > limit).then(|| plain.runs[expected[limit - 1]].run_id);
            assert_eq!(found.next, next, "{said}");
            let is_counted = condition.is_none() && order.is_empty();
            let rest = next.filter(|_| is_counted).map(|_| (expected.len() - limit) as u64);
            assert_eq!(found.more_count, rest, "{said}");
        }
    }
    pages_join(ledger, home, &plain);
    let nearly = RunSearch { columns: vec!["eval.slice.old man.f1".into()], ..RunSearch::default() };
    let error = search_runs(ledger, &LiveRecords::of(home), &nearly).unwrap_err();
    assert!(error.to_string().contains("did you mean `eval.slice.old men.f1`?"), "{error}");
    let some: Vec<RunId> = plain.runs.iter().take(100).map(|run| run.run_id).collect();
    let named = evaluated_names(ledger, &some).unwrap();
    let found = ["eval.f1", "eval.recall", "eval.slice.old men.f1", "eval.test_set.night.f1"];
    assert_eq!(named, found, "what evaluations of some runs report has the names that a search takes");
    assert!(evaluated_names(ledger, &[RunId::new(&SpreadIds)]).unwrap().is_empty());
    for wrong in ["\"val_loss\" <", "val_los < 1", "\"val_loss\" + 1", "\"name\" + 1 > 2 and"] {
        let search = RunSearch { condition: Some(wrong.into()), ..RunSearch::default() };
        assert_eq!(
            search_runs(ledger, &LiveRecords::of(home), &search).unwrap_err().kind(),
            ErrorKind::Usage,
            "{wrong}"
        );
    }
    let page = Page { after: Some(RunId::new(&SpreadIds)), limit: 5 };
    let unknown = search_runs(ledger, &LiveRecords::of(home), &RunSearch { page, ..RunSearch::default() });
    assert_eq!(unknown.unwrap_err().kind(), ErrorKind::NotFound);
}

/// Pages that each continue where the one before ended are the whole list.
fn pages_join(ledger: &Ledger, home: &Path, plain: &Plain) {
    let condition = Some("\"param.lr\" < 0.003");
    for order in ORDERS {
        let expected = plain.found(condition, order);
        let mut joined = Vec::new();
        let mut page = Page { after: None, limit: 251 };
        loop {
            let found = search(ledger, home, condition, order, page);
            assert!(found.runs.len() <= page.limit);
            joined.extend(shown(&found));
            page.after = found.next;
            if found.next.is_none() {
                break;
            }
        }
        assert_eq!(joined, plain.rows(&expected), "{order:?}");
    }
}

fn search(
    ledger: &Ledger,
    home: &Path,
    condition: Option<&str>,
    order: &[(&str, bool)],
    page: Page,
) -> FoundRuns {
    let search = RunSearch {
        condition: condition.map(String::from),
        order: order.iter().map(|(name, greatest_first)| ((*name).to_owned(), *greatest_first)).collect(),
        columns: NAMES.map(String::from).to_vec(),
        with_hidden: true,
        page,
    };
    search_runs(ledger, &LiveRecords::of(home), &search)
        .unwrap_or_else(|error| panic!("{condition:?}: {error}"))
}

/// Runs are found by their tags as they were amended, also while an attempt is not sealed, and hidden ones only where they
/// are wanted.
pub(super) fn amended_runs_are_found_by_what_they_are_now(ledger: &Ledger, home: &Path) {
    let sealed = stored_run(ledger, "amended and sealed");
    let attempt = AttemptRow {
        termination_reason: Some(TerminationReason::Completed),
        ..new_attempt(&sealed, 1, LaunchKind::Train)
    };
    ledger.insert_attempt(&attempt).unwrap();
    let tag = |name: &str| TagRow {
        attempt_id: attempt.attempt_id,
        run_id: sealed.run_id,
        name: name.into(),
        value: "old".into(),
    };
    let seal = AttemptSeal { tags: vec![tag("fate"), tag("gone")], ..AttemptSeal::of(attempt.clone()) };
    ledger.seal_attempt(&seal, at(5)).unwrap();
    let mut plan = Plan::for_command(&["train".to_owned()]);
    plan.run.tags.insert("fate".into(), "old".into());
    let given = RunRow {
        run_id: RunId::new(&SpreadIds),
        name: "amended and live".into(),
        config_json: json!(plan),
        ..sealed.clone()
    };
    ledger.insert_run(&given, &[]).unwrap();
    ledger.insert_attempt(&new_attempt(&given, 1, LaunchKind::Train)).unwrap();
    let amend = |run: &RunRow, field, tag: Option<&str>, new: Option<&str>| {
        let amendment = RunAmendmentRow {
            amendment_id: format!("amd_{}", RunId::new(&SpreadIds)),
            run_id: run.run_id,
            at: at(7),
            author: "ana".into(),
            field,
            tag: tag.map(String::from),
            old_text: None,
            new_text: new.map(String::from),
            why: None,
        };
        ledger.amend_run(run.run_id, &[amendment]).unwrap();
    };
    for run in [&sealed, &given] {
        amend(run, RunField::Tag, Some("fate"), Some("new"));
    }
    amend(&sealed, RunField::Tag, Some("gone"), None);
    let found = |condition: &str, with_hidden: bool| -> Vec<String> {
        let search = RunSearch {
            condition: Some(condition.into()),
            order: vec![("name".into(), false)],
            with_hidden,
            ..RunSearch::default()
        };
        let runs = search_runs(ledger, &LiveRecords::of(home), &search).unwrap().runs;
        runs.into_iter().map(|run| run.name).collect()
    };
    assert_eq!(found("tag.fate = 'new'", false), ["amended and live", "amended and sealed"]);
    assert!(found("tag.fate = 'old'", false).is_empty());
    let gone = RunSearch { condition: Some("tag.gone = 'old'".into()), ..RunSearch::default() };
    assert_eq!(
        search_runs(ledger, &LiveRecords::of(home), &gone).unwrap_err().kind(),
        ErrorKind::Usage,
        "no run has it"
    );
    amend(&sealed, RunField::Hidden, None, Some("true"));
    assert_eq!(found("tag.fate = 'new'", false), ["amended and live"]);
    assert_eq!(found("name like 'amended and%'", false), ["amended and live"]);
    assert_eq!(found("tag.fate = 'new'", true), ["amended and live", "amended and sealed"]);
    assert_eq!(found("hidden_at is not null and name like 'amended%'", true), ["amended and sealed"]);
}

/// Gives some of the filled runs evaluations: of a further test set, newer ones that lack a metric or its value, failed ones, and some
/// of known-bad models.
fn evaluate_runs(ledger: &Ledger) {
    let runs = ledger.list_runs(&RunFilter::default()).unwrap();
    let filled = runs.iter().filter(|run| run.name.starts_with("filled-"));
    let value = |number: usize, every: usize| Some((number % every) as f64 / every as f64);
    ledger
        .backend()
        .transaction(false, |backend| {
            for (number, run) in filled.enumerate() {
                let mut evaluate = |order: u32, row: EvaluationRow, numbers: &[(&str, &str, Option<f64>)]| {
                    evaluated(backend, run, format!("evl_{number}_{order}"), order, row, numbers)
                };
                let begun = EvaluationRow::begun(String::new(), run.run_id, "aa".repeat(32), at(1));
                let of = |origin: &str| EvaluationRow { origin: origin.into(), ..begun.clone() };
                let is = |every: usize| number.is_multiple_of(every);
                if is(3) {
                    let men = ("old men", "f1", value(number, 8));
                    evaluate(1, begun.clone(), &[("", "f1", value(number, 7)), men])?;
                }
                if is(6) {
                    let newer = value(number, 5).filter(|_| !is(4));
                    let numbers = [("", "f1", newer), ("", "recall", Some(0.5))];
                    evaluate(2, of("lm_eval"), if is(18) { &numbers[1..] } else { &numbers[..] })?;
                }
                if is(4) {
                    let night = EvaluationRow { test_set: Some("night".into()), ..begun.clone() };
                    evaluate(3, night, &[("", "f1", value(number, 9))])?;
                }
                if is(30) {
                    evaluate(4, of(GATE_TEST_ORIGIN), &[("", "f1", Some(100.0))])?;
                }
                if is(45) {
                    let failed = EvaluationRow { failure: Some("it crashed".into()), ..begun.clone() };
                    evaluate(5, failed, &[("", "f1", Some(50.0))])?;
                }
            }
            Ok(())
        })
        .unwrap();
}

/// Stores an evaluation that began `order` seconds after its run; one with a failure has failed.
fn evaluated(
    backend: &mut Backend,
    run: &RunRow,
    evaluation_id: String,
    order: u32,
    row: EvaluationRow,
    numbers: &[(&str, &str, Option<f64>)],
) -> Result<(), LedgerError> {
    let started_at = run.created_at.plus_seconds(f64::from(order));
    let begun = EvaluationRow { evaluation_id, started_at, ..row };
    backend.insert(&begun)?;
    for (slice, metric, value) in numbers {
        backend.insert(&EvaluationMetricRow {
            evaluation_id: begun.evaluation_id.clone(),
            slice: (*slice).into(),
            metric: (*metric).into(),
            value: *value,
            low: None,
            high: None,
            support: None,
            method: "none".into(),
            rows_used: None,
            rows_expected: None,
        })?;
    }
    let has_failed = begun.failure.is_some();
    let state = if has_failed { EvaluationState::Failed } else { EvaluationState::Completed };
    backend.update(&EvaluationRow { state, ended_at: Some(started_at), ..begun }, &["run_id"])?;
    Ok(())
}

/// A run with a sealed attempt and one that still records.
fn live_run(ledger: &Ledger, home: &Path) {
    let run = stored_run(ledger, "still recording");
    let mut sealed = new_attempt(&run, 1, LaunchKind::Train);
    sealed.termination_reason = Some(TerminationReason::HostOom);
    ledger.insert_attempt(&sealed).unwrap();
    let mut backend = ledger.backend();
    let metric_summaries = metrics_of(&sealed, 3, 2, &mut SplitMix64::new(1));
    seal(&mut backend, AttemptSeal { metric_summaries, ..AttemptSeal::of(sealed) }, at(1), 1.0).unwrap();
    drop(backend);
    let attempt = new_attempt(&run, 2, LaunchKind::Train);
    ledger.insert_attempt(&attempt).unwrap();
    let header = SegmentHeader {
        at: at(1),
        origin: Origin::Sdk,
        pid: 1,
        segment_sequence: 0,
        boot_id: String::new(),
        run_id: run.run_id.to_string(),
        attempt_id: attempt.attempt_id.to_string(),
        writer: "test".into(),
    };
    let (mut bytes, mut encoder) = (Vec::new(), Encoder::new());
    encoder.begin(&mut bytes, &header);
    for (step, value) in [(1, 0.9), (2, 0.2)] {
        encoder.metrics(&mut bytes, at(1), step, &[("val_loss", value), ("loss", value)]);
    }
    let folder = HomeLayout::new(home).attempt(attempt.attempt_id).records();
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("a.{SEGMENT_EXTENSION}")), bytes).unwrap();
}

/// Everything of a ledger in memory, and searches over it without any shortcut.
struct Plain {
    /// Newest first.
    runs: Vec<RunRow>,
    /// The values of each name, one for each run.
    values: HashMap<&'static str, Vec<Value>>,
}

impl Plain {
    fn of(ledger: &Ledger, home: &Path) -> Self {
        let runs = ledger.list_runs(&RunFilter::default()).unwrap();
        let mut metrics: Vec<MetricSummaryRow> = ledger.backend().select("ORDER BY attempt_id", &[]).unwrap();
        let mut live = ledger.unsealed_attempts().unwrap();
        live.retain(|attempt| attempt.kind == LaunchKind::Train);
        metrics.extend(LiveRecords::of(home).summaries(&live).unwrap());
        let parameters: Vec<ParameterRow> = ledger.backend().select("ORDER BY attempt_id", &[]).unwrap();
        let tags: Vec<TagRow> = ledger.backend().select("ORDER BY attempt_id", &[]).unwrap();
        let mut evaluations: Vec<EvaluationRow> =
            ledger.backend().select("ORDER BY started_at, evaluation_id", &[]).unwrap();
        evaluations.retain(|row| row.state == EvaluationState::Completed && !row.is_gate_test());
        let numbers: Vec<EvaluationMetricRow> =
            ledger.backend().select("ORDER BY evaluation_id", &[]).unwrap();
        let values_of = |name: &'static str| -> Vec<Value> {
            if let Some((_, number)) = NUMBERS.iter().find(|(known, _)| *known == name) {
                return newest_numbers(&runs, &evaluations, &numbers, *number);
            }
            if let Some(column) = RunRow::TABLE.columns.iter().position(|column| column.name == name) {
                return runs.iter().map(|run| run.values().swap_remove(column)).collect();
            }
            match name.split_once('.') {
                Some(("param", rest)) => {
                    let named = parameters.iter().filter(|row| row.name == rest);
                    last_texts(&runs, named.map(|row| (row.run_id, row.value.as_str())))
                }
                Some(("tag", rest)) => {
                    let named = tags.iter().filter(|row| row.name == rest);
                    last_texts(&runs, named.map(|row| (row.run_id, row.value.as_str())))
                }
                Some((pick, rest)) => metric(&runs, &metrics, rest, pick),
                None => metric(&runs, &metrics, name, "last"),
            }
        };
        let values = NAMES.into_iter().map(|name| (name, values_of(name))).collect();
        Self { runs, values }
    }

    /// The places of the runs that meet a condition, in order.
    fn found(&self, condition: Option<&str>, order: &[(&str, bool)]) -> Vec<usize> {
        let mut found: Vec<usize> = (0..self.runs.len()).collect();
        if let Some(condition) = condition {
            let columns = NAMES.map(|name| (name, array(&self.values[name]), true));
            let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
            let holds = RowPredicate::new(condition).holds(&batch).unwrap();
            found.retain(|run| holds.is_valid(*run) && holds.value(*run));
        }
        found.sort_by(|left, right| {
            let by_name = |(name, greatest_first): &(&str, bool)| {
                let (left, right) = (&self.values[*name][*left], &self.values[*name][*right]);
                let order = match (left, right) {
                    (Value::Null, _) | (_, Value::Null) => {
                        return (*left == Value::Null).cmp(&(*right == Value::Null));
                    }
                    (Value::Real(left), Value::Real(right)) => (left + 0.0).total_cmp(&(right + 0.0)),
                    (Value::Integer(left), Value::Integer(right)) => left.cmp(right),
                    (Value::Text(left), Value::Text(right)) => left.cmp(right),
                    other => panic!("{other:?}"),
                };
                if *greatest_first { order.reverse() } else { order }
            };
            order.iter().map(by_name).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        });
        found
    }

    /// Ids and values of runs, as lines.
    fn rows(&self, places: &[usize]) -> Vec<String> {
        let value = |name: &str, place: usize| match &self.values[name][place] {
            Value::Text(text) => json!(text),
            Value::Integer(number) => json!(number),
            Value::Real(number) => json!(number),
            _ => json!(null),
        };
        let line = |place: &usize| {
            let values = NAMES.map(|name| value(name, *place));
            format!("{} {}", self.runs[*place].run_id, json!(values))
        };
        places.iter().map(line).collect()
    }
}

/// Ids and values of runs that were found, as lines.
fn shown(found: &FoundRuns) -> Vec<String> {
    assert_eq!(found.names, NAMES);
    let lines = found.runs.iter().zip(&found.values);
    lines.map(|(run, values)| format!("{} {}", run.run_id, json!(values))).collect()
}

fn metric(runs: &[RunRow], metrics: &[MetricSummaryRow], name: &str, pick: &str) -> Vec<Value> {
    let mut values: HashMap<RunId, f64> = HashMap::new();
    for row in metrics.iter().filter(|row| row.name == name) {
        let value = match pick {
            "first" => row.first_value,
            "min" => row.min_value,
            "max" => row.max_value,
            _ => row.last_value,
        };
        let Some(value) = value else { continue };
        let held = values.entry(row.run_id).or_insert(value);
        let replaces = match pick {
            "first" => false,
            "min" => value < *held,
            "max" => value > *held,
            _ => true,
        };
        if replaces {
            *held = value;
        }
    }
    runs.iter().map(|run| values.get(&run.run_id).map_or(Value::Null, |value| Value::Real(*value))).collect()
}

/// The value of a number in the newest evaluation of each run that has it.
fn newest_numbers(
    runs: &[RunRow],
    evaluations: &[EvaluationRow],
    numbers: &[EvaluationMetricRow],
    (test_set, slice, metric): (Option<&str>, &str, &str),
) -> Vec<Value> {
    let of_number = numbers.iter().filter(|row| row.slice == slice && row.metric == metric);
    let values: HashMap<&str, Option<f64>> =
        of_number.map(|row| (row.evaluation_id.as_str(), row.value)).collect();
    let mut newest: HashMap<RunId, Option<f64>> = HashMap::new();
    for row in evaluations.iter().filter(|row| row.test_set.as_deref() == test_set) {
        if let Some(value) = values.get(row.evaluation_id.as_str()) {
            newest.insert(row.run_id, *value);
        }
    }
    let value = |run: &RunRow| newest.get(&run.run_id).copied().flatten();
    runs.iter().map(|run| value(run).map_or(Value::Null, Value::Real)).collect()
}

/// The last text for each run; numbers where all of them are.
fn last_texts<'t>(runs: &[RunRow], texts: impl Iterator<Item = (RunId, &'t str)>) -> Vec<Value> {
    let last: HashMap<RunId, &str> = texts.collect();
    let last: Vec<Option<&str>> = runs.iter().map(|run| last.get(&run.run_id).copied()).collect();
    let number = |text: &Option<&str>| match text {
        Some(text) => text.parse().ok().map(Value::Real),
        None => Some(Value::Null),
    };
    let numbers: Option<Vec<Value>> = last.iter().map(number).collect();
    numbers.unwrap_or_else(|| last.iter().map(|text| text.map_or(Value::Null, Value::from)).collect())
}

/// Values of one name as a condition sees them.
fn array(values: &[Value]) -> ArrayRef {
    if values.iter().any(|value| matches!(value, Value::Text(_))) {
        let texts = values.iter().map(|value| match value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        });
        return Arc::new(texts.collect::<StringArray>());
    }
    if values.iter().any(|value| matches!(value, Value::Integer(_))) {
        let integers = values.iter().map(|value| match value {
            Value::Integer(number) => Some(*number),
            _ => None,
        });
        return Arc::new(integers.collect::<Int64Array>());
    }
    let reals = values.iter().map(|value| match value {
        Value::Real(number) => Some(*number),
        _ => None,
    });
    Arc::new(reals.collect::<Float64Array>())
}
