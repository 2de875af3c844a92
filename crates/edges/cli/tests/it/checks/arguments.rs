//! The arguments of a command as parameters of its run.

use crate::harness::{Home, eventually};

fn names(found: &serde_json::Value) -> Vec<&str> {
    let runs = found.as_array().unwrap_or_else(|| panic!("runs, not {found}"));
    runs.iter().map(|run| run["name"].as_str().unwrap_or_default()).collect()
}

/// Proves that runs are found, sorted, compared and explained by the arguments of their commands, also a run that was
/// killed before it printed anything.
#[test]
fn arguments_are_parameters() {
    let home = Home::new();
    home.write("train.sh", "echo \"step 1: loss 0.5\"\n");
    home.write("killed.sh", "kill -9 $$\n");
    let long = "a-name-of-a-data-set-that-is-longer-than-any-column-of-a-table";
    for (name, script, lr) in
        [("low", "train.sh", "0.1"), ("high", "train.sh", "0.3"), ("killed", "killed.sh", "0.05")]
    {
        let arguments = [
            "run", "--name", name, "--", "sh", script, "--lr", lr, "--amp", "--data-set", long,
            "model.depth=3",
        ];
        home.trackway(&arguments);
    }
    let found = home.json(&[
        "runs",
        "--where",
        "param.lr < 0.2 and param.amp = 'true'",
        "--columns",
        "name,param.lr,param.model.depth",
        "--sort",
        "param.lr",
    ]);
    assert_eq!(names(&found), ["killed", "low"]);
    assert_eq!(
        found[1]["values"],
        serde_json::json!({"name": "low", "param.amp": "true", "param.lr": 0.1, "param.model.depth": 3.0})
    );
    let table = home.trackway(&["compare", "low", "high", "--all"]).stdout;
    assert!(table.contains(long), "{table}");
    let compared = home.json(&["compare", "low", "high"]);
    let parameters = compared["parameters"].as_array().unwrap();
    let lr = parameters.iter().find(|row| row["name"] == "lr").unwrap();
    assert_eq!(*lr, serde_json::json!({"name": "lr", "differs": true, "values": ["0.1", "0.3"]}));
    let page = home.json(&["explain", "high"]);
    assert_eq!(
        page["parameters"],
        serde_json::json!([
            {"name": "amp", "value": "true", "origin": "command line"},
            {"name": "data_set", "value": long, "origin": "command line"},
            {"name": "lr", "value": "0.3", "origin": "command line"},
            {"name": "model.depth", "value": "3", "origin": "command line"},
        ])
    );
    let text = home.trackway(&["explain", "high"]).stdout;
    assert!(text.contains("\nParameters\n  amp          true (command line)\n"), "{text}");
}

/// Proves that a running run is found by its arguments, that secrets among them are not, and that the total of steps in
/// them is known.
#[test]
fn arguments_of_a_running_run() {
    let home = Home::new();
    home.write("train.sh", "echo 'step 1: loss 0.5'; until [ -e done ]; do sleep 0.1; done\n");
    let supervisor = home.spawn(&[
        "run", "--name", "live", "--", "sh", "train.sh", "--lr", "0.1", "--max-steps", "40", "--api-key",
        "hunter2hunter2",
    ]);
    eventually("the run", || (home.trackway(&["watch", "live", "--once"]).code == 0).then_some(()));
    let watched = eventually("the step", || {
        let watched = home.json(&["watch", "live", "--once"]);
        watched["progress"]["step"].as_u64().map(|_| watched)
    });
    assert_eq!((&watched["progress"]["step"], &watched["total_steps"]), (&1.into(), &40.into()), "{watched}");
    let found = home
        .json(&["runs", "--where", "param.lr < 0.2", "--columns", "name,param.lr", "--sort", "-param.lr"]);
    assert_eq!((names(&found), &found[0]["values"]["param.lr"]), (vec!["live"], &0.1.into()));
    let page = home.json(&["explain", "live"]);
    assert_eq!(page["parameters"].as_array().unwrap().len(), 3, "{}", page["parameters"]);
    std::fs::write(home.path().join("done"), "").unwrap();
    assert!(supervisor.wait_with_output().unwrap().status.success());
    let page = home.json(&["explain", "live"]).to_string();
    assert!(page.contains("max_steps") && !page.contains("hunter2"), "{page}");
}
