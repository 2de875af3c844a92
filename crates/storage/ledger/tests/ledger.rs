//! The ledger on real databases and real record files.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

#[allow(dead_code, reason = "the tests of the binary use the rest")]
#[allow(clippy::unwrap_used, reason = "a test's helper")]
mod postgres_cluster;
mod postgres_tls;

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::json;
use tempfile::TempDir;
use trackway_core::name::{Name, NameKind};
use trackway_core::{RunId, SequentialIds, Timestamp};
use trackway_ledger::conformance::{self, migrations};
use trackway_ledger::{ErrorKind, Ledger, OpenOptions, RunRow, document};

use postgres_cluster::PostgresCluster;

/// Proves that SQLite keeps everything the ledger promises.
#[test]
fn sqlite_conforms() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("home/ledger.db");
    conformance::run_all(&|options| Ledger::open_with(path.to_str().unwrap(), options));
}

/// Proves that a SQLite ledger of each earlier version is brought forward with its rows, once.
#[test]
fn filled_sqlite_ledgers_are_brought_forward() {
    for version in migrations::earlier_versions() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("ledger.db");
        let old = rusqlite::Connection::open(&path).unwrap();
        old.execute_batch(&migrations::filled(version, false)).unwrap();
        drop(old);
        drop(Ledger::open(path.to_str().unwrap()).unwrap());
        migrations::nothing_is_lost(&Ledger::open(path.to_str().unwrap()).unwrap());
    }
}

/// Proves the same of PostgreSQL, and that tables of other programs stay as they are.
#[test]
fn filled_postgres_ledgers_are_brought_forward() {
    let Some(cluster) = PostgresCluster::start_if_asked_for() else { return };
    for version in migrations::earlier_versions() {
        cluster.psql("drop schema public cascade; create schema public");
        cluster.psql(&migrations::filled(version, true));
        cluster.psql("create table jobs (state text check (state in ('a', 'b')))");
        drop(Ledger::open(&cluster.url()).unwrap());
        let lists = "select conrelid::regclass from pg_constraint where contype = 'c' and array_length(conkey, 1) = 1 and pg_get_constraintdef(oid) like '%ANY (ARRAY[%'";
        assert_eq!(cluster.psql(lists), ["jobs"]);
        migrations::nothing_is_lost(&Ledger::open(&cluster.url()).unwrap());
    }
}

/// Proves that threads of one ledger work at once over separate connections, and that one connection is left when they
/// are done.
#[test]
fn postgres_connections_are_pooled() {
    const OPEN_MAX: usize = 3;
    let Some(cluster) = PostgresCluster::start_if_asked_for() else { return };
    let options = OpenOptions { connections_max: OPEN_MAX, ..OpenOptions::default() };
    let ledger = Ledger::open_with(&cluster.url(), &options).unwrap();
    let count = || -> usize {
        let sql = "select count(*) from pg_stat_activity where application_name = 'trackway'";
        cluster.psql(sql)[0].parse().unwrap()
    };
    let runs: Vec<RunRow> = (0..12).map(|number| store_run(&ledger, &format!("pooled-{number}"))).collect();
    // Each change waits within its transaction for a change of another thread: over one connection it would wait for
    // ever.
    let together = std::sync::Barrier::new(OPEN_MAX);
    let counts: Vec<usize> = std::thread::scope(|scope| {
        let changes: Vec<_> = runs
            .iter()
            .map(|run| {
                let (ledger, together, count) = (ledger.clone(), &together, &count);
                scope.spawn(move || {
                    let counted = std::cell::Cell::new(0);
                    let change = |run: &mut RunRow| {
                        together.wait();
                        counted.set(count());
                        together.wait();
                        run.attempt_count = 7;
                    };
                    ledger.change_run(run.run_id, change).unwrap();
                    counted.get()
                })
            })
            .collect();
        changes.into_iter().map(|change| change.join().unwrap()).collect()
    });
    assert!(counts.iter().all(|count| *count >= OPEN_MAX), "{counts:?}");
    // The server notices a closed connection a little later.
    let closed = (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        count() == 1
    });
    assert!(closed, "{} connections are left", count());
    assert!(runs.iter().all(|run| ledger.run(run.run_id).unwrap().unwrap().attempt_count == 7));
}

/// Proves that PostgreSQL keeps everything the ledger promises.
#[test]
fn postgres_conforms() {
    let Some(cluster) = PostgresCluster::start_if_asked_for() else { return };
    let url = cluster.url();
    conformance::run_all(&|options| Ledger::open_with(&url, options));
}

/// Proves that `docs/ledger.md` matches the catalogue (`TRACKWAY_BLESS=1` writes it).
#[test]
fn the_document_is_the_catalogue() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/ledger.md");
    if std::env::var_os("TRACKWAY_BLESS").is_some() {
        fs::write(&path, document()).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), document(), "run with TRACKWAY_BLESS=1");
}

/// Proves that the errors of a file that is not a ledger, a folder that cannot be made and a URL without a server say
/// what and where, and that no password shows.
#[test]
fn what_cannot_be_opened_says_why() {
    let folder = TempDir::new().unwrap();
    let text = folder.path().join("notes.txt");
    fs::write(&text, "this is not a database, however long it may be ".repeat(100)).unwrap();
    let inside = text.join("ledger.db");
    for (location, expected) in [
        (text.to_str().unwrap(), "is damaged: file is not a database"),
        (inside.to_str().unwrap(), "its folder cannot be created"),
        ("postgres://ana:secret@127.0.0.1:1/none", "is the server running"),
        ("postgres://ana:secret@127.0.0.1:1/none?sslmode=allow", "invalid `sslmode=allow`"),
    ] {
        let error = Ledger::open(location).unwrap_err();
        let shown = error.to_string();
        let kind = if expected.contains("damaged") { ErrorKind::Integrity } else { ErrorKind::Fault };
        assert_eq!(error.kind(), kind, "{shown}");
        assert!(shown.contains(expected) && !shown.contains("secret"), "{location}: {shown}");
    }
}

static IDS: LazyLock<SequentialIds> = LazyLock::new(SequentialIds::default);

fn store_run(ledger: &Ledger, name: &str) -> RunRow {
    let run = RunRow::planned(
        RunId::new(&*IDS),
        &Name::renamed(NameKind::Run, name),
        "c0ffee",
        json!({}),
        Timestamp::from_micros(1),
    );
    ledger.insert_run(&run, &[]).unwrap();
    run
}
