//! The narrow layer over both databases. Queries are written once, with `?` for parameters.

mod migrate;
mod postgres;
mod sqlite;

use crate::error::LedgerError;
use crate::value::{ColumnKind, Record, Table, Value};

pub(crate) use self::migrate::SCHEMA_VERSION;
pub(crate) use self::postgres::PostgresBackend;
pub(crate) use self::sqlite::SqliteBackend;

/// A row as it comes: the values in the order of the query's columns.
pub(crate) type Values = Vec<Value>;

/// An open database.
#[derive(Debug)]
pub(crate) enum Backend {
    Sqlite(SqliteBackend),
    Postgres(PostgresBackend),
}

impl Backend {
    /// Runs a statement and says how many rows it touched.
    pub(crate) fn execute(
        &mut self,
        doing: &str,
        sql: &str,
        parameters: &[Value],
    ) -> Result<u64, LedgerError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.execute(doing, sql, parameters),
            Self::Postgres(postgres) => postgres.execute(doing, sql, parameters),
        }
    }

    /// Runs a query whose columns are of `kinds` and gives every row to `take`, which may end the query early by
    /// an error.
    pub(crate) fn query(
        &mut self,
        doing: &str,
        sql: &str,
        parameters: &[Value],
        kinds: &[ColumnKind],
        take: &mut dyn FnMut(Values) -> Result<(), LedgerError>,
    ) -> Result<(), LedgerError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.query(doing, sql, parameters, kinds, take),
            Self::Postgres(postgres) => postgres.query(doing, sql, parameters, kinds, take),
        }
    }

    /// Does all of `work` or nothing of it. `durable`: it survives a power cut from the moment this returns;
    /// without it a power cut may take the newest such transactions away, whole and in order.
    pub(crate) fn transaction<T>(
        &mut self,
        durable: bool,
        work: impl FnOnce(&mut Self) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        self.begin(durable)?;
        let done = work(self).and_then(|value| {
            self.execute("committing", "COMMIT", &[])?;
            Ok(value)
        });
        if done.is_err() {
            // The first error is the one to tell; a connection that cannot roll back is broken and rolls back by
            // being dropped.
            let _ = self.execute("rolling back", "ROLLBACK", &[]);
        }
        done
    }

    fn begin(&mut self, durable: bool) -> Result<(), LedgerError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.begin(durable),
            Self::Postgres(postgres) => postgres.begin(durable),
        }
    }

    /// The file or URL, without a password.
    pub(crate) fn location(&self) -> &str {
        match self {
            Self::Sqlite(sqlite) => sqlite.location(),
            Self::Postgres(postgres) => postgres.location(),
        }
    }

    /// A refusal by a rule of the code.
    pub(crate) fn refuse(&self, doing: &str, why: impl Into<String>) -> LedgerError {
        LedgerError::Integrity { location: self.location().into(), doing: doing.into(), why: why.into() }
    }

    /// Every row of `tail` (`where … order by …`) of a record's table.
    pub(crate) fn select<R: Record>(
        &mut self,
        tail: &str,
        parameters: &[Value],
    ) -> Result<Vec<R>, LedgerError> {
        self.select_from(R::TABLE, tail, parameters)
    }

    /// Like [`Backend::select`], from another table with the same columns.
    pub(crate) fn select_from<R: Record>(
        &mut self,
        table: &Table,
        tail: &str,
        parameters: &[Value],
    ) -> Result<Vec<R>, LedgerError> {
        let sql = format!("SELECT {} FROM {} {tail}", column_list(table), table.name);
        let kinds: Vec<ColumnKind> = table.columns.iter().map(|column| column.kind).collect();
        let location = self.location().to_owned();
        let mut rows = Vec::new();
        let doing = format!("reading {}", table.name);
        self.query(&doing, &sql, parameters, &kinds, &mut |values| {
            rows.push(R::from_values(values).map_err(|why| LedgerError::Database {
                location: location.clone(),
                doing: doing.clone(),
                why,
            })?);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Adds a row.
    pub(crate) fn insert<R: Record>(&mut self, row: &R) -> Result<(), LedgerError> {
        self.insert_into(R::TABLE, row)
    }

    /// Adds a row to a table with the columns of `R`.
    pub(crate) fn insert_into<R: Record>(&mut self, table: &Table, row: &R) -> Result<(), LedgerError> {
        let sql = insert_sql(table);
        self.execute(&format!("adding to {}", table.name), &sql, &row.values()).map(|_| ())
    }

    /// Adds a row unless a row with its key is there. True when it was added.
    pub(crate) fn insert_if_absent<R: Record>(&mut self, row: &R) -> Result<bool, LedgerError> {
        let table = R::TABLE;
        let sql = format!("{} ON CONFLICT ({}) DO NOTHING", insert_sql(table), table.key.join(", "));
        Ok(self.execute(&format!("adding to {}", table.name), &sql, &row.values())? == 1)
    }

    /// Adds a row once: the same row again changes nothing, another row under its key is refused.
    pub(crate) fn insert_once<R: Record + PartialEq>(&mut self, row: &R) -> Result<bool, LedgerError> {
        if self.insert_if_absent(row)? {
            return Ok(true);
        }
        let stored: Vec<R> = self.select(&key_filter(R::TABLE), &key_values(row))?;
        if stored.first().is_some_and(|stored| stored.values() == row.values()) {
            return Ok(false);
        }
        let doing = format!("adding to {}", R::TABLE.name);
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
        self.execute(&format!("writing {}", table.name), &sql, &row.values()).map(|_| ())
    }

    /// Writes every column of a row but its key and those in `keep`. False when there is no such row.
    pub(crate) fn update_in<R: Record>(
        &mut self,
        table: &Table,
        row: &R,
        keep: &[&str],
    ) -> Result<bool, LedgerError> {
        let values = row.values();
        let (mut sets, mut parameters) = (Vec::new(), Vec::new());
        for (column, value) in table.columns.iter().zip(values) {
            if !table.key.contains(&column.name) && !keep.contains(&column.name) {
                sets.push(format!("{} = ?", column.name));
                parameters.push(value);
            }
        }
        parameters.extend(key_values(row));
        let sql = format!("UPDATE {} SET {} {}", table.name, sets.join(", "), key_filter(table));
        Ok(self.execute(&format!("updating {}", table.name), &sql, &parameters)? == 1)
    }
}

/// The names of all columns, in order.
pub(crate) fn column_list(table: &Table) -> String {
    let names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
    names.join(", ")
}

fn insert_sql(table: &Table) -> String {
    let marks = vec!["?"; table.columns.len()].join(", ");
    format!("INSERT INTO {} ({}) VALUES ({marks})", table.name, column_list(table))
}

fn key_filter(table: &Table) -> String {
    let parts: Vec<String> = table.key.iter().map(|column| format!("{column} = ?")).collect();
    format!("WHERE {}", parts.join(" AND "))
}

fn key_values<R: Record>(row: &R) -> Vec<Value> {
    let table = R::TABLE;
    let all = table.columns.iter().zip(row.values());
    all.filter(|(column, _)| table.key.contains(&column.name)).map(|(_, value)| value).collect()
}
