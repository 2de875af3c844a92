//! What saving costs, measured at every save and recorded as metrics: the input of the advice on cadence.

use trackway_core::Step;

use crate::cadence::{SAVE_MARGIN, SaveReason};
use crate::process::{ProcessSlot, once};
use crate::recorder::Inner;

/// Metric: seconds the training loop stood still for a save.
pub const STALL_SECONDS: &str = "trackway/checkpoint_stall_seconds";
/// Metric: seconds from the moment whose state was saved until its commit stood. A crash before that loses it.
pub const COMMIT_LAG_SECONDS: &str = "trackway/checkpoint_commit_lag_seconds";
/// Metric: bytes of the checkpoint's files.
pub const SIZE_BYTES: &str = "trackway/checkpoint_bytes";
/// Metric: bytes of it that had to be written; the others are shared with the checkpoint before.
pub const WRITTEN_BYTES: &str = "trackway/checkpoint_written_bytes";
/// Metric: seconds from the end of the save before (or of the resume, or the start) to the beginning of this one; only
/// of saves by a cadence, Trackway's or the script's own.
pub const INTERVAL_SECONDS: &str = "trackway/checkpoint_interval_seconds";
/// Metric: seconds a step took on average since the last save, while nothing was saved.
pub const STEP_SECONDS: &str = "trackway/checkpoint_step_seconds";
/// Metric: the share of its speed, 0 to 1, that the loop lost while the save went on behind it.
pub const SLOWDOWN: &str = "trackway/checkpoint_slowdown";

/// What one save cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SaveCost {
    pub reason: SaveReason,
    pub stall_seconds: f64,
    pub commit_lag_seconds: f64,
    pub interval_seconds: f64,
    pub size_bytes: u64,
    pub written_bytes: u64,
}

/// How fast the loop goes while nothing is saved, and while a save goes on behind it.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Since when the loop goes as it goes now: the monotonic clock, and the step then.
    since: Option<(i64, Step)>,
    /// Seconds a step takes while nothing is saved.
    step_seconds: Option<f64>,
    slowdown: Option<f64>,
}

impl Pace {
    /// The loop goes on after a resume or a stall.
    pub fn goes_on(&mut self, now_micros: i64, step: Step) {
        self.since = Some((now_micros, step));
    }

    /// A save begins: up to here nothing disturbed the loop.
    pub fn save_begins(&mut self, now_micros: i64, step: Step) {
        self.step_seconds = self.seconds_per_step(now_micros, step).or(self.step_seconds);
        self.slowdown = None;
    }

    /// A save that went on behind the loop since [`Pace::goes_on`] is committed.
    pub fn committed_behind(&mut self, now_micros: i64, step: Step) {
        let during = self.seconds_per_step(now_micros, step);
        self.slowdown =
            during.zip(self.step_seconds).map(|(during, alone)| (1.0 - alone / during).clamp(0.0, 1.0));
        self.goes_on(now_micros, step);
    }

    fn seconds_per_step(&self, now_micros: i64, step: Step) -> Option<f64> {
        let (since_micros, since_step) = self.since?;
        let steps = step.checked_sub(since_step).filter(|steps| *steps > 0)?;
        Some((now_micros - since_micros) as f64 / 1e6 / steps as f64)
    }
}

impl Inner {
    /// Records what a save cost, and says once when the cadence or the grace period does not suit it.
    pub(crate) fn record_cost(&self, slot: &ProcessSlot, step: Step, cost: &SaveCost) {
        let mut values = vec![
            (STALL_SECONDS, cost.stall_seconds),
            (COMMIT_LAG_SECONDS, cost.commit_lag_seconds),
            (SIZE_BYTES, cost.size_bytes as f64),
            (WRITTEN_BYTES, cost.written_bytes as f64),
        ];
        // A checkpoint that was asked for, or is the last one, says nothing about the cadence.
        if matches!(cost.reason, SaveReason::Cadence | SaveReason::Script) {
            values.push((INTERVAL_SECONDS, cost.interval_seconds));
        }
        {
            let pace = slot.pace();
            values.extend(pace.step_seconds.map(|seconds| (STEP_SECONDS, seconds)));
            values.extend(pace.slowdown.map(|share| (SLOWDOWN, share)));
        }
        slot.segment().metrics(step, &values);
        slot.note_save_seconds(cost.commit_lag_seconds);
        self.judge_cadence(slot, step, cost);
    }

    fn judge_cadence(&self, slot: &ProcessSlot, step: Step, cost: &SaveCost) {
        let seconds = |seconds: f64| format!("{seconds:.3}");
        let save_seconds = seconds(cost.commit_lag_seconds);
        let too_short = cost.reason == SaveReason::Cadence && cost.interval_seconds < cost.commit_lag_seconds;
        if too_short && once(&slot.told.cadence_too_short) {
            let fields =
                [("interval_seconds", &*seconds(cost.interval_seconds)), ("save_seconds", &*save_seconds)];
            slot.segment().event("checkpoint_cadence_too_short", Some(step), &fields);
        }
        let Some(grace) = self.settings.grace_seconds else { return };
        if cost.commit_lag_seconds * SAVE_MARGIN > grace && once(&slot.told.exceeds_grace) {
            let fields = [("grace_seconds", &*seconds(grace)), ("save_seconds", &*save_seconds)];
            slot.segment().event("checkpoint_exceeds_grace", Some(step), &fields);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the slowdown compares steps behind which a save went on with undisturbed ones, and that there is
    /// none where nothing was measured.
    #[test]
    fn slowdown_is_measured_against_undisturbed_steps() {
        let mut pace = Pace::default();
        pace.goes_on(0, 0);
        pace.save_begins(10_000_000, 10);
        pace.goes_on(10_500_000, 10);
        pace.committed_behind(18_500_000, 14);
        assert_eq!((pace.step_seconds, pace.slowdown), (Some(1.0), Some(0.5)));
        pace.save_begins(18_500_000, 14);
        pace.goes_on(19_000_000, 14);
        pace.committed_behind(19_100_000, 14);
        assert_eq!((pace.step_seconds, pace.slowdown), (Some(1.0), None), "no step was made meanwhile");
    }
}
