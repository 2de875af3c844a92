//! Puts the next attempt of a run in place.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use trackway_core::Clock as _;
use trackway_formats::layout::RowCopy;
use trackway_formats::path_text::shown_word;
use trackway_formats::{EventKind, Variable};
use trackway_launch::shim::steps_are;
use trackway_launch::{LaunchSpec, Observation, Offer, Placement, Refusal, START_MILLIS_MAX, Terminal};
use trackway_ledger::{
    AttemptDataRow, AttemptRow, AttemptState, DataSnapshotRow, EventRow, KeptRows, RunRow,
};

use super::additions::Additions;
use super::adopted::{self, Adoption};
use super::after_launch::after_launch;
use super::container::{container, run_in};
use super::inputs::LaunchInputs;
use super::load_crash::step_back;
use super::row::{live_state, note_placement, note_seen, note_warm_start, planned_row};
use super::spec::spec_of;
use super::start_from::start_from;
use super::stored_capture::{LateCapture, StoredCapture, keep_sources, store_capture};
use super::variables;
use crate::Context;
use crate::capture::{Capture, Folder};
use crate::checkpoints::mirror_run;
use crate::error::{AppError, ErrorKind};
use crate::home::changed_at;
use crate::reporter::{Notice, Reporter};
use crate::run::detect::replay::Replay;
use crate::run::job::{refused, requested};
use crate::run::ladder::Ladder;
use crate::run::ladder::warm_start::WarmStart;
use crate::run::prepare::begin::{Prepared, capture_surroundings};
use crate::run::queue::hold_for;
use crate::run::retry::roll_back;
use crate::run::trust;

/// The batches that the script skips since the run was rolled back: `docs/detectors.md`.
const SKIP_BATCHES: &str = Variable::SkipBatches.as_str();

/// An attempt that was launched.
pub struct LaunchedAttempt {
    pub row: AttemptRow,
    /// Where it is.
    pub placement: Placement,
    /// Its run, as it was then.
    pub run: RunRow,
    /// Whether it was already running when this supervisor came.
    pub attached: bool,
    /// The terminals of its script; none: it has pipes.
    pub terminal: Option<Arc<Terminal>>,
    /// Whether the ledger has its placement.
    pub noted: Cell<bool>,
    /// Whether it was reported while it ran that it did not continue from its checkpoint.
    pub resume_reported: Cell<bool>,
    /// What is captured of it while it runs.
    pub late_capture: LateCapture,
}

impl LaunchedAttempt {
    /// Records where the attempt is, unless the ledger has it: once it runs it is not left alone to wait for a ledger.
    pub fn note_now(&self, context: &Context) -> Result<(), AppError> {
        if !self.noted.get() {
            context.ledger_write_now(|ledger| ledger.update_attempt(&self.row))?;
            self.noted.set(true);
        }
        Ok(())
    }

    /// The same when it has ended, and for as long as the ledger is away.
    pub fn note(&self, context: &Context) -> Result<(), AppError> {
        if !self.noted.replace(true) {
            context.ledger_write(|ledger| ledger.update_attempt(&self.row))?;
        }
        Ok(())
    }
}

/// Launches the attempt after `previous`. `offer`: that of [`offer_to`], with these additions. `asked_for`: a person
/// wants it, rather than that it follows from the end of `previous`.
///
/// In this order: it is planned, which settles what the attempt before left; it is written down, so that it is found whatever happens
/// then; it is begun; and it is reported.
pub fn launch_next(
    context: &Context,
    prepared: &Prepared,
    previous: Option<&AttemptRow>,
    (additions, offer): (&Additions, &Offer),
    asked_for: bool,
    reporter: &dyn Reporter,
) -> Result<LaunchedAttempt, AppError> {
    let next = NextLaunch { context, prepared, previous, offer, asked_for, reporter };
    let mut planned = next.plan(additions)?;
    let written = next.write_down(&mut planned)?;
    let named = Ladder::of(&prepared.run)?.named;
    let previous_here = planned.previous_here;
    let warm_start = planned.warm_start.as_ref().map(WarmStart::sentence);
    let (launched, waits) = next.begin(planned, written)?;
    report_started(&launched.row, named, warm_start, reporter);
    waits.into_iter().for_each(|text| reporter.note(text));
    if let Some(text) = steps_said(context, &launched.row, previous_here) {
        reporter.note(text);
    }
    next.report_changed_variables(&launched.row);
    Ok(launched)
}

/// A launch, and what it is of.
struct NextLaunch<'a> {
    context: &'a Context,
    prepared: &'a Prepared,
    previous: Option<&'a AttemptRow>,
    offer: &'a Offer,
    asked_for: bool,
    reporter: &'a dyn Reporter,
}

/// An attempt that can be launched.
struct PlannedLaunch<'a> {
    row: AttemptRow,
    spec: LaunchSpec,
    inputs: LaunchInputs<'a>,
    adoption: Adoption,
    warm_start: Option<WarmStart>,
    /// The attempt before, if it is of this rung: another rung has other checkpoints.
    previous_here: Option<&'a AttemptRow>,
}

/// What was written down of an attempt before it begins.
struct WrittenLaunch {
    /// Its run, as it was then.
    run: RunRow,
    data: Vec<AttemptDataRow>,
    capture: StoredCapture,
    /// The files beside the script that are still to be read.
    unread: Option<Folder>,
}

impl<'a> NextLaunch<'a> {
    /// What is launched, from which checkpoint, and with what. Nothing of it is written down as an attempt yet.
    fn plan(&self, additions: &'a Additions) -> Result<PlannedLaunch<'a>, AppError> {
        let &Self { context, prepared, previous, offer, asked_for, reporter } = self;
        if let Some(previous) = previous {
            // First: what follows looks for a checkpoint, and must not find one that is to be left.
            roll_back::carry_out(context, &prepared.run, previous, reporter)?;
        }
        let mut inputs =
            LaunchInputs::now(context, prepared, previous, self.surroundings(additions), reporter)?;
        let gpus = additions.resources(&prepared.job.plan).gpus > 0;
        let container = container(context, prepared, (offer, gpus), reporter)
            .map_err(|error| context.fail_run(prepared.run.run_id, error))?;
        if let Some(container) = &container {
            inputs.runs_in(container);
        }
        let mut row = planned_row(context, prepared, previous, &inputs, (additions, offer));
        let previous_here = previous.filter(|previous| previous.rung == row.rung);
        match previous_here {
            Some(previous) => self.judge_what_is_left(previous)?,
            None => begin_rung(context, &row)?,
        }
        // After the rollback was carried out: its row has the batches.
        let additions = &skipping(context, &mut row, additions)?;
        let follows = previous_here.filter(|_| !asked_for);
        // After every mark: nothing continues from what was just found unsafe or suspect.
        let target = start_from(context, prepared, &mut row, follows, reporter)?;
        // Every byte of what it continues from was read.
        let checked =
            row.resumed_from_manifest_sha256.iter().map(|manifest| (manifest.clone(), true)).collect();
        mirror_run(context, &prepared.run, &checked)?;
        // What it resumes from was trained on from these weights: they matter at a beginning alone.
        let warm_start = match row.resumed_from_step {
            None => WarmStart::find(context, &prepared.run, &row)?,
            Some(_) => None,
        };
        note_warm_start(&mut row, warm_start.as_ref());
        let adoption = adopted::prepare(context, prepared, previous, (&row, target), reporter)?;
        row.command.extend(adoption.args.iter().map(shown_word));
        let mut spec = spec_of(context, prepared, &row, (additions, offer), warm_start.as_ref(), &adoption);
        if let Some(container) = container {
            run_in(container, &mut spec, &prepared.job.plan.run.pass_environment);
        }
        Ok(PlannedLaunch { row, spec, inputs, adoption, warm_start, previous_here })
    }

    /// What it starts from, as it is now, or was when it was captured for this launch.
    fn surroundings(&self, additions: &'a Additions) -> Cow<'a, Capture> {
        match &additions.capture {
            Some(capture) => Cow::Borrowed(capture),
            // It was captured when this command began; what follows an end may come hours later.
            None if self.asked_for => Cow::Borrowed(&self.prepared.capture),
            None => Cow::Owned(capture_surroundings(self.context, &self.prepared.job)),
        }
    }

    /// Commits and marks what the attempt before left in this rung.
    fn judge_what_is_left(&self, previous: &AttemptRow) -> Result<(), AppError> {
        let &Self { context, prepared, reporter, .. } = self;
        // Before the marks and the search: what is committed here may be the newest checkpoint.
        adopted::adopt_what_is_left(context, prepared, previous, reporter)?;
        // What was committed just now was not judged yet, and a mark that failed is set now or nothing is launched.
        let is_new = !context.home.layout.attempt(previous.attempt_id).exit_json().exists();
        let mut replay = Replay::of(context, &prepared.run, previous)?;
        let marked = trust::mark_ended(context, &prepared.run, previous, is_new, &mut replay.losses)?;
        marked.into_iter().for_each(|text| reporter.note(text));
        // After the marks: it steps back from what a resume would still take.
        report_step_back(context, (prepared, previous), reporter);
        Ok(())
    }

    /// Writes the attempt down, with all that it starts from.
    fn write_down(&self, planned: &mut PlannedLaunch<'_>) -> Result<WrittenLaunch, AppError> {
        let &Self { context, prepared, previous, .. } = self;
        let PlannedLaunch { row, spec, inputs, adoption, warm_start, .. } = planned;
        let data = inputs.data_of(row);
        // Durable before the launch: if this process ends in between, the next one finds the attempt.
        record_planned(context, row, (&data, &inputs.snapshots), previous)?;
        adoption.record(context)?;
        // After the row was written: an attempt that was written down and never launched has no start.
        row.started_at = Some(context.clock.now());
        let unread = inputs.take_unread();
        let capture = store_capture(context, prepared, &inputs.capture, spec)?;
        keep_sources(context, prepared, row.attempt_id, &inputs.capture)?;
        warm_start.iter().try_for_each(|warm_start| warm_start.write(context, row.attempt_id))?;
        // Not durable: the seal of the attempt computes both again.
        let run = context.change_run_soon(row.run_id, |run| {
            run.attempt_count = row.attempt_number;
            run.started_at = run.started_at.or(row.started_at);
        })?;
        Ok(WrittenLaunch { run, data, capture, unread })
    }

    /// Gives the attempt to its launcher. The text is about one that waits for its turn.
    fn begin(
        &self,
        planned: PlannedLaunch<'_>,
        written: WrittenLaunch,
    ) -> Result<(LaunchedAttempt, Option<String>), AppError> {
        let &Self { context, prepared, reporter, .. } = self;
        let PlannedLaunch { mut row, spec, inputs, .. } = planned;
        let WrittenLaunch { run, data, capture, unread } = written;
        // Before it begins: if this supervisor ends just after that, the place stays taken.
        hold_for(prepared, context.home.layout.attempt(row.attempt_id).folder(), reporter);
        let (placement, waits) = submit(context, &mut row, &spec)?;
        // Only now: the script does not wait until files are read.
        let late_capture =
            unread.map(|folder| LateCapture::begin(context, capture, folder)).unwrap_or_default();
        // Once more, with its placement: a ledger that is made again from these copies has it too.
        let copy = KeptRows::of_launch(&row, &data, &inputs.snapshots);
        context.keep(row.run_id, RowCopy::Attempt(row.attempt_id), &copy);
        let launched = LaunchedAttempt {
            row,
            placement,
            run,
            attached: false,
            terminal: spec.terminal.filter(|terminal| terminal.is_used()),
            noted: Cell::new(false),
            resume_reported: Cell::new(false),
            late_capture,
        };
        // What runs is not left alone because a ledger is away: it is noted at a later look.
        match launched.note_now(context) {
            Err(error) if !error.kind.is_passing() => {
                Err(after_launch(context, &launched.row, &launched.placement, error))
            }
            _ => Ok((launched, waits)),
        }
    }

    /// Reports which variables are other than those of the attempt before.
    fn report_changed_variables(&self, row: &AttemptRow) {
        let &Self { context, previous, reporter, .. } = self;
        let files = context.home.layout.attempt(row.attempt_id);
        let changed = previous.and_then(|previous| variables::changed_since(previous, &files));
        let Some(text) = changed else { return };
        let kind = EventKind::VariablesChanged;
        let event = EventRow::of_attempt(row, kind, context.clock.now(), text.clone());
        // The note has it too: a missing event does not hold up what already runs.
        let _ = context.ledger_write_now(|ledger| ledger.append_event(&event));
        reporter.note(text);
    }
}

/// What the engine of a launch can give, where it gives all that is requested: else an attempt would be written down
/// that never begins. The disk was looked at before the first attempt, and attempts since then may have filled it.
pub fn offer_to(context: &Context, prepared: &Prepared, additions: &Additions) -> Result<Offer, AppError> {
    let plan = &prepared.job.plan;
    let offer = context.offer_of(additions.engine(plan))?;
    let mut request = requested(plan, &additions.in_force, &additions.exclude_hosts, &offer);
    request.resources.disk_bytes = None;
    let refused = refused(plan, &additions.in_force, &request, &offer);
    if refused.is_empty() {
        return Ok(offer);
    }
    let error = AppError::new(ErrorKind::Blocked, format!("not launched: {}", Refusal::listed(&refused)));
    Err(error.hint("resume it where that is given, or start a run that requests something else"))
}

fn report_started(row: &AttemptRow, named: bool, warm_start: Option<String>, reporter: &dyn Reporter) {
    reporter.notice(&Notice::AttemptStarted {
        attempt_id: row.attempt_id,
        attempt_number: row.attempt_number,
        rung: named.then(|| row.rung.clone()),
        resumed_from_step: row.resumed_from_step,
        warm_start,
    });
}

/// What the step is that the attempt continues from, such as an epoch.
fn steps_said(context: &Context, row: &AttemptRow, previous: Option<&AttemptRow>) -> Option<String> {
    let from = row.resumed_from_step?;
    let highest = previous?.last_step.max(Some(from));
    let are = steps_are(&context.home.layout.run(row.run_id), highest)?;
    Some(format!("{are}: the script prints nothing finer"))
}

/// The additions, and the batches that a roll back skips in this rung.
fn skipping(context: &Context, row: &mut AttemptRow, additions: &Additions) -> Result<Additions, AppError> {
    let mut additions = additions.clone();
    let skipped = roll_back::skipped(context, row.run_id, &row.rung)?;
    if !skipped.is_empty() {
        additions.own.insert(SKIP_BATCHES.into(), skipped.to_string().into());
        row.skip_batches = Some(skipped.to_string());
    }
    Ok(additions)
}

/// Gives the attempt to its launcher, and notes where it runs. The text is about one that waits for its turn.
fn submit(
    context: &Context,
    row: &mut AttemptRow,
    spec: &LaunchSpec,
) -> Result<(Placement, Option<String>), AppError> {
    let launcher = context.launchers.of_attempt(row)?;
    let placement = launcher
        .launch(spec, &context.redactor)
        .map_err(|error| AppError::fault(format!("attempt {} was not launched", row.attempt_id), error))?;
    row.state = AttemptState::Running;
    note_placement(row, &placement);
    // Machines that are not known yet are noted when they are seen.
    let Ok(seen) = launcher.observe(&placement) else { return Ok((placement, None)) };
    note_seen(row, &seen);
    row.state = live_state(&seen.state).unwrap_or(row.state);
    let waits = match seen.state {
        Observation::Pending { why } => {
            Some(format!("attempt {} waits in the queue of its engine: {why}", row.attempt_number))
        }
        _ => None,
    };
    Ok((placement, waits))
}

/// Writes an attempt down before anything of it starts.
fn record_planned(
    context: &Context,
    row: &AttemptRow,
    (data, snapshots): (&[AttemptDataRow], &[DataSnapshotRow]),
    previous: Option<&AttemptRow>,
) -> Result<(), AppError> {
    context.ledger_write(|ledger| ledger.insert_launch(row, data))?;
    let copy = KeptRows::of_launch(row, data, snapshots);
    context.keep(row.run_id, RowCopy::Attempt(row.attempt_id), &copy);
    let Some(previous) = previous else { return Ok(()) };
    context.ledger_write(|ledger| ledger.set_next_attempt(row.run_id, previous.attempt_id, row.attempt_id))
}

/// A rung begins with no committed step, whatever the one before had.
fn begin_rung(context: &Context, row: &AttemptRow) -> Result<(), AppError> {
    if context.run_by_id(row.run_id)?.last_committed_step.is_some() {
        context.change_run(row.run_id, |run| run.last_committed_step = None)?;
    }
    Ok(())
}

/// A checkpoint that crashed the last two attempts is marked before the next one looks for where to resume. When that
/// fails the attempt is launched all the same: it may yet do better.
fn report_step_back(
    context: &Context,
    (prepared, previous): (&Prepared, &AttemptRow),
    reporter: &dyn Reporter,
) {
    match step_back(context, &prepared.run, previous) {
        Ok(None) => {}
        Ok(Some(text)) => reporter.note(text),
        Err(error) => {
            reporter.note(format!("could not determine whether to fall back to an older checkpoint: {error}"))
        }
    }
}

/// Whether a shim may have been started so lately that it did not introduce itself yet.
pub fn may_be_starting(context: &Context, attempt: &AttemptRow) -> bool {
    let files = context.home.layout.attempt(attempt.attempt_id);
    changed_at(&files.launch_json()).is_some_and(|written| {
        context.clock.now().seconds_since(written) < f64::from(START_MILLIS_MAX) / 1000.0
    })
}

/// Whether the attempt ended; none when that cannot be known now.
///
/// # Errors
/// When the launcher or the ledger does not answer.
pub fn has_ended(context: &Context, attempt: &AttemptRow) -> Result<Option<bool>, AppError> {
    let Some(placement) = context.placement_of(attempt)? else {
        // Without a supervisor and without a shim, nothing was ever started; but a shim may be on its way.
        return Ok((!may_be_starting(context, attempt)).then_some(true));
    };
    Ok(match context.observe(&placement)?.state {
        Observation::Exited(_) | Observation::Gone { .. } => Some(true),
        Observation::Running(_) | Observation::Pending { .. } => Some(false),
        Observation::CannotTell { .. } => None,
    })
}
