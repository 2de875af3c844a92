//! The inputs of a stored evaluation: its request, the rows that it kept, and what it is compared with.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;
use trackway_core::{RunId, Step, with_fields_of};
use trackway_data::model::Frame;
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_evaluate::debug::ProbeAnswer;
use trackway_evaluate::{
    AssessError, Baseline, Columns, Comparison, Costs, Metrics, SliceLimits, Spec, Task, assess,
    complete_columns,
};
use trackway_formats::gate::PROBE;
use trackway_formats::runfile::EvaluateSection;
use trackway_ledger::{EvaluationRow, EvaluationState, ModelRow, RunRow};
use trackway_tables::DataSpec;
use trackway_tables::pass::UNWATCHED;
use trackway_tables::read::Source;

use crate::checkpoints::Chosen;
use crate::data::data_error;
use trackway_engine::file_digest::file_sha256;

/// The member of an assessment with the reason why its rows were not matched with the task set.
pub const TASKS_UNMATCHED: &str = "tasks_unmatched";
/// The member of an assessment with what probes of the model found.
pub const PROBES: &str = "probes";
/// The reference to the newest evaluation of other weights on the same tasks.
const LAST: &str = "last";
/// The reference to the evaluation of the checkpoint that the run started from.
const PARENT: &str = "parent";
/// The alias that means the version in production.
const PRODUCTION: &str = "production";

/// What is evaluated: a checkpoint of a run, on tasks.
pub struct Candidate<'a> {
    pub run: &'a RunRow,
    /// The manifest of the checkpoint.
    pub manifest_sha256: &'a str,
    /// The task set; none where the tasks are the evaluator's own.
    pub task_set_sha256: Option<&'a str>,
    /// What evaluated it.
    pub evaluator_name: &'a str,
}

/// What the rows of an evaluation were taken for, and what its draws began with.
#[derive(Deserialize)]
struct JudgedAs {
    task: Task,
    seed: u64,
}

/// The evaluation that `evaluate.baseline` means: `last` (none: there is no earlier one), `MODEL@ALIAS`, or an
/// evaluation. `None`: there is nothing to compare with yet.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a name that means nothing; [`ErrorKind::Usage`] for an evaluation that did not complete or kept no
/// rows.
pub(crate) fn baseline(
    context: &Context,
    named: &str,
    candidate: &Candidate<'_>,
) -> Result<Option<EvaluationRow>, AppError> {
    let row = match named.split_once('@') {
        _ if named == LAST => return last_before(context, candidate),
        _ if named == PARENT => of_parent(context, candidate)?,
        Some((model, alias)) => match of_model(context, model, alias, candidate.task_set_sha256)? {
            Some(row) => row,
            None => return Ok(None),
        },
        None => context.resolve_evaluation(named)?,
    };
    comparable(row).map(Some)
}

/// The same before there is a candidate: the evaluation, as far as it can be known. `parent`: the run and the checkpoint that the
/// run will start from. `None`: it is what there will be when the evaluation begins.
///
/// # Errors
/// As [`baseline`].
pub(crate) fn check_baseline(
    context: &Context,
    named: &str,
    parent: Option<(RunId, &Chosen)>,
    task_set_sha256: Option<&str>,
) -> Result<Option<String>, AppError> {
    let row = match (named.split_once('@'), parent) {
        _ if named == LAST => return Ok(None),
        (_, None) if named == PARENT => return Err(no_parent("the run starts from no other run")),
        (_, Some((run_id, chosen))) if named == PARENT => {
            let parent = (run_id, Some(chosen.step), chosen.manifest_sha256.as_str());
            of_checkpoint(context, parent, task_set_sha256)?
        }
        (Some((model, alias)), _) => match of_model(context, model, alias, task_set_sha256)? {
            Some(row) => row,
            None => return Ok(None),
        },
        (None, _) => context.resolve_evaluation(named)?,
    };
    comparable(row).map(|row| Some(row.evaluation_id))
}

/// Whether an evaluation may be chosen: it completed on these tasks, and was not made to test gates.
fn is_completed_on(row: &EvaluationRow, task_set_sha256: Option<&str>) -> bool {
    row.state == EvaluationState::Completed
        && row.task_set_sha256.as_deref() == task_set_sha256
        && !row.is_gate_test()
}

/// An evaluation that completed and kept its rows.
fn comparable(row: EvaluationRow) -> Result<EvaluationRow, AppError> {
    let id = &row.evaluation_id;
    if row.state != EvaluationState::Completed {
        let message = format!("the baseline {id} is {}: it has nothing to compare with", row.state);
        return Err(AppError::new(ErrorKind::Usage, message));
    }
    if row.raw_outputs_location.is_none() {
        let message = format!("the baseline {id} kept no rows: nothing can be compared row by row");
        return Err(AppError::new(ErrorKind::Usage, message));
    }
    Ok(row)
}

fn no_parent(what: &str) -> AppError {
    AppError::new(ErrorKind::Usage, format!("{what}: the baseline `parent` means nothing"))
        .hint("name one in its run file: `[run] start_from = \"RUN@best\"`")
}

/// The newest evaluation, on the same tasks, of the checkpoint of another run that this one started from.
fn of_parent(context: &Context, candidate: &Candidate<'_>) -> Result<EvaluationRow, AppError> {
    let run = candidate.run;
    let attempts = context.ledger_read(|ledger| ledger.attempts_of_run(run.run_id))?;
    let parent = attempts.iter().find_map(|row| {
        Some((row.warm_start_run_id?, row.warm_start_step, row.warm_start_manifest_sha256.as_deref()?))
    });
    let none = || no_parent(&format!("run `{}` started from no other run", run.name));
    of_checkpoint(context, parent.ok_or_else(none)?, candidate.task_set_sha256)
}

/// The newest evaluation of a checkpoint of a run on these tasks.
fn of_checkpoint(
    context: &Context,
    (run_id, step, manifest_sha256): (RunId, Option<Step>, &str),
    task_set_sha256: Option<&str>,
) -> Result<EvaluationRow, AppError> {
    let mut rows = context.ledger_read(|ledger| ledger.evaluations_of_checkpoint(manifest_sha256))?;
    rows.retain(|row| is_completed_on(row, task_set_sha256));
    rows.pop().ok_or_else(|| {
        let step = step.map(|step| format!(" --checkpoint {step}")).unwrap_or_default();
        let message = "the checkpoint that the run started from was not evaluated on these tasks";
        AppError::new(ErrorKind::NotFound, message)
            .hint(format!("evaluate it first: trackway eval run {run_id}{step}"))
    })
}

/// The newest of other weights: on the same tasks, or by the same evaluator of runs of this name where no tasks are named.
fn last_before(context: &Context, candidate: &Candidate<'_>) -> Result<Option<EvaluationRow>, AppError> {
    let fits = |row: &EvaluationRow| {
        is_completed_on(row, candidate.task_set_sha256)
            && row.raw_outputs_location.is_some()
            && row.checkpoint_manifest_sha256 != candidate.manifest_sha256
            && row.evaluator_name == candidate.evaluator_name
    };
    let mut rows = match candidate.task_set_sha256 {
        Some(content) => context.ledger_read(|ledger| ledger.evaluations_on(content))?,
        None => {
            let mut rows = context.ledger_read(|ledger| ledger.evaluations_of_run(candidate.run.run_id))?;
            rows.reverse();
            rows
        }
    };
    rows.retain(fits);
    Ok(rows.into_iter().next())
}

/// The newest evaluation, on the same tasks, of the version that an alias points to. `None`: nothing is in production yet.
fn of_model(
    context: &Context,
    model: &str,
    alias: &str,
    task_set_sha256: Option<&str>,
) -> Result<Option<EvaluationRow>, AppError> {
    let no_alias = || {
        let message = format!("the baseline `{model}@{alias}` means no version of a model");
        AppError::new(ErrorKind::NotFound, message).hint("see which there are with: trackway registry ls")
    };
    let row = context.ledger_read(|ledger| ledger.model(model))?;
    if alias == PRODUCTION && row.as_ref().is_none_or(|row| row.production_version.is_none()) {
        return Ok(None);
    }
    let row = row.ok_or_else(no_alias)?;
    let number = version_of(&row, alias).ok_or_else(no_alias)?;
    let versions = context.ledger_read(|ledger| ledger.versions_of_model(model))?;
    let version = versions.into_iter().find(|version| version.version == number).ok_or_else(no_alias)?;
    let mut rows = context.ledger_read(|ledger| ledger.evaluations_of_run(version.run_id))?;
    rows.retain(|row| {
        is_completed_on(row, task_set_sha256)
            && row.checkpoint_manifest_sha256 == version.checkpoint_manifest_sha256
    });
    rows.pop().map(Some).ok_or_else(|| {
        let message = format!("version {number} of `{model}` was not evaluated on these tasks");
        let step = version.step.map(|step| format!(" --checkpoint {step}")).unwrap_or_default();
        AppError::new(ErrorKind::NotFound, message)
            .hint(format!("evaluate it first: trackway eval run {}{step}", version.run_id))
    })
}

/// How an evaluation compares with another one than it was made with: the rows that both kept, paired as when an
/// evaluation is made. The inner error explains why they cannot be compared.
///
/// # Errors
/// [`ErrorKind::Integrity`] when the rows are not what was kept.
pub(crate) fn compare_kept(
    context: &Context,
    row: &EvaluationRow,
    baseline: &EvaluationRow,
) -> Result<Result<Option<Comparison>, String>, AppError> {
    let judged = row.assessment_json.clone().filter(|judged| judged.get("task").is_some());
    let Some(judged) = judged else {
        return Ok(Err(format!("nothing was computed from rows of {}", row.evaluation_id)));
    };
    let JudgedAs { task, seed } = serde_json::from_value(judged).map_err(|error| {
        AppError::fault(format!("the settings of evaluation {} cannot be read", row.evaluation_id), error)
    })?;
    let (here, there) = match (kept_rows(context, row, seed), kept_rows(context, baseline, seed)) {
        (Ok(here), Ok(there)) => (here, there),
        (Err(error), _) | (_, Err(error)) if error.kind == ErrorKind::NotFound => {
            return Ok(Err(error.to_string()));
        }
        (Err(error), _) | (_, Err(error)) => return Err(error),
    };
    let section = section_of(row)?;
    let compared = spec_of(&section, &here, Some(task), seed).and_then(|spec| {
        let side = Baseline { frame: &there, id: spec.columns.id.as_deref() };
        Ok(assess(&here, &spec, Some(side))?.comparison)
    });
    Ok(compared.map_err(|error| error.to_string()))
}

/// The rows that an evaluation kept, every byte as it was.
///
/// # Errors
/// [`ErrorKind::Integrity`] when the file is not what was kept; [`ErrorKind::NotFound`] when it is gone.
pub(crate) fn kept_rows(context: &Context, row: &EvaluationRow, seed: u64) -> Result<Frame, AppError> {
    let id = &row.evaluation_id;
    let location = row.raw_outputs_location.clone().unwrap_or_default();
    let path = context.home.folder().join(&location);
    let (sha256, _) = file_sha256(&path).map_err(|error| {
        AppError::new(ErrorKind::NotFound, format!("the rows of {id} are gone (`{location}`)")).because(error)
    })?;
    if row.raw_outputs_sha256.as_deref() != Some(sha256.as_str()) {
        let message = format!("the rows of {id} are not what was kept: `{location}` was changed");
        return Err(AppError::new(ErrorKind::Integrity, message));
    }
    let spec = DataSpec { path: location, ..DataSpec::default() };
    let mut source =
        Source::open(context.home.folder(), "baseline", &spec, &context.read_context).map_err(data_error)?;
    let everything = (usize::MAX, seed);
    Ok(Frame::sample(&mut source, None, everything, &UNWATCHED).map_err(data_error)?.0)
}

fn version_of(model: &ModelRow, alias: &str) -> Option<u32> {
    let aliased = model.aliases_json.get(alias).and_then(serde_json::Value::as_u64);
    let production = model.production_version.filter(|_| alias == PRODUCTION);
    aliased.and_then(|version| u32::try_from(version).ok()).or(production)
}

/// The request of an evaluation when it was begun.
pub(crate) fn section_of(row: &EvaluationRow) -> Result<EvaluateSection, AppError> {
    let spec = row.spec_json.clone().unwrap_or_else(|| json!({}));
    serde_json::from_value(spec).map_err(|error| {
        AppError::fault(format!("cannot read the request of evaluation {}", row.evaluation_id), error)
    })
}

/// How all rows of a table are evaluated: by the columns that a run file names, and those that are found.
pub fn spec_of(
    section: &EvaluateSection,
    frame: &Frame,
    task: Option<Task>,
    seed: u64,
) -> Result<Spec, AssessError> {
    let columns = with_fields_of!(Columns, &section, [label, prediction, score, group], ..Columns::default());
    let (columns, positive) = (complete_columns(columns, frame)?, section.positive.clone());
    let usual = Spec::default();
    Ok(Spec {
        columns,
        task,
        positive,
        seed,
        recall: section.recall.unwrap_or(usual.recall),
        main_metric: section.metric.clone(),
        limits: limits(section.support_min, section.width_max, usual.limits),
        margin: section.margin,
        costs: costs_of(section),
        ..usual
    })
}

/// The cost matrix of a run file, if it has one.
fn costs_of(section: &EvaluateSection) -> Option<Costs> {
    let of_label = |(label, costs): (&'_ String, &'_ BTreeMap<String, f64>)| {
        let pair = |(prediction, cost): (&String, &f64)| (label.clone(), prediction.clone(), *cost);
        costs.iter().map(pair).collect::<Vec<_>>()
    };
    let pairs: Vec<(String, String, f64)> = section.costs.iter().flat_map(of_label).collect();
    let named = pairs.iter().map(|(label, prediction, cost)| (label.as_str(), prediction.as_str(), *cost));
    (!pairs.is_empty()).then(|| Costs::new(named))
}

/// The limits of slices, where some are set.
pub(crate) fn limits(support_min: Option<u64>, width_max: Option<f64>, usual: SliceLimits) -> SliceLimits {
    SliceLimits {
        support_min: support_min.unwrap_or(usual.support_min),
        width_max: width_max.unwrap_or(usual.width_max),
    }
}

/// The numbers of probes: of each change of a feature, and of what the model loses without it.
pub(crate) fn probed(probes: &ProbeAnswer) -> Vec<(String, Metrics)> {
    let changes = probes.perturbations.iter().map(|it| {
        let numbers = [("flipped", it.flipped), ("increase", it.increase)];
        let metrics = numbers.into_iter().filter_map(|(name, number)| Some((name.to_owned(), number?)));
        (format!("{PROBE}{}.{}", it.feature, it.kind.as_str()), metrics.collect())
    });
    let importance = probes.importance.iter().map(|it| {
        (format!("{PROBE}{}", it.feature), Metrics::from([("importance".to_owned(), it.increase)]))
    });
    changes.chain(importance).collect()
}
