use trackway_core::detect::Detector;
use trackway_core::{AttemptId, RunId, Step, Timestamp};

use crate::value::record;

record!(
    /// A run that went back to an earlier checkpoint: where to, and which batches it passes over from then on, in this and every
    /// later attempt. Append-only, written before the next attempt is launched.
    RollBackRow, "roll_backs", key ["roll_back_id"], {
        /// Made of the attempt that was left and the number of the roll back.
        roll_back_id: String,
        /// The run.
        run_id: RunId,
        /// The attempt that was left.
        attempt_id: AttemptId,
        /// The stage of the data it was in; other stages have checkpoints and batches of their own.
        stage: String,
        /// When it was carried out.
        at: Timestamp,
        /// The detector that asked for it; null: a person did.
        detector: Option<Detector>,
        /// The person who asked for it; null: a detector did, or the login is not known.
        person: Option<String>,
        /// The step at which the trouble began; null where a person asked.
        first_step: Option<Step>,
        /// The last step of the attempt that was left.
        from_step: Option<Step>,
        /// The committed step it went back to; null: the beginning, because nothing was committed.
        to_step: Option<Step>,
        /// The first batch that is passed over, counted from 0 over all passes through the data; null: none is.
        skip_first_batch: Option<u64>,
        /// The batch behind the last one that is passed over.
        skip_end_batch: Option<u64>,
        /// Steps of the checkpoints that are not resumed from any more, separated by commas; null: there are none.
        left_steps: Option<String>,
        /// Why, in words.
        why: String,
    }
);
