//! Forward-only migrations. Two processes that open an empty ledger at once run them once.

use super::Backend;
use crate::error::LedgerError;
use crate::value::{ColumnKind, Value};

/// One step forward, in both dialects.
struct Migration {
    version: i64,
    sqlite: &'static str,
    postgres: &'static str,
}

const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        sqlite: include_str!("../../migrations/sqlite/0001_init.sql"),
        postgres: include_str!("../../migrations/postgres/0001_init.sql"),
    },
    Migration {
        version: 2,
        sqlite: include_str!("../../migrations/sqlite/0002_resume_proofs.sql"),
        postgres: include_str!("../../migrations/postgres/0002_resume_proofs.sql"),
    },
    Migration {
        version: 3,
        sqlite: include_str!("../../migrations/sqlite/0003_preflight_checks.sql"),
        postgres: include_str!("../../migrations/postgres/0003_preflight_checks.sql"),
    },
    Migration {
        version: 4,
        sqlite: concat!(
            include_str!("../../migrations/sqlite/0004_detections.sql"),
            include_str!("../../migrations/sqlite/0004_tracking.sql")
        ),
        postgres: concat!(
            include_str!("../../migrations/postgres/0004_detections.sql"),
            include_str!("../../migrations/postgres/0004_tracking.sql")
        ),
    },
    Migration {
        version: 5,
        sqlite: concat!(
            include_str!("../../migrations/sqlite/0005_data_cursor.sql"),
            include_str!("../../migrations/sqlite/0005_roll_backs.sql"),
            include_str!("../../migrations/sqlite/0005_stages.sql")
        ),
        postgres: concat!(
            include_str!("../../migrations/postgres/0005_data_cursor.sql"),
            include_str!("../../migrations/postgres/0005_roll_backs.sql"),
            include_str!("../../migrations/postgres/0005_stages.sql")
        ),
    },
    Migration {
        version: 6,
        sqlite: concat!(
            include_str!("../../migrations/sqlite/0006_evaluations.sql"),
            include_str!("../../migrations/sqlite/0006_registry.sql")
        ),
        postgres: concat!(
            include_str!("../../migrations/postgres/0006_evaluations.sql"),
            include_str!("../../migrations/postgres/0006_registry.sql")
        ),
    },
];

/// The version that this program writes.
pub(crate) const SCHEMA_VERSION: i64 = MIGRATIONS[MIGRATIONS.len() - 1].version;

/// Any number will do for the advisory lock, as long as it is Trackway's own: `track` in ASCII.
const POSTGRES_LOCK: i64 = 0x74_72_61_63_6b;

impl Backend {
    /// Brings the ledger to [`SCHEMA_VERSION`].
    ///
    /// # Errors
    /// [`LedgerError::Newer`] when it is beyond that already; nothing is changed then.
    pub(crate) fn migrate(&mut self) -> Result<(), LedgerError> {
        // Most opens find the ledger as it should be and take no lock.
        if self.has_version_table()? && self.checked_version()? == SCHEMA_VERSION {
            return Ok(());
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
            for migration in MIGRATIONS.iter().filter(|migration| migration.version > found) {
                match backend {
                    Self::Sqlite(sqlite) => sqlite.execute_script(doing, migration.sqlite)?,
                    Self::Postgres(postgres) => postgres.execute_script(doing, migration.postgres)?,
                }
                let sql = "INSERT INTO schema_version (version) VALUES (?)";
                backend.execute(doing, sql, &[Value::Integer(migration.version)])?;
            }
            Ok(())
        })
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
        let mut number = 0;
        self.query("reading the version", sql, &[], &[ColumnKind::Integer], &mut |values| {
            if let Some(Value::Integer(found)) = values.first() {
                number = *found;
            }
            Ok(())
        })?;
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;
    use trackway_core::LaunchKind;

    use super::*;
    use crate::ledger::Ledger;

    /// Proves that a ledger of the first version goes on as one of this version, its runs being training runs.
    #[test]
    fn a_ledger_of_version_1_is_brought_forward() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        let old = Connection::open(&path).unwrap();
        let script = format!(
            "CREATE TABLE schema_version (version INTEGER NOT NULL) STRICT; {}; INSERT INTO schema_version VALUES (1);
             INSERT INTO runs (run_id, name, state, config_sha256, created_at, attempt_count, gpu_seconds, wall_seconds, config_json)
             VALUES ('run_01arz3ndektsv4rrffq69g5fav', 'old', 'planned', 'c', 7, 0, 0, 0, '{{}}');
             INSERT INTO retries (attempt_id, run_id, at, decision, rule, why)
             VALUES ('att_01arz3ndektsv4rrffq69g5fav', 'run_01arz3ndektsv4rrffq69g5fav', 8, 'stop', 'finished', 'w')",
            MIGRATIONS[0].sqlite
        );
        old.execute_batch(&script).unwrap();
        drop(old);
        let ledger = Ledger::open(path.to_str().unwrap()).unwrap();
        let run = ledger.find_run("last").unwrap();
        assert_eq!((run.name.as_str(), run.kind), ("old", LaunchKind::Train));
        assert!(ledger.resume_proofs_of_config("c").unwrap().is_empty());
        let refused = ledger.backend().execute("raw SQL", "UPDATE runs SET kind = 'prove'", &[]);
        assert!(refused.unwrap_err().to_string().contains("the kind of a run does not change"));
        assert_eq!(ledger.retries_of_run(run.run_id).unwrap()[0].rule, "finished");
        let refused = ledger.backend().execute("raw SQL", "UPDATE retries SET decision = 'promote'", &[]);
        assert!(refused.unwrap_err().to_string().contains("retries is append-only"));
    }
}
