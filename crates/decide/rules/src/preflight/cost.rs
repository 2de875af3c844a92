//! What a run will cost: devices × rate × hours, storage and transfer; and what failures add.

use serde::{Deserialize, Serialize};

/// Failed runs add so much to what finished ones cost: the middle of the 20 to 30 % that is usual.
pub const FAILURE_SHARE: f64 = 0.25;

/// What is known of a run before it starts. Rates that are not known leave their part out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct CostPlan {
    /// Devices it holds.
    pub gpus: f64,
    /// The price of one for an hour.
    pub usd_per_gpu_hour: f64,
    /// Hours it holds them.
    pub hours: f64,
    /// What it keeps, in GB (10⁹ bytes).
    pub stored_gb: f64,
    /// The price of keeping one.
    pub usd_per_stored_gb: f64,
    /// What it moves, in GB.
    pub moved_gb: f64,
    /// The price of moving one.
    pub usd_per_moved_gb: f64,
}

/// What it will cost, in US dollars.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CostEstimate {
    /// Devices × rate × hours.
    pub compute_usd: f64,
    /// Stored × rate.
    pub storage_usd: f64,
    /// Moved × rate.
    pub transfer_usd: f64,
    /// All of it, if nothing fails.
    pub total_usd: f64,
    /// With a quarter more for what fails.
    pub with_failures_usd: f64,
    /// Device hours.
    pub gpu_hours: f64,
}

impl CostPlan {
    /// Devices × rate × hours + stored × rate + moved × rate.
    #[must_use]
    pub fn estimate(&self) -> CostEstimate {
        let gpu_hours = self.gpus * self.hours;
        let compute_usd = gpu_hours * self.usd_per_gpu_hour;
        let storage_usd = self.stored_gb * self.usd_per_stored_gb;
        let transfer_usd = self.moved_gb * self.usd_per_moved_gb;
        let total_usd = compute_usd + storage_usd + transfer_usd;
        CostEstimate {
            compute_usd,
            storage_usd,
            transfer_usd,
            total_usd,
            with_failures_usd: total_usd * (1.0 + FAILURE_SHARE),
            gpu_hours,
        }
    }
}

/// How a cost compares with a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// There is enough, failures included.
    Enough,
    /// There is enough if nothing fails.
    EnoughWithoutFailures,
    /// There is not enough.
    Exceeded,
}

impl CostEstimate {
    /// Compares with a budget in US dollars.
    #[must_use]
    pub fn against(&self, budget_usd: f64) -> Budget {
        if self.total_usd > budget_usd {
            Budget::Exceeded
        } else if self.with_failures_usd > budget_usd {
            Budget::EnoughWithoutFailures
        } else {
            Budget::Enough
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compute(gpus: f64, usd_per_gpu_hour: f64, hours: f64) -> CostPlan {
        CostPlan { gpus, usd_per_gpu_hour, hours, ..CostPlan::default() }
    }

    /// Proves the formula on its published examples, to the cent.
    #[test]
    fn published_costs_come_out() {
        let storage = CostPlan { stored_gb: 80.0, usd_per_stored_gb: 0.023, ..compute(8.0, 1.10, 4.0) };
        for (plan, total_usd) in [
            (compute(8.0, 1.10, 4.0), 35.20),
            (compute(256.0, 3.75, 336.0), 322_560.0),
            (storage, 37.04),
            (CostPlan { moved_gb: 100.0, usd_per_moved_gb: 0.09, ..compute(0.0, 0.0, 5.0) }, 9.0),
            (CostPlan::default(), 0.0),
        ] {
            assert!((plan.estimate().total_usd - total_usd).abs() < 0.005, "{plan:?}");
        }
    }

    /// Proves that failures are counted before a budget is called enough.
    #[test]
    fn a_budget_is_compared_with_and_without_failures() {
        let cost = compute(8.0, 1.10, 4.0).estimate();
        assert_eq!(cost.against(44.0), Budget::Enough);
        assert_eq!(cost.against(40.0), Budget::EnoughWithoutFailures);
        assert_eq!(cost.against(35.0), Budget::Exceeded);
        assert!((cost.gpu_hours - 32.0).abs() < 1e-9 && (cost.with_failures_usd - 44.0).abs() < 1e-9);
    }
}
