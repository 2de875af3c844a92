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
use super::evidence::{Stream, TerminationEvidence};
use super::exception::by_hand;
use super::exception::by_name;
use super::exception::checkpoint_key;
use super::exception::lasting::{self, is_code_type};
use super::exception::sample;
use super::exception::torn;
use super::exit_code::ended_by_sigkill;
use super::failed_child;
use super::finding::{EvidenceItem, SecondaryFinding, TerminationFinding};
use super::placed::{Placed, chained, frame_item, item};
use super::settings;
use crate::scan::{Handling, Hit, LogScanner, OwnFrame, Phase, TracebackEnd};
use crate::signatures::{
    Role, checkpoint, code, collective, data, early_stop, memory_host, network, node, numeric, operator,
    scheduler,
};

/// Evidence lines listed for one reason.
const MAX_ITEMS: usize = 4;
/// Lines over which one message may run.
const SAME_MESSAGE_LINES: u64 = 3;
/// Lines between an exception and the line that joins another one to it.
const CHAINED_LINES: u64 = 3;
/// Lines between an exception and its repetition by a runtime.
const SAME_ERROR_LINES: u64 = 30;
/// Skipped updates from which on they are no longer usual.
const OVERFLOWS_MIN: usize = 3;
/// Findings listed that did not decide.
const MAX_OTHERS: usize = 8;
/// The header of a traceback.
const TRACEBACK: &str = "Traceback (most recent call last):";

/// The meaning of the log.
#[derive(Debug, Default)]
pub(super) struct LogReading {
    /// The cause it names.
    pub(super) cause: Option<TerminationFinding>,
    /// A reading too weak against a signal or an exit code.
    pub(super) weak: Option<TerminationFinding>,
    /// The last line of standard error, where nothing else says why the attempt ended.
    pub(super) last_words: Option<TerminationFinding>,
    /// The work's own statement that it reached its end, if nothing failed after it.
    pub(super) completion: Option<TerminationFinding>,
    /// A stop that was not the plan's end (a person, a limit, a lost loss, a logged failure), if nothing speaks of a normal end after it.
    pub(super) stopped: Option<TerminationFinding>,
    /// The training loss that was NaN or infinite in the last lines.
    pub(super) lost_loss: Option<TerminationFinding>,
    /// Whether something in the log was not dealt with, or is what only some healthy runs print.
    pub(super) has_doubts: bool,
    /// Whether a stream ends with the traceback of the main program or with a launcher's report of a failed child, and nothing states a
    /// normal end.
    pub(super) ends_badly: bool,
    /// A traceback of which nothing shows whether it was handled, with its frame.
    pub(super) traceback: Option<TerminationFinding>,
    /// Exit code 0 with an error that the script logged in its last lines.
    pub(super) logged_error: Option<TerminationFinding>,
    /// Everything else, earliest first.
    pub(super) others: Vec<SecondaryFinding>,
}

pub(super) fn read(evidence: &TerminationEvidence) -> LogReading {
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
fn drop_aftermath(placed: &mut Vec<Placed<'_>>, evidence: &TerminationEvidence) {
    let Some(ended_at) = evidence.own_actions.iter().map(|action| action.at).min() else { return };
    let is_later = |found: &&Placed<'_>| is_siblings(found) && found.at.is_some_and(|at| at > ended_at);
    let lines: Vec<_> =
        placed.iter().filter(is_later).map(|found| (found.stream, found.line_number)).collect();
    placed.retain(|found| !lines.contains(&(found.stream, found.line_number)));
}

/// What the siblings of a child that failed print: that it is gone, and that they waited for it.
fn is_siblings(found: &Placed<'_>) -> bool {
    failed_child::is_lost_neighbour(found)
        || (found.role == Role::Consequence && found.reason == Reason::Hang)
}

/// Whether a hint says something here: what happens now and then in healthy runs must be repeated, be complete, or be the last thing in the
/// log.
fn is_telling_hint(found: &Placed<'_>, placed: &[Placed<'_>], evidence: &TerminationEvidence) -> bool {
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
fn place<'a>(evidence: &'a TerminationEvidence, error_file: &'a [Hit]) -> Vec<Placed<'a>> {
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
        .map(|(order, (stream, hit))| Placed { hit, stream, order })
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

fn strongest<'a>(placed: &[Placed<'a>], evidence: &TerminationEvidence) -> Option<(Placed<'a>, Strength)> {
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
    let is_warned = |found: &&Placed<'_>| {
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
    cancellation: Placed<'a>,
    placed: &[Placed<'a>],
    evidence: &TerminationEvidence,
) -> Option<(Placed<'a>, Strength)> {
    let is_before = |found: &Placed<'_>| {
        found.order < cancellation.order
            && !found.is_on_line_of(&cancellation)
            && !logged::is_followed_by_work(found, evidence)
    };
    let stuck = consequence(placed).filter(|found| found.reason == Reason::Hang && is_before(found));
    let thrown = || open_exceptions(placed).find(|found| ends_a_process(found) && is_before(found));
    stuck.map(|found| (found, Strength::Consequence)).or_else(|| Some((thrown()?, Strength::Exception)))
}

fn is_cancellation(hit: &Hit) -> bool {
    matches!(hit.signature, operator::SCANCEL | operator::RUN_CANCELLED)
}

/// Whether an allocator wanted a large part of the device at once, was refused and reserved less: what was thrown after it has nothing
/// to do with memory.
fn was_reserved_smaller(found: &Placed<'_>, placed: &[Placed<'_>]) -> bool {
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
fn open_cause<'a>(placed: &[Placed<'a>]) -> Option<Placed<'a>> {
    let open: Vec<_> = placed
        .iter()
        .copied()
        .filter(|found| is_causal(found.hit) && found.is_open())
        .filter(|found| !was_reserved_smaller(found, placed))
        .collect();
    let earliest = *open.first()?;
    let deeper = |found: &Placed<'_>| {
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
    let came_first = |found: &Placed<'_>| {
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
    placed: &[Placed<'a>],
    open: &[Placed<'a>],
    earliest: Placed<'a>,
) -> Option<Placed<'a>> {
    let is_report = earliest.reason == Reason::Cancelled && !is_bare_interrupt(&earliest.text);
    let last_interrupt = open.iter().rfind(|found| found.reason == Reason::Cancelled)?;
    let is_header = |found: &&Placed<'_>| {
        found.signature == code::PYTHON_EXIT
            && found.stream == earliest.stream
            && found.order > last_interrupt.order
    };
    let traceback = placed.iter().find(is_header).filter(|_| is_report)?;
    let thrown = |found: &&Placed<'a>| !is_soft(found.hit) && found.order > traceback.order;
    open.iter().find(thrown).filter(|found| !chained(placed, earliest, **found)).copied()
}

/// The traceback without its end after an interrupt that a program only reports, if its frames say something: of that
/// interrupt, they would not.
fn torn_after_interrupt(
    cause: Placed<'_>,
    placed: &[Placed<'_>],
    unended: Option<&TerminationFinding>,
) -> Option<TerminationFinding> {
    let is_report = cause.reason == Reason::Cancelled
        && cause.role == Role::Cause
        && !is_bare_interrupt(&cause.text)
        && placed.iter().any(|found| {
            found.signature == code::PYTHON_EXIT
                && found.stream == cause.stream
                && found.line_number > cause.line_number
        });
    let says_something = |torn: &&TerminationFinding| {
        !matches!(torn.reason, Reason::CodeError | Reason::Cancelled)
            && torn.items.first().is_some_and(|item| item.line_number > Some(cause.line_number))
    };
    unended.filter(|_| is_report).filter(says_something).cloned()
}

/// Whether the line is the interrupt itself, as the end of a traceback prints it.
fn is_bare_interrupt(text: &str) -> bool {
    let name = text.trim_start_matches(|letter: char| !letter.is_ascii_alphabetic());
    name.starts_with("KeyboardInterrupt") || name.starts_with("^C")
}

/// Whether the exception announces that of another process, which follows with its traceback: PyTorch raises a worker's again as
/// "Caught RuntimeError in DataLoader worker process 3", or once had its traceback as the message.
fn announces(hit: &Hit, later: &Hit) -> bool {
    is_announcement(hit) && (hit.line_number..hit.line_number + SAME_ERROR_LINES).contains(&later.line_number)
}

fn is_announcement(hit: &Hit) -> bool {
    let is_raised_again = hit.text.contains("Caught ") && hit.text.contains(" in ");
    let class = hit.text.strip_suffix(TRACEBACK);
    is_raised_again || class.is_some_and(|class| class.trim_end().ends_with(':'))
}

/// The traceback of the other process that an exception announces, if it is the last one of its stream: its exception may be missing.
fn announced_end<'a>(found: Placed<'_>, evidence: &'a TerminationEvidence) -> Option<&'a TracebackEnd> {
    let log = evidence.logs.iter().find(|log| Some(log.stream) == found.stream)?;
    let reach = found.line_number + 1..=found.line_number + SAME_ERROR_LINES;
    let end = log.log.last_traceback.as_ref()?;
    (is_announcement(found.hit) && reach.contains(&end.line_number)).then_some(end)
}

/// Verdicts and causes, but for what a sibling process on the same machine sees of another's death.
fn is_causal(hit: &Hit) -> bool {
    let local_peer = hit.phases.contains(&Phase::LocalPeer) && hit.reason == Reason::NetworkError;
    matches!(hit.role, Role::Verdict | Role::Cause) && !local_peer && !is_absurd_allocation(hit)
}

/// Whether `later` explains what `earlier` reports: a node is gone because it was preempted, a process crashed because
/// memory ran out, a connection was lost because memory ran out at its other end, a request failed because the object store refused it.
fn explains(later: &Hit, earlier: &Hit) -> bool {
    let preempted = later.role == Role::Verdict
        && later.reason == Reason::Preempted
        && earlier.reason == Reason::NodeFailure;
    let crash = is_crash(earlier)
        && matches!(
            later.reason,
            Reason::HostOom | Reason::DeviceOom | Reason::StorageError | Reason::NodeFailure
        );
    let store = earlier.reason == Reason::NetworkError
        && later.reason == Reason::StorageError
        && later.line_number <= earlier.line_number + SAME_MESSAGE_LINES;
    // A scheduler cancels for a reason, and may state it only after the cancellation itself.
    let stopped_for = is_cancellation(earlier)
        && later.role == Role::Verdict
        && matches!(
            later.reason,
            Reason::Timeout
                | Reason::Preempted
                | Reason::HostOom
                | Reason::NodeFailure
                | Reason::BudgetExhausted
        );
    let killed = matches!(earlier.signature, node::CLUSTER_LOST | scheduler::EVICTED)
        && later.role == Role::Verdict
        && matches!(later.reason, Reason::HostOom | Reason::StorageError);
    let gone = earlier.signature == scheduler::EVICTED
        && later.reason == Reason::NodeFailure
        && later.line_number == earlier.line_number;
    let checked = earlier.signature == code::NATIVE_CHECK
        && later.reason != Reason::CodeError
        && later.line_number <= earlier.line_number + SAME_MESSAGE_LINES;
    let broken_device = earlier.signature == code::GPU_FAULT
        && later.signature != node::LAUNCH_FAILURE
        && later.reason == Reason::NodeFailure;
    // One rank ran out of memory, and another printed first that the connection to it was lost.
    let starved =
        earlier.reason == Reason::NetworkError && matches!(later.reason, Reason::HostOom | Reason::DeviceOom);
    preempted || crash || starved || store || stopped_for || killed || gone || checked || broken_device
}

/// Whether the connection that failed was the one to a judge: its client raises a separate exception over it.
fn was_judges(later: &Hit, earlier: &Hit) -> bool {
    earlier.reason == Reason::NetworkError && later.reason == Reason::EvaluatorError
}

/// How a process dies of many causes.
fn is_crash(hit: &Hit) -> bool {
    matches!(hit.signature, code::CRASH | code::NATIVE_CHECK)
}

/// A launcher may report the abort before the watchdog that aborted is heard.
fn says_aborted(hit: &Hit) -> bool {
    hit.text.contains("Aborted")
}

/// What other ranks, a waiting person and the next script see when something else has gone wrong.
fn is_soft(hit: &Hit) -> bool {
    matches!(hit.reason, Reason::NetworkError | Reason::Hang)
        || matches!(hit.signature, data::ABSENT_FILE | checkpoint::ABSENT_FILE)
        || (hit.reason == Reason::Cancelled && hit.role == Role::Cause)
}

/// The exception that ended the run: the first of the last chain ("During handling of…" keeps the root), else the
/// first open one.
fn final_exception<'a>(placed: &[Placed<'a>]) -> Option<Placed<'a>> {
    open_exceptions(placed).find(ends_a_process)
}

/// Whether the exception is not a launcher's report.
fn ends_a_process(found: &Placed<'_>) -> bool {
    !found.phases.contains(&Phase::Launcher)
}

fn open_exceptions<'p, 'a>(placed: &'p [Placed<'a>]) -> impl Iterator<Item = Placed<'a>> + use<'p, 'a> {
    placed.iter().copied().filter(|found| {
        found.role == Role::Exception
            && found.is_open()
            && !found.phases.contains(&Phase::LocalPeer)
            && !carries_consequence(placed, found)
    })
}

/// An exception whose message is a consequence (`RuntimeError: NCCL error…`) is not a cause itself.
fn carries_consequence(placed: &[Placed<'_>], exception: &Placed<'_>) -> bool {
    placed.iter().any(|found| {
        found.role == Role::Consequence && found.signature != code::ABORTED && found.is_on_line_of(exception)
    })
}

/// A consequence with a separate reading: the collective's message before what followed from it.
fn consequence<'a>(placed: &[Placed<'a>]) -> Option<Placed<'a>> {
    let read = |found: &&Placed<'a>| {
        found.role == Role::Consequence
            && found.reason != Reason::Unknown
            && found.handling != Handling::Supposed
    };
    let hang = placed.iter().find(|found| read(found) && found.reason == Reason::Hang);
    hang.or_else(|| placed.iter().find(read)).copied()
}

fn finding(
    found: Placed<'_>,
    strength: Strength,
    placed: &[Placed<'_>],
    evidence: &TerminationEvidence,
) -> TerminationFinding {
    let mut hit = found.hit.clone();
    if settings::are_at_fault(&hit, &evidence.rejected_settings) {
        hit.reason = Reason::CodeError;
    }
    // A chained traceback prints the exception twice: before its frames and after them.
    let is_again = |other: &&Placed<'_>| {
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
    let mut finding = TerminationFinding::new(reason, found.signature, confidence(found, strength, placed));
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
fn raised_at<'a>(found: Placed<'a>, placed: &[Placed<'a>]) -> Option<&'a OwnFrame> {
    let later = |other: &&Placed<'a>| other.stream == found.stream && other.line_number > found.line_number;
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
fn raised_before(found: Placed<'_>, placed: &[Placed<'_>]) -> Option<EvidenceItem> {
    let before = |limit: u64| {
        placed.iter().filter(move |other| other.stream == found.stream && other.line_number < limit)
    };
    let is_thrown = |other: &&Placed<'_>| matches!(other.role, Role::Cause | Role::Exception);
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
fn unless_numbers_were_lost(named: TerminationFinding, hit: &Hit, strength: Strength) -> TerminationFinding {
    let may_follow =
        strength == Strength::Exception && named.reason == Reason::CodeError && !is_code_type(&hit.text);
    let reason = if may_follow { Reason::NumericDivergence } else { named.reason };
    TerminationFinding { reason, ..named }
}

/// Whether both lines name one exception: a pool and a runtime repeat what a worker raised, without its frames.
fn is_repeated(other: &Placed<'_>, found: Placed<'_>) -> bool {
    let class = |text: &str| {
        let mut words = text.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
        words.rfind(|word| word.ends_with("Error")).map(str::to_owned)
    };
    found.role == Role::Exception
        && other.stream == found.stream
        && other.line_number.abs_diff(found.line_number) <= SAME_ERROR_LINES
        && class(&found.text).is_some_and(|name| class(&other.text) == Some(name))
}

/// An error without a family belongs to what the enclosing frames were doing.
fn reason_in_phase(hit: &Hit) -> Reason {
    let phases = &hit.phases;
    let is_in = |phase| phases.contains(&phase);
    let was_thrown = |class: &str| hit.role == Role::Exception && hit.text.contains(class);
    let reads_data = is_in(Phase::LoadData) || is_in(Phase::LoadSample) || is_in(Phase::Decode);
    let is_content = rejects_content(hit)
        || (hit.reason == Reason::DataError && (reads_data || hit.text.contains("DataLoader worker")));
    let in_evaluation = is_in(Phase::Evaluate)
        && !is_content
        && matches!(
            hit.reason,
            Reason::CodeError | Reason::NetworkError | Reason::DataError | Reason::SchemaDrift
        );
    let specific_code = hit.role == Role::Cause;
    let unreadable_sample =
        matches!(hit.signature, checkpoint::UNREADABLE_ARCHIVE | checkpoint::HDF5_WEIGHTS)
            && (is_in(Phase::LoadSample) || hit.text.contains("DataLoader worker"));
    let unreadable_data = hit.signature == checkpoint::HDF5_WEIGHTS
        && is_in(Phase::LoadData)
        && !Phase::are_of_checkpoints(phases);
    // The device's allocator says how much it tried to allocate.
    let in_host_memory = is_in(Phase::PinMemory) && !hit.text.contains("ried to allocate");
    if hit.reason == Reason::DeviceOom && in_host_memory {
        Reason::HostOom
    } else if in_evaluation {
        Reason::EvaluatorError
    } else if unreadable_sample || unreadable_data || rejects_content(hit) {
        Reason::DataError
    } else if hit.reason == Reason::CodeError
        && !specific_code
        && Phase::are_of_checkpoints(phases)
        && !is_code_type(&hit.text)
    {
        Reason::CheckpointError
    } else if hit.role == Role::Exception
        && (is_workers_read(hit) || (reads_data && is_reader_type(&hit.text)))
    {
        Reason::DataError
    } else if was_thrown("KeyError") && is_in(Phase::SelectColumns) {
        Reason::SchemaDrift
    } else if was_thrown("ValueError") && is_in(Phase::CheckInput) {
        Reason::DataError
    } else {
        hit.reason
    }
}

/// Whether a library that decodes data, or a lookup of labels and ids, raised it because of what it was given.
fn rejects_content(hit: &Hit) -> bool {
    let is_in = |phase| hit.phases.contains(&phase);
    let is_plain =
        hit.reason == Reason::CodeError && (hit.role == Role::Exception || hit.signature == code::SYNTAX);
    let is_decoded = is_in(Phase::Decode) && !Phase::are_of_checkpoints(&hit.phases);
    let is_absent_class = is_in(Phase::LookUp) && hit.text.contains("IndexError");
    is_plain && (is_absent_class || (is_decoded && sample::may_be_of_content(&hit.text)))
}

/// Whether the worker of a loader raised an exception with which readers reject content: also where its traceback is missing.
fn is_workers_read(hit: &Hit) -> bool {
    let is_announced = hit.text.contains("Caught ") && hit.text.contains(" in DataLoader worker");
    is_announced
        && (is_reader_type(&hit.text)
            || ["Caught OSError ", "Caught IOError "].iter().any(|caught| hit.text.contains(caught)))
}

/// Exception types with which readers reject content.
fn is_reader_type(text: &str) -> bool {
    ["EOFError", "struct.error", "wave.Error", "ParseError", "OverflowError", "LZMAError"]
        .iter()
        .any(|name| text.contains(name))
}

fn confidence(found: Placed<'_>, strength: Strength, placed: &[Placed<'_>]) -> Confidence {
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
fn was_only_killed(found: Placed<'_>, placed: &[Placed<'_>]) -> bool {
    let states_memory = |other: &Placed<'_>| {
        other.reason == Reason::HostOom && other.is_open() && other.signature != memory_host::LOADER_WORKER
    };
    found.signature == memory_host::LOADER_WORKER
        && found.text.to_ascii_lowercase().contains("signal: killed")
        && !placed.iter().any(states_memory)
}

/// Whether the log admits no other reading: an authority states it or it was thrown, it has no other meaning, and
/// nothing else is in the log that could be the cause.
fn is_proved(found: Placed<'_>, placed: &[Placed<'_>]) -> bool {
    let contradicts = |other: &Placed<'_>| {
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
fn weak_reading(
    placed: &[Placed<'_>],
    torn: Option<TerminationFinding>,
    evidence: &TerminationEvidence,
) -> Option<TerminationFinding> {
    let specific = |found: &&Placed<'_>| found.role == Role::Hint && found.reason != Reason::CodeError;
    // The launcher's report quotes the traceback of the process that failed.
    let is_quoted = placed.iter().any(|found| found.text.contains("ProcessRaisedException"));
    let hinted = |found: &Placed<'_>| found.finding(Confidence::Guess);
    let in_phase = torn.clone().filter(|torn| torn.reason != Reason::CodeError);
    in_phase
        .or_else(|| placed.iter().find(specific).map(hinted))
        .or_else(|| torn.clone().filter(|_| is_quoted))
        .or_else(|| unknown_by_name(placed, evidence))
        .or_else(|| torn.filter(|_| !placed.iter().any(|found| found.role == Role::Consequence)))
        .or_else(|| placed.iter().find(|found| found.role == Role::Hint).map(hinted))
}

fn says_sigkill(text: &str) -> bool {
    text.contains("137") || text.contains("SIGKILL")
}

/// The log itself states that the reason is not known.
fn unknown_by_name(placed: &[Placed<'_>], evidence: &TerminationEvidence) -> Option<TerminationFinding> {
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
        finding = TerminationFinding { reason: Reason::HostOom, ..gone.finding(Confidence::Guess) };
    }
    Some(finding)
}

fn secondary(found: &Placed<'_>) -> SecondaryFinding {
    SecondaryFinding { reason: found.reason, rule: found.signature.into(), text: found.shown() }
}
