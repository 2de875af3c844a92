//! Kept rows are put back.

use super::{KeptRows, RestoredRows, changed};
use crate::backend::Backend;
use crate::changes::must_know;
use crate::error::LedgerError;
use crate::ledger::update_run;
use crate::receipts::seal::{seal_rows, sealed_receipt};
use crate::receipts::verify::{Proof, proof_of};
use crate::records::{
    AmendmentRow, ApprovalRow, AttemptDataRow, AttemptRow, AttemptState, ChargeRow, DataSnapshotRow,
    DetectionRow, DiagnosisRow, DriftResultRow, EvaluationRow, EvaluationState, GateReceiptRow, GateTestRow,
    ModelChangeRow, ModelRow, ModelVersionRow, NoticeRow, OutboxRow, PreflightCheckRow, RetryRow,
    RollBackRow, RunAmendmentRow, RunDataRow, RunRow, RunState, SubjectEventRow,
};
use crate::value::{Field as _, Record, Value};
use crate::writing::evaluations::use_of;
use crate::writing::run_amendments::amend_restored;

/// Kept rows on their way back.
pub(super) struct Restoring<'r> {
    pub(super) backend: &'r mut Backend,
    pub(super) kept: &'r KeptRows,
    pub(super) restored: RestoredRows,
}

impl Restoring<'_> {
    /// Rows that others refer to come first.
    pub(super) fn all(&mut self) -> Result<(), LedgerError> {
        let kept = self.kept;
        self.projects_of_data()?;
        self.rows_of::<DataSnapshotRow>()?;
        let attempts = kept.attempts()?;
        for run in kept.rows_of::<RunRow>()? {
            self.run(&run, attempts.is_empty())?;
        }
        self.rows_of::<RunDataRow>()?;
        for attempt in attempts {
            self.attempt(&attempt)?;
        }
        self.rows_of::<AttemptDataRow>()?;
        self.charges()?;
        self.rows_of::<RetryRow>()?;
        self.rows_of::<DetectionRow>()?;
        self.rows_of::<RollBackRow>()?;
        self.rows_of::<AmendmentRow>()?;
        self.rows_of::<RunAmendmentRow>()?;
        // After the runs: a row may have been put back from before these changes.
        amend_restored(self.backend, &kept.rows_of()?)?;
        self.rows_of::<DiagnosisRow>()?;
        self.rows_of::<PreflightCheckRow>()?;
        self.rows_of::<DriftResultRow>()?;
        self.events()?;
        self.rows_of::<NoticeRow>()?;
        self.deliveries()?;
        for evaluation in kept.rows_of::<EvaluationRow>()? {
            self.evaluation(&evaluation)?;
        }
        self.rows_of::<GateReceiptRow>()?;
        self.rows_of::<GateTestRow>()?;
        self.rows_of::<ModelVersionRow>()?;
        self.rows_of::<ModelChangeRow>()?;
        for standing in kept.rows_of::<ModelRow>()? {
            restore_standing(self.backend, &standing)?;
        }
        self.rows_of::<ApprovalRow>()
    }

    fn rows_of<R: Record>(&mut self) -> Result<(), LedgerError> {
        let rows = self.kept.rows_of::<R>()?;
        self.rows(&rows)
    }

    /// Adds the rows that are not there. They are looked up first: the database refuses to add to history under a key that is taken, even
    /// to leave the row as it is. Two runs on one data set both keep its row, each with the time at which it saw it.
    fn rows<R: Record>(&mut self, rows: &[R]) -> Result<(), LedgerError> {
        for row in rows {
            match self.backend.stored(row)? {
                Some(stored) => self.compare(row, &stored)?,
                None => self.restored.added |= self.backend.insert_if_absent(row)?,
            }
        }
        Ok(())
    }

    /// Notes that the ledger has a row otherwise. Both are redacted again: who kept it may have known fewer secrets.
    fn compare<R: Record>(&mut self, kept: &R, stored: &R) -> Result<(), LedgerError> {
        let table = kept.table();
        if let Proof::Copies(stays) = proof_of(table) {
            let (kept, stored) = (self.backend.as_stored(kept)?, self.backend.as_stored(stored)?);
            self.restored.differs.extend(changed(table, stays, &kept.values(), &stored.values()));
        }
        Ok(())
    }

    /// Events that are part of no receipt; those of a receipt come back with it.
    fn events(&mut self) -> Result<(), LedgerError> {
        let events: Vec<SubjectEventRow> = self.kept.rows_of()?;
        for event in &events {
            must_know(self.backend, &event.subject(), "restoring an event")?;
        }
        self.rows(&events)
    }

    /// A copy may know more of a delivery than a ledger that was put back from a backup: then the notice is not sent again.
    fn deliveries(&mut self) -> Result<(), LedgerError> {
        for kept in self.kept.rows_of::<OutboxRow>()? {
            match self.backend.stored(&kept)? {
                Some(stored) if kept.is_after(&stored) => {
                    self.restored.added |= self.backend.update(&kept, &[])?;
                }
                Some(_) => {}
                None => self.restored.added |= self.backend.insert_if_absent(&kept)?,
            }
        }
        Ok(())
    }

    /// Charges that a migration wrote have no project; the copies of those that were charged before it have one.
    fn charges(&mut self) -> Result<(), LedgerError> {
        let charges: Vec<ChargeRow> = self.kept.rows_of()?;
        let sql = "UPDATE charges SET project = ? WHERE charge_id = ? AND project IS NULL";
        for charge in charges.iter().filter(|charge| charge.project.is_some()) {
            let values = [charge.project.to_value(), Value::from(charge.charge_id.as_str())];
            self.restored.added |= self.backend.execute("noting a project", sql, &values)? > 0;
        }
        self.rows(&charges)
    }

    /// The same of data sets that a version before 26 put back.
    fn projects_of_data(&mut self) -> Result<(), LedgerError> {
        let sql = "UPDATE data_snapshots SET project = ? WHERE data_sha256 = ? AND project IS NULL";
        for row in self.kept.rows_of::<DataSnapshotRow>()?.iter().filter(|row| row.project.is_some()) {
            let values = [row.project.to_value(), Value::from(row.data_sha256.as_str())];
            self.restored.added |= self.backend.execute("noting a project", sql, &values)? > 0;
        }
        Ok(())
    }

    /// A run, and if `with_state` the state it reached after as many attempts as the ledger has. A state from before the
    /// last attempt is older than that attempt's receipt.
    fn run(&mut self, run: &RunRow, with_state: bool) -> Result<(), LedgerError> {
        let Some(stored) = self.backend.stored(run)? else {
            self.restored.added |= self.backend.insert_if_absent(run)?;
            return Ok(());
        };
        let stored = self.completed(run, stored)?;
        self.compare(run, &stored)?;
        let moved = stored.attempt_count == run.attempt_count && stored.state != run.state;
        if with_state && moved && run.state != RunState::Planned {
            let reached = with_purpose(run.clone(), &stored);
            update_run(self.backend, &RunRow { revision: stored.revision, ..reached })?;
            self.restored.added = true;
        }
        Ok(())
    }

    /// The run in the ledger, with what only the kept one says of its purpose.
    fn completed(&mut self, kept: &RunRow, stored: RunRow) -> Result<RunRow, LedgerError> {
        let completed = with_purpose(stored.clone(), kept);
        if completed == stored {
            return Ok(stored);
        }
        update_run(self.backend, &completed)?;
        self.restored.added = true;
        Ok(RunRow { revision: completed.revision + 1, ..completed })
    }

    fn attempt(&mut self, attempt: &AttemptRow) -> Result<(), LedgerError> {
        self.restored.added |= restore_attempt(self.backend, self.kept, attempt)?;
        let Some(stored) = self.backend.stored(attempt)? else { return Ok(()) };
        self.compare(attempt, &stored)
    }

    fn evaluation(&mut self, ended: &EvaluationRow) -> Result<(), LedgerError> {
        let begun = EvaluationRow {
            state: EvaluationState::Running,
            ended_at: None,
            receipt_sha256: None,
            ..ended.clone()
        };
        // Looked up first: the database refuses to add one that has ended, even to leave it as it is.
        match self.backend.stored(ended)? {
            Some(stored) if stored.state != EvaluationState::Running => return self.compare(ended, &stored),
            Some(_) => {}
            None => self.restored.added |= self.backend.insert_if_absent(&begun)?,
        }
        let end = self.kept.end_of(ended)?;
        if ended.receipt_sha256.as_deref() != Some(end.receipt_sha256().as_str()) {
            let why = format!(
                "the digest of the kept receipt of {} differs from the one it ended with",
                ended.evaluation_id
            );
            return Err(self.backend.refuse("restoring an evaluation", why));
        }
        self.rows(use_of(&begun).as_slice())?;
        self.rows(&end.metrics)?;
        self.rows(&end.slices)?;
        // Last: once it has ended, its metrics are refused.
        self.restored.added |= self.backend.update(ended, &["run_id"])?;
        Ok(())
    }
}

fn restore_attempt(
    backend: &mut Backend,
    kept: &KeptRows,
    attempt: &AttemptRow,
) -> Result<bool, LedgerError> {
    let open = AttemptRow {
        state: if attempt.sealed_at.is_some() { AttemptState::Ended } else { attempt.state },
        sealed_at: None,
        receipt_sha256: None,
        ..attempt.clone()
    };
    // Looked up first: the database refuses to add to a sealed attempt, even to leave it as it is.
    let added = backend.stored(&open)?.is_none() && backend.insert_if_absent(&open)?;
    if let Some(parent) = attempt.parent_attempt_id {
        let sql = "UPDATE retries SET next_attempt_id = ? WHERE attempt_id = ? AND next_attempt_id IS NULL";
        let values = [attempt.attempt_id.to_value(), parent.to_value()];
        backend.execute("noting the next attempt", sql, &values)?;
    }
    if attempt.sealed_at.is_none() || sealed_receipt(backend, attempt)?.is_some() {
        return Ok(added);
    }
    let mut seal = kept.seal_of(attempt)?;
    // Before anything of it is written: what is sealed cannot be taken back.
    if attempt.receipt_sha256.as_deref() != Some(seal.receipt_sha256().as_str()) {
        let why = format!(
            "the digest of the kept receipt of {} differs from the one it was sealed with",
            attempt.attempt_id
        );
        return Err(backend.refuse("restoring a receipt", why));
    }
    // The ledger may have a later attempt.
    let stored: Vec<RunRow> = backend.select("WHERE run_id = ?", &[attempt.run_id.to_value()])?;
    let stored = stored.first();
    let known = stored.map_or(0, |run| run.attempt_count);
    seal.run = seal.run.filter(|run| run.attempt_count >= known).map(|run| match stored {
        Some(stored) => RunRow { revision: stored.revision, ..with_purpose(run, stored) },
        None => RunRow { revision: 0, ..run },
    });
    // Before the attempt's own row: once that is sealed, the database takes no more of them.
    seal_rows(backend, &seal, attempt.sealed_at)?;
    backend.update(attempt, &["run_id", "kind"])?;
    Ok(true)
}

/// A run with the project and the criticality of another row of it, where it has none: a version before 26 stored and kept runs without.
fn with_purpose(run: RunRow, other: &RunRow) -> RunRow {
    RunRow {
        project: run.project.or_else(|| other.project.clone()),
        criticality: run.criticality.or(other.criticality),
        ..run
    }
}

/// The newest state of a model counts; a version before 26 restored it without its project.
fn restore_standing(backend: &mut Backend, standing: &ModelRow) -> Result<(), LedgerError> {
    if backend.stored(standing)?.is_none_or(|stored| stored.change_number < standing.change_number) {
        backend.upsert(standing, &["created_at", "project"])?;
    }
    if standing.project.is_none() {
        return Ok(());
    }
    let number = i64::try_from(standing.change_number).unwrap_or(i64::MAX);
    let sql = "UPDATE models SET project = ? WHERE model = ? AND change_number = ? AND project IS NULL";
    let values = [standing.project.to_value(), Value::from(standing.model.as_str()), Value::Integer(number)];
    backend.execute("noting a project", sql, &values).map(drop)
}
