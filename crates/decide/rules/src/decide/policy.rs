//! The `[retry]` table of the run file, with its defaults.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use trackway_core::{TerminationReason as Reason, text};

use super::rule::DecisionRule;
use super::{BudgetUse, PlanEntry, Spent};

/// How often, and how patiently. Committed training gives retries back, one by one, up to all of them: a run of weeks
/// meets more failures than any fixed number, and one that gets nowhere gets none back.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttemptBudget {
    /// Retries until it is spent.
    pub attempts: u32,
    /// Committed training that gives one retry back, in hours; none: nothing does.
    #[serde(default)]
    pub refill_hours: Option<f64>,
    /// The first delay; each retry for the same reason doubles it.
    pub backoff_min_seconds: f64,
    /// The longest delay.
    pub backoff_max_seconds: f64,
    /// Money for the attempts that are retries of it, US dollars.
    #[serde(default)]
    pub max_usd: Option<f64>,
    /// GPU time for them, hours.
    #[serde(default)]
    pub max_gpu_hours: Option<f64>,
}

impl AttemptBudget {
    const fn new(attempts: u32, backoff_min_seconds: f64, backoff_max_seconds: f64) -> Self {
        Self {
            attempts,
            refill_hours: None,
            backoff_min_seconds,
            backoff_max_seconds,
            max_usd: None,
            max_gpu_hours: None,
        }
    }

    const fn refilled(self, hours: f64) -> Self {
        Self { refill_hours: Some(hours), ..self }
    }

    /// The delay before the `retry`-th retry (1 is the first): half of the doubled delay for certain, the other half
    /// times `jitter`.
    pub(super) fn delay_seconds(&self, retry: u32, jitter: f64) -> f64 {
        let doubled = self.backoff_min_seconds * 2f64.powi(retry.saturating_sub(1).min(60) as i32);
        let full = doubled.min(self.backoff_max_seconds).max(0.0);
        full * (0.5 + 0.5 * jitter.clamp(0.0, 1.0))
    }
}

/// Every budget of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryPolicy {
    /// Preemptions: 50, one more for each committed hour, after 5 s to 1 min. They spend nothing else.
    pub preempted: AttemptBudget,
    /// `node_failure`, `network_error`, `storage_error` together: 5, one more for each committed half hour, after 10 s
    /// to 5 min.
    pub infrastructure: AttemptBudget,
    /// Hangs: 2, one more for each 24 committed hours, after 30 s to 5 min.
    pub hang: AttemptBudget,
    /// A limit on time was reached: 10, one more for each committed hour, at once; a long run needs many allocations.
    pub timeout: AttemptBudget,
    /// Unexplained ends, and mere guesses of `code_error` or `checkpoint_error`: 1, one more for each 24 committed
    /// hours, after 30 s to 5 min.
    pub unknown: AttemptBudget,
    /// Rollbacks requested by detectors: 3, at once.
    pub roll_back: AttemptBudget,
    /// Evaluations: 3, after 10 s to 5 min.
    pub evaluator: AttemptBudget,
    /// Budgets of single reasons; they go before the shared ones above. Empty by default.
    pub by_reason: BTreeMap<Reason, AttemptBudget>,
    /// What to change after `device_oom`, in order. Empty: no retry.
    pub device_oom: Vec<PlanEntry>,
    /// What to change after `host_oom`, in order. Empty: no retry.
    pub host_oom: Vec<PlanEntry>,
    /// What to change after `numeric_divergence`, in order. Empty: no retry.
    pub numeric_divergence: Vec<PlanEntry>,
    /// Ends in a row that look alike and commit nothing new before the run stops: 3.
    pub crash_loop_attempts: u32,
    /// Infrastructure failures in a row without a newly committed step before the run stops: 5. Machines fail in series
    /// at random: at one failure in 3 hours and a commit each 10 minutes, three in a row end one run of weeks in six.
    pub infrastructure_without_commit_max: u32,
    /// Preemptions in a row without a newly committed step before the run stops: 10.
    pub preempted_without_commit_max: u32,
    /// Money for all attempts together, US dollars.
    pub max_usd: Option<f64>,
    /// GPU time for all attempts together, hours.
    pub max_gpu_hours: Option<f64>,
    /// Wall time for all attempts together, hours.
    pub max_hours: Option<f64>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            preempted: AttemptBudget::new(50, 5.0, 60.0).refilled(1.0),
            infrastructure: AttemptBudget::new(5, 10.0, 300.0).refilled(0.5),
            hang: AttemptBudget::new(2, 30.0, 300.0).refilled(24.0),
            timeout: AttemptBudget::new(10, 0.0, 0.0).refilled(1.0),
            unknown: AttemptBudget::new(1, 30.0, 300.0).refilled(24.0),
            roll_back: AttemptBudget::new(3, 0.0, 0.0),
            evaluator: AttemptBudget::new(3, 10.0, 300.0),
            by_reason: BTreeMap::new(),
            device_oom: Vec::new(),
            host_oom: Vec::new(),
            numeric_divergence: Vec::new(),
            crash_loop_attempts: 3,
            infrastructure_without_commit_max: 5,
            preempted_without_commit_max: 10,
            max_usd: None,
            max_gpu_hours: None,
            max_hours: None,
        }
    }
}

/// A budget of all attempts together of which nothing is left.
#[derive(Debug, Clone, PartialEq)]
pub struct SpentBudget {
    /// The rule by which it ends a run.
    pub rule: DecisionRule,
    /// Its key in `[retry]`, what is spent, and the limit; both in [`Self::unit`].
    pub budget: BudgetUse,
    /// `USD`, `GPU hours` or `hours`.
    pub unit: &'static str,
}

impl fmt::Display for SpentBudget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (spent, limit) = (text::budgeted(self.budget.spent), text::budgeted(self.budget.limit));
        write!(formatter, "{spent} of {limit} {} are spent", self.unit)
    }
}

/// A budget in attempts, its name, its rule and the reasons that spend from it.
pub(super) struct Spending<'a> {
    pub(super) name: &'static str,
    pub(super) rule: DecisionRule,
    pub(super) reasons: &'a [Reason],
    pub(super) budget: &'a AttemptBudget,
}

const fn spend<'a>(
    name: &'static str,
    rule: DecisionRule,
    reasons: &'a [Reason],
    budget: &'a AttemptBudget,
) -> Spending<'a> {
    Spending { name, rule, reasons, budget }
}

impl RetryPolicy {
    /// The budgets of all attempts together that are spent: money, GPU time and wall time. One of time also where at most
    /// `rest_seconds` are left of it.
    pub fn spent_budgets(&self, spent: Spent, rest_seconds: f64) -> impl Iterator<Item = SpentBudget> {
        let [gpu_hours, hours, rest] =
            [spent.gpu_seconds, spent.seconds, rest_seconds].map(|seconds| seconds / 3600.0);
        let limits = [
            (DecisionRule::MoneySpent, "max_usd", spent.cost_usd, 0.0, self.max_usd, "USD"),
            (DecisionRule::GpuTimeSpent, "max_gpu_hours", gpu_hours, rest, self.max_gpu_hours, "GPU hours"),
            (DecisionRule::TimeSpent, "max_hours", hours, rest, self.max_hours, "hours"),
        ];
        limits.into_iter().filter_map(|(rule, name, spent, rest, limit, unit)| {
            let limit = limit.filter(|limit| spent + rest >= *limit)?;
            Some(SpentBudget { rule, budget: BudgetUse { name: name.into(), spent, limit }, unit })
        })
    }

    /// The plan of fall-backs for a reason that may only be retried changed.
    pub(crate) fn plan(&self, reason: Reason) -> Option<&[PlanEntry]> {
        match reason {
            Reason::DeviceOom => Some(&self.device_oom),
            Reason::HostOom => Some(&self.host_oom),
            Reason::NumericDivergence => Some(&self.numeric_divergence),
            _ => None,
        }
    }

    /// The budget that a retry of the same launch spends from.
    pub(super) fn spending(&self, reason: Reason) -> Spending<'_> {
        const INFRASTRUCTURE: &[Reason] = &[Reason::NodeFailure, Reason::NetworkError, Reason::StorageError];
        const UNKNOWN: &[Reason] = &[Reason::Unknown, Reason::CodeError, Reason::CheckpointError];
        if let Some((own, budget)) = self.by_reason.get_key_value(&reason) {
            return spend(own.as_str(), DecisionRule::OwnBudget, std::slice::from_ref(own), budget);
        }
        match reason {
            Reason::Preempted => {
                spend("preempted", DecisionRule::Preempted, &[Reason::Preempted], &self.preempted)
            }
            Reason::NodeFailure | Reason::NetworkError | Reason::StorageError => {
                spend("infrastructure", DecisionRule::TransientFault, INFRASTRUCTURE, &self.infrastructure)
            }
            Reason::Hang => spend("hang", DecisionRule::Hang, &[Reason::Hang], &self.hang),
            Reason::Timeout => spend("timeout", DecisionRule::Timeout, &[Reason::Timeout], &self.timeout),
            _ => spend("unknown", DecisionRule::UnknownReason, UNKNOWN, &self.unknown),
        }
    }
}
