//! From evidence to the document: nothing is read here, and what evidence does not show stays unknown.

use trackway_api::checkpoints::{Checkpoint, CheckpointState};
use trackway_api::runs::detections::Detection;
use trackway_api::runs::explain::{Amendment, AttemptSummary, Explanation, TimelineEvent};
use trackway_api::runs::postmortem::{
    FailedAttempt, Impact, InputVersions, Postmortem, PostmortemAction, Spent, StoredIntegrity,
};
use trackway_core::checks::{Finding, Severity};
use trackway_core::text::{counted, duration};
use trackway_core::{TerminationReason, with_fields_of};
use trackway_formats::EventKind;
use trackway_ledger::{AttemptRow, RunState};
use trackway_rules::{next_actions, runbook_section};

use super::Evidence;
use super::inputs::inputs;
use crate::explain::next::with_run;
use crate::explain::termination;

/// More failed attempts than these are not described one by one in the summary.
const SENTENCES_MAX: usize = 6;
/// The document about detectors.
const DETECTORS: &str = "docs/detectors.md";

/// The post-mortem that evidence shows.
#[must_use]
pub fn build(evidence: Evidence) -> Postmortem {
    let Evidence { explanation, attempts, verified, made_at } = evidence;
    let failures: Vec<FailedAttempt> =
        attempts.iter().filter_map(|(row, late)| failed(row, late, &explanation)).collect();
    let rows: Vec<&AttemptRow> = attempts.iter().map(|(row, _)| row).collect();
    let deleted = |one: &&Checkpoint| one.state == CheckpointState::Retired;
    let deleted_count = explanation.checkpoints.iter().filter(deleted).count() as u64;
    let sentences = summary(&explanation, &failures);
    Postmortem {
        made_at,
        summary: sentences,
        impact: impact(&explanation, &failures),
        timeline: timeline(&explanation),
        blocked_by: blocked_by(&explanation),
        actions: actions(&explanation, &failures),
        inputs: InputVersions {
            sets: explanation.data.sets,
            inputs: inputs(&rows),
            since_last_good: explanation.since_last_good,
        },
        integrity: StoredIntegrity {
            verified,
            checkpoints: explanation
                .checkpoints
                .into_iter()
                .filter(|one| one.state != CheckpointState::Retired)
                .collect(),
            deleted_count,
            no_checkpoint_why: explanation.no_checkpoint_why,
            fall_back: explanation.fall_back,
            resume_step: explanation.resume_step,
            resume_proof: explanation.resume_proof,
        },
        run: explanation.run,
        tried: explanation.retries,
        failures,
    }
}

/// An attempt that ended without success.
fn failed(row: &AttemptRow, late: &[Amendment], explanation: &Explanation) -> Option<FailedAttempt> {
    let termination = termination(row).filter(|termination| !termination.reason.is_success())?;
    let line = explanation.attempts.iter().find(|line| line.attempt_id == row.attempt_id);
    let next = explanation.attempts.iter().find(|line| line.attempt_number == row.attempt_number + 1);
    let seen_in_it = |found: &&Detection| found.attempt_id == row.attempt_id;
    Some(with_fields_of!(
        FailedAttempt,
        &row,
        [
            attempt_id, attempt_number, rung, started_at, ended_at, hosts, exit_code, signal, last_step,
            last_committed_step, peak_rss_bytes, host_memory_bytes,
        ],
        lost_steps: line.and_then(|line| line.lost_steps),
        next_attempt_number: next.map(|next| next.attempt_number),
        recovery_seconds: next.and_then(|next| next.recovery_seconds),
        spent: Spent {
            wall_hours: row.wall_seconds.map(hours),
            gpu_hours: row.gpu_seconds.map(hours),
            usd: row.cost_usd,
        },
        termination: termination,
        amendments: late.to_vec(),
        detections: explanation.detections.iter().filter(seen_in_it).cloned().collect(),
        diagnoses: explanation
            .diagnoses
            .iter()
            .filter(|found| found.attempt_id == row.attempt_id)
            .cloned()
            .collect(),
    ))
}

fn hours(seconds: f64) -> f64 {
    seconds / 3600.0
}

/// A sum of what is known; `None` where nothing is.
fn sum(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.flatten().reduce(|sum, value| sum + value)
}

fn spent<'s>(of: impl Iterator<Item = &'s Spent> + Clone) -> Spent {
    Spent {
        wall_hours: sum(of.clone().map(|spent| spent.wall_hours)),
        gpu_hours: sum(of.clone().map(|spent| spent.gpu_hours)),
        usd: sum(of.map(|spent| spent.usd)),
    }
}

fn spent_by(line: &AttemptSummary) -> Spent {
    Spent {
        wall_hours: line.wall_seconds.map(hours),
        gpu_hours: line.gpu_seconds.map(hours),
        usd: line.cost_usd,
    }
}

/// What an attempt spent on steps that do not count, in proportion to the steps that it made.
fn lost(line: &AttemptSummary) -> Spent {
    let made = line.last_step.map(|last| last.saturating_sub(line.resumed_from_step.unwrap_or(0)));
    let Some((lost, made)) = line.lost_steps.zip(made.filter(|made| *made > 0)) else {
        return Spent::default();
    };
    let fraction = (lost as f64 / made as f64).min(1.0);
    let part = |value: Option<f64>| value.map(|value| value * fraction);
    let Spent { wall_hours, gpu_hours, usd } = spent_by(line);
    Spent { wall_hours: part(wall_hours), gpu_hours: part(gpu_hours), usd: part(usd) }
}

fn impact(explanation: &Explanation, failures: &[FailedAttempt]) -> Impact {
    let all: Vec<Spent> = explanation.attempts.iter().map(spent_by).collect();
    let is_failure =
        |line: &&AttemptSummary| failures.iter().any(|failure| failure.attempt_id == line.attempt_id);
    let lost: Vec<Spent> = explanation.attempts.iter().filter(is_failure).map(lost).collect();
    let steps = failures.iter().filter_map(|failure| failure.lost_steps).reduce(|sum, lost| sum + lost);
    Impact {
        attempt_count: explanation.attempts.len() as u64,
        failed_count: failures.len() as u64,
        lost_steps: steps,
        lost_unknown_count: failures.iter().filter(|failure| failure.lost_steps.is_none()).count() as u64,
        unrecovered_count: failures.iter().filter(|failure| failure.recovery_seconds.is_none()).count()
            as u64,
        recovery_seconds: sum(failures.iter().map(|failure| failure.recovery_seconds)),
        run: spent(all.iter()),
        failed: spent(failures.iter().map(|failure| &failure.spent)),
        lost: spent(lost.iter()),
    }
}

fn state_words(state: RunState) -> &'static str {
    match state {
        RunState::Completed => "completed",
        RunState::Failed => "failed",
        RunState::Stopped => "was stopped",
        RunState::Blocked => "is blocked",
        RunState::Running => "is still running",
        RunState::Waiting => "waits for its next attempt",
        RunState::Planned => "was not launched yet",
    }
}

/// What happened, as sentences.
fn summary(explanation: &Explanation, failures: &[FailedAttempt]) -> Vec<String> {
    let run = &explanation.run;
    let count = explanation.attempts.len() as u64;
    let state = state_words(run.state);
    if count == 0 {
        let mut sentences = vec![match run.state.is_final() {
            true => format!("The run {} {state}: it was never launched.", run.name),
            false => format!("The run {} was not launched yet.", run.name),
        }];
        sentences.extend(blocked_by(explanation).iter().map(|found| format!("Pre-flight found: {found}.")));
        return sentences;
    }
    let failed = match (failures.len() as u64, count) {
        (0, _) => "none ended without success".to_owned(),
        (1, 1) => "it did not succeed".to_owned(),
        (all, count) if all == count => "none succeeded".to_owned(),
        (some, _) => format!("{some} did not succeed"),
    };
    let mut sentences =
        vec![format!("The run {} {state} after {}; {failed}.", run.name, counted(count, "attempt"))];
    if !run.state.is_final() {
        sentences.push("The run has not ended: this is what is known so far.".to_owned());
    }
    for failure in failures.iter().take(SENTENCES_MAX) {
        sentences.push(ended(failure));
        sentences.push(followed(failure, explanation));
    }
    let left_out = failures.len().saturating_sub(SENTENCES_MAX);
    if left_out > 0 {
        sentences.push(format!(
            "{} more did not succeed; each is described under Cause.",
            counted(left_out as u64, "attempt")
        ));
    }
    if let Some(last) = explanation.attempts.last().filter(|_| run.state == RunState::Completed)
        && !failures.is_empty()
    {
        let step = last.last_step.map(|step| format!(" at step {step}")).unwrap_or_default();
        sentences.push(format!("Attempt {} completed{step}.", last.attempt_number));
    }
    sentences
}

/// What forbade the launch; nothing if the run was launched.
fn blocked_by(explanation: &Explanation) -> Vec<String> {
    let blocking =
        explanation.preflight.iter().filter(|check| check.blocks && explanation.attempts.is_empty());
    let is_block = |finding: &&Finding| finding.severity == Severity::Block;
    let found = blocking.flat_map(|check| check.findings.iter().filter(is_block));
    found.map(|finding| finding.message.clone()).collect()
}

/// How an attempt ended, and why.
fn ended(failure: &FailedAttempt) -> String {
    let termination = &failure.termination;
    let after = match failure.spent.wall_hours {
        Some(hours) => format!("after {}", duration(hours * 3600.0)),
        None => "after a time that is not known".to_owned(),
    };
    let at = match failure.last_step {
        Some(step) => format!(" at step {step}"),
        None => " without having reported a step".to_owned(),
    };
    let how = match (failure.exit_code, failure.signal) {
        (Some(code), _) => format!("with exit code {code}"),
        (None, Some(signal)) => format!("by signal {signal}"),
        (None, None) => "in a way that is not known".to_owned(),
    };
    let confidence = termination.confidence.map_or("confidence not known", |confidence| confidence.as_str());
    let cause = termination.cause.trim_end_matches('.');
    let (number, reason) = (failure.attempt_number, termination.reason);
    let late = failure.amendments.iter().rfind(|late| late.field == "termination_reason");
    let late = late.map(|late| match &late.new_text {
        Some(now) => format!(" Amended since: the reason is {now}."),
        None => " Amended since: the reason is not known.".to_owned(),
    });
    let late = late.unwrap_or_default();
    format!("Attempt {number} ended {after}{at}, {how}: {reason} ({confidence}). {cause}.{late}")
}

/// What came after an attempt that failed.
fn followed(failure: &FailedAttempt, explanation: &Explanation) -> String {
    let next =
        explanation.attempts.iter().find(|line| Some(line.attempt_number) == failure.next_attempt_number);
    let lost = match failure.lost_steps {
        Some(0) => "no step was lost".to_owned(),
        Some(1) => "1 step was lost".to_owned(),
        Some(steps) => format!("{steps} steps were lost"),
        None => "how many steps were lost is not known".to_owned(),
    };
    let Some(next) = next else { return format!("No attempt followed; {lost}.") };
    let from = match next.resumed_from_step {
        Some(step) => format!("continued from step {step}"),
        None => "started without a checkpoint of Trackway".to_owned(),
    };
    let back = match failure.recovery_seconds {
        Some(seconds) => format!(" and made its first step {} after the failure", duration(seconds)),
        None => String::new(),
    };
    format!("Attempt {} {from}{back}; {lost}.", next.attempt_number)
}

/// The timeline of the explanation with what detectors found; commits that follow each other are one line, and requests
/// for them are left out.
fn timeline(explanation: &Explanation) -> Vec<TimelineEvent> {
    let mut all = explanation.events();
    all.retain(|event| !EventKind::CheckpointAsked.is(&event.kind));
    let mut folded: Vec<TimelineEvent> = Vec::new();
    let mut commits = 0_u64;
    for event in all {
        let is_commit = EventKind::CheckpointCommitted.is(&event.kind);
        let last = folded
            .last_mut()
            .filter(|last| is_commit && commits > 0 && last.attempt_number == event.attempt_number);
        match last {
            Some(last) => {
                commits += 1;
                let step =
                    event.step.map(|step| format!(", the last one at step {step}")).unwrap_or_default();
                *last = TimelineEvent { text: format!("{commits} checkpoints committed{step}"), ..event };
            }
            None => {
                commits = u64::from(is_commit);
                folded.push(event);
            }
        }
    }
    folded
}

/// What the runbook says for each reason, then what detectors advise.
fn actions(explanation: &Explanation, failures: &[FailedAttempt]) -> Vec<PostmortemAction> {
    let mut actions: Vec<PostmortemAction> = Vec::new();
    let mut add = |text: &str, reason: Option<TerminationReason>, runbook: Option<String>| {
        if !actions.iter().any(|known| known.text == text) {
            actions.push(PostmortemAction { text: text.to_owned(), reason, runbook });
        }
    };
    let mut reasons: Vec<(TerminationReason, Option<&str>)> = Vec::new();
    for ended in failures.iter().rev().map(|failure| &failure.termination) {
        if !reasons.iter().any(|(reason, _)| *reason == ended.reason) {
            reasons.push((ended.reason, ended.rule.as_deref()));
        }
    }
    let run_id = explanation.run.run_id;
    let advice = |(reason, rule): (TerminationReason, Option<&str>)| -> Vec<String> {
        let lines = next_actions(reason, rule).iter().filter(|line| line.need.is_none());
        lines.map(|line| with_run(line.text, run_id)).collect()
    };
    // The last attempt's own actions name the run, such as how to resume it.
    let of_run = explanation.termination.as_ref().is_none_or(|last| !last.reason.is_success());
    // What the explanation says may have its evidence behind it.
    let said = |line: &String| explanation.next_actions.iter().find(|text| text.starts_with(line.as_str()));
    let of_reasons = |text: &String| {
        reasons.iter().any(|reason| advice(*reason).iter().any(|line| text.starts_with(line)))
    };
    for text in explanation.next_actions.iter().filter(|text| of_run && !of_reasons(text)) {
        add(text, None, None);
    }
    for reason in reasons {
        for text in advice(reason) {
            add(said(&text).unwrap_or(&text), Some(reason.0), Some(runbook_section(reason.0)));
        }
    }
    for found in failures.iter().flat_map(|failure| &failure.detections) {
        add(&found.advice, None, Some(DETECTORS.to_owned()));
    }
    actions
}
