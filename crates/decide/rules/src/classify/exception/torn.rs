//! A traceback at the end of a log whose exception no rule reads: its line is missing, or its class is the script's own.

use trackway_core::{Confidence, TerminationReason as Reason};

use super::by_name;
use super::innermost;
use super::lasting::is_code_type;
use super::sample;
use crate::classify::ending::near_end::MESSAGE_LINES;
use crate::classify::evidence::{StreamLog, TerminationEvidence as Evidence};
use crate::classify::finding::{EvidenceItem, EvidenceSource, TerminationFinding as Finding};
use crate::classify::rule::FactRule;
use crate::pattern::Pattern;
use crate::scan::{self, Handling, Hit, LogEvidence, LogScanner, Phase, TracebackEnd};
use crate::signatures::{Role, code, memory_host};

/// A traceback without its end this far from the end of the log was not cut off.
const NEAR_END_LINES: u64 = 40;

/// How Python prints an exception of any class: `__main__.Stalled: no answer`.
static EXCEPTION: Pattern = Pattern::exact(r"^([A-Za-z_]\w*\.)*[A-Z]\w*(: .*)?$");

/// A statement that raises an exception of a class, with its arguments as far as they are on its line.
static RAISE: Pattern = Pattern::exact(r"^raise ((?:\w+\.)*[A-Z]\w*)(?:\((.*))?$");

/// What points to the statement among the lines of code that Rich shows of a frame.
const MARK: char = '❱';
/// Lines below a frame in which its statement may be.
const STATEMENT_LINES: usize = 4;

/// Classes that are known by their first letters, where the log ends within their names.
const CLASSES: [(&str, Reason); 14] = [
    ("KeyboardInterrupt", Reason::Cancelled),
    ("OutOfMemoryError", Reason::DeviceOom),
    ("ResourceExhaustedError", Reason::DeviceOom),
    ("MemoryError", Reason::HostOom),
    ("FloatingPointError", Reason::NumericDivergence),
    ("UnicodeDecodeError", Reason::DataError),
    ("UnidentifiedImageError", Reason::DataError),
    ("JSONDecodeError", Reason::DataError),
    ("ParserError", Reason::DataError),
    ("BadZipFile", Reason::DataError),
    ("ConnectionError", Reason::NetworkError),
    ("ConnectionResetError", Reason::NetworkError),
    ("ConnectionRefusedError", Reason::NetworkError),
    ("MaxRetryError", Reason::NetworkError),
];
/// Fewer letters are the beginning of too many names.
const FIRST_LETTERS_MIN: usize = 5;
/// Modules of which every exception has one reason, as far as no other module begins with the same letters.
const MODULES: [(&str, Reason); 6] = [
    ("torch.distributed.elastic.r", Reason::NetworkError),
    ("requests.ex", Reason::NetworkError),
    ("urllib3.ex", Reason::NetworkError),
    ("http.client.", Reason::NetworkError),
    ("PIL.", Reason::DataError),
    ("json.dec", Reason::DataError),
];

/// What the class says of which `text` is the beginning.
fn torn_class(text: &str) -> Option<Reason> {
    if text.contains(": ") {
        return None; // the class is whole, and no rule knows it
    }
    let letters = text.rsplit('.').next().filter(|letters| letters.len() >= FIRST_LETTERS_MIN);
    let of_class = |letters: &str| {
        let found = CLASSES.iter().find(|(class, _)| class.starts_with(letters));
        found.map(|(_, reason)| *reason)
    };
    torn_module(text).or_else(|| letters.and_then(of_class))
}

/// What the module says with which `text` begins.
fn torn_module(text: &str) -> Option<Reason> {
    MODULES.iter().find(|(module, _)| text.starts_with(module)).map(|(_, reason)| *reason)
}

/// The line without the rank that printed it: `[rank3]: `.
fn without_rank(line: &str) -> &str {
    let behind = line.strip_prefix("[rank").and_then(|rest| rest.split_once("]:"));
    let of_rank = behind.filter(|(rank, _)| rank.bytes().all(|byte| byte.is_ascii_digit()));
    of_rank.map_or(line, |(_, text)| text.strip_prefix(' ').unwrap_or(text))
}

/// The last traceback of a stream, if the stream ends soon after it.
pub(crate) fn at_the_end(log: &StreamLog) -> Option<&TracebackEnd> {
    let end = log.log.last_traceback.as_ref()?;
    let is_last = log.log.line_count.saturating_sub(end.line_number) <= NEAR_END_LINES;
    let ended = is_last && !end.phases.contains(&Phase::Finalizer) && !was_dealt_with(end, &log.log.hits);
    ended.then_some(end)
}

/// What the last of them says.
pub(crate) fn reading(evidence: &Evidence) -> Option<Finding> {
    let (log, end) = evidence.logs.iter().filter_map(|log| Some((log, at_the_end(log)?))).next_back()?;
    // A launcher only reports its children, unless it has not met the others yet.
    let is_meeting = || innermost::firm(&statement(end, &log.log)) == Some(Reason::NetworkError);
    if end.phases.contains(&Phase::Launcher) && !is_meeting() {
        return None;
    }
    let exception = exception_after(end, &log.log);
    let reason = match reason_of(exception.as_ref().map(|(_, text)| without_rank(text)), end, &log.log) {
        Reason::CodeError if is_sample(exception.as_ref(), end, evidence) => Reason::DataError,
        Reason::CodeError if exception.is_none() => {
            innermost::loose(&statement(end, &log.log), sample::has_worked(evidence))
                .unwrap_or(Reason::CodeError)
        }
        reason => reason,
    };
    let (line_number, text) = exception.unwrap_or_else(|| (end.line_number, end.text.clone()));
    let mut finding = Finding::new(reason, FactRule::TornTraceback, Confidence::Guess);
    finding.items.push(EvidenceItem {
        source: EvidenceSource::Log,
        line_number: Some(line_number),
        stream: None,
        text,
    });
    Some(finding)
}

/// Whether the reading has the line of an exception, and not only a frame: stacks are printed of healthy processes too.
pub(crate) fn names_an_exception(reading: &Finding) -> bool {
    reading.items.first().is_some_and(|item| EXCEPTION.is_match(without_rank(&item.text)))
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

/// The kept lines with their numbers, from this one on.
fn numbered_lines(log: &LogEvidence, line_number: u64) -> impl Iterator<Item = (u64, &str)> {
    let first_kept = (log.line_count + 1).saturating_sub(log.last_lines.len() as u64);
    (first_kept..)
        .zip(log.last_lines.iter().map(String::as_str))
        .skip_while(move |(number, _)| *number < line_number)
}

/// The line behind the last frame and its code, with its number, if it is an exception or the log ends within the name of one.
fn exception_after(end: &TracebackEnd, log: &LogEvidence) -> Option<(u64, String)> {
    let is_behind = |line: &str| !line.is_empty() && !line.starts_with(' ');
    let (number, line) =
        numbered_lines(log, end.line_number + 1).find(|(_, line)| is_behind(without_rank(line)))?;
    let said = without_rank(line);
    let is_cut = number == log.line_count && torn_module(said).is_some();
    (is_cut || EXCEPTION.is_match(said)).then(|| (number, line.to_owned()))
}

/// What the beginning of the exception says, what the last statement does or raises, or what the frames were doing.
fn reason_of(exception: Option<&str>, end: &TracebackEnd, log: &LogEvidence) -> Reason {
    if let Some(reason) = exception.and_then(torn_class) {
        return reason;
    }
    let firm = || innermost::firm(&statement(end, log));
    match exception.is_none().then(firm).flatten() {
        // A loader that waits hears of the end of its workers there.
        Some(Reason::Cancelled) if end.phases.contains(&Phase::LoadSample) => return Reason::Unknown,
        Some(reason) => return reason,
        None => {}
    }
    match reason_of_phases(&end.phases) {
        Reason::CodeError if exception.is_none() => raised_last(end, log).unwrap_or(Reason::CodeError),
        reason => reason,
    }
}

/// The last frame with its statement: the line below it that a mark points to, or the first lines below it.
fn statement(end: &TracebackEnd, log: &LogEvidence) -> String {
    let below = || numbered_lines(log, end.line_number + 1).map(|(_, line)| without_rank(line));
    let is_own = |line: &&str| !line.trim().is_empty() && !EXCEPTION.is_match(line);
    let first =
        || below().take_while(is_own).take(STATEMENT_LINES).map(str::trim).collect::<Vec<_>>().join("\n");
    let marked = below().find(|line| line.contains(MARK)).map(str::to_owned);
    format!("{}\n{}", end.text, marked.unwrap_or_else(first))
}

/// What the last statement says that the log has, if it raises an exception.
fn raised_last(end: &TracebackEnd, log: &LogEvidence) -> Option<Reason> {
    let below = end.line_number + 1;
    let (_, code) = numbered_lines(log, below).next().filter(|(number, _)| *number == below)?;
    let statement = RAISE.captures(without_rank(code).trim())?;
    let (class, words) = (statement.text(1)?, statement.text(2).unwrap_or_default());
    let in_words = said_by(class, words);
    if scan::is_installed(end.text.as_bytes()) {
        return in_words;
    }
    // What a script says of the machine is not evidence of it: its class is, and what it says of its numbers.
    said_by(class, "").or(in_words.filter(|reason| *reason == Reason::NumericDivergence))
}

/// What an exception says, of which the message is known as far as the statement has it.
fn said_by(class: &str, words: &str) -> Option<Reason> {
    let exception = format!("{class}: {words}\n");
    if is_code_type(&exception) {
        return None;
    }
    let said = LogScanner::scan(exception.as_bytes());
    let is_telling = |hit: &&Hit| {
        let may_decide = match hit.role {
            Role::Cause | Role::Exception => hit.reason != Reason::CodeError,
            Role::Consequence => hit.reason == Reason::Hang || hit.signature == memory_host::LOADER_EXITED,
            _ => false,
        };
        may_decide && hit.handling == Handling::Open && !by_name::is_only_named(hit)
    };
    said.hits.iter().find(is_telling).map(|hit| hit.reason)
}

/// Whether one sample may have stopped the work.
fn is_sample(exception: Option<&(u64, String)>, end: &TracebackEnd, evidence: &Evidence) -> bool {
    exception.is_none_or(|(_, text)| sample::may_be_of_content(without_rank(text)))
        && sample::was_being_read(&end.phases, evidence)
}

fn reason_of_phases(phases: &[Phase]) -> Reason {
    let at = |phase| phases.iter().position(|other| *other == phase);
    // A file that is fetched for a checkpoint is not one yet.
    let is_fetching = at(Phase::Request) > at(Phase::SaveCheckpoint).max(at(Phase::LoadCheckpoint));
    let is_of_checkpoints = Phase::are_of_checkpoints(phases) && !is_fetching;
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
