//! Searching runs: a condition in SQL over the columns of `runs`, and over metrics, parameters, tags and numbers of
//! evaluations by name.
//!
//! A name means, in this order: a column of `runs`; with the prefix `metric.`, `first.`, `min.`, `max.`, `param.`,
//! `tag.` or `eval.` ([`evaluated`]), a value of that kind; a metric (its last value); a parameter. The error for a name
//! that no run has suggests the nearest one.
//!
//! Runs are read in batches, in the requested order and no further than the page goes: of a batch only the values of
//! the requested names, by sets, and the rest of a run only where it is on the page. The condition is evaluated by
//! DataFusion. Where the first batch is not enough, the database tests beforehand what it can of it ([`before`]).

mod asked;
mod before;
mod candidates;
mod evaluated;
mod live;
#[cfg(feature = "datafusion")]
mod names;
mod rows;

use std::cmp::Ordering;
use std::collections::HashMap;

use serde_json::Value as Json;
use trackway_core::{RunId, Timestamp};
use trackway_ledger::scan::{ColumnKind, Value};
use trackway_ledger::{Ledger, LedgerError, RunRow};
use trackway_records::LiveRecords;

use self::asked::Names;
use self::before::WhereParts;
use self::candidates::{Candidate, Passage, compare};
use self::evaluated::EvaluatedNumber;
#[cfg(feature = "datafusion")]
use self::names::Condition;
use self::rows::{Row, Rows, compare_values, json_of};
use crate::named::ConditionName;
#[cfg(not(feature = "datafusion"))]
use crate::query::Condition;
use crate::query::RowPredicate;

/// Runs of a page where no other number is given.
pub const PAGE_RUNS: usize = 1_000;
/// Runs whose values are in memory at once, beside those of the page.
const BATCH_RUNS_MAX: usize = 2_000;
/// Runs of a first batch with a condition, at least: many conditions are met by one run of a few.
const FIRST_BATCH_RUNS: usize = 64;
/// Each batch has so many times the runs of the one before.
const BATCH_GROWTH: usize = 4;
/// Candidates of a first passage through the values of a name, in batches: some are not what they seem.
const FIRST_CANDIDATES: usize = 4;
/// Each passage has so many times the candidates of the one before.
const PASSAGE_GROWTH: usize = 16;
/// Candidates of a passage, at most.
const CANDIDATES_MAX: usize = 50_000;

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
    /// Whether hidden runs are found too.
    pub with_hidden: bool,
    /// Which part of all that is found.
    pub page: Page,
}

/// A part of a list of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Only what comes after this run in the order; [`FoundRuns::next`] of the page before.
    pub after: Option<RunId>,
    /// At most so many runs.
    pub limit: usize,
}

impl Default for Page {
    fn default() -> Self {
        Self { after: None, limit: PAGE_RUNS }
    }
}

/// Runs that were found, with the requested values.
#[derive(Debug, Clone, Default)]
pub struct FoundRuns {
    /// The runs, in order.
    pub runs: Vec<RunRow>,
    /// The names of `values`: the wanted ones, then those of the order and of the condition, each once.
    pub names: Vec<String>,
    /// For each run the values of `names`; what it lacks is null.
    pub values: Vec<Vec<Json>>,
    /// The last of the runs, where more come after it: [`Page::after`] of the next page.
    pub next: Option<RunId>,
    /// How many runs come after these; none: it is not counted, since each of them would have to be read for a condition or an order.
    pub more_count: Option<u64>,
}

/// A page of the training runs that meet a condition. The metrics of attempts that still live count as their records have them now; of
/// `records` only what was added since the last search is read.
///
/// # Errors
/// [`LedgerError::Query`] when a condition is wrong or names what no run has; [`LedgerError::NotFound`] when the run that the
/// page comes after is not a training run.
pub fn search_runs(
    ledger: &Ledger,
    records: &LiveRecords,
    search: &RunSearch,
) -> Result<FoundRuns, LedgerError> {
    let mut condition = search.condition.as_deref().map(Condition::parse).transpose()?;
    let mut names = Names::new(ledger, records);
    for name in &search.columns {
        names.take(name)?;
    }
    let mut order = Vec::new();
    for (name, greatest_first) in &search.order {
        order.push((names.take(name)?, *greatest_first));
    }
    for named in condition.iter_mut().flat_map(Condition::names) {
        // `tag.team = "x"`: what is quoted and no name is a text.
        if !named.in_double_quotes || names.knows(&named.name)? {
            names.take(&named.name)?;
        }
    }
    let condition = condition.map(|condition| {
        let is_text = |named: &ConditionName| named.in_double_quotes && names.place(&named.name).is_none();
        RowPredicate::new(&condition.to_sql(is_text))
    });
    let (asked, live) = names.into_parts();
    let rows = Rows { ledger, with_hidden: search.with_hidden, asked, live };
    let mut walk = Walk::new(&rows, condition.as_ref(), order, search.page)?;
    walk.go()?;
    let mut found = walk.found;
    let has_more = found.len() > search.page.limit;
    found.truncate(search.page.limit);
    let mut whole = HashMap::new();
    for batch in found.chunks(BATCH_RUNS_MAX) {
        let ids: Vec<RunId> = batch.iter().filter_map(|row| row.run_id.parse().ok()).collect();
        whole.extend(ledger.runs_by_id(&ids)?.into_iter().map(|run| (run.run_id.to_string(), run)));
    }
    let mut answer = FoundRuns {
        names: rows.asked.iter().map(|asked| asked.name.clone()).collect(),
        ..FoundRuns::default()
    };
    for row in &found {
        if let Some(run) = whole.remove(&row.run_id) {
            answer.runs.push(run);
            answer.values.push(row.values.iter().map(json_of).collect());
        }
    }
    answer.next = answer.runs.last().filter(|_| has_more).map(|run| run.run_id);
    let is_plain = condition.is_none() && search.order.is_empty();
    let last = found.last().filter(|_| has_more && is_plain);
    answer.more_count = last.map(|row| rows.count_after(row)).transpose()?;
    Ok(answer)
}

/// The names of all numbers that evaluations of these runs report, in order: `eval.accuracy`, `eval.slice.older.recall`.
///
/// # Errors
/// When the ledger cannot be read.
pub fn evaluated_names(ledger: &Ledger, runs: &[RunId]) -> Result<Vec<String>, LedgerError> {
    let numbers = EvaluatedNumber::of_runs(ledger, runs)?;
    let mut names: Vec<String> = numbers.iter().map(EvaluatedNumber::name).collect();
    names.sort_unstable();
    Ok(names)
}

/// What `of` makes of each row of a query.
fn found<T>(
    ledger: &Ledger,
    sql: &str,
    parameters: &[Value],
    kinds: &[ColumnKind],
    of: impl Fn(Vec<Value>) -> Option<T>,
) -> Result<Vec<T>, LedgerError> {
    let mut found = Vec::new();
    ledger.backend().query("searching", sql, parameters, kinds, &mut |row| {
        found.extend(of(row));
        Ok(())
    })?;
    Ok(found)
}

/// The way through the runs of a ledger to those of a page.
struct Walk<'w> {
    rows: &'w Rows<'w>,
    condition: Option<&'w RowPredicate>,
    /// Places of names, and whether the greatest comes first.
    order: Vec<(usize, bool)>,
    /// Only what comes after this row.
    after: Option<Row>,
    /// One more than the page has, to know whether there are more.
    wanted: usize,
    /// The best so far, in order.
    found: Vec<Row>,
    /// What the database tests beforehand, once that is known.
    before: Option<WhereParts>,
}

impl<'w> Walk<'w> {
    fn new(
        rows: &'w Rows<'w>,
        condition: Option<&'w RowPredicate>,
        order: Vec<(usize, bool)>,
        page: Page,
    ) -> Result<Self, LedgerError> {
        // A wrong condition is refused even without any runs.
        condition.map(|condition| rows.meeting(condition, Vec::new())).transpose()?;
        let after = match page.after {
            None => None,
            Some(run_id) => Some(row_of(rows, run_id)?),
        };
        let wanted = page.limit.saturating_add(1);
        Ok(Self { rows, condition, order, after, wanted, found: Vec::new(), before: None })
    }

    fn go(&mut self) -> Result<(), LedgerError> {
        let Some((key, greatest_first)) = self.order.first().copied() else { return self.newest(None) };
        self.by_key(key, greatest_first)?;
        // Runs that lack the name come after all that have it.
        if self.is_full() || !self.rows.asked[key].may_lack() { Ok(()) } else { self.newest(Some(key)) }
    }

    /// Goes through the runs that have a name, the best first, until no other can be on the page.
    fn by_key(&mut self, key: usize, greatest_first: bool) -> Result<(), LedgerError> {
        let (rows, start) = (self.rows, self.after.clone());
        if start.as_ref().is_some_and(|row| row.values[key] == Value::Null) {
            return Ok(());
        }
        // The database has no values of attempts that are not sealed.
        let live: Vec<String> = rows.asked[key].live_values(&rows.live).into_iter().map(|it| it.0).collect();
        for ids in live.chunks(BATCH_RUNS_MAX) {
            self.take_having(key, rows.by_id(ids.iter().cloned())?)?;
        }
        let is_only_name = self.order.len() == 1;
        let (mut before, mut skip) = (WhereParts::default(), 0);
        let mut count_max = FIRST_CANDIDATES * self.first_batch();
        loop {
            let start = start.as_ref();
            let passage = Passage { greatest_first, before: &before, start, is_only_name, skip, count_max };
            let (candidates, has_more) = rows.candidates(key, &passage)?;
            let (mut rest, mut size) = (&candidates[..], self.first_batch());
            while let Some(next) = rest.first() {
                if self.is_decided(key, greatest_first, next) {
                    return Ok(());
                }
                let (batch, later) = rest.split_at(size.min(rest.len()));
                let ids = batch.iter().map(|candidate| candidate.run_id.clone());
                self.take_having(key, rows.by_id(ids)?)?;
                (rest, size) = (later, BATCH_RUNS_MAX.min(size * BATCH_GROWTH));
            }
            if !has_more {
                return Ok(());
            }
            // The first passage was without tests.
            skip = if self.before.is_none() && self.condition.is_some() { 0 } else { skip + count_max };
            (before, count_max) = (self.before()?, CANDIDATES_MAX.min(count_max * PASSAGE_GROWTH));
        }
    }

    /// Goes through the runs, the newest first, until no other can be on the page. `lacking`: only those that lack this name.
    fn newest(&mut self, lacking: Option<usize>) -> Result<(), LedgerError> {
        // Among runs that lack the first name of an order the others decide: all of them are read then.
        let in_order = self.order.len() <= 1;
        // Rows of this order are after the one that the page comes after, unless that one has the name.
        let is_here = |row: &&Row| in_order && lacking.is_none_or(|key| row.values[key] == Value::Null);
        let start = self.after.as_ref().filter(is_here);
        let mut start: Option<(Timestamp, String)> = start.map(|row| (row.created_at, row.run_id.clone()));
        let (mut before, mut size) = (WhereParts::default(), self.first_batch());
        loop {
            let mut batch = self.rows.newest(&before, start.as_ref(), size)?;
            let has_more = batch.len() == size;
            start = batch.last().map(|row| (row.created_at, row.run_id.clone()));
            if let Some(key) = lacking {
                batch.retain(|row| row.values[key] == Value::Null);
            }
            self.take(batch)?;
            if !has_more || (in_order && self.is_full()) {
                return Ok(());
            }
            before = self.before()?;
            size = BATCH_RUNS_MAX.min(size * BATCH_GROWTH);
        }
    }

    /// As [`Walk::take`], of rows that have a name. A candidate may lack it: the newest evaluation of its run has no value.
    fn take_having(&mut self, key: usize, mut batch: Vec<Row>) -> Result<(), LedgerError> {
        batch.retain(|row| row.values[key] != Value::Null);
        self.take(batch)
    }

    /// Puts those of the rows that meet the condition to what was found.
    fn take(&mut self, mut batch: Vec<Row>) -> Result<(), LedgerError> {
        if let Some(after) = &self.after {
            batch.retain(|row| self.compare(row, after).is_gt());
        }
        if let Some(condition) = self.condition {
            batch = self.rows.meeting(condition, batch)?;
        }
        let mut found = std::mem::take(&mut self.found);
        found.extend(batch);
        found.sort_by(|left, right| self.compare(left, right));
        found.dedup_by(|left, right| left.run_id == right.run_id);
        found.truncate(self.wanted);
        self.found = found;
        Ok(())
    }

    fn compare(&self, left: &Row, right: &Row) -> Ordering {
        let by_keys = self.order.iter().map(|(key, greatest_first)| {
            compare_values(&left.values[*key], &right.values[*key], *greatest_first)
        });
        by_keys
            .into_iter()
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
            .then_with(|| right.created_at.cmp(&left.created_at))
            .then_with(|| right.run_id.cmp(&left.run_id))
    }

    fn is_full(&self) -> bool {
        self.found.len() >= self.wanted
    }

    /// Whether everything that was found comes before this candidate and what comes after it.
    fn is_decided(&self, key: usize, greatest_first: bool, next: &Candidate) -> bool {
        let Some(last) = self.found.last().filter(|_| self.is_full()) else { return false };
        let last = Candidate::new(last.values[key].clone(), last.created_at, last.run_id.clone());
        match self.order.len() == 1 && next.is_whole() {
            true => compare(&last, next, greatest_first).is_lt(),
            false => compare_values(&last.key, &next.key, greatest_first).is_lt(),
        }
    }

    fn first_batch(&self) -> usize {
        let least = if self.condition.is_some() { FIRST_BATCH_RUNS } else { 1 };
        self.wanted.clamp(least, BATCH_RUNS_MAX)
    }

    fn before(&mut self) -> Result<WhereParts, LedgerError> {
        if let Some(before) = &self.before {
            return Ok(before.clone());
        }
        let before = match self.condition {
            None => WhereParts::default(),
            Some(condition) => {
                let names: Vec<_> =
                    self.rows.asked.iter().map(|asked| (asked.name.as_str(), asked.kind)).collect();
                let filters = condition.filters(&self.rows.schema(), &names);
                WhereParts::of(self.rows.ledger, &self.rows.asked, &self.rows.live, &filters)?
            }
        };
        self.before = Some(before.clone());
        Ok(before)
    }
}

/// The run that a page comes after, with its values.
fn row_of(rows: &Rows<'_>, run_id: RunId) -> Result<Row, LedgerError> {
    let found = rows.by_id(std::iter::once(run_id.to_string()))?.pop();
    found.ok_or_else(|| LedgerError::NotFound {
        what: "training run",
        name: run_id.to_string(),
        hint: String::new(),
    })
}
