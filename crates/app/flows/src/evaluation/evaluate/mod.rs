//! Evaluations: a committed checkpoint is held and verified, the evaluator is launched apart from the training, and its
//! output is bound to the checkpoint's manifest in a receipt that does not change any more.
//!
//! The evaluator's launches are those of a run of kind `evaluate`, as the launches of a proof are: they have separate
//! receipts, logs and budgets and are never among the training attempts. The process that holds the lock of that run
//! supervises the evaluation; when there is none and no launch lives, the next command ends it (`close`).

mod close;
mod collect;
mod expected;
mod import;
pub(crate) mod judge;
mod launches;
mod list;
mod outputs;
mod receipt;
mod subject;
pub(crate) mod task_set;
mod trial;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::json;
use trackway_api::models::evaluations::EvaluationReceipt;
use trackway_core::{CheckpointUse, Clock as _, EvaluationId, LaunchKind};
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_engine::reporter::{NotesOnly, Reporter};
use trackway_engine::run::{Prepared, Start, begin};
use trackway_formats::Variable;
use trackway_formats::runfile::{EvaluateSection, PlanPatch};
use trackway_ledger::{EvaluationEnd, EvaluationRow, GATE_TEST_ORIGIN};

pub(crate) use self::expected::{ExpectedNumbers, expected};
pub use self::import::ImportRequest;
pub(crate) use self::judge::asks_for_numbers;
use self::launches::{EvaluatorEnd, Launches, evaluator_variables, linked};
pub(crate) use self::outputs::DRAFT_PREFIX;
pub use self::subject::EvaluationSubject;
pub(crate) use self::subject::{EvaluationRequest, Subject, check_scorer};
use self::task_set::TaskSet;
use crate::checkpoints::{self, CheckpointRef, Checkpoints, Chosen};
use crate::evaluation::baseline::{self, Candidate};
pub(crate) use close::{close_lost_evaluations, lost_evaluations};
pub use import::import_evaluations;
pub use list::{
    evaluation, evaluations, evaluations_of, newest_evaluation_of_file, write_evaluation_numbers,
};
use trackway_engine::run::evaluator::{Evaluator, EvaluatorCode, evaluator};
pub(crate) use trial::try_evaluator;

/// The request of `trackway eval run`.
#[derive(Debug, Clone)]
pub struct EvaluateRequest {
    /// A run file or a run.
    pub subject: EvaluationSubject,
    /// Which checkpoint; `None`: the one that `evaluate.checkpoint` names, else the newest.
    pub checkpoint: Option<CheckpointRef>,
    /// What is changed of the run file.
    pub patch: PlanPatch,
    /// The test sets by their names, `main` for that of `[evaluate]` itself; empty: all.
    pub test_sets: Vec<String>,
    /// Whether its model is known to be bad, and is evaluated to test gates.
    pub is_gate_test: bool,
    /// Why the checkpoint is evaluated although it is unsafe; `None`: it must not be.
    pub accepts_unsafe: Option<String>,
}

/// Evaluates a checkpoint on its test sets, and writes down what came out. The receipt of the main one has the results of the
/// others too.
///
/// # Errors
/// `ErrorKind::Usage` and `ErrorKind::NotFound` before anything is launched; `ErrorKind::Integrity` when the checkpoint
/// does not verify. A failed evaluator is not an error but the result's state.
pub fn evaluate(
    context: &Context,
    request: &EvaluateRequest,
    reporter: &dyn Reporter,
) -> Result<EvaluationReceipt, AppError> {
    let subject = Subject::find(context, &request.subject, &request.patch, reporter)?;
    let (is_gate_test, accepts_unsafe) = (request.is_gate_test, request.accepts_unsafe.clone());
    let subject = Subject { is_gate_test, accepts_unsafe, ..subject };
    evaluate_on(context, subject, request.checkpoint.as_ref(), &request.test_sets, reporter)
}

/// Evaluates one checkpoint on the named test sets, or all; on the main one last, so that it is the newest.
///
/// # Errors
/// As [`evaluate`].
pub(crate) fn evaluate_on(
    context: &Context,
    subject: Subject,
    reference: Option<&CheckpointRef>,
    names: &[String],
    reporter: &dyn Reporter,
) -> Result<EvaluationReceipt, AppError> {
    let of_run_file = subject.asked.section.checkpoint.as_deref().map(CheckpointRef::parse).transpose()?;
    let mut reference = reference.cloned().or(of_run_file).unwrap_or_default();
    let (last, before) = subject.on_test_sets(names)?;
    before.iter().chain([&last]).try_for_each(|subject| subject.asked.check(context))?;
    for subject in before {
        let receipt = evaluate_subject(context, &subject, &reference, reporter)?;
        if context.request.cancel.stop_requests() > 0 {
            return Ok(receipt);
        }
        // Those that follow are of the same weights, even if the run commits others meanwhile.
        reference = CheckpointRef::Manifest(receipt.checkpoint_manifest_sha256);
    }
    evaluate_subject(context, &last, &reference, reporter)
}

/// Refuses, before a training costs anything, a following evaluation that could not begin.
pub(crate) fn check_before_launch(
    context: &Context,
    job: &trackway_engine::run::Job,
) -> Result<(), AppError> {
    let Some(asked) = EvaluationRequest::of(job).filter(|asked| asked.section.after) else { return Ok(()) };
    let usage_error = |error: AppError| {
        error.hint("the evaluation after the run could not start; run it with `trackway eval run`, or set `evaluate.after = false`")
    };
    for asked in asked.all_test_sets() {
        asked.check(context).map_err(usage_error)?;
        asked.task_set(context).map_err(usage_error)?;
    }
    Ok(())
}

/// One evaluation that was begun.
pub(crate) struct Case<'a> {
    context: &'a Context,
    subject: &'a Subject,
    checkpoints: Checkpoints,
    chosen: Chosen,
    prepared: Prepared,
    evaluation_id: String,
    task_set: Option<TaskSet>,
    /// What it is compared with.
    baseline_evaluation_id: Option<String>,
}

fn evaluate_subject(
    context: &Context,
    subject: &Subject,
    reference: &CheckpointRef,
    reporter: &dyn Reporter,
) -> Result<EvaluationReceipt, AppError> {
    let asked = &subject.asked;
    let job = asked.evaluator_job(context)?;
    let task_set = asked.task_set(context)?;
    let code = match &asked.section.scorer {
        Some(scorer) => EvaluatorCode::Scorer(scorer),
        None => EvaluatorCode::Command { argv: &job.plan.run.command, stored: &job.stored_plan.run.command },
    };
    let evaluator = evaluator(&job, code, &asked.data_paths())?;
    let checkpoints = checkpoints::checkpoints(context, subject.run.run_id)?;
    let accepted = match subject.is_gate_test {
        true => Some("it is evaluated as a bad model, to test gates"),
        false => subject.accepts_unsafe.as_deref(),
    };
    let chosen = checkpoints.chosen_for(reference, CheckpointUse::Evaluate, accepted)?;
    checkpoints.note_accepted(context, &chosen, CheckpointUse::Evaluate, accepted)?;
    let candidate = Candidate {
        run: &subject.run,
        manifest_sha256: &chosen.manifest_sha256,
        task_set_sha256: task_set.as_ref().map(|set| set.sha256.as_str()),
        evaluator_name: &evaluator.name,
    };
    let named = asked.section.baseline.as_deref();
    let baseline = named.map(|named| baseline::baseline(context, named, &candidate)).transpose()?.flatten();
    let baseline_evaluation_id = baseline.map(|row| row.evaluation_id);
    let evaluation_id = EvaluationId::new(&context.ids).to_string();
    let mut start = Start::without_data(context, job);
    start.for_run_id = Some(subject.run.run_id);
    start.place = subject.place.clone();
    let prepared = begin(context, &start, LaunchKind::Evaluate, &NotesOnly(reporter))?;
    let case = Case {
        context,
        subject,
        checkpoints,
        chosen,
        prepared,
        evaluation_id,
        task_set,
        baseline_evaluation_id,
    };
    let row = case.begun(&evaluator)?;
    context.ledger_write(|ledger| ledger.begin_evaluation(&row))?;
    reporter.note(case.announcement(&row.evaluator_name));
    let mut launches = Launches::default();
    let ended = case.conduct(row.clone(), &mut launches, reporter);
    if ended.is_err() && context.request.cancel.is_detached() {
        // The evaluator continues without this process; the next command finds it.
        return ended.and_then(|end| receipt::of(context, &end.evaluation));
    }
    let row = launches.noted(row);
    let (end, error) = match ended {
        Ok(end) => (end, None),
        Err(error) => (collect::failed(context, row, &error.to_string()), Some(error)),
    };
    // The receipt comes last: until it is there, the next command does all of this again.
    close::rest_launches(context, case.prepared.run.run_id)?;
    case.release_checkpoint(reporter);
    let stored = context.end_evaluation(&end)?;
    match error {
        Some(error) => Err(error),
        None => receipt::of(context, &stored),
    }
}

impl Launches {
    fn noted(&self, row: EvaluationRow) -> EvaluationRow {
        let launch_attempt_id = self.last.as_ref().map(|last| last.attempt_id);
        EvaluationRow { launch_count: self.count, launch_attempt_id, ..row }
    }
}

impl Case<'_> {
    fn section(&self) -> &EvaluateSection {
        &self.subject.asked.section
    }

    fn announcement(&self, evaluator_name: &str) -> String {
        let test_set = self.subject.asked.test_set.as_ref();
        format!(
            "evaluating step {} of `{}`{} with `{evaluator_name}` ({})",
            self.chosen.step,
            self.subject.run.name,
            test_set.map(|name| format!(" on test set `{name}`")).unwrap_or_default(),
            self.evaluation_id
        )
    }

    /// The row of an evaluation that begins: everything that is known before the evaluator runs.
    fn begun(&self, evaluator: &Evaluator) -> Result<EvaluationRow, AppError> {
        let (section, job) = (self.section(), &self.subject.asked.job);
        let stored = &self.prepared.job.stored_plan;
        let spec = json!({
            "command": stored.run.command,
            "files": evaluator.files,
            "scorer": stored.evaluate.as_ref().and_then(|section| section.scorer.as_ref()),
            "task_set": section.tasks(),
            "task_table": self.subject.asked.task_table(),
            "label": section.label,
            "positive": section.positive,
            "prediction": section.prediction,
            "score": section.score,
            "group": section.group,
            "missing": section.missing,
            "unmatched_tasks": section.unmatched_tasks,
            "slices": section.slices,
            "metric": section.metric,
            "recall": section.recall,
            "support_min": section.support_min,
            "width_max": section.width_max,
            "margin": section.margin,
            "costs": section.costs,
            "blind_spots": section.blind_spots,
            "probe_rows": section.probe_rows,
            "test_sets": section.test_sets,
            "fairness": section.fairness,
            "baseline": section.baseline,
            "gates": section.gates,
            "timeout_seconds": section.timeout_seconds,
            "run_file": job.run_file,
        });
        let capture = &self.prepared.capture;
        let judge = section.judge.as_ref();
        let begun = EvaluationRow::begun(
            self.evaluation_id.clone(),
            self.subject.run.run_id,
            self.chosen.manifest_sha256.clone(),
            self.context.clock.now(),
        );
        Ok(EvaluationRow {
            attempt_id: Some(self.chosen.attempt_id),
            evaluator_name: evaluator.name.clone(),
            evaluator_digest: evaluator.digest.clone(),
            task_set_version: self.task_set.as_ref().and_then(|set| set.version.clone()),
            task_set_sha256: self.task_set.as_ref().map(|set| set.sha256.clone()),
            judge_model: judge.map(|judge| judge.model.clone()),
            judge_rubric: self.subject.asked.rubric(),
            decoding_json: (!section.decoding.is_empty()).then(|| json!(section.decoding)),
            step: Some(self.chosen.step),
            launch_run_id: Some(self.prepared.run.run_id),
            seed: self.prepared.job.plan.run.seed,
            environment_lock_sha256: capture.environment_lock.sha256.clone(),
            container_digest: capture.container.digest.clone(),
            spec_json: Some(spec),
            baseline_evaluation_id: self.baseline_evaluation_id.clone(),
            test_set: self.subject.asked.test_set.clone(),
            origin: if self.subject.is_gate_test { GATE_TEST_ORIGIN.into() } else { begun.origin.clone() },
            ..begun
        })
    }

    /// Launches, reads and evaluates.
    fn conduct(
        &self,
        row: EvaluationRow,
        launches: &mut Launches,
        reporter: &dyn Reporter,
    ) -> Result<EvaluationEnd, AppError> {
        let launched = launches.run(self, reporter)?;
        let row = launches.noted(row);
        match launched {
            EvaluatorEnd::Failed(why) => Ok(collect::failed(self.context, row, &why)),
            EvaluatorEnd::Answered(folder) => {
                let searching = |level, done, total| reporter.searching(level, done, total);
                collect::collected(self.context, row, &folder, &searching)
            }
        }
    }

    /// An empty folder for one launch.
    fn out_folder(&self, number: u32) -> Result<PathBuf, AppError> {
        let folder = self.context.home.layout.evaluation(&self.evaluation_id).launch(number);
        std::fs::create_dir_all(&folder).map_err(|error| AppError::file("make", &folder, error))?;
        Ok(folder)
    }

    fn hold(&self, seconds: f64) -> Result<(), AppError> {
        self.checkpoints.hold(&self.evaluation_id, &self.chosen, "an evaluation reads it", seconds)
    }

    /// The checkpoint's files, every byte of them read; fetched if they are only at the remote.
    fn verified_folder(&self, reporter: &dyn Reporter) -> Result<PathBuf, AppError> {
        let far = self.context.home.layout.evaluation(&self.evaluation_id).checkpoint();
        if self.chosen.is_far() && !far.exists() {
            let text = format!("step {} is only at the remote, and is brought here", self.chosen.step);
            reporter.note(text);
        }
        self.checkpoints.verified_folder(&self.chosen, &far, &|done, total| reporter.fetching(done, total))
    }

    /// The checkpoint in the folder under the names with which the script wrote it.
    fn as_written(&self, checkpoint: &Path) -> Result<PathBuf, AppError> {
        linked(checkpoint, &self.context.home.layout.evaluation(&self.evaluation_id).as_written())
    }

    /// Whether the evaluator left the checkpoint as it was.
    fn check_unchanged(&self) -> Result<(), AppError> {
        let far = self.context.home.layout.evaluation(&self.evaluation_id).checkpoint();
        self.checkpoints.check_unchanged(&self.chosen, &far)
    }

    /// A pin that cannot be taken away ends by itself.
    fn release_checkpoint(&self, reporter: &dyn Reporter) {
        if let Err(error) = close::release(self.context, &self.checkpoints, &self.evaluation_id) {
            let text = format!("the pin `{}` stays until it expires: {error}", self.evaluation_id);
            reporter.note(text);
        }
    }

    /// What the evaluator finds in its environment (`docs/evaluations.md`).
    fn environment(&self, checkpoint: &Path, as_written: &Path, out: &Path) -> BTreeMap<String, OsString> {
        let mut environment =
            evaluator_variables(&self.subject.asked, &self.chosen, checkpoint, as_written, out);
        environment.insert(Variable::Evaluation.as_str().into(), self.evaluation_id.clone().into());
        environment
    }
}
