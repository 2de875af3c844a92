//! What an on-call engineer reads who never saw the run: the page of an explanation, and the post-mortem.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::Home;
use crate::records::evidence::{drop_rules, killed_once, ledger};

/// Proves that a page needs nothing from elsewhere: no script, no link but to its own sections, no address that is loaded.
fn read_page(path: &Path) -> String {
    let page = std::fs::read_to_string(path).unwrap();
    for link in page.split("<a href=\"#").skip(1) {
        let section = link.split('"').next().unwrap();
        assert!(page.contains(&format!("id=\"{section}\"")), "no section {section}");
    }
    let page = page.replace("<a href=\"#", "<b id=\"");
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    for forbidden in ["<script", "<a ", "href", "src=", "url(", "@import", "://"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    page
}

fn has_all(text: &str, expected: &[&str]) {
    for words in expected {
        assert!(text.contains(words), "no `{words}` in {text}");
    }
}

/// Proves that the page of a run which was killed and resumed has the state, the cause, the cost, every attempt, the checkpoints, the
/// curve of its loss with the place of the resume, and the runbook; and that `explain --json` has the same facts.
#[test]
fn a_killed_run_is_explained_on_a_page() {
    let home = Home::new();
    let Some(run) = killed_once(&home) else { return };
    let answer = home.trackway(&["explain", "wine", "--html", "run.html"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (0, ""), "{}", answer.stderr);
    let page = read_page(&home.path().join("run.html"));
    let resumed = format!("attempt at step {}", run.step);
    has_all(
        &page,
        &[
            "<title>Run wine</title>",
            &run.run_id,
            "Attempt 2 of 2 ended as",
            "docs/termination-reasons.md#completed",
            "docs/termination-reasons.md#node_failure",
            "A machine, a device or its link broke",
            "2 attempts",
            "loss by step",
            &resumed,
            "checkpoint of step 200",
            "a resume continues here",
            "17, taken by the script",
            "Changed before attempt 2",
            "injected_kill",
        ],
    );
    let found = home.json(&["explain", "wine"]);
    assert_eq!(found["curves"], json!([]), "curves are read for a page only");
    let first = &found["attempts"][0];
    assert_eq!(first["runbook"], "docs/termination-reasons.md#node_failure");
    let last_step = first["last_step"].as_u64().unwrap();
    assert_eq!(first["lost_steps"], json!(last_step - run.step), "{first}");
    // The kill may have come at the step of a commit.
    let lost = last_step - run.step;
    assert_eq!(page.contains(&format!("{} lost", steps(lost))), lost > 0, "the cost of the kill");
    let with_page = home.json(&["explain", "wine", "--html", "again.html"]);
    let curve = with_page["curves"].as_array().unwrap().iter().find(|curve| curve["name"] == "loss").unwrap();
    let steps = curve["series"][0].as_array().unwrap();
    assert_eq!(steps.last().unwrap()[0], json!(240), "the curve that counts, to its end: {curve}");
    let text = home.trackway(&["explain", "wine"]).stdout;
    assert!(text.contains("docs/termination-reasons.md#completed"), "{text}");
}

fn steps(count: u64) -> String {
    if count == 1 { "1 step".into() } else { format!("{count} steps") }
}

/// Proves that the post-mortem of a run which was killed and resumed has what was lost and how long it took to come back, the cause
/// with its evidence, the decision with its budget, what was verified, and the actions of the runbook; and that it says the same as
/// Markdown, as a page and as JSON.
#[test]
fn a_killed_run_has_a_post_mortem() {
    let home = Home::new();
    let Some(run) = killed_once(&home) else { return };
    let found = home.json(&["postmortem", "wine", "--out", "wine.md", "--html", "wine.html"]);
    let failure = &found["failures"][0];
    assert_eq!(found["failures"].as_array().unwrap().len(), 1);
    assert_eq!(failure["termination"]["rule"], "own_action.injected_kill");
    assert_eq!(failure["next_attempt_number"], 2);
    let lost = failure["last_step"].as_u64().unwrap() - run.step;
    assert_eq!((&found["impact"]["lost_steps"], &found["impact"]["failed_count"]), (&json!(lost), &json!(1)));
    let recovery = found["impact"]["recovery_seconds"].as_f64().unwrap();
    assert!((0.0..60.0).contains(&recovery), "{recovery}");
    for part in ["run", "failed", "lost"] {
        let spent = &found["impact"][part];
        let (gpu, usd) = (spent["gpu_hours"].as_f64().unwrap(), spent["usd"].as_f64().unwrap());
        assert!((usd - 2.0 * gpu).abs() < 1e-9, "the price of the run file: {spent}");
    }
    assert_eq!(found["integrity"]["verified"]["holds"], json!(true));
    let markdown = std::fs::read_to_string(home.path().join("wine.md")).unwrap();
    let lost = format!("Lost steps: {lost}\n");
    let from = format!("Attempt 2 continued from step {}", run.step);
    has_all(
        &markdown,
        &[
            "# Post-mortem: wine\n",
            "The run wine completed after 2 attempts; 1 did not succeed.",
            &from,
            &lost,
            "### Attempt 1: node_failure",
            "- wait status: ended by signal 9",
            "- Nothing: the evidence admits no other reading.",
            "| 1 | retry |",
            "infrastructure: 1 of 2",
            "*not known*: the run file names no data set",
            "| manifests of checkpoints | 3 | 0 | 0 | 0 |",
            "| receipts | 2 | 0 | 0 | 0 |",
            "(docs/termination-reasons.md#node_failure)",
            "- [ ] keep the named node or device out of the next placement",
            "owner: ________ · due: ________",
        ],
    );
    assert!(!markdown.contains("://"), "{markdown}");
    let page = read_page(&home.path().join("wine.html"));
    has_all(
        &page,
        &[
            "Post-mortem: wine",
            "node_failure",
            "Nothing differs from what was sealed",
            "☐",
            "docs/termination-reasons.md#node_failure",
        ],
    );
    let printed = home.trackway(&["incident", "wine"]);
    assert_eq!(printed.code, 0, "{}", printed.stderr);
    let body = |text: &str| text.split_once("## Summary").unwrap().1.to_owned();
    assert_eq!(body(&printed.stdout), body(&markdown), "the alias prints the same text");
}

/// Proves that the text of an explanation names the steps that were lost in all attempts of a run, of an attempt that
/// lost none, too, and that it says so where they are not all of the attempt that is explained.
#[test]
fn steps_lost_in_all_attempts_are_explained() {
    for (kill_count, of_last, of_first) in [
        (1, "5 steps that do not count, in all attempts\n", "5 steps that do not count\n"),
        (2, "10 steps that do not count, in all attempts\n", "10 steps that do not count, in all attempts\n"),
    ] {
        let home = Home::new();
        let script = format!(
            "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n; for i in 1 2 3 4 5; do echo \"step $i: loss=0.$((9-i))\"; done\n\
             [ $n -ge {kill_count} ] || kill -9 $$\n"
        );
        home.write("t.sh", &script);
        home.write(
            "t.toml",
            "[run]\nname = \"t\"\ncommand = [\"sh\", \"t.sh\"]\n[retry]\nunknown = { attempts = 2, backoff = \"0s\" }\n",
        );
        let ended = home.trackway(&["run", "t.toml"]);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        for (attempt, expected) in [("t", of_last), ("t/1", of_first)] {
            let text = home.trackway(&["explain", attempt]).stdout;
            let cost = text.split_once("\nCost\n").unwrap().1;
            assert!(cost.contains(expected), "{kill_count} {attempt}: {text}");
        }
    }
}

/// Proves that a post-mortem names changed settings and the plan that was tried, that lost steps of a script without a
/// checkpoint are those that the next attempt trained again, and all of the last attempt, as the explanation has it
/// too; and that an amendment counters the reason.
#[test]
fn what_is_not_known_is_not_guessed() {
    let home = Home::new();
    home.write("rows.csv", "a,b\n1,2\n");
    let script = "for i in 1 2 3 4 5; do echo step $i: loss=0.$((9-i)); done; \
                  echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.' >&2; exit 1";
    let plan = "[retry]\ndevice_oom = { plan = [{ set = { BATCH = \"32\" } }] }\n";
    home.write(
        "oom.toml",
        &format!(
            "[run]\nname = \"oom\"\ncommand = [\"sh\", \"-c\", \"\"\"{script}\"\"\"]\n{plan}[data.train]\npath = \"rows.csv\"\n"
        ),
    );
    assert_eq!(home.trackway(&["run", "oom.toml"]).code, 4);
    let why = ["--why", "the driver log shows an ECC error", "--by", "ana"];
    assert_eq!(
        home.trackway(&[&["amend", "oom", "termination_reason", "node_failure"], &why[..]].concat()).code,
        0
    );
    let found = home.json(&["postmortem", "oom"]);
    let lost = |attempt: usize| &found["failures"][attempt]["lost_steps"];
    assert_eq!((lost(0), lost(1)), (&json!(5), &json!(5)), "{found}");
    assert_eq!(home.json(&["explain", "oom"])["cost"]["run_lost_steps"], json!(10));
    let changed = |what: &str| {
        let inputs = found["inputs"]["inputs"].as_array().unwrap();
        inputs.iter().find(|input| input["what"] == what).unwrap()["changed"].clone()
    };
    assert_eq!(changed("settings"), json!(true));
    assert_eq!(changed("all data sets"), json!(false));
    assert_eq!(changed("script"), Value::Null, "a shell's own text is not a script");
    let text = home.trackway(&["postmortem", "oom"]).stdout;
    has_all(
        &text,
        &[
            "The run oom failed after 2 attempts; none succeeded.",
            "log, stderr line 1: torch.OutOfMemoryError: CUDA out of memory",
            "No attempt followed; 5 steps were lost.",
            "- Lost steps: 10\n",
            "; no step followed 1 failure\n",
            "| money | *not known* |",
            "| settings | **yes** |",
            "| all data sets | no |",
            "{\"BATCH\":\"32\"}",
            "Amended since: `termination_reason` device_oom → node_failure, because the driver log shows an ECC error (ana",
            "Amended since: the reason is node_failure.",
            "The confidence is likely: the evidence admits another reading.",
            "There is no checkpoint. Why: the script does not use the package `trackway`",
            "- [ ] smaller batch with gradient accumulation",
        ],
    );
    assert_eq!(home.trackway(&["explain", "oom", "--html", "oom.html"]).code, 0);
    let page = read_page(&home.path().join("oom.html"));
    has_all(
        &page,
        &[
            "device_oom",
            "BATCH",
            "Amended since",
            "10 steps lost",
            "loss by step",
            "docs/termination-reasons.md#device_oom",
        ],
    );
}

/// Proves that a post-mortem verifies the run: a receipt that was changed is named in the text and on the page.
#[test]
fn a_changed_receipt_is_in_the_post_mortem() {
    let home = Home::new();
    home.run_script(&["--name", "small"], "exit 3");
    let database = ledger(&home);
    drop_rules(&database, "training_attempts");
    database.execute("update training_attempts set exit_code = 4", []).unwrap();
    drop(database);
    let answer = home.trackway(&["postmortem", "small"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    has_all(
        &answer.stdout,
        &["**1 digest differs from what was sealed.**", "its rows hash to another digest"],
    );
    assert_eq!(home.trackway(&["postmortem", "small", "--html", "small.html"]).code, 0);
    has_all(&read_page(&home.path().join("small.html")), &["1 digest differs from what was sealed"]);
}

/// Proves that a run which did not fail has a post-mortem that says so, and one that was never launched what forbade
/// it; and that no output replaces the ledger.
#[test]
fn runs_that_did_not_fail_say_so() {
    let home = Home::new();
    home.run_script(&["--name", "good"], "exit 0");
    let text = home.trackway(&["postmortem", "good"]).stdout;
    has_all(
        &text,
        &[
            "The run good completed after 1 attempt; none ended without success.",
            "No attempt ended without success.",
            "0 of 1",
        ],
    );
    home.write("blocked.toml", "[run]\nname = \"blocked\"\ncommand = [\"python3\", \"no_such_script.py\"]\n");
    assert_eq!(home.trackway(&["run", "blocked.toml"]).code, 3);
    let found = home.json(&["postmortem", "blocked"]);
    assert!(found["blocked_by"][0].as_str().unwrap().contains("no_such_script.py"), "{found}");
    let text = home.trackway(&["postmortem", "blocked"]).stdout;
    has_all(
        &text,
        &["it was never launched", "Pre-flight forbade the launch:", "0 of 0", "No attempt was launched."],
    );
    assert_eq!(home.trackway(&["explain", "blocked", "--html", "blocked.html"]).code, 0);
    has_all(&read_page(&home.path().join("blocked.html")), &["It was never launched", "no_such_script.py"]);
    let database = home.state().join("ledger.db");
    for arguments in
        [["postmortem", "good", "--out"], ["postmortem", "good", "--html"], ["explain", "good", "--html"]]
    {
        let answer = home.trackway(&[&arguments[..], &[database.to_str().unwrap()]].concat());
        assert_eq!(answer.code, 2, "{arguments:?}: {}", answer.stderr);
    }
}
