//! Requests to stop a run.

use trackway_api::runs::{StopMethod, StopRequested};
use trackway_core::{Clock as _, RunId};
use trackway_formats::control::Command;
use trackway_formats::layout::AttemptLayout;
use trackway_launch::StopMode;
use trackway_ledger::{RunRow, RunState};

use crate::Context;
use crate::attempt::actions::{self, ActionKind, OwnAction};
use crate::attempt::control;
use crate::error::AppError;
use crate::json_file::read_if_sound;
use crate::run::locks::supervision::SupervisionClaim;
use crate::run::{self, StoredJob, queue};

/// Requests the end of the live attempt of a run: through the control file and SIGTERM, or at once. A second request is
/// at once too.
///
/// # Errors
/// [`crate::error::ErrorKind::NotFound`] when no attempt lives; when the attempt cannot be reached.
pub fn stop(context: &Context, run: RunId, kill: bool, why: &str) -> Result<StopRequested, AppError> {
    let waiting = context.run_by_id(run)?;
    if waiting.state == RunState::Waiting {
        return stop_waiting(context, &waiting);
    }
    let attempt = context.live_attempt(run)?;
    let files = context.home.layout.attempt(attempt.attempt_id);
    let placement = context.placement_of_launched(&attempt)?;
    let kill = kill || was_asked_before(&files)?;
    let action = OwnAction {
        kind: ActionKind::StopRequested,
        at: context.clock.now(),
        kill_sent: kill,
        why: context.redactor.text(why).into_owned(),
    };
    // Before the signal: an attempt that ends by it must not count as one that failed.
    actions::append(&files, &action).map_err(|error| AppError::file("write in", files.folder(), error))?;
    let mode = if kill {
        StopMode::Kill
    } else {
        control::request(&*context.channel_of(&attempt)?, Command::Stop, &action.why, action.at)
            .map_err(|error| AppError::file("write the control file in", files.folder(), error))?;
        StopMode::Graceful { grace_seconds: grace_seconds(context, attempt.run_id) }
    };
    context
        .launchers
        .of(&placement)?
        .stop(&placement, mode)
        .map_err(|error| AppError::fault("the stop", error))?;
    Ok(StopRequested {
        run_id: attempt.run_id,
        attempt_id: Some(attempt.attempt_id),
        mode: if kill { StopMethod::Kill } else { StopMethod::Graceful },
    })
}

/// Between two attempts nothing lives: a file informs the supervisor, or, without one, the run is stopped here.
fn stop_waiting(context: &Context, run: &RunRow) -> Result<StopRequested, AppError> {
    let path = context.home.layout.run(run.run_id).stop();
    // Before the look for a supervisor: one that comes in between reads it.
    std::fs::write(&path, b"").map_err(|error| AppError::file("write", &path, error))?;
    if let SupervisionClaim::Mine(_supervision) = run::try_supervise(context, run.run_id)? {
        let events = context.ledger_read(|ledger| ledger.events_of_run(run.run_id))?;
        if let Some((queue, _)) = queue::joined(&events) {
            queue::record_left(context, run.run_id, &queue)?;
        }
        context.set_run_state(run.run_id, RunState::Stopped)?;
        // Left there, it would stop the run again when it is resumed.
        let _ = trackway_files::unlink(&path);
    }
    let last = context.last_attempt_of(run.run_id)?;
    let attempt_id = last.map(|attempt| attempt.attempt_id);
    Ok(StopRequested { run_id: run.run_id, attempt_id, mode: StopMethod::BeforeNextAttempt })
}

fn grace_seconds(context: &Context, run_id: RunId) -> f64 {
    let stored: Option<StoredJob> = read_if_sound(&context.home.layout.run(run_id).plan_json());
    stored.map_or(trackway_formats::runfile::DEFAULT_GRACE_SECONDS, |job| job.plan.supervise.grace_seconds)
}

/// Whether Trackway sent a stop to the attempt already. The shim takes a second one for a kill, so it is called that and sent as one.
fn was_asked_before(files: &AttemptLayout) -> Result<bool, AppError> {
    actions::read(files).map(|before| !before.is_empty())
}
