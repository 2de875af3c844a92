//! Between the ledger's rows and the rules' decisions: builds the history and the policy, asks the rules, and writes the
//! decision.

use std::collections::BTreeMap;

use trackway_core::{Clock as _, Confidence, LaunchKind, Rng as _, SplitMix64, TerminationReason};
use trackway_ledger::{AttemptRow, AttemptState, Decision as DecisionWord, RetryRow, RollBackRow, RunState};
use trackway_rules::classify::{EvidenceItem, thrown};
use trackway_rules::decide::{DecisionRule, FinalState, PlanEntry};
use trackway_rules::{Decision, History, PastAttempt};

use super::changes::Changes;
use super::job::data_sha256;
use super::job::planned_job;
use super::ladder::Judged;
use super::prepare::resolve_data;
use super::reopen::is_of_data;
use super::roll_back;
use crate::Context;
use crate::budgets::{retry_policy, spent_beside};
use crate::error::AppError;
use crate::reporter::Unheard;

/// A decision, ready to be stored.
pub struct Decided {
    pub retry: RetryRow,
    /// The state of the run after it.
    pub run_state: RunState,
}

/// Decides what follows an attempt that ended: `row` is its receipt, sealed or about to be, and `judged` the decision
/// about its rung.
pub fn decide(context: &Context, row: &AttemptRow, judged: Option<&Judged>) -> Result<Decided, AppError> {
    let is_training = row.kind == LaunchKind::Train;
    if !is_training && row.kind != LaunchKind::Evaluate {
        return Ok(answer(context, row, rehearsed(row), None));
    }
    // The ledger's copy of the plan, so that a damaged file of the home cannot keep a receipt from being sealed.
    let run = context.run_by_id(row.run_id)?;
    let policy = match retry_policy(&run) {
        Ok(policy) => policy,
        Err(error) => return Ok(answer(context, row, without_plan(&error), None)),
    };
    // What spreads the retries of runs that failed together, in `[0, 1)`.
    let jitter = SplitMix64::new(context.ids.next_ulid() as u64).next_unit();
    if !is_training {
        // The evaluator is launched again as it is, within its budgets; nothing else of the run is touched.
        let decision = trackway_rules::decide(&history(context, row)?, &policy, jitter);
        return Ok(answer(context, row, decision, None));
    }
    let due = roll_back::due(context, row)?;
    let next_rung = judged.and_then(Judged::next_rung);
    let roll_back = due.as_ref().map(|(_, facts)| facts.clone());
    let history = History { next_rung, roll_back, ..history(context, row)? };
    let decision = trackway_rules::decide(&history, &policy, jitter);
    let decision = if run.run_file_path.is_some() { decision } else { once(decision) };
    Ok(answer(context, row, decision, due))
}

/// No budget and no retry: the caller of a rehearsal decides what follows.
fn rehearsed(row: &AttemptRow) -> Decision {
    let success = row.termination_reason.is_some_and(TerminationReason::is_success);
    let why = format!("a launch of kind `{}` is not repeated by itself", row.kind.as_str());
    stop(DecisionRule::RehearsalEnded, why, if success { FinalState::Completed } else { FinalState::Failed })
}

/// An end that no budget decided.
fn stop(rule: DecisionRule, why: String, final_state: FinalState) -> Decision {
    Decision::Stop { rule, why, budget: None, final_state }
}

fn answer(context: &Context, row: &AttemptRow, decision: Decision, due: Option<roll_back::Due>) -> Decided {
    let rule = decision.rule();
    let (mut word, mut delay, mut changes) = (DecisionWord::Stop, None, None);
    let (why, budget, run_state) = match decision {
        Decision::Retry { why, delay_seconds, in_force, plan_index, budget, exclude_hosts, .. } => {
            let plan_reason = plan_index.and(row.termination_reason);
            let in_force = redacted(context, in_force);
            let roll_back = roll_back::decided(rule, due);
            let rung = None;
            changes = Some(Changes { in_force, plan_index, plan_reason, roll_back, rung, exclude_hosts });
            (word, delay) = (DecisionWord::Retry, Some(delay_seconds));
            (why, Some(budget), RunState::Waiting)
        }
        Decision::NextRung { why, rung, in_force, .. } => {
            let in_force = redacted(context, in_force);
            changes = Some(Changes { in_force, rung: Some(rung), ..Changes::default() });
            word = DecisionWord::Promote;
            (why, None, RunState::Waiting)
        }
        Decision::RetryEvaluator { why, budget, delay_seconds, .. } => {
            (word, delay) = (DecisionWord::Retry, Some(delay_seconds));
            (why, Some(budget), RunState::Waiting)
        }
        Decision::Stop { why, budget, final_state, .. } => {
            let state = match final_state {
                FinalState::Completed => RunState::Completed,
                FinalState::Failed | FinalState::BudgetExhausted => RunState::Failed,
                FinalState::Blocked => RunState::Blocked,
                FinalState::Cancelled => RunState::Stopped,
            };
            (why, budget, state)
        }
    };
    let retry = RetryRow {
        attempt_id: row.attempt_id,
        run_id: row.run_id,
        at: context.clock.now(),
        decision: word,
        rule: rule.as_str().into(),
        why,
        delay_seconds: delay,
        budget_name: budget.as_ref().map(|budget| budget.name.clone()),
        budget_spent: budget.as_ref().map(|budget| budget.spent),
        budget_limit: budget.as_ref().map(|budget| budget.limit),
        changes_json: changes.and_then(|changes| serde_json::to_value(changes).ok()),
        next_attempt_id: None,
    };
    Decided { retry, run_state }
}

/// What is in force as it is stored: without secrets.
fn redacted(context: &Context, in_force: PlanEntry) -> PlanEntry {
    PlanEntry { set: context.redactor.settings(&in_force.set), ..in_force }
}

/// The sealed attempts of the run, oldest first, with `row` as the last one.
fn history(context: &Context, row: &AttemptRow) -> Result<History, AppError> {
    let retries = context.ledger_read(|ledger| ledger.retries_of_run(row.run_id))?;
    let changes_before = |attempt: &AttemptRow| {
        let parent = retries.iter().find(|retry| Some(retry.attempt_id) == attempt.parent_attempt_id);
        Ok::<_, AppError>(parent.map(Changes::of).transpose()?.unwrap_or_default())
    };
    let mut attempts = context.attempts_of_kind(row.run_id, row.kind)?;
    attempts.retain(|attempt| {
        attempt.state == AttemptState::Sealed && attempt.attempt_number < row.attempt_number
    });
    attempts.push(row.clone());
    let mut committed = BTreeMap::new();
    let past = attempts.iter().map(|attempt| {
        let newest: &mut Option<u64> = committed.entry(attempt.rung.as_str()).or_default();
        *newest = (*newest).max(attempt.last_committed_step);
        let hosts = hosts_to_choose_from(context, attempt);
        Ok(PastAttempt { hosts, ..past_attempt(attempt, changes_before(attempt)?, *newest) })
    });
    let mut past = past.collect::<Result<Vec<PastAttempt>, AppError>>()?;
    for left in roll_back::rows(context, row.run_id)? {
        leave(&mut past, &attempts, &left);
    }
    let data_manifest_now = data_now(context, row)?.unwrap_or_default();
    let beside = spent_beside(context, row.run_id)?;
    Ok(History { attempts: past, data_manifest_now, beside, next_rung: None, roll_back: None })
}

/// The hash of the data as a next attempt would read it: looked at again where the data stopped this one, which may be repaired already.
fn data_now(context: &Context, row: &AttemptRow) -> Result<Option<String>, AppError> {
    let is_looked_at = row.kind == LaunchKind::Train
        && row.termination_reason.is_some_and(is_of_data)
        && row.data_sha256.is_some();
    if !is_looked_at {
        return Ok(row.data_sha256.clone());
    }
    let run = context.run_by_id(row.run_id)?;
    let resolved = planned_job(context, &run).and_then(|job| resolve_data(context, &job, &Unheard));
    // What cannot be read now is not known to have changed.
    Ok(resolved.map_or_else(|_| row.data_sha256.clone(), |manifests| data_sha256(&manifests)))
}

/// What was committed after the place that the run went back to no longer counts as progress; what comes after the
/// rollback does.
fn leave(past: &mut [PastAttempt], attempts: &[AttemptRow], left: &RollBackRow) {
    for (past, attempt) in past.iter_mut().zip(attempts) {
        if attempt.rung == left.rung {
            past.last_committed_step = past.last_committed_step.min(left.to_step);
        }
        if attempt.attempt_id == left.attempt_id {
            break;
        }
    }
}

/// The exception of the code that ended an attempt, by its stored evidence.
fn exception_of(attempt: &AttemptRow, reason: TerminationReason) -> Option<String> {
    let evidence = attempt.termination_evidence.clone()?;
    let evidence: Vec<EvidenceItem> = serde_json::from_value(evidence).ok()?;
    thrown(reason, &evidence).map(str::to_owned)
}

fn past_attempt(attempt: &AttemptRow, changes: Changes, committed: Option<u64>) -> PastAttempt {
    let reason = attempt.termination_reason.unwrap_or(TerminationReason::Unknown);
    PastAttempt {
        kind: attempt.kind,
        rung: attempt.rung.clone(),
        reason,
        exception: exception_of(attempt, reason),
        confidence: attempt.termination_confidence.unwrap_or(Confidence::Guess),
        retry_outlook: attempt.retry_outlook,
        fingerprint: attempt.fingerprint.clone().unwrap_or_default(),
        last_committed_step: committed,
        resumed_from_step: attempt.resumed_from_step,
        last_step: attempt.last_step,
        gpu_seconds: attempt.gpu_seconds.unwrap_or(0.0),
        cost_usd: attempt.cost_usd.unwrap_or(0.0),
        seconds: attempt.wall_seconds.unwrap_or(0.0),
        plan_index: changes.plan_index,
        plan_reason: changes.plan_reason,
        in_force: changes.in_force,
        data_manifest: attempt.data_sha256.clone().unwrap_or_default(),
        hosts: Vec::new(),
    }
}

/// The machines an attempt ran on, where its launcher could have put it on others.
fn hosts_to_choose_from(context: &Context, attempt: &AttemptRow) -> Vec<String> {
    let has_choice =
        context.launchers.named(&attempt.launcher).is_ok_and(|launcher| launcher.chooses_hosts());
    let hosts = attempt.hosts.as_deref().filter(|_| has_choice).unwrap_or_default();
    hosts.split(',').filter(|host| !host.is_empty()).map(str::to_owned).collect()
}

/// Without its limits nothing is retried; the attempt is sealed all the same.
fn without_plan(error: &AppError) -> Decision {
    let why = format!("its retry limits are not known: {error}");
    stop(DecisionRule::UnreadablePlan, why, FinalState::Failed)
}

/// A command without a run file is launched once: repeating it was not requested.
fn once(decision: Decision) -> Decision {
    // A rollback requested by a user already has this meaning.
    if !decision.launches() || decision.rule() == DecisionRule::RollBackPerson {
        return decision;
    }
    let why = "a command without a run file is launched once; with one, `[retry]` configures retries";
    stop(DecisionRule::NoRunFile, why.into(), FinalState::Failed)
}

#[cfg(test)]
mod tests {
    use trackway_rules::decide::BudgetUse;

    use super::*;

    /// Proves that a command without a run file is never launched twice, and that an end stays the end it is.
    #[test]
    fn without_a_run_file_nothing_is_launched_again() {
        let budget = BudgetUse { name: "unknown".into(), spent: 1.0, limit: 1.0 };
        let retry = Decision::RetryEvaluator {
            rule: DecisionRule::EvaluatorAlone,
            why: String::new(),
            delay_seconds: 0.0,
            budget,
        };
        assert_eq!(once(retry).rule(), DecisionRule::NoRunFile);
        let stop = Decision::Stop {
            rule: DecisionRule::Finished,
            why: String::new(),
            budget: None,
            final_state: FinalState::Completed,
        };
        assert_eq!(once(stop.clone()), stop);
    }
}
