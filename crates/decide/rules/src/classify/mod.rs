//! What an end was: evidence in, verdict out.
//!
//! The order in which evidence is heard (the first that answers, wins):
//! 1. what Trackway itself did, because intent is known;
//! 2. a command that could not be started;
//! 3. the words of the engine, unless the log holds an earlier cause that they only followed from, or the script had ended by itself
//!    before;
//! 4. the kernel's count of OOM kills in our own cgroup;
//! 5. where no exit is known, a trainer's or platform's statement that the work reached its end, if nothing failed after it;
//! 6. the log and the error file, where the earliest cause that was not dealt with wins, and consequences are read as
//!    causes only when nothing else is there ;
//! 7. exit code 0;
//! 8. the signal or exit code alone, which is never more specific than it can be;
//! 9. hints;
//! 10. the last line of standard error.
//!
//! An attempt that ended well with a loss that is NaN or infinite did not end well; one whose rung the ladder's rule
//! refuses is reported as that.

mod allocation;
mod ending;
mod evidence;
mod exception;
mod exit_code;
mod failed_child;
mod finding;
mod fingerprint;
mod hits;
mod launcher;
mod logs;
mod placed;
mod process;
mod rule;
mod settings;
mod verdict;

use trackway_core::{Confidence, Domain, LaunchKind, RetryOutlook, TerminationReason as Reason};

use evidence::TerminationEvidence as Evidence;
pub use evidence::{
    ActionKind, ErrorFile, LauncherState, NonFiniteLoss, OwnAction, Progress, Stream, StreamLog,
    TerminationEvidence,
};
pub use exception::lasting::thrown;
use finding::TerminationFinding as Finding;
pub use finding::{EvidenceItem, EvidenceSource, SecondaryFinding};
pub use fingerprint::fingerprint;
pub use rule::{FactRule, TerminationRule};
pub use verdict::TerminationVerdict;

/// Determines why an attempt ended, by which rule, with which confidence, and from which evidence.
#[must_use]
pub fn classify(evidence: &Evidence) -> TerminationVerdict {
    let evidence = &*ending::outlived::settle(evidence);
    let mut log = logs::read(evidence);
    // What Trackway did comes first: its intent is known, and the rest may only follow from it.
    let mut finding = own_action(evidence)
        .or_else(|| could_not_start(evidence))
        .or_else(|| launcher::state(evidence).map(|stated| unless_finished_first(stated, evidence, &log)))
        .or_else(|| process::kernel_oom_kill(evidence))
        .or_else(|| process::clean_exit(evidence, &log))
        .or_else(|| process::stated_end(evidence, &log))
        .or_else(|| log.cause.clone())
        .or_else(|| loss_not_finite(evidence, Confidence::Likely))
        .or_else(|| process::bounded(evidence))
        .or_else(|| process::lost(evidence))
        .or_else(|| process::killed_after_memory_warning(evidence, &log))
        .or_else(|| process::signal_or_code(evidence))
        .or_else(|| log.weak.clone())
        .or_else(|| log.last_words.clone())
        .unwrap_or_else(|| Finding::new(Reason::Unknown, FactRule::NoEvidence, Confidence::Guess));
    if evidence.kind == LaunchKind::Evaluate {
        finding = as_evaluation(finding);
    } else if evidence.is_launch {
        (finding, log) = as_training(finding, log);
    }
    // The recorded metrics say more than the printed ones.
    if (finding.reason.is_success() || finding.rule == FactRule::LastLossNotFinite.into())
        && let Some(diverged) = loss_not_finite(evidence, Confidence::Certain)
    {
        finding = diverged.and_also(finding);
    }
    // Last: the rule of a ladder judges only what ended well.
    if let Some(why) = evidence.rung_refused.as_ref().filter(|_| finding.reason.is_success()) {
        finding = Finding::new(Reason::RungRejected, FactRule::RungRefused, Confidence::Certain)
            .with(EvidenceSource::Rule, why)
            .and_also(finding);
    }
    verdict::seal(finding, &log, evidence)
}

/// A failure of an evaluation launch is the evaluator's, unless machines, people or limits ended it.
fn as_evaluation(finding: Finding) -> Finding {
    let is_own = matches!(
        finding.reason,
        Reason::CodeError | Reason::DataError | Reason::SchemaDrift | Reason::NetworkError | Reason::Unknown
    );
    let is_own_action = finding.items.first().is_some_and(|item| item.source == EvidenceSource::OwnAction);
    if !is_own || is_own_action {
        return finding;
    }
    let confidence = finding.confidence.max(Confidence::Likely);
    let retry_outlook = exception::lasting::outlook_of_evaluation(&finding);
    Finding { reason: Reason::EvaluatorError, confidence, retry_outlook, ..finding }
}

/// An evaluation inside the script is part of the training: what fails there ended the training. Only a process that Trackway launched to
/// evaluate is an evaluator.
fn as_training(mut finding: Finding, mut log: logs::LogReading) -> (Finding, logs::LogReading) {
    let within = |found: &mut Finding| {
        if found.reason == Reason::EvaluatorError {
            found.reason = found.within_training.unwrap_or_else(|| within_training(found.rule));
            found.retry_outlook = None;
        }
    };
    within(&mut finding);
    log.cause.iter_mut().chain(&mut log.weak).for_each(within);
    for other in finding.secondary.iter_mut().chain(&mut log.others) {
        if other.reason == Reason::EvaluatorError {
            other.reason = within_training(other.rule);
        }
    }
    (finding, log)
}

/// What a line about an evaluation means in a training: a judge that does not answer is a service that was not reached.
fn within_training(rule: TerminationRule) -> Reason {
    match rule.as_str() {
        "evaluator.judge_api" => Reason::NetworkError,
        _ => Reason::CodeError,
    }
}

fn own_action(evidence: &Evidence) -> Option<Finding> {
    let action = evidence.own_actions.iter().min_by_key(|action| (action.kind, action.at))?;
    let (reason, rule) = action.kind.meaning();
    let ended_well = evidence.exit_code == Some(0) && !action.kill_sent;
    let confidence = if ended_well { Confidence::Likely } else { Confidence::Certain };
    let mut finding = Finding::new(reason, rule, confidence);
    if matches!(action.kind, ActionKind::InjectedKill | ActionKind::InjectedTerm) {
        finding.domain = Some(Domain::Operator);
    }
    let killed = match (action.kill_sent, evidence.killed_after_grace) {
        (false, _) => "",
        (true, true) => ", SIGKILL after the grace period",
        (true, false) => ", SIGKILL at once",
    };
    Some(finding.with(
        EvidenceSource::OwnAction,
        format!("Trackway ended it at {}{killed}: {}", action.at, action.why),
    ))
}

fn could_not_start(evidence: &Evidence) -> Option<Finding> {
    let error = evidence.spawn_error.as_ref()?;
    let lower = error.to_lowercase();
    let is_ours =
        ["no such file", "not found", "permission denied", "exec format", "enoent", "eacces", "enoexec"]
            .iter()
            .any(|words| lower.contains(words));
    let (reason, confidence) = if is_ours {
        (Reason::CodeError, Confidence::Certain)
    } else if lower.contains("cannot allocate memory") || lower.contains("enomem") {
        (Reason::HostOom, Confidence::Likely)
    } else {
        (Reason::Unknown, Confidence::Guess)
    };
    let mut finding = Finding::new(reason, FactRule::CouldNotStart, confidence);
    finding.domain = Some(if is_ours { Domain::Operator } else { Domain::Infrastructure });
    Some(finding.with(EvidenceSource::WaitStatus, format!("the command could not be started: {error}")))
}

/// An engine reports a job as preempted, timed out or cancelled that had ended by itself in the meantime. Where the end was recorded with
/// exit code 0 and no signal had reached the script, that counts.
fn unless_finished_first(stated: Finding, evidence: &Evidence, log: &logs::LogReading) -> Finding {
    let may_be_late = matches!(stated.reason, Reason::Preempted | Reason::Timeout | Reason::Cancelled);
    let finished = process::clean_exit(evidence, log)
        .filter(|end| may_be_late && end.reason.is_success() && evidence.was_signalled == Some(false));
    match finished {
        Some(finding) => {
            let confidence = finding.confidence.max(Confidence::Likely);
            Finding { confidence, ..finding }.and_also(stated)
        }
        None => unless_caused_earlier(stated, log),
    }
}

/// A time limit or a cancellation is how a run ends that had already failed and hung; the earlier failure is the
/// cause. Statements about memory, machines and preemption are not overridden.
fn unless_caused_earlier(stated: Finding, log: &logs::LogReading) -> Finding {
    let may_follow = matches!(stated.reason, Reason::Timeout | Reason::Cancelled);
    let earlier = log.cause.as_ref().filter(|cause| {
        cause.is_open_cause
            && matches!(
                cause.reason,
                Reason::DeviceOom | Reason::HostOom | Reason::NodeFailure | Reason::StorageError
            )
    });
    match earlier {
        Some(cause) if may_follow => {
            Finding { confidence: Confidence::Likely, ..cause.clone() }.and_also(stated)
        }
        _ => stated,
    }
}

/// A training whose loss is NaN or infinite to the end has no result, whatever the script's exit code.
fn loss_not_finite(evidence: &Evidence, confidence_max: Confidence) -> Option<Finding> {
    let loss = evidence.non_finite_loss.as_ref().filter(|_| evidence.kind == LaunchKind::Train)?;
    let confidence = if loss.is_certain() { confidence_max } else { Confidence::Likely };
    let text = match loss.count == loss.point_count {
        true => format!("every value of `{}` is NaN or infinite, to step {}", loss.metric, loss.last_step),
        false => format!(
            "`{}` is NaN or infinite from step {} to the end, step {} ({} of {} values)",
            loss.metric, loss.from_step, loss.last_step, loss.count, loss.point_count
        ),
    };
    let finding = Finding::new(Reason::NumericDivergence, FactRule::LossNotFinite, confidence);
    Some(finding.with(EvidenceSource::Metrics, text))
}

/// The outlook of a verdict: the reason's own, but not known where the reason was only guessed.
fn outlook(reason: Reason, confidence: Confidence) -> RetryOutlook {
    match (reason.retry_outlook(), confidence) {
        (RetryOutlook::DoNotRetry, Confidence::Guess) if !reason.is_success() => RetryOutlook::Unknown,
        (outlook, _) => outlook,
    }
}

#[cfg(test)]
mod tests;
