use std::time::Duration;

use trackway_api::checkpoints::{CheckpointRequested, RequestOutcome};
use trackway_core::{Clock as _, RunId};
use trackway_engine::Context;
use trackway_engine::control;
use trackway_engine::error::AppError;
use trackway_engine::run::live_record::LiveRecord;
use trackway_formats::SaveReason;
use trackway_formats::control::Command;
use trackway_formats::record::ControlOutcome;

/// How long `checkpoint now` waits for the training process to answer.
const ANSWER_SECONDS_MAX: f64 = 30.0;
const ANSWER_LOOK_EVERY: Duration = Duration::from_millis(100);

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
) -> Result<CheckpointRequested, AppError> {
    let attempt = context.live_attempt(run)?;
    let files = context.home.layout.attempt(attempt.attempt_id);
    let channel = context.channel_of(&attempt)?;
    let request_id = control::request(&*channel, Command::CheckpointNow(reason), why, context.clock.now())
        .map_err(|error| AppError::file("write the control file in", files.folder(), error))?;
    let mut record = LiveRecord::of(channel);
    let deadline = context.clock.monotonic_micros() + (ANSWER_SECONDS_MAX * 1e6) as i64;
    loop {
        record.look();
        let answers = &record.facts.acknowledged;
        let answer = answers
            .iter()
            .rev()
            .find(|(id, outcome)| *id == request_id && *outcome != ControlOutcome::Accepted);
        let late = context.clock.monotonic_micros() >= deadline;
        if answer.is_some() || late {
            let outcome = answer.map_or(RequestOutcome::NoAnswer, |(_, outcome)| outcome_of(*outcome));
            let step = record.facts.last_committed_step;
            return Ok(CheckpointRequested { attempt_id: attempt.attempt_id, request_id, outcome, step });
        }
        context.clock.sleep(ANSWER_LOOK_EVERY);
    }
}

fn outcome_of(outcome: ControlOutcome) -> RequestOutcome {
    match outcome {
        ControlOutcome::Done => RequestOutcome::Done,
        ControlOutcome::Refused => RequestOutcome::Refused,
        ControlOutcome::UnknownCommand => RequestOutcome::UnknownCommand,
        ControlOutcome::Accepted | ControlOutcome::Other(_) => RequestOutcome::Unknown,
    }
}
