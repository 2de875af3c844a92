//! What keeps a home and its ledger in order: what ended is sealed, what is old is deleted, what is lost is rebuilt,
//! every digest is verified, and runs of other tools are imported.

pub mod doctor;
mod done;
pub mod gc;
pub mod import;
mod prune;
pub mod rebuild;
pub mod reconcile;
pub mod tick;
pub mod verify;
