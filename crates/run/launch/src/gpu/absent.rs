//! What a build without feature `nvml` has in place of the driver.

use super::Gpu;

/// A session with the driver: this build has none.
#[derive(Debug)]
pub enum GpuDriver {}

impl GpuDriver {
    /// Says why there is no session.
    ///
    /// # Errors
    /// Always.
    pub fn open() -> Result<Self, String> {
        Err("GPUs are not read by this build: build it with feature `nvml`".to_owned())
    }

    /// Every GPU; there is no session to ask.
    ///
    /// # Errors
    /// Never, since there is no session.
    pub fn gpus(&self) -> Result<Vec<Gpu>, String> {
        match *self {}
    }

    /// The driver's version; there is no session to ask.
    #[must_use]
    pub fn version(&self) -> Option<String> {
        match *self {}
    }

    /// The CUDA version; there is no session to ask.
    #[must_use]
    pub fn cuda_version(&self) -> Option<String> {
        match *self {}
    }

    /// The values of a GPU; there is no session to ask.
    #[must_use]
    pub fn values(&self, _index: u32) -> Vec<(&'static str, f64)> {
        match *self {}
    }

    /// The processes on a GPU; there is no session to ask.
    #[must_use]
    pub fn processes(&self, _index: u32) -> Vec<(u32, u64)> {
        match *self {}
    }
}
