//! What a name means.

use trackway_core::LaunchKind;
use trackway_ledger::scan::{ColumnKind, Field as _, Record as _, Table, Value, marks, nearest};
use trackway_ledger::{Ledger, LedgerError, MetricSummaryRow, ParameterRow, RunRow, RunTagRow};
use trackway_records::LiveRecords;

use super::evaluated::{self, EVAL, EvaluatedNumber};
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
    /// What another table has of a run.
    Recorded(NamedValues),
}

/// A kind of values that a run has by name, in rows of another table: several rows of a run are one value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum NamedValues {
    /// A metric: one value of all attempts of a run.
    Metric(String, Pick),
    /// A parameter or a tag: the last attempt's text counts.
    Text(&'static Table, String),
    /// A number of an evaluation: that of the newest one which has it counts.
    Evaluated(EvaluatedNumber),
}

impl NamedValues {
    /// What its rows are read from; `it` has the run.
    pub fn rows(&self) -> String {
        match self {
            Self::Metric(..) => format!("{} it", MetricSummaryRow::TABLE.name),
            Self::Text(table, _) => format!("{} it", table.name),
            Self::Evaluated(_) => evaluated::ROWS.into(),
        }
    }

    /// The same, where the rows of a few runs are read.
    pub fn rows_of_runs(&self) -> String {
        match self {
            Self::Metric(..) | Self::Text(..) => self.rows(),
            Self::Evaluated(_) => evaluated::ROWS_OF_RUNS.into(),
        }
    }

    /// The column of its rows that has the value.
    pub fn column(&self) -> &'static str {
        match self {
            Self::Metric(_, pick) => pick.column(),
            Self::Text(..) | Self::Evaluated(_) => "value",
        }
    }

    /// The test of its rows.
    pub fn test(&self, parameters: &mut Vec<Value>) -> String {
        match self {
            Self::Metric(name, _) | Self::Text(_, name) => {
                parameters.push(Value::from(name.as_str()));
                "name = ?".into()
            }
            Self::Evaluated(number) => number.test(parameters),
        }
    }

    /// The order of the rows of a run.
    pub fn oldest_first(&self) -> &'static str {
        match self {
            Self::Metric(..) | Self::Text(..) => "attempt_id",
            Self::Evaluated(_) => evaluated::OLDEST_FIRST,
        }
    }

    /// Takes the value of a run's next row in; the oldest row comes first.
    pub fn fold(&self, held: &mut Value, next: Value) {
        match self {
            Self::Metric(_, pick) => pick.fold(held, next),
            Self::Text(..) => Pick::Last.fold(held, next),
            // What the newest evaluation could not compute is unknown, whatever an older one found.
            Self::Evaluated(_) => *held = next,
        }
    }
}

/// What a name may mean, the first choice first: the first that a run has is meant. This is the only place where names
/// are understood, whether they are of a condition, an order or a column.
fn meanings(name: &str) -> Vec<Source> {
    if let Some(column) = RunRow::TABLE.columns.iter().position(|column| column.name == name) {
        return vec![Source::Run(column)];
    }
    let metric = |name: &str, pick| NamedValues::Metric(name.into(), pick);
    let text = |table: &'static Table, name: &str| NamedValues::Text(table, name.into());
    let plain = || vec![metric(name, Pick::Last), text(ParameterRow::TABLE, name)];
    let meanings = match name.split_once('.') {
        Some(("metric" | "last", rest)) => vec![metric(rest, Pick::Last)],
        Some(("first", rest)) => vec![metric(rest, Pick::First)],
        Some(("min", rest)) => vec![metric(rest, Pick::Min)],
        Some(("max", rest)) => vec![metric(rest, Pick::Max)],
        Some(("param", rest)) => vec![text(ParameterRow::TABLE, rest)],
        Some(("tag", rest)) => vec![text(RunTagRow::TABLE, rest)],
        // A script may record metrics of such names itself.
        Some(("eval", rest)) => {
            let numbers = EvaluatedNumber::meanings(rest).into_iter().map(NamedValues::Evaluated);
            numbers.chain(plain()).collect()
        }
        _ => plain(),
    };
    meanings.into_iter().map(Source::Recorded).collect()
}

/// A requested name.
#[derive(Debug, Clone)]
pub(super) struct RequestedName {
    pub name: String,
    pub source: Source,
    pub kind: ColumnKind,
    /// Of strings whose kind is a number those that are numbers, in no order.
    pub numbers: Vec<Number>,
}

impl RequestedName {
    /// Whether a run may have no value.
    pub fn may_lack(&self) -> bool {
        match self.source {
            Source::Run(column) => RunRow::TABLE.columns[column].nullable,
            Source::Recorded(_) => true,
        }
    }

    /// Its values in attempts that are not sealed, each with its run, the oldest attempt first.
    pub fn live_values(&self, live: &Live) -> Vec<(String, Value)> {
        match &self.source {
            Source::Recorded(NamedValues::Metric(name, pick)) => {
                let rows = live.read_metrics().filter(|row| row.name == *name);
                rows.map(|row| (row.run_id.to_string(), pick.of(row))).collect()
            }
            Source::Recorded(NamedValues::Text(table, name)) => {
                let rows = live.read_texts().filter(|row| row.table == table.name && row.name == *name);
                let value = |row: &LiveText| self.value_of(Value::Text(row.value.clone()));
                rows.map(|row| (row.run_id.to_string(), value(row))).collect()
            }
            Source::Run(_) | Source::Recorded(NamedValues::Evaluated(_)) => Vec::new(),
        }
    }

    /// Its type in the database: parameters and tags are strings there, also those that are numbers.
    pub fn stored_kind(&self) -> ColumnKind {
        match self.source {
            Source::Recorded(NamedValues::Text(..)) => ColumnKind::Text,
            Source::Run(_) | Source::Recorded(_) => self.kind,
        }
    }

    /// A value as it is stored, as a value of this kind.
    pub fn value_of(&self, stored: Value) -> Value {
        match (&self.source, stored) {
            (Source::Recorded(NamedValues::Text(..)), Value::Text(text)) if self.kind == ColumnKind::Real => {
                number_in(&text).map_or(Value::Null, Value::Real)
            }
            (_, stored) => stored,
        }
    }
}

/// The names requested so far.
pub(super) struct Names<'a> {
    ledger: &'a Ledger,
    records: &'a LiveRecords,
    asked: Vec<RequestedName>,
    live: Live,
}

impl<'a> Names<'a> {
    pub fn new(ledger: &'a Ledger, records: &'a LiveRecords) -> Self {
        Self { ledger, records, asked: Vec::new(), live: Live::default() }
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
        let Some(source) = self.source_of(name)? else { return Err(self.unknown(name)?) };
        let (kind, numbers) = match &source {
            Source::Run(column) => (RunRow::TABLE.columns[*column].kind, None),
            Source::Recorded(NamedValues::Metric(..) | NamedValues::Evaluated(_)) => (ColumnKind::Real, None),
            Source::Recorded(NamedValues::Text(table, key)) => match self.numbers_of(table, key)? {
                None => (ColumnKind::Text, None),
                numbers => (ColumnKind::Real, numbers),
            },
        };
        self.asked.push(RequestedName {
            name: name.into(),
            source,
            kind,
            numbers: numbers.unwrap_or_default(),
        });
        Ok(self.asked.len() - 1)
    }

    /// The names that were taken, and what attempts that are not sealed have of them.
    pub fn into_parts(self) -> (Vec<RequestedName>, Live) {
        (self.asked, self.live)
    }

    /// What a name means, if a run has it.
    fn source_of(&mut self, name: &str) -> Result<Option<Source>, LedgerError> {
        for source in meanings(name) {
            if self.exists(&source)? {
                return Ok(Some(source));
            }
        }
        Ok(None)
    }

    fn exists(&mut self, source: &Source) -> Result<bool, LedgerError> {
        let Source::Recorded(recorded) = source else { return Ok(true) };
        let is_live = match recorded {
            NamedValues::Metric(name, _) => {
                self.live.metrics(self.ledger, self.records)?.iter().any(|row| row.name == *name)
            }
            NamedValues::Text(table, name) => {
                let texts = self.live.texts(self.ledger)?;
                texts.iter().any(|row| row.table == table.name && row.name == *name)
            }
            NamedValues::Evaluated(_) => false,
        };
        if is_live {
            return Ok(true);
        }
        let mut parameters = Vec::new();
        let test = recorded.test(&mut parameters);
        let sql = format!("SELECT run_id FROM {} WHERE {test} LIMIT 1", recorded.rows());
        Ok(!self.texts_of(&sql, &parameters)?.is_empty())
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
        known.extend(self.live.metrics(self.ledger, self.records)?.iter().map(|row| row.name.clone()));
        let mut parameters = self.texts_of("SELECT DISTINCT name FROM parameters", &[])?;
        let mut tags = self.texts_of("SELECT DISTINCT name FROM run_tags", &[])?;
        for text in self.live.texts(self.ledger)? {
            let names = if text.table == RunTagRow::TABLE.name { &mut tags } else { &mut parameters };
            names.push(text.name.clone());
        }
        known.extend(parameters.into_iter().flat_map(|name| [format!("param.{name}"), name]));
        known.extend(tags.into_iter().map(|name| format!("tag.{name}")));
        let numbers = EvaluatedNumber::all(self.ledger)?;
        let evaluated: Vec<String> = numbers.iter().map(EvaluatedNumber::name).collect();
        Ok(LedgerError::Query(format!("no run has `{name}`: {}", hint(name, &known, &evaluated))))
    }

    fn texts_of(&self, sql: &str, values: &[Value]) -> Result<Vec<String>, LedgerError> {
        found(self.ledger, sql, values, &[ColumnKind::Text], |mut row| match row.pop() {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        })
    }
}

/// What may have been meant by a name that no run has. `evaluated`: the names of the numbers of evaluations; `known`: all
/// others.
fn hint(name: &str, known: &[String], evaluated: &[String]) -> String {
    let of_evaluation = format!("{EVAL}{name}");
    let is_alike = |known: &&String| !name.starts_with(EVAL) || known.starts_with(EVAL);
    let near = match evaluated.contains(&of_evaluation) {
        true => Some(of_evaluation.as_str()),
        false => nearest(name, known.iter().chain(evaluated).filter(is_alike).map(String::as_str)),
    };
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None if name.starts_with(EVAL) && evaluated.is_empty() => {
            "no evaluation is complete yet; `trackway eval run RUN` makes one".into()
        }
        None => "name a column of `runs`, a metric, `min.METRIC`, `max.METRIC`, `eval.METRIC`, `param.NAME` or `tag.NAME`"
            .into(),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(name: &str, pick: Pick) -> Source {
        Source::Recorded(NamedValues::Metric(name.into(), pick))
    }

    fn text(table: &'static Table, name: &str) -> Source {
        Source::Recorded(NamedValues::Text(table, name.into()))
    }

    fn evaluated(slice: &str, metric: &str) -> Source {
        let number = EvaluatedNumber { test_set: None, slice: slice.into(), metric: metric.into() };
        Source::Recorded(NamedValues::Evaluated(number))
    }

    /// Proves what each form of a name may mean, and in which order: a prefix means one kind of values, and a name that
    /// begins with `eval.` an evaluation's number before a metric or a parameter that a script named so itself.
    #[test]
    fn a_name_has_its_meanings_in_order() {
        let plain = |name: &str| vec![metric(name, Pick::Last), text(ParameterRow::TABLE, name)];
        assert!(matches!(meanings("state")[..], [Source::Run(_)]));
        assert_eq!(meanings("metric.state"), [metric("state", Pick::Last)]);
        assert_eq!(meanings("first.a.b"), [metric("a.b", Pick::First)]);
        assert_eq!(meanings("min.loss"), [metric("loss", Pick::Min)]);
        assert_eq!(meanings("max.eval.f1"), [metric("eval.f1", Pick::Max)]);
        assert_eq!(meanings("param.lr"), [text(ParameterRow::TABLE, "lr")]);
        assert_eq!(meanings("tag.team"), [text(RunTagRow::TABLE, "team")]);
        for name in ["loss", "train/loss", "optimizer.lr", "eval", "evaluate.f1", ""] {
            assert_eq!(meanings(name), plain(name), "{name}");
        }
        let f1 = [vec![evaluated("", "f1")], plain("eval.f1")].concat();
        assert_eq!(meanings("eval.f1"), f1);
        let numbers = vec![evaluated("older", "recall"), evaluated("", "slice.older.recall")];
        let recall = [numbers, plain("eval.slice.older.recall")].concat();
        assert_eq!(meanings("eval.slice.older.recall"), recall);
    }

    /// Proves that the suggestion for a number of an evaluation is one of those, that a name without `eval.` that only
    /// evaluations have is suggested with it, and that without any evaluation the message says how to make one.
    #[test]
    fn a_hint_knows_numbers_of_evaluations() {
        let names = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).into()).collect() };
        let known = names(&["state", "train_accuracy", "val_loss", "param.lr", "lr"]);
        let evaluated = names(&["eval.accuracy", "eval.slice.old men.recall"]);
        for (name, expected) in [
            ("eval.acuracy", "did you mean `eval.accuracy`?"),
            ("eval.train_accuracy", "did you mean `eval.accuracy`?"),
            ("eval.slice.old man.recall", "did you mean `eval.slice.old men.recall`?"),
            ("accuracy", "did you mean `eval.accuracy`?"),
            ("val_los", "did you mean `val_loss`?"),
        ] {
            assert_eq!(hint(name, &known, &evaluated), expected, "{name}");
        }
        let without = hint("eval.accuracy", &known, &[]);
        assert!(without.contains("`trackway eval run RUN`"), "{without}");
        let own = names(&["eval.accuracy_top5"]);
        assert_eq!(hint("eval.accuracy_top1", &own, &[]), "did you mean `eval.accuracy_top5`?");
        assert!(hint("zzz", &known, &evaluated).contains("`eval.METRIC`"));
    }

    /// Proves that of several evaluations the newest one counts, also where it has no value, and that a metric keeps the
    /// last value there is.
    #[test]
    fn the_newest_evaluation_counts() {
        let folded = |recorded: &NamedValues| {
            let mut held = Value::Null;
            for next in [Value::Real(0.9), Value::Real(0.7), Value::Null] {
                recorded.fold(&mut held, next);
            }
            held
        };
        let number = EvaluatedNumber { test_set: None, slice: String::new(), metric: "f1".into() };
        assert_eq!(folded(&NamedValues::Evaluated(number)), Value::Null);
        assert_eq!(folded(&NamedValues::Metric("f1".into(), Pick::Last)), Value::Real(0.7));
    }
}
