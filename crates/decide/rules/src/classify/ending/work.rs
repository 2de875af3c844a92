//! How far the work came, as the output shows it, and whether a failure at the end of the output ended it. It decides
//! where the script ended with exit code 0.

use std::collections::{BTreeMap, BTreeSet};

use super::log_lines;
use super::near_end::{AFTERWORD_LINES, NEAR_END_LINES, is_end_of, is_followed};
use super::outlived::AT_ONCE_MICROS;
use crate::classify::evidence::{StreamLog, TerminationEvidence as Evidence};
use crate::classify::placed::PlacedHit;
use crate::pattern::Pattern;
use crate::scan::{self, LogEvidence, Moment, Phase};

/// The header of a traceback.
const TRACEBACK: &str = "Traceback (most recent call last)";

/// A number of epochs or steps.
static NUMBERED: Pattern = Pattern::new(r"\b(epoch|step|iter|update|round)(?:ation)?s?\W{0,3}(\d+)");
/// A score or a loss with its number.
static SCORE: Pattern = Pattern::made(|| {
    let names =
        "loss|acc|accuracy|auc|rmse|mae|mse|f1|score|reward|perplexity|ppl|bleu|wer|map|precision|recall";
    format!(r"\b\w{{0,12}}(?:{names})(?:\b|_|\d)[^\n]{{0,60}}?[:= ]\s*[+-]?\d")
});
/// What the number is of.
static KINDS: [(FinalResult, Pattern); 3] = [
    (FinalResult::Final, Pattern::new("(?:^|[^a-z])(?:final|overall)(?:[^a-z]|$)")),
    (FinalResult::Test, Pattern::new("(?:^|[^a-z])(?:test|testing|held[-_ ]?out)(?:[^a-z]|$)")),
    (FinalResult::Evaluation, Pattern::new("(?:^|[^a-z])(?:eval|evaluation)(?:[^a-z]|$)")),
];
/// What has a number of one of several parts of the work.
static OF_A_PART: Pattern = Pattern::made(|| {
    let parts = "epoch|step|iter|iteration|update|round|fold|trial|batch|seed|split|run";
    format!(r"\b(?:{parts})s?\W{{0,3}}\d")
});
/// A frame, its code or the exception of a traceback.
static OF_A_TRACEBACK: Pattern =
    Pattern::exact(r#"^(?:    |\s*File "|Traceback |[\w.]*(?:Error|Exception)\b)"#);
/// What joins two tracebacks of one chain, or of a worker and of the main program.
static CHAIN: Pattern =
    Pattern::exact(r"another exception occurred:|direct cause of the following exception|\bCaught \w+ in ");
/// What is left of the work, written to a file.
static SAVED: Pattern = Pattern::made(|| {
    let kept = "model|weights|checkpoint|predictions|results";
    format!(
        r"\b(?:{kept})\b.*\b(?:saved|written|exported)\b|\b(?:saved?|saving|wrote|exported)\b.*\b(?:{kept})\b"
    )
});

/// How far the count of epochs or steps came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    /// To its total, with the result.
    Complete,
    /// It ends far from its total.
    Short,
    /// It has no total, or is near it.
    Unknown,
}

/// A result that is printed once, after the last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FinalResult {
    /// It is called final.
    Final,
    Test,
    /// Of an evaluation, which may be one of several.
    Evaluation,
}

/// How a failure was printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// By a logger of the script, which continued.
    Logged,
    /// By the script, or by the interpreter as it ended.
    Thrown,
    /// By a thread or a child process that ended, beside the main program.
    Beside,
}

/// A failure at the end of the output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failure {
    pub(crate) origin: Origin,
    /// Whether the script says with it that its training failed.
    pub(crate) names_work: bool,
    /// Whether something of the work is printed after it.
    pub(crate) is_followed: bool,
}

/// What the output shows of the work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    pub(crate) count: Count,
    pub(crate) result: Option<FinalResult>,
}

impl Work {
    pub(crate) fn of(evidence: &Evidence) -> Self {
        let lines: Vec<_> = evidence.logs.iter().map(|stream| (stream, stream.log.lines_of_work())).collect();
        let count = if lines.iter().any(|(_, lines)| scan::falls_short(lines)) {
            Count::Short
        } else if lines.iter().any(|(_, lines)| scan::is_counted(lines)) {
            Count::Complete
        } else {
            Count::Unknown
        };
        Self { count, result: final_result(&lines) }
    }

    /// Whether the work was done before a failure of this origin.
    pub(crate) fn is_done(self, origin: Origin) -> bool {
        let is_logged = origin == Origin::Logged;
        let is_unknown = self.count == Count::Unknown;
        let is_final = match self.result {
            Some(FinalResult::Final) => true,
            Some(FinalResult::Test) => is_unknown || is_logged,
            Some(FinalResult::Evaluation) => is_unknown && is_logged,
            None => false,
        };
        self.count == Count::Complete || is_final
    }

    /// Whether the failure ended the work. The main program continues after a thread or a child has failed, so that
    /// only a count that falls short shows that the work was theirs.
    pub(crate) fn was_ended_by(self, failure: Failure) -> bool {
        let may_be = failure.origin != Origin::Beside || self.count == Count::Short;
        failure.names_work || (may_be && !failure.is_followed && !self.is_done(failure.origin))
    }
}

impl Failure {
    /// The failure that the line is of, if a traceback at the end of its stream ends with it.
    pub(crate) fn of(found: &PlacedHit<'_>, placed: &[PlacedHit<'_>], evidence: &Evidence) -> Option<Self> {
        let stream = evidence.logs.iter().find(|log| Some(log.stream) == found.stream)?;
        let traceback = stream.log.last_traceback.as_ref().filter(|end| is_end_of(end, found))?;
        if traceback.is_aside {
            let is_work = is_in_code_of_the_user(found) && found.is_within(evidence, NEAR_END_LINES);
            let is_followed = has_work_after(found, stream) || has_work_elsewhere(found, evidence);
            return is_work.then_some(Self { origin: Origin::Beside, names_work: false, is_followed });
        }
        let logged = logged_above(found, &stream.log);
        let is_followed = is_followed(found, placed, evidence)
            || has_work_after(found, stream)
            || log_lines::lines_from(&stream.log, found.line_number + 1).any(|line| SAVED.is_match(line));
        found.is_within(evidence, AFTERWORD_LINES).then(|| Self {
            origin: if logged.is_some() { Origin::Logged } else { Origin::Thrown },
            names_work: logged.is_some_and(log_lines::says_failure),
            is_followed,
        })
    }
}

/// Whether a thread or a child of the user failed, and not one of a library, such as a loader's that lost the main program.
fn is_in_code_of_the_user(found: &PlacedHit<'_>) -> bool {
    found.raised_at.is_some() && !found.phases.contains(&Phase::LocalPeer)
}

/// Whether a result or a count of the work is printed after it in its stream.
fn has_work_after(found: &PlacedHit<'_>, stream: &StreamLog) -> bool {
    log_lines::lines_from(&stream.log, found.line_number + 1).any(log_lines::is_result)
}

/// The same of the other streams, by the clock. What is read together may have been written before.
fn has_work_elsewhere(found: &PlacedHit<'_>, evidence: &Evidence) -> bool {
    let is_later = |moment: &Moment| {
        moment.at.zip(found.at).is_some_and(|(at, found)| at.as_micros() - found.as_micros() > AT_ONCE_MICROS)
    };
    let mut others = evidence.logs.iter().filter(|log| Some(log.stream) != found.stream);
    others.any(|log| log.log.ending.progress.iter().chain(&log.log.ending.last_result).any(is_later))
}

/// The line that a logger wrote just before the traceback, or before the first one of its chain, that ends with this.
fn logged_above<'a>(found: &PlacedHit<'_>, log: &'a LogEvidence) -> Option<&'a str> {
    let first_kept = (log.line_count + 1).saturating_sub(log.last_lines.len() as u64);
    let above = usize::try_from(found.line_number.saturating_sub(first_kept)).unwrap_or(0);
    let lines: Vec<&str> = log.last_lines[..above.min(log.last_lines.len())]
        .iter()
        .map(String::as_str)
        .filter(|line| !line.trim().is_empty())
        .collect();
    let headers = (1..lines.len()).rev().filter(|index| lines[*index].contains(TRACEBACK));
    let before = headers.map(|index| lines[index - 1]).find(|line| !CHAIN.is_match(line))?;
    log_lines::is_logged_line(before).then_some(before)
}

/// A line with a result, of which the letters show whether it is printed again.
struct Printed<'a> {
    stream: &'a StreamLog,
    index: usize,
    result: FinalResult,
    letters: String,
}

/// The most certain result that is printed once and after the last step. Where one number of an epoch or a step is all
/// that is visible, it may be of the first of several tests.
fn final_result(streams: &[(&StreamLog, Vec<&str>)]) -> Option<FinalResult> {
    let printed: Vec<_> = streams.iter().flat_map(|(stream, lines)| results(stream, lines)).collect();
    let is_repeated = repeats(streams.iter().flat_map(|(_, lines)| lines));
    let is_last = |one: &&Printed<'_>| {
        let is_once = printed.iter().filter(|other| other.letters == one.letters).count() == 1;
        let in_its_stream = streams.iter().filter(|(stream, _)| stream.stream == one.stream.stream);
        let mut after = in_its_stream.flat_map(|(_, lines)| &lines[one.index + 1..]);
        is_once
            && (one.result == FinalResult::Final || is_repeated)
            && !after.any(|line| is_numbered(line))
            && !streams.iter().any(|(other, _)| has_progress_after(other, one.stream))
    };
    printed.iter().filter(is_last).map(|one| one.result).min()
}

fn results<'a>(stream: &'a StreamLog, lines: &[&str]) -> Vec<Printed<'a>> {
    let of_line = |(index, line): (usize, &&str)| {
        let is_other = OF_A_TRACEBACK.is_match(line)
            || OF_A_PART.is_match(line)
            || log_lines::is_error_line(line)
            || line.contains("%|")
            || line.contains("wandb");
        if is_other || !SCORE.is_match(line) {
            return None;
        }
        let (result, _) = KINDS.iter().find(|(_, words)| words.is_match(line))?;
        let letters = line.chars().filter(|letter| letter.is_alphabetic()).collect::<String>().to_lowercase();
        Some(Printed { stream, index, result: *result, letters })
    };
    lines.iter().enumerate().filter_map(of_line).collect()
}

fn is_numbered(line: &str) -> bool {
    NUMBERED.is_match(line) && !OF_A_TRACEBACK.is_match(line)
}

/// Whether every word for a count is printed with more than one number.
fn repeats<'a>(lines: impl Iterator<Item = &'a &'a str>) -> bool {
    let mut numbers: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for line in lines.filter(|line| is_numbered(line)) {
        for found in NUMBERED.captures_iter(line) {
            let number = found.text(2).unwrap_or_default();
            numbers.entry(found.text(1).unwrap_or_default().to_ascii_lowercase()).or_default().insert(number);
        }
    }
    numbers.values().all(|numbers| numbers.len() > 1)
}

/// Whether the other stream has progress after the last result of this one, by the clock.
fn has_progress_after(other: &StreamLog, stream: &StreamLog) -> bool {
    let result_at = stream.log.ending.last_result.and_then(|result| result.at);
    let mut progress = other.log.ending.progress.iter().filter_map(|moment| moment.at);
    other.stream != stream.stream && progress.any(|at| result_at.is_some_and(|result_at| at > result_at))
}
