//! Becoming the supervisor of a run, or what another subject has as such, staying it, and ceasing to be it.

use crate::backend::{in_seconds, now};
use crate::error::LedgerError;
use crate::leases::{Holder, LeaseAnswer, grant};
use crate::ledger::Ledger;
use crate::records::{LeaseRow, Subject};
use crate::value::{Field as _, Value};

impl Ledger {
    /// Requests the lease of a subject for `seconds`, durably. From a grant on, this handle and its clones write about the
    /// subject only while the epoch is theirs.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when there is no such run, model or data set.
    pub fn acquire_lease(
        &self,
        subject: impl Into<Subject>,
        holder: &Holder,
        seconds: f64,
    ) -> Result<LeaseAnswer, LedgerError> {
        let subject = subject.into();
        let answer = self.backend().transaction(true, |backend| grant(backend, &subject, holder, seconds))?;
        if let LeaseAnswer::Granted { epoch } = answer {
            // After the commit: a grant that was rolled back must not be relied on.
            self.leases.held().insert(subject, epoch);
        }
        Ok(answer)
    }

    /// Makes a lease of this handle valid for `seconds` from now. One that expired unnoticed is valid again, if no
    /// other process was granted it meanwhile.
    ///
    /// # Errors
    /// [`LedgerError::Superseded`] when another process was granted it.
    pub fn renew_lease(&self, subject: impl Into<Subject>, seconds: f64) -> Result<(), LedgerError> {
        let subject = subject.into();
        if self.leases.epoch(&subject).is_none() {
            return Ok(());
        }
        let key = [subject.kind.to_value(), Value::from(subject.id.as_str())];
        // Not durable: what a power cut undoes only makes the lease end earlier.
        self.write_about(subject, false, |backend| {
            let expires_at = in_seconds(now(backend)?, seconds);
            let sql = "UPDATE leases SET expires_at = ? WHERE subject_kind = ? AND subject_id = ?";
            let [kind, id] = key;
            backend.execute("renewing a lease", sql, &[expires_at.into(), kind, id]).map(|_| ())
        })
    }

    /// The lease of a subject, while it is valid by the database's clock.
    pub fn valid_lease(&self, subject: impl Into<Subject>) -> Result<Option<LeaseRow>, LedgerError> {
        let subject = subject.into();
        let mut backend = self.backend();
        let now = now(&mut backend)?;
        let tail = "WHERE subject_kind = ? AND subject_id = ? AND expires_at > ?";
        let values = [subject.kind.to_value(), Value::from(subject.id.as_str()), now.into()];
        Ok(backend.select(tail, &values)?.pop())
    }

    /// Gives a lease of this handle back; another process may have it at once. Without a lease it does nothing.
    ///
    /// # Errors
    /// [`LedgerError::Superseded`] when another process was granted it.
    pub fn release_lease(&self, subject: impl Into<Subject>) -> Result<(), LedgerError> {
        let subject = subject.into();
        let released = self.renew_lease(subject.clone(), 0.0);
        // After a failure too: the lease then expires by itself.
        self.leases.held().remove(&subject);
        released
    }
}
