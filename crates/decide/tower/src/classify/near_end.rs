//! What comes near the end of an output, and what follows a failure there.

use super::evidence::{StreamLog, TerminationEvidence};
use super::placed::Placed;
use crate::scan::{self, TracebackEnd};
use crate::signatures::{Role, completion};

/// A stop further from the end than this was followed by something else.
pub(super) const NEAR_END_LINES: u64 = 40;

/// Lines that may follow the last line of a failure.
pub(super) const AFTERWORD_LINES: u64 = 3;

/// Lines that the message of an exception may have after its last frame.
pub(super) const MESSAGE_LINES: u64 = 14;

/// Whether the count of the work ends far from its total.
pub(super) fn falls_short(evidence: &TerminationEvidence) -> bool {
    evidence.logs.iter().any(|log| scan::falls_short(&log.log.lines_of_work()))
}

/// Whether the traceback ends with this exception.
pub(super) fn is_end_of(traceback: &TracebackEnd, found: &Placed<'_>) -> bool {
    matches!(found.role, Role::Cause | Role::Exception)
        && traceback.line_number < found.line_number
        && found.line_number <= traceback.line_number + MESSAGE_LINES
}

/// Whether the other stream has something after it that is not of a failure. Progress that is read together with it may have been written before.
pub(super) fn is_followed(found: &Placed<'_>, placed: &[Placed<'_>], evidence: &TerminationEvidence) -> bool {
    let is_later = |log: &&StreamLog| {
        let last = log.log.ending.last_line.and_then(|last| last.at);
        Some(log.stream) != found.stream && last.zip(found.at).is_some_and(|(last, at)| last > at)
    };
    let is_doubted_word = |log: &StreamLog| {
        let closes = |word: &Placed<'_>| {
            word.signature == completion::BARE_WORD
                && word.stream == Some(log.stream)
                && word.line_number == log.log.line_count
        };
        falls_short(evidence) && placed.iter().any(closes)
    };
    let closes_well = |log: &StreamLog| {
        let last = log.log.last_lines.iter().rfind(|line| !line.trim().is_empty());
        let words = last.map(|line| line.to_ascii_lowercase()).unwrap_or_default();
        !log.log.ending.ends_with_progress()
            && !is_doubted_word(log)
            && !["fail", "error", "abort", "exit code", "exit status"].iter().any(|word| words.contains(word))
    };
    evidence.logs.iter().filter(is_later).any(closes_well)
}
