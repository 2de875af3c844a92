//! What an attempt that resumes from nothing begins with: with `ladder.warm_start` the weights that the rung before committed
//! last, with `run.start_from` those of another run.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use trackway_core::{AttemptId, CheckpointUse, RunId, Step};
use trackway_formats::Variable;
use trackway_ledger::{AttemptRow, RunRow};

use super::Ladder;
use crate::Context;
use crate::checkpoints::view;
use crate::error::{AppError, ErrorKind};
use crate::good_runs::unfit_because;
use crate::json_file;
use crate::ledger::rows::rung_of;

/// Names the root whose newest checkpoint the script takes its weights from.
pub(crate) const WARM_START_VARIABLE: &str = Variable::WarmStart.as_str();

/// The checkpoint that a rung begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmStart {
    /// The run it is of, if that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    pub rung: String,
    pub root: PathBuf,
    /// Its number in the log there; none: the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Its step, in that rung.
    pub step: Step,
    /// The SHA-256 of its manifest.
    pub manifest_sha256: Option<String>,
}

impl WarmStart {
    /// What an attempt begins with that does not resume from its rung; every byte of it is read. `None`: from nothing,
    /// according to the run file.
    ///
    /// # Errors
    /// [`ErrorKind::Integrity`] when the rung before committed nothing, or nothing of it verifies, or the other run's checkpoint is
    /// gone: an attempt never begins from nothing silently. The run fails then.
    pub(crate) fn find(context: &Context, run: &RunRow, row: &AttemptRow) -> Result<Option<Self>, AppError> {
        let Some(before) = Ladder::of(run)?.warm_start_of(rung_of(row)) else {
            return Self::of_another_run(context, run);
        };
        let root = context.home.layout.checkpoint_root(run.run_id, run.kind, &before.to_string());
        let view = view(&root)?;
        let target = view.resume_target();
        let unfit = match &target {
            Ok(Some(loaded)) => unfit_because(context, run.run_id, &loaded.info, CheckpointUse::Start)?,
            _ => None,
        };
        let why = match target {
            Ok(Some(loaded)) if unfit.is_none() => {
                return Ok(Some(Self {
                    run_id: None,
                    number: None,
                    rung: before.to_string(),
                    root,
                    step: loaded.step,
                    manifest_sha256: loaded.info.manifest_sha256,
                }));
            }
            Ok(Some(_)) => unfit.as_ref().map(|unfit| unfit.why.clone()).unwrap_or_default(),
            Ok(None) if !view.skipped().is_empty() => {
                format!("every checkpoint in `{}` is unsafe", root.display())
            }
            Ok(None) => format!("`{}` holds no committed checkpoint", root.display()),
            Err(error) => error.to_string(),
        };
        let message = format!(
            "not launched: `ladder.warm_start` starts {} with the weights of {before}, but {why}",
            row.rung
        );
        let mut error = AppError::new(ErrorKind::Integrity, message)
            .hint("save a checkpoint at the end of a rung, or remove `warm_start`");
        error.hints.extend(unfit.into_iter().flat_map(|unfit| unfit.otherwise));
        Err(context.fail_run(run.run_id, error))
    }

    /// The checkpoint of another run that was chosen when the run began.
    fn of_another_run(context: &Context, run: &RunRow) -> Result<Option<Self>, AppError> {
        let Some(chosen) = Self::kept_for(context, run.run_id)? else { return Ok(None) };
        let view = view(&chosen.root)?;
        let loaded = chosen.number.map_or_else(|| view.resume_target(), |number| view.load(number).map(Some));
        let of_run = chosen.run_id.unwrap_or(run.run_id);
        let unfit = match &loaded {
            Ok(Some(loaded)) => unfit_because(context, of_run, &loaded.info, CheckpointUse::Start)?,
            _ => None,
        };
        let why = match loaded {
            Ok(Some(_)) => match &unfit {
                Some(unfit) => format!("by now {}", unfit.why),
                None => return Ok(Some(chosen)),
            },
            Ok(None) => "it holds no committed checkpoint".to_owned(),
            Err(error) => error.to_string(),
        };
        let message = format!(
            "not launched: `run.start_from` names step {} of `{}`, but {why}",
            chosen.step,
            chosen.root.display()
        );
        let mut error = AppError::new(ErrorKind::Integrity, message)
            .hint("start a new run from a checkpoint that is there");
        error.hints.extend(unfit.into_iter().flat_map(|unfit| unfit.otherwise));
        Err(context.fail_run(run.run_id, error))
    }

    /// What was kept for the launches of a run.
    pub(crate) fn kept_for(context: &Context, run_id: RunId) -> Result<Option<Self>, AppError> {
        json_file::read_if_there(&context.home.layout.run(run_id).start_from_json())
    }

    /// Keeps it for the launches of a run that begins.
    pub(crate) fn keep_for(&self, context: &Context, run_id: RunId) -> Result<(), AppError> {
        json_file::write(&context.home.layout.run(run_id).start_from_json(), self)
    }

    pub(crate) fn write(&self, context: &Context, attempt_id: AttemptId) -> Result<(), AppError> {
        json_file::write(&context.home.layout.attempt(attempt_id).warm_start_json(), self)
    }

    /// The contents of the file in an attempt's folder; `None`: it began from nothing, or from a checkpoint of its
    /// rung.
    pub(crate) fn read(context: &Context, attempt_id: AttemptId) -> Option<Self> {
        json_file::read_if_sound(&context.home.layout.attempt(attempt_id).warm_start_json())
    }

    pub(crate) fn sentence(&self) -> String {
        let of = self.run_id.map_or_else(|| self.rung.clone(), |run_id| run_id.to_string());
        format!("begins with the weights of step {} of {of}", self.step)
    }
}
