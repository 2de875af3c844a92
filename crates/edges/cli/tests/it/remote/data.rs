//! Data at URLs.

use super::{BUCKET, Moto};
use crate::harness::Home;

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
        home.trackway(&["data", "split", "data", "--parts", "a=0.5,b=0.5", "--write", "--out", "parts"]);
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
