//! From an ended attempt to a receipt that no longer changes, and to what follows from it.
//!
//! Everything is computed from the attempt's folder, so it can be done by any process at any later time, and twice:
//! the same folder gives the same receipt.

mod completeness;
mod engine_end;
mod evidence;
mod health;
mod inputs;
mod not_kept;
mod resumed;
#[cfg(test)]
mod tests;
mod usage;
mod work;

use trackway_core::text::counted;
use trackway_core::{AttemptId, Clock as _, LaunchKind, Step, TerminationReason, Timestamp};
use trackway_formats::EventKind;
use trackway_formats::layout::AttemptLayout;
use trackway_formats::record::CheckpointChange;
use trackway_formats::runfile::{RunSection, SigtermMeaning};
use trackway_launch::shim::ShimRecord;
use trackway_launch::{EngineState, ExitRecord};
use trackway_ledger::{
    AttemptRow, AttemptSeal, AttemptState, CostRow, EventRow, MetricSummaryRow, RetryRow, RunRow, RunState,
    RungRow, SealOutcome as SealedWhen,
};
use trackway_records::{ClosedRecords, close_records};
use trackway_rules::classify::LauncherState;
use trackway_rules::{TerminationVerdict, classify};

use self::completeness::completeness;
use self::engine_end::EngineEnd;
use self::evidence::{End, gather};
pub use self::not_kept::not_kept_of;
use self::usage::gpu_busy_seconds;
use super::detect::replay::Replay;
use super::launch::row::queued_seconds;
use super::launch::spec::states_of_run;
use super::record::earlier::{self, AttemptTotals};
use super::record::effective_batch::effective_batch;
use crate::Context;
use crate::attempt::actions;
use crate::checkpoints::{RungCheckpoints, with_values_at_steps};
use crate::error::{AppError, ErrorKind};
use crate::ledger::stored::stored_plan;
use crate::run::ladder::warm_start::WarmStart;
use crate::run::ladder::{RungOutcome, rung_row};
use crate::run::remote::fetch::FetchReport;
use crate::run::{self, Decided, decide, note_placement, note_seen};

/// How often a seal is tried while other processes change the run.
const CHANGES_MAX: u32 = 8;

/// A sealed attempt and what follows.
pub struct SealedAttempt {
    /// The receipt.
    pub row: AttemptRow,
    /// The most specific piece of evidence.
    pub evidence: String,
    /// What was decided.
    pub decision: RetryRow,
    /// What is shown to its starter beside that.
    pub notes: Vec<String>,
}

/// Seals an attempt that ended, decides what follows, and writes both down. Doing it again changes nothing.
///
/// # Errors
/// When the attempt is alive or cannot be seen; when a file or the ledger fails, and then nothing is half done.
pub fn seal(context: &Context, attempt_id: &AttemptId) -> Result<SealedAttempt, AppError> {
    let row = context.ledger_read(|ledger| ledger.attempt(*attempt_id))?.ok_or_else(|| {
        AppError::new(ErrorKind::NotFound, format!("attempt {attempt_id} is not in the ledger"))
    })?;
    // Sealed before, perhaps by a process that died since: only its copy may be missing, and the decision of an earlier version.
    if row.state == AttemptState::Sealed {
        let decision = decision_of(context, &row)?;
        return Ok(SealedAttempt { evidence: first_evidence(&row), row, decision, notes: Vec::new() });
    }
    let mut row = placed(context, row)?;
    let files = context.home.layout.attempt(*attempt_id);
    // Before anything is written: what may be alive is refused here.
    let (end, engine_end) = end_of(context, &mut row, &files)?;
    let run = context.run_by_id(row.run_id)?;
    // Before the rows: they follow the log. What cannot be marked now is before the next launch.
    let mut replay = Replay::of(context, &run, &row)?;
    let _ = run::trust::mark_ended(context, &run, &row, true, &mut replay.losses);
    let plan = stored_plan(&run).ok().flatten().unwrap_or_default();
    let given = RunSection::of_stored(&run.config_json);
    let mut checkpoints = RungCheckpoints::of(context, &row)?;
    let own = checkpoints.rows.iter().filter(|one| one.attempt_id == row.attempt_id);
    let steps = own.map(|one| one.step).collect();
    let mut closed = close_records(context.home.folder(), &row, &given, &steps)?;
    checkpoints.rows = with_values_at_steps(checkpoints.rows, row.attempt_id, &closed.at_steps);
    let judged = judged(context, &run, &row, (&closed.summaries, &closed.events))?;
    let judged = match judged {
        Some(judged) => Some(match health::broken_because(context, &run, &row, &replay)? {
            Some(why) => judged.refused(&format!("its health is broken: {why}")),
            None => judged,
        }),
        None => None,
    };
    let mut evidence = gather(&row, &end, &closed, &files)?;
    evidence.launcher = engine_end.map(LauncherState::from);
    evidence.sigterm_preempts = plan.supervise.sigterm == SigtermMeaning::Preempted;
    evidence.rung_refused = judged.as_ref().and_then(RungOutcome::refusal);
    let verdict = classify(&evidence);
    if verdict.reason == TerminationReason::NumericDivergence && !replay.losses.has_episodes() {
        // The end shows a lost loss that the record does not: the checkpoints are judged again in this knowledge.
        let mut losses = replay.losses.clone();
        losses.doubt();
        let _ = run::trust::mark_ended(context, &run, &row, true, &mut losses);
    }
    // Before any of its checkpoints is deleted.
    let unmoved = health::unmoved(context, &row);
    if row.kind == LaunchKind::Train {
        // After the marks, by which retention knows what is safe.
        run::trust::retire_ended(context, &run, &row, &plan.checkpoint);
        // Read again: some of them may be retired now.
        checkpoints = RungCheckpoints::of(context, &row)?;
        checkpoints.rows = with_values_at_steps(checkpoints.rows, row.attempt_id, &closed.at_steps);
    }
    let mut row = receipt(context, row, &end, &closed, &checkpoints, &verdict);
    closed.events.extend(resumed::note_resumed(context, &files, &mut row, &closed));
    closed.events.extend(ended_processes(&row, &end));
    closed.events.extend(not_kept::events(&row, &end, &closed));
    let not_kept = not_kept_of(closed.events.iter()).or_else(|| not_kept::unknown_of(&end));
    health::note(context, &run, &mut row, (&replay, unmoved, not_kept.as_deref()))?;
    let row = worked(context, row, &closed)?;
    // After all that the receipt gets: the decision reads it as it will be sealed.
    let decided = decide(context, &row, judged.as_ref())?;
    let rung = match stored_plan(&run) {
        Ok(_) => rung_row(context, &run, &row, &closed.summaries, judged.as_ref())?,
        Err(_) => None,
    };
    write_down(context, row, closed, checkpoints, rung, decided)
}

/// The decision about its rung. A plan that cannot be read does not keep a receipt open: the decision names it.
fn judged(
    context: &Context,
    run: &RunRow,
    row: &AttemptRow,
    (summaries, events): (&[MetricSummaryRow], &[EventRow]),
) -> Result<Option<RungOutcome>, AppError> {
    if stored_plan(run).is_err() {
        return Ok(None);
    }
    run::judge_rung(context, run, row, summaries, events)
}

/// The supervisor may not have recorded where the attempt was placed; its folder has it.
fn placed(context: &Context, mut row: AttemptRow) -> Result<AttemptRow, AppError> {
    if row.placement_json.is_none()
        && let Some(placement) = context.placement_of(&row)?
    {
        note_placement(&mut row, &placement);
    }
    Ok(row)
}

/// The decision after a sealed attempt, and its receipt is kept now where the process that sealed it died before that.
pub fn decision_of(context: &Context, row: &AttemptRow) -> Result<RetryRow, AppError> {
    let stored = context.ledger_read(|ledger| ledger.retries_after(&[row.attempt_id]))?.pop();
    let decision = stored.map_or_else(|| decide_later(context, row), Ok)?;
    // The ledger has it: a copy that cannot be kept stops nothing.
    let _ = context.keep_sealed_later(row.run_id, row.attempt_id);
    Ok(decision)
}

/// The decision of an attempt that was sealed without one: an earlier version wrote it down after the seal.
fn decide_later(context: &Context, row: &AttemptRow) -> Result<RetryRow, AppError> {
    let run = context.run_by_id(row.run_id)?;
    let summaries = context.ledger_read(|ledger| ledger.metric_summaries_of(row.attempt_id))?;
    let events = context.ledger_read(|ledger| ledger.events_of_attempt(row.attempt_id))?;
    let decided = decide(context, row, judged(context, &run, row, (&summaries, &events))?.as_ref())?;
    context.ledger_write(|ledger| ledger.insert_retry(&decided.retry))?;
    Ok(decided.retry)
}

fn write_down(
    context: &Context,
    row: AttemptRow,
    closed: ClosedRecords,
    checkpoints: RungCheckpoints,
    rung: Option<RungRow>,
    decided: Decided,
) -> Result<SealedAttempt, AppError> {
    let run_after = RunAfter::of(context, &row, (&checkpoints, &closed), decided.run_state)?;
    let mut events = checkpoint_events(&row, &closed);
    events.extend(action_events(context, &row)?);
    events.extend(fetch_events(context, &row));
    events.extend(warm_start_event(context, &row));
    events.extend(closed.events);
    events.extend(lost_output(&row));
    events.extend(changed_data(context, &row));
    events.extend(inputs::unopened_data(context, &row, &events)?);
    events.extend(inputs::changed_batch(context, &row)?);
    let seal = AttemptSeal {
        costs: costs(&row),
        metric_summaries: closed.summaries,
        parameters: closed.parameters,
        tags: closed.tags,
        artifacts: closed.artifacts,
        segments: closed.segments,
        events,
        checkpoints: checkpoints.rows,
        rung,
        decision: Some(decided.retry.clone()),
        ..AttemptSeal::of(row)
    };
    let (seal, sealed_at) = seal_with_run(context, seal, &run_after)?;
    let decision = match sealed_at {
        // From what is kept, a ledger that was lost is made again with the same digests.
        Some(sealed_at) => {
            let detections =
                context.ledger_read(|ledger| ledger.detections_of_attempt(seal.attempt.attempt_id))?;
            context.keep_sealed(&seal, sealed_at, &detections);
            decided.retry
        }
        // The process that sealed it decided, too.
        None => decision_of(context, &seal.attempt)?,
    };
    let is_shown = |event: &&EventRow| {
        let shown = [EventKind::OutputLost, EventKind::ProcessesEnded, EventKind::EventFileSkipped];
        shown.iter().any(|kind| kind.is(&event.kind)) || not_kept::is_of_this(event)
    };
    let notes = seal.events.iter().filter(is_shown).map(|event| event.message.clone()).collect();
    let mut row = seal.attempt;
    row.state = AttemptState::Sealed;
    Ok(SealedAttempt { evidence: first_evidence(&row), row, decision, notes })
}

/// Seals, with the run as the ledger has it at that time. Without a time, another process sealed it before and keeps what it sealed.
fn seal_with_run(
    context: &Context,
    mut seal: AttemptSeal,
    run_after: &RunAfter,
) -> Result<(AttemptSeal, Option<Timestamp>), AppError> {
    let mut turns_left = CHANGES_MAX;
    loop {
        turns_left -= 1;
        // Read in each turn: the seal is refused where the run changed since it was read.
        let mut run = context.run_by_id(seal.attempt.run_id)?;
        run_after.apply(&mut run);
        seal.run = Some(run);
        match seal_rows(context, &mut seal) {
            Err(error) if is_tried_again(error.kind, turns_left) => {}
            sealed => return sealed.map(|sealed_at| (seal, sealed_at)),
        }
    }
}

/// Whether another process changed the run meanwhile, and there are turns left.
fn is_tried_again(kind: ErrorKind, turns_left: u32) -> bool {
    kind == ErrorKind::Changed && turns_left > 0
}

/// Seals. Where the ledger's mirror of the checkpoints and their log disagree (a damaged log), the receipt is sealed
/// without the mirror and the disagreement becomes part of the history: it must not keep the receipt open.
fn seal_rows(context: &Context, seal: &mut AttemptSeal) -> Result<Option<Timestamp>, AppError> {
    let sealed_at = context.clock.now();
    let error = match context.ledger_write(|ledger| ledger.seal_attempt(seal, sealed_at)) {
        Ok(SealedWhen::Now) => return Ok(Some(sealed_at)),
        Ok(SealedWhen::Before) => return Ok(None),
        Err(error) => error,
    };
    if error.kind != ErrorKind::Integrity || seal.checkpoints.is_empty() {
        return Err(error);
    }
    seal.checkpoints.clear();
    let message = format!("the checkpoint log disagrees with the ledger; the ledger keeps its rows: {error}");
    let kind = EventKind::CheckpointLogDamaged;
    seal.events.push(EventRow::of_attempt(&seal.attempt, kind, sealed_at, message));
    let sealed = context.ledger_write(|ledger| ledger.seal_attempt(seal, sealed_at))?;
    Ok((sealed == SealedWhen::Now).then_some(sealed_at))
}

/// Output that found no room on the disk is reported, not skipped.
fn lost_output(row: &AttemptRow) -> Option<EventRow> {
    let lost = row.log_bytes_lost.filter(|lost| *lost > 0)?;
    let message = format!("{lost} bytes of output could not be stored: the disk was full");
    Some(EventRow::of_attempt(row, EventKind::OutputLost, row.ended_at.or(row.started_at)?, message))
}

/// Processes that a script left behind which ended well, and that were ended after it.
fn ended_processes(row: &AttemptRow, end: &End) -> Option<EventRow> {
    let End::Recorded(record) = end else { return None };
    let count = record.tree.leftover_processes_ended;
    if count == 0 || record.exit_code != Some(0) || record.stop_requested() {
        return None;
    }
    let names = record.tree.names.join("`, `");
    let message = format!("{} that the script left behind were ended: `{names}`", counted(count, "process"));
    let message = if count == 1 { message.replace(" were ended", " was ended") } else { message };
    Some(EventRow::of_attempt(row, EventKind::ProcessesEnded, record.ended_at, message))
}

/// What an attempt that ended changes of its run.
struct RunAfter {
    state: RunState,
    ended_at: Option<Timestamp>,
    last: AttemptRow,
    /// What all attempts took.
    totals: AttemptTotals,
    /// The step that a resume continues from, as the log of checkpoints has it.
    committed: Option<Step>,
    /// The newest that the attempt's record has.
    recorded: Option<Step>,
}

impl RunAfter {
    fn of(
        context: &Context,
        row: &AttemptRow,
        (checkpoints, closed): (&RungCheckpoints, &ClosedRecords),
        state: RunState,
    ) -> Result<Self, AppError> {
        let mut totals = earlier::totals_of_others(context, row)?;
        totals.take(row);
        let recorded = closed.checkpoints.iter().filter(|frame| frame.state == CheckpointChange::Committed);
        Ok(Self {
            state,
            ended_at: state.is_final().then(|| context.clock.now()),
            last: row.clone(),
            totals,
            committed: checkpoints.resume_step(),
            recorded: recorded.map(|frame| frame.step).max(),
        })
    }

    fn apply(&self, run: &mut RunRow) {
        let Self { last, totals, .. } = self;
        run.state = self.state;
        run.ended_at = self.ended_at;
        run.started_at = run.started_at.or(last.started_at);
        run.termination_reason = last.termination_reason;
        run.health = last.health;
        // If the whole log was lost, the record still shows that something was committed: the next attempt must not
        // begin at step 0 silently.
        run.last_committed_step = self.committed.or(run.last_committed_step).or(self.recorded);
        run.attempt_count = totals.attempt_count;
        run.wall_seconds = totals.wall_seconds;
        run.gpu_seconds = totals.gpu_seconds;
        run.cost_usd = totals.cost_usd;
    }
}

/// How the attempt ended, and what its engine says of that; what it was given is noted in its row.
fn end_of(
    context: &Context,
    row: &mut AttemptRow,
    files: &AttemptLayout,
) -> Result<(End, Option<EngineEnd>), AppError> {
    let Some(placement) = context.placement_of(row)? else { return Ok((End::NeverLaunched, None)) };
    let mut seen = context.observe(&placement)?;
    let engine_end = match seen.is_final() {
        true => EngineEnd::keep(files, &seen, &context.redactor)
            .map_err(|error| AppError::file("keep or read", &files.engine_json(), error))?,
        false => None,
    };
    if let Some(kept) = &engine_end {
        kept.restore(&mut seen);
        row.ended_at = seen.never_started().then_some(kept.seen_at);
    }
    note_seen(row, &seen);
    let why = || format!("attempt {} has not ended, as far as can be seen", row.attempt_id);
    let end = End::of(seen.state).ok_or_else(|| AppError::new(ErrorKind::Fault, why()))?;
    Ok((end, engine_end))
}

impl From<EngineEnd> for LauncherState {
    fn from(end: EngineEnd) -> Self {
        let EngineState { engine, state, reason } = end.state;
        Self { source: engine, state, reason }
    }
}

/// The row as it will be sealed: what the record, the flight record and the verdict add to it.
fn receipt(
    context: &Context,
    mut row: AttemptRow,
    end: &End,
    closed: &ClosedRecords,
    checkpoints: &RungCheckpoints,
    verdict: &TerminationVerdict,
) -> AttemptRow {
    match end {
        End::Recorded(record) => {
            take_record(&mut row, record);
            let files = context.home.layout.attempt(row.attempt_id);
            row.completeness = completeness(files.folder(), &record.files);
        }
        End::Lost { .. } | End::NeverLaunched => {
            let last_sign = row.heartbeat_at.max(closed.heartbeat_at).max(closed.beside_at);
            // The ledger may not know that it began, and what never started ended when its engine said so.
            row.started_at = row.started_at.or_else(|| began_at(context, &row));
            row.ended_at = last_sign.or(row.started_at).or(row.ended_at);
            // Not measured: the time to the last sign of life, or of the shim beside it, is the least it took.
            let spans = row.started_at.zip(row.ended_at);
            row.wall_seconds = spans.map(|(started, ended)| ended.seconds_since(started).max(0.0));
        }
    }
    // The flight record has all of it; what was touched meanwhile may be older.
    row.first_step = closed.first_step.or(row.first_step);
    row.last_step = closed.last_step.max(row.last_step);
    row.heartbeat_at = closed.heartbeat_at.max(row.heartbeat_at);
    resumed::note_resumed_by_sdk(&mut row, closed);
    if let Some(newest) = checkpoints.newest_of(row.attempt_id) {
        row.last_committed_step = newest.map(|newest| newest.step);
        row.last_committed_manifest_sha256 = newest.and_then(|newest| newest.manifest_sha256.clone());
    }
    usage::note_gpus(&mut row, &closed.summaries);
    let gpus = f64::from(row.gpu_count.unwrap_or(0));
    row.gpu_seconds = Some(gpus * row.wall_seconds.unwrap_or(0.0));
    row.gpu_busy_seconds =
        gpu_busy_seconds(&closed.summaries, row.devices.as_deref(), row.wall_seconds.unwrap_or(0.0));
    row.cost_usd = row.usd_per_gpu_hour.zip(row.gpu_seconds).map(|(price, seconds)| price * seconds / 3600.0);
    row.termination_reason = Some(verdict.reason);
    row.termination_rule = Some(verdict.rule.to_string());
    row.termination_confidence = Some(verdict.confidence);
    row.termination_domain = Some(verdict.domain);
    row.retry_outlook = Some(verdict.retry_outlook);
    row.fingerprint = (!verdict.fingerprint.is_empty()).then(|| verdict.fingerprint.clone());
    row.termination_evidence = redacted(context, &verdict.evidence);
    row.termination_secondary = redacted(context, &verdict.secondary);
    row
}

/// When the shim of an attempt began, by its folder.
fn began_at(context: &Context, row: &AttemptRow) -> Option<Timestamp> {
    let folder = context.home.layout.attempt(row.attempt_id);
    ShimRecord::read(folder.folder()).ok().flatten().map(|shim| shim.started_at)
}

/// The row with what the attempt took of what it was given, and what it added to its run.
fn worked(context: &Context, mut row: AttemptRow, closed: &ClosedRecords) -> Result<AttemptRow, AppError> {
    let earlier = earlier::before(context, &row)?;
    work::note_progress(&mut row, closed.first_step_at, &earlier);
    work::note_inputs(&mut row, &closed.events);
    row.effective_batch = effective_batch(&closed.summaries, &closed.events);
    Ok(row)
}

/// Evidence quotes logs, which were redacted line by line; a quote may join what a line had kept apart.
fn redacted(context: &Context, items: &impl serde::Serialize) -> Option<serde_json::Value> {
    let text = serde_json::to_string(items).ok()?;
    serde_json::from_str(&context.redactor.text(&text)).or_else(|_| serde_json::from_str(&text)).ok()
}

fn take_record(row: &mut AttemptRow, record: &ExitRecord) {
    row.started_at = Some(record.started_at);
    row.queued_seconds = queued_seconds(row.submitted_at, row.started_at);
    row.ended_at = Some(record.ended_at);
    row.wall_seconds = Some(record.counted_seconds());
    row.cpu_seconds = Some(record.cpu_seconds);
    row.peak_rss_bytes = Some(record.peak_rss_bytes);
    row.exit_code = record.exit_code;
    row.signal = record.signal;
    row.oom_kill_delta = record.oom_kill_delta;
    row.stdout_bytes = Some(record.stdout_bytes);
    row.stderr_bytes = Some(record.stderr_bytes);
    row.log_bytes_lost = Some(record.log_bytes_lost);
}

/// The script's records of its checkpoints, as history.
fn checkpoint_events(row: &AttemptRow, closed: &ClosedRecords) -> Vec<EventRow> {
    closed
        .checkpoints
        .iter()
        .enumerate()
        .map(|(place, checkpoint)| EventRow {
            event_id: format!("{}:checkpoint:{place}", row.attempt_id),
            run_id: row.run_id,
            attempt_id: Some(row.attempt_id),
            at: checkpoint.at,
            kind: checkpoint.state.event_kind().as_str().into(),
            step: Some(checkpoint.step),
            message: format!("{} bytes in {:.3} s", checkpoint.size_bytes, checkpoint.seconds),
            fields_json: None,
            source: "sdk".into(),
        })
        .collect()
}

/// What Trackway did to the attempt, as history.
fn action_events(context: &Context, row: &AttemptRow) -> Result<Vec<EventRow>, AppError> {
    let actions = actions::read(&context.home.layout.attempt(row.attempt_id))?;
    let event = |(place, action): (usize, actions::OwnAction)| EventRow {
        event_id: format!("{}:action:{place}", row.attempt_id),
        run_id: row.run_id,
        attempt_id: Some(row.attempt_id),
        at: action.at,
        kind: serde_json::json!(action.kind).as_str().unwrap_or("action").into(),
        step: None,
        message: action.why,
        fields_json: None,
        source: "supervisor".into(),
    };
    Ok(actions.into_iter().enumerate().map(event).collect())
}

/// What the fetch from the remote found, as history.
fn fetch_events(context: &Context, row: &AttemptRow) -> Vec<EventRow> {
    let Some(report) = FetchReport::read(&context.home.layout.attempt(row.attempt_id)) else {
        return Vec::new();
    };
    let at = report.at.parse().ok().or(row.started_at).unwrap_or_else(|| context.clock.now());
    let event = |(place, message): (usize, String)| EventRow {
        event_id: format!("{}:fetch:{place}", row.attempt_id),
        step: report.step,
        ..EventRow::of_attempt(row, EventKind::CheckpointFetch, at, message)
    };
    report.sentences().into_iter().enumerate().map(event).collect()
}

/// What a rung began with.
fn warm_start_event(context: &Context, row: &AttemptRow) -> Option<EventRow> {
    let warm_start = WarmStart::read(context, row.attempt_id)?;
    let at = row.started_at.unwrap_or_else(|| context.clock.now());
    let event = EventRow::of_attempt(row, EventKind::RungWarmStart, at, warm_start.sentence());
    Some(EventRow { fields_json: serde_json::to_value(&warm_start).ok(), ..event })
}

/// Data that is not what was hashed: the receipt's hash may not be of what the attempt read.
fn changed_data(context: &Context, row: &AttemptRow) -> Option<EventRow> {
    const SHOWN_MAX: usize = 20;
    let states = states_of_run(context, row.run_id)?;
    let changed = states.changed();
    let (set, path) = changed.first()?;
    let more = match changed.len() - 1 {
        0 => String::new(),
        1 => " and 1 more file".into(),
        count => format!(" and {count} more files"),
    };
    let message = format!(
        "data `{set}`: `{path}`{more} changed after it was hashed: the attempt may have read other data than `data_sha256` describes"
    );
    let files: Vec<_> = changed.iter().take(SHOWN_MAX).map(|(_, path)| path).collect();
    let fields_json = Some(serde_json::json!({ "count": changed.len(), "files": files }));
    let at = row.ended_at.unwrap_or_else(|| context.clock.now());
    Some(EventRow { fields_json, ..EventRow::of_attempt(row, EventKind::DataChanged, at, message) })
}

fn costs(row: &AttemptRow) -> Vec<CostRow> {
    let item = |item: &str, quantity: Option<f64>, unit: &str, usd| {
        quantity.filter(|quantity| *quantity > 0.0).map(|quantity| CostRow {
            attempt_id: row.attempt_id,
            run_id: row.run_id,
            item: item.into(),
            quantity,
            unit: unit.into(),
            usd,
        })
    };
    [
        item("gpu", row.gpu_seconds, "gpu_seconds", row.cost_usd),
        item("cpu", row.cpu_seconds, "cpu_seconds", None),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn first_evidence(row: &AttemptRow) -> String {
    let first =
        row.termination_evidence.as_ref().and_then(|items| items.get(0)).and_then(|item| item.get("text"));
    first.and_then(serde_json::Value::as_str).unwrap_or("no evidence").to_owned()
}
