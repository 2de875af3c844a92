//! Copies of rows that the home should keep and does not: one that was deleted differs from nothing.

use std::collections::BTreeSet;
use std::path::PathBuf;

use trackway_core::RunId;
use trackway_engine::error::AppError;
use trackway_engine::{Context, row_copies};
use trackway_formats::layout::RowCopy;
use trackway_ledger::RunState;

use super::was_launched_here;
use crate::registry::kept_name;

/// Those of a run of which anything is kept: of the run, of its checks and of each sealed attempt that was launched here.
pub(super) fn missing_of_run(context: &Context, run_id: RunId) -> Result<Vec<PathBuf>, AppError> {
    let layout = context.home.layout.run(run_id);
    if row_copies::files(&layout.row_copies()).is_empty() {
        return Ok(Vec::new());
    }
    let mut expected = vec![RowCopy::Run];
    let is_checked = context.run_by_id(run_id)?.state != RunState::Planned;
    if is_checked && !context.ledger_read(|ledger| ledger.preflight_checks_of(run_id))?.is_empty() {
        expected.push(RowCopy::Checks);
    }
    let attempts = context.attempts_of(run_id)?;
    let own = attempts.iter().filter(|row| row.sealed_at.is_some() && was_launched_here(context, row));
    expected.extend(own.map(|row| RowCopy::Attempt(row.attempt_id)));
    let paths = expected.into_iter().map(|copy| layout.row_copy(copy));
    Ok(paths.filter(|path| !path.exists()).collect())
}

/// Those of the changes of a model, all of whose rows are read. In a ledger that several homes share the newest ones may be kept elsewhere.
pub(super) fn missing_of_model(context: &Context, model: &str) -> Result<Vec<PathBuf>, AppError> {
    context.ledger_read(|ledger| ledger.model(model))?;
    let changes = context.ledger_read(|ledger| ledger.changes_of_model(model))?;
    let is_kept = |number: u64| {
        let found = changes.iter().find(|row| row.number == number);
        found.is_some_and(|row| context.is_kept_in_registry(&kept_name(row)))
    };
    let numbers: Vec<u64> = changes.iter().map(|row| row.number).collect();
    let kept = numbers.iter().copied().filter(|number| is_kept(*number)).collect();
    let missing = missing_numbers(&numbers, &kept, !context.home.has_ledger_elsewhere());
    let rows = changes.iter().filter(|row| missing.contains(&row.number));
    Ok(rows.map(|row| context.home.layout.registry_file(&kept_name(row))).collect())
}

/// A change keeps those before it too, so that none is missing before one that is kept, nor after it where no other home makes changes.
fn missing_numbers(all: &[u64], kept: &BTreeSet<u64>, is_own_ledger: bool) -> BTreeSet<u64> {
    let newest = kept.last().copied();
    let is_expected = |number: u64| newest.is_some_and(|newest| is_own_ledger || number < newest);
    all.iter().copied().filter(|number| is_expected(*number) && !kept.contains(number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a change without its copy is missed, except where no copy was ever kept, and except for the newest
    /// ones of a shared ledger.
    #[test]
    fn copies_are_missed_beside_others() {
        let missing = |kept: &[u64], is_own| -> Vec<u64> {
            missing_numbers(&[1, 2, 3, 4], &kept.iter().copied().collect(), is_own).into_iter().collect()
        };
        assert_eq!(missing(&[1, 2, 3, 4], true), Vec::<u64>::new());
        assert_eq!(missing(&[2, 4], true), [1, 3]);
        assert_eq!(missing(&[1, 2, 3], true), [4]);
        assert_eq!(missing(&[1, 3], false), [2]);
        assert_eq!(missing(&[], true), Vec::<u64>::new());
    }
}
