//! `[early_stop]`: when more training is worth nothing.

use serde::{Deserialize, Serialize};

use super::keys::values::{count, percentage, whole};
use super::keys::walker::{Problems, Scope};
use super::read::keep_best;
use super::sections::{Goal, KeepBest};

/// The fewest values in a window of progressive losses: with fewer the estimate is too uncertain.
const WINDOW_MIN: u64 = 100;
/// The most.
const WINDOW_MAX: u64 = 1_000_000_000;

/// When a run is stopped early; at least one of `patience` and `progressive` is set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EarlyStopSection {
    /// So many evaluations in a row that are no better.
    pub patience: Option<u32>,
    /// Of this metric.
    pub metric: KeepBest,
    /// The fraction of the best value by which a better one must be better.
    pub improvement: f64,
    /// The fraction by which the progressive loss must fall from one window to the next.
    pub progressive: Option<f64>,
    /// Progressive losses in a window; the default if it is not set.
    pub window: Option<u64>,
}

pub(super) fn early_stop(scope: &Scope, problems: &mut Problems) -> EarlyStopSection {
    let section = EarlyStopSection {
        patience: scope.read("patience", problems, count(1)),
        metric: scope
            .read("metric", problems, keep_best)
            .unwrap_or_else(|| KeepBest { metric: "val_loss".into(), goal: Goal::Min }),
        improvement: scope.read("improvement", problems, percentage).unwrap_or(0.0),
        progressive: scope.read("progressive", problems, percentage),
        window: scope.read("window", problems, whole(WINDOW_MIN, WINDOW_MAX)),
    };
    if scope.node("patience").is_none() && scope.node("progressive").is_none() {
        let hint = "write `patience = 5` (evaluations) or `progressive = \"1%\"` (per window), or both";
        problems.add(scope.place.clone(), "`[early_stop]` has no rule".into(), Some(hint.into()));
    }
    section
}
