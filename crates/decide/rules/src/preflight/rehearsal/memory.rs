//! A rehearsal that runs out of memory is tried again with the entries of the retry plan, as the run itself would be.

use trackway_core::Confidence::Certain;
use trackway_core::TerminationReason as Reason;

use super::{Cause, Diagnosis, RehearsalEvidence, Weight};
use crate::decide::{PlanEntry, RetryPolicy};

/// An entry of a retry plan with which a rehearsal was launched again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriedEntry {
    /// `device_oom` or `host_oom`: how the launch before ended.
    pub reason: Reason,
    /// The place in that reason's plan, from 0.
    pub index: usize,
    /// Entries of that plan.
    pub entries: usize,
    /// All that is changed, by earlier entries too.
    pub in_force: PlanEntry,
}

/// The next entry for a launch that ended like this; none for another end, without a plan, and once all are used.
#[must_use]
pub fn next_entry(policy: &RetryPolicy, reason: Reason, tried: &[TriedEntry]) -> Option<TriedEntry> {
    if !matches!(reason, Reason::DeviceOom | Reason::HostOom) {
        return None;
    }
    let plan = policy.plan(reason)?;
    let index = tried.iter().filter(|entry| entry.reason == reason).count();
    let mut in_force = tried.last().map(|entry| entry.in_force.clone()).unwrap_or_default();
    in_force.add(plan.get(index)?);
    Some(TriedEntry { reason, index, entries: plan.len(), in_force })
}

/// The launch fits only with an entry of the plan.
pub(super) fn fits_with_plan(evidence: &RehearsalEvidence) -> Option<Cause> {
    let (first, last) = (evidence.tried.first()?, evidence.tried.last()?);
    if !evidence.learned.ending.in_order {
        return None;
    }
    let message = format!(
        "out of memory as configured (`{}`); with entry {} of `[retry] {}` it fits: {}",
        first.reason,
        last.index + 1,
        last.reason,
        last.in_force
    );
    Some(Cause {
        diagnosis: Diagnosis::OutOfMemory,
        confidence: Certain,
        weight: Weight::Warns,
        message,
        action: "put these values into `[run] environment` and `[resources]`: otherwise each run begins with an attempt that fails",
    })
}

/// `, also with entry 2 of 2 of …`, for a launch that failed again.
pub(super) fn in_vain(tried: &[TriedEntry]) -> String {
    let Some(last) = tried.last() else { return String::new() };
    format!(", also with entry {} of {} of `[retry] {}`", last.index + 1, last.entries, last.reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, value: &str) -> PlanEntry {
        PlanEntry { set: [(name.to_owned(), value.to_owned())].into(), ..PlanEntry::default() }
    }

    /// Proves that entries come in order, add to those before, are counted for each reason, and end.
    #[test]
    fn entries_are_tried_in_order() {
        let policy = RetryPolicy {
            device_oom: vec![entry("BATCH", "16"), entry("CHECKPOINTING", "1")],
            host_oom: vec![entry("WORKERS", "0")],
            numeric_divergence: vec![entry("LR", "1e-4")],
            ..RetryPolicy::default()
        };
        let mut tried = Vec::new();
        for reason in [Reason::DeviceOom, Reason::HostOom, Reason::DeviceOom] {
            tried.push(next_entry(&policy, reason, &tried).unwrap());
        }
        let seen: Vec<(usize, usize, usize)> =
            tried.iter().map(|entry| (entry.index, entry.entries, entry.in_force.set.len())).collect();
        assert_eq!(seen, [(0, 2, 1), (0, 1, 2), (1, 2, 3)]);
        assert_eq!(tried[2].in_force.set["BATCH"], "16");
        assert_eq!(next_entry(&policy, Reason::DeviceOom, &tried), None);
        assert_eq!(next_entry(&policy, Reason::NumericDivergence, &[]), None);
        assert_eq!(next_entry(&RetryPolicy::default(), Reason::DeviceOom, &[]), None);
    }
}
