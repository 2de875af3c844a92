//! What a person sees of evaluations, gates and model versions.

use super::{assert_screens, home, screen};
use crate::evaluations::{GOOD, write_job};
use crate::harness::Home;
use crate::models::registry::{EASY, set_policy};

/// A home with a run of three checkpoints, an evaluator, a task set and gates.
fn trained(gates: &str) -> Home {
    let home = home();
    write_job(&home, GOOD, "", &format!("after = false\ntask_set = \"tasks-v3.jsonl\"\ngates = [{gates}]"));
    assert_eq!(home.trackway(&["run", "job.toml"]).code, 0);
    home
}

/// Proves what `eval run`, `eval ls` and `eval show` show of evaluations that completed, whose gates did not pass, and that failed.
#[test]
fn evaluations_are_shown() {
    let home = trained("\"grade >= 0.3\"");
    let run = ["eval", "run", "job.toml"];
    let gates = ["--set", "evaluate.gates=['grade >= 0.9', 'agreement >= 0.1']", "--checkpoint", "2"];
    assert_screens(
        &home,
        &[
            ("eval_ls_none", &["eval", "ls"]),
            ("eval_show_none", &["eval", "show"]),
            ("eval_run_completed", &run),
            ("eval_show_completed", &["eval", "show", "last"]),
            ("eval_run_gates_failed", &[&run[..], &gates].concat()),
            ("eval_show_gates_failed", &["eval", "show", "last"]),
        ],
    );
    home.write("eval.sh", "echo 'KeyError: \"label\"' >&2; exit 1");
    assert_screens(
        &home,
        &[
            ("eval_run_failed", &[&run[..], &["--set", "evaluate.retry.attempts=1"]].concat()),
            ("eval_show_failed", &["eval", "show", "last"]),
            ("eval_ls", &["eval", "ls"]),
            ("eval_run_no_checkpoint", &["eval", "run", "last", "--checkpoint", "9"]),
        ],
    );
}

/// Proves what `gates` shows of gates that pass, fail, are inconclusive, are wrong, and are tested against known-bad models.
#[test]
fn gates_are_shown() {
    let home = trained("\"grade >= 0.3\", \"agreement >= 0.1\"");
    let fixture =
        ["gates", "fixture", "last", "--set", "grade=-0.9", "--name", "untrained", "--out", "bad.json"];
    home.trackway(&["eval", "run", "job.toml"]);
    let judge = |gate: &'static str| ["gates", "judge", "last", "--gate", gate];
    assert_screens(
        &home,
        &[
            ("gates_judge_pass", &judge("grade >= 0.3")),
            ("gates_judge_fail", &judge("grade >= 0.9")),
            ("gates_judge_inconclusive", &judge("grade >= 0.4")),
            ("gates_judge_of_file", &["gates", "judge"]),
            ("gates_judge_no_baseline", &judge("grade >= baseline")),
            ("gates_judge_unknown", &judge("graed >= 0.4")),
            ("gates_judge_wrong", &judge("grade >> 0.4")),
            ("gates_fixture", &fixture),
            ("gates_test_not_all", &["gates", "test", "job.toml", "--bad", "bad.json"]),
            ("gates_test", &["gates", "test", "--gate", "grade >= 0.3", "--bad", "bad.json"]),
        ],
    );
}

/// Proves what `registry` shows of a model from its first version to a rollback, refused promotions included.
#[test]
fn models_are_shown() {
    let home = trained("\"grade >= 0.3\"");
    let register = |step: &'static str| ["registry", "register", "income", "--run", "last", "--step", step];
    let evaluate = |step: &str| {
        assert_eq!(home.trackway(&["eval", "run", "job.toml", "--checkpoint", step]).code, 0);
    };
    assert_screens(
        &home,
        &[
            ("registry_ls_none", &["registry", "ls"]),
            ("registry_show_none", &["registry", "show", "income"]),
            ("registry_register", &register("1")),
            ("registry_register_again", &register("1")),
            ("registry_show_new", &["registry", "show", "income"]),
            ("registry_promote_not_evaluated", &["registry", "promote", "income", "1"]),
        ],
    );
    evaluate("1");
    assert_screens(&home, &[("registry_promote_not_verified", &["registry", "promote", "income", "1"])]);
    let bad = ["gates", "fixture", "last", "--set", "grade=-0.9", "--name", "untrained", "--out", "bad.json"];
    assert_eq!(home.json(&bad)["name"], "untrained");
    assert_eq!(home.trackway(&["gates", "test", "job.toml", "--bad", "bad.json"]).code, 0);
    home.trackway(&register("2"));
    assert_eq!(home.json(&["registry", "ls"])[0]["version_count"], 2);
    evaluate("2");
    set_policy(&home, "income", EASY);
    home.write("policy.toml", &format!("{EASY}baseline = \"optional\"\n"));
    let deploy = |version: &'static str| ["registry", "promote", "income", version, "--deploy", "srv"];
    assert_screens(
        &home,
        &[
            ("registry_promote_staging", &["registry", "promote", "income", "1", "--to", "staging"]),
            ("registry_promote", &deploy("1")),
            ("registry_promote_again", &deploy("1")),
            ("registry_promote_not_compared", &["registry", "promote", "income", "2"]),
            ("registry_policy_file", &["registry", "policy", "income", "--file", "policy.toml"]),
            ("registry_policy", &["registry", "policy", "income", "--approvals", "1"]),
            (
                "registry_approve",
                &["registry", "approve", "income", "2", "--by", "Ben", "--why", "good slices"],
            ),
        ],
    );
    evaluate_against(&home, "2");
    after_the_second(&home);
}

/// Judges a version by its gates against the one in production.
fn evaluate_against(home: &Home, version: &str) {
    let judged = screen(home, &["gates", "judge", "last", "--baseline", "income@production"]);
    insta::assert_snapshot!("gates_judge_against_production", judged);
    assert_eq!(home.trackway(&["registry", "approve", "income", version, "--by", "Ben"]).code, 0);
}

fn after_the_second(home: &Home) {
    assert_screens(
        home,
        &[
            ("registry_promote_second", &["registry", "promote", "income", "2", "--why", "more data"]),
            ("registry_promote_expected", &["registry", "promote", "income", "1", "--expect", "1"]),
            ("registry_alias", &["registry", "alias", "income", "champion", "2"]),
            ("registry_show", &["registry", "show", "income"]),
            ("registry_rollback", &["registry", "rollback", "income", "--why", "errors"]),
            ("registry_rollback_nothing", &["registry", "rollback", "income"]),
            ("registry_history", &["registry", "history", "income"]),
            ("registry_history_at", &["registry", "history", "income", "--at", "2100-01-01T00:00:00Z"]),
            ("registry_ls", &["registry", "ls"]),
            ("registry_export", &["registry", "export", "income", "production", "--out", "model"]),
            ("registry_card", &["registry", "card", "income", "production"]),
        ],
    );
}
