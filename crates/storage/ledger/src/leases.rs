//! Which process writes about a subject, and above all which supervises a run: a lease with an epoch, granted and timed by the database.
//!
//! A lock file protects supervision on one machine only, not against another host with the same ledger. The lease does.
//! A grant raises the epoch, and a [`crate::Ledger`] that was granted one checks it within the transaction of every
//! write about that subject: a supervisor that lost its lease without noticing (a long pause, a network that was cut)
//! changes nothing any more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trackway_core::Timestamp;

use crate::backend::{Backend, in_seconds, now};
use crate::changes::must_know;
use crate::error::LedgerError;
use crate::records::{LeaseRow, Subject};
use crate::value::{Field as _, Value};

/// The process that requests a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// For people: its host and process.
    pub name: String,
    /// Unique for each time that a process becomes supervisor. The same instance is granted its own lease again, so
    /// that a request whose reply was lost may be repeated.
    pub instance: String,
    /// The boot of its machine.
    pub boot_id: String,
    /// The lock file that it holds, by device and inode.
    pub lock_id: String,
}

/// The answer to a request for a lease.
#[derive(Debug, Clone, PartialEq)]
pub enum LeaseAnswer {
    /// It is granted under this epoch.
    Granted {
        /// From 1.
        epoch: u64,
    },
    /// Another process has it.
    HeldBy {
        /// Which, for people.
        holder: String,
        /// How long it is valid unless it is renewed, in seconds.
        seconds_left: f64,
    },
}

/// The epochs that were granted to a ledger's handle, by subject.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leases(Arc<Mutex<HashMap<Subject, u64>>>);

impl Leases {
    pub(crate) fn held(&self) -> MutexGuard<'_, HashMap<Subject, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn epoch(&self, subject: &Subject) -> Option<u64> {
        self.held().get(subject).copied()
    }
}

pub(crate) fn grant(
    backend: &mut Backend,
    subject: &Subject,
    holder: &Holder,
    seconds: f64,
) -> Result<LeaseAnswer, LedgerError> {
    // Subjects are in several tables: no foreign key refuses one that is not there.
    must_know(backend, subject, "granting a lease")?;
    let now = now(backend)?;
    // As it will be read back: compared below with a row that was cut or redacted.
    let asked = backend.as_stored(&LeaseRow {
        subject_kind: subject.kind,
        subject_id: subject.id.clone(),
        epoch: 1,
        holder: holder.name.clone(),
        instance: holder.instance.clone(),
        boot_id: holder.boot_id.clone(),
        lock_id: holder.lock_id.clone(),
        expires_at: in_seconds(now, seconds),
    })?;
    // An insertion, not a look: two processes that find no row would both be the first.
    if backend.insert_if_absent(&asked)? {
        return Ok(LeaseAnswer::Granted { epoch: 1 });
    }
    let Some(stored) = stored_lease(backend, subject)? else {
        return Err(backend.refuse("granting a lease", "the row that is there cannot be read"));
    };
    if !may_have(&stored, &asked, now) {
        let seconds_left = stored.expires_at.seconds_since(now).max(0.0);
        return Ok(LeaseAnswer::HeldBy { holder: stored.holder, seconds_left });
    }
    // Raised with each grant: what is still written under the epoch before is refused.
    let epoch = stored.epoch + 1;
    backend.update(&LeaseRow { epoch, ..asked }, &[])?;
    Ok(LeaseAnswer::Granted { epoch })
}

/// Whether the lease may change hands: it is the asker's own, or its holder held the very lock that the asker holds
/// now, or it has expired.
fn may_have(stored: &LeaseRow, asked: &LeaseRow, now: Timestamp) -> bool {
    let own = stored.instance == asked.instance;
    // The kernel gave this very lock to another process, so its holder is dead: no expiry is waited for.
    let holder_is_gone = stored.boot_id == asked.boot_id && stored.lock_id == asked.lock_id;
    own || holder_is_gone || stored.expires_at <= now
}

pub(crate) fn check_epoch(backend: &mut Backend, subject: &Subject, epoch: u64) -> Result<(), LedgerError> {
    let stored = stored_lease(backend, subject)?;
    if stored.as_ref().is_some_and(|stored| stored.epoch == epoch) {
        return Ok(());
    }
    let holder = stored.map_or_else(|| "a ledger that was rebuilt".into(), |stored| stored.holder);
    Err(LedgerError::Superseded { subject: subject.to_string(), holder })
}

/// The lease, which no other transaction changes before this one ends.
fn stored_lease(backend: &mut Backend, subject: &Subject) -> Result<Option<LeaseRow>, LedgerError> {
    let key = [("subject_kind", subject.kind.to_value()), ("subject_id", Value::from(subject.id.as_str()))];
    backend.select_locked(&key, "FOR UPDATE")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::SubjectKind;

    fn lease(instance: &str, boot_id: &str, lock_id: &str, expires_micros: i64) -> LeaseRow {
        LeaseRow {
            subject_kind: SubjectKind::Run,
            subject_id: "run_00000000000000000000000001".into(),
            epoch: 3,
            holder: "node-1, process 7".into(),
            instance: instance.into(),
            boot_id: boot_id.into(),
            lock_id: lock_id.into(),
            expires_at: Timestamp::from_micros(expires_micros),
        }
    }

    /// Proves that a valid lease passes only to its instance, and to the process that holds the lock of its holder.
    #[test]
    fn a_valid_lease_is_kept() {
        let stored = lease("one", "boot", "8:77", 100);
        let now = Timestamp::from_micros(99);
        for (asked, expected) in [
            (lease("one", "other boot", "9:1", 0), true),
            (lease("two", "boot", "8:77", 0), true),
            (lease("two", "boot", "8:78", 0), false),
            (lease("two", "other boot", "8:77", 0), false),
        ] {
            assert_eq!(may_have(&stored, &asked, now), expected, "{asked:?}");
            assert!(may_have(&stored, &asked, Timestamp::from_micros(100)), "expired");
        }
    }
}
