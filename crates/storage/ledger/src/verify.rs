//! Whether receipts still are what was sealed, many at a time.

use std::collections::HashMap;

use trackway_core::{AttemptId, RunId};

use crate::backend::Backend;
use crate::error::LedgerError;
use crate::ledger::Ledger;
use crate::records::{
    ArtifactRow, AttemptRow, CheckpointRow, CostRow, EvaluationRow, GateReceiptRow, LAUNCHES,
    MetricSummaryRow, ParameterRow, RecordSegmentRow, TagRow,
};
use crate::seal::AttemptSeal;
use crate::value::{Field as _, Record, Table, Value};

/// Receipts whose rows are in memory at a time.
const PAGE_RECEIPTS: usize = 500;

/// A receipt, recomputed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckedReceipt {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// Its run.
    pub run_id: RunId,
    /// Whether it hashes to what was sealed; `None`: it is not sealed yet.
    pub holds: Option<bool>,
}

impl Ledger {
    /// Recomputes every receipt, training attempts and other launches, or those of one run; `found` is called for each.
    pub fn check_receipts(
        &self,
        run_id: Option<RunId>,
        found: &mut dyn FnMut(CheckedReceipt),
    ) -> Result<(), LedgerError> {
        for table in [AttemptRow::TABLE, LAUNCHES] {
            let mut after = String::new();
            loop {
                let page = self.page_of_receipts(table, run_id, &after)?;
                let Some(last) = page.last() else { break };
                after = last.attempt.attempt_id.to_string();
                page.iter().map(check).for_each(&mut *found);
            }
        }
        Ok(())
    }

    /// Whether a sealed receipt still hashes to what was sealed; `None` when the attempt is not sealed or unknown.
    pub fn verify_receipt(&self, attempt_id: AttemptId) -> Result<Option<bool>, LedgerError> {
        let Some(attempt) = self.attempt(attempt_id)? else { return Ok(None) };
        let mut holds = None;
        self.check_receipts(Some(attempt.run_id), &mut |checked| {
            if checked.attempt_id == attempt_id {
                holds = checked.holds;
            }
        })?;
        Ok(holds)
    }

    /// The evaluations, or those of one run, by id, after `after`; a page of them.
    pub fn evaluations_after(
        &self,
        run_id: Option<RunId>,
        after: &str,
    ) -> Result<Vec<EvaluationRow>, LedgerError> {
        self.page_after(EvaluationRow::TABLE, "evaluation_id", run_id, after)
    }

    /// The receipts of gates, or those of one run, by id, after `after`; a page of them.
    pub fn gate_receipts_after(
        &self,
        run_id: Option<RunId>,
        after: &str,
    ) -> Result<Vec<GateReceiptRow>, LedgerError> {
        self.page_after(GateReceiptRow::TABLE, "gate_receipt_id", run_id, after)
    }

    /// The checkpoints of all runs, or of one, by run and prefix, after `after`; a page of them.
    pub fn checkpoints_after(
        &self,
        run_id: Option<RunId>,
        after: Option<&CheckpointRow>,
    ) -> Result<Vec<CheckpointRow>, LedgerError> {
        let of_run = if run_id.is_some() { "AND run_id = ? " } else { "" };
        let tail = format!(
            "WHERE (run_id, object_prefix) > (?, ?) {of_run}ORDER BY run_id, object_prefix LIMIT {PAGE_RECEIPTS}"
        );
        let (run, prefix) = match after {
            Some(row) => (row.run_id.to_string(), row.object_prefix.clone()),
            None => Default::default(),
        };
        let mut values = vec![Value::from(run.as_str()), Value::from(prefix.as_str())];
        values.extend(run_id.map(|run_id| run_id.to_value()));
        self.backend().select(&tail, &values)
    }

    fn page_after<R: Record>(
        &self,
        table: &Table,
        key: &str,
        run_id: Option<RunId>,
        after: &str,
    ) -> Result<Vec<R>, LedgerError> {
        let of_run = if run_id.is_some() { "AND run_id = ? " } else { "" };
        let tail = format!("WHERE {key} > ? {of_run}ORDER BY {key} LIMIT {PAGE_RECEIPTS}");
        let mut values = vec![Value::from(after)];
        values.extend(run_id.map(|run_id| run_id.to_value()));
        self.backend().select_from(table, &tail, &values)
    }

    fn page_of_receipts(
        &self,
        table: &'static Table,
        run_id: Option<RunId>,
        after: &str,
    ) -> Result<Vec<AttemptSeal>, LedgerError> {
        let attempts: Vec<AttemptRow> = self.page_after(table, "attempt_id", run_id, after)?;
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
