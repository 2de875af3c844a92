//! What is recorded of runs, and what commands show and make of it afterwards: receipts, explanations, late facts,
//! imports, exports and digests.

mod amendments;
mod changes;
mod diagnose;
mod evidence;
mod exports;
mod imports;
mod notifications;
mod postmortems;
mod rebuild;
pub(crate) mod receipts;
mod settings;
mod smell;
mod ticks;
mod tracking;
mod verifying;
