//! Data sets: which files they consist of, what is in them, and reading them.
//!
//! [`Resolver::resolve`] turns the path of a run file's `[data.NAME]` into a [`DataManifest`]: every file with its
//! size, BLAKE3, rows and schema. Each file is read once; the same bytes are hashed and parsed, in chunks, so memory
//! stays bounded whatever the file's size. A [cache](HashCache) spares files that did not change.
//!
//! What is wrong with the *choice* of data (no such file, no such column, no readable row) is a [`DataError`]; what
//! is wrong with single rows is counted in [`Finding`]s with the first few places, and blocks nothing here.
//!
//! [`read::Source`] opens the files as one table, and [`pass::scan`] streams it through a [`pass::Pass`] on all cores,
//! in bounded memory, with an account of every row ([`read::Coverage`]). [`profile::Profile`] is such a pass.

mod cache;
mod csv;
pub mod drift;
mod error;
mod footer;
mod hashed;
mod infer;
pub mod integrity;
mod jsonl;
pub mod leakage;
mod manifest;
pub mod media;
pub mod model;
pub mod pass;
pub mod personal;
pub mod profile;
pub mod read;
mod rows;
mod scan;
pub mod schema;
mod select;
pub mod split;

pub use cache::HashCache;
pub use error::DataError;
pub use infer::{Column, ColumnType};
pub use manifest::{DataFile, DataManifest, Example, Finding, FindingKind, MAX_EXAMPLES, Resolver};
pub use scan::MAX_RECORD_BYTES;
pub use select::MAX_FILES;
pub use trackway_formats::runfile::{DataFormat, DataSpec};

#[cfg(test)]
mod tests;
