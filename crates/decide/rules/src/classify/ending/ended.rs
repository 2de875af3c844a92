//! How a log ends: with the work's own statement that it reached its end, or with a failure.

use trackway_core::{Confidence, TerminationReason as Reason};

use super::logged;
use super::near_end::{
    AFTERWORD_LINES, NEAR_END_LINES, ends_in_bar, ends_in_traceback, falls_short, is_end_of, is_stated,
};
use super::outlived::AT_ONCE_MICROS;
use super::work::{Failure, Origin, Work};
use crate::classify::evidence::{Stream, TerminationEvidence as Evidence};
use crate::classify::finding::{EvidenceItem, EvidenceSource, TerminationFinding as Finding};
use crate::classify::placed::{PlacedHit, frame_item};
use crate::classify::rule::FactRule;
use crate::scan::Handling;
use crate::signatures::{Role, code, collective, completion, early_stop};

/// A script's own word for its end does not count this close after a failure.
const LOOSE_REACH_LINES: u64 = 30;

/// The last statement that the work reached its end, if it is the last word of the log.
pub(crate) fn stated(placed: &[PlacedHit<'_>], evidence: &Evidence) -> Option<Finding> {
    let is_statement = |found: &&PlacedHit<'_>| {
        found.role == Role::Completion
            && found.is_open()
            && (found.signature != completion::BARE_WORD || closes(found, evidence))
    };
    let last = placed.iter().rfind(is_statement)?;
    // A script's own words for it may speak of one of its parts.
    let on_its_line = placed.iter().filter(is_statement).filter(|found| found.is_on_line_of(last));
    let last = on_its_line.min_by_key(|found| is_loose(found)).unwrap_or(last);
    if placed.iter().any(|other| speaks_against(other, last)) {
        return None;
    }
    let is_loose = is_loose(last);
    let confidence = if is_loose { Confidence::Guess } else { Confidence::Likely };
    Some(last.finding(confidence))
}

/// Whether `other` failed after the statement, or was an end of another kind before it. Across streams nothing is known of before and
/// after.
fn speaks_against(other: &PlacedHit<'_>, statement: &PlacedHit<'_>) -> bool {
    let is_failure = other.is_failure() && other.is_open();
    let reach = if is_loose(statement) { LOOSE_REACH_LINES } else { 0 };
    let was_survived = other.stream == statement.stream
        && other.order < statement.order
        && statement.line_number - other.line_number >= reach;
    is_failure && !(was_survived && can_be_survived(other))
}

/// Whether the statement is a script's own words, which wrappers print after failures too.
fn is_loose(statement: &PlacedHit<'_>) -> bool {
    matches!(statement.signature, completion::STATED | completion::BARE_WORD)
}

/// Whether the stream ends with this line, a line or two aside, after results of the work.
fn closes(found: &PlacedHit<'_>, evidence: &Evidence) -> bool {
    evidence.logs.iter().filter(|log| Some(log.stream) == found.stream).any(|log| {
        let is_last = found.line_number + AFTERWORD_LINES > log.log.line_count;
        is_last && log.log.ending.has_results
    })
}

/// The last count of epochs or steps that is complete, if nothing in the logs failed.
pub(crate) fn counted(placed: &[PlacedHit<'_>], evidence: &Evidence) -> Option<Finding> {
    let is_plan =
        |found: &PlacedHit<'_>| found.signature == early_stop::COUNTER && !counter_is_full(&found.text);
    let is_hint = |found: &PlacedHit<'_>| found.role == Role::Hint && found.is_open() && !is_plan(found);
    let has_failure = placed.iter().any(|found| found.is_doubt() || is_hint(found));
    let ending =
        evidence.logs.iter().map(|log| (log.stream, &log.log.ending)).find(|(_, end)| end.complete_at > 0);
    let (stream, ending) = ending.filter(|_| !has_failure)?;
    let mut finding = Finding::new(Reason::Completed, FactRule::CountComplete, Confidence::Guess);
    finding.items.push(line_item(stream, ending.complete_at, &ending.complete_text));
    Some(finding)
}

/// Whether "counter: 10 out of 10" has reached its limit.
pub(crate) fn counter_is_full(text: &str) -> bool {
    let Some((_, counter)) = text.split_once("ounter") else { return false };
    let mut numbers = counter
        .split(|letter: char| !letter.is_ascii_digit())
        .filter(|part| !part.is_empty())
        .map(str::parse::<u64>);
    matches!((numbers.next(), numbers.next()), (Some(Ok(count)), Some(Ok(limit))) if count >= limit)
}

/// The training loss that was NaN or infinite in the last lines of a stream.
pub(crate) fn lost_loss(evidence: &Evidence) -> Option<Finding> {
    let lost = evidence.logs.iter().find(|log| log.log.ending.lost_losses > 0)?;
    let ending = &lost.log.ending;
    let confidence = if ending.lost_losses > 1 { Confidence::Likely } else { Confidence::Guess };
    let mut finding = Finding::new(Reason::NumericDivergence, FactRule::LastLossNotFinite, confidence);
    finding.items.push(line_item(lost.stream, ending.lost_at, &ending.lost_text));
    Some(finding)
}

/// The last line of standard error, if an exit code other than 0 followed and no progress: `sys.exit("no tokens")` prints its text there.
pub(crate) fn last_words(evidence: &Evidence) -> Option<Finding> {
    evidence.exit_code.filter(|code| *code != 0)?;
    let log = evidence.logs.iter().find(|log| log.stream == Stream::Stderr)?;
    let words = log.log.ending.last_words.as_ref()?;
    let said_at = words.written.at;
    let mut progress = evidence.logs.iter().flat_map(|log| &log.log.ending.progress);
    // What is read together with it may have been written before it.
    let was_followed = progress.any(|moment| {
        moment
            .at
            .zip(said_at)
            .is_some_and(|(at, said_at)| at.as_micros() - said_at.as_micros() > AT_ONCE_MICROS)
    });
    let mut finding = Finding::new(Reason::Unknown, FactRule::LastWords, Confidence::Guess);
    finding.items.push(line_item(log.stream, words.line_number, &words.text));
    (!was_followed).then_some(finding)
}

fn line_item(stream: Stream, line_number: u64, text: &str) -> EvidenceItem {
    let text = text.trim().to_owned();
    EvidenceItem { source: EvidenceSource::Log, line_number: Some(line_number), stream: Some(stream), text }
}

/// Whether something in the logs makes a normal end less than certain. A trainer's or platform's own statement of it settles everything
/// but what cannot be survived.
pub(crate) fn has_doubts(placed: &[PlacedHit<'_>], telling: &[PlacedHit<'_>], evidence: &Evidence) -> bool {
    let firm_end =
        placed.iter().rfind(|found| found.role == Role::Completion && found.is_open() && !is_loose(found));
    let counts = |found: &PlacedHit<'_>| match firm_end {
        Some(end) => !can_be_survived(found) || found.order > end.order || found.stream != end.stream,
        None => true,
    };
    // What no rule knows may be an end too.
    let has_words = firm_end.is_none() && evidence.logs.iter().any(|log| log.log.ending.speaks_of_stop);
    let is_unfinished =
        firm_end.is_none() && (falls_short(evidence) || ends_in_bar(evidence) || ends_in_traceback(evidence));
    has_words
        || is_unfinished
        || (firm_end.is_none() && (may_have_stopped(placed, evidence) || did_nothing(placed, evidence)))
        || placed.iter().any(|found| found.is_doubt() && counts(found))
        || telling.iter().any(|found| found.role == Role::Hint && counts(found))
}

/// Whether the work could stop before its last step, and neither words, a complete count nor a final result show that it did not.
fn may_have_stopped(placed: &[PlacedHit<'_>], evidence: &Evidence) -> bool {
    let is_end = |found: &PlacedHit<'_>| found.role == Role::Completion && found.is_open();
    placed.iter().any(|found| found.signature == early_stop::COUNTER)
        && !placed.iter().any(is_end)
        && !evidence.progress.reached_last_step
        && !Work::of(evidence).is_done(Origin::Thrown)
}

/// Whether nothing is printed of the work but errors that were dealt with.
fn did_nothing(placed: &[PlacedHit<'_>], evidence: &Evidence) -> bool {
    placed.iter().any(|found| found.is_failure() && found.handling == Handling::Handled)
        && !logged::shows_work(evidence)
}

/// A stop that was not the end of the plan, near the end of its stream and without a statement of a normal end after it. Scripts exit with
/// code 0 after it too.
pub(crate) fn stopped(placed: &[PlacedHit<'_>], evidence: &Evidence) -> Option<Finding> {
    let last = placed.iter().find(|found| is_stop(found) && found.is_within(evidence, NEAR_END_LINES))?;
    let is_ended_well = placed.iter().any(|other| {
        other.role == Role::Completion
            && other.is_open()
            && other.stream == last.stream
            && other.order > last.order
    });
    if is_ended_well {
        return None;
    }
    Some(last.finding(Confidence::Likely))
}

fn is_stop(found: &PlacedHit<'_>) -> bool {
    let speaks_of_stop = says_stop(&found.text);
    let is_open = found.is_open() || (found.handling == Handling::Warned && speaks_of_stop);
    is_open
        && match (found.reason, found.role) {
            (Reason::Cancelled | Reason::Preempted, Role::Verdict | Role::Cause)
            | (Reason::BudgetExhausted, Role::Verdict) => true,
            (Reason::Timeout, Role::Verdict) => !is_own_plan(&found.text),
            (Reason::NumericDivergence, Role::Cause) => speaks_of_stop,
            _ => false,
        }
}

/// Whether the limit is a search's own budget of time and not that of its job.
fn is_own_plan(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    lower.contains("budget") && !["wall", "remain"].iter().any(|word| lower.contains(word))
}

/// A SIGTERM that the script, or its trainer, wrote down as received near the end of a stream, where nothing states
/// that the work reached its end. Trainers exit with code 0 after it.
pub(crate) fn took_sigterm(placed: &[PlacedHit<'_>], evidence: &Evidence) -> Option<Finding> {
    let is_complete =
        is_counted(evidence) || placed.iter().any(|found| found.role == Role::Completion && found.is_open());
    let is_receipt = |found: &&PlacedHit<'_>| {
        found.signature == code::KILLED
            && says_received_sigterm(&found.text)
            && found.is_within(evidence, NEAR_END_LINES)
    };
    let last = placed.iter().rfind(is_receipt).filter(|_| !is_complete)?;
    let (reason, rule, confidence) = match evidence.sigterm_preempts {
        true => (Reason::Preempted, FactRule::SigtermPreempts, Confidence::Likely),
        false => (Reason::Unknown, FactRule::KilledFromOutside, Confidence::Guess),
    };
    let finding = Finding::new(reason, rule, confidence);
    Some(Finding { items: last.finding(confidence).items, ..finding })
}

fn says_received_sigterm(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let is_received = ["received", "caught", "got", "trapped"]
        .iter()
        .any(|verb| lower.split(|at: char| !at.is_ascii_alphanumeric()).any(|word| word == *verb));
    let is_sigterm = ["sigterm", "signal 15", "signal: 15", "15 death signal"];
    is_received && is_sigterm.iter().any(|name| lower.contains(name))
}

/// Whether the line speaks of an end and not only of what happened.
fn says_stop(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    ["stop", "abort", "exit", "terminat", "shut", "halt", "quit"].iter().any(|word| lower.contains(word))
}

/// Whether a run continues to its normal end after this: it can after an error, but not after a stop on purpose or a lost loss.
fn can_be_survived(other: &PlacedHit<'_>) -> bool {
    other.role != Role::Verdict
        && !matches!(
            other.reason,
            Reason::EarlyStopped | Reason::Cancelled | Reason::Timeout | Reason::NumericDivergence
        )
}

/// Whether a stream ends with the exception that ended the work, or with a launcher's report of a failed child, and nothing states a normal
/// end.
pub(crate) fn badly(placed: &[PlacedHit<'_>], evidence: &Evidence) -> bool {
    if is_stated(placed, evidence) {
        return false;
    }
    let work = Work::of(evidence);
    placed.iter().filter(|found| found.is_open()).any(|found| {
        let is_report = matches!(found.signature, collective::RANK_FAILED | collective::FIRST_FAILED);
        let has_failed = || Failure::of(found, placed, evidence).is_some_and(|it| work.was_ended_by(it));
        (is_report && !is_counted(evidence) && found.is_within(evidence, AFTERWORD_LINES)) || has_failed()
    })
}

/// Whether the count of the work is complete, and its stream speaks of no failure after it.
fn is_counted(evidence: &Evidence) -> bool {
    evidence.logs.iter().any(|log| log.log.ending.complete_at > 0)
}

/// The exception of the last traceback of a stream, with the frame that raised it, where nothing shows whether it was handled.
pub(crate) fn unsettled(placed: &[PlacedHit<'_>], evidence: &Evidence) -> Option<Finding> {
    let (found, thrown) = evidence.logs.iter().find_map(|log| {
        let end = log.log.last_traceback.as_ref()?;
        let is_its = |found: &&PlacedHit<'_>| found.stream == Some(log.stream) && is_end_of(end, found);
        let found = placed.iter().filter(is_its).find(|found| found.is_open())?;
        Some((found, found.finding(Confidence::Guess)))
    })?;
    let frame = found.hit.raised_at.as_ref().map(|frame| frame_item(*found, frame));
    Some(Finding { items: thrown.items.into_iter().chain(frame).collect(), ..thrown })
}
