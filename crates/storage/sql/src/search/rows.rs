//! Runs with the values of the requested names, read by sets: one query for the runs and one for each name.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{Field, Schema, SchemaRef};
use serde_json::Value as Json;
use trackway_core::{LaunchKind, Timestamp};
use trackway_ledger::scan::{ColumnKind, Field as _, Record as _, Value, marks};
use trackway_ledger::{Ledger, LedgerError, RunRow};
use trackway_records::data_type;

use super::asked::{RequestedName, Source};
use super::before::WhereParts;
use super::found;
use super::live::Live;
use crate::query::RowPredicate;

/// A run with the values of the requested names, in their order.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub run_id: String,
    pub created_at: Timestamp,
    pub values: Vec<Value>,
}

/// Leaves out runs that are hidden. They are few: SQLite reads them from an index that has only them.
const LISTED: &str = " AND run_id NOT IN (SELECT run_id FROM runs WHERE hidden_at IS NOT NULL)";

/// Reads rows.
pub(super) struct Rows<'a> {
    pub ledger: &'a Ledger,
    /// Hidden runs are read too.
    pub with_hidden: bool,
    pub asked: Vec<RequestedName>,
    /// What attempts that are not sealed have.
    pub live: Live,
}

impl Rows<'_> {
    /// A test for the end of a `WHERE` clause over `runs`.
    fn listed(&self) -> &'static str {
        if self.with_hidden { "" } else { LISTED }
    }

    /// Runs with their values: those of a `WHERE` clause, in its order.
    fn read(&self, clause: &str, parameters: &[Value]) -> Result<Vec<Row>, LedgerError> {
        let of_runs: Vec<(usize, usize)> = self
            .asked
            .iter()
            .enumerate()
            .filter_map(|(place, asked)| match asked.source {
                Source::Run(column) => Some((place, column)),
                _ => None,
            })
            .collect();
        let columns = RunRow::TABLE.columns;
        let mut names = vec!["run_id", "created_at"];
        let mut kinds = vec![ColumnKind::Text, ColumnKind::Timestamp];
        names.extend(of_runs.iter().map(|(_, column)| columns[*column].name));
        kinds.extend(of_runs.iter().map(|(_, column)| columns[*column].kind));
        let sql = format!("SELECT {} FROM runs {clause}", names.join(", "));
        let mut rows = found(self.ledger, &sql, parameters, &kinds, |values| {
            let mut values = values.into_iter();
            let (Value::Text(run_id), Value::Timestamp(created_at)) = (values.next()?, values.next()?) else {
                return None;
            };
            let mut row = Row { run_id, created_at, values: vec![Value::Null; self.asked.len()] };
            for ((place, _), value) in of_runs.iter().zip(values) {
                row.values[*place] = value;
            }
            Some(row)
        })?;
        self.fill(&mut rows)?;
        Ok(rows)
    }

    /// The newest training runs, at most so many, of those after a time and an id that pass.
    pub fn newest(
        &self,
        before: &WhereParts,
        after: Option<&(Timestamp, String)>,
        count_max: usize,
    ) -> Result<Vec<Row>, LedgerError> {
        let mut parameters = Vec::new();
        let mut clause = format!("WHERE {}{}", before.of_runs(&mut parameters), self.listed());
        if let Some((created_at, run_id)) = after {
            clause += " AND (created_at, run_id) < (?, ?)";
            parameters.extend([Value::Timestamp(*created_at), Value::from(run_id.as_str())]);
        }
        clause += &format!(" ORDER BY created_at DESC, run_id DESC LIMIT {count_max}");
        self.read(&clause, &parameters)
    }

    /// How many runs come after one, the newest first.
    pub fn count_after(&self, row: &Row) -> Result<u64, LedgerError> {
        let mut parameters = Vec::new();
        let runs = WhereParts::default().of_runs(&mut parameters);
        parameters.extend([Value::Timestamp(row.created_at), Value::from(row.run_id.as_str())]);
        let listed = self.listed();
        let sql = format!("SELECT count(*) FROM runs WHERE {runs}{listed} AND (created_at, run_id) < (?, ?)");
        let number = |values: Vec<Value>| u64::from_value(values.into_iter().next()?).ok();
        Ok(found(self.ledger, &sql, &parameters, &[ColumnKind::Integer], number)?.pop().unwrap_or(0))
    }

    /// Training runs by their ids, in no order.
    pub fn by_id(&self, ids: impl Iterator<Item = String>) -> Result<Vec<Row>, LedgerError> {
        let mut parameters: Vec<Value> = ids.map(Value::Text).collect();
        let ids = marks(parameters.len());
        parameters.push(LaunchKind::Train.to_value());
        // Not `kind = ?`: SQLite would rather read all of an index that begins with it than look the ids up.
        self.read(&format!("WHERE run_id IN ({ids}) AND (kind || '') = ?{}", self.listed()), &parameters)
    }

    /// What other tables have of these runs.
    fn fill(&self, rows: &mut [Row]) -> Result<(), LedgerError> {
        if rows.is_empty() {
            return Ok(());
        }
        let places: HashMap<String, usize> =
            rows.iter().enumerate().map(|(row, run)| (run.run_id.clone(), row)).collect();
        let mut parameters: Vec<Value> = rows.iter().map(|row| Value::from(row.run_id.as_str())).collect();
        for (place, asked) in self.asked.iter().enumerate() {
            let Source::Recorded(recorded) = &asked.source else { continue };
            let mut take = |run: &str, value: Value| {
                if let Some(row) = places.get(run) {
                    recorded.fold(&mut rows[*row].values[place], asked.value_of(value));
                }
            };
            parameters.truncate(places.len());
            let test = recorded.test(&mut parameters);
            let sql = format!(
                "SELECT run_id, {} FROM {} WHERE run_id IN ({}) AND {test} ORDER BY run_id, {}",
                recorded.column(),
                recorded.rows_of_runs(),
                marks(places.len()),
                recorded.oldest_first()
            );
            let kinds = [ColumnKind::Text, asked.stored_kind()];
            self.ledger.backend().query("searching", &sql, &parameters, &kinds, &mut |mut row| {
                if let (Some(value), Some(Value::Text(run))) = (row.pop(), row.pop()) {
                    take(&run, value);
                }
                Ok(())
            })?;
            for (run_id, value) in asked.live_values(&self.live) {
                if let Some(row) = places.get(&run_id) {
                    recorded.fold(&mut rows[*row].values[place], value);
                }
            }
        }
        Ok(())
    }

    /// Of these rows those that meet a condition for sure.
    pub fn meeting(&self, condition: &RowPredicate, rows: Vec<Row>) -> Result<Vec<Row>, LedgerError> {
        let batch = self.batch(&rows)?;
        let holds = condition.holds(&batch).map_err(|why| {
            let fields = batch.schema_ref().fields().iter();
            let types: Vec<String> =
                fields.map(|field| format!("{} is {}", field.name(), field.data_type())).collect();
            let types = if types.is_empty() { String::new() } else { format!(" ({})", types.join(", ")) };
            LedgerError::Query(format!("the condition cannot be evaluated: {why}{types}"))
        })?;
        let meets = |row: usize| holds.is_valid(row) && holds.value(row);
        Ok(rows.into_iter().enumerate().filter(|(row, _)| meets(*row)).map(|(_, row)| row).collect())
    }

    /// The columns of a condition: the requested names.
    pub fn schema(&self) -> SchemaRef {
        let field = |asked: &RequestedName| Field::new(&asked.name, data_type(asked.kind), true);
        Arc::new(Schema::new(self.asked.iter().map(field).collect::<Vec<Field>>()))
    }

    fn batch(&self, rows: &[Row]) -> Result<RecordBatch, LedgerError> {
        let arrays =
            self.asked.iter().enumerate().map(|(place, asked)| array(rows, place, asked.kind)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        RecordBatch::try_new_with_options(self.schema(), arrays, &options)
            .map_err(|error| LedgerError::Query(error.to_string()))
    }
}

/// One name's values of all rows; a value of another kind is null.
fn array(rows: &[Row], place: usize, kind: ColumnKind) -> ArrayRef {
    macro_rules! only {
        ($variant:ident, $from:expr) => {
            rows.iter().map(|row| match &row.values[place] {
                Value::$variant(inner) => Some($from(inner)),
                _ => None,
            })
        };
    }
    match kind {
        ColumnKind::Text | ColumnKind::Word | ColumnKind::Json => {
            Arc::new(only!(Text, String::as_str).collect::<StringArray>())
        }
        ColumnKind::Integer => Arc::new(only!(Integer, |it: &i64| *it).collect::<Int64Array>()),
        ColumnKind::Real => Arc::new(only!(Real, |it: &f64| *it).collect::<Float64Array>()),
        ColumnKind::Boolean => Arc::new(only!(Boolean, |it: &bool| *it).collect::<BooleanArray>()),
        ColumnKind::Timestamp => {
            let moments = only!(Timestamp, |it: &Timestamp| it.as_micros());
            Arc::new(moments.collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
        }
    }
}

/// Which value comes first; null comes last either way. Zeros are equal whatever their sign, as they are in the database.
pub(super) fn compare_values(left: &Value, right: &Value, greatest_first: bool) -> Ordering {
    let order = match (left, right) {
        (Value::Null, _) | (_, Value::Null) => {
            return (*left == Value::Null).cmp(&(*right == Value::Null));
        }
        (Value::Text(left), Value::Text(right)) => left.cmp(right),
        (Value::Integer(left), Value::Integer(right)) => left.cmp(right),
        (Value::Real(left), Value::Real(right)) => (left + 0.0).total_cmp(&(right + 0.0)),
        (Value::Boolean(left), Value::Boolean(right)) => left.cmp(right),
        (Value::Timestamp(left), Value::Timestamp(right)) => left.cmp(right),
        _ => Ordering::Equal,
    };
    if greatest_first { order.reverse() } else { order }
}

/// A value as JSON; what JSON lacks is null.
pub(super) fn json_of(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Text(text) => Json::from(text.as_str()),
        Value::Integer(number) => Json::from(*number),
        Value::Real(number) => Json::from(*number),
        Value::Boolean(truth) => Json::from(*truth),
        Value::Timestamp(moment) => Json::from(moment.to_rfc3339()),
    }
}
