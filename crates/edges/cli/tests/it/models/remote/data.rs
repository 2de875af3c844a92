//! Data at URLs.

use serde_json::{Value, json};

use super::{BUCKET, Moto};
use crate::harness::{Home, files_below};

/// Proves that data in an object store is the same data as on a disk: the same snapshot, profile, diff and hash of a
/// run; that objects that did not change are not read again; that globs, folders, Parquet and CSV work; and that a
/// changed object is seen.
#[test]
fn data_behind_urls_is_the_same_data() {
    let Some(moto) = Moto::start() else { return };
    let home = Home::with(&moto.environment());
    std::fs::create_dir(home.path().join("data")).unwrap();
    let rows = |from: usize| {
        (from..from + 20_000).map(|row| format!("{row},{}\n", ["no", "yes"][row % 2])).collect::<String>()
    };
    home.write("data/a.csv", &format!("id,paid\n{}", rows(0)));
    home.write("data/b.csv", &format!("id,paid\n{}1,2,3\n", rows(20_000)));
    let local = home.json(&["data", "snapshot", "data", "--name", "here"]);
    let upload = |name: &str, to: &str| moto.put(to, &std::fs::read(home.path().join(name)).unwrap());
    upload("data/a.csv", "sets/income/a.csv");
    upload("data/b.csv", "sets/income/b.csv");

    let far = home.json(&["data", "snapshot", "s3://runs/sets/income", "--name", "far"]);
    assert_eq!((&far["data_sha256"], far["is_new"].as_bool()), (&local["data_sha256"], Some(false)), "{far}");
    let by_glob = home.json(&["data", "snapshot", "s3://runs/sets/income/*.csv"]);
    assert_eq!((&by_glob["data_sha256"], by_glob["files_read"].as_u64()), (&local["data_sha256"], Some(0)));
    let profile = |path: &str| home.json(&["data", "profile", path, "--label", "paid"])["columns"].clone();
    assert_eq!(profile("s3://runs/sets/income"), profile("data"));

    let file = format!(
        "[run]\nname = \"far\"\ncommand = [\"true\"]\n[data.train]\npath = \"s3://{BUCKET}/sets/income/\"\n"
    );
    home.write("trackway.toml", &file);
    let run = home.trackway(&["run", "trackway.toml"]);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    let recorded = home.sql("select data_sha256 from run_data");
    assert_eq!(recorded[0]["data_sha256"], local["data_sha256"]);

    let split =
        home.trackway(&["data", "split", "data", "--parts", "a=0.5,b=0.5", "--write-rows", "--out", "parts"]);
    assert_eq!(split.code, 0, "{}", split.stderr);
    upload("parts/a.parquet", "sets/parts/a.parquet");
    assert_eq!(profile("s3://runs/sets/parts/a.parquet"), profile("parts/a.parquet"));
    moto.put("sets/income/a.csv", b"id,paid\n1,no\n");
    let diff = home.json(&["data", "diff", "far", "s3://runs/sets/income"]);
    assert_eq!((&diff["files"]["changed"][0], diff["files_read"].as_u64()), (&"a.csv".into(), Some(1)));

    for (path, code) in [("s3://runs/nowhere", 6), ("s3://runs/sets/*.parquet", 6), ("ftp://host/x.csv", 2)] {
        let answer = home.trackway(&["data", "profile", path]);
        assert_eq!(answer.code, code, "{path}: {}", answer.stderr);
    }
}

/// Proves that a snapshot pushed from one home is pulled into another one with every byte, that nothing is sent twice, that other bytes
/// are found (exit code 7), that what another snapshot needs survives an expiry, and that push and expiry exclude one another.
#[test]
fn snapshots_travel_with_their_bytes() {
    let Some(moto) = Moto::start() else { return };
    const URL: &str = "s3://runs/snapshots";
    let home = Home::with(&moto.environment());
    std::fs::create_dir(home.path().join("data")).unwrap();
    home.write("data/a.csv", "x,y\n1,2\n");
    home.write("data/b.csv", "x,y\n3,4\n");
    let taken = home.json(&["data", "snapshot", "data", "--name", "train", "--keep-bytes"]);
    let pushed = home.json(&["data", "snapshot", "push", "train", URL]);
    assert_eq!(
        (&pushed["data_sha256"], &pushed["files_sent"]),
        (&taken["data_sha256"], &json!(2)),
        "{pushed}"
    );
    assert_eq!(home.json(&["data", "snapshot", "push", "train", URL])["files_sent"], 0);
    home.write("data/b.csv", "x,y\n5,6\n");
    home.json(&["data", "snapshot", "data", "--name", "later", "--keep-bytes"]);
    assert_eq!(home.json(&["data", "snapshot", "push", "later", URL])["files_sent"], 1, "a.csv is there");

    let other = Home::with(&moto.environment());
    let pulled = other.json(&["data", "snapshot", "pull", "train", URL]);
    assert_eq!(
        (&pulled["data_sha256"], &pulled["files_fetched"]),
        (&taken["data_sha256"], &json!(2)),
        "{pulled}"
    );
    other.json(&["data", "snapshot", "restore", "train", "--out", "back"]);
    assert_eq!(std::fs::read(other.path().join("back/b.csv")).unwrap(), b"x,y\n3,4\n");
    assert_eq!(other.json(&["data", "snapshot", "verify", "train", "--url", URL])["intact"], true);

    moto.put("snapshots/collecting", b"");
    let busy = home.trackway(&["data", "snapshot", "push", "later", URL]);
    assert!(busy.code != 0 && busy.stderr.contains("snapshots/collecting"), "{} {}", busy.code, busy.stderr);
    moto.delete("snapshots/collecting");
    moto.put("snapshots/pushing/01ABC", b"");
    let busy = home.trackway(&["data", "snapshot", "expire", "train", "--url", URL, "--yes"]);
    assert!(
        busy.code != 0 && busy.stderr.contains("snapshots/pushing/01ABC"),
        "{} {}",
        busy.code,
        busy.stderr
    );
    moto.delete("snapshots/pushing/01ABC");

    let would = home.json(&["data", "snapshot", "expire", "train", "--url", URL]);
    assert_eq!((&would["files"], &would["dry_run"]), (&json!(1), &json!(true)), "{would}");
    let expired = home.json(&["data", "snapshot", "expire", "train", "--url", URL, "--yes"]);
    assert_eq!(expired["files"], 1, "a.csv is needed by `later`");
    let id = taken["data_sha256"].as_str().unwrap();
    assert_eq!(other.trackway(&["data", "snapshot", "pull", &id[..12], URL]).code, 6);
    assert_eq!(other.json(&["data", "snapshot", "verify", "later", "--url", URL])["intact"], true);

    let objects = home.state().join("data/objects");
    let kept = files_below(&objects)
        .into_iter()
        .find(|path| std::fs::read(path).is_ok_and(|it| it == b"x,y\n5,6\n"));
    let name = kept.unwrap().strip_prefix(&objects).unwrap().display().to_string();
    moto.put(&format!("snapshots/objects/{name}"), b"x,y\n5,7\n");
    let broken = home.trackway(&["data", "snapshot", "verify", "later", "--url", URL, "--json"]);
    let found: Value = serde_json::from_str(&broken.stdout).unwrap();
    assert_eq!((broken.code, &found["faults"][0]["path"]), (7, &json!("b.csv")), "{found}");
    let refused = other.trackway(&["data", "snapshot", "pull", "later", URL]);
    assert!(refused.code == 7 && refused.stderr.contains("`b.csv`"), "{} {}", refused.code, refused.stderr);
}
