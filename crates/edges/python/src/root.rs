use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use trackway_checkpoint::bulk::{BackgroundSaver, SaveEnd};
use trackway_checkpoint::{
    Best, CheckpointError, CheckpointRoot, CheckpointView, Commit, MIN_KEPT, Retention, read_copy,
};
use trackway_core::{AttemptId, RunId};
use trackway_formats::checkpoint_origin;
use trackway_formats::path_text::text_of;
use trackway_system::{SystemClock, SystemIds};

use crate::draft::Draft;
use crate::error::{input, of_copy, to_python};
use crate::loaded::{Copied, Loaded};
use crate::target::Target;
use crate::wait;

/// A checkpoint root that is written to without a run: the process claims the next epoch when it opens it.
#[pyclass(frozen, module = "trackway._trackway")]
pub struct Root {
    root: Arc<Mutex<CheckpointRoot>>,
    saver: BackgroundSaver<Commit>,
}

#[pymethods]
impl Root {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| open(&path)).map_err(|error| to_python(py, &error))
    }

    /// From the next commit on, deletes what none of these wants; keeps everything when all are `None`.
    fn keep(
        &self,
        py: Python<'_>,
        last: Option<usize>,
        every_steps: Option<u64>,
        best: Option<&str>,
    ) -> PyResult<()> {
        let best = match best {
            Some(text) => {
                Some(Best::parse(text).ok_or_else(|| input(py, "the name of a metric is missing"))?)
            }
            None => None,
        };
        let any = last.is_some() || every_steps.is_some() || best.is_some();
        let last = last.unwrap_or(MIN_KEPT).max(MIN_KEPT);
        let keep = any.then_some(Retention { last, every_steps, best, ..Retention::default() });
        // The thread that saves holds the lock while it saves.
        py.detach(|| self.root.lock().unwrap_or_else(PoisonError::into_inner).set_retention(keep));
        Ok(())
    }

    /// Waits for the save before, and begins one.
    fn begin(&self, py: Python<'_>, step: u64) -> PyResult<Draft> {
        self.wait(py)?;
        let begun = py.detach(|| self.saver.begin(step)).map_err(|error| to_python(py, &error))?;
        begun
            .map(|draft| Draft::new(Target::Root(draft)))
            .ok_or_else(|| input(py, "another thread is saving here"))
    }

    /// Waits until the save that was submitted last has ended, and raises what made one fail.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        wait::until(py, |at_most| self.saver.wait(at_most))?;
        for outcome in py.detach(|| self.saver.poll()) {
            if let SaveEnd::Failed(error) = outcome.end {
                return Err(to_python(py, &error));
            }
        }
        Ok(())
    }

    /// Makes the next save continue from what is loaded here.
    fn resume(&self, py: Python<'_>) -> PyResult<Option<Loaded>> {
        let read = py.detach(|| self.root.lock().unwrap_or_else(PoisonError::into_inner).resume_read());
        Ok(read.map_err(|error| to_python(py, &error))?.map(Loaded::new))
    }
}

/// Claims the epoch after the newest one, for the run of the checkpoints there or for a new one.
fn open(path: &Path) -> Result<Root, CheckpointError> {
    let view = CheckpointView::open(path)?;
    let epoch = view.epoch().unwrap_or(0) + 1;
    let run_id = view.list().first().map_or_else(|| RunId::new(&SystemIds), |first| first.run_id);
    let attempt_id = AttemptId::new(&SystemIds);
    let root =
        CheckpointRoot::open(path, epoch, run_id, attempt_id, Arc::new(SystemClock), Arc::new(SystemIds))?;
    let root = Arc::new(Mutex::new(root));
    let shared = Arc::clone(&root);
    let saver = BackgroundSaver::new(
        Arc::new(SystemClock),
        Box::new(move |save| {
            shared.lock().unwrap_or_else(PoisonError::into_inner).save_draft(save, || Ok(()))
        }),
    )?;
    Ok(Root { root, saver })
}

/// One JSON object per checkpoint, in the order of the log.
#[pyfunction]
pub fn list_checkpoints(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let list = py.detach(|| CheckpointView::open(&path).map(|view| view.list()));
    let list = list.map_err(|error| to_python(py, &error))?;
    serde_json::to_string(&list).map_err(|error| input(py, &error.to_string()))
}

/// The newest checkpoint that verifies, or the committed one with that number.
#[pyfunction]
#[pyo3(signature = (path, number = None))]
pub fn load_checkpoint(py: Python<'_>, path: PathBuf, number: Option<u64>) -> PyResult<Option<Loaded>> {
    let loaded = py.detach(|| {
        let view = CheckpointView::open(&path)?;
        match number {
            Some(number) => view.read(number).map(Some),
            None => view.resume_read(),
        }
    });
    Ok(loaded.map_err(|error| to_python(py, &error))?.map(Loaded::new))
}

/// A copy of a checkpoint in a folder without its log, by the SHA-256 of its manifest.
#[pyfunction]
pub fn load_copy(py: Python<'_>, folder: PathBuf, manifest_sha256: &str) -> PyResult<Copied> {
    let read = py.detach(|| read_copy(&folder, manifest_sha256));
    read.map(Copied::new).map_err(|defect| of_copy(py, &folder, &defect))
}

/// What is wrong with the committed checkpoint of that number; `None`: nothing.
#[pyfunction]
pub fn verify_checkpoint(py: Python<'_>, path: PathBuf, number: u64) -> PyResult<Option<String>> {
    let verified = py.detach(|| CheckpointView::open(&path)?.verify(number));
    match verified {
        Ok(_) => Ok(None),
        Err(error @ CheckpointError::Damaged { .. }) => Ok(Some(error.to_string())),
        Err(error) => Err(to_python(py, &error)),
    }
}

/// A name in a checkpoint for each path below a folder, in their order.
#[pyfunction]
pub fn stored_names(paths: Vec<PathBuf>) -> Vec<String> {
    let texts: Vec<String> = paths.iter().map(text_of).collect();
    checkpoint_origin::stored_names(texts.iter().map(String::as_str))
}

/// A path as records and receipts have it, also where it is not UTF-8.
#[pyfunction]
pub fn path_text(path: PathBuf) -> String {
    text_of(path)
}
