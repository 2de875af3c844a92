//! The class "one redaction door": a script leaks a secret through every channel there is, and no file of the home
//! holds it.

mod channels;

use serde_json::json;
use trackway_recorder::{Recorder, record_panics};

use crate::evaluations::write_job;
use crate::harness::{Home, files_below};

const ROLE: &str = "REDACTION_TEST_ROLE";
const VARIABLE: &str = "LAB_API_KEY";
/// No shape and no randomness: known by the name of its variable alone.
const LITERAL: &str = "plain words of the lab";

/// A secret with a known prefix, composed here so that no scanner takes this file for a leak.
fn shaped() -> String {
    format!("gh{}{}", "p_", "Ab1Cd2".repeat(6))
}

/// Proves nothing by itself: it is the training script of the test below, which launches this very binary.
#[test]
fn script() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let literal = std::env::var(VARIABLE).unwrap();
    let shaped = shaped();
    let run = Recorder::attach();
    record_panics(&run);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plot.svg");
    std::fs::write(&file, "plot").unwrap();
    for secret in [literal.as_str(), shaped.as_str()] {
        run.param("note", secret);
        run.param(secret, "x");
        run.tag("note", secret);
        run.tag(secret, "x");
        run.event("note", None, &[("why", secret), (secret, "x")]);
        run.event(secret, None, &[]);
        run.log(1, &[(secret, 1.0), ("loss", 0.5)]);
        run.log(2, &[("loss", 0.4), (secret, 1.0)]);
        run.artifact(secret, &file, Some(1));
        println!("\x1b[31m{secret}\x1b[0m and {{\"text\": \"a\\n{secret}\"}}");
        println!("{{\"step\": 1, \"{secret}\": 2}}");
        eprintln!("RuntimeError: cannot log in with {secret}");
    }
    run.param("db_password", "hunter2-by-name");
    run.tag("api_key", "hunter2-by-name");
    panic!("401 for key={literal} and {shaped}");
}

/// Proves that neither log, flight record, ledger, receipt, capture nor page holds a secret that a script, a run file,
/// an argument or a reason held.
#[test]
fn a_secret_leaves_through_no_channel() {
    let home = Home::with(&[(VARIABLE.to_owned(), LITERAL.to_owned())]);
    let (binary, shaped) = (home.program(), shaped());
    let command =
        json!([binary, "safety::redaction::script", "--exact", "--nocapture", "--skip", format!("{shaped}")]);
    home.write(
        "r.toml",
        &format!(
            "[run]\nname = \"leaky\"\ncommand = {command}\nenvironment = {{ {ROLE} = \"1\", NOTE = \"{shaped}\", TF_VAR_region = \"{shaped}\" }}\n\
             [owner]\nname = \"{shaped}\"\n[retry]\nunknown = {{ attempts = 0 }}\ncode_error = {{ attempts = 0 }}\n"
        ),
    );
    let why = format!("because of {LITERAL} and {shaped}");
    let run = home.trackway(&["run", "r.toml", "--skip-preflight", "--why", &why]);
    assert_eq!(run.code, 4, "{}", run.stderr);
    let secrets = [LITERAL, &shaped, "hunter2-by-name"];
    assert_no_file_holds(&home, &secrets);
    for shown in [home.trackway(&["explain", "leaky"]), home.trackway(&["--json", "explain", "leaky"])] {
        assert!(shown.code == 0 && shown.stdout.contains("[redacted:"), "{}", shown.stderr);
        assert!(!secrets.iter().any(|secret| shown.stdout.contains(secret)), "{}", shown.stdout);
    }
    let kept = home.sql("select count(*) as n from tags where value = '[redacted:named]'");
    assert_eq!(kept[0]["n"], 1);
}

/// Proves that the value of an option is hidden in the command and its parameters, that ordinary values of such options
/// and of given parameters are kept, and that of a run whose parameter or tag had a secret no run file is proposed, as
/// none can be written.
#[test]
fn options_and_parameters_keep_what_is_ordinary() {
    let home = Home::new();
    home.write("t.py", "print('step 1 loss 0.5')\n");
    for (name, given, is_proposed) in [
        ("plain", ["--param", "key=user_id"], true),
        ("parameter", ["--param", "api_key=tulip-44"], false),
        ("tag", ["--tag", "db_password=tulip-44"], false),
    ] {
        let command = ["python3", "t.py", "--token", "[MASK]", "--pass", "3", "--key", "col_name"];
        let run = [&["run", "--name", name, given[0], given[1], "--"][..], &command].concat();
        assert_eq!(home.trackway(&run).code, 0);
        let explained = home.trackway(&["explain", name]).stdout;
        assert_eq!(explained.contains("trackway init --from"), is_proposed, "{explained}");
        let output = format!("{name}.toml");
        let written = home.trackway(&["init", "--from", name, "--out", &output]);
        assert_eq!(written.code == 0, is_proposed, "{}", written.stderr);
        assert!(is_proposed || written.stderr.contains(&format!("a {name} of run")), "{}", written.stderr);
    }
    let kept = home.sql("select distinct name, value from parameters");
    for (name, value) in
        [("token", "[MASK]"), ("pass", "3"), ("key", "user_id"), ("api_key", "[redacted:named]")]
    {
        let is_kept = kept.iter().any(|row| row["name"] == name && row["value"] == value);
        assert!(is_kept, "{name}: {kept:?}");
    }
    for value in ["Zq7-tulip-Kd4", "a8f3k2m9x1"] {
        let line = format!("python3 t.py --key {value}");
        for command in [&["python3", "t.py", "--token", value][..], &["sh", "-c", line.as_str()]] {
            let run = [&["run", "--"][..], command].concat();
            assert_eq!(home.trackway(&run).code, 0);
        }
        assert_no_file_holds(&home, &[value]);
    }
    assert_no_file_holds(&home, &["tulip-44"]);
}

/// What an evaluator of the test below reports about itself and its numbers, with a secret wherever a string may be.
fn evaluator_of(secret: &str) -> String {
    let said = json!({
        "evaluator": { "name": format!("arc {secret}"), "version": secret },
        "task_set_version": secret,
        "decoding": { "api_key": "hunter2-by-name", "stop": secret },
        "judge": { "model": secret, "rubric": secret },
        "notes": [format!("asked with {secret}")],
    });
    format!(
        "cp told.csv \"$TRACKWAY_EVALUATION_OUT/predictions.csv\"\necho '{said}' > \"$TRACKWAY_EVALUATION_OUT/evaluation.json\"\n"
    )
}

/// Proves that no secret which an evaluation, its evaluator, a slice, a reason for a skip or a sign-off held is in a
/// file of the home, in what is shown, or in a page.
#[test]
fn evaluations_and_reasons_hold_no_secret() {
    let secret = shaped();
    let home = Home::with(&[(VARIABLE.to_owned(), LITERAL.to_owned())]);
    let more = format!(
        "after = false\ntask_set = \"tasks-v3.jsonl\"\ntask_set_version = \"{secret}\"\n\
         decoding = {{ api_key = \"hunter2-by-name\", system = \"{LITERAL}\", stop = \"{secret}\" }}\n\
         judge = {{ model = \"{secret}\", rubric = \"{LITERAL}\" }}\n\
         slices = {{ leaky = \"label <> '{secret}'\", literal = \"label <> '{LITERAL}'\" }}\n\
         [data.train]\npath = \"told.csv\"\nlabel = \"label\"\n\
         [preflight]\nskip = [{{ check = \"data.drift\", why = \"{secret} and {LITERAL}\" }}]\n\
         [governance]\npersonal_data = [{{ column = \"id\", kinds = [\"email\"], approved_by = \"{secret}\", why = \"{LITERAL}\" }}]\n"
    );
    for hidden in [secret.as_str(), LITERAL] {
        write_job(&home, &evaluator_of(hidden), "", &more);
        home.write("told.csv", "id,label,prediction\n1,a,a\n2,b,b\n3,a,b\n4,b,a\n");
        let why = format!("asked by {hidden}");
        let run = home.trackway(&["run", "job.toml", "--skip-preflight", "--why", &why]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let checked = home.trackway(&["preflight", "job.toml", "--html", "checks.html"]);
        assert!([0, 3].contains(&checked.code), "{}", checked.stderr);
        let judged = home.trackway(&["eval", "run", "job.toml", "--html", "judged.html"]);
        assert_eq!(judged.code, 0, "{}{}", judged.stdout, judged.stderr);
        let mut shown = vec![run, checked, judged];
        for arguments in [
            &["eval", "show", "last"][..],
            &["--json", "eval", "show", "last"],
            &["eval", "ls"],
            &["--json", "eval", "ls"],
            &["--json", "preflight", "job.toml"],
            &["explain", "last"],
            &["--json", "explain", "last"],
            &["--json", "sql", "select * from evaluations"],
            &["--json", "sql", "select * from preflight_checks"],
        ] {
            shown.push(home.trackway(arguments));
        }
        let pages = ["checks.html", "judged.html"]
            .map(|name| std::fs::read_to_string(home.path().join(name)).unwrap());
        let texts = shown.into_iter().flat_map(|answer| [answer.stdout, answer.stderr]).chain(pages);
        for (number, text) in texts.enumerate() {
            for secret in [LITERAL, &secret, "hunter2-by-name"] {
                assert!(!text.contains(secret), "{number}: {text}");
            }
        }
    }
    assert_no_file_holds(&home, &[LITERAL, &secret, "hunter2-by-name"]);
}

fn assert_no_file_holds(home: &Home, secrets: &[&str]) {
    for file in files_below(&home.state()) {
        let bytes = std::fs::read(&file).unwrap_or_default();
        for secret in secrets {
            let holds = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!holds, "{} holds {secret}", file.display());
        }
    }
}

/// Proves that a ledger's password is in no file name and in no message, however it is given.
#[test]
fn a_password_of_a_ledger_is_not_shown() {
    let home = Home::new();
    for (location, code) in [
        ("host=127.0.0.1 port=1 user=ana password=swordfish-99", 2),
        ("postgres://ana:sword/fish-99@127.0.0.1:1/none", 1),
        ("postgres://ana:swordfish-99@127.0.0.1:1/none", 1),
    ] {
        let answer = home.trackway(&["--ledger", location, "runs"]);
        assert_eq!(answer.code, code, "{}", answer.stderr);
        assert!(!answer.stderr.contains("fish-99"), "{}", answer.stderr);
    }
    let names: Vec<_> = files_below(home.path()).into_iter().map(|path| path.display().to_string()).collect();
    assert!(!names.iter().any(|name| name.contains("fish-99")), "{names:?}");
}
