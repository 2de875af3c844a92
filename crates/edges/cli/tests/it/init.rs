//! `trackway init`: what it writes for a project, and that this is a run.

use crate::bad_input::transcript;
use crate::harness::Home;

/// A project with a shell script and data, in a folder of a known name.
fn project() -> Home {
    let home = Home::new();
    std::fs::create_dir_all(home.path().join("income/data")).unwrap();
    home.write("income/train.sh", "echo \"epochs: $2\"\n");
    let rows = (0..60).map(|row| format!("{},{}\n", 20 + row * 7 % 50, ["stay", "leave"][row % 2]));
    home.write("income/data/train.csv", &format!("age,plan\n{}", rows.collect::<String>()));
    home
}

/// Proves that the run file of a script is written with comments, is only replaced on request, and runs.
#[test]
fn the_file_that_is_written_runs() {
    let home = project();
    let init = ["init", "income/train.sh", "--output", "income/trackway.toml", "--", "--epochs", "3"];
    insta::assert_snapshot!("written", transcript(&home, &init));
    let file = home.path().join("income/trackway.toml");
    insta::assert_snapshot!("run_file", std::fs::read_to_string(&file).unwrap());
    insta::assert_snapshot!("exists", transcript(&home, &init));
    let ran = home.json(&["run", "income/trackway.toml"]);
    assert_eq!((&ran["state"], &ran["name"]), (&"completed".into(), &"income".into()), "{ran}");
    assert!(home.trackway(&["logs", "income"]).stdout.contains("epochs: 3"));
    std::fs::write(&file, "damaged").unwrap();
    assert_eq!(home.trackway(&[&["init", "--force"], &init[1..]].concat()).code, 0);
    assert!(std::fs::read_to_string(&file).unwrap().contains("[data.train]"));
}

/// Proves that JSON contains what was found, that a folder without a script is wrong usage, and a missing script not
/// found.
#[test]
fn what_was_found_is_reported_as_json() {
    let home = Home::new();
    assert_eq!(home.trackway(&["init"]).code, 2);
    assert_eq!(home.trackway(&["init", "absent.py"]).code, 6);
    assert!(!home.path().join("trackway.toml").exists());
    home.write("fit.py", "import torch\nimport trackway\n");
    home.write("prices-test.parquet", "");
    let found = home.json(&["init"]);
    assert_eq!((&found["framework"], &found["uses_trackway"]), (&"torch".into(), &true.into()));
    assert_eq!(found["command"], serde_json::json!(["python3", "fit.py"]));
    assert_eq!(found["data"], serde_json::json!([{ "name": "test", "path": "prices-test.parquet" }]));
    assert_eq!(found["path"], "trackway.toml");
}
