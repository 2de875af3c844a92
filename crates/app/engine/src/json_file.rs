//! Small files of JSON in the home.

use std::io::ErrorKind;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::AppError;

/// What a file holds that must be there.
///
/// # Errors
/// When it cannot be read, or holds something else.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<T, AppError> {
    let bytes = std::fs::read(path).map_err(|error| AppError::file("read", path, error))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| AppError::fault(format!("`{}` is damaged", path.display()), error))
}

/// What a file holds; `None`: there is none.
///
/// # Errors
/// As for [`read`].
pub fn read_if_there<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, AppError> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        _ => read(path).map(Some),
    }
}

/// What a file holds, where it can be read and nothing depends on it.
pub fn read_if_sound<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Writes a file that people may read too.
///
/// # Errors
/// When the disk refuses.
pub fn write(path: &Path, value: &impl Serialize) -> Result<(), AppError> {
    let text = serde_json::to_vec_pretty(value)
        .map_err(|error| AppError::fault(format!("`{}` cannot be written as JSON", path.display()), error))?;
    std::fs::write(path, text).map_err(|error| AppError::file("write", path, error))
}
