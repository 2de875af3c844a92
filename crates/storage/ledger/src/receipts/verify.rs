//! Whether receipts still are what was sealed, many at a time.

use std::collections::HashMap;

use trackway_core::{AttemptId, RunId};

use super::seal::AttemptSeal;
use crate::backend::Backend;
use crate::backend::rules::NEXT_ATTEMPT;
use crate::error::LedgerError;
use crate::ledger::Ledger;
use crate::records::{
    ArtifactRow, AttemptRow, ChangeRow, ChargeRow, CheckpointRow, CostRow, DataSnapshotFileRow,
    DataSnapshotRow, DutyRow, EvaluationMetricRow, EvaluationRow, EvaluationSliceRow, GateReceiptRow,
    LAUNCHES, LeaseRow, MetricSummaryRow, ModelRow, NoticeRow, OutboxRow, ParameterRow, RecordSegmentRow,
    ResumeProofRow, RetryRow, RunRow, RungRow, SubjectEventRow, TagRow, TestSetUseRow,
};
use crate::value::{ColumnKind, Field as _, Record, Table, Value};

/// Receipts whose rows are in memory at a time.
const PAGE_RECEIPTS: usize = 500;

/// A receipt, recomputed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckedReceipt {
    pub attempt_id: AttemptId,
    pub run_id: RunId,
    /// Whether it hashes to what was sealed; `None`: it is not sealed yet.
    pub holds: Option<bool>,
}

/// A row that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableRow {
    /// Its id, as far as it can be read.
    pub id: String,
    /// Its run, where that can be read.
    pub run_id: Option<RunId>,
    pub why: String,
}

/// Rows of a table, in the order of their ids.
#[derive(Debug)]
pub struct Page<R> {
    /// Those that can be read.
    pub rows: Vec<R>,
    /// The others.
    pub unreadable: Vec<UnreadableRow>,
    /// The last id; `None`: there are no more.
    pub last: Option<String>,
}

/// Checkpoints, those that cannot be read, and the last run and prefix.
pub type CheckpointPage = (Vec<CheckpointRow>, Vec<UnreadableRow>, Option<(String, String)>);

/// What shows that the rows of a table are as they were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    /// They are part of the digest of an attempt or an evaluation.
    Digest,
    /// The log of a checkpoint root.
    Log,
    /// The copies that the home keeps of them.
    Copies(Stays),
    Nothing,
}

/// What does not change of a row after it was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stays {
    /// Everything.
    All,
    /// Everything but a column that is filled in later.
    AllBut(&'static str),
    /// These columns.
    These(&'static [&'static str]),
    /// Everything, if the kept row has a value in this column; otherwise that it exists.
    OnceSet(&'static str),
    /// Everything while this number is the kept one, which only grows.
    AtNumber(&'static str),
}

/// The tables that are not kept row by row as they are for ever: what shows that their rows are as they were, and what
/// of them it does not show.
const PROOFS: [(&Table, Proof, &str); 27] = [
    (
        RunRow::TABLE,
        Proof::Copies(Stays::These(RUN_IDENTITY)),
        "all but config, seed, kind and time of creation",
    ),
    (AttemptRow::TABLE, Proof::Copies(Stays::OnceSet(RECEIPT)), ""),
    (LAUNCHES, Proof::Copies(Stays::OnceSet(RECEIPT)), ""),
    (CheckpointRow::TABLE, Proof::Log, "when they were verified"),
    (MetricSummaryRow::TABLE, Proof::Digest, ""),
    (ParameterRow::TABLE, Proof::Digest, ""),
    (TagRow::TABLE, Proof::Digest, ""),
    (ArtifactRow::TABLE, Proof::Digest, ""),
    (RecordSegmentRow::TABLE, Proof::Digest, ""),
    (
        SubjectEventRow::TABLE,
        Proof::Copies(Stays::All),
        "events that are neither sealed with an attempt nor kept as a copy, such as pins that ended",
    ),
    (RetryRow::TABLE, Proof::Copies(Stays::AllBut(NEXT_ATTEMPT)), "the attempt that followed"),
    (LeaseRow::TABLE, Proof::Nothing, OF_NOW),
    (ChangeRow::TABLE, Proof::Nothing, OF_NOW),
    (DutyRow::TABLE, Proof::Nothing, OF_NOW),
    (NoticeRow::TABLE, Proof::Nothing, REMOVED_LATER),
    (OutboxRow::TABLE, Proof::Nothing, REMOVED_LATER),
    (ChargeRow::TABLE, Proof::Copies(Stays::All), "charges of receipts that were sealed before version 26"),
    (CostRow::TABLE, Proof::Digest, ""),
    (DataSnapshotRow::TABLE, Proof::Copies(Stays::These(DATA_IDENTITY)), "all but hash, files and bytes"),
    (DataSnapshotFileRow::TABLE, Proof::Nothing, EVERYTHING),
    (EvaluationRow::TABLE, Proof::Copies(Stays::OnceSet(RECEIPT)), ""),
    (EvaluationMetricRow::TABLE, Proof::Digest, ""),
    (EvaluationSliceRow::TABLE, Proof::Digest, ""),
    (TestSetUseRow::TABLE, Proof::Nothing, EVERYTHING),
    (ResumeProofRow::TABLE, Proof::Nothing, EVERYTHING),
    (RungRow::TABLE, Proof::Copies(Stays::These(&[])), "the verdict"),
    (ModelRow::TABLE, Proof::Copies(Stays::AtNumber("change_number")), ""),
];

const EVERYTHING: &str = "everything";
/// Of tables that have no copies.
const OF_NOW: &str = "everything; no copy is kept: it begins empty in a ledger that is rebuilt";
/// Of tables that have copies, which may be there longer than the rows.
const REMOVED_LATER: &str = "everything; copies are kept to rebuild it, and old rows are removed";

/// The column that has a value once nothing of a receipt changes any more.
const RECEIPT: &str = "receipt_sha256";

/// What of a data set follows from its content; each run keeps the name and the path that it has there.
const DATA_IDENTITY: &[&str] = &["file_count", "size_bytes"];

/// What of a run never changes.
const RUN_IDENTITY: &[&str] = &["config_sha256", "config_json", "created_at", "seed", "kind"];

/// What shows that the rows of a table are as they were written.
pub(crate) fn proof_of(table: &Table) -> Proof {
    let found = PROOFS.iter().find(|(of, ..)| *of == table);
    found.map_or(Proof::Copies(Stays::All), |(_, proof, _)| *proof)
}

/// What of the tables nothing proves.
#[must_use]
pub fn unproved() -> Vec<String> {
    let said = PROOFS.iter().filter(|(.., gap)| !gap.is_empty());
    said.map(|(table, _, gap)| format!("table `{}`: {gap}", table.name)).collect()
}

impl Stays {
    /// Whether a column of a row in the ledger must have the kept value.
    pub(crate) fn holds_for(self, table: &Table, column: &str, kept: &[Value], stored: &[Value]) -> bool {
        let at = |name: &str| table.columns.iter().position(|column| column.name == name);
        let value = |values: &[Value], name: &str| at(name).and_then(|at| values.get(at).cloned());
        match self {
            Self::All => true,
            Self::AllBut(name) => column != name,
            Self::These(names) => names.contains(&column),
            Self::OnceSet(name) => value(kept, name).is_some_and(|value| value != Value::Null),
            Self::AtNumber(name) => match (value(kept, name), value(stored, name)) {
                (Some(Value::Integer(kept)), Some(Value::Integer(stored))) => stored <= kept,
                _ => true,
            },
        }
    }
}

impl Ledger {
    /// Recomputes every receipt, training attempts and other launches, or those of one run; `found` is called for each, and for each that
    /// cannot be read.
    pub fn check_receipts(
        &self,
        run_id: Option<RunId>,
        found: &mut dyn FnMut(Result<CheckedReceipt, UnreadableRow>),
    ) -> Result<(), LedgerError> {
        for table in [AttemptRow::TABLE, LAUNCHES] {
            let mut after = String::new();
            loop {
                let page: Page<AttemptRow> = self.page_after(table, "attempt_id", run_id, &after)?;
                let Some(last) = page.last else { break };
                after = last;
                page.unreadable.into_iter().for_each(|row| found(Err(row)));
                self.check_page(page.rows, found)?;
            }
        }
        Ok(())
    }

    /// The receipts of a page: together, or one by one where what belongs to one of them cannot be read.
    fn check_page(
        &self,
        attempts: Vec<AttemptRow>,
        found: &mut dyn FnMut(Result<CheckedReceipt, UnreadableRow>),
    ) -> Result<(), LedgerError> {
        match self.seals_of(attempts.clone()) {
            Ok(seals) => seals.iter().map(check).for_each(|checked| found(Ok(checked))),
            Err(error) if !error.is_about_rows() => return Err(error),
            Err(_) => {
                // One by one: a damaged row must not hide the receipts beside it.
                for attempt in attempts {
                    let (id, run_id) = (attempt.attempt_id.to_string(), Some(attempt.run_id));
                    match self.seals_of(vec![attempt]) {
                        Ok(seals) => seals.iter().map(check).for_each(|checked| found(Ok(checked))),
                        Err(error) if error.is_about_rows() => {
                            found(Err(UnreadableRow { id, run_id, why: error.to_string() }));
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        Ok(())
    }

    /// The names of all models, also of those with a value that cannot be read.
    pub fn model_names(&self) -> Result<Vec<String>, LedgerError> {
        self.texts("listing models", "SELECT model FROM models ORDER BY model")
    }

    /// The models whose state is not that after their newest change.
    pub fn models_without_change(&self) -> Result<Vec<String>, LedgerError> {
        let newest =
            "SELECT coalesce(max(number), 0) FROM model_changes WHERE model_changes.model = models.model";
        let sql = format!("SELECT model FROM models WHERE change_number <> ({newest}) ORDER BY model");
        self.texts("comparing models", &sql)
    }

    fn texts(&self, doing: &'static str, sql: &str) -> Result<Vec<String>, LedgerError> {
        let rows = self.backend().rows(doing, sql, &[], &[ColumnKind::Text])?;
        Ok(rows.into_iter().flatten().filter_map(|value| String::from_value(value).ok()).collect())
    }

    /// Whether a sealed receipt still hashes to what was sealed; `None` when the attempt is not sealed or unknown.
    pub fn verify_receipt(&self, attempt_id: AttemptId) -> Result<Option<bool>, LedgerError> {
        let Some(attempt) = self.attempt(attempt_id)? else { return Ok(None) };
        let mut holds = None;
        self.check_receipts(Some(attempt.run_id), &mut |checked| match checked {
            Ok(checked) if checked.attempt_id == attempt_id => holds = checked.holds,
            Err(row) if row.id == attempt_id.to_string() => holds = Some(false),
            _ => {}
        })?;
        Ok(holds)
    }

    /// The evaluations, or those of one run, by id, after `after`; a page of them.
    pub fn evaluations_after(
        &self,
        run_id: Option<RunId>,
        after: &str,
    ) -> Result<Page<EvaluationRow>, LedgerError> {
        self.page_after(EvaluationRow::TABLE, "evaluation_id", run_id, after)
    }

    /// The receipts of gates, or those of one run, by id, after `after`; a page of them.
    pub fn gate_receipts_after(
        &self,
        run_id: Option<RunId>,
        after: &str,
    ) -> Result<Page<GateReceiptRow>, LedgerError> {
        self.page_after(GateReceiptRow::TABLE, "gate_receipt_id", run_id, after)
    }

    /// The checkpoints of all runs, or of one, by run and prefix, after `after`: a page of them, those that cannot be read, and where the
    /// next page begins.
    pub fn checkpoints_after(
        &self,
        run_id: Option<RunId>,
        after: &(String, String),
    ) -> Result<CheckpointPage, LedgerError> {
        let of_run = if run_id.is_some() { "AND run_id = ? " } else { "" };
        let tail = format!(
            "WHERE (run_id, object_prefix) > (?, ?) {of_run}ORDER BY run_id, object_prefix LIMIT {PAGE_RECEIPTS}"
        );
        let mut values = vec![Value::from(after.0.as_str()), Value::from(after.1.as_str())];
        values.extend(run_id.map(|run_id| run_id.to_value()));
        let sql = format!("SELECT run_id, object_prefix FROM checkpoints {tail}");
        let keys =
            self.backend().rows("listing rows", &sql, &values, &[ColumnKind::Text, ColumnKind::Text])?;
        let text = |value: Value| String::from_value(value).unwrap_or_default();
        let keys: Vec<(String, String)> = keys
            .into_iter()
            .filter_map(|row| {
                let mut row = row.into_iter().map(text);
                Some((row.next()?, row.next()?))
            })
            .collect();
        let last = keys.last().cloned();
        let whole = self.backend().select::<CheckpointRow>(&tail, &values);
        match whole {
            Ok(rows) => return Ok((rows, Vec::new(), last)),
            Err(error) if !error.is_about_rows() => return Err(error),
            Err(_) => {}
        }
        let (mut rows, mut unreadable) = (Vec::new(), Vec::new());
        for (run, prefix) in keys {
            let key = [Value::from(run.as_str()), Value::from(prefix.as_str())];
            match self.backend().select::<CheckpointRow>("WHERE run_id = ? AND object_prefix = ?", &key) {
                Ok(found) => rows.extend(found),
                Err(error) if error.is_about_rows() => {
                    let why = error.to_string();
                    unreadable.push(UnreadableRow { id: prefix, run_id: run.parse().ok(), why });
                }
                Err(error) => return Err(error),
            }
        }
        Ok((rows, unreadable, last))
    }

    /// A page of a table; where a row of it cannot be read, it is read row by row.
    fn page_after<R: Record>(
        &self,
        table: &Table,
        key: &str,
        run_id: Option<RunId>,
        after: &str,
    ) -> Result<Page<R>, LedgerError> {
        let of_run = if run_id.is_some() { "AND run_id = ? " } else { "" };
        let tail = format!("WHERE {key} > ? {of_run}ORDER BY {key} LIMIT {PAGE_RECEIPTS}");
        let mut values = vec![Value::from(after)];
        values.extend(run_id.map(|run_id| run_id.to_value()));
        let doing = "listing rows";
        // The ids apart from the rows: one that cannot be read must not end the listing.
        let sql = format!("SELECT {key}, run_id FROM {} {tail}", table.name);
        let ids = self.backend().rows(doing, &sql, &values, &[ColumnKind::Text, ColumnKind::Text])?;
        let ids: Vec<(String, Option<RunId>)> = ids.into_iter().map(id_and_run).collect();
        let last = ids.last().map(|(id, _)| id.clone());
        let whole = self.backend().select_from(table, &tail, &values);
        match whole {
            Ok(rows) => return Ok(Page { rows, unreadable: Vec::new(), last }),
            Err(error) if !error.is_about_rows() => return Err(error),
            Err(_) => {}
        }
        let mut page = Page { rows: Vec::new(), unreadable: Vec::new(), last };
        for (id, run_id) in ids {
            let one = format!("WHERE {key} = ?");
            match self.backend().select_from(table, &one, &[Value::from(id.as_str())]) {
                Ok(rows) => page.rows.extend(rows),
                Err(error) if error.is_about_rows() => {
                    page.unreadable.push(UnreadableRow { id, run_id, why: error.to_string() });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(page)
    }

    /// Attempts in the order of their ids, with what is sealed with them.
    pub(crate) fn seals_of(&self, attempts: Vec<AttemptRow>) -> Result<Vec<AttemptSeal>, LedgerError> {
        let (Some(first), Some(last)) = (attempts.first(), attempts.last()) else { return Ok(Vec::new()) };
        let mut backend = self.backend();
        let range = [first.attempt_id.to_value(), last.attempt_id.to_value()];
        let mut metric_summaries = grouped(&mut backend, &range, |row: &MetricSummaryRow| row.attempt_id)?;
        let mut parameters = grouped(&mut backend, &range, |row: &ParameterRow| row.attempt_id)?;
        let mut tags = grouped(&mut backend, &range, |row: &TagRow| row.attempt_id)?;
        let mut artifacts = grouped(&mut backend, &range, |row: &ArtifactRow| row.attempt_id)?;
        let mut segments = grouped(&mut backend, &range, |row: &RecordSegmentRow| row.attempt_id)?;
        let mut costs = grouped(&mut backend, &range, |row: &CostRow| row.attempt_id)?;
        let seal = |attempt: AttemptRow| {
            let id = attempt.attempt_id;
            AttemptSeal {
                metric_summaries: metric_summaries.remove(&id).unwrap_or_default(),
                parameters: parameters.remove(&id).unwrap_or_default(),
                tags: tags.remove(&id).unwrap_or_default(),
                artifacts: artifacts.remove(&id).unwrap_or_default(),
                segments: segments.remove(&id).unwrap_or_default(),
                costs: costs.remove(&id).unwrap_or_default(),
                ..AttemptSeal::of(attempt)
            }
        };
        Ok(attempts.into_iter().map(seal).collect())
    }
}

fn id_and_run(values: Vec<Value>) -> (String, Option<RunId>) {
    let mut values = values.into_iter();
    let mut next = || values.next().unwrap_or(Value::Null);
    (String::from_value(next()).unwrap_or_default(), RunId::from_value(next()).ok())
}

/// The rows of a range of attempts, by attempt.
fn grouped<R: Record>(
    backend: &mut Backend,
    range: &[Value],
    attempt_of: fn(&R) -> AttemptId,
) -> Result<HashMap<AttemptId, Vec<R>>, LedgerError> {
    let mut groups = HashMap::<AttemptId, Vec<R>>::new();
    for row in backend.select::<R>("WHERE attempt_id BETWEEN ? AND ?", range)? {
        groups.entry(attempt_of(&row)).or_default().push(row);
    }
    Ok(groups)
}

fn check(seal: &AttemptSeal) -> CheckedReceipt {
    let AttemptRow { attempt_id, run_id, receipt_sha256, .. } = &seal.attempt;
    let holds = receipt_sha256.as_ref().map(|sealed| *sealed == seal.receipt_sha256());
    CheckedReceipt { attempt_id: *attempt_id, run_id: *run_id, holds }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::rules::CHANGING;
    use crate::records::{SEALED_WITH_ATTEMPTS, TABLES};

    /// Proves that every table whose rows change or are sealed with another has an entry, that each entry is of a
    /// table, once, and that what nothing proves is named.
    #[test]
    fn what_proves_each_table() {
        for table in CHANGING.iter().chain(&SEALED_WITH_ATTEMPTS) {
            assert_ne!(proof_of(table), Proof::Copies(Stays::All), "{}", table.name);
        }
        for (table, proof, gap) in PROOFS {
            assert!(TABLES.contains(&table), "{}", table.name);
            assert_eq!(PROOFS.iter().filter(|(of, ..)| *of == table).count(), 1, "{}", table.name);
            assert_eq!(proof == Proof::Nothing, gap.starts_with(EVERYTHING), "{}", table.name);
        }
        assert!(unproved().contains(&format!("table `leases`: {OF_NOW}")));
    }

    /// Proves which columns of a kept row the ledger must still have.
    #[test]
    fn what_stays_of_a_row() {
        let table = ModelRow::TABLE;
        let at = table.columns.iter().position(|column| column.name == "change_number").unwrap();
        let row = |number: Option<i64>| {
            let mut values = vec![Value::Null; table.columns.len()];
            values[at] = number.map_or(Value::Null, Value::Integer);
            values
        };
        let stays = |stays: Stays, column: &str, kept: Option<i64>, stored: Option<i64>| {
            stays.holds_for(table, column, &row(kept), &row(stored))
        };
        assert!(stays(Stays::All, "model", None, None));
        let but = Stays::AllBut("model");
        assert_eq!((stays(but, "model", None, None), stays(but, "stages_json", None, None)), (false, true));
        let these = Stays::These(&["model"]);
        assert_eq!(
            (stays(these, "model", None, None), stays(these, "stages_json", None, None)),
            (true, false)
        );
        let once = Stays::OnceSet("change_number");
        assert_eq!((stays(once, "model", Some(1), None), stays(once, "model", None, Some(1))), (true, false));
        let number = Stays::AtNumber("change_number");
        for (kept, stored, expected) in [(2, 2, true), (2, 1, true), (2, 3, false)] {
            assert_eq!(stays(number, "model", Some(kept), Some(stored)), expected, "{kept} {stored}");
        }
    }
}
