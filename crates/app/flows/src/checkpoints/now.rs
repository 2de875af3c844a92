use std::time::Duration;

use serde::Serialize;
use trackway_core::{AttemptId, Clock as _, RunId, Step};
use trackway_engine::Context;
use trackway_engine::control;
use trackway_engine::error::AppError;
use trackway_engine::run::live_record::LiveRecord;
use trackway_formats::SaveReason;
use trackway_formats::control::Command;

/// How long `checkpoint now` waits for the training process to answer.
const ANSWER_SECONDS_MAX: f64 = 30.0;
const ANSWER_LOOK_EVERY: Duration = Duration::from_millis(100);

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

/// Requests a checkpoint of the live attempt of a run, and waits for its answer. `reason` is that of a user
/// ([`SaveReason::Asked`]) or of something that watches the run ([`SaveReason::Anomaly`]); `why` describes it.
///
/// # Errors
/// `ErrorKind::NotFound` when the run has no live attempt; when the control file cannot be written.
pub fn checkpoint_now(
    context: &Context,
    run: RunId,
    reason: SaveReason,
    why: &str,
) -> Result<CheckpointAsked, AppError> {
    let attempt = context.live_attempt(run)?;
    let files = context.home.layout.attempt(attempt.attempt_id);
    let channel = context.channel_of(&attempt)?;
    let request_id = control::request(&*channel, Command::CheckpointNow(reason), why, context.clock.now())
        .map_err(|error| AppError::file("write the control file in", files.folder(), &error))?;
    let mut record = LiveRecord::of(channel);
    let deadline = context.clock.monotonic_micros() + (ANSWER_SECONDS_MAX * 1e6) as i64;
    loop {
        record.look();
        let answers = &record.facts.acknowledged;
        let answer = answers.iter().rev().find(|(id, outcome)| *id == request_id && outcome != "accepted");
        let late = context.clock.monotonic_micros() >= deadline;
        if answer.is_some() || late {
            let outcome = answer.map_or_else(|| "no_answer".into(), |(_, outcome)| outcome.clone());
            let step = record.facts.last_committed_step;
            return Ok(CheckpointAsked { attempt_id: attempt.attempt_id, request_id, outcome, step });
        }
        context.clock.sleep(ANSWER_LOOK_EVERY);
    }
}
