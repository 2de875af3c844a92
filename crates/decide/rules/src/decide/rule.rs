//! The rules of decisions.

use trackway_core::closed_list;

closed_list!(
    /// The rule that decided what follows from the end of an attempt: `retries.rule`.
    DecisionRule, "decision rule", {
        /// Nothing was launched yet.
        NoAttempt = "no_attempt",
        /// The attempt did what the run was for.
        Finished = "finished",
        /// A user requested a rollback.
        RollBackPerson = "roll_back.person",
        /// A detector requested a rollback.
        RollBackDetector = "roll_back.detector",
        /// As many roll backs as are allowed were made.
        RollBackBudget = "roll_back.budget",
        /// There is no checkpoint to roll back to.
        RollBackNoPlace = "roll_back.no_place",
        /// A person ended the attempt.
        OperatorCancelled = "operator.cancelled",
        /// The attempt was ended in favour of something else.
        OperatorSuperseded = "operator.superseded",
        /// A newer attempt owns the run.
        FencedByNewerAttempt = "fenced.newer_attempt_owns_the_run",
        /// The rung did not pass its rules.
        RungRefused = "rung.promotion_refused",
        /// The rung passed its rules: the next one is launched.
        RungPromoted = "rung.promoted",
        /// The attempt was ended because a budget was spent.
        BudgetExhausted = "budget.exhausted",
        /// `max_usd` is reached.
        MoneySpent = "budget.money",
        /// `max_gpu_hours` is reached.
        GpuTimeSpent = "budget.gpu_time",
        /// `max_hours` is reached.
        TimeSpent = "budget.time",
        /// `max_usd` of a single reason is reached.
        ReasonMoneySpent = "budget.money_of_reason",
        /// `max_gpu_hours` of a single reason is reached.
        ReasonGpuTimeSpent = "budget.gpu_time_of_reason",
        /// The retries of a budget are spent.
        AttemptsSpent = "budget.attempts_spent",
        /// Attempts in a row ended alike without a newly committed step.
        CrashLoop = "budget.crash_loop",
        /// The reason is unknown, and its small budget lasts.
        UnknownReason = "retry.unknown",
        /// The same launch would end the same way.
        SameEndExpected = "no_retry.same_end_expected",
        /// A reason with a separate budget is retried.
        OwnBudget = "retry.own_budget",
        /// A machine, the network or the storage failed, and is retried.
        TransientFault = "retry.transient_fault",
        /// A hang is retried.
        Hang = "retry.hang",
        /// A timeout is retried.
        Timeout = "retry.timeout",
        /// A preemption is retried.
        Preempted = "retry.preempted",
        /// The next entry of the plan is tried.
        ChangedPlan = "retry.changed_plan",
        /// The plan has no entry left.
        NoPlanLeft = "retry.no_plan_left",
        /// The data stopped the run and did not change.
        DataUnchanged = "data.unchanged",
        /// This data stopped an earlier attempt.
        DataSeenBefore = "data.seen_before",
        /// The data changed since it stopped the run.
        DataChanged = "data.changed",
        /// The evaluation alone is repeated.
        EvaluatorAlone = "evaluator.alone",
        /// The error is one of the evaluator's code or command, which a repetition does not change.
        EvaluatorSameEnd = "evaluator.same_end_expected",
        /// The evaluation failed as often as is allowed.
        EvaluatorBudgetSpent = "evaluator.budget_spent",
        /// A command without a run file is launched once.
        NoRunFile = "policy.no_run_file",
        /// The retry limits of the run cannot be read.
        UnreadablePlan = "policy.unreadable_plan",
        /// Rehearsals and proofs are not repeated by themselves.
        RehearsalEnded = "rehearsal.ended",
    }
);

impl DecisionRule {
    /// Whether it is about a roll back, made or refused.
    #[must_use]
    pub const fn is_roll_back(self) -> bool {
        matches!(
            self,
            Self::RollBackPerson | Self::RollBackDetector | Self::RollBackBudget | Self::RollBackNoPlace
        )
    }
}
