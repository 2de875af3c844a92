//! A run as tables for other tools: metrics, parameters, tags, attempts, checkpoints, evaluations and their rows.
//!
//! Metrics are written batch by batch, so that the length of a curve takes no memory; the other tables of a run are small.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use trackway_api::runs::export::{ExportFormat, ExportedFile, ExportedTable, RunExport};
use trackway_core::{LaunchKind, RunId};
use trackway_data::split::write_parts_as;
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::file_digest::file_sha256;
use trackway_ledger::{EvaluationRow, LedgerError, RunRow};
use trackway_sql::{QueryLimits, visit_metrics};
use trackway_tables::DataSpec;
use trackway_tables::read::Source;
use trackway_tables::write::{TableFile, TableFormat};

use crate::data::table::{ReadObserver, data_error, write_error};
use crate::outputs::refuse_filled;
use crate::query;

/// Writes the folder `out`, which must be new or empty: one file for each table that has rows.
///
/// # Errors
/// [`ErrorKind::NotFound`] for an unknown run; [`ErrorKind::Usage`] for a folder that holds something;
/// [`ErrorKind::Integrity`] when stored rows are not what was kept; [`ErrorKind::Cancelled`]; when a file cannot be written.
pub fn export(
    context: &Context,
    run_id: RunId,
    out: &Path,
    format: ExportFormat,
    observer: &ReadObserver<'_>,
) -> Result<RunExport, AppError> {
    let run = context.run_by_id(run_id)?;
    refuse_filled(out)?;
    let folder = std::path::absolute(out).map_err(|error| AppError::file("find", out, error))?;
    trackway_files::make_folders_of_user(&folder).map_err(|error| AppError::file("make", &folder, error))?;
    let export = Export { context, folder: &folder, format, observer };
    let mut files: Vec<ExportedFile> = export.metrics(run_id)?.into_iter().collect();
    for (table, query) in queries(&run) {
        files.extend(export.rows_of(table, &query)?);
    }
    for evaluation in context.ledger_read(|ledger| ledger.evaluations_of_run(run_id))? {
        files.extend(export.predictions(&evaluation)?);
    }
    Ok(RunExport { run_id, name: run.name, folder: folder.to_string_lossy().into_owned(), format, files })
}

/// The tables of the ledger, and the rows of each that are the run's.
fn queries(run: &RunRow) -> [(ExportedTable, String); 6] {
    let attempts = match run.kind {
        LaunchKind::Train => "training_attempts",
        _ => "launches",
    };
    let select = |table: &str, order: &str| {
        format!("select * from {table} where run_id = '{}' order by {order}", run.run_id)
    };
    [
        (ExportedTable::Parameters, select("parameters", "attempt_id, name")),
        (ExportedTable::Tags, select("tags", "attempt_id, name")),
        (ExportedTable::Attempts, select(attempts, "attempt_id")),
        (ExportedTable::Data, select("attempt_data", "attempt_id, name")),
        (ExportedTable::Checkpoints, select("checkpoints", "committed_at, step, object_prefix")),
        (ExportedTable::Evaluations, select("evaluations", "started_at, evaluation_id")),
    ]
}

/// An export that is being written.
struct Export<'e> {
    context: &'e Context,
    folder: &'e Path,
    format: ExportFormat,
    observer: &'e ReadObserver<'e>,
}

impl Export<'_> {
    fn metrics(&self, run_id: RunId) -> Result<Option<ExportedFile>, AppError> {
        let path = self.path_of(ExportedTable::Metrics.as_str());
        // The ledger is asked again if it went away: then the file is begun again too.
        let rows = self.context.ledger_read(|ledger| {
            let mut table = GrowingTable::new(&path, self.table_format(), self.observer.cancelled);
            let home = self.context.home.folder();
            let visited = visit_metrics(ledger, home, run_id, &mut |batch| table.take(&batch));
            table.end(visited)
        })??;
        self.written(ExportedTable::Metrics, &path, rows)
    }

    fn rows_of(&self, table: ExportedTable, query: &str) -> Result<Option<ExportedFile>, AppError> {
        let answer = query::sql(self.context, query, &QueryLimits::default())?;
        let path = self.path_of(table.as_str());
        let mut file = GrowingTable::new(&path, self.table_format(), self.observer.cancelled);
        let taken = answer.batches().iter().try_for_each(|batch| file.take(batch));
        let rows = file.end(taken.map_err(|error| LedgerError::Query(error.to_string())))??;
        self.written(table, &path, rows)
    }

    /// The rows that an evaluation kept: in Parquet the file itself, every byte as it was.
    fn predictions(&self, evaluation: &EvaluationRow) -> Result<Option<ExportedFile>, AppError> {
        let Some(location) = &evaluation.raw_outputs_location else { return Ok(None) };
        let table = ExportedTable::Predictions;
        let id = &evaluation.evaluation_id;
        let kept = self.context.home.folder().join(location);
        let sha256 = match file_sha256(&kept) {
            Ok((sha256, _)) => sha256,
            // `trackway gc` keeps them; a home that was moved in part does not.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(AppError::file("read", &kept, error)),
        };
        if evaluation.raw_outputs_sha256.as_deref() != Some(sha256.as_str()) {
            let message = format!("the rows of {id} are not what was kept: `{location}` was changed");
            return Err(AppError::new(ErrorKind::Integrity, message));
        }
        let path = self.path_of(&format!("{}-{id}", table.as_str()));
        let rows = evaluation.raw_outputs_rows.unwrap_or(0);
        match self.format {
            ExportFormat::Parquet => std::fs::copy(&kept, &path)
                .and_then(|_| trackway_files::give_to_user(&path))
                .map_err(|error| AppError::file("write", &path, error))?,
            ExportFormat::Csv => self.converted(location, &path, rows)?,
        }
        let file = self.written(table, &path, Some(rows))?;
        Ok(file.map(|file| ExportedFile { evaluation_id: Some(id.clone()), ..file }))
    }

    fn converted(&self, location: &str, path: &Path, rows: u64) -> Result<(), AppError> {
        let spec = DataSpec { path: location.to_owned(), ..DataSpec::default() };
        let context = self.context;
        let source = Source::open(context.home.folder(), "predictions", &spec, &context.read_context)
            .map_err(data_error)?;
        let all = vec![Some(0); usize::try_from(rows).unwrap_or(usize::MAX)];
        write_parts_as(self.table_format(), &[path.to_owned()], &source, &all, &self.observer.watch())
            .map(drop)
            .map_err(write_error)
    }

    /// What the report says of a file; nothing if it has no rows, and so does not exist.
    fn written(
        &self,
        table: ExportedTable,
        path: &Path,
        rows: Option<u64>,
    ) -> Result<Option<ExportedFile>, AppError> {
        let Some(rows) = rows else { return Ok(None) };
        let (sha256, size_bytes) = file_sha256(path).map_err(|error| AppError::file("read", path, error))?;
        let path = path.strip_prefix(self.folder).unwrap_or(path).to_string_lossy().into_owned();
        Ok(Some(ExportedFile { table, evaluation_id: None, path, rows, size_bytes, sha256 }))
    }

    fn path_of(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.{}", self.format.as_str()))
    }

    fn table_format(&self) -> TableFormat {
        match self.format {
            ExportFormat::Parquet => TableFormat::Parquet,
            ExportFormat::Csv => TableFormat::Separated(','),
        }
    }
}

/// A file that begins with its first rows: a table without any is not written.
struct GrowingTable<'t> {
    path: &'t Path,
    format: TableFormat,
    cancelled: &'t AtomicBool,
    file: Option<TableFile>,
    rows: u64,
    failure: Option<AppError>,
}

impl<'t> GrowingTable<'t> {
    fn new(path: &'t Path, format: TableFormat, cancelled: &'t AtomicBool) -> Self {
        Self { path, format, cancelled, file: None, rows: 0, failure: None }
    }

    /// Adds rows. What failed is kept for [`GrowingTable::end`]; the error only ends the reading.
    fn take(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        self.try_take(batch).map_err(|error| {
            let message = error.to_string();
            self.failure = Some(error);
            ArrowError::ExternalError(message.into())
        })
    }

    fn try_take(&mut self, batch: &RecordBatch) -> Result<(), AppError> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(AppError::new(ErrorKind::Cancelled, "interrupted"));
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self
                .file
                .insert(TableFile::create(self.path, self.format, &batch.schema()).map_err(write_error)?),
        };
        file.write(batch).map_err(write_error)?;
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    /// Gives the file its name, and returns its rows; none if there were no rows. The outer error is the ledger's, which may be asked
    /// again.
    fn end(self, taken: Result<(), LedgerError>) -> Result<Result<Option<u64>, AppError>, LedgerError> {
        match (self.failure, taken, self.file) {
            (Some(failure), ..) => Ok(Err(failure)),
            (None, Err(error), _) => Err(error),
            (None, Ok(()), None) => Ok(Ok(None)),
            (None, Ok(()), Some(file)) => Ok(file.finish().map(|_| Some(self.rows)).map_err(write_error)),
        }
    }
}
