//! Data sets by themselves, outside of a run: no home and no ledger is needed.

pub mod check;
pub mod drift;
pub mod leakage;
pub mod profile;
pub mod schema;
pub mod table;
