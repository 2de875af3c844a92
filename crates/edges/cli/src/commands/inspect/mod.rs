//! The commands under "Inspect" in the help: they show what is recorded, and name or note it. None of them changes a
//! sealed receipt.

pub mod amend;
pub mod classify;
pub mod compare;
pub mod diagnose;
pub mod explain;
pub mod export;
pub mod list;
pub mod logs;
pub mod postmortem;
mod progressive;
pub mod reproduce;
pub mod sql;
pub mod verify;
pub mod watch;
