//! The narrow layer over both databases. Queries are written once, with `?` for parameters.

mod clock;
mod dialect;
mod migrate;
mod pool;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(not(feature = "postgres"))]
#[path = "postgres_absent.rs"]
mod postgres;
pub(crate) mod rules;
mod sqlite;

pub(crate) use self::clock::{in_seconds, now};
pub(crate) use self::dialect::without_lists;
pub(crate) use self::migrate::FIRST_VERSION;
pub(crate) use self::migrate::{SCHEMA_VERSION, SUBJECTS_VERSION, script_of};
pub(crate) use self::pool::{Bounds, Connect, Connection, Pool};
pub(crate) use self::postgres::PostgresBackend;
pub(crate) use self::sqlite::SqliteBackend;

use std::cell::Cell;

use crate::error::LedgerError;
use crate::text::{self, StoredValue, TextFilter};
use crate::value::{ColumnKind, Field, Record, Table, Value};

thread_local! {
    /// Rows that this thread has read from ledgers: a test of what is read counts them.
    static ROWS_READ: Cell<u64> = const { Cell::new(0) };
}

/// So many values are looked for with one statement; SQLite takes 32,766.
const AMONG_MAX: usize = 1_000;

/// How many rows this thread has read from ledgers so far.
pub(crate) fn rows_read() -> u64 {
    ROWS_READ.get()
}

/// A row as it comes: the values in the order of the query's columns.
pub(crate) type Values = Vec<Value>;

/// An open database.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "an open ledger has a few")]
pub enum Backend {
    /// A file.
    Sqlite(SqliteBackend),
    /// A connection to a server.
    Postgres(PostgresBackend),
}

impl Backend {
    /// Runs a statement and returns how many rows it touched.
    pub(crate) fn execute(
        &mut self,
        doing: &str,
        sql: &str,
        parameters: &[Value],
    ) -> Result<u64, LedgerError> {
        self.execute_stored(doing, sql, &text::parameters(parameters))
    }

    fn execute_stored(
        &mut self,
        doing: &str,
        sql: &str,
        parameters: &[StoredValue],
    ) -> Result<u64, LedgerError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.execute(doing, sql, parameters),
            Self::Postgres(postgres) => postgres.execute(doing, sql, parameters),
        }
    }

    /// Runs a query whose columns are of `kinds` and gives every row to `take`, which may end the query early by
    /// an error.
    pub fn query(
        &mut self,
        doing: &str,
        sql: &str,
        parameters: &[Value],
        kinds: &[ColumnKind],
        take: &mut dyn FnMut(Values) -> Result<(), LedgerError>,
    ) -> Result<(), LedgerError> {
        let parameters = text::parameters(parameters);
        let take: &mut dyn FnMut(Values) -> Result<(), LedgerError> = &mut |values| {
            ROWS_READ.set(ROWS_READ.get() + 1);
            take(values)
        };
        match self {
            Self::Sqlite(sqlite) => sqlite.query(doing, sql, &parameters, kinds, take),
            Self::Postgres(postgres) => postgres.query(doing, sql, &parameters, kinds, take),
        }
    }

    /// Does all of `work` or nothing of it. `durable`: it survives a power cut once this has returned; without it a
    /// power cut may undo the newest such transactions, each as a whole and in order.
    pub fn transaction<T>(
        &mut self,
        durable: bool,
        work: impl FnOnce(&mut Self) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        self.begin(durable)?;
        // The commit is part of it: one that fails is rolled back too.
        let done = work(self).and_then(|value| {
            self.end("COMMIT")?;
            Ok(value)
        });
        if done.is_err() {
            // The first error is the one to report; a connection that cannot roll back is broken and rolls back by
            // being dropped.
            let _ = self.end("ROLLBACK");
        }
        done
    }

    fn end(&mut self, statement: &str) -> Result<(), LedgerError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.execute("ending a transaction", statement, &[]).map(|_| ()),
            Self::Postgres(postgres) => postgres.end(statement),
        }
    }

    fn begin(&mut self, durable: bool) -> Result<(), LedgerError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.begin(durable),
            Self::Postgres(postgres) => postgres.begin(durable),
        }
    }

    /// A string column in an order: by its bytes, whatever the order of the database's language.
    pub fn bytewise(&self, column: &str) -> String {
        match self {
            Self::Sqlite(_) => column.to_owned(),
            Self::Postgres(_) => format!("{column} COLLATE \"C\""),
        }
    }

    pub(crate) fn door(&self) -> &TextFilter {
        match self {
            Self::Sqlite(sqlite) => sqlite.door(),
            Self::Postgres(postgres) => postgres.door(),
        }
    }

    /// The file or URL, without a password.
    pub(crate) fn location(&self) -> &str {
        match self {
            Self::Sqlite(sqlite) => sqlite.location(),
            Self::Postgres(postgres) => postgres.location(),
        }
    }

    /// Whether nothing can be written, because this user may not.
    pub(crate) fn is_read_only(&self) -> bool {
        matches!(self, Self::Sqlite(sqlite) if sqlite.is_read_only())
    }

    /// Makes failures of the database itself from their reasons.
    pub(crate) fn fault(&self, doing: &str) -> impl Fn(String) -> LedgerError + use<> {
        let (location, doing) = (self.location().to_owned(), doing.to_owned());
        move |why| LedgerError::Database { location: location.clone(), doing: doing.clone(), why: why.into() }
    }

    /// A refusal by a rule of the code.
    pub(crate) fn refuse(&self, doing: &str, why: impl Into<String>) -> LedgerError {
        let why: String = why.into();
        LedgerError::Integrity { location: self.location().into(), doing: doing.into(), why: why.into() }
    }

    /// Every row of a query, for queries with few.
    pub(crate) fn rows(
        &mut self,
        doing: &str,
        sql: &str,
        parameters: &[Value],
        kinds: &[ColumnKind],
    ) -> Result<Vec<Values>, LedgerError> {
        let mut rows = Vec::new();
        self.query(doing, sql, parameters, kinds, &mut |values| {
            rows.push(values);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Every row of `tail` (`where … order by …`) of a record's table.
    pub fn select<R: Record>(&mut self, tail: &str, parameters: &[Value]) -> Result<Vec<R>, LedgerError> {
        self.select_from(R::TABLE, tail, parameters)
    }

    /// Like [`Backend::select`], from another table with the same columns.
    pub fn select_from<R: Record>(
        &mut self,
        table: &Table,
        tail: &str,
        parameters: &[Value],
    ) -> Result<Vec<R>, LedgerError> {
        let sql = format!("SELECT {} FROM {} {tail}", column_list(table), table.name);
        let kinds: Vec<ColumnKind> = table.columns.iter().map(|column| column.kind).collect();
        let doing = format!("reading {}", table.name);
        let fault = self.fault(&doing);
        let mut rows = Vec::new();
        self.query(&doing, &sql, parameters, &kinds, &mut |values| {
            rows.push(R::from_values(values).map_err(&fault)?);
            Ok(())
        })?;
        Ok(rows)
    }

    /// The rows whose `column` has one of the values, and what `tail` says of them.
    pub(crate) fn select_among<R: Record, F: Field>(
        &mut self,
        table: &Table,
        column: &str,
        values: &[F],
        tail: &str,
    ) -> Result<Vec<R>, LedgerError> {
        // PostgreSQL has no empty list, and both have a longest one. What is ordered is ordered for each of the values.
        let mut rows = Vec::new();
        for values in values.chunks(AMONG_MAX) {
            let tail = format!("WHERE {column} IN ({}) {tail}", marks(values.len()));
            rows.extend(self.select_from(
                table,
                &tail,
                &values.iter().map(F::to_value).collect::<Vec<_>>(),
            )?);
        }
        Ok(rows)
    }

    /// The row with this key. In PostgreSQL it gets a lock of that kind; a transaction of SQLite is the only one that writes.
    pub(crate) fn select_locked<R: Record>(
        &mut self,
        key: &[(&str, Value)],
        lock: &str,
    ) -> Result<Option<R>, LedgerError> {
        let lock = if matches!(self, Self::Sqlite(_)) { "" } else { lock };
        let filter: Vec<String> = key.iter().map(|(column, _)| format!("{column} = ?")).collect();
        let values: Vec<Value> = key.iter().map(|(_, value)| value.clone()).collect();
        Ok(self.select(&format!("WHERE {} {lock}", filter.join(" AND ")), &values)?.pop())
    }

    /// The row that is there with the key of this one.
    pub(crate) fn stored<R: Record>(&mut self, row: &R) -> Result<Option<R>, LedgerError> {
        let table = row.table();
        Ok(self.select_from(table, &key_filter(table), &key_values(row))?.pop())
    }

    /// Adds a row.
    pub fn insert<R: Record>(&mut self, row: &R) -> Result<(), LedgerError> {
        self.insert_values(row.table(), row.values())
    }

    /// Adds rows.
    pub(crate) fn insert_all<R: Record>(&mut self, rows: &[R]) -> Result<(), LedgerError> {
        rows.iter().try_for_each(|row| self.insert(row))
    }

    /// Adds a row by its values.
    pub(crate) fn insert_values(&mut self, table: &Table, values: Vec<Value>) -> Result<(), LedgerError> {
        let doing = format!("adding to {}", table.name);
        let values = self.door().row(table, values);
        self.execute_stored(&doing, &insert_sql(table), &values).map(|_| ())
    }

    /// The row as it is read back once it was written.
    pub(crate) fn as_stored<R: Record>(&self, row: &R) -> Result<R, LedgerError> {
        let stored = self.door().row(R::TABLE, row.values());
        let values = stored.into_iter().map(|value| value.map(text::StoredText::into_string)).collect();
        R::from_values(values).map_err(self.fault(&format!("writing {}", R::TABLE.name)))
    }

    /// Adds a row unless a row with its key is there. True when it was added.
    pub(crate) fn insert_if_absent<R: Record>(&mut self, row: &R) -> Result<bool, LedgerError> {
        let table = row.table();
        let sql = format!("{} ON CONFLICT ({}) DO NOTHING", insert_sql(table), table.key.join(", "));
        let values = self.door().row(table, row.values());
        Ok(self.execute_stored(&format!("adding to {}", table.name), &sql, &values)? == 1)
    }

    /// Adds a row once: the same row again changes nothing, another row under its key is refused.
    pub(crate) fn insert_once<R: Record>(&mut self, row: &R) -> Result<bool, LedgerError> {
        if self.insert_if_absent(row)? {
            return Ok(true);
        }
        let row = &self.as_stored(row)?;
        // The stored row is redacted again: its writer may have known fewer secrets.
        let stored = self.stored(row)?.map(|stored| self.as_stored(&stored)).transpose()?;
        if stored.is_some_and(|stored| stored.values() == row.values()) {
            return Ok(false);
        }
        let doing = format!("adding to {}", row.table().name);
        Err(self.refuse(&doing, format!("another row has the key {:?}", key_values(row))))
    }

    /// Adds a row, or replaces every column of the row with its key but those in `keep`.
    pub(crate) fn upsert<R: Record>(&mut self, row: &R, keep: &[&str]) -> Result<(), LedgerError> {
        let table = R::TABLE;
        let sets: Vec<String> = table
            .columns
            .iter()
            .filter(|column| !table.key.contains(&column.name) && !keep.contains(&column.name))
            .map(|column| format!("{0} = excluded.{0}", column.name))
            .collect();
        let sql = format!(
            "{} ON CONFLICT ({}) DO UPDATE SET {}",
            insert_sql(table),
            table.key.join(", "),
            sets.join(", ")
        );
        let values = self.door().row(table, row.values());
        self.execute_stored(&format!("writing {}", table.name), &sql, &values).map(|_| ())
    }

    /// Writes every column of a row but its key and those in `keep`. False when there is no such row.
    pub fn update<R: Record>(&mut self, row: &R, keep: &[&str]) -> Result<bool, LedgerError> {
        self.update_where(row, keep, None)
    }

    /// The same, where `expected` is a column and the value it must have; false also when it has another one.
    pub(crate) fn update_where<R: Record>(
        &mut self,
        row: &R,
        keep: &[&str],
        expected: Option<(&str, Value)>,
    ) -> Result<bool, LedgerError> {
        let table = row.table();
        let (mut sets, mut parameters, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        for (column, value) in table.columns.iter().zip(self.door().row(table, row.values())) {
            if table.key.contains(&column.name) {
                keys.push(value);
            } else if !keep.contains(&column.name) {
                sets.push(format!("{} = ?", column.name));
                parameters.push(value);
            }
        }
        parameters.extend(keys);
        let mut sql = format!("UPDATE {} SET {} {}", table.name, sets.join(", "), key_filter(table));
        if let Some((column, value)) = expected {
            sql.push_str(&format!(" AND {column} = ?"));
            parameters.extend(text::parameters(&[value]));
        }
        Ok(self.execute_stored(&format!("updating {}", table.name), &sql, &parameters)? == 1)
    }
}

/// The names of all columns, in order.
pub(crate) fn column_list(table: &Table) -> String {
    let names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
    names.join(", ")
}

/// Marks of so many parameters, as in `IN (?, ?)`.
pub fn marks(count: usize) -> String {
    vec!["?"; count].join(", ")
}

fn insert_sql(table: &Table) -> String {
    let marks = marks(table.columns.len());
    format!("INSERT INTO {} ({}) VALUES ({marks})", table.name, column_list(table))
}

fn key_filter(table: &Table) -> String {
    let parts: Vec<String> = table.key.iter().map(|column| format!("{column} = ?")).collect();
    format!("WHERE {}", parts.join(" AND "))
}

/// The values of a row's key, in the order of its columns.
pub(crate) fn key_values<R: Record>(row: &R) -> Vec<Value> {
    let table = R::TABLE;
    let all = table.columns.iter().zip(row.values());
    all.filter(|(column, _)| table.key.contains(&column.name)).map(|(_, value)| value).collect()
}

/// A URL whose password is gone, fit for messages. A password may hold any character, `@`, `/` and `?` raw too, so all
/// up to the last `@` is taken for the user and the password; one may also be among the options after `?`.
#[must_use]
pub fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return String::new() };
    let (user, place) = rest.rsplit_once('@').unwrap_or(("", rest));
    let user = user.split([':', '/', '?']).next().unwrap_or_default();
    let place = place.split('?').next().unwrap_or_default();
    let at = if user.is_empty() { "" } else { "@" };
    format!("{scheme}://{user}{at}{place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that no message can show a password, wherever the URL carries it.
    #[test]
    fn a_password_is_never_shown() {
        for url in [
            "postgres://ana:se@cret@db:5432/tracks?sslmode=prefer",
            "postgres://ana@db/t?password=secret",
            "postgres://ana:se/cret@db/t",
        ] {
            let shown = without_password(url);
            assert!(!shown.contains("cret") && shown.contains("ana@db"), "{shown}");
        }
    }
}
