//! Puts the next attempt of a run in place.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use serde_json::Value;
use trackway_adopt::resumed_from;
use trackway_checkpoint::LoadedCheckpoint;
use trackway_core::{AttemptId, Clock as _, LaunchKind, RunId, Rung, Timestamp, with_fields_of};
use trackway_data::FileStates;
use trackway_files::TempFile;
use trackway_formats::layout::{AttemptLayout, HomeLayout, RowCopy};
use trackway_formats::path_text::shown_word;
use trackway_formats::runfile::{DataSpec, Plan, PlanEntry, ResourcesSection, canonical_json};
use trackway_formats::{EventKind, StoredPart, Variable, sha256_hex};
use trackway_launch::shim::steps_are;
use trackway_launch::{
    Instance, Isolation, LaunchDetails, LaunchSpec, Observation, ObservedAttempt, Offer, Placement, Refusal,
    START_MILLIS_MAX, Terminal,
};
use trackway_ledger::{
    AttemptDataRow, AttemptRow, AttemptState, DataSnapshotRow, EventRow, KeptRows, RunRow,
};
use trackway_redact::Redactor;

use super::adopted::{self, Adoption};
use super::container::{container, run_in};
use super::inputs::LaunchInputs;
use super::load_crash::step_back;
use super::variables;
use crate::Context;
use crate::capture::{Capture, EnvironmentLock, Folder, sources};
use crate::checkpoints::{fall_back_notice, keep_variables, mirror_run, view};
use crate::context::launchers::engine_of;
use crate::error::{AppError, ErrorKind};
use crate::home::changed_at;
use crate::json_file::read_if_sound;
use crate::ledger::rows::rung_of;
use crate::reporter::{Notice, Reporter};
use crate::run::detect::replay::Replay;
use crate::run::evaluator::evaluator_versions;
use crate::run::job::{Job, refused, requested};
use crate::run::ladder::Ladder;
use crate::run::ladder::warm_start::{WARM_START_VARIABLE, WarmStart};
use crate::run::prepare::begin::{Prepared, capture_surroundings, own_environment};
use crate::run::queue::hold_for;
use crate::run::record::earlier;
use crate::run::remote::RemotePlan;
use crate::run::remote::fetch::fetch;
use crate::run::retry::roll_back;
use crate::run::trust;

/// The batches that the script skips since the run was rolled back: `docs/detectors.md`.
const SKIP_BATCHES: &str = Variable::SkipBatches.as_str();

/// An attempt that was launched.
pub struct Launched {
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

impl Launched {
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

/// The rest of a capture, made beside the running script: nothing of it keeps the script waiting.
#[derive(Default)]
pub struct LateCapture(Cell<Option<JoinHandle<io::Result<()>>>>);

impl LateCapture {
    /// Begins to read the files. Where no thread can be had the capture stays incomplete, and says so.
    fn begin(context: &Context, stored: StoredCapture, folder: Folder) -> Self {
        let (layout, redactor) = (context.home.layout.clone(), Arc::clone(&context.redactor));
        let work = move || stored.complete(folder, &layout, &redactor);
        Self(Cell::new(std::thread::Builder::new().name("late-capture".into()).spawn(work).ok()))
    }

    /// Waits for it.
    ///
    /// # Errors
    /// When it could not be stored.
    pub fn finish(&self) -> io::Result<()> {
        let Some(thread) = self.0.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the step ended in a panic; please report it")))
    }
}

impl Drop for LateCapture {
    fn drop(&mut self) {
        // Without an end of the attempt here, the capture itself says what it lacks.
        let _ = self.finish();
    }
}

/// A capture as it is in the folder of the attempt.
struct StoredCapture {
    path: PathBuf,
    document: Value,
}

impl StoredCapture {
    fn complete(mut self, mut folder: Folder, layout: &HomeLayout, redactor: &Redactor) -> io::Result<()> {
        folder.read(redactor);
        sources::keep_folder(layout, redactor, &folder);
        let mut found = serde_json::to_value(&folder)?;
        redactor.json(&mut found);
        if let Some(fields) = self.document.as_object_mut() {
            fields.insert("folder".into(), found);
            fields.remove("incomplete");
        }
        TempFile::write_cache(&self.path, format!("{:#}", self.document).as_bytes())
    }
}

/// What a launch has in its environment beyond the plan.
#[derive(Debug, Clone, Default)]
pub struct Additions {
    /// The changes of a retry plan, which make it another config.
    pub in_force: PlanEntry,
    /// Trackway's own variables, for a rehearsal and after a roll back, which do not.
    pub own: BTreeMap<String, OsString>,
    /// The rung of the data; `None`: that of the attempt before, or else the first one.
    pub rung: Option<Rung>,
    /// Machines that it must not run on.
    pub exclude_hosts: Vec<String>,
    /// Where its changes to the working directory go instead.
    pub isolation: Option<Isolation>,
    /// What it starts from, if that was captured just now.
    pub capture: Option<Capture>,
    /// The terminals of its script, for a launcher that has a use for them.
    pub terminal: Option<Arc<Terminal>>,
}

impl Additions {
    /// What the attempt is given: the resources of the plan, with the changes of its retries.
    pub(in crate::run) fn resources(&self, plan: &Plan) -> ResourcesSection {
        plan.resources.changed(&self.in_force.resources)
    }

    /// The engine that launches it: as the plan says, or a retry of it.
    fn engine<'p>(&self, plan: &'p Plan) -> &'p str {
        plan.launch.engine_with(&self.in_force)
    }
}

/// Launches the attempt after `previous`. `offer`: that of [`offer_to`], with these additions. `asked_for`: a person
/// wants it, rather than that it follows from the end of `previous`.
pub fn launch_next(
    context: &Context,
    prepared: &Prepared,
    previous: Option<&AttemptRow>,
    (additions, offer): (&Additions, &Offer),
    asked_for: bool,
    reporter: &dyn Reporter,
) -> Result<Launched, AppError> {
    if let Some(previous) = previous {
        // First: what follows looks for a checkpoint, and must not find one that is to be left.
        roll_back::carry_out(context, &prepared.run, previous, reporter)?;
    }
    let capture = match &additions.capture {
        Some(capture) => Cow::Borrowed(capture),
        // It was captured when this command began; what follows an end may come hours later.
        None if asked_for => Cow::Borrowed(&prepared.capture),
        None => Cow::Owned(capture_surroundings(context, &prepared.job)),
    };
    let mut inputs = LaunchInputs::now(context, prepared, previous, capture, reporter)?;
    let gpus = additions.resources(&prepared.job.plan).gpus > 0;
    let container = container(context, prepared, (offer, gpus), reporter)
        .map_err(|error| context.fail_run(prepared.run.run_id, error))?;
    if let Some(container) = &container {
        inputs.runs_in(container);
    }
    let mut row = planned_row(context, prepared, previous, &inputs, (additions, offer));
    // The attempt before, if it is of this rung: another rung has other checkpoints.
    let previous_here = previous.filter(|previous| previous.rung == row.rung);
    if let Some(previous) = previous_here {
        // Before the marks and the search: what is committed here may be the newest checkpoint.
        adopted::adopt_what_is_left(context, prepared, previous, reporter)?;
        // What was committed just now was not judged yet, and a mark that failed is set now or nothing is launched.
        let is_new = !context.home.layout.attempt(previous.attempt_id).exit_json().exists();
        let mut replay = Replay::of(context, &prepared.run, previous)?;
        let marked = trust::mark_ended(context, &prepared.run, previous, is_new, &mut replay.losses)?;
        marked.into_iter().for_each(|text| reporter.note(text));
        // After the marks: it steps back from what a resume would still take.
        report_step_back(context, (prepared, previous), reporter);
    } else {
        begin_rung(context, &row)?;
    }
    // After the rollback was carried out: its row has the batches.
    let additions = &skipping(context, &mut row, additions)?;
    let follows = previous_here.filter(|_| !asked_for);
    // After every mark: nothing continues from what was just found unsafe or suspect.
    let target = start_from(context, prepared, &mut row, follows, reporter)?;
    // Every byte of what it continues from was read.
    let checked = row.resumed_from_manifest_sha256.iter().map(|manifest| (manifest.clone(), true)).collect();
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
    let data = inputs.data_of(&row);
    // Durable before the launch: if this process ends in between, the next one finds the attempt.
    record_planned(context, &row, (&data, &inputs.snapshots), previous)?;
    adoption.record(context)?;
    // After the row was written: an attempt that was written down and never launched has no start.
    row.started_at = Some(context.clock.now());
    let unread = inputs.take_unread();
    let stored = store_capture(context, prepared, &inputs.capture, &spec)?;
    keep_sources(context, prepared, row.attempt_id, &inputs.capture)?;
    warm_start.iter().try_for_each(|warm_start| warm_start.write(context, row.attempt_id))?;
    // Not durable: the seal of the attempt computes both again.
    let run = context.change_run_soon(row.run_id, |run| {
        run.attempt_count = row.attempt_number;
        run.started_at = run.started_at.or(row.started_at);
    })?;
    let named = Ladder::of(&prepared.run)?.named;
    // Before it begins: if this supervisor ends just after that, the place stays taken.
    let files = context.home.layout.attempt(row.attempt_id);
    hold_for(prepared, files.folder(), reporter);
    let (placement, waits) = submit(context, &mut row, &spec)?;
    // Only now: the script does not wait until files are read.
    let late_capture = unread.map(|folder| LateCapture::begin(context, stored, folder)).unwrap_or_default();
    // Once more, with its placement: a ledger that is made again from these copies has it too.
    let copy = KeptRows::of_launch(&row, &data, &inputs.snapshots);
    context.keep(row.run_id, RowCopy::Attempt(row.attempt_id), &copy);
    let launched = Launched {
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
        Err(error) if !error.kind.is_passing() => return Err(error),
        _ => {}
    }
    report_started(&launched.row, named, warm_start.as_ref(), reporter);
    waits.into_iter().for_each(|text| reporter.note(text));
    if let Some(text) = steps_said(context, &launched.row, previous_here) {
        reporter.note(text);
    }
    if let Some(text) = previous.and_then(|previous| variables::changed_since(previous, &files)) {
        let kind = EventKind::VariablesChanged;
        let event = EventRow::of_attempt(&launched.row, kind, context.clock.now(), text.clone());
        // The note has it too: a missing event does not hold up what already runs.
        let _ = context.ledger_write_now(|ledger| ledger.append_event(&event));
        reporter.note(text);
    }
    Ok(launched)
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

fn report_started(row: &AttemptRow, named: bool, warm_start: Option<&WarmStart>, reporter: &dyn Reporter) {
    reporter.notice(&Notice::AttemptStarted {
        attempt_id: row.attempt_id,
        attempt_number: row.attempt_number,
        rung: named.then(|| row.rung.clone()),
        resumed_from_step: row.resumed_from_step,
        warm_start: warm_start.map(WarmStart::sentence),
    });
}

/// What the step is that the attempt continues from, such as an epoch.
fn steps_said(context: &Context, row: &AttemptRow, previous: Option<&AttemptRow>) -> Option<String> {
    let from = row.resumed_from_step?;
    let highest = previous?.last_step.max(Some(from));
    let are = steps_are(&context.home.layout.run(row.run_id), highest)?;
    Some(format!("{are}: the script prints nothing finer"))
}

/// Keeps the changes that are in no commit, and the run file.
fn keep_sources(
    context: &Context,
    prepared: &Prepared,
    attempt_id: AttemptId,
    capture: &Capture,
) -> Result<(), AppError> {
    let (layout, run_file) = (&context.home.layout, prepared.job.run_file.as_deref());
    sources::keep(layout, &context.redactor, attempt_id, capture, run_file)
        .map_err(|error| AppError::file("write below", &layout.sources(), &error))
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
        .map_err(|error| AppError::fault(format!("attempt {} was not launched", row.attempt_id), &error))?;
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

/// The state of an attempt that was seen alive.
pub(in crate::run) fn live_state(seen: &Observation) -> Option<AttemptState> {
    match seen {
        Observation::Pending { .. } => Some(AttemptState::Queued),
        Observation::Running(_) => Some(AttemptState::Running),
        Observation::Exited(_) | Observation::Gone { .. } | Observation::CannotTell { .. } => None,
    }
}

/// Notes the checkpoint that the attempt continues from, brought to this disk where it is only at the remote. Returns
/// it where every byte of it was read here.
fn start_from(
    context: &Context,
    prepared: &Prepared,
    row: &mut AttemptRow,
    follows: Option<&AttemptRow>,
    reporter: &dyn Reporter,
) -> Result<Option<LoadedCheckpoint>, AppError> {
    match &prepared.remote {
        None => {
            let target = resume_target(context, prepared, row, reporter)?;
            if let Some(target) = &target {
                row.resumed_from_step = Some(target.info.step);
                row.resumed_from_manifest_sha256.clone_from(&target.info.manifest_sha256);
            }
            Ok(target)
        }
        Some(remote) => fetch_for(context, &remote.at(rung_of(row)), row, follows, reporter).map(|()| None),
    }
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

/// Stores the whole capture beside the attempt; the columns of its row hold the part that is needed most often. Of the
/// environment only allowed names are kept, and those that the run file passes on.
fn store_capture(
    context: &Context,
    prepared: &Prepared,
    capture: &Capture,
    spec: &LaunchSpec,
) -> Result<StoredCapture, AppError> {
    let passed = &prepared.job.plan.run.pass_environment;
    let environment =
        stored_environment(&context.redactor, own_environment().collect(), passed, &spec.shown_environment());
    let path = AttemptLayout::new(&spec.directory).capture_json();
    let mut stored = serde_json::to_value(capture)
        .map_err(|error| AppError::fault("the capture cannot be written as JSON", &error))?;
    let hashes = variables::own_hashes(context, &environment);
    stored["environment"] = serde_json::json!(environment);
    context.redactor.json(&mut stored);
    stored[variables::FIELD] = serde_json::json!(hashes);
    trackway_files::make_folders(&spec.directory)
        .and_then(|()| trackway_files::write_own(&path, format!("{stored:#}").as_bytes()))
        .map_err(|error| AppError::file("write", &path, &error))?;
    Ok(StoredCapture { path, document: stored })
}

/// The part of an environment that may be stored: allowed names, those that the run file passes on and sets, and Trackway's own by their
/// table.
fn stored_environment(
    redactor: &Redactor,
    own: BTreeMap<String, String>,
    passed: &[String],
    set: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let is_own = |name: &str| name.starts_with(Variable::PREFIX);
    let mut environment = redactor.environment(&own);
    let named = own.iter().filter(|(name, _)| passed.contains(name)).chain(set);
    let named: BTreeMap<String, String> = named.map(|(name, value)| (name.clone(), value.clone())).collect();
    environment.extend(redactor.settings(&named));
    // Of Trackway's variables the table alone decides, whatever the run file passes on.
    environment.retain(|name, _| !is_own(name));
    for (name, value) in own.iter().chain(set).filter(|(name, _)| is_own(name)) {
        let part = name.parse::<Variable>().map_or(StoredPart::Nothing, Variable::stored_part);
        // The host of an address is stored even where the whole address is a secret.
        let stored = part.of(value).map(|part| redactor.text(&part).into_owned());
        environment.extend(stored.map(|stored| (name.clone(), stored)));
    }
    environment
}

/// Where an attempt was put, in the columns of its row.
pub fn note_placement(row: &mut AttemptRow, placement: &Placement) {
    row.launcher.clone_from(&placement.launcher);
    row.job_id = Some(placement.job_id.clone());
    row.queue.clone_from(&placement.queue);
    row.placement_json = serde_json::to_value(placement).ok();
}

/// What an attempt was given, in the columns of its row; what is not known leaves them as they are.
pub fn note_seen(row: &mut AttemptRow, seen: &ObservedAttempt) {
    row.hosts = listed(&seen.hosts).or(row.hosts.take());
    row.devices = listed(&seen.devices).or(row.devices.take());
    row.submitted_at = seen.submitted_at.or(row.submitted_at);
    row.engine_instance = instance_of(row, seen).or(row.engine_instance.take());
    let has_not_begun = matches!(seen.state, Observation::Pending { .. }) || seen.never_started();
    row.started_at = if has_not_begun { None } else { seen.started_at.or(row.started_at) };
    row.queued_seconds = queued_seconds(row.submitted_at, row.started_at);
}

/// The engine of an attempt and its name for a start of it; none where it has none: only an engine starts something again.
pub(in crate::run) fn instance_of(row: &AttemptRow, seen: &ObservedAttempt) -> Option<String> {
    let Instance(start) = seen.instance.as_ref()?;
    seen.engine_state.as_ref().map(|_| format!("{}:{start}", engine_of(row).unwrap_or(&row.launcher)))
}

/// How long it was in the queue of its engine; none before it left that, or where there is no queue.
pub(in crate::run) fn queued_seconds(
    submitted_at: Option<Timestamp>,
    started_at: Option<Timestamp>,
) -> Option<f64> {
    // Clocks of two machines may disagree.
    Some(started_at?.seconds_since(submitted_at?).max(0.0))
}

/// Names in one column; none if there are none.
pub fn listed(names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| names.join(","))
}

fn planned_row(
    context: &Context,
    prepared: &Prepared,
    previous: Option<&AttemptRow>,
    inputs: &LaunchInputs<'_>,
    (additions, offer): (&Additions, &Offer),
) -> AttemptRow {
    let attempt_id = AttemptId::new(&context.ids);
    let number = previous.map_or(1, |previous| previous.attempt_number + 1);
    let mut row = AttemptRow::planned(attempt_id, number, prepared.run.kind, &prepared.run);
    let rung = additions.rung.or_else(|| previous.map(rung_of));
    row.rung = rung.unwrap_or(Rung::FULL).to_string();
    row.parent_attempt_id = previous.map(|previous| previous.attempt_id);
    row.epoch = Some(u64::from(number));
    row.command.clone_from(&prepared.job.stored_plan.run.command);
    row.working_directory = prepared.job.working_directory().to_string_lossy().into_owned();
    row.log_directory = context.home.layout.attempt(attempt_id).folder().to_string_lossy().into_owned();
    let resources = additions.resources(&prepared.job.plan);
    row.usd_per_gpu_hour = resources.usd_per_gpu_hour;
    row.gpu_count = Some(resources.gpus);
    row.launcher = offer.launcher.into();
    row.engine_instance.clone_from(&offer.engine);
    // The row and its config are stored: secrets that a retry sets stay out of both.
    let set = context.redactor.settings(&additions.in_force.set);
    apply_changes(&mut row, &PlanEntry { set, ..additions.in_force.clone() }, &resources);
    row.data_sha256.clone_from(&inputs.data_sha256);
    row.evaluator_versions = evaluator_versions(&prepared.job).filter(|_| row.kind == LaunchKind::Train);
    note_capture(&mut row, &inputs.capture);
    row
}

/// A rung begins with no committed step, whatever the one before had.
fn begin_rung(context: &Context, row: &AttemptRow) -> Result<(), AppError> {
    if context.run_by_id(row.run_id)?.last_committed_step.is_some() {
        context.change_run(row.run_id, |run| run.last_committed_step = None)?;
    }
    Ok(())
}

fn note_warm_start(row: &mut AttemptRow, warm_start: Option<&WarmStart>) {
    if let Some(from) = warm_start {
        row.warm_start_run_id = from.run_id;
        row.warm_start_rung = Some(from.rung.clone());
        row.warm_start_step = Some(from.step);
        row.warm_start_manifest_sha256.clone_from(&from.manifest_sha256);
    }
}

/// The remote grants the epoch and determines what the attempt resumes from. A committed step that the ledger has and
/// the remote does not is an error here too.
fn fetch_for(
    context: &Context,
    remote: &RemotePlan,
    row: &mut AttemptRow,
    follows: Option<&AttemptRow>,
    reporter: &dyn Reporter,
) -> Result<(), AppError> {
    let fetched = fetch(context, remote, row, follows, reporter)?;
    let run = context.run_by_id(row.run_id)?;
    if fetched.step.is_none() && run.last_committed_step.is_some() && fetched.begins_again.is_none() {
        let message =
            format!("not launched: the ledger has a committed step, and {} has none", fetched.location);
        let error =
            AppError::new(ErrorKind::Integrity, message).hint("restore the checkpoints, or start a new run");
        return Err(context.fail_run(run.run_id, error));
    }
    row.epoch = Some(fetched.epoch);
    row.resumed_from_step = fetched.step;
    row.resumed_from_manifest_sha256 = fetched.manifest_sha256;
    Ok(())
}

/// The checkpoint the attempt should resume from, every byte of it read. Committed steps that cannot be resumed from
/// are an explicit error before the launch, never a silent step 0.
fn resume_target(
    context: &Context,
    prepared: &Prepared,
    row: &AttemptRow,
    reporter: &dyn Reporter,
) -> Result<Option<LoadedCheckpoint>, AppError> {
    let run = context.run_by_id(prepared.run.run_id)?;
    let root = context.home.layout.checkpoint_root(run.run_id, run.kind, &row.rung);
    let view = view(&root)?;
    let begins_again = trust::begins_again(&view.skipped());
    let why = match view.resume_target() {
        Ok(None) if begins_again.is_some() => {
            begins_again.into_iter().for_each(|text| reporter.note(text));
            return Ok(None);
        }
        Ok(None) => match run.last_committed_step {
            Some(step) => format!(
                "step {step} was committed, as the ledger and the attempts' records have it, and `{}` has no committed step",
                root.display()
            ),
            None => return Ok(None),
        },
        Ok(Some(loaded)) => {
            let pace = earlier::pace_before(context, row)?;
            fall_back_notice(&loaded, pace).into_iter().for_each(|text| reporter.note(text));
            return Ok(Some(resumed_from(&view, loaded)));
        }
        Err(error) => error.to_string(),
    };
    let error = AppError::new(ErrorKind::Integrity, format!("not launched: {why}"))
        .hint(format!("see what is wrong with: trackway checkpoint doctor {}", run.run_id))
        .hint("restore the checkpoints, or start a new run");
    Err(context.fail_run(run.run_id, error))
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

/// The changes of a retry plan are part of the attempt, of its config and of its hash.
/// Makes the config of an attempt that of its changes, if there are any.
fn apply_changes(row: &mut AttemptRow, in_force: &PlanEntry, resources: &ResourcesSection) {
    let PlanEntry { set, resources: changed, .. } = in_force;
    if set.is_empty() && changed.is_empty() {
        return;
    }
    let mut config = row.config_json.clone();
    if !changed.is_empty() {
        config["resources"] = serde_json::json!(resources);
    }
    if let Some(run) = config.get_mut("run").and_then(serde_json::Value::as_object_mut) {
        let environment = run.entry("environment").or_insert_with(|| serde_json::json!({}));
        for (name, value) in set {
            environment[name.as_str()] = value.as_str().into();
        }
    }
    row.config_json = config;
    let other_gpus = changed.gpus.is_some() || changed.gpu.is_some();
    if set.is_empty() && !other_gpus {
        return; // Cores and memory decide no result.
    }
    let mut hashed = serde_json::json!({ "config": row.config_sha256, "set": set });
    if other_gpus {
        hashed["gpus"] = serde_json::json!([resources.gpus, resources.gpu]);
    }
    row.config_sha256 = sha256_hex(canonical_json(&hashed).as_bytes());
}

fn note_capture(row: &mut AttemptRow, capture: &Capture) {
    row.git_commit.clone_from(&capture.git.commit);
    row.git_branch.clone_from(&capture.git.branch);
    row.git_dirty = capture.git.dirty;
    row.git_diff_blake3.clone_from(&capture.git.dirty_diff_blake3);
    row.script_blake3 = capture.script.as_ref().and_then(|script| script.blake3.clone());
    row.environment_lock_sha256.clone_from(&capture.environment_lock.sha256);
    row.environment_lock_source = lock_source(&capture.environment_lock);
    row.container_digest.clone_from(&capture.container.digest);
    row.host_cpu_count = capture.host.cpu_count.and_then(|count| u32::try_from(count).ok());
    row.host_memory_bytes = capture.host.memory_bytes;
    let names: Vec<String> = capture.gpus.gpus.iter().filter_map(|gpu| gpu.name.clone()).collect();
    row.gpu_names = listed(&names);
}

/// `python 3.11.7, 42 packages` or the path of a lock file.
fn lock_source(lock: &EnvironmentLock) -> Option<String> {
    match (&lock.python_version, lock.package_count) {
        (Some(version), Some(count)) => Some(format!("python {version}, {count} packages")),
        _ => lock.path.clone(),
    }
}

/// The path of each data set by its name, as JSON; of what is not a URL from the root.
fn data_paths(job: &Job) -> String {
    let path = |set: &DataSpec| match set.path.contains("://") {
        true => set.path.clone(),
        false => job.base.join(&set.path).to_string_lossy().into_owned(),
    };
    let paths: BTreeMap<&String, String> =
        job.plan.data.iter().map(|(name, set)| (name, path(set))).collect();
    serde_json::json!(paths).to_string()
}

/// The files of the run's data, as they were when they were hashed; none for a run without data.
pub(in crate::run) fn states_of_run(context: &Context, run_id: RunId) -> Option<FileStates> {
    // A file that is not there or cannot be read means that nothing is known of them.
    read_if_sound(&context.home.layout.run(run_id).data_files_json())
}

fn spec_of(
    context: &Context,
    prepared: &Prepared,
    row: &AttemptRow,
    (additions, offer): (&Additions, &Offer),
    warm_start: Option<&WarmStart>,
    adoption: &Adoption,
) -> LaunchSpec {
    let plan = &prepared.job.plan;
    let words = |texts: &BTreeMap<String, String>| -> BTreeMap<String, OsString> {
        texts.iter().map(|(name, value)| (name.clone(), value.into())).collect()
    };
    // What comes later counts: a retry changes what the run file sets, and neither changes Trackway's own variables.
    let mut environment = words(&plan.run.environment);
    environment.extend(adoption.environment.clone());
    environment.extend(words(&additions.in_force.set));
    environment.extend(additions.own.clone());
    environment
        .extend(keep_variables(&plan.checkpoint).into_iter().map(|(name, value)| (name, value.into())));
    if !plan.data.is_empty() {
        environment.insert(Variable::Data.as_str().into(), data_paths(&prepared.job).into());
    }
    if let Some(remote) = &prepared.remote {
        environment
            .insert(Variable::CheckpointRemote.as_str().into(), remote.at(rung_of(row)).location().into());
    }
    if let Some(warm_start) = warm_start {
        environment.insert(WARM_START_VARIABLE.into(), warm_start.root.clone().into());
        let number = warm_start.number.map(|number| number.to_string().into());
        environment.extend(number.map(|number| (Variable::WarmStartNumber.as_str().to_owned(), number)));
    }
    LaunchSpec {
        directory: context.home.layout.attempt(row.attempt_id).folder().to_owned(),
        argv: plan.run.command.iter().map(OsString::from).chain(adoption.args.iter().cloned()).collect(),
        environment,
        terminal: additions.terminal.clone(),
        details: with_fields_of!(
            LaunchDetails,
            &row,
            [run_id, attempt_id, attempt_number, kind, config_sha256, data_sha256],
            rung: rung_of(row).fraction().to_string(),
            epoch: row.epoch.unwrap_or(1),
            working_directory: prepared.job.working_directory(),
            grace_seconds: plan.supervise.grace_seconds,
            linger_seconds: None,
            checkpoint_root: context.home.layout.checkpoint_root(row.run_id, row.kind, &row.rung),
            seed: plan.run.seed,
            data_files: states_of_run(context, row.run_id).unwrap_or_default().places_by_set(),
            adopt: adoption.adopt.clone(),
            isolation: additions.isolation.clone(),
            container: None,
            continues_from: adoption.continues_from.clone(),
            checkpoint_every_steps: plan.checkpoint.every_steps,
            checkpoint_every_seconds: plan.checkpoint.every_seconds,
            checkpoint_every_epochs: plan.checkpoint.every_epochs,
            devices: Vec::new(),
            request: requested(plan, &additions.in_force, &additions.exclude_hosts, offer),
        ),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{CaptureInputs, capture_without_bytes};

    /// Proves that a stored capture gets the files beside the script when they are read, with the bytes of settings,
    /// says then that it lacks nothing, and keeps what it had.
    #[test]
    fn a_capture_is_completed_beside_the_script() {
        let (beside, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(beside.path().join("a.yaml"), "lr: 0.1\n").unwrap();
        let layout = HomeLayout::new(home.path());
        std::fs::create_dir_all(layout.sources()).unwrap();
        let redactor = Redactor::of_shapes();
        let found = capture_without_bytes(&CaptureInputs {
            argv: &["true".to_owned()],
            working_directory: beside.path(),
            environment: &BTreeMap::new(),
            container_image: None,
            exclude: &[],
            redactor: &redactor,
        });
        let document = serde_json::json!({ "folder": null, "incomplete": "the files", "script": "t.py" });
        let stored = StoredCapture { path: home.path().join("capture.json"), document };
        let path = stored.path.clone();
        stored.complete(found.folder.unwrap(), &layout, &redactor).unwrap();
        let stored: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let blake3 = blake3::hash(b"lr: 0.1\n").to_hex().to_string();
        assert_eq!(stored["folder"]["files"][0]["blake3"], blake3.as_str());
        assert_eq!((stored.get("incomplete"), &stored["script"]), (None, &serde_json::json!("t.py")));
        assert!(layout.file_source(&blake3).exists());
    }

    /// Proves for every variable of Trackway that of its value is stored what the table says, and that neither a name without a row nor
    /// one that the run file passes on gets past it.
    #[test]
    fn of_trackways_variables_is_stored_what_the_table_says() {
        let redactor = Redactor::of_shapes();
        let secret = "https://mm.example.org/hooks/s3cr3tpathvalue99";
        let new = format!("{}NEW", Variable::PREFIX);
        let own: BTreeMap<String, String> = Variable::ALL
            .iter()
            .map(|variable| variable.as_str())
            .chain([new.as_str(), "EDITOR", "LANG"])
            .map(|name| (name.to_owned(), secret.to_owned()))
            .collect();
        let passed = [Variable::Webhook.as_str(), &new, Variable::Decoding.as_str()].map(str::to_owned);
        let stored = stored_environment(&redactor, own.clone(), &passed, &own);
        for variable in Variable::ALL {
            let expected = match variable.stored_part() {
                StoredPart::Value => Some(secret),
                StoredPart::Host => Some("https://mm.example.org"),
                StoredPart::Nothing => None,
            };
            assert_eq!(stored.get(variable.as_str()).map(String::as_str), expected, "{variable}");
        }
        assert!(!stored.contains_key(&new));
        assert_eq!(Variable::Webhook.stored_part(), StoredPart::Host, "documented as a secret");
    }
}
