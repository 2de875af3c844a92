//! The first name of an order decides which runs are looked at first: the database reads its values in order.

use std::cmp::Ordering;

use trackway_core::Timestamp;
use trackway_ledger::scan::{ColumnKind, Record as _, Value, marks};
use trackway_ledger::{LedgerError, RunRow};

use super::asked::{NamedValues, Number, RequestedName, Source};
use super::before::WhereParts;
use super::found;
use super::rows::{Row, Rows, compare_values};

/// A text is compared by so many bytes before its run is read as a whole, and a few more where they would halve a
/// character.
const KEY_PREFIX_BYTES: usize = 64;
/// So many strings are looked up at once.
const TEXTS_AT_ONCE: usize = 500;
/// When the run of a row was created. Not `run_id = `: SQLite would look at the run, which may be long, rather than at an index.
const CREATED_AT: &str = "(SELECT created_at FROM runs WHERE runs.run_id BETWEEN it.run_id AND it.run_id)";

/// A run by the first name of an order; among equals the newest comes first.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub key: Value,
    pub created_at: Timestamp,
    pub run_id: String,
}

impl Candidate {
    /// Long strings are cut: what differs only after the cut is equal here.
    pub fn new(key: Value, created_at: Timestamp, run_id: String) -> Self {
        let key = match key {
            Value::Text(mut text) => {
                let end = (KEY_PREFIX_BYTES..text.len()).find(|end| text.is_char_boundary(*end));
                text.truncate(end.unwrap_or(text.len()));
                Value::Text(text)
            }
            key => key,
        };
        Self { key, created_at, run_id }
    }

    /// Whether what is equal here is equal.
    pub fn is_whole(&self) -> bool {
        match &self.key {
            Value::Text(text) => text.len() < KEY_PREFIX_BYTES,
            _ => true,
        }
    }
}

/// Which candidate comes first.
pub(super) fn compare(left: &Candidate, right: &Candidate, greatest_first: bool) -> Ordering {
    compare_values(&left.key, &right.key, greatest_first)
        .then_with(|| right.created_at.cmp(&left.created_at))
        .then_with(|| right.run_id.cmp(&left.run_id))
}

/// A part of the candidates of an order.
pub(super) struct Passage<'p> {
    pub greatest_first: bool,
    pub before: &'p WhereParts,
    /// None that come before this row.
    pub start: Option<&'p Row>,
    /// Whether those with the start's key come after it where they are older: the order has no other name.
    pub is_only_name: bool,
    pub skip: usize,
    pub count_max: usize,
}

impl Rows<'_> {
    /// The runs that have the name at this place of what was asked, by the value of any attempt or evaluation: a run may occur
    /// several times, once of them with its value if it has one, and runs of other kinds may be among them. Attempts that are not
    /// sealed do not count. Also whether there are more.
    pub fn candidates(
        &self,
        key: usize,
        passage: &Passage<'_>,
    ) -> Result<(Vec<Candidate>, bool), LedgerError> {
        let asked = &self.asked[key];
        match &asked.source {
            Source::Recorded(recorded @ NamedValues::Text(..)) if asked.kind == ColumnKind::Real => {
                self.by_number(key, recorded, passage)
            }
            _ => self.by_stored(key, passage),
        }
    }

    /// In the order of the database.
    fn by_stored(&self, key: usize, passage: &Passage<'_>) -> Result<(Vec<Candidate>, bool), LedgerError> {
        let asked = &self.asked[key];
        let mut parameters = Vec::new();
        let (rows, column, created_at, tests) = match &asked.source {
            Source::Run(column) => {
                let column = RunRow::TABLE.columns[*column].name;
                let rows = format!("{} it", RunRow::TABLE.name);
                (rows, column, "created_at", passage.before.of_runs(&mut parameters))
            }
            Source::Recorded(recorded) => {
                let tests = passing(recorded, asked, passage, &mut parameters);
                (recorded.rows(), recorded.column(), CREATED_AT, tests)
            }
        };
        let is_text = matches!(asked.kind, ColumnKind::Text | ColumnKind::Word | ColumnKind::Json);
        let value = if is_text { self.ledger.backend().bytewise(column) } else { column.to_owned() };
        let (beyond, direction) = if passage.greatest_first { ("<", "DESC") } else { (">", "ASC") };
        let mut start = String::new();
        if let Some(row) = passage.start {
            let from = row.values[key].clone();
            start = format!(" AND {value} {beyond}= ?");
            parameters.push(from.clone());
            if passage.is_only_name {
                start += &format!(" AND ({value} {beyond} ? OR ({created_at}, run_id) < (?, ?))");
                parameters.extend([from, Value::Timestamp(row.created_at), Value::from(row.run_id.as_str())]);
            }
        }
        let sql = format!(
            "SELECT run_id, {column}, {created_at} AS made FROM {rows} WHERE {tests} AND {column} IS NOT NULL{start} ORDER BY {value} {direction}, made DESC, run_id DESC LIMIT {} OFFSET {}",
            passage.count_max, passage.skip
        );
        let found = self.read_candidates(&sql, &parameters, asked)?;
        let has_more = found.len() == passage.count_max;
        Ok((found, has_more))
    }

    /// Strings that are numbers, in the order of these: the database orders strings.
    fn by_number(
        &self,
        key: usize,
        recorded: &NamedValues,
        passage: &Passage<'_>,
    ) -> Result<(Vec<Candidate>, bool), LedgerError> {
        let asked = &self.asked[key];
        let order = |left: f64, right: f64| {
            compare_values(&Value::Real(left), &Value::Real(right), passage.greatest_first)
        };
        let mut numbers: Vec<&Number> = asked.numbers.iter().collect();
        if let Some(Value::Real(from)) = passage.start.map(|row| &row.values[key]) {
            numbers.retain(|number| order(number.value, *from).is_ge());
        }
        numbers.sort_by(|left, right| order(left.value, right.value));
        // As many as the passage needs, with all that are equal to the last.
        let (mut taken, mut row_count) = (0, 0);
        while let Some(next) = numbers.get(taken) {
            let is_equal = taken > 0 && order(numbers[taken - 1].value, next.value).is_eq();
            if row_count >= passage.skip + passage.count_max && !is_equal {
                break;
            }
            (taken, row_count) = (taken + 1, row_count + next.row_count);
        }
        let mut found = Vec::new();
        for texts in numbers[..taken].chunks(TEXTS_AT_ONCE) {
            let mut parameters = Vec::new();
            let mut tests = passing(recorded, asked, passage, &mut parameters);
            tests += &format!(" AND value IN ({})", marks(texts.len()));
            parameters.extend(texts.iter().map(|number| Value::from(number.text.as_str())));
            let rows = recorded.rows();
            let sql = format!("SELECT run_id, value, {CREATED_AT} FROM {rows} WHERE {tests}");
            found.extend(self.read_candidates(&sql, &parameters, asked)?);
        }
        found.sort_unstable_by(|left, right| compare(left, right, passage.greatest_first));
        let mut found: Vec<Candidate> = found.into_iter().skip(passage.skip).collect();
        let has_more = taken < numbers.len() || found.len() > passage.count_max;
        found.truncate(passage.count_max);
        Ok((found, has_more))
    }

    fn read_candidates(
        &self,
        sql: &str,
        parameters: &[Value],
        asked: &RequestedName,
    ) -> Result<Vec<Candidate>, LedgerError> {
        let kinds = [ColumnKind::Text, asked.stored_kind(), ColumnKind::Timestamp];
        found(self.ledger, sql, parameters, &kinds, |row| match <[Value; 3]>::try_from(row) {
            Ok([Value::Text(run_id), key, Value::Timestamp(created_at)]) => {
                Some(Candidate::new(asked.value_of(key), created_at, run_id))
            }
            _ => None,
        })
    }
}

/// Rows of this name that pass.
fn passing(
    recorded: &NamedValues,
    asked: &RequestedName,
    passage: &Passage<'_>,
    parameters: &mut Vec<Value>,
) -> String {
    let of_name = recorded.test(parameters);
    of_name + &passage.before.of_values(asked, parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a long text is cut without changing which of two comes first, also where the cut would halve a
    /// character.
    #[test]
    fn long_texts_keep_their_order() {
        let common = "x".repeat(KEY_PREFIX_BYTES - 2);
        let texts = ["", "A", "abc", "é", "日本", "日x"].map(|end| format!("{common}{end}"));
        for left in &texts {
            for right in &texts {
                let cut = |text: &String| {
                    Candidate::new(Value::Text(text.clone()), Timestamp::from_micros(0), String::new())
                };
                let order = compare(&cut(left), &cut(right), false);
                assert!(order == left.cmp(right) || order.is_eq(), "{left} {right}");
                assert!(order.is_ne() || left == right || !cut(left).is_whole(), "{left} {right}");
            }
        }
    }
}
