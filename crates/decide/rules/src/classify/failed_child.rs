//! How the child that failed first ended, as its launcher reports it. That its siblings lost a neighbour follows from it.

use trackway_core::{Confidence, TerminationReason as Reason};

use super::exit_code::{SIGNAL_CODE_BASE, by_code};
use super::finding::TerminationFinding as Finding;
use super::placed::{PlacedHit, item};
use crate::pattern::Pattern;
use crate::signatures::{Role, collective};

/// What torchrun writes of the child that failed first.
const FIRST_REPORT: &str = r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: ";
/// What launchers write of a child: the rank or none, and the exit code (negative: a signal) or the signal's number or name.
static REPORTS: [Pattern; 7] = [
    Pattern::exact(FIRST_REPORT),
    Pattern::exact(r"exits with return code = (?P<code>-?\d+)"),
    Pattern::exact(
        r"process (?P<rank>\d+) terminated with (signal SIG(?P<name>[A-Z]+)|exit code (?P<code>\d+))",
    ),
    Pattern::exact(r"process rank (?P<rank>\d+) [^\n]*exited on signal (?P<signal>\d+)"),
    Pattern::exact(r"rank: (?P<rank>\d+)\] Child process with PID \d+ terminated with code (?P<code>-?\d+)"),
    Pattern::exact(r"died with <Signals\.SIG(?P<name>[A-Z]+)"),
    Pattern::exact(
        r"task (?P<rank>\d+): (Exited with exit code (?P<code>\d+)|(?P<name>Killed|Segmentation fault|Bus error|Aborted))",
    ),
];
/// Signals by the names that the reports have.
const SIGNALS: &[(&str, i32)] = &[
    ("ILL", 4),
    ("ABRT", ABORT),
    ("Aborted", ABORT),
    ("BUS", 7),
    ("Bus error", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("Killed", 9),
    ("SEGV", 11),
    ("Segmentation fault", 11),
    ("TERM", TERMINATE),
];
/// How a watchdog ends its own process.
const ABORT: i32 = 6;
/// How a launcher ends the siblings.
const TERMINATE: i32 = 15;

static FIRST_FORM: Pattern = Pattern::exact(FIRST_REPORT);
/// The rank in the block of the first failure, which is the last block of torchrun's report.
static FIRST_RANK: Pattern = Pattern::exact(r"rank\s*: (\d+) \(local_rank: \d+\)");
/// The rank that prints a line.
static SPEAKER: Pattern = Pattern::exact(r"\[[Rr]ank ?(\d+)\]");

/// The end of one child.
struct FailedChild<'a> {
    code: i32,
    rank: Option<u64>,
    report: PlacedHit<'a>,
}

/// The end of the child that failed first, where `cause` is only what its siblings saw of it.
pub(super) fn instead_of(cause: PlacedHit<'_>, placed: &[PlacedHit<'_>]) -> Option<Finding> {
    let child = first_failed(placed).filter(|_| is_lost_neighbour(&cause))?;
    if !(was_killed(child.code) || only_siblings_complain(child.rank, placed)) {
        return None;
    }
    let mut finding = by_code(child.code)
        .unwrap_or_else(|| Finding::new(Reason::Unknown, child.report.signature, Confidence::Guess));
    finding.confidence = Confidence::Guess;
    finding.items.push(item(child.report));
    Some(finding)
}

/// Whether the line says only that another process of the group is gone.
pub(super) fn is_lost_neighbour(found: &PlacedHit<'_>) -> bool {
    let hit = found.hit;
    let is_collectives =
        hit.reason == Reason::NetworkError && hit.signature.as_str().starts_with("collective.");
    let says_so = ["losed by", "reset by peer", "roken pipe"].iter().any(|words| hit.text.contains(words));
    is_collectives && (hit.signature != collective::NCCL_TRANSPORT || says_so)
}

fn first_failed<'a>(placed: &[PlacedHit<'a>]) -> Option<FailedChild<'a>> {
    let is_report = |found: &&PlacedHit<'a>| found.role == Role::Consequence && found.is_open();
    let (report, code, rank) = placed
        .iter()
        .filter(is_report)
        .filter_map(|found| end_in(&found.text).map(|(code, rank)| (*found, code, rank)))
        .find(|(found, code, _)| *code != 0 && (*code != -TERMINATE || FIRST_FORM.is_match(&found.text)))?;
    let in_block =
        placed.iter().filter(is_report).filter_map(|found| number(&FIRST_RANK, &found.text)).next_back();
    Some(FailedChild { code, rank: rank.or(in_block), report })
}

/// Exit code, negative for a signal, and rank in a launcher's report.
fn end_in(text: &str) -> Option<(i32, Option<u64>)> {
    let found = REPORTS.iter().find_map(|form| form.captures(text))?;
    let signal = |name: &str| SIGNALS.iter().find(|(known, _)| *known == name).map(|(_, number)| -number);
    let number = |name: &str| found.named(name)?.parse::<i32>().ok();
    let by_name = || signal(found.named("name")?);
    let code = number("code").or_else(|| number("signal").map(|number| -number)).or_else(by_name)?;
    Some((code, found.named("rank").and_then(|rank| rank.parse().ok())))
}

/// Whether a signal ended it that neither its watchdog nor its launcher sends.
fn was_killed(code: i32) -> bool {
    let signal = if code > SIGNAL_CODE_BASE { code - SIGNAL_CODE_BASE } else { -code };
    signal > 0 && signal != ABORT && signal != TERMINATE
}

/// Whether the rank that failed first did not lose a neighbour itself.
fn only_siblings_complain(first: Option<u64>, placed: &[PlacedHit<'_>]) -> bool {
    let mut speakers = placed
        .iter()
        .filter(|found| is_lost_neighbour(found))
        .filter_map(|found| number(&SPEAKER, &found.text))
        .peekable();
    first.is_some() && speakers.peek().is_some() && speakers.all(|speaker| Some(speaker) != first)
}

fn number(form: &Pattern, text: &str) -> Option<u64> {
    form.captures(text)?.text(1)?.parse().ok()
}
