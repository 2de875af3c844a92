//! Data sets by themselves, outside of a run: no home and no ledger is needed, but for snapshots.

pub mod drift;
pub mod images;
pub mod leakage;
pub mod profile;
pub mod schema;
pub mod snapshot;
pub mod table;
