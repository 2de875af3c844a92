//! Runs side by side: parameters, settings, data, environment, metrics and curves. Field names are the JSON contract of
//! `trackway compare`.

use std::collections::{BTreeMap, BTreeSet};

use trackway_api::runs::compare::{
    ComparedMetric, ComparedNumber, ComparedRun, ComparedValue, CurveSummary, RunComparison,
};
use trackway_core::text::first_quoted;
use trackway_core::{RunId, Rung, with_fields_of};
use trackway_engine::Context;
use trackway_engine::capture::leaves;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_flows::query::{evaluated_names, search_runs};
use trackway_formats::record::is_internal_metric;
use trackway_ledger::scan::nearest;
use trackway_ledger::{AttemptRow, MetricSummaryRow, RunDataRow, RunRow};
use trackway_sql::{FoundRuns, Page, RunSearch};

use crate::curves::{RunAtRung, curves, figures};
use crate::explain::running_seconds;
use crate::inputs::{Inputs, compared as difference};
use crate::parameters::parameters_of;

/// At most so many runs are compared at once.
pub const RUNS_MAX: usize = 24;
/// So many of the names that there are are named where one is wrong.
const NAMED_MAX: usize = 20;
/// Names of numbers of evaluations begin so.
const EVALUATED: &str = "eval.";

fn wrong_count(runs: &[RunRow]) -> AppError {
    let message = match runs {
        [one] => format!("cannot compare run `{}` with itself; name 2 to {RUNS_MAX} runs", one.name),
        several => format!("cannot compare {} runs; name 2 to {RUNS_MAX}", several.len()),
    };
    AppError::new(ErrorKind::Usage, message)
        .hint("`trackway runs` lists them; use ids if two runs have the same name")
}

/// Compares runs: `only` these metrics and numbers of evaluations (`eval.accuracy`), or all metrics if it is empty.
///
/// # Errors
/// [`ErrorKind::NotFound`] when a run does not exist; [`ErrorKind::Usage`] for less than two or more than
/// [`RUNS_MAX`] runs, and for a name that none of them has.
pub fn compare(context: &Context, named: &[RunId], only: &[String]) -> Result<RunComparison, AppError> {
    let mut runs: Vec<RunRow> = Vec::new();
    for run_id in named {
        let run = context.run_by_id(*run_id)?;
        if !runs.iter().any(|known| known.run_id == run.run_id) {
            runs.push(run);
        }
    }
    if runs.len() < 2 || runs.len() > RUNS_MAX {
        return Err(wrong_count(&runs));
    }
    let mut attempts = Vec::new();
    let mut parameters = Vec::new();
    let mut data = Vec::new();
    for run in &runs {
        let last = context.attempts_of(run.run_id)?.pop();
        parameters.push(match &last {
            Some(last) => parameters_of(context, last)?.into_iter().map(|it| (it.name, it.value)).collect(),
            None => BTreeMap::new(),
        });
        let read = context.sets_read(run, last.as_ref())?;
        let doubt = read.doubt.map(|doubt| format!(" ({doubt})")).unwrap_or_default();
        let value = |set: RunDataRow| (set.name, format!("{} {}{doubt}", set.data_sha256, set.path));
        data.push(read.sets.into_iter().map(|(set, _)| value(set)).collect());
        attempts.push(last);
    }
    let inputs: Vec<Inputs> = runs
        .iter()
        .zip(&attempts)
        .map(|(run, last)| Inputs::of(context, run, last.as_ref()))
        .collect::<Result<_, AppError>>()?;
    let first = (runs[0].run_id.to_string(), runs[0].name.clone());
    let changes =
        inputs[1..].iter().map(|other| difference(context, &inputs[0], other, first.clone())).collect();
    let configs: Vec<BTreeMap<String, String>> = runs.iter().map(|run| leaves(&run.config_json)).collect();
    let environments: Vec<BTreeMap<String, String>> = attempts.iter().map(environment_of).collect();
    let lines: Vec<RunAtRung> =
        runs.iter().zip(&attempts).map(|(run, last)| at_last_rung(run, last.as_ref())).collect();
    let metrics = metrics_of(context, &lines, &attempts, only)?;
    let evaluations = evaluations_of(context, &lines, only)?;
    if let Some(name) = missing(only, &metrics, &evaluations) {
        return Err(unknown(context, &lines, &attempts, name)?);
    }
    let curves = curves(context, &lines, &metrics)?;
    let mut config = rows(&configs);
    // Given parameters are among the parameters.
    config.retain(|row| row.differs && !row.name.starts_with("run.parameters."));
    Ok(RunComparison {
        runs: runs
            .into_iter()
            .zip(lines)
            .zip(&attempts)
            .map(|((run, line), last)| {
                let running = last.as_ref().and_then(|last| running_seconds(context, last));
                compared(run, line.rung, running)
            })
            .collect(),
        changes,
        parameters: rows(&parameters),
        config,
        data: rows(&data),
        environment: rows(&environments),
        metrics,
        evaluations,
        curves,
    })
}

/// The figures of each run, by its points or, where these were deleted, by what its last attempt left.
fn metrics_of(
    context: &Context,
    lines: &[RunAtRung],
    attempts: &[Option<AttemptRow>],
    only: &[String],
) -> Result<Vec<ComparedMetric>, AppError> {
    let mut metrics = figures(context, lines, only)?;
    for (run, last) in attempts.iter().enumerate() {
        if let (Some(last), false) = (last, has_points(&metrics, run)) {
            let kept = context.ledger_read(|ledger| ledger.metric_summaries_of(last.attempt_id))?;
            add_summaries(&mut metrics, (run, lines.len()), &kept, only);
        }
    }
    Ok(metrics)
}

/// The numbers of evaluations among the names, as a search for runs finds them.
fn evaluations_of(
    context: &Context,
    lines: &[RunAtRung],
    only: &[String],
) -> Result<Vec<ComparedNumber>, AppError> {
    if !only.iter().any(|name| name.starts_with(EVALUATED)) {
        return Ok(Vec::new());
    }
    let ids: Vec<RunId> = lines.iter().map(|line| line.run_id).collect();
    let known = evaluated_names(context, &ids)?;
    let columns: Vec<String> = only.iter().filter(|name| known.contains(name)).cloned().collect();
    if columns.is_empty() {
        return Ok(Vec::new());
    }
    let quoted: Vec<String> = ids.iter().map(|id| format!("'{id}'")).collect();
    let search = RunSearch {
        condition: Some(format!("run_id in ({})", quoted.join(", "))),
        columns: columns.clone(),
        with_hidden: true,
        page: Page { after: None, limit: ids.len() },
        ..RunSearch::default()
    };
    Ok(numbers(&search_runs(context, &search)?, &columns, &ids))
}

/// What was found of each name, each once, in the order of the runs.
fn numbers(found: &FoundRuns, names: &[String], ids: &[RunId]) -> Vec<ComparedNumber> {
    let value = |name: &str, id: &RunId| {
        let column = found.names.iter().position(|known| known == name)?;
        let row = found.runs.iter().position(|run| run.run_id == *id)?;
        found.values[row][column].as_f64()
    };
    let mut numbers: Vec<ComparedNumber> = Vec::new();
    for name in names {
        if !numbers.iter().any(|known| known.name == *name) {
            let values = ids.iter().map(|id| value(name, id)).collect();
            numbers.push(ComparedNumber { name: name.clone(), values });
        }
    }
    numbers
}

/// The first of the names that none of the runs has.
fn missing<'n>(
    only: &'n [String],
    metrics: &[ComparedMetric],
    evaluations: &[ComparedNumber],
) -> Option<&'n str> {
    let is_there = |name: &str| {
        metrics.iter().any(|row| row.name == name) || evaluations.iter().any(|row| row.name == name)
    };
    only.iter().map(String::as_str).find(|name| !is_there(name))
}

/// The error for a name that none of the runs has, with those that they have.
fn unknown(
    context: &Context,
    lines: &[RunAtRung],
    attempts: &[Option<AttemptRow>],
    name: &str,
) -> Result<AppError, AppError> {
    let ids: Vec<RunId> = lines.iter().map(|line| line.run_id).collect();
    let evaluated = evaluated_names(context, &ids)?;
    let metrics: Vec<String> =
        metrics_of(context, lines, attempts, &[])?.into_iter().map(|row| row.name).collect();
    let message = format!("none of these runs has `{name}`");
    Ok(AppError::new(ErrorKind::Usage, message).hint(known_names(name, &metrics, &evaluated)))
}

/// The names that there are instead of a wrong one, those of its kind first.
fn known_names(name: &str, metrics: &[String], evaluated: &[String]) -> String {
    if name.starts_with(EVALUATED) && evaluated.is_empty() {
        return "no evaluation of them is complete; `trackway eval run RUN` makes one".into();
    }
    let (first, second) =
        if name.starts_with(EVALUATED) { (evaluated, metrics) } else { (metrics, evaluated) };
    let all: Vec<&String> = first.iter().chain(second).collect();
    let near = nearest(name, all.iter().map(|known| known.as_str()));
    let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    match all.is_empty() {
        true => "they have no metrics".into(),
        false => format!("{near}They have {}", first_quoted(&all, NAMED_MAX)),
    }
}

fn has_points(metrics: &[ComparedMetric], run: usize) -> bool {
    metrics.iter().any(|row| row.values[run].is_some())
}

/// Of a run whose points were deleted (`trackway gc`) the figures that its last attempt left are compared.
fn add_summaries(
    metrics: &mut Vec<ComparedMetric>,
    (run, run_count): (usize, usize),
    kept: &[MetricSummaryRow],
    only: &[String],
) {
    let is_wanted = |name: &String| match only {
        [] => !is_internal_metric(name),
        only => only.contains(name),
    };
    for summary in kept.iter().filter(|summary| is_wanted(&summary.name)) {
        let place = metrics.iter().position(|row| row.name == summary.name).unwrap_or_else(|| {
            metrics.push(ComparedMetric { name: summary.name.clone(), values: vec![None; run_count] });
            metrics.len() - 1
        });
        metrics[place].values[run] = Some(CurveSummary {
            point_count: summary.point_count,
            last_step: summary.last_step,
            last: summary.last_value,
            min: summary.min_value,
            min_step: None,
            max: summary.max_value,
            max_step: None,
        });
    }
    metrics.sort_by_key(|row| std::cmp::Reverse(row.values.iter().flatten().count()));
}

/// A run that climbs a ladder is compared where it is on it.
fn at_last_rung(run: &RunRow, last: Option<&AttemptRow>) -> RunAtRung {
    let rung = last.map_or_else(|| Rung::FULL.to_string(), |last| last.rung.clone());
    RunAtRung { run_id: run.run_id, rung }
}

fn compared(run: RunRow, rung: String, running_seconds: Option<f64>) -> ComparedRun {
    with_fields_of!(
        ComparedRun,
        run,
        [
            run_id, name, state, termination_reason, attempt_count, created_at, wall_seconds, gpu_seconds,
            cost_usd,
        ],
        rung,
        running_seconds,
    )
}

fn environment_of(attempt: &Option<AttemptRow>) -> BTreeMap<String, String> {
    let Some(attempt) = attempt else { return BTreeMap::new() };
    let facts = [
        ("command", Some(attempt.command.join(" "))),
        ("container_digest", attempt.container_digest.clone()),
        ("environment_lock_sha256", attempt.environment_lock_sha256.clone()),
        ("git_branch", attempt.git_branch.clone()),
        ("git_commit", attempt.git_commit.clone()),
        ("git_diff_blake3", attempt.git_diff_blake3.clone()),
        ("script_blake3", attempt.script_blake3.clone()),
        ("gpu_count", attempt.gpu_count.map(|count| count.to_string())),
        ("gpu_names", attempt.gpu_names.clone()),
        ("hosts", attempt.hosts.clone()),
        ("launcher", Some(attempt.launcher.clone())),
        ("seed", attempt.seed.map(|seed| seed.to_string())),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// One row for everything that any run has, by name.
fn rows(of_runs: &[BTreeMap<String, String>]) -> Vec<ComparedValue> {
    let names: BTreeSet<&String> = of_runs.iter().flat_map(BTreeMap::keys).collect();
    let row = |name: &String| {
        let values: Vec<Option<String>> = of_runs.iter().map(|run| run.get(name).cloned()).collect();
        let differs = values.iter().any(|value| *value != values[0]);
        ComparedValue { name: name.clone(), differs, values }
    };
    names.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use trackway_core::Timestamp;
    use trackway_core::name::{Name, NameKind};

    use super::*;

    /// Proves that a run whose points are gone is compared by its summaries, beside one that has points, and only in what was named.
    #[test]
    fn summaries_stay_when_points_are_gone() {
        let summary = |name: &str| MetricSummaryRow {
            attempt_id: "att_00000000000000000000000001".parse().unwrap(),
            run_id: "run_00000000000000000000000001".parse().unwrap(),
            name: name.into(),
            point_count: 3,
            non_finite_count: 0,
            first_step: 1,
            last_step: 3,
            first_value: Some(0.9),
            last_value: Some(0.02),
            min_value: Some(0.01),
            max_value: Some(0.9),
            mean_value: Some(0.3),
            non_finite_from_step: None,
            non_finite_end_count: None,
        };
        let kept = [summary("acc"), summary("loss")];
        let row = |name: &str| ComparedMetric { name: name.into(), values: vec![None, None] };
        let mut metrics = vec![row("loss")];
        add_summaries(&mut metrics, (0, 2), &kept, &["loss".to_owned()]);
        assert!(has_points(&metrics, 0) && !has_points(&metrics, 1));
        let loss = metrics[0].values[0].as_ref().unwrap();
        assert_eq!((metrics.len(), loss.last, loss.last_step), (1, Some(0.02), 3));
        add_summaries(&mut metrics, (1, 2), &kept, &[]);
        let names: Vec<&str> = metrics.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["loss", "acc"], "what more runs have is first");
    }

    /// Proves that numbers of evaluations are in the order of the runs and each name is there once, that a run without the number has none,
    /// and that the first name which neither metrics nor evaluations have is the missing one.
    #[test]
    fn numbers_of_evaluations_are_in_the_order_of_the_runs() {
        let id = |at: u32| format!("run_0000000000000000000000000{at}").parse().unwrap();
        let ids: Vec<RunId> = (1..=3).map(id).collect();
        let name = Name::renamed(NameKind::Run, "judged");
        let run = |id: RunId| {
            let plan = serde_json::json!({});
            RunRow::planned(id, &name, "config", plan, Timestamp::from_micros(0))
        };
        let found = FoundRuns {
            runs: vec![run(ids[2]), run(ids[0])],
            names: vec!["eval.f1".into(), "run_id".into()],
            values: vec![
                vec![serde_json::json!(0.75), serde_json::json!("third")],
                vec![serde_json::json!(null), serde_json::json!("first")],
            ],
            next: None,
            more_count: None,
        };
        let only = ["eval.f1".to_owned(), "eval.f1".to_owned()];
        let numbers = numbers(&found, &only, &ids);
        let f1 = ComparedNumber { name: "eval.f1".into(), values: vec![None, None, Some(0.75)] };
        assert_eq!(numbers, [f1]);
        assert_eq!(missing(&only, &[], &numbers), None);
        let only = ["eval.f1".to_owned(), "eval.f2".to_owned()];
        assert_eq!(missing(&only, &[], &numbers), Some("eval.f2"));
    }

    /// Proves that the names that there are follow a wrong one, those of its kind first, and that without an evaluation it is said how to
    /// make one.
    #[test]
    fn a_wrong_name_is_followed_by_those_that_there_are() {
        let names = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        let (metrics, evaluated) = (names(&["loss"]), names(&["eval.accuracy", "eval.f1"]));
        let hint = known_names("eval.acuracy", &metrics, &evaluated);
        assert_eq!(hint, "did you mean `eval.accuracy`? They have `eval.accuracy`, `eval.f1`, `loss`");
        assert!(known_names("zzz", &metrics, &evaluated).starts_with("They have `loss`, `eval.accuracy`"));
        assert!(known_names("eval.f1", &metrics, &[]).contains("`trackway eval run RUN`"));
        assert_eq!(known_names("loss", &[], &[]), "they have no metrics");
        let many: Vec<String> = (0..NAMED_MAX + 2).map(|at| format!("m{at}")).collect();
        assert!(known_names("zzz", &many, &[]).ends_with(" and 2 more"));
    }

    /// Proves that every name any run has gets a row with a value for each run, and that only equal ones do not differ.
    #[test]
    fn rows_name_what_differs() {
        let of = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let found = rows(&[of(&[("lr", "0.1"), ("seed", "1")]), of(&[("seed", "1"), ("extra", "x")])]);
        let parameters: Vec<(&str, bool)> = found.iter().map(|row| (&*row.name, row.differs)).collect();
        assert_eq!(parameters, [("extra", true), ("lr", true), ("seed", false)]);
        assert_eq!(found[0].values, [None, Some("x".into())]);
    }
}
