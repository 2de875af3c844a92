//! Commands that change folders of a user are killed at every step: before every system call that changes a file.
//!
//! By default a part of the steps is taken, a different one for each `TRACKWAY_KILL_SEED`; `make kill-steps` takes
//! every one.

mod tracer;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::Home;
use crate::models::registry::{GATES, compare_nothing, registered};
use crate::safety::deletion::{tree, write};
use tracer::{Ending, kill_at};

/// A command that is never through changes files without an end.
const STEPS_MAX: usize = 20_000;

type Tree = BTreeMap<PathBuf, String>;

/// A command, where it begins, and what must hold.
struct Case<'a> {
    name: &'a str,
    arguments: &'a [&'a str],
    /// One step of so many is taken by default.
    every: usize,
    /// Holds after each kill, whatever the step.
    after_kill: &'a dyn Fn(),
    /// Holds when the command is through, after a kill or without one.
    at_end: &'a dyn Fn(),
}

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Puts a folder back to what it was.
fn restore(folder: &Path, pristine: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.symlink_metadata().unwrap().is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }
    copy(pristine, folder);
}

/// Copies everything in a folder into another one, with its rights and links.
fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status().unwrap();
    assert!(copied.success());
}

/// Kills the command at its steps, each time from the same state, and gives it again. How often it was killed.
fn kill_everywhere(home: &Home, case: &Case<'_>) -> usize {
    let every = number("TRACKWAY_KILL_EVERY", case.every).max(1);
    let seed = number("TRACKWAY_KILL_SEED", 0);
    let pristine = tempfile::tempdir().unwrap();
    copy(home.path(), pristine.path());
    let mut kills = 0;
    for step in (seed % every..STEPS_MAX).step_by(every) {
        println!("{}: step {step}", case.name);
        restore(home.path(), pristine.path());
        match kill_at(home.command(case.arguments), step) {
            Ending::Killed => {
                kills += 1;
                (case.after_kill)();
                let again = home.trackway(case.arguments);
                assert_eq!(again.code, 0, "{}, killed at step {step}: {}", case.name, again.stderr);
                (case.at_end)();
            }
            Ending::Exited(code) => {
                assert_eq!(code, 0, "{}, which was not killed", case.name);
                (case.at_end)();
                println!("{}: {kills} kills in {step} steps", case.name);
                assert!(kills > 0, "{} has fewer steps than one in {every}", case.name);
                return kills;
            }
        }
    }
    panic!("{} is not through after {STEPS_MAX} steps", case.name)
}

fn is_part(path: &Path) -> bool {
    path.to_string_lossy().contains(".part-")
}

/// Nothing half made is left, neither beside the user's files nor in the home.
fn assert_no_parts(home: &Home) {
    let parts: Vec<PathBuf> = tree(home.path()).into_keys().filter(|path| is_part(path)).collect();
    assert_eq!(parts, Vec::<PathBuf>::new());
}

/// What of a home's folder is the user's: everything but Trackway's state and what `is_trackways`.
fn users_files(home: &Home, is_trackways: &dyn Fn(&Path) -> bool) -> Tree {
    let state = home.state();
    let state = state.strip_prefix(home.path()).unwrap();
    let mut files = tree(home.path());
    files.retain(|path, _| !path.starts_with(state) && !is_trackways(path));
    files
}

/// Names of what the home keeps of the registry beside the ledger.
fn kept(home: &Home) -> Vec<PathBuf> {
    tree(&home.state().join("registry")).into_keys().collect()
}

/// Version, as the registry has it, of the model in production, and how often that changed.
fn in_registry(home: &Home) -> (Option<i64>, i64) {
    let ledger = rusqlite::Connection::open(home.state().join("ledger.db")).unwrap();
    let version = "select production_version from models where model = 'income'";
    let changes = "select count(*) from model_changes";
    (
        ledger.query_row(version, [], |row| row.get(0)).unwrap(),
        ledger.query_row(changes, [], |row| row.get(0)).unwrap(),
    )
}

/// A copy of a version is whole: every file of its manifest is there, with its bytes.
fn assert_whole(copy: &Path, version: u64) {
    let manifest = fs::read(copy.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    for file in manifest["files"].as_array().unwrap() {
        let size = fs::metadata(copy.join(file["name"].as_str().unwrap())).unwrap().len();
        assert_eq!(Some(size), file["size_bytes"].as_u64(), "{file}");
    }
    assert_eq!(fs::read_to_string(copy.join("weights.bin")).unwrap(), format!("step {version}"));
}

/// Promotions of `income` into `srv`, in a folder where a user keeps other things.
fn deployments_are_killed(home: &Home) -> usize {
    let at = |name: &str| home.path().join(name);
    let is_trackways = |path: &Path| {
        let mut names = path.components().map(|name| name.as_os_str().to_string_lossy());
        names.next().is_some_and(|name| name == "srv")
            && names.next().is_none_or(|name| {
                ["v1", "v2", "current"].contains(&&*name)
                    || name.starts_with(".trackway-model.")
                    || name.contains(".part-")
            })
    };
    let mut kills = 0;
    for (name, arguments) in [
        ("a first deployment", deploy("promote", "1")),
        ("a second version", deploy("promote", "2")),
        ("a rollback", deploy("rollback", "1")),
        ("a damaged copy", deploy("promote", "1")),
    ] {
        if name == "a damaged copy" {
            fs::write(at("srv/v1/weights.bin"), "torn").unwrap();
        }
        let (before, users) = (in_registry(home), users_files(home, &is_trackways));
        let state = tempfile::tempdir().unwrap();
        copy(home.path(), state.path());
        let version = if name == "a second version" { 2 } else { 1 };
        assert_eq!(home.trackway(&arguments).code, 0, "{name}");
        let (after, deployed, kept_after) = (in_registry(home), tree(&at("srv")), kept(home));
        restore(home.path(), state.path());
        let after_kill = || {
            assert_eq!(users_files(home, &is_trackways), users, "{name}");
            let found = in_registry(home);
            assert!([before, after].contains(&found), "{name}: {found:?}");
            if name != "a damaged copy"
                && let Ok(current) = fs::read_link(at("srv/current"))
            {
                let current: u64 = current.to_str().unwrap()[1..].parse().unwrap();
                assert_whole(&at("srv/current"), current);
            }
        };
        let at_end = || {
            assert_eq!(users_files(home, &is_trackways), users, "{name}");
            assert_eq!((in_registry(home), kept(home)), (after, kept_after.clone()), "{name}");
            assert_eq!(tree(&at("srv")), deployed, "{name}");
            assert_whole(&at("srv/current"), version);
            assert_no_parts(home);
        };
        kills += kill_everywhere(
            home,
            &Case { name, arguments: &arguments, every: 40, after_kill: &after_kill, at_end: &at_end },
        );
    }
    kills
}

fn deploy<'a>(what: &'a str, version: &'a str) -> Vec<&'a str> {
    let version: &[&str] = if what == "promote" { &[version] } else { &["--to-version", version] };
    [&["registry", what, "income"], version, &["--deploy", "srv"]].concat()
}

/// Proves that a deployment killed at any step leaves the user's files as they are and `current` at a whole copy, and
/// that the same command again ends in the same state as one that was never killed, with nothing half made left.
#[test]
fn a_deployment_is_killed_at_its_steps() {
    let home = registered(2, GATES);
    compare_nothing(&home);
    for name in ["srv/notes/thesis.txt", "srv/.hidden", "beside/v1/thesis.txt"] {
        write(home.path().join(name), "years of work");
    }
    deployments_are_killed(&home);
}

/// Proves that an export killed at any step leaves nothing at its target or the whole copy, and that the same command
/// again completes it, with nothing half made left beside it.
#[test]
fn an_export_is_killed_at_its_steps() {
    let home = registered(1, GATES);
    write(home.path().join("out/thesis.txt"), "years of work");
    let arguments = ["registry", "export", "income", "1", "--out", "out/model"];
    let target = home.path().join("out/model");
    let is_trackways = |path: &Path| {
        path.starts_with("out/model") || path.starts_with("out") && path.to_string_lossy().contains(".part-")
    };
    let users = users_files(&home, &is_trackways);
    let case = Case {
        name: "an export",
        arguments: &arguments,
        every: 12,
        after_kill: &|| {
            assert_eq!(users_files(&home, &is_trackways), users);
            if target.exists() {
                assert_whole(&target, 1);
            }
        },
        at_end: &|| {
            assert_eq!(users_files(&home, &is_trackways), users);
            assert_whole(&target, 1);
            assert_no_parts(&home);
        },
    };
    kill_everywhere(&home, &case);
}

/// Proves that a rebuild of a lost ledger that is killed at any step leaves the ledger missing or whole, and that the
/// same command again makes the same ledger.
#[test]
fn a_rebuild_is_killed_at_its_steps() {
    let home = registered(1, GATES);
    let ledger = home.state().join("ledger.db");
    let receipts = || {
        let ledger = rusqlite::Connection::open(&ledger).unwrap();
        let query = "select receipt_sha256 from training_attempts order by attempt_id";
        let mut rows = ledger.prepare(query).unwrap();
        let rows = rows.query_map([], |row| row.get::<_, Option<String>>(0)).unwrap();
        (rows.map(Result::unwrap).collect::<Vec<_>>(), in_registry(&home))
    };
    let before = receipts();
    for part in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{part}", ledger.display()));
    }
    let at_end = || {
        assert_eq!(receipts(), before);
        let left = tree(&home.state()).into_keys();
        let left: Vec<_> = left.filter(|path| path.to_string_lossy().contains(".rebuilding")).collect();
        assert_eq!(left, Vec::<PathBuf>::new());
        assert_no_parts(&home);
    };
    let case = Case {
        name: "a rebuild",
        arguments: &["doctor", "rebuild"],
        every: 80,
        after_kill: &|| assert!(!ledger.exists() || receipts() == before),
        at_end: &at_end,
    };
    kill_everywhere(&home, &case);
}

/// Proves that a split that is killed at any step leaves its input and each part as it was or whole, and that the same
/// command again writes the same parts.
#[test]
fn a_split_is_killed_at_its_steps() {
    let home = Home::new();
    let rows: String = (0..300).map(|row| format!("{row},{}\n", row % 3)).collect();
    home.write("all.csv", &format!("id,kind\n{rows}"));
    write(home.path().join("out/thesis.txt"), "years of work");
    let arguments = [
        "data", "split", "all.csv", "--parts", "train=0.8,test=0.2", "--seed", "1", "--write-rows", "--out",
        "out",
    ];
    let pristine = tempfile::tempdir().unwrap();
    copy(home.path(), pristine.path());
    assert_eq!(home.trackway(&arguments).code, 0);
    let whole = tree(home.path());
    restore(home.path(), pristine.path());
    let before = tree(home.path());
    let case = Case {
        name: "a split",
        arguments: &arguments,
        every: 6,
        after_kill: &|| {
            let found = tree(home.path());
            assert!(before.iter().all(|(path, text)| found.get(path) == Some(text)));
            let is_whole = |(path, text): (&PathBuf, &String)| is_part(path) || whole.get(path) == Some(text);
            assert!(found.iter().all(is_whole), "{:?}", found.keys());
        },
        // The folder is the user's, and nothing in it proves which program made a file: what a kill left there stays.
        at_end: &|| {
            let mut found = tree(home.path());
            found.retain(|path, _| !is_part(path));
            assert_eq!(found, whole);
        },
    };
    kill_everywhere(&home, &case);
}
