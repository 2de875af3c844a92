//! Reading the change feed. Old changes are removed (`trackway tick`), from the first one on, so that a reader which
//! did not follow for long is answered so, and never misses one in silence.

use std::ops::Range;

use crate::backend::{Backend, in_seconds, now};
use crate::error::LedgerError;
use crate::ledger::Ledger;
use crate::records::ChangeRow;
use crate::value::{ColumnKind, Field as _, Record as _, Value};

/// How many rows of a list stay, and for how long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeptBounds {
    /// Days that a row stays, by the database's clock.
    pub days: f64,
    /// Rows that stay at most; the oldest go first.
    pub count: u64,
}

impl KeptBounds {
    /// Of the change feed.
    pub const CHANGES: Self = Self { days: 90.0, count: 1_000_000 };
    /// Of notices that were delivered or given up. One that waits for longer is given up.
    pub const NOTICES: Self = Self { days: 90.0, count: 100_000 };

    /// The time in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.days * 86_400.0
    }
}

/// What a reader of the feed gets.
#[derive(Debug, Clone, PartialEq)]
pub enum FeedPage {
    Changes(Vec<ChangeRow>),
    /// Older changes were removed up to this number, which the reader has not reached: it notes [`Ledger::newest_change`], reads
    /// everything again, and follows the feed from there.
    RemovedUpTo(u64),
}

/// Changes that are read at a time, at most.
const CHANGES_MAX: u32 = 10_000;
/// Changes that one transaction removes, at most: others write in between.
const REMOVED_AT_ONCE: u64 = 10_000;

impl Ledger {
    /// The changes after a number, in their order; at most `limit` of them, and at most 10,000. Of a project, where one is given.
    pub fn changes_after(
        &self,
        number: u64,
        project: Option<&str>,
        limit: u32,
    ) -> Result<FeedPage, LedgerError> {
        let of_project = if project.is_some() { "AND project = ? " } else { "" };
        let limit = limit.min(CHANGES_MAX);
        let mut values = vec![number.to_value()];
        values.extend(project.map(Value::from));
        let tail = format!("WHERE number > ? {of_project}ORDER BY number LIMIT {limit}");
        let mut backend = self.backend();
        let changes = backend.select_from(ChangeRow::TABLE, &tail, &values)?;
        // After the changes: what is removed while they are read is noticed.
        let oldest = oldest_change(&mut backend)?;
        Ok(if number.saturating_add(1) < oldest {
            FeedPage::RemovedUpTo(oldest - 1)
        } else {
            FeedPage::Changes(changes)
        })
    }

    /// The number of the newest change; 0: there is none. A reader that has a larger one read another ledger, and reads everything again.
    pub fn newest_change(&self) -> Result<u64, LedgerError> {
        newest_change(&mut self.backend())
    }

    /// The numbers of the changes that are beyond the bounds: all of them are older than those that stay. The newest change always stays,
    /// since numbers continue from it.
    pub fn changes_beyond(&self, bounds: &KeptBounds) -> Result<Range<u64>, LedgerError> {
        let mut backend = self.backend();
        let since = in_seconds(now(&mut backend)?, -bounds.seconds());
        let young = "SELECT number FROM changes WHERE at >= ? ORDER BY number LIMIT 1";
        let young = number(&mut backend, young, &[since.into()])?;
        let (oldest, newest) = (oldest_change(&mut backend)?, newest_change(&mut backend)?);
        Ok(oldest..first_kept(oldest, newest, young, bounds.count))
    }

    /// Removes the changes below a number, some at a time; returns how many. Where it ends in between, the oldest are gone.
    pub fn remove_changes(&self, below: u64) -> Result<u64, LedgerError> {
        let mut removed_count = 0;
        loop {
            // Several transactions: one over a million rows would keep every writer waiting.
            let count = self.backend().transaction(false, |backend| {
                let end = oldest_change(backend)?.saturating_add(REMOVED_AT_ONCE).min(below);
                let sql =
                    "DELETE FROM changes WHERE number < ? AND number < (SELECT max(number) FROM changes)";
                backend.execute("removing old changes", sql, &[end.to_value()])
            })?;
            removed_count += count;
            if count == 0 {
                return Ok(removed_count);
            }
        }
    }
}

/// The number of the oldest change that is there; 1: there is none.
fn oldest_change(backend: &mut Backend) -> Result<u64, LedgerError> {
    Ok(number(backend, "SELECT min(number) FROM changes", &[])?.unwrap_or(1))
}

/// The number of the newest change; 0: there is none.
fn newest_change(backend: &mut Backend) -> Result<u64, LedgerError> {
    Ok(number(backend, "SELECT max(number) FROM changes", &[])?.unwrap_or(0))
}

fn number(backend: &mut Backend, sql: &str, values: &[Value]) -> Result<Option<u64>, LedgerError> {
    let doing = "reading the numbers of changes";
    let found = backend.rows(doing, sql, values, &[ColumnKind::Integer])?.into_iter().flatten().next();
    found.map_or(Ok(None), |value| Option::<u64>::from_value(value).map_err(backend.fault(doing)))
}

/// The number of the first change that stays, of those from `oldest` to `newest`; `young` is that of the first one that is not too old.
fn first_kept(oldest: u64, newest: u64, young: Option<u64>, count: u64) -> u64 {
    let by_count = newest.saturating_add(1).saturating_sub(count);
    young.unwrap_or(newest).max(by_count).min(newest).max(oldest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that changes go that are too old or too many, and the newest one never.
    #[test]
    fn which_changes_stay() {
        for (oldest, newest, young, count, expected) in [
            (1, 0, None, 100, 1),
            (1, 10, Some(1), 100, 1),
            (1, 10, Some(4), 100, 4),
            (1, 10, Some(4), 3, 8),
            (1, 10, None, 100, 10),
            (1, 10, Some(1), 0, 10),
            (7, 10, Some(7), 100, 7),
        ] {
            assert_eq!(
                first_kept(oldest, newest, young, count),
                expected,
                "{oldest} {newest} {young:?} {count}"
            );
        }
    }
}
