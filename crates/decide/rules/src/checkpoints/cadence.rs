//! How often to save: what a save costs against what a failure loses (`docs/checkpoint-cadence.md`).
//!
//! Young's first-order model (CACM 17(9), 1974) with Daly's higher-order optimum (FGCS 22(3), 2006), extended by the
//! lag until the commit: what was saved and not yet committed is lost too, so a failure loses half an interval *and*
//! the lag. A save costs the time for which it blocked the loop, and the speed that the loop lost while the save ran in
//! the background.

use serde::{Deserialize, Serialize};
use trackway_core::{Domain, TerminationReason};
use trackway_statistics::poisson_interval;

/// With fewer failures a rate is too uncertain: the interval of the mean time between them spans a factor of ten.
pub const FAILURES_MIN: u64 = 3;
/// Mean times to failure for which the answer is given when the own one is not known, in hours.
pub const TABLE_HOURS: [f64; 5] = [1.0, 4.0, 12.0, 24.0, 168.0];
/// The confidence of the interval of the mean time to failure.
const CONFIDENCE: f64 = 0.9;
const HOUR_SECONDS: f64 = 3600.0;
const DAY_HOURS: f64 = 24.0;

/// What saves were measured to cost, as means.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SaveCosts {
    /// Saves that were measured.
    pub save_count: u64,
    /// Seconds for which one blocked the loop.
    pub stall_seconds: f64,
    /// Seconds until its commit, the stall included.
    pub commit_lag_seconds: f64,
    /// The fraction of its speed that the loop lost meanwhile, 0 to 1, after the stall.
    pub slowdown: f64,
    /// Seconds until the bytes were out of reach of the machine's loss too; none when only this machine's loss of the
    /// process is survived.
    pub upload_lag_seconds: Option<f64>,
    /// Seconds a step takes while nothing is saved.
    pub step_seconds: f64,
    /// Seconds of work between two saves, as it is now.
    pub interval_seconds: f64,
}

/// Observed failures: ends that lost what was not committed, and from which a resume continues.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FailureHistory {
    pub failures: u64,
    /// In how many seconds of training.
    pub observed_seconds: f64,
}

/// Whether an end is one that checkpoints protect against: it came from outside or without a cause, and a resume
/// continues from it. A bug that a resume meets again, a requested stop and an injected fault do not count.
#[must_use]
pub fn is_failure(reason: TerminationReason, domain: Option<Domain>) -> bool {
    use TerminationReason as Reason;
    let from_outside = matches!(
        reason,
        Reason::Preempted
            | Reason::NodeFailure
            | Reason::HostOom
            | Reason::DeviceOom
            | Reason::Hang
            | Reason::StorageError
            | Reason::NetworkError
            | Reason::Unknown
    );
    from_outside && domain != Some(Domain::Operator)
}

/// What an hour of the run costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Price {
    /// GPUs it holds.
    pub gpus: f64,
    /// The price of one for an hour.
    pub usd_per_gpu_hour: Option<f64>,
}

/// A cadence and what it wastes at one mean time to failure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Cadence {
    /// The mean time to failure it is for.
    pub mttf_hours: f64,
    /// Seconds of work between two saves.
    pub interval_seconds: f64,
    /// The same in steps, at least 1.
    pub interval_steps: u64,
    /// What one failure loses on average.
    pub loss_per_failure_seconds: f64,
    /// The fraction of the time that goes into saving and into lost work, 0 to 1.
    pub waste: f64,
    /// GPU hours of it per day of training.
    pub gpu_hours_per_day: f64,
    /// US dollars of it per day of training, where there is a price.
    pub usd_per_day: Option<f64>,
}

/// The advice: what was measured, and what follows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CadenceAdvice {
    pub costs: SaveCosts,
    /// Seconds one save costs: stall, and slowdown × seconds in the background.
    pub save_cost_seconds: f64,
    /// What failed, in how much time.
    pub history: FailureHistory,
    /// The mean time to failure; none with fewer than 3 failures.
    pub mttf_hours: Option<f64>,
    /// The lower end of its 90 % interval; none when nothing was observed.
    pub mttf_hours_low: Option<f64>,
    /// The upper end; none when nothing failed.
    pub mttf_hours_high: Option<f64>,
    /// The present cadence at that mean time to failure.
    pub present: Option<Cadence>,
    /// The best one.
    pub recommended: Option<Cadence>,
    /// The best ones for several mean times to failure, when the own one is not known.
    pub table: Vec<Cadence>,
}

/// Advice on how often to save.
#[must_use]
pub fn advise(costs: SaveCosts, history: FailureHistory, price: Price) -> CadenceAdvice {
    let model = Model { costs, price };
    let (low, high) = mttf_interval_hours(history);
    let known = history.failures >= FAILURES_MIN && history.observed_seconds > 0.0;
    let mttf_hours = known.then(|| history.observed_seconds / HOUR_SECONDS / history.failures as f64);
    let best = |mttf_hours: f64| model.at(mttf_hours, model.best_interval_seconds(mttf_hours));
    CadenceAdvice {
        costs,
        save_cost_seconds: model.save_cost_seconds(),
        history,
        mttf_hours,
        mttf_hours_low: low,
        mttf_hours_high: high,
        present: mttf_hours.map(|mttf| model.at(mttf, costs.interval_seconds)),
        recommended: mttf_hours.map(best),
        table: if known { Vec::new() } else { TABLE_HOURS.into_iter().map(best).collect() },
    }
}

struct Model {
    costs: SaveCosts,
    price: Price,
}

impl Model {
    fn save_cost_seconds(&self) -> f64 {
        let behind_seconds = (self.costs.commit_lag_seconds - self.costs.stall_seconds).max(0.0);
        self.costs.stall_seconds + self.costs.slowdown * behind_seconds
    }

    /// Daly's optimum (his equation 37), no shorter than a save takes and than a step.
    fn best_interval_seconds(&self, mttf_hours: f64) -> f64 {
        let (cost, mttf) = (self.save_cost_seconds(), mttf_hours * HOUR_SECONDS);
        let best = if cost < 2.0 * mttf {
            let half = cost / (2.0 * mttf);
            (2.0 * cost * mttf).sqrt() * (1.0 + half.sqrt() / 3.0 + half / 9.0) - cost
        } else {
            mttf
        };
        best.max(self.costs.commit_lag_seconds).max(self.costs.step_seconds)
    }

    fn at(&self, mttf_hours: f64, interval_seconds: f64) -> Cadence {
        let lag_seconds = self.costs.commit_lag_seconds + self.costs.upload_lag_seconds.unwrap_or(0.0);
        let loss_per_failure_seconds = interval_seconds / 2.0 + lag_seconds;
        let saving = self.save_cost_seconds() / interval_seconds.max(f64::MIN_POSITIVE);
        let losing = loss_per_failure_seconds / (mttf_hours * HOUR_SECONDS);
        let waste = (saving + losing).min(1.0);
        let gpu_hours_per_day = waste * DAY_HOURS * self.price.gpus;
        Cadence {
            mttf_hours,
            interval_seconds,
            interval_steps: steps_in(interval_seconds, self.costs.step_seconds),
            loss_per_failure_seconds,
            waste,
            gpu_hours_per_day,
            usd_per_day: self.price.usd_per_gpu_hour.map(|usd| usd * gpu_hours_per_day),
        }
    }
}

fn steps_in(interval_seconds: f64, step_seconds: f64) -> u64 {
    let steps = interval_seconds / step_seconds;
    if steps.is_finite() { (steps.round() as u64).max(1) } else { 1 }
}

/// The two-sided 90 % interval of the mean time to failure, in hours: failures are taken as a Poisson process.
fn mttf_interval_hours(history: FailureHistory) -> (Option<f64>, Option<f64>) {
    let hours = history.observed_seconds / HOUR_SECONDS;
    if hours <= 0.0 {
        return (None, None);
    }
    let failures = poisson_interval(history.failures as f64, CONFIDENCE);
    let longest = (failures.low > 0.0).then(|| hours / failures.low);
    (Some(hours / failures.high), longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(stall_seconds: f64, commit_lag_seconds: f64, slowdown: f64) -> SaveCosts {
        SaveCosts {
            save_count: 5,
            stall_seconds,
            commit_lag_seconds,
            slowdown,
            upload_lag_seconds: None,
            step_seconds: 2.0,
            interval_seconds: 600.0,
        }
    }

    fn failures(failures: u64, hours: f64) -> FailureHistory {
        FailureHistory { failures, observed_seconds: hours * 3600.0 }
    }

    const FREE: Price = Price { gpus: 0.0, usd_per_gpu_hour: None };

    fn close(found: f64, expected: f64, tolerance: f64) -> bool {
        (found - expected).abs() <= tolerance * expected
    }

    /// Proves the model against published figures of asynchronous checkpoints on 1,024 GPUs that fail every 7.9 hours
    /// (stall 0.78 s; 67 s at 372 of 700 tokens/s, and 437 s at 315 of 700 before): 22 and 62 minutes, 4.8 and 13 % where
    /// the lag is left out, 3.5 minutes for the stall alone.
    #[test]
    fn published_figures_come_out() {
        for (costs, minutes, waste) in [
            (costs(0.78, 67.78, 1.0 - 372.0 / 700.0), 22.0, 0.048),
            (costs(0.78, 437.78, 1.0 - 315.0 / 700.0), 62.0, 0.13),
            (costs(0.78, 0.78, 0.0), 3.5, 0.0074),
        ] {
            let advice = advise(costs, failures(10, 79.0), FREE);
            let best = advice.recommended.unwrap();
            assert!(close(best.interval_seconds / 60.0, minutes, 0.05), "{best:?}");
            let without_lag = best.waste - costs.commit_lag_seconds / (7.9 * 3600.0);
            assert!(close(without_lag, waste, 0.05), "{best:?}");
        }
    }

    /// Proves that the recommendation is the bottom of the curve: no other interval of a fine grid wastes less by more
    /// than the second order that Daly's formula adds.
    #[test]
    fn no_other_interval_is_better() {
        for (stall, lag, hours) in [(0.5, 20.0, 3.0), (30.0, 30.0, 0.5), (0.01, 0.01, 100.0)] {
            let model =
                Model { costs: SaveCosts { step_seconds: 0.001, ..costs(stall, lag, 0.3) }, price: FREE };
            let best = model.at(hours, model.best_interval_seconds(hours));
            for factor in (1..400).map(|it| f64::from(it) / 50.0) {
                let other = model.at(hours, best.interval_seconds * factor);
                assert!(best.waste <= other.waste * 1.01, "{other:?} beats {best:?}");
            }
        }
    }

    /// Proves that a lag adds to what a failure loses and not to the interval, that an upload adds more, and that the
    /// interval is never shorter than a save or a step.
    #[test]
    fn lags_cost_and_bound() {
        let plain = advise(costs(1.0, 1.0, 0.0), failures(10, 100.0), FREE).recommended.unwrap();
        let lagging = advise(costs(1.0, 61.0, 0.0), failures(10, 100.0), FREE).recommended.unwrap();
        assert_eq!(plain.interval_seconds, lagging.interval_seconds);
        assert!(close(lagging.loss_per_failure_seconds - plain.loss_per_failure_seconds, 60.0, 1e-9));
        let uploaded = SaveCosts { upload_lag_seconds: Some(100.0), ..costs(1.0, 61.0, 0.0) };
        let uploaded = advise(uploaded, failures(10, 100.0), FREE).recommended.unwrap();
        assert!(close(uploaded.loss_per_failure_seconds - lagging.loss_per_failure_seconds, 100.0, 1e-9));
        let slow = advise(costs(0.1, 5_000.0, 0.0), failures(10, 100.0), FREE).recommended.unwrap();
        assert_eq!(slow.interval_seconds, 5_000.0);
        let quick = advise(costs(1e-9, 1e-9, 0.0), failures(10, 1e-3), FREE).recommended.unwrap();
        assert_eq!((quick.interval_seconds, quick.interval_steps), (2.0, 1));
    }

    /// Proves which ends count as failures, and that a rehearsed one does not.
    #[test]
    fn rehearsals_and_bugs_are_no_failures() {
        let (lost, bug) = (TerminationReason::NodeFailure, TerminationReason::CodeError);
        assert!(is_failure(lost, Some(Domain::Infrastructure)) && is_failure(lost, None));
        assert!(!is_failure(lost, Some(Domain::Operator)) && !is_failure(bug, Some(Domain::Workload)));
        let counted = TerminationReason::ALL.iter().filter(|reason| is_failure(**reason, None));
        assert_eq!(counted.count(), 8);
    }

    /// Proves the money: present against best, in GPU hours and dollars of a day.
    #[test]
    fn waste_is_priced() {
        let price = Price { gpus: 8.0, usd_per_gpu_hour: Some(2.0) };
        let advice = advise(costs(6.0, 6.0, 0.0), failures(10, 100.0), price);
        let (present, best) = (advice.present.unwrap(), advice.recommended.unwrap());
        assert_eq!((present.interval_steps, advice.save_cost_seconds), (300, 6.0));
        assert!(close(present.waste, 6.0 / 600.0 + 306.0 / 36_000.0, 1e-9), "{present:?}");
        assert!(close(present.gpu_hours_per_day, present.waste * 192.0, 1e-9));
        assert!(close(present.usd_per_day.unwrap(), present.gpu_hours_per_day * 2.0, 1e-9));
        assert!(best.waste < present.waste && advice.table.is_empty());
    }

    /// Proves that few failures give no single answer but a table and an honest interval, at exact values of the
    /// chi-squared distribution where those are known.
    #[test]
    fn few_failures_give_a_table() {
        for few in 0..FAILURES_MIN {
            let advice = advise(costs(1.0, 1.0, 0.0), failures(few, 30.0), FREE);
            assert_eq!((advice.mttf_hours, advice.recommended, advice.table.len()), (None, None, 5));
            assert!(advice.table.is_sorted_by_key(|line| line.interval_seconds));
        }
        // Garwood: 0 → (0, 2.996), 1 → (0.0513, 4.744), 5 → (1.970, 10.513), 20 → (13.255, 29.062).
        for (count, low, high) in
            [(0, None, 2.996), (1, Some(0.0513), 4.744), (5, Some(1.970), 10.513), (20, Some(13.255), 29.062)]
        {
            let (hours_low, hours_high) = mttf_interval_hours(failures(count, 1.0));
            assert!(close(1.0 / hours_low.unwrap(), high, 0.01), "{count}: {hours_low:?}");
            assert_eq!(hours_high.is_none(), low.is_none());
            if let (Some(found), Some(low)) = (hours_high, low) {
                assert!(
                    close(1.0 / found, low, if count == 1 { 0.2 } else { 0.03 }),
                    "{count}: {}",
                    1.0 / found
                );
            }
        }
        assert_eq!(mttf_interval_hours(failures(3, 0.0)), (None, None));
    }
}
