//! Launches the evaluator, and again where it failed and its budget allows it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::json;
use trackway_adopt::link_as_written;
use trackway_core::TerminationReason;
use trackway_engine::error::AppError;
use trackway_engine::reporter::{Notice, Progress, Reporter, Stream};
use trackway_engine::run::seal::SealedAttempt;
use trackway_engine::run::{Rehearsal, rehearse};
use trackway_formats::Variable;
use trackway_ledger::{AttemptRow, Decision};

use super::Case;
use super::subject::EvaluationRequest;
use crate::checkpoints::{Chosen, ReadOnly};

/// How much longer than its launch a checkpoint is held, for what comes after.
const HOLD_SLACK_SECONDS: f64 = 900.0;

/// How launching ended.
pub enum EvaluatorEnd {
    /// The evaluator ended well; its output is here.
    Answered(PathBuf),
    /// It did not, for this reason.
    Failed(String),
}

/// The launches of one evaluation.
#[derive(Debug, Default)]
pub struct Launches {
    /// How many there were.
    pub count: u32,
    /// The last one.
    pub last: Option<AttemptRow>,
}

impl Launches {
    /// Launches until the evaluator answers or is given up.
    ///
    /// # Errors
    /// The errors of holding, launching and sealing.
    pub fn run(&mut self, case: &Case<'_>, reporter: &dyn Reporter) -> Result<EvaluatorEnd, AppError> {
        let listening = Listening(reporter);
        loop {
            // Each launch has an empty folder: what a crashed one left is not part of a result.
            let out = case.out_folder(self.count + 1)?;
            case.hold(case.section().timeout_seconds + HOLD_SLACK_SECONDS)?;
            let folder = case.verified_folder(reporter)?;
            let as_written = case.as_written(&folder)?;
            let read_only = ReadOnly::of(&folder);
            let rehearsal = Rehearsal {
                environment: case.environment(&folder, &as_written, &out),
                timeout_seconds: Some(case.section().timeout_seconds),
                ..Rehearsal::default()
            };
            let sealed = rehearse(case.context, &case.prepared, self.last.as_ref(), &rehearsal, &listening)?;
            drop(read_only);
            self.count += 1;
            self.last = Some(sealed.row.clone());
            case.check_unchanged()?;
            if sealed.row.termination_reason.is_some_and(TerminationReason::is_success) {
                return Ok(EvaluatorEnd::Answered(out));
            }
            if !self.again(case, &sealed, &listening) {
                return Ok(EvaluatorEnd::Failed(why_failed(&sealed)));
            }
        }
    }

    /// Waits for another launch; false when there is none.
    fn again(&self, case: &Case<'_>, sealed: &SealedAttempt, reporter: &dyn Reporter) -> bool {
        let decision = &sealed.decision;
        let launches = decision.decision != Decision::Stop;
        reporter.notice(&Notice::Decided {
            rule: decision.rule.clone(),
            why: decision.why.clone(),
            delay_seconds: decision.delay_seconds.filter(|_| launches),
        });
        let asked = case.context.home.layout.run(case.prepared.run.run_id).stop();
        launches && case.context.wait(decision.delay_seconds.unwrap_or(0.0), || asked.exists())
    }
}

fn why_failed(sealed: &SealedAttempt) -> String {
    let reason = sealed.row.termination_reason.unwrap_or(TerminationReason::Unknown);
    let id = sealed.row.attempt_id;
    format!(
        "the evaluator ended as `{reason}` ({}; `trackway logs {id}`); {}",
        sealed.evidence, sealed.decision.why
    )
}

/// The evaluator's output and its failures; that it was launched is not reported.
struct Listening<'a>(&'a dyn Reporter);

impl Reporter for Listening<'_> {
    fn notice(&self, notice: &Notice) {
        let news = match notice {
            Notice::Note { .. }
            | Notice::Warning { .. }
            | Notice::Progress(_)
            | Notice::Detected { .. }
            | Notice::Decided { .. } => true,
            Notice::AttemptEnded { reason, .. } => reason != TerminationReason::Completed.as_str(),
            Notice::RunStarted { .. } | Notice::AttemptStarted { .. } | Notice::Queued(_) => false,
        };
        if news {
            self.0.notice(notice);
        }
    }

    fn output(&self, stream: Stream, bytes: &[u8]) {
        self.0.output(stream, bytes);
    }

    fn progress(&self, progress: &Progress) {
        self.0.progress(progress);
    }

    fn reading_data(&self, done_bytes: u64, total_bytes: u64) {
        self.0.reading_data(done_bytes, total_bytes);
    }
}

/// The checkpoint in the folder `checkpoint` under the names with which the script wrote it, as links below `links`.
pub fn linked(checkpoint: &Path, links: &Path) -> Result<PathBuf, AppError> {
    link_as_written(checkpoint, links)
        .map_err(|error| AppError::fault(format!("link the files of {}", checkpoint.display()), error))
}

/// What an evaluator finds in its environment, but for the id of the evaluation.
pub fn evaluator_variables(
    asked: &EvaluationRequest,
    chosen: &Chosen,
    checkpoint: &Path,
    as_written: &Path,
    out: &Path,
) -> BTreeMap<String, OsString> {
    let section = &asked.section;
    let judge = section.judge.as_ref();
    let path = |path: &Path| Some(path.as_os_str().to_owned());
    let text = |text: &str| Some(OsString::from(text));
    let tasks = section.task_set.as_ref().map(|path| asked.job.base.join(path));
    let decoding = (!section.decoding.is_empty()).then(|| json!(section.decoding).to_string().into());
    let pairs = [
        (Variable::EvaluationOut, path(out)),
        (Variable::CheckpointDir, path(checkpoint)),
        (Variable::CheckpointPath, path(as_written)),
        (Variable::CheckpointStep, text(&chosen.step.to_string())),
        (Variable::CheckpointManifestSha256, text(&chosen.manifest_sha256)),
        (Variable::TaskSet, tasks.as_deref().and_then(path)),
        (Variable::Decoding, decoding),
        (Variable::JudgeModel, judge.and_then(|judge| text(&judge.model))),
        (Variable::JudgeRubric, judge.and_then(|judge| text(judge.rubric.as_ref()?))),
    ];
    pairs.into_iter().filter_map(|(name, value)| Some((name.as_str().to_owned(), value?))).collect()
}
