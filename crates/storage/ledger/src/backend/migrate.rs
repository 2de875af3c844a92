//! Forward-only migrations. Two processes that open an empty ledger at once run them once.

use serde_json::json;
use trackway_core::Timestamp;
use trackway_core::name::{Name, Named};

use super::Backend;
use crate::error::LedgerError;
use crate::value::{ColumnKind, Value};

/// The columns that migrations from `version` on add, as `(table, column)`: what going back to before them takes away.
pub(crate) fn columns_added_since(version: i64) -> Vec<(&'static str, &'static str)> {
    let since = MIGRATIONS.iter().filter(|migration| migration.version >= version);
    let statements = since.flat_map(|migration| migration.sqlite.lines());
    let added = |line: &'static str| line.strip_prefix("ALTER TABLE ")?.split_once(" ADD COLUMN ");
    statements
        .filter_map(added)
        .filter_map(|(table, column)| Some((table, column.split_whitespace().next()?)))
        .collect()
}

/// One step forward, in both dialects.
struct Migration {
    version: i64,
    sqlite: &'static str,
    postgres: &'static str,
}

/// A migration of the files of these names, in this order.
macro_rules! migration {
    ($version:literal, $($name:literal),+) => {
        Migration {
            version: $version,
            sqlite: concat!($(include_str!(concat!("../../migrations/sqlite/", $name, ".sql"))),+),
            postgres: concat!($(include_str!(concat!("../../migrations/postgres/", $name, ".sql"))),+),
        }
    };
}

const MIGRATIONS: &[Migration] = &[
    migration!(1, "0001_init"),
    migration!(2, "0002_resume_proofs"),
    migration!(3, "0003_preflight_checks"),
    migration!(4, "0004_detections", "0004_tracking"),
    migration!(5, "0005_data_cursor", "0005_roll_backs", "0005_rungs"),
    migration!(6, "0006_evaluations", "0006_registry"),
    migration!(7, "0007_registered_once"),
    // Its rule is in code (`heal_names`), so that names are checked in one place.
    Migration { version: NAMES_VERSION, sqlite: "", postgres: "" },
    migration!(9, "0009_tag_index"),
    migration!(10, "0010_metric_coverage"),
    migration!(11, "0011_supervision"),
    migration!(12, "0012_read_indexes"),
    migration!(13, "0013_evidence"),
    migration!(14, "0014_receipts"),
    migration!(15, "0015_validation_sets"),
    migration!(16, "0016_test_sets"),
    migration!(17, "0017_drift_results"),
    migration!(18, "0018_diagnoses"),
    migration!(19, "0019_inputs_seen"),
    migration!(20, "0020_parameter_origin"),
    migration!(21, "0021_value_indexes"),
    migration!(22, "0022_run_amendments"),
    migration!(23, "0023_checkpoints_verified"),
];

/// From this version on no run has a name that reads as something else.
const NAMES_VERSION: i64 = 8;

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
            for migration in MIGRATIONS.iter().filter(|migration| migration.version > found) {
                match backend {
                    Self::Sqlite(sqlite) => sqlite.execute_script(doing, migration.sqlite)?,
                    Self::Postgres(postgres) => postgres.execute_script(doing, migration.postgres)?,
                }
                if migration.version == NAMES_VERSION {
                    heal_names(backend)?;
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

/// Renames runs whose names read as an id, as `last` or as `RUN/NUMBER`, and notes for each what it was called.
/// Statements name their columns, because later migrations may add some.
pub(crate) fn heal_names(backend: &mut Backend) -> Result<(), LedgerError> {
    let doing = "renaming runs";
    let kinds = [ColumnKind::Text, ColumnKind::Text];
    let mut renamed = Vec::new();
    backend.query(doing, "SELECT run_id, name FROM runs", &[], &kinds, &mut |values| {
        if let [Value::Text(run_id), Value::Text(was)] = values.as_slice() {
            let is = Name::renamed(Named::Run, was).to_string();
            renamed.extend((is != *was).then(|| (run_id.clone(), was.clone(), is)));
        }
        Ok(())
    })?;
    let now = match backend {
        Backend::Sqlite(_) => "SELECT CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
        Backend::Postgres(_) => "SELECT CAST(extract(epoch FROM now()) * 1000000 AS bigint)",
    };
    let at = Timestamp::from_micros(backend.number(now)?);
    for (run_id, from, to) in renamed {
        let values = [Value::Text(to.clone()), Value::Text(run_id.clone())];
        backend.execute(doing, "UPDATE runs SET name = ? WHERE run_id = ?", &values)?;
        let event = "INSERT INTO events (event_id, run_id, at, kind, message, fields_json, source) VALUES (?, ?, ?, ?, ?, ?, ?)";
        let message = format!("the name `{from}` is reserved: the run is now called `{to}`");
        let values = [
            Value::Text(format!("renamed-{run_id}")),
            Value::Text(run_id),
            Value::Timestamp(at),
            Value::from("renamed"),
            Value::Text(message),
            Value::Text(json!({ "from": from, "to": to }).to_string()),
            Value::from("migration"),
        ];
        backend.execute(doing, event, &values)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;
    use trackway_core::LaunchKind;

    use super::*;
    use crate::ledger::Ledger;
    use crate::resolve::Found;

    /// Proves that a ledger of the first version opens as one of this version, with its runs as training runs.
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
        let Found::Run(run) = ledger.resolve("last", Timestamp::from_micros(9)).unwrap() else {
            panic!("a run")
        };
        assert_eq!((run.name.as_str(), run.kind), ("old", LaunchKind::Train));
        assert!(ledger.newest_resume_proof("c").unwrap().is_none());
        let refused = ledger.backend().execute("raw SQL", "UPDATE runs SET kind = 'prove'", &[]);
        assert!(refused.unwrap_err().to_string().contains("the kind of a run does not change"));
        assert_eq!(ledger.retries_of_run(run.run_id).unwrap()[0].rule, "finished");
        let refused = ledger.backend().execute("raw SQL", "UPDATE retries SET decision = 'promote'", &[]);
        assert!(refused.unwrap_err().to_string().contains("retries is append-only"));
    }

    /// Proves that weights that were registered several times keep all their versions, each naming the lowest, and that
    /// from then on the same weights are refused.
    #[test]
    fn weights_registered_twice_are_named_as_such() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        let old = Connection::open(&path).unwrap();
        old.execute_batch("CREATE TABLE schema_version (version INTEGER NOT NULL) STRICT").unwrap();
        for migration in MIGRATIONS.iter().filter(|migration| migration.version < 7) {
            old.execute_batch(migration.sqlite).unwrap();
            old.execute("INSERT INTO schema_version VALUES (?)", [migration.version]).unwrap();
        }
        old.execute_batch(
            "INSERT INTO runs (run_id, name, state, config_sha256, created_at, attempt_count, gpu_seconds, wall_seconds, config_json)
             VALUES ('run_01arz3ndektsv4rrffq69g5fav', 'old', 'planned', 'c', 7, 0, 0, 0, '{}')",
        )
        .unwrap();
        let add = "INSERT INTO model_versions (model, version, run_id, rung, object_prefix, checkpoint_manifest_sha256,
             size_bytes, lineage_sha256, config_sha256, data_json, registered_at)
             VALUES (?, ?, 'run_01arz3ndektsv4rrffq69g5fav', '100%', 'p', ?, 1, 'l', 'c', '{}', 1)";
        for (model, version, manifest) in
            [("m", 1, "a"), ("m", 2, "b"), ("m", 3, "a"), ("m", 4, "a"), ("other", 1, "a")]
        {
            old.execute(add, (model, version, manifest)).unwrap();
        }
        drop(old);
        let ledger = Ledger::open(path.to_str().unwrap()).unwrap();
        let versions = ledger.versions_of_model("m").unwrap();
        let named: Vec<_> = versions.iter().map(|row| (row.version, row.duplicate_of)).collect();
        assert_eq!(named, [(1, None), (2, None), (3, Some(1)), (4, Some(1))]);
        assert_eq!(ledger.versions_of_model("other").unwrap()[0].duplicate_of, None);
        drop(ledger);
        let new = Connection::open(&path).unwrap();
        assert!(
            new.execute(add, ("m", 5, "a")).unwrap_err().to_string().contains("UNIQUE constraint failed")
        );
        assert!(new.execute("UPDATE model_versions SET duplicate_of = NULL", []).is_err());
    }
}
