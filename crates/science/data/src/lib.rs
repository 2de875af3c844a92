//! Data sets: which files they consist of, what is in them, and what is wrong with it.
//!
//! [`Resolver::resolve`] turns the path of a run file's `[data.NAME]` into a [`DataManifest`]: every file with its
//! size, BLAKE3, rows and schema. Memory stays bounded whatever the files' size. A [cache](HashCache) spares files that
//! did not change. [`snapshot`] keeps manifests, with profiles, for good.
//!
//! The other modules check a data set, or make another one of it: [`schema`], [`integrity`], [`leakage`], [`drift`] and [`media`];
//! [`clean`], [`join`] and [`split`]. They read tables with `trackway-tables`.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests delete what they made"))]

pub mod clean;
pub mod drift;
pub mod integrity;
pub mod join;
pub mod leakage;
mod manifest;
pub mod media;
pub mod model;
mod resolve;
pub mod schema;
pub mod snapshot;
pub mod split;
pub mod values;

pub use manifest::{DataFile, DataManifest, FileStates};
pub use resolve::{HashCache, Resolver};
pub use snapshot::{KEY_BYTES, Mask};

use trackway_core::text::counted;

#[cfg(test)]
mod tests;
