use std::path::Path;

use pyo3::prelude::*;
use trackway_checkpoint::{CheckpointError, Defect, ErrorKind};

/// The exception of `trackway.errors` that matches what the caller should do about `error`.
pub fn to_python(py: Python<'_>, error: &CheckpointError) -> PyErr {
    let name = match error.kind() {
        ErrorKind::Fenced => "FencedError",
        ErrorKind::Integrity => "IntegrityError",
        ErrorKind::Storage => "StorageError",
        ErrorKind::Input => "InputError",
        ErrorKind::Retry | ErrorKind::State => "CheckpointError",
    };
    named(py, name, &error.to_string())
}

/// The exception for a folder that does not hold the checkpoint that it should.
pub fn of_copy(py: Python<'_>, folder: &Path, defect: &Defect) -> PyErr {
    let name = if defect.is_damage() { "IntegrityError" } else { "StorageError" };
    named(py, name, &format!("the checkpoint in {} does not verify: {defect}", folder.display()))
}

/// An exception for arguments that cannot be used.
pub fn input(py: Python<'_>, message: &str) -> PyErr {
    named(py, "InputError", message)
}

fn named(py: Python<'_>, name: &str, message: &str) -> PyErr {
    let made = py
        .import("trackway.errors")
        .and_then(|module| module.getattr(name))
        .and_then(|class| class.call1((message,)));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}
