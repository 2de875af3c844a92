//! How files of an attempt's folder are read.

use std::io::{self, Read};
use std::path::Path;

use trackway_files::{if_there, open_trusted};

/// A JSON file of an attempt's folder that is larger than this is damaged, not read.
pub const JSON_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Reads a JSON file of bounded size that only this user can have written; `None` if there is none.
pub(crate) fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let Some(file) = if_there(open_trusted(path))? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(JSON_BYTES_MAX).read_to_end(&mut bytes)?;
    serde_json::from_slice(&bytes).map(Some).map_err(io::Error::from)
}
