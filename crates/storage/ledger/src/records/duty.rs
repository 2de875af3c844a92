use serde_json::Value as Json;
use trackway_core::{RunId, Timestamp};

use super::{Subject, SubjectKind};
use crate::value::{record, words};

record!(
    /// Something that has to be done from time to time, and the process that does it now (`trackway tick`).
    DutyRow, "duties", key ["name", "subject_kind", "subject_id"], {
        /// What: reap, approvals, pins, outbox or prune.
        name: String,
        /// What it is done for: run, model, data, monitor, trigger, budget or engine.
        subject_kind: SubjectKind,
        /// The id or the name of that; for an engine of one home, with the folder of the home.
        subject_id: String,
        /// From when on it is to be done again, by the database's clock.
        due_at: Timestamp,
        /// Seconds that a process has for it: after that another one may do it.
        bound_seconds: u64,
        /// The process that does it, for people: its host and process; null: none.
        holder: Option<String>,
        /// Until when it is that process's.
        held_until: Option<Timestamp>,
        /// When it was last done.
        last_at: Option<Timestamp>,
        /// Why it failed then; null: it did not.
        last_failure: Option<String>,
    }
);

record!(
    /// What people are to hear about a subject. It never changes; how far its delivery is says `outbox`. One that waits
    /// for 90 days is given up. One that was delivered or given up is removed with its delivery after 90 days, or when
    /// 100,000 newer ones ended.
    NoticeRow, "notices", key ["notice_id"], {
        /// Derived from what it says: the same notice again is not another one.
        notice_id: String,
        /// What it is about: run, model, data, monitor, trigger, budget or engine.
        subject_kind: SubjectKind,
        /// The id or the name of that.
        subject_id: String,
        /// The project of that, where it has one.
        project: Option<String>,
        /// When it was made.
        at: Timestamp,
        /// end, detection, gate or test.
        about: String,
        /// The notification as it is sent.
        document_json: Json,
    }
);

impl NoticeRow {
    /// What it is about.
    #[must_use]
    pub fn subject(&self) -> Subject {
        Subject::new(self.subject_kind, self.subject_id.clone())
    }

    /// The run that it is about, if it is about one.
    #[must_use]
    pub fn run_id(&self) -> Option<RunId> {
        (self.subject_kind == SubjectKind::Run).then(|| self.subject_id.parse().ok()).flatten()
    }
}

words!(
    /// How far the delivery of a notice is.
    DeliveryState, "state of a delivery", {
        /// It is to be tried, or tried again.
        Waiting = "waiting",
        /// Its receiver has taken it.
        Delivered = "delivered",
        /// It is not tried any more.
        GivenUp = "given_up",
    }
);

record!(
    /// The delivery of a notice.
    OutboxRow, "outbox", key ["notice_id"], {
        /// The notice.
        notice_id: String,
        /// waiting, delivered or given_up.
        state: DeliveryState,
        /// How often it was tried.
        tries: u32,
        /// From when on it may be tried again, by the database's clock; a process that tries it moves this into the future first.
        next_try_at: Timestamp,
        /// Why it did not arrive the last time; null: it did, or was not tried.
        last_failure: Option<String>,
    }
);

impl OutboxRow {
    /// The delivery of a notice in a state: tried or to be tried when the notice was made.
    #[must_use]
    pub fn of(notice: &NoticeRow, state: DeliveryState) -> Self {
        let (notice_id, next_try_at) = (notice.notice_id.clone(), notice.at);
        Self { notice_id, state, tries: 0, next_try_at, last_failure: None }
    }

    /// As its copy says it while a try is made: what comes of it is not known.
    #[must_use]
    pub fn while_tried(self) -> Self {
        Self { tries: self.tries.max(1), last_failure: None, ..self }
    }

    /// Whether the notice was being sent when this was written, so that it may have arrived.
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        self.state == DeliveryState::Waiting && self.tries > 0 && self.last_failure.is_none()
    }

    /// Whether this was written after another row about the same delivery: one that ended stays so.
    pub(crate) fn is_after(&self, other: &Self) -> bool {
        let waits = |row: &Self| row.state == DeliveryState::Waiting;
        waits(other) && (!waits(self) || self.tries > other.tries)
    }
}
