//! The meaning of the log, when its lines are read together.
//!
//! Lines are ranked by what they can be ([`Role`]) and whether the run continued after them ([`Handling`]). The
//! earliest open cause wins. A named mechanism (ENOSPC) wins over the exception of no family that carries it, but an
//! exception that comes before a *soft* mechanism (a connection lost, a collective stuck, a keyboard interrupt) wins
//! over it, because those are what the other ranks and the waiting user see.

use trackway_core::{Confidence, TerminationReason as Reason};

use super::allocation::is_absurd_allocation;
use super::ending::ended;
use super::ending::logged;
use super::evidence::{Stream, TerminationEvidence as Evidence};
use super::exception::by_hand;
use super::exception::by_name;
use super::exception::checkpoint_key;
use super::exception::lasting::{self, is_code_type};
use super::exception::sample;
use super::exception::torn;
use super::exit_code::ended_by_sigkill;
use super::failed_child;
use super::finding::{EvidenceItem, SecondaryFinding, TerminationFinding as Finding};
use super::hits::{
    SAME_ERROR_LINES, SAME_MESSAGE_LINES, announces, explains, is_announcement, is_bare_interrupt,
    is_cancellation, is_causal, is_crash, is_soft, reason_in_phase, says_aborted, says_sigkill, was_judges,
};
use super::placed::{PlacedHit, chained, frame_item, item};
use super::settings;
use crate::scan::{Handling, Hit, LogScanner, OwnFrame, Phase, TracebackEnd};
use crate::signatures::{Role, code, collective, early_stop, memory_host, network, numeric};

/// Evidence lines listed for one reason.
const MAX_ITEMS: usize = 4;
/// Lines between an exception and the line that joins another one to it.
const CHAINED_LINES: u64 = 3;
/// Skipped updates from which on they are no longer usual.
const OVERFLOWS_MIN: usize = 3;
/// Findings listed that did not decide.
const MAX_OTHERS: usize = 8;

/// The meaning of the log.
#[derive(Debug, Default)]
pub(super) struct LogReading {
    /// The cause it names.
    pub(super) cause: Option<Finding>,
    /// A reading too weak against a signal or an exit code.
    pub(super) weak: Option<Finding>,
    /// The last line of standard error, where nothing else says why the attempt ended.
    pub(super) last_words: Option<Finding>,
    /// The work's own statement that it reached its end, if nothing failed after it.
    pub(super) completion: Option<Finding>,
    /// A stop that was not the plan's end (a person, a limit, a lost loss, a logged failure), if nothing speaks of a normal end after it.
    pub(super) stopped: Option<Finding>,
    /// The training loss that was NaN or infinite in the last lines.
    pub(super) lost_loss: Option<Finding>,
    /// Whether something in the log was not dealt with, or is what only some healthy runs print.
    pub(super) has_doubts: bool,
    /// Whether a stream ends with the traceback of the main program or with a launcher's report of a failed child, and nothing states a
    /// normal end.
    pub(super) ends_badly: bool,
    /// A traceback of which nothing shows whether it was handled, with its frame.
    pub(super) traceback: Option<Finding>,
    /// Exit code 0 with an error that the script logged in its last lines.
    pub(super) logged_error: Option<Finding>,
    /// Everything else, earliest first.
    pub(super) others: Vec<SecondaryFinding>,
}

pub(super) fn read(evidence: &Evidence) -> LogReading {
    let error_file = evidence.error_file.as_ref().map(|file| {
        // The innermost frame is quoted before the message, as in a printed traceback.
        LogScanner::scan(format!("{}\n{}\n", file.traceback, file.message).as_bytes())
    });
    let mut placed = place(evidence, error_file.as_ref().map_or(&[], |log| &log.hits));
    drop_aftermath(&mut placed, evidence);
    by_hand::drop_words(&mut placed);
    by_name::drop_names(&mut placed);
    checkpoint_key::drop_others(&mut placed);
    let torn = torn::reading(evidence);
    let (unread, unended): (Option<_>, Option<_>) = match torn.clone() {
        Some(torn) if torn::names_an_exception(&torn) => (Some(torn), None),
        torn => (None, torn),
    };
    let cause = strongest(&placed, evidence);
    let failed_child = cause.and_then(|(found, _)| failed_child::instead_of(found, &placed));
    let telling: Vec<_> =
        placed.iter().copied().filter(|found| is_telling_hint(found, &placed, evidence)).collect();
    let weak = weak_reading(&telling, torn, evidence).filter(|_| failed_child.is_none());
    let deciding = cause.map(|(found, _)| found.order);
    let others = placed
        .iter()
        .filter(|found| Some(found.order) != deciding && found.reason != Reason::Unknown)
        .filter(|found| failed_child.is_none() || !is_siblings(found))
        .filter(|found| !matches!(found.role, Role::Hint | Role::Chain | Role::Completion))
        .map(|found| secondary(found))
        .take(MAX_OTHERS)
        .collect();
    let lost_loss = ended::lost_loss(evidence);
    let is_lost = lost_loss.as_ref().is_some_and(|lost| lost.confidence == Confidence::Likely)
        || telling.iter().any(|found| found.signature == numeric::OVERFLOW_SEEN);
    LogReading {
        cause: failed_child.or_else(|| {
            let (found, strength) = cause?;
            if let Some(thrown) = torn_after_interrupt(found, &placed, unended.as_ref()) {
                return Some(thrown);
            }
            let named = finding(found, strength, &placed, evidence);
            Some(if is_lost { unless_numbers_were_lost(named, found.hit, strength) } else { named })
        }),
        weak,
        last_words: ended::last_words(evidence),
        completion: ended::stated(&placed, evidence).or_else(|| ended::counted(&placed, evidence)),
        stopped: ended::stopped(&placed, evidence)
            .or_else(|| logged::gave_up(&placed, evidence))
            .or_else(|| ended::took_sigterm(&placed, evidence)),
        lost_loss,
        has_doubts: ended::has_doubts(&placed, &telling, evidence),
        ends_badly: ended::badly(&placed, evidence),
        traceback: ended::unsettled(&placed, evidence).or(unread),
        logged_error: logged::outlasted(&placed, evidence),
        others,
    }
}

/// Drops the lines in which ranks say that they lost their neighbours or waited for them, after Trackway had ended the attempt.
fn drop_aftermath(placed: &mut Vec<PlacedHit<'_>>, evidence: &Evidence) {
    let Some(ended_at) = evidence.own_actions.iter().map(|action| action.at).min() else { return };
    let is_later = |found: &&PlacedHit<'_>| is_siblings(found) && found.at.is_some_and(|at| at > ended_at);
    let lines: Vec<_> =
        placed.iter().filter(is_later).map(|found| (found.stream, found.line_number)).collect();
    placed.retain(|found| !lines.contains(&(found.stream, found.line_number)));
}

/// What the siblings of a child that failed print: that it is gone, and that they waited for it.
fn is_siblings(found: &PlacedHit<'_>) -> bool {
    failed_child::is_lost_neighbour(found)
        || (found.role == Role::Consequence && found.reason == Reason::Hang)
}

/// Whether a hint says something here: what happens now and then in healthy runs must be repeated, be complete, or be the last thing in the
/// log.
fn is_telling_hint(found: &PlacedHit<'_>, placed: &[PlacedHit<'_>], evidence: &Evidence) -> bool {
    if found.signature == early_stop::COUNTER {
        return ended::counter_is_full(&found.text);
    }
    if found.signature == network::WAITING {
        let end = evidence.logs.iter().find(|log| Some(log.stream) == found.stream);
        return end.is_some_and(|log| {
            placed.iter().any(|other| {
                other.signature == network::WAITING
                    && other.stream == found.stream
                    && other.line_number + SAME_MESSAGE_LINES >= log.log.line_count
            })
        });
    }
    if found.handling == Handling::Handled {
        return false;
    }
    if found.signature == code::PYTHON_EXIT {
        return evidence.logs.iter().any(|log| torn::at_the_end(log).is_some());
    }
    let again = || placed.iter().filter(|other| other.signature == found.signature).count();
    if found.signature == numeric::OVERFLOW_SEEN {
        return again() >= OVERFLOWS_MIN;
    }
    true
}

/// All hits in one order: the error file first (torchrun keeps the first failure there), then by time where every
/// hit has one, else standard output before standard error.
fn place<'a>(evidence: &'a Evidence, error_file: &'a [Hit]) -> Vec<PlacedHit<'a>> {
    let mut hits: Vec<(Option<Stream>, &Hit)> = Vec::new();
    let mut logs: Vec<_> = evidence.logs.iter().collect();
    logs.sort_by_key(|log| log.stream);
    hits.extend(logs.iter().flat_map(|log| log.log.hits.iter().map(|hit| (Some(log.stream), hit))));
    if hits.iter().all(|(_, hit)| hit.at.is_some()) {
        hits.sort_by_key(|(_, hit)| hit.at);
    }
    error_file
        .iter()
        .map(|hit| (None, hit))
        .chain(hits)
        .enumerate()
        .map(|(order, (stream, hit))| PlacedHit { hit, stream, order })
        .collect()
}

/// How strong a line is as the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    Consequence,
    Warned,
    Exception,
    Open,
}

fn strongest<'a>(placed: &[PlacedHit<'a>], evidence: &Evidence) -> Option<(PlacedHit<'a>, Strength)> {
    if let Some(found) = open_cause(placed) {
        if is_cancellation(found.hit)
            && let Some(before) = failed_before(found, placed, evidence)
        {
            return Some(before);
        }
        if is_crash(found.hit)
            && let Some(before) = consequence(placed).filter(|other| {
                other.order < found.order || (says_aborted(found.hit) && other.reason == Reason::Hang)
            })
        {
            return Some((before, Strength::Consequence)); // the watchdog aborts the process itself
        }
        return Some((found, Strength::Open));
    }
    // What follows from values that nothing was received into follows from the operation that failed.
    if let Some(garbage) = placed.iter().find(|found| is_absurd_allocation(found.hit))
        && let Some(before) = consequence(placed).filter(|other| other.order < garbage.order)
    {
        return Some((before, Strength::Consequence));
    }
    let is_warned = |found: &&PlacedHit<'_>| {
        is_causal(found.hit) && found.handling == Handling::Warned && found.reason != Reason::Unknown
    };
    let exception = final_exception(placed).map(|found| (found, Strength::Exception));
    exception
        .or_else(|| placed.iter().find(is_warned).map(|found| (*found, Strength::Warned)))
        .or_else(|| consequence(placed).map(|found| (found, Strength::Consequence)))
}

/// What had failed before a scheduler or a platform cancelled the work: a collective that was stuck, or an exception that
/// the work did not survive.
fn failed_before<'a>(
    cancellation: PlacedHit<'a>,
    placed: &[PlacedHit<'a>],
    evidence: &Evidence,
) -> Option<(PlacedHit<'a>, Strength)> {
    let is_before = |found: &PlacedHit<'_>| {
        found.order < cancellation.order
            && !found.is_on_line_of(&cancellation)
            && !logged::is_followed_by_work(found, evidence)
    };
    let stuck = consequence(placed).filter(|found| found.reason == Reason::Hang && is_before(found));
    let thrown = || open_exceptions(placed).find(|found| ends_a_process(found) && is_before(found));
    stuck.map(|found| (found, Strength::Consequence)).or_else(|| Some((thrown()?, Strength::Exception)))
}

/// Whether an allocator wanted a large part of the device at once, was refused and reserved less: what was thrown after it has nothing
/// to do with memory.
fn was_reserved_smaller(found: &PlacedHit<'_>, placed: &[PlacedHit<'_>]) -> bool {
    let is_reservation = found.reason == Reason::DeviceOom
        && ["ailed to allocate device memory of", " from device: "]
            .iter()
            .any(|words| found.text.contains(words));
    let speaks_of_device = |text: &str| {
        let lower = text.to_ascii_lowercase();
        ["cuda", "blas", "cudnn", "gpu", "internal", "dst tensor", "memory"]
            .iter()
            .any(|word| lower.contains(word))
    };
    is_reservation
        && placed.iter().any(|later| {
            later.order > found.order
                && later.is_open()
                && matches!(later.role, Role::Cause | Role::Exception)
                && later.reason != Reason::DeviceOom
                && !speaks_of_device(&later.text)
        })
}

/// The earliest named mechanism that was not dealt with, unless an exception came before a soft one.
fn open_cause<'a>(placed: &[PlacedHit<'a>]) -> Option<PlacedHit<'a>> {
    let open: Vec<_> = placed
        .iter()
        .copied()
        .filter(|found| is_causal(found.hit) && found.is_open())
        .filter(|found| !was_reserved_smaller(found, placed))
        .collect();
    let earliest = *open.first()?;
    let deeper = |found: &PlacedHit<'_>| {
        explains(found.hit, earliest.hit)
            || (was_judges(found.hit, earliest.hit) && chained(placed, earliest, *found))
    };
    if let Some(deeper) = open.iter().copied().find(deeper) {
        return Some(deeper);
    }
    if earliest.reason == Reason::EarlyStopped {
        let failed_after = placed.iter().copied().find(|found| {
            found.order > earliest.order
                && found.is_open()
                && found.reason != Reason::EarlyStopped
                && matches!(found.role, Role::Verdict | Role::Cause | Role::Exception)
        });
        return failed_after.or(Some(earliest));
    }
    if !is_soft(earliest.hit) {
        return Some(earliest);
    }
    if let Some(thrown) = thrown_after_interrupt(placed, &open, earliest) {
        return Some(thrown);
    }
    let firm = open.iter().copied().find(|found| found.role == Role::Verdict && !is_soft(found.hit));
    if let Some(verdict) = firm {
        return open.iter().copied().find(|found| explains(found.hit, verdict.hit)).or(Some(verdict));
    }
    let came_first = |found: &PlacedHit<'_>| {
        found.order < earliest.order
            && !found.is_on_line_of(&earliest)
            && !chained(placed, *found, earliest)
            && !announces(found.hit, earliest.hit)
    };
    open_exceptions(placed).next().filter(came_first).or(Some(earliest))
}

/// A firm cause that was raised after an interrupt that a program only reports: an interrupted program raises nothing new, except
/// while it handles the interrupt.
fn thrown_after_interrupt<'a>(
    placed: &[PlacedHit<'a>],
    open: &[PlacedHit<'a>],
    earliest: PlacedHit<'a>,
) -> Option<PlacedHit<'a>> {
    let is_report = earliest.reason == Reason::Cancelled && !is_bare_interrupt(&earliest.text);
    let last_interrupt = open.iter().rfind(|found| found.reason == Reason::Cancelled)?;
    let is_header = |found: &&PlacedHit<'_>| {
        found.signature == code::PYTHON_EXIT
            && found.stream == earliest.stream
            && found.order > last_interrupt.order
    };
    let traceback = placed.iter().find(is_header).filter(|_| is_report)?;
    let thrown = |found: &&PlacedHit<'a>| !is_soft(found.hit) && found.order > traceback.order;
    open.iter().find(thrown).filter(|found| !chained(placed, earliest, **found)).copied()
}

/// The traceback without its end after an interrupt that a program only reports, if its frames say something: of that
/// interrupt, they would not.
fn torn_after_interrupt(
    cause: PlacedHit<'_>,
    placed: &[PlacedHit<'_>],
    unended: Option<&Finding>,
) -> Option<Finding> {
    let is_report = cause.reason == Reason::Cancelled
        && cause.role == Role::Cause
        && !is_bare_interrupt(&cause.text)
        && placed.iter().any(|found| {
            found.signature == code::PYTHON_EXIT
                && found.stream == cause.stream
                && found.line_number > cause.line_number
        });
    let says_something = |torn: &&Finding| {
        !matches!(torn.reason, Reason::CodeError | Reason::Cancelled)
            && torn.items.first().is_some_and(|item| item.line_number > Some(cause.line_number))
    };
    unended.filter(|_| is_report).filter(says_something).cloned()
}

/// The traceback of the other process that an exception announces, if it is the last one of its stream: its exception may be missing.
fn announced_end<'a>(found: PlacedHit<'_>, evidence: &'a Evidence) -> Option<&'a TracebackEnd> {
    let log = evidence.logs.iter().find(|log| Some(log.stream) == found.stream)?;
    let reach = found.line_number + 1..=found.line_number + SAME_ERROR_LINES;
    let end = log.log.last_traceback.as_ref()?;
    (is_announcement(found.hit) && reach.contains(&end.line_number)).then_some(end)
}

/// The exception that ended the run: the first of the last chain ("During handling of…" keeps the root), else the
/// first open one.
fn final_exception<'a>(placed: &[PlacedHit<'a>]) -> Option<PlacedHit<'a>> {
    open_exceptions(placed).find(ends_a_process)
}

/// Whether the exception is not a launcher's report.
fn ends_a_process(found: &PlacedHit<'_>) -> bool {
    !found.phases.contains(&Phase::Launcher)
}

fn open_exceptions<'p, 'a>(placed: &'p [PlacedHit<'a>]) -> impl Iterator<Item = PlacedHit<'a>> + use<'p, 'a> {
    placed.iter().copied().filter(|found| {
        found.role == Role::Exception
            && found.is_open()
            && !found.phases.contains(&Phase::LocalPeer)
            && !carries_consequence(placed, found)
    })
}

/// An exception whose message is a consequence (`RuntimeError: NCCL error…`) is not a cause itself.
fn carries_consequence(placed: &[PlacedHit<'_>], exception: &PlacedHit<'_>) -> bool {
    placed.iter().any(|found| {
        found.role == Role::Consequence && found.signature != code::ABORTED && found.is_on_line_of(exception)
    })
}

/// A consequence with a separate reading: the collective's message before what followed from it.
fn consequence<'a>(placed: &[PlacedHit<'a>]) -> Option<PlacedHit<'a>> {
    let read = |found: &&PlacedHit<'a>| {
        found.role == Role::Consequence
            && found.reason != Reason::Unknown
            && found.handling != Handling::Supposed
    };
    let hang = placed.iter().find(|found| read(found) && found.reason == Reason::Hang);
    hang.or_else(|| placed.iter().find(read)).copied()
}

fn finding(
    found: PlacedHit<'_>,
    strength: Strength,
    placed: &[PlacedHit<'_>],
    evidence: &Evidence,
) -> Finding {
    let mut hit = found.hit.clone();
    if settings::are_at_fault(&hit, &evidence.rejected_settings) {
        hit.reason = Reason::CodeError;
    }
    // A chained traceback prints the exception twice: before its frames and after them.
    let is_again = |other: &&PlacedHit<'_>| {
        other.role == found.role && (other.text == found.text || is_repeated(other, found))
    };
    let again = || placed.iter().filter(is_again);
    hit.phases.extend(again().flat_map(|other| &other.phases));
    hit.phases.extend(announced_end(found, evidence).into_iter().flat_map(|end| &end.phases));
    let is_sample =
        || sample::stopped_it(&hit, evidence) || again().any(|other| sample::stopped_it(other.hit, evidence));
    let reason = match reason_in_phase(&hit) {
        Reason::CodeError if is_sample() => Reason::DataError,
        reason => reason,
    };
    let mut finding = Finding::new(reason, found.signature, confidence(found, strength, placed));
    if reason == Reason::EvaluatorError {
        finding.retry_outlook = lasting::outlook_of(hit.reason, finding.rule, &hit.text);
        finding.within_training = Some(hit.reason).filter(|reason| *reason != Reason::EvaluatorError);
    }
    finding.is_open_cause = strength == Strength::Open;
    finding.is_platform_statement = found.role == Role::Verdict;
    finding.items.push(item(found));
    finding.items.extend(raised_at(found, placed).map(|frame| frame_item(found, frame)));
    finding.items.extend(raised_before(found, placed));
    let same = placed
        .iter()
        .filter(|other| other.order != found.order && other.reason == found.reason && is_causal(other.hit));
    finding.items.extend(same.take(MAX_ITEMS - 1).map(|other| item(*other)));
    finding
}

/// Where in code of the user the error was raised: that of a worker in the worker, whose traceback follows the line that announces it.
fn raised_at<'a>(found: PlacedHit<'a>, placed: &[PlacedHit<'a>]) -> Option<&'a OwnFrame> {
    let later =
        |other: &&PlacedHit<'a>| other.stream == found.stream && other.line_number > found.line_number;
    let of_worker = placed
        .iter()
        .filter(later)
        .filter(|other| announces(found.hit, other.hit))
        .find_map(|other| other.hit.raised_at.as_ref());
    let on_line = || {
        let mut same = placed.iter().filter(|other| other.is_on_line_of(&found));
        same.find_map(|other| other.hit.raised_at.as_ref())
    };
    of_worker.or_else(on_line)
}

/// The exception of another reason that was being handled when this one was raised, or that this one was raised from: a
/// `finally` that fails hides what it follows.
fn raised_before(found: PlacedHit<'_>, placed: &[PlacedHit<'_>]) -> Option<EvidenceItem> {
    let before = |limit: u64| {
        placed.iter().filter(move |other| other.stream == found.stream && other.line_number < limit)
    };
    let is_thrown = |other: &&PlacedHit<'_>| matches!(other.role, Role::Cause | Role::Exception);
    let chain = before(found.line_number).rfind(|other| other.role == Role::Chain)?;
    let last = before(found.line_number).rfind(is_thrown)?;
    let is_next =
        last.line_number < chain.line_number && chain.line_number <= last.line_number + CHAINED_LINES;
    let on_line = || placed.iter().filter(|other| other.is_on_line_of(last));
    if !is_next || on_line().any(|other| other.reason == found.reason) {
        return None;
    }
    let how = if chain.text.contains("direct cause") { "because of" } else { "while handling" };
    Some(EvidenceItem { text: format!("{how} {}", last.shown()), ..item(*last) })
}

/// Numbers that are lost break what computes with them: an exception of no family after them has them as its cause.
fn unless_numbers_were_lost(named: Finding, hit: &Hit, strength: Strength) -> Finding {
    let may_follow =
        strength == Strength::Exception && named.reason == Reason::CodeError && !is_code_type(&hit.text);
    let reason = if may_follow { Reason::NumericDivergence } else { named.reason };
    Finding { reason, ..named }
}

/// Whether both lines name one exception: a pool and a runtime repeat what a worker raised, without its frames.
fn is_repeated(other: &PlacedHit<'_>, found: PlacedHit<'_>) -> bool {
    let class = |text: &str| {
        let mut words = text.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
        words.rfind(|word| word.ends_with("Error")).map(str::to_owned)
    };
    found.role == Role::Exception
        && other.stream == found.stream
        && other.line_number.abs_diff(found.line_number) <= SAME_ERROR_LINES
        && class(&found.text).is_some_and(|name| class(&other.text) == Some(name))
}

fn confidence(found: PlacedHit<'_>, strength: Strength, placed: &[PlacedHit<'_>]) -> Confidence {
    match strength {
        Strength::Open if was_only_killed(found, placed) => Confidence::Guess,
        Strength::Open if is_proved(found, placed) => Confidence::Certain,
        Strength::Open => Confidence::Likely,
        Strength::Exception if is_code_type(&found.text) => Confidence::Likely,
        Strength::Exception | Strength::Warned => Confidence::Guess,
        Strength::Consequence if found.reason == Reason::Hang => Confidence::Likely,
        Strength::Consequence => Confidence::Guess,
    }
}

/// Whether SIGKILL ended a worker of a loader and nothing says that memory ran out: anything may have sent it.
fn was_only_killed(found: PlacedHit<'_>, placed: &[PlacedHit<'_>]) -> bool {
    let states_memory = |other: &PlacedHit<'_>| {
        other.reason == Reason::HostOom && other.is_open() && other.signature != memory_host::LOADER_WORKER
    };
    found.signature == memory_host::LOADER_WORKER
        && found.text.to_ascii_lowercase().contains("signal: killed")
        && !placed.iter().any(states_memory)
}

/// Whether the log admits no other reading: an authority states it or it was thrown, it has no other meaning, and
/// nothing else is in the log that could be the cause.
fn is_proved(found: PlacedHit<'_>, placed: &[PlacedHit<'_>]) -> bool {
    let contradicts = |other: &PlacedHit<'_>| {
        let is_cause = matches!(other.role, Role::Verdict | Role::Cause | Role::Exception)
            && (other.order < found.order || other.role != Role::Exception);
        let was_stuck =
            other.role == Role::Consequence && other.reason == Reason::Hang && other.order < found.order;
        other.reason != found.reason && (is_cause || was_stuck)
    };
    // A message that no exception carries may be a helper's, such as a tracker's or a shell command's.
    let was_thrown =
        || placed.iter().any(|other| other.role == Role::Exception && other.is_on_line_of(&found));
    found.conclusive
        && found.phases.iter().all(|phase| *phase == Phase::Request)
        && (found.role == Role::Verdict || was_thrown())
        && !placed.iter().any(contradicts)
}

/// Hints, and a traceback whose exception no rule reads.
fn weak_reading(placed: &[PlacedHit<'_>], torn: Option<Finding>, evidence: &Evidence) -> Option<Finding> {
    let specific = |found: &&PlacedHit<'_>| found.role == Role::Hint && found.reason != Reason::CodeError;
    // The launcher's report quotes the traceback of the process that failed.
    let is_quoted = placed.iter().any(|found| found.text.contains("ProcessRaisedException"));
    let hinted = |found: &PlacedHit<'_>| found.finding(Confidence::Guess);
    let in_phase = torn.clone().filter(|torn| torn.reason != Reason::CodeError);
    in_phase
        .or_else(|| placed.iter().find(specific).map(hinted))
        .or_else(|| torn.clone().filter(|_| is_quoted))
        .or_else(|| unknown_by_name(placed, evidence))
        .or_else(|| torn.filter(|_| !placed.iter().any(|found| found.role == Role::Consequence)))
        .or_else(|| placed.iter().find(|found| found.role == Role::Hint).map(hinted))
}

/// The log itself states that the reason is not known.
fn unknown_by_name(placed: &[PlacedHit<'_>], evidence: &Evidence) -> Option<Finding> {
    let unknown =
        || placed.iter().filter(|found| found.reason == Reason::Unknown && found.role == Role::Consequence);
    // How the first one failed says more than that others were ended for it, which may be printed before.
    let first_failed = unknown().find(|found| found.signature == collective::FIRST_FAILED);
    let stated = first_failed.or_else(|| unknown().next())?;
    let mut finding = stated.finding(Confidence::Guess);
    // A worker that was killed with its pool is what memory that ran out looks like; that it is gone alone says nothing.
    let was_killed = || unknown().any(|found| found.signature == code::KILLED && says_sigkill(&found.text));
    if let Some(gone) = unknown().find(|found| found.signature == code::WORKER_GONE)
        && (ended_by_sigkill(evidence) || was_killed())
    {
        finding = Finding { reason: Reason::HostOom, ..gone.finding(Confidence::Guess) };
    }
    Some(finding)
}

fn secondary(found: &PlacedHit<'_>) -> SecondaryFinding {
    SecondaryFinding { reason: found.reason, rule: found.signature.into(), text: found.shown() }
}
