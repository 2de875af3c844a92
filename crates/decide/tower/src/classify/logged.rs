//! What an error means that the script logged in its last lines before exit code 0: a part it could do without, or the failure of its work.

use std::sync::LazyLock;

use regex::Regex;
use trackway_core::{Confidence, TerminationReason as Reason};

use super::ended::{
    AFTERWORD_LINES, MESSAGE_LINES, falls_short, has_stated_end, is_counted, is_doubt, is_followed,
};
use super::evidence::{StreamLog, TerminationEvidence};
use super::finding::{EvidenceItem, EvidenceSource, TerminationFinding};
use super::outlived::AT_ONCE_MICROS;
use super::placed::Placed;
use super::rule::FactRule;
use crate::scan::{LogEvidence, Moment};
use crate::signatures::{Role, code};

/// Words at the beginning of a line among which its level is, after time, host and module.
const LEVEL_WORDS: usize = 16;
/// Last lines of a stream, without empty ones, that are read whether or not a pattern knows them.
const LAST_WORDS: usize = 3;
/// Lines of progress after an error after which the training continued.
const PROGRESS_AFTER: usize = 2;

/// Words for the end of the training itself, not of one of its parts.
static WORK_FAILED: LazyLock<Regex> = LazyLock::new(|| {
    let work = "(?:re-?|pre-?)?train(?:ing)?|fine-?tuning|fitting";
    let part = "(?: (?:run|job|loop|process|script))?";
    let failed = "failed|crashed|died|aborted|stopped|terminated|interrupted";
    let text = format!(
        r"(?i)\b(?:{work}){part} (?:has |was |is )?(?:{failed})\b|\b(?:failed to|cannot|could not|nothing to) train\b|\b(?:(?:error|failed|failure|exception) (?:in|during|while)|abort(?:ed|ing)?|stop(?:ped|ping)|terminating) (?:the )?(?:{work}){part}\s*(?:$|[:;,.(]|at\b|after\b)"
    );
    Regex::new(&text).expect("a fixed pattern")
});
/// What is written before such words that takes them back: "no training failed", "if training failed".
static NOT_SAID: LazyLock<Regex> = LazyLock::new(|| {
    let words = "no|not|never|none|without|if|when|whether|unless|in case|until|previous|earlier|last|old";
    Regex::new(&format!(r"(?i)(?:\b(?:{words}) (?:the |of |a |this )*|(?:^|\W )(?:0|zero) )$"))
        .expect("a fixed pattern")
});
/// The same behind them: "training failed: 0", "training failed to improve".
static NOT_MEANT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)^(?:\s*[:=]\s*(?:0|no|none|false)\s*$| (?:0|no|zero) times| to (?:improve|reach|beat|converge)| early\b)")
        .expect("a fixed pattern")
});
/// A line without a level that is nothing but the failure of the training.
static OWN_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)^\W*(?:the )?(?:model )?(?:re-?|pre-?)?(?:train(?:ing)?|fine-?tuning)(?: (?:run|job|loop|process|script))? (?:has |was |is )?(?:failed|crashed|died|aborted)\b")
        .expect("a fixed pattern")
});
/// The level of a line where a logger writes it, and what it logged: at its beginning, after a time, brackets, a key or the logger's name.
static LOGGED: LazyLock<Regex> = LazyLock::new(|| {
    let before = r#"\W*|.*\d:\d\d.{0,80}?\W|(?:[\[(<][^\])>]*[\])>]\W*)+|.{0,60}?[\w.]+(?: ?[-|:] )|.*(?i:level|levelname|severity)"?[=:]\W*"#;
    let level = r"(?:ERROR|FATAL|CRITICAL)";
    Regex::new(&format!(r"^(?:{before}){level}(?:[^\w=](?P<words>.*)|$)")).expect("a fixed pattern")
});
/// Two words one after the other, as a message has and a name or a number has not.
static MESSAGE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\p{L}{2,}['\x22`]?[,:]? [\x22'`(]?\p{L}").expect("a fixed pattern"));
/// What looks like the message of an error and is not: its rate, a count of none, columns of a table, a bar.
static NO_MESSAGE: LazyLock<Regex> = LazyLock::new(|| {
    let number = r"[+-]?\d[\d.e%+-]*\W*$";
    let names = "rates?|counts?|margins?|norms?|metrics?|summary|analysis|total|mean|average|std";
    let none = r"\b(?:0|no|zero) (?:\w+ )?(?:errors?|failures?|warnings?)\b";
    let columns = r"\w(?: {2,}|\t| +\| +)\w.*\w(?: {2,}|\t| +\| +)\w|^ {2,}\w.*\w {2,}\w";
    Regex::new(&format!(r"(?i)^\W*(?:{names})\b[^.\d]*{number}|{none}|{columns}|%\||\d ?(?:it/s|s/it)\b"))
        .expect("a fixed pattern")
});
/// A result of the work or its count.
static RESULT: LazyLock<Regex> = LazyLock::new(|| {
    let names = "loss|acc|accuracy|auc|rmse|mae|mse|f1|score|reward|perplexity|ppl|bleu|wer|map";
    Regex::new(&format!(r"(?i)\b\w{{0,12}}(?:{names})\w{{0,12}}\W{{1,4}}[+-]?\d|%\||^\W*(?:epoch|step|iter(?:ation)?)s?\W{{0,3}}\d"))
        .expect("a fixed pattern")
});
/// An error after which the script says that it leaves.
static LEAVES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)[,;:.-] ?(?:aborting|exiting|stopping|quitting|terminating)\W*$")
        .expect("a fixed pattern")
});
/// What was done about an error.
static DONE_INSTEAD: LazyLock<Regex> = LazyLock::new(|| {
    let words = "skip(?:ped|ping)|instead|ignor(?:ed|ing)|continu(?:ed|es|ing)|disabl(?:ed|ing)|fall(?:ing)? ?back|kept|offline|optional";
    Regex::new(&format!(r"(?i)\b(?:{words})\b")).expect("a fixed pattern")
});

/// The failure of the work, if one of the errors is that.
pub(super) fn gave_up(placed: &[Placed<'_>], evidence: &TerminationEvidence) -> Option<TerminationFinding> {
    let is_of_work = |found: &&Placed<'_>| is_of_work(found, placed, evidence);
    match errors(placed, evidence).find(is_of_work) {
        Some(found) => Some(found.finding(Confidence::Likely)),
        None => said_failed(placed, evidence),
    }
}

/// The failure of the work as the script says it and no pattern knows it: with the known failure just before them, if there is one.
fn said_failed(placed: &[Placed<'_>], evidence: &TerminationEvidence) -> Option<TerminationFinding> {
    // A trainer speaks of its interruption by a signal too.
    if placed.iter().any(|found| found.signature == code::KILLED) {
        return None;
    }
    let said = said(placed, evidence).into_iter().rfind(|said| said.is_failure && !said.has_result_after)?;
    let is_its = |found: &&Placed<'_>| {
        found.stream == Some(said.stream.stream)
            && matches!(found.role, Role::Cause | Role::Verdict | Role::Exception)
            && !matches!(found.reason, Reason::EarlyStopped | Reason::Unknown)
            && is_doubt(found)
            && found.line_number <= said.line_number
            && said.line_number <= found.line_number + MESSAGE_LINES
    };
    if let Some(known) = placed.iter().rfind(is_its) {
        return Some(known.finding(Confidence::Likely));
    }
    let finding = TerminationFinding::new(Reason::Unknown, FactRule::LastWords, Confidence::Likely);
    Some(TerminationFinding { items: vec![said.item()], ..finding })
}

/// Exit code 0 with the last of the errors.
pub(super) fn outlasted(placed: &[Placed<'_>], evidence: &TerminationEvidence) -> Option<TerminationFinding> {
    let items = match errors(placed, evidence).last() {
        Some(found) => found.finding(Confidence::Likely).items,
        None => vec![said(placed, evidence).pop()?.item()],
    };
    let finding =
        TerminationFinding::new(Reason::Completed, FactRule::ExitZeroAfterError, Confidence::Likely);
    Some(TerminationFinding { items, ..finding })
}

/// Errors of the last lines that the script logged as such and that nothing took back, unless the work stated its end or its count is
/// complete.
fn errors<'p, 'a>(
    placed: &'p [Placed<'a>],
    evidence: &'p TerminationEvidence,
) -> impl Iterator<Item = &'p Placed<'a>> {
    let is_complete = is_complete(placed, evidence);
    placed.iter().filter(move |found| {
        !is_complete
            && matches!(found.role, Role::Cause | Role::Verdict | Role::Exception)
            && found.reason != Reason::EarlyStopped
            && is_doubt(found)
            && is_error_line(&found.text)
            && found.is_within(evidence, AFTERWORD_LINES)
    })
}

fn is_complete(placed: &[Placed<'_>], evidence: &TerminationEvidence) -> bool {
    let is_early = |found: &Placed<'_>| found.reason == Reason::EarlyStopped && found.is_open();
    is_counted(evidence) || has_stated_end(placed, evidence) || placed.iter().any(is_early)
}

/// One of the last lines of a stream that the script logged as an error, or in which it says that its training failed.
struct Said<'a> {
    stream: &'a StreamLog,
    line_number: u64,
    text: &'a str,
    is_failure: bool,
    has_result_after: bool,
}

impl Said<'_> {
    fn item(&self) -> EvidenceItem {
        EvidenceItem {
            source: EvidenceSource::Log,
            line_number: Some(self.line_number),
            stream: Some(self.stream.stream),
            text: self.text.trim().to_owned(),
        }
    }
}

/// Such lines, whether or not a pattern knows them, without those after which the training continued; none if the work stated its end or its
/// count is complete.
fn said<'a>(placed: &[Placed<'_>], evidence: &'a TerminationEvidence) -> Vec<Said<'a>> {
    if is_complete(placed, evidence) {
        return Vec::new();
    }
    evidence.logs.iter().flat_map(|stream| said_in(stream, evidence)).collect()
}

fn said_in<'a>(stream: &'a StreamLog, evidence: &TerminationEvidence) -> Vec<Said<'a>> {
    let (results, progress) = after_elsewhere(stream, evidence);
    let log = &stream.log;
    let first_kept = (log.line_count + 1).saturating_sub(log.last_lines.len() as u64);
    let numbered = (first_kept..).zip(log.last_lines.iter().map(String::as_str));
    let mut lines: Vec<_> = numbered.filter(|(_, line)| !line.trim().is_empty()).collect();
    let last = lines.split_off(lines.len().saturating_sub(LAST_WORDS));
    let is_result = |line: &str| RESULT.is_match(line) && !is_logged_error(line);
    let of_line = |index: usize| {
        let (line_number, text) = last[index];
        let is_failure = says_failure(text);
        let after = last[index + 1..].iter().filter(|(_, line)| is_result(line)).count();
        let was_dealt_with = !is_failure && DONE_INSTEAD.is_match(text);
        let is_said = is_failure || (is_logged_error(text) && !was_dealt_with);
        let went_on = after >= PROGRESS_AFTER || progress >= PROGRESS_AFTER;
        let has_result_after = after > 0 || results;
        let said = Said { stream, line_number, text, is_failure, has_result_after };
        (is_said && !went_on).then_some(said)
    };
    (0..last.len()).filter_map(of_line).collect()
}

/// Whether another stream has a result after the last line of this one, and how many lines of progress. What is read together may have been
/// written before.
fn after_elsewhere(stream: &StreamLog, evidence: &TerminationEvidence) -> (bool, usize) {
    let Some(last_at) = stream.log.ending.last_line.and_then(|last| last.at) else {
        return (false, 0);
    };
    let is_later =
        |moment: &&Moment| moment.at.is_some_and(|at| at.as_micros() - last_at.as_micros() > AT_ONCE_MICROS);
    let others = || evidence.logs.iter().filter(|log| log.stream != stream.stream);
    let has_result = others().any(|log| log.log.ending.last_result.as_ref().is_some_and(|it| is_later(&it)));
    (has_result, others().flat_map(|log| &log.log.ending.progress).filter(is_later).count())
}

/// Whether the line says that the training failed: logged as an error, or with nothing before it.
fn says_failure(line: &str) -> bool {
    says_work_failed(line) && (OWN_WORDS.is_match(line) || is_logged_error(line))
}

/// Whether the line has words for the end of the training that the words around them do not take back.
fn says_work_failed(line: &str) -> bool {
    WORK_FAILED
        .find_iter(line)
        .any(|found| !NOT_SAID.is_match(&line[..found.start()]) && !NOT_MEANT.is_match(&line[found.end()..]))
}

/// Whether a logger wrote a message at the level of an error, and not a table or a metric the word.
fn is_logged_error(line: &str) -> bool {
    let words = || LOGGED.captures(line)?.name("words").map(|words| words.as_str());
    is_error_line(line)
        && words().is_some_and(|words| {
            (MESSAGE.is_match(words) || says_work_failed(words)) && !NO_MESSAGE.is_match(words)
        })
}

/// Whether a logger wrote the line at the level of an error.
fn is_error_line(text: &str) -> bool {
    ["ERROR", "FATAL", "CRITICAL"].iter().any(|level| {
        text.split(|letter: char| !letter.is_ascii_alphanumeric())
            .take(LEVEL_WORDS)
            .any(|word| word == *level)
    })
}

/// Whether the work was not done: the script says that it failed, its count falls short, the machine failed with the last words, or there
/// are no words but of the error.
fn is_of_work(found: &Placed<'_>, placed: &[Placed<'_>], evidence: &TerminationEvidence) -> bool {
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
    if is_soft {
        return false;
    }
    if falls_short(evidence) && !has_result_after {
        return true;
    }
    let is_last = || lines().all(is_error_line) && !is_followed(found, placed, evidence);
    let is_of_machine =
        || found.role == Role::Verdict || matches!(found.reason, Reason::DeviceOom | Reason::HostOom);
    lines().any(|line| LEAVES.is_match(line))
        || (is_last() && !DONE_INSTEAD.is_match(&found.text) && (is_of_machine() || !shows_work(evidence)))
}

/// The last lines that are not empty, from this one on.
fn lines_from(log: &LogEvidence, line_number: u64) -> impl Iterator<Item = &str> {
    let count = usize::try_from(log.line_count + 1 - line_number).unwrap_or(usize::MAX);
    let first = log.last_lines.len().saturating_sub(count);
    log.last_lines[first..].iter().map(String::as_str).filter(|line| !line.trim().is_empty())
}

/// Whether the attempt printed or recorded anything of its work, as far as its last lines show.
fn shows_work(evidence: &TerminationEvidence) -> bool {
    let has_bar = |log: &LogEvidence| log.last_lines.iter().any(|line| line.contains("%|"));
    evidence.progress.last_step.is_some()
        || evidence.logs.iter().any(|stream| {
            let ending = &stream.log.ending;
            ending.has_results || !ending.progress.is_empty() || has_bar(&stream.log)
        })
}
