//! With `warm_start`, a rung begins with the weights that the rung before committed last.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use trackway_core::{AttemptId, Step};
use trackway_formats::Variable;
use trackway_ledger::{AttemptRow, RunRow, RunState};

use super::Ladder;
use crate::Context;
use crate::checkpoints::view;
use crate::error::{AppError, ErrorKind};
use crate::rows::rung_of;

/// Names the root whose newest checkpoint the script takes its weights from.
pub(crate) const WARM_START_VARIABLE: &str = Variable::WarmStart.as_str();

/// The checkpoint that a rung begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WarmStart {
    /// The rung it is of.
    pub rung: String,
    /// Its root.
    pub root: PathBuf,
    /// Its step, in that rung.
    pub step: Step,
    /// The SHA-256 of its manifest.
    pub manifest_sha256: Option<String>,
}

impl WarmStart {
    /// What an attempt begins with that does not resume from its rung; every byte of it is read. `None`: from nothing,
    /// according to the run file or because it is the first rung.
    ///
    /// # Errors
    /// [`ErrorKind::Integrity`] when the rung before committed nothing, or nothing of it verifies: a rung never begins
    /// from nothing silently. The run fails then.
    pub(crate) fn find(context: &Context, run: &RunRow, row: &AttemptRow) -> Result<Option<Self>, AppError> {
        let Some(before) = Ladder::of(run)?.warm_start_of(rung_of(row)) else { return Ok(None) };
        let root = context.home.layout.checkpoint_root(run.run_id, run.kind, &before.to_string());
        let why = match view(&root)?.resume_target() {
            Ok(Some(loaded)) => {
                return Ok(Some(Self {
                    rung: before.to_string(),
                    root,
                    step: loaded.step,
                    manifest_sha256: loaded.info.manifest_sha256,
                }));
            }
            Ok(None) => format!("`{}` holds no committed checkpoint", root.display()),
            Err(error) => error.to_string(),
        };
        context.set_run_state(run.run_id, RunState::Failed)?;
        let message = format!(
            "not launched: `ladder.warm_start` starts {} with the weights of {before}, but {why}",
            row.rung
        );
        Err(AppError::new(ErrorKind::Integrity, message)
            .hint("save a checkpoint at the end of a rung, or remove `warm_start`"))
    }

    pub(crate) fn write(&self, context: &Context, attempt_id: AttemptId) -> Result<(), AppError> {
        let path = context.home.layout.attempt(attempt_id).warm_start_json();
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| AppError::fault("the warm start cannot be written as JSON", &error))?;
        std::fs::write(&path, text).map_err(|error| AppError::file("write", &path, &error))
    }

    /// The contents of the file in an attempt's folder; `None`: it began from nothing, or from a checkpoint of its
    /// rung.
    pub(crate) fn read(context: &Context, attempt_id: AttemptId) -> Option<Self> {
        let path = context.home.layout.attempt(attempt_id).warm_start_json();
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }

    pub(crate) fn sentence(&self) -> String {
        format!("begins with the weights of step {} of {}", self.step, self.rung)
    }
}
