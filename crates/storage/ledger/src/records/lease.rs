use trackway_core::{RunId, Timestamp};

use super::SubjectKind;
use crate::value::record;

record!(
    /// The process that writes about a subject: of a run, its supervisor. Writes about it are accepted only from the holder of the newest
    /// epoch; once the lease has expired by the database's clock, another process may take it.
    LeaseRow, "leases", key ["subject_kind", "subject_id"], {
        /// What it is about: run, model, data, monitor, trigger, budget or engine.
        subject_kind: SubjectKind,
        /// The id or the name of that.
        subject_id: String,
        /// Grows by one with every grant; a write under an older epoch is refused.
        epoch: u64,
        /// The holder, for people: its host and process.
        holder: String,
        /// The holder, unique for each time that a process takes the lease.
        instance: String,
        /// The boot of the machine it runs on.
        boot_id: String,
        /// Its lock file, by device and inode: a process that holds that lock on the same boot proves that the holder
        /// is gone.
        lock_id: String,
        /// When it expires unless it is renewed, by the database's clock.
        expires_at: Timestamp,
    }
);

record!(
    /// The supervisors of runs: a view over `leases`.
    SupervisorLeaseRow, "supervisor_leases", key ["run_id"], {
        /// The run.
        run_id: RunId,
        /// Grows by one with every grant; a write under an older epoch is refused.
        epoch: u64,
        /// The holder, for people: its host and process.
        holder: String,
        /// The holder, unique for each time that a process becomes supervisor.
        instance: String,
        /// The boot of the machine it runs on.
        boot_id: String,
        /// Its lock file, by device and inode: a process that holds that lock on the same boot proves that the holder
        /// is gone.
        lock_id: String,
        /// When it expires unless it is renewed, by the database's clock.
        expires_at: Timestamp,
    }
);
