//! SQL and searches over a ledger: the tables as they are, and `metrics` live and closed alike.
//!
//! - [`sql`] answers one SELECT over every table of a ledger and over the metrics.
//! - [`search_runs`] filters, sorts and pages runs by an expression; [`evaluated_names`] lists the names that evaluations give it.
//! - [`RowPredicate`] is the expression over the rows of any table.
//! - [`conformance`] is the suite that every backend of the ledger passes with this crate.
//!
//! The query engine is DataFusion. It is used nowhere else, so that writing a receipt does not need it; without feature
//! `datafusion` queries and conditions are errors, and searches without a condition work.

mod answer;
#[cfg(feature = "datafusion")]
pub mod conformance;
#[cfg_attr(not(feature = "datafusion"), allow(dead_code, reason = "only the query engine makes filters"))]
mod filter;
mod limits;
mod named;
#[cfg(feature = "datafusion")]
mod query;
#[cfg(not(feature = "datafusion"))]
#[path = "absent.rs"]
mod query;
mod search;

use std::path::Path;

use trackway_ledger::{Ledger, LedgerError};

pub use answer::Answer;
pub use limits::{QUERY_MEMORY_BYTES, QueryLimits};
pub use query::{RowPredicate, TakeBatch, sql_within, visit_metrics};
pub use search::{FoundRuns, PAGE_RUNS, Page, RunSearch, evaluated_names, search_runs};

/// As [`sql_within`], with the usual limits.
///
/// # Errors
/// As [`sql_within`].
pub fn sql(ledger: &Ledger, home: &Path, query: &str) -> Result<Answer, LedgerError> {
    sql_within(ledger, home, query, &QueryLimits::default())
}
