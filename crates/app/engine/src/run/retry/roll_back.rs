//! Going back to an earlier checkpoint (`docs/detectors.md`). A request is in the attempt's folder before the attempt
//! is ended; the decision that follows the end names place and range; before the next launch both are carried out: the
//! checkpoints that are left are marked, and a row of `roll_backs` holds what every later attempt skips.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use trackway_checkpoint::{CheckpointState, Housekeeper};
use trackway_core::{BatchRange, Clock as _, LaunchKind, RunId, SkippedBatches, Step};
use trackway_formats::EventKind;
use trackway_formats::layout::RowCopy;
use trackway_ledger::{AttemptRow, EventRow, KeptRows, RollBackRow, RunRow};
use trackway_rules::checkpoints::roll_back::{
    Back, MARGIN_BATCHES, MARGIN_STEPS, Trouble, after_trouble, as_asked,
};
use trackway_rules::decide::{self, DecisionRule};

use super::changes::{AskedBy, Changes, FaultRange, RollBackCause, RollBackDecided};
use crate::Context;
use crate::checkpoints::view;
use crate::error::{AppError, ErrorKind};
use crate::ledger::rows::rung_of;
use crate::ledger::stored::stored_plan;
use crate::reporter::Reporter;
use crate::run::remote::{Patience, RemotePlan};

/// A requested rollback, as far as the request can be read, and what the decision needs of it.
pub type Due = (Option<RollBackCause>, decide::RollBack);

/// What the decision after an attempt needs; none if no rollback was requested. A damaged request or log gives no place
/// to go back to: it must not keep the receipt from being sealed.
pub fn due(context: &Context, row: &AttemptRow) -> Result<Option<Due>, AppError> {
    let asked = match RollBackCause::read(&context.home.layout.attempt(row.attempt_id)) {
        Ok(None) => return Ok(None),
        Ok(Some(asked)) => asked,
        Err(error) => {
            let why = "cannot read the roll back request".into();
            let back = Err(error.to_string());
            return Ok(Some((None, decide::RollBack { by_person: false, spent: 0, why, back })));
        }
    };
    let run = context.run_by_id(row.run_id)?;
    let back = place(context, &run, row, &asked.by).unwrap_or_else(|error| Err(error.to_string()));
    let before = rows(context, row.run_id)?;
    let spent = before.iter().filter(|row| row.detector.is_some()).count() as u32;
    let facts = decide::RollBack { by_person: asked.is_by_person(), spent, why: asked.why.clone(), back };
    Ok(Some((Some(asked), facts)))
}

/// Where a request leads from an attempt, or why nowhere.
pub fn place(
    context: &Context,
    run: &RunRow,
    left: &AttemptRow,
    by: &AskedBy,
) -> Result<Result<Back, String>, AppError> {
    match by {
        AskedBy::Person { to_step, skip, .. } => {
            let skipped = skipped(context, run.run_id, &left.rung)?;
            Ok(as_asked(*to_step, *skip, &resumable(context, left)?, &skipped))
        }
        AskedBy::Detector { seen, .. } => place_before(context, run, left, seen, MARGIN_STEPS),
    }
}

/// The place before what was seen in an attempt, as far from it as the run file says, else by `margin_steps`; or why there is none.
pub fn place_before(
    context: &Context,
    run: &RunRow,
    left: &AttemptRow,
    seen: &FaultRange,
    margin_steps: u64,
) -> Result<Result<Back, String>, AppError> {
    let mut before = rows(context, run.run_id)?;
    before.retain(|row| row.rung == left.rung);
    let section = stored_plan(run)?.map(|plan| plan.detect).unwrap_or_default();
    let trouble = Trouble {
        first_step: seen.first_step,
        step: seen.step,
        first_batch: seen.first_batch,
        last_batch: seen.last_batch,
        margin_steps: section.roll_back_steps.unwrap_or(margin_steps),
        margin_batches: section.skip_batches.unwrap_or(MARGIN_BATCHES),
    };
    let last = before.last().map(|row| row.to_step);
    Ok(after_trouble(&trouble, &resumable(context, left)?, &skipped_by(&before)?, last))
}

/// Steps of the checkpoints that a resume could take. One whose bytes are only at the remote is among them.
fn resumable(context: &Context, left: &AttemptRow) -> Result<Vec<Step>, AppError> {
    let root = context.home.layout.checkpoint_root(left.run_id, left.kind, &left.rung);
    let infos = view(&root)?.list();
    let only_there = |state: CheckpointState, uploaded: bool| state == CheckpointState::Retired && uploaded;
    Ok(infos
        .iter()
        .filter(|info| {
            let there = only_there(info.state, info.uploaded_to.is_some()) && info.why.is_none();
            info.on_branch || there
        })
        .map(|info| info.step)
        .collect())
}

/// The roll backs of a run, oldest first.
pub fn rows(context: &Context, run_id: RunId) -> Result<Vec<RollBackRow>, AppError> {
    context.ledger_read(|ledger| ledger.roll_backs_of_run(run_id))
}

/// What every attempt of a rung of a run skips from now on.
pub fn skipped(context: &Context, run_id: RunId, rung: &str) -> Result<SkippedBatches, AppError> {
    let mut of_rung = rows(context, run_id)?;
    of_rung.retain(|row| row.rung == rung);
    skipped_by(&of_rung)
}

fn skipped_by(rows: &[RollBackRow]) -> Result<SkippedBatches, AppError> {
    let mut skipped = SkippedBatches::default();
    for row in rows {
        let (Some(first), Some(end)) = (row.skip_first_batch, row.skip_end_batch) else { continue };
        if !skipped.add(BatchRange { first, end }) {
            let message = "too many ranges of skipped batches to pass to the script";
            return Err(AppError::new(ErrorKind::Blocked, message)
                .hint("start a new run on data without these batches"));
        }
    }
    Ok(skipped)
}

/// Carries out the rollback that was decided on after `previous`, unless that is done. Nothing may be launched when it
/// fails: the attempt would continue from what was to be left.
pub fn carry_out(
    context: &Context,
    run: &RunRow,
    previous: &AttemptRow,
    reporter: &dyn Reporter,
) -> Result<(), AppError> {
    if run.kind != LaunchKind::Train {
        return Ok(());
    }
    let decision = context.ledger_read(|ledger| ledger.retries_after(&[previous.attempt_id]))?.pop();
    let changes = decision.as_ref().map(Changes::of).transpose()?;
    let Some(decided) = changes.and_then(|changes| changes.roll_back) else { return Ok(()) };
    let id = format!("{}:decided", previous.attempt_id);
    if rows(context, run.run_id)?.iter().any(|row| row.roll_back_id == id) {
        return Ok(());
    }
    reporter.note(go_back(context, run, previous, id, &decided)?);
    Ok(())
}

/// Marks what is left, then records that the run went back. Returns the message.
pub fn go_back(
    context: &Context,
    run: &RunRow,
    left: &AttemptRow,
    roll_back_id: String,
    decided: &RollBackDecided,
) -> Result<String, AppError> {
    let RollBackDecided { asked, back } = decided;
    let summary = sentence(back);
    let root = context.home.layout.checkpoint_root(run.run_id, run.kind, &left.rung);
    let fault = |error| AppError::fault("the checkpoints that are left could not be marked", error);
    let mut house =
        Housekeeper::open(&root, Arc::clone(&context.clock), Arc::clone(&context.ids)).map_err(fault)?;
    let mut left_steps = Vec::new();
    if let Some(step) = back.to_step {
        let why = format!("{summary}: {}", asked.why);
        // The remote first, whose log decides: if it does not answer, nothing is marked and nothing launched.
        if let Some(remote) = RemotePlan::of_run(context, run, rung_of(left))? {
            let there = remote.open(Patience::Long, &Arc::new(AtomicBool::new(false)));
            left_steps = there.and_then(|mut there| there.leave_after(step, &why)).map_err(fault)?;
        }
        left_steps.extend(house.leave_after(step, &why).map_err(fault)?);
        // Both logs may have the same step.
        left_steps.sort_unstable();
        left_steps.dedup();
    }
    let listed = left_steps.iter().map(Step::to_string).collect::<Vec<_>>().join(",");
    let (detector, first_step, person) = match &asked.by {
        AskedBy::Detector { detector, seen } => (Some(*detector), Some(seen.first_step), None),
        AskedBy::Person { name, .. } => (None, None, name.clone()),
    };
    let row = RollBackRow {
        roll_back_id: roll_back_id.clone(),
        run_id: run.run_id,
        attempt_id: left.attempt_id,
        rung: left.rung.clone(),
        at: context.clock.now(),
        detector,
        person,
        first_step,
        from_step: left.last_step,
        to_step: back.to_step,
        skip_first_batch: back.skip.map(|range| range.first),
        skip_end_batch: back.skip.map(|range| range.end),
        left_steps: Some(listed.clone()).filter(|listed| !listed.is_empty()),
        why: asked.why.clone(),
    };
    // After the marks: without the row they are set once more, and with it none is missing.
    context.ledger_write(|ledger| ledger.insert_roll_back(&row))?;
    context.keep(row.run_id, RowCopy::RollBack(row.attempt_id), &KeptRows::of([&row]));
    let beside =
        if listed.is_empty() { String::new() } else { format!("; no longer resumed from: {listed}") };
    let text = format!("{summary}{beside}: {}", asked.why);
    // The row is what counts; the event makes the story of the run whole.
    let event = EventRow {
        event_id: format!("{}:{}", row.roll_back_id, EventKind::RolledBack),
        step: row.to_step,
        ..EventRow::of_attempt(left, EventKind::RolledBack, row.at, text.clone())
    };
    let _ = context.ledger_write(|ledger| ledger.append_event(&event));
    Ok(text)
}

/// `rolled back to step 400; skips the batches 449..503`
pub fn sentence(back: &Back) -> String {
    let to = back.to_step.map_or("the beginning".into(), |step| format!("step {step}"));
    let skip = back.skip.map(|range| format!("; skips the batches {range}")).unwrap_or_default();
    format!("rolled back to {to}{skip}")
}

/// The same of a row.
pub fn of_row(row: &RollBackRow) -> String {
    let range = row.skip_first_batch.zip(row.skip_end_batch);
    sentence(&Back { to_step: row.to_step, skip: range.map(|(first, end)| BatchRange { first, end }) })
}

/// What a decision to go back changes; the other decisions change nothing of this kind.
pub fn decided(rule: DecisionRule, due: Option<Due>) -> Option<RollBackDecided> {
    let (asked, facts) = due.filter(|_| rule.is_roll_back())?;
    Some(RollBackDecided { asked: asked?, back: facts.back.ok()? })
}
