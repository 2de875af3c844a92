//! Whether the evaluation that follows the training can compute what the run file wants of it: its columns, its positive class, its
//! slices and groups, the numbers that its gates name, and what it is compared with. Each fails only after the training otherwise.

use std::collections::{BTreeMap, BTreeSet};

use trackway_core::checks::{CheckResult, Finding, NoRows, Severity};
use trackway_core::text;
use trackway_data::model::Frame;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_evaluate::SliceLimits;
use trackway_evaluate::debug::PerturbationKind;
use trackway_evaluate::latency::{why_unmeasured, without_interval};
use trackway_evaluate::metrics::{FAIRNESS_NAMES, METRIC_NAMES};
use trackway_formats::gate::{BLIND_SPOT, COSTS, FAIRNESS, LATENCIES, PROBE, SIZES, SLICE};
use trackway_formats::runfile::{DataRole, EvaluateSection};
use trackway_ledger::{EvaluationRow, EvaluationState, RunFilter};
use trackway_rules::gate::{KnownNumbers, unknown_numbers};
use trackway_tables::DataSpec;
use trackway_tables::read::Source;

use super::data::Readings;
use super::{Looker, Work};
use crate::data::table::data_error;
use crate::evaluation::baseline::{check_baseline, limits};
use crate::evaluation::evaluate::{EvaluationRequest, ExpectedNumbers, asks_for_numbers, expected};
use crate::evaluation::gates::number_names;
use crate::evaluation::score::{self, BATCH_ROWS};
use crate::training::preflight::facts::PlanFacts;
use crate::training::start::weights_of;

const ROWS: &str = "evaluate.rows";
const GATES: &str = "evaluate.gates";
const BASELINE: &str = "evaluate.baseline";
/// What is answered here.
pub const CHECKS: [&str; 3] = [ROWS, GATES, BASELINE];
/// Runs of the name that are looked at for an earlier evaluation, newest first.
const RUNS_MAX: usize = 20;
const ALL_SPOTS: &str = "all.error";

pub fn has_evaluation(facts: &PlanFacts<'_>) -> Result<(), String> {
    facts.plan.evaluate.as_ref().map(|_| ()).ok_or_else(|| "the run file has no `[evaluate]`".into())
}

/// Tries the evaluation of each test set on its labels, and compares names with what it computes.
pub fn evaluation(work: &Work<'_>, looker: &Looker<'_>) -> Result<Vec<CheckResult>, AppError> {
    let Some(asked) = EvaluationRequest::of(work.job) else {
        return Ok(CHECKS
            .iter()
            .map(|check| CheckResult::not_applicable(check, "no `[evaluate]`"))
            .collect());
    };
    // An evaluation that is started by hand can still be corrected.
    let severity = if asked.section.after { Severity::Block } else { Severity::Warn };
    let mut readings = Readings::new(work, looker, 0);
    let (mut rows, mut gates, mut baselines) = (Answers::default(), Answers::default(), Answers::default());
    for asked in asked.all_test_sets() {
        let before = earlier(work, &asked)?;
        let trial = trial(work, &asked, &mut readings);
        rows.take(&asked, of_rows(&trial, &asked.section, &before, severity));
        gates.take(&asked, of_gates(work, &asked, &trial, &before, severity));
        baselines.take(&asked, of_baseline(work, &asked, severity)?);
    }
    Ok(vec![rows.result(ROWS), gates.result(GATES), baselines.result(BASELINE)])
}

/// The answers of one check for all test sets.
#[derive(Default)]
struct Answers {
    findings: Vec<Finding>,
    looked_at: Vec<String>,
    why_not: Option<String>,
}

impl Answers {
    /// What was found and what was looked at; an error is why nothing could be.
    fn take(&mut self, asked: &EvaluationRequest, answer: Result<(Vec<Finding>, String), String>) {
        let of_set = |text: String| match &asked.test_set {
            Some(name) => format!("test set `{name}`: {text}"),
            None => text,
        };
        match answer {
            Ok((findings, looked_at)) => {
                let named =
                    |finding: Finding| Finding { message: of_set(finding.message.clone()), ..finding };
                self.findings.extend(findings.into_iter().map(named));
                self.looked_at.push(of_set(looked_at));
            }
            Err(why) => {
                self.why_not.get_or_insert(of_set(why));
            }
        }
    }

    fn result(self, name: &str) -> CheckResult {
        match self.why_not {
            Some(why) if self.looked_at.is_empty() => CheckResult::not_applicable(name, why),
            _ => CheckResult::about(name, NoRows::Settings, self.findings).because(self.looked_at.join("; ")),
        }
    }
}

/// A trial of the evaluation with labels in place of answers.
enum Trial {
    /// The rows are those that will be evaluated.
    OfRows(Result<ExpectedNumbers, AppError>),
    /// The evaluator writes its own rows; these are the labels that the run file names, from this path.
    OfLabels(Result<ExpectedNumbers, AppError>, String),
    /// There are no labels to try it on, and why.
    None(String),
}

fn trial(work: &Work<'_>, asked: &EvaluationRequest, readings: &mut Readings<'_>) -> Trial {
    let (section, base) = (&asked.section, &work.job.base);
    let context = &work.context.read_context;
    let seed = section.seed.or(work.job.plan.run.seed).unwrap_or(0);
    let mut read = |source: Source| frame_of(source, readings);
    if let Some(request) = asked.score_request(context) {
        let label = section.label.clone().unwrap_or_default();
        let frame = request.table.open(base, "rows").and_then(&mut read);
        return Trial::OfRows(frame.and_then(|frame| expected(frame, section, &label, seed)));
    }
    if !asks_for_numbers(section) {
        return Trial::None(
            "`[evaluate]` names neither columns, classes nor slices of the evaluator's rows".into(),
        );
    }
    let Some((spec, label)) = labelled(work, asked) else {
        return Trial::None(
            "the evaluator writes its own rows, and no table of the run file has their labels".into(),
        );
    };
    let path = spec.path.clone();
    match Source::open(base, "labels", &spec, context).map_err(data_error).and_then(&mut read) {
        Ok(frame) => Trial::OfLabels(expected(frame, section, &label, seed), path),
        Err(error) => Trial::None(format!("the labels in `{path}` cannot be read: {error}")),
    }
}

fn frame_of(mut source: Source, readings: &mut Readings<'_>) -> Result<Frame, AppError> {
    let everything = (usize::MAX, 0);
    let read = readings.next(source.size_bytes(), |observer| {
        Frame::sample(&mut source, None, everything, &observer.watch())
    });
    read.map(|(frame, _)| frame).map_err(data_error)
}

/// A table with labels that the evaluator is likely to read: a test set, else a validation set of the run file, with its label.
fn labelled(work: &Work<'_>, asked: &EvaluationRequest) -> Option<(DataSpec, String)> {
    let has_tasks = |path: &str| asked.section.tasks().is_none_or(|tasks| tasks == path);
    let of_role =
        |role| work.sets.tables().find(|(set, _)| set.role == Some(role) && has_tasks(&set.spec.path));
    let (set, source) = of_role(DataRole::Test).or_else(|| of_role(DataRole::Validation))?;
    let training = work.sets.all().iter().find(|set| set.role == Some(DataRole::Train));
    let of_sets = set.spec.label.as_ref().or_else(|| training?.spec.label.as_ref());
    let label =
        asked.section.label.iter().chain(of_sets).find(|name| source.index_of(name, "label").is_ok())?;
    Some((set.spec.clone(), label.clone()))
}

/// What the newest evaluation of a run of this name on the same test set computed; empty: there is none.
#[derive(Default)]
struct EarlierNumbers {
    numbers: BTreeSet<String>,
    positive: Option<String>,
}

fn earlier(work: &Work<'_>, asked: &EvaluationRequest) -> Result<EarlierNumbers, AppError> {
    let filter = RunFilter {
        name: Some(work.job.plan.run.name.clone()),
        limit: Some(RUNS_MAX),
        ..RunFilter::default()
    };
    let context = work.context;
    for run in context.ledger_read(|ledger| ledger.list_runs(&filter))? {
        let rows = context.ledger_read(|ledger| ledger.evaluations_of_run(run.run_id))?;
        let fits = |row: &&EvaluationRow| {
            row.state == EvaluationState::Completed && row.test_set == asked.test_set && !row.is_gate_test()
        };
        if let Some(row) = rows.iter().rev().find(fits) {
            let positive = row.spec("positive").and_then(|positive| positive.as_str());
            return Ok(EarlierNumbers { numbers: number_names(row)?, positive: positive.map(str::to_owned) });
        }
    }
    Ok(EarlierNumbers::default())
}

fn of_rows(
    trial: &Trial,
    section: &EvaluateSection,
    before: &EarlierNumbers,
    severity: Severity,
) -> Result<(Vec<Finding>, String), String> {
    let (tried, path, severity) = match trial {
        Trial::OfRows(tried) => (tried, section.rows.clone().unwrap_or_default(), severity),
        // An evaluator can write columns and classes that the labels lack, and did so if the last evaluation had them.
        Trial::OfLabels(Err(_), path) if was_computed(section, before) => {
            return Ok((Vec::new(), format!("the last evaluation computed what `{path}` does not show")));
        }
        Trial::OfLabels(tried, path) => (tried, path.clone(), Severity::Warn),
        Trial::None(why) => return Err(why.clone()),
    };
    match tried {
        Ok(expected) => {
            let looked_at = format!("tried on the labels of {} rows of `{path}`", expected.rows);
            Ok((small_slices(section, expected), looked_at))
        }
        Err(error) => {
            let finding = Finding::new(ROWS, severity, format!("`{path}`: {error}"));
            let action = match trial {
                Trial::OfRows(_) => "correct the name in `[evaluate]`, or the data".to_owned(),
                _ => "correct the name in `[evaluate]`, unless the evaluator itself writes such rows"
                    .to_owned(),
            };
            let hint = error.hints.first().cloned().unwrap_or(action);
            Ok((vec![finding.about("evaluate").action(hint)], format!("tried on the labels of `{path}`")))
        }
    }
}

/// Whether an earlier evaluation had the same positive class, and numbers of every slice and of every column of groups.
fn was_computed(section: &EvaluateSection, before: &EarlierNumbers) -> bool {
    let mut slices = section.slices.keys().map(|name| format!("{SLICE}{name}."));
    let mut columns = section.fairness.iter().map(|column| format!("{FAIRNESS}{column}."));
    let has = |start: String| before.numbers.iter().any(|name| name.starts_with(&start));
    !before.numbers.is_empty() && before.positive == section.positive && slices.all(has) && columns.all(has)
}

/// A slice of too few rows decides nothing, whatever the model.
fn small_slices(section: &EvaluateSection, expected: &ExpectedNumbers) -> Vec<Finding> {
    let usual = limits(section.support_min, section.width_max, SliceLimits::default());
    let small = |(name, rows): &(String, u64)| {
        let least = section.slices.get(name).and_then(|slice| slice.support_min).unwrap_or(usual.support_min);
        (*rows < least).then(|| {
            let rows = text::counted(*rows, "row");
            let message = format!("slice `{name}` has {rows}, fewer than {least}: it decides nothing");
            let action = "correct its condition, collect such rows, or lower `support_min`";
            Finding::new(ROWS, Severity::Warn, message).about(name).action(action)
        })
    };
    expected.slices.iter().filter_map(small).collect()
}

fn of_gates(
    work: &Work<'_>,
    asked: &EvaluationRequest,
    trial: &Trial,
    before: &EarlierNumbers,
    severity: Severity,
) -> Result<(Vec<Finding>, String), String> {
    let section = &asked.section;
    if section.gates.is_empty() {
        return Err("`evaluate.gates` is empty".into());
    }
    let computed = match trial {
        Trial::OfRows(Ok(expected)) | Trial::OfLabels(Ok(expected), _) => Some(expected),
        // What is wrong with the rows is reported already.
        Trial::OfRows(Err(_)) => return Err("the rows cannot be evaluated (see `evaluate.rows`)".into()),
        Trial::OfLabels(Err(_), _) | Trial::None(_) => None,
    };
    let is_complete = matches!(trial, Trial::OfRows(_));
    // What an earlier evaluation of the built-in evaluator measured may have been left out since.
    let mut names = if is_complete { BTreeSet::new() } else { before.numbers.clone() };
    names.extend(computed.iter().flat_map(|expected| expected.numbers.iter().cloned()));
    names.extend(SIZES.into_iter().chain(COSTS).map(str::to_owned));
    if section.blind_spots != Some(false) {
        names.insert(format!("{BLIND_SPOT}{ALL_SPOTS}"));
    }
    names.extend(if is_complete { of_scorer(work, asked) } else { of_any_evaluator(section) });
    let scored = computed.filter(|_| is_complete);
    let unmeasured = scored.map(|expected| unmeasured_latencies(expected.rows_seen)).unwrap_or_default();
    names.retain(|name| !unmeasured.contains_key(name));
    let without_interval = scored.map(|expected| latencies_without_interval(expected.rows));
    let without_interval = without_interval.filter(|_| unmeasured.is_empty()).unwrap_or_default();
    let has_baseline = section.baseline.is_some();
    let known = KnownNumbers { names, is_complete, has_baseline, without_interval, unmeasured };
    let looked_at = text::counted(section.gates.len() as u64, "gate");
    Ok((unknown_numbers(GATES, &section.gates, &known, severity), looked_at))
}

/// Why a latency over so few rows has no interval.
fn latencies_without_interval(rows: u64) -> BTreeMap<String, String> {
    let batch_rows = BATCH_ROWS as u64;
    let why = format!("since {} are too few batches of {batch_rows}", text::counted(rows, "row"));
    without_interval(rows, batch_rows).into_iter().map(|name| (name.to_owned(), why.clone())).collect()
}

/// Why no latency is measured over so few rows.
fn unmeasured_latencies(rows: u64) -> BTreeMap<String, String> {
    let why = why_unmeasured(rows, BATCH_ROWS as u64);
    why.map(|why| LATENCIES.map(|name| (name.to_owned(), why.clone())).into()).unwrap_or_default()
}

/// Latency, and the probes of each feature.
fn of_scorer(work: &Work<'_>, asked: &EvaluationRequest) -> Vec<String> {
    let mut names: Vec<String> = LATENCIES.map(str::to_owned).into();
    let request = asked.score_request(&work.context.read_context).filter(|it| it.probe_rows != Some(0));
    let features =
        request.and_then(|request| score::check(&work.job.base, &request).ok()).unwrap_or_default();
    for feature in features {
        names.push(format!("{PROBE}{feature}.importance"));
        for kind in PerturbationKind::ALL {
            names.extend(["flipped", "increase"].map(|number| format!("{PROBE}{feature}.{kind}.{number}")));
        }
    }
    names
}

/// Every metric that rows can give: of all rows, of the slices, of groups.
fn of_any_evaluator(section: &EvaluateSection) -> Vec<String> {
    let of_slice = |name: &String| METRIC_NAMES.map(|metric| format!("{SLICE}{name}.{metric}")).into_iter();
    let of_column =
        |column: &String| FAIRNESS_NAMES.map(|name| format!("{FAIRNESS}{column}.{name}")).into_iter();
    let of_groups = FAIRNESS_NAMES.map(|name| format!("{FAIRNESS}{name}")).into_iter();
    let of_groups = of_groups.filter(|_| !section.fairness.is_empty());
    METRIC_NAMES
        .map(str::to_owned)
        .into_iter()
        .chain(section.slices.keys().flat_map(of_slice))
        .chain(section.fairness.iter().flat_map(of_column))
        .chain(of_groups)
        .collect()
}

fn of_baseline(
    work: &Work<'_>,
    asked: &EvaluationRequest,
    severity: Severity,
) -> Result<Result<(Vec<Finding>, String), String>, AppError> {
    let Some(named) = &asked.section.baseline else {
        return Ok(Err("`evaluate.baseline` is not set".into()));
    };
    Ok(Ok(match baseline_of(work, asked, named) {
        Ok(Some(id)) => (Vec::new(), format!("`{named}` is {id}")),
        Ok(None) => (Vec::new(), format!("`{named}`: what there is when the evaluation begins")),
        Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Usage) => {
            (vec![no_baseline(error, severity)], format!("`{named}`"))
        }
        Err(error) => return Err(error),
    }))
}

/// A baseline that cannot be compared with. Not every error has a hint of what to do.
fn no_baseline(error: AppError, severity: Severity) -> Finding {
    let action = Some(error.hints.join("; ")).filter(|hints| !hints.is_empty());
    let finding = Finding::new(BASELINE, severity, error.to_string()).about("evaluate.baseline");
    Finding { action, ..finding }
}

/// The evaluation that the baseline means; none where that is known only later.
fn baseline_of(work: &Work<'_>, asked: &EvaluationRequest, named: &str) -> Result<Option<String>, AppError> {
    let tasks = asked.task_set(work.context)?;
    let start_from = work.job.plan.run.start_from.as_deref();
    let parent = start_from.map(|named| weights_of(work.context, named)).transpose()?;
    let parent = parent.as_ref().map(|(run_id, chosen)| (*run_id, chosen));
    check_baseline(work.context, named, parent, tasks.as_ref().map(|set| set.sha256.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that no latency of fewer than two full batches is promised.
    #[test]
    fn a_latency_needs_two_batches() {
        assert_eq!(unmeasured_latencies(511).len(), 3);
        assert!(unmeasured_latencies(512).is_empty());
    }

    /// Proves that a finding about the baseline has the hints of its error as an action, and no empty action without a hint.
    #[test]
    fn an_action_is_never_empty() {
        let error = || AppError::new(ErrorKind::NotFound, "no such evaluation");
        assert_eq!(no_baseline(error(), Severity::Block).action, None);
        let action = no_baseline(error().hint("list them").hint("name one"), Severity::Block).action;
        assert_eq!(action.as_deref(), Some("list them; name one"));
    }
}
