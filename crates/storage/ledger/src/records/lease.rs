use trackway_core::{RunId, Timestamp};

use crate::value::record;

record!(
    /// The supervisor of a run. Writes about the run are accepted only from the holder of the newest epoch; once the
    /// lease has expired by the database's clock, another process may take it.
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
