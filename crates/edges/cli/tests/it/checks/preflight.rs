//! `trackway preflight`, and the launch after it.

use std::path::Path;

use serde_json::Value;

use crate::harness::{Answer, Home};

/// Rows of two classes that no column predicts, none of them twice.
fn table(rows: std::ops::Range<u32>) -> String {
    // Row numbers mixed well (Wellons' lowbias32), so that columns are as if drawn.
    let drawn = |number: u32, salt: u32, below: u32| {
        let mut mixed = number.wrapping_add(salt.wrapping_mul(0x9e37_79b9));
        mixed = (mixed ^ (mixed >> 16)).wrapping_mul(0x7feb_352d);
        mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0x846c_a68b);
        (mixed ^ (mixed >> 16)) % below
    };
    let row = |number: u32| {
        let (age, spent) = (20 + drawn(number, 1, 50), drawn(number, 2, 1000));
        let plan = ["free", "pro", "team"][drawn(number, 3, 3) as usize];
        let stays = ["no", "yes"][drawn(number, 4, 2) as usize];
        format!("{age},{spent}.{number},{plan},{stays}\n")
    };
    std::iter::once("age,spent,plan,stays\n".to_owned()).chain(rows.map(row)).collect()
}

pub fn run_file(home: &Home, more: &str) {
    home.write("train.csv", &table(0..3000));
    home.write("test.csv", &table(3000..4500));
    let text = format!(
        "[run]\nname = \"churn\"\ncommand = [\"sh\", \"-c\", \"echo trained\"]\nseed = 7\n\n[data.train]\npath = \"train.csv\"\n\
         label = \"stays\"\n\n[data.test]\npath = \"test.csv\"\n{more}"
    );
    home.write("run.toml", &text);
}

fn check<'d>(document: &'d Value, name: &str) -> &'d Value {
    let checks = document["checks"].as_array().expect("checks");
    checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no `{name}` in {document:#}"))
}

/// The text with its blanks and durations made alike. Steps end in any order, so lines of stderr are sorted.
fn still(text: &str) -> String {
    let is_number = |word: &str| word.trim_start_matches('(').parse::<f64>().is_ok();
    let is_unit = |word: &str| matches!(word.trim_end_matches([')', ':']), "ms" | "s");
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_duration =
            |at: usize| is_number(words[at]) && words.get(at + 1).is_some_and(|unit| is_unit(unit));
        let shown = (0..words.len()).filter(|at| *at == 0 || !is_duration(at - 1));
        let shown: Vec<&str> = shown.map(|at| if is_duration(at) { "TIME" } else { words[at] }).collect();
        shown.join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn sorted(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

fn transcript(answer: &Answer) -> String {
    format!(
        "exit code {}\n--- stdout\n{}\n--- stderr\n{}",
        answer.code,
        still(&answer.stdout),
        sorted(&still(&answer.stderr))
    )
}

/// Proves that a clean run passes without a `[preflight]`, is launched, and has its checks in the ledger, in SQL and in
/// `explain`.
#[test]
fn a_clean_run_passes_and_is_launched() {
    let home = Home::new();
    run_file(&home, "");
    let report = home.json(&["preflight", "run.toml"]);
    assert_eq!(report["verdict"], "pass", "{report:#}");
    assert_eq!(check(&report, "leakage.groups")["verdict"], "not_applicable");
    assert_eq!(report["quote"]["sets"].as_array().map(Vec::len), Some(2));
    assert!(home.sql("select * from preflight_checks").is_empty(), "nothing was run");
    let answer = home.trackway(&["run", "run.toml"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(answer.stderr.contains("pre-flight: pass (") && answer.stdout.contains("trained"));
    let rows = home.sql("select check_name, verdict, blocks from preflight_checks order by place");
    assert_eq!(
        (rows[0]["check_name"].as_str(), rows[0]["verdict"].as_str()),
        (Some("run.command"), Some("not_applicable"))
    );
    assert_eq!(rows.len(), report["checks"].as_array().unwrap().len());
    let page = home.trackway(&["explain", "last"]);
    assert!(page.stdout.contains("Pre-flight") && page.stdout.contains(" passed, "), "{}", page.stdout);
}

/// Proves that a script and an evaluator that do not exist are found before the launch, and that a script which cannot
/// request checkpoints is warned about.
#[test]
fn what_the_commands_name_is_looked_for() {
    let home = Home::new();
    let text = "[run]\nname = \"r\"\ncommand = [\"python3\", \"nosuch.py\"]\n";
    home.write("r.toml", text);
    let blocked = home.trackway(&["run", "r.toml"]);
    assert_eq!(blocked.code, 3, "{}", blocked.stderr);
    assert!(blocked.stderr.contains("there is no file `nosuch.py`"), "{}", blocked.stderr);
    home.write("train.py", "print('no checkpoints here')\n");
    let text = "[run]\nname = \"r\"\ncommand = [\"python3\", \"train.py\"]\n[checkpoint]\nevery = { steps = 5 }\n\
                [evaluate]\ncommand = [\"python3\", \"judge.py\"]\nlabel = \"y\"\n";
    home.write("r.toml", text);
    let report = home.trackway(&["preflight", "--json", "r.toml"]);
    let report: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!(check(&report, "run.command")["verdict"], "pass");
    let judge = check(&report, "evaluate.command");
    assert!(judge.to_string().contains("there is no file `judge.py`"), "{judge}");
    let saves = check(&report, "config.checkpointing");
    assert_eq!(saves["verdict"], "warn", "{saves}");
    assert!(saves.to_string().contains("does not import `trackway`"), "{saves}");
    let run = home
        .trackway(&["run", "--skip-preflight", "--why", "a test", "r.toml", "--set", "evaluate.after=false"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let page = home.trackway(&["explain", "last"]).stdout;
    assert!(page.contains("the script does not use the package `trackway`"), "{page}");
}

/// Proves that the data of a run without a reference is compared with that of the last good run of its name: the finding names
/// that run, lost rows are reported, every column is in the ledger, and before there is such a run nothing is claimed.
#[test]
fn data_is_compared_with_the_last_good_run() {
    let home = Home::new();
    home.write("train.csv", &table(0..3000));
    let run_file = |command: &str| {
        format!(
            "[run]\nname = \"churn\"\ncommand = [\"{command}\"]\nseed = 7\n\n[data.train]\npath = \"train.csv\"\nlabel = \"stays\"\n"
        )
    };
    home.write("run.toml", &run_file("true"));
    let first = home.json(&["preflight", "run.toml"]);
    let drift = check(&first, "data.drift");
    assert_eq!(drift["verdict"], "not_applicable", "{drift}");
    assert!(drift["why"].as_str().unwrap().contains("no good run of `churn`"), "{drift}");
    assert_eq!(home.trackway(&["run", "run.toml"]).code, 0);
    let same = home.json(&["preflight", "run.toml"]);
    assert_eq!(check(&same, "data.drift")["verdict"], "pass", "{same:#}");

    // The data of a run that failed is not a reference.
    let older = |line: &str| match line.split_once(',').map(|(age, rest)| (age.parse::<u32>(), rest)) {
        Some((Ok(age), rest)) => format!("{},{rest}\n", age + 40),
        _ => format!("{line}\n"),
    };
    home.write("train.csv", &table(3000..4000).lines().map(older).collect::<String>());
    home.write("failing.toml", &run_file("false"));
    assert_eq!(home.trackway(&["run", "failing.toml"]).code, 4);
    let good = home.sql("select run_id from runs where state = 'completed'")[0]["run_id"].clone();
    let good = good.as_str().unwrap();
    let report = home.json(&["preflight", "run.toml"]);
    let drift = check(&report, "data.drift");
    assert_eq!(
        (drift["verdict"].as_str(), &report["verdict"]),
        (Some("warn"), &Value::from("warn")),
        "{drift}"
    );
    let messages: Vec<&str> =
        drift["findings"].as_array().unwrap().iter().map(|it| it["message"].as_str().unwrap()).collect();
    let volume = format!("`train` has 1000 rows, 3000 in the last good run ({good}): -67 %");
    assert!(messages.contains(&volume.as_str()), "{messages:#?}");
    let of_age =
        format!("`age` of `train` is not distributed as in `train` of the last good run of `churn` ({good})");
    assert!(messages.iter().any(|it| it.starts_with(&of_age)), "{messages:#?}");

    assert_eq!(home.trackway(&["run", "run.toml"]).code, 0);
    let rows = home.sql(
        "select d.* from drift_results d join runs r on r.run_id = d.run_id where r.state = 'completed' order by column_name",
    );
    let names: Vec<_> = rows.iter().map(|row| row["column_name"].as_str().unwrap()).collect();
    assert_eq!(names, ["age", "plan", "spent", "stays"]);
    let age = &rows[0];
    let text = |name: &str| age[name].as_str().unwrap_or_default().to_owned();
    assert_eq!(
        (text("data_set"), text("compared_with"), text("reference")),
        ("train".into(), "last_good_run".into(), "train".into())
    );
    assert_eq!(
        (text("reference_run_id"), text("verdict"), text("test")),
        (good.into(), "warn".into(), "kolmogorov_smirnov".into())
    );
    assert_eq!((age["reference_rows"].as_u64(), age["rows"].as_u64()), (Some(3000), Some(1000)));
    assert!(
        age["statistic"].as_f64() > age["threshold"].as_f64() && age["p_value"].as_f64() < Some(0.01),
        "{age}"
    );
    assert_eq!((rows[3]["role"].as_str(), rows[3]["verdict"].as_str()), (Some("label"), Some("pass")));

    // Of the statistics of both data sets those of the last good run stay, once they are older than a day.
    let profiles = home.state().join("data/run-profiles");
    let kept =
        || std::fs::read_dir(&profiles).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let collect = ["gc", "--older-than", "90d", "--yes"];
    assert_eq!((home.json(&collect)["leftovers"].as_array().unwrap().len(), kept().len()), (0, 2));
    let two_days_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(2 * 86_400);
    for path in kept() {
        std::fs::File::options().append(true).open(path).unwrap().set_modified(two_days_ago).unwrap();
    }
    let collected = home.json(&collect);
    let why = &collected["leftovers"][0]["why"];
    assert_eq!(why, "statistics of data that no later run is compared with", "{collected}");
    assert_eq!(kept().len(), 1);
    let again = home.json(&["preflight", "run.toml"]);
    assert_eq!(
        check(&again, "data.drift")["verdict"],
        "pass",
        "it is compared with the data of the last run"
    );
}

/// Proves that what leaves no doubt blocks the launch without any setting: every test row is a training row, and a feature is
/// the label; and that the run file may still say otherwise.
#[test]
fn certain_leakage_blocks_the_launch() {
    let home = Home::new();
    run_file(&home, "");
    let all = table(0..3000);
    let header_and_some: Vec<&str> = all.lines().take(1).chain(all.lines().skip(500).take(400)).collect();
    home.write("test.csv", &(header_and_some.join("\n") + "\n"));
    let blocked = home.trackway(&["run", "run.toml"]);
    assert_eq!(blocked.code, 3, "{}", blocked.stderr);
    assert!(blocked.stderr.contains("400 of 400 test rows (100.00 %) also appear"), "{}", blocked.stderr);
    let lenient = home.trackway(&["preflight", "run.toml", "--set", "preflight.severity.leakage=\"warn\""]);
    assert_eq!(lenient.code, 0, "{}", lenient.stderr);

    run_file(&home, "");
    for (name, rows) in [("train.csv", table(0..3000)), ("test.csv", table(3000..4500))] {
        let copied =
            |line: &str| format!("{},{line}\n", line.rsplit(',').next().unwrap().replace("stays", "copy"));
        home.write(name, &rows.lines().map(copied).collect::<String>());
    }
    let report = home.trackway(&["preflight", "run.toml", "--json"]);
    assert_eq!(report.code, 3, "{}", report.stderr);
    let report: Value = serde_json::from_str(&report.stdout).unwrap();
    let target = check(&report, "leakage.target");
    assert_eq!(
        (target["verdict"].as_str(), target["findings"][0]["check"].as_str()),
        (Some("block"), Some("leakage.label_copy"))
    );
    assert_eq!(check(&report, "data.columns")["verdict"], "block");
}

/// Proves what a person sees of a passing pre-flight.
#[test]
fn a_clean_run_is_reported() {
    let home = Home::new();
    run_file(&home, "");
    insta::assert_snapshot!(transcript(&home.trackway(&["preflight", "run.toml"])));
}

/// Proves that label values that disagree block: exit code 3, nothing launched, the run recorded as blocked at no cost,
/// and `explain` shows why and what to do.
#[test]
fn labels_that_disagree_block_the_launch() {
    let home = Home::new();
    run_file(&home, "");
    home.write("test.csv", &table(3000..4500).replace(",yes\n", ",yes.\n").replace(",no\n", ",no.\n"));
    let answer = home.trackway(&["run", "run.toml"]);
    assert_eq!(answer.code, 3, "{}", answer.stderr);
    assert!(answer.stdout.is_empty() && answer.stderr.contains("differently"), "{}", answer.stderr);
    let runs = home.json(&["runs"]);
    assert_eq!((runs[0]["state"].as_str(), runs[0]["attempt_count"].as_u64()), (Some("blocked"), Some(0)));
    assert_eq!(runs[0]["gpu_seconds"].as_f64(), Some(0.0));
    insta::assert_snapshot!(transcript(&home.trackway(&["preflight", "run.toml"])));
    let page = home.json(&["explain", "last"]);
    assert!(page["attempt"].is_null());
    let text = home.trackway(&["explain", "last"]).stdout;
    for expected in ["blocked", "block data.label", "`no.` as `no`", "--skip data.label --why"] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    let all_the_same = home.trackway(&["run", "run.toml", "--skip", "data.label", "--why", "known"]);
    assert_eq!(all_the_same.code, 0, "{}", all_the_same.stderr);
    let rows = home.sql("select skipped_why from preflight_checks where check_name = 'data.label' and skipped_why is not null");
    assert_eq!(rows[0]["skipped_why"], "known");
    let without = home.trackway(&["run", "run.toml", "--skip-preflight", "--why", "in a hurry"]);
    assert_eq!(without.code, 0, "{}", without.stderr);
    let text = home.trackway(&["explain", "last"]).stdout;
    assert!(text.contains("launched without pre-flight: in a hurry"), "{text}");
}

/// Proves that a test set without rows blocks the launch, and leakage checks alone, as it ends `data check` and
/// `data leakage`, and is named.
#[test]
fn an_empty_test_set_blocks_the_launch() {
    let home = Home::new();
    run_file(&home, "");
    home.write("test.csv", "age,spent,plan,stays\n");
    let leakage = ["data", "leakage", "--train", "train.csv", "--test", "test.csv", "--label", "stays"];
    let only = ["preflight", "run.toml", "--only", "leakage"];
    for arguments in [&["data", "check", "test.csv"][..], &leakage[..], &only[..], &["run", "run.toml"][..]] {
        let answer = home.trackway(arguments);
        assert_eq!(answer.code, 3, "{arguments:?}: {}", answer.stderr);
    }
    let answer = home.trackway(&["preflight", "run.toml", "--json"]);
    let report: Value = serde_json::from_str(&answer.stdout).unwrap();
    let rows = check(&report, "data.rows");
    assert_eq!((&rows["verdict"], &rows["why"]), (&"block".into(), &"0 rows".into()), "{rows:#}");
    let message = rows["findings"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("`test`: the table has no rows"), "{message}");
}

/// Proves that leaving something out needs a reason, that names are held against the checks there are, and that neither
/// launches anything.
#[test]
fn wrong_words_are_refused() {
    let home = Home::new();
    run_file(&home, "");
    for (arguments, expected) in [
        (vec!["preflight", "run.toml", "--skip", "data.drift"], "--why"),
        (vec!["run", "run.toml", "--skip-preflight"], "--why"),
        (vec!["preflight", "run.toml", "--only", "data.lable"], "did you mean `data.label`?"),
        (vec!["run", "run.toml", "--skip", "leakge", "--why", "x"], "did you mean `leakage`?"),
        (vec!["preflight", "run.toml", "--set", "data.train.label=stay"], "did you mean `stays`?"),
    ] {
        let answer = home.trackway(&arguments);
        assert_eq!(answer.code, 2, "{arguments:?}: {}", answer.stderr);
        assert!(answer.stderr.contains(expected), "{arguments:?}: {}", answer.stderr);
    }
    assert!(home.sql("select * from runs").is_empty());
}

/// Proves that what was required and could not run blocks, and so do rules of the run file, which are a demand, unless they are
/// skipped with a reason.
#[test]
fn what_is_required_and_cannot_run_blocks() {
    let home = Home::new();
    let rules = "rules = [\"no_such_column > 3\"]\n";
    run_file(&home, &format!("{rules}\n[preflight]\nrequire = [\"data.schema\"]\n"));
    let answer = home.trackway(&["preflight", "run.toml", "--json"]);
    let report: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!((answer.code, report["verdict"].as_str()), (3, Some("block")), "{report:#}");
    assert_eq!(check(&report, "data.schema")["verdict"], "not_run");
    let unnamed = ["preflight", "run.toml", "--json", "--set", "preflight.require=[]"];
    let answer = home.trackway(&unnamed);
    let report: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!((answer.code, report["verdict"].as_str()), (3, Some("block")), "{report:#}");
    let skipped = [unnamed.as_slice(), &["--skip", "data.schema", "--why", "a test"]].concat();
    assert_eq!(home.trackway(&skipped).code, 0);
    run_file(&home, "\n[preflight]\nrequire = [\"config.warmup\"]\n");
    let report = home.json(&["preflight", "run.toml"]);
    assert_eq!(
        (check(&report, "config.warmup")["verdict"].as_str(), report["verdict"].as_str()),
        (Some("not_run"), Some("block"))
    );
}

/// Proves that groups which one set names are counted in the others too, and that a column to ignore must exist.
#[test]
fn groups_of_any_set_are_counted() {
    let home = Home::new();
    run_file(&home, "group_by = [\"plan\"]\n");
    let document = home.json(&["preflight", "run.toml"]);
    let groups = check(&document, "data.representation");
    assert!(groups["why"].as_str().is_some_and(|why| why.starts_with("3 groups of ")), "{groups:#}");
    run_file(&home, "ignore = \"plam\"\n");
    let wrong = home.trackway(&["preflight", "run.toml"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("did you mean `plan`"), "{}", wrong.stderr);
}

/// Proves that rules of the run file are checked row by row, and that their severity can be raised.
#[test]
fn rules_of_the_run_file_are_checked() {
    let home = Home::new();
    run_file(&home, "rules = [\"age between 17 and 60\"]\n");
    let report = home.json(&["preflight", "run.toml", "--only", "data.schema"]);
    let found = check(&report, "data.schema");
    assert_eq!(
        (found["verdict"].as_str(), report["checks"].as_array().map(Vec::len)),
        (Some("warn"), Some(1))
    );
    assert!(found["findings"][0]["count"].as_u64().is_some_and(|count| count > 0), "{found:#}");
    let strict = "preflight.severity={ \"data.schema\" = \"block\" }";
    let answer = home.trackway(&["preflight", "run.toml", "--only", "data.schema", "--set", strict]);
    assert_eq!(answer.code, 3, "{}", answer.stdout);
}

/// Proves that a rung which ends before a checkpoint is due blocks the launch where the next rung starts from it, with the steps of
/// both, and warns where none does.
#[test]
fn a_rung_that_saves_nothing_is_said_before_the_launch() {
    let home = Home::new();
    home.write("train.py", "import trackway\n");
    let run_file = |warm_start: bool, every: u32| {
        format!(
            "[run]\nname = \"r\"\ncommand = [\"python3\", \"train.py\"]\nseed = 1\n[ladder]\nrungs = [\"1%\", \"10%\", \"100%\"]\n\
             warm_start = {warm_start}\n[checkpoint]\nevery = {{ steps = {every} }}\n[training]\ntotal_steps = 600\n"
        )
    };
    for (warm_start, every, code, verdict) in
        [(true, 50, 3, "block"), (false, 50, 0, "warn"), (true, 6, 0, "pass")]
    {
        home.write("run.toml", &run_file(warm_start, every));
        let answer = home.trackway(&["preflight", "run.toml", "--json"]);
        let report: Value =
            serde_json::from_str(&answer.stdout).unwrap_or_else(|_| panic!("{}", answer.stderr));
        let saves = check(&report, "config.checkpointing");
        assert_eq!((answer.code, saves["verdict"].as_str()), (code, Some(verdict)), "{saves:#}");
        let expected = "the rung of 1% is about 6 steps, and a checkpoint is due after 50";
        assert_eq!(saves["findings"].to_string().contains(expected), every == 50, "{saves:#}");
    }
}

/// Proves the cost of the published examples, and that a budget below it blocks.
#[test]
fn cost_is_reported_and_held_against_the_budget() {
    let home = Home::new();
    for (gpus, usd, hours, total) in [(8, 1.10, 4, 35.20), (256, 3.75, 336, 322_560.0)] {
        run_file(
            &home,
            &format!(
                "\n[resources]\ngpus = {gpus}\nusd_per_gpu_hour = {usd}\n\n[training]\nhours_expected = {hours}\n"
            ),
        );
        let estimate = home.json(&["preflight", "run.toml", "--only", "cost"]);
        assert!((estimate["cost"]["total_usd"].as_f64().unwrap() - total).abs() < 0.005, "{estimate:#}");
        let budget = format!("retry.max_usd={}", total * 0.9);
        let answer = home.trackway(&["preflight", "run.toml", "--only", "cost", "--set", &budget]);
        assert_eq!(answer.code, 3, "{}", answer.stdout);
    }
}

/// Proves that pre-flight names what a launch refuses of its launcher, in the same words, with the same exit code; that the run is
/// recorded as blocked, is explained by that, and is not said to start with a check skipped; that an engine which the settings
/// do not have is refused with the nearest one, and that nothing was launched.
#[test]
fn what_the_launcher_refuses_is_a_check() {
    let home = Home::new();
    home.has_gpus(1);
    run_file(&home, "\n[resources]\ngpus = 3\n\n[launch]\nqueue = \"gpu\"\n");
    let answer = home.trackway(&["preflight", "run.toml", "--json"]);
    let report: Value = serde_json::from_str(&answer.stdout).unwrap();
    let offer = check(&report, "launch.offer");
    assert_eq!((answer.code, offer["verdict"].as_str()), (3, Some("block")), "{report:#}");
    let run = home.trackway(&["run", "run.toml"]);
    assert_eq!(run.code, 3, "{}", run.stderr);
    for (finding, key) in offer["findings"].as_array().unwrap().iter().zip(["launch.queue", "resources.gpus"])
    {
        let [message, action] = ["message", "action"].map(|name| finding[name].as_str().unwrap());
        assert!(message.starts_with(&format!("`{key}` = ")), "{finding}");
        let line = format!("block launch.offer: {message} → {action}\n");
        assert!(run.stderr.contains(&line), "{finding} {}", run.stderr);
    }
    assert_eq!(home.sql("select state from runs")[0]["state"], "blocked");
    let explained = home.trackway(&["explain", "last", "--short"]).stdout;
    assert!(explained.contains("pre-flight blocked it (launch.offer)"), "{explained}");
    assert!(
        explained.contains("then start it: trackway run ") && !explained.contains("--skip"),
        "{explained}"
    );
    let unknown = home.trackway(&["preflight", "run.toml", "--set", "launch.engine=locl"]);
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);
    assert!(unknown.stderr.contains("did you mean `local`?"), "{}", unknown.stderr);
    assert!(home.sql("select * from training_attempts").is_empty());
}

/// Proves that a model that surely does not fit its device blocks, with what would make it fit.
#[test]
fn a_model_that_does_not_fit_blocks() {
    let home = Home::new();
    run_file(
        &home,
        "\n[resources]\ngpus = 1\ngpu = \"rtx4090\"\n\n[training]\nparameters = 7e9\nstrategy = \"single\"\n",
    );
    let answer = home.trackway(&["preflight", "run.toml", "--only", "memory", "--json"]);
    let report: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!((answer.code, report["verdict"].as_str()), (3, Some("block")), "{report:#}");
    assert!(report["memory"]["advice"].as_array().is_some_and(|advice| !advice.is_empty()));
    assert!(
        check(&report, "memory")["findings"][0]["action"].as_str().is_some_and(|action| !action.is_empty())
    );
}

/// Proves that an untouched script without a run file is launched as usual, and that damaged data is named, not
/// launched.
#[test]
fn bare_commands_have_no_preflight_and_damaged_data_blocks() {
    let home = Home::new();
    let (code, _) = home.run_script(&[], "echo hello");
    assert_eq!(code, 0);
    assert!(home.sql("select * from preflight_checks").is_empty());
    run_file(&home, "");
    std::fs::write(home.path().join("cut.parquet"), b"PAR1 and then nothing").unwrap();
    let damaged = "data.train.path=cut.parquet";
    let answer = home.trackway(&["preflight", "run.toml", "--set", damaged, "--json"]);
    let report: Value = serde_json::from_str(&answer.stdout).unwrap_or_else(|_| panic!("{}", answer.stderr));
    assert_eq!(
        (answer.code, check(&report, "data.values")["verdict"].as_str()),
        (3, Some("block")),
        "{report:#}"
    );
    assert_eq!(check(&report, "leakage.rows")["verdict"], "not_run");
    assert_ne!(home.trackway(&["run", "run.toml", "--set", damaged]).code, 0);
}

/// Proves that a rehearsal which was named blocks the launch of a script that cannot be rehearsed, however it was named, with the
/// reason; and that the same script without the demand is launched.
#[test]
fn a_rehearsal_that_was_named_and_did_not_run_blocks() {
    for (preflight, check_name, rehearsals) in [
        ("one_batch = true", "rehearsal.one_batch", 1),
        ("require = [\"rehearsal.one_batch\"]", "rehearsal.one_batch", 1),
        ("overfit_batches = 2", "rehearsal.overfit", 0),
        ("require = [\"rehearsal.overfit\"]", "rehearsal.overfit", 0),
    ] {
        let home = Home::new();
        run_file(&home, &format!("\n[preflight]\n{preflight}\n"));
        let answer = home.trackway(&["run", "run.toml"]);
        assert_eq!(answer.code, 3, "{preflight}: {}", answer.stderr);
        let rows =
            home.sql(&format!("select verdict, why from preflight_checks where check_name = '{check_name}'"));
        assert_eq!(rows[0]["verdict"], "not_run", "{preflight}: {rows:?}");
        assert!(rows[0]["why"].as_str().is_some_and(|why| !why.is_empty()), "{preflight}: {rows:?}");
        assert_eq!(home.sql("select * from training_attempts").len(), 0, "{preflight}");
        assert_eq!(
            home.sql("select * from launches where kind = 'one_batch'").len(),
            rehearsals,
            "{preflight}"
        );
        run_file(&home, "");
        assert_eq!(home.trackway(&["run", "run.toml"]).code, 0, "{preflight}");
    }
}

/// Proves that leakage ends `data leakage` and `preflight` with the same code: copied rows, groups and times on both sides, and
/// one copied row of many; and that the run file may permit it.
#[test]
fn leakage_is_as_bad_for_a_launch_as_on_its_own() {
    let home = Home::new();
    let rows = |range: std::ops::Range<u32>| -> String {
        let rows: Vec<String> = table(range.clone()).lines().skip(1).map(str::to_owned).collect();
        let row = |(line, number): (&String, u32)| format!("{line},c{},{number}\n", number % 700);
        let header = "age,spent,plan,stays,customer,day\n".to_owned();
        std::iter::once(header).chain(rows.iter().zip(range).map(row)).collect()
    };
    home.write("train.csv", &rows(0..600));
    let (clean, grouped) = (rows(600..700), rows(800..900));
    let copies = |count: usize| -> String {
        let train = rows(0..600);
        let copied: Vec<&str> = train.lines().skip(1).take(count).collect();
        format!("{}{}\n", rows(600..680), copied.join("\n"))
    };
    for (test, roles, code) in [
        (clean.clone(), vec![("group", "customer"), ("time", "day")], 0),
        (grouped, vec![("group", "customer")], 3),
        (copies(1), vec![("time", "day")], 3),
        (copies(20), vec![], 3),
        (copies(1), vec![], 0),
        (clean, vec![("time", "plan")], 3),
    ] {
        home.write("test.csv", &test);
        let named: String = roles.iter().map(|(role, column)| format!("{role} = \"{column}\"\n")).collect();
        home.write("run.toml", &format!(
            "[run]\nname = \"churn\"\ncommand = [\"true\"]\nseed = 7\n[data.train]\npath = \"train.csv\"\n\
             label = \"stays\"\n{named}[data.test]\npath = \"test.csv\"\n"
        ));
        let flag = |role: &str| if role == "group" { "--group-by".to_owned() } else { format!("--{role}") };
        let flags: Vec<String> =
            roles.iter().flat_map(|(role, column)| [flag(role), (*column).to_owned()]).collect();
        let alone = ["data", "leakage", "--train", "train.csv", "--test", "test.csv", "--label", "stays"];
        let alone: Vec<&str> = alone.into_iter().chain(flags.iter().map(String::as_str)).collect();
        let alone = home.trackway(&alone);
        let before = home.trackway(&["preflight", "run.toml", "--only", "leakage"]);
        assert_eq!(
            (alone.code, before.code),
            (code, code),
            "{roles:?}\n{}\n{}\n{}",
            alone.stdout,
            before.stdout,
            before.stderr
        );
        let permitted =
            ["preflight", "run.toml", "--only", "leakage", "--set", "preflight.severity.leakage=\"warn\""];
        assert_eq!(home.trackway(&permitted).code, 0);
    }
}

/// Proves on seven clean data sets that pre-flight and the commands about data block nothing: five of scikit-learn, among them
/// iris with its famous duplicate, a table whose few columns repeat at random, and orders that are split by time.
#[test]
fn clean_data_blocks_nothing() {
    let Some(python) = std::env::var_os("TRACKWAY_TEST_PYTHON") else {
        trackway_skip::skip!("TRACKWAY_TEST_PYTHON names no Python with examples/python/requirements.txt");
        return;
    };
    let home = Home::new();
    let script = home.write("make.py", include_str!("clean_sets.py"));
    let made = std::process::Command::new(python).arg(script).arg(home.path()).status().unwrap();
    assert!(made.success());
    for (name, label, more) in [
        ("breast_cancer", "target", ""),
        ("wine", "target", ""),
        ("iris", "target", ""),
        ("diabetes", "target", ""),
        ("digits", "target", ""),
        ("census", "income", ""),
        ("orders", "returned", "time = \"day\"\n"),
    ] {
        let (train, test) = (format!("{name}-train.csv"), format!("{name}-test.csv"));
        home.write("clean.toml", &format!(
            "[run]\nname = \"clean\"\ncommand = [\"true\"]\nseed = 7\n[data.train]\npath = \"{train}\"\nlabel = \"{label}\"\n\
             {more}[data.test]\npath = \"{test}\"\n"
        ));
        let mut sides = vec!["data", "leakage", "--train", &train, "--test", &test, "--label", label];
        if !more.is_empty() {
            sides.extend(["--time", "day"]);
        }
        let check = ["data", "check", &train, "--label", label, "--against", &test];
        for arguments in [["preflight", "clean.toml"].as_slice(), &sides, &check] {
            let answer = home.trackway(arguments);
            assert_eq!(answer.code, 0, "{arguments:?}\n{}\n{}", answer.stdout, answer.stderr);
        }
    }
}

/// Proves that a column which changed its type in a Parquet file is a finding of `data validate` beside the others, and that
/// pre-flight blocks for the same.
#[test]
fn a_type_that_changed_in_parquet_is_a_finding() {
    let home = Home::new();
    let write = |name: &str, text: &str| {
        home.write("table.csv", text);
        home.json(&["data", "clean", "table.csv", "--out", name, "--duplicates", "keep"]);
    };
    let row = |at: u32, temp: String| format!("{at},{temp},{}.25\n", at % 7);
    let table = |header: &str, unit: &str| -> String {
        std::iter::once(format!("{header}\n"))
            .chain((0..300).map(|at| row(at, format!("{}.{}{unit}", 60 + at % 20, at % 9 + 1))))
            .collect()
    };
    write("x.parquet", &table("at,temp,load", ""));
    write("y.parquet", &table("at,temp,weight", "C"));
    let schema = home.trackway(&["data", "infer", "x.parquet"]);
    assert_eq!(schema.code, 0, "{}", schema.stderr);
    home.write("s.toml", &schema.stdout);
    let valid = home.trackway(&["data", "validate", "x.parquet", "--schema", "s.toml"]);
    assert_eq!(valid.code, 0, "{}{}", valid.stdout, valid.stderr);
    let answer = home.trackway(&["data", "validate", "y.parquet", "--schema", "s.toml", "--json"]);
    assert_eq!(answer.code, 3, "{}{}", answer.stdout, answer.stderr);
    let report: Value = serde_json::from_str(&answer.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let of =
        |check: &str| findings.iter().find(|it| it["check"] == check).unwrap_or_else(|| panic!("{report:#}"));
    assert_eq!(
        (of("schema.type")["column"].as_str(), of("schema.type")["count"].as_u64()),
        (Some("temp"), Some(300))
    );
    assert_eq!(of("schema.column")["column"], "load");
    home.write(
        "run.toml",
        "[run]\nname = \"r\"\ncommand = [\"true\"]\nseed = 7\n[data.train]\npath = \"y.parquet\"\nschema = \"s.toml\"\n",
    );
    let blocked = home.trackway(&["preflight", "run.toml", "--only", "data.schema", "--json"]);
    let report: Value = serde_json::from_str(&blocked.stdout).unwrap();
    assert_eq!((blocked.code, &check(&report, "data.schema")["verdict"]), (3, &"block".into()), "{report:#}");
}

/// Proves that the page is one file without any address in it, holds a chart per column, and shows data as text.
#[test]
fn the_page_needs_nothing_else() {
    let home = Home::new();
    run_file(&home, "");
    home.write("train.csv", &table(0..3000).replace("free", "<b>free"));
    let answer = home.trackway(&["preflight", "run.toml", "--html", "report.html"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let page = std::fs::read_to_string(home.path().join("report.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert!(!page.contains("://") && !page.contains("<script") && !page.contains("<b>free"), "{page}");
    assert!(page.contains("&lt;b&gt;free") && page.matches("<h3>").count() == 4, "{page}");
}

/// The run file of the Adult files as published; `None` if they are not at hand: the test is skipped.
fn adult(home: &Home) -> Option<()> {
    let Some(shared) = std::env::var_os("TRACKWAY_SHARED") else {
        trackway_skip::skip!("TRACKWAY_SHARED is not set");
        return None;
    };
    let columns = "columns = [\"age\", \"workclass\", \"fnlwgt\", \"education\", \"education_num\", \"marital_status\", \"occupation\", \
         \"relationship\", \"race\", \"sex\", \"capital_gain\", \"capital_loss\", \"hours_per_week\", \"native_country\", \"income\"]";
    let set = |name: &str| {
        let path = Path::new(&shared).join("data").join(format!("adult-{name}.csv"));
        format!("[data.{name}]\npath = {:?}\nlabel = \"income\"\n{columns}\n", path.display().to_string())
    };
    let run = "[run]\nname = \"income\"\ncommand = [\"true\"]\nseed = 17\n\n";
    home.write("adult.toml", &format!("{run}{}{}", set("train"), set("test")));
    Some(())
}

/// Proves on the Adult files as published that differing labels of the two sides are reported, block, and what to do.
#[test]
fn adult_as_published_is_not_launched() {
    let home = Home::new();
    if adult(&home).is_none() {
        return;
    }
    let answer = home.trackway(&["run", "adult.toml", "--json"]);
    assert_eq!(answer.code, 3, "{}", answer.stderr);
    let report: Value = serde_json::from_str::<Value>(&answer.stdout).unwrap()["preflight"].clone();
    let label = &check(&report, "data.label")["findings"][0];
    assert_eq!((label["severity"].as_str(), label["count"].as_u64()), (Some("block"), Some(16_281)));
    let message = label["message"].as_str().unwrap();
    assert!(message.contains("`<=50K.`") && message.contains("`<=50K`"), "{message}");
    let action = label["action"].as_str().unwrap();
    assert!(action.contains("write `<=50K.` as `<=50K`"), "{action}");
    let imbalance = &report["imbalance"];
    assert!(imbalance["ratio"].as_f64().is_some_and(|ratio| (3.0..3.3).contains(&ratio)), "{imbalance:#}");
}

/// Proves that wrong labels are looked for if the run file requests it, and only then, and that planted ones are
/// counted.
#[test]
fn wrong_labels_are_looked_for_when_asked() {
    let home = Home::new();
    let row = |number: u32| {
        let (x, y) = (f64::from(number * 37 % 1000) / 10.0, number * 53 % 997);
        let flipped = number % 40 == 7;
        let label = if (x > 50.0) != flipped { "high" } else { "low" };
        format!("{x},{y},{label}\n")
    };
    home.write(
        "train.csv",
        &std::iter::once("x,y,level\n".to_owned()).chain((0..1000).map(row)).collect::<String>(),
    );
    let text = "[run]\nname = \"noise\"\ncommand = [\"true\"]\nseed = 7\n\n[data.train]\npath = \"train.csv\"\nlabel = \"level\"\n";
    home.write("run.toml", text);
    let verdict = || {
        let answer = home.trackway(&["preflight", "run.toml", "--only", "data.label_noise", "--json"]);
        let report: Value = serde_json::from_str(&answer.stdout).unwrap();
        check(&report, "data.label_noise").clone()
    };
    assert_eq!(verdict()["verdict"], "not_applicable");
    home.write("run.toml", &format!("{text}\n[preflight]\nlabel_noise = true\n"));
    let found = verdict();
    assert_eq!(found["verdict"], "warn", "{found:#}");
    let count = found["findings"][0]["count"].as_u64();
    assert!(count.is_some_and(|count| (23..=32).contains(&count)), "25 labels were flipped: {found:#}");
}

/// Proves that a folder of images in a run file is read before the launch: a file that does not decode blocks it.
#[test]
fn a_broken_image_blocks_the_launch() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("images")).unwrap();
    home.write("images/a.png", "not an image");
    home.write(
        "images.toml",
        "[run]\nname = \"images\"\nseed = 1\ncommand = [\"true\"]\n[data.train]\npath = \"images\"\n",
    );
    let answer = home.trackway(&["preflight", "images.toml", "--json"]);
    let report: Value = serde_json::from_str(&answer.stdout).unwrap();
    let decode = check(&report, "media.decode");
    assert_eq!((answer.code, &decode["verdict"]), (3, &Value::from("block")), "{decode}");
    assert!(decode["findings"].to_string().contains("a.png"), "{decode}");
}

/// Proves that an evaluation which would fail for any model blocks before the training, with what there is: a positive class that no row
/// has, columns of groups and slices and a metric that do not exist, a misspelt number in a gate, and a baseline that means nothing;
/// that one which can be computed passes; and that one which is started by hand only warns.
#[test]
fn the_evaluation_is_tried_before_the_training() {
    let home = Home::new();
    let report_of = |more: &str| -> Value {
        let section = "[evaluate]\nscorer = \"cat\"\nrows = \"test.csv\"\nlabel = \"stays\"\n";
        run_file(&home, &format!("{section}{more}"));
        let answer = home.trackway(&["preflight", "run.toml", "--only", "evaluate", "--json"]);
        serde_json::from_str(&answer.stdout).unwrap_or_else(|_| panic!("{}", answer.stderr))
    };
    for (more, name, expected) in [
        ("positive = \"maybe\"\n", "evaluate.rows", "`stays` has no class `maybe`; there are no, yes"),
        (
            "fairness = [\"plam\"]\n",
            "evaluate.rows",
            "there is no column `plam`; there are age, spent, plan, stays",
        ),
        ("slices.young = \"aeg < 30\"\n", "evaluate.rows", "slice `young`: `aeg < 30` cannot be evaluated"),
        ("metric = \"acuracy\"\n", "evaluate.rows", "there is no metric `acuracy` here; there are accuracy"),
        (
            "gates = [\"acuracy > 0.5\"]\n",
            "evaluate.gates",
            "names `acuracy`, which this evaluation does not measure",
        ),
        ("baseline = \"parent\"\n", "evaluate.baseline", "the baseline `parent` means nothing"),
        ("baseline = \"churn@best\"\n", "evaluate.baseline", "`churn@best` means no version of a model"),
    ] {
        let report = report_of(more);
        let found = check(&report, name);
        assert_eq!((&report["verdict"], &found["verdict"]), (&"block".into(), &"block".into()), "{found:#}");
        let message = found["findings"][0]["message"].as_str().unwrap();
        assert!(message.contains(expected), "{message}");
        assert_eq!(check(&report_of(&format!("{more}after = false\n")), name)["verdict"], "warn");
    }
    let good = report_of(
        "positive = \"yes\"\nfairness = [\"plan\"]\nbaseline = \"churn@production\"\n\
         gates = [\"roc_auc > baseline\", \"min(slice.recall) > 0.1\", \"fairness.plan.calibration < 1\", \"value(latency_p95_seconds) < 9\"]\n\
         slices.young = \"age < 30 and score > 0\"\nslices.old = \"age > 68 and plan = 'pro'\"\n",
    );
    assert!(
        ["evaluate.gates", "evaluate.baseline"].iter().all(|name| check(&good, name)["verdict"] == "pass"),
        "{good:#}"
    );
    let few = report_of("positive = \"yes\"\ngates = [\"latency_seconds < 9\"]\n");
    let message = &check(&few, "evaluate.gates")["findings"][0]["message"];
    let expected = "the gate `latency_seconds < 9` will be inconclusive: `latency_seconds` has no interval, since 1500 rows are too few \
                    batches of 256";
    assert_eq!(*message, expected);
    let rows = check(&good, "evaluate.rows");
    assert_eq!(rows["why"], "tried on the labels of 1500 rows of `test.csv`");
    let small = rows["findings"][0]["message"].as_str().unwrap();
    assert!(
        small.starts_with("slice `old` has ") && small.ends_with("fewer than 30: it decides nothing"),
        "{small}"
    );
}

/// Proves that an evaluator of one's own is tried on the labels of the test set, that what fails there only warns, and that a number
/// which it may report passes unless its name is nearly that of a metric.
#[test]
fn an_evaluator_of_ones_own_is_tried_on_the_labels() {
    let home = Home::new();
    home.write("eval.sh", "exit 0\n");
    let verdicts = |more: &str| {
        run_file(&home, &format!("[evaluate]\ncommand = [\"sh\", \"eval.sh\"]\n{more}"));
        let report = home.json(&["preflight", "run.toml", "--only", "evaluate"]);
        ["evaluate.rows", "evaluate.gates"]
            .map(|name| check(&report, name)["verdict"].as_str().unwrap().to_owned())
    };
    assert_eq!(verdicts("positive = \"yes\"\ngates = [\"toxicity < 0.1\"]\n"), ["pass", "pass"]);
    assert_eq!(verdicts("positive = \"maybe\"\ngates = [\"acuracy > 0.5\"]\n"), ["warn", "warn"]);
    assert_eq!(verdicts("fairness = [\"country\"]\n"), ["warn", "not_applicable"]);
}
