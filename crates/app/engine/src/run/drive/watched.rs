//! An attempt is watched: within which limits, and what is noted of it meanwhile.

use trackway_core::text::duration;
use trackway_core::{Clock as _, LaunchKind, Step};
use trackway_formats::EventKind;
use trackway_formats::layout::AttemptLayout;
use trackway_formats::runfile::{Plan, SigtermMeaning};
use trackway_launch::shim::printed_course;
use trackway_launch::{Launcher, ObservedAttempt};
use trackway_ledger::{AttemptProgress, AttemptRow, AttemptState, EventRow};
use trackway_rules::decide::Spent;

use super::rehearsal::Rehearsal;
use crate::Context;
use crate::budgets::spent;
use crate::checkpoints::mirror_now;
use crate::error::AppError;
use crate::reporter::Reporter;
use crate::run::detect::{Detecting, DetectionLog};
use crate::run::launch::attempt::LaunchedAttempt;
use crate::run::launch::row::{instance_of, listed, live_state, queued_seconds};
use crate::run::prepare::begin::Prepared;
use crate::run::record::earlier;
use crate::run::record::live_record::LiveRecord;
use crate::run::record::resume_watch::{EarlierSteps, Logs, ResumeWatch};
use crate::run::record::stacks;
use crate::run::remote::replication::Replication;
use crate::run::trust;
use crate::run::watch::inject::Injection;
use crate::run::watch::requeue::Requeue;
use crate::run::watch::sight::PATIENCE_SECONDS;
use crate::run::watch::supervise::{Detection, SuperviseEnd, WatchedAttempt, supervise};
use crate::run::watch::watchdog::{Limits, StartLimit};

/// What an attempt is watched with, beside its limits.
#[derive(Default)]
pub(super) struct AttemptWatchers<'a> {
    pub(super) replication: Option<&'a Replication>,
    pub(super) detecting: Option<&'a mut Detecting>,
    pub(super) rehearsal: Option<&'a Rehearsal>,
}

/// Watches an attempt until it ends, until this supervisor detaches, or until it can do neither.
pub(super) fn watch(
    context: &Context,
    prepared: &Prepared,
    launched: &LaunchedAttempt,
    injection: Option<Injection>,
    looks: AttemptWatchers<'_>,
    reporter: &dyn Reporter,
) -> Result<SuperviseEnd, AppError> {
    let AttemptWatchers { replication, detecting, rehearsal } = looks;
    let row = &launched.row;
    let launcher = context.launchers.of(&launched.placement)?;
    let files = context.home.layout.attempt(row.attempt_id);
    let spent = spent(context, &launched.run)?;
    let running_seconds =
        row.started_at.map_or(0.0, |started| context.clock.now().seconds_since(started).max(0.0));
    let mut notes = LiveNotes {
        context,
        launched,
        launcher,
        replication,
        stacks_in: rehearsal.filter(|rehearsal| rehearsal.takes_stacks).map(|_| files.clone()),
        reporter,
        has_noted_drops: false,
        has_reported: false,
        mirrored: None,
        known_state: row.state,
        known_start: row.engine_instance.clone(),
    };
    let limits = limits(launched, &prepared.job.plan, spent);
    let watched = WatchedAttempt {
        placement: &launched.placement,
        files,
        channel: context.channel_to(&launched.placement)?,
        limits: rehearsal.map_or(limits, |rehearsal| rehearsal.limits(limits)),
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
    let detection = detecting.map(|detecting| Detection {
        detecting,
        detection_log: DetectionLog::open(context, row, launched.attached),
    });
    let ended = supervise(watched, detection, &mut |record, seen| notes.take(record, seen));
    // Before the seal, which reads the capture that this thread writes.
    if let Err(error) = launched.late_capture.finish() {
        reporter.note(format!("the files beside the script are not in what is kept of the attempt: {error}"));
    }
    Ok(ended)
}

/// What is noted of a running attempt at each look: in the ledger, for a user who watches now, and beside its checkpoints.
struct LiveNotes<'a> {
    context: &'a Context,
    launched: &'a LaunchedAttempt,
    launcher: &'a dyn Launcher,
    replication: Option<&'a Replication>,
    /// Where the stacks of its processes are put, where they are taken at each look.
    stacks_in: Option<AttemptLayout>,
    reporter: &'a dyn Reporter,
    /// Whether uploads that were left out were noted.
    has_noted_drops: bool,
    /// Whether it was reported that the ledger does not have the progress.
    has_reported: bool,
    /// The last steps that were committed and uploaded, as the mirror has them.
    mirrored: Option<(Option<Step>, Option<Step>)>,
    /// As the ledger has it.
    known_state: AttemptState,
    /// Its start in its engine, as the ledger has it.
    known_start: Option<String>,
}

impl LiveNotes<'_> {
    fn take(&mut self, record: &LiveRecord, seen: Option<&ObservedAttempt>) {
        let launched = self.launched;
        if let Some(files) = &self.stacks_in {
            // How many there are is said with what they show.
            let _ = stacks::take(self.launcher, &launched.placement, files, &record.last_steps);
        }
        self.note_drops();
        trust::mark_running(
            self.context,
            &launched.run,
            &launched.row,
            record.losses.as_ref(),
            self.reporter,
        );
        self.mirror(record);
        self.note_progress(record, seen);
    }

    /// Notes once that uploads are left out.
    fn note_drops(&mut self) {
        let dropped = self.replication.and_then(|replication| replication.status().dropped_uploads_warning());
        let Some(text) = dropped.filter(|_| !self.has_noted_drops) else { return };
        self.has_noted_drops = true;
        remember(self.context, &self.launched.row, EventKind::UploadDropped, &text);
        self.reporter.note(text);
    }

    fn mirror(&mut self, record: &LiveRecord) {
        let uploaded_step = self.replication.and_then(|replication| replication.status().uploaded_step);
        let steps = (record.facts.last_committed_step, uploaded_step);
        let LaunchedAttempt { run, row, .. } = self.launched;
        // Each look comes here: only a change is worth a write, and a failed one is tried again.
        if self.mirrored != Some(steps) && mirror_now(self.context, run, &row.rung).is_ok() {
            self.mirrored = Some(steps);
        }
    }

    fn note_progress(&mut self, record: &LiveRecord, seen: Option<&ObservedAttempt>) {
        let (context, reporter, row) = (self.context, self.reporter, &self.launched.row);
        let progress = progress_of((row, self.known_state), record, seen);
        let touched = self.launched.note_now(context).and_then(|()| {
            context.ledger_write_now(|ledger| {
                ledger.touch_attempt(row.run_id, (row.attempt_id, row.kind), &progress)
            })
        });
        match touched {
            // What the ledger did not take counts as not known: the next look brings it again.
            Ok(_) => {
                let known = (self.known_state, self.known_start.as_deref());
                let requeue = seen.and_then(|seen| Requeue::of(row, known, seen));
                requeue.into_iter().for_each(|requeue| reporter.note(requeue.remember(context, row)));
                self.known_state = progress.state.unwrap_or(self.known_state);
                self.known_start = seen.and_then(|seen| instance_of(row, seen)).or(self.known_start.take());
                left_queue(row, &progress).into_iter().for_each(|text| reporter.note(text));
            }
            // Progress in the ledger is a convenience; the flight record has it all.
            Err(error) if !self.has_reported => {
                self.has_reported = true;
                reporter.note(format!("progress is not in the ledger for now: {error}"));
            }
            Err(_) => {}
        }
    }
}

/// What is waited for where the attempt is to continue from a checkpoint.
fn resume_watch(context: &Context, plan: &Plan, row: &AttemptRow) -> Result<Option<ResumeWatch>, AppError> {
    let course = printed_course(&context.home.layout.run(row.run_id));
    let earlier = earlier::before(context, row)?;
    let (before, logs) = (EarlierSteps::of(&earlier, row, &course), Logs::of(&earlier, row));
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

/// What the run may still take, from its budgets and what its launches took.
fn limits(launched: &LaunchedAttempt, plan: &Plan, spent: Spent) -> Limits {
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
