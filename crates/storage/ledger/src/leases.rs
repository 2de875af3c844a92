//! Which process supervises a run: a lease with an epoch, granted and timed by the database.
//!
//! A lock file protects supervision on one machine only, not against another host with the same ledger. The lease does.
//! A grant raises the epoch, and a [`crate::Ledger`] that was granted one checks it within the transaction of every
//! write about that run: a supervisor that lost its lease without noticing (a long pause, a network that was cut)
//! changes nothing any more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trackway_core::{RunId, Timestamp};

use crate::backend::Backend;
use crate::error::LedgerError;
use crate::records::SupervisorLeaseRow;
use crate::value::{ColumnKind, Value};

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

/// The epochs that were granted to a ledger's handle, by run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leases(Arc<Mutex<HashMap<RunId, u64>>>);

impl Leases {
    pub(crate) fn held(&self) -> MutexGuard<'_, HashMap<RunId, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn epoch(&self, run_id: RunId) -> Option<u64> {
        self.held().get(&run_id).copied()
    }
}

pub(crate) fn grant(
    backend: &mut Backend,
    run_id: RunId,
    holder: &Holder,
    seconds: f64,
) -> Result<LeaseAnswer, LedgerError> {
    let now = now(backend)?;
    let asked = backend.as_stored(&SupervisorLeaseRow {
        run_id,
        epoch: 1,
        holder: holder.name.clone(),
        instance: holder.instance.clone(),
        boot_id: holder.boot_id.clone(),
        lock_id: holder.lock_id.clone(),
        expires_at: in_seconds(now, seconds),
    })?;
    if backend.insert_if_absent(&asked)? {
        return Ok(LeaseAnswer::Granted { epoch: 1 });
    }
    let Some(stored) = stored_lease(backend, run_id)? else {
        return Err(backend.refuse("granting a lease", "the row that is there cannot be read"));
    };
    if !may_have(&stored, &asked, now) {
        let seconds_left = stored.expires_at.seconds_since(now).max(0.0);
        return Ok(LeaseAnswer::HeldBy { holder: stored.holder, seconds_left });
    }
    let epoch = stored.epoch + 1;
    backend.update(&SupervisorLeaseRow { epoch, ..asked }, &[])?;
    Ok(LeaseAnswer::Granted { epoch })
}

/// Whether the lease may change hands: it is the asker's own, or its holder held the very lock that the asker holds
/// now, or it has expired.
fn may_have(stored: &SupervisorLeaseRow, asked: &SupervisorLeaseRow, now: Timestamp) -> bool {
    let own = stored.instance == asked.instance;
    let holder_is_gone = stored.boot_id == asked.boot_id && stored.lock_id == asked.lock_id;
    own || holder_is_gone || stored.expires_at <= now
}

pub(crate) fn check_epoch(backend: &mut Backend, run_id: RunId, epoch: u64) -> Result<(), LedgerError> {
    let stored = stored_lease(backend, run_id)?;
    if stored.as_ref().is_some_and(|stored| stored.epoch == epoch) {
        return Ok(());
    }
    let holder = stored.map_or_else(|| "a ledger that was rebuilt".into(), |stored| stored.holder);
    Err(LedgerError::Superseded { run_id: run_id.to_string(), holder })
}

/// The lease, which no other transaction changes before this one ends.
fn stored_lease(backend: &mut Backend, run_id: RunId) -> Result<Option<SupervisorLeaseRow>, LedgerError> {
    backend.select_locked(run_id, "FOR UPDATE")
}

/// The database's clock: that of a host may be wrong.
pub(crate) fn now(backend: &mut Backend) -> Result<Timestamp, LedgerError> {
    let sql = match backend {
        Backend::Sqlite(_) => "SELECT CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
        Backend::Postgres(_) => "SELECT clock_timestamp()",
    };
    let found = backend.rows("reading the time", sql, &[], &[ColumnKind::Timestamp])?;
    match found.concat().as_slice() {
        [Value::Timestamp(now)] => Ok(*now),
        _ => Err(backend.refuse("reading the time", "the database has no clock")),
    }
}

pub(crate) fn in_seconds(now: Timestamp, seconds: f64) -> Timestamp {
    Timestamp::from_micros(now.as_micros().saturating_add((seconds * 1e6) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(instance: &str, boot_id: &str, lock_id: &str, expires_micros: i64) -> SupervisorLeaseRow {
        SupervisorLeaseRow {
            run_id: "run_00000000000000000000000001".parse().unwrap(),
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
