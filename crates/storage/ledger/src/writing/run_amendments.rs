//! What a person changes of a run at any time: its name, its note, its tags, and whether lists show it. Receipts are not touched;
//! each change stays beside the run, with what was there before.

use trackway_core::RunId;

use crate::backend::Backend;
use crate::error::LedgerError;
use crate::ledger::{Ledger, locked_run, noted, update_run};
use crate::records::{RunAmendmentRow, RunField, RunRow, RunTagRow};
use crate::value::{Field as _, Record as _};

impl Ledger {
    /// Makes changes of one run, all or none and durably. The same again changes nothing.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when another amendment has the id of one; [`LedgerError::NotFound`] when there is no such run.
    pub fn amend_run(&self, run_id: RunId, amendments: &[RunAmendmentRow]) -> Result<RunRow, LedgerError> {
        self.write_about(run_id, true, |backend| {
            let mut is_new = false;
            for amendment in amendments {
                is_new |= backend.insert_once(amendment)?;
            }
            let run = make_true(backend, run_id, amendments)?;
            let run = run.ok_or_else(|| LedgerError::not_found("run", run_id, ""))?;
            noted(backend, is_new, RunAmendmentRow::TABLE, run_id)?;
            Ok(run)
        })
    }

    /// The tags of several runs as they are now, by run; of one name the value of the newest attempt comes last.
    pub fn tags_of_runs(&self, runs: &[RunId]) -> Result<Vec<RunTagRow>, LedgerError> {
        let order = "ORDER BY run_id, attempt_id, name";
        self.backend().select_among(RunTagRow::TABLE, "run_id", runs, order)
    }
}

/// Makes what restored changes say of their runs true again: the row of a run may have been put back from before them.
pub(crate) fn amend_restored(backend: &mut Backend, kept: &[RunAmendmentRow]) -> Result<(), LedgerError> {
    let mut runs: Vec<RunId> = kept.iter().map(|amendment| amendment.run_id).collect();
    runs.dedup();
    for run_id in runs {
        let tail = "WHERE run_id = ? ORDER BY at, amendment_id";
        // All of them, in order: of two changes of a field the last counts.
        let all: Vec<RunAmendmentRow> = backend.select(tail, &[run_id.to_value()])?;
        make_true(backend, run_id, &all)?;
    }
    Ok(())
}

/// Changes the row of a run as amendments say, and gives it as it is stored then; none without such a run.
fn make_true(
    backend: &mut Backend,
    run_id: RunId,
    amendments: &[RunAmendmentRow],
) -> Result<Option<RunRow>, LedgerError> {
    let Some(run) = locked_run(backend, run_id)? else { return Ok(None) };
    let amended = amended(run.clone(), amendments);
    if amended != run {
        update_run(backend, &amended)?;
    }
    // Read again: texts are stored without secrets.
    locked_run(backend, run_id)
}

/// The run after these changes, in their order. Tags are read from the changes themselves.
fn amended(mut run: RunRow, amendments: &[RunAmendmentRow]) -> RunRow {
    for amendment in amendments {
        let new_text = amendment.new_text.clone();
        match amendment.field {
            RunField::Name => run.name = new_text.unwrap_or(run.name),
            RunField::Note => run.note = new_text,
            RunField::Hidden => run.hidden_at = new_text.map(|_| amendment.at),
            RunField::Tag => {}
        }
    }
    run
}
