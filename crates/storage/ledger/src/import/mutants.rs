//! Damaged stores, made from good ones by a seeded generator: each is read with what is left out named, or refused.
//!
//! `TRACKWAY_FUZZ_MUTANTS` sets how many of each format there are; the few of a usual run take some seconds.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use trackway_core::boundary::contained;
use trackway_core::{Rng as _, SplitMix64};

use super::*;

/// Mutants of each format by default.
const USUAL_MUTANTS: u64 = 150;

fn vectors(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder)
}

/// Changes a good file in one to three places: bits, bytes, pieces filled, left out or doubled, and the end.
fn mutate(good: &[u8], random: &mut SplitMix64) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for _ in 0..=random.next_u64() % 3 {
        if bytes.is_empty() {
            break;
        }
        let at = random.next_u64() as usize % bytes.len();
        let to = (at + 1 + random.next_u64() as usize % 64).min(bytes.len());
        match random.next_u64() % 7 {
            0 => bytes[at] ^= 1 << (random.next_u64() % 8),
            1 => bytes[at] = random.next_u64() as u8,
            2 => bytes[at] = [0x00, 0x7f, 0xff, b' ', b'\n', b':', b'-'][random.next_u64() as usize % 7],
            3 => bytes[at..to].fill(random.next_u64() as u8),
            4 => drop(bytes.drain(at..to)),
            5 => bytes.extend_from_within(at..to),
            _ => bytes.truncate(at),
        }
    }
    bytes
}

/// A store of one tool, and the files in it of which one is damaged.
struct Good {
    tool: ForeignTool,
    /// Path below the store, and content.
    files: Vec<(&'static str, Vec<u8>)>,
    /// What is imported; empty: the folder.
    store: &'static str,
}

fn database() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mlflow.db");
    let connection = Connection::open(&path).unwrap();
    let tables = "CREATE TABLE experiments (experiment_id INTEGER, name TEXT);
        CREATE TABLE runs (run_uuid TEXT, name TEXT, status TEXT, start_time INTEGER, end_time INTEGER, user_id TEXT,
            lifecycle_stage TEXT, experiment_id INTEGER);
        CREATE TABLE tags (run_uuid TEXT, key TEXT, value TEXT);
        CREATE TABLE params (run_uuid TEXT, key TEXT, value TEXT);
        CREATE TABLE metrics (run_uuid TEXT, key TEXT, value REAL, timestamp INTEGER, step INTEGER, is_nan BOOLEAN);
        INSERT INTO experiments VALUES (1, 'income');
        INSERT INTO runs VALUES ('a', 'first', 'FINISHED', 1, 2, 'ana', 'active', 1);
        INSERT INTO params VALUES ('a', 'lr', '0.1');
        WITH RECURSIVE t(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM t LIMIT 200)
        INSERT INTO metrics SELECT 'a', 'loss', 1.0 / (n + 1), n, n, 0 FROM t;";
    connection.execute_batch(tables).unwrap();
    drop(connection);
    fs::read(path).unwrap()
}

fn good_stores() -> Vec<Good> {
    let vector = |path: &str| fs::read(vectors("base/formats/tests/vectors").join(path)).unwrap();
    let points: String = (0..40).map(|step| format!("170000000000{} 0.{step} {step}\n", step % 10)).collect();
    let run = "artifact_uri: x\nend_time: 1700000100000\nexperiment_id: '0'\nrun_id: aaaa\nrun_name: r\nstatus: 3\n";
    vec![
        Good {
            tool: ForeignTool::Mlflow,
            files: vec![
                ("0/aaaa/metrics/loss", points.into_bytes()),
                ("0/aaaa/meta.yaml", run.as_bytes().to_vec()),
                ("0/aaaa/params/lr", b"0.1".to_vec()),
            ],
            store: "",
        },
        Good { tool: ForeignTool::Mlflow, files: vec![("mlflow.db", database())], store: "mlflow.db" },
        Good {
            tool: ForeignTool::Wandb,
            files: vec![("run-abc0.wandb", vector("wandb/run-abc0.wandb"))],
            store: "",
        },
        Good {
            tool: ForeignTool::TensorBoard,
            files: vec![(
                "events.out.tfevents.1.vm",
                vector("tensorboard/tensorboardx/events.out.tfevents.1795323179.vm"),
            )],
            store: "",
        },
    ]
}

/// Reads a store and looks at what is said of it.
fn read(tool: ForeignTool, store: &Path) -> Result<(), LedgerError> {
    let found = read_foreign(tool, store)?;
    let (skipped, changed) = found.omissions();
    for omission in [skipped.list(), changed.list()].concat() {
        assert!(omission.count > 0 && !omission.why.is_empty(), "{omission:?}");
    }
    let mut keys: Vec<&String> = found.runs.iter().map(|run| &run.key).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), found.runs.len());
    Ok(())
}

/// Proves that no damage to a store makes reading it panic, and that a store is read or refused as one that is not of the tool.
#[test]
fn mutants_are_read_or_refused() {
    let given = std::env::var("TRACKWAY_FUZZ_MUTANTS").ok().and_then(|count| count.parse().ok());
    let mutants: u64 = given.unwrap_or(USUAL_MUTANTS);
    for Good { tool, files, store } in good_stores() {
        let folder = tempfile::tempdir().unwrap();
        for (path, bytes) in &files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let store = folder.path().join(store);
        let (mut count, mut refused) = (0, 0);
        read(tool, &store).unwrap_or_else(|error| panic!("{tool}: {error}"));
        for seed in 0..mutants {
            let (path, good) = &files[seed as usize % files.len()];
            let path = folder.path().join(path);
            fs::write(&path, mutate(good, &mut SplitMix64::new(seed))).unwrap();
            match contained(|| read(tool, &store)) {
                Err(panic) => panic!("mutant {seed} of {tool}: {panic}"),
                Ok(Ok(())) => count += 1,
                Ok(Err(LedgerError::Import { .. })) => refused += 1,
                Ok(Err(error)) => panic!("mutant {seed} of {tool}: {error}"),
            }
            fs::write(&path, good).unwrap();
        }
        println!("{tool}: {count} read, {refused} refused");
        assert!(count > 0, "mutants of {tool} damage too much");
    }
}
