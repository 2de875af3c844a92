use super::{TrainingConfig, block, warning};
use crate::cost::Budget;
use trackway_core::checks::CheckResult;

/// What the run is expected to cost against what it may.
pub(super) fn budget(config: &TrainingConfig) -> CheckResult {
    const NAME: &str = "cost";
    let Some(plan) = config.cost else {
        return CheckResult::not_run(NAME, "nobody told price and hours");
    };
    let cost = plan.estimate();
    let expected =
        format!("{:.2} USD are expected, {:.2} with failures", cost.total_usd, cost.with_failures_usd);
    let Some(budget_usd) = config.budget_usd else {
        return CheckResult::not_applicable(NAME, format!("{expected}; there is no budget"));
    };
    let against = format!("{expected}; the budget is {budget_usd:.2}");
    match cost.against(budget_usd) {
        Budget::Enough => CheckResult::pass(NAME, against),
        Budget::EnoughWithoutFailures => {
            let action = "leave room for failed attempts, or go down a stage";
            CheckResult::of(NAME, vec![warning(NAME, "retry.max_usd", against, action)])
        }
        Budget::Exceeded => {
            let action = "raise the budget, run shorter, or use cheaper devices (spot, with checkpoints)";
            CheckResult::of(NAME, vec![block(NAME, "retry.max_usd", against, action)])
        }
    }
}
