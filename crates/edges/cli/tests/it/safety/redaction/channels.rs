//! Every form in which secrets are met, through every channel into a home. The channels are listed where their doors are
//! (`crates/base/redact/src/tests/channels.json`): one without a row here fails.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::json;
use trackway_recorder::{Recorder, record_panics};

use crate::evaluations::write_job;
use crate::harness::{Answer, Home, files_below};

const ROLE: &str = "REDACTION_CHANNELS_ROLE";
const FORMS_FILE: &str = "forms.json";
/// So many of the forms, at least, must be found in each channel.
const RECALL_MIN: f64 = 0.99;
/// The same in what is shown of data, where values are cut: of a form that was cut there may be left what is secret
/// only with its rest, such as the header of a JSON Web Token or the number in the address of a webhook.
const CUT_RECALL_MIN: f64 = 0.985;
/// Shorter parts of a form are no secret by themselves.
const PART_BYTES_MIN: usize = 12;
/// Forms in one text: longer texts are cut in the ledger.
const FORMS_TOGETHER: usize = 12;

/// A form with the parts of it that must not be left.
struct Form {
    text: String,
    parts: Vec<String>,
}

/// How a channel is proved.
enum Row {
    /// Sends the forms, and gives what was printed.
    Sends(fn(&Home, &[Form]) -> Vec<Answer>),
    /// By a test of a file, which has what this suite lacks.
    Elsewhere(&'static str, &'static str),
}

const ROWS: [(&str, Row); 28] = [
    ("stdout", Row::Sends(|home, _| vec![run(home, &["sh", "-c", "cat all.txt; sed 's/^/INFO /' all.txt"])])),
    ("stderr", Row::Sends(|home, _| vec![run(home, &["sh", "-c", "cat all.txt >&2"])])),
    ("printed records", Row::Sends(printed)),
    ("TensorBoard", Row::Sends(tensorboard)),
    ("metric files", Row::Sends(metric_files)),
    ("Python package", Row::Sends(package)),
    ("arguments", Row::Sends(arguments)),
    ("environment", Row::Sends(environment)),
    ("variables of Trackway", Row::Sends(own_variables)),
    ("run file", Row::Sends(run_file)),
    (
        "job template",
        Row::Elsewhere("crates/run/launch/src/request.rs", "a_template_is_stored_without_secrets"),
    ),
    ("lock file", Row::Sends(lock_file)),
    ("changes", Row::Sends(changes)),
    ("untracked files", Row::Sends(untracked)),
    ("script", Row::Sends(script_file)),
    ("git remote", Row::Sends(remote)),
    ("reasons", Row::Sends(reasons)),
    ("notes and tags", Row::Sends(notes)),
    (
        "notifications",
        Row::Elsewhere(
            "crates/edges/cli/tests/it/records/notifications.rs",
            "a_failing_webhook_fails_no_run",
        ),
    ),
    (
        "states of engines",
        Row::Elsewhere(
            "crates/app/engine/src/run/seal/engine_end.rs",
            "words_of_an_engine_are_kept_without_secrets",
        ),
    ),
    ("evaluator", Row::Sends(evaluator)),
    ("imported evaluation", Row::Sends(imported_evaluation)),
    ("imported runs", Row::Sends(imported)),
    ("findings", Row::Sends(findings)),
    ("data", Row::Sends(data)),
    ("names of checkpoints", Row::Sends(checkpoint_names)),
    ("rows of the ledger", Row::Elsewhere("crates/storage/ledger/src/text.rs", "a_row_loses_its_secrets")),
    (
        "address of the ledger",
        Row::Elsewhere(
            "crates/edges/cli/tests/it/safety/redaction.rs",
            "a_password_of_a_ledger_is_not_shown",
        ),
    ),
];

fn repository() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Proves nothing by itself: it is the training script of one row, which launches this very binary.
#[test]
fn script() {
    let Some(path) = std::env::var_os(ROLE) else { return };
    let texts: Vec<String> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let run = Recorder::attach();
    record_panics(&run);
    let file = std::env::temp_dir().join(format!("plot-{}.svg", std::process::id()));
    std::fs::write(&file, "plot").unwrap();
    for (step, text) in (1..).zip(&texts) {
        run.param(&format!("p{step}"), text);
        run.tag(&format!("t{step}"), text);
        run.event("note", None, &[("why", text)]);
        run.log(step, &[(text, 1.0), ("loss", 0.5)]);
        run.artifact(text, &file, Some(step));
    }
    panic!("failed with {}", texts.join("\n"));
}

/// Proves that 99 of 100 secrets are in no file of the home, in no name of one, in no row of the ledger and in nothing that is printed,
/// whatever channel they came through, and that each channel has a row here.
#[test]
fn no_channel_lets_a_secret_into_a_home() {
    let channels: serde_json::Value =
        serde_json::from_str(include_str!("../../../../../../base/redact/src/tests/channels.json")).unwrap();
    let listed = channels["doors"].as_object().unwrap();
    let rows: BTreeSet<&str> = ROWS.iter().map(|(channel, _)| *channel).collect();
    assert_eq!(listed.keys().map(String::as_str).collect::<BTreeSet<_>>(), rows, "each channel has a row");
    let forms = forms();
    let mut leaks = Vec::new();
    for (channel, row) in ROWS {
        match row {
            Row::Elsewhere(file, test) => {
                let tests = std::fs::read_to_string(repository().join(file)).unwrap();
                assert!(
                    tests.contains(&format!("#[test]\n    fn {test}()"))
                        || tests.contains(&format!("#[test]\nfn {test}()")),
                    "{channel}: no test {test} in {file}"
                );
            }
            Row::Sends(send) => {
                let home = Home::with(&[("LANG".into(), "C.UTF-8".into())]);
                let all: String = forms.iter().map(|form| format!("{}\n", form.text)).collect();
                home.write("all.txt", &all);
                let texts: Vec<&str> = forms.iter().map(|form| form.text.as_str()).collect();
                home.write(FORMS_FILE, &json!(texts).to_string());
                let shown = send(&home, &forms);
                let left = leaked(&home, &shown, &forms);
                let floor = if channel == "data" { CUT_RECALL_MIN } else { RECALL_MIN };
                if left.len() as f64 > forms.len() as f64 * (1.0 - floor) {
                    leaks.push(format!("{channel}: {} of {}: {left:#?}", left.len(), forms.len()));
                }
            }
        }
    }
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
}

/// The forms of which a part is left somewhere, with the place.
fn leaked<'f>(home: &Home, shown: &[Answer], forms: &'f [Form]) -> Vec<(&'f str, String)> {
    assert!(home.state().is_dir(), "nothing was written");
    let mut places: Vec<(String, String)> = Vec::new();
    for file in files_below(&home.state()).into_iter().chain(files_below(&home.path().join("out"))) {
        let bytes = std::fs::read(&file).unwrap_or_default();
        // Both bytes of UTF-16 too.
        let narrow: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 0).collect();
        let name = file.strip_prefix(home.path()).unwrap().display().to_string();
        // A checkpoint is written back under the names that the script gave its files, and found again by them.
        if name.starts_with("home/checkpoints/") || name.ends_with("/writers.json") {
            continue;
        }
        places.push((format!("the name of {name}"), name.clone()));
        places.push((name, String::from_utf8_lossy(&narrow).into_owned()));
    }
    for table in
        ["parameters", "tags", "events", "artifacts", "training_attempts", "runs", "preflight_checks"]
    {
        let rows = home.trackway(&["--json", "sql", &format!("select * from {table}")]);
        places.push((format!("table {table}"), rows.stdout));
    }
    let names = home.trackway(&["--json", "sql", "select distinct name from metrics"]);
    places.push(("names of metrics".into(), names.stdout));
    places.extend(
        shown.iter().map(|answer| ("output".into(), format!("{}\n{}", answer.stdout, answer.stderr))),
    );
    let is_left = |form: &&Form| {
        let end = |part: &str| part[part.len() - part.len().min(PART_BYTES_MIN)..].to_owned();
        let ends: Vec<String> = form.parts.iter().map(|part| end(part)).collect();
        places
            .iter()
            .find(|(_, text)| ends.iter().any(|end| text.contains(end.as_str())))
            .map(|(place, _)| place.clone())
    };
    forms.iter().filter_map(|form| Some((form.text.as_str(), is_left(&form)?))).collect()
}

/// Every form of `forms.json`, made of random letters of its classes.
fn forms() -> Vec<Form> {
    let groups: BTreeMap<String, Vec<String>> =
        serde_json::from_str(include_str!("../../../../../../base/redact/src/tests/forms.json")).unwrap();
    let mut seed = 11u64;
    let made: Vec<Form> = groups.values().flatten().map(|form| made(form, &mut seed)).collect();
    assert!(made.len() >= 134, "{}", made.len());
    made
}

fn made(form: &str, seed: &mut u64) -> Form {
    let (mut text, mut parts, mut rest) = (String::new(), Vec::new(), form);
    while let Some((literal, tail)) = rest.split_once('{') {
        let (class, tail) = tail.split_once('}').unwrap();
        let (class, count) = class.split_once(':').unwrap();
        let part = letters(class, count.parse().unwrap(), seed);
        text.extend([literal, &part]);
        parts.extend((part.len() >= PART_BYTES_MIN).then_some(part));
        rest = tail;
    }
    text.push_str(rest);
    Form { text: text.replace('«', "{").replace('»', "}"), parts }
}

/// Letters of a class; the second is a digit, so that none is a word by coincidence.
fn letters(class: &str, count: usize, seed: &mut u64) -> String {
    let all = match class {
        "digit" => "0123456789",
        "hex" => "0123456789abcdef",
        "upnum" => "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "lownum" => "0123456789abcdefghijklmnopqrstuvwxyz",
        _ => "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    };
    let mut roll = |sides: usize| {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((*seed >> 33) as usize) % sides
    };
    (0..count).map(|at| char::from(all.as_bytes()[roll(if at == 1 { 10 } else { all.len() })])).collect()
}

fn run(home: &Home, command: &[&str]) -> Answer {
    let answer = home.trackway(&[&["run", "--skip-preflight", "--why", "a test", "--"], command].concat());
    assert!([0, 4].contains(&answer.code), "{}", answer.stderr);
    answer
}

fn explained(home: &Home) -> Vec<Answer> {
    vec![
        home.trackway(&["explain", "last"]),
        home.trackway(&["--json", "explain", "last"]),
        home.trackway(&["logs", "last"]),
    ]
}

fn together(forms: &[Form]) -> Vec<String> {
    forms
        .chunks(FORMS_TOGETHER)
        .map(|some| some.iter().map(|form| form.text.as_str()).collect::<Vec<_>>().join("\n"))
        .collect()
}

fn printed(home: &Home, forms: &[Form]) -> Vec<Answer> {
    let mut lines: Vec<String> =
        (1..).zip(forms).map(|(step, form)| json!({ "step": step, &form.text: step }).to_string()).collect();
    lines.extend(forms.iter().map(|form| format!("config: {}", json!({ "note": form.text }))));
    home.write("lines.txt", &lines.join("\n"));
    run(home, &["cat", "lines.txt"]);
    explained(home)
}

fn package(home: &Home, _: &[Form]) -> Vec<Answer> {
    let binary = std::env::current_exe().unwrap();
    let command = json!([binary, "safety::redaction::channels::script", "--exact", "--nocapture"]);
    let file = home.path().join(FORMS_FILE);
    home.write(
        "r.toml",
        &format!(
            "[run]\nname = \"x\"\ncommand = {command}\nenvironment = {{ {ROLE} = {} }}\n[retry]\nunknown = {{ attempts = 0 }}\ncode_error = {{ attempts = 0 }}\n",
            json!(file)
        ),
    );
    let failed = home.trackway(&["run", "r.toml", "--skip-preflight", "--why", "a test"]);
    assert_eq!(failed.code, 4, "{}", failed.stderr);
    explained(home).into_iter().chain([failed]).collect()
}

fn arguments(home: &Home, forms: &[Form]) -> Vec<Answer> {
    let texts: Vec<&str> = forms.iter().map(|form| form.text.as_str()).collect();
    let mut shown = vec![run(home, &[&["true"][..], &texts[..]].concat())];
    for code in together(forms) {
        shown.push(run(home, &["sh", "-c", &format!("true <<'END'\n{code}\nEND\n")]));
    }
    shown.extend(explained(home));
    shown
}

fn environment(home: &Home, forms: &[Form]) -> Vec<Answer> {
    let set: Vec<String> =
        (0..).zip(forms).map(|(at, form)| format!("V{at} = {}", json!(form.text))).collect();
    let passed: Vec<String> = (0..forms.len()).map(|at| format!("W{at}")).collect();
    let (set, passed) = (set.join(", "), json!(passed));
    home.write("r.toml", &format!("[run]\nname = \"x\"\ncommand = [\"true\"]\nenvironment = {{ {set} }}\npass_environment = {passed}\n"));
    let mut command = home.command(&["run", "r.toml", "--skip-preflight", "--why", "a test"]);
    command.envs((0..).zip(forms).map(|(at, form)| (format!("W{at}"), &form.text)));
    let answer = crate::harness::answer(command.output().unwrap());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    explained(home).into_iter().chain([answer]).collect()
}

fn own_variables(home: &Home, forms: &[Form]) -> Vec<Answer> {
    const HOOK: &str = "http://127.0.0.1:9/hooks/s3cr3tpathvalue99xyz";
    let mut command = home.command(&["run", "--skip-preflight", "--why", "a test", "--", "true"]);
    let all: Vec<&str> = forms.iter().map(|form| form.text.as_str()).collect();
    for name in
        ["TRACKWAY_DECODING", "TRACKWAY_JUDGE_RUBRIC", "TRACKWAY_NOT_IN_THE_TABLE", "TRACKWAY_TASK_SET"]
    {
        command.env(name, all.join("\n"));
    }
    command.env("TRACKWAY_WEBHOOK", HOOK);
    let answer = crate::harness::answer(command.output().unwrap());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    for file in files_below(&home.state()) {
        let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
        assert!(!text.contains("s3cr3tpath"), "{}", file.display());
    }
    vec![answer]
}

fn run_file(home: &Home, forms: &[Form]) -> Vec<Answer> {
    let mut shown = Vec::new();
    for some in forms.chunks(200) {
        let named = |prefix: &str| {
            let items = (0..).zip(some).map(|(at, form)| format!("{prefix}{at} = {}", json!(form.text)));
            items.collect::<Vec<_>>().join(", ")
        };
        let owner = json!(some[0].text.lines().next());
        home.write(
            "r.toml",
            &format!("[run]\nname = \"x\"\ncommand = [\"true\"]\nparameters = {{ {} }}\ntags = {{ {} }}\n[owner]\nname = {owner}\n", named("p"), named("t")),
        );
        shown.push(home.trackway(&["run", "r.toml", "--skip-preflight", "--why", "a test"]));
        assert_eq!(shown.last().unwrap().code, 0, "{}", shown.last().unwrap().stderr);
    }
    shown.extend(explained(home));
    shown
}

fn git(home: &Home, arguments: &[&str]) {
    let identity =
        ["-c", "user.name=Ana", "-c", "user.email=ana@example.org", "-c", "init.defaultBranch=main"];
    let done = Command::new("git").args(identity).args(arguments).current_dir(home.path()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Runs within a repository whose only untracked files are those named.
fn in_repository(home: &Home, tracked: &[(&str, &[u8])], then: &[(&str, &[u8])]) -> Answer {
    home.write(".gitignore", "/home\n/all.txt\n/forms.json\n/settings\n");
    git(home, &["init", "-q"]);
    let write = |files: &[(&str, &[u8])]| {
        files.iter().for_each(|(name, bytes)| std::fs::write(home.path().join(name), bytes).unwrap())
    };
    write(tracked);
    git(home, &["add", "."]);
    git(home, &["commit", "-qm", "x"]);
    write(then);
    run(home, &["true"])
}

fn all_of(forms: &[Form]) -> Vec<u8> {
    forms.iter().flat_map(|form| format!("x = 1\n{}\n", form.text).into_bytes()).collect()
}

fn changes(home: &Home, forms: &[Form]) -> Vec<Answer> {
    let (all, latin) = (all_of(forms), [b"# caf\xe9\n".to_vec(), all_of(forms)].concat());
    let binary = [vec![0, 1, 2], all_of(forms)].concat();
    vec![in_repository(
        home,
        &[("a.py", b"x = 1\n"), ("b.py", b"x = 1\n"), ("c.bin", b"\0\x01"), (".netrc", b"")],
        &[("a.py", &all), ("b.py", &latin), ("c.bin", &binary), (".netrc", &all)],
    )]
}

fn untracked(home: &Home, forms: &[Form]) -> Vec<Answer> {
    let (all, latin) = (all_of(forms), [b"# caf\xe9\n".to_vec(), all_of(forms)].concat());
    let text = String::from_utf8(all_of(forms)).unwrap();
    let wide: Vec<u8> = format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let named: Vec<(&str, &[u8])> =
        ["k.der", "k.pfx", "k.jks", "k.kdbx", "id_ecdsa", "k.ppk", "k.gpg", ".npmrc"]
            .map(|name| (name, all.as_slice()))
            .to_vec();
    let cells =
        json!({ "cells": [{ "source": text.lines().map(|line| format!("{line}\n")).collect::<Vec<_>>() }] });
    let notebook = serde_json::to_string_pretty(&cells).unwrap();
    let others: [(&str, &[u8]); 4] =
        [("a.py", &all), ("b.py", &latin), ("c.txt", &wide), ("d.ipynb", notebook.as_bytes())];
    let answer = in_repository(home, &[("t.py", b"x = 1\n")], &[named, others.to_vec()].concat());
    let sources: Vec<String> = files_below(&home.state().join("sources"))
        .into_iter()
        .map(|path| path.display().to_string())
        .collect();
    for (kept, is_kept) in [
        ("untracked/a.py", true),
        ("untracked/b.py", true),
        ("untracked/c.txt", true),
        ("k.der", false),
        ("k.ppk", false),
    ] {
        assert_eq!(sources.iter().any(|path| path.ends_with(kept)), is_kept, "{kept}: {sources:#?}");
    }
    vec![answer]
}

fn script_file(home: &Home, forms: &[Form]) -> Vec<Answer> {
    let comments = |forms: &[Form]| -> Vec<u8> {
        let lines = forms.iter().flat_map(|form| form.text.lines());
        lines.flat_map(|line| format!("# {line}\n").into_bytes()).collect()
    };
    std::fs::write(home.path().join("a.sh"), comments(forms)).unwrap();
    std::fs::write(home.path().join("b.sh"), [b"# caf\xe9\n".to_vec(), comments(forms)].concat()).unwrap();
    vec![run(home, &["sh", "a.sh"]), run(home, &["sh", "b.sh"])]
}

fn lock_file(home: &Home, forms: &[Form]) -> Vec<Answer> {
    std::fs::create_dir(home.path().join("bin")).unwrap();
    for program in ["bin/cargo", "bin/uv"] {
        let path = home.write(program, "#!/bin/sh\nexit 0\n");
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let packages: String = forms
        .iter()
        .map(|form| format!("[[package]]\nname = \"p\"\nsource = '''\n{}\n'''\n", form.text))
        .collect();
    let path = format!("{}:{}", home.path().join("bin").display(), std::env::var("PATH").unwrap());
    ["cargo", "uv"]
        .map(|program| {
            home.write(if program == "cargo" { "Cargo.lock" } else { "uv.lock" }, &packages);
            let mut command =
                home.command(&["run", "--skip-preflight", "--why", "a test", "--", program, "run"]);
            let answer = crate::harness::answer(command.env("PATH", &path).output().unwrap());
            assert_eq!(answer.code, 0, "{}", answer.stderr);
            let kept = files_below(&home.state().join("sources"));
            assert!(kept.iter().any(|path| path.display().to_string().contains("environment-")), "{kept:#?}");
            answer
        })
        .into()
}

fn remote(home: &Home, forms: &[Form]) -> Vec<Answer> {
    let addresses =
        forms.iter().filter(|form| form.text.starts_with("https://") && form.text.contains('@')).take(2);
    let mut shown = vec![in_repository(home, &[("t.py", b"x = 1\n")], &[])];
    for (at, form) in (0..).zip(addresses) {
        let verb = if at == 0 { "add" } else { "set-url" };
        git(home, &["remote", verb, "origin", &form.text]);
        shown.push(run(home, &["true"]));
    }
    assert!(shown.len() > 2);
    shown
}

fn reasons(home: &Home, forms: &[Form]) -> Vec<Answer> {
    let mut shown = Vec::new();
    for (at, why) in together(forms).iter().enumerate() {
        if at % 4 == 0 {
            shown.push(home.trackway(&["run", "--skip-preflight", &format!("--why={why}"), "--", "true"]));
        } else {
            shown.push(home.trackway(&["amend", "last", "usd_per_gpu_hour", "1.5", &format!("--why={why}")]));
        }
        assert_eq!(shown.last().unwrap().code, 0, "{}", shown.last().unwrap().stderr);
    }
    shown.extend(explained(home));
    shown
}

fn notes(home: &Home, forms: &[Form]) -> Vec<Answer> {
    let mut shown = vec![run(home, &["true"])];
    for (at, text) in together(forms).iter().enumerate() {
        shown.push(home.trackway(&[
            "amend",
            "last",
            &format!("--note={text}"),
            "--tag",
            &format!("t{at}={text}"),
        ]));
        assert_eq!(shown.last().unwrap().code, 0, "{}", shown.last().unwrap().stderr);
    }
    shown.extend(explained(home));
    shown
}

fn evaluator(home: &Home, forms: &[Form]) -> Vec<Answer> {
    let notes: Vec<&str> = forms.iter().map(|form| form.text.as_str()).collect();
    home.write(
        "said.json",
        &json!({ "evaluator": { "name": "arc", "version": "1" }, "notes": notes }).to_string(),
    );
    let script = "cp told.csv \"$TRACKWAY_EVALUATION_OUT/predictions.csv\"\ncp said.json \"$TRACKWAY_EVALUATION_OUT/evaluation.json\"\n";
    write_job(
        home,
        script,
        "",
        "after = false\ntask_set = \"tasks-v3.jsonl\"\n[data.train]\npath = \"told.csv\"\nlabel = \"label\"\n",
    );
    home.write("told.csv", "id,label,prediction\n1,a,a\n2,b,b\n3,a,b\n4,b,a\n");
    let trained = home.trackway(&["run", "job.toml", "--skip-preflight", "--why", "a test"]);
    assert_eq!(trained.code, 0, "{}", trained.stderr);
    let judged = home.trackway(&["eval", "run", "job.toml"]);
    assert_eq!(judged.code, 0, "{}", judged.stderr);
    vec![
        trained,
        judged,
        home.trackway(&["eval", "show", "last"]),
        home.trackway(&["--json", "eval", "show", "last"]),
    ]
}

fn imported_evaluation(home: &Home, forms: &[Form]) -> Vec<Answer> {
    write_job(home, "true\n", "", "after = false\n");
    let trained = home.trackway(&["run", "job.toml", "--skip-preflight", "--why", "a test"]);
    assert_eq!(trained.code, 0, "{}", trained.stderr);
    let vectors = repository().join("crates/science/evaluate/tests/vectors/lm_eval");
    std::fs::create_dir(home.path().join("results")).unwrap();
    for file in files_below(&vectors) {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let mut text = std::fs::read_to_string(&file).unwrap();
        if name.starts_with("results") {
            let mut results: serde_json::Value = serde_json::from_str(&text).unwrap();
            let texts: Vec<&str> = forms.iter().map(|form| form.text.as_str()).collect();
            results["config"]["gen_kwargs"]["until"] = json!(texts);
            results["configs"]["capitals_gen"]["generation_kwargs"]["until"] = json!(texts);
            text = results.to_string();
        }
        home.write(&format!("results/{name}"), &text);
    }
    let answer = home.trackway(&["--json", "eval", "import", "results", "--run", "last"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    vec![
        answer,
        home.trackway(&["--json", "eval", "ls"]),
        home.trackway(&["--json", "sql", "select * from evaluations"]),
    ]
}

fn imported(home: &Home, forms: &[Form]) -> Vec<Answer> {
    let run = home.path().join("mlruns/0/0b659c0aa9304cf5b4f814f35d76257f");
    let vector = repository().join("crates/storage/ledger/tests/vectors/import/mlruns/851881675368097242");
    for folder in ["params", "tags", "metrics"] {
        std::fs::create_dir_all(run.join(folder)).unwrap();
    }
    std::fs::copy(vector.join("0b659c0aa9304cf5b4f814f35d76257f/meta.yaml"), run.join("meta.yaml")).unwrap();
    std::fs::copy(vector.join("meta.yaml"), home.path().join("mlruns/0/meta.yaml")).unwrap();
    for (at, form) in forms.iter().enumerate() {
        std::fs::write(run.join(format!("params/p{at}")), &form.text).unwrap();
        std::fs::write(run.join(format!("tags/t{at}")), &form.text).unwrap();
    }
    let answer = home.trackway(&["--json", "import", "mlflow", home.path().join("mlruns").to_str().unwrap()]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let params = home.sql("select count(*) as n from parameters");
    assert!(params[0]["n"].as_u64().unwrap() >= forms.len() as u64 / 2, "{params:?}");
    vec![answer]
}

/// A table with the forms in a column, and in rows that are odd.
fn table(home: &Home, forms: &[Form]) {
    let rows = (0..).zip(forms.iter().chain(forms));
    let lines = rows.map(|(at, form)| {
        json!({ "note": form.text, "label": at % 2, "mail": format!("person{at}@corp.example") }).to_string()
    });
    home.write("t.jsonl", &lines.collect::<Vec<_>>().join("\n"));
}

fn findings(home: &Home, forms: &[Form]) -> Vec<Answer> {
    table(home, forms);
    home.write("r.toml", "[run]\nname = \"x\"\ncommand = [\"true\"]\n[data.train]\npath = \"t.jsonl\"\nlabel = \"label\"\n[governance]\npersonal_data = [{ column = \"mail\", kinds = [\"email\"], approved_by = \"ana\", why = \"test\" }]\n");
    let ran = home.trackway(&["run", "r.toml"]);
    let checked = home.trackway(&["--json", "preflight", "r.toml"]);
    assert!([0, 3].contains(&ran.code), "{}", ran.stderr);
    vec![ran, checked]
}

fn data(home: &Home, forms: &[Form]) -> Vec<Answer> {
    table(home, forms);
    std::fs::create_dir(home.path().join("out")).unwrap();
    // Values that are met often are shown.
    let often: serde_json::Map<String, serde_json::Value> =
        (0..).zip(forms).map(|(at, form)| (format!("c{at}"), json!(form.text))).collect();
    home.write("often.jsonl", &format!("{}\n", json!(often)).repeat(20));
    let shown: Vec<Answer> = [
        &["data", "profile", "often.jsonl"][..],
        &["--json", "data", "profile", "often.jsonl"],
        &["data", "infer", "often.jsonl"],
        &["--json", "data", "infer", "often.jsonl"],
        &["data", "check", "often.jsonl"],
        &["data", "snapshot", "t.jsonl", "--name", "s", "--label", "label"][..],
        &["data", "profile", "t.jsonl", "--out", "out/p.json", "--label", "label"],
        &["data", "drift", "--reference", "out/p.json", "--current", "t.jsonl"],
        &["data", "diff", "s", "t.jsonl"],
    ]
    .map(|arguments| home.trackway(arguments))
    .into();
    for answer in &shown {
        assert!([0, 3].contains(&answer.code), "{}", answer.stderr);
    }
    for file in files_below(&home.state()).into_iter().chain([home.path().join("out/p.json")]) {
        let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
        assert!(!text.contains("@corp.example"), "{}", file.display());
    }
    shown
}

fn checkpoint_names(home: &Home, forms: &[Form]) -> Vec<Answer> {
    let is_name =
        |form: &&Form| form.text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    let names: Vec<&str> =
        forms.iter().filter(is_name).map(|form| form.text.as_str()).filter(|name| name.len() < 150).collect();
    assert!(names.len() > 40, "{}", names.len());
    let saves: String = names
        .iter()
        .zip(1..)
        .map(|(name, step)| {
            format!("echo 'step {step} loss 0.5'\nprintf '(dp0\\nVstep\\nI{step}\\nsVmodel\\nI1\\nsVoptimizer\\nI1\\ns.' > 'out/{name}.pkl'\n")
        })
        .collect();
    home.write("t.sh", &format!("mkdir -p out\n{saves}sleep 2\n"));
    home.write(
        "r.toml",
        "[run]\nname = \"x\"\ncommand = [\"sh\", \"t.sh\"]\n[checkpoint]\nadopt = [\"out/*.pkl\"]\n",
    );
    let answer = home.trackway(&["run", "r.toml", "--skip-preflight", "--why", "a test"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let listed = home.trackway(&["--json", "checkpoint", "ls", "last"]);
    // What the script itself wrote is its own.
    std::fs::rename(home.path().join("out"), home.path().join("written")).unwrap();
    vec![answer, listed]
}

/// Event files with the forms as tags, each a scalar.
fn tensorboard(home: &Home, forms: &[Form]) -> Vec<Answer> {
    let field = |number: u8, bytes: &[u8]| {
        [vec![number << 3 | 2], varint(bytes.len() as u64), bytes.to_vec()].concat()
    };
    let frames = (1..).zip(forms).flat_map(|(step, form)| {
        let value =
            [field(1, form.text.as_bytes()), [vec![2 << 3 | 5], 0.5f32.to_le_bytes().to_vec()].concat()]
                .concat();
        let summary = field(5, &field(1, &value));
        let event =
            [vec![1 << 3 | 1], 1.7e9f64.to_le_bytes().to_vec(), vec![2 << 3], varint(step), summary].concat();
        let length = (event.len() as u64).to_le_bytes();
        [length.to_vec(), masked_crc(&length).to_vec(), event.clone(), masked_crc(&event).to_vec()].concat()
    });
    std::fs::write(home.path().join("events"), frames.collect::<Vec<u8>>()).unwrap();
    let save = "mkdir logs; cat events > logs/events.out.tfevents.$(date +%s).host; sleep 3";
    run(home, &["sh", "-c", save]);
    explained(home)
}

/// As names of metrics of a logger of JSON lines, and as settings of Hydra.
fn metric_files(home: &Home, forms: &[Form]) -> Vec<Answer> {
    let lines: String = (1..)
        .zip(forms)
        .map(|(step, form)| format!("{}\n", json!({"step": step, form.text.as_str(): 0.5, "loss": 0.5})))
        .collect();
    let settings: String =
        (1..).zip(forms).map(|(number, form)| format!("p{number}: {}\n", json!(form.text))).collect();
    home.write("lines", &lines);
    home.write("settings", &settings);
    let save = "mkdir -p logs .hydra; cat settings > .hydra/config.yaml; head -n 9 lines > logs/metrics.jsonl; sleep 2; \
                tail -n +10 lines >> logs/metrics.jsonl; sleep 3";
    run(home, &["sh", "-c", save]);
    explained(home)
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// CRC-32C as TFRecord has it.
fn masked_crc(bytes: &[u8]) -> [u8; 4] {
    let crc = bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0x82f6_3b78 & 0u32.wrapping_sub(crc & 1)))
    });
    (!crc).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}
