//! MLflow's SQLite store: tables `experiments`, `runs`, `metrics`, `params` and `tags`, read only.

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

use rusqlite::types::Type;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _, Row};

use super::{OmittedCounts, end_of, take_tag};
use crate::error::LedgerError;
use crate::import::{ForeignPoint, ForeignRun, ForeignStore, OmissionKind, at_millis, note_objects};

pub(super) fn read(path: &Path) -> Result<ForeignStore, LedgerError> {
    let failed = |error: rusqlite::Error| not_a_store(path, &error);
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed)?;
    let refused = |why: String| LedgerError::Import { path: path.into(), why: why.into() };
    if let Some(name) = computed_table(&connection).map_err(failed)? {
        return Err(refused(format!(
            "`{name}` is a view, but MLflow's stores have tables: a view may never end"
        )));
    }
    limited(&connection, path, STEPS)
}

fn not_a_store(path: &Path, error: &rusqlite::Error) -> LedgerError {
    let why = format!("it is not a SQLite store of MLflow: {error}").into();
    LedgerError::Import { path: path.into(), why }
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
    let refused = |why: String| LedgerError::Import { path: path.into(), why: why.into() };
    let failed = |error: rusqlite::Error| not_a_store(path, &error);
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
                    ('experiments', 'runs', 'tags', 'params', 'metrics', 'inputs') ORDER BY name";
    connection.query_row(computed, [], |row| row.get(0)).optional()
}

fn read_tables(connection: &Connection, path: &Path) -> Result<ForeignStore, rusqlite::Error> {
    let (mut read, mut left_out) = (MlflowStoreReader::of(path), OmittedCounts::default());
    let runs = "SELECT r.run_uuid, r.name, r.status, r.start_time, r.end_time, r.user_id, r.lifecycle_stage, e.name AS experiment \
         FROM runs r LEFT JOIN experiments e ON e.experiment_id = r.experiment_id ORDER BY r.start_time, r.run_uuid";
    each(connection, runs, |row| {
        let found = of_row(run_of(row))?;
        read.take_run(found);
        Ok(())
    })?;
    each(connection, "SELECT run_uuid, key, value FROM tags ORDER BY key", |row| {
        let tag = tag_of(row);
        read.take_row(row, (OmissionKind::Tag, "tags"), tag, |run, (name, value)| {
            left_out.see_tag(&name, &value);
            take_tag(run, name, value);
        })
    })?;
    each(connection, "SELECT run_uuid, key, value FROM params ORDER BY key", |row| {
        let parameter = parameter_of(row);
        read.take_row(row, (OmissionKind::Parameter, "params"), parameter, |run, it| run.parameters.push(it))
    })?;
    let points = "SELECT run_uuid, key, value, timestamp, step, is_nan FROM metrics ORDER BY timestamp, step";
    each(connection, points, |row| {
        let point = point_of(row);
        read.take_row(row, (OmissionKind::Value, "metrics"), point, |run, (name, point)| {
            let count = u64::from(point.value.is_infinite());
            run.changed.add(OmissionKind::Value, path, infinite(&run.name), count);
            run.metrics.entry(name).or_default().push(point);
        })
    })?;
    see_files(connection, path, &read, &mut left_out)?;
    note_objects(&mut read.store, path, &left_out.0);
    Ok(read.store)
}

/// Counts the data sets, models and artifacts of the runs that are imported, where the store has them; those of old
/// versions have no such tables.
fn see_files(
    connection: &Connection,
    path: &Path,
    read: &MlflowStoreReader<'_>,
    left_out: &mut OmittedCounts,
) -> Result<(), rusqlite::Error> {
    let is_kept = |row: &Row<'_>, column: usize| {
        row.get::<_, Option<String>>(column).ok().flatten().is_some_and(|id| read.places.contains_key(&id))
    };
    if has_column(connection, "inputs", "destination_id")? {
        let ends = "SELECT source_type, source_id, destination_id FROM inputs";
        each(connection, ends, |row| {
            let is = |what: &str| {
                row.get::<_, Option<String>>(0).is_ok_and(|found| found.as_deref() == Some(what))
            };
            left_out.add("dataset", u64::from(is("DATASET") && is_kept(row, 2)));
            left_out.add("model", u64::from(is("RUN_OUTPUT") && is_kept(row, 1)));
            Ok(())
        })?;
    }
    if has_column(connection, "runs", "artifact_uri")? {
        each(connection, "SELECT run_uuid, artifact_uri FROM runs", |row| {
            let text = |column: usize| row.get::<_, Option<String>>(column).ok().flatten();
            if let (true, Some(id), Some(place)) = (is_kept(row, 0), text(0), text(1))
                && let Some(folder) = local_folder(&place, &id, path)
            {
                left_out.see_artifacts(&folder);
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn has_column(connection: &Connection, table: &str, column: &str) -> Result<bool, rusqlite::Error> {
    let known = "SELECT count(*) FROM pragma_table_info(?1) WHERE name = ?2";
    connection.query_row(known, [table, column], |row| row.get::<_, i64>(0)).map(|count| count > 0)
}

/// The folder of a run that a URI names, where it is on this machine; relative ones begin where the store is. Other
/// folders are not looked at.
fn local_folder(place: &str, run: &str, store: &Path) -> Option<PathBuf> {
    let local = place.strip_prefix("file://").unwrap_or(place);
    let parts = || Path::new(local).components();
    let is_of_run = parts().any(|part| part.as_os_str() == run);
    let is_here = !local.contains("://") && parts().all(|part| part != Component::ParentDir);
    (is_of_run && is_here).then(|| store.parent().unwrap_or(store).join(local))
}

fn infinite(run: &str) -> String {
    format!(
        "values of the run `{run}` are infinite here; an SQL store of MLflow has the largest number instead"
    )
}

/// A run of the table, or that it was deleted.
enum RunRead {
    Kept(Box<ForeignRun>),
    Deleted(String),
}

fn run_of(row: &Row<'_>) -> Result<RunRead, rusqlite::Error> {
    let text = |column| row.get::<_, Option<String>>(column).map(Option::unwrap_or_default);
    // Without an id nothing of it can be found.
    let key: String = row.get(0)?;
    if text(6)? == "deleted" {
        return Ok(RunRead::Deleted(key));
    }
    Ok(RunRead::Kept(Box::new(ForeignRun {
        key,
        name: text(1)?,
        end: end_of(&text(2)?),
        started_at: row.get::<_, Option<i64>>(3)?.map(at_millis),
        ended_at: row.get::<_, Option<i64>>(4)?.map(at_millis),
        owner: Some(text(5)?).filter(|owner| !owner.is_empty()),
        group: row.get(7)?,
        ..ForeignRun::default()
    })))
}

/// A tag may have no value; a parameter has one.
fn tag_of(row: &Row<'_>) -> Result<(String, String), rusqlite::Error> {
    Ok((row.get(1)?, row.get::<_, Option<String>>(2)?.unwrap_or_default()))
}

fn parameter_of(row: &Row<'_>) -> Result<(String, String), rusqlite::Error> {
    Ok((row.get(1)?, row.get(2)?))
}

fn point_of(row: &Row<'_>) -> Result<(String, ForeignPoint), rusqlite::Error> {
    let is_nan = row.get::<_, Option<bool>>(5)?.unwrap_or(false);
    let value = if is_nan { f64::NAN } else { value_of(row.get(2)?) };
    Ok((row.get(1)?, ForeignPoint { step: row.get(4)?, at: at_millis(row.get(3)?), value }))
}

/// The SQL stores have no infinity and hold the greatest number instead.
fn value_of(value: f64) -> f64 {
    if value.abs() == f64::MAX { f64::INFINITY.copysign(value) } else { value }
}

/// What a row holds, or why it cannot be read. Faults of the database end the reading.
fn of_row<T>(read: Result<T, rusqlite::Error>) -> Result<Result<T, String>, rusqlite::Error> {
    match read {
        Ok(found) => Ok(Ok(found)),
        Err(rusqlite::Error::InvalidColumnType(_, column, Type::Null)) => {
            Ok(Err(format!("`{column}` is NULL")))
        }
        Err(rusqlite::Error::InvalidColumnType(_, column, kind)) => {
            Ok(Err(format!("`{column}` is {}", kind.to_string().to_lowercase())))
        }
        Err(fault @ rusqlite::Error::SqliteFailure(..)) => Err(fault),
        Err(error) => Ok(Err(error.to_string())),
    }
}

/// The store while its tables are read.
struct MlflowStoreReader<'a> {
    path: &'a Path,
    store: ForeignStore,
    /// Where each run is in the store, by its id.
    places: HashMap<String, usize>,
    deleted: HashSet<String>,
}

impl<'a> MlflowStoreReader<'a> {
    fn of(path: &'a Path) -> Self {
        Self { path, store: ForeignStore::default(), places: HashMap::new(), deleted: HashSet::new() }
    }

    fn take_run(&mut self, found: Result<RunRead, String>) {
        let skipped = &mut self.store.skipped;
        match found {
            Ok(RunRead::Kept(run)) => {
                self.places.insert(run.key.clone(), self.store.runs.len());
                self.store.runs.push(*run);
            }
            Ok(RunRead::Deleted(run)) => {
                skipped.add(OmissionKind::Run, self.path, format!("run {run} was deleted"), 1);
                self.deleted.insert(run);
            }
            Err(why) => {
                skipped.add(
                    OmissionKind::Run,
                    self.path,
                    format!("a row of `runs` cannot be read: {why}"),
                    1,
                );
            }
        }
    }

    /// Gives what a row of a table holds to its run, or notes why it cannot.
    fn take_row<T>(
        &mut self,
        row: &Row<'_>,
        (kind, table): (OmissionKind, &str),
        held: Result<T, rusqlite::Error>,
        take: impl FnOnce(&mut ForeignRun, T),
    ) -> Result<(), rusqlite::Error> {
        let unknown = |why: &str| format!("rows of `{table}` {why}");
        let Ok(id) = of_row(row.get::<_, String>(0))? else {
            self.store.skipped.add(kind, self.path, unknown("name no run"), 1);
            return Ok(());
        };
        let Some(place) = self.places.get(&id) else {
            let count = u64::from(!self.deleted.contains(&id));
            self.store.skipped.add(kind, self.path, unknown("are of runs that `runs` does not have"), count);
            return Ok(());
        };
        let run = &mut self.store.runs[*place];
        match of_row(held)? {
            Ok(held) => take(run, held),
            Err(why) => {
                let why = format!("rows of `{table}` of the run `{}` cannot be read: {why}", run.name);
                run.skipped.add(kind, self.path, why, 1);
            }
        }
        Ok(())
    }
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
    use crate::import::Omissions;

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

    /// Proves that descriptions, data sets and models of kept runs are counted as left out, with the artifacts that are here, and those of
    /// other runs and places are not.
    #[test]
    fn what_has_no_place_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("art/a")).unwrap();
        std::fs::write(folder.path().join("art/a/plot.png"), "x").unwrap();
        let connection = store(1);
        let rows = "ALTER TABLE runs ADD COLUMN artifact_uri TEXT;
                    UPDATE runs SET artifact_uri = './art/a';
                    INSERT INTO runs VALUES ('b', 'second', 'FINISHED', 3, 4, 'ana', 'active', 1, 's3://bucket/b');
                    INSERT INTO tags VALUES ('a', 'mlflow.note.content', 'the first try'), ('b', 'mlflow.note.content', '');
                    CREATE TABLE inputs (input_uuid TEXT, source_type TEXT, source_id TEXT, destination_type TEXT,
                        destination_id TEXT);
                    INSERT INTO inputs VALUES ('1', 'DATASET', 'd', 'RUN', 'a'), ('2', 'DATASET', 'd', 'RUN', 'gone'),
                        ('3', 'RUN_OUTPUT', 'b', 'MODEL_OUTPUT', 'm'), ('4', NULL, 'b', 'RUN', 'a');";
        connection.execute_batch(rows).unwrap();
        let found = limited(&connection, &folder.path().join("mlflow.db"), STEPS).unwrap();
        let whys: Vec<String> = found.skipped.list().into_iter().map(|it| it.why).collect();
        let expected = "only numbers, parameters and tags are imported, not: artifact (1), dataset (1), description (1), model (1)";
        assert_eq!(whys, [expected]);
    }

    /// Proves that rows with a NULL or another type, rows of no run and of an unknown run are left out and counted with
    /// their reason, that a step below 0 is that step, and that every other row is read.
    #[test]
    fn rows_that_cannot_be_read_are_counted() {
        let connection = store(1);
        let rows = "INSERT INTO runs VALUES ('b', NULL, NULL, NULL, NULL, NULL, NULL, NULL), (NULL, 'c', 'FINISHED', 1, 2, 'ana', 'active', 1),
                        ('d', 'gone', 'FINISHED', 1, 2, 'ana', 'deleted', 1), ('e', 'odd', 'FINISHED', 'soon', 2, 'ana', 'active', 1);
                    INSERT INTO params VALUES ('a', 'lr', '0.1'), ('a', 'depth', NULL), ('d', 'lr', '0.1'), ('z', 'lr', '0.1');
                    INSERT INTO metrics VALUES ('a', 'loss', 0.9, 1, -1, 0), ('a', 'loss', NULL, 2, 0, 0), ('a', 'loss', 0.5, 3, 0, NULL),
                        ('a', 'loss', 'x', 4, 1, 0), ('a', 'loss', 0.4, NULL, 2, 0), (NULL, 'loss', 0.3, 5, 3, 0),
                        ('a', 'loss', 1.7976931348623157e308, 6, 4, 0), ('b', 'acc', 0.0, 7, 5, 1);";
        connection.execute_batch(rows).unwrap();
        let found = limited(&connection, Path::new("mlflow.db"), STEPS).unwrap();
        let listed = |list: &Omissions| -> Vec<(OmissionKind, u64, String)> {
            list.list().into_iter().map(|it| (it.kind, it.count, it.why)).collect()
        };
        let omitted = |kind, count, why: &str| (kind, count, why.to_owned());
        let expected = [
            omitted(OmissionKind::Run, 1, "a row of `runs` cannot be read: `run_uuid` is NULL"),
            omitted(OmissionKind::Run, 1, "a row of `runs` cannot be read: `start_time` is text"),
            omitted(OmissionKind::Run, 1, "run d was deleted"),
            omitted(OmissionKind::Value, 1, "rows of `metrics` name no run"),
            omitted(OmissionKind::Parameter, 1, "rows of `params` are of runs that `runs` does not have"),
        ];
        assert_eq!(listed(&found.skipped), expected);
        let names: Vec<&str> = found.runs.iter().map(|run| run.key.as_str()).collect();
        assert_eq!(names, ["b", "a"]);
        let run = &found.runs[1];
        let of_run = "of the run `first` cannot be read:";
        let expected = [
            omitted(OmissionKind::Value, 1, &format!("rows of `metrics` {of_run} `timestamp` is NULL")),
            omitted(OmissionKind::Value, 1, &format!("rows of `metrics` {of_run} `value` is NULL")),
            omitted(OmissionKind::Value, 1, &format!("rows of `metrics` {of_run} `value` is text")),
            omitted(OmissionKind::Parameter, 1, &format!("rows of `params` {of_run} `value` is NULL")),
        ];
        assert_eq!(listed(&run.skipped), expected);
        let points: Vec<(i64, f64)> =
            run.metrics["loss"].iter().map(|point| (point.step, point.value)).collect();
        assert_eq!(points, [(-1, 0.9), (0, 0.5), (4, f64::INFINITY)]);
        assert_eq!(listed(&run.changed).len(), 1);
        assert!(found.runs[0].metrics["acc"][0].value.is_nan());
    }
}
