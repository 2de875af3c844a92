//! What comes after an end: history and policy in, decision out.
//!
//! The rules are tried in this order; the first that applies decides, and its name is in the decision: finished → roll
//! back (`roll_back.*`) → operator → budget already spent (`budget.*`) → next rung → data unchanged (`data.*`) → the same
//! exception again → evaluator alone (`evaluator.*`) → no retry can help → crash loop → changed plan → preempted →
//! transient (`retry.*`).

mod history;
mod policy;
mod retry;
mod rule;

use serde::{Deserialize, Serialize};
use trackway_core::{Confidence, LaunchKind, TerminationReason as Reason};

pub use history::{History, NextRung, PastAttempt, RollBack, Spent};
pub use policy::{AttemptBudget, RetryPolicy, SpentBudget};
pub use rule::DecisionRule;
pub use trackway_formats::runfile::PlanEntry;

/// How much of a budget is spent once the decision is carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BudgetUse {
    /// The budget's name as in the run file's `[retry]` table.
    pub name: String,
    /// Spent so far, this retry included: attempts, US dollars or GPU hours.
    pub spent: f64,
    /// The limit in the same unit.
    pub limit: f64,
}

impl BudgetUse {
    fn of(name: &str, spent: u32, limit: u32) -> Self {
        Self { name: name.into(), spent: f64::from(spent), limit: f64::from(limit) }
    }
}

/// The state of a run when nothing more is launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FinalState {
    /// It did what it was for.
    Completed,
    /// It failed and no retry may help.
    Failed,
    /// Something outside must change first: the data, the evaluator, a rule.
    Blocked,
    /// A person ended it.
    Cancelled,
    /// A budget is spent.
    BudgetExhausted,
}

/// What to do next, with the rule that decides it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Decision {
    /// Launch another attempt.
    Retry {
        /// The rule's name.
        rule: DecisionRule,
        /// Why, in a sentence.
        why: String,
        /// How long to wait first.
        delay_seconds: f64,
        /// Everything that the attempt runs with beyond the run file: what was in force, and the next plan entry.
        in_force: PlanEntry,
        /// The plan entry used, when this retry takes a new one.
        plan_index: Option<usize>,
        /// The budget it spends from.
        budget: BudgetUse,
        /// Whether it resumes from the last committed checkpoint.
        resume: bool,
        /// Machines that it is better without.
        exclude_hosts: Vec<String>,
    },
    /// Launch the next rung of the ladder.
    NextRung {
        /// The rule's name.
        rule: DecisionRule,
        /// Why, in a sentence.
        why: String,
        rung: String,
        /// What was in force beyond the run file, and stays so.
        in_force: PlanEntry,
    },
    /// Launch the evaluation alone again; the training attempt stays good.
    RetryEvaluator {
        /// The rule's name.
        rule: DecisionRule,
        /// Why, in a sentence.
        why: String,
        /// How long to wait first.
        delay_seconds: f64,
        /// The budget it spends from.
        budget: BudgetUse,
    },
    /// Launch nothing more.
    Stop {
        /// The rule's name.
        rule: DecisionRule,
        /// Why, in a sentence.
        why: String,
        /// The budget that decided, if one did.
        budget: Option<BudgetUse>,
        /// The state of the run now.
        final_state: FinalState,
    },
}

impl Decision {
    /// The rule that decided.
    #[must_use]
    pub fn rule(&self) -> DecisionRule {
        match self {
            Self::Retry { rule, .. }
            | Self::NextRung { rule, .. }
            | Self::RetryEvaluator { rule, .. }
            | Self::Stop { rule, .. } => *rule,
        }
    }

    /// The same, on other machines than these.
    fn excluding(mut self, hosts: Vec<String>) -> Self {
        if let Self::Retry { why, exclude_hosts, .. } = &mut self
            && !hosts.is_empty()
        {
            why.push_str(&format!("; not on {}, which several failures had in common", hosts.join(", ")));
            *exclude_hosts = hosts;
        }
        self
    }

    /// The same end, with the budget that it names.
    fn over(mut self, spent: BudgetUse) -> Self {
        if let Self::Stop { budget, .. } = &mut self {
            *budget = Some(spent);
        }
        self
    }

    /// Whether something is launched.
    #[must_use]
    pub fn launches(&self) -> bool {
        !matches!(self, Self::Stop { .. })
    }
}

/// Decides what comes after the last attempt of `history`. `jitter` is a random number in `[0, 1)`; it spreads the
/// retries of many runs that failed at the same time.
#[must_use]
pub fn decide(history: &History, policy: &RetryPolicy, jitter: f64) -> Decision {
    let Some(last) = history.attempts.last() else {
        let why = "nothing was launched yet".into();
        return stop(DecisionRule::NoAttempt, why, FinalState::Failed);
    };
    let case = Case { history, policy, last, jitter };
    case.finished()
        // Before the ends on purpose: an attempt that was ended to go back counts as superseded too.
        .or_else(|| case.rolled_back())
        .or_else(|| case.ended_on_purpose())
        // Before all that launches, the next rung too: these budgets bound everything.
        .or_else(|| case.money_spent())
        .or_else(|| case.promoted())
        .or_else(|| case.after_data_change())
        // Before the budgets of retries, which the same code would only spend.
        .or_else(|| case.same_exception())
        .or_else(|| case.evaluator())
        .or_else(|| case.cannot_help())
        // Before the retries: whatever is left of their budgets, more of the same proves nothing.
        .or_else(|| case.crash_loop())
        .or_else(|| case.with_next_plan())
        .unwrap_or_else(|| case.same_again())
        .excluding(history.suspect_hosts())
}

fn stop(rule: DecisionRule, why: String, final_state: FinalState) -> Decision {
    Decision::Stop { rule, why, budget: None, final_state }
}

/// What is decided about.
#[derive(Clone, Copy)]
struct Case<'a> {
    history: &'a History,
    policy: &'a RetryPolicy,
    /// The last attempt of the history.
    last: &'a PastAttempt,
    jitter: f64,
}

impl Case<'_> {
    /// The same launch again, from its last commit.
    fn retry(&self, rule: DecisionRule, why: String, delay_seconds: f64, budget: BudgetUse) -> Decision {
        Decision::Retry {
            rule,
            why,
            delay_seconds,
            in_force: self.last.in_force.clone(),
            plan_index: None,
            budget,
            resume: self.last.last_committed_step.is_some(),
            exclude_hosts: Vec::new(),
        }
    }

    /// The next rung spends from the budgets of money and time, and from no other.
    fn promoted(&self) -> Option<Decision> {
        let NextRung { rung, why } =
            self.history.next_rung.clone().filter(|_| self.last.reason.is_success())?;
        let in_force = self.last.in_force.clone();
        Some(Decision::NextRung { rule: DecisionRule::RungPromoted, why, rung, in_force })
    }

    fn finished(&self) -> Option<Decision> {
        let Self { history, last, .. } = *self;
        (last.reason.is_success() && history.next_rung.is_none()).then(|| {
            let why = format!("the attempt ended as `{}`", last.reason);
            stop(DecisionRule::Finished, why, FinalState::Completed)
        })
    }

    /// An attempt that was ended to go back. What else ended it meanwhile (a person, a fence) goes before.
    fn rolled_back(&self) -> Option<Decision> {
        let Self { history, policy, last, jitter } = *self;
        let roll_back = history.roll_back.as_ref()?;
        let may_go_back = matches!(
            last.reason,
            Reason::NumericDivergence | Reason::Unhealthy | Reason::Hang | Reason::Superseded
        );
        if !may_go_back {
            return None;
        }
        if let Some(spent) = self.money_spent() {
            return Some(spent);
        }
        let again = roll_back.spent + u32::from(!roll_back.by_person);
        let limit = policy.roll_back.attempts;
        let budget = BudgetUse::of("roll_back", again, limit);
        if !roll_back.by_person && again > limit {
            let why = format!("the limit of {limit} roll backs is reached; {}", roll_back.why);
            let budget = BudgetUse { spent: f64::from(roll_back.spent), ..budget };
            return Some(stop(DecisionRule::RollBackBudget, why, FinalState::Failed).over(budget));
        }
        let back = match &roll_back.back {
            Ok(back) => back,
            Err(why) => {
                let why = format!("{why}; {}", roll_back.why);
                return Some(stop(DecisionRule::RollBackNoPlace, why, FinalState::Failed));
            }
        };
        let to = back.to_step.map_or("the beginning".into(), |step| format!("the checkpoint of step {step}"));
        let skip = back.skip.map_or(String::new(), |range| format!(" and skips the batches {range}"));
        Some(Decision::Retry {
            rule: if roll_back.by_person {
                DecisionRule::RollBackPerson
            } else {
                DecisionRule::RollBackDetector
            },
            why: format!("rolls back to {to}{skip}: {}", roll_back.why),
            delay_seconds: policy.roll_back.delay_seconds(again, jitter),
            in_force: last.in_force.clone(),
            plan_index: None,
            budget,
            resume: back.to_step.is_some(),
            exclude_hosts: Vec::new(),
        })
    }

    fn ended_on_purpose(&self) -> Option<Decision> {
        let last = self.last;
        let (rule, state) = match last.reason {
            Reason::Cancelled => (DecisionRule::OperatorCancelled, FinalState::Cancelled),
            Reason::Superseded => (DecisionRule::OperatorSuperseded, FinalState::Cancelled),
            Reason::Fenced => (DecisionRule::FencedByNewerAttempt, FinalState::Failed),
            Reason::RungRejected => (DecisionRule::RungRefused, FinalState::Blocked),
            Reason::BudgetExhausted => (DecisionRule::BudgetExhausted, FinalState::BudgetExhausted),
            _ => return None,
        };
        let why = format!("the attempt ended as `{}`; it is not launched again", last.reason);
        Some(stop(rule, why, state))
    }

    /// Money, GPU time and wall time bound everything, evaluations and preemptions included.
    fn money_spent(&self) -> Option<Decision> {
        let Self { history, policy, last, .. } = *self;
        let found = policy.spent_budgets(history.spent(), 0.0).next()?;
        let why = format!("{found}; the last attempt ended as `{}`", last.reason);
        Some(stop(found.rule, why, FinalState::BudgetExhausted).over(found.budget))
    }

    /// Ends that the same launch would meet again. A mere guess is not enough to give up: it counts as unknown. What a
    /// detector ended is repeated only where the run file has a budget for it.
    fn cannot_help(&self) -> Option<Decision> {
        let Self { policy, last, .. } = *self;
        let hopeless = match last.reason {
            Reason::CodeError | Reason::CheckpointError => true,
            Reason::Unhealthy => !policy.by_reason.contains_key(&last.reason),
            _ => false,
        };
        (hopeless && last.confidence != Confidence::Guess).then(|| {
            let why = format!("`{}` would happen again: the launch must change", last.reason);
            stop(DecisionRule::SameEndExpected, why, FinalState::Failed)
        })
    }

    /// An exception of the code that a second launch raised again, at the same step: a third one would too, whatever is left of the
    /// budgets.
    fn same_exception(&self) -> Option<Decision> {
        let Self { history, last, .. } = *self;
        let exception = last.exception.as_deref().filter(|_| history.repeats_exception(last))?;
        let again = format!("`{exception}` ended two launches in a row");
        Some(match (last.kind, last.last_step) {
            (LaunchKind::Evaluate, _) => {
                let why = format!("{again}: the evaluator must change; the training attempt is not affected");
                stop(DecisionRule::EvaluatorSameEnd, why, FinalState::Blocked)
            }
            (_, step) => {
                let at = step
                    .map_or_else(|| "before a step was recorded".into(), |step| format!("at step {step}"));
                let why = format!("{again} {at}: the code, its settings, its data or its rights must change");
                stop(DecisionRule::SameEndExpected, why, FinalState::Failed)
            }
        })
    }

    /// Ends in a row that brought no newly committed step and look alike. Whatever is left of the budgets, more of the
    /// same proves nothing. Preemptions count against their own, larger bound; another plan entry is another try.
    fn crash_loop(&self) -> Option<Decision> {
        let Self { history, policy, last, .. } = *self;
        let bound = match last.reason {
            Reason::Preempted => policy.preempted_without_commit_max,
            Reason::NodeFailure | Reason::NetworkError | Reason::StorageError => {
                policy.infrastructure_without_commit_max
            }
            _ => policy.crash_loop_attempts,
        };
        let alike = history.trailing_without_progress(last);
        (alike >= bound).then(|| {
            let why = format!(
                "{alike} attempts in a row ended as `{}` without a newly committed step (last committed: {})",
                last.reason,
                last.last_committed_step.map_or("none".to_owned(), |step| format!("step {step}")),
            );
            let budget = BudgetUse::of("crash_loop", alike, bound);
            stop(DecisionRule::CrashLoop, why, FinalState::Failed).over(budget)
        })
    }
}

#[cfg(test)]
mod tests;
