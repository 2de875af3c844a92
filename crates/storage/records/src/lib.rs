//! Flight records of attempts as rows: closed into Parquet files and summaries, and read while they grow.
//!
//! - [`close_records`] turns the flight record of an attempt into Parquet files, its summaries and its events.
//! - [`OpenRecord`] reads the record of an attempt that is not closed, as the same rows.
//! - [`LiveRecords`] has the metrics of attempts that are not sealed in short, and reads only what is new.
//! - [`import_run`] writes a run of another tool into a ledger, with a record.
//!
//! Segments of any size are read in parts of bounded size: a record takes no more memory than its names do.

mod close;
mod closed;
mod import;
mod live;
mod metric_batch;
mod open;
mod outline;
mod parquet_file;
mod parts;
mod rounds;
mod rows;
mod schema;
mod summaries;
#[cfg(test)]
mod tests;

pub use close::{Points, close_records, closed_files};
pub use closed::{ClosedRecords, ValuesAtSteps};
pub use import::{Imported, import_run, is_imported_record};
pub use live::LiveRecords;
pub use open::OpenRecord;
pub use parquet_file::{parquet_properties, write_whole};
pub use schema::{UTC, data_type, schema_of};
