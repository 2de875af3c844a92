//! Deletes the logs and records of old runs, the output of their evaluations, and what their diagnoses left: records and copies
//! of checkpoints. Receipts stay in the ledger, with
//! figures, parameters and events; artifacts stay in the attempts' folders, and the evaluated rows stay under their
//! hashes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use trackway_api::home::gc::{DeletedRun, GcReport, KeptRun, Leftover, SetAside};
use trackway_core::{AttemptId, CheckpointState, Clock as _, LaunchKind, RunId, Timestamp};
use trackway_engine::Context;
use trackway_engine::checkpoints::view;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::home::changed_at;
use trackway_formats::EventKind;
use trackway_formats::layout::AttemptLayout;
use trackway_ledger::{AttemptState, CheckpointRow, EvaluationState, EventRow, RunRow};
use trackway_records::closed_files;
use trackway_rules::retention::{Fate, RetentionRule, RunFacts, fates};
use trackway_sql::RunSearch;

use crate::data::snapshot::store;
use crate::evaluation::evaluate::DRAFT_PREFIX;
use crate::query;
use crate::training::preflight::last_good::needed_profiles;

/// What was left half written is deleted when nothing was added to it for so long; until then a process may be writing
/// it.
const LEFTOVER_SECONDS_MIN: f64 = 24.0 * 3_600.0;
/// Why a checkpoint of a diagnosis is gone.
const COPY_DELETED: &str = "the copy for a diagnosis was deleted with `trackway gc`";

/// Why a checkpoint of a run is gone that was named.
const CHECKPOINTS_DELETED: &str = "deleted with `trackway gc --run --checkpoints`";

/// Which runs to look at, and what lets them go.
#[derive(Debug, Clone, Default)]
pub struct GcRequest {
    /// Only these runs, whatever their age; none: those that the condition and the rule select.
    pub runs: Vec<RunId>,
    /// Of these runs also the checkpoints on this disk.
    pub checkpoints: bool,
    /// Also what was moved out of a script's way before a resume.
    pub quarantine: bool,
    /// A condition as in `trackway runs --where`; none: every run.
    pub condition: Option<String>,
    pub rule: RetentionRule,
    /// Only return what would be deleted.
    pub dry_run: bool,
}

/// Deletes what the rule does not keep: the folders of the attempts (logs, flight record) but for their artifacts and
/// what was moved out of a script's way, their Parquet files, the folders of ended evaluations, and the launches and
/// copied checkpoints of diagnoses. Without a condition also incomplete files, and the statistics of data that are not
/// compared with any more. Runs that have nothing left are not named.
///
/// # Errors
/// [`ErrorKind::Usage`] without any rule, or with a wrong condition; when a file cannot be deleted, and then what went
/// before is gone and the rest is whole.
pub fn gc(context: &Context, request: &GcRequest) -> Result<GcReport, AppError> {
    if request.rule == RetentionRule::default() && request.runs.is_empty() {
        return Err(AppError::new(ErrorKind::Usage, "no rule selects runs to delete")
            .hint("give --older-than, --keep-last, or --run"));
    }
    let found = match request.runs.is_empty() {
        true => with_files(context, request.condition.clone())?,
        false => named(context, &request.runs, request.checkpoints)?,
    };
    let facts: Vec<RunFacts> = found
        .iter()
        .map(|(run, _)| {
            Ok(RunFacts { ended_at: rests_since(context, run)?, held_by: holder_of(context, run)? })
        })
        .collect::<Result<_, AppError>>()?;
    let mut cleared = GcReport {
        dry_run: request.dry_run,
        gone: Vec::new(),
        kept: Vec::new(),
        set_aside: Vec::new(),
        leftovers: Vec::new(),
        freed_bytes: 0,
    };
    for ((run, bulk), fate) in found.into_iter().zip(fates(&facts, &request.rule, context.clock.now())) {
        match fate {
            Fate::Stays(why) => cleared.kept.push(KeptRun { run_id: run.run_id, name: run.name, why }),
            Fate::Goes => {
                let size_bytes = bulk.paths.iter().map(|path| size_of(path)).sum();
                let set_aside = bulk.set_aside(context, &run, request.quarantine);
                let is_named = !request.runs.is_empty();
                cleared.freed_bytes += size_bytes;
                cleared.freed_bytes +=
                    set_aside.iter().filter(|one| one.goes).map(|one| one.size_bytes).sum::<u64>();
                if !request.dry_run {
                    clear(context, &run, &bulk, size_bytes, request.quarantine)?;
                }
                cleared.set_aside.extend(set_aside);
                if is_named || !bulk.paths.is_empty() {
                    cleared.gone.push(DeletedRun { run_id: run.run_id, name: run.name, size_bytes });
                }
            }
        }
    }
    if request.condition.is_none() && request.runs.is_empty() {
        let leftovers = incomplete_outputs(context).into_iter().map(|path| (path, "incomplete"));
        let profiles = superseded_profiles(context)?.into_iter();
        let profiles = profiles.map(|path| (path, "statistics of data that no later run is compared with"));
        clear_leftovers(context, leftovers.chain(profiles), &mut cleared)?;
    }
    Ok(cleared)
}

/// The runs that meet a condition and still have files.
fn with_files(context: &Context, condition: Option<String>) -> Result<Vec<(RunRow, Bulk)>, AppError> {
    let mut search = RunSearch { condition, with_hidden: true, ..RunSearch::default() };
    let mut found = Vec::new();
    loop {
        let page = query::search_runs(context, &search)?;
        for run in page.runs {
            let bulk = Bulk::of(context, &run)?;
            if !bulk.paths.is_empty() || !bulk.quarantines.is_empty() {
                found.push((run, bulk));
            }
        }
        search.page.after = page.next;
        if page.next.is_none() {
            return Ok(found);
        }
    }
}

/// These runs; also those that have no files any more.
fn named(context: &Context, runs: &[RunId], checkpoints: bool) -> Result<Vec<(RunRow, Bulk)>, AppError> {
    let mut found: Vec<(RunRow, Bulk)> = Vec::new();
    for run_id in runs {
        if found.iter().any(|(run, _)| run.run_id == *run_id) {
            continue;
        }
        let run = context.run_by_id(*run_id)?;
        let mut bulk = Bulk::of(context, &run)?;
        let root = context.home.layout.checkpoints_of(*run_id);
        if checkpoints && root.exists() {
            bulk.paths.push(root);
            bulk.checkpoints.push((*run_id, CHECKPOINTS_DELETED));
        }
        found.push((run, bulk));
    }
    Ok(found)
}

/// What a run has besides its receipts and artifacts.
struct Bulk {
    /// Attempts' folders and Parquet files that are there, its evaluators' and what those left among them, its diagnoses' and
    /// their checkpoints.
    paths: Vec<PathBuf>,
    /// What was moved out of the way of its script: not among them.
    quarantines: Vec<PathBuf>,
    /// The attempts whose files they are, each with its run.
    attempts: Vec<(RunId, AttemptId)>,
    /// Runs whose checkpoints are among them, each with why they are gone then: its diagnoses have copies.
    checkpoints: Vec<(RunId, &'static str)>,
}

impl Bulk {
    fn of(context: &Context, run: &RunRow) -> Result<Self, AppError> {
        let launches_of = |run_id| context.ledger_read(|ledger| ledger.launches_of_run(run_id));
        let mut attempts = context.attempts_of(run.run_id)?;
        attempts.extend(launches_of(run.run_id)?);
        let (mut paths, mut checkpoints) = (Vec::new(), Vec::new());
        let mut evaluations = context.ledger_read(|ledger| ledger.evaluations_of_run(run.run_id))?;
        evaluations.retain(|row| row.state != EvaluationState::Running);
        for evaluation in evaluations {
            if let Some(launch_run_id) = evaluation.launch_run_id {
                attempts.extend(launches_of(launch_run_id)?);
            }
            paths.push(context.home.layout.evaluation(&evaluation.evaluation_id).folder().to_owned());
        }
        for diagnosis in diagnoses_of(context, run)? {
            attempts.extend(launches_of(diagnosis.run_id)?);
            paths.push(context.home.layout.checkpoints_of(diagnosis.run_id));
            checkpoints.push((diagnosis.run_id, COPY_DELETED));
        }
        let mut quarantines = Vec::new();
        for attempt in &attempts {
            let files = context.home.layout.attempt(attempt.attempt_id);
            paths.extend(without_what_is_kept(&files)?);
            quarantines.extend(Some(files.quarantine()).filter(|folder| folder.exists()));
            paths.extend(closed_files(context.home.folder(), attempt.attempt_id));
        }
        paths.push(context.home.layout.run(run.run_id).supervisor_log());
        paths.retain(|path| path.exists());
        let attempts = attempts.iter().map(|attempt| (attempt.run_id, attempt.attempt_id)).collect();
        Ok(Self { paths, quarantines, attempts, checkpoints })
    }

    fn set_aside(&self, context: &Context, run: &RunRow, goes: bool) -> Vec<SetAside> {
        let of = |folder: &PathBuf| SetAside {
            run_id: run.run_id,
            name: run.name.clone(),
            path: context.home.layout.below(folder),
            size_bytes: size_of(folder),
            goes,
        };
        self.quarantines.iter().map(of).collect()
    }
}

fn diagnoses_of(context: &Context, run: &RunRow) -> Result<Vec<RunRow>, AppError> {
    let mut runs = context.ledger_read(|ledger| ledger.runs_for(run.run_id))?;
    runs.retain(|run| run.kind == LaunchKind::Diagnose);
    Ok(runs)
}

/// Whether a diagnosis may still launch, or its launch may still run. One whose process was killed has no launch, or one that is
/// sealed.
fn is_active(context: &Context, diagnosis: &RunRow) -> Result<bool, AppError> {
    let launches = context.ledger_read(|ledger| ledger.launches_of_run(diagnosis.run_id))?;
    let age_seconds = context.clock.now().seconds_since(diagnosis.created_at);
    Ok(match launches.is_empty() {
        true => !diagnosis.state.is_final() && age_seconds < LEFTOVER_SECONDS_MIN,
        false => launches.iter().any(|launch| launch.state != AttemptState::Sealed),
    })
}

/// Since when nothing of the run is active, its evaluations and diagnoses included; none while an attempt is not sealed.
fn rests_since(context: &Context, run: &RunRow) -> Result<Option<Timestamp>, AppError> {
    let attempts = context.attempts_of(run.run_id)?;
    let sealed = attempts.iter().all(|attempt| attempt.state == AttemptState::Sealed);
    let Some(ended_at) = run.ended_at.filter(|_| sealed && run.state.is_final()) else { return Ok(None) };
    let evaluations = context.ledger_read(|ledger| ledger.evaluations_of_run(run.run_id))?;
    let diagnoses = diagnoses_of(context, run)?.into_iter();
    let diagnosed_at = diagnoses.map(|diagnosis| diagnosis.ended_at.unwrap_or(diagnosis.created_at));
    Ok(evaluations.into_iter().filter_map(|row| row.ended_at).chain(diagnosed_at).chain([ended_at]).max())
}

/// A pinned checkpoint holds its run, and so does a running evaluation or diagnosis.
fn holder_of(context: &Context, run: &RunRow) -> Result<Option<String>, AppError> {
    let folder = context.home.layout.checkpoints_of(run.run_id);
    for root in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if let Some(pin) = view(&root.path())?.pins().into_iter().next() {
            return Ok(Some(format!("a checkpoint is pinned as `{}`", pin.name)));
        }
    }
    let evaluations = context.ledger_read(|ledger| ledger.evaluations_of_run(run.run_id))?;
    let running = evaluations.into_iter().find(|row| row.state == EvaluationState::Running);
    if let Some(row) = running {
        return Ok(Some(format!("evaluation {} is still running", row.evaluation_id)));
    }
    for diagnosis in diagnoses_of(context, run)? {
        if is_active(context, &diagnosis)? {
            return Ok(Some(format!("diagnosis {} is still running", diagnosis.run_id)));
        }
    }
    Ok(None)
}

/// What processes left that were killed while they wrote the rows of an evaluation.
fn incomplete_outputs(context: &Context) -> Vec<PathBuf> {
    let now = context.clock.now();
    let drafts = std::fs::read_dir(context.home.layout.evaluation_outputs()).into_iter().flatten().flatten();
    drafts.map(|entry| entry.path()).filter(|path| is_leftover(path, now)).collect()
}

/// Statistics of data that runs read, and with which no later run is compared: not those of the last good run of a name, nor of
/// a run that has not ended.
fn superseded_profiles(context: &Context) -> Result<Vec<PathBuf>, AppError> {
    let now = context.clock.now();
    let mut needed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut superseded = Vec::new();
    'profiles: for (data_sha256, path) in store(&context.home).run_profiles() {
        // A run that is about to be launched has its statistics before it is in the ledger.
        if changed_at(&path).is_none_or(|at| now.seconds_since(at) <= LEFTOVER_SECONDS_MIN) {
            continue;
        }
        for run in context.ledger_read(|ledger| ledger.runs_of_data(&data_sha256))? {
            if !needed.contains_key(&run.name) {
                needed.insert(run.name.clone(), needed_profiles(context, &run.name)?);
            }
            if !run.state.is_final() || needed[&run.name].contains(&data_sha256) {
                continue 'profiles;
            }
        }
        superseded.push(path);
    }
    Ok(superseded)
}

/// Deletes files that belong to no run, each with why.
fn clear_leftovers(
    context: &Context,
    paths: impl Iterator<Item = (PathBuf, &'static str)>,
    cleared: &mut GcReport,
) -> Result<(), AppError> {
    for (path, why) in paths {
        let size_bytes = size_of(&path);
        if !cleared.dry_run {
            context.home.remove(&path).map_err(|error| AppError::file("delete", &path, error))?;
        }
        cleared.freed_bytes += size_bytes;
        cleared.leftovers.push(Leftover {
            path: context.home.layout.below(&path),
            size_bytes,
            why: why.into(),
        });
    }
    Ok(())
}

/// Reported first, deleted then: a crash in between leaves files that the next call names again.
fn clear(
    context: &Context,
    run: &RunRow,
    bulk: &Bulk,
    size_bytes: u64,
    quarantine: bool,
) -> Result<(), AppError> {
    let set_aside = bulk.quarantines.iter().filter(|_| quarantine);
    if bulk.paths.is_empty() && set_aside.clone().next().is_none() {
        return Ok(());
    }
    let at = context.clock.now();
    let event = EventRow {
        event_id: format!("{}:records_cleared:{}", run.run_id, at.as_micros()),
        run_id: run.run_id,
        attempt_id: None,
        at,
        kind: EventKind::RecordsCleared.as_str().into(),
        step: None,
        message: format!("logs and records of {size_bytes} bytes were deleted with `trackway gc`"),
        fields_json: None,
        source: "operator".into(),
    };
    context.ledger_write(|ledger| ledger.append_event(&event))?;
    for (run_id, why) in &bulk.checkpoints {
        let rows = context.ledger_read(|ledger| ledger.checkpoints_of_run(*run_id))?.into_iter();
        let retired: Vec<CheckpointRow> = rows
            .filter(|row| row.state != CheckpointState::Retired)
            .map(|row| CheckpointRow { state: CheckpointState::Retired, why: Some((*why).into()), ..row })
            .collect();
        context.ledger_write(|ledger| ledger.upsert_checkpoints(&retired))?;
    }
    let forget = || bulk.attempts.iter().for_each(|(run, attempt)| context.forget_files(*run, *attempt));
    forget();
    for path in bulk.paths.iter().chain(set_aside) {
        context.home.remove(path).map_err(|error| AppError::file("delete", path, error))?;
    }
    // Again: on a full disk there is room for it only now.
    forget();
    Ok(())
}

/// An attempt's folder, or what is in it beside the artifacts and what was moved out of the way of its script.
fn without_what_is_kept(files: &AttemptLayout) -> Result<Vec<PathBuf>, AppError> {
    let (folder, kept) = (files.folder(), [files.artifacts(), files.quarantine()]);
    if !kept.iter().any(|path| path.exists()) {
        return Ok(vec![folder.to_owned()]);
    }
    let entries = std::fs::read_dir(folder).and_then(|entries| {
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<PathBuf>, _>>()
    });
    let mut paths = entries.map_err(|error| AppError::file("list", folder, error))?;
    paths.retain(|path| !kept.contains(path));
    Ok(paths)
}

/// A folder in which rows were collected, and that did not change for long.
fn is_leftover(path: &Path, now: Timestamp) -> bool {
    let is_draft = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(DRAFT_PREFIX));
    is_draft && changed_at(path).is_some_and(|at| now.seconds_since(at) > LEFTOVER_SECONDS_MIN)
}

/// Bytes of a file, or of all files below a folder; links are not followed.
fn size_of(path: &Path) -> u64 {
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return 0 };
    if !metadata.is_dir() {
        return metadata.len();
    }
    std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| size_of(&entry.path())).sum()
}
