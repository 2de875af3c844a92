use serde_json::Value as Json;
use trackway_core::{AttemptId, RunId, Step, Timestamp};

use crate::value::{record, words};

record!(
    /// Something that happened. Append-only.
    EventRow, "events", key ["event_id"], {
        /// Chosen by the writer; an event that is told twice under one id is stored once.
        event_id: String,
        /// The run.
        run_id: RunId,
        /// The attempt, when it concerns one.
        attempt_id: Option<AttemptId>,
        /// When it happened, by the clock of its source.
        at: Timestamp,
        /// What kind of thing, in snake_case.
        kind: String,
        /// The step it belongs to.
        step: Option<Step>,
        /// In words.
        message: String,
        /// Details.
        fields_json: Option<Json>,
        /// Who saw it: supervisor, shim, sdk, stdout, operator …
        source: String,
    }
);

words!(
    /// What follows from the end of an attempt.
    Decision, "decision", {
        /// Launch again.
        Retry = "retry",
        /// Launch the next stage of the ladder.
        Promote = "promote",
        /// Launch nothing more.
        Stop = "stop",
    }
);

record!(
    /// A decision after an attempt, with its rule. Append-only, but for the id of the attempt that followed.
    RetryRow, "retries", key ["attempt_id"], {
        /// The attempt that ended.
        attempt_id: AttemptId,
        /// The run.
        run_id: RunId,
        /// When it was decided.
        at: Timestamp,
        /// retry, promote or stop.
        decision: Decision,
        /// The rule's name.
        rule: String,
        /// In words.
        why: String,
        /// The wait before the next attempt.
        delay_seconds: Option<f64>,
        /// The budget it spends from.
        budget_name: Option<String>,
        /// What is spent of it, this time included.
        budget_spent: Option<f64>,
        /// What there is in all.
        budget_limit: Option<f64>,
        /// What the next attempt changes.
        changes_json: Option<Json>,
        /// The attempt that followed; filled in once.
        next_attempt_id: Option<AttemptId>,
    }
);

record!(
    /// A fact that came late, beside a sealed receipt. Append-only.
    AmendmentRow, "amendments", key ["amendment_id"], {
        /// Chosen by the writer.
        amendment_id: String,
        /// The attempt whose receipt it concerns.
        attempt_id: AttemptId,
        /// The run.
        run_id: RunId,
        /// When it was written.
        at: Timestamp,
        /// By whom.
        author: String,
        /// The column it concerns.
        field: String,
        /// What the receipt says.
        old_text: Option<String>,
        /// What should be read instead.
        new_text: Option<String>,
        /// Why.
        why: String,
    }
);

record!(
    /// One item of what an attempt cost. Sealed with the attempt.
    CostRow, "costs", key ["attempt_id", "item"], {
        /// The attempt.
        attempt_id: AttemptId,
        /// The run.
        run_id: RunId,
        /// What was used, such as `gpu`.
        item: String,
        /// How much of it.
        quantity: f64,
        /// In which unit, such as `gpu_seconds`.
        unit: String,
        /// Money, when there is a price.
        usd: Option<f64>,
    }
);

record!(
    /// A tag that the script gave its run. Sealed with the attempt.
    TagRow, "tags", key ["attempt_id", "name"], {
        /// The attempt.
        attempt_id: AttemptId,
        /// The run.
        run_id: RunId,
        /// The tag.
        name: String,
        /// Its last value, as text.
        value: String,
    }
);

record!(
    /// A file that the script gave to be kept. Its bytes are the attempt's `artifacts/BLAKE3`. Sealed with the attempt.
    ArtifactRow, "artifacts", key ["attempt_id", "name", "blake3"], {
        /// The attempt.
        attempt_id: AttemptId,
        /// The run.
        run_id: RunId,
        /// What the script calls it; one name may stand for several contents.
        name: String,
        /// BLAKE3 of its content.
        blake3: String,
        /// Its bytes.
        size_bytes: u64,
        /// The step it was last given at, if any.
        step: Option<Step>,
        /// When it was last copied.
        at: Timestamp,
    }
);

record!(
    /// A parameter as the script saw it. Sealed with the attempt.
    ParameterRow, "parameters", key ["attempt_id", "name"], {
        /// The attempt.
        attempt_id: AttemptId,
        /// The run.
        run_id: RunId,
        /// The parameter.
        name: String,
        /// Its last value, as text.
        value: String,
    }
);
