//! SQL and searches over a ledger: the tables as they are, and `metrics` live and closed alike.
//!
//! - [`sql`] answers one SELECT over every table of a ledger and over the metrics.
//! - [`search_runs`] filters, sorts and pages runs by an expression.
//! - [`RowPredicate`] is the expression over the rows of any table.
//! - [`conformance`] is the suite that every backend of the ledger passes with this crate.
//!
//! The query engine is DataFusion. It is used nowhere else, so that writing a receipt does not need it.

pub mod conformance;
mod query;
mod search;

pub use query::{Answer, QUERY_MEMORY_BYTES, QueryLimits, RowPredicate, sql, sql_within};
pub use search::{FoundRuns, PAGE_RUNS, Page, RunSearch, search_runs};
