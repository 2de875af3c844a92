//! What comes near the end of an output, and what follows a failure there.

use trackway_core::TerminationReason as Reason;

use crate::classify::evidence::{StreamLog, TerminationEvidence as Evidence};
use crate::classify::placed::PlacedHit;
use crate::pattern::Pattern;
use crate::scan::{self, TracebackEnd};
use crate::signatures::{Role, completion};

/// A stop further from the end than this was followed by something else.
pub(crate) const NEAR_END_LINES: u64 = 40;

/// Lines that may follow the last line of a failure.
pub(super) const AFTERWORD_LINES: u64 = 3;

/// Lines that the message of an exception may have after its last frame.
pub(crate) const MESSAGE_LINES: u64 = 14;

/// Whether something states a normal end, or that more training would not have helped.
pub(super) fn is_stated(placed: &[PlacedHit<'_>], evidence: &Evidence) -> bool {
    let is_early = |found: &PlacedHit<'_>| {
        found.reason == Reason::EarlyStopped && found.role != Role::Hint && found.is_open()
    };
    has_stated_end(placed, evidence) || placed.iter().any(is_early)
}

/// Whether something states a normal end. A bare word for it, which a wrapper prints too, does not after a count that falls short.
fn has_stated_end(placed: &[PlacedHit<'_>], evidence: &Evidence) -> bool {
    let is_believed =
        |found: &PlacedHit<'_>| found.signature != completion::BARE_WORD || !falls_short(evidence);
    placed.iter().any(|found| found.role == Role::Completion && is_believed(found))
}

/// Whether the count of the work ends far from its total.
pub(crate) fn falls_short(evidence: &Evidence) -> bool {
    evidence.logs.iter().any(|log| scan::falls_short(&log.log.lines_of_work()))
}

/// How far a bar came, in percent.
static BAR: Pattern = Pattern::new(r"\b(\d{1,3})%\|");
/// A bar that came this far, in percent, may have been drawn before the end.
const NEARLY_ALL: u64 = 90;

/// Whether the last line of a stream is a bar of the work that is far from its end.
pub(super) fn ends_in_bar(evidence: &Evidence) -> bool {
    has_last_line(evidence, |line| {
        let last = BAR.captures_iter(line).last();
        last.and_then(|bar| bar.text(1)?.parse::<u64>().ok()).is_some_and(|percent| percent < NEARLY_ALL)
    })
}

/// What the first line of a traceback begins with, and what it ends with.
const TRACEBACK: [&str; 2] = ["Traceback (", "last):"];

/// Whether the last line of a stream is the beginning of the first line of a traceback: the log is cut there.
pub(super) fn ends_in_traceback(evidence: &Evidence) -> bool {
    let [begin, end] = TRACEBACK;
    has_last_line(evidence, |line| line.trim_start().starts_with(begin) && !line.contains(end))
}

/// Whether the last line of a stream that is not empty is like this.
fn has_last_line(evidence: &Evidence, is_like_this: impl Fn(&str) -> bool) -> bool {
    evidence.logs.iter().any(|log| {
        let mut lines = log.log.last_lines.iter();
        lines.rfind(|line| !line.trim().is_empty()).is_some_and(|line| is_like_this(line))
    })
}

/// Whether the traceback ends with this exception.
pub(super) fn is_end_of(traceback: &TracebackEnd, found: &PlacedHit<'_>) -> bool {
    matches!(found.role, Role::Cause | Role::Exception)
        && traceback.line_number < found.line_number
        && found.line_number <= traceback.line_number + MESSAGE_LINES
}

/// Whether the other stream has something after it that is not of a failure. Progress that is read together with it may
/// have been written before.
pub(crate) fn is_followed(found: &PlacedHit<'_>, placed: &[PlacedHit<'_>], evidence: &Evidence) -> bool {
    let is_later = |log: &&StreamLog| {
        let last = log.log.ending.last_line.and_then(|last| last.at);
        Some(log.stream) != found.stream && last.zip(found.at).is_some_and(|(last, at)| last > at)
    };
    let is_doubted_word = |log: &StreamLog| {
        let closes = |word: &PlacedHit<'_>| {
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
