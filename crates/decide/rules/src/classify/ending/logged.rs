//! What an error means that the script logged in its last lines before exit code 0: a part it could do without, or the failure of its work.

use trackway_core::{Confidence, TerminationReason as Reason};

use super::log_lines::{
    RESULT, has_result, is_error_line, is_logged_error, lines_from, says_failure, says_work_failed,
};
use super::near_end::{AFTERWORD_LINES, MESSAGE_LINES, is_followed, is_stated};
use super::outlived::AT_ONCE_MICROS;
use super::work::{Count, Origin, Work};
use crate::classify::evidence::{StreamLog, TerminationEvidence as Evidence};
use crate::classify::finding::{EvidenceItem, EvidenceSource, TerminationFinding as Finding};
use crate::classify::placed::PlacedHit;
use crate::classify::rule::FactRule;
use crate::pattern::Pattern;
use crate::scan::{LogEvidence, Moment};
use crate::signatures::{Role, code};

/// Last lines of a stream, without empty ones, that are read whether or not a pattern knows them.
const LAST_WORDS: usize = 3;
/// Lines of progress after an error after which the training continued.
const PROGRESS_AFTER: usize = 2;

/// An error after which the script says that it leaves.
static LEAVES: Pattern = Pattern::new(r"[,;:.-] ?(?:aborting|exiting|stopping|quitting|terminating)\W*$");
/// What was done about an error.
static DONE_INSTEAD: Pattern = Pattern::made(|| {
    let words = "skip(?:ped|ping)|instead|ignor(?:ed|ing)|continu(?:ed|es|ing)|disabl(?:ed|ing)|fall(?:ing)? ?back|kept|offline|optional";
    format!(r"\b(?:{words})\b")
});

/// The failure of the work, if one of the errors is that.
pub(crate) fn gave_up(placed: &[PlacedHit<'_>], evidence: &Evidence) -> Option<Finding> {
    if is_stated(placed, evidence) {
        return None;
    }
    let work = Work::of(evidence);
    let is_of_work = |found: &&PlacedHit<'_>| is_of_work(found, work, placed, evidence);
    match errors(placed, evidence).find(is_of_work) {
        Some(found) => Some(found.finding(Confidence::Likely)),
        None => said_failed(placed, evidence),
    }
}

/// The failure of the work as the script says it and no pattern knows it: with the known failure just before them, if there is one.
fn said_failed(placed: &[PlacedHit<'_>], evidence: &Evidence) -> Option<Finding> {
    // A trainer speaks of its interruption by a signal too.
    if placed.iter().any(|found| found.signature == code::KILLED) {
        return None;
    }
    let said = said(evidence).into_iter().rfind(|said| said.is_failure && !said.has_result_after)?;
    let is_its = |found: &&PlacedHit<'_>| {
        found.stream == Some(said.stream.stream)
            && matches!(found.role, Role::Cause | Role::Verdict | Role::Exception)
            && !matches!(found.reason, Reason::EarlyStopped | Reason::Unknown)
            && found.is_doubt()
            && found.line_number <= said.line_number
            && said.line_number <= found.line_number + MESSAGE_LINES
    };
    if let Some(known) = placed.iter().rfind(is_its) {
        return Some(known.finding(Confidence::Likely));
    }
    let finding = Finding::new(Reason::Unknown, FactRule::LastWords, Confidence::Likely);
    Some(Finding { items: vec![said.item()], ..finding })
}

/// Exit code 0 with the last of the errors, unless something states a normal end.
pub(crate) fn outlasted(placed: &[PlacedHit<'_>], evidence: &Evidence) -> Option<Finding> {
    if is_stated(placed, evidence) {
        return None;
    }
    let items = match errors(placed, evidence).last() {
        Some(found) => found.finding(Confidence::Likely).items,
        None => vec![said(evidence).pop()?.item()],
    };
    let finding = Finding::new(Reason::Completed, FactRule::ExitZeroAfterError, Confidence::Likely);
    Some(Finding { items, ..finding })
}

/// Errors of the last lines that the script logged as such and that nothing took back.
fn errors<'p, 'a>(
    placed: &'p [PlacedHit<'a>],
    evidence: &'p Evidence,
) -> impl Iterator<Item = &'p PlacedHit<'a>> {
    placed.iter().filter(move |found| {
        matches!(found.role, Role::Cause | Role::Verdict | Role::Exception)
            && found.reason != Reason::EarlyStopped
            && found.is_doubt()
            && is_error_line(&found.text)
            && found.is_within(evidence, AFTERWORD_LINES)
    })
}

/// One of the last lines of a stream that the script logged as an error, or in which it says that its training failed.
struct LoggedError<'a> {
    stream: &'a StreamLog,
    line_number: u64,
    text: &'a str,
    is_failure: bool,
    has_result_after: bool,
}

impl LoggedError<'_> {
    fn item(&self) -> EvidenceItem {
        EvidenceItem {
            source: EvidenceSource::Log,
            line_number: Some(self.line_number),
            stream: Some(self.stream.stream),
            text: self.text.trim().to_owned(),
        }
    }
}

/// Such lines, whether or not a pattern knows them, without those after which the training continued.
fn said(evidence: &Evidence) -> Vec<LoggedError<'_>> {
    evidence.logs.iter().flat_map(|stream| said_in(stream, evidence)).collect()
}

fn said_in<'a>(stream: &'a StreamLog, evidence: &Evidence) -> Vec<LoggedError<'a>> {
    let (results, progress) = after_elsewhere(stream, evidence);
    let log = &stream.log;
    let first_kept = (log.line_count + 1).saturating_sub(log.last_lines.len() as u64);
    let numbered = (first_kept..).zip(log.last_lines.iter().map(String::as_str));
    let mut lines: Vec<_> = numbered.filter(|(_, line)| !line.trim().is_empty()).collect();
    let last = lines.split_off(lines.len().saturating_sub(LAST_WORDS));
    let of_line = |index: usize| {
        let (line_number, text) = last[index];
        let is_failure = says_failure(text);
        let after = last[index + 1..].iter().filter(|(_, line)| has_result(line)).count();
        let was_dealt_with = !is_failure && DONE_INSTEAD.is_match(text);
        let is_said = is_failure || (is_logged_error(text) && !was_dealt_with);
        let went_on = after >= PROGRESS_AFTER || progress >= PROGRESS_AFTER;
        let has_result_after = after > 0 || results;
        let said = LoggedError { stream, line_number, text, is_failure, has_result_after };
        (is_said && !went_on).then_some(said)
    };
    (0..last.len()).filter_map(of_line).collect()
}

/// Whether another stream has a result after the last line of this one, and how many lines of progress. What is read together may have been
/// written before.
fn after_elsewhere(stream: &StreamLog, evidence: &Evidence) -> (bool, usize) {
    let Some(last_at) = stream.log.ending.last_line.and_then(|last| last.at) else { return (false, 0) };
    let is_later =
        |moment: &&Moment| moment.at.is_some_and(|at| at.as_micros() - last_at.as_micros() > AT_ONCE_MICROS);
    let others = || evidence.logs.iter().filter(|log| log.stream != stream.stream);
    let has_result = others().any(|log| log.log.ending.last_result.as_ref().is_some_and(|it| is_later(&it)));
    (has_result, others().flat_map(|log| &log.log.ending.progress).filter(is_later).count())
}

/// Whether the work was not done: the script says that it failed, its count falls short, the machine failed with the last words, or there
/// are no words but of the error.
fn is_of_work(found: &PlacedHit<'_>, work: Work, placed: &[PlacedHit<'_>], evidence: &Evidence) -> bool {
    let Some(stream) = evidence.logs.iter().find(|log| Some(log.stream) == found.stream) else {
        return false;
    };
    let has_result_after =
        stream.log.ending.last_result.is_some_and(|result| result.byte_offset > found.byte_offset);
    let lines = || lines_from(&stream.log, found.line_number);
    if lines().any(says_work_failed) {
        return true;
    }
    // What a tracker or a hub refuses says nothing of the work.
    let is_soft = matches!(found.reason, Reason::NetworkError | Reason::Hang);
    if is_soft || work.is_done(Origin::Logged) {
        return false;
    }
    if work.count == Count::Short && !has_result_after {
        return true;
    }
    let is_last = || lines().all(is_error_line) && !is_followed(found, placed, evidence);
    let is_of_machine =
        || found.role == Role::Verdict || matches!(found.reason, Reason::DeviceOom | Reason::HostOom);
    lines().any(|line| LEAVES.is_match(line))
        || (is_last() && !DONE_INSTEAD.is_match(&found.text) && (is_of_machine() || !shows_work(evidence)))
}

/// Whether its stream has a result or a count of the work behind it.
pub(crate) fn is_followed_by_work(found: &PlacedHit<'_>, evidence: &Evidence) -> bool {
    let log = evidence.logs.iter().find(|log| Some(log.stream) == found.stream);
    let is_result = |line: &str| RESULT.is_match(line) && !line.contains("wandb");
    log.is_some_and(|log| lines_from(&log.log, found.line_number + 1).any(is_result))
}

/// Whether the attempt printed or recorded anything of its work, as far as its last lines show.
pub(crate) fn shows_work(evidence: &Evidence) -> bool {
    let has_bar = |log: &LogEvidence| log.last_lines.iter().any(|line| line.contains("%|"));
    evidence.progress.last_step.is_some()
        || evidence.logs.iter().any(|stream| {
            let ending = &stream.log.ending;
            ending.has_results || !ending.progress.is_empty() || has_bar(&stream.log)
        })
}
