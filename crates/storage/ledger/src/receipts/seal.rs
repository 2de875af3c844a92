//! Sealing: an attempt's row becomes a receipt that can no longer change.

use std::collections::HashMap;

use sha2::{Digest, Sha256};
use trackway_core::Timestamp;
use trackway_core::text::hex;

use super::charges::charges_of;
use crate::backend::{Backend, key_values};
use crate::changes::{note_change, project_of_run};
use crate::error::LedgerError;
use crate::ledger::{Ledger, insert_noted, update_run, upsert_checkpoint};
use crate::records::{
    ArtifactRow, AttemptRow, AttemptState, CheckpointRow, CostRow, EventRow, MetricSummaryRow, ParameterRow,
    RecordSegmentRow, RetryRow, RunRow, RungRow, SEALED_WITH_ATTEMPTS, SubjectEventRow, TagRow,
};
use crate::value::{Field, Record, Value};

/// Everything that is written when an attempt is sealed, in one transaction.
#[derive(Debug, Clone)]
pub struct AttemptSeal {
    /// The complete row. State, `sealed_at` and `receipt_sha256` are filled in by sealing; the reason must be set.
    pub attempt: AttemptRow,
    /// Sealed with it.
    pub metric_summaries: Vec<MetricSummaryRow>,
    /// Sealed with it.
    pub parameters: Vec<ParameterRow>,
    /// Sealed with it.
    pub tags: Vec<TagRow>,
    /// Sealed with it.
    pub artifacts: Vec<ArtifactRow>,
    /// Sealed with it.
    pub segments: Vec<RecordSegmentRow>,
    /// Sealed with it.
    pub costs: Vec<CostRow>,
    /// Written along: history.
    pub events: Vec<EventRow>,
    /// Written along: the mirror of the checkpoint log.
    pub checkpoints: Vec<CheckpointRow>,
    /// Written in the same transaction: the state of the run now.
    pub run: Option<RunRow>,
    /// Written in the same transaction: the state of the rung now.
    pub rung: Option<RungRow>,
    /// Written in the same transaction: what follows the attempt.
    pub decision: Option<RetryRow>,
}

/// What sealing did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealOutcome {
    /// The receipt is sealed now.
    Now,
    /// It was sealed before, with the same content; nothing was written.
    Before,
}

/// Parameters, tags and artifacts of an attempt that the ledger keeps, each of them at most.
pub const NAMED_ROWS_MAX: usize = 10_000;

/// Columns about how a row was sealed or watched, not about what happened.
const NOT_IN_RECEIPT: &[&str] = &["state", "sealed_at", "receipt_sha256", "heartbeat_at"];

impl AttemptSeal {
    /// A seal of the attempt alone.
    #[must_use]
    pub fn of(attempt: AttemptRow) -> Self {
        Self {
            attempt,
            metric_summaries: Vec::new(),
            parameters: Vec::new(),
            tags: Vec::new(),
            artifacts: Vec::new(),
            segments: Vec::new(),
            costs: Vec::new(),
            events: Vec::new(),
            checkpoints: Vec::new(),
            run: None,
            rung: None,
            decision: None,
        }
    }

    /// The seal as it is read back: what the receipt's hash is taken over. Of rows that have one key then, the last
    /// stays.
    pub(crate) fn as_stored(&self, backend: &Backend) -> Result<Self, LedgerError> {
        Ok(Self {
            attempt: backend.as_stored(&self.attempt)?,
            metric_summaries: rows_as_stored(backend, &self.metric_summaries)?,
            parameters: rows_as_stored(backend, &self.parameters)?,
            tags: rows_as_stored(backend, &self.tags)?,
            artifacts: rows_as_stored(backend, &self.artifacts)?,
            segments: rows_as_stored(backend, &self.segments)?,
            costs: rows_as_stored(backend, &self.costs)?,
            events: self.events.clone(),
            checkpoints: self.checkpoints.clone(),
            run: self.run.clone(),
            rung: self.rung.clone(),
            decision: self.decision.clone(),
        })
    }

    /// SHA-256 over the attempt's row and the rows sealed with it, in an order that does not depend on how they
    /// were listed. Null columns do not count, so a later version may add columns.
    #[must_use]
    pub fn receipt_sha256(&self) -> String {
        digest_of(&[
            lines_of(std::slice::from_ref(&self.attempt)),
            lines_of(&self.metric_summaries),
            lines_of(&self.parameters),
            lines_of(&self.tags),
            lines_of(&self.artifacts),
            lines_of(&self.segments),
            lines_of(&self.costs),
        ])
    }

    /// The row of the attempt once it is sealed.
    pub(crate) fn sealed_attempt(&self, sealed_at: Timestamp) -> AttemptRow {
        AttemptRow {
            state: AttemptState::Sealed,
            sealed_at: Some(sealed_at),
            receipt_sha256: Some(self.receipt_sha256()),
            ..self.attempt.clone()
        }
    }
}

impl Ledger {
    /// Seals an attempt, durably. Sealing again with the same content changes nothing, so two supervisors that both
    /// find an unsealed attempt may both seal it.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when it is sealed with another content, or has no termination reason;
    /// [`LedgerError::Changed`] when the run was changed since `seal.run` was read, and nothing is written then;
    /// [`LedgerError::Superseded`] when this handle lost the run's lease; [`LedgerError::NotFound`] when it was never
    /// inserted.
    pub fn seal_attempt(&self, seal: &AttemptSeal, sealed_at: Timestamp) -> Result<SealOutcome, LedgerError> {
        self.write_about(seal.attempt.run_id, true, |backend| {
            // As it is read back: a digest over what the door cuts or redacts would never hold again.
            let seal = &seal.as_stored(backend)?;
            if let Some(before) = sealed_receipt(backend, &seal.attempt)? {
                return match before == seal.receipt_sha256() {
                    true => Ok(SealOutcome::Before),
                    false => Err(backend.refuse(
                        &format!("sealing {}", seal.attempt.attempt_id),
                        "it is already sealed with other contents: write an amendment",
                    )),
                };
            }
            seal_rows(backend, seal, Some(sealed_at))?;
            if !backend.update(&seal.sealed_attempt(sealed_at), &["run_id", "kind"])? {
                return Err(LedgerError::not_found("attempt", seal.attempt.attempt_id, ""));
            }
            note_change(backend, seal.attempt.table(), seal.attempt.run_id)?;
            if let Some(decision) = &seal.decision {
                insert_noted(backend, decision, seal.attempt.run_id)?;
            }
            Ok(SealOutcome::Now)
        })
    }

    /// Stores a run with one attempt that is sealed already, in one transaction: what an import needs.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when the run or the attempt exists; nothing is stored then.
    pub fn insert_sealed(
        &self,
        run: &RunRow,
        planned: &AttemptRow,
        seal: &AttemptSeal,
        sealed_at: Timestamp,
    ) -> Result<(), LedgerError> {
        self.backend().transaction(true, |backend| {
            let seal = &seal.as_stored(backend)?;
            backend.insert(run)?;
            // Open first: the rows of an attempt are taken only while it is not sealed.
            backend.insert(planned)?;
            seal_rows(backend, seal, Some(sealed_at))?;
            backend.update(&seal.sealed_attempt(sealed_at), &["run_id", "kind"])?;
            if let Some(decision) = &seal.decision {
                insert_noted(backend, decision, run.run_id)?;
            }
            note_change(backend, RunRow::TABLE, run.run_id)
        })
    }
}

/// The rows come before the attempt's own: once that is sealed, the database takes no more of them. What it is charged is written with
/// them, if it is sealed.
pub(crate) fn seal_rows(
    backend: &mut Backend,
    seal: &AttemptSeal,
    sealed_at: Option<Timestamp>,
) -> Result<(), LedgerError> {
    // A supervisor that was killed between its parts may have left some of these; the complete set replaces them.
    let id = [seal.attempt.attempt_id.to_value()];
    for table in SEALED_WITH_ATTEMPTS {
        backend.execute("sealing", &format!("DELETE FROM {} WHERE attempt_id = ?", table.name), &id)?;
    }
    backend.insert_all(&seal.metric_summaries)?;
    backend.insert_all(&seal.parameters)?;
    backend.insert_all(&seal.tags)?;
    backend.insert_all(&seal.artifacts)?;
    backend.insert_all(&seal.segments)?;
    backend.insert_all(&seal.costs)?;
    if let Some(sealed_at) = sealed_at {
        let project = project_of_run(backend, seal.attempt.run_id)?;
        let charges = charges_of(&seal.attempt, &seal.costs, sealed_at, project.as_deref());
        charges.iter().try_for_each(|charge| backend.insert_once(charge).map(drop))?;
    }
    seal.events.iter().try_for_each(|event| backend.insert_once(&SubjectEventRow::from(event)).map(drop))?;
    seal.checkpoints.iter().try_for_each(|checkpoint| upsert_checkpoint(backend, checkpoint).map(drop))?;
    seal.rung.iter().try_for_each(|rung| backend.upsert(rung, &[]))?;
    // In the same transaction: a run never shows an end that its attempt does not have.
    seal.run.iter().try_for_each(|run| update_run(backend, run))
}

/// Rows as they are read back. Two names may become one by redaction: the last row of a key stays, at its place.
pub(crate) fn rows_as_stored<R: Record>(backend: &Backend, rows: &[R]) -> Result<Vec<R>, LedgerError> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut kept: Vec<R> = Vec::with_capacity(rows.len());
    for row in rows {
        let row = backend.as_stored(row)?;
        let place = *places.entry(format!("{:?}", key_values(&row))).or_insert(kept.len());
        match kept.get_mut(place) {
            Some(before) => *before = row,
            None => kept.push(row),
        }
    }
    Ok(kept)
}

pub(crate) fn sealed_receipt(
    backend: &mut Backend,
    attempt: &AttemptRow,
) -> Result<Option<String>, LedgerError> {
    Ok(backend.stored(attempt)?.and_then(|stored| stored.receipt_sha256))
}

/// SHA-256 over the lines of several tables.
pub(crate) fn digest_of(tables: &[Vec<String>]) -> String {
    hex(&Sha256::digest(tables.concat().join("\n").as_bytes()))
}

/// One line per row, sorted: `table column=value …` without nulls.
pub(crate) fn lines_of<R: Record>(rows: &[R]) -> Vec<String> {
    let mut lines: Vec<String> = rows
        .iter()
        .map(|row| {
            let mut line = R::TABLE.name.to_owned();
            for (column, value) in R::TABLE.columns.iter().zip(row.values()) {
                if value != Value::Null && !NOT_IN_RECEIPT.contains(&column.name) {
                    line.push_str(&format!(" {}={value:?}", column.name));
                }
            }
            line
        })
        .collect();
    lines.sort_unstable();
    lines
}
