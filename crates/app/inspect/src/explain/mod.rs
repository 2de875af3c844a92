//! Explains an attempt from its receipt: gathers the rows, compares, and arranges. Nothing is decided here again.

mod attempts;
mod cards;
mod evidence;
mod machine;
pub mod next;
mod no_checkpoint;
mod ranks;
mod reading;
mod same_inputs;
mod save_requests;
mod short;
mod signs;
mod suspects;
mod termination;
mod timeline;
mod unended;
mod unlaunched;
mod warnings;
mod way_back;

use std::path::Path;
use std::sync::Arc;

use trackway_api::checkpoints::CheckpointState;
use trackway_api::runs::detections::Detection;
use trackway_api::runs::explain::{AttemptSummary, Explanation};
use trackway_core::AttemptId;
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::rows::rung_of;
use trackway_engine::run::remote::read_status;
use trackway_flows::checkpoints::{self, Checkpoints};
use trackway_flows::data::ReadNote;
use trackway_flows::registry;
use trackway_flows::training::cadence::cadence_advice;
use trackway_launch::shim::steps_are;
use trackway_launch::{AttemptChannel, FolderChannel};
use trackway_ledger::{AttemptRow, AttemptState, RunOrAttempt, RunRow};

use self::attempts::{attempt_line, parent_diffs};
pub use self::cards::running_seconds;
use self::cards::{
    artifacts, attempt_card, cost, last_lines, placement, proof_card, retry_line, run_card, tags,
};
use self::evidence::{PageEvidence, Rows, no_checkpoint_why};
use self::machine::machine_card;
use self::short::ShortFacts;
use self::signs::with_evidence;
pub(crate) use self::termination::termination;
use self::unended::Unended;
use self::unlaunched::page_without_attempt;
use crate::curves::curves_of;
use crate::logs::{LogSelection, visit_lines};
use crate::progressive;

/// Explains an attempt, or the last attempt of a run.
///
/// # Errors
/// [`ErrorKind::NotFound`]; when the ledger cannot be read.
pub fn explain(context: &Context, subject: RunOrAttempt) -> Result<Explanation, AppError> {
    let (run, attempt) = match subject {
        RunOrAttempt::Attempt(attempt) => (context.run_by_id(attempt.run_id)?, *attempt),
        RunOrAttempt::Run(run) => match context.attempts_of_kind(run.run_id, run.kind)?.pop() {
            Some(attempt) => (*run, attempt),
            None => {
                return page_without_attempt(context, &run)
                    .map(|page| short::with_short(page, &ShortFacts::default()));
            }
        },
    };
    page(context, &run, &attempt)
}

/// The same with the curves of the run, for a page.
///
/// # Errors
/// As [`explain`].
pub fn explain_with_curves(context: &Context, subject: RunOrAttempt) -> Result<Explanation, AppError> {
    let mut page = explain(context, subject)?;
    if let Some(attempt) = &page.attempt {
        page.curves = curves_of(context, page.run.run_id, &attempt.rung)?;
    }
    Ok(page)
}

/// The page of an attempt.
fn page(context: &Context, run: &RunRow, attempt: &AttemptRow) -> Result<Explanation, AppError> {
    let of_run = checkpoints::checkpoints_at(context, run.clone(), rung_of(attempt))?;
    let evidence = PageEvidence::gather(context, run, attempt, &of_run)?;
    arranged(context, (run, attempt), &of_run, evidence)
}

/// The page of what was gathered.
fn arranged(
    context: &Context,
    (run, attempt): (&RunRow, &AttemptRow),
    of_run: &Checkpoints,
    evidence: PageEvidence,
) -> Result<Explanation, AppError> {
    let PageEvidence { rows, standing, waiting, since_last_good, data, preflight, parameters, facts } =
        evidence;
    let Rows { attempts, retries, events, summaries, detections, diagnoses, evaluations } = rows;
    let checkpoints = of_run.of_this_disk()?;
    let mut diffs = parent_diffs(context, run, &attempts)?;
    let line = |row: &AttemptRow| attempt_line(row, &attempts, &diffs, (&standing, &events));
    let lines: Vec<AttemptSummary> = attempts.iter().map(line).collect();
    let (machine, metrics) = machine_card(&summaries);
    let estimate = progressive::progressive_of(context, run, attempt, &summaries)?;
    let evident = |found: Detection| match found.attempt_id == attempt.attempt_id {
        true => with_evidence(found, &facts.signs, |need| next::is_there(need, &facts)),
        false => found,
    };
    let highest = attempts.iter().flat_map(|it| [it.last_step, it.last_committed_step]).flatten().max();
    let steps = steps_are(&context.home.layout.run(run.run_id), highest);
    let newest = checkpoints.iter().find(|line| line.state == CheckpointState::Committed);
    let run_cost = context.ledger_read(|ledger| ledger.run_cost(run.run_id))?;
    let running = (run, running_seconds(context, attempt));
    let page = Explanation {
        run: run_card(context, run, waiting)?,
        short: Vec::new(),
        since_last_good,
        attempt: Some(attempt_card(context, attempt)?),
        parent_diff: diffs.remove(&attempt.attempt_id),
        data,
        preflight,
        progressive: progressive::card(estimate, &detections, attempt, &attempts),
        detections: detections.into_iter().map(evident).collect(),
        placement: Some(placement(attempt)),
        timeline: timeline::timeline(&attempts, &events, &retries, steps),
        termination: termination(attempt),
        health: facts.health.clone(),
        resume_step: newest.map(|line| line.step),
        standing,
        no_checkpoint_why: no_checkpoint_why(context, attempt, &checkpoints, &events)?,
        save_requests: save_requests::save_requests(attempt.attempt_id, &events),
        reading: reading::reading(attempt, &events),
        checkpoints,
        remote: read_status(&context.home.layout.run(run.run_id)),
        fall_back: of_run.fall_back_of(attempt)?,
        resume_proof: proof_card(context, run, attempt)?,
        cadence: cadence_advice(context, run, attempt, &attempts, &of_run.uploads()?)?,
        retries: retries.iter().map(|retry| retry_line(retry, &attempts)).collect(),
        versions: registry::versions_of_run(context, run.run_id)?,
        same_inputs: same_inputs::same_inputs(context, run, attempt, &summaries)?,
        metrics,
        curves: Vec::new(),
        machine,
        parameters,
        tags: tags(context, run.run_id, attempt.attempt_id)?,
        artifacts: artifacts(context, attempt.attempt_id)?,
        cost: cost(running, attempt, (&attempts, &lines), run_cost),
        last_lines: last_lines(context, attempt),
        next_actions: next::next(&facts),
        evaluations,
        diagnoses,
        attempts: lines,
        rungs: context.rungs_of(run.run_id)?,
    };
    let unended = facts.unended.as_ref().map(Unended::sentence);
    Ok(short::with_short(page, &ShortFacts { warnings: &facts.warnings, steps, unended }))
}

/// What was left out between the script of an attempt and its log and record; none before that is known, at its end.
///
/// # Errors
/// When the ledger cannot be read.
pub fn reading_of(context: &Context, attempt: AttemptId) -> Result<Option<Vec<ReadNote>>, AppError> {
    let row = context.ledger_read(|ledger| ledger.attempt(attempt))?;
    let Some(row) = row.filter(|row| row.state == AttemptState::Sealed) else { return Ok(None) };
    let events = context.ledger_read(|ledger| ledger.events_of_attempt(attempt))?;
    Ok(Some(reading::reading(&row, &events)))
}

/// Calls `visit` for each selected line of an attempt. How many bytes of the selected streams are before the first one.
///
/// # Errors
/// [`ErrorKind::NotFound`]; when a log cannot be read.
pub fn visit_logs(
    context: &Context,
    attempt: AttemptId,
    selection: LogSelection,
    visit: &mut dyn FnMut(crate::logs::LogLine) -> std::io::Result<()>,
) -> Result<u64, AppError> {
    let files = context.home.layout.attempt(attempt);
    let folder = files.folder();
    let row = context.ledger_read(|ledger| ledger.attempt(attempt))?;
    if !folder.is_dir() {
        return Err(without_files(row.as_ref(), folder));
    }
    let channel: Arc<dyn AttemptChannel> = match &row {
        Some(row) => context.channel_of(row)?,
        None => Arc::new(FolderChannel::new(folder)),
    };
    visit_lines(&*channel, selection, visit)
        .map_err(|error| AppError::file("read the logs in", folder, error))
}

/// A ledger may serve many homes: the files of an attempt are in the one that launched it.
fn without_files(row: Option<&AttemptRow>, folder: &Path) -> AppError {
    let elsewhere = row.filter(|row| Path::new(&row.log_directory) != folder);
    let message = match elsewhere {
        Some(row) => {
            let host = row.hosts.as_deref().unwrap_or("another machine");
            format!("the files of this attempt are in another home: `{}` on {host}", row.log_directory)
        }
        None => format!("the files of this attempt are gone: there is no `{}`", folder.display()),
    };
    AppError::new(ErrorKind::NotFound, message)
}
