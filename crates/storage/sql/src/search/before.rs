//! What a database tests before a condition is evaluated: it may pass more runs than meet the condition, never fewer.

use trackway_core::LaunchKind;
use trackway_ledger::scan::{Field as _, Record as _, Value, marks};
use trackway_ledger::{MetricSummaryRow, RunRow};

use super::asked::{Asked, Source};
use super::live::Live;
use crate::filter::{Filter, Test};

/// As `run_id`, but not a reason to look runs up one by one: the tables are read in the order of an index.
const RUN_ID: &str = "(run_id || '')";
/// Most runs with attempts that are not sealed which a test lets through by their ids; with more the test is left out.
const LIVE_RUNS_MAX: usize = 500;

/// Parts of a `WHERE` clause, each with its parameters. Without any, everything passes.
#[derive(Debug, Clone, Default)]
pub(super) struct Before {
    /// Over columns of `runs`.
    runs: Vec<(String, Vec<Value>)>,
    /// Over `run_id`, in whatever table.
    ids: Vec<(String, Vec<Value>)>,
}

impl Before {
    /// The tests that filters of a condition mean. `live`: what attempts that are not sealed have.
    pub fn of(asked: &[Asked], live: &Live, filters: &[Filter<'_>]) -> Self {
        let mut before = Self::default();
        for filter in filters {
            let Some(asked) = asked.iter().find(|asked| asked.name == filter.column) else { continue };
            match &asked.source {
                Source::Run(column) => {
                    let mut parameters = Vec::new();
                    let test = filter.test.sql(RunRow::TABLE.columns[*column].name, &mut parameters);
                    before.runs.push((test, parameters));
                }
                _ => before.ids.extend(of_ids(asked, live, &filter.test)),
            }
        }
        before
    }

    /// For a query of `runs`: ` AND …`.
    pub fn of_runs(&self, parameters: &mut Vec<Value>) -> String {
        joined(self.runs.iter().chain(&self.ids), parameters)
    }

    /// For a query of another table that has `run_id`: ` AND …`.
    pub fn of_ids(&self, parameters: &mut Vec<Value>) -> String {
        let mut tests = joined(self.ids.iter(), parameters);
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

/// A run's value is that of one of its attempts: where it passes the test, one of them does.
fn of_ids(asked: &Asked, live: &Live, test: &Test) -> Option<(String, Vec<Value>)> {
    let (table, column, name) = match (&asked.source, test) {
        // Parameters and tags that are numbers are compared as numbers, which the database cannot do.
        (Source::Text(table, name), Test::In(_) | Test::Compare(_, Value::Text(_)) | Test::IsNull(false)) => {
            (*table, "value", name)
        }
        (Source::Metric(name, pick), Test::Compare(..) | Test::IsNull(false)) => {
            (MetricSummaryRow::TABLE, pick.column(), name)
        }
        _ => return None,
    };
    let mut parameters = vec![Value::from(name.as_str())];
    let test = test.sql(column, &mut parameters);
    let mut part = format!("{RUN_ID} IN (SELECT run_id FROM {} WHERE name = ? AND {test})", table.name);
    let mut live: Vec<String> = asked.live_values(live).into_iter().map(|(run_id, _)| run_id).collect();
    live.sort_unstable();
    live.dedup();
    if live.len() > LIVE_RUNS_MAX {
        return None;
    }
    if !live.is_empty() {
        part = format!("({part} OR run_id IN ({}))", marks(live.len()));
        parameters.extend(live.into_iter().map(Value::Text));
    }
    Some((part, parameters))
}
