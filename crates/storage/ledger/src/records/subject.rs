use serde_json::Value as Json;
use trackway_core::{AttemptId, RunId, Step, Timestamp};

use super::EventRow;
use crate::value::{record, words};

words!(
    /// What leases, events and changes are about.
    SubjectKind, "kind of subject", {
        Run = "run",
        Model = "model",
        /// A data set, by the hash of its content.
        Data = "data",
        Monitor = "monitor",
        Trigger = "trigger",
        Budget = "budget",
        /// An engine that launches attempts.
        Engine = "engine",
    }
);

/// What a lease, an event or a change is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Subject {
    pub kind: SubjectKind,
    /// Its id or name among those of its kind.
    pub id: String,
}

impl Subject {
    /// A subject of a kind.
    #[must_use]
    pub fn new(kind: SubjectKind, id: impl Into<String>) -> Self {
        Self { kind, id: id.into() }
    }
}

impl From<RunId> for Subject {
    fn from(run_id: RunId) -> Self {
        Self::new(SubjectKind::Run, run_id.to_string())
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind, self.id)
    }
}

record!(
    /// Something that happened to a run, a model or another subject. Append-only; the view `events` has what happened to runs.
    SubjectEventRow, "subject_events", key ["event_id"], {
        /// Chosen by the writer; an event that is written twice under one id is stored once.
        event_id: String,
        /// What it happened to: run, model, data, monitor, trigger, budget or engine.
        subject_kind: SubjectKind,
        /// The id or the name of that.
        subject_id: String,
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

impl SubjectEventRow {
    /// What it happened to.
    #[must_use]
    pub fn subject(&self) -> Subject {
        Subject::new(self.subject_kind, self.subject_id.clone())
    }
}

impl From<&EventRow> for SubjectEventRow {
    fn from(event: &EventRow) -> Self {
        trackway_core::with_fields_of!(
            Self,
            &event,
            [event_id, attempt_id, at, kind, step, message, fields_json, source],
            subject_kind: SubjectKind::Run,
            subject_id: event.run_id.to_string(),
        )
    }
}

record!(
    /// A change of the ledger, numbered in the order of the commits: who read up to a number finds what is new by it. Written in the
    /// transaction of the change itself. Never changed; removed after 90 days, or when there are a million newer ones.
    ChangeRow, "changes", key ["number"], {
        /// Its number, from 1. A ledger that was rebuilt counts from 1 again.
        number: u64,
        /// When it was written, by the database's clock.
        at: Timestamp,
        /// The table in which a row was added or changed.
        kind: String,
        /// What it is about: run, model, data, monitor, trigger, budget or engine.
        subject_kind: SubjectKind,
        /// The id or the name of that.
        subject_id: String,
        /// The project of that, where it has one.
        project: Option<String>,
    }
);

words!(
    /// What a charge is for.
    ChargeKind, "kind of charge", {
        /// What an attempt used.
        Usage = "usage",
        /// What is kept.
        Storage = "storage",
        /// What was sent.
        Transfer = "transfer",
        /// A correction of others.
        Adjustment = "adjustment",
    }
);

record!(
    /// Money that was spent, in integers: what is summed is exact. Append-only; those of an attempt are written when it is
    /// sealed and sum to the cost of its receipt.
    ChargeRow, "charges", key ["charge_id"], {
        /// Of an attempt: its id and the item.
        charge_id: String,
        /// The attempt, when it concerns one.
        attempt_id: Option<AttemptId>,
        /// The run, when it concerns one.
        run_id: Option<RunId>,
        /// The project it is charged to; null: it was not known then. May be filled in once.
        project: Option<String>,
        /// When it was charged.
        at: Timestamp,
        /// usage, storage, transfer or adjustment.
        kind: ChargeKind,
        /// What was used, such as `gpu`; `rest` is what the receipt's cost has beyond its items.
        item: String,
        /// The quantity, in whole units.
        quantity: i64,
        /// Its unit, such as `gpu_milliseconds`.
        unit: String,
        /// The money, in 10⁻⁹ USD; null: there is no price.
        amount_nano_usd: Option<i64>,
    }
);
