use trackway_core::detect::Detector;
use trackway_core::{AttemptId, RunId, Step, Timestamp};

use crate::value::record;

record!(
    /// The return of a run to an earlier checkpoint, and the batches it skips from then on, in this and every
    /// later attempt. Append-only, written before the next attempt is launched.
    RollBackRow, "roll_backs", key ["roll_back_id"], {
        /// Derived from the attempt that was left and the number of the roll back.
        roll_back_id: String,
        /// The run.
        run_id: RunId,
        /// The attempt that was left.
        attempt_id: AttemptId,
        /// The rung of the data it was in; other rungs have other checkpoints and batches.
        rung: String,
        /// When it was carried out.
        at: Timestamp,
        /// The detector that requested it; null: a person did.
        detector: Option<Detector>,
        /// The person that requested it; null: a detector did, or the login is unknown.
        person: Option<String>,
        /// The step at which the problem began; null when a person requested it.
        first_step: Option<Step>,
        /// The last step of the attempt that was left.
        from_step: Option<Step>,
        /// The committed step it went back to; null: the beginning, because nothing was committed.
        to_step: Option<Step>,
        /// The first skipped batch, counted from 0 over all passes through the data; null: none.
        skip_first_batch: Option<u64>,
        /// The batch after the last skipped one.
        skip_end_batch: Option<u64>,
        /// Steps of the checkpoints that are no longer resumed from, separated by commas; null: none.
        left_steps: Option<String>,
        /// The reason.
        why: String,
    }
);
