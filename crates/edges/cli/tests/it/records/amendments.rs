//! What a person changes of a run afterwards: its name, note and tags, whether lists show it, and which of its files stay.

use serde_json::{Value, json};

use crate::harness::{Home, UNTIL_GO, eventually};

fn names(found: &Value) -> Vec<&str> {
    let runs = found.as_array().unwrap_or_else(|| panic!("runs, not {found}"));
    runs.iter().map(|run| run["name"].as_str().unwrap_or_default()).collect()
}

/// Proves that a run is renamed, noted, tagged and hidden everywhere that shows it, that receipts still verify, that every
/// change stays with what was there before, and that a rebuilt ledger has it all.
#[test]
fn a_run_is_amended() {
    let home = Home::new();
    for name in ["first", "second"] {
        home.run_script(
            &["--name", name, "--tag", "sweep=july", "--tag", "draft=1"],
            "echo 'step 1: loss 0.5'",
        );
    }
    let changed = home.json(&[
        "amend", "first", "--name", "baseline", "--note", "the one for the paper", "--tag", "sweep=august",
        "--tag", "team=search", "--untag", "draft", "--why", "tidying", "--by", "ana",
    ]);
    assert_eq!((&changed["name"], &changed["note"]), (&json!("baseline"), &json!("the one for the paper")));
    assert_eq!(changed["tags"], json!({ "sweep": "august", "team": "search" }));
    assert_eq!(changed["changes"].as_array().unwrap().len(), 5, "{changed}");
    let again = home.json(&["amend", "baseline", "--name", "baseline", "--tag", "team=search"]);
    assert_eq!(again["changes"], json!([]), "it is so already");
    for (words, part) in [
        (&["--untag", "draft"][..], "has no tag `draft`"),
        (&["--name", "last"], "last"),
        (&["--tag", "a b=1"], "--tag: invalid name"),
        (&["--hide", "--unhide"], "cannot be used with"),
        (&["--hide", "cost_usd", "1"], "cannot be used with"),
        (&[], "required"),
        (&["cost_usd", "1"], "--why"),
    ] {
        let answer = home.trackway(&[&["amend", "baseline"], words].concat());
        assert_eq!((answer.code, answer.stderr.contains(part)), (2, true), "{words:?}: {}", answer.stderr);
    }

    let found = home.json(&["runs", "--where", "tag.sweep = 'august' and note like '%paper%'"]);
    assert_eq!((names(&found), &found[0]["tags"]), (vec!["baseline"], &changed["tags"]));
    assert_eq!(names(&home.json(&["runs", "--where", "tag.sweep = 'july'"])), ["second"]);
    let listed = home.trackway(&["runs"]).stdout;
    assert!(
        listed.contains("sweep=august team=search") && listed.contains("the one for the paper"),
        "{listed}"
    );
    let page = home.json(&["explain", "baseline"]);
    let tags = json!([{ "name": "sweep", "value": "august" }, { "name": "team", "value": "search" }]);
    assert_eq!((&page["run"]["name"], &page["tags"]), (&json!("baseline"), &tags));
    let first = &page["run"]["amendments"][0];
    assert_eq!(
        (&first["old_text"], &first["author"], &first["why"]),
        (&json!("first"), &json!("ana"), &json!("tidying"))
    );
    let text = home.trackway(&["explain", "baseline"]).stdout;
    for part in
        ["the one for the paper", "Changed by hand", "tag sweep: `july` → `august`", "tag draft: `1` → none"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(home.json(&["compare", "baseline", "second"])["runs"][0]["name"], "baseline");
    let stored = home.sql("select name, note from runs where note is not null");
    assert_eq!(stored, [json!({ "name": "baseline", "note": "the one for the paper" })]);

    assert_eq!(home.trackway(&["amend", "second", "--hide"]).code, 0);
    assert_eq!(names(&home.json(&["runs"])), ["baseline"]);
    assert_eq!(names(&home.json(&["runs", "--all", "--sort", "name"])), ["baseline", "second"]);
    assert!(home.trackway(&["explain", "second"]).stdout.contains("· hidden"));
    assert_eq!(home.trackway(&["verify", "--all"]).code, 0, "no receipt changed");

    for part in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{part}", home.state().join("ledger.db").display()));
    }
    assert_eq!(home.trackway(&["doctor", "rebuild"]).code, 0);
    let found = home.json(&["runs"]);
    assert_eq!((names(&found), &found[0]["tags"]), (vec!["baseline"], &changed["tags"]));
    assert_eq!(home.trackway(&["amend", "second", "--unhide", "--note", ""]).code, 0);
    assert_eq!(home.json(&["runs"]).as_array().unwrap().len(), 2);
}

/// Proves that a run is amended while it is running: it is found by its new tag at once, its supervisor keeps the new name,
/// and the tag that the receipt is sealed with does not come back.
#[test]
fn a_running_run_is_amended() {
    let home = Home::new();
    let script = format!("echo 'step 1: loss 0.5'; {UNTIL_GO}");
    let supervisor = home.spawn(&["run", "--name", "live", "--tag", "sweep=july", "--", "sh", "-c", &script]);
    eventually("the run", || (home.trackway(&["watch", "live", "--once"]).code == 0).then_some(()));
    assert_eq!(home.json(&["runs"])[0]["tags"], json!({ "sweep": "july" }));
    assert_eq!(home.trackway(&["amend", "live", "--name", "kept", "--tag", "sweep=august"]).code, 0);
    assert_eq!(names(&home.json(&["runs", "--where", "tag.sweep = 'august'"])), ["kept"]);
    home.go();
    assert!(supervisor.wait_with_output().unwrap().status.success());
    let found = home.json(&["runs", "--where", "tag.sweep = 'august'"]);
    assert_eq!((names(&found), &found[0]["state"]), (vec!["kept"], &json!("completed")));
    let sealed = home.sql("select value from tags where name = 'sweep'");
    assert_eq!(sealed, [json!({ "value": "july" })], "the receipt");
}

/// Proves that the files of a named run are deleted only with `--yes`, that its receipt stays and verifies, and that a run which is
/// running is kept, with exit code 3.
#[test]
fn the_files_of_one_run_are_deleted() {
    let home = Home::new();
    for name in ["wrong", "right"] {
        home.run_script(&["--name", name], "echo 'step 1: loss 0.5'");
    }
    let folders = || std::fs::read_dir(home.state().join("attempts")).unwrap().count();
    let dry = home.json(&["gc", "--run", "wrong", "--checkpoints"]);
    assert_eq!((&dry["dry_run"], &dry["gone"][0]["name"], folders()), (&json!(true), &json!("wrong"), 2));
    let done = home.json(&["gc", "--run", "wrong", "--checkpoints", "--yes"]);
    assert_eq!((done["gone"].as_array().unwrap().len(), folders()), (1, 1), "{done}");
    assert_eq!(home.json(&["explain", "wrong"])["run"]["state"], "completed");
    assert_eq!(home.trackway(&["verify", "wrong"]).code, 0);
    assert_eq!(home.trackway(&["gc", "--run", "wrong", "--older-than", "1d"]).code, 2);
    let script = format!("echo 'step 1: loss 0.5'; {UNTIL_GO}");
    let supervisor = home.spawn(&["run", "--name", "live", "--", "sh", "-c", &script]);
    eventually("the run", || (home.trackway(&["watch", "live", "--once"]).code == 0).then_some(()));
    let kept = home.trackway(&["gc", "--run", "live", "--yes"]);
    assert_eq!((kept.code, kept.stdout.contains("it has not ended")), (3, true), "{}", kept.stdout);
    home.go();
    assert!(supervisor.wait_with_output().unwrap().status.success());
}

/// Proves that git ignores a new home but not the settings file in it, and that a file of the user in its place stays.
#[test]
fn git_ignores_a_new_home() {
    let home = Home::new();
    let git = |words: &[&str]| {
        let mut command = std::process::Command::new("git");
        let answer = command.args(words).current_dir(home.path()).output().expect("git");
        assert!(answer.status.success(), "{words:?}");
        String::from_utf8_lossy(&answer.stdout).into_owned()
    };
    git(&["init", "--quiet"]);
    home.run_script(&[], "true");
    assert_eq!(git(&["status", "--porcelain"]), "");
    home.write("home/config.toml", "");
    assert!(git(&["status", "--porcelain", "--untracked-files=all"]).ends_with("home/config.toml\n"));
    home.write("home/.gitignore", "# mine\n");
    home.run_script(&[], "true");
    assert_eq!(std::fs::read_to_string(home.state().join(".gitignore")).unwrap(), "# mine\n");
}
