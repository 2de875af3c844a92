//! The loop of a run: launch, supervise, seal, decide, and again until it has ended.

mod input;
mod refused;
mod rehearsal;
mod sending;
mod watched;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::thread::JoinHandle;

use trackway_api::runs::RunOutcome;
use trackway_core::Rung;
use trackway_formats::EventKind;
use trackway_formats::runfile::{Plan, SigtermMeaning};
use trackway_launch::Observation;
use trackway_ledger::{AttemptRow, AttemptState, Decision, EventRow, RetryRow, RunState};
use trackway_rules::decide::DecisionRule;

use self::input::{Input, input_after, terminal_of};
pub use self::refused::{is_resumed, reason_alone, refuse_first, refuse_resume};
use self::refused::{not_given, not_launched};
pub use self::rehearsal::Rehearsal;
use self::sending::Sending;
use self::watched::{AttemptWatchers, watch};
use super::detect::Detecting;
use super::job::Job;
use super::ladder::Ladder;
use super::launch::additions::Additions;
use super::launch::adopted;
use super::launch::after_launch::after_launch;
use super::launch::attempt::{LaunchedAttempt, launch_next, may_be_starting, offer_to};
use super::launch::isolated;
use super::launch::stored_capture::LateCapture;
use super::locks::supervision::superseded;
use super::prepare::begin::{Prepared, begin_capture, capture_surroundings};
use super::queue::{self, Admission};
use super::record::earlier;
use super::retry::changes::{Changes, EntriesTaken};
use super::watch::inject::Injection;
use super::watch::supervise::SuperviseEnd;
use crate::Context;
use crate::attempt::actions::{self, ActionKind};
use crate::capture::Capture;
use crate::checkpoints::mirror_run;
use crate::error::{AppError, ErrorKind};
use crate::ledger::rows::rung_of;
use crate::reporter::{Notice, Reporter};
use crate::run::seal::{self, SealedAttempt};
use crate::run::{self, ladder};

/// What the loop does next.
enum LoopStep {
    /// Launch another attempt with these changes.
    Launch(Box<Changes>),
    /// Watch this one.
    Watch(Box<LaunchedAttempt>),
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
    let (mut run_loop, mut next) = RunLoop::begin(context, &prepared, injection, reporter)?;
    loop {
        let launched = match next {
            LoopStep::Rest => break,
            LoopStep::Watch(launched) => *launched,
            LoopStep::Launch(changes) => match run_loop.launch(*changes)? {
                Some(launched) => launched,
                None => break,
            },
        };
        next = match run_loop.follow(&launched)? {
            Some(decision) => after(context, &prepared, &decision, reporter)?,
            // Not sealed: it still runs, and the next supervisor watches it.
            None => return run::outcome(context, run_id),
        };
    }
    let remote = run_loop.sending.replication.map(|replication| replication.finish(reporter));
    let outcome = run::outcome(context, run_id)?;
    // After the last upload, so that the rows have what reached the remote.
    mirror_run(context, &context.run_by_id(run_id)?, &BTreeMap::new())?;
    Ok(RunOutcome { remote: remote.or(outcome.remote), ..outcome })
}

/// What the loop has from one attempt to the next.
struct RunLoop<'a> {
    context: &'a Context,
    prepared: &'a Prepared,
    reporter: &'a dyn Reporter,
    /// The fault of the first launch.
    injection: Option<Injection>,
    sending: Sending<'a>,
    detecting: Detecting,
    /// What a launch that follows at once starts from, while it is captured.
    capturing: Option<JoinHandle<Capture>>,
    /// Whether a person wants the next launch: the first one. The others follow from ends.
    asked_for: bool,
    input: Input,
    entries: EntriesTaken,
}

impl<'a> RunLoop<'a> {
    /// The loop of a run before its first step, and that step.
    fn begin(
        context: &'a Context,
        prepared: &'a Prepared,
        injection: Option<Injection>,
        reporter: &'a dyn Reporter,
    ) -> Result<(Self, LoopStep), AppError> {
        let rung = ladder::rung_now(context, &prepared.run)?;
        let sending = Sending::start(prepared.remote.as_ref(), rung);
        let detecting = detecting_of(&prepared.job, rung);
        let next = first_step(context, prepared, reporter)?;
        // The rows are not kept: the loop lasts as long as the run, and a long one has many of them.
        let decisions = context.ledger_read(|ledger| ledger.retries_of_run(prepared.run.run_id))?;
        let run_loop = Self {
            context,
            prepared,
            reporter,
            injection,
            sending,
            detecting,
            capturing: None,
            asked_for: true,
            input: Input::Waits,
            entries: EntriesTaken::of(&decisions)?,
        };
        Ok((run_loop, next))
    }

    /// Launches the next attempt. None: the run left its queue.
    fn launch(&mut self, changes: Changes) -> Result<Option<LaunchedAttempt>, AppError> {
        let (context, prepared, reporter) = (self.context, self.prepared, self.reporter);
        let run_id = prepared.run.run_id;
        // What it is again where the launcher refuses what a person wants launched.
        let before = self.asked_for.then_some(&prepared.run);
        // Before the run counts as running: while it is in the line it is shown as waiting.
        let admission = queue::admit(context, prepared, reporter)?;
        if admission == Admission::Left {
            return Ok(None);
        }
        let previous = context.last_attempt_of(run_id)?;
        let rung = rung_after(prepared, previous.as_ref(), &changes)?;
        self.sending.change_rung(rung, reporter);
        context.set_run_state(run_id, RunState::Running)?;
        let capture = match admission {
            // The code may have changed during the wait.
            Admission::AfterWait => Some(capture_surroundings(context, &prepared.job)),
            // A thread that panicked gives nothing, and the launch captures then.
            _ => self.capturing.take().and_then(|capturing| capturing.join().ok()),
        };
        // Before the additions, which take from it what is in force.
        self.entries.take(&changes);
        let additions = Additions {
            capture,
            terminal: terminal_of(self.input, reporter),
            ..additions(&prepared.job.plan, (changes, &self.entries), rung, self.injection.as_ref())
        };
        self.detecting.runs_on(additions.resources(&prepared.job.plan).gpu.as_deref());
        let offer = offer_to(context, prepared, &additions)
            .map_err(|error| not_given(context, run_id, (previous.as_ref(), before), error))?;
        let given = (&additions, &offer);
        let launched = launch_next(context, prepared, previous.as_ref(), given, self.asked_for, reporter)
            .map_err(|error| not_launched(context, run_id, previous.as_ref(), error))?;
        self.input = input_after(self.input, &launched, reporter);
        Ok(Some(launched))
    }

    /// Watches an attempt until it has ended, seals it, and decides. None: it still runs, and this supervisor detached.
    fn follow(&mut self, launched: &LaunchedAttempt) -> Result<Option<RetryRow>, AppError> {
        let (context, prepared, reporter) = (self.context, self.prepared, self.reporter);
        let run_id = prepared.run.run_id;
        // A person wanted the first launch; the others follow from ends.
        self.asked_for = false;
        // After the launch, whose environment has it; the next attempt is launched without.
        let asked_fault = self.injection.take();
        let batch = earlier::before(context, &launched.row)?.effective_batch;
        self.detecting.begins_again(rung_of(&launched.row), batch);
        let looks = AttemptWatchers {
            replication: self.sending.replication.as_ref(),
            detecting: Some(&mut self.detecting),
            rehearsal: None,
        };
        match watch(context, prepared, launched, asked_fault, looks, reporter)? {
            SuperviseEnd::Attempt => report_unreached(context, launched, asked_fault, reporter),
            SuperviseEnd::Detached => {
                reporter.note(format!(
                    "detached; the attempt keeps running. Reattach with: trackway resume {run_id}"
                ));
                return Ok(None);
            }
            // What cannot be seen may be alive: nothing is sealed and nothing else launched.
            SuperviseEnd::OutOfSight(why) => return Err(out_of_sight(launched, &why)),
            // The run belongs to the new supervisor, with all that follows.
            SuperviseEnd::Superseded(holder) => return Err(superseded(run_id, &holder)),
        }
        let (sealed, begun) = seal_and_capture(context, &prepared.job, launched)?;
        self.capturing = begun;
        report_sealed(context, prepared, launched, &sealed, reporter)?;
        if sealed.decision.rule.parse().is_ok_and(DecisionRule::is_roll_back) {
            // Their state belongs to the training that is left; one that fired could not fire again.
            self.detecting = detecting_of(&prepared.job, rung_of(&sealed.row));
        }
        Ok(Some(sealed.decision))
    }
}

/// Reports what the attempt resumed from and left, and how it ended.
fn report_sealed(
    context: &Context,
    prepared: &Prepared,
    launched: &LaunchedAttempt,
    sealed: &SealedAttempt,
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
    launched: &LaunchedAttempt,
) -> Result<(SealedAttempt, Option<JoinHandle<Capture>>), AppError> {
    // After exit code 0 a further attempt is not likely, and the capture would be thrown away.
    let capturing = if ended_well(context, launched) { None } else { begin_capture(context, job) };
    let sealed = seal_patiently(context, launched)?;
    let waits = sealed.decision.delay_seconds.is_some_and(|seconds| seconds > 0.0);
    Ok((sealed, capturing.filter(|_| !waits)))
}

/// Whether the script ended with code 0, so that a further attempt is not likely.
fn ended_well(context: &Context, launched: &LaunchedAttempt) -> bool {
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

fn out_of_sight(launched: &LaunchedAttempt, why: &str) -> AppError {
    let message = format!("attempt {} cannot be observed from here: {why}", launched.row.attempt_id);
    AppError::new(ErrorKind::Fault, message).hint("it is not declared dead; check again with `trackway runs`")
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
) -> Result<SealedAttempt, AppError> {
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
    let offer = offer_to(context, prepared, &additions)
        .map_err(|error| refuse_first(context, prepared.run.run_id, error))?;
    let launched = launch_next(context, prepared, previous, (&additions, &offer), true, reporter)?;
    let looks = AttemptWatchers { rehearsal: Some(rehearsal), ..AttemptWatchers::default() };
    match watch(context, prepared, &launched, rehearsal.injection, looks, reporter)? {
        SuperviseEnd::Attempt => seal_patiently(context, &launched),
        SuperviseEnd::Detached => {
            Err(AppError::new(ErrorKind::Fault, "detached from the rehearsal before it ended"))
        }
        SuperviseEnd::OutOfSight(why) => Err(out_of_sight(&launched, &why)),
        SuperviseEnd::Superseded(holder) => Err(superseded(prepared.run.run_id, &holder)),
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
    let launched = LaunchedAttempt {
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

/// Seals, and waits for a ledger that is locked or away: the retries of a night must not end there.
fn seal_patiently(context: &Context, launched: &LaunchedAttempt) -> Result<SealedAttempt, AppError> {
    // The placement first: the seal reads the row that the ledger has.
    let sealed = launched.note(context).and_then(|()| seal::seal(context, &launched.row.attempt_id));
    sealed.map_err(|error| after_launch(context, &launched.row, &launched.placement, error))
}

/// A fault that was never injected is reported: it proved nothing.
fn report_unreached(
    context: &Context,
    launched: &LaunchedAttempt,
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

fn report_end(sealed: &SealedAttempt, reporter: &dyn Reporter) {
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
