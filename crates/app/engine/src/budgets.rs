//! What a run may spend: the limits of its retries, and what is spent of them.

use trackway_api::runs::watch::Budget;
use trackway_core::{RunId, TerminationReason};
use trackway_formats::runfile::{RetryRule, RetrySection};
use trackway_ledger::RunRow;
use trackway_rules::RetryPolicy;
use trackway_rules::decide::{AttemptBudget, Spent, SpentBudget};

use crate::Context;
use crate::error::AppError;
use crate::ledger::stored::stored_plan;

/// An attempt that had no longer to run would be ended before it did anything: so little is left of a budget of time that is spent.
const REST_SECONDS: f64 = 1.0;

/// The newest state of the run's budgets: the common ones, and every other it spent from.
pub fn budgets_of(context: &Context, run: &RunRow) -> Result<Vec<Budget>, AppError> {
    let untouched = |(name, limit): (&str, f64)| Budget { name: name.into(), spent: 0.0, limit: Some(limit) };
    let mut budgets: Vec<Budget> = budget_limits(run)?.into_iter().map(untouched).collect();
    for retry in context.ledger_read(|ledger| ledger.retries_of_run(run.run_id))? {
        let (Some(name), Some(spent)) = (retry.budget_name, retry.budget_spent) else { continue };
        budgets.retain(|budget| budget.name != name);
        budgets.push(Budget { name, spent, limit: retry.budget_limit });
    }
    Ok(budgets)
}

/// The limits of its retries, from the ledger's copy of its plan.
pub(crate) fn retry_policy(run: &RunRow) -> Result<RetryPolicy, AppError> {
    Ok(policy_of(&stored_plan(run)?.map(|plan| plan.retry).unwrap_or_default()))
}

/// The budgets of a run that matter before anything is spent, with their limits; none without a run file.
pub(crate) fn budget_limits(run: &RunRow) -> Result<Vec<(&'static str, f64)>, AppError> {
    if run.run_file_path.is_none() {
        return Ok(Vec::new());
    }
    let policy = retry_policy(run)?;
    let attempts =
        [("preempted", policy.preempted.attempts), ("infrastructure", policy.infrastructure.attempts)];
    Ok(attempts.into_iter().map(|(name, attempts)| (name, f64::from(attempts))).collect())
}

/// The budget of all attempts together by which another attempt of the run would be ended at once; `None`: there is none.
///
/// # Errors
/// When the ledger or the limits of the run cannot be read.
pub fn spent_budget(context: &Context, run: &RunRow) -> Result<Option<SpentBudget>, AppError> {
    let policy = retry_policy(run)?;
    let mut found = policy.spent_budgets(spent(context, run)?, REST_SECONDS);
    // What takes nothing of a budget is not ended by it, even where its limit is 0.
    Ok(found.find(|found| found.budget.spent > 0.0))
}

/// What all launches of a run took together: its sealed attempts, and what counts beside them.
pub(crate) fn spent(context: &Context, run: &RunRow) -> Result<Spent, AppError> {
    let beside = spent_beside(context, run.run_id)?;
    Ok(Spent {
        cost_usd: run.cost_usd.unwrap_or(0.0) + beside.cost_usd,
        gpu_seconds: run.gpu_seconds + beside.gpu_seconds,
        seconds: run.wall_seconds + beside.seconds,
    })
}

/// What evaluations, diagnoses and rehearsals of a run took: it counts in the budgets of the run.
pub(crate) fn spent_beside(context: &Context, run_id: RunId) -> Result<Spent, AppError> {
    let row = context.ledger_read(|ledger| ledger.run_cost(run_id))?;
    Ok(row.map_or_else(Spent::default, |row| Spent {
        cost_usd: row.cost_usd_beside.unwrap_or(0.0),
        gpu_seconds: row.gpu_seconds_beside,
        seconds: row.wall_seconds_beside,
    }))
}

/// How often and how long a storage that does not answer is tried before an attempt is launched.
pub(crate) fn storage_budget(run: &RunRow) -> Result<AttemptBudget, AppError> {
    let policy = retry_policy(run)?;
    Ok(policy.by_reason.get(&TerminationReason::StorageError).copied().unwrap_or(policy.infrastructure))
}

/// The run file's `[retry]` in the terms of the rules; what it leaves out keeps their defaults.
#[must_use]
pub fn policy_of(section: &RetrySection) -> RetryPolicy {
    let mut policy = RetryPolicy {
        max_usd: section.max_usd,
        max_gpu_hours: section.max_gpu_hours,
        max_hours: section.max_hours,
        ..RetryPolicy::default()
    };
    for (name, rule) in &section.rules {
        match name.as_str() {
            "preempted" => policy.preempted = budget(policy.preempted, rule),
            "infrastructure" => policy.infrastructure = budget(policy.infrastructure, rule),
            "hang" => policy.hang = budget(policy.hang, rule),
            "timeout" => policy.timeout = budget(policy.timeout, rule),
            "unknown" => policy.unknown = budget(policy.unknown, rule),
            "roll_back" => policy.roll_back = budget(policy.roll_back, rule),
            "evaluator_error" => policy.evaluator = budget(policy.evaluator, rule),
            "device_oom" => policy.device_oom.clone_from(&rule.plan),
            "host_oom" => policy.host_oom.clone_from(&rule.plan),
            "numeric_divergence" => policy.numeric_divergence.clone_from(&rule.plan),
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

pub(crate) fn budget(default: AttemptBudget, rule: &RetryRule) -> AttemptBudget {
    AttemptBudget {
        attempts: rule.attempts.unwrap_or(default.attempts),
        refill_hours: match rule.refill_seconds {
            None => default.refill_hours,
            Some(seconds) => (seconds > 0.0).then_some(seconds / 3600.0),
        },
        backoff_min_seconds: rule.backoff_min_seconds.unwrap_or(default.backoff_min_seconds),
        backoff_max_seconds: rule.backoff_max_seconds.unwrap_or(default.backoff_max_seconds),
        max_usd: rule.max_usd,
        max_gpu_hours: rule.max_gpu_hours,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that settings of the run file replace the defaults, that the rest stays, and that rules for reasons are
    /// kept.
    #[test]
    fn the_run_file_replaces_defaults_one_by_one() {
        let text = "[run]\nname = \"r\"\ncommand = [\"true\"]\n[retry]\npreempted = { attempts = 7, refill = \"never\" }\nhang = { refill = \"30m\" }\n\
            network_error = { attempts = 9, backoff = \"1s..2s\", max_usd = 3 }\n\
            device_oom = { plan = [{ set = { BATCH = \"16\" } }] }\nmax_usd = 200\n";
        let file = trackway_formats::runfile::parse(text, "test.toml", &[]).unwrap().plan;
        let policy = policy_of(&file.retry);
        assert_eq!(policy.preempted.attempts, 7);
        assert_eq!(
            policy.preempted.backoff_max_seconds,
            RetryPolicy::default().preempted.backoff_max_seconds
        );
        assert_eq!(policy.infrastructure, RetryPolicy::default().infrastructure);
        assert_eq!(policy.by_reason[&TerminationReason::NetworkError].backoff_max_seconds, 2.0);
        assert_eq!(policy.by_reason[&TerminationReason::NetworkError].max_usd, Some(3.0));
        assert_eq!(policy.device_oom[0].set["BATCH"], "16");
        assert_eq!(policy.max_usd, Some(200.0));
        assert_eq!((policy.preempted.refill_hours, policy.hang.refill_hours), (None, Some(0.5)));
    }
}
