//! A resume of a run that may take nothing more: why it is refused before anything is launched, and what a person can do.

use trackway_core::text;
use trackway_formats::runfile::{Plan, RetrySection};
use trackway_formats::shell::quoted;
use trackway_ledger::{AttemptRow, AttemptState, RunRow};
use trackway_rules::decide::SpentBudget;

use crate::Context;
use crate::budgets::spent_budget;
use crate::error::{AppError, ErrorKind};
use crate::run::blocked::plan_now;
use crate::run::job::planned_job;

/// Why another launch of the run is refused: a budget of all attempts together is spent, so that its attempt would be ended at once.
/// `None`: nothing of that is spent.
///
/// # Errors
/// When the ledger or the limits of the run cannot be read.
pub fn refused_by_budget(context: &Context, run: &RunRow) -> Result<Option<AppError>, AppError> {
    let Some(spent) = spent_budget(context, run)? else { return Ok(None) };
    let job = planned_job(context, run).ok();
    let plan = job.and_then(|job| plan_now(context, &job));
    Ok(Some(refusal(run, &spent, plan.and_then(|plan| raised(&plan, &spent)))))
}

/// The same of a resume. `last`: the last attempt of the run; one that is not sealed is only watched, and what follows from
/// its end is decided then.
///
/// # Errors
/// As for [`refused_by_budget`].
pub(in crate::run) fn resume_refused_by_budget(
    context: &Context,
    run: &RunRow,
    last: Option<&AttemptRow>,
) -> Result<Option<AppError>, AppError> {
    match last.is_some_and(|last| last.state != AttemptState::Sealed) {
        true => Ok(None),
        false => refused_by_budget(context, run),
    }
}

/// What the run file has now in the place of the limit, where that is more.
fn raised(plan: &Plan, spent: &SpentBudget) -> Option<String> {
    match limit_of(&plan.retry, &spent.budget.name) {
        None => Some("none".into()),
        Some(limit) => (limit > spent.budget.limit).then(|| text::budgeted(limit)),
    }
}

/// The limit of a budget of all attempts together.
fn limit_of(retry: &RetrySection, name: &str) -> Option<f64> {
    match name {
        "max_usd" => retry.max_usd,
        "max_gpu_hours" => retry.max_gpu_hours,
        _ => retry.max_hours,
    }
}

fn refusal(run: &RunRow, spent: &SpentBudget, raised: Option<String>) -> AppError {
    let next = start_again(run, spent, raised.is_some());
    let kept = raised
        .map(|limit| format!("; a resume keeps the settings of its run, and the run file has {limit} now"));
    let message = format!(
        "run `{}` cannot be resumed: {spent} (`retry.{}`){}",
        run.name,
        spent.budget.name,
        kept.unwrap_or_default()
    );
    AppError::new(ErrorKind::Blocked, message)
        .hint(next)
        .hint(format!("see what spent it with: trackway explain {}", run.run_id))
}

/// How a person continues: by another run, which may take more.
fn start_again(run: &RunRow, spent: &SpentBudget, is_raised: bool) -> String {
    let file = quoted(run.run_file_path.as_deref().unwrap_or("FILE"));
    let raise = match is_raised {
        true => String::new(),
        false => format!("with a higher `retry.{}`, ", spent.budget.name),
    };
    match run.last_committed_step {
        Some(step) => format!(
            "{raise}start a run from the weights of step {step} (its optimizer and its place in the data begin again): \
             trackway run {file} --set run.start_from={}",
            run.run_id
        ),
        None => format!("{raise}start a new run: trackway run {file}"),
    }
}

#[cfg(test)]
mod tests {
    use trackway_core::name::{Name, NameKind};
    use trackway_core::{RunId, Timestamp};
    use trackway_rules::decide::{BudgetUse, DecisionRule};

    use super::*;

    /// Proves that a refusal says what is spent of which limit, that a raised limit is not taken over, and how the work continues, with
    /// the weights where some were committed.
    #[test]
    fn a_refusal_says_what_to_do() {
        let run_id: RunId = "run_01jz0000000000000000000000".parse().unwrap();
        let name = Name::renamed(NameKind::Run, "toy");
        let run = RunRow::planned(run_id, &name, "", serde_json::json!({}), Timestamp::from_micros(0));
        let run = RunRow { run_file_path: Some("/w/my job.toml".into()), ..run };
        let budget = BudgetUse { name: "max_hours".into(), spent: 2.01, limit: 2.0 };
        let spent = SpentBudget { rule: DecisionRule::TimeSpent, budget, unit: "hours" };

        let refused = refusal(&run, &spent, None);
        assert_eq!(refused.kind, ErrorKind::Blocked);
        let message = "run `toy` cannot be resumed: 2.01 of 2 hours are spent (`retry.max_hours`)";
        assert_eq!(refused.to_string(), message);
        let next = "with a higher `retry.max_hours`, start a new run: trackway run '/w/my job.toml'";
        assert_eq!(refused.hints[0], next);

        let run = RunRow { last_committed_step: Some(40), ..run };
        let refused = refusal(&run, &spent, Some("4".into()));
        let kept = "; a resume keeps the settings of its run, and the run file has 4 now";
        assert_eq!(refused.to_string(), format!("{message}{kept}"));
        assert!(refused.hints[0].starts_with("start a run from the weights of step 40"), "{refused:?}");
        let command = format!("trackway run '/w/my job.toml' --set run.start_from={run_id}");
        assert!(refused.hints[0].ends_with(&command), "{refused:?}");
    }

    /// Proves that a limit which the run file no longer has counts as raised, and one that is the same or lower does not.
    #[test]
    fn a_limit_that_is_gone_is_raised() {
        let with = |max_hours| {
            let mut plan = Plan::for_command(&["true".into()]);
            plan.retry.max_hours = max_hours;
            plan
        };
        let budget = BudgetUse { name: "max_hours".into(), spent: 2.01, limit: 2.0 };
        let spent = SpentBudget { rule: DecisionRule::TimeSpent, budget, unit: "hours" };
        let raised = |max_hours| raised(&with(max_hours), &spent);
        assert_eq!([raised(None), raised(Some(4.5))], [Some("none".into()), Some("4.50".into())]);
        assert_eq!([raised(Some(2.0)), raised(Some(1.0))], [None, None]);
    }
}
