//! The first name of an order decides which runs are looked at first: all its values are read in one pass that keeps
//! the best.

use std::cmp::Ordering;
use std::collections::HashMap;

use trackway_core::{LaunchKind, Timestamp};
use trackway_ledger::scan::{ColumnKind, Field as _, Record as _, Value};
use trackway_ledger::{LedgerError, MetricSummaryRow, RunRow};

use super::asked::{Asked, Pick, Source};
use super::before::Before;
use super::rows::{Rows, compare_values};

/// A text is compared by so many bytes before its run is read as a whole, and a few more where they would halve a
/// character.
const KEY_PREFIX_BYTES: usize = 64;

/// A run by the first name of an order; among equals the newest comes first, as far as that is known.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub key: Value,
    /// When the run was created; known where the name is a column of `runs`.
    pub created_at: Option<Timestamp>,
    pub run_id: String,
}

impl Candidate {
    /// Long strings are cut: those that differ only after the cut are equal here.
    pub fn new(key: Value, created_at: Option<Timestamp>, run_id: String) -> Self {
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

    /// Before every candidate with this key.
    pub fn first_of(key: Value) -> Self {
        Self::new(key, Some(Timestamp::from_micros(i64::MAX)), String::new())
    }

    /// Whether nothing was cut, and the time is known.
    pub fn is_whole(&self) -> bool {
        let is_cut = matches!(&self.key, Value::Text(text) if text.len() >= KEY_PREFIX_BYTES);
        self.created_at.is_some() && !is_cut
    }
}

/// The best of many candidates.
pub(super) struct Best<'b> {
    greatest_first: bool,
    /// Only what comes after this one.
    after: Option<&'b Candidate>,
    /// So many are kept.
    count_max: usize,
    kept: Vec<Candidate>,
    /// Others were left out because they come later.
    more: bool,
}

impl<'b> Best<'b> {
    pub fn new(greatest_first: bool, after: Option<&'b Candidate>, count_max: usize) -> Self {
        Self { greatest_first, after, count_max, kept: Vec::new(), more: false }
    }

    /// The best, in order, and whether there are more after them.
    pub fn into_sorted(mut self) -> (Vec<Candidate>, bool) {
        self.cut();
        let greatest_first = self.greatest_first;
        self.kept.sort_unstable_by(|left, right| compare(left, right, greatest_first));
        (self.kept, self.more)
    }

    fn offer(&mut self, candidate: Candidate) {
        if candidate.key == Value::Null {
            return;
        }
        if self.after.is_some_and(|after| compare(&candidate, after, self.greatest_first).is_le()) {
            return;
        }
        // After a cut, the last one that was kept is the worst of the best.
        let worst = self.kept.get(self.count_max - 1).filter(|_| self.more);
        if worst.is_some_and(|worst| compare(&candidate, worst, self.greatest_first).is_gt()) {
            return;
        }
        self.kept.push(candidate);
        if self.kept.len() >= 2 * self.count_max {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if self.kept.len() > self.count_max {
            let greatest_first = self.greatest_first;
            let by = |left: &Candidate, right: &Candidate| compare(left, right, greatest_first);
            self.kept.select_nth_unstable_by(self.count_max - 1, by);
            self.kept.truncate(self.count_max);
            self.more = true;
        }
    }
}

/// Which candidate comes first.
pub(super) fn compare(left: &Candidate, right: &Candidate, greatest_first: bool) -> Ordering {
    compare_values(&left.key, &right.key, greatest_first)
        .then_with(|| right.created_at.cmp(&left.created_at))
        .then_with(|| right.run_id.cmp(&left.run_id))
}

impl Rows<'_> {
    /// Offers every run that has the name. Runs of other kinds may be among them.
    pub fn offer_all(&self, asked: &Asked, before: &Before, best: &mut Best<'_>) -> Result<(), LedgerError> {
        let (table, column, name, pick) = match &asked.source {
            Source::Run(column) => return self.offer_runs(*column, before, best),
            Source::Metric(name, pick) => (MetricSummaryRow::TABLE, pick.column(), name, *pick),
            Source::Text(table, name) => (*table, "value", name, Pick::Last),
        };
        let mut live: HashMap<String, Vec<Value>> = HashMap::new();
        for (run_id, value) in asked.live_values(&self.live) {
            live.entry(run_id).or_default().push(value);
        }
        let mut offer = |run_id: String, mut value: Value| {
            let values = live.remove(&run_id).unwrap_or_default();
            values.into_iter().for_each(|next| pick.fold(&mut value, next));
            best.offer(Candidate::new(value, None, run_id));
        };
        let mut parameters = vec![Value::from(name.as_str())];
        let tests = before.of_ids(&mut parameters);
        let sql = format!(
            "SELECT run_id, {column} FROM {} WHERE name = ?{tests} ORDER BY run_id, attempt_id",
            table.name
        );
        let kinds = [ColumnKind::Text, asked.stored_kind()];
        let mut held: Option<(String, Value)> = None;
        self.ledger.backend().query("searching", &sql, &parameters, &kinds, &mut |mut row| {
            let (Some(value), Some(Value::Text(run_id))) = (row.pop(), row.pop()) else { return Ok(()) };
            let value = asked.value_of(value);
            match &mut held {
                Some((of, held)) if *of == run_id => pick.fold(held, value),
                _ => {
                    if let Some((of, value)) = held.replace((run_id, value)) {
                        offer(of, value);
                    }
                }
            }
            Ok(())
        })?;
        if let Some((of, value)) = held {
            offer(of, value);
        }
        // Runs of which only attempts that are not sealed have the metric.
        for (run_id, values) in live {
            let mut value = Value::Null;
            values.into_iter().for_each(|next| pick.fold(&mut value, next));
            best.offer(Candidate::new(value, None, run_id));
        }
        Ok(())
    }

    fn offer_runs(&self, column: usize, before: &Before, best: &mut Best<'_>) -> Result<(), LedgerError> {
        let column = &RunRow::TABLE.columns[column];
        let mut parameters = vec![LaunchKind::Train.to_value()];
        let tests = before.of_runs(&mut parameters);
        let sql = format!("SELECT run_id, created_at, {} FROM runs WHERE kind = ?{tests}", column.name);
        let kinds = [ColumnKind::Text, ColumnKind::Timestamp, column.kind];
        self.ledger.backend().query("searching", &sql, &parameters, &kinds, &mut |row| {
            if let Ok([Value::Text(run_id), Value::Timestamp(created_at), key]) = <[Value; 3]>::try_from(row)
            {
                best.offer(Candidate::new(key, Some(created_at), run_id));
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One pass through runs with these keys.
    fn pass(keys: &[i64], after: Option<&Candidate>, count_max: usize) -> (Vec<Candidate>, bool) {
        let mut best = Best::new(true, after, count_max);
        for (number, key) in keys.iter().enumerate() {
            best.offer(Candidate::new(Value::Integer(*key), None, format!("run_{number:03}")));
        }
        best.into_sorted()
    }

    /// Proves that passes which each continue after the last candidate of the pass before see every candidate once,
    /// best first.
    #[test]
    fn passes_see_every_candidate_once() {
        let keys: Vec<i64> = (0..100).map(|number| number * 37 % 50).collect();
        let (mut seen, mut after): (Vec<Candidate>, Option<Candidate>) = (Vec::new(), None);
        loop {
            let (sorted, more) = pass(&keys, after.as_ref(), 7);
            assert!(sorted.len() <= 7);
            after = sorted.last().cloned();
            seen.extend(sorted);
            if !more {
                break;
            }
        }
        assert!(seen.is_sorted_by(|left, right| compare(left, right, true).is_lt()));
        assert_eq!(seen.len(), keys.len());
    }

    /// Proves that a long text is cut without changing which of two comes first, also where the cut would halve a
    /// character.
    #[test]
    fn long_texts_keep_their_order() {
        let common = "x".repeat(KEY_PREFIX_BYTES - 2);
        let texts = ["", "A", "abc", "é", "日本", "日x"].map(|end| format!("{common}{end}"));
        for left in &texts {
            for right in &texts {
                let cut = |text: &String| Candidate::first_of(Value::Text(text.clone()));
                let order = compare(&cut(left), &cut(right), false);
                assert!(order == left.cmp(right) || order.is_eq(), "{left} {right}");
            }
        }
    }
}
