//! Finding, comparing, importing and clearing away runs.

use serde_json::{Value, json};

use crate::evaluations::{evaluate, trained};
use crate::harness::{Home, UNTIL_GO, eventually};

/// A run that prints a falling loss.
fn run(home: &Home, name: &str, steps: u32, start: f64) {
    let lines: Vec<String> =
        (1..=steps).map(|step| format!("echo 'step {step}: loss {}'", start / f64::from(step))).collect();
    let script = format!("{}; echo 'val_loss={start}'", lines.join("; "));
    let (code, _) = home.run_script(&["--name", name], &script);
    assert_eq!(code, 0);
}

fn names(found: &serde_json::Value) -> Vec<String> {
    let runs = found.as_array().unwrap_or_else(|| panic!("runs, not {found}"));
    runs.iter().map(|run| run["name"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Proves that runs are found by metrics and columns, sorted by metrics, and shown with the requested values.
#[test]
fn runs_are_searched_and_sorted() {
    let home = Home::new();
    run(&home, "small", 3, 1.0);
    run(&home, "large", 4, 2.0);
    assert_eq!(home.run_script(&["--name", "broken"], "exit 3").0, 4);
    let found = |arguments: &[&str]| home.json(&[&["runs"], arguments].concat());
    assert_eq!(names(&found(&[])), ["broken", "large", "small"]);
    assert_eq!(names(&found(&["--where", "val_loss < 1.5"])), ["small"]);
    assert_eq!(
        names(&found(&["--where", "min.loss <= 0.5 or state = \"failed\"", "--sort", "name"])),
        ["broken", "large", "small"]
    );
    assert_eq!(
        names(&found(&["--where", "`val_loss` is not null", "--sort", "-val_loss"])),
        ["large", "small"]
    );
    let sorted = found(&["--sort", "val_loss desc", "--columns", "first.loss,attempt_count", "--limit", "2"]);
    assert_eq!(names(&sorted), ["large", "small"]);
    assert_eq!(
        sorted[0]["values"],
        serde_json::json!({"first.loss": 2.0, "attempt_count": 1, "val_loss": 2.0})
    );
    let page = found(&["--sort", "name", "--limit", "2"]);
    assert_eq!(
        (names(&page), &page[0]["next"]),
        (vec!["broken".into(), "large".into()], &serde_json::Value::Null)
    );
    assert_eq!(page[1]["next"], page[1]["run_id"]);
    let next = found(&["--sort", "name", "--limit", "2", "--after", page[1]["next"].as_str().unwrap()]);
    assert_eq!((names(&next), &next[0]["next"]), (vec!["small".into()], &serde_json::Value::Null));
    let note = home.trackway(&["runs", "--limit", "1"]).stderr;
    assert!(note.contains("--after run_"), "{note}");
    assert_eq!(home.trackway(&["runs", "--after", "absent"]).code, 6);
    let attempts = home.json(&["attempts", "--limit", "2"]);
    let last = attempts[1]["attempt_id"].as_str().unwrap();
    assert_eq!((&attempts[0]["next"], attempts[1]["next"].as_str()), (&serde_json::Value::Null, Some(last)));
    assert_eq!(home.json(&["attempts", "--after", last]).as_array().unwrap().len(), 1);
    let note = home.trackway(&["attempts", "--limit", "2"]).stderr;
    assert!(note.contains("1 attempt after these") && note.contains(&format!("--after {last}")), "{note}");
    assert_eq!(home.trackway(&["attempts", "--limit", "0"]).code, 2);
    let table = home.trackway(&["runs", "--columns", "name,val_loss", "--where", "name like 'la%'"]);
    assert!(table.stdout.contains("large  2\n"), "{}", table.stdout);
    assert!(!table.stdout.contains("small"), "{}", table.stdout);

    for (condition, expected) in [
        ("val_los < 1", "did you mean `val_loss`?"),
        ("val_loss <", "invalid condition"),
        ("val_loss + 1", "not a condition"),
        ("val_loss < 1; drop table runs", "unexpected `"),
    ] {
        let answer = home.trackway(&["runs", "--where", condition]);
        assert_eq!(answer.code, 2, "{condition}: {}", answer.stderr);
        assert!(answer.stderr.contains(expected), "{condition}: {}", answer.stderr);
    }
}

/// Proves that runs are sorted by, filtered by and shown with what their newest evaluations found, over all rows and over a slice
/// whose name has a blank; that runs without it come last in either direction; that what no evaluation has is refused with the
/// nearest name; and that a comparison has the same numbers by the same names.
#[test]
fn runs_are_sorted_by_what_evaluations_found() {
    let reports = r#"echo "{\"grade\": 0.$TRACKWAY_CHECKPOINT_STEP, \"slices\": {\"old men\": {\"grade\": 0.9}}}" > "$TRACKWAY_EVALUATION_OUT/metrics.json""#;
    let home = trained(reports, "");
    let unknown = |arguments: &[&str], expected: &str| {
        let answer = home.trackway(&[&["runs"], arguments].concat());
        assert!(answer.code == 2 && answer.stderr.contains(expected), "{arguments:?}: {}", answer.stderr);
    };
    unknown(&["--sort", "-eval.grade"], "`trackway eval run RUN`");
    let evaluated = |checkpoint: &str| {
        let receipt = evaluate(&home, &["--checkpoint", checkpoint]).1;
        assert_eq!(receipt["state"], "completed", "{receipt}");
        receipt["run_id"].as_str().unwrap().to_owned()
    };
    let first = evaluated("3");
    assert_eq!(evaluated("2"), first);
    assert_eq!(home.json(&["run", "job.toml"])["state"], "completed");
    let second = evaluated("1");
    assert_eq!(home.run_script(&["--name", "plain"], "echo 'step 1: loss 0.5'").0, 0);
    let found = |arguments: &[&str]| home.json(&[&["runs"], arguments].concat());
    let grades = |found: &Value| -> Vec<Value> {
        let rows = found.as_array().unwrap().iter();
        rows.map(|run| json!([run["run_id"], run["values"]["eval.grade"]])).collect()
    };
    let plain = found(&["--where", "name = 'plain'"])[0]["run_id"].clone();
    let [best, worst, none] = [json!([first, 0.2]), json!([second, 0.1]), json!([plain, null])];
    assert_eq!(grades(&found(&["--sort", "-eval.grade"])), [best.clone(), worst.clone(), none.clone()]);
    assert_eq!(grades(&found(&["--sort", "eval.grade"])), [worst, best.clone(), none]);
    let condition = "eval.grade > 0.15 and eval.slice.\"old men\".grade = 0.9";
    assert_eq!(grades(&found(&["--where", condition])), [best]);
    let table =
        home.trackway(&["runs", "--sort", "-eval.grade", "--columns", "name,eval.slice.`old men`.grade"]);
    let lines: Vec<Vec<&str>> = table.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0][1..], ["name", "eval.slice.old", "men.grade", "eval.grade"], "{}", table.stdout);
    assert_eq!(lines[1][1..], ["judged", "0.9000", "0.2000"], "{}", table.stdout);
    let usual = home.trackway(&["runs", "--sort", "-eval.grade", "--limit", "1"]).stdout;
    assert!(usual.contains("eval.grade") && usual.contains("0.2000"), "{usual}");
    unknown(&["--sort", "-eval.grde"], "did you mean `eval.grade`?");
    unknown(&["--where", "grade > 0.1"], "did you mean `eval.grade`?");
    unknown(&["--columns", "eval.slice.old man.grade"], "did you mean `eval.slice.old men.grade`?");

    let compare = ["compare", second.as_str(), first.as_str(), "--metrics"];
    let compared = home.json(&[&compare[..], &["eval.grade,eval.slice.`old men`.grade"]].concat());
    let shown = json!([{ "name": "eval.grade", "values": [0.1, 0.2] }, { "name": "eval.slice.old men.grade", "values": [0.9, 0.9] }]);
    assert_eq!(compared["evaluations"], shown, "{compared}");
    let table = home.trackway(&[&compare[..], &["eval.grade"]].concat()).stdout;
    assert!(table.contains("eval.grade") && table.contains("0.2000"), "{table}");
    let wrong = home.trackway(&[&compare[..], &["eval.grde"]].concat());
    assert!(wrong.code == 2 && wrong.stderr.contains("did you mean `eval.grade`?"), "{}", wrong.stderr);
}

/// Proves that what was left out of an output is in `explain` with its number and line and on stderr of `logs`, that it
/// makes a strict reading fail, and that nothing does where all was read.
#[test]
fn what_is_left_out_of_an_output_is_said() {
    let home = Home::new();
    let script = "echo step 1 loss 1,234; head -c 70000 /dev/zero | tr '\\0' 1; echo; echo done";
    assert_eq!(home.run_script(&["--name", "cut"], script).0, 0);
    let explained = home.json(&["explain", "cut"]);
    let mut notes: Vec<Value> = explained["reading"]
        .as_array()
        .unwrap()
        .iter()
        .map(|note| json!([note["kind"], note["count"], note["file"], note["row"]]))
        .collect();
    notes.sort_by_key(ToString::to_string);
    let expected = [json!(["long_lines", 1, "stdout.log", 2]), json!(["unclear_commas", 1, "stdout.log", 1])];
    assert_eq!(notes, expected, "{}", explained["reading"]);
    let page = home.trackway(&["explain", "cut"]).stdout;
    assert!(page.contains("Left out") && page.contains("1 line is longer than 64 KiB"), "{page}");
    let logs = home.trackway(&["logs", "cut", "--tail", "1"]);
    assert_eq!((logs.code, logs.stdout.as_str()), (0, "done\n"));
    assert!(logs.stderr.contains("before these lines") && logs.stderr.contains("64 KiB"), "{}", logs.stderr);
    let strict = home.trackway(&["logs", "cut", "--strict"]);
    assert!(strict.code == 3 && strict.stderr.contains("--strict wants that"), "{}", strict.stderr);
    assert_eq!(home.run_script(&["--name", "whole"], "echo step 1 loss 0.5").0, 0);
    assert_eq!(home.trackway(&["logs", "whole", "--strict"]).code, 0);
}

/// Proves that a comparison has figures and curves of every run, names what differs, and is one page without a script.
#[test]
fn runs_are_compared() {
    let home = Home::new();
    run(&home, "small", 3, 1.0);
    run(&home, "large", 4, 2.0);
    let compared = home.json(&["compare", "small", "large"]);
    assert_eq!(compared["runs"][1]["name"], "large");
    let metric = |name: &str| {
        let rows = compared["metrics"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name} in {rows:?}")).clone()
    };
    let loss = metric("loss");
    assert_eq!(loss["values"][1]["point_count"], 4);
    assert_eq!((&loss["values"][1]["last"], &loss["values"][1]["min"]), (&0.5.into(), &0.5.into()));
    assert_eq!((&loss["values"][1]["min_step"], &loss["values"][1]["max_step"]), (&4.into(), &1.into()));
    let curve = &compared["curves"].as_array().unwrap().iter().find(|curve| curve["name"] == "loss").unwrap()
        ["series"];
    assert_eq!(curve[0].as_array().unwrap().len(), 3);
    assert_eq!(curve[1][0], serde_json::json!([1, 2.0]));
    let differing: Vec<&str> = compared["environment"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["differs"] == true)
        .filter_map(|row| row["name"].as_str())
        .collect();
    assert_eq!(differing, ["command"]);

    let file = home.path().join("comparison.html");
    let answer = home.trackway(&["compare", "small", "large", "--html", file.to_str().unwrap()]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let page = std::fs::read_to_string(file).unwrap();
    assert!(page.contains("<svg") && page.contains("val_loss") && !page.contains("<script"), "{page}");
    let table = home.trackway(&["compare", "small", "large"]);
    assert!(
        table.stdout.contains('█') && table.stdout.contains("0.5000 (0.5000 … 2.0000)"),
        "{}",
        table.stdout
    );
    assert_eq!(home.trackway(&["compare", "small", "small"]).code, 2);
    assert_eq!(home.trackway(&["compare", "small", "nobody"]).code, 6);
}

/// The parameters of the last attempt of a run: name, value and origin.
fn parameters(home: &Home, run: &str) -> Vec<[Value; 3]> {
    let explained = home.json(&["explain", run]);
    let rows = explained["parameters"].as_array().unwrap().iter();
    rows.map(|row| ["name", "value", "origin"].map(|key| row[key].clone())).collect()
}

/// Proves that parameters and tags that were given are recorded with their origin, with a run file and without, take precedence
/// over the command's arguments and not over the script's own, are found while the run runs, and leave the config as it is.
#[test]
fn given_parameters_and_tags_are_recorded() {
    let home = Home::new();
    let script =
        format!("echo seed = 3; echo depth = 4; echo width = 5; echo 'step 1: loss 0.5'; {UNTIL_GO}");
    let options = ["--param", "lr=3e-4", "--param", "amp=True", "--param", "seed=9", "--tag", "sweep=august"];
    let command = ["--", "sh", "-c", &script, "train", "--lr", "0.5", "batch=16"];
    let supervisor = home.spawn(&[&["run", "--name", "bare"], &options[..], &command[..]].concat());
    let search = ["runs", "--where", "param.lr < 0.1 and tag.sweep = 'august' and param.batch = 16"];
    eventually("the running run", || {
        let answer = home.trackway(&[&search[..], &["--json"]].concat());
        let found: Value = serde_json::from_str(&answer.stdout).ok()?;
        found.as_array().filter(|found| found.len() == 1).map(|_| ())
    });
    home.go();
    assert!(supervisor.wait_with_output().unwrap().status.success());
    assert_eq!(names(&home.json(&search)), ["bare"]);
    let row = |name: &str, value: &str, origin: &str| [json!(name), json!(value), json!(origin)];
    let expected = [
        row("amp", "true", "given"),
        row("batch", "16", "command line"),
        row("depth", "4", "stdout"),
        row("lr", "3e-4", "given"),
        row("seed", "3", "stdout"),
        row("width", "5", "stdout"),
    ];
    assert_eq!(parameters(&home, "bare"), expected);
    assert_eq!(home.json(&["explain", "bare"])["tags"], json!([{ "name": "sweep", "value": "august" }]));
    assert!(home.trackway(&["explain", "bare"]).stdout.contains("3e-4 (given)"));

    let file =
        "[run]\nname = \"filed\"\ncommand = [\"true\"]\nparameters = { lr = 0.1, \"optim/beta\" = 0.9 }\n";
    home.write("filed.toml", file);
    for options in [&[][..], &["--param", "lr=0.2", "--param", "optim.eps=1e-8", "--tag", "a=\"b\""]] {
        assert_eq!(home.trackway(&[&["run", "filed.toml"], options].concat()).code, 0);
    }
    let expected =
        [row("lr", "0.2", "given"), row("optim.eps", "1e-8", "given"), row("optim/beta", "0.9", "given")];
    assert_eq!(parameters(&home, "last"), expected);
    let configs = home.sql("select distinct config_sha256 from runs where name = 'filed'");
    assert_eq!(configs.len(), 1);
    let compared = home.trackway(&["compare", "bare", "last"]).stdout;
    assert!(compared.contains("optim.eps") && compared.contains("3e-4"), "{compared}");
}

/// Proves that a pair that cannot be recorded is a usage error that names the option and what is wrong, and that nothing is launched.
#[test]
fn wrong_pairs_are_refused() {
    let home = Home::new();
    for (option, pair, expected) in [
        ("--param", "lr", "--param: `lr` has no `=`: write NAME=VALUE"),
        ("--param", "=1", "--param: invalid name ``"),
        ("--tag", "a b=1", "--tag: invalid name `a b`"),
    ] {
        let answer = home.trackway(&["run", option, pair, "--", "true"]);
        assert_eq!(answer.code, 2, "{}", answer.stderr);
        assert!(answer.stderr.contains(expected) && answer.stderr.contains("hint: "), "{}", answer.stderr);
    }
    home.write("bad.toml", "[run]\nname = \"bad\"\ncommand = [\"true\"]\ntags = { \"a b\" = 1 }\n");
    let answer = home.trackway(&["run", "bad.toml"]);
    assert_eq!(answer.code, 2, "{}", answer.stderr);
    assert!(
        answer.stderr.contains("bad.toml:4") && answer.stderr.contains("invalid name `a b`"),
        "{}",
        answer.stderr
    );
    assert_eq!(home.json(&["runs"]), json!([]));
}

/// Proves that only what the rule does not keep is deleted, that nothing is deleted without --yes, and that the
/// receipts stay.
#[test]
fn old_runs_lose_their_records() {
    let home = Home::new();
    run(&home, "first", 3, 1.0);
    run(&home, "second", 3, 2.0);
    assert_eq!(home.trackway(&["gc"]).code, 2);
    assert_eq!(home.trackway(&["gc", "--older-than", "soon"]).code, 2);
    let young = home.json(&["gc", "--older-than", "1d", "--yes"]);
    assert_eq!((young["gone"].as_array().unwrap().len(), &young["kept"][0]["why"]), (0, &"too young".into()));
    let attempts = || std::fs::read_dir(home.state().join("attempts")).unwrap().count();
    let dry = home.json(&["gc", "--keep-last", "1"]);
    assert_eq!((&dry["dry_run"], &dry["gone"][0]["name"]), (&true.into(), &"first".into()));
    assert!(dry["freed_bytes"].as_u64().unwrap() > 0);
    assert_eq!(attempts(), 2);
    let done = home.json(&["gc", "--keep-last", "1", "--yes"]);
    assert_eq!((done["gone"].as_array().unwrap().len(), &done["kept"][0]["name"]), (1, &"second".into()));
    assert_eq!(attempts(), 1);
    assert_eq!(home.json(&["gc", "--keep-last", "1", "--yes"])["gone"].as_array().unwrap().len(), 0);
    assert_eq!(names(&home.json(&["runs", "--where", "val_loss = 1"])), ["first"]);
    assert_eq!(home.trackway(&["explain", "first"]).code, 0);
    let events = home.sql("select count(*) as n from events where kind = 'records_cleared'");
    assert_eq!(events[0]["n"], 1);
    assert!(
        home.sql("select step from metrics where name = 'loss'")
            .iter()
            .all(|row| row["step"].as_u64().is_some())
    );
}

/// Proves that points which a writer of event files took back no longer count, during the run and afterwards, and that
/// all of them are kept.
#[test]
fn a_restart_of_a_writer_makes_points_void() {
    let home = Home::new();
    let vectors =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../base/formats/tests/vectors/tensorboard/restarted");
    let script = format!(
        "mkdir logs; cat {vectors}/events* > logs/events.out.tfevents.$(date +%s).host; until [ -e done ]; do sleep 0.1; done"
    );
    let supervisor = home.spawn(&["run", "--", "sh", "-c", &script]);
    let counts = |table: &str| -> Option<(u64, u64)> {
        let asked = format!(
            "select count(*) as points, count(distinct step) as steps from {table} where name = 'loss'"
        );
        let rows: serde_json::Value =
            serde_json::from_str(&home.trackway(&["sql", "--json", &asked]).stdout).ok()?;
        Some((rows[0]["points"].as_u64()?, rows[0]["steps"].as_u64()?))
    };
    let all = eventually("the points", || counts("metrics").filter(|(points, _)| *points == 14));
    let effective = counts("effective_metrics").unwrap();
    assert!(effective.0 == effective.1 && effective.0 < 14, "{effective:?}");
    std::fs::write(home.path().join("done"), "").unwrap();
    assert!(supervisor.wait_with_output().unwrap().status.success());
    assert_eq!((counts("metrics"), counts("effective_metrics")), (Some(all), Some(effective)));
}

/// Proves that an infinite value is neither the least nor the greatest of a comparison, that filters which exclude one
/// another find nothing, and that a run which failed is not called the same result.
#[test]
fn what_is_not_finite_or_not_done_is_not_compared() {
    let home = Home::new();
    let print = |name: &str, values: &[&str], code: i32| {
        let lines: Vec<String> = (1..)
            .zip(values)
            .map(|(step, value)| format!(r#"echo '{{"step": {step}, "loss": {value}}}'"#))
            .collect();
        let script = format!("{}; exit {code}", lines.join("; "));
        home.trackway(&["run", "--name", name, "--", "sh", "-c", &script]).code
    };
    assert_eq!(print("odd", &["Infinity", "2.0", "-Infinity", "NaN", "1.5"], 0), 0);
    assert_eq!(print("even", &["3.0", "2.5"], 0), 0);
    let compared = home.json(&["compare", "odd", "even", "--metrics", "loss"]);
    let loss = &compared["metrics"][0]["values"][0];
    assert_eq!((&loss["min"], &loss["max"]), (&1.5.into(), &2.0.into()), "{loss}");
    assert_eq!((&loss["min_step"], &loss["max_step"]), (&5.into(), &2.into()), "{loss}");

    let ids: Vec<String> = home
        .sql("select run_id from runs")
        .iter()
        .map(|row| row["run_id"].as_str().unwrap().to_owned())
        .collect();
    let asked =
        format!("select count(*) as n from metrics where run_id = '{}' and run_id = '{}'", ids[0], ids[1]);
    assert_eq!(home.sql(&asked)[0]["n"], 0);

    for code in [1, 1] {
        print("fails", &["3.0"], code);
    }
    let page = home.trackway(&["explain", "last"]).stdout;
    let same = page.split("\nSame config and seed\n").nth(1).unwrap_or_else(|| panic!("{page}"));
    assert!(same.lines().next().unwrap().contains("not comparable: that run ended as `"), "{page}");
}
