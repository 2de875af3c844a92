//! Between the ledger's rows and tower's decisions: builds the history and the policy, asks, and writes the answer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trackway_core::{Clock as _, Confidence, LaunchKind, Rng as _, TerminationReason};
use trackway_formats::runfile::{RetryRule, RetrySection};
use trackway_ledger::{
    AttemptRow, AttemptState, Decision as DecisionWord, RetryRow, RollBackRow, RunRow, RunState,
};
use trackway_system::system_rng;
use trackway_tower::decide::{AttemptBudget, BudgetUse, FinalState, PlanEntry};
use trackway_tower::{Decision, History, PastAttempt, RetryPolicy};

use super::ladder::Judged;
use super::roll_back;
use crate::App;
use crate::error::AppError;
use crate::stored::{read_stored, stored_plan};

/// A decision, ready to be stored.
pub struct Decided {
    /// The row.
    pub retry: RetryRow,
    /// Where the run stands after it.
    pub run_state: RunState,
}

/// What the next attempt changes, as `retries.changes_json` holds it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Changes {
    /// Environment variables and their values, everything in force.
    pub set: BTreeMap<String, String>,
    /// The plan entry that was newly taken.
    pub plan_index: Option<usize>,
    /// The reason whose plan it is from.
    pub plan_reason: Option<TerminationReason>,
    /// Where the run goes back to first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roll_back: Option<roll_back::Decided>,
    /// The rung that is launched next, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rung: Option<String>,
    /// Machines that the attempt must not run on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_hosts: Vec<String>,
}

impl Changes {
    /// The changes a stored decision asks for; none in one that asks for nothing.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn of(retry: &RetryRow) -> Result<Self, AppError> {
        let Some(stored) = &retry.changes_json else { return Ok(Self::default()) };
        read_stored(stored, "retries.changes_json", || format!("attempt {}", retry.attempt_id))
    }
}

/// Decides what follows from an attempt that ended: `row` is its receipt, sealed or about to be, and `judged` how its rung
/// was judged.
pub fn decide(app: &App, row: &AttemptRow, judged: Option<&Judged>) -> Result<Decided, AppError> {
    match row.kind {
        LaunchKind::Train => {}
        LaunchKind::Evaluate => return Ok(answer(app, row, evaluated(app, row)?, None)),
        _ => return Ok(answer(app, row, rehearsed(row), None)),
    }
    // The ledger's copy of the plan, so that a damaged file of the home cannot keep a receipt from being sealed.
    let run = app.run_by_id(row.run_id)?;
    let retry = match retry_section(&run) {
        Ok(retry) => retry,
        Err(error) => return Ok(answer(app, row, without_plan(&error), None)),
    };
    let due = roll_back::due(app, row)?;
    let next_rung = judged.and_then(Judged::next_rung);
    let roll_back = due.as_ref().map(|(_, facts)| facts.clone());
    let history = History { next_rung, roll_back, ..history(app, row)? };
    let decision = trackway_tower::decide(&history, &policy_of(&retry), system_rng().next_unit());
    let decision = if run.run_file_path.is_some() { decision } else { once(decision) };
    Ok(answer(app, row, decision, due))
}

/// No budget and no retry: what follows is the business of the one who rehearses.
fn rehearsed(row: &AttemptRow) -> Decision {
    let success = row.termination_reason.is_some_and(TerminationReason::is_success);
    Decision::Stop {
        rule: "rehearsal.ended",
        why: format!("a launch of kind `{}` is not repeated by itself", row.kind.as_str()),
        budget: None,
        final_state: if success { FinalState::Completed } else { FinalState::Failed },
        next_actions: Vec::new(),
    }
}

/// The evaluator is launched again as it is, within its budgets; nothing else of the run is touched.
fn evaluated(app: &App, row: &AttemptRow) -> Result<Decision, AppError> {
    let run = app.run_by_id(row.run_id)?;
    let policy = match retry_section(&run) {
        Ok(retry) => policy_of(&retry),
        Err(error) => return Ok(without_plan(&error)),
    };
    Ok(trackway_tower::decide(&history(app, row)?, &policy, system_rng().next_unit()))
}

fn answer(app: &App, row: &AttemptRow, decision: Decision, due: Option<roll_back::Due>) -> Decided {
    let mut retry = RetryRow {
        attempt_id: row.attempt_id,
        run_id: row.run_id,
        at: app.clock.now(),
        decision: DecisionWord::Stop,
        rule: decision.rule().into(),
        why: String::new(),
        delay_seconds: None,
        budget_name: None,
        budget_spent: None,
        budget_limit: None,
        changes_json: None,
        next_attempt_id: None,
    };
    let mut spend = |budget: Option<BudgetUse>| {
        if let Some(budget) = budget {
            retry.budget_name = Some(budget.name);
            retry.budget_spent = Some(budget.spent);
            retry.budget_limit = Some(budget.limit);
        }
    };
    let run_state = match decision {
        Decision::Retry { why, delay_seconds, set, plan_index, budget, exclude_hosts, .. } => {
            spend(Some(budget));
            let plan_reason = plan_index.and(row.termination_reason);
            let set = app.redactor.settings(&set);
            let roll_back = roll_back::decided(&retry, due);
            let changes = Changes { set, plan_index, plan_reason, roll_back, rung: None, exclude_hosts };
            retry.changes_json = serde_json::to_value(changes).ok();
            retry.decision = DecisionWord::Retry;
            retry.delay_seconds = Some(delay_seconds);
            retry.why = why;
            RunState::Waiting
        }
        Decision::NextRung { why, rung, set, .. } => {
            let changes =
                Changes { set: app.redactor.settings(&set), rung: Some(rung), ..Changes::default() };
            retry.changes_json = serde_json::to_value(changes).ok();
            retry.decision = DecisionWord::Promote;
            retry.why = why;
            RunState::Waiting
        }
        Decision::RetryEvaluator { why, budget, delay_seconds, .. } if row.kind == LaunchKind::Evaluate => {
            spend(Some(budget));
            retry.decision = DecisionWord::Retry;
            retry.delay_seconds = Some(delay_seconds);
            retry.why = why;
            RunState::Waiting
        }
        // The evaluation within a training script failed behind its last checkpoint: the attempt stays good, and the run is
        // at rest until `trackway eval run` judges it.
        Decision::RetryEvaluator { why, budget, .. } => {
            spend(Some(budget));
            retry.why = why;
            RunState::Blocked
        }
        Decision::Stop { why, budget, final_state, .. } => {
            spend(budget);
            retry.why = why;
            match final_state {
                FinalState::Completed => RunState::Completed,
                FinalState::Failed | FinalState::BudgetExhausted => RunState::Failed,
                FinalState::Blocked => RunState::Blocked,
                FinalState::Cancelled => RunState::Stopped,
            }
        }
    };
    Decided { retry, run_state }
}

/// The sealed attempts of the run, oldest first, with `row` as the last one.
fn history(app: &App, row: &AttemptRow) -> Result<History, AppError> {
    let retries = app.ledger_read(|ledger| ledger.retries_of_run(row.run_id))?;
    let changes_before = |attempt: &AttemptRow| {
        let parent = retries.iter().find(|retry| Some(retry.attempt_id) == attempt.parent_attempt_id);
        Ok::<_, AppError>(parent.map(Changes::of).transpose()?.unwrap_or_default())
    };
    let mut attempts = app.attempts_of_kind(row.run_id, row.kind)?;
    attempts.retain(|attempt| {
        attempt.state == AttemptState::Sealed && attempt.attempt_number < row.attempt_number
    });
    attempts.push(row.clone());
    let mut committed = BTreeMap::new();
    let past = attempts.iter().map(|attempt| {
        let newest: &mut Option<u64> = committed.entry(attempt.rung.as_str()).or_default();
        *newest = (*newest).max(attempt.last_committed_step);
        let hosts = hosts_to_choose_from(app, attempt);
        Ok(PastAttempt { hosts, ..past_attempt(attempt, changes_before(attempt)?, *newest) })
    });
    let mut past = past.collect::<Result<Vec<PastAttempt>, AppError>>()?;
    for left in roll_back::rows(app, row.run_id)? {
        leave(&mut past, &attempts, &left);
    }
    let data_manifest_now = row.data_sha256.clone().unwrap_or_default();
    Ok(History { attempts: past, data_manifest_now, next_rung: None, roll_back: None })
}

/// What was committed after the place that the run went back to is no progress any more; what comes after the roll back is.
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

fn past_attempt(attempt: &AttemptRow, changes: Changes, committed: Option<u64>) -> PastAttempt {
    PastAttempt {
        kind: attempt.kind,
        rung: attempt.rung.clone(),
        reason: attempt.termination_reason.unwrap_or(TerminationReason::Unknown),
        confidence: attempt.termination_confidence.unwrap_or(Confidence::Guess),
        fingerprint: attempt.fingerprint.clone().unwrap_or_default(),
        last_committed_step: committed,
        resumed_from_step: attempt.resumed_from_step,
        last_step: attempt.last_step,
        gpu_seconds: attempt.gpu_seconds.unwrap_or(0.0),
        cost_usd: attempt.cost_usd.unwrap_or(0.0),
        seconds: attempt.wall_seconds.unwrap_or(0.0),
        plan_index: changes.plan_index,
        plan_reason: changes.plan_reason,
        set: changes.set,
        data_manifest: attempt.data_sha256.clone().unwrap_or_default(),
        hosts: Vec::new(),
    }
}

/// The machines an attempt ran on, where its launcher could have put it on others.
fn hosts_to_choose_from(app: &App, attempt: &AttemptRow) -> Vec<String> {
    let has_choice = app.launchers.named(&attempt.launcher).is_ok_and(|launcher| launcher.chooses_hosts());
    let hosts = attempt.hosts.as_deref().filter(|_| has_choice).unwrap_or_default();
    hosts.split(',').filter(|host| !host.is_empty()).map(str::to_owned).collect()
}

fn retry_section(run: &RunRow) -> Result<RetrySection, AppError> {
    Ok(stored_plan(run)?.map(|plan| plan.retry).unwrap_or_default())
}

/// Without its limits nothing is retried; the attempt is sealed all the same.
fn without_plan(error: &AppError) -> Decision {
    Decision::Stop {
        rule: "policy.unreadable_plan",
        why: format!("its retry limits are not known: {error}"),
        budget: None,
        final_state: FinalState::Failed,
        next_actions: error.hints.clone(),
    }
}

/// The budgets of a run that matter before anything is spent, with their limits; none without a run file.
pub fn budget_limits(run: &RunRow) -> Result<Vec<(&'static str, f64)>, AppError> {
    if run.run_file_path.is_none() {
        return Ok(Vec::new());
    }
    let policy = policy_of(&retry_section(run)?);
    let attempts =
        [("preempted", policy.preempted.attempts), ("infrastructure", policy.infrastructure.attempts)];
    Ok(attempts.into_iter().map(|(name, attempts)| (name, f64::from(attempts))).collect())
}

/// How often and how long a storage that does not answer is tried before an attempt is launched.
pub fn storage_budget(run: &RunRow) -> Result<AttemptBudget, AppError> {
    let policy = policy_of(&retry_section(run)?);
    Ok(policy.by_reason.get(&TerminationReason::StorageError).copied().unwrap_or(policy.infrastructure))
}

/// A command without a run file is launched once: nobody said that it may be repeated.
fn once(decision: Decision) -> Decision {
    // A person who asks for a roll back says just that.
    if !decision.launches() || decision.rule() == "roll_back.person" {
        return decision;
    }
    Decision::Stop {
        rule: "policy.no_run_file",
        why: "a command without a run file is launched once; with one, `[retry]` configures retries".into(),
        budget: None,
        final_state: FinalState::Failed,
        next_actions: Vec::new(),
    }
}

/// The run file's `[retry]` in tower's terms; what it leaves out keeps tower's defaults.
fn policy_of(section: &RetrySection) -> RetryPolicy {
    let mut policy = RetryPolicy {
        max_usd: section.max_usd,
        max_gpu_hours: section.max_gpu_hours,
        max_hours: section.max_hours,
        ..RetryPolicy::default()
    };
    for (name, rule) in &section.rules {
        let plan = || rule.plan.iter().map(|set| PlanEntry { set: set.clone() }).collect();
        match name.as_str() {
            "preempted" => policy.preempted = budget(policy.preempted, rule),
            "infrastructure" => policy.infrastructure = budget(policy.infrastructure, rule),
            "hang" => policy.hang = budget(policy.hang, rule),
            "timeout" => policy.timeout = budget(policy.timeout, rule),
            "unknown" => policy.unknown = budget(policy.unknown, rule),
            "roll_back" => policy.roll_back = budget(policy.roll_back, rule),
            "evaluator_error" => policy.evaluator = budget(policy.evaluator, rule),
            "device_oom" => policy.device_oom = plan(),
            "host_oom" => policy.host_oom = plan(),
            "numeric_divergence" => policy.numeric_divergence = plan(),
            other => {
                if let Ok(reason) = other.parse::<TerminationReason>() {
                    let default = policy.infrastructure;
                    policy.by_reason.insert(reason, budget(default, rule));
                }
            }
        }
    }
    policy
}

fn budget(default: AttemptBudget, rule: &RetryRule) -> AttemptBudget {
    AttemptBudget {
        attempts: rule.attempts.unwrap_or(default.attempts),
        refill_hours: match rule.refill_seconds {
            None => default.refill_hours,
            Some(seconds) => (seconds > 0.0).then_some(seconds / 3600.0),
        },
        backoff_min_seconds: rule.backoff_min_seconds.unwrap_or(default.backoff_min_seconds),
        backoff_max_seconds: rule.backoff_max_seconds.unwrap_or(default.backoff_max_seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that what the run file says replaces the default, that the rest stays, and that own rules of reasons
    /// are kept.
    #[test]
    fn the_run_file_replaces_defaults_one_by_one() {
        let text = "[run]\nname = \"r\"\ncommand = [\"true\"]\n[retry]\npreempted = { attempts = 7, refill = \"never\" }\nhang = { refill = \"30m\" }\n\
            network_error = { attempts = 9, backoff = \"1s..2s\" }\n\
            device_oom = { plan = [{ set = { BATCH = \"16\" } }] }\nmax_usd = 200\n";
        let file = trackway_formats::runfile::parse(text, "test.toml", &[]).unwrap();
        let policy = policy_of(&file.retry);
        assert_eq!(policy.preempted.attempts, 7);
        assert_eq!(
            policy.preempted.backoff_max_seconds,
            RetryPolicy::default().preempted.backoff_max_seconds
        );
        assert_eq!(policy.infrastructure, RetryPolicy::default().infrastructure);
        assert_eq!(policy.by_reason[&TerminationReason::NetworkError].backoff_max_seconds, 2.0);
        assert_eq!(policy.device_oom[0].set["BATCH"], "16");
        assert_eq!(policy.max_usd, Some(200.0));
        assert_eq!((policy.preempted.refill_hours, policy.hang.refill_hours), (None, Some(0.5)));
    }

    /// Proves that a command without a run file is never launched twice, and that an end stays the end it is.
    #[test]
    fn without_a_run_file_nothing_is_launched_again() {
        let budget = BudgetUse { name: "unknown".into(), spent: 1.0, limit: 1.0 };
        let retry =
            Decision::RetryEvaluator { rule: "C5.evaluator", why: String::new(), delay_seconds: 0.0, budget };
        assert_eq!(once(retry).rule(), "policy.no_run_file");
        let stop = Decision::Stop {
            rule: "finished",
            why: String::new(),
            budget: None,
            final_state: FinalState::Completed,
            next_actions: Vec::new(),
        };
        assert_eq!(once(stop.clone()), stop);
    }
}
