//! Which run is evaluated, and by which `[evaluate]`.

use std::path::{Path, PathBuf};

use trackway_core::RunId;
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::json_file;
use trackway_engine::reporter::Reporter;
use trackway_engine::run::{HeldPlace, Job, RunSource, StoredJob, gpus_at_hand};
use trackway_formats::runfile::{
    CheckpointSection, DataSpec, DetectSection, EvaluateSection, MAIN_TEST_SET, Plan, PlanPatch,
};
use trackway_ledger::{RunFilter, RunRow};
use trackway_tables::ReadContext;

use super::task_set::TaskSet;
use crate::data::table::TableRequest;
use crate::evaluation::score::{self, BATCH_ROWS, BatchFormat, ScoreRequest};
use crate::evaluation::scoring::check_program;
use trackway_engine::file_digest::file_sha256;

/// The rule of `[retry]` that an evaluator spends from.
const EVALUATOR_ERROR: &str = "evaluator_error";

/// What to evaluate, as a command line names it.
#[derive(Debug, Clone)]
pub enum EvaluationSubject {
    /// The newest run of a run file that committed a checkpoint.
    File(PathBuf),
    Run(RunId),
}

/// A run and its evaluator.
pub struct Subject {
    pub run: RunRow,
    pub asked: EvaluationRequest,
    /// Whether it is evaluated to test gates.
    pub is_gate_test: bool,
    /// Why its checkpoint is evaluated although it is unsafe; `None`: it must not be.
    pub accepts_unsafe: Option<String>,
    /// The place in a queue of the training that it follows; empty: it has none.
    pub place: HeldPlace,
}

/// The request of an `[evaluate]`, for one of its test sets.
pub struct EvaluationRequest {
    pub section: EvaluateSection,
    /// The name of a further test set; none: the main one.
    pub test_set: Option<String>,
    /// The run's job, whose folder and environment the evaluator has.
    pub job: Job,
}

impl Subject {
    /// Finds the run and reads its `[evaluate]`, with the changes of its run file.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] without an `[evaluate]`; [`ErrorKind::NotFound`] without a run.
    pub fn find(
        context: &Context,
        subject: &EvaluationSubject,
        patch: &PlanPatch,
        reporter: &dyn Reporter,
    ) -> Result<Self, AppError> {
        let (run, job) = match subject {
            EvaluationSubject::File(path) => {
                let source = RunSource::File { path: path.clone(), patch: patch.clone() };
                let job = Job::read(&source, &context.redactor)?;
                (newest_run(context, &job, path, reporter)?, job)
            }
            EvaluationSubject::Run(run_id) => {
                let run = context.run_by_id(*run_id)?;
                let job = job_of(context, &run, patch)?;
                (run, job)
            }
        };
        let asked = EvaluationRequest::of(&job).ok_or_else(|| {
            let message = format!("run `{}` has no `[evaluate]`", run.name);
            AppError::new(ErrorKind::Usage, message)
                .hint("write one into its run file, and name the file: trackway eval run FILE")
        })?;
        let place = HeldPlace::default();
        Ok(Self { run, asked, is_gate_test: false, accepts_unsafe: None, place })
    }

    /// The subject on the named test sets, or on all: the last one, and those before it. The main one is the last.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a name that the run file does not have.
    pub fn on_test_sets(self, names: &[String]) -> Result<(Self, Vec<Self>), AppError> {
        let Self { run, asked, is_gate_test, accepts_unsafe, place } = self;
        let is_wanted = |asked: &EvaluationRequest| {
            names.is_empty() || names.iter().any(|name| *name == asked.test_set_name())
        };
        let all = asked.all_test_sets();
        if let Some(name) = names.iter().find(|name| all.iter().all(|asked| asked.test_set_name() != **name))
        {
            let known: Vec<String> = all.iter().map(|asked| format!("`{}`", asked.test_set_name())).collect();
            let message = format!("`[evaluate.test_sets]` has no `{name}`");
            return Err(AppError::new(ErrorKind::Usage, message)
                .hint(format!("the test sets are {}", known.join(", "))));
        }
        let on = |asked| {
            let (run, accepts_unsafe, place) = (run.clone(), accepts_unsafe.clone(), place.clone());
            Self { run, asked, is_gate_test, accepts_unsafe, place }
        };
        let mut wanted: Vec<Self> = all.into_iter().filter(is_wanted).map(on).collect();
        let last = wanted.pop().unwrap_or_else(|| on(asked));
        Ok((last, wanted))
    }
}

impl EvaluationRequest {
    /// The request of a job; none: it has no `[evaluate]`.
    pub fn of(job: &Job) -> Option<Self> {
        Some(Self { section: job.plan.evaluate.clone()?, test_set: None, job: job.clone() })
    }

    /// The request for each test set, the main one last.
    pub fn all_test_sets(&self) -> Vec<Self> {
        let of = |name: &String| {
            let section = self.section.of_test_set(name)?;
            Some(Self { section, test_set: Some(name.clone()), job: self.job.clone() })
        };
        let main = Self { section: self.section.clone(), test_set: None, job: self.job.clone() };
        self.section.test_sets.keys().filter_map(of).chain([main]).collect()
    }

    fn test_set_name(&self) -> &str {
        self.test_set.as_deref().unwrap_or(MAIN_TEST_SET)
    }

    /// What is launched: the evaluator where the script ran, with the script's environment, and with nothing of the training's
    /// own rules.
    ///
    /// # Errors
    /// When the plan cannot be redacted, or its engine cannot be looked at.
    pub fn evaluator_job(&self, context: &Context) -> Result<Job, AppError> {
        self.evaluator_job_for(context, None)
    }

    /// The same; the built-in evaluator scores the first rows only, and does not probe the model, if a limit is given.
    ///
    /// # Errors
    /// When the plan cannot be redacted.
    pub fn evaluator_job_for(&self, context: &Context, limit: Option<u64>) -> Result<Job, AppError> {
        let Self { section, job, .. } = self;
        let mut plan: Plan = job.plan.clone();
        plan.run.command = self.command(context, limit)?;
        plan.run.seed = section.seed.or(plan.run.seed);
        plan.data.clear();
        plan.ladder = None;
        plan.preflight = None;
        plan.early_stop = None;
        plan.detect = DetectSection::default();
        plan.checkpoint = CheckpointSection::default();
        // A checkpoint of eight GPUs is also evaluated on a machine with one, or with none.
        plan.resources.gpus = gpus_at_hand(context, &plan)?;
        plan.supervise.timeout_seconds = Some(section.timeout_seconds);
        plan.supervise.hang_after_seconds = None;
        plan.supervise.start_within_seconds = None;
        if let Some(rule) = &section.retry {
            plan.retry.rules.insert(EVALUATOR_ERROR.into(), rule.clone());
        }
        Job::new(plan, job.base.clone(), job.run_file.clone(), job.patch.clone(), &context.redactor)
    }

    /// The evaluator's own command, or the built-in one's.
    fn command(&self, context: &Context, limit: Option<u64>) -> Result<Vec<String>, AppError> {
        let Some(request) = self.score_request(&context.read_context) else {
            return Ok(self.section.command.clone());
        };
        let probe_rows = if limit.is_some() { Some(0) } else { request.probe_rows };
        let request = ScoreRequest { limit, probe_rows, ..request };
        let binary = context.binary.to_string_lossy().into_owned();
        Ok([vec![binary], request.arguments()?].concat())
    }

    /// What the built-in evaluator scores; none: the evaluator is a command.
    pub fn score_request(&self, read_context: &ReadContext) -> Option<ScoreRequest> {
        let Self { section, job, .. } = self;
        let rows = section.rows_spec(&job.plan.data)?;
        // It starts where the script does, and paths start at the run file's folder.
        let path = match rows.path.contains("://") {
            true => rows.path.clone(),
            false => job.base.join(&rows.path).to_string_lossy().into_owned(),
        };
        let table = TableRequest { paths: vec![path], spec: rows, read_context: read_context.clone() };
        Some(ScoreRequest {
            table,
            command: section.scorer.clone()?,
            format: BatchFormat::Csv,
            label: section.label.clone(),
            positive: section.positive.clone(),
            features: section.features.clone(),
            skip: section.skip.clone(),
            batch_rows: BATCH_ROWS,
            limit: None,
            probe_rows: section.probe_rows,
        })
    }

    /// Checks whether the evaluator can start: its program; for the built-in one the scoring program, and the rows with
    /// their columns.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] and [`ErrorKind::NotFound`] naming what is missing.
    pub fn check(&self, context: &Context) -> Result<(), AppError> {
        let job = self.evaluator_job(context)?;
        job.check_command().map_err(|error| self.job.at_key(&["evaluate", "command"], error))?;
        let Some(request) = self.score_request(&context.read_context) else { return Ok(()) };
        check_scorer(&job, &request.command)?;
        score::check(&self.job.base, &request).map(drop)
    }

    /// Files and folders that the evaluator may be given as arguments and that are no code.
    pub fn data_paths(&self) -> Vec<PathBuf> {
        let sets = self.job.plan.data.values().map(|set| &set.path);
        let named = sets.chain(&self.section.task_set).chain(&self.section.rows);
        named.map(|path| self.job.base.join(path)).collect()
    }

    /// The tasks, where some are named.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when they are not there.
    pub fn task_set(&self, context: &Context) -> Result<Option<TaskSet>, AppError> {
        let version = self.section.task_set_version.as_deref();
        self.section.tasks().map(|path| TaskSet::read(context, &self.job.base, path, version)).transpose()
    }

    /// How the tasks are read as a table: by their full path, for the process that ends the evaluation.
    pub fn task_table(&self) -> Option<DataSpec> {
        let path = self.section.tasks()?;
        let known = self.section.rows_spec(&self.job.plan.data).filter(|spec| spec.path == path);
        let data = self.job.plan.data.values().find(|set| set.path == path).cloned();
        let spec =
            known.or(data).unwrap_or_else(|| DataSpec { path: path.to_owned(), ..DataSpec::default() });
        let path = match path.contains("://") {
            true => path.to_owned(),
            false => self.job.base.join(path).to_string_lossy().into_owned(),
        };
        Some(DataSpec { path, ..spec })
    }

    /// The judge's rubric with the hash of its file, if it names one.
    pub fn rubric(&self) -> Option<String> {
        let rubric = self.section.judge.as_ref()?.rubric.clone()?;
        let hashed = file_sha256(&self.job.base.join(&rubric)).ok();
        Some(hashed.map_or_else(|| rubric.clone(), |(sha256, _)| format!("{rubric}@sha256:{sha256}")))
    }
}

/// As [`check_program`], where the script starts.
pub(crate) fn check_scorer(job: &Job, line: &str) -> Result<(), AppError> {
    check_program(line, &job.working_directory(), &job.plan.run.environment, "evaluate.scorer")
        .map_err(|error| error.hint("a scorer starts where the script starts, with its PATH"))
}

/// The newest run of the name that committed something: of this very config where there is one.
fn newest_run(
    context: &Context,
    job: &Job,
    path: &Path,
    reporter: &dyn Reporter,
) -> Result<RunRow, AppError> {
    let filter = RunFilter { name: Some(job.plan.run.name.clone()), ..RunFilter::default() };
    let mut runs = context.ledger_read(|ledger| ledger.list_runs(&filter))?;
    runs.retain(|run| run.last_committed_step.is_some());
    if let Some(same) = runs.iter().position(|run| run.config_sha256 == job.config_sha256) {
        return Ok(runs.swap_remove(same));
    }
    let newest = runs.into_iter().next().ok_or_else(|| {
        let message = format!("no run `{}` has a committed checkpoint", job.plan.run.name);
        AppError::new(ErrorKind::NotFound, message)
            .hint(format!("train one: trackway run {}", path.display()))
    })?;
    let text = format!(
        "`{}` is not the config of run {} any more; its newest checkpoint is evaluated anyway",
        path.display(),
        newest.run_id
    );
    reporter.note(text);
    Ok(newest)
}

/// The plan of a run as it was stored; with further changes its run file is read again.
fn job_of(context: &Context, run: &RunRow, patch: &PlanPatch) -> Result<Job, AppError> {
    let path = context.home.layout.run(run.run_id).plan_json();
    let stored: StoredJob = json_file::read_if_there(&path)?.ok_or_else(|| {
        AppError::new(ErrorKind::NotFound, format!("run `{}` was not launched from this home", run.name))
            .hint("name its run file: trackway eval run FILE")
    })?;
    if patch.changes().is_empty() {
        return Job::restore(stored, &context.redactor);
    }
    let Some(file) = stored.run_file else {
        let message = format!("`--set` changes a run file, and run `{}` has none", run.name);
        return Err(AppError::new(ErrorKind::Usage, message));
    };
    let patch = stored.patch.into_iter().chain(patch.clone()).collect();
    Job::read(&RunSource::File { path: file, patch }, &context.redactor)
}
