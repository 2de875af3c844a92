//! What a build without feature `postgres` has in place of the client: opening a ledger by a PostgreSQL URL is an error.

use super::{Values, without_password};
use crate::error::LedgerError;
use crate::text::{StoredValue, TextFilter};
use crate::value::ColumnKind;

/// A PostgreSQL database: this build opens none.
#[derive(Debug)]
pub enum PostgresBackend {}

impl PostgresBackend {
    pub(crate) fn open(url: &str, _lock_timeout_millis: u64, _door: TextFilter) -> Result<Self, LedgerError> {
        let what = format!("PostgreSQL client for `{}`", without_password(url));
        Err(LedgerError::NotBuilt { what, feature: "postgres" })
    }

    pub(super) fn door(&self) -> &TextFilter {
        match *self {}
    }

    pub(crate) fn location(&self) -> &str {
        match *self {}
    }

    pub(super) fn begin(&mut self, _durable: bool) -> Result<(), LedgerError> {
        match *self {}
    }

    pub(super) fn end(&mut self, _statement: &str) -> Result<(), LedgerError> {
        match *self {}
    }

    pub(super) fn execute_script(&mut self, _doing: &str, _script: &str) -> Result<(), LedgerError> {
        match *self {}
    }

    pub(super) fn execute(
        &mut self,
        _doing: &str,
        _sql: &str,
        _parameters: &[StoredValue],
    ) -> Result<u64, LedgerError> {
        match *self {}
    }

    pub(super) fn query(
        &mut self,
        _doing: &str,
        _sql: &str,
        _parameters: &[StoredValue],
        _kinds: &[ColumnKind],
        _take: &mut dyn FnMut(Values) -> Result<(), LedgerError>,
    ) -> Result<(), LedgerError> {
        match *self {}
    }
}
