//! Which data sets an attempt was launched on: what everything that names the data of an attempt reads.

use trackway_ledger::{AttemptDataRow, AttemptRow, DataSnapshotRow, RunDataRow, RunRow};

use crate::Context;
use crate::error::AppError;

/// The data sets of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct SetsRead {
    /// Each set with its content, by name.
    pub sets: Vec<(RunDataRow, DataSnapshotRow)>,
    /// Why the sets may not be those that the attempt read; `None`: they are.
    pub doubt: Option<String>,
}

impl Context {
    /// The data sets that an attempt read; without one, those that the run began with.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn sets_read(&self, run: &RunRow, attempt: Option<&AttemptRow>) -> Result<SetsRead, AppError> {
        let rows = match attempt {
            Some(attempt) => self.ledger_read(|ledger| ledger.data_of_attempt(attempt.attempt_id))?,
            None => Vec::new(),
        };
        let is_recorded = !rows.is_empty();
        let rows = match is_recorded {
            true => rows.into_iter().map(used).collect(),
            false => self.ledger_read(|ledger| ledger.data_of_run(run.run_id))?,
        };
        let mut sets = Vec::with_capacity(rows.len());
        for row in rows {
            let snapshot = self.ledger_read(|ledger| ledger.data_snapshot(&row.data_sha256))?;
            sets.extend(snapshot.map(|snapshot| (row, snapshot)));
        }
        let doubt = attempt.filter(|_| !is_recorded).and_then(|attempt| doubt(run, attempt));
        Ok(SetsRead { sets, doubt })
    }
}

/// A set as a run uses it.
fn used(row: AttemptDataRow) -> RunDataRow {
    let AttemptDataRow { run_id, name, path, data_sha256, role, .. } = row;
    RunDataRow { run_id, name, path, data_sha256, role }
}

/// The sets of an attempt were not recorded: whether those of its run are the same ones shows their hash.
fn doubt(run: &RunRow, attempt: &AttemptRow) -> Option<String> {
    let number = attempt.attempt_number;
    match &attempt.data_sha256 {
        same if *same == run.data_sha256 => None,
        None => Some(format!(
            "the data could not be resolved when attempt {number} was launched: these are the sets that the run began with"
        )),
        Some(_) => Some(format!(
            "these are the sets that the run began with: attempt {number} read others, of which an older version kept only the hash"
        )),
    }
}

#[cfg(test)]
mod tests {
    use trackway_core::name::{Name, NameKind};
    use trackway_core::{AttemptId, LaunchKind, RunId, SequentialIds, Timestamp};

    use super::*;

    /// Proves that the sets of a run count for an attempt without own rows only where their hashes are equal.
    #[test]
    fn the_runs_sets_stand_in_where_the_hash_is_the_same() {
        let ids = SequentialIds::default();
        let name = Name::renamed(NameKind::Run, "r");
        let mut run =
            RunRow::planned(RunId::new(&ids), &name, "", serde_json::Value::Null, Timestamp::from_micros(0));
        run.data_sha256 = Some("a".into());
        let mut attempt = AttemptRow::planned(AttemptId::new(&ids), 2, LaunchKind::Train, &run);
        attempt.data_sha256 = Some("a".into());
        assert_eq!(doubt(&run, &attempt), None);
        attempt.data_sha256 = Some("b".into());
        assert!(doubt(&run, &attempt).unwrap().contains("only the hash"));
        attempt.data_sha256 = None;
        assert!(doubt(&run, &attempt).unwrap().contains("could not be resolved"));
    }
}
