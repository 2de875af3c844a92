//! What the next attempt changes, as `retries.changes_json` holds it, and the request for a roll back that may be part of it.

use serde::{Deserialize, Serialize};
use trackway_core::detect::Detector;
use trackway_core::{BatchRange, Step, TerminationReason, Timestamp};
use trackway_files::TempFile;
use trackway_formats::layout::AttemptLayout;
use trackway_formats::runfile::{PlanEntry, RetrySection};
use trackway_ledger::RetryRow;
use trackway_rules::checkpoints::roll_back::Back;

use crate::error::AppError;
use crate::json_file;
use crate::ledger::stored::read_stored;

/// What the next attempt changes, as `retries.changes_json` holds it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Changes {
    /// Everything in force.
    #[serde(flatten)]
    pub in_force: PlanEntry,
    /// The plan entry that was newly taken.
    pub plan_index: Option<usize>,
    /// The reason whose plan it is from.
    pub plan_reason: Option<TerminationReason>,
    /// Where the run goes back to first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roll_back: Option<RollBackDecided>,
    /// The rung that is launched next, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rung: Option<String>,
    /// Machines that the attempt must not run on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_hosts: Vec<String>,
}

/// The entries of retry plans that the decisions of a run took, oldest first: there are no more of them than the plans have, however
/// many decisions there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntriesTaken(Vec<(TerminationReason, usize)>);

impl EntriesTaken {
    /// `decisions`: all of the run, oldest first.
    ///
    /// # Errors
    /// When a stored decision cannot be read.
    pub fn of(decisions: &[RetryRow]) -> Result<Self, AppError> {
        let mut taken = Self::default();
        for decision in decisions {
            taken.take(&Changes::of(decision)?);
        }
        Ok(taken)
    }

    /// Takes what the newest decision changes; once more changes nothing.
    pub fn take(&mut self, changes: &Changes) {
        self.0.extend(changes.plan_reason.zip(changes.plan_index));
        self.0.dedup();
    }

    /// The values of what is in force, as the run file has them: those of stored decisions are without secrets, and would be
    /// launched as `[redacted:…]`.
    pub fn values(&self, mut in_force: PlanEntry, retry: &RetrySection) -> PlanEntry {
        for (reason, index) in &self.0 {
            let entry = retry.rules.get(reason.as_str()).and_then(|rule| rule.plan.get(*index));
            for (name, value) in entry.into_iter().flat_map(|entry| &entry.set) {
                if let Some(known) = in_force.set.get_mut(name) {
                    known.clone_from(value);
                }
            }
        }
        in_force
    }
}

impl Changes {
    /// The changes of a stored decision; none if it has none.
    pub fn of(retry: &RetryRow) -> Result<Self, AppError> {
        let Some(stored) = &retry.changes_json else { return Ok(Self::default()) };
        read_stored(stored, "retries.changes_json", || format!("attempt {}", retry.attempt_id))
    }
}

/// A roll back that was decided on, as `retries.changes_json` holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RollBackDecided {
    /// The request.
    pub asked: RollBackCause,
    /// Where to.
    pub back: Back,
}

/// The request; the first one of an attempt counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RollBackCause {
    pub at: Timestamp,
    /// By whom and for what.
    pub by: AskedBy,
    /// An explanation.
    pub why: String,
}

/// The requester of a rollback.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskedBy {
    /// A detector, which saw this.
    Detector {
        /// Which one.
        detector: Detector,
        /// Where.
        #[serde(flatten)]
        seen: FaultRange,
    },
    /// A user, with this reason.
    Person {
        /// The login, where it is known.
        name: Option<String>,
        /// At most to this step.
        to_step: Option<Step>,
        /// What to skip.
        skip: Option<BatchRange>,
    },
}

/// Where in an attempt something went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultRange {
    /// The step at which it began.
    pub first_step: Step,
    /// The step at which it was certain.
    pub step: Step,
    /// The batch of `first_step`, if the script reports it.
    pub first_batch: Option<u64>,
    /// The batch of `step`, if the script reports it.
    pub last_batch: Option<u64>,
}

impl RollBackCause {
    /// Writes the request down, durably, before the attempt is ended. A second one changes nothing.
    ///
    /// # Errors
    /// When the file cannot be written; the attempt must then not be ended for it.
    pub fn write(&self, attempt: &AttemptLayout) -> std::io::Result<()> {
        use std::io::Write as _;
        let path = attempt.roll_back_json();
        let bytes = serde_json::to_vec(self).map_err(std::io::Error::other)?;
        let (temporary, mut file) = TempFile::beside(&path)?;
        file.write_all(&bytes)?;
        file.sync_data()?;
        match temporary.persist_new(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    }

    /// The request of an attempt, if there is one.
    ///
    /// # Errors
    /// When the file exists and cannot be read.
    pub fn read(attempt: &AttemptLayout) -> Result<Option<Self>, AppError> {
        json_file::read_if_there(&attempt.roll_back_json())
    }

    pub(super) fn is_by_person(&self) -> bool {
        matches!(self.by, AskedBy::Person { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a value which the decisions hold without its secret is launched as the run file has it, by the
    /// entries that were taken, and that a decision which is taken twice counts once.
    #[test]
    fn values_are_those_of_the_run_file() {
        let text = "[run]\nname = \"r\"\ncommand = [\"true\"]\n[retry]\n\
            device_oom = { plan = [{ set = { URL = \"one\" } }, { set = { URL = \"two\" } }] }\n";
        let retry = trackway_formats::runfile::parse(text, "test.toml", &[]).unwrap().plan.retry;
        let value = |taken: &EntriesTaken| {
            let set = [("URL".to_owned(), "[redacted:url]".to_owned())].into();
            taken.values(PlanEntry { set, ..PlanEntry::default() }, &retry).set["URL"].clone()
        };
        let mut taken = EntriesTaken::default();
        assert_eq!(value(&taken), "[redacted:url]");
        for (plan_index, expected) in
            [(Some(0), "one"), (None, "one"), (Some(1), "two"), (Some(1), "two"), (None, "two")]
        {
            let plan_reason = plan_index.and(Some(TerminationReason::DeviceOom));
            taken.take(&Changes { plan_index, plan_reason, ..Changes::default() });
            assert_eq!(value(&taken), expected, "{plan_index:?}");
        }
        assert_eq!(taken.0.len(), 2);
    }
}
