//! What a build without feature `datafusion` has in place of the query engine: queries and conditions are errors that name the
//! feature of the binary.

use std::path::Path;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use trackway_core::RunId;
use trackway_ledger::{Ledger, LedgerError};

use crate::answer::Answer;
use crate::filter::{Filter, Tested};
use crate::limits::QueryLimits;
use crate::named::ConditionName;

fn not_built() -> LedgerError {
    LedgerError::NotBuilt { what: "query engine".into(), feature: "sql" }
}

/// Would answer one SELECT.
///
/// # Errors
/// [`LedgerError::NotBuilt`], always.
pub fn sql_within(
    _ledger: &Ledger,
    _home: &Path,
    _query: &str,
    _limits: &QueryLimits,
) -> Result<Answer, LedgerError> {
    Err(not_built())
}

/// Takes rows; an error ends the reading.
pub type TakeBatch<'t> = dyn FnMut(RecordBatch) -> Result<(), ArrowError> + 't;

/// Would call `take` with the metrics of a run.
///
/// # Errors
/// [`LedgerError::NotBuilt`], always.
pub fn visit_metrics(
    _ledger: &Ledger,
    _home: &Path,
    _run_id: RunId,
    _take: &mut TakeBatch<'_>,
) -> Result<(), LedgerError> {
    Err(not_built())
}

/// A condition, which this build cannot evaluate.
#[derive(Debug)]
pub struct RowPredicate;

impl RowPredicate {
    /// A condition.
    #[must_use]
    pub fn new(_sql: &str) -> Self {
        Self
    }

    /// Would say whether each row meets it.
    ///
    /// # Errors
    /// That this build has no query engine, always.
    pub fn holds(&self, _batch: &RecordBatch) -> Result<BooleanArray, String> {
        Err(not_built().to_string())
    }

    pub(crate) fn filters<'c>(&self, _schema: &SchemaRef, _columns: &[Tested<'c>]) -> Vec<Filter<'c>> {
        Vec::new()
    }
}

/// A condition of a search, which this build cannot read.
#[derive(Debug, Clone)]
pub(crate) enum Condition {}

impl Condition {
    pub(crate) fn parse(_text: &str) -> Result<Self, LedgerError> {
        Err(not_built())
    }

    pub(crate) fn names(&mut self) -> Vec<ConditionName> {
        match *self {}
    }

    pub(crate) fn to_sql(&self, _is_text: impl Fn(&ConditionName) -> bool) -> String {
        match *self {}
    }
}
