use serde_json::Value as Json;
use trackway_core::{AttemptId, RunId, Step, TerminationReason, Timestamp};
use trackway_formats::EventKind;

use super::AttemptRow;
use crate::value::{record, words};

record!(
    /// Something that happened to a run: a view over `subject_events`.
    EventRow, "events", key ["event_id"], {
        /// Chosen by the writer; an event that is written twice under one id is stored once.
        event_id: String,
        /// The run.
        run_id: RunId,
        /// The attempt, when it concerns one.
        attempt_id: Option<AttemptId>,
        /// When it happened, by the clock of its source.
        at: Timestamp,
        /// The kind of event, in snake_case.
        kind: String,
        /// The step it belongs to.
        step: Option<Step>,
        /// The message.
        message: String,
        /// Details.
        fields_json: Option<Json>,
        /// What reported it: supervisor, shim, sdk, stdout, operator …
        source: String,
    }
);

impl EventRow {
    /// What the supervisor notes about a run, once.
    #[must_use]
    pub fn of_run(run_id: RunId, kind: EventKind, at: Timestamp, message: String) -> Self {
        Self {
            event_id: format!("{run_id}:{kind}"),
            run_id,
            attempt_id: None,
            at,
            kind: kind.as_str().into(),
            step: None,
            message,
            fields_json: None,
            source: "supervisor".into(),
        }
    }

    /// The same about an attempt.
    #[must_use]
    pub fn of_attempt(attempt: &AttemptRow, kind: EventKind, at: Timestamp, message: String) -> Self {
        Self {
            event_id: format!("{}:{kind}", attempt.attempt_id),
            attempt_id: Some(attempt.attempt_id),
            ..Self::of_run(attempt.run_id, kind, at, message)
        }
    }

    /// A detail that is a text.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields_json.as_ref()?.get(name)?.as_str()
    }
}

words!(
    /// What follows from the end of an attempt.
    Decision, "decision", {
        /// Launch again.
        Retry = "retry",
        /// Launch the next rung of the ladder.
        Promote = "promote",
        /// Launch nothing more.
        Stop = "stop",
    }
);

record!(
    /// A decision after an attempt, with its rule. Append-only, except for the id of the attempt that followed.
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
        /// The reason.
        why: String,
        /// The wait before the next attempt.
        delay_seconds: Option<f64>,
        /// The budget it spends from.
        budget_name: Option<String>,
        /// How much of it is spent, including this decision.
        budget_spent: Option<f64>,
        /// The whole budget.
        budget_limit: Option<f64>,
        /// What the next attempt changes.
        changes_json: Option<Json>,
        /// The attempt that followed; filled in once.
        next_attempt_id: Option<AttemptId>,
    }
);

record!(
    /// A fact that became known after a receipt was sealed. Append-only.
    AmendmentRow, "amendments", key ["amendment_id"], {
        /// Chosen by the writer.
        amendment_id: String,
        /// The attempt whose receipt it concerns.
        attempt_id: AttemptId,
        /// The run.
        run_id: RunId,
        /// When it was written.
        at: Timestamp,
        /// The author.
        author: String,
        /// The column it concerns.
        field: String,
        /// The value in the receipt.
        old_text: Option<String>,
        /// The corrected value.
        new_text: Option<String>,
        /// The reason for the amendment.
        why: String,
    }
);

words!(
    /// What of a run may be changed at any time.
    RunField, "field of a run", {
        /// Its name.
        Name = "name",
        /// Its note.
        Note = "note",
        /// One of its tags.
        Tag = "tag",
        /// Whether lists leave it out.
        Hidden = "hidden",
    }
);

record!(
    /// A change of what a run is called or how lists show it, made by a person. Append-only.
    RunAmendmentRow, "run_amendments", key ["amendment_id"], {
        /// Chosen by the writer.
        amendment_id: String,
        /// The run.
        run_id: RunId,
        /// When it was changed.
        at: Timestamp,
        /// The author.
        author: String,
        /// What was changed: name, note, tag or hidden.
        field: RunField,
        /// The name of the tag; null for other fields.
        tag: Option<String>,
        /// What it was; null: there was none.
        old_text: Option<String>,
        /// What it is since then; null: there is none.
        new_text: Option<String>,
        /// The reason, where one was given.
        why: Option<String>,
    }
);

record!(
    /// The tags of runs as they are now: those of each attempt or, of a tag that was amended, its newest amendment alone.
    RunTagRow, "run_tags", key ["run_id", "name"], {
        /// The run.
        run_id: RunId,
        /// The tag.
        name: String,
        /// Its value, as a string.
        value: String,
        /// The attempt that it is sealed with; null: it was amended.
        attempt_id: Option<AttemptId>,
    }
);

record!(
    /// The training attempts as they are known now: what a receipt has or, where there is one, its newest amendment.
    AmendedAttemptRow, "amended_attempts", key ["attempt_id"], {
        /// The attempt.
        attempt_id: AttemptId,
        /// The run.
        run_id: RunId,
        /// Counted from 1 within the run and kind.
        attempt_number: u32,
        /// The rung of the ladder, such as `100%`.
        rung: String,
        /// When its process had ended.
        ended_at: Option<Timestamp>,
        /// Why it ended.
        termination_reason: Option<TerminationReason>,
        /// The person responsible for it.
        owner: Option<String>,
        /// The team it is charged to.
        team: Option<String>,
        /// GPUs × wall seconds.
        gpu_seconds: Option<f64>,
        /// GPU seconds × price.
        cost_usd: Option<f64>,
        /// How many amendments it has, of any column.
        amendment_count: u64,
    }
);

record!(
    /// One cost item of an attempt. Sealed with the attempt.
    CostRow, "costs", key ["attempt_id", "item"], {
        /// The attempt.
        attempt_id: AttemptId,
        /// The run.
        run_id: RunId,
        /// What was used, such as `gpu`.
        item: String,
        /// The quantity.
        quantity: f64,
        /// Its unit, such as `gpu_seconds`.
        unit: String,
        /// Cost in USD, when there is a price.
        usd: Option<f64>,
    }
);

record!(
    /// A tag that the script set on its run. Sealed with the attempt.
    TagRow, "tags", key ["attempt_id", "name"], {
        /// The attempt.
        attempt_id: AttemptId,
        /// The run.
        run_id: RunId,
        /// The tag.
        name: String,
        /// Its last value, as a string.
        value: String,
    }
);

record!(
    /// A file that the script logged as an artifact, stored as `artifacts/BLAKE3` of the attempt. Sealed with the
    /// attempt.
    ArtifactRow, "artifacts", key ["attempt_id", "name", "blake3"], {
        /// The attempt.
        attempt_id: AttemptId,
        /// The run.
        run_id: RunId,
        /// Its name in the script; one name may have several contents.
        name: String,
        /// BLAKE3 of its content.
        blake3: String,
        /// Its size.
        size_bytes: u64,
        /// The step it was last logged at, if any.
        step: Option<Step>,
        /// When it was last copied.
        at: Timestamp,
    }
);

record!(
    /// A parameter: an argument of the command, what was given beside it, or what the script reported. Sealed with the
    /// attempt.
    ParameterRow, "parameters", key ["attempt_id", "name"], {
        /// The attempt.
        attempt_id: AttemptId,
        /// The run.
        run_id: RunId,
        /// The parameter.
        name: String,
        /// Its last value, as a string.
        value: String,
        /// `command line` (an argument of the command), `given` (`--param`, or `[run] parameters`), or the writer of the
        /// record: `sdk`, `tensorboard`, `files`, `stdout`, `import`. Null: recorded before there was this column.
        origin: Option<String>,
    }
);
