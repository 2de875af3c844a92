//! Which data a command reads, and how.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use trackway_core::Clock;
pub use trackway_core::checks::{CheckResult, Finding, Severity, Verdict};
use trackway_engine::error::{AppError, ErrorKind};
use trackway_tables::pass::{PassObserver, default_units_in_flight};
use trackway_tables::read::Source;
use trackway_tables::write::WriteError;
use trackway_tables::{DataError, DataSpec, ReadContext};

/// Files that are read as one table.
#[derive(Debug, Clone, Default)]
pub struct TableRequest {
    /// Files, globs and folders.
    pub paths: Vec<String>,
    /// How each of them is read; its path is not looked at.
    pub spec: DataSpec,
    /// The limits of reading, and what reads URLs.
    pub read_context: ReadContext,
}

impl TableRequest {
    /// How the files are read, and the first path.
    pub(crate) fn spec(&self) -> DataSpec {
        DataSpec { path: self.paths.first().cloned().unwrap_or_default(), ..self.spec.clone() }
    }

    /// Opens the files. `set` is what errors call them.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for a path that names nothing; [`ErrorKind::Usage`] for data that is not a table.
    pub(crate) fn open(&self, base: &Path, set: &str) -> Result<Source, AppError> {
        self.source(base, set).map_err(data_error)
    }

    /// As [`TableRequest::open`], for callers to whom a damaged file is a finding.
    pub(super) fn source(&self, base: &Path, set: &str) -> Result<Source, DataError> {
        Source::open_paths(base, set, &self.spec(), &self.paths, &self.read_context)
    }
}

/// Bytes of a file that one core reads and checks in a second. A CSV profile reads 300 MB on a core; a schema, a
/// fingerprint of each row and Parquet's compression take longer.
const BYTES_PER_CORE_SECOND: f64 = 80e6;

/// What reading and checking so many bytes takes on all cores, about.
#[must_use]
pub fn expected_seconds(size_bytes: u64) -> f64 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    size_bytes as f64 / (BYTES_PER_CORE_SECOND * cores as f64)
}

/// Observes the reading of data: called with the bytes done and the bytes in all, and able to cancel it.
pub struct ReadObserver<'o> {
    /// Called from several threads.
    pub progress: &'o (dyn Fn(u64, u64) + Sync),
    /// Set it to end the reading.
    pub cancelled: &'o AtomicBool,
    /// The time.
    pub clock: &'o dyn Clock,
}

impl<'o> ReadObserver<'o> {
    pub(crate) fn watch(&self) -> PassObserver<'o> {
        PassObserver {
            progress: self.progress,
            cancelled: self.cancelled,
            units_in_flight: default_units_in_flight(),
        }
    }
}

/// The data's fault as an answer to the user.
pub(crate) fn data_error(error: DataError) -> AppError {
    let kind = match &error {
        DataError::Missing { .. } | DataError::EmptyGlob { .. } | DataError::EmptyFolder { .. } => {
            ErrorKind::NotFound
        }
        DataError::Cancelled { .. } => ErrorKind::Cancelled,
        DataError::Fault { .. } => ErrorKind::Fault,
        DataError::NotAsWritten { .. } => ErrorKind::Blocked,
        _ => ErrorKind::Usage,
    };
    AppError::of(kind, error)
}

/// A table that could not be written as an answer to the user.
pub(crate) fn write_error(error: WriteError) -> AppError {
    match error {
        WriteError::Data(error) => data_error(error),
        error => AppError::of(ErrorKind::Fault, error),
    }
}
