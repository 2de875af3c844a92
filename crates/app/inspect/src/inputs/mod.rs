//! What an attempt started from, as its launch recorded it, and what changed between two of them: the one difference that `explain`,
//! `compare` and `postmortem` show.

mod configuration;
mod difference;
mod lines;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use trackway_api::runs::explain::{Diff, LineCount};
use trackway_core::text::counted;
use trackway_engine::Context;
use trackway_engine::capture::sources::{PATCH_FILE, UNTRACKED_FOLDER};
use trackway_engine::capture::{Capture, PatchedFile, changed_between, patch_between, patched_files};
use trackway_engine::error::AppError;
use trackway_engine::run::RunTimes;
use trackway_formats::layout::AttemptLayout;
use trackway_ledger::{AttemptRow, RunRow};

use self::difference::{ContentSource, Difference, difference};
use crate::parameters::parameters_of;

/// What an attempt started from, or a run that was never launched.
#[derive(Debug, Clone)]
pub(crate) struct Inputs {
    /// The plan, with the changes of its retries.
    config: Value,
    run_file: Option<PathBuf>,
    working_directory: PathBuf,
    /// What was captured at the launch; else why there is nothing.
    captured: Result<CapturedInputs, String>,
    /// The data sets that it read; else why they are not known.
    data: Result<Vec<DataSet>, String>,
    /// The hash of all of them.
    data_sha256: Option<String>,
    /// The folder that paths of data start from.
    data_base: PathBuf,
    /// What the script itself recorded.
    parameters: BTreeMap<String, String>,
    image: Option<String>,
    hosts: Option<String>,
    devices: Option<String>,
    rung: Option<String>,
}

/// `capture.json`.
#[derive(Debug, Clone)]
struct CapturedInputs {
    capture: Capture,
    variables: BTreeMap<String, String>,
}

/// A data set as it was read.
#[derive(Debug, Clone)]
struct DataSet {
    name: String,
    sha256: String,
    rows: Option<u64>,
    size_bytes: u64,
    schema: Option<Value>,
    file_count: u64,
    /// None where the list is not known: a ledger that was made again has it when the data is read again.
    files: BTreeMap<String, DataFile>,
}

#[derive(Debug, Clone)]
struct DataFile {
    blake3: String,
    rows: Option<u64>,
    size_bytes: u64,
}

impl DataSet {
    fn has_list(&self) -> bool {
        self.files.len() as u64 == self.file_count
    }

    fn shown(&self) -> String {
        let files = counted(self.file_count, "file");
        let hash: String = self.sha256.chars().take(8).collect();
        format!("{}{} bytes in {files}, {hash}", rows_of(self.rows), self.size_bytes)
    }
}

impl DataFile {
    fn shown(&self) -> String {
        let hash: String = self.blake3.chars().take(8).collect();
        format!("{}{} bytes, {hash}", rows_of(self.rows), self.size_bytes)
    }
}

fn rows_of(rows: Option<u64>) -> String {
    rows.map(|rows| format!("{}, ", counted(rows, "row"))).unwrap_or_default()
}

impl Inputs {
    /// The files of the data sets, where they are on this machine.
    fn data_paths(&self) -> impl Iterator<Item = PathBuf> {
        let sets = self.data.as_ref().map(Vec::as_slice).unwrap_or_default();
        sets.iter().flat_map(|set| set.files.keys()).map(|path| self.data_base.join(path))
    }

    /// Of an attempt; without one, of a run that was never launched.
    pub(crate) fn of(
        context: &Context,
        run: &RunRow,
        attempt: Option<&AttemptRow>,
    ) -> Result<Self, AppError> {
        let run_file = run.run_file_path.as_ref().map(PathBuf::from);
        let working_directory = attempt.map(|row| PathBuf::from(&row.working_directory)).unwrap_or_default();
        let data_base = run_file.as_deref().and_then(Path::parent).unwrap_or(&working_directory).to_owned();
        let captured = match attempt {
            Some(attempt) => captured(attempt),
            None => Err("the run was never launched".into()),
        };
        let mut parameters = BTreeMap::new();
        if let Some(attempt) = attempt {
            let recorded = parameters_of(context, attempt)?.into_iter();
            // Those of the command and those given beside it are settings.
            let is_own =
                |origin: &Option<String>| !matches!(origin.as_deref(), Some("command line" | "given") | None);
            parameters.extend(recorded.filter(|it| is_own(&it.origin)).map(|it| (it.name, it.value)));
        }
        Ok(Self {
            config: attempt.map_or_else(|| run.config_json.clone(), |attempt| attempt.config_json.clone()),
            captured,
            data: data_sets(context, run, attempt)?,
            data_sha256: attempt
                .map_or_else(|| run.data_sha256.clone(), |attempt| attempt.data_sha256.clone()),
            data_base,
            parameters,
            image: attempt.and_then(|attempt| attempt.container_digest.clone()),
            hosts: attempt.and_then(|attempt| attempt.hosts.clone()),
            devices: attempt.and_then(|attempt| attempt.gpu_names.clone()),
            rung: attempt.map(|attempt| attempt.rung.clone()),
            run_file,
            working_directory,
        })
    }
}

/// What differs between two attempts: `against` and `label` name the earlier one.
pub(crate) fn compared(
    context: &Context,
    before: &Inputs,
    after: &Inputs,
    (against, label): (String, String),
) -> Diff {
    let script = after.captured.as_ref().ok().and_then(|captured| captured.capture.script.as_ref());
    let kept = KeptInHome {
        context,
        folder: &after.working_directory,
        script: script.map(|script| script.path.as_path()),
        times: OnceCell::new(),
    };
    let Difference { changes, unknown, .. } = difference(before, after, &kept);
    Diff { against, label, changes, unknown }
}

/// How a variable begins whose value is not stored.
const HASHED: &str = "(a value with hash ";

fn captured(attempt: &AttemptRow) -> Result<CapturedInputs, String> {
    let path = AttemptLayout::new(Path::new(&attempt.log_directory)).capture_json();
    let number = attempt.attempt_number;
    let text = std::fs::read(&path).map_err(|error| {
        format!("what attempt {number} of {} started from is not kept: {error}", attempt.run_id)
    })?;
    let damaged = |error: serde_json::Error| format!("`{}` is damaged: {error}", path.display());
    let mut stored: Value = serde_json::from_slice(&text).map_err(damaged)?;
    let mut part = |field: &str| -> BTreeMap<String, String> {
        serde_json::from_value(stored[field].take()).unwrap_or_default()
    };
    let (stored_ones, hashes) = (part("environment"), part("environment_hashes"));
    let mut variables: BTreeMap<String, String> =
        hashes.into_iter().map(|(name, hash)| (name, format!("{HASHED}{hash})"))).collect();
    variables.extend(stored_ones);
    Ok(CapturedInputs { capture: serde_json::from_value(stored).map_err(damaged)?, variables })
}

fn data_sets(
    context: &Context,
    run: &RunRow,
    attempt: Option<&AttemptRow>,
) -> Result<Result<Vec<DataSet>, String>, AppError> {
    let read = context.sets_read(run, attempt)?;
    if let Some(doubt) = read.doubt {
        return Ok(Err(format!("of {}: {doubt}", run.run_id)));
    }
    let mut sets = Vec::new();
    for (set, snapshot) in read.sets {
        let files = context.ledger_read(|ledger| ledger.data_snapshot_files(&snapshot.data_sha256))?;
        let file = |row: trackway_ledger::DataSnapshotFileRow| {
            (row.path, DataFile { blake3: row.blake3, rows: row.rows, size_bytes: row.size_bytes })
        };
        sets.push(DataSet {
            name: set.name,
            sha256: snapshot.data_sha256,
            rows: snapshot.rows,
            size_bytes: snapshot.size_bytes,
            schema: snapshot.schema_json,
            file_count: snapshot.file_count,
            files: files.into_iter().map(file).collect(),
        });
    }
    Ok(Ok(sets))
}

/// The sources that this home keeps, and when its attempts ran in the folder.
struct KeptInHome<'h> {
    context: &'h Context,
    folder: &'h Path,
    script: Option<&'h Path>,
    times: OnceCell<RunTimes>,
}

impl ContentSource for KeptInHome<'_> {
    fn file(&self, blake3: &str) -> Option<String> {
        std::fs::read_to_string(self.context.home.layout.file_source(blake3)).ok()
    }

    fn patch(&self, blake3: &str) -> Option<Vec<u8>> {
        let folder = self.context.home.layout.changes_source(blake3);
        let patch = std::fs::read(folder.join(PATCH_FILE)).ok();
        patch.or_else(|| folder.is_dir().then(Vec::new))
    }

    fn between(
        &self,
        root: &str,
        before: &str,
        after: &str,
    ) -> Result<Vec<(String, Option<LineCount>)>, String> {
        let files = changed_between(Path::new(root), before, after)?;
        let count = |(added, removed)| LineCount { added, removed };
        Ok(files.into_iter().map(|file| (file.path, file.lines.map(count))).collect())
    }

    fn patch_between(
        &self,
        root: &str,
        before: &str,
        after: &str,
        paths: &[&str],
    ) -> BTreeMap<String, PatchedFile> {
        let patch = patch_between(Path::new(root), before, after, paths).unwrap_or_default();
        patched_files(&self.context.redactor.bytes(&patch))
    }

    fn times(&self) -> &RunTimes {
        // Where the ledger cannot be read, nothing is called an output.
        let of_ledger = || RunTimes::in_folder(self.context, self.folder, self.script).unwrap_or_default();
        self.times.get_or_init(of_ledger)
    }

    fn untracked(&self, blake3: &str, path: &str) -> Option<String> {
        let folder = self.context.home.layout.changes_source(blake3);
        std::fs::read_to_string(folder.join(UNTRACKED_FOLDER).join(path)).ok()
    }
}
