//! Becoming the supervisor of a run, staying it, and ceasing to be it.

use trackway_core::RunId;

use crate::error::LedgerError;
use crate::leases::{Holder, LeaseAnswer, grant, in_seconds, now};
use crate::ledger::Ledger;
use crate::value::Field as _;

impl Ledger {
    /// Requests the lease of a run for `seconds`, durably. From a grant on, this handle and its clones write about the
    /// run only while the epoch is theirs.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when there is no such run.
    pub fn acquire_lease(
        &self,
        run_id: RunId,
        holder: &Holder,
        seconds: f64,
    ) -> Result<LeaseAnswer, LedgerError> {
        let answer = self.backend().transaction(true, |backend| grant(backend, run_id, holder, seconds))?;
        if let LeaseAnswer::Granted { epoch } = answer {
            self.leases.held().insert(run_id, epoch);
        }
        Ok(answer)
    }

    /// Makes a lease of this handle valid for `seconds` from now. One that expired unnoticed is valid again, if no
    /// other process was granted it meanwhile.
    ///
    /// # Errors
    /// [`LedgerError::Superseded`] when another process was granted it.
    pub fn renew_lease(&self, run_id: RunId, seconds: f64) -> Result<(), LedgerError> {
        if self.leases.epoch(run_id).is_none() {
            return Ok(());
        }
        self.write_about(run_id, false, |backend| {
            let expires_at = in_seconds(now(backend)?, seconds);
            let sql = "UPDATE supervisor_leases SET expires_at = ? WHERE run_id = ?";
            backend.execute("renewing a lease", sql, &[expires_at.into(), run_id.to_value()]).map(|_| ())
        })
    }

    /// Gives a lease of this handle back; another process may have it at once. Without a lease it does nothing.
    ///
    /// # Errors
    /// [`LedgerError::Superseded`] when another process was granted it.
    pub fn release_lease(&self, run_id: RunId) -> Result<(), LedgerError> {
        let released = self.renew_lease(run_id, 0.0);
        self.leases.held().remove(&run_id);
        released
    }
}
