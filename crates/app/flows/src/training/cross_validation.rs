//! Cross-validation: the training rows are divided into folds; for each a run is trained on the other folds and evaluated on it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use trackway_api::models::cross_validation::{CrossValidation, FoldResult, FoldRows, FoldedMetric};
use trackway_core::{GroupId, RunId};
use trackway_data::split::{Part, SplitColumns, SplitMethod, SplitPlan, read_rows, write_parts_as};
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::run::{Job, RunSource};
use trackway_evaluate::Estimate;
use trackway_evaluate::metrics::range_of_computed;
use trackway_formats::EventKind;
use trackway_formats::group::{GroupKind, RunGroup};
use trackway_formats::runfile::{
    ChangeOrigin, DataRole, DataSpec, KeyPath, PatchValue, PlanChange, PlanPatch,
};
use trackway_ledger::{EvaluationState, RunState};
use trackway_statistics::fold_mean_interval;
use trackway_tables::read::Source;
use trackway_tables::write::TableFormat;

use crate::data::data_error;
use crate::data::table::ReadObserver;
use crate::training::preflight::{PreflightReporter, Selection};
use crate::training::train::{RunRequest, run};

/// The confidence of intervals.
const CONFIDENCE: f64 = 0.95;
/// The data set that the held-out rows become where the run file has none to validate with.
const HELD_OUT: &str = "held_out";
/// The fewest folds.
pub const FOLDS_MIN: usize = 2;
/// The most folds: each is a training.
pub const FOLDS_MAX: usize = 100;

/// The request of `trackway eval cross-validate`.
#[derive(Debug, Clone)]
pub struct CrossValidateRequest {
    /// The run file.
    pub file: PathBuf,
    /// What is changed of the run file in every fold.
    pub patch: PlanPatch,
    pub folds: usize,
    /// What the folds are made by; none: groups where the training set names a `group`, else single rows.
    pub method: Option<SplitMethod>,
    /// Decides which row is in which fold.
    pub seed: u64,
    /// Where the rows of the folds are written; none: beside the run file.
    pub out: Option<PathBuf>,
}

/// What the run file says that matters here.
struct Plan {
    name: String,
    base: PathBuf,
    /// The training set and, if there is one, the set that it is validated with.
    train: (String, DataSpec),
    validation: Option<String>,
    command: Vec<String>,
    /// Whether the rows are scored by the built-in evaluator.
    has_scorer: bool,
    /// The key by which a metric of the training decides which weights are evaluated.
    selects: Option<&'static str>,
}

/// The rows of a fold, as files.
struct Fold {
    trained: (PathBuf, u64),
    held_out: (PathBuf, u64),
}

/// Trains and evaluates a run for each fold.
///
/// # Errors
/// [`ErrorKind::Usage`] before anything is launched: no training set that is a table, no `[evaluate]`, folds that cannot be made;
/// and after the first fold if nothing shows that the script read its rows.
pub fn cross_validate(
    context: &Context,
    request: &CrossValidateRequest,
    observer: &ReadObserver<'_>,
    reporter: &dyn PreflightReporter,
) -> Result<CrossValidation, AppError> {
    if !(FOLDS_MIN..=FOLDS_MAX).contains(&request.folds) {
        return Err(usage(format!("there are {FOLDS_MIN} to {FOLDS_MAX} folds, not {}", request.folds)));
    }
    let plan = Plan::of(context, request)?;
    let folder = request.out.clone().unwrap_or_else(|| plan.base.join(format!("{}-folds", plan.name)));
    let folder = std::path::absolute(&folder).map_err(|error| AppError::file("find", &folder, error))?;
    let (mut answer, folds) = divided(context, request, &plan, &folder, observer)?;
    if !answer.proof.holds(answer.method) {
        return Err(usage("the folds share rows: nothing was launched".to_owned()));
    }
    for (number, fold) in (1..).zip(&folds) {
        reporter.note(format!("fold {number} of {}", folds.len()));
        let command = plan.command_with(&fold.trained.0);
        let group = RunGroup {
            group_id: answer.group_id,
            kind: GroupKind::CrossValidation,
            name: plan.name.clone(),
            member: number,
            size: folds.len(),
        };
        let report = run(context, plan.request(request, group, fold, command.as_deref()), reporter)?;
        let run_id = report.outcome.run_id;
        answer.rows_given_by = match (&command, number) {
            (Some(_), _) => Some(FoldRows::Command),
            (None, 1) => taken(context, run_id, &plan.train.0)?.then_some(FoldRows::Taken),
            (None, _) => answer.rows_given_by,
        };
        answer.folds.push(result(number, fold, &report));
        if report.outcome.state == RunState::Completed && answer.rows_given_by.is_none() {
            return Err(unread(&plan));
        }
        if context.request.cancel.stop_requests() > 0 {
            answer.notes.push(format!("stopped after fold {number}"));
            break;
        }
    }
    answer.metrics = summary(&answer.folds, answer.fold_count);
    Ok(answer)
}

impl Plan {
    fn of(context: &Context, request: &CrossValidateRequest) -> Result<Self, AppError> {
        let source = RunSource::File { path: request.file.clone(), patch: request.patch.clone() };
        let job = Job::read(&source, &context.redactor)?;
        let role = |(name, spec): &(&String, &DataSpec)| spec.role.or_else(|| DataRole::of_name(name));
        let of = |wanted: DataRole| job.plan.data.iter().find(|set| role(set) == Some(wanted));
        let train = of(DataRole::Train).map(|(name, spec)| (name.clone(), spec.clone()));
        let train = train.ok_or_else(|| {
            usage("the run file names no training set".to_owned())
                .hint("name it: `[data.train]` with `path`; its rows are divided into folds")
        })?;
        let section = job.plan.evaluate.as_ref().ok_or_else(|| {
            usage("the run file has no `[evaluate]`, so that folds cannot be compared".to_owned())
                .hint("a scorer is enough: `scorer = \"python score.py\"` (docs/evaluations.md)")
        })?;
        Ok(Self {
            name: job.plan.run.name.clone(),
            base: job.base.clone(),
            train,
            validation: of(DataRole::Validation).map(|(name, _)| name.clone()),
            command: job.plan.run.command.clone(),
            has_scorer: section.scorer.is_some(),
            selects: selects(&job.plan),
        })
    }

    /// The command with the fold's file in place of the training set's; none: no word of it is that path.
    fn command_with(&self, file: &Path) -> Option<Vec<String>> {
        let path = &self.train.1.path;
        let absolute = self.base.join(path).to_string_lossy().into_owned();
        let replaced = |word: &String| {
            let value = word.rsplit_once('=').map_or(word.as_str(), |(_, value)| value);
            let is_path = value == path || value == absolute || Some(value) == path.strip_prefix("./");
            is_path.then(|| format!("{}{}", &word[..word.len() - value.len()], file.display()))
        };
        let found = self.command.iter().any(|word| replaced(word).is_some());
        let words = self.command.iter().map(|word| replaced(word).unwrap_or_else(|| word.clone()));
        found.then(|| words.collect())
    }

    /// The run of a fold: the run file with the fold's rows, without gates and baseline.
    fn request(
        &self,
        request: &CrossValidateRequest,
        group: RunGroup,
        fold: &Fold,
        command: Option<&[String]>,
    ) -> RunRequest {
        let mut patch = request.patch.clone();
        patch.extend(self.changes(group.member, fold, command));
        let skip_all = (group.member > 1).then(|| "a later fold of a cross-validation".to_owned());
        RunRequest {
            source: RunSource::File { path: request.file.clone(), patch },
            injection: None,
            retry_data_error: false,
            selection: Selection { skip_all, ..Selection::default() },
            queue: None,
            group: Some(group),
        }
    }

    /// What a fold changes of the run file.
    fn changes(&self, number: usize, fold: &Fold, command: Option<&[String]>) -> Vec<PlanChange> {
        let text = |path: &Path| PatchValue::from(&*path.to_string_lossy());
        let held_out = || text(&fold.held_out.0);
        let name = PatchValue::from(format!("{}-fold-{number}", self.name).as_str());
        let mut changes: Vec<(KeyPath, PatchValue)> = vec![
            (["run", "name"].into(), name),
            (["data", &self.train.0, "path"].into(), text(&fold.trained.0)),
        ];
        // The files of a fold have no title above their header.
        let begins_later = self.train.1.skip_lines > 0;
        let sets = [Some(&self.train.0), self.validation.as_ref()].into_iter().flatten();
        let sets = sets.filter(|_| begins_later);
        changes.extend(sets.map(|name| (["data", name, "skip_lines"].into(), 0_i64.into())));
        match &self.validation {
            Some(name) => changes.push((["data", name, "path"].into(), held_out())),
            None => changes.extend(self.held_out_set(held_out())),
        }
        let tasks = if self.has_scorer { "rows" } else { "task_set" };
        changes.push((["evaluate", tasks].into(), held_out()));
        if self.has_scorer {
            changes.push((["evaluate", "task_set"].into(), held_out()));
        }
        let fixed = [
            ("gates", PatchValue::List(Vec::new())),
            ("baseline", "none".into()),
            ("after", true.into()),
            ("test_sets", PatchValue::Table(BTreeMap::new())),
        ];
        changes.extend(fixed.map(|(key, value)| (["evaluate", key].into(), value)));
        changes.extend(command.map(|words| (["run", "command"].into(), words.into())));
        let origin = ChangeOrigin::CrossValidation { fold: number };
        changes.into_iter().map(|(key, value)| PlanChange::new(key, value, origin)).collect()
    }
}

/// The key of a run file by which weights are chosen after looking at a metric.
fn selects(plan: &trackway_formats::runfile::Plan) -> Option<&'static str> {
    let chosen = plan.evaluate.as_ref().and_then(|section| section.checkpoint.as_deref());
    match chosen {
        Some(name) if name != "latest" => Some("evaluate.checkpoint"),
        _ => plan.early_stop.as_ref().map(|_| "early_stop"),
    }
}

impl Plan {
    /// A data set of the held-out rows that is read like the training set.
    fn held_out_set(&self, path: PatchValue) -> Vec<(KeyPath, PatchValue)> {
        let spec = &self.train.1;
        let mut keys = vec![("path", path), ("role", "validation".into())];
        let texts = [("label", &spec.label), ("group", &spec.group), ("time", &spec.time)];
        keys.extend(texts.iter().filter_map(|(key, text)| Some((*key, text.as_deref()?.into()))));
        for (key, list) in [("columns", &spec.columns), ("missing", &spec.missing)] {
            if !list.is_empty() {
                keys.push((key, list.as_slice().into()));
            }
        }
        keys.extend(spec.header.map(|header| ("header", header.into())));
        for (key, letter) in [("delimiter", spec.delimiter), ("comment", spec.comment)] {
            keys.extend(letter.map(|it| (key, it.to_string().as_str().into())));
        }
        keys.extend(spec.decimal.map(|mark| ("decimal", mark.as_str().into())));
        keys.into_iter().map(|(key, value)| (["data", HELD_OUT, key].into(), value)).collect()
    }
}

/// Divides the training rows, and writes for each fold its rows and the others.
fn divided(
    context: &Context,
    request: &CrossValidateRequest,
    plan: &Plan,
    folder: &Path,
    observer: &ReadObserver<'_>,
) -> Result<(CrossValidation, Vec<Fold>), AppError> {
    let (name, spec) = &plan.train;
    let mut source = Source::open(&plan.base, name, spec, &context.read_context).map_err(data_error)?;
    let method = request.method.unwrap_or(match spec.group {
        Some(_) => SplitMethod::Group,
        None => SplitMethod::Hash,
    });
    let by_label = matches!(method, SplitMethod::Stratified | SplitMethod::StratifiedGroup);
    let columns = SplitColumns {
        key: None,
        label: spec.label.clone().filter(|_| by_label),
        group: spec.group.clone(),
        time: None,
    };
    let split =
        SplitPlan { method, shares: None, folds: Some(request.folds), rungs: Vec::new(), seed: request.seed };
    let (rows, coverage) = read_rows(&mut source, &columns, &observer.watch()).map_err(data_error)?;
    let assignment = split.assign(&rows).map_err(|error| AppError::of(ErrorKind::Usage, error))?;
    let proof = split.prove(&rows, &assignment);
    let mut notes = Vec::new();
    if coverage.rows_rejected > 0 {
        notes.push(format!("{} rows that cannot be read are in no fold", coverage.rows_rejected));
    }
    if spec.time.is_some() {
        notes.push("folds do not respect the order in time: later rows help to predict earlier ones".into());
    }
    if let Some(key) = plan.selects {
        notes.push(format!(
            "`{key}` chooses weights by a metric: if the script computes it on the validation set, here the held-out rows, the results \
             are too good"
        ));
    }
    let folds = (0..request.folds).map(|number| {
        let parts: Vec<Option<Part>> = assignment
            .folds
            .iter()
            .map(|fold| fold.map(|fold| Part::from(usize::from(fold) == number)))
            .collect();
        written(&source, &folder.join(format!("fold-{}", number + 1)), &parts, observer)
    });
    let folds = folds.collect::<Result<Vec<_>, _>>()?;
    let answer = CrossValidation {
        name: plan.name.clone(),
        group_id: GroupId::new(&context.ids),
        method,
        seed: request.seed,
        proof,
        folder: folder.to_owned(),
        rows_given_by: None,
        folds: Vec::new(),
        fold_count: request.folds,
        metrics: BTreeMap::new(),
        notes,
    };
    Ok((answer, folds))
}

/// Writes the rows of one fold, which have part 1, and the others.
fn written(
    source: &Source,
    folder: &Path,
    parts: &[Option<Part>],
    observer: &ReadObserver<'_>,
) -> Result<Fold, AppError> {
    trackway_files::make_folders_of_user(folder)
        .map_err(|error| AppError::file("make the folder", folder, error))?;
    let (format, extension) = TableFormat::like(source);
    let paths = ["train", "held-out"].map(|name| folder.join(format!("{name}.{extension}")));
    write_parts_as(format, &paths, source, parts, &observer.watch())
        .map_err(|error| AppError::fault("the rows of a fold cannot be written", error))?;
    let count = |wanted: Part| parts.iter().filter(|part| **part == Some(wanted)).count() as u64;
    let [trained, held_out] = paths;
    Ok(Fold { trained: (trained, count(0)), held_out: (held_out, count(1)) })
}

/// Whether the script took the path of its rows from Trackway.
fn taken(context: &Context, run_id: RunId, set: &str) -> Result<bool, AppError> {
    let events = context.ledger_read(|ledger| ledger.events_of_run(run_id))?;
    Ok(events.iter().any(|event| {
        event.kind == EventKind::DataPathTaken.as_str()
            && event
                .fields_json
                .as_ref()
                .and_then(|fields| fields.get("name"))
                .is_some_and(|name| name == set)
    }))
}

fn unread(plan: &Plan) -> AppError {
    let name = &plan.train.0;
    usage(format!(
        "nothing shows that the script read the rows of its fold: `{}` is not in its command",
        plan.train.1.path
    ))
    .hint(format!(
        "pass the path to the script as a word of `run.command`, or use `run.data(\"{name}\")` in it"
    ))
}

fn result(number: usize, fold: &Fold, report: &trackway_api::runs::RunReport) -> FoldResult {
    let evaluation = report.evaluation.as_ref();
    let completed = evaluation.is_some_and(|it| it.state == EvaluationState::Completed);
    let tasks = evaluation.and_then(|it| it.assessment.as_ref()?.tasks.as_ref());
    let why_not = match evaluation {
        _ if report.outcome.state != RunState::Completed => {
            Some(format!("its run is {}", report.outcome.state))
        }
        None => Some("it was not evaluated".to_owned()),
        Some(it) if !completed => {
            Some(it.failure.clone().unwrap_or_else(|| "its evaluation did not complete".into()))
        }
        Some(it) if it.tasks_unmatched.is_some() => it.tasks_unmatched.clone(),
        Some(_) if tasks.is_some_and(|tasks| !tasks.is_complete()) => {
            Some("its held-out rows were not all answered exactly once".into())
        }
        Some(_) => None,
    };
    let metrics = evaluation.map(|it| it.metrics.iter().map(|(name, it)| (name.clone(), it.value)).collect());
    FoldResult {
        fold: number,
        rows_trained: fold.trained.1,
        rows_held_out: fold.held_out.1,
        run_id: report.outcome.run_id,
        state: report.outcome.state,
        evaluation_id: evaluation.map(|it| it.evaluation_id.clone()),
        evaluation_state: evaluation.map(|it| it.state),
        metrics: metrics.unwrap_or_default(),
        why_not,
    }
}

/// Mean and spread of each metric that every fold has; none unless all folds count.
fn summary(folds: &[FoldResult], fold_count: usize) -> BTreeMap<String, FoldedMetric> {
    if folds.len() < fold_count || folds.iter().any(|fold| fold.why_not.is_some()) {
        return BTreeMap::new();
    }
    let Some(first) = folds.first() else { return BTreeMap::new() };
    let rows = |of: fn(&FoldResult) -> u64| folds.iter().map(of).sum::<u64>() as f64;
    let ratio = rows(|fold| fold.rows_held_out) / rows(|fold| fold.rows_trained).max(1.0);
    let folded = |name: &String| {
        let values: Vec<f64> = folds.iter().filter_map(|fold| fold.metrics.get(name).copied()).collect();
        (values.len() == fold_count && values.iter().all(|value| value.is_finite())).then(|| {
            (name.clone(), folded_metric(name, &values, ratio, rows(|fold| fold.rows_held_out) as u64))
        })
    };
    first.metrics.keys().filter_map(folded).collect()
}

fn folded_metric(name: &str, values: &[f64], held_out_by_training: f64, rows: u64) -> FoldedMetric {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let standard_deviation = (squares / (count - 1.0)).sqrt();
    let terms = (CONFIDENCE, range_of_computed(name));
    let interval = fold_mean_interval(mean, standard_deviation, values.len(), held_out_by_training, terms);
    FoldedMetric {
        mean: Estimate::analytic(mean, interval, rows),
        standard_deviation,
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    }
}

fn usage(message: String) -> AppError {
    AppError::new(ErrorKind::Usage, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves mean, spread and the corrected interval by numbers that were computed by hand, that the interval of a
    /// fraction or of a number that is never negative respects its range, and that a fold that does not count leaves no
    /// summary.
    #[test]
    fn folds_are_summed_up() {
        let metric = folded_metric("grade", &[0.8, 0.9, 0.85], 0.5, 300);
        assert!((metric.mean.value - 0.85).abs() < 1e-12 && (metric.standard_deviation - 0.05).abs() < 1e-12);
        // 4.3027 (t with 2 degrees) × 0.05 × √(1/3 + 1/2)
        let (low, high) = metric.mean.interval.bounds().unwrap();
        assert!(
            (high - 0.85 - 0.196_389).abs() < 1e-5 && (0.85 - low - 0.196_389).abs() < 1e-5,
            "{low} {high}"
        );
        assert_eq!((metric.min, metric.max), (0.8, 0.9));
        let bounds =
            |name: &str| folded_metric(name, &[0.8, 0.9, 0.85], 0.5, 300).mean.interval.bounds().unwrap();
        // ln(0.85 / 0.15) = 1.734_601, and the half 0.196_389 / (0.85 × 0.15) = 1.540_305
        let logit = |value: f64| 1.0 / (1.0 + (-value).exp());
        let (low, high) = bounds("accuracy");
        assert!(
            (low - logit(0.194_296)).abs() < 1e-5 && (high - logit(3.274_906)).abs() < 1e-5,
            "{low} {high}"
        );
        let (low, high) = bounds("mae");
        assert!((low * high - 0.85 * 0.85).abs() < 1e-9 && low > 0.0, "{low} {high}");
        let perfect = folded_metric("accuracy", &[1.0, 1.0], 0.5, 300);
        assert_eq!(perfect.mean.interval.bounds(), Some((1.0, 1.0)));
        let fold = |why_not: Option<&str>| FoldResult {
            fold: 1,
            rows_trained: 20,
            rows_held_out: 10,
            run_id: "run_01kajn4f3s0000000000000000".parse().unwrap(),
            state: RunState::Completed,
            evaluation_id: None,
            evaluation_state: None,
            metrics: [("accuracy".to_owned(), 0.5)].into(),
            why_not: why_not.map(str::to_owned),
        };
        assert_eq!(summary(&[fold(None), fold(None)], 2).len(), 1);
        assert!(summary(&[fold(None)], 2).is_empty());
        assert!(summary(&[fold(None), fold(Some("failed"))], 2).is_empty());
    }

    /// Proves which words of a command are the path of the training set.
    #[test]
    fn the_path_in_a_command_is_replaced() {
        let plan = |path: &str, command: &[&str]| Plan {
            selects: None,
            name: "n".into(),
            base: "/base".into(),
            train: ("train".into(), DataSpec { path: path.into(), ..DataSpec::default() }),
            validation: None,
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            has_scorer: true,
        };
        let with = |path: &str, command: &[&str]| plan(path, command).command_with(Path::new("/f.csv"));
        assert_eq!(with("a.csv", &["py", "a.csv"]).unwrap(), ["py", "/f.csv"]);
        assert_eq!(with("a.csv", &["py", "--data=a.csv"]).unwrap(), ["py", "--data=/f.csv"]);
        assert_eq!(with("./a.csv", &["py", "a.csv"]).unwrap(), ["py", "/f.csv"]);
        assert_eq!(with("a.csv", &["py", "/base/a.csv"]).unwrap(), ["py", "/f.csv"]);
        assert_eq!(with("a.csv", &["py", "other/a.csv", "data.csv"]), None);
    }
}
