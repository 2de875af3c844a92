//! Notices and their delivery. A notice is stored before it is sent, so that it survives the process that made it; it is sent at least
//! once, and by one process at a time. Those that ended, delivered or given up, are removed some time later (`trackway tick`).

use trackway_core::Timestamp;

use crate::backend::{Backend, in_seconds, now};
use crate::changes::{known_subject, note_change};
use crate::error::LedgerError;
use crate::ledger::Ledger;
use crate::reading::feed::KeptBounds;
use crate::records::{DeliveryState, NoticeRow, OutboxRow};
use crate::value::{ColumnKind, Field as _, Record as _, Value};

/// How a try to deliver a notice ended.
#[derive(Debug, Clone, PartialEq)]
pub enum DeliveryEnd {
    Delivered,
    /// It may be tried again after so many seconds.
    Later {
        seconds: f64,
        why: String,
    },
    GivenUp {
        why: String,
    },
}

impl DeliveryEnd {
    /// The state of the delivery after it, and why the notice did not arrive.
    #[must_use]
    pub fn state_and_failure(&self) -> (DeliveryState, Option<&str>) {
        match self {
            Self::Delivered => (DeliveryState::Delivered, None),
            Self::GivenUp { why } => (DeliveryState::GivenUp, Some(why)),
            Self::Later { why, .. } => (DeliveryState::Waiting, Some(why)),
        }
    }
}

impl Ledger {
    /// Stores a notice that is to be delivered, durably; its project is filled in. A notice with the same id is there already: nothing
    /// changes then, and the answer is `false`.
    pub fn post_notice(&self, notice: &NoticeRow) -> Result<bool, LedgerError> {
        self.backend().transaction(true, |backend| {
            if backend.stored(notice)?.is_some() {
                return Ok(false);
            }
            let project = known_subject(backend, &notice.subject())?.flatten();
            let is_new = backend.insert_if_absent(&NoticeRow { project, ..notice.clone() })?;
            if is_new {
                let next_try_at = now(backend)?;
                // In the same transaction: a notice without a delivery would never be sent.
                let notice_id = notice.notice_id.clone();
                backend.insert(&OutboxRow { notice_id, next_try_at, ..OutboxRow::blank() })?;
                note_change(backend, NoticeRow::TABLE, notice.subject())?;
            }
            Ok(is_new)
        })
    }

    /// Takes a notice in order to try its delivery within so many seconds: for as long no other process tries it. False: it is not to be
    /// tried now.
    pub fn take_notice(&self, notice_id: &str, seconds: f64) -> Result<bool, LedgerError> {
        self.move_due(notice_id, 1, seconds)
    }

    /// Puts a notice that is due and cannot be tried here behind all others that are due. False: it is not due.
    pub fn pass_over_notice(&self, notice_id: &str) -> Result<bool, LedgerError> {
        self.move_due(notice_id, 0, 0.0)
    }

    /// Moves the next try of a notice that is due to so many seconds from now.
    fn move_due(&self, notice_id: &str, tries: u32, seconds: f64) -> Result<bool, LedgerError> {
        self.backend().transaction(false, |backend| {
            let now = now(backend)?;
            // In one statement: of two processes only one finds it still due.
            let sql = format!(
                "UPDATE outbox SET tries = tries + {tries}, next_try_at = ? WHERE notice_id = ? AND state = 'waiting' AND next_try_at <= ?"
            );
            let values = [in_seconds(now, seconds).into(), Value::from(notice_id), now.into()];
            Ok(backend.execute("taking a notice", &sql, &values)? == 1)
        })
    }

    /// Notes how a try ended. What was delivered or given up stays so: false then, and where there is no such notice.
    pub fn end_notice(&self, notice_id: &str, end: &DeliveryEnd) -> Result<bool, LedgerError> {
        let (state, why) = end.state_and_failure();
        let seconds = if let DeliveryEnd::Later { seconds, .. } = end { *seconds } else { 0.0 };
        self.backend().transaction(false, |backend| {
            let next_try_at = in_seconds(now(backend)?, seconds);
            // Locked: of two processes only one finds that it waits.
            let stored: Option<OutboxRow> =
                backend.select_locked(&[("notice_id", Value::from(notice_id))], "FOR UPDATE")?;
            let Some(row) = stored.filter(|row| row.state == DeliveryState::Waiting) else {
                return Ok(false);
            };
            let ended = OutboxRow { state, next_try_at, last_failure: why.map(str::to_owned), ..row };
            backend.update(&ended, &[])
        })
    }

    /// The notices that may be tried now with their deliveries, the longest waiting first; at most `limit`.
    pub fn due_notices(&self, limit: u32) -> Result<Vec<(NoticeRow, OutboxRow)>, LedgerError> {
        let mut backend = self.backend();
        let now = now(&mut backend)?;
        let tail = format!(
            "WHERE state = 'waiting' AND next_try_at <= ? ORDER BY next_try_at, notice_id LIMIT {limit}"
        );
        let waiting: Vec<OutboxRow> = backend.select(&tail, &[now.into()])?;
        with_notices(&mut backend, waiting)
    }

    /// The notices that wait to be delivered, due or not, with their deliveries: by id, after `after`; at most `limit`.
    pub fn waiting_notices(
        &self,
        after: &str,
        limit: u32,
    ) -> Result<Vec<(NoticeRow, OutboxRow)>, LedgerError> {
        let mut backend = self.backend();
        let tail = format!("WHERE state = 'waiting' AND notice_id > ? ORDER BY notice_id LIMIT {limit}");
        let waiting: Vec<OutboxRow> = backend.select(&tail, &[Value::from(after)])?;
        with_notices(&mut backend, waiting)
    }

    /// The notices that ended and are beyond the bounds, the oldest first; at most `limit`.
    pub fn notices_beyond(&self, bounds: &KeptBounds, limit: u32) -> Result<Vec<NoticeRow>, LedgerError> {
        let mut backend = self.backend();
        let doing = "looking for old notices";
        let too_old = in_seconds(now(&mut backend)?, -bounds.seconds());
        // When the newest of those that are too many ended: the next try of one that ended is when it did.
        let sql = format!(
            "SELECT next_try_at FROM outbox WHERE state <> 'waiting' ORDER BY next_try_at DESC LIMIT 1 OFFSET {}",
            bounds.count
        );
        let too_many = backend.rows(doing, &sql, &[], &[ColumnKind::Timestamp])?.into_iter().flatten().next();
        let too_many = too_many.map(Timestamp::from_value).transpose().map_err(backend.fault(doing))?;
        let until = too_many.filter(|at| *at > too_old).unwrap_or(too_old);
        let tail = format!(
            "WHERE notice_id IN (SELECT notice_id FROM outbox WHERE state <> 'waiting' AND next_try_at <= ? ORDER BY next_try_at, notice_id LIMIT {limit}) ORDER BY at, notice_id"
        );
        backend.select(&tail, &[until.into()])
    }

    /// Removes a notice that ended, with its delivery. False: it is not there, or is still to be delivered.
    pub fn remove_notice(&self, notice_id: &str) -> Result<bool, LedgerError> {
        self.backend().transaction(false, |backend| {
            let (doing, key) = ("removing an old notice", [Value::from(notice_id)]);
            // The delivery first: its state decides whether the notice may go at all.
            let delivery = "DELETE FROM outbox WHERE notice_id = ? AND state <> 'waiting'";
            let is_ended = backend.execute(doing, delivery, &key)? == 1;
            if is_ended {
                backend.execute(doing, "DELETE FROM notices WHERE notice_id = ?", &key)?;
            }
            Ok(is_ended)
        })
    }

    /// How far the delivery of a notice is; none: there is no such notice.
    pub fn delivery_of(&self, notice_id: &str) -> Result<Option<OutboxRow>, LedgerError> {
        Ok(self.backend().select("WHERE notice_id = ?", &[notice_id.to_owned().to_value()])?.pop())
    }
}

/// Deliveries with their notices, in their order.
fn with_notices(
    backend: &mut Backend,
    deliveries: Vec<OutboxRow>,
) -> Result<Vec<(NoticeRow, OutboxRow)>, LedgerError> {
    let ids: Vec<String> = deliveries.iter().map(|row| row.notice_id.clone()).collect();
    let notices: Vec<NoticeRow> = backend.select_among(NoticeRow::TABLE, "notice_id", &ids, "")?;
    let with_notice = |row: OutboxRow| {
        let notice = notices.iter().find(|notice| notice.notice_id == row.notice_id)?;
        Some((notice.clone(), row))
    };
    Ok(deliveries.into_iter().filter_map(with_notice).collect())
}
