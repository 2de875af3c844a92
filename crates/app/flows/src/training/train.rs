//! A training run from pre-flight to the evaluation of its result.

use std::collections::BTreeMap;

use trackway_api::runs::preflight::{PreflightReport, Skipped};
use trackway_api::runs::{RunOutcome, RunReport};
use trackway_core::{Clock as _, LaunchKind, RunId};
use trackway_engine::Context;
use trackway_engine::capture::Capture;
use trackway_engine::checkpoints::mirror_run;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::notify::Notifier;
use trackway_engine::reporter::{Reporter, Unheard};
use trackway_engine::run::queue::{Admission, admit};
use trackway_engine::run::{
    HeldPlace, Injection, Prepared, Recheck, RunSource, Start, begin, capture_surroundings, drive,
    is_resumed, outcome, read_again, read_not_given, refuse_first, refuse_resume, remote, reopen,
};
use trackway_engine::stored::stored_plan;
use trackway_formats::EventKind;
use trackway_formats::group::RunGroup;
use trackway_formats::queue::QueueName;
use trackway_formats::runfile::PlanPatch;
use trackway_ledger::{EventRow, RunState};

use crate::checkpoints;
use crate::evaluation::evaluate::{self, EvaluationSubject};
use crate::training::next_step::next_of;
use crate::training::preflight::{
    OFFER, PreflightEvent, PreflightReporter, Selection, Verdict, check, record, recorded,
};
use crate::training::start::read_start;

/// A training run, as `trackway run` requests it.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The run file or the command.
    pub source: RunSource,
    /// A fault to rehearse in the first attempt.
    pub injection: Option<Injection>,
    /// Launch although the last attempt on the same data and config ended in a data error.
    pub retry_data_error: bool,
    /// Which checks are made before the launch.
    pub selection: Selection,
    /// The queue in which it waits for its place before anything of it runs.
    pub queue: Option<QueueName>,
    /// The group of runs that it belongs to.
    pub group: Option<RunGroup>,
}

/// Runs a job to its end, over as many attempts as its budgets allow.
///
/// # Errors
/// [`trackway_engine::error::ErrorKind::Usage`] and `Blocked` before anything is launched. A fault while supervising
/// leaves the attempt running; the next command reattaches to it.
pub fn run(
    context: &Context,
    request: RunRequest,
    reporter: &dyn PreflightReporter,
) -> Result<RunReport, AppError> {
    let mut start = match read_start(context, &request.source, request.retry_data_error, reporter) {
        Err(error) if error.kind == ErrorKind::Blocked => return refused(context, &request, error, reporter),
        read => read?,
    };
    start.job.queue.clone_from(&request.queue);
    start.job.group.clone_from(&request.group);
    evaluate::check_before_launch(context, &start.job)?;
    let (selection, injection) = (&request.selection, request.injection);
    if request.queue.is_some() {
        let prepared = begun(context, &start, selection, reporter)?;
        // A run that is resumed while it waits must not be checked then.
        report_unchecked(context, prepared.run.run_id, selection)?;
        return run_in_queue(context, (&start, prepared), (selection, injection), reporter);
    }
    let report = check_before_launch(context, (&start, &start.capture), selection, reporter)?;
    let prepared = begun(context, &start, selection, reporter)?;
    launch_checked(context, prepared, report, (selection, injection), reporter)
}

/// The report of a run whose launcher does not give what it requests: it is recorded as blocked, with the check that says so.
/// Any other refusal is an error, and so is that of one of several runs: each of them would be refused.
fn refused(
    context: &Context,
    request: &RunRequest,
    error: AppError,
    reporter: &dyn PreflightReporter,
) -> Result<RunReport, AppError> {
    let is_alone = matches!(request.source, RunSource::File { .. }) && request.group.is_none();
    let Some(start) = is_alone.then(|| read_not_given(context, &request.source)).transpose()?.flatten()
    else {
        return Err(error);
    };
    let skip = request.selection.skip.clone();
    let selection = Selection { only: vec![OFFER.to_owned()], skip, ..Selection::default() };
    let checked = check(context, (&start.job, &start.capture, None), &selection, reporter);
    // The launcher was looked at again, and may have more by now; and a set of data that is not there is found once it gives all.
    let Some(report) = checked.ok().filter(|report| report.verdict == Verdict::Block) else {
        return Err(error);
    };
    reporter.preflight(&PreflightEvent::Judged(&report));
    let prepared = begun(context, &start, &selection, reporter)?;
    launch_checked(context, prepared, Some(report), (&selection, None), reporter)
}

/// The run of a start, which this process supervises from now on.
fn begun(
    context: &Context,
    start: &Start,
    selection: &Selection,
    reporter: &dyn Reporter,
) -> Result<Prepared, AppError> {
    let prepared = rechecked(begin(context, start, LaunchKind::Train, reporter)?, selection);
    if let Some(group) = &start.job.group {
        report_group(context, prepared.run.run_id, group)?;
    }
    Ok(prepared)
}

/// The run is known while it waits, and nothing of it runs before it has its place: neither a rehearsal nor an attempt.
fn run_in_queue(
    context: &Context,
    (start, mut prepared): (&Start, Prepared),
    (selection, injection): (&Selection, Option<Injection>),
    reporter: &dyn PreflightReporter,
) -> Result<RunReport, AppError> {
    let run_id = prepared.run.run_id;
    match admit(context, &prepared, reporter)? {
        Admission::Left => return Ok(RunReport::of(outcome(context, run_id)?)),
        // The code may be another one by now, and the receipt names what runs.
        Admission::AfterWait => prepared.capture = capture_surroundings(context, &prepared.job),
        Admission::AtOnce => {}
    }
    let looked_at = (start, &prepared.capture);
    let report = check_before_launch(context, looked_at, selection, reporter)
        .map_err(|error| with_resume(run_id, error));
    // A resume that is refused leaves the run as it was, without a record of these checks: the next one checks it again.
    let report = if is_resumed(&prepared.run) {
        let report = report.and_then(|report| unless_blocked(run_id, report));
        report.map_err(|error| refuse_resume(context, &prepared.run, error))?
    } else {
        report.map_err(|error| refuse_first(context, run_id, error))?
    };
    launch_checked(context, prepared, report, (selection, injection), reporter)
}

/// The error of a launch from a queue, with how the run waits again once what refused it is repaired, or has passed.
fn with_resume(run_id: RunId, error: AppError) -> AppError {
    let when = if error.kind.is_passing() { "to try again" } else { "when that is repaired" };
    match error.hints.iter().any(|hint| hint.contains("trackway resume")) {
        true => error,
        false => error.hint(format!("{when}: trackway resume {run_id}")),
    }
}

/// A report of pre-flight, unless that blocks the launch.
fn unless_blocked(
    run_id: RunId,
    report: Option<PreflightReport>,
) -> Result<Option<PreflightReport>, AppError> {
    match report {
        Some(blocks) if blocks.verdict == Verdict::Block && !blocks.stopped => {
            Err(blocked(run_id, &blocking_messages(&blocks)))
        }
        report => Ok(report),
    }
}

/// What the checks found that block a launch.
fn blocking_messages(report: &PreflightReport) -> String {
    let findings =
        report.checks.iter().filter(|check| report.blocks(check)).flat_map(|check| &check.findings);
    let found: Vec<&str> = findings.map(|finding| finding.message.as_str()).collect();
    found.join("; ")
}

/// The error of a resume that pre-flight blocks.
fn blocked(run_id: RunId, found: &str) -> AppError {
    let message = format!("not launched: pre-flight blocks it: {found}");
    let hint = format!("see all of it with `trackway preflight`; repair it, then: trackway resume {run_id}");
    AppError::new(ErrorKind::Blocked, message).hint(hint)
}

/// Launches a run unless what was checked forbids it.
fn launch_checked(
    context: &Context,
    prepared: Prepared,
    report: Option<PreflightReport>,
    (selection, injection): (&Selection, Option<Injection>),
    reporter: &dyn Reporter,
) -> Result<RunReport, AppError> {
    let run_id = prepared.run.run_id;
    let Some(report) = report else {
        report_unchecked(context, run_id, selection)?;
        return train(context, prepared, injection, reporter);
    };
    record(context, run_id, &report)?;
    let state = match report.verdict {
        _ if report.stopped => RunState::Stopped,
        Verdict::Block => RunState::Blocked,
        _ => {
            let done = train(context, prepared, injection, reporter)?;
            return Ok(RunReport { preflight: Some(report), ..done });
        }
    };
    report_not_launched(context, run_id, state, &report)?;
    Ok(RunReport { preflight: Some(report), ..RunReport::of(outcome(context, run_id)?) })
}

/// A command without a run file names neither data nor settings: there is nothing to check.
fn check_before_launch(
    context: &Context,
    (start, capture): (&Start, &Capture),
    selection: &Selection,
    reporter: &dyn PreflightReporter,
) -> Result<Option<PreflightReport>, AppError> {
    if start.job.run_file.is_none() || selection.skip_all.is_some() {
        return Ok(None);
    }
    let report = check(context, (&start.job, capture, Some(start)), selection, reporter)?;
    reporter.preflight(&PreflightEvent::Judged(&report));
    Ok(Some(report))
}

/// The receipt records that nothing was checked, and on whose request.
fn report_unchecked(context: &Context, run_id: RunId, selection: &Selection) -> Result<(), AppError> {
    let Some(why) = &selection.skip_all else { return Ok(()) };
    let message = format!("launched without pre-flight: {why}");
    // It was reported already where the run had to wait.
    match is_unchecked(context, run_id)? {
        true => record_run_event(context, run_id, EventKind::PreflightSkipped, message),
        false => Ok(()),
    }
}

/// Whether nothing of a run was checked before its launch, and nothing says that this was requested.
fn is_unchecked(context: &Context, run_id: RunId) -> Result<bool, AppError> {
    let events = context.ledger_read(|ledger| ledger.events_of_run(run_id))?;
    let is_skipped = events.iter().any(|event| EventKind::PreflightSkipped.is(&event.kind));
    Ok(!is_skipped && recorded(context, run_id)?.is_empty())
}

/// The receipt records which runs belong together.
fn report_group(context: &Context, run_id: RunId, group: &RunGroup) -> Result<(), AppError> {
    let RunGroup { name, member, size, .. } = group;
    let message =
        format!("member {member} of {size} of the {} of `{name}`", group.kind.as_str().replace('_', "-"));
    let at = context.clock.now();
    let event = EventRow {
        fields_json: Some(serde_json::json!(group)),
        ..EventRow::of_run(run_id, EventKind::Grouped, at, message)
    };
    context.append_run_event(&event)
}

fn report_not_launched(
    context: &Context,
    run_id: RunId,
    state: RunState,
    report: &PreflightReport,
) -> Result<(), AppError> {
    let (kind, text) = match state {
        RunState::Blocked => (
            EventKind::PreflightBlocked,
            format!("not launched because of {}", report.blocked_by().join(", ")),
        ),
        _ => (EventKind::PreflightStopped, "stopped before the launch".to_owned()),
    };
    record_run_event(context, run_id, kind, text)?;
    context.set_run_state(run_id, state)
}

fn record_run_event(
    context: &Context,
    run_id: RunId,
    kind: EventKind,
    message: String,
) -> Result<(), AppError> {
    let event = EventRow::of_run(run_id, kind, context.clock.now(), message);
    context.append_run_event(&event)
}

/// Resumes a run whose supervisor is gone: attaches to its live attempt, or continues with what was decided. For one
/// that completed, what is not at its remote yet is sent there. `accepts_unsafe`: why it continues from the newest
/// checkpoint although that is unsafe; `None`: it does not.
///
/// # Errors
/// [`trackway_engine::error::ErrorKind::NotFound`]; `Usage` when another supervisor has it or it is at its end.
pub fn resume(
    context: &Context,
    run: RunId,
    accepts_unsafe: Option<&str>,
    reporter: &dyn PreflightReporter,
) -> Result<RunReport, AppError> {
    let row = context.run_by_id(run)?;
    if row.state == RunState::Completed
        && let Some(remote) = remote::settle_remote(context, &row, reporter)?
    {
        mirror_run(context, &row, &BTreeMap::new())?;
        let outcome = RunOutcome { remote: Some(remote), ..outcome(context, row.run_id)? };
        return Ok(RunReport::of(outcome));
    }
    if let Some(why) = accepts_unsafe {
        let found = checkpoints::checkpoints(context, run)?;
        let step = found.clear_unsafe(context, None, why)?;
        found.mirror(context)?;
        reporter.note(format!("the checkpoint of step {step} is not unsafe any more: {why}"));
    }
    let mut prepared = rechecked(reopen(context, &row, reporter)?, &Selection::default());
    if prepared.job.queue.is_some() && context.attempts_of(run)?.is_empty() && is_unchecked(context, run)? {
        // It ended while it waited, before its pre-flight.
        let mut start = read_again(context, &row, reporter)
            .map_err(|error| refuse_resume(context, &prepared.run, with_resume(run, error)))?;
        start.place = prepared.place.clone();
        return run_in_queue(context, (&start, prepared), (&Selection::default(), None), reporter);
    }
    if let Some(opened) = prepared.opened.clone() {
        reporter.note(format!("run `{}` was blocked; {}", row.name, opened.sentence));
        check_again(context, &prepared, &Selection::default(), &opened.sentence, reporter)?;
        prepared.checked_data_sha256 = opened.data_sha256;
    }
    train(context, prepared, None, reporter)
}

/// The same run, whose attempts pass pre-flight again before they are launched on other data.
fn rechecked(mut prepared: Prepared, selection: &Selection) -> Prepared {
    let selection = selection.clone();
    let recheck: Recheck = Box::new(move |context, prepared, why, reporter| {
        check_again(context, prepared, &selection, why, reporter)
    });
    prepared.recheck = Some(recheck);
    prepared
}

/// Pre-flight of a run that continues on something else than it began with; nothing is rehearsed.
fn check_again(
    context: &Context,
    prepared: &Prepared,
    selection: &Selection,
    why: &str,
    reporter: &dyn Reporter,
) -> Result<(), AppError> {
    let run_id = prepared.run.run_id;
    if prepared.job.run_file.is_none() || selection.skip_all.is_some() {
        return Ok(());
    }
    // A rehearsal is for the first launch. What is free now is less by what the run wrote, and the launcher compares
    // the rest at the launch.
    let mut selection = selection.clone();
    let continues = "the run continues: nothing is rehearsed or compared with its launcher again";
    let left_out = ["rehearsal", OFFER].map(|check| Skipped { check: check.into(), why: continues.into() });
    selection.left_out.extend(left_out);
    let report = check(context, (&prepared.job, &prepared.capture, None), &selection, &Unheard)?;
    let message = format!("pre-flight again: {}; {why}", report.verdict);
    let found = blocking_messages(&report);
    let fields = serde_json::json!({ "contract_sha256": prepared.contract_sha256(), "found": found });
    let at = context.clock.now();
    let event = EventRow {
        // It may be repeated more than once.
        event_id: format!("{run_id}:{}:{}", EventKind::PreflightRepeated, at.as_micros()),
        fields_json: Some(fields),
        ..EventRow::of_run(run_id, EventKind::PreflightRepeated, at, message.clone())
    };
    context.append_run_event(&event)?;
    reporter.note(message);
    if report.verdict == Verdict::Block { Err(blocked(run_id, &found)) } else { Ok(()) }
}

/// Takes a run to its end, evaluates its result, says what comes next, and sends the notifications that are wanted.
fn train(
    context: &Context,
    prepared: Prepared,
    injection: Option<Injection>,
    reporter: &dyn Reporter,
) -> Result<RunReport, AppError> {
    let notifier = Notifier::start(context, &prepared, reporter);
    // The evaluation has the place too.
    let place = prepared.place.clone();
    let done = drive(context, prepared, injection, &notifier)
        .and_then(|outcome| finished(context, outcome, place, &notifier));
    notifier.finish(context, done.as_ref().ok());
    done
}

/// The report of a run that was driven: its evaluation, and the step after it.
fn finished(
    context: &Context,
    outcome: RunOutcome,
    place: HeldPlace,
    reporter: &dyn Reporter,
) -> Result<RunReport, AppError> {
    // It is advice: a run that has ended does not fail without it.
    let next = next_of(context, &outcome).ok().flatten();
    Ok(RunReport { next, ..evaluate_after(context, outcome, place, reporter)? })
}

/// Evaluates the last commit of a completed run, if its run file requests it.
fn evaluate_after(
    context: &Context,
    outcome: RunOutcome,
    place: HeldPlace,
    reporter: &dyn Reporter,
) -> Result<RunReport, AppError> {
    if outcome.state != RunState::Completed || context.request.cancel.stop_requests() > 0 {
        return Ok(RunReport::of(outcome));
    }
    let run = context.run_by_id(outcome.run_id)?;
    let section = stored_plan(&run)?.and_then(|plan| plan.evaluate);
    if !section.is_some_and(|section| section.after) {
        return Ok(RunReport::of(outcome));
    }
    let why = match checkpoints::checkpoints(context, run.run_id)?.standing_here() {
        Ok(standing) if standing.newest_is_unsafe && standing.safe_step.is_none() => {
            Some("every checkpoint of it is unsafe")
        }
        // Without any checkpoint there may be no log of them.
        _ if run.last_committed_step.is_none() => Some("it committed no checkpoint"),
        Err(error) => return Err(error),
        Ok(_) => None,
    };
    if let Some(why) = why {
        reporter.note(format!("nothing of run `{}` is evaluated: {why}", run.name));
        return Ok(RunReport::of(outcome));
    }
    let subject = EvaluationSubject::Run(run.run_id);
    let subject = evaluate::Subject::find(context, &subject, &PlanPatch::default(), reporter)?;
    let subject = evaluate::Subject { place, ..subject };
    let receipt = evaluate::evaluate_on(context, subject, None, &[], reporter)?;
    let gates = receipt.gates.clone();
    Ok(RunReport { gates, evaluation: Some(receipt), ..RunReport::of(outcome) })
}
