//! Runs of other tools: read from their stores, and written into the ledger as what they were.
//!
//! Each imported run is one run with one sealed attempt, whose launcher is the tool's name. Its metrics are a flight record
//! of origin `import`. Ids follow from the tool's own ids, so importing again finds what is there and adds nothing.

mod mlflow;
mod neptune;
mod tensorboard;
mod wandb;
mod write;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use trackway_core::{Timestamp, closed_list};

pub use self::write::Imported;
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
        /// The Parquet files of Neptune's exporter.
        Neptune = "neptune",
    }
);

/// How a run of another tool ended, according to the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForeignEnd {
    /// It completed.
    Completed,
    /// It failed.
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
    pub step: u64,
    /// When it was logged.
    pub at: Timestamp,
    /// The value.
    pub value: f64,
}

/// A run of another tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ForeignRun {
    /// Distinguishes it from every other run of the tool, wherever the store is.
    pub key: String,
    /// Its name.
    pub name: String,
    /// The experiment or project it belongs to.
    pub group: Option<String>,
    /// How it ended.
    pub end: ForeignEnd,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The user who ran it.
    pub owner: Option<String>,
    /// Where.
    pub host: Option<String>,
    /// What was run.
    pub command: Option<String>,
    /// The commit of its code.
    pub git_commit: Option<String>,
    /// Its seed is a parameter where the tool has one.
    pub parameters: Vec<(String, String)>,
    /// Its tags.
    pub tags: Vec<(String, String)>,
    /// Its metrics, points in the order they were logged.
    pub metrics: BTreeMap<String, Vec<ForeignPoint>>,
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
    /// Its runs.
    pub runs: Vec<ForeignRun>,
    /// What was skipped: where, and why.
    pub passed: Vec<(PathBuf, String)>,
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
        ForeignTool::Neptune => neptune::read(path),
    }?;
    if store.runs.is_empty() && store.passed.is_empty() {
        return Err(no_store(tool, path));
    }
    Ok(store)
}

fn no_store(tool: ForeignTool, path: &Path) -> LedgerError {
    let wanted = match tool {
        ForeignTool::Mlflow => "a folder `mlruns` or MLflow's SQLite file",
        ForeignTool::Wandb => "a folder with `run-ID.wandb` files, such as `wandb`",
        ForeignTool::TensorBoard => "a folder with event files (`events.out.tfevents.…`)",
        ForeignTool::Neptune => "the data folder of neptune-exporter, with Parquet files",
    };
    LedgerError::Import { path: path.into(), why: format!("there is no run in it; name {wanted}") }
}

/// The files below a path whose names `wanted` admits, sorted; the path itself when it is such a file.
fn files_below(path: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<PathBuf>, LedgerError> {
    /// Folders deeper than this are not looked at.
    const DEPTH_MAX: usize = 12;
    let name_of = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if std::fs::metadata(path).map_err(LedgerError::file("read", path))?.is_file() {
        return Ok(if wanted(&name_of(path)) { vec![path.to_owned()] } else { Vec::new() });
    }
    let (mut found, mut folders) = (Vec::new(), vec![(path.to_owned(), 0)]);
    while let Some((folder, depth)) = folders.pop() {
        for entry in std::fs::read_dir(&folder).map_err(LedgerError::file("read", &folder))?.flatten() {
            match entry.file_type() {
                // Links are not followed: `latest-run` names a run a second time.
                Ok(kind) if kind.is_dir() && depth < DEPTH_MAX => folders.push((entry.path(), depth + 1)),
                Ok(kind) if kind.is_file() && wanted(&name_of(&entry.path())) => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

fn read_file(path: &Path) -> Result<Vec<u8>, LedgerError> {
    std::fs::read(path).map_err(LedgerError::file("read", path))
}

fn at_seconds(seconds: f64) -> Timestamp {
    Timestamp::from_micros((seconds * 1e6) as i64)
}

fn at_millis(millis: i64) -> Timestamp {
    Timestamp::from_micros(millis.saturating_mul(1000))
}
