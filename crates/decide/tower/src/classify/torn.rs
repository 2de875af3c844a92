//! A traceback at the end of a log whose exception no rule reads: its line is missing, or its class is the script's own.

use std::sync::LazyLock;

use regex::Regex;
use trackway_core::{Confidence, TerminationReason as Reason};

use super::evidence::{StreamLog, TerminationEvidence};
use super::finding::{EvidenceItem, EvidenceSource, TerminationFinding};
use super::near_end::MESSAGE_LINES;
use super::rule::FactRule;
use crate::scan::{Handling, Hit, LogEvidence, Phase, TracebackEnd};
use crate::signatures::{Role, code};

/// A traceback without its end this far from the end of the log was not cut off.
const NEAR_END_LINES: u64 = 40;

/// How Python prints an exception of any class: `__main__.Stalled: no answer`.
static EXCEPTION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^([A-Za-z_]\w*\.)*[A-Z]\w*(: .*)?$").expect("a fixed pattern"));

/// Classes that are known by their first letters, where the log ends within their names.
const CLASSES: [(&str, Reason); 5] = [
    ("KeyboardInterrupt", Reason::Cancelled),
    ("OutOfMemoryError", Reason::DeviceOom),
    ("UnicodeDecodeError", Reason::DataError),
    ("UnidentifiedImageError", Reason::DataError),
    ("JSONDecodeError", Reason::DataError),
];
/// Fewer letters are the beginning of too many names.
const FIRST_LETTERS_MIN: usize = 6;

/// What the class says of which `text` is the beginning.
fn torn_class(text: &str) -> Option<Reason> {
    let letters = text.rsplit(['.', ' ']).next().filter(|letters| letters.len() >= FIRST_LETTERS_MIN)?;
    CLASSES.iter().find(|(class, _)| class.starts_with(letters)).map(|(_, reason)| *reason)
}

/// The last traceback of a stream, if the stream ends soon after it.
pub(super) fn at_the_end(log: &StreamLog) -> Option<&TracebackEnd> {
    let end = log.log.last_traceback.as_ref()?;
    let is_last = log.log.line_count.saturating_sub(end.line_number) <= NEAR_END_LINES;
    let ended = is_last && !end.phases.contains(&Phase::Finalizer) && !was_dealt_with(end, &log.log.hits);
    ended.then_some(end)
}

/// What the last of them says.
pub(super) fn reading(evidence: &TerminationEvidence) -> Option<TerminationFinding> {
    let (log, end) = evidence.logs.iter().filter_map(|log| Some((log, at_the_end(log)?))).next_back()?;
    if end.phases.contains(&Phase::Launcher) {
        return None;
    }
    let (line_number, text) =
        exception_after(end, &log.log).unwrap_or_else(|| (end.line_number, end.text.clone()));
    let reason = torn_class(&text).unwrap_or_else(|| reason_of(&end.phases));
    let mut finding = TerminationFinding::new(reason, FactRule::TornTraceback, Confidence::Guess);
    finding.items.push(EvidenceItem {
        source: EvidenceSource::Log,
        line_number: Some(line_number),
        stream: None,
        text,
    });
    Some(finding)
}

/// Whether the reading has the line of an exception, and not only a frame: stacks are printed of healthy processes too.
pub(super) fn names_an_exception(reading: &TerminationFinding) -> bool {
    reading.items.first().is_some_and(|item| EXCEPTION.is_match(&item.text))
}

/// Whether the run continued after it: after its header, or after the exception that it ends with.
fn was_dealt_with(end: &TracebackEnd, hits: &[Hit]) -> bool {
    let header =
        hits.iter().rfind(|hit| hit.signature == code::PYTHON_EXIT && hit.line_number <= end.line_number);
    let message = end.line_number + 1..=end.line_number + MESSAGE_LINES;
    let thrown = hits
        .iter()
        .find(|hit| matches!(hit.role, Role::Cause | Role::Exception) && message.contains(&hit.line_number));
    header.into_iter().chain(thrown).any(|hit| hit.handling == Handling::Handled)
}

/// The line behind the last frame and its code, with its number, if it is an exception.
fn exception_after(end: &TracebackEnd, log: &LogEvidence) -> Option<(u64, String)> {
    let first_kept = (log.line_count + 1).saturating_sub(log.last_lines.len() as u64);
    let mut behind = (first_kept..).zip(&log.last_lines).skip_while(|(number, _)| *number <= end.line_number);
    let (number, line) = behind.find(|(_, line)| !line.is_empty() && !line.starts_with(' '))?;
    EXCEPTION.is_match(line).then(|| (number, line.clone()))
}

fn reason_of(phases: &[Phase]) -> Reason {
    let is_of_checkpoints = Phase::are_of_checkpoints(phases);
    if phases.contains(&Phase::LookUp) || (phases.contains(&Phase::Decode) && !is_of_checkpoints) {
        Reason::DataError
    } else if phases.contains(&Phase::Evaluate) {
        Reason::EvaluatorError
    } else if is_of_checkpoints {
        Reason::CheckpointError
    } else if phases.contains(&Phase::CheckInput) {
        Reason::DataError
    } else if phases.contains(&Phase::SelectColumns) {
        Reason::SchemaDrift
    } else if phases.contains(&Phase::Request) {
        Reason::NetworkError
    } else {
        Reason::CodeError
    }
}
