//! Runs of other tools, read from their stores. `trackway-records` writes them into the ledger.
//!
//! What cannot be read is left out and named, with its place and number: a run, a line, a record. It never ends the reading of a store.

mod fit;
mod mlflow;
#[cfg(test)]
mod mutants;
mod omissions;
mod tensorboard;
mod wandb;

use std::collections::BTreeMap;
use std::fs::FileType;
use std::path::{Path, PathBuf};

use trackway_core::{MetricStep, Timestamp, closed_list};

pub use self::omissions::{Omission, OmissionKind, Omissions};
use crate::error::LedgerError;

closed_list!(
    /// A tool whose stores can be read.
    ForeignTool, "tracking tool", {
        /// A folder `mlruns`, or a SQLite file.
        Mlflow = "mlflow",
        /// Offline run files below a folder.
        Wandb = "wandb",
        /// Event files below a folder.
        TensorBoard = "tensorboard",
    }
);

/// How a run of another tool ended, according to the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForeignEnd {
    Completed,
    Failed,
    /// A user ended it.
    Stopped,
    /// The tool never heard.
    #[default]
    Unknown,
}

/// One value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ForeignPoint {
    /// The step; 0 where the tool has none.
    pub step: MetricStep,
    /// When it was logged.
    pub at: Timestamp,
    pub value: f64,
}

/// A run of another tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ForeignRun {
    /// Distinguishes it from every other run of the tool, wherever the store is.
    pub key: String,
    pub name: String,
    /// The experiment or project it belongs to.
    pub group: Option<String>,
    pub end: ForeignEnd,
    /// When it began.
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// The user who ran it.
    pub owner: Option<String>,
    /// Where.
    pub host: Option<String>,
    pub command: Option<String>,
    /// The commit of its code.
    pub git_commit: Option<String>,
    /// Its seed is a parameter where the tool has one.
    pub parameters: Vec<(String, String)>,
    pub tags: Vec<(String, String)>,
    /// Its metrics, points in the order they were logged.
    pub metrics: BTreeMap<String, Vec<ForeignPoint>>,
    /// What of it is left out.
    pub skipped: Omissions,
    /// What of it is not as it is in the store.
    pub changed: Omissions,
}

impl ForeignRun {
    /// With the times of its first and last point where the store has none of the run.
    fn with_times_of_points(mut self) -> Self {
        let times = || self.metrics.values().flatten().map(|point| point.at);
        let (first, last) = (times().min(), times().max());
        self.started_at = self.started_at.or(first);
        self.ended_at = self.ended_at.or(last);
        self
    }
}

/// What was found in a store.
#[derive(Debug, Clone, Default)]
pub struct ForeignStore {
    pub runs: Vec<ForeignRun>,
    /// What is left out that is not a part of one of these runs.
    pub skipped: Omissions,
}

impl ForeignStore {
    /// All that is left out, and all that is changed.
    #[must_use]
    pub fn omissions(&self) -> (Omissions, Omissions) {
        let (mut skipped, mut changed) = (self.skipped.clone(), Omissions::default());
        for run in &self.runs {
            skipped.merge(run.skipped.clone());
            changed.merge(run.changed.clone());
        }
        (skipped, changed)
    }

    /// Leaves out runs that are a copy of another one, and makes the others fit.
    fn finished(mut self, path: &Path) -> Self {
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        for mut run in std::mem::take(&mut self.runs) {
            match names.get(&run.key) {
                Some(other) => {
                    let why =
                        format!("the run `{}` has the same id as `{other}`, of which it is a copy", run.name);
                    self.skipped.add(OmissionKind::Run, path, why, 1);
                }
                None => {
                    names.insert(run.key.clone(), run.name.clone());
                    fit::fit(&mut run, path);
                    self.runs.push(run);
                }
            }
        }
        self
    }
}

/// Reads every run of a store.
///
/// # Errors
/// [`LedgerError::Import`] when the path holds no store of the tool; [`LedgerError::File`].
pub fn read_foreign(tool: ForeignTool, path: &Path) -> Result<ForeignStore, LedgerError> {
    let store = match tool {
        ForeignTool::Mlflow => mlflow::read(path),
        ForeignTool::Wandb => wandb::read(path),
        ForeignTool::TensorBoard => tensorboard::read(path),
    }?;
    // A folder that was not searched says nothing of the tool.
    let is_of_tool = |omission: &Omission| omission.kind != OmissionKind::Folder;
    if store.runs.is_empty() && !store.skipped.list().iter().any(is_of_tool) {
        return Err(no_store(tool, path));
    }
    Ok(store.finished(path))
}

fn no_store(tool: ForeignTool, path: &Path) -> LedgerError {
    let wanted = match tool {
        ForeignTool::Mlflow => "a folder `mlruns` or MLflow's SQLite file",
        ForeignTool::Wandb => "a folder with `run-ID.wandb` files, such as `wandb`",
        ForeignTool::TensorBoard => "a folder with event files (`events.out.tfevents.…`)",
    };
    LedgerError::Import { path: path.into(), why: format!("there is no run in it; name {wanted}").into() }
}

/// What is below a path.
#[derive(Default)]
struct FolderContents {
    /// Files, sorted.
    files: Vec<PathBuf>,
    /// All folders, the path itself among them.
    folders: Vec<PathBuf>,
    /// Folders and files that could not be looked at.
    skipped: Omissions,
}

/// The files below a path whose names `wanted` admits; the path itself when it is such a file.
fn files_below(path: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<FolderContents, LedgerError> {
    if std::fs::metadata(path).map_err(LedgerError::file("read", path))?.is_file() {
        let files = wanted(&name_of(path)).then(|| path.to_owned()).into_iter().collect();
        return Ok(FolderContents { files, ..FolderContents::default() });
    }
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    let skipped = walk(path, &mut |folder, entries, skipped| {
        folders.push(folder.to_owned());
        for (path, kind) in entries.iter().filter(|(path, kind)| !kind.is_dir() && wanted(&name_of(path))) {
            if kind.is_file() {
                files.push(path.clone());
            } else if kind.is_symlink() {
                // `latest-run` names a run a second time.
                skipped.add(OmissionKind::File, path, "symbolic links are not followed", 1);
            }
        }
        folders_among(entries)
    })?;
    // A folder is listed in no order, and of two copies of a run the first one counts.
    files.sort();
    Ok(FolderContents { files, folders, skipped })
}

/// What is in a folder.
type Entry = (PathBuf, FileType);

fn folders_among(entries: &[Entry]) -> Vec<PathBuf> {
    entries.iter().filter(|(_, kind)| kind.is_dir()).map(|(path, _)| path.clone()).collect()
}

/// Looks at one folder: says what it leaves out, and gives the folders in it to look at.
type Visit<'v> = dyn FnMut(&Path, &[Entry], &mut Omissions) -> Vec<PathBuf> + 'v;

/// Looks at a folder, and at those in it that `visit` gives. Links are not followed. Gives the folders that could not
/// be looked at, and what `visit` left out.
fn walk(path: &Path, visit: &mut Visit<'_>) -> Result<Omissions, LedgerError> {
    /// Folders deeper than this are not looked at.
    const DEPTH_MAX: usize = 12;
    let mut skipped = Omissions::default();
    let mut folders = vec![(path.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries.flatten(),
            Err(error) if depth == 0 => return Err(LedgerError::file("read", &folder)(error)),
            Err(error) => {
                skipped.add(OmissionKind::Folder, &folder, unreadable(&error), 1);
                continue;
            }
        };
        let entries: Vec<Entry> =
            entries.filter_map(|entry| Some((entry.path(), entry.file_type().ok()?))).collect();
        let inner = visit(&folder, &entries, &mut skipped);
        if depth < DEPTH_MAX {
            folders.extend(inner.into_iter().map(|inner| (inner, depth + 1)));
        } else {
            let why = format!("folders that are more than {DEPTH_MAX} deep are not searched");
            skipped.add(OmissionKind::Folder, path, why, inner.len() as u64);
        }
    }
    Ok(skipped)
}

fn unreadable(error: &std::io::Error) -> String {
    format!("it cannot be read: {error}")
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Numbers of kinds as a list: `image (3), text (1)`.
fn counted_kinds<K: std::fmt::Display>(kinds: &BTreeMap<K, u64>) -> String {
    let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{kind} ({count})")).collect();
    kinds.join(", ")
}

/// Notes what was not imported because it is not a number.
fn note_objects<K: std::fmt::Display>(store: &mut ForeignStore, path: &Path, kinds: &BTreeMap<K, u64>) {
    let why = format!("only numbers, parameters and tags are imported, not: {}", counted_kinds(kinds));
    store.skipped.add(OmissionKind::Object, path, why, kinds.values().sum());
}

fn at_seconds(seconds: f64) -> Timestamp {
    Timestamp::from_micros((seconds * 1e6) as i64)
}

fn at_millis(millis: i64) -> Timestamp {
    Timestamp::from_micros(millis.saturating_mul(1000))
}
