//! What saving costs, measured at every save and recorded as metrics: the input of the advice on cadence.

use trackway_core::Step;
use trackway_formats::{EventKind, SaveReason};

use crate::checkpoints::cadence::SAVE_MARGIN;
use crate::process::inner::Inner;
use crate::process::{ProcessSlot, once};

/// Metric: seconds for which a save blocked the training loop.
pub const STALL_SECONDS: &str = "trackway/checkpoint_stall_seconds";
/// Metric: seconds from the time whose state was saved until it was committed. A crash before that loses it.
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
/// Metric: the fraction of its speed, 0 to 1, that the loop lost while a save ran in the background.
pub const SLOWDOWN: &str = "trackway/checkpoint_slowdown";

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SaveCost {
    pub reason: SaveReason,
    pub stall_seconds: f64,
    pub commit_lag_seconds: f64,
    pub interval_seconds: f64,
    pub size_bytes: u64,
    pub written_bytes: u64,
}

impl Inner {
    /// Records what a save cost, and warns once when the cadence or the grace period does not suit it.
    pub(crate) fn record_cost(&self, slot: &ProcessSlot, step: Step, cost: &SaveCost) {
        let mut values = vec![
            (STALL_SECONDS, cost.stall_seconds),
            (COMMIT_LAG_SECONDS, cost.commit_lag_seconds),
            (SIZE_BYTES, cost.size_bytes as f64),
            (WRITTEN_BYTES, cost.written_bytes as f64),
        ];
        // A checkpoint that was requested, or is the last one, is not part of the cadence.
        if matches!(cost.reason, SaveReason::Cadence | SaveReason::Script) {
            values.push((INTERVAL_SECONDS, cost.interval_seconds));
        }
        {
            let pace = slot.pace.get();
            values.extend(pace.step_seconds.map(|seconds| (STEP_SECONDS, seconds)));
            values.extend(pace.slowdown.map(|share| (SLOWDOWN, share)));
        }
        slot.segment.get().metrics(step, &values);
        slot.note_save_seconds(cost.commit_lag_seconds);
        self.judge_cadence(slot, step, cost);
    }

    fn judge_cadence(&self, slot: &ProcessSlot, step: Step, cost: &SaveCost) {
        let seconds = |seconds: f64| format!("{seconds:.3}");
        let save_seconds = seconds(cost.commit_lag_seconds);
        let too_short = cost.reason == SaveReason::Cadence && cost.interval_seconds < cost.commit_lag_seconds;
        if too_short && once(&slot.reported.cadence_too_short) {
            let fields =
                [("interval_seconds", &*seconds(cost.interval_seconds)), ("save_seconds", &*save_seconds)];
            slot.record_event(EventKind::CheckpointCadenceTooShort, Some(step), &fields);
        }
        let Some(grace) = self.settings.grace_seconds else { return };
        if cost.commit_lag_seconds * SAVE_MARGIN > grace && once(&slot.reported.exceeds_grace) {
            let fields = [("grace_seconds", &*seconds(grace)), ("save_seconds", &*save_seconds)];
            slot.record_event(EventKind::CheckpointExceedsGrace, Some(step), &fields);
        }
    }
}
