//! Files in which frameworks write their metrics themselves.

use serde_json::{Value, json};

use crate::harness::{Home, UNTIL_GO, eventually};

/// Writes what Lightning, mmengine, Keras and Hydra write, without them, and a table of data.
const SCRIPT: &str = r#"
import json, os, time

def rows(path, heading, rows):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as out:
        out.write("\n".join([heading, *rows]) + "\n")

losses = [f"0,{step},{1 / step}," for step in range(10, 110, 10)]
rows("lightning_logs/version_0/metrics.csv", "epoch,step,train_loss", [row[:-1] for row in losses])
rows("lightning_logs/version_0/hparams.yaml", "lr: 0.5", ["layers:", "- 64", "- 32", "seed: 7"])
rows("outputs/.hydra/config.yaml", "model:", ["  depth: 18"])
os.makedirs("vis_data", exist_ok=True)
with open("vis_data/scalars.json", "w") as out:
    for step in range(1, 6):
        out.write(json.dumps({"step": step, "grad_norm": step / 2}) + "\n")
        out.flush()
        time.sleep(0.1)
rows("logs/fit.csv", "epoch;accuracy", [f"{epoch};0,{epoch}" for epoch in range(5)])
rows("tables/data.csv", "step,reward", [f"{step},1" for step in range(50)])
# A new column: the file is rewritten.
rows("lightning_logs/version_0/metrics.csv", "epoch,step,train_loss,val_loss", [*losses, "0,110,,2.5"])
with open("lightning_logs/version_0/metrics.csv", "a") as out:
    out.write("1,120,0.0")
print("train_loss=0.0100")
"#;

/// Proves that metrics and settings of such files are recorded once, with their steps, in place of what was printed of
/// the same name; that a value of the command counts before that of a file; and that a table of data and a row which
/// was cut are said to be left out.
#[test]
fn files_of_metrics_are_recorded() {
    let home = Home::new();
    home.write("train.py", SCRIPT);
    let answer = home.trackway(&["run", "--", "python3", "train.py", "--seed", "3"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let curves = home.sql(
        "select name, origin, count(*) as points, min(step) as first, max(step) as last from effective_metrics \
         where name not like 'system/%' and name <> 'epoch' group by name, origin order by name",
    );
    for (name, points, first, last) in [
        ("accuracy", 5, 0, 4),
        ("grad_norm", 5, 1, 5),
        ("train_loss", 10, 10, 100),
        ("val_loss", 1, 110, 110),
    ] {
        let curve =
            json!({ "name": name, "origin": "files", "points": points, "first": first, "last": last });
        assert!(curves.contains(&curve), "{name}: {curves:?}");
    }
    assert_eq!(curves.len(), 4, "{curves:?}");
    let explained = home.json(&["explain", "last"]);
    let rows = explained["parameters"].as_array().unwrap().iter();
    let parameters: Vec<Value> = rows.map(|row| json!([row["name"], row["value"], row["origin"]])).collect();
    for expected in [
        json!(["layers", "64 32", "files"]),
        json!(["lr", "0.5", "files"]),
        json!(["model.depth", "18", "files"]),
        json!(["seed", "3", "command line"]),
    ] {
        assert!(parameters.contains(&expected), "{expected}: {parameters:?}");
    }
    for expected in ["tables/data.csv", "metrics.csv: its last line has no end"] {
        assert!(answer.stderr.contains(expected), "{expected}: {}", answer.stderr);
    }
    let read = home.sql("select message from events where kind = 'metric_file_read'");
    assert_eq!(read.len(), 5, "{read:?}");
}

/// Proves that the log of another process in the folder of the attempt is not read, and that of the attempt is, while it runs.
#[test]
fn a_log_of_another_process_is_not_read() {
    let home = Home::new();
    let row = "mkdir -p own; echo step,loss > own/metrics.csv; \
               until [ -e go ]; do i=$((i + 1)); echo $i,0.5 >> own/metrics.csv; sleep 0.2; done";
    let supervisor = home.spawn(&["run", "--", "sh", "-c", row]);
    eventually("the log of the attempt", || home.path().join("own/metrics.csv").exists().then_some(()));
    let rows = r"mkdir other; exec 3> other/metrics.csv; printf 'step,loss\n1,9\n2,9\n' >&3";
    let mut other = std::process::Command::new("sh")
        .args(["-c", &format!("{rows}; {UNTIL_GO}")])
        .current_dir(home.path())
        .spawn()
        .expect("a shell");
    let points = |value: f64| -> Option<u64> {
        let asked =
            format!("select count(*) as points from metrics where name like '%loss' and value = {value}");
        let rows: Value = serde_json::from_str(&home.trackway(&["sql", "--json", &asked]).stdout).ok()?;
        rows[0]["points"].as_u64()
    };
    eventually("the points", || points(0.5).filter(|points| *points > 5));
    home.go();
    assert!(other.wait().unwrap().success());
    assert!(supervisor.wait_with_output().unwrap().status.success());
    assert_eq!(points(9.0), Some(0));
}
