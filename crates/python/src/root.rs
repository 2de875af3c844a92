use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use trackway_checkpoint::{CheckpointError, CheckpointInfo, CheckpointRoot, CheckpointView};
use trackway_core::{AttemptId, RunId};
use trackway_recorder::{SystemClock, SystemIds};

use crate::error::{input, to_python};
use crate::loaded::Loaded;
use crate::stage::Stage;

/// A checkpoint root that is written to without a run: the process claims the next epoch when it opens it.
#[pyclass(frozen, module = "trackway._trackway")]
pub struct Root {
    inner: Arc<Mutex<CheckpointRoot>>,
}

#[pymethods]
impl Root {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let root = py.detach(|| open(&path)).map_err(|error| to_python(py, &error))?;
        Ok(Self { inner: Arc::new(Mutex::new(root)) })
    }

    fn begin(&self, step: u64) -> Stage {
        let root = Arc::clone(&self.inner);
        Stage::new(step, move |step, metrics, files| {
            root.lock().unwrap_or_else(PoisonError::into_inner).save(step, metrics, |writer| {
                files.iter().try_for_each(|(name, kind, memory)| writer.file(name, *kind, memory.bytes()))
            })
        })
    }
}

/// Claims the epoch after the newest one, for the run whose checkpoints stand there or for a new one.
fn open(path: &Path) -> Result<CheckpointRoot, CheckpointError> {
    let view = CheckpointView::open(path)?;
    let epoch = view.epoch().unwrap_or(0) + 1;
    let run_id = view.list().first().map_or_else(|| RunId::new(&SystemIds), |first| first.run_id);
    CheckpointRoot::open(
        path,
        epoch,
        run_id,
        AttemptId::new(&SystemIds),
        Arc::new(SystemClock),
        Arc::new(SystemIds),
    )
}

/// One JSON object per checkpoint, in the order of the log.
#[pyfunction]
pub fn list_checkpoints(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let list = py.detach(|| view(&path).map(|view| view.list())).map_err(|error| to_python(py, &error))?;
    serde_json::to_string(&list).map_err(|error| input(py, &error.to_string()))
}

/// The newest checkpoint that verifies, or the committed one with that number.
#[pyfunction]
#[pyo3(signature = (path, number = None))]
pub fn load_checkpoint(py: Python<'_>, path: PathBuf, number: Option<u64>) -> PyResult<Option<Loaded>> {
    let loaded = py.detach(|| {
        let view = view(&path)?;
        match number {
            Some(number) => view.load(number).map(Some),
            None => view.resume_target(),
        }
    });
    Ok(loaded.map_err(|error| to_python(py, &error))?.map(Loaded::new))
}

/// What is wrong with the committed checkpoint of that number; `None`: nothing.
#[pyfunction]
pub fn verify_checkpoint(py: Python<'_>, path: PathBuf, number: u64) -> PyResult<Option<String>> {
    let verified: Result<CheckpointInfo, _> = py.detach(|| view(&path)?.verify(number));
    match verified {
        Ok(_) => Ok(None),
        Err(error @ CheckpointError::Damaged { .. }) => Ok(Some(error.to_string())),
        Err(error) => Err(to_python(py, &error)),
    }
}

fn view(path: &Path) -> Result<CheckpointView, CheckpointError> {
    CheckpointView::open(path)
}
