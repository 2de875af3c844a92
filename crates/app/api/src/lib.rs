//! The contract: what a command prints with `--json`, what a page shows and what a server answers, as types with
//! JSON Schemas.
//!
//! A type is printed only if it is a [`Document`], and it is one only if the [catalogue](contract::catalogue::DOCUMENTS) lists
//! it. So the compiler proves that no row of the ledger and no ad-hoc value reaches a user, and `docs/json.md` and
//! `docs/schemas.json` are complete. Types that science and decisions compute (a profile, an assessment, an estimate of
//! memory) are part of the contract as they are; everything else is defined here, one module per subject.

pub mod checkpoints;
pub mod contract;
pub mod data;
pub mod home;
pub mod models;
pub mod runs;

pub use contract::catalogue::{DOCUMENTS, Entry, Shape};
pub use contract::document::Document;
