//! MLflow's SQLite store: tables `experiments`, `runs`, `metrics`, `params` and `tags`, read only.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _, Row};

use super::{end_of, take_tag, value_of};
use crate::error::LedgerError;
use crate::import::{ForeignPoint, ForeignRun, ForeignStore, at_millis};

pub(super) fn read(path: &Path) -> Result<ForeignStore, LedgerError> {
    let failed = |error: rusqlite::Error| LedgerError::Import {
        path: path.into(),
        why: format!("it is not a SQLite store of MLflow: {error}"),
    };
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed)?;
    let refused = |why: String| LedgerError::Import { path: path.into(), why };
    if let Some(name) = computed_table(&connection).map_err(failed)? {
        return Err(refused(format!(
            "`{name}` is a view, but MLflow's stores have tables: a view may never end"
        )));
    }
    limited(&connection, path, STEPS)
}

/// How much an import may compute, in steps of SQLite's virtual machine.
#[derive(Clone, Copy)]
struct Steps {
    max: u32,
    /// How often it is looked whether that many were made.
    between_looks: u32,
}

/// A store takes some ten for each of its values.
const STEPS: Steps = Steps { max: 4_000_000_000, between_looks: 1_000_000 };

/// Reads the tables, and not for ever.
fn limited(connection: &Connection, path: &Path, steps: Steps) -> Result<ForeignStore, LedgerError> {
    let refused = |why: String| LedgerError::Import { path: path.into(), why };
    let failed = |error: rusqlite::Error| refused(format!("it is not a SQLite store of MLflow: {error}"));
    let mut left = steps.max / steps.between_looks;
    let is_too_long = move || {
        left = left.saturating_sub(1);
        left == 0
    };
    connection.progress_handler(steps.between_looks as i32, Some(is_too_long)).map_err(failed)?;
    read_tables(connection, path).map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => refused(format!(
            "reading it takes more than {} steps of SQLite: split it, or import its runs one by one",
            steps.max
        )),
        _ => failed(error),
    })
}

/// The first name that is read here and is something else than a table.
fn computed_table(connection: &Connection) -> Result<Option<String>, rusqlite::Error> {
    let computed = "SELECT name FROM sqlite_master WHERE type <> 'table' AND name COLLATE NOCASE IN \
                    ('experiments', 'runs', 'tags', 'params', 'metrics') ORDER BY name";
    connection.query_row(computed, [], |row| row.get(0)).optional()
}

fn read_tables(connection: &Connection, path: &Path) -> Result<ForeignStore, rusqlite::Error> {
    let mut store = ForeignStore::default();
    let mut runs: Vec<ForeignRun> = Vec::new();
    each(
        connection,
        "SELECT r.run_uuid, r.name, r.status, r.start_time, r.end_time, r.user_id, r.lifecycle_stage, e.name \
         FROM runs r LEFT JOIN experiments e ON e.experiment_id = r.experiment_id ORDER BY r.start_time, r.run_uuid",
        |row| {
            let text = |column| row.get::<_, Option<String>>(column).map(Option::unwrap_or_default);
            if text(6)? == "deleted" {
                store.passed.push((path.into(), format!("run {} was deleted", text(0)?)));
                return Ok(());
            }
            runs.push(ForeignRun {
                key: text(0)?,
                name: text(1)?,
                end: end_of(&text(2)?),
                started_at: row.get::<_, Option<i64>>(3)?.map(at_millis),
                ended_at: row.get::<_, Option<i64>>(4)?.map(at_millis),
                owner: Some(text(5)?).filter(|owner| !owner.is_empty()),
                group: row.get(7)?,
                ..ForeignRun::default()
            });
            Ok(())
        },
    )?;
    let places: HashMap<String, usize> =
        runs.iter().enumerate().map(|(place, run)| (run.key.clone(), place)).collect();
    let place_of = |row: &Row<'_>| row.get::<_, String>(0).map(|run| places.get(&run).copied());
    each(connection, "SELECT run_uuid, key, value FROM tags ORDER BY key", |row| {
        if let Some(place) = place_of(row)? {
            take_tag(&mut runs[place], row.get(1)?, row.get::<_, Option<String>>(2)?.unwrap_or_default());
        }
        Ok(())
    })?;
    each(connection, "SELECT run_uuid, key, value FROM params ORDER BY key", |row| {
        if let Some(place) = place_of(row)? {
            runs[place].parameters.push((row.get(1)?, row.get(2)?));
        }
        Ok(())
    })?;
    let points = "SELECT run_uuid, key, value, timestamp, step, is_nan FROM metrics ORDER BY timestamp, step";
    each(connection, points, |row| {
        if let Some(place) = place_of(row)? {
            let value = if row.get(5)? { f64::NAN } else { value_of(row.get(2)?) };
            let step = u64::try_from(row.get::<_, i64>(4)?).unwrap_or(0);
            let point = ForeignPoint { step, at: at_millis(row.get(3)?), value };
            runs[place].metrics.entry(row.get(1)?).or_default().push(point);
        }
        Ok(())
    })?;
    store.runs = runs;
    Ok(store)
}

fn each(
    connection: &Connection,
    sql: &str,
    mut take: impl FnMut(&Row<'_>) -> Result<(), rusqlite::Error>,
) -> Result<(), rusqlite::Error> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        take(row)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEW: Steps = Steps { max: 100_000, between_looks: 1_000 };

    /// A store with a run of that many tags.
    fn store(tags: u32) -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        let sql = format!(
            "CREATE TABLE experiments (experiment_id INTEGER, name TEXT);
             CREATE TABLE runs (run_uuid TEXT, name TEXT, status TEXT, start_time INTEGER, end_time INTEGER, user_id TEXT,
                 lifecycle_stage TEXT, experiment_id INTEGER);
             CREATE TABLE tags (run_uuid TEXT, key TEXT, value TEXT);
             CREATE TABLE params (run_uuid TEXT, key TEXT, value TEXT);
             CREATE TABLE metrics (run_uuid TEXT, key TEXT, value REAL, timestamp INTEGER, step INTEGER, is_nan BOOLEAN);
             INSERT INTO runs VALUES ('a', 'first', 'FINISHED', 1, 2, 'ana', 'active', 1);
             WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t LIMIT {tags})
             INSERT INTO tags SELECT 'a', 'tag' || n, 'x' FROM t;"
        );
        connection.execute_batch(&sql).unwrap();
        connection
    }

    fn refusal(connection: &Connection) -> String {
        let error =
            limited(connection, Path::new("mlflow.db"), FEW).map(|store| store.runs.len()).unwrap_err();
        error.to_string()
    }

    /// Proves that a store which takes too many steps, and one that would never end, are refused with the limit and
    /// what to do, and that a small one is read within it.
    #[test]
    fn an_import_ends() {
        let small = limited(&store(10), Path::new("mlflow.db"), FEW).unwrap();
        assert_eq!(small.runs[0].tags.len(), 10);
        let large = refusal(&store(50_000));
        assert!(large.contains("mlflow.db") && large.contains("more than 100000 steps"), "{large}");
        assert!(large.contains("split it"), "{large}");
        let endless = store(1);
        let view = "DROP TABLE tags; CREATE VIEW tags AS WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t)
                    SELECT 'a' AS run_uuid, 'x' AS key, 'y' AS value FROM t;";
        endless.execute_batch(view).unwrap();
        assert_eq!(refusal(&endless), large);
    }
}
