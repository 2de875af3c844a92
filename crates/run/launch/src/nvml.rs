//! NVIDIA's management library, where a driver is installed.

use std::ffi::OsStr;

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;

/// The library's name with its version, as drivers install it, and the one that development packages add.
const LIBRARIES: [&str; 2] = ["libnvidia-ml.so.1", "libnvidia-ml.so"];

/// Loads the library and begins a session with the driver, which may hang for good: call it where that does no harm.
///
/// # Errors
/// [`NvmlError::LibloadingError`] without a driver; the driver's error otherwise.
pub fn open_nvml() -> Result<Nvml, NvmlError> {
    let [installed, development] = LIBRARIES.map(OsStr::new);
    Nvml::builder().lib_path(installed).init().or_else(|error| match error {
        NvmlError::LibloadingError(_) => Nvml::builder().lib_path(development).init(),
        error => Err(error),
    })
}
