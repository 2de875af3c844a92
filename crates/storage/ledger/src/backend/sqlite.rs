//! SQLite in WAL mode: readers never wait, one writer at a time.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use trackway_core::Timestamp;

use super::Values;
use crate::error::{Described, LedgerError};
use crate::text::{self, StoredValue, TextFilter};
use crate::value::{ColumnKind, Value};

/// Pause between two tries of a statement that SQLite does not wait for by itself.
const RETRY_PAUSE_MILLIS: u64 = 10;
/// As much of the file is mapped into memory: enough for the inner pages of its indexes. What is mapped counts as the
/// memory of the process, so that it bounds what a scan of a large table shows there.
const MAPPED_BYTES_MAX: u64 = 16 << 20;
/// What the name of a copy has between the name of the ledger and the version it has.
const COPY_MARK: &str = ".version-";
/// Prepared statements that are kept.
const STATEMENTS_KEPT_MAX: usize = 64;

/// A SQLite database.
#[derive(Debug)]
pub struct SqliteBackend {
    connection: Connection,
    location: String,
    door: TextFilter,
    busy_timeout_millis: u64,
    durable: bool,
    read_only: bool,
}

impl SqliteBackend {
    /// Opens or makes the file; its folder is made too. One that may only be read is opened to be read.
    pub(crate) fn open(path: &Path, busy_timeout_millis: u64, door: TextFilter) -> Result<Self, LedgerError> {
        let location = path.display().to_string();
        let error = |text: String, source: std::io::Error| LedgerError::Open {
            location: location.clone(),
            why: Described { text, source: source.into() }.into(),
        };
        if may_only_be_read(path) {
            return Self::open_read_only(path, busy_timeout_millis, door);
        }
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            trackway_files::make_folders(folder)
                .map_err(|source| error(format!("its folder cannot be created: {source}"), source))?;
        }
        // SQLite gives the files beside it the rights of this one.
        if !path.exists() {
            let mut options = std::fs::OpenOptions::new();
            trackway_files::open_own(options.append(true).create(true), path)
                .map_err(|source| error(format!("it cannot be created: {source}"), source))?;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut backend = Self::connected(path, flags, location.clone(), busy_timeout_millis, door)?;
        backend.switch_to_wal()?;
        // NORMAL: a power cut may undo the newest commits, never tear one. Sealing uses FULL (`begin`). What a power
        // cut undoes is computed again from the attempt's folder.
        let pragmas = format!(
            "PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; PRAGMA mmap_size = {MAPPED_BYTES_MAX};"
        );
        backend.execute_script("opening", &pragmas)?;
        Ok(backend)
    }

    /// While a writer has the ledger open its log is read too. Otherwise there is none, and SQLite opens the file as
    /// immutable, because it would try to create one.
    fn open_read_only(path: &Path, busy_timeout_millis: u64, door: TextFilter) -> Result<Self, LedgerError> {
        let location = path.display().to_string();
        let beside = |end: &str| std::path::PathBuf::from(format!("{location}{end}"));
        let has_log = beside("-wal").metadata().is_ok_and(|log| log.len() > 0);
        if has_log && !beside("-shm").exists() {
            let why =
                "it is read-only, and its last writer was killed: open it once as its owner, or copy it";
            return Err(LedgerError::Open { location, why: why.into() });
        }
        let how = if has_log { "mode=ro" } else { "immutable=1" };
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        // In a URI `?` and `#` would end the path.
        let encoded = absolute.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let name = format!("file:{encoded}?{how}");
        let backend = Self::connected(name.as_ref(), flags, location, busy_timeout_millis, door)?;
        Ok(Self { read_only: true, ..backend })
    }

    fn connected(
        name: &Path,
        flags: OpenFlags,
        location: String,
        busy_timeout_millis: u64,
        door: TextFilter,
    ) -> Result<Self, LedgerError> {
        let connection = Connection::open_with_flags(name, flags).map_err(|source| LedgerError::Open {
            location: location.clone(),
            why: described(&source).into(),
        })?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT_MAX);
        let backend =
            Self { connection, location, door, busy_timeout_millis, durable: false, read_only: false };
        backend
            .connection
            .busy_timeout(Duration::from_millis(busy_timeout_millis))
            .map_err(|source| backend.failed("setting the timeout", &source))?;
        Ok(backend)
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// The switch needs exclusive access for a short time and SQLite does not wait for that, so it is tried again.
    fn switch_to_wal(&mut self) -> Result<(), LedgerError> {
        let tries = self.busy_timeout_millis / RETRY_PAUSE_MILLIS + 1;
        for left in (0..tries).rev() {
            let switched = self.connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()));
            match switched {
                Err(source) if is_busy(&source) && left > 0 => {
                    std::thread::sleep(Duration::from_millis(RETRY_PAUSE_MILLIS));
                }
                Err(source) => return Err(self.failed("opening", &source)),
                Ok(()) => break,
            }
        }
        Ok(())
    }

    /// Keeps a copy of the file as it is before a migration, beside it, instead of one that was kept before an earlier one. To be called by
    /// the connection that holds the lock for writing and has changed nothing yet.
    pub(super) fn keep_copy(&self, version: i64) -> Result<(), LedgerError> {
        let Some(path) = self.connection.path().map(Path::new).filter(|path| path.is_file()) else {
            return Ok(());
        };
        let copy = with_suffix(path, &format!("{COPY_MARK}{version}"));
        let part = with_suffix(path, &format!("{COPY_MARK}{version}.part"));
        let of_copy = |why: &str| {
            format!(
                "it cannot be copied to `{}` before its migration: {why}; nothing was changed",
                copy.display()
            )
        };
        let of_file = |source: std::io::Error| {
            let why = Described { text: of_copy(&source.to_string()), source: source.into() };
            LedgerError::Open { location: self.location.clone(), why: why.into() }
        };
        // `VACUUM INTO` refuses a file that is not empty, such as one that a killed migration left.
        let _ = trackway_files::unlink(&part);
        // An empty file with the rights of the others: SQLite fills it.
        let mut options = std::fs::OpenOptions::new();
        trackway_files::open_own(options.append(true).create(true), &part).map_err(of_file)?;
        // By another connection, since a copy cannot be made within a transaction: it reads what was committed last.
        let copied = Connection::open_with_flags(
            path,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )
        .and_then(|reader| reader.execute("VACUUM INTO ?", [part.to_string_lossy()]));
        if let Err(source) = copied {
            let _ = trackway_files::unlink(&part);
            let why = of_copy(&described(&source)).into();
            return Err(LedgerError::Open { location: self.location.clone(), why });
        }
        // SQLite leaves it to others to bring the copy to the disk.
        std::fs::File::open(&part)
            .and_then(|file| file.sync_all())
            .and_then(|()| std::fs::rename(&part, &copy))
            .and_then(|()| trackway_files::sync_parent(&copy))
            .map_err(of_file)?;
        // After the rename is durable: until then an older copy may be the only whole one.
        forget_copies(path, &copy);
        Ok(())
    }

    pub(super) fn door(&self) -> &TextFilter {
        &self.door
    }

    pub(crate) fn location(&self) -> &str {
        &self.location
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn begin(&mut self, durable: bool) -> Result<(), LedgerError> {
        // Before `BEGIN`: SQLite refuses to change it within a transaction.
        if durable != self.durable {
            let level = if durable { "PRAGMA synchronous = FULL" } else { "PRAGMA synchronous = NORMAL" };
            self.connection.execute_batch(level).map_err(|source| self.failed("beginning", &source))?;
            self.durable = durable;
        }
        // IMMEDIATE takes the write lock at once: a transaction that reads first and writes later could otherwise
        // fail half-way without waiting.
        self.execute("beginning", "BEGIN IMMEDIATE", &[]).map(|_| ())
    }

    /// Runs several statements of a migration.
    pub(super) fn execute_script(&mut self, doing: &str, script: &str) -> Result<(), LedgerError> {
        self.connection.execute_batch(script).map_err(|source| self.failed(doing, &source))
    }

    pub(super) fn execute(
        &mut self,
        doing: &str,
        sql: &str,
        parameters: &[StoredValue],
    ) -> Result<u64, LedgerError> {
        let run = || -> rusqlite::Result<usize> {
            self.connection.prepare_cached(sql)?.execute(rusqlite::params_from_iter(parameters))
        };
        run().map(|rows| rows as u64).map_err(|source| self.failed(doing, &source))
    }

    /// Gives every row of a query to `take`, as the database has it.
    ///
    /// # Errors
    /// The errors of the database or of `take`.
    pub fn visit<E: From<rusqlite::Error>>(
        &mut self,
        sql: &str,
        parameters: &[Value],
        take: &mut dyn FnMut(&rusqlite::Row<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut statement = self.connection().prepare(sql)?;
        let mut rows = statement.query(rusqlite::params_from_iter(text::parameters(parameters)))?;
        while let Some(row) = rows.next()? {
            take(row)?;
        }
        Ok(())
    }

    pub(super) fn query(
        &mut self,
        doing: &str,
        sql: &str,
        parameters: &[StoredValue],
        kinds: &[ColumnKind],
        take: &mut dyn FnMut(Values) -> Result<(), LedgerError>,
    ) -> Result<(), LedgerError> {
        let failed = |source: rusqlite::Error| self.failed(doing, &source);
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        let mut rows = statement.query(rusqlite::params_from_iter(parameters)).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let mut values = Vec::with_capacity(kinds.len());
            for (index, kind) in kinds.iter().enumerate() {
                values.push(read(row.get_ref(index).map_err(failed)?, *kind));
            }
            take(values)?;
        }
        Ok(())
    }

    /// The error of a failed statement, with what to do.
    pub fn failed(&self, doing: &str, source: &rusqlite::Error) -> LedgerError {
        if is_busy(source) {
            let waited_seconds = self.busy_timeout_millis as f64 / 1e3;
            return LedgerError::Locked { location: self.location.clone(), waited_seconds };
        }
        let code = source.sqlite_error_code();
        if matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)) {
            let (location, doing) = (self.location.clone(), doing.into());
            return LedgerError::Damaged { location, doing, why: source.to_string().into() };
        }
        let is_constraint = code == Some(ErrorCode::ConstraintViolation);
        LedgerError::of_database(self.location.clone(), doing.into(), described(source).into(), is_constraint)
    }
}

/// A file beside another one.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Deletes the copies of a ledger that were kept before earlier migrations, as far as the folder allows.
fn forget_copies(path: &Path, newest: &Path) {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return };
    let mark = format!("{}{COPY_MARK}", name.to_string_lossy());
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let version = entry.file_name().to_string_lossy().strip_prefix(&mark).map(str::to_owned);
        let is_copy = version.is_some_and(|version| version.bytes().all(|digit| digit.is_ascii_digit()));
        if is_copy && entry.path() != newest {
            let _ = trackway_files::unlink(&entry.path());
        }
    }
}

/// Whether this user may not change a ledger that is there, or make the files that SQLite needs beside it.
fn may_only_be_read(path: &Path) -> bool {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    path.exists() && !(trackway_files::may_write(path) && trackway_files::may_write(folder))
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// SQLite's message, with what to do where that is known.
/// What SQLite says of a failure, and what to do. What rusqlite has as its source is the general text of the same code.
fn described(error: &rusqlite::Error) -> String {
    let hint = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => " (free some space; nothing of this change was written)",
        // Also where no file can be made beside the ledger.
        Some(ErrorCode::SystemIoFailure) => " (where its disk is full, free some space)",
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            " (check the permissions of the file and its folder)"
        }
        _ => "",
    };
    format!("{error}{hint}")
}

fn read(value: ValueRef<'_>, kind: ColumnKind) -> Value {
    match (value, kind) {
        (ValueRef::Null, _) => Value::Null,
        (ValueRef::Integer(number), ColumnKind::Boolean) => Value::Boolean(number != 0),
        (ValueRef::Integer(number), ColumnKind::Timestamp) => {
            Value::Timestamp(Timestamp::from_micros(number))
        }
        (ValueRef::Integer(number), ColumnKind::Real) => Value::Real(number as f64),
        (ValueRef::Integer(number), _) => Value::Integer(number),
        (ValueRef::Real(number), _) => Value::Real(number),
        (ValueRef::Text(text) | ValueRef::Blob(text), _) => {
            Value::Text(String::from_utf8_lossy(text).into_owned())
        }
    }
}

impl ToSql for StoredValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Text(text) => ValueRef::Text(text.as_str().as_bytes()),
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Boolean(truth) => ValueRef::Integer(i64::from(*truth)),
            Self::Timestamp(moment) => ValueRef::Integer(moment.as_micros()),
        }))
    }
}
