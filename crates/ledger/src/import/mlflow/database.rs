//! MLflow's SQLite store: tables `experiments`, `runs`, `metrics`, `params` and `tags`, read only.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::{Connection, OpenFlags, Row};

use super::{end_of, take_tag, value_of};
use crate::error::LedgerError;
use crate::import::{ForeignPoint, ForeignRun, ForeignStore, at_millis};

pub(super) fn read(path: &Path) -> Result<ForeignStore, LedgerError> {
    let failed = |error: rusqlite::Error| LedgerError::Import {
        path: path.into(),
        why: format!("it is no SQLite store of MLflow: {error}"),
    };
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed)?;
    read_tables(&connection, path).map_err(failed)
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
