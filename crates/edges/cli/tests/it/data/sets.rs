//! `trackway data snapshot`, `ls`, `diff` and `split` as a user meets them.

use std::time::Duration;

use nix::sys::signal::Signal;

use crate::harness::{Home, answer, eventually, files_below, signal};

const RUN_FILE: &str = "[run]\nname = \"income\"\ncommand = [\"true\"]\n[data.train]\npath = \"data\"\n";

fn home_with_data() -> Home {
    let home = Home::new();
    std::fs::create_dir(home.path().join("data")).unwrap();
    let rows = |from: usize| {
        (from..from + 500).map(|row| format!("{},{}\n", row % 50, ["no", "yes"][row % 2])).collect::<String>()
    };
    home.write("data/a.csv", &format!("age,paid\n{}1,2,3\n", rows(0)));
    home.write("data/b.csv", &format!("age,paid\n{}", rows(500)));
    home.write("data/logo.png", "no table");
    home
}

/// Proves that a snapshot has the hash that a run over the same data records (so that they join in SQL), that a second
/// one reads no file, that it is listed by its name, and that nothing half is left beside it.
#[test]
fn a_snapshot_joins_the_run_over_its_data() {
    let home = home_with_data();
    // A file that was changed less than two seconds ago is never trusted to be unchanged.
    std::thread::sleep(Duration::from_millis(2_200));
    let first = home.json(&["data", "snapshot", "data", "--name", "train", "--label", "paid"]);
    assert_eq!((first["files"].as_u64(), first["files_read"].as_u64()), (Some(3), Some(3)), "{first}");
    assert_eq!((first["rows"].as_u64(), first["rows_rejected"].as_u64()), (Some(1_000), Some(1)));
    let second = home.json(&["data", "snapshot", "data", "--name", "train", "--label", "paid"]);
    assert_eq!((second["files_read"].as_u64(), second["is_new"].as_bool()), (Some(0), Some(false)));
    assert_eq!(second["data_sha256"], first["data_sha256"]);

    home.write("trackway.toml", RUN_FILE);
    assert_eq!(home.trackway(&["run", "trackway.toml"]).code, 0);
    let joined = home.sql(
        "select s.data_sha256, s.rows from run_data r join data_snapshots s on s.data_sha256 = r.data_sha256",
    );
    assert_eq!(joined.len(), 1);
    assert_eq!((&joined[0]["data_sha256"], joined[0]["rows"].as_u64()), (&first["data_sha256"], Some(1_000)));

    // A glob that no shell has expanded starts here.
    let tables = home.json(&["data", "snapshot", "data/*.csv"]);
    assert_eq!((tables["files"].as_u64(), tables["rows"].as_u64()), (Some(2), Some(1_000)));

    let list = home.json(&["data", "ls"]);
    assert_eq!(list["snapshots"][0]["names"][0], "train", "named ones go first");
    assert_eq!(list["names"][0]["history"].as_array().unwrap().len(), 1);
    let shown = home.trackway(&["data", "ls"]);
    assert!(shown.stdout.contains(&first["data_sha256"].as_str().unwrap()[..12]), "{}", shown.stdout);
    let kept = files_below(&home.state().join("data/snapshots"));
    assert!(kept.iter().all(|path| !path.to_string_lossy().contains(".new-")), "{kept:?}");
}

/// Proves that kept bytes bring the data back after it is gone, that a byte that is not what was kept is exit code 7 and named,
/// that nothing is deleted without `--yes`, and that a snapshot whose bytes expired says so and stays on record.
#[test]
fn kept_bytes_are_restored_verified_and_expire() {
    let home = home_with_data();
    let taken = home.json(&["data", "snapshot", "data", "--name", "train", "--keep-bytes"]);
    assert_eq!(taken["bytes"]["files_added"], 3, "{taken}");
    let again = home.json(&["data", "snapshot", "data", "--name", "train", "--keep-bytes"]);
    assert_eq!(again["bytes"]["files_added"], 0, "{again}");
    let list = home.json(&["data", "ls"]);
    assert_eq!(list["snapshots"][0]["has_bytes"], true);
    let before = std::fs::read(home.path().join("data/a.csv")).unwrap();
    std::fs::remove_dir_all(home.path().join("data")).unwrap();
    let restored = home.json(&["data", "snapshot", "restore", "train", "--out", "back/train"]);
    assert_eq!(restored["files"], 3, "{restored}");
    assert_eq!(std::fs::read(home.path().join("back/train/a.csv")).unwrap(), before);
    let occupied = home.trackway(&["data", "snapshot", "restore", "train", "--out", "back/train"]);
    assert_eq!(occupied.code, 2, "{}", occupied.stderr);
    assert_eq!(home.json(&["data", "snapshot", "verify", "train"])["intact"], true);
    let same = home.json(&["data", "snapshot", "back/train"]);
    assert_eq!((&same["data_sha256"], &same["bytes"]), (&taken["data_sha256"], &serde_json::Value::Null));

    let dry = home.json(&["data", "snapshot", "gc"]);
    assert_eq!((dry["files"].as_u64(), dry["dry_run"].as_bool()), (Some(0), Some(true)));
    let object = files_below(&home.state().join("data/objects"))
        .into_iter()
        .find(|path| std::fs::read(path).is_ok_and(|bytes| bytes == before))
        .expect("the bytes of a.csv are kept");
    let mut bytes = before.clone();
    bytes[20] ^= 1;
    std::fs::write(object, bytes).unwrap();
    let broken = home.trackway(&["data", "snapshot", "verify", "train", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&broken.stdout).unwrap();
    assert_eq!((broken.code, found["faults"][0]["path"].as_str()), (7, Some("a.csv")), "{found}");
    assert_eq!(found["faults"][0]["problem"], "different");
    let refused = home.trackway(&["data", "snapshot", "restore", "train", "--out", "again"]);
    assert!(refused.code == 7 && refused.stderr.contains("`a.csv`"), "{} {}", refused.code, refused.stderr);
    assert!(!home.path().join("again").exists());

    let would = home.trackway(&["data", "snapshot", "expire", "train"]);
    assert!(would.stdout.contains("would be deleted"), "{}", would.stdout);
    let expired = home.json(&["data", "snapshot", "expire", "train", "--yes"]);
    assert_eq!((expired["files"].as_u64(), expired["dry_run"].as_bool()), (Some(3), Some(false)));
    let gone = home.trackway(&["data", "snapshot", "verify", "train"]);
    assert!(gone.code == 2 && gone.stderr.contains("--keep-bytes"), "{} {}", gone.code, gone.stderr);
    assert_eq!(home.json(&["data", "ls"])["snapshots"][0]["has_bytes"], false);
    let unknown = home.trackway(&["data", "snapshot", "restore", "nosuch", "--out", "out"]);
    assert_eq!(unknown.code, 6, "{}", unknown.stderr);
}

/// Proves that drift and diff against a snapshot read none of its data, that a diff distinguishes moved from changed
/// files and rows from distributions, and the exit codes for invalid snapshots.
#[test]
fn snapshots_are_compared_without_their_data() {
    let home = home_with_data();
    let first = home.json(&["data", "snapshot", "data", "--name", "train"]);
    std::fs::rename(home.path().join("data/b.csv"), home.path().join("data/c.csv")).unwrap();
    let rows: String = (0..2_000).map(|row| format!("{},no\n", row % 50 + 40)).collect();
    home.write("data/a.csv", &format!("age,paid\n{rows}"));
    let second = home.json(&["data", "snapshot", "data", "--name", "train"]);
    std::fs::remove_dir_all(home.path().join("data")).unwrap();

    let before = first["data_sha256"].as_str().unwrap();
    let diff = home.json(&["data", "diff", &before[..10], "snapshot:train", "--label", "paid"]);
    assert_eq!((&diff["after"], diff["files_read"].as_u64()), (&second["data_sha256"], Some(0)));
    assert_eq!(diff["files"]["moved"][0]["to"], "c.csv");
    assert_eq!(diff["files"]["changed"][0], "a.csv");
    assert_eq!((diff["files"]["unchanged"].as_u64(), diff["rows"][1].as_u64()), (Some(1), Some(2_500)));
    assert_eq!(diff["drift"]["label_drifted"].as_bool(), Some(true));
    let shown = home.trackway(&["data", "diff", &before[..10], "train"]);
    assert!(shown.stdout.contains("b.csv → c.csv"), "{}", shown.stdout);
    let drift = home.json(&["data", "drift", "--reference", &before[..10], "--current", "train"]);
    assert_eq!(drift["reference_rows"].as_u64(), Some(1_000));

    let same = home.trackway(&["data", "diff", "train", "train"]);
    assert!(same.stdout.starts_with("the same data"), "{}", same.stdout);
    for (word, code) in [("snapshot:tran", 6), ("tran", 6)] {
        let answer = home.trackway(&["data", "diff", word, "train"]);
        assert_eq!(answer.code, code, "{}", answer.stderr);
    }
    let answer = home.trackway(&["data", "snapshot", "trackway.toml", "--name", "a/b"]);
    assert_eq!(answer.code, 2, "{}", answer.stderr);
}

/// Proves that a split keeps groups whole and labels balanced, contains that as a proof, is the same again, and that
/// the parts it writes hold every row once; that nested rungs have their sizes; and the exit codes for what makes no
/// sense.
#[test]
fn a_split_is_proved_and_written() {
    let home = Home::new();
    let rows: String = (0..3_000)
        .map(|row| format!("{row},user {},{}\n", row / 3, ["no", "no", "yes"][row / 3 % 3]))
        .collect();
    home.write("all.csv", &format!("id,user,paid\n{rows}"));
    let arguments = [
        "data", "split", "all.csv", "--strategy", "stratified-group", "--group-by", "user", "--label",
        "paid", "--parts", "train=0.8,test=0.2", "--folds", "4", "--rungs", "1%,10%,100%", "--write-rows",
        "--out",
    ];
    let first = home.json(&[arguments.as_slice(), &["one"]].concat());
    assert_eq!((first["proved"].as_bool(), first["rows"].as_u64()), (Some(true), Some(3_000)));
    let proof = &first["proof"];
    for promise in ["rows_shared", "groups_shared", "folds_shared", "rungs_not_nested", "rows_without_part"] {
        assert_eq!(proof[promise].as_u64(), Some(0), "{promise}: {proof}");
    }
    for part in first["parts"].as_array().unwrap() {
        let (all, yes) = (part["rows"].as_u64().unwrap(), part["labels"][1]["rows"].as_u64().unwrap());
        assert!((yes as f64 / all as f64 - 1.0 / 3.0).abs() < 0.01, "{part}");
    }
    let rungs: Vec<u64> =
        first["rungs"].as_array().unwrap().iter().map(|it| it["rows"].as_u64().unwrap()).collect();
    assert!(rungs[0] < rungs[1] && rungs[1] < rungs[2], "{rungs:?}");
    assert_eq!(Some(rungs[2]), first["parts"][0]["rows"].as_u64());

    let profile = |path: &str| home.json(&["data", "profile", path]);
    let parts: Vec<u64> =
        ["one/train.parquet", "one/test.parquet"].map(|path| profile(path)["rows"].as_u64().unwrap()).into();
    assert_eq!(parts.iter().sum::<u64>(), 3_000);
    let shared = home.json(&[
        "data", "leakage", "--train", "one/train.parquet", "--test", "one/test.parquet", "--group-by", "user",
    ]);
    let blocking = shared["findings"].as_array().unwrap().iter().filter(|it| it["severity"] == "block");
    assert_eq!(blocking.count(), 0, "{shared}");
    home.json(&[arguments.as_slice(), &["two"]].concat());
    let bytes = |path: &str| std::fs::read(home.path().join(path)).unwrap();
    assert_eq!(bytes("one/split.parquet"), bytes("two/split.parquet"));

    let refused = |arguments: &[&str], expected: &str| {
        let answer = home.trackway(&[&["data", "split", "all.csv", "--out", "x"], arguments].concat());
        assert_eq!(answer.code, 2, "{}", answer.stderr);
        assert!(answer.stderr.contains(expected), "{}", answer.stderr);
    };
    refused(&["--strategy", "group", "--parts", "a=0.5,b=0.5"], "--group-by");
    refused(&["--parts", "a=0.5,b=0.6"], "sum to 1.1");
    refused(&["--parts", "a=0.5,b"], "invalid part `b`");
    refused(
        &["--strategy", "time", "--time", "user", "--parts", "a=0.5,b=0.5"],
        "neither timestamps nor whole numbers",
    );
    refused(&["--group-by", "user", "--time", "user", "--parts", "a=0.5,b=0.5"], "--strategy group");
    refused(&[], "nothing to split into");
    assert!(!home.path().join("x").exists());
}

/// Proves that an interrupt ends a reading that would take hours: exit code 4 and a message, and nothing half is kept.
#[test]
fn an_interrupt_ends_reading_cleanly() {
    let home = Home::new();
    // A terabyte that takes no room.
    std::fs::File::create(home.path().join("endless.bin")).unwrap().set_len(1 << 40).unwrap();
    let process = home.spawn(&["data", "snapshot", "endless.bin", "--name", "endless"]);
    let status = format!("/proc/{}/status", process.id());
    eventually("the handler of SIGINT", || {
        let status = std::fs::read_to_string(&status).ok()?;
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        let caught = u64::from_str_radix(caught.trim(), 16).ok()?;
        (caught & (1 << (Signal::SIGINT as u32 - 1)) != 0).then_some(())
    });
    signal(&process, Signal::SIGINT);
    let answer = answer(process.wait_with_output().unwrap());
    assert_eq!(answer.code, 4, "{}", answer.stderr);
    assert!(answer.stderr.contains("reading was stopped"), "{}", answer.stderr);
    assert_eq!(home.json(&["data", "ls"])["snapshots"].as_array().map(Vec::len), Some(0));
}
