//! PostgreSQL through its synchronous client.
//!
//! A lost connection is a separate error ([`LedgerError::Unavailable`]). The next call outside a transaction connects
//! again; a transaction never continues over another connection.

mod tls;

use std::error::Error;
use std::io;
use std::time::Duration;

use postgres::config::{Host, SslMode};
use postgres::error::SqlState;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::private::BytesMut;
use postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;
use trackway_core::{BoxError, Timestamp};

use self::tls::TlsSettings;
use super::{Values, without_password};
use crate::error::{Described, LedgerError};
use crate::text::{StoredValue, TextFilter};
use crate::value::{ColumnKind, Value};

/// Microseconds from 1970-01-01 to 2000-01-01, where PostgreSQL begins to count.
const POSTGRES_EPOCH_MICROS: i64 = 946_684_800_000_000;
/// How long connecting may take, unless the URL sets it.
const CONNECT_TIMEOUT_SECONDS: u64 = 5;
/// How long sent bytes may stay unacknowledged, unless the URL sets it: this detects a host that vanished.
const UNACKNOWLEDGED_SECONDS_MAX: u64 = 10;
/// How often connecting to a server that is starting up or has no free connection is tried when a ledger is opened.
const BUSY_SERVER_TRIES: u32 = 25;
/// The pause between two of these.
const BUSY_SERVER_PAUSE_MILLIS: u64 = 200;

/// A PostgreSQL database.
pub struct PostgresBackend {
    client: Client,
    server: Server,
    location: String,
    door: TextFilter,
    /// The connection is gone; the next call outside a transaction makes another one.
    lost: bool,
    in_transaction: bool,
}

/// How connections are made.
struct Server {
    config: Config,
    /// What encrypts a connection; none over a Unix socket, or where the URL disables it.
    tls: Option<MakeRustlsConnect>,
    lock_timeout_millis: u64,
}

impl std::fmt::Debug for PostgresBackend {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PostgresBackend").field("location", &self.location).finish_non_exhaustive()
    }
}

impl PostgresBackend {
    /// Connects, encrypted as the URL requests.
    pub(crate) fn open(url: &str, lock_timeout_millis: u64, door: TextFilter) -> Result<Self, LedgerError> {
        let location = without_password(url);
        let error = |why: BoxError| LedgerError::Open { location: location.clone(), why };
        let (url, tls) = TlsSettings::take(url).map_err(|why| error(why.into()))?;
        let mut config: Config = url.parse().map_err(|source: postgres::Error| {
            error(described(source, " (expected `postgres://user@host:port/database`)").into())
        })?;
        let is_local = config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
        // A Unix socket does not leave the machine: nothing has to be encrypted.
        config.ssl_mode(if is_local { SslMode::Disable } else { tls.mode() });
        let tls = match config.get_ssl_mode() {
            SslMode::Disable => None,
            _ => Some(tls.connector().map_err(|why| error(why.into()))?),
        };
        config.application_name("trackway");
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(CONNECT_TIMEOUT_SECONDS));
        }
        // A host that vanished sends no reset: without a bound a write would wait for many minutes.
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(Duration::from_secs(UNACKNOWLEDGED_SECONDS_MAX));
        }
        let server = Server { config, tls, lock_timeout_millis };
        let client = server.connect_patiently().map_err(|source| {
            let advice = format!(" ({})", advice(&source));
            error(described(source, &advice).into())
        })?;
        Ok(Self { client, server, location, door, lost: false, in_transaction: false })
    }

    /// The connection; another one when it was lost and no transaction depends on it.
    fn connected(&mut self) -> Result<&mut Client, LedgerError> {
        if self.lost {
            let away = |why: BoxError| LedgerError::Unavailable { location: self.location.clone(), why };
            // Another connection would commit the second half of a transaction whose first half is gone.
            if self.in_transaction {
                return Err(away("the connection was lost within a transaction".into()));
            }
            self.client = self.server.connect().map_err(|source| away(described(source, "").into()))?;
            self.lost = false;
        }
        Ok(&mut self.client)
    }

    pub(super) fn door(&self) -> &TextFilter {
        &self.door
    }

    pub(crate) fn location(&self) -> &str {
        &self.location
    }

    pub(super) fn begin(&mut self, durable: bool) -> Result<(), LedgerError> {
        let level = if durable { "on" } else { "off" };
        self.execute_script("beginning", &format!("BEGIN; SET LOCAL synchronous_commit = {level}"))?;
        // After the statement, which may connect again: within a transaction that is refused.
        self.in_transaction = true;
        Ok(())
    }

    /// Ends a transaction. When this fails because the connection was lost, whether it was committed is not known.
    pub(super) fn end(&mut self, statement: &str) -> Result<(), LedgerError> {
        let done = self.execute_script("ending a transaction", statement);
        // After a failure too: the next transaction may use another connection.
        self.in_transaction = false;
        done
    }

    /// Runs several statements.
    pub(super) fn execute_script(&mut self, doing: &str, script: &str) -> Result<(), LedgerError> {
        let done = self.connected()?.batch_execute(script);
        done.map_err(|source| self.failed(doing, source))
    }

    pub(super) fn execute(
        &mut self,
        doing: &str,
        sql: &str,
        parameters: &[StoredValue],
    ) -> Result<u64, LedgerError> {
        let references: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|value| value as _).collect();
        let done = self.connected()?.execute(&numbered(sql), &references);
        done.map_err(|source| self.failed(doing, source))
    }

    pub(super) fn query(
        &mut self,
        doing: &str,
        sql: &str,
        parameters: &[StoredValue],
        kinds: &[ColumnKind],
        take: &mut dyn FnMut(Values) -> Result<(), LedgerError>,
    ) -> Result<(), LedgerError> {
        let mut refused = None;
        let client = self.connected()?;
        let mut run = || -> Result<(), postgres::Error> {
            let mut rows = client.query_raw(&numbered(sql), parameters)?;
            while let Some(row) = rows.next()? {
                let values: Result<Values, postgres::Error> =
                    (0..kinds.len()).map(|index| row.try_get(index)).collect();
                if let Err(error) = take(values?) {
                    // Kept apart: it is an error of what takes the rows, not of the database.
                    refused = Some(error);
                    break;
                }
            }
            Ok(())
        };
        let done = run();
        match refused {
            Some(error) => Err(error),
            None => done.map_err(|source| self.failed(doing, source)),
        }
    }

    fn failed(&mut self, doing: &str, source: postgres::Error) -> LedgerError {
        let location = self.location.clone();
        if is_lost(&source) || self.client.is_closed() {
            self.lost = true;
            return LedgerError::Unavailable { location, why: described(source, "").into() };
        }
        if source.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) {
            let waited_seconds = self.server.lock_timeout_millis as f64 / 1e3;
            return LedgerError::Locked { location, waited_seconds };
        }
        let is_constraint = source.code().is_some_and(|code| code.code().starts_with("23"));
        LedgerError::of_database(location, doing.into(), described(source, "").into(), is_constraint)
    }
}

impl Server {
    fn connect(&self) -> Result<Client, postgres::Error> {
        let mut client = match &self.tls {
            Some(tls) => self.config.connect(tls.clone())?,
            None => self.config.connect(NoTls)?,
        };
        let wait_millis = self.lock_timeout_millis;
        let settings = format!("SET lock_timeout = {wait_millis}; SET client_min_messages = warning");
        client.batch_execute(&settings)?;
        Ok(client)
    }

    /// Tries a server again that reports that it will be ready soon.
    fn connect_patiently(&self) -> Result<Client, postgres::Error> {
        for _ in 1..BUSY_SERVER_TRIES {
            match self.connect() {
                Err(source) if source.code().is_some_and(is_busy) => {
                    std::thread::sleep(Duration::from_millis(BUSY_SERVER_PAUSE_MILLIS));
                }
                done => return done,
            }
        }
        self.connect()
    }
}

/// What to look at when no connection comes about.
fn advice(source: &postgres::Error) -> &'static str {
    let text = chain(source);
    if text.contains("TLS") || text.contains("certificate") {
        "see `sslmode` and `sslrootcert` of the ledger's URL"
    } else {
        "is the server running, and are the user and database correct?"
    }
}

/// The server starts up or recovers, or has no connection left.
fn is_busy(code: &SqlState) -> bool {
    [SqlState::CANNOT_CONNECT_NOW, SqlState::TOO_MANY_CONNECTIONS].contains(code)
}

/// Whether the connection is of no use any more: the server ended it, the network did, or a failover made its server
/// read-only.
fn is_lost(source: &postgres::Error) -> bool {
    let ended = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::IDLE_SESSION_TIMEOUT,
    ];
    let by_server = source
        .code()
        .is_some_and(|code| ended.contains(code) || is_busy(code) || code.code().starts_with("08"));
    // A statement that cannot be encoded is an I/O error in name only.
    let by_network =
        source.source().and_then(|cause| cause.downcast_ref::<io::Error>()).is_some_and(|error| {
            !matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData)
        });
    source.is_closed() || by_server || by_network
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

/// An error in one text with all its causes, and more after these.
fn described(error: postgres::Error, more: &str) -> Described {
    Described { text: format!("{}{more}", chain(&error)), source: error.into() }
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

impl ToSql for StoredValue {
    fn to_sql(&self, column: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Text(text) => text.as_str().to_sql(column, out),
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
