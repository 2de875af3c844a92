//! What has to be done from time to time: each duty is done by one process at a time, which has it for as long as its bound, and is due
//! again some time after it was done.

use trackway_core::Timestamp;

use crate::backend::Backend;
use crate::backend::{in_seconds, now};
use crate::error::LedgerError;
use crate::ledger::Ledger;
use crate::records::{DutyRow, Subject};
use crate::value::{Field as _, Record as _, Value};

/// The answer to a process that would do a duty.
#[derive(Debug, Clone, PartialEq)]
pub enum DutyAnswer {
    /// It is this process's until its bound is over.
    Mine,
    NotDue {
        /// Seconds until it is.
        seconds_left: f64,
    },
    /// Another process does it.
    HeldBy {
        /// Which, for people.
        holder: String,
        /// Seconds until it may be taken from it.
        seconds_left: f64,
    },
}

/// What a process may do about a duty now.
fn answer(duty: &DutyRow, now: Timestamp) -> DutyAnswer {
    let held = duty.held_until.filter(|until| *until > now).zip(duty.holder.clone());
    match held {
        Some((until, holder)) => DutyAnswer::HeldBy { holder, seconds_left: until.seconds_since(now) },
        None if duty.due_at > now => DutyAnswer::NotDue { seconds_left: duty.due_at.seconds_since(now) },
        None => DutyAnswer::Mine,
    }
}

impl Ledger {
    /// Takes a duty, if it is due and no other process does it, for as long as its bound. One that is not known yet is due.
    pub fn take_duty(
        &self,
        name: &str,
        subject: &Subject,
        holder: &str,
        bound_seconds: u64,
    ) -> Result<DutyAnswer, LedgerError> {
        self.backend().transaction(false, |backend| {
            // By the database's clock: those of the hosts that share a duty may differ.
            let now = now(backend)?;
            let first = DutyRow { due_at: now, bound_seconds, ..named(name, subject) };
            // So that there is a row to lock, at the first time too.
            backend.insert_if_absent(&first)?;
            let Some(duty) = stored_duty(backend, name, subject)? else {
                return Err(backend.refuse("taking a duty", "the row that is there cannot be read"));
            };
            let answer = answer(&duty, now);
            if answer == DutyAnswer::Mine {
                let held_until = Some(in_seconds(now, bound_seconds as f64));
                let taken = DutyRow { bound_seconds, holder: Some(holder.into()), held_until, ..duty };
                backend.update(&taken, &[])?;
            }
            Ok(answer)
        })
    }

    /// Ends a duty of this holder: it is due again after so many seconds. False where another process has taken it meanwhile.
    pub fn end_duty(
        &self,
        name: &str,
        subject: &Subject,
        holder: &str,
        (next_seconds, failure): (u64, Option<&str>),
    ) -> Result<bool, LedgerError> {
        self.backend().transaction(false, |backend| {
            let now = now(backend)?;
            let Some(duty) = stored_duty(backend, name, subject)? else { return Ok(false) };
            // The name of the holder may have been cut or redacted when it was stored.
            let asked = backend.as_stored(&DutyRow { holder: Some(holder.into()), ..duty.clone() })?;
            if duty.holder != asked.holder {
                return Ok(false);
            }
            let ended = DutyRow {
                due_at: in_seconds(now, next_seconds as f64),
                holder: None,
                held_until: None,
                last_at: Some(now),
                last_failure: failure.map(str::to_owned),
                ..duty
            };
            backend.update(&ended, &[])
        })
    }

    /// What a process may do about a duty now, without taking it.
    pub fn duty_now(&self, name: &str, subject: &Subject) -> Result<DutyAnswer, LedgerError> {
        let mut backend = self.backend();
        let now = now(&mut backend)?;
        let asked = backend.as_stored(&named(name, subject))?;
        Ok(backend.stored(&asked)?.map_or(DutyAnswer::Mine, |duty| answer(&duty, now)))
    }

    /// All duties, by name.
    pub fn duties(&self) -> Result<Vec<DutyRow>, LedgerError> {
        self.backend().select("ORDER BY name, subject_kind, subject_id", &[])
    }
}

/// A duty of which its key is known.
fn named(name: &str, subject: &Subject) -> DutyRow {
    let (name, subject_id) = (name.to_owned(), subject.id.clone());
    DutyRow { name, subject_kind: subject.kind, subject_id, ..DutyRow::blank() }
}

/// A duty, which no other transaction changes before this one ends. It is looked up as it is stored: a path may be cut, or be redacted.
fn stored_duty(backend: &mut Backend, name: &str, subject: &Subject) -> Result<Option<DutyRow>, LedgerError> {
    let DutyRow { name, subject_kind, subject_id, .. } = backend.as_stored(&named(name, subject))?;
    let key = [
        ("name", Value::Text(name)),
        ("subject_kind", subject_kind.to_value()),
        ("subject_id", Value::Text(subject_id)),
    ];
    backend.select_locked(&key, "FOR UPDATE")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a duty is taken when it is due and free, also from a process whose bound is over, and from none before that.
    #[test]
    fn when_a_duty_is_taken() {
        let at = Timestamp::from_micros;
        let duty = |due: i64, held: Option<i64>| DutyRow {
            due_at: at(due),
            holder: held.map(|_| "node-1".into()),
            held_until: held.map(at),
            ..DutyRow::blank()
        };
        let held = DutyAnswer::HeldBy { holder: "node-1".into(), seconds_left: 1.0 };
        for (due, held_until, expected) in [
            (5_000_000, None, DutyAnswer::Mine),
            (5_000_001, None, DutyAnswer::NotDue { seconds_left: 1e-6 }),
            (1_000_000, Some(6_000_000), held),
            (1_000_000, Some(5_000_000), DutyAnswer::Mine),
        ] {
            assert_eq!(answer(&duty(due, held_until), at(5_000_000)), expected);
        }
    }
}
