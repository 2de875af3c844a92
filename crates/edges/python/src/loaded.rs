use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use trackway_checkpoint::ManifestFile;
use trackway_checkpoint::bulk::LoadedFile;
use trackway_recorder::LoadedCheckpoint;

use crate::error::input;
use crate::memory::Region;

/// The files of a checkpoint that verified: their names, and the memory of those that were read, which can be taken once.
struct Files {
    names: Vec<(String, String)>,
    memory: Mutex<BTreeMap<String, LoadedFile>>,
}

impl Files {
    fn new(files: Vec<LoadedFile>) -> Self {
        let pair = |file: &LoadedFile| (file.name().to_owned(), file.kind().as_str().to_owned());
        let names = files.iter().map(pair).collect();
        let memory = files.into_iter().map(|file| (file.name().to_owned(), file)).collect();
        Self { names, memory: Mutex::new(memory) }
    }

    fn take(&self, py: Python<'_>, name: &str) -> PyResult<Region> {
        let file = self.memory.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        file.map(Region::of_file)
            .ok_or_else(|| input(py, &format!("`{name}` was taken already, or is not there")))
    }
}

/// A copy of a checkpoint that verified, with its files in memory.
#[pyclass(frozen, module = "trackway._trackway")]
pub struct Copied(Files);

impl Copied {
    pub fn new(files: Vec<LoadedFile>) -> Self {
        Self(Files::new(files))
    }
}

#[pymethods]
impl Copied {
    /// Name and kind of each file.
    #[getter]
    fn files(&self) -> Vec<(String, String)> {
        self.0.names.clone()
    }

    /// Hands out the memory of a file, once.
    fn take(&self, py: Python<'_>, name: &str) -> PyResult<Region> {
        self.0.take(py, name)
    }
}

/// A committed checkpoint that verified, with its files in memory.
#[pyclass(frozen, module = "trackway._trackway")]
pub struct Loaded {
    checkpoint: LoadedCheckpoint,
    files: Files,
}

impl Loaded {
    pub fn new((checkpoint, files): (LoadedCheckpoint, Vec<LoadedFile>)) -> Self {
        Self { checkpoint, files: Files::new(files) }
    }

    /// A checkpoint whose files were not read: their names are those of all, and none can be taken.
    pub fn unread(checkpoint: LoadedCheckpoint) -> Self {
        let pair = |file: &ManifestFile| (file.name.clone(), file.kind.as_str().to_owned());
        let names = checkpoint.manifest.files.iter().map(pair).collect();
        Self { checkpoint, files: Files { names, memory: Mutex::default() } }
    }
}

#[pymethods]
impl Loaded {
    #[getter]
    fn step(&self) -> u64 {
        self.checkpoint.step
    }

    /// The number of its commit.
    #[getter]
    fn number(&self) -> u64 {
        self.checkpoint.info.number
    }

    /// How many processes saved it together.
    #[getter]
    fn world_size(&self) -> u32 {
        self.checkpoint.manifest.world_size
    }

    #[getter]
    fn folder(&self) -> &Path {
        &self.checkpoint.folder
    }

    /// Name and kind of each file that was read: all, unless this is one of several ranks.
    #[getter]
    fn files(&self) -> Vec<(String, String)> {
        self.files.names.clone()
    }

    #[getter]
    fn metrics(&self) -> Vec<(String, f64)> {
        self.checkpoint.manifest.metrics.iter().map(|(name, value)| (name.clone(), *value)).collect()
    }

    /// Step (`None` when unknown) of each newer checkpoint that was skipped, and why.
    #[getter]
    fn fallbacks(&self) -> Vec<(Option<u64>, String)> {
        self.checkpoint.fallbacks.iter().map(|fallback| (fallback.step, fallback.why.clone())).collect()
    }

    /// Hands out the memory of a file, once.
    fn take(&self, py: Python<'_>, name: &str) -> PyResult<Region> {
        self.files.take(py, name)
    }
}
