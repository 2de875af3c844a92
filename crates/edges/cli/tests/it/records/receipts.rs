//! What a run leaves.

use serde_json::Value;

use crate::harness::{Home, files_below};

/// GPU hours of a week by reason, as a user writes it.
pub const WEEKLY_REASONS: &str =
    "select termination_reason, count(*) as attempts, sum(gpu_seconds) / 3600 as gpu_hours
from training_attempts where model_family = 'reasoning' and started_at >= now() - interval '7 days'
group by termination_reason order by gpu_hours desc;";

/// Proves that any command gets a receipt, and that the JSON of `run` keeps its contract.
#[test]
fn any_command_leaves_a_receipt() {
    let home = Home::new();
    let (code, run) = home.run_script(&[], "echo hello; echo oops >&2");
    assert_eq!(code, 0, "{run}");
    assert_eq!(run["state"], "completed");
    let attempt = &run["attempts"][0];
    assert_eq!(attempt["termination_reason"], "completed");
    assert_eq!(attempt["exit_code"], 0);
    assert_eq!(attempt["signal"], Value::Null);
    for key in ["attempt_id", "gpu_seconds", "last_committed_step"] {
        assert!(attempt.get(key).is_some(), "{key} is missing in {attempt}");
    }
    for key in ["run_id", "evaluation", "gates"] {
        assert!(run.get(key).is_some(), "{key} is missing in {run}");
    }
    let rows = home
        .sql("select exit_code, termination_reason, sealed_at is not null as sealed from training_attempts");
    assert_eq!(rows[0]["termination_reason"], "completed");
    assert_eq!(rows[0]["sealed"], true);
}

/// Proves that the script's output is passed on and stored as it is, each stream apart, and read back with times.
#[test]
fn output_is_kept_unaltered_and_apart() {
    let home = Home::new();
    let script = r"printf 'a\nb\000\377\n'; printf 'err\n' >&2; printf 'no newline'";
    let answer = home.trackway(&["run", "--", "sh", "-c", script]);
    assert!(answer.stdout.starts_with("a\nb\0"), "{:?}", answer.stdout);
    assert!(answer.stderr.contains("err\n"));
    let folder = files_below(&home.state().join("attempts"));
    let stored = |name: &str| {
        let path = folder.iter().find(|path| path.ends_with(name)).unwrap_or_else(|| panic!("{name}"));
        std::fs::read(path).unwrap()
    };
    assert_eq!(stored("stdout.log"), b"a\nb\0\xff\nno newline");
    assert_eq!(stored("stderr.log"), b"err\n");
    let logs = home.trackway(&["logs", "last", "--stream", "stderr"]);
    assert_eq!(logs.stdout, "err\n");
    let line: Value =
        serde_json::from_str(home.trackway(&["logs", "last", "--json"]).stdout.lines().next().unwrap())
            .unwrap();
    assert!(line["at"].is_string() && line["stream"].is_string(), "{line}");
}

/// Proves that a wrapper's code 137 and a signal 9 stay different things, and that neither is explained away.
#[test]
fn code_137_is_not_signal_9() {
    let home = Home::new();
    let (code, run) = home.run_script(&[], "exit 137");
    assert_eq!(code, 4);
    assert_eq!(run["attempts"][0]["exit_code"], 137);
    assert_eq!(run["attempts"][0]["signal"], Value::Null);
    let (code, run) = home.run_script(&[], "kill -9 $$");
    assert_eq!(code, 4);
    assert_eq!(run["attempts"][0]["exit_code"], Value::Null);
    assert_eq!(run["attempts"][0]["signal"], 9);
    assert_eq!(run["attempts"][0]["termination_reason"], "unknown");
}

/// Proves that the script's exit code is handed on when requested.
#[test]
fn exit_with_child_returns_the_scripts_code() {
    let home = Home::new();
    let answer = home.trackway(&["run", "--exit-with-child", "--", "sh", "-c", "exit 42"]);
    assert_eq!(answer.code, 42);
}

/// Proves that printed JSON lines become metrics without any import, live and closed alike.
#[test]
fn printed_json_lines_become_metrics() {
    let home = Home::new();
    let script = r#"for i in 1 2 3; do echo "{\"step\": $i, \"loss\": 0.$i}"; done; echo not json; echo '{"a": "text"}'"#;
    let (code, _) = home.run_script(&[], script);
    assert_eq!(code, 0);
    let rows = home.sql("select step, value from metrics where name = 'loss' order by step");
    let steps: Vec<u64> = rows.iter().filter_map(|row| row["step"].as_u64()).collect();
    assert_eq!(steps, [1, 2, 3], "{rows:?}");
    assert_eq!(rows[2]["value"], 0.3);
    let last = home.sql("select last_step from training_attempts");
    assert_eq!(last[0]["last_step"], 3);
}

/// Proves that the query runs as it is written, and that the error for a wrong column suggests the nearest name.
#[test]
fn the_query_of_a_week_runs() {
    let home = Home::new();
    home.has_gpus(2);
    let file = home.write(
        "trackway.toml",
        "[run]\nname = \"r\"\nmodel_family = \"reasoning\"\ncommand = [\"true\"]\n[resources]\ngpus = 2\n",
    );
    assert_eq!(home.trackway(&["run", file.to_str().unwrap()]).code, 0);
    let rows = home.sql(WEEKLY_REASONS);
    assert_eq!(rows[0]["termination_reason"], "completed");
    assert_eq!(rows[0]["attempts"], 1);
    assert!(rows[0]["gpu_hours"].as_f64().unwrap() > 0.0);
    let answer = home.trackway(&["sql", "select terminaton_reason from training_attempts"]);
    assert_eq!(answer.code, 2, "{}", answer.stderr);
    assert!(answer.stderr.contains("termination_reason"), "{}", answer.stderr);
    let answer = home.trackway(&["sql", "delete from events"]);
    assert_eq!(answer.code, 2, "{}", answer.stderr);
}

/// Proves that planted secrets in arguments, environment, run file and output are nowhere in the home.
#[test]
fn planted_secrets_are_nowhere_in_the_home() {
    let home = Home::new();
    let planted = [
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "correct-horse-battery",
        "AKIAIOSFODNN7EXAMPLE",
        "tok-argument-9876543210",
    ];
    let file = home.write(
        "trackway.toml",
        &format!(
            "[run]\nname = \"s\"\ncommand = [\"sh\", \"-c\", \"echo $DB_PASSWORD; echo key {}\", \"--token={}\"]\n[run.environment]\nAWS_KEY = \"{}\"\n",
            planted[0], planted[3], planted[2]
        ),
    );
    let output =
        home.command(&["run", file.to_str().unwrap()]).env("DB_PASSWORD", planted[1]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut checked = 0;
    for path in files_below(&home.state()) {
        let bytes = std::fs::read(&path).unwrap();
        checked += 1;
        for secret in planted {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "`{secret}` is in {}", path.display());
        }
    }
    assert!(checked > 5, "only {checked} files were looked at");
    let stored = home.trackway(&["logs", "last"]).stdout;
    assert!(stored.contains("[redacted:"), "{stored}");
}

/// Proves that `explain` has every field of its contract and gives the reason with its evidence.
#[test]
fn explain_tells_why() {
    let home = Home::new();
    let script = "echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.90 GiB' >&2; exit 1";
    let (code, run) = home.run_script(&[], script);
    assert_eq!(code, 4);
    assert_eq!(run["attempts"][0]["termination_reason"], "device_oom");
    let page = home.json(&["explain", "last"]);
    for key in [
        "attempt", "run", "since_last_good", "placement", "timeline", "termination", "checkpoints",
        "retries", "evaluations", "cost", "next_actions",
    ] {
        assert!(page.get(key).is_some(), "{key} is missing");
    }
    for key in ["reason", "rule", "domain", "retry_outlook", "evidence"] {
        assert!(page["termination"].get(key).is_some(), "termination.{key} is missing");
    }
    assert!(!page["next_actions"].as_array().unwrap().is_empty());
    let text = home.trackway(&["explain", "last"]).stdout;
    for word in ["device_oom", "CUDA out of memory", "Timeline", "Checkpoints", "Next", "line 1"] {
        assert!(text.contains(word), "`{word}` is not on the page:\n{text}");
    }
}

/// Proves that the file of torch's `@record` is read and decides, if the output is not informative.
#[test]
fn the_elastic_error_file_is_evidence() {
    let home = Home::new();
    let script = r#"printf '{"message": {"message": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "extraInfo": {"py_callstack": "", "timestamp": "1700000000"}}}' > "$TORCHELASTIC_ERROR_FILE"; exit 1"#;
    let (code, run) = home.run_script(&[], script);
    assert_eq!(code, 4);
    assert_eq!(run["attempts"][0]["termination_reason"], "device_oom", "{run}");
    let page = home.json(&["explain", "last"]);
    assert_eq!(page["termination"]["evidence"][0]["source"], "error_file");
}

/// Proves that a command without a run file is launched once, and that its run failed, whatever the reason.
#[test]
fn a_bare_command_is_launched_once() {
    let home = Home::new();
    let (_, run) = home
        .run_script(&[], "echo 'requests.exceptions.ConnectionError: Connection reset by peer' >&2; exit 1");
    assert_eq!(run["state"], "failed");
    assert_eq!(run["attempts"].as_array().map(Vec::len), Some(1));
    assert_eq!(home.sql("select rule from retries")[0]["rule"], "policy.no_run_file");
}

/// Proves that lists find what ran, by id fragment, by name and by `last`.
#[test]
fn runs_and_attempts_are_found_by_name_fragment_and_last() {
    let home = Home::new();
    home.run_script(&["--name", "first"], "true");
    home.run_script(&["--name", "second"], "true");
    let runs = home.json(&["runs"]);
    assert_eq!(runs.as_array().map(Vec::len), Some(2));
    assert_eq!(runs[0]["name"], "second");
    let run_id = runs[1]["run_id"].as_str().unwrap();
    for subject in ["first", run_id, &run_id[run_id.len() - 8..]] {
        assert_eq!(home.json(&["explain", subject])["run"]["name"], "first", "{subject}");
    }
    assert_eq!(home.json(&["attempts", "first"]).as_array().map(Vec::len), Some(1));
    let missing = home.trackway(&["explain", "nothing-like-it"]);
    assert_eq!(missing.code, 6, "{}", missing.stderr);
}
