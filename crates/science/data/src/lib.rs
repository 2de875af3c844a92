//! Data sets: which files they consist of, what is in them, and reading them.
//!
//! [`Resolver::resolve`] turns the path of a run file's `[data.NAME]` into a [`DataManifest`]: every file with its
//! size, BLAKE3, rows and schema. Memory stays bounded whatever the files' size. A [cache](HashCache) spares files that
//! did not change. [`snapshot`] keeps manifests, with profiles, for good.
//!
//! What is wrong with the *choice* of data (no such file, no such column, no readable row) is a [`DataError`]; rows
//! that cannot be read are counted with the first few places, and block nothing here.
//!
//! [`read::Source`] opens the files as one table, and [`pass::scan`] streams it through a [`pass::Pass`] on all cores,
//! in bounded memory, with an account of every row ([`read::Coverage`]). [`profile::Profile`] is such a pass.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests delete what they made"))]

mod budget;
mod cache;
pub mod clean;
mod decimal;
pub mod drift;
mod error;
mod examine;
mod format;
mod hashed;
mod identifier;
mod identity;
mod infer;
pub mod integrity;
pub mod join;
pub mod leakage;
pub mod limits;
mod manifest;
mod masking;
pub mod media;
mod merge;
pub mod model;
pub mod pass;
pub mod personal;
pub mod profile;
pub mod read;
mod read_context;
mod remote;
mod resolve;
mod rows;
mod sampled;
pub mod schema;
mod select;
mod shared;
pub mod snapshot;
pub mod split;
mod state;
mod times;
pub mod unicode_form;
pub mod write;

pub use trackway_formats::runfile::{DataFormat, DataSpec, DecimalMark};

pub use cache::HashCache;
pub use error::DataError;
pub use infer::{Column, ColumnType};
pub use manifest::{DataFile, DataManifest};
pub use masking::{KEY_BYTES, Mask};
pub use read_context::ReadContext;
pub use resolve::Resolver;
pub use select::MAX_FILES;
pub use state::FileStates;

use trackway_core::text::counted;

#[cfg(test)]
mod tests;
