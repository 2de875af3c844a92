//! `trackway rollback`: a person sends a run back to an earlier checkpoint.

use trackway_api::runs::{RollbackState, RolledBack};
use trackway_core::{BatchRange, Clock as _, LaunchKind, RunId, Step};
use trackway_launch::StopMode;
use trackway_ledger::{AttemptRow, AttemptState, RunRow, RunState};
use trackway_rules::checkpoints::roll_back::Back;

use crate::attempt::actions::{self, ActionKind, OwnAction};
use crate::error::{AppError, ErrorKind};
use crate::run::locks::supervision::SupervisionClaim;
use crate::run::resume::home_copy::refuse_in_a_copy;
pub use crate::run::retry::changes::FaultRange;
use crate::run::retry::changes::{AskedBy, RollBackCause, RollBackDecided};
use crate::run::retry::roll_back::{go_back, place, place_before, rows, sentence, skipped};
use crate::{Context, run};

/// A request of a user.
#[derive(Debug, Clone)]
pub struct RollBackRequest {
    /// At most to this step; none: to the checkpoint before the newest.
    pub to_step: Option<Step>,
    /// Batches to skip from then on, counted from 0 over all passes through the data.
    pub skip: Option<BatchRange>,
    pub why: String,
}

/// How a run whose last attempt diverged can continue from a checkpoint before it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WayBack {
    /// It was rolled back since: a resume continues from this step, or from the beginning.
    Done(Option<Step>),
    /// A rollback to this step is possible.
    To {
        /// The step of the checkpoint.
        step: Step,
        /// The batches to skip, if the script reports its batches.
        skip: Option<BatchRange>,
    },
}

/// How a run can continue from before what was seen in its last attempt: from the newest checkpoint that is safe and
/// from before, unless the run file says how far it must be from it. `None`: no checkpoint is from before.
///
/// # Errors
/// When the ledger or the log of the checkpoints cannot be read.
pub fn way_back(
    context: &Context,
    run: &RunRow,
    last: &AttemptRow,
    seen: &FaultRange,
) -> Result<Option<WayBack>, AppError> {
    let before = rows(context, run.run_id)?;
    if let Some(done) = before.last().filter(|row| row.attempt_id == last.attempt_id) {
        return Ok(Some(WayBack::Done(done.to_step)));
    }
    // A person looks at it first: no step is given up unseen.
    let back = place_before(context, run, last, seen, 0)?.ok();
    // A script that does not report its batches need not skip those that are named.
    let skip = |back: Back| back.skip.filter(|_| seen.first_batch.is_some());
    Ok(back.and_then(|back| Some(WayBack::To { step: back.to_step?, skip: skip(back) })))
}

/// Rolls a run back: ends its live attempt, so that its supervisor continues from the earlier checkpoint, or prepares
/// an ended run for `trackway resume`.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a run without attempts; [`ErrorKind::Usage`] for one that completed or is not a training
/// run, that waits for its next attempt, or that has no earlier checkpoint. Nothing is ended then.
pub fn roll_back(context: &Context, run: RunId, request: &RollBackRequest) -> Result<RolledBack, AppError> {
    let run = context.run_by_id(run)?;
    refuse_in_a_copy(context, &run, "rollback")?;
    let asked = asked_by_person(context, request);
    let last = last_of_training(context, &run)?;
    let back = place(context, &run, &last, &asked.by)?.map_err(|why| {
        AppError::new(ErrorKind::Usage, format!("cannot roll back run `{}`: {why}", run.name))
            .hint(format!("see its checkpoints with: trackway checkpoint ls {}", run.run_id))
    })?;
    let decided = RollBackDecided { asked, back };
    let (state, sentence) = if last.state == AttemptState::Sealed {
        (RollbackState::Done, roll_back_at_rest(context, &run, &last, &decided)?)
    } else {
        end_to_roll_back(context, &last, &decided)?;
        (RollbackState::Asked, sentence(&decided.back))
    };
    let mut all = skipped(context, run.run_id, &last.rung)?;
    if let Some(range) = back.skip {
        all.add(range);
    }
    let skip_batches = all.to_string();
    let (run_id, attempt_id) = (run.run_id, last.attempt_id);
    Ok(RolledBack { run_id, attempt_id, state, to_step: back.to_step, skip_batches, summary: sentence })
}

fn asked_by_person(context: &Context, request: &RollBackRequest) -> RollBackCause {
    let name = context.request.actor.name.clone();
    let by = AskedBy::Person { name, to_step: request.to_step, skip: request.skip };
    RollBackCause { at: context.clock.now(), by, why: context.redactor.text(&request.why).into_owned() }
}

fn last_of_training(context: &Context, run: &RunRow) -> Result<AttemptRow, AppError> {
    let refuse = |why: String| {
        Err(AppError::new(ErrorKind::Usage, format!("cannot roll back run `{}`: {why}", run.name)))
    };
    if run.kind != LaunchKind::Train {
        return refuse(format!(
            "it is of kind `{}`, but only training runs can be rolled back",
            run.kind.as_str()
        ));
    }
    if run.state == RunState::Completed {
        return refuse("it completed".into());
    }
    context
        .last_attempt_of(run.run_id)?
        .ok_or_else(|| AppError::new(ErrorKind::NotFound, format!("run `{}` was never launched", run.name)))
}

/// The request is written down before the attempt is ended: the process that seals it decides by that.
fn end_to_roll_back(context: &Context, last: &AttemptRow, decided: &RollBackDecided) -> Result<(), AppError> {
    let files = context.home.layout.attempt(last.attempt_id);
    let placement = context.placement_of_launched(last)?;
    let failed = |error| AppError::file("write in", files.folder(), error);
    decided.asked.write(&files).map_err(failed)?;
    let why = format!("{}: {}", sentence(&decided.back), decided.asked.why);
    let action = OwnAction { kind: ActionKind::Superseded, at: context.clock.now(), kill_sent: true, why };
    actions::append(&files, &action).map_err(failed)?;
    context
        .launchers
        .of(&placement)?
        .stop(&placement, StopMode::Kill)
        .map_err(|error| AppError::fault("the end of the attempt", error))
}

fn roll_back_at_rest(
    context: &Context,
    run: &RunRow,
    last: &AttemptRow,
    decided: &RollBackDecided,
) -> Result<String, AppError> {
    // No attempt may begin while the checkpoints that it would continue from are marked.
    let _supervision = match run::try_supervise(context, run.run_id)? {
        SupervisionClaim::Mine(supervision) => supervision,
        SupervisionClaim::By(holder) => {
            let message = format!("run `{}` waits for its next attempt under {holder}", run.name);
            return Err(AppError::new(ErrorKind::Usage, message)
                .hint(format!("stop it first: trackway stop {}", run.run_id)));
        }
    };
    // A person may roll back a run at rest more than once.
    let id = format!("{}:{}", last.attempt_id, rows(context, run.run_id)?.len() + 1);
    let sentence = go_back(context, run, last, id, decided)?;
    // What blocked it is what the person answers with this.
    if run.state == RunState::Blocked {
        context.set_run_state(run.run_id, RunState::Stopped)?;
    }
    Ok(sentence)
}
