//! The suite that every backend of the ledger passes with the query engine.
//!
//! [`run_all`] panics at the first difference, naming it. It wants the ledger that the suite of `trackway-ledger` has
//! filled.
#![allow(clippy::unwrap_used, reason = "the suite reports by panicking, as a test does")]

mod search;
mod sql;

use std::path::Path;

use trackway_ledger::Ledger;

pub use self::search::fill_runs;
pub use self::sql::WEEKLY_REASONS;

/// Runs every check. `home` is an empty folder for records.
///
/// # Panics
/// When an answer is not what plain reading finds.
pub fn run_all(ledger: &Ledger, home: &Path) {
    sql::questions_are_answered(ledger, home);
    sql::mistakes_are_reported(ledger, home);
    sql::evaluations_are_tables(ledger, home);
    search::searches_find_what_plain_reading_finds(ledger, home);
    search::amended_runs_are_found_by_what_they_are_now(ledger, home);
}
