//! Forward-only migrations. Two processes that open an empty ledger at once run them once.

use super::Backend;
use super::dialect::{self, Dialect};
use super::rules;
use crate::error::LedgerError;
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
];

/// The first version that a later program brings forward; those before are from before the first release.
pub(crate) const FIRST_VERSION: i64 = 23;

/// The version that this program writes.
pub(crate) const SCHEMA_VERSION: i64 = MIGRATIONS[MIGRATIONS.len() - 1].version;

/// Any number will do for the advisory lock, as long as it is Trackway's own: `track` in ASCII.
const POSTGRES_LOCK: i64 = 0x74_72_61_63_6b;

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
            let found = backend.checked_version()?;
            if found > 0 && found < FIRST_VERSION {
                let why = format!(
                    "its version {found} is from before the first release, this program reads version {FIRST_VERSION} and later: move it aside, and `trackway doctor rebuild` makes a new one from the folders of its runs"
                );
                return Err(LedgerError::Open { location: backend.location().to_owned(), why });
            }
            for migration in MIGRATIONS.iter().filter(|migration| migration.version > found) {
                backend.execute_script(doing, &dialect::script(migration.source, backend.dialect()))?;
                let sql = "INSERT INTO schema_version (version) VALUES (?)";
                backend.execute(doing, sql, &[Value::Integer(migration.version)])?;
            }
            backend.renew_rules()
        })
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

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::super::dialect::{self, Dialect};
    use super::{FIRST_VERSION, MIGRATIONS, SCHEMA_VERSION};
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
