//! The retries: each spends from a budget and names it.

use trackway_core::{LaunchKind, RetryOutlook, TerminationReason as Reason, text};

use super::{AttemptBudget, BudgetUse, Case, Decision, DecisionRule, FinalState, stop};

impl Case<'_> {
    /// Data that stopped a run stops it again. Only a changed manifest or schema contract opens it.
    pub(super) fn after_data_change(&self) -> Option<Decision> {
        let Self { history, policy, last, jitter } = *self;
        const DATA: &[Reason] = &[Reason::DataError, Reason::SchemaDrift];
        if !DATA.contains(&last.reason) {
            return None;
        }
        if history.data_manifest_now == last.data_manifest {
            let why = format!(
                "`{}`: nothing is launched until its data, schema, rules or code changes",
                last.reason
            );
            return Some(stop(DecisionRule::DataUnchanged, why, FinalState::Blocked));
        }
        // Data that was changed back stops it again.
        let seen_before = history.attempts.iter().any(|attempt| {
            DATA.contains(&attempt.reason) && attempt.data_manifest == history.data_manifest_now
        });
        if seen_before {
            let why = "this data already stopped an earlier attempt".to_owned();
            return Some(stop(DecisionRule::DataSeenBefore, why, FinalState::Blocked));
        }
        let spent = history.count(DATA);
        let why = "the data manifest or the schema contract changed since the data stopped the run";
        let delay_seconds = policy.infrastructure.delay_seconds(0, jitter);
        // Each manifest may be tried once, so the number of manifests is the limit.
        let budget = BudgetUse::of("data_manifests", spent, spent);
        Some(self.retry(DecisionRule::DataChanged, why.into(), delay_seconds, budget))
    }

    /// An evaluator that Trackway launched is launched again, alone.
    pub(super) fn evaluator(&self) -> Option<Decision> {
        let Self { history, policy, last, jitter } = *self;
        if last.reason != Reason::EvaluatorError || last.kind != LaunchKind::Evaluate {
            return None;
        }
        if last.retry_outlook == Some(RetryOutlook::DoNotRetry) {
            let why = "the evaluator would end the same way again: its code or its command must change; the training attempt is not affected";
            return Some(stop(DecisionRule::EvaluatorSameEnd, why.to_owned(), FinalState::Blocked));
        }
        let reasons = &[Reason::EvaluatorError];
        if let Some(stopped) = self.money_of_reason("evaluator_error", reasons, &policy.evaluator) {
            return Some(stopped);
        }
        let spent = history.count(reasons);
        let limit = policy.evaluator.attempts;
        let budget = BudgetUse::of("evaluator", spent, limit);
        if spent > limit {
            let why = format!("the evaluation failed {spent} times; the training attempt is not affected");
            return Some(stop(DecisionRule::EvaluatorBudgetSpent, why, FinalState::Blocked).over(budget));
        }
        let delay_seconds = policy.evaluator.delay_seconds(spent, jitter);
        let why = "the evaluation failed: only the evaluator is launched again; the training attempt is not affected".to_owned();
        Some(Decision::RetryEvaluator { rule: DecisionRule::EvaluatorAlone, why, delay_seconds, budget })
    }

    /// Out of memory (or diverged) is retried only with the next entry of the plan.
    pub(super) fn with_next_plan(&self) -> Option<Decision> {
        let Self { history, policy, last, jitter } = *self;
        let plan = policy.plan(last.reason)?;
        let used = history.plans_used(last.reason);
        let next = used.iter().max().map_or(0, |index| index + 1);
        let budget = |spent: usize| BudgetUse {
            name: format!("{}.plan", last.reason),
            spent: spent as f64,
            limit: plan.len() as f64,
        };
        let Some(entry) = plan.get(next) else {
            let why = if plan.is_empty() {
                format!(
                    "`{0}` is retried only with a changed plan, and `retry.{0}.plan` has none",
                    last.reason
                )
            } else {
                format!("`{}`: all {} entries of the plan are used", last.reason, plan.len())
            };
            return Some(stop(DecisionRule::NoPlanLeft, why, FinalState::Failed).over(budget(plan.len())));
        };
        let mut in_force = last.in_force.clone();
        in_force.add(entry);
        Some(Decision::Retry {
            rule: DecisionRule::ChangedPlan,
            why: format!("`{}`: entry {} of the plan sets {entry}", last.reason, next + 1),
            delay_seconds: policy.infrastructure.delay_seconds(0, jitter),
            in_force,
            plan_index: Some(next),
            budget: budget(next + 1),
            // Diverged weights may already be in the checkpoint, but the supervisor's resume rules decide which is good.
            resume: last.last_committed_step.is_some(),
            exclude_hosts: Vec::new(),
        })
    }

    /// The money and the GPU time of the retries for one reason.
    fn money_of_reason(&self, name: &str, reasons: &[Reason], budget: &AttemptBudget) -> Option<Decision> {
        let (usd, gpu_seconds) = self.history.spent_on(reasons);
        let gpu_hours = gpu_seconds / 3600.0;
        let limits = [
            (DecisionRule::ReasonMoneySpent, "max_usd", usd, budget.max_usd, "USD"),
            (DecisionRule::ReasonGpuTimeSpent, "max_gpu_hours", gpu_hours, budget.max_gpu_hours, "GPU hours"),
        ];
        limits.into_iter().find_map(|(rule, key, spent, limit, unit)| {
            let limit = limit.filter(|limit| spent >= *limit)?;
            let budget = BudgetUse { name: format!("{name}.{key}"), spent, limit };
            let why = format!(
                "retries of the `{name}` budget took {} of {} {unit}; the last attempt ended as `{}`",
                text::budgeted(spent),
                text::budgeted(limit),
                self.last.reason
            );
            Some(stop(rule, why, FinalState::BudgetExhausted).over(budget))
        })
    }

    /// Infrastructure, preemption and the unknown: the same launch again, while its budget lasts. Committed training refills it.
    pub(super) fn same_again(&self) -> Decision {
        let Self { history, policy, last, jitter } = *self;
        let spending = policy.spending(last.reason);
        if let Some(stopped) = self.money_of_reason(spending.name, spending.reasons, spending.budget) {
            return stopped;
        }
        let retries = history.count(spending.reasons);
        let in_use = history.in_use(spending.reasons, spending.budget.refill_hours);
        let limit = spending.budget.attempts;
        // A retry needs a whole one, as for a token bucket.
        let spent = in_use.ceil() as u32;
        let budget = BudgetUse::of(spending.name, spent.min(limit), limit);
        if spent > limit {
            let refill = spending.budget.refill_hours.map(|hours| {
                format!("; {hours} h of committed training give one back, and there was too little of it")
            });
            let why = format!(
                "all {limit} retries of the `{}` budget are spent; the last attempt ended as `{}`{}",
                spending.name,
                last.reason,
                refill.unwrap_or_default()
            );
            return stop(DecisionRule::AttemptsSpent, why, FinalState::BudgetExhausted).over(budget);
        }
        let number = match retries == spent {
            true => format!("retry {spent} of {limit}"),
            false => {
                format!("retry {retries}; {spent} of {limit} in use after what committed training gave back")
            }
        };
        let why = format!("`{}`: {number}", last.reason);
        self.retry(spending.rule, why, spending.budget.delay_seconds(spent, jitter), budget)
    }
}
