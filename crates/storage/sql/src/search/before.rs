//! What a database tests before a condition is evaluated: it may pass more runs than meet the condition, never fewer.

use trackway_core::LaunchKind;
use trackway_ledger::scan::{ColumnKind, Field as _, Record as _, Value, marks};
use trackway_ledger::{Ledger, LedgerError, RunRow};

use super::asked::{NamedValues, RequestedName, Source};
use super::live::Live;
use crate::filter::{Filter, FilterOperator, Test};

/// As `run_id`, but not a reason to look runs up one by one: the tables are read in the order of an index.
const RUN_ID: &str = "(run_id || '')";
/// At most so many runs are looked up one by one.
const FEW_RUNS: usize = 1_000;
/// Most strings, and most runs with attempts that are not sealed, that a test names; a test that would name more is left out.
const NAMED_MAX: usize = 500;

/// Parts of a `WHERE` clause, each with its parameters. Without any, everything passes.
#[derive(Debug, Clone, Default)]
pub(super) struct WhereParts {
    /// Over columns of `runs`.
    runs: Vec<(String, Vec<Value>)>,
    /// Over values in other tables.
    values: Vec<ValueTest>,
}

/// A test of a recorded value: of that of any attempt or evaluation of a run, since the run's value is one of these.
#[derive(Debug, Clone)]
struct ValueTest {
    asked: String,
    /// Over the rows of the table that has the value.
    column: (String, Vec<Value>),
    /// Over `run_id`, in whatever table.
    ids: (String, Vec<Value>),
    /// Few runs pass.
    is_narrow: bool,
}

impl WhereParts {
    /// The tests that filters of a condition mean. `live`: what attempts that are not sealed have.
    pub fn of(
        ledger: &Ledger,
        asked: &[RequestedName],
        live: &Live,
        filters: &[Filter<'_>],
    ) -> Result<Self, LedgerError> {
        let mut before = Self::default();
        for filter in filters {
            let Some(asked) = asked.iter().find(|asked| asked.name == filter.column) else { continue };
            match &asked.source {
                Source::Run(column) => {
                    let mut parameters = Vec::new();
                    let test = filter.test.sql(RunRow::TABLE.columns[*column].name, &mut parameters);
                    before.runs.push((test, parameters));
                }
                Source::Recorded(recorded) => {
                    before.values.extend(value_test(ledger, asked, recorded, live, &filter.test)?);
                }
            }
        }
        Ok(before)
    }

    /// For a query of `runs`: training runs that pass.
    pub fn of_runs(&self, parameters: &mut Vec<Value>) -> String {
        parameters.push(LaunchKind::Train.to_value());
        // SQLite would rather read all of an index that begins with `kind` than look a few runs up.
        let kind =
            if self.values.iter().any(|test| test.is_narrow) { "(kind || '') = ?" } else { "kind = ?" };
        let ids = self.values.iter().map(|test| &test.ids);
        format!("{kind}{}", joined(self.runs.iter().chain(ids), parameters))
    }

    /// For a query of the rows that have the value of this name: ` AND …`.
    pub fn of_values(&self, key: &RequestedName, parameters: &mut Vec<Value>) -> String {
        let parts =
            self.values.iter().map(|test| if test.asked == key.name { &test.column } else { &test.ids });
        let mut tests = joined(parts, parameters);
        if !self.runs.is_empty() {
            parameters.push(LaunchKind::Train.to_value());
            let of_runs = joined(self.runs.iter(), parameters);
            tests += &format!(" AND {RUN_ID} IN (SELECT run_id FROM runs WHERE kind = ?{of_runs})");
        }
        tests
    }
}

fn joined<'p>(parts: impl Iterator<Item = &'p (String, Vec<Value>)>, parameters: &mut Vec<Value>) -> String {
    let mut tests = String::new();
    for (test, values) in parts {
        tests += &format!(" AND {test}");
        parameters.extend(values.iter().cloned());
    }
    tests
}

fn value_test(
    ledger: &Ledger,
    asked: &RequestedName,
    recorded: &NamedValues,
    live: &Live,
    test: &Test,
) -> Result<Option<ValueTest>, LedgerError> {
    let test = match (recorded, test) {
        (NamedValues::Text(..), Test::Compare(comparison, Value::Real(bound)))
            if asked.kind == ColumnKind::Real =>
        {
            // Which strings are such numbers is not for the database to say.
            let passing = asked.numbers.iter().filter(|number| may_hold(number.value, *comparison, *bound));
            let texts: Vec<String> = passing.map(|number| number.text.clone()).collect();
            let none = texts.is_empty();
            if none { Test::IsNull(true) } else { Test::In(texts) }
        }
        (NamedValues::Text(..), Test::In(_) | Test::Compare(_, Value::Text(_)) | Test::IsNull(false))
        | (NamedValues::Metric(..) | NamedValues::Evaluated(_), Test::Compare(..) | Test::IsNull(false)) => {
            test.clone()
        }
        _ => return Ok(None),
    };
    let mut live: Vec<String> = asked.live_values(live).into_iter().map(|(run_id, _)| run_id).collect();
    live.sort_unstable();
    live.dedup();
    if live.len() > NAMED_MAX || matches!(&test, Test::In(texts) if texts.len() > NAMED_MAX) {
        return Ok(None);
    }
    let mut values = Vec::new();
    let of_column = test.sql(recorded.column(), &mut values);
    let mut parameters = Vec::new();
    let of_name = recorded.test(&mut parameters);
    parameters.extend(values.iter().cloned());
    let found = format!("SELECT run_id FROM {} WHERE {of_name} AND {of_column}", recorded.rows());
    let count = format!("{found} LIMIT {}", FEW_RUNS + 1);
    let passing = super::found(ledger, &count, &parameters, &[ColumnKind::Text], Some)?;
    let is_narrow = passing.len() <= FEW_RUNS;
    let run_id = if is_narrow { "run_id" } else { RUN_ID };
    let of_live = match live.len() {
        0 => String::new(),
        count => format!(" UNION ALL SELECT run_id FROM runs WHERE run_id IN ({})", marks(count)),
    };
    parameters.extend(live.into_iter().map(Value::Text));
    Ok(Some(ValueTest {
        asked: asked.name.clone(),
        column: (of_column, values),
        ids: (format!("{run_id} IN ({found}{of_live})"), parameters),
        is_narrow,
    }))
}

/// Whether a comparison may hold; NaN may be before or after every number.
fn may_hold(value: f64, comparison: FilterOperator, bound: f64) -> bool {
    let holds = match comparison {
        FilterOperator::Equal => value == bound,
        FilterOperator::Less => value < bound,
        FilterOperator::LessOrEqual => value <= bound,
        FilterOperator::Greater => value > bound,
        FilterOperator::GreaterOrEqual => value >= bound,
    };
    holds || value.is_nan() || bound.is_nan()
}
