//! `trackway gates` and `trackway registry`: the requirements of a promotion, going back, and two simultaneous changes.

use serde_json::{Value, json};

use crate::evaluations::{GOOD, checkpoints, evaluate, trained, write_job};
use crate::harness::{Answer, Home};

/// grade is 0.5 (0.304 … 0.696) of every checkpoint: this one passes.
pub(crate) const GATES: &str = "gates = [\"grade >= 0.3\"]";

/// A policy without what the toy does not have: gates of all kinds, a task set, a second person.
pub(crate) const EASY: &str =
    "gates = [\"quality\"]\nreceipt = [\"evaluator_digest\", \"outputs\", \"metrics\"]\napprovals = 0\n";

pub(crate) fn registry(home: &Home, arguments: &[&str]) -> (i32, Value) {
    document(&home.trackway(&[&["registry"], arguments, &["--json"]].concat()))
}

fn document(answer: &Answer) -> (i32, Value) {
    let document = serde_json::from_str(&answer.stdout).unwrap_or(Value::Null);
    assert!(!document.is_null() || answer.code != 0, "{}\n{}", answer.stdout, answer.stderr);
    (answer.code, document)
}

pub(crate) fn refusals(answer: &(i32, Value)) -> Vec<&str> {
    let refusals = answer.1["refusals"].as_array().into_iter().flatten();
    refusals.map(|refusal| refusal["rule"].as_str().unwrap()).collect()
}

fn production(home: &Home) -> Value {
    home.sql("select production_version from models")[0]["production_version"].clone()
}

/// Arms the gates of the run file by a model whose grade is far below what it was.
pub(crate) fn arm(home: &Home) {
    let written = home
        .trackway(&["gates", "fixture", "last", "--set", "grade=-0.9", "--name", "bad", "--out", "bad.json"]);
    assert_eq!(written.code, 0, "{}", written.stderr);
    let (code, tests) =
        document(&home.trackway(&["gates", "test", "job.toml", "--bad", "bad.json", "--json"]));
    assert_eq!((code, &tests["unverified"]), (0, &json!([])), "{tests}");
}

/// A home with versions 1 to `count` of `income`, from steps 1 to `count`, each evaluated, all gates verified.
pub(crate) fn registered(count: u32, gates: &str) -> Home {
    let home = trained(GOOD, gates);
    for step in 1..=count {
        let step = step.to_string();
        let (code, version) = registry(&home, &["register", "income", "--run", "last", "--step", &step]);
        assert_eq!((code, version["version"].to_string()), (0, step.clone()), "{version}");
        assert_eq!(evaluate(&home, &["--checkpoint", &step]).0, 0);
    }
    arm(&home);
    set_policy(&home, "income", EASY);
    home
}

pub(crate) fn set_policy(home: &Home, model: &str, text: &str) {
    home.write("policy.toml", text);
    assert_eq!(registry(home, &["policy", model, "--file", "policy.toml"]).0, 0);
}

/// Permits promotions that are compared with nothing.
pub(crate) fn compare_nothing(home: &Home) {
    set_policy(home, "income", &format!("{EASY}baseline = \"optional\"\n"));
}

/// Proves each thing that a checkpoint needs on its way to production, in the order in which a user meets them; that a
/// refusal changes nothing; and that the history shows what was in production when.
#[test]
fn a_version_reaches_production_through_its_evidence() {
    let home = trained(GOOD, GATES);
    let (code, version) = registry(
        &home,
        &["register", "income", "--run", "last", "--step", "1", "--description", "password=hunter2"],
    );
    assert_eq!((code, &version["version"], &version["is_new"]), (0, &json!(1), &json!(true)), "{version}");
    let again = registry(&home, &["register", "income", "--run", "last", "--step", "1"]).1;
    assert_eq!((&again["version"], &again["is_new"]), (&json!(1), &json!(false)));
    let pinned = checkpoints(&home).into_iter().find(|one| one["step"] == 1).unwrap();
    assert_eq!(pinned["pins"][0], version["pin"], "nothing deletes what is registered");

    set_policy(&home, "income", EASY);
    for to in ["staging", "production"] {
        let refused = registry(&home, &["promote", "income", "1", "--to", to]);
        assert_eq!((refused.0, refusals(&refused)), (5, vec!["registry.not_evaluated"]), "{}", refused.1);
    }
    let receipt = evaluate(&home, &["--checkpoint", "1"]).1;
    assert_eq!(
        (&receipt["gates"][0]["verdict"], &receipt["gates"][0]["rule"]),
        (&json!("pass"), &json!("grade >= 0.3"))
    );
    assert_eq!(registry(&home, &["promote", "income", "1", "--to", "staging"]).0, 0);
    let refused = registry(&home, &["promote", "income", "1"]);
    assert_eq!((refused.0, refusals(&refused)), (5, vec!["registry.unverified_gate"]), "{}", refused.1);
    arm(&home);
    assert_eq!(home.sql("select count(*) as count from model_changes"), [json!({ "count": 3 })]);
    assert_eq!(production(&home), Value::Null);

    let (code, changed) =
        registry(&home, &["promote", "income", "1", "--expect", "none", "--why", "the first"]);
    assert_eq!(
        (code, &changed["stage"], &changed["was_version"]),
        (0, &json!("production"), &Value::Null),
        "{changed}"
    );
    assert_eq!(production(&home), 1);
    let receipts = home.sql("select gate_receipt_id, verdict, checkpoint_manifest_sha256 from gate_receipts");
    assert_eq!(receipts[0]["gate_receipt_id"], changed["gate_receipt_id"]);
    assert_eq!(receipts[0]["checkpoint_manifest_sha256"], version["checkpoint_manifest_sha256"]);
    let (code, already_there) = registry(&home, &["promote", "income", "1"]);
    assert_eq!(
        (code, &already_there["change_number"]),
        (0, &Value::Null),
        "it is there already: {already_there}"
    );

    let versions = home.json(&["explain", "last"])["versions"].clone();
    assert_eq!(versions, home.json(&["registry", "show", "income"])["versions"], "one type everywhere");
    assert_eq!(versions.as_array().map(Vec::len), Some(1), "{versions}");
    assert_eq!((&versions[0]["version"], &versions[0]["stage"]), (&json!(1), &json!("production")));
    let page = home.trackway(&["explain", "last"]).stdout;
    assert!(page.contains("income version 1: step 1, production"), "{page}");
    let history = registry(&home, &["history", "income"]).1;
    let history: Vec<&Value> =
        history.as_array().unwrap().iter().filter(|entry| entry["kind"] != "policy").collect();
    let summaries: Vec<&str> = history.iter().map(|entry| entry["summary"].as_str().unwrap()).collect();
    assert_eq!(summaries, ["version 1 registered", "version 1 to staging", "version 1 to production"]);
    let before = history[1]["at"].as_str().unwrap();
    assert_eq!(registry(&home, &["history", "income", "--at", before]).1["production_version"], Value::Null);
    let since = history[2]["at"].as_str().unwrap();
    let then = registry(&home, &["history", "income", "--at", since]).1;
    assert_eq!(then["manifest_sha256"], version["checkpoint_manifest_sha256"]);

    let card = home.trackway(&["registry", "card", "income", "production"]).stdout;
    for part in [
        "model-index:",
        "\"type\":\"grade\"",
        "| grade | 0.5000 |",
        "## Gates: pass",
        version["checkpoint_manifest_sha256"].as_str().unwrap(),
    ] {
        assert!(card.contains(part), "{part}: {card}");
    }
    assert!(!card.contains("hunter2"), "{card}");
    for page in [&["registry", "ls"][..], &["registry", "show", "income"], &["registry", "history", "income"]]
    {
        let page = home.trackway(page);
        assert!(page.code == 0 && page.stdout.contains('1'), "{}", page.stdout);
    }
    assert_eq!(home.trackway(&["registry", "show", "outcome"]).code, 6);
    assert_eq!(home.trackway(&["registry", "promote", "income", "9"]).code, 6);
    assert_eq!(home.trackway(&["registry", "register", "in/come", "--run", "last"]).code, 2);
}

/// Proves that gates which compare must have compared with what is in production; that production goes back one version
/// at a time, and where nothing is left, that the refusal says what was in production when; and that what does not
/// verify is not gone back to.
#[test]
fn production_goes_back_to_what_verifies() {
    let home = registered(
        3,
        "gates = [\"grade >= 0.3\", \"grade >= baseline - 0.9\"]\nbaseline = \"income@production\"",
    );
    let evaluations = home.sql("select evaluation_id from evaluations order by step");
    let of_step = |step: usize| evaluations[step - 1]["evaluation_id"].as_str().unwrap().to_owned();
    let judge = |step: usize, baseline: usize| {
        let judged =
            home.trackway(&["gates", "judge", &of_step(step), "--baseline", &of_step(baseline), "--json"]);
        assert_eq!(judged.code, 0, "{}{}", judged.stdout, judged.stderr);
    };
    judge(2, 1);
    assert_eq!(registry(&home, &["promote", "income", "1"]).0, 0);

    let refused = registry(&home, &["promote", "income", "3"]);
    assert_eq!((refused.0, refusals(&refused)), (5, vec!["registry.stale_baseline"]), "{}", refused.1);
    assert_eq!(registry(&home, &["promote", "income", "2"]).0, 0);
    judge(3, 2);
    assert_eq!(registry(&home, &["promote", "income", "3"]).0, 0);
    let already_there = registry(&home, &["promote", "income", "3"]);
    assert_eq!(
        (already_there.0, &already_there.1["change_number"]),
        (0, &Value::Null),
        "it is there: {}",
        already_there.1
    );

    assert_eq!(registry(&home, &["rollback", "income", "--expect", "2"]).0, 7);
    let (code, back) = registry(&home, &["rollback", "income", "--expect", "3", "--why", "errors"]);
    assert_eq!((code, &back["version"], &back["was_version"]), (0, &json!(2), &json!(3)), "{back}");
    let states = registry(&home, &["history", "income", "--at", "2100-01-01T00:00:00Z"]).1;
    assert_eq!(states["stages"], json!({ "1": "archived", "2": "production", "3": "archived" }));

    let folder = checkpoints(&home).into_iter().find(|one| one["step"] == 1).unwrap()["folder"].clone();
    let run = home.json(&["runs"])[0]["run_id"].as_str().unwrap().to_owned();
    let weights = home
        .state()
        .join("checkpoints")
        .join(run)
        .join("train-100%")
        .join(folder.as_str().unwrap())
        .join("weights.bin");
    let whole = std::fs::read(&weights).unwrap();
    std::fs::write(&weights, "step X").unwrap();
    let damaged = home.trackway(&["registry", "rollback", "income"]);
    assert!(damaged.code == 7 && damaged.stderr.contains("does not verify"), "{}", damaged.stderr);
    assert_eq!(production(&home), 2, "production stays as it is");
    let refused = registry(&home, &["promote", "income", "1", "--to", "staging"]);
    assert_eq!((refused.0, refusals(&refused)), (5, vec!["registry.damaged"]), "{}", refused.1);
    std::fs::write(&weights, whole).unwrap();
    assert_eq!(registry(&home, &["rollback", "income"]).1["version"], 1);
    let first = home.trackway(&["registry", "rollback", "income"]);
    assert_eq!(first.code, 6, "nothing is before the first: {}", first.stderr);
    for part in [
        "in production were version 1 (since 20",
        "version 3 (20",
        "trackway registry rollback income --to-version 2",
        "trackway registry promote income 2",
    ] {
        assert!(first.stderr.contains(part), "{part}: {}", first.stderr);
    }
    assert_eq!(registry(&home, &["rollback", "income", "--to-version", "3"]).1["version"], 3);
    let replaced = registry(&home, &["rollback", "income"]).1;
    assert_eq!(replaced["version"], 1, "what version 3 replaced: {replaced}");
    assert_eq!(home.trackway(&["registry", "rollback", "income"]).code, 6, "it does not go to and fro");
}

/// Proves that `--deploy` with a stage whose promotion copies nothing is refused before anything changes, with what to
/// do instead, and that it copies what is in production already.
#[test]
fn only_what_is_in_production_is_deployed() {
    let home = registered(1, GATES);
    compare_nothing(&home);
    let srv = home.path().join("srv");
    let deploy = srv.to_str().unwrap();
    let changes = || home.sql("select count(*) as count from model_changes");
    let before = changes();
    for to in ["candidate", "staging", "archived"] {
        let refused = home.trackway(&["registry", "promote", "income", "1", "--to", to, "--deploy", deploy]);
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        for part in ["--to production --deploy", "registry export income 1"] {
            assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
        }
    }
    assert!(changes() == before && !srv.exists());
    assert_eq!(registry(&home, &["promote", "income", "1"]).0, 0);
    let (code, already_there) = registry(&home, &["promote", "income", "1", "--deploy", deploy]);
    assert_eq!((code, &already_there["deployed"]["is_current"]), (0, &json!(true)), "{already_there}");
    assert!(srv.join("current/weights.bin").exists());
}

/// Proves that copies are checked on the way, that `current` moves in one step, and that a damaged copy is made again.
#[test]
fn files_are_deployed_with_every_byte_checked() {
    let home = registered(2, GATES);
    compare_nothing(&home);
    let srv = home.path().join("srv");
    let deploy = srv.to_str().unwrap();
    assert_eq!(registry(&home, &["promote", "income", "1", "--deploy", deploy]).0, 0);
    let (code, second) = registry(&home, &["promote", "income", "2", "--deploy", deploy]);
    assert_eq!((code, &second["deployed"]["is_current"]), (0, &json!(true)), "{second}");
    let weights = || std::fs::read_to_string(srv.join("current/weights.bin")).unwrap();
    assert_eq!(weights(), "step 2");
    std::fs::write(srv.join("v1/weights.bin"), "torn").unwrap();
    let (code, back) = registry(&home, &["rollback", "income", "--deploy", deploy]);
    assert_eq!((code, back["deployed"]["copied_bytes"].as_u64()), (0, Some(6)), "{back}");
    assert_eq!(weights(), "step 1");
    let (_, again) = registry(&home, &["rollback", "income", "--to-version", "2", "--deploy", deploy]);
    assert_eq!(again["deployed"]["copied_bytes"], 0, "a copy that verifies is used again: {again}");
    assert_eq!(weights(), "step 2");
    let mut left: Vec<_> = std::fs::read_dir(&srv).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, [".trackway-model.json", ".trackway-model.lock", "current", "v1", "v2"]);

    home.write("signature.json", r#"{"inputs": [{"name": "age", "type": "integer"}], "outputs": [{"name": "income", "type": "text"}]}"#);
    let signed = registry(&home, &["register", "signed", "--run", "last", "--signature", "signature.json"]);
    assert_eq!(signed.0, 0);
    assert_eq!(registry(&home, &["export", "signed", "latest", "--out", "out"]).0, 0);
    for (name, part) in [
        ("weights.bin", "step 3"),
        ("signature.json", "\"age\""),
        ("README.md", "| inputs | age | integer |"),
        ("manifest.json", "weights.bin"),
    ] {
        let text = std::fs::read_to_string(home.path().join("out").join(name)).unwrap();
        assert!(text.contains(part), "{name}: {text}");
    }
    assert_eq!(
        registry(&home, &["export", "signed", "1", "--out", "out"]).1["copied_bytes"],
        0,
        "the whole copy is there"
    );
    let other = home.trackway(&["registry", "export", "income", "1", "--out", "out"]);
    assert_eq!(other.code, 2, "another model is there: {}", other.stderr);
    home.write("signature.json", r#"{"inputs": [{"name": "age"}], "outputs": []}"#);
    let wrong = home.trackway(&[
        "registry", "register", "signed", "--run", "last", "--step", "1", "--signature", "signature.json",
    ]);
    assert!(wrong.code == 2 && wrong.stderr.contains("`inputs[0]` lacks"), "{}", wrong.stderr);
}

/// Proves that a rollback without `--deploy` says which version is served still, with a command that deploys the one in
/// production, and that nothing is said where no other version is served.
#[test]
fn a_rollback_says_what_is_served_still() {
    let home = registered(2, GATES);
    compare_nothing(&home);
    let srv = home.path().join("srv");
    let deploy = srv.to_str().unwrap();
    assert_eq!(registry(&home, &["promote", "income", "1"]).1.get("warnings"), None);
    for version in ["1", "2"] {
        let (code, there) = registry(&home, &["promote", "income", version, "--deploy", deploy]);
        assert_eq!((code, there.get("warnings")), (0, None), "{there}");
    }
    let (code, back) = registry(&home, &["rollback", "income"]);
    let warning = back["warnings"][0].as_str().unwrap();
    assert!(code == 0 && warning.contains("still points to version 2"), "{back}");
    let command = format!("trackway registry promote income 1 --to production --deploy {deploy}");
    assert!(warning.ends_with(&command), "{warning}");
    assert_eq!(registry(&home, &["promote", "income", "1", "--to", "production", "--deploy", deploy]).0, 0);
    assert_eq!(std::fs::read_to_string(srv.join("current/weights.bin")).unwrap(), "step 1");
    assert_eq!(registry(&home, &["promote", "income", "1"]).1.get("warnings"), None);
}

/// Proves that of several simultaneous changes of a model one wins and the others get an error, that numbers of
/// versions are never given twice, and that aliases move by compare-and-swap.
#[test]
fn two_at_once_do_not_overwrite_each_other() {
    let home = registered(2, GATES);
    let both: Vec<_> = ["1", "2", "1", "2"]
        .map(|version| home.spawn(&["registry", "promote", "income", version, "--expect", "none"]))
        .into_iter()
        .map(|child| child.wait_with_output().unwrap().status.code().unwrap())
        .collect();
    let won = both.iter().filter(|code| **code == 0).count();
    assert!(won >= 1 && both.iter().all(|code| [0, 7].contains(code)), "{both:?}");
    let promotions = home.sql("select version from model_changes where kind = 'promote'");
    assert_eq!(promotions.len(), 1, "{both:?} {promotions:?}");

    assert_eq!(registry(&home, &["alias", "income", "champion", "1", "--expect", "none"]).0, 0);
    assert_eq!(registry(&home, &["alias", "income", "champion", "2", "--expect", "2"]).0, 7);
    assert_eq!(registry(&home, &["alias", "income", "champion", "2", "--expect", "1"]).0, 0);
    assert_eq!(registry(&home, &["alias", "income", "production", "2"]).0, 2, "a stage is no alias");
    assert_eq!(registry(&home, &["alias", "income", "champion", "--remove"]).1["was_version"], 2);
    for word in ["none", "latest", "v2", "2"] {
        assert_eq!(registry(&home, &["alias", "income", word, "2"]).0, 2, "`{word}` is no alias");
    }
    let pin = checkpoints(&home).into_iter().find(|one| one["step"] == 1).unwrap()["pins"][0].clone();
    let unpin = ["checkpoint", "unpin", pin.as_str().unwrap()];
    let kept = home.trackway(&unpin);
    assert!(
        kept.code == 2 && kept.stderr.contains("registered version of model `income`"),
        "{}",
        kept.stderr
    );
    assert_eq!(home.trackway(&[&unpin[..], &["last", "--force"]].concat()).code, 0);

    let duplicates: Vec<_> = ["1", "2", "3"]
        .map(|step| home.spawn(&["registry", "register", "twins", "--run", "last", "--step", step]))
        .into_iter()
        .map(|child| child.wait_with_output().unwrap().status.code().unwrap())
        .collect();
    assert_eq!(duplicates, [0, 0, 0]);
    let versions = home.sql("select version from model_versions where model = 'twins' order by version");
    assert_eq!(versions, [1, 2, 3].map(|version| json!({ "version": version })));
}

/// Proves that approvals are of other people, bound to the gate receipt, and end.
#[test]
fn approvals_are_bound_to_their_evidence() {
    let home = registered(1, GATES);
    assert_eq!(registry(&home, &["policy", "income", "--approvals", "1"]).1["approvals"], 1);
    let refused = registry(&home, &["promote", "income", "1"]);
    assert_eq!((refused.0, refusals(&refused)), (5, vec!["registry.not_approved"]), "{}", refused.1);
    let me = home.sql("select registered_by from model_versions")[0]["registered_by"].clone();
    let own = registry(&home, &["approve", "income", "1", "--by", me.as_str().unwrap()]).1;
    assert_eq!(own["refusals"][0]["rule"], "registry.not_approved", "{own}");
    let short = registry(&home, &["approve", "income", "1", "--by", "ben", "--for", "1ms"]).1;
    std::thread::sleep(std::time::Duration::from_millis(5));
    let refused = registry(&home, &["promote", "income", "1"]);
    let why = refused.1["refusals"][0]["why"].as_str().unwrap();
    assert!(why.contains("ben (approval has expired)"), "{why} {short}");
    let approved =
        registry(&home, &["approve", "income", "1", "--by", "cem", "--why", "looked at the slices"]).1;
    assert_eq!(approved["refusals"], json!([]), "{approved}");

    let weak = document(&home.trackway(&["gates", "judge", "last", "--gate", "grade >= 0.2", "--json"]));
    assert_eq!(weak.0, 0, "{}", weak.1);
    let shown = registry(&home, &["show", "income"]).1;
    assert_eq!(
        shown["versions"][0]["refusals"],
        json!([]),
        "gates of another kind allow nothing, and forbid nothing: {shown}"
    );
    assert_eq!(evaluate(&home, &["--checkpoint", "1"]).0, 0);
    let refused = registry(&home, &["promote", "income", "1"]);
    let why = refused.1["refusals"].to_string();
    assert!(refused.0 == 5 && why.contains("cem (approved other evidence)"), "{why}");
}

/// Proves the three verdicts and their exit codes, and that a mistake in a gate is reported with its place.
#[test]
fn gates_say_no_or_cannot_tell() {
    let home = trained(
        GOOD,
        "gates = [\"grade >= 0.4\", \"grade >= 0.9\", \"agreement >= 0.1\", \"size_bytes < 1e6\"]",
    );
    let (code, receipt) = evaluate(&home, &[]);
    assert_eq!(code, 5, "{receipt}");
    let verdicts: Vec<&str> =
        receipt["gates"].as_array().unwrap().iter().map(|gate| gate["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["inconclusive", "fail", "inconclusive", "pass"], "{}", receipt["gates"]);
    let why = receipt["gates"][2]["why"].as_str().unwrap();
    assert!(why.contains("without an interval"), "{why}");
    let page = home.trackway(&["eval", "show", "last"]).stdout;
    assert!(page.contains("Gates") && page.contains("inconclusive"), "{page}");
    for (gate, code) in [("value(agreement) >= 0.1", 0), ("grade >= 0.9", 5), ("nothing > 1", 5)] {
        assert_eq!(home.trackway(&["gates", "judge", "last", "--gate", gate]).code, code, "{gate}");
    }
    let wrong = home.trackway(&["gates", "judge", "last", "--gate", "grade >> 1"]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    home.write("other.toml", "[run]\nname = \"x\"\ncommand = [\"true\"]\n[evaluate]\ncommand = [\"true\"]\ngates = [\"min(grade) > 0\"]\n");
    let wrong = home.trackway(&["run", "other.toml"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("write `min(slice.recall)`"), "{}", wrong.stderr);
    assert_eq!(home.trackway(&["gates", "judge", "evl_00000000000000000000000000"]).code, 6);
}

/// Proves that a run whose evaluation does not pass its gates says how many and why, beside its exit code, and that `explain` leads to the
/// evaluation; and that a run which passes says so.
#[test]
fn a_run_says_which_gates_do_not_pass() {
    let home = Home::new();
    for (gates, code, said, next) in [
        (
            "\"grade >= 0.3\", \"value(accuracy) >= 0.9\"",
            5,
            "1 of 2 gates does not pass",
            "trackway eval show evl_",
        ),
        ("\"grade >= 0.3\", \"value(accuracy) >= 0.4\"", 0, "all 2 gates pass", "no action is needed"),
    ] {
        write_job(&home, GOOD, "", &format!("gates = [{gates}]"));
        let run = home.trackway(&["run", "job.toml"]);
        assert!(run.code == code && run.stderr.contains(said), "{}", run.stderr);
        assert_eq!(run.stderr.contains("`value(accuracy) >= 0.9` fail: "), code == 5, "{}", run.stderr);
        let page = home.trackway(&["explain", "last"]).stdout;
        let actions = page.split("\nNext\n").nth(1).unwrap();
        assert!(page.contains(said) && actions.contains(next), "{page}");
    }
}

/// Proves that a gate against a baseline passes only by a comparison, or because nothing is in production yet: not where no baseline
/// was named, and not where the rows of both sides have nothing in common.
#[test]
fn a_gate_against_nothing_is_not_met() {
    let script = r#"printf "id,label,prediction\n$TRACKWAY_CHECKPOINT_STEP-1,a,a\n$TRACKWAY_CHECKPOINT_STEP-2,b,a\n" > "$TRACKWAY_EVALUATION_OUT/predictions.csv""#;
    let home = trained(script, "gates = [\"accuracy >= baseline\"]");
    let (code, unnamed) = evaluate(&home, &["--checkpoint", "1"]);
    let why = unnamed["gates"][0]["why"].as_str().unwrap();
    assert!(code == 5 && why.contains("no baseline was named"), "{unnamed}");
    let first = evaluate(&home, &["--checkpoint", "1", "--set", "evaluate.baseline=income@production"]);
    assert_eq!((first.0, &first.1["gates"][0]["verdict"]), (0, &json!("pass")), "{}", first.1);
    let named = format!("evaluate.baseline={}", unnamed["evaluation_id"].as_str().unwrap());
    let (code, apart) = evaluate(&home, &["--checkpoint", "2", "--set", &named]);
    assert_eq!((code, &apart["baseline_evaluation_id"]), (5, &unnamed["evaluation_id"]), "{apart}");
    assert_eq!(
        (&apart["gates"][0]["verdict"], &apart["comparison"]),
        (&json!("inconclusive"), &Value::Null),
        "{apart}"
    );
    assert_eq!(home.trackway(&["eval", "show", "last"]).code, 0);
}

/// Proves that gates with another baseline than an evaluation was compared with give the verdicts of a comparison with
/// that one; and what they do if the rows of both cannot be paired.
#[test]
fn another_baseline_is_compared_row_by_row() {
    let script = r#"
printf 'id,label,prediction\n' > "$TRACKWAY_EVALUATION_OUT/predictions.csv"
awk -v step="$TRACKWAY_CHECKPOINT_STEP" 'BEGIN { for (row = 0; row < 400; row++)
    printf "%s%d,a,%s\n", (step == 2 ? "x" : "r"), row, (row % 7 == 0 && (row || step == 3) || row == 399) ? "b" : "a" }' >> "$TRACKWAY_EVALUATION_OUT/predictions.csv"
sed -i '$ s/,a,/,b,/' "$TRACKWAY_EVALUATION_OUT/predictions.csv"
"#;
    let home = trained(script, "gates = [\"accuracy >= baseline - 0.02\"]");
    let id = |receipt: &Value| receipt["evaluation_id"].as_str().unwrap().to_owned();
    let [first, other, third] = ["1", "2", "3"].map(|step| evaluate(&home, &["--checkpoint", step]).1);
    let named = format!("evaluate.baseline={}", id(&first));
    let (code, together) = evaluate(&home, &["--checkpoint", "3", "--set", &named]);
    assert_eq!((code, &together["gates"][0]["verdict"]), (0, &json!("pass")), "{together}");
    let judge =
        |baseline: &str| home.trackway(&["gates", "judge", &id(&third), "--baseline", baseline, "--json"]);
    let (code, apart) = document(&judge(&id(&first)));
    assert_eq!((code, &apart["gates"], &apart["notes"]), (0, &together["gates"], &json!([])), "{apart}");

    let (code, strangers) = document(&judge(&id(&other)));
    assert_eq!((code, &strangers["gates"][0]["verdict"]), (5, &json!("inconclusive")), "{strangers}");
    assert!(
        strangers["notes"][0].as_str().unwrap().contains("no row of the baseline is a row of the candidate"),
        "{strangers}"
    );
    let page = home.trackway(&["gates", "judge", &id(&third), "--baseline", &id(&other)]);
    assert!(page.stderr.contains("not compared with the baseline row by row"), "{}", page.stderr);
    let kept = home.state().join(first["raw_outputs"]["path"].as_str().unwrap());
    std::fs::write(&kept, "other bytes").unwrap();
    assert_eq!(judge(&id(&first)).code, 7);
    std::fs::remove_file(&kept).unwrap();
    let (code, gone) = document(&judge(&id(&first)));
    assert!(code == 5 && gone["notes"][0].as_str().unwrap().contains("are gone"), "{gone}");
}

/// Proves that by default a promotion requires gates of five kinds, a task set and an approval, all named at once with the commands
/// that show and change the policy, and that the file which is written is read as the same policy.
#[test]
fn the_default_policy_is_strict() {
    let home = registered(1, GATES);
    assert_eq!(registry(&home, &["register", "strict", "--run", "last", "--step", "1"]).0, 0);
    let refused = registry(&home, &["promote", "strict", "1"]);
    let rules = ["registry.incomplete_receipt", "registry.missing_gate", "registry.not_approved"];
    assert_eq!((refused.0, refusals(&refused)), (5, rules.to_vec()), "{}", refused.1);
    let shown = home.trackway(&["registry", "promote", "strict", "1"]).stderr;
    for words in [
        "lacks `task_set` (registry.incomplete_receipt); set `task_set` in `[evaluate]`, then: trackway eval run run_",
        "gates about `slice`, `fairness`, `latency`, `size`",
        "0 of 1 approvals (registry.not_approved); a person who did not register it runs: trackway registry approve strict 1",
        "trackway registry policy strict --out policy.toml",
    ] {
        assert!(shown.contains(words), "no `{words}` in {shown}");
    }
    let (code, policy) = registry(&home, &["policy", "strict", "--out", "strict.toml"]);
    assert_eq!(code, 0, "{policy}");
    assert_eq!(registry(&home, &["policy", "strict", "--file", "strict.toml"]).1, policy);
    assert_eq!(home.trackway(&["registry", "policy", "strict", "--out", "strict.toml"]).code, 2, "it exists");
    set_policy(&home, "strict", EASY);
    assert_eq!(registry(&home, &["promote", "strict", "1"]).0, 0);
}

/// Proves that a policy can require what the attempt showed and how its evaluation was made, that each is met by what
/// is written down of it, and that the refusal names what is missing and the keys that give it.
#[test]
fn a_policy_asks_for_the_attempt_and_for_how_it_was_judged() {
    let strict = "gates = [\"quality\"]\napprovals = 0\nbaseline = \"optional\"\n\
        receipt = [\"decoding\", \"judge\", \"task_set_version\", \"failures\"]\n\
        attempt = [\"ended_well\", \"preflight\", \"data_unchanged\", \"resume_proved\", \"whole_checkpoint\"]\n";
    let home = registered(1, GATES);
    set_policy(&home, "income", strict);
    let refused = registry(&home, &["promote", "income", "1"]);
    assert_eq!(refusals(&refused), ["registry.attempt", "registry.incomplete_receipt"], "{}", refused.1);
    let why = |at: usize| refused.1["refusals"][at]["why"].as_str().unwrap();
    assert!(
        why(0).ends_with("does not show `data_unchanged`, `resume_proved`, `whole_checkpoint`"),
        "{}",
        why(0)
    );
    assert!(why(1).ends_with("lacks `task_set_version`, `decoding`, `judge`, `failures`"), "{}", why(1));

    let how = "task_set = \"tasks-v3.jsonl\"\ntask_set_version = \"3\"\ndecoding = { temperature = 0.0 }\n\
        judge = { model = \"judge-2\", rubric = \"v2\" }\n";
    write_job(&home, GOOD, "", &format!("after = false\n{how}{GATES}"));
    let (code, receipt) = evaluate(&home, &["--checkpoint", "1"]);
    assert_eq!(code, 0, "{receipt}");
    let refused = registry(&home, &["promote", "income", "1"]);
    assert_eq!(refusals(&refused), ["registry.attempt", "registry.incomplete_receipt"], "{}", refused.1);
    let why = refused.1["refusals"][1]["why"].as_str().unwrap();
    assert!(why.ends_with("lacks `failures`"), "the evaluator stores no rows: {why}");
    let strict = strict.replace(", \"failures\"", "");
    set_policy(
        &home,
        "income",
        &strict.replace(", \"data_unchanged\", \"resume_proved\", \"whole_checkpoint\"", ""),
    );
    assert_eq!(registry(&home, &["promote", "income", "1"]).0, 0);
}

/// Proves that a second version must be compared with the one in production, and that a policy file names more:
/// kinds of gate, parts of the receipt, approvers, uses of the test set; a file with mistakes changes nothing.
#[test]
fn a_policy_file_decides_what_production_needs() {
    let home = registered(2, &format!("task_set = \"tasks-v3.jsonl\"\n{GATES}"));
    assert_eq!(registry(&home, &["promote", "income", "1"]).0, 0);
    let refused = registry(&home, &["promote", "income", "2"]);
    assert_eq!((refused.0, refusals(&refused)), (5, vec!["registry.not_compared"]), "{}", refused.1);

    home.write(
        "policy.toml",
        "model = \"income\"\nbaseline = \"optional\"\ngates = [\"quality\", \"slice\", \"size\"]\napprovals = 1\n\
         approvers = [\"ada\"]\nreceipt = [\"outputs\", \"fairness\"]\ntest_set_uses_max = 1\n",
    );
    let (code, policy) = registry(&home, &["policy", "income", "--file", "policy.toml"]);
    assert_eq!((code, &policy["rung_fraction_min"]), (0, &json!(1.0)), "{policy}");
    let refused = registry(&home, &["promote", "income", "2"]);
    let rules = [
        "registry.incomplete_receipt",
        "registry.missing_gate",
        "registry.worn_test_set",
        "registry.not_approved",
    ];
    assert_eq!((refused.0, refusals(&refused)), (5, rules.to_vec()), "{}", refused.1);
    home.write(
        "policy.toml",
        "baseline = \"optional\"\ngates = [\"slice\", \"size\"]\ntest_set_uses_max = 1\n",
    );
    assert_eq!(registry(&home, &["policy", "income", "--file", "policy.toml", "--approvals", "1"]).0, 0);
    assert_eq!(registry(&home, &["approve", "income", "2", "--by", "ben"]).0, 0);
    let refused = registry(&home, &["promote", "income", "2"]);
    let rules = ["registry.missing_gate", "registry.worn_test_set"];
    assert_eq!((refused.0, refusals(&refused)), (5, rules.to_vec()), "{}", refused.1);
    let why = refused.1["refusals"][0]["why"].as_str().unwrap();
    assert!(why.contains("`slice`, `size`"), "{why}");
    let shown = home.trackway(&["registry", "policy", "income"]);
    assert!(shown.stderr.contains("gates that must be there: slice, size"), "{}", shown.stderr);

    for (text, code, words) in [
        ("gates = [\"speed\"]\n", 2, "policy.toml:1:9"),
        ("model = \"outcome\"\n", 2, "is the policy of `outcome`"),
    ] {
        home.write("policy.toml", text);
        let refused = home.trackway(&["registry", "policy", "income", "--file", "policy.toml"]);
        assert!(refused.code == code && refused.stderr.contains(words), "{}", refused.stderr);
    }
    assert_eq!(home.trackway(&["registry", "policy", "income", "--file", "none.toml"]).code, 6);
    let changes = home.sql("select count(*) as count from model_changes where kind = 'policy'");
    assert_eq!(changes, [json!({ "count": 3 })]);
}
