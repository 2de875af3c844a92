//! The contract: what a command prints with `--json`, what a page shows and what a server answers, as types with
//! JSON Schemas.
//!
//! A type is printed only if it is a [`Document`], and it is one only if the [catalogue](catalogue::DOCUMENTS) lists
//! it. So the compiler proves that no row of the ledger and no ad-hoc value reaches a user, and `docs/json.md` and
//! `docs/schemas.json` are complete. Types that science and decisions compute (a profile, an assessment, an estimate of
//! memory) are part of the contract as they are; everything else is defined here, one module per subject.

pub mod attempts;
pub mod catalogue;
pub mod changes;
pub mod checkpoints;
pub mod compare;
pub mod cross_validation;
pub mod data;
#[cfg(debug_assertions)]
pub mod derived;
pub mod detections;
pub mod diagnosis;
pub mod doctor;
mod document;
pub mod evaluations;
pub mod explain;
pub mod export;
pub mod gates;
pub mod gc;
pub mod import;
pub mod init;
pub mod logs;
pub mod models;
pub mod notification;
#[cfg(debug_assertions)]
pub mod page;
pub mod postmortem;
pub mod preflight;
pub mod progressive;
pub mod registry;
pub mod rehearsal;
pub mod remote;
pub mod reproduce;
pub mod runs;
pub mod schemas;
pub mod settings;
pub mod sql;
pub mod verify;
pub mod watch;

pub use catalogue::{DOCUMENTS, Entry, Shape};
pub use document::Document;
