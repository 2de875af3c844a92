use serde_json::Value as Json;
use trackway_core::{AttemptId, RunId, Step};

use crate::value::{record, words};

words!(
    /// The outcome of a rung.
    RungVerdict, "verdict of a rung", {
        /// It has not ended yet.
        Open = "open",
        /// It ended, and the next rung may be launched.
        Promoted = "promoted",
        /// It ended, and the rule of the run file refuses the next rung.
        Rejected = "rejected",
        /// It ended, and nothing shows how much of the data it trained on.
        NotProved = "not_proved",
        /// It ended, and was the last of the ladder.
        Completed = "completed",
    }
);

impl RungVerdict {
    /// Whether it keeps the run from its next rung.
    #[must_use]
    pub fn refuses(self) -> bool {
        matches!(self, Self::Rejected | Self::NotProved)
    }
}

record!(
    /// One rung of a run's ladder, over all its sealed attempts. Only runs with `[ladder]` have them; once it is
    /// decided, its verdict does not change.
    RungRow, "rungs", key ["run_id", "rung"], {
        /// The run.
        run_id: RunId,
        /// The rung, such as `10%`.
        rung: String,
        /// The fraction of the data, from 0 to 1.
        fraction: f64,
        /// Its place in the ladder, from 1.
        place: u32,
        /// open, promoted, rejected, not_proved or completed.
        verdict: RungVerdict,
        /// Number of its sealed attempts.
        attempt_count: u32,
        /// The newest of them.
        last_attempt_id: AttemptId,
        /// The last step that any of them reported.
        last_step: Option<Step>,
        /// Wall seconds of all of them.
        wall_seconds: f64,
        /// GPUs allocated × wall seconds, over all of them.
        gpu_seconds: f64,
        /// Cost in USD, when there is a price.
        cost_usd: Option<f64>,
        /// The step of the previous rung whose weights it started from; null: from scratch.
        warm_start_step: Option<Step>,
        /// The promotion rule; null: there is none, or it was not applied.
        rule: Option<String>,
        /// The outcome of the rule, with its values.
        why: Option<String>,
        /// The values the rule was applied to, as it names them; null: not recorded, or not a number.
        values_json: Option<Json>,
        /// The last value of each metric.
        metrics_json: Option<Json>,
        /// Rows that it kept, as counted; null: nothing counted them.
        rows: Option<u64>,
        /// Rows of all of the data it kept them from.
        rows_total: Option<u64>,
    }
);
