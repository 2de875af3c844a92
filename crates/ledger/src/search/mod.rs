//! Searching runs: a condition in SQL over the columns of `runs`, and over metrics, parameters and tags by name.
//!
//! A name stands for, in this order: a column of `runs`; with `metric.`, `first.`, `min.`, `max.`, `param.` or `tag.` in
//! front, what that says; a metric (its last value); a parameter. What no run has is told with the nearest name.

mod columns;
mod names;

use std::cmp::Ordering;
use std::path::Path;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::Schema;
use serde_json::Value as Json;
use trackway_core::LaunchKind;

use self::columns::{Cells, Columns};
use self::names::Condition;
use crate::error::LedgerError;
use crate::find::RunFilter;
use crate::ledger::Ledger;
use crate::query::RowPredicate;
use crate::records::RunRow;

/// What to look for.
#[derive(Debug, Clone, Default)]
pub struct RunSearch {
    /// A condition; none admits every run.
    pub condition: Option<String>,
    /// Names to order by, each with whether the greatest comes first. Runs that lack it come last. The newest run
    /// comes first among equals.
    pub order: Vec<(String, bool)>,
    /// Names whose values are wanted.
    pub columns: Vec<String>,
    /// At most so many.
    pub limit: Option<usize>,
}

/// Runs that were found, with the values of what was asked for.
#[derive(Debug, Clone, Default)]
pub struct FoundRuns {
    /// The runs, in order.
    pub runs: Vec<RunRow>,
    /// The names of `values`: the wanted ones, then those of the order and of the condition, each once.
    pub names: Vec<String>,
    /// For each run the values of `names`; what it lacks is null.
    pub values: Vec<Vec<Json>>,
}

impl Ledger {
    /// Training runs that meet a condition. `home` holds the records of attempts that still live: their metrics count as
    /// they are now.
    ///
    /// # Errors
    /// [`LedgerError::Query`] when a condition is wrong or names what no run has.
    pub fn search_runs(&self, home: &Path, search: &RunSearch) -> Result<FoundRuns, LedgerError> {
        let runs = self.list_runs(&RunFilter { kind: LaunchKind::Train, ..RunFilter::default() })?;
        let mut condition = search.condition.as_deref().map(Condition::parse).transpose()?;
        let mut columns = Columns::of(self, home, &runs)?;
        for name in search.columns.iter().chain(search.order.iter().map(|(name, _)| name)) {
            columns.take(name)?;
        }
        for named in condition.iter_mut().flat_map(Condition::names) {
            // `tag.team = "x"`: what is quoted and no name is a text.
            if !named.in_double_quotes || columns.knows(&named.name)? {
                columns.take(&named.name)?;
            }
        }
        let mut kept: Vec<usize> = match &condition {
            None => (0..runs.len()).collect(),
            Some(condition) => {
                let sql =
                    condition.to_sql(|named| named.in_double_quotes && columns.get(&named.name).is_none());
                meeting(&sql, columns.batch()?)?
            }
        };
        let keys: Vec<(&Cells, bool)> = search
            .order
            .iter()
            .filter_map(|(name, greatest_first)| Some((columns.get(name)?, *greatest_first)))
            .collect();
        kept.sort_by(|left, right| compare(&keys, *left, *right));
        kept.truncate(search.limit.unwrap_or(usize::MAX));
        let values = kept.iter().map(|row| columns.all().map(|cells| cells.json(*row)).collect()).collect();
        let names = columns.names();
        let mut runs: Vec<Option<RunRow>> = runs.into_iter().map(Some).collect();
        Ok(FoundRuns { names, values, runs: kept.into_iter().filter_map(|row| runs[row].take()).collect() })
    }
}

/// The rows that meet a condition for sure.
fn meeting(sql: &str, batch: RecordBatch) -> Result<Vec<usize>, LedgerError> {
    let schema = Schema::clone(batch.schema_ref());
    let holds = RowPredicate::new(sql).holds(&batch).map_err(|why| {
        let types: Vec<String> = schema
            .fields()
            .iter()
            .map(|field| format!("{} is {}", field.name(), field.data_type()))
            .collect();
        LedgerError::Query(format!("the condition cannot be evaluated: {why} ({})", types.join(", ")))
    })?;
    Ok((0..holds.len()).filter(|row| holds.is_valid(*row) && holds.value(*row)).collect())
}

fn compare(keys: &[(&Cells, bool)], left: usize, right: usize) -> Ordering {
    keys.iter()
        .map(|(cells, greatest_first)| cells.compare(left, right, *greatest_first))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}
