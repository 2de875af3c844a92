//! A run's checkpoints, read from their own log: the ledger mirrors it, the log wins.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use trackway_checkpoint::{CheckpointInfo, CheckpointView, State};
use trackway_core::{AttemptId, Clock as _, LaunchKind, RunId, Step};
use trackway_recorder::SaveReason;

use crate::control::{self, Request};
use crate::error::{AppError, ErrorKind};
use crate::run::live_record::LiveRecord;
use crate::{App, FULL_STAGE};

/// How long `checkpoint now` waits for the training process to answer.
const ANSWER_SECONDS_MAX: f64 = 30.0;
const ANSWER_LOOK_EVERY: Duration = Duration::from_millis(100);

/// One checkpoint. Field names are the JSON contract of `trackway checkpoint ls`.
#[derive(Debug, Clone, Serialize)]
pub struct CheckpointEntry {
    /// The run.
    pub run_id: RunId,
    /// The attempt that wrote it.
    pub attempt_id: AttemptId,
    /// The step whose end it holds.
    pub step: Step,
    /// The epoch of its writer.
    pub epoch: u64,
    /// Where its files are, below the run's checkpoint root.
    pub object_prefix: String,
    /// SHA-256 of its manifest, once committed.
    pub manifest_sha256: Option<String>,
    /// `writing`, `committed`, `superseded`, `suspect`, `abandoned` or `retired`.
    pub state: String,
    /// Where its bytes are: `local`.
    #[serde(rename = "where")]
    pub location: String,
    /// Bytes of its files.
    pub size_bytes: Option<u64>,
    /// Whether every byte matched when it was read just now; none when it was not read.
    pub verified: Option<bool>,
    /// When it was committed, or begun.
    pub at: String,
    /// Why it is suspect.
    pub why: Option<String>,
}

impl CheckpointEntry {
    pub(crate) fn from_info(info: CheckpointInfo) -> Self {
        Self {
            run_id: info.run_id,
            attempt_id: info.attempt_id,
            step: info.step,
            epoch: info.epoch,
            object_prefix: info.object_prefix,
            manifest_sha256: info.manifest_sha256,
            state: info.state.as_str().into(),
            location: "local".into(),
            size_bytes: info.size_bytes,
            verified: None,
            at: info.at,
            why: info.why,
        }
    }
}

/// The answer to `trackway checkpoint now`.
#[derive(Debug, Clone, Serialize)]
pub struct CheckpointAsked {
    /// The live attempt.
    pub attempt_id: AttemptId,
    /// The request's number in the control file.
    pub request_id: u64,
    /// `done`, `refused` …, or `no_answer` when the script did not answer in time.
    pub outcome: String,
    /// The last committed step the script reported.
    pub step: Option<Step>,
}

/// What the log of a run's checkpoint root says; empty when nothing was ever begun.
///
/// # Errors
/// When the log cannot be read.
pub fn view(root: &Path) -> Result<CheckpointView, AppError> {
    CheckpointView::open(root).map_err(|error| AppError::fault("the checkpoints could not be read", &error))
}

impl App {
    /// The checkpoints of a run, newest first; with `verify`, every byte of the committed ones is read.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], or when the log cannot be read. Damage is no error but `verified: false`.
    pub fn checkpoints(&self, run: &str, verify: bool) -> Result<Vec<CheckpointEntry>, AppError> {
        let view = self.checkpoint_view(run)?;
        let mut entries: Vec<CheckpointEntry> = view
            .list()
            .into_iter()
            .map(|info| {
                let readable = matches!(info.state, State::Committed | State::Superseded | State::Suspect);
                let checked = (verify && readable).then(|| view.verify(info.number));
                let mut entry = CheckpointEntry::from_info(info);
                entry.verified = checked.as_ref().map(Result::is_ok);
                if let Some(Err(error)) = checked {
                    entry.why = Some(error.to_string());
                }
                entry
            })
            .collect();
        entries.reverse();
        Ok(entries)
    }

    /// The checkpoint a resume would take, verified, and why newer ones were passed over.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when nothing was committed, [`ErrorKind::Integrity`] when nothing verifies.
    pub fn resume_target(&self, run: &str) -> Result<(Option<CheckpointEntry>, Vec<String>), AppError> {
        let view = self.checkpoint_view(run)?;
        let target = view
            .resume_target()
            .map_err(|error| AppError::new(ErrorKind::Integrity, error.to_string()))?
            .ok_or_else(|| {
                AppError::new(ErrorKind::NotFound, format!("run `{run}` has no committed checkpoint"))
            })?;
        let fallbacks = target
            .fallbacks
            .iter()
            .map(|fallback| match fallback.step {
                Some(step) => format!("step {step} was passed over: {}", fallback.why),
                None => format!("a checkpoint was passed over: {}", fallback.why),
            })
            .collect();
        let mut entry = CheckpointEntry::from_info(target.info);
        entry.verified = Some(true);
        Ok((Some(entry), fallbacks))
    }

    fn checkpoint_view(&self, run: &str) -> Result<CheckpointView, AppError> {
        let run_id = self.find_run(run)?.run_id;
        view(&self.home.checkpoint_root(run_id, LaunchKind::Train, FULL_STAGE))
    }

    /// Asks the live attempt of a run for a checkpoint, and waits for its answer.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when the run has no live attempt; when the control file cannot be written.
    pub fn checkpoint_now(&self, run: &str) -> Result<CheckpointAsked, AppError> {
        let attempt = self.live_attempt(run)?;
        let folder = self.home.attempt_folder(attempt.attempt_id);
        let why = "asked for with `trackway checkpoint now`";
        let request_id =
            control::request(&folder, Request::CheckpointNow(SaveReason::Asked), why, self.clock.now())
                .map_err(|error| AppError::file("write the control file in", &folder, &error))?;
        let mut record = LiveRecord::below(&folder.join(crate::home::attempt_file::RECORDS));
        let deadline = self.clock.monotonic_micros() + (ANSWER_SECONDS_MAX * 1e6) as i64;
        loop {
            record.look();
            let answers = &record.facts.acknowledged;
            let answer =
                answers.iter().rev().find(|(id, outcome)| *id == request_id && outcome != "accepted");
            let late = self.clock.monotonic_micros() >= deadline;
            if answer.is_some() || late {
                let outcome = answer.map_or_else(|| "no_answer".into(), |(_, outcome)| outcome.clone());
                let step = record.facts.last_committed_step;
                return Ok(CheckpointAsked { attempt_id: attempt.attempt_id, request_id, outcome, step });
            }
            std::thread::sleep(ANSWER_LOOK_EVERY);
        }
    }
}
