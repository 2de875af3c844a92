//! Forward-only migrations. Two processes that open an empty ledger at once run them once.

use super::Backend;
use super::dialect::{self, Dialect};
use super::now;
use super::rules;
use crate::error::LedgerError;
use crate::records::TABLES;
use crate::value::{ColumnKind, Value};

/// One step forward.
struct Migration {
    version: i64,
    /// In the one text from which both dialects are made.
    source: &'static str,
}

const MIGRATIONS: &[Migration] = &[
    Migration { version: FIRST_VERSION, source: include_str!("../../migrations/0023_ledger.sql") },
    Migration { version: 24, source: include_str!("../../migrations/0024_trust.sql") },
    Migration { version: 25, source: include_str!("../../migrations/0025_drift.sql") },
    Migration { version: 26, source: include_str!("../../migrations/0026_subjects.sql") },
    Migration { version: 27, source: include_str!("../../migrations/0027_pruning.sql") },
];

/// Since this version events and leases are in other tables, and closed lists in the program alone.
pub(crate) const SUBJECTS_VERSION: i64 = 26;

/// The first version that a later program brings forward; those before are from before the first release.
pub(crate) const FIRST_VERSION: i64 = 23;

/// The version that this program writes.
pub(crate) const SCHEMA_VERSION: i64 = MIGRATIONS[MIGRATIONS.len() - 1].version;

/// Any number will do for the advisory lock, as long as it is Trackway's own: `track` in ASCII.
const POSTGRES_LOCK: i64 = 0x74_72_61_63_6b;

/// What brings a ledger of the version before to this one, as a database of one kind runs it.
pub(crate) fn script_of(version: i64, is_postgres: bool) -> String {
    let dialect = if is_postgres { Dialect::Postgres } else { Dialect::Sqlite };
    let of_version = MIGRATIONS.iter().filter(|migration| migration.version == version);
    of_version.map(|migration| dialect::script(migration.source, dialect)).collect()
}

impl Backend {
    /// Migrates the ledger to [`SCHEMA_VERSION`].
    ///
    /// # Errors
    /// [`LedgerError::Newer`] when it is beyond that already; nothing is changed then.
    pub(crate) fn migrate(&mut self) -> Result<(), LedgerError> {
        // Most opens find the ledger as it should be and take no lock.
        if self.has_version_table()? && self.checked_version()? == SCHEMA_VERSION {
            return Ok(());
        }
        if self.is_read_only() {
            let why = "it was written by an older Trackway and is read-only here: its owner migrates it with any command";
            return Err(LedgerError::Open { location: self.location().to_owned(), why: why.into() });
        }
        self.transaction(true, |backend| {
            backend.lock_out_other_migrations()?;
            let doing = "migrating";
            let table = match backend {
                Self::Sqlite(_) => {
                    "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL) STRICT"
                }
                Self::Postgres(_) => "CREATE TABLE IF NOT EXISTS schema_version (version bigint NOT NULL)",
            };
            backend.execute(doing, table, &[])?;
            // Read again under the lock: another process may have migrated it while this one waited.
            let found = backend.checked_version()?;
            if found > 0 && found < FIRST_VERSION {
                let why = format!(
                    "its version {found} is from before the first release, this program reads version {FIRST_VERSION} and later: move it aside, and `trackway doctor rebuild` makes a new one from the folders of its runs"
                );
                return Err(LedgerError::Open { location: backend.location().to_owned(), why: why.into() });
            }
            if found == SCHEMA_VERSION {
                // Another process migrated it while this one waited: the copy that it kept stays.
                return Ok(());
            }
            if found >= FIRST_VERSION {
                backend.refuse_while_supervised(found)?;
                // Under the lock and before the first change: no commit is missing in the copy.
                backend.keep_copy(found)?;
            }
            for migration in MIGRATIONS.iter().filter(|migration| migration.version > found) {
                backend.execute_script(doing, &dialect::script(migration.source, backend.dialect()))?;
                if migration.version == SUBJECTS_VERSION {
                    backend.open_lists()?;
                }
                // In the transaction of its script: a version is there with its tables, or not at all.
                let sql = "INSERT INTO schema_version (version) VALUES (?)";
                backend.execute(doing, sql, &[Value::Integer(migration.version)])?;
            }
            // Last: the rules follow from the tables as all migrations leave them.
            backend.renew_rules()
        })
    }

    /// A supervisor of an older program writes to tables that are gone after this migration: it ends first.
    fn refuse_while_supervised(&mut self, found: i64) -> Result<(), LedgerError> {
        if found >= SUBJECTS_VERSION {
            return Ok(());
        }
        let now = now(self)?;
        let sql = "SELECT run_id, holder FROM supervisor_leases WHERE expires_at > ? ORDER BY run_id";
        let kinds = [ColumnKind::Text, ColumnKind::Text];
        let live = self.rows("looking for supervisors", sql, &[now.into()], &kinds)?;
        let Some([Value::Text(run), Value::Text(holder)]) = live.first().map(Vec::as_slice) else {
            return Ok(());
        };
        let why = format!(
            "an older Trackway supervises run {run} ({holder}) and could not write to the migrated ledger: wait until the run has ended, or end that process; nothing was changed"
        );
        Err(LedgerError::Open { location: self.location().to_owned(), why: why.into() })
    }

    /// Keeps a copy of a file as it is before it is migrated. A server has its own copies.
    fn keep_copy(&mut self, version: i64) -> Result<(), LedgerError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.keep_copy(version),
            Self::Postgres(_) => Ok(()),
        }
    }

    /// Takes the closed lists of words out of the tables.
    fn open_lists(&mut self) -> Result<(), LedgerError> {
        let doing = "taking closed lists out of tables";
        if matches!(self, Self::Postgres(_)) {
            return self.execute_script(doing, &postgres_open_lists());
        }
        let sql = "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql LIKE '% IN (''%'";
        let tables = self.rows(doing, sql, &[], &[ColumnKind::Text; 2])?;
        let version = self.number("PRAGMA schema_version")?;
        self.execute_script(doing, "PRAGMA writable_schema = ON")?;
        for row in tables {
            let [Value::Text(table), Value::Text(text)] = row.as_slice() else { continue };
            let update = "UPDATE sqlite_master SET sql = ? WHERE type = 'table' AND name = ?";
            let values = [Value::Text(dialect::without_lists(text)), Value::Text(table.clone())];
            self.execute(doing, update, &values)?;
        }
        // What does not change how rows are stored may be changed so; other connections read the tables again.
        let next = version + 1;
        self.execute_script(doing, &format!("PRAGMA schema_version = {next}; PRAGMA writable_schema = RESET"))
    }

    /// Writes every rule of this version in place of those that are there.
    pub(crate) fn renew_rules(&mut self) -> Result<(), LedgerError> {
        let doing = "renewing the rules of tables";
        let dialect = self.dialect();
        let mut dropped = String::new();
        for row in self.rows(doing, rules::existing(dialect), &[], &[ColumnKind::Text; 2])? {
            if let [Value::Text(trigger), Value::Text(table)] = row.as_slice() {
                dropped.push_str(&rules::dropped(dialect, trigger, table));
            }
        }
        self.execute_script(doing, &(dropped + &rules::script(dialect)))
    }

    const fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            Self::Postgres(_) => Dialect::Postgres,
        }
    }

    fn execute_script(&mut self, doing: &str, script: &str) -> Result<(), LedgerError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.execute_script(doing, script),
            Self::Postgres(postgres) => postgres.execute_script(doing, script),
        }
    }

    /// SQLite's `BEGIN IMMEDIATE` has done so already.
    fn lock_out_other_migrations(&mut self) -> Result<(), LedgerError> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(postgres) => postgres
                .execute_script("migrating", &format!("SELECT pg_advisory_xact_lock({POSTGRES_LOCK})")),
        }
    }

    fn has_version_table(&mut self) -> Result<bool, LedgerError> {
        let sql = match self {
            Self::Sqlite(_) => "SELECT count(*) FROM sqlite_master WHERE name = 'schema_version'",
            Self::Postgres(_) => {
                "SELECT count(*) FROM information_schema.tables WHERE table_name = 'schema_version' AND table_schema = current_schema()"
            }
        };
        Ok(self.number(sql)? > 0)
    }

    fn checked_version(&mut self) -> Result<i64, LedgerError> {
        let found = self.number("SELECT coalesce(max(version), 0) FROM schema_version")?;
        if found > SCHEMA_VERSION {
            let location = self.location().to_owned();
            return Err(LedgerError::Newer { location, found, known: SCHEMA_VERSION });
        }
        Ok(found)
    }

    fn number(&mut self, sql: &str) -> Result<i64, LedgerError> {
        let found = self.rows("reading the version", sql, &[], &[ColumnKind::Integer])?;
        Ok(if let [Value::Integer(number)] = found.concat().as_slice() { *number } else { 0 })
    }
}

/// What takes the lists out of the ledger's tables; a schema may have tables of other programs.
fn postgres_open_lists() -> String {
    let names: Vec<String> = TABLES.iter().map(|table| format!("'{}'", table.name)).collect();
    POSTGRES_OPEN_LISTS.replace("OWN_TABLES", &names.join(", "))
}

/// Constraints of one column that say which words it takes; those that hold between columns stay.
const POSTGRES_OPEN_LISTS: &str = "
DO $$
DECLARE
    list record;
BEGIN
    FOR list IN
        SELECT conrelid::regclass AS of_table, conname FROM pg_constraint
        WHERE contype = 'c' AND connamespace = current_schema()::regnamespace
        AND array_length(conkey, 1) = 1 AND pg_get_constraintdef(oid) LIKE '% = ANY (ARRAY[%'
        AND conrelid IN (SELECT c.oid FROM pg_class c WHERE c.relnamespace = connamespace AND c.relname IN (OWN_TABLES))
    LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', list.of_table, list.conname);
    END LOOP;
END $$;
";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rusqlite::Connection;

    use super::super::dialect::{self, Dialect};
    use super::{FIRST_VERSION, MIGRATIONS, SCHEMA_VERSION, SUBJECTS_VERSION};
    use crate::conformance::migrations;
    use crate::ledger::Ledger;

    /// Proves that a ledger of the first version is brought forward with its rows, once.
    #[test]
    fn a_ledger_of_the_first_version_is_brought_forward() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        let old = Connection::open(&path).unwrap();
        let script = format!(
            "PRAGMA foreign_keys = OFF;
             CREATE TABLE schema_version (version INTEGER NOT NULL) STRICT;
             INSERT INTO schema_version VALUES ({FIRST_VERSION});
             {}
             INSERT INTO runs (run_id, name, state, config_sha256, created_at, attempt_count, gpu_seconds, wall_seconds, config_json)
             VALUES ('run_00000000000000000000000001', 'r', 'planned', 'c', 1, 0, 0.0, 0.0, '{{}}');
             INSERT INTO checkpoints (run_id, attempt_id, step, epoch, object_prefix, state, location)
             VALUES ('run_1', 'att_1', 10, 1, 'step-10', 'suspect', 'train');
             INSERT INTO drift_results (run_id, data_set, compared_with, column_name, reference, reference_rows, rows, role, verdict, at)
             VALUES ('run_00000000000000000000000001', 'train', 'reference', 'x', 'x.csv', 3, 4, 'feature', 'warn', 5);",
            dialect::script(MIGRATIONS[0].source, Dialect::Sqlite)
        );
        old.execute_batch(&script).unwrap();
        drop(old);
        for _ in 0..2 {
            drop(Ledger::open(path.to_str().unwrap()).unwrap());
        }
        let ledger = Ledger::open(path.to_str().unwrap()).unwrap();
        let run_id = "run_00000000000000000000000001".parse().unwrap();
        assert_eq!(ledger.run(run_id).unwrap().unwrap().name, "r");
        assert_eq!(ledger.data_of_attempt("att_00000000000000000000000001".parse().unwrap()).unwrap(), []);
        let drift = ledger.drift_results_of(run_id).unwrap();
        assert_eq!((drift[0].rows, drift[0].verdict), (4, trackway_core::checks::Verdict::Warn));
        let now = Connection::open(&path).unwrap();
        let kept = "SELECT unsafe_because IS NULL AND state = 'suspect' FROM checkpoints";
        assert!(now.query_row(kept, [], |row| row.get::<_, bool>(0)).unwrap());
        let versions = "SELECT group_concat(version) FROM schema_version";
        let versions = now.query_row(versions, [], |row| row.get::<_, String>(0)).unwrap();
        assert!(
            versions.starts_with(&format!("{FIRST_VERSION},"))
                && versions.ends_with(&SCHEMA_VERSION.to_string())
        );
    }

    /// A ledger of an earlier version with rows, at a path.
    fn filled(path: &Path, version: i64) -> Connection {
        let old = Connection::open(path).unwrap();
        old.execute_batch(&migrations::filled(version, false)).unwrap();
        if version >= SUBJECTS_VERSION {
            return old;
        }
        // A rule of that version does not stop a table from being replaced.
        let rule = "CREATE TRIGGER events_append_only_delete BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'trackway integrity: events is append-only'); END";
        old.execute_batch(rule).unwrap();
        old
    }

    /// Proves that every column of every row of an earlier version is there after the migration, of tables that became views too.
    #[test]
    fn every_value_is_brought_forward() {
        for version in migrations::earlier_versions() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("ledger.db");
            let old = filled(&path, version);
            let tables = texts(
                &old,
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'schema_version'",
            );
            let query = |table: &str| {
                let columns =
                    texts(&old, &format!("SELECT name FROM pragma_table_info('{table}')")).join(", ");
                format!("SELECT json_array({columns}) FROM {table} ORDER BY 1")
            };
            let before: Vec<_> =
                tables.iter().map(|table| (query(table), texts(&old, &query(table)))).collect();
            assert!(before.iter().filter(|(_, rows)| !rows.is_empty()).count() >= 7, "{before:?}");
            drop(old);
            drop(Ledger::open(path.to_str().unwrap()).unwrap());
            let new = Connection::open(&path).unwrap();
            for (query, rows) in before {
                assert_eq!(texts(&new, &query), rows, "{version}: {query}");
            }
            assert_eq!(texts(&new, "PRAGMA integrity_check"), ["ok"]);
            assert_eq!(
                texts(&new, "SELECT name FROM sqlite_master WHERE sql LIKE '%CHECK (state IN (''planned''%'"),
                [""; 0]
            );
        }
    }

    /// Proves that a ledger is copied as it is before it is migrated, that one copy is kept, and that it opens as what it was.
    #[test]
    fn a_ledger_is_copied_before_it_is_migrated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        let copy = folder.path().join("ledger.db.version-25");
        let older = folder.path().join("ledger.db.version-24");
        std::fs::write(&older, "of the migration before").unwrap();
        drop(filled(&path, 25));
        drop(Ledger::open(path.to_str().unwrap()).unwrap());
        assert!(copy.exists() && !older.exists());
        let kept = Connection::open(&copy).unwrap();
        assert_eq!(texts(&kept, "SELECT message FROM events ORDER BY at"), ["first", "second"]);
        assert_eq!(texts(&kept, "SELECT CAST(max(version) AS TEXT) FROM schema_version"), ["25"]);
        drop(kept);
        let bytes = std::fs::read(&copy).unwrap();
        drop(Ledger::open(path.to_str().unwrap()).unwrap());
        assert_eq!(std::fs::read(&copy).unwrap(), bytes, "a ledger of this version is not copied");
        // Back to what it was, and forward again.
        std::fs::rename(&copy, &path).unwrap();
        migrations::nothing_is_lost(&Ledger::open(path.to_str().unwrap()).unwrap());
        let new = folder.path().join("new.db");
        drop(Ledger::open(new.to_str().unwrap()).unwrap());
        assert!(!folder.path().join("new.db.version-0").exists());
    }

    /// Proves that the copy of the version before stays where several processes find a ledger of that version at once.
    #[test]
    fn a_ledger_is_copied_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        let old = filled(&path, 25);
        // All of them read the version, and then wait for their turn.
        old.execute_batch("PRAGMA journal_mode = WAL; BEGIN IMMEDIATE").unwrap();
        std::thread::scope(|scope| {
            let opened: Vec<_> =
                (0..3).map(|_| scope.spawn(|| Ledger::open(path.to_str().unwrap()).map(drop))).collect();
            std::thread::sleep(std::time::Duration::from_millis(300));
            old.execute_batch("ROLLBACK").unwrap();
            opened.into_iter().for_each(|opened| opened.join().unwrap().unwrap());
        });
        let copy = |version: i64| folder.path().join(format!("ledger.db.version-{version}")).exists();
        assert!(copy(25) && !copy(SCHEMA_VERSION));
    }

    /// Proves that a ledger is not migrated while an older program supervises a run, and is once the lease has expired.
    #[test]
    fn a_supervised_run_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        let old = filled(&path, 25);
        old.execute_batch("UPDATE supervisor_leases SET expires_at = 4000000000000000").unwrap();
        let refused = Ledger::open(path.to_str().unwrap()).unwrap_err().to_string();
        assert!(refused.contains("supervises run run_00000000000000000000000001 (node-1)"), "{refused}");
        assert_eq!(texts(&old, "SELECT CAST(max(version) AS TEXT) FROM schema_version"), ["25"]);
        assert!(!folder.path().join("ledger.db.version-25").exists());
        old.execute_batch("UPDATE supervisor_leases SET expires_at = 6").unwrap();
        migrations::nothing_is_lost(&Ledger::open(path.to_str().unwrap()).unwrap());
    }

    /// Proves that the events of a run and of an attempt, and the lease of a run, are found by indexes through their
    /// views, and so are the runs that have not ended.
    #[test]
    fn indexes_are_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        drop(Ledger::open(path.to_str().unwrap()).unwrap());
        let ledger = Connection::open(&path).unwrap();
        let plan = |sql: &str| {
            let mut statement = ledger.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let steps = statement.query_map([], |row| row.get::<_, String>(3)).unwrap();
            steps.map(Result::unwrap).collect::<Vec<_>>().join("; ")
        };
        for (sql, expected) in [
            (
                "SELECT message FROM events WHERE run_id = 'r' ORDER BY at, event_id",
                "subject_events_by_subject (subject_kind=? AND subject_id=?)",
            ),
            (
                "SELECT message FROM events WHERE attempt_id = 'a'",
                "subject_events_by_attempt_id (attempt_id=? AND subject_kind=?)",
            ),
            (
                "SELECT message FROM events WHERE attempt_id = 'a' AND kind = 'note' ORDER BY at",
                "subject_events_by_attempt_id (attempt_id=? AND subject_kind=?)",
            ),
            (
                "SELECT epoch FROM supervisor_leases WHERE run_id = 'r'",
                "sqlite_autoindex_leases_1 (subject_kind=? AND subject_id=?)",
            ),
            (
                "SELECT * FROM runs WHERE kind = 'train' AND ended_at IS NULL ORDER BY created_at DESC, run_id DESC",
                "runs_by_ended_at (kind=? AND ended_at=?)",
            ),
        ] {
            let found = plan(sql);
            assert!(found.contains(expected), "{sql}: {found}");
        }
    }

    fn texts(connection: &Connection, sql: &str) -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    /// Proves that a ledger from before the first release is refused with what to do, and is not changed.
    #[test]
    fn a_ledger_from_before_the_first_release_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        let old = Connection::open(&path).unwrap();
        let script = "CREATE TABLE schema_version (version INTEGER NOT NULL) STRICT;
             CREATE TABLE runs (run_id TEXT NOT NULL) STRICT; INSERT INTO schema_version VALUES (1), (2)";
        old.execute_batch(script).unwrap();
        let refused = Ledger::open(path.to_str().unwrap()).unwrap_err().to_string();
        assert!(refused.contains("its version 2 is from before the first release"), "{refused}");
        assert!(refused.contains("`trackway doctor rebuild`"), "{refused}");
        let tables = "SELECT count(*) FROM sqlite_master WHERE type IN ('table', 'trigger')";
        assert_eq!(old.query_row(tables, [], |row| row.get::<_, i64>(0)).unwrap(), 2);
    }
}
