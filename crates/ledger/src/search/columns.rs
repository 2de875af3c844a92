//! What a name stands for, and its value for each run.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{Field, Schema};
use serde_json::Value as Json;
use trackway_core::LaunchKind;

use crate::close::live_summaries;
use crate::error::{LedgerError, nearest};
use crate::ledger::Ledger;
use crate::records::{MetricSummaryRow, ParameterRow, RunRow, TagRow};
use crate::value::{ColumnKind, Record, Table, Value};

/// Which value of a metric a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pick {
    First,
    Last,
    Min,
    Max,
}

/// What a name stands for.
enum Source {
    Run(usize),
    Metric(String, Pick),
    Text(&'static Table, String),
}

/// The values of one name, one for each run.
#[derive(Debug, Clone)]
pub(super) struct Cells {
    name: String,
    kind: ColumnKind,
    values: Vec<Value>,
}

/// The values of every name taken so far.
pub(super) struct Columns<'a> {
    ledger: &'a Ledger,
    runs: &'a [RunRow],
    /// The place of each run.
    places: HashMap<String, usize>,
    /// Metrics of attempts that are not sealed.
    live: Vec<MetricSummaryRow>,
    taken: Vec<Cells>,
}

impl<'a> Columns<'a> {
    pub fn of(ledger: &'a Ledger, home: &Path, runs: &'a [RunRow]) -> Result<Self, LedgerError> {
        let mut live = Vec::new();
        for attempt in ledger.unsealed_attempts()? {
            if attempt.kind == LaunchKind::Train {
                live.extend(live_summaries(home, &attempt)?);
            }
        }
        let places = runs.iter().enumerate().map(|(place, run)| (run.run_id.to_string(), place)).collect();
        Ok(Self { ledger, runs, places, live, taken: Vec::new() })
    }

    pub fn get(&self, name: &str) -> Option<&Cells> {
        self.taken.iter().find(|cells| cells.name == name)
    }

    pub fn all(&self) -> impl Iterator<Item = &Cells> {
        self.taken.iter()
    }

    pub fn names(&self) -> Vec<String> {
        self.taken.iter().map(|cells| cells.name.clone()).collect()
    }

    /// Whether the name stands for anything.
    pub fn knows(&self, name: &str) -> Result<bool, LedgerError> {
        Ok(self.source_of(name)?.is_some())
    }

    /// Reads the values of a name.
    pub fn take(&mut self, name: &str) -> Result<(), LedgerError> {
        if self.get(name).is_some() {
            return Ok(());
        }
        let source = match self.source_of(name)? {
            Some(source) => source,
            None => return Err(self.unknown(name)?),
        };
        let (kind, values) = match source {
            Source::Run(column) => {
                let values = self.runs.iter().map(|run| run.values().swap_remove(column)).collect();
                (RunRow::TABLE.columns[column].kind, values)
            }
            Source::Metric(metric, pick) => (ColumnKind::Real, self.metric(&metric, pick)?),
            Source::Text(table, key) => as_numbers(self.texts(table, &key)?),
        };
        self.taken.push(Cells { name: name.into(), kind, values });
        Ok(())
    }

    /// The names as columns of one batch.
    pub fn batch(&self) -> Result<RecordBatch, LedgerError> {
        let fields: Vec<Field> = self
            .taken
            .iter()
            .map(|cells| Field::new(&cells.name, crate::query::data_type(cells.kind), true))
            .collect();
        let arrays = self.taken.iter().map(Cells::array).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.runs.len()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
            .map_err(|error| LedgerError::Query(error.to_string()))
    }

    fn source_of(&self, name: &str) -> Result<Option<Source>, LedgerError> {
        if let Some(column) = RunRow::TABLE.columns.iter().position(|column| column.name == name) {
            return Ok(Some(Source::Run(column)));
        }
        if let Some((prefix, rest)) = name.split_once('.') {
            let metric = |pick| Source::Metric(rest.into(), pick);
            let said = match prefix {
                "metric" | "last" => Some(metric(Pick::Last)),
                "first" => Some(metric(Pick::First)),
                "min" => Some(metric(Pick::Min)),
                "max" => Some(metric(Pick::Max)),
                "param" => Some(Source::Text(ParameterRow::TABLE, rest.into())),
                "tag" => Some(Source::Text(TagRow::TABLE, rest.into())),
                _ => None,
            };
            if let Some(source) = said {
                return Ok(self.exists(&source)?.then_some(source));
            }
        }
        let candidates =
            [Source::Metric(name.into(), Pick::Last), Source::Text(ParameterRow::TABLE, name.into())];
        for source in candidates {
            if self.exists(&source)? {
                return Ok(Some(source));
            }
        }
        Ok(None)
    }

    fn exists(&self, source: &Source) -> Result<bool, LedgerError> {
        let (table, name) = match source {
            Source::Run(_) => return Ok(true),
            Source::Metric(name, _) if self.live.iter().any(|row| row.name == *name) => return Ok(true),
            Source::Metric(name, _) => (MetricSummaryRow::TABLE, name),
            Source::Text(table, name) => (*table, name),
        };
        let sql = format!("SELECT name FROM {} WHERE name = ? LIMIT 1", table.name);
        Ok(!self.texts_of(&sql, &[Value::Text(name.clone())])?.is_empty())
    }

    fn unknown(&self, name: &str) -> Result<LedgerError, LedgerError> {
        let mut known: Vec<String> = RunRow::TABLE.columns.iter().map(|column| column.name.into()).collect();
        known.extend(self.texts_of("SELECT DISTINCT name FROM metric_summaries", &[])?);
        known.extend(self.live.iter().map(|row| row.name.clone()));
        let parameters = self.texts_of("SELECT DISTINCT name FROM parameters", &[])?;
        known.extend(parameters.into_iter().flat_map(|name| [format!("param.{name}"), name]));
        let tags = self.texts_of("SELECT DISTINCT name FROM tags", &[])?;
        known.extend(tags.into_iter().map(|name| format!("tag.{name}")));
        let hint = match nearest(name, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                "name a column of `runs`, a metric, `min.METRIC`, `max.METRIC`, `param.NAME` or `tag.NAME`"
                    .into()
            }
        };
        Ok(LedgerError::Query(format!("no run has `{name}`: {hint}")))
    }

    fn texts_of(&self, sql: &str, values: &[Value]) -> Result<Vec<String>, LedgerError> {
        let mut texts = Vec::new();
        self.ledger.backend().query("searching", sql, values, &[ColumnKind::Text], &mut |row| {
            texts.extend(row.into_iter().filter_map(|value| match value {
                Value::Text(text) => Some(text),
                _ => None,
            }));
            Ok(())
        })?;
        Ok(texts)
    }

    /// One value of a metric over all attempts of each run, the oldest first: ids begin with the time of their making.
    fn metric(&self, name: &str, pick: Pick) -> Result<Vec<Value>, LedgerError> {
        let mut values = vec![Value::Null; self.runs.len()];
        let column = match pick {
            Pick::First => "first_value",
            Pick::Last => "last_value",
            Pick::Min => "min_value",
            Pick::Max => "max_value",
        };
        let sql = format!("SELECT run_id, {column} FROM metric_summaries WHERE name = ? ORDER BY attempt_id");
        let kinds = [ColumnKind::Text, ColumnKind::Real];
        let mut take = |run: &str, value: Value| {
            if let Some(place) = self.places.get(run) {
                pick.fold(&mut values[*place], value);
            }
        };
        self.ledger.backend().query("searching", &sql, &[Value::from(name)], &kinds, &mut |row| {
            if let [Value::Text(run), value] = &row[..] {
                take(run, value.clone());
            }
            Ok(())
        })?;
        for row in self.live.iter().filter(|row| row.name == name) {
            let value = match pick {
                Pick::First => row.first_value,
                Pick::Last => row.last_value,
                Pick::Min => row.min_value,
                Pick::Max => row.max_value,
            };
            take(&row.run_id.to_string(), value.map_or(Value::Null, Value::Real));
        }
        Ok(values)
    }

    /// The text of each run under a key; a later attempt's counts.
    fn texts(&self, table: &Table, key: &str) -> Result<Vec<Value>, LedgerError> {
        let mut values = vec![Value::Null; self.runs.len()];
        let sql = format!("SELECT run_id, value FROM {} WHERE name = ? ORDER BY attempt_id", table.name);
        let kinds = [ColumnKind::Text, ColumnKind::Text];
        self.ledger.backend().query("searching", &sql, &[Value::from(key)], &kinds, &mut |mut row| {
            if let (Some(value), Some(Value::Text(run))) = (row.pop(), row.pop())
                && let Some(place) = self.places.get(&run)
            {
                values[*place] = value;
            }
            Ok(())
        })?;
        Ok(values)
    }
}

impl Pick {
    /// Takes the next attempt's value in.
    fn fold(self, held: &mut Value, next: Value) {
        let replaces = match (&*held, &next, self) {
            (_, Value::Null, _) => false,
            (Value::Null, _, _) => true,
            (_, _, Self::First) => false,
            (_, _, Self::Last) => true,
            (Value::Real(held), Value::Real(next), Self::Min) => next < held,
            (Value::Real(held), Value::Real(next), Self::Max) => next > held,
            _ => false,
        };
        if replaces {
            *held = next;
        }
    }
}

/// Texts that are all numbers are numbers, so that `param.lr < 0.01` means what it says.
fn as_numbers(values: Vec<Value>) -> (ColumnKind, Vec<Value>) {
    let number = |value: &Value| match value {
        Value::Text(text) => text.trim().parse().ok().map(Value::Real),
        _ => Some(Value::Null),
    };
    match values.iter().map(number).collect::<Option<Vec<Value>>>() {
        Some(numbers) => (ColumnKind::Real, numbers),
        None => (ColumnKind::Text, values),
    }
}

impl Cells {
    /// The value for a run; what JSON lacks is null.
    pub fn json(&self, run: usize) -> Json {
        match &self.values[run] {
            Value::Null => Json::Null,
            Value::Text(text) => Json::from(text.as_str()),
            Value::Integer(number) => Json::from(*number),
            Value::Real(number) => Json::from(*number),
            Value::Boolean(truth) => Json::from(*truth),
            Value::Timestamp(moment) => Json::from(moment.to_rfc3339()),
        }
    }

    /// Which run comes first; one without a value comes last either way.
    pub fn compare(&self, left: usize, right: usize, greatest_first: bool) -> Ordering {
        let (left, right) = (&self.values[left], &self.values[right]);
        let order = match (left, right) {
            (Value::Null, _) | (_, Value::Null) => {
                return (*left == Value::Null).cmp(&(*right == Value::Null));
            }
            (Value::Text(left), Value::Text(right)) => left.cmp(right),
            (Value::Integer(left), Value::Integer(right)) => left.cmp(right),
            (Value::Real(left), Value::Real(right)) => left.total_cmp(right),
            (Value::Boolean(left), Value::Boolean(right)) => left.cmp(right),
            (Value::Timestamp(left), Value::Timestamp(right)) => left.cmp(right),
            _ => Ordering::Equal,
        };
        if greatest_first { order.reverse() } else { order }
    }

    fn array(&self) -> ArrayRef {
        /// The values of one variant; any other is null.
        macro_rules! only {
            ($variant:ident, $from:expr) => {
                self.values
                    .iter()
                    .map(|value| if let Value::$variant(inner) = value { Some($from(inner)) } else { None })
            };
        }
        match self.kind {
            ColumnKind::Text | ColumnKind::Word | ColumnKind::Json => {
                Arc::new(only!(Text, String::as_str).collect::<StringArray>())
            }
            ColumnKind::Integer => Arc::new(only!(Integer, |it: &i64| *it).collect::<Int64Array>()),
            ColumnKind::Real => Arc::new(only!(Real, |it: &f64| *it).collect::<Float64Array>()),
            ColumnKind::Boolean => Arc::new(only!(Boolean, |it: &bool| *it).collect::<BooleanArray>()),
            ColumnKind::Timestamp => {
                let moments = only!(Timestamp, |it: &trackway_core::Timestamp| it.as_micros());
                Arc::new(moments.collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
            }
        }
    }
}
