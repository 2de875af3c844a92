//! Everything that happens before the first launch: reading, hashing, capturing, refusing.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread::JoinHandle;

use serde_json::{Value, json};
use trackway_core::name::{Name, NameKind};
use trackway_core::{Clock as _, LaunchKind, RunId};
use trackway_data::{DataManifest, FileStates, HashCache, Resolver};
use trackway_formats::layout::RowCopy;
use trackway_formats::runfile::{DataRole, DataSpec, canonical_json};
use trackway_formats::sha256_hex;
use trackway_ledger::{DataSnapshotFileRow, DataSnapshotRow, KeptRows, RunDataRow, RunFilter, RunRow};
use trackway_redact::Redactor;
use trackway_rules::gate::worn::worn;
use trackway_tables::DataError;
use trackway_tables::pass::{PassObserver, UNWATCHED};

use super::isolated_changes::IsolatedChanges;
use super::offered::offered;
use super::shared_paths::{Beginning, refuse_shared};
use crate::Context;
use crate::capture::{Capture, CaptureInputs, capture, capture_without_bytes};
use crate::error::{AppError, ErrorKind};
use crate::json_file;
use crate::reporter::{Notice, Reporter};
use crate::run::blocked::{Next, evidence_of, is_of_data};
use crate::run::job::{Job, RunSource, data_sha256, must_be_text, planned_job};
use crate::run::ladder::warm_start::WarmStart;
use crate::run::locks::places::HeldPlace;
use crate::run::locks::supervision;
use crate::run::locks::supervision::{Supervision, SupervisionClaim};
use crate::run::remote::RemotePlan;
use crate::run_lock::RunLock;

/// A run that is ready to be driven by this process, its supervisor.
pub struct Prepared {
    /// The run's row.
    pub run: RunRow,
    /// What it launches.
    pub job: Job,
    /// What it starts from, captured once for all of its attempts in this process.
    pub capture: Capture,
    /// The remote that holds the truth of its checkpoints, when it has one.
    pub remote: Option<RemotePlan>,
    /// Held until the run is left alone.
    pub supervision: Supervision,
    /// Its place in its queue.
    pub place: HeldPlace,
    /// What its launches wrote, where they are kept apart.
    pub(in crate::run) isolated: IsolatedChanges,
    /// What must hold before an attempt is launched on other data than the one before; none in a rehearsal.
    pub recheck: Option<Recheck>,
    /// The hash of the data for which it held already.
    pub checked_data_sha256: Option<String>,
    /// What opened a run that its data had blocked.
    pub opened: Option<Opened>,
}

/// What changed since the data blocked a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    pub sentence: String,
    /// The hash of all data now.
    pub data_sha256: Option<String>,
}

/// Checks what a launch would read, and says why in the error where it must not be launched. The text says what changed.
pub type Recheck =
    Box<dyn Fn(&Context, &Prepared, &str, &dyn Reporter) -> Result<(), AppError> + Send + Sync>;

impl Prepared {
    /// The hash of what its data is checked against now.
    #[must_use]
    pub fn contract_sha256(&self) -> Option<String> {
        contract_sha256(&self.job)
    }
}

/// What a run starts from. A proof begins several runs from the same.
pub struct Start {
    /// What is launched.
    pub job: Job,
    /// Its surroundings.
    pub capture: Capture,
    /// The hash of all data.
    pub data_sha256: Option<String>,
    /// The hash of what the data is checked against.
    contract_sha256: Option<String>,
    /// The checkpoint of another run whose weights it starts with.
    pub start_from: Option<WarmStart>,
    /// The training run that it serves; none for a training.
    pub for_run_id: Option<RunId>,
    /// The place in a queue that its launches hold: of a rehearsal or an evaluation, that of the training for which it is.
    pub place: HeldPlace,
    manifests: Vec<DataManifest>,
    /// What the files were when they were hashed.
    states: FileStates,
}

impl Start {
    /// For a launch that does not read its data sets.
    pub fn without_data(context: &Context, job: Job) -> Self {
        let capture = surroundings_at_start(context, &job);
        Self {
            job,
            capture,
            data_sha256: None,
            contract_sha256: None,
            start_from: None,
            for_run_id: None,
            place: HeldPlace::default(),
            manifests: Vec::new(),
            states: FileStates::default(),
        }
    }

    /// The hash of the data set of this name; `None` where it was not resolved.
    pub fn data_sha256_of(&self, set: &str) -> Option<&str> {
        let manifest = self.manifests.iter().find(|manifest| manifest.name == set);
        manifest.map(|manifest| manifest.data_sha256.as_str())
    }
}

/// Reads the source, resolves the data and captures the surroundings; nothing is stored yet.
pub fn read(
    context: &Context,
    source: &RunSource,
    retry_data_error: bool,
    reporter: &dyn Reporter,
) -> Result<Start, AppError> {
    let start = start_of(context, Job::read(source, &context.redactor)?, reporter)?;
    if !retry_data_error {
        refuse_known_data_error(context, &start)?;
    }
    Ok(start)
}

/// The same for a run that was planned before: what it launched, with its data and its surroundings as they are now.
///
/// # Errors
/// When its plan cannot be read or launched again, or its data cannot be resolved.
pub fn read_again(context: &Context, run: &RunRow, reporter: &dyn Reporter) -> Result<Start, AppError> {
    let mut start = start_of(context, planned_job(context, run)?, reporter)?;
    start.start_from = WarmStart::kept_for(context, run.run_id)?;
    Ok(start)
}

/// What [`read`] refuses since its launcher does not give what it requests, without its data; none: all of it is given now.
///
/// # Errors
/// As [`read`], but for that refusal.
pub fn read_not_given(context: &Context, source: &RunSource) -> Result<Option<Start>, AppError> {
    let job = Job::read(source, &context.redactor)?;
    let is_given = offered(context, &job.plan)?.refused.is_empty();
    Ok((!is_given).then(|| Start::without_data(context, job)))
}

fn start_of(context: &Context, job: Job, reporter: &dyn Reporter) -> Result<Start, AppError> {
    job.check_own_command()?;
    let offered = offered(context, &job.plan).map_err(|error| match error.kind {
        // Of all that may fail there, only the name of the engine is the user's.
        ErrorKind::Usage => job.at_key(&["launch", "engine"], error),
        _ => error,
    })?;
    offered.refuse()?;
    offered.unknown.into_iter().for_each(|text| reporter.note(text));
    let manifests = resolve_data(context, &job, reporter)?;
    let states = FileStates::of(&job.base, &manifests);
    let (data_sha256, contract_sha256) = (data_sha256(&manifests), contract_sha256(&job));
    let without_data = Start::without_data(context, job);
    Ok(Start { data_sha256, contract_sha256, manifests, states, ..without_data })
}

/// Stores a new run and its plan, and becomes its supervisor.
pub fn begin(
    context: &Context,
    start: &Start,
    kind: LaunchKind,
    reporter: &dyn Reporter,
) -> Result<Prepared, AppError> {
    let Start { job, capture, data_sha256, contract_sha256, start_from, for_run_id, .. } = start;
    let Start { place, manifests, states, .. } = start;
    must_be_text("Trackway's home", context.home.folder())?;
    // Held until the ledger has the run: of two that begin at once, the second must see the first.
    let beginning = Beginning::one_at_a_time(context);
    if kind == LaunchKind::Train {
        refuse_shared(context, job, None, reporter)?;
    }
    let run_id = RunId::new(&context.ids);
    let mut run = run_row(context, run_id, job, data_sha256.clone(), capture)?;
    run.kind = kind;
    run.for_run_id = *for_run_id;
    run.data_contract_sha256.clone_from(contract_sha256);
    let files = context.home.layout.run(run_id);
    // Before the ledger has the run: no other process supervises it in between.
    let lock = RunLock::try_take(&files)
        .map_err(|error| AppError::file("lock", files.folder(), error))?
        .ok_or_else(|| AppError::new(ErrorKind::Fault, format!("run {run_id} is new and yet locked")))?;
    // Before the row: a run that the ledger has is continued by this plan.
    json_file::write(&files.plan_json(), &job.stored(run_id, data_sha256.clone(), &context.redactor))?;
    keep_states(&files.data_files_json(), states)?;
    start_from.iter().try_for_each(|chosen| chosen.keep_for(context, run_id))?;
    let snapshots = record_data(context, manifests, run.project.as_deref())?;
    let used: Vec<RunDataRow> = manifests.iter().map(|manifest| used_by(run_id, job, manifest)).collect();
    context.ledger_write(|ledger| ledger.insert_run(&run, &used))?;
    // After the row: a lease is granted only for a run that the ledger has.
    let supervision = supervised(supervision::supervise_with(context, run_id, lock)?, &run)?;
    drop(beginning);
    context.keep(run_id, RowCopy::Run, &KeptRows::of_run(&run, &used, &snapshots));
    note_worn_sets(context, &used, kind, reporter)?;
    reporter.notice(&Notice::RunStarted {
        run_id,
        name: run.name.clone(),
        config_sha256: run.config_sha256.clone(),
    });
    // A rehearsal has no remote.
    let remote = RemotePlan::of(context, run_id, &job.plan.checkpoint).filter(|_| kind == LaunchKind::Train);
    let isolated = IsolatedChanges::of(context, run_id);
    let (job, capture) = (job.clone(), capture.clone());
    let (recheck, checked_data_sha256, opened) = (None, None, None);
    Ok(Prepared {
        run,
        job,
        capture,
        remote,
        supervision,
        place: place.clone(),
        isolated,
        recheck,
        checked_data_sha256,
        opened,
    })
}

/// The process that seals an attempt compares them with the state of the files then.
pub(in crate::run) fn keep_states(path: &Path, states: &FileStates) -> Result<(), AppError> {
    if states.is_empty() {
        return Ok(());
    }
    let text = serde_json::to_vec(states).expect("paths, strings and numbers are JSON");
    std::fs::write(path, text).map_err(|error| AppError::file("write", path, error))
}

pub(in crate::run) fn supervised(taken: SupervisionClaim, run: &RunRow) -> Result<Supervision, AppError> {
    match taken {
        SupervisionClaim::Mine(supervision) => Ok(supervision.renewed()),
        SupervisionClaim::By(holder) => {
            let message = format!("run `{}` already has a supervisor: {holder}", run.name);
            Err(AppError::new(ErrorKind::Usage, message)
                .hint(format!("follow it with: trackway watch {}", run.run_id)))
        }
    }
}

/// Reads or recalls the hashes of all data sets.
pub(in crate::run) fn resolve_data(
    context: &Context,
    job: &Job,
    reporter: &dyn Reporter,
) -> Result<Vec<DataManifest>, AppError> {
    if job.plan.data.is_empty() {
        return Ok(Vec::new());
    }
    let cache_path = context.home.layout.data_cache();
    let cache = HashCache::load(&cache_path);
    let progress = |done_bytes: u64, total_bytes: u64| reporter.reading_data(done_bytes, total_bytes);
    let watch = PassObserver { progress: &progress, ..*UNWATCHED };
    let resolver = Resolver {
        base: &job.base,
        context: &context.read_context,
        cache: Some(&cache),
        clock: &context.clock,
        watch: &watch,
    };
    let resolved = job.plan.data.iter().map(|(name, spec)| {
        resolver.resolve(name, spec).map_err(|error| {
            // The role of a column is the key that names it.
            let key = if let DataError::NoColumn { role, .. } = &error { *role } else { "path" };
            job.at_key(&["data", name, key], AppError::of(ErrorKind::Usage, error))
        })
    });
    let manifests = resolved.collect::<Result<Vec<_>, _>>()?;
    if let Some(folder) = cache_path.parent() {
        // A cache that cannot be kept only costs time at the next run.
        let kept = std::fs::create_dir_all(folder).and_then(|()| cache.save());
        if let Err(error) = kept {
            reporter.note(format!("the data cache was not kept: {error}"));
        }
    }
    Ok(manifests)
}

/// SHA-256 of the schemas and rules of all data sets; none without any.
pub(in crate::run) fn contract_sha256(job: &Job) -> Option<String> {
    let is_checked = |(_, set): &(&String, &DataSpec)| set.schema.is_some() || !set.rules.is_empty();
    let of_set = |(name, set): (&String, &DataSpec)| {
        // That a schema cannot be read is reported where it is used.
        let text = set.schema.as_ref().and_then(|schema| std::fs::read(job.base.join(schema)).ok());
        let schema = text.map(|text| sha256_hex(&text));
        (name.clone(), json!({ "path": set.schema, "schema": schema, "rules": set.rules }))
    };
    let contract: BTreeMap<String, Value> = job.plan.data.iter().filter(is_checked).map(of_set).collect();
    (!contract.is_empty()).then(|| sha256_hex(canonical_json(&json!(contract)).as_bytes()))
}

/// What the data stopped is not launched again until the data, what it is checked against, the code, a file that the command or the
/// evidence names, or another one of its folders changes. Another seed or learning rate in the run file changes none of
/// them, and neither does a document.
fn refuse_known_data_error(context: &Context, start: &Start) -> Result<(), AppError> {
    let Start { job, capture, data_sha256, contract_sha256, manifests, .. } = start;
    let Some(data_sha256) = data_sha256 else { return Ok(()) };
    let same = RunFilter {
        name: Some(job.plan.run.name.clone()),
        data_sha256: Some(data_sha256.clone()),
        limit: Some(1),
        ..RunFilter::default()
    };
    let Some(run) = context.ledger_read(|ledger| ledger.list_runs(&same))?.pop() else { return Ok(()) };
    let Some(last) = context.last_attempt_of(run.run_id)? else { return Ok(()) };
    let Some(reason) = last.termination_reason.filter(|reason| is_of_data(*reason)) else { return Ok(()) };
    // The run began with this data, whatever its last attempt read.
    let data_sha256 = last.data_sha256.clone();
    let contract_sha256 = contract_sha256.clone();
    let next = Next { job, capture, manifests, data_sha256, contract_sha256 };
    if !evidence_of(context, (&run, &last), &next)?.compared().changed.is_empty() {
        return Ok(());
    }
    let message = format!(
        "not launched: {} ended in `{reason}`, and neither the data nor its schema, rules or code changed since",
        last.attempt_id
    );
    Err(AppError::new(ErrorKind::Blocked, message)
        .hint(format!("see what is wrong with: trackway explain {}", last.attempt_id))
        .hint("fix the data or the code, or launch it again with --retry-data-error"))
}

/// The script's own environment is what this process has and what the plan adds.
pub fn capture_surroundings(context: &Context, job: &Job) -> Capture {
    surroundings(job, context.home.folder(), capture)
}

/// The same for a first launch: where nothing is checked or compared before it, the files beside the script are read while it runs.
fn surroundings_at_start(context: &Context, job: &Job) -> Capture {
    let is_compared = job.run_file.is_some() || !job.plan.data.is_empty();
    surroundings(job, context.home.folder(), if is_compared { capture } else { capture_without_bytes })
}

/// The same in a thread, for a launch that may follow: starting an interpreter takes longer than sealing a receipt. `None`: no thread can
/// be had.
pub(in crate::run) fn begin_capture(context: &Context, job: &Job) -> Option<JoinHandle<Capture>> {
    let (job, home) = (job.clone(), context.home.folder().to_path_buf());
    std::thread::Builder::new().name("capture".into()).spawn(move || surroundings(&job, &home, capture)).ok()
}

fn surroundings(job: &Job, home: &Path, capture: impl Fn(&CaptureInputs<'_>) -> Capture) -> Capture {
    let mut environment: BTreeMap<String, String> = own_environment().collect();
    environment.extend(job.plan.run.environment.clone());
    capture(&CaptureInputs {
        argv: &job.plan.run.command,
        working_directory: &job.working_directory(),
        environment: &environment,
        container_image: job.plan.container.as_ref().map(|container| container.image.as_str()),
        exclude: &[home.to_path_buf()],
        redactor: &Redactor::of_this_process(),
    })
}

/// The variables of this process that are text.
pub(in crate::run) fn own_environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

fn run_row(
    context: &Context,
    run_id: RunId,
    job: &Job,
    data_sha256: Option<String>,
    capture: &Capture,
) -> Result<RunRow, AppError> {
    let plan = &job.stored_plan;
    let config = serde_json::to_value(plan)
        .map_err(|error| AppError::fault("the plan cannot be written as JSON", error))?;
    // A person's name was checked where it was given; a script's, or that of an older run's plan, was not.
    let name = Name::renamed(NameKind::Run, &plan.run.name);
    let mut run = RunRow::planned(run_id, &name, &job.config_sha256, config, context.clock.now());
    run.model_family.clone_from(&plan.run.model_family);
    run.project = plan.run.project.clone().or_else(|| project_of(&job.base));
    run.criticality = plan.run.criticality;
    run.owner = plan.owner.name.clone().or_else(|| capture.owner_default.clone());
    run.team.clone_from(&plan.owner.team);
    run.seed = plan.run.seed;
    run.data_sha256 = data_sha256;
    run.run_file_path = job.run_file.as_ref().map(|path| path.to_string_lossy().into_owned());
    Ok(run)
}

/// The project of what is in a folder, where a run file names none: the name of the folder.
#[must_use]
pub fn project_of(folder: &Path) -> Option<String> {
    let folder = std::path::absolute(folder).ok()?;
    folder.file_name().map(|name| name.to_string_lossy().into_owned())
}

/// A validation set that decided about very many configurations decides little. The run that is to be launched is one more.
fn note_worn_sets(
    context: &Context,
    used: &[RunDataRow],
    kind: LaunchKind,
    reporter: &dyn Reporter,
) -> Result<(), AppError> {
    let is_validation = |row: &&RunDataRow| row.role.as_deref() == Some(DataRole::Validation.as_str());
    for row in used.iter().filter(is_validation).filter(|_| kind == LaunchKind::Train) {
        let found = context.ledger_read(|ledger| ledger.validation_set(&row.data_sha256))?;
        if let Some(worn) = found.and_then(|set| worn(set.config_count + 1)) {
            reporter.note(format!("validation set `{}`: {worn}", row.name));
        }
    }
    Ok(())
}

pub(in crate::run) fn used_by(run_id: RunId, job: &Job, manifest: &DataManifest) -> RunDataRow {
    let named = job.plan.data.get(&manifest.name).and_then(|spec| spec.role);
    let role = named.or_else(|| DataRole::of_name(&manifest.name));
    RunDataRow {
        role: role.map(|role| role.as_str().to_owned()),
        run_id,
        name: manifest.name.clone(),
        path: manifest.path.clone(),
        data_sha256: manifest.data_sha256.clone(),
    }
}

/// Records data sets in the ledger that are not in it yet, as first seen in this project.
pub fn record_data(
    context: &Context,
    manifests: &[DataManifest],
    project: Option<&str>,
) -> Result<Vec<DataSnapshotRow>, AppError> {
    let mut snapshots = Vec::with_capacity(manifests.len());
    for manifest in manifests {
        let snapshot = DataSnapshotRow {
            data_sha256: manifest.data_sha256.clone(),
            name: manifest.name.clone(),
            path: manifest.path.clone(),
            split: split_of(&manifest.name),
            file_count: manifest.files.len() as u64,
            size_bytes: manifest.size_bytes,
            rows: manifest.rows,
            first_seen_at: context.clock.now(),
            schema_json: manifest.schema.as_ref().and_then(|schema| serde_json::to_value(schema).ok()),
            notes_json: (!manifest.notes.is_empty()).then(|| json!(manifest.notes)),
            project: project.map(str::to_owned),
        };
        let files: Vec<DataSnapshotFileRow> = manifest
            .files
            .iter()
            .map(|file| DataSnapshotFileRow {
                data_sha256: manifest.data_sha256.clone(),
                path: file.path.clone(),
                size_bytes: file.size_bytes,
                blake3: file.blake3.clone(),
                format: json!(file.format).as_str().unwrap_or("other").into(),
                rows: file.rows,
                schema_json: file.schema.as_ref().and_then(|schema| serde_json::to_value(schema).ok()),
            })
            .collect();
        context.ledger_write(|ledger| ledger.insert_data_snapshot(&snapshot, &files))?;
        snapshots.push(snapshot);
    }
    Ok(snapshots)
}

fn split_of(name: &str) -> Option<String> {
    const SPLITS: [&str; 6] = ["train", "test", "validation", "valid", "val", "dev"];
    SPLITS.contains(&name).then(|| name.to_owned())
}
