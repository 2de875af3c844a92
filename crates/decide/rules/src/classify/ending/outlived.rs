//! Errors that the attempt outlived, by the clock: a script prints what it dealt with to one stream and its progress to
//! the other, and a recorder prints nothing. Within one stream the scanner sees it by itself.

use std::borrow::Cow;

use trackway_core::{TerminationReason as Reason, Timestamp};

use crate::classify::evidence::TerminationEvidence as Evidence;
use crate::scan::{Handling, Hit};
use crate::signatures::{Role, collective};

/// Progress so long after an error was made by a run that continued, not by a sibling that was about to be ended.
const CLEARLY_LATER_MICROS: i64 = 1_000_000;
/// What is closer together was written at once: a process that ends writes what it had kept back of its output.
pub(super) const AT_ONCE_MICROS: i64 = 50_000;
/// So many moments of progress count whenever they were.
const MANY_MOMENTS: usize = 5;
/// So many count if the last is clearly later.
const SOME_MOMENTS: usize = 2;

/// When the attempt made progress.
struct ProgressTimes {
    /// In order, one for all that was written at once.
    printed: Vec<Timestamp>,
    /// In order, one for all that was read at once, and the last result; of an attempt that ended well.
    ended_well: Vec<Timestamp>,
    recorded: Option<Timestamp>,
}

/// The evidence with the errors that were outlived marked as such.
pub(crate) fn settle(evidence: &Evidence) -> Cow<'_, Evidence> {
    let times = ProgressTimes::of(evidence);
    let was_outlived =
        |hit: &Hit| can_be_outlived(hit) && hit.at.is_some_and(|at| times.show_survival_of(at));
    let mut hits = evidence.logs.iter().flat_map(|log| &log.log.hits);
    if a_child_failed(evidence) || !hits.any(was_outlived) {
        return Cow::Borrowed(evidence);
    }
    let mut settled = evidence.clone();
    let hits = settled.logs.iter_mut().flat_map(|log| &mut log.log.hits);
    for hit in hits.filter(|hit| was_outlived(hit)) {
        hit.handling = Handling::Handled;
    }
    Cow::Owned(settled)
}

impl ProgressTimes {
    fn of(evidence: &Evidence) -> Self {
        let lines = evidence.logs.iter().flat_map(|log| &log.log.ending.progress);
        let mut printed: Vec<Timestamp> = lines.filter_map(|moment| moment.at).collect();
        printed.sort_unstable();
        printed.dedup();
        let results = evidence.logs.iter().filter_map(|log| log.log.ending.last_result?.at);
        let ended_well = match evidence.exit_code {
            Some(0) => printed.iter().copied().chain(results).collect(),
            _ => Vec::new(),
        };
        printed.dedup_by(|next, kept| next.as_micros() - kept.as_micros() < AT_ONCE_MICROS);
        Self { printed, ended_well, recorded: evidence.progress.last_step_at }
    }

    fn show_survival_of(&self, at: Timestamp) -> bool {
        let is_clear = |progress: Timestamp| progress.as_micros() - at.as_micros() > CLEARLY_LATER_MICROS;
        let later = self.printed.iter().filter(|printed| **printed > at).count();
        let last_is_clear = || self.printed.last().is_some_and(|last| is_clear(*last));
        self.continued_to_a_good_end(at)
            || later >= MANY_MOMENTS
            || (later >= SOME_MOMENTS && last_is_clear())
            || self.recorded.is_some_and(is_clear)
    }

    /// Whether work was done between it and exit code 0. What is read together first may have been written before it:
    /// only the next is surely later, or what comes after a while.
    fn continued_to_a_good_end(&self, at: Timestamp) -> bool {
        let mut later = self.ended_well.iter().filter(|done| **done > at);
        let is_apart = |done: &Timestamp| done.as_micros() - at.as_micros() > AT_ONCE_MICROS;
        let first = later.next();
        first.is_some_and(is_apart) || later.any(|done| Some(done) != first)
    }
}

/// Whether progress after it says that it was dealt with. It does not after a request to stop, which leaves time to
/// finish, nor after numbers that were lost, with which a script computes on; and of several processes another one may
/// have made it.
fn can_be_outlived(hit: &Hit) -> bool {
    let is_lasting = matches!(
        hit.reason,
        Reason::Cancelled
            | Reason::Preempted
            | Reason::Timeout
            | Reason::EarlyStopped
            | Reason::NumericDivergence
    );
    let is_thrown = match hit.role {
        Role::Cause | Role::Exception => true,
        Role::Hint => matches!(hit.reason, Reason::CodeError | Reason::DataError | Reason::CheckpointError),
        _ => false,
    };
    is_thrown && !is_lasting && !is_of_a_rank(&hit.text)
}

fn is_of_a_rank(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    lower.contains("[rank") || lower.starts_with("rank ")
}

/// Whether a launcher reports that one of several processes failed: the others may have continued for a while.
fn a_child_failed(evidence: &Evidence) -> bool {
    let mut hits = evidence.logs.iter().flat_map(|log| &log.log.hits);
    hits.any(|hit| matches!(hit.signature, collective::RANK_FAILED | collective::FIRST_FAILED))
}
