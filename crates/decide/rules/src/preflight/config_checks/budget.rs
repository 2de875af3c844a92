use super::{Answer, TrainingConfig, blocked, not_applicable, passed, warned};
use crate::preflight::cost::Budget;

/// What the run is expected to cost against what it may.
pub(super) fn budget(name: &str, config: &TrainingConfig) -> Answer {
    let plan = config.cost.ok_or("`resources.usd_per_gpu_hour` or `training.hours_expected` is not set")?;
    let cost = plan.estimate();
    let expected = format!(
        "the expected cost is {:.2} USD, {:.2} with failures",
        cost.total_usd, cost.with_failures_usd
    );
    let Some(budget_usd) = config.budget_usd else {
        return not_applicable(name, format!("{expected}; `retry.max_usd` is not set"));
    };
    let against = format!("{expected}; the budget is {budget_usd:.2}");
    match cost.against(budget_usd) {
        Budget::Enough => passed(name, against),
        Budget::EnoughWithoutFailures => {
            let action = "raise `retry.max_usd` to cover failed attempts, or train on a smaller rung";
            warned(name, "retry.max_usd", against, action)
        }
        Budget::Exceeded => {
            let action =
                "raise `retry.max_usd`, shorten the run, or use cheaper GPUs (spot, with checkpoints)";
            blocked(name, "retry.max_usd", against, action)
        }
    }
}
