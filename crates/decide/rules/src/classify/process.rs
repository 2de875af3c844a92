//! What wait status, cgroup counters and a vanished shim mean by themselves.

use trackway_core::{Confidence, LaunchKind, TerminationReason as Reason};

use super::evidence::TerminationEvidence as Evidence;
use super::exit_code::{SIGKILL, SIGNAL_CODE_BASE, by_code, by_signal, ended_by_sigkill};
use super::finding::{EvidenceSource, TerminationFinding as Finding};
use super::logs::LogReading;
use super::rule::FactRule;

const SIGTERM: i32 = 15;

/// The kernel killed a process of our own cgroup for memory.
pub(super) fn kernel_oom_kill(evidence: &Evidence) -> Option<Finding> {
    let kills = evidence.oom_kill_delta.filter(|kills| *kills > 0)?;
    if evidence.exit_code == Some(0) {
        return None; // a worker was killed and the script coped
    }
    // With another ending than SIGKILL the kernel killed a child, and the script's output may name another cause.
    let was_main = evidence.signal == Some(SIGKILL);
    let confidence = if was_main { Confidence::Certain } else { Confidence::Likely };
    let finding = Finding::new(Reason::HostOom, FactRule::CgroupOomKill, confidence);
    Some(finding.with(EvidenceSource::Cgroup, format!("the attempt's cgroup counted {kills} OOM kills")))
}

/// Exit code 0: completed, stopped early when the script reports it, or what a wrapper that loses its child's exit code leaves in the log.
pub(super) fn clean_exit(evidence: &Evidence, log: &LogReading) -> Option<Finding> {
    if evidence.exit_code != Some(0) {
        return None;
    }
    let killed_for_memory = |found: &&Finding| found.reason == Reason::HostOom && found.is_platform_statement;
    if let Some(killed) = log.cause.as_ref().filter(killed_for_memory) {
        return Some(killed.clone()); // a container can be killed for memory and report exit code 0
    }
    let exited = |finding: Finding| {
        finding.with(EvidenceSource::WaitStatus, "the script ended by itself with exit code 0")
    };
    if let Some(stopped) =
        log.cause.iter().chain(&log.weak).find(|found| found.reason == Reason::EarlyStopped)
        && evidence.kind == LaunchKind::Train
    {
        return Some(exited(stopped.clone()));
    }
    if log.ends_badly
        && let Some(cause) = log.cause.clone().or_else(|| log.weak.clone())
    {
        let confidence = cause.confidence.max(Confidence::Likely); // a wrapper that does not report its child's code
        return Some(exited(Finding { confidence, ..cause }));
    }
    if let Some(other) = log.stopped.clone().or_else(|| log.lost_loss.clone())
        && evidence.kind == LaunchKind::Train
    {
        return Some(exited(other));
    }
    if let Some(traceback) = &log.traceback {
        let rule = FactRule::ExitZeroAfterTraceback;
        let finding = Finding::new(Reason::Completed, rule, Confidence::Likely);
        return Some(exited(Finding { items: traceback.items.clone(), ..finding }));
    }
    if let Some(logged) = &log.logged_error {
        return Some(exited(logged.clone()));
    }
    let confidence = if log.has_doubts { Confidence::Likely } else { Confidence::Certain };
    Some(exited(Finding::new(Reason::Completed, FactRule::ExitZero, confidence)))
}

/// The work stated that it reached its end, and nothing is known of its exit.
pub(super) fn stated_end(evidence: &Evidence, log: &LogReading) -> Option<Finding> {
    let exit_is_known = evidence.exit_code.is_some()
        || evidence.signal.is_some()
        || evidence.launcher.is_some()
        || evidence.shim_lost.is_some();
    if exit_is_known {
        return None;
    }
    let end = log.completion.as_ref()?;
    Some(log.lost_loss.as_ref().unwrap_or(end).clone())
}

/// Ended by itself after the recorder requested it, at the last step of a bounded launch. Scripts have different exit
/// codes for a requested stop.
pub(super) fn bounded(evidence: &Evidence) -> Option<Finding> {
    let code = evidence.exit_code.filter(|_| evidence.progress.reached_last_step)?;
    let text =
        format!("the script was limited to its last step (TRACKWAY_MAX_STEPS) and exited with code {code}");
    let finding = Finding::new(Reason::Completed, FactRule::EndedAtLastStep, Confidence::Likely);
    Some(finding.with(EvidenceSource::WaitStatus, text))
}

/// The exit was never recorded.
pub(super) fn lost(evidence: &Evidence) -> Option<Finding> {
    let why = evidence.shim_lost.as_ref()?;
    let finding = if evidence.rebooted {
        Finding::new(Reason::NodeFailure, FactRule::MachineRestarted, Confidence::Likely)
    } else {
        Finding::new(Reason::Unknown, FactRule::ExitNotRecorded, Confidence::Guess)
    };
    Some(finding.with(EvidenceSource::WaitStatus, format!("no exit was recorded: {why}")))
}

/// SIGKILL after the log warned that the host's memory runs low: still a guess, but a better one than none.
pub(super) fn killed_after_memory_warning(evidence: &Evidence, log: &LogReading) -> Option<Finding> {
    let killed = ended_by_sigkill(evidence);
    let warned = log.weak.as_ref().filter(|found| killed && found.reason == Reason::HostOom)?;
    Some(warned.clone().with(EvidenceSource::WaitStatus, "ended by SIGKILL"))
}

/// The signal or the code, read alone.
pub(super) fn signal_or_code(evidence: &Evidence) -> Option<Finding> {
    let code_of_sigterm = [SIGNAL_CODE_BASE + SIGTERM, -SIGTERM].map(Some);
    let is_sigterm = evidence.signal == Some(SIGTERM)
        || evidence.signal.is_none() && code_of_sigterm.contains(&evidence.exit_code);
    if is_sigterm && evidence.sigterm_preempts {
        let found = Finding::new(Reason::Preempted, FactRule::SigtermPreempts, Confidence::Likely);
        return Some(found.with(EvidenceSource::WaitStatus, "ended by SIGTERM from outside"));
    }
    if let Some(signal) = evidence.signal {
        return Some(by_signal(signal, Confidence::Likely).with(
            EvidenceSource::WaitStatus,
            format!("ended by signal {signal} ({})", signal_name(signal)),
        ));
    }
    let code = evidence.exit_code?;
    by_code(code).map(|finding| finding.with(EvidenceSource::WaitStatus, format!("exit code {code}")))
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        _ => "another signal",
    }
}
