//! PostgreSQL through its synchronous client.

use std::error::Error;

use postgres::config::SslMode;
use postgres::error::SqlState;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::private::BytesMut;
use postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, Config, NoTls};
use trackway_core::Timestamp;

use super::Values;
use crate::error::{INTEGRITY_MARK, LedgerError};
use crate::value::{ColumnKind, Value};

/// Microseconds from 1970-01-01 to 2000-01-01, where PostgreSQL begins to count.
const POSTGRES_EPOCH_MICROS: i64 = 946_684_800_000_000;
/// How long connecting may take, unless the URL says otherwise.
const CONNECT_TIMEOUT_SECONDS: u64 = 10;

/// A PostgreSQL database.
pub(crate) struct PostgresBackend {
    client: Client,
    location: String,
    lock_timeout_millis: u64,
}

impl std::fmt::Debug for PostgresBackend {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PostgresBackend").field("location", &self.location).finish_non_exhaustive()
    }
}

impl PostgresBackend {
    /// Connects. TLS is not built in: a URL that requires it is refused rather than weakened.
    pub(crate) fn open(url: &str, lock_timeout_millis: u64) -> Result<Self, LedgerError> {
        let location = without_password(url);
        let error = |why: String| LedgerError::Open { location: location.clone(), why };
        let mut config: Config = url.parse().map_err(|source: postgres::Error| {
            error(format!("{} (expected `postgres://user@host:port/database`)", chain(&source)))
        })?;
        if config.get_ssl_mode() == SslMode::Require {
            let why = "`sslmode=require` is not supported: this build has no TLS; use a local socket, a tunnel, or `sslmode=prefer` on a network you trust";
            return Err(error(why.into()));
        }
        config.application_name("trackway");
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(std::time::Duration::from_secs(CONNECT_TIMEOUT_SECONDS));
        }
        let client = config.connect(NoTls).map_err(|source| {
            error(format!("{} (is the server running, and are user and database right?)", chain(&source)))
        })?;
        let mut backend = Self { client, location, lock_timeout_millis };
        let settings = format!("SET lock_timeout = {lock_timeout_millis}; SET client_min_messages = warning");
        backend.execute_script("opening", &settings)?;
        Ok(backend)
    }

    pub(crate) fn location(&self) -> &str {
        &self.location
    }

    pub(super) fn begin(&mut self, durable: bool) -> Result<(), LedgerError> {
        let level = if durable { "on" } else { "off" };
        self.execute_script("beginning", &format!("BEGIN; SET LOCAL synchronous_commit = {level}"))
    }

    /// Runs several statements.
    pub(super) fn execute_script(&mut self, doing: &str, script: &str) -> Result<(), LedgerError> {
        self.client.batch_execute(script).map_err(|source| self.failed(doing, &source))
    }

    pub(super) fn execute(
        &mut self,
        doing: &str,
        sql: &str,
        parameters: &[Value],
    ) -> Result<u64, LedgerError> {
        let references: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|value| value as _).collect();
        let done = self.client.execute(&numbered(sql), &references);
        done.map_err(|source| self.failed(doing, &source))
    }

    pub(super) fn query(
        &mut self,
        doing: &str,
        sql: &str,
        parameters: &[Value],
        kinds: &[ColumnKind],
        take: &mut dyn FnMut(Values) -> Result<(), LedgerError>,
    ) -> Result<(), LedgerError> {
        let mut refused = None;
        let mut run = || -> Result<(), postgres::Error> {
            let mut rows = self.client.query_raw(&numbered(sql), parameters)?;
            while let Some(row) = rows.next()? {
                let values: Result<Values, postgres::Error> =
                    (0..kinds.len()).map(|index| row.try_get(index)).collect();
                if let Err(error) = take(values?) {
                    refused = Some(error);
                    break;
                }
            }
            Ok(())
        };
        let done = run();
        match refused {
            Some(error) => Err(error),
            None => done.map_err(|source| self.failed(doing, &source)),
        }
    }

    fn failed(&self, doing: &str, source: &postgres::Error) -> LedgerError {
        let (location, doing, why) = (self.location.clone(), doing.into(), chain(source));
        if source.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) {
            let waited_seconds = self.lock_timeout_millis as f64 / 1e3;
            return LedgerError::Locked { location, waited_seconds };
        }
        match why.split_once(INTEGRITY_MARK) {
            Some((_, rule)) => LedgerError::Integrity { location, doing, why: rule.into() },
            None if source.code().is_some_and(|code| code.code().starts_with("23")) => {
                LedgerError::Integrity { location, doing, why }
            }
            None => LedgerError::Database { location, doing, why },
        }
    }
}

/// A URL whose password is gone, fit for messages.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.into() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) => format!("{}@{host}", user.split(':').next().unwrap_or(user)),
        None => authority.into(),
    };
    // A password may also stand among the options behind `?`.
    let path = path.split('?').next().unwrap_or(path);
    format!("{scheme}://{authority}{path}")
}

/// `?` becomes `$1`, `$2` … No query of the ledger holds a question mark otherwise.
fn numbered(sql: &str) -> String {
    let mut count = 0;
    let mut numbered = String::with_capacity(sql.len() + 16);
    for letter in sql.chars() {
        if letter == '?' {
            count += 1;
            numbered.push_str(&format!("${count}"));
        } else {
            numbered.push(letter);
        }
    }
    numbered
}

fn chain(error: &postgres::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

impl ToSql for Value {
    fn to_sql(&self, column: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Text(text) => text.to_sql(column, out),
            Self::Integer(number) if *column == Type::FLOAT8 => (*number as f64).to_sql(column, out),
            Self::Integer(number) => number.to_sql(&Type::INT8, out),
            Self::Real(number) => number.to_sql(column, out),
            Self::Boolean(truth) => truth.to_sql(column, out),
            Self::Timestamp(moment) => {
                (moment.as_micros().saturating_sub(POSTGRES_EPOCH_MICROS)).to_sql(&Type::INT8, out)
            }
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl<'row> FromSql<'row> for Value {
    fn from_sql(column: &Type, raw: &'row [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(match *column {
            Type::INT8 => Self::Integer(i64::from_sql(column, raw)?),
            Type::INT4 => Self::Integer(i64::from(i32::from_sql(column, raw)?)),
            Type::FLOAT8 => Self::Real(f64::from_sql(column, raw)?),
            Type::BOOL => Self::Boolean(bool::from_sql(column, raw)?),
            Type::TIMESTAMPTZ => Self::Timestamp(Timestamp::from_micros(
                i64::from_sql(&Type::INT8, raw)?.saturating_add(POSTGRES_EPOCH_MICROS),
            )),
            _ => Self::Text(String::from_utf8_lossy(raw).into_owned()),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self::Null)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that no message can show a password, wherever the URL carries it.
    #[test]
    fn a_password_is_never_shown() {
        for url in
            ["postgres://ana:se@cret@db:5432/tracks?sslmode=prefer", "postgres://ana@db/t?password=secret"]
        {
            let shown = without_password(url);
            assert!(!shown.contains("cret") && shown.contains("ana@db"), "{shown}");
        }
    }
}
