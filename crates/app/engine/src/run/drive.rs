//! The loop of a run: launch, supervise, seal, decide, and again until it has ended.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::thread::JoinHandle;

use serde_json::json;
use trackway_core::text::duration;
use trackway_core::{Clock as _, LaunchKind, RunId, Rung, Step};
use trackway_formats::EventKind;
use trackway_formats::runfile::{Plan, PlanEntry, SigtermMeaning};
use trackway_launch::shim::printed_course;
use trackway_launch::{Observation, ObservedAttempt, Terminal, TerminalStreams, input_waits};
use trackway_ledger::{
    AttemptProgress, AttemptRow, AttemptState, Decision, EventRow, RetryRow, RunRow, RunState,
};
use trackway_rules::decide::{DecisionRule, Spent};

use super::detect::{Detecting, DetectionLog};
use super::job::Job;
use super::ladder::Ladder;
use super::launch::adopted;
use super::launch::attempt::{
    Additions, LateCapture, Launched, instance_of, launch_next, listed, live_state, may_be_starting,
    offer_to, queued_seconds,
};
use super::launch::isolated;
use super::locks::supervision::superseded;
use super::prepare::begin::{Prepared, begin_capture, capture_surroundings};
use super::queue::{self, Admission};
use super::record::earlier;
use super::record::live_record::LiveRecord;
use super::record::resume_watch::{Before, Logs, ResumeWatch};
use super::record::stacks;
use super::remote::RemotePlan;
use super::remote::replication::Replication;
use super::retry::changes::{Changes, EntriesTaken};
use super::trust;
use super::watch::inject::Injection;
use super::watch::requeue::Requeue;
use super::watch::sight::PATIENCE_SECONDS;
use super::watch::supervise::{Detection, Ended, Watched, supervise};
use super::watch::watchdog::{Limits, StartLimit};
use crate::Context;
use crate::attempt::actions::{self, ActionKind};
use crate::budgets::spent;
use crate::capture::Capture;
use crate::checkpoints::{mirror_now, mirror_run};
use crate::error::{AppError, ErrorKind};
use crate::ledger::rows::rung_of;
use crate::reporter::{Notice, Reporter};
use crate::run::seal::{self, Sealed};
use crate::run::{self, ladder};
use trackway_api::runs::RunOutcome;

/// What the loop does next.
enum LoopStep {
    /// Launch another attempt with these changes.
    Launch(Box<Changes>),
    /// Watch this one.
    Watch(Box<Launched>),
    /// The run has ended.
    Rest,
}

/// Drives a run until it has ended, or until this supervisor has to detach.
pub fn drive(
    context: &Context,
    prepared: Prepared,
    injection: Option<Injection>,
    reporter: &dyn Reporter,
) -> Result<RunOutcome, AppError> {
    context.become_supervisor();
    let run_id = prepared.run.run_id;
    let mut injection = injection;
    let rung = ladder::rung_now(context, &prepared.run)?;
    let mut sending = Sending::start(prepared.remote.as_ref(), rung);
    let mut detecting = detecting_of(&prepared.job, rung);
    let mut capturing: Option<JoinHandle<Capture>> = None;
    let mut asked_for = true;
    let mut input = Input::Waits;
    let mut next = first_step(context, &prepared, reporter)?;
    let decisions = context.ledger_read(|ledger| ledger.retries_of_run(run_id))?;
    let mut entries = EntriesTaken::of(&decisions)?;
    // The loop lasts as long as the run, and a long one has many of them.
    drop(decisions);
    loop {
        let launched = match next {
            LoopStep::Rest => break,
            LoopStep::Watch(launched) => *launched,
            LoopStep::Launch(changes) => {
                // What it is again where the launcher refuses what a person wants launched.
                let before = asked_for.then(|| context.run_by_id(run_id)).transpose()?;
                // Before the run counts as running: while it is in the line it is shown as waiting.
                let admission = queue::admit(context, &prepared, reporter)?;
                if admission == Admission::Left {
                    break;
                }
                let previous = context.last_attempt_of(run_id)?;
                let rung = rung_after(&prepared, previous.as_ref(), &changes)?;
                sending = sending.at(rung, reporter);
                context.set_run_state(run_id, RunState::Running)?;
                let capture = match admission {
                    // The code may have changed during the wait.
                    Admission::AfterWait => Some(capture_surroundings(context, &prepared.job)),
                    // A thread that panicked gives nothing, and the launch captures then.
                    _ => capturing.take().and_then(|capturing| capturing.join().ok()),
                };
                // Before the additions, which take from it what is in force.
                entries.take(&changes);
                let additions = Additions {
                    capture,
                    terminal: terminal_of(input, reporter),
                    ..additions(&prepared.job.plan, (*changes, &entries), rung, injection.as_ref())
                };
                detecting.runs_on(additions.resources(&prepared.job.plan).gpu.as_deref());
                let offer = offer_to(context, &prepared, &additions)
                    .map_err(|error| not_given(context, run_id, (previous.as_ref(), before), error))?;
                let given = (&additions, &offer);
                let launched = launch_next(context, &prepared, previous.as_ref(), given, asked_for, reporter);
                let launched =
                    launched.map_err(|error| not_launched(context, run_id, previous.as_ref(), error))?;
                input = input_after(input, &launched, reporter);
                launched
            }
        };
        // A person wanted the first launch; the others follow from ends.
        asked_for = false;
        // After the launch, whose environment has it; the next attempt is launched without.
        let asked_fault = injection.take();
        let batch = earlier::before(context, &launched.row)?.effective_batch;
        detecting.begins_again(rung_of(&launched.row), batch);
        let looks = Looks {
            replication: sending.replication.as_ref(),
            detecting: Some(&mut detecting),
            rehearsal: None,
        };
        match watch(context, &prepared, &launched, asked_fault, looks, reporter)? {
            Ended::Attempt => report_unreached(context, &launched, asked_fault, reporter),
            // Not sealed: it still runs, and the next supervisor watches it.
            Ended::Detached => {
                reporter.note(format!(
                    "detached; the attempt keeps running. Reattach with: trackway resume {run_id}"
                ));
                return run::outcome(context, run_id);
            }
            // What cannot be seen may be alive: nothing is sealed and nothing else launched.
            Ended::OutOfSight(why) => return Err(out_of_sight(&launched, &why)),
            // The run belongs to the new supervisor, with all that follows.
            Ended::Superseded(holder) => return Err(superseded(run_id, &holder)),
        }
        let (sealed, begun) = seal_and_capture(context, &prepared.job, &launched)?;
        capturing = begun;
        report_sealed(context, &prepared, &launched, &sealed, reporter)?;
        if sealed.decision.rule.parse().is_ok_and(DecisionRule::is_roll_back) {
            // Their state belongs to the training that is left; one that fired could not fire again.
            detecting = detecting_of(&prepared.job, rung_of(&sealed.row));
        }
        next = after(context, &prepared, &sealed.decision, reporter)?;
    }
    let remote = sending.replication.map(|replication| replication.finish(reporter));
    let outcome = run::outcome(context, run_id)?;
    // After the last upload, so that the rows have what reached the remote.
    mirror_run(context, &context.run_by_id(run_id)?, &BTreeMap::new())?;
    Ok(RunOutcome { remote: remote.or(outcome.remote), ..outcome })
}

/// What is piped into the command, which can be read once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    /// No attempt of this command was given it.
    Waits,
    /// An attempt was.
    Given,
}

/// What is left of the input once an attempt was launched. That it did not reach the script is said, where there is any.
fn input_after(input: Input, launched: &Launched, reporter: &dyn Reporter) -> Input {
    if input == Input::Waits && reporter.terminal().is_piped && launched.terminal.is_none() && input_waits() {
        reporter.note("what is piped into the command does not reach a script that runs elsewhere".into());
    }
    if launched.terminal.is_some() { Input::Given } else { input }
}

/// The terminals of the next attempt, where a person watches the run from a terminal, and what is piped in for the first one.
fn terminal_of(input: Input, reporter: &dyn Reporter) -> Option<Arc<Terminal>> {
    let mut streams = reporter.terminal();
    if streams.is_piped && input == Input::Given {
        reporter.note(
            "this attempt has an empty standard input: what is piped into the command went to the one before"
                .into(),
        );
        streams.is_piped = false;
    }
    if streams == TerminalStreams::default() {
        return None;
    }
    let opened = Terminal::open(streams).map(Arc::new);
    opened.map_err(|error| reporter.note(format!("the script has pipes instead of a terminal: {error}"))).ok()
}

/// A refused launch needs a person: the run does not stay one that runs, and its history has the reason. Returns the
/// reason, or why that cannot be written down.
fn not_launched(
    context: &Context,
    run_id: RunId,
    previous: Option<&AttemptRow>,
    error: AppError,
) -> AppError {
    // Whether the attempt is written down is not known then: the run stays as it is.
    let Ok(last) = context.last_attempt_of(run_id) else { return error };
    let is_written_down = last.map(|last| last.attempt_id) != previous.map(|previous| previous.attempt_id);
    // An attempt that is written down may have begun, and what passes is tried again: the next `trackway resume` finds out.
    if is_written_down || error.kind.is_passing() {
        return error;
    }
    note_refused(context, run_id, &error);
    context.fail_run(run_id, error)
}

/// The launcher does not give what an attempt requests. A run that is resumed stays what it was, and a later resume
/// launches it; otherwise it is as any launch that is refused. `before`: the run where a person wants the launch.
fn not_given(
    context: &Context,
    run_id: RunId,
    (previous, before): (Option<&AttemptRow>, Option<RunRow>),
    error: AppError,
) -> AppError {
    // One that was only planned begins now: its refusal is its end.
    let Some(before) = before.filter(|run| run.state != RunState::Planned) else {
        return not_launched(context, run_id, previous, error);
    };
    if !error.kind.is_passing() {
        note_refused(context, run_id, &error);
    }
    context.put_back(&before).err().unwrap_or(error)
}

/// Writes down that a launch was refused, and what a person does about it.
fn note_refused(context: &Context, run_id: RunId, error: &AppError) {
    let (at, kind) = (context.clock.now(), EventKind::LaunchRefused);
    let event = EventRow {
        // It may be refused more than once.
        event_id: format!("{run_id}:{kind}:{}", at.as_micros()),
        fields_json: Some(json!({ "next": error.hints.join("; ") })),
        ..EventRow::of_run(run_id, kind, at, error.message.clone())
    };
    // The state of the run counts more than its history.
    if context.ledger_write_now(|ledger| ledger.append_event(&event)).is_ok() {
        context.keep_event(&event);
    }
}

/// Reports what the attempt resumed from and left, and how it ended.
fn report_sealed(
    context: &Context,
    prepared: &Prepared,
    launched: &Launched,
    sealed: &Sealed,
    reporter: &dyn Reporter,
) -> Result<(), AppError> {
    let events = context.ledger_read(|ledger| ledger.events_of_attempt(sealed.row.attempt_id))?;
    if !launched.resume_reported.get() {
        report_other_resume(&launched.row, &sealed.row, &events, reporter);
    }
    adopted::report(&prepared.job.plan.checkpoint, &events, reporter);
    report_end(sealed, reporter);
    Ok(())
}

/// Seals. What a launch that may follow at once starts from is captured meanwhile; after a wait it could be out of date.
fn seal_and_capture(
    context: &Context,
    job: &Job,
    launched: &Launched,
) -> Result<(Sealed, Option<JoinHandle<Capture>>), AppError> {
    // After exit code 0 a further attempt is not likely, and the capture would be thrown away.
    let capturing = if ended_well(context, launched) { None } else { begin_capture(context, job) };
    let sealed = seal_patiently(context, launched)?;
    let waits = sealed.decision.delay_seconds.is_some_and(|seconds| seconds > 0.0);
    Ok((sealed, capturing.filter(|_| !waits)))
}

/// Whether the script ended with code 0, so that a further attempt is not likely.
fn ended_well(context: &Context, launched: &Launched) -> bool {
    let seen = context.observe(&launched.placement);
    seen.is_ok_and(|seen| matches!(seen.state, Observation::Exited(exit) if exit.exit_code == Some(0)))
}

/// What an attempt with these changes is given beside its run file. `entries`: those that the decisions of the run took so far.
fn additions(
    plan: &Plan,
    (changes, entries): (Changes, &EntriesTaken),
    rung: Rung,
    injection: Option<&Injection>,
) -> Additions {
    let in_force = entries.values(changes.in_force, &plan.retry);
    let exclude_hosts = [changes.exclude_hosts, in_force.placement.exclude_hosts.clone()].concat();
    Additions {
        in_force,
        own: injection.into_iter().flat_map(Injection::environment).collect(),
        rung: Some(rung),
        exclude_hosts,
        isolation: None,
        capture: None,
        terminal: None,
    }
}

fn detecting_of(job: &Job, rung: Rung) -> Detecting {
    Detecting::new(&job.plan, rung, job.run_file.is_some())
}

/// What carries the checkpoints of one rung to the remote.
struct Sending<'p> {
    plan: Option<&'p RemotePlan>,
    rung: Rung,
    replication: Option<Replication>,
}

impl<'p> Sending<'p> {
    fn start(plan: Option<&'p RemotePlan>, rung: Rung) -> Self {
        Self { plan, rung, replication: plan.map(|plan| Replication::start(plan.at(rung))) }
    }

    /// The same for another rung, once everything of the one before has arrived, or its time is up.
    fn at(self, rung: Rung, reporter: &dyn Reporter) -> Self {
        if rung == self.rung {
            return self;
        }
        if let Some(replication) = self.replication {
            replication.finish(reporter);
        }
        Self::start(self.plan, rung)
    }
}

/// The rung of the next attempt: where a decision leads to, else where the last one was, else the first of the ladder.
fn rung_after(
    prepared: &Prepared,
    previous: Option<&AttemptRow>,
    changes: &Changes,
) -> Result<Rung, AppError> {
    let led_to = changes.rung.as_ref().and_then(|rung| rung.parse().ok());
    match led_to.or_else(|| previous.map(rung_of)) {
        Some(rung) => Ok(rung),
        None => Ok(Ladder::of(&prepared.run)?.first()),
    }
}

fn out_of_sight(launched: &Launched, why: &str) -> AppError {
    let message = format!("attempt {} cannot be observed from here: {why}", launched.row.attempt_id);
    AppError::new(ErrorKind::Fault, message).hint("it is not declared dead; check again with `trackway runs`")
}

/// One launch that is not a training attempt.
#[derive(Debug, Clone, Default)]
pub struct Rehearsal {
    /// Trackway's variables for it.
    pub environment: BTreeMap<String, OsString>,
    /// What entries of the retry plan change.
    pub in_force: PlanEntry,
    /// The fault that is part of it.
    pub injection: Option<Injection>,
    /// How long the script may take until it speaks to the recorder.
    pub handshake_seconds: Option<f64>,
    /// How long it may take; the run file's own limit counts too.
    pub timeout_seconds: Option<f64>,
    /// How long it may be without a new step; the run file's own limit counts too.
    pub hang_after_seconds: Option<f64>,
    /// The last step that is needed.
    pub last_step: Option<Step>,
    /// The rung of the data; `None`: all of it.
    pub rung: Option<Rung>,
    /// Whether the stacks of its processes are taken every two seconds, as many as are kept of an attempt.
    pub takes_stacks: bool,
}

/// Launches, watches and seals one rehearsal; no decision follows from it.
///
/// # Errors
/// When this supervisor has to detach from the launch, which then ends by itself; the errors of launching and sealing.
pub fn rehearse(
    context: &Context,
    prepared: &Prepared,
    previous: Option<&AttemptRow>,
    rehearsal: &Rehearsal,
    reporter: &dyn Reporter,
) -> Result<Sealed, AppError> {
    context.become_supervisor();
    context.set_run_state(prepared.run.run_id, RunState::Running)?;
    let offer = context.offer_of(prepared.job.plan.launch.engine_with(&rehearsal.in_force))?;
    let additions = Additions {
        in_force: rehearsal.in_force.clone(),
        own: rehearsal.environment.clone(),
        rung: rehearsal.rung,
        isolation: isolated::isolation(context, prepared, &offer, reporter)?,
        ..Additions::default()
    };
    let offer = offer_to(context, prepared, &additions).map_err(|error| match error.kind.is_passing() {
        true => error,
        false => context.fail_run(prepared.run.run_id, error),
    })?;
    let launched = launch_next(context, prepared, previous, (&additions, &offer), true, reporter)?;
    let looks = Looks { rehearsal: Some(rehearsal), ..Looks::default() };
    match watch(context, prepared, &launched, rehearsal.injection, looks, reporter)? {
        Ended::Attempt => seal_patiently(context, &launched),
        Ended::Detached => {
            Err(AppError::new(ErrorKind::Fault, "detached from the rehearsal before it ended"))
        }
        Ended::OutOfSight(why) => Err(out_of_sight(&launched, &why)),
        Ended::Superseded(holder) => Err(superseded(prepared.run.run_id, &holder)),
    }
}

/// Where a resumed run is: with a live attempt, with a decision to carry out, or before its first one.
fn first_step(context: &Context, prepared: &Prepared, reporter: &dyn Reporter) -> Result<LoopStep, AppError> {
    let Some(last) = context.last_attempt_of(prepared.run.run_id)? else {
        return Ok(LoopStep::Launch(Box::default()));
    };
    if last.state == AttemptState::Sealed {
        let decision = seal::decision_of(context, &last)?;
        // A stopped run that a user resumes continues where it stopped.
        let stopped = decision.decision == Decision::Stop;
        return if stopped {
            Ok(LoopStep::Launch(Box::default()))
        } else {
            after(context, prepared, &decision, reporter)
        };
    }
    let placement = context.placement_of(&last)?;
    // Sealed now, it would count as never launched while its script starts.
    if placement.is_none() && may_be_starting(context, &last) {
        let message = format!("attempt {} may be starting just now", last.attempt_id);
        return Err(AppError::new(ErrorKind::Fault, message).hint("try again in half a minute"));
    }
    let Some(placement) = placement else {
        let sealed = seal::seal(context, &last.attempt_id)?;
        report_end(&sealed, reporter);
        return after(context, prepared, &sealed.decision, reporter);
    };
    reporter.note(format!("attached to attempt {} ({})", last.attempt_number, last.attempt_id));
    let run = prepared.run.clone();
    let launched = Launched {
        row: last,
        placement,
        run,
        attached: true,
        terminal: None,
        noted: Cell::new(true),
        resume_reported: Cell::new(false),
        late_capture: LateCapture::default(),
    };
    Ok(LoopStep::Watch(Box::new(launched)))
}

/// What an attempt is watched with, beside its limits.
#[derive(Default)]
struct Looks<'a> {
    replication: Option<&'a Replication>,
    detecting: Option<&'a mut Detecting>,
    rehearsal: Option<&'a Rehearsal>,
}

fn watch(
    context: &Context,
    prepared: &Prepared,
    launched: &Launched,
    injection: Option<Injection>,
    looks: Looks<'_>,
    reporter: &dyn Reporter,
) -> Result<Ended, AppError> {
    let Looks { replication, detecting, rehearsal } = looks;
    let row = &launched.row;
    let launcher = context.launchers.of(&launched.placement)?;
    let files = context.home.layout.attempt(row.attempt_id);
    let spent = spent(context, &launched.run)?;
    let running_seconds =
        row.started_at.map_or(0.0, |started| context.clock.now().seconds_since(started).max(0.0));
    let stacks_in = rehearsal.filter(|rehearsal| rehearsal.takes_stacks).map(|_| files.clone());
    let watched = Watched {
        placement: &launched.placement,
        files,
        channel: context.channel_to(&launched.placement)?,
        limits: limits_of(limits(launched, &prepared.job.plan, spent), rehearsal),
        grace_seconds: prepared.job.plan.supervise.grace_seconds,
        patience_seconds: PATIENCE_SECONDS,
        sigterm_preempts: prepared.job.plan.supervise.sigterm == SigtermMeaning::Preempted,
        losses: (row.kind == LaunchKind::Train).then(|| trust::losses_of(&prepared.job.plan, row)),
        resume: resume_watch(context, &prepared.job.plan, row)?,
        wrong_resume: &|text| {
            launched.resume_reported.set(true);
            remember(context, row, EventKind::WrongResume, text);
        },
        injection,
        attached: launched.attached,
        terminal: launched.terminal.as_deref(),
        running_seconds,
        fenced: &|| replication.and_then(|replication| replication.fenced(row)),
        superseded_by: &|| prepared.supervision.superseded_by(),
        cancel: &context.request.cancel,
        launcher,
        clock: &context.clock,
        reporter,
    };
    let mut reported = false;
    let mut noted_drops = false;
    let mut mirrored = None;
    let (mut known_state, mut known_start) = (row.state, row.engine_instance.clone());
    let mut touch = |record: &LiveRecord, seen: Option<&ObservedAttempt>| {
        if let Some(files) = &stacks_in {
            // How many there are is said with what they show.
            let _ = stacks::take(launcher, &launched.placement, files, &record.last_steps);
        }
        let dropped = replication.and_then(|replication| replication.status().dropped_uploads_warning());
        if let (Some(text), false) = (dropped, noted_drops) {
            noted_drops = true;
            remember(context, row, EventKind::UploadDropped, &text);
            reporter.note(text);
        }
        trust::mark_running(context, &launched.run, row, record.losses.as_ref(), reporter);
        let uploaded_step = replication.and_then(|replication| replication.status().uploaded_step);
        let state = (record.facts.last_committed_step, uploaded_step);
        // Each look comes here: only a change is worth a write, and a failed one is tried again.
        if mirrored != Some(state) && mirror_now(context, &launched.run, &row.rung).is_ok() {
            mirrored = Some(state);
        }
        let progress = progress_of((row, known_state), record, seen);
        let touched = launched.note_now(context).and_then(|()| {
            context.ledger_write_now(|ledger| {
                ledger.touch_attempt(row.run_id, (row.attempt_id, row.kind), &progress)
            })
        });
        // What the ledger did not take counts as not known: the next look brings it again.
        if touched.is_ok() {
            let requeue = seen.and_then(|seen| Requeue::of(row, (known_state, known_start.as_deref()), seen));
            requeue.into_iter().for_each(|requeue| reporter.note(requeue.remember(context, row)));
            known_state = progress.state.unwrap_or(known_state);
            known_start = seen.and_then(|seen| instance_of(row, seen)).or(known_start.take());
            left_queue(row, &progress).into_iter().for_each(|text| reporter.note(text));
        }
        // Progress in the ledger is a convenience; the flight record has it all.
        if let (Err(error), false) = (touched, reported) {
            reported = true;
            reporter.note(format!("progress is not in the ledger for now: {error}"));
        }
    };
    let detection = detecting.map(|detecting| Detection {
        detecting,
        detection_log: DetectionLog::open(context, row, launched.attached),
    });
    let ended = supervise(watched, detection, &mut touch);
    // Before the seal, which reads the capture that this thread writes.
    if let Err(error) = launched.late_capture.finish() {
        reporter.note(format!("the files beside the script are not in what is kept of the attempt: {error}"));
    }
    Ok(ended)
}

/// What is waited for where the attempt is to continue from a checkpoint.
fn resume_watch(context: &Context, plan: &Plan, row: &AttemptRow) -> Result<Option<ResumeWatch>, AppError> {
    let course = printed_course(&context.home.layout.run(row.run_id));
    let earlier = earlier::before(context, row)?;
    let (before, logs) = (Before::of(&earlier, row, &course), Logs::of(&earlier, row));
    Ok(ResumeWatch::of(row.resumed_from_step, before, logs, plan.checkpoint.on_wrong_resume))
}

/// What the ledger gets to know of a running attempt: its progress, and what it was given, which may become known late.
fn progress_of(
    (row, known_state): (&AttemptRow, AttemptState),
    record: &LiveRecord,
    seen: Option<&ObservedAttempt>,
) -> AttemptProgress {
    let news =
        |names: &[String], noted: &Option<String>| listed(names).filter(|now| noted.as_ref() != Some(now));
    let facts = &record.facts;
    let state = seen.and_then(|seen| live_state(&seen.state)).filter(|state| *state != known_state);
    let submitted_at = seen.and_then(|seen| seen.submitted_at);
    let engine_instance = seen
        .and_then(|seen| instance_of(row, seen))
        .filter(|name| row.engine_instance.as_ref() != Some(name));
    let has_new_start = state == Some(AttemptState::Running) || engine_instance.is_some();
    let started_at = seen.filter(|_| has_new_start).and_then(|seen| seen.started_at);
    AttemptProgress {
        state,
        submitted_at: submitted_at.filter(|at| row.submitted_at != Some(*at)),
        started_at,
        queued_seconds: queued_seconds(submitted_at, started_at),
        engine_instance,
        hosts: seen.and_then(|seen| news(&seen.hosts, &row.hosts)),
        devices: seen.and_then(|seen| news(&seen.devices, &row.devices)),
        first_step: facts.first_step,
        last_step: facts.last_step,
        last_committed_step: facts.last_committed_step,
        heartbeat_at: facts.heartbeat_at,
        ..AttemptProgress::default()
    }
}

/// That an attempt left the queue of its engine.
fn left_queue(row: &AttemptRow, progress: &AttemptProgress) -> Option<String> {
    let seconds = progress.queued_seconds.filter(|_| progress.state == Some(AttemptState::Running))?;
    let waited = duration(seconds);
    Some(format!("attempt {} started after {waited} in the queue of its engine", row.attempt_number))
}

/// The notice is for a user who watches now; the event completes the history of the run.
fn remember(context: &Context, row: &AttemptRow, kind: EventKind, text: &str) {
    let event = EventRow::of_attempt(row, kind, context.clock.now(), text.into());
    let _ = context.ledger_write_now(|ledger| ledger.append_event(&event));
}

/// A rehearsal has separate bounds; the shorter time limit counts.
fn limits_of(limits: Limits, rehearsal: Option<&Rehearsal>) -> Limits {
    let Some(rehearsal) = rehearsal else { return limits };
    let shorter =
        |own: Option<f64>, of_file: Option<f64>| own.into_iter().chain(of_file).min_by(f64::total_cmp);
    Limits {
        timeout_seconds: shorter(rehearsal.timeout_seconds, limits.timeout_seconds),
        hang_after_seconds: shorter(rehearsal.hang_after_seconds, limits.hang_after_seconds),
        handshake_seconds: rehearsal.handshake_seconds,
        last_step: rehearsal.last_step,
        ..limits
    }
}

/// What the run may still take, from its budgets and what its launches took.
fn limits(launched: &Launched, plan: &Plan, spent: Spent) -> Limits {
    let row = &launched.row;
    let gpus = f64::from(row.gpu_count.unwrap_or(0));
    let usd_per_second = row.usd_per_gpu_hour.unwrap_or(0.0) * gpus / 3600.0;
    Limits {
        timeout_seconds: plan.supervise.timeout_seconds,
        hang_after_seconds: plan.supervise.hang_after_seconds,
        start: match (plan.supervise.start_within_seconds, plan.supervise.hang_after_seconds) {
            (Some(seconds), _) => Some(StartLimit::Step { seconds }),
            (None, seconds) => seconds.map(|seconds| StartLimit::Sign { seconds }),
        },
        usd_left: plan.retry.max_usd.map(|limit| limit - spent.cost_usd),
        usd_per_second,
        gpu_seconds_left: plan.retry.max_gpu_hours.map(|limit| limit * 3600.0 - spent.gpu_seconds),
        seconds_left: plan.retry.max_hours.map(|limit| limit * 3600.0 - spent.seconds),
        gpus,
        handshake_seconds: None,
        last_step: None,
    }
}

/// Seals, and waits for a ledger that is locked or away: the retries of a night must not end there.
fn seal_patiently(context: &Context, launched: &Launched) -> Result<Sealed, AppError> {
    // The placement first: the seal reads the row that the ledger has.
    let sealed = launched.note(context).and_then(|()| seal::seal(context, &launched.row.attempt_id));
    sealed.map_err(|error| match error.kind.is_passing() {
        true => error.hint(format!("later: trackway resume {}", launched.row.run_id)),
        false => error,
    })
}

/// A fault that was never injected is reported: it proved nothing.
fn report_unreached(
    context: &Context,
    launched: &Launched,
    asked: Option<Injection>,
    reporter: &dyn Reporter,
) {
    let Some(injection) = asked else { return };
    let done = actions::read(&context.home.layout.attempt(launched.row.attempt_id)).unwrap_or_default();
    let kinds = [ActionKind::InjectedKill, ActionKind::InjectedTerm];
    if !done.iter().any(|action| kinds.contains(&action.kind)) {
        reporter.note(format!("`--inject {injection}` did not happen: the attempt ended before"));
    }
}

/// The log of checkpoints may show less at the launch than the script finds: an entry that was removed is written again when the
/// script opens its root.
fn report_other_resume(
    launched: &AttemptRow,
    sealed: &AttemptRow,
    events: &[EventRow],
    reporter: &dyn Reporter,
) {
    // Of checkpoints that the script writes itself, the seal says what it continued from.
    if let Some(event) = events.iter().find(|event| EventKind::CheckpointOtherResume.is(&event.kind)) {
        return reporter.note(event.message.clone());
    }
    let expected = launched.resumed_from_step;
    let Some(step) = sealed.resumed_from_step.filter(|step| expected != Some(*step)) else { return };
    let expected = expected.map_or_else(|| "the start".into(), |step| format!("step {step}"));
    reporter.note(format!(
        "the script resumed from step {step} and not from {expected}: the checkpoint log did not show that step when it was launched; see `trackway checkpoint doctor {}`",
        sealed.run_id
    ));
}

fn report_end(sealed: &Sealed, reporter: &dyn Reporter) {
    reporter.notice(&Notice::AttemptEnded {
        attempt_id: sealed.row.attempt_id,
        attempt_number: sealed.row.attempt_number,
        reason: sealed.row.termination_reason.map(|reason| reason.to_string()).unwrap_or_default(),
        rule: sealed.row.termination_rule.clone().unwrap_or_default(),
        evidence: sealed.evidence.clone(),
    });
    sealed.notes.iter().for_each(|note| reporter.note(note.clone()));
}

/// Carries a decision out: waits for the next attempt, or ends the run.
fn after(
    context: &Context,
    prepared: &Prepared,
    decision: &RetryRow,
    reporter: &dyn Reporter,
) -> Result<LoopStep, AppError> {
    let launches = decision.decision != Decision::Stop;
    reporter.notice(&Notice::Decided {
        rule: decision.rule.clone(),
        why: decision.why.clone(),
        delay_seconds: decision.delay_seconds.filter(|_| launches),
    });
    if !launches {
        return Ok(LoopStep::Rest);
    }
    let asked = context.home.layout.run(prepared.run.run_id).stop();
    if !context.wait(decision.delay_seconds.unwrap_or(0.0), || asked.exists()) {
        // The machine goes, not the run: one that is not stopped is continued by `trackway resume --all`.
        let is_preempted = prepared.job.plan.supervise.sigterm == SigtermMeaning::Preempted
            && context.request.cancel.stop_requests() > 0
            && !context.request.cancel.is_interrupt();
        if is_preempted {
            reporter
                .note("preempted: `trackway resume --all` continues it, on this machine or another".into());
            return Ok(LoopStep::Rest);
        }
        // It is carried out: left there, it would end the next wait of the run too.
        let _ = trackway_files::unlink(&asked);
        context.set_run_state(prepared.run.run_id, RunState::Stopped)?;
        reporter.note("stopped while waiting for the next attempt".into());
        return Ok(LoopStep::Rest);
    }
    Ok(LoopStep::Launch(Box::new(Changes::of(decision)?)))
}
