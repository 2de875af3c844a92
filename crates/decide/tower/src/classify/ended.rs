//! How a log ends: with the work's own statement that it reached its end, or with a failure.

use trackway_core::{Confidence, TerminationReason as Reason};

use super::evidence::TerminationEvidence;
use super::finding::TerminationFinding;
use super::placed::{Placed, item};
use crate::scan::Handling;
use crate::signatures::{Role, collective, completion};

/// Lines that may follow the last line of a failure.
const AFTERWORD_LINES: u64 = 3;
/// Lines that the message of an exception may have after its last frame.
const MESSAGE_LINES: u64 = 14;

/// The last statement that the work reached its end, if it is the last word of the log.
pub(super) fn stated(placed: &[Placed<'_>]) -> Option<TerminationFinding> {
    let is_statement =
        |found: &&Placed<'_>| found.hit.role == Role::Completion && found.hit.handling == Handling::Open;
    let last = placed.iter().rfind(is_statement)?;
    if placed.iter().any(|other| speaks_against(other, last)) {
        return None;
    }
    // A script's own words for it may speak of one of its parts.
    let on_its_line = placed
        .iter()
        .filter(is_statement)
        .filter(|found| found.stream == last.stream && found.hit.line_number == last.hit.line_number);
    let last = on_its_line.min_by_key(|found| found.hit.signature == completion::STATED).unwrap_or(last);
    let is_loose = last.hit.signature == completion::STATED;
    let confidence = if is_loose { Confidence::Guess } else { Confidence::Likely };
    let mut finding = TerminationFinding::new(Reason::Completed, last.hit.signature, confidence);
    finding.items.push(item(*last));
    Some(finding)
}

/// Whether `other` failed after the statement, or was an end of another kind before it. Across streams nothing is known of before and
/// after.
fn speaks_against(other: &Placed<'_>, statement: &Placed<'_>) -> bool {
    let is_failure =
        matches!(other.hit.role, Role::Verdict | Role::Cause | Role::Exception | Role::Consequence)
            && other.hit.handling == Handling::Open;
    let was_survived = other.stream == statement.stream && other.order < statement.order;
    is_failure && !(was_survived && can_be_survived(other))
}

/// Whether a run continues to its normal end after this: it can after an error, but not after a stop on purpose or a lost loss.
fn can_be_survived(other: &Placed<'_>) -> bool {
    other.hit.role != Role::Verdict
        && !matches!(
            other.hit.reason,
            Reason::EarlyStopped | Reason::Cancelled | Reason::Timeout | Reason::NumericDivergence
        )
}

/// Whether a stream ends with the exception that ended the main program, or with a launcher's report of a failed child, and
/// nothing states a normal end.
pub(super) fn badly(placed: &[Placed<'_>], evidence: &TerminationEvidence) -> bool {
    if placed.iter().any(|found| found.hit.role == Role::Completion) {
        return false;
    }
    evidence.logs.iter().any(|stream| {
        let traceback = stream.log.last_traceback.as_ref().filter(|end| !end.is_aside);
        placed.iter().filter(|found| found.stream == Some(stream.stream)).any(|found| {
            let is_last = found.hit.line_number + AFTERWORD_LINES > stream.log.line_count;
            let was_thrown = matches!(found.hit.role, Role::Cause | Role::Exception)
                && traceback.is_some_and(|end| {
                    end.line_number < found.hit.line_number
                        && found.hit.line_number <= end.line_number + MESSAGE_LINES
                });
            let is_report = found.hit.signature == collective::RANK_FAILED;
            is_last && found.hit.handling == Handling::Open && (was_thrown || is_report)
        })
    })
}
