//! schemars, under its own name, for the types that are printed.
//!
//! Tests derive the schemas of all documents and compare them with `docs/schemas.json`. That file is what `trackway schema`
//! reads, so that an optimized binary has no code of schemas: there the derive generates nothing.

#[cfg(debug_assertions)]
pub use schemars::*;
#[cfg(not(debug_assertions))]
pub use trackway_no_schema::JsonSchema;
