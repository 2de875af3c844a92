use pyo3::prelude::*;
use trackway_recorder::LoadedCheckpoint;

use crate::error::to_python;
use crate::memory::Region;

/// A committed checkpoint that verified.
#[pyclass(frozen, module = "trackway._trackway")]
pub struct Loaded {
    inner: LoadedCheckpoint,
}

impl Loaded {
    pub fn new(inner: LoadedCheckpoint) -> Self {
        Self { inner }
    }
}

#[pymethods]
impl Loaded {
    #[getter]
    fn step(&self) -> u64 {
        self.inner.step
    }

    /// The number of its commit.
    #[getter]
    fn number(&self) -> u64 {
        self.inner.info.number
    }

    /// Name and kind of each file.
    #[getter]
    fn files(&self) -> Vec<(String, String)> {
        let pair =
            |file: &trackway_checkpoint::ManifestFile| (file.name.clone(), file.kind.as_str().to_owned());
        self.inner.files().iter().map(pair).collect()
    }

    #[getter]
    fn metrics(&self) -> Vec<(String, f64)> {
        self.inner.manifest.metrics.iter().map(|(name, value)| (name.clone(), *value)).collect()
    }

    /// Step (`None` when unknown) of each newer checkpoint that was passed over, and why.
    #[getter]
    fn fallbacks(&self) -> Vec<(Option<u64>, String)> {
        self.inner.fallbacks.iter().map(|fallback| (fallback.step, fallback.why.clone())).collect()
    }

    #[getter]
    fn object_prefix(&self) -> &str {
        &self.inner.info.object_prefix
    }

    /// The bytes of a file, checked while they are read.
    fn read(&self, py: Python<'_>, name: &str) -> PyResult<Region> {
        let bytes = py.detach(|| self.inner.read(name)).map_err(|error| to_python(py, &error))?;
        Ok(Region::whole(bytes))
    }
}
