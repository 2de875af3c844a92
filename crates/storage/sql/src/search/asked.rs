//! What a name means.

use std::path::Path;

use trackway_core::LaunchKind;
use trackway_ledger::scan::{ColumnKind, Field as _, Record as _, Table, Value, marks, nearest};
use trackway_ledger::{Ledger, LedgerError, MetricSummaryRow, ParameterRow, RunRow, RunTagRow};

use super::found;
use super::live::{Live, LiveText};

/// Which value of a metric a name means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pick {
    First,
    Last,
    Min,
    Max,
}

impl Pick {
    /// The column of `metric_summaries` that holds it for one attempt.
    pub fn column(self) -> &'static str {
        match self {
            Self::First => "first_value",
            Self::Last => "last_value",
            Self::Min => "min_value",
            Self::Max => "max_value",
        }
    }

    /// What that column holds.
    pub fn of(self, row: &MetricSummaryRow) -> Value {
        let value = match self {
            Self::First => row.first_value,
            Self::Last => row.last_value,
            Self::Min => row.min_value,
            Self::Max => row.max_value,
        };
        value.map_or(Value::Null, Value::Real)
    }

    /// Takes the next attempt's value in; the oldest attempt comes first.
    pub fn fold(self, held: &mut Value, next: Value) {
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

/// Where the values of a name come from.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Source {
    /// A column of `runs`, by its place.
    Run(usize),
    /// A metric: one value of all attempts of a run.
    Metric(String, Pick),
    /// A parameter or a tag: the last attempt's text counts.
    Text(&'static Table, String),
}

/// A requested name.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub name: String,
    pub source: Source,
    pub kind: ColumnKind,
    /// Of strings whose kind is a number those that are numbers, in no order.
    pub numbers: Vec<Number>,
}

impl Asked {
    /// Whether a run may have no value.
    pub fn may_lack(&self) -> bool {
        match self.source {
            Source::Run(column) => RunRow::TABLE.columns[column].nullable,
            Source::Metric(..) | Source::Text(..) => true,
        }
    }

    /// Its values in attempts that are not sealed, each with its run, the oldest attempt first.
    pub fn live_values(&self, live: &Live) -> Vec<(String, Value)> {
        match &self.source {
            Source::Metric(name, pick) => {
                let rows = live.read_metrics().filter(|row| row.name == *name);
                rows.map(|row| (row.run_id.to_string(), pick.of(row))).collect()
            }
            Source::Text(table, name) => {
                let rows = live.read_texts().filter(|row| row.table == table.name && row.name == *name);
                let value = |row: &LiveText| self.value_of(Value::Text(row.value.clone()));
                rows.map(|row| (row.run_id.to_string(), value(row))).collect()
            }
            Source::Run(_) => Vec::new(),
        }
    }

    /// Its type in the database: parameters and tags are strings there, also those that are numbers.
    pub fn stored_kind(&self) -> ColumnKind {
        match self.source {
            Source::Text(..) => ColumnKind::Text,
            Source::Run(_) | Source::Metric(..) => self.kind,
        }
    }

    /// A value as it is stored, as a value of this kind.
    pub fn value_of(&self, stored: Value) -> Value {
        match (&self.source, stored) {
            (Source::Text(..), Value::Text(text)) if self.kind == ColumnKind::Real => {
                number_in(&text).map_or(Value::Null, Value::Real)
            }
            (_, stored) => stored,
        }
    }
}

/// The names requested so far.
pub(super) struct Names<'a> {
    ledger: &'a Ledger,
    home: &'a Path,
    asked: Vec<Asked>,
    live: Live,
}

impl<'a> Names<'a> {
    pub fn new(ledger: &'a Ledger, home: &'a Path) -> Self {
        Self { ledger, home, asked: Vec::new(), live: Live::default() }
    }

    /// The place of a name among those that were taken.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.asked.iter().position(|asked| asked.name == name)
    }

    /// Whether the name means anything.
    pub fn knows(&mut self, name: &str) -> Result<bool, LedgerError> {
        Ok(self.source_of(name)?.is_some())
    }

    /// Takes a name and answers with its place.
    ///
    /// # Errors
    /// [`LedgerError::Query`] when no run has it.
    pub fn take(&mut self, name: &str) -> Result<usize, LedgerError> {
        if let Some(place) = self.place(name) {
            return Ok(place);
        }
        let source = match self.source_of(name)? {
            Some(source) => source,
            None => return Err(self.unknown(name)?),
        };
        let (kind, numbers) = match &source {
            Source::Run(column) => (RunRow::TABLE.columns[*column].kind, None),
            Source::Metric(..) => (ColumnKind::Real, None),
            Source::Text(table, key) => match self.numbers_of(table, key)? {
                None => (ColumnKind::Text, None),
                numbers => (ColumnKind::Real, numbers),
            },
        };
        self.asked.push(Asked { name: name.into(), source, kind, numbers: numbers.unwrap_or_default() });
        Ok(self.asked.len() - 1)
    }

    /// The names that were taken, and what attempts that are not sealed have of them.
    pub fn into_parts(self) -> (Vec<Asked>, Live) {
        (self.asked, self.live)
    }

    fn source_of(&mut self, name: &str) -> Result<Option<Source>, LedgerError> {
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
                "tag" => Some(Source::Text(RunTagRow::TABLE, rest.into())),
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

    fn exists(&mut self, source: &Source) -> Result<bool, LedgerError> {
        let (table, name, is_live) = match source {
            Source::Run(_) => return Ok(true),
            Source::Metric(name, _) => {
                let live = self.live.metrics(self.ledger, self.home)?;
                (MetricSummaryRow::TABLE, name, live.iter().any(|row| row.name == *name))
            }
            Source::Text(table, name) => {
                let live = self.live.texts(self.ledger)?;
                (*table, name, live.iter().any(|row| row.table == table.name && row.name == *name))
            }
        };
        if is_live {
            return Ok(true);
        }
        let sql = format!("SELECT name FROM {} WHERE name = ? LIMIT 1", table.name);
        Ok(!self.texts_of(&sql, &[Value::Text(name.clone())])?.is_empty())
    }

    /// Strings are numbers where the value of every training run is one, so that `param.lr < 0.01` compares numbers.
    fn numbers_of(&mut self, table: &Table, key: &str) -> Result<Option<Vec<Number>>, LedgerError> {
        let is_text =
            |row: &LiveText| row.table == table.name && row.name == key && number_in(&row.value).is_none();
        if self.live.texts(self.ledger)?.iter().any(is_text) {
            return Ok(None);
        }
        let mut numbers = Vec::new();
        let kinds = [ColumnKind::Text, ColumnKind::Integer];
        let is_number = |row: Vec<Value>| Number::of(row).map(|number| numbers.push(number)).is_some();
        if self.all_rows(&Number::grouped(table), &[Value::from(key)], &kinds, is_number)? {
            return Ok(Some(numbers));
        }
        // Another string may be that of an earlier attempt, or of a run of another kind.
        let others = LaunchKind::ALL.iter().filter(|kind| **kind != LaunchKind::Train);
        let mut parameters = vec![Value::from(key)];
        parameters.extend(others.map(|kind| kind.to_value()));
        let sql = format!(
            "SELECT run_id, value FROM {} WHERE name = ? AND run_id NOT IN (SELECT run_id FROM runs WHERE kind IN ({})) ORDER BY run_id, attempt_id",
            table.name,
            marks(parameters.len() - 1)
        );
        // A run's last text is known when the next run begins.
        let (mut run_id, mut was_number) = (Value::Null, true);
        let is_fine = |row: Vec<Value>| {
            let Ok([next_run, Value::Text(text)]) = <[Value; 2]>::try_from(row) else { return true };
            let is_fine = next_run == run_id || was_number;
            run_id = next_run;
            was_number = number_in(&text).is_some();
            is_fine
        };
        let kinds = [ColumnKind::Text, ColumnKind::Text];
        let all_are_numbers = self.all_rows(&sql, &parameters, &kinds, is_fine)? && was_number;
        all_are_numbers.then(|| Number::all(self.ledger, table, key)).transpose()
    }

    /// Whether all rows of a query are as they should be; the first that is not ends it.
    fn all_rows(
        &self,
        sql: &str,
        parameters: &[Value],
        kinds: &[ColumnKind],
        mut is_fine: impl FnMut(Vec<Value>) -> bool,
    ) -> Result<bool, LedgerError> {
        let mut found_other = false;
        let read = self.ledger.backend().query("searching", sql, parameters, kinds, &mut |row| {
            found_other = !is_fine(row);
            if found_other { Err(LedgerError::Query("one is enough".into())) } else { Ok(()) }
        });
        if found_other { Ok(false) } else { read.map(|()| true) }
    }

    fn unknown(&mut self, name: &str) -> Result<LedgerError, LedgerError> {
        let mut known: Vec<String> = RunRow::TABLE.columns.iter().map(|column| column.name.into()).collect();
        known.extend(self.texts_of("SELECT DISTINCT name FROM metric_summaries", &[])?);
        known.extend(self.live.metrics(self.ledger, self.home)?.iter().map(|row| row.name.clone()));
        let mut parameters = self.texts_of("SELECT DISTINCT name FROM parameters", &[])?;
        let mut tags = self.texts_of("SELECT DISTINCT name FROM run_tags", &[])?;
        for text in self.live.texts(self.ledger)? {
            let names = if text.table == RunTagRow::TABLE.name { &mut tags } else { &mut parameters };
            names.push(text.name.clone());
        }
        known.extend(parameters.into_iter().flat_map(|name| [format!("param.{name}"), name]));
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
        found(self.ledger, sql, values, &[ColumnKind::Text], |mut row| match row.pop() {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        })
    }
}

/// A string that is a number, and how many attempts have it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Number {
    pub value: f64,
    pub text: String,
    pub row_count: usize,
}

impl Number {
    /// Every string of a name, with its rows.
    fn grouped(table: &Table) -> String {
        format!("SELECT value, count(*) FROM {} WHERE name = ? GROUP BY value", table.name)
    }

    /// A row of [`Number::grouped`], if its string is a number.
    fn of(row: Vec<Value>) -> Option<Self> {
        let Ok([Value::Text(text), Value::Integer(count)]) = <[Value; 2]>::try_from(row) else { return None };
        let row_count = usize::try_from(count).unwrap_or(usize::MAX);
        Some(Self { value: number_in(&text)?, text, row_count })
    }

    /// The strings of a name that are numbers, in no order.
    fn all(ledger: &Ledger, table: &Table, name: &str) -> Result<Vec<Self>, LedgerError> {
        let kinds = [ColumnKind::Text, ColumnKind::Integer];
        found(ledger, &Self::grouped(table), &[Value::from(name)], &kinds, Self::of)
    }
}

fn number_in(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}
