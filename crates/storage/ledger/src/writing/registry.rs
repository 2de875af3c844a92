//! Changing models: by compare-and-swap on the number of a model's newest change.

use crate::changes::note_change;
use crate::error::LedgerError;
use crate::ledger::{Ledger, insert_noted};
use crate::records::{
    ApprovalRow, GateReceiptRow, GateTestRow, ModelChangeRow, ModelRow, ModelVersionRow, Subject, SubjectKind,
};
use crate::value::{Field as _, Record as _};

impl Ledger {
    /// Adds a change to a model, with the resulting state of the model, and the version that it registers, all or
    /// nothing and durably. The change's number must be the one after the model's newest change: it was decided on the
    /// current state of the model. The same change again, as its newest, changes nothing: the reply to the first one
    /// was lost.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when the model changed meanwhile, or has that version already: nothing is stored
    /// then.
    pub fn change_model(
        &self,
        change: &ModelChangeRow,
        standing: &ModelRow,
        version: Option<&ModelVersionRow>,
    ) -> Result<(), LedgerError> {
        self.backend().transaction(true, |backend| {
            let newest = backend.stored(standing)?.map_or(0, |model| model.change_number);
            if newest == change.number && backend.stored(change)? == Some(backend.as_stored(change)?) {
                return Ok(());
            }
            if newest + 1 != change.number {
                let why = format!(
                    "`{}` changed in the meantime: its newest change is number {newest}, but this one was decided after number {}",
                    change.model,
                    change.number - 1
                );
                return Err(backend.refuse("changing the model", why));
            }
            backend.insert(change)?;
            version.map_or(Ok(()), |version| backend.insert(version))?;
            backend.upsert(standing, &["created_at", "project"])?;
            note_change(backend, ModelChangeRow::TABLE, model_named(&change.model))
        })
    }

    /// The state of a model.
    pub fn model(&self, model: &str) -> Result<Option<ModelRow>, LedgerError> {
        Ok(self.backend().select("WHERE model = ?", &[model.to_owned().to_value()])?.pop())
    }

    /// All models, by name.
    pub fn models(&self) -> Result<Vec<ModelRow>, LedgerError> {
        self.backend().select("ORDER BY model", &[])
    }

    /// Stores a gate receipt. The same receipt again changes nothing and returns `false`.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when another one has its id.
    pub fn insert_gate_receipt(&self, receipt: &GateReceiptRow) -> Result<bool, LedgerError> {
        self.backend().transaction(true, |backend| insert_noted(backend, receipt, receipt.run_id))
    }

    /// A gate receipt by its id.
    pub fn gate_receipt(&self, gate_receipt_id: &str) -> Result<Option<GateReceiptRow>, LedgerError> {
        let found =
            self.backend().select("WHERE gate_receipt_id = ?", &[gate_receipt_id.to_owned().to_value()]);
        Ok(found?.pop())
    }

    /// Stores tests of gates against known-bad models.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when another one has the id of one of them; none is stored then.
    pub fn insert_gate_tests(&self, tests: &[GateTestRow]) -> Result<(), LedgerError> {
        self.backend().transaction(true, |backend| {
            tests.iter().try_for_each(|test| backend.insert_once(test).map(|_| ()))
        })
    }

    /// Stores an approval. The same one again changes nothing and answers `false`.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when another one has its id.
    pub fn insert_approval(&self, approval: &ApprovalRow) -> Result<bool, LedgerError> {
        let model = model_named(&approval.model);
        self.backend().transaction(true, |backend| insert_noted(backend, approval, model))
    }
}

fn model_named(model: &str) -> Subject {
    Subject::new(SubjectKind::Model, model)
}
