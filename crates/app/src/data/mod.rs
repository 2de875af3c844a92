//! Data sets by themselves, outside of a run: no home and no ledger is needed.

pub mod profile;
