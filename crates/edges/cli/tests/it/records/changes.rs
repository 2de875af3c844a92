//! What changed since the last good run, as the commands show it.

use std::process::Stdio;

use serde_json::Value;

use crate::harness::{Home, answer};

const SCRIPT: &str = "import json, sys\n\
    c = json.load(open(sys.argv[1]))\n\
    for step in range(1, c['steps'] + 1):\n    print(f\"step {step} loss {c['loss']}\")\n";
const RUN_FILE: &str = "[run]\nname = \"r\"\nseed = 1\ncommand = [\"python3\", \"t.py\", \"c.json\"]\n";

/// A home with a script, its configuration and its run file, and the first run of it.
fn trained(extra: &str) -> Home {
    let home = Home::new();
    home.write("t.py", SCRIPT);
    home.write("c.json", r#"{"steps": 10, "loss": 0.1}"#);
    home.write("r.toml", &format!("{RUN_FILE}{extra}"));
    run(&home, 0);
    home
}

fn run(home: &Home, code: i32) {
    let answer = home.trackway(&["run", home.path().join("r.toml").to_str().unwrap()]);
    assert_eq!(answer.code, code, "{}", answer.stderr);
}

/// Kind and sentence of each change.
fn changes(diff: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("–").to_owned();
    let line = |change: &Value| {
        let lines = change.get("lines").map(|it| format!(" +{} −{}", it["added"], it["removed"]));
        format!(
            "{} {} {} {}{}",
            text(&change["kind"]),
            text(&change["key"]),
            text(&change["before"]),
            text(&change["after"]),
            lines.unwrap_or_default()
        )
    };
    diff["changes"].as_array().unwrap_or_else(|| panic!("{diff}")).iter().map(line).collect()
}

/// Proves that `explain`, `compare` and `postmortem` name the script with its lines and the keys of its configuration
/// that changed since the last good run, first of all, and that runs of other lengths are not called the same result.
#[test]
fn an_edited_script_and_configuration_are_named() {
    let home = trained("");
    home.write("c.json", r#"{"steps": 20, "loss": 9.5}"#);
    home.write("t.py", &format!("{SCRIPT}# one line more\n"));
    run(&home, 0);
    let page = home.json(&["explain", "last"]);
    let found = changes(&page["since_last_good"]);
    assert!(found.contains(&"file c.json: loss 0.1 9.5".to_owned()), "{found:?}");
    assert!(found.contains(&"file c.json: steps 10 20".to_owned()), "{found:?}");
    assert!(
        found.iter().any(|line| line.starts_with("script t.py ") && line.ends_with(" +1 −0")),
        "{found:?}"
    );
    assert_eq!(found.len(), 3, "{found:?}");
    let same = &page["same_inputs"][0];
    assert_eq!(same["not_comparable"], "`loss` ends at step 10 there, at step 20 here", "{same}");
    assert_eq!(same["other_inputs"], serde_json::json!(["script", "file"]));
    let text = home.trackway(&["explain", "last"]).stdout;
    let first = text.lines().position(|line| line.starts_with("Changed since the last good run"));
    assert!(first.is_some_and(|place| place <= 3), "{text}");
    assert!(!text.contains("no difference") && !text.contains("same last value"), "{text}");
    assert!(text.contains("\nSame run-file settings\n") && !text.contains("Same config, data"), "{text}");
    let unknown = "not known   files outside the folders of the command and its script, ";
    assert!(text.contains(unknown), "{text}");
    let ids: Vec<String> = home
        .sql("select run_id from runs order by created_at")
        .iter()
        .map(|row| row["run_id"].as_str().unwrap().to_owned())
        .collect();
    let compared = home.json(&["compare", &ids[0], &ids[1]]);
    let (mut by_kind, mut by_fit) = (changes(&compared["changes"][0]), found.clone());
    by_kind.sort();
    by_fit.sort();
    assert_eq!(by_kind, by_fit, "the explanation of a failure has what fits it first");
    let report = home.json(&["postmortem", "last"]);
    assert_eq!(changes(&report["inputs"]["since_last_good"]), found);
    let page = home.path().join("page.html");
    home.trackway(&["explain", "last", "--html", page.to_str().unwrap()]);
    let page = std::fs::read_to_string(page).unwrap();
    let at = |word: &str| page.find(&format!("<h2>{word}</h2>")).unwrap_or_else(|| panic!("no {word}"));
    assert!(at("What changed") < at("Attempts"));
}

/// Proves that nothing is called different where nothing is, that the bytes of a file which are gone are named as
/// missing, and that the same result is one of metrics that were compared.
#[test]
fn what_is_gone_is_not_known() {
    let home = trained("");
    run(&home, 0);
    let page = home.json(&["explain", "last"]);
    assert_eq!(changes(&page["since_last_good"]), Vec::<String>::new());
    let same = &page["same_inputs"][0];
    assert_eq!((&same["compared_count"], &same["not_comparable"]), (&1.into(), &Value::Null), "{same}");
    home.write("c.json", r#"{"steps": 10, "loss": 0.1, "new": 1}"#);
    run(&home, 0);
    for kept in std::fs::read_dir(home.state().join("sources")).unwrap() {
        let path = kept.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("file-") {
            std::fs::remove_file(path).unwrap();
        }
    }
    let page = home.json(&["explain", "last"]);
    let found = changes(&page["since_last_good"]);
    assert!(found.len() == 1 && found[0].starts_with("file c.json "), "{found:?}");
    let unknown = page["since_last_good"]["unknown"].as_array().unwrap();
    assert!(
        unknown.iter().any(|it| it["why"] == "what changed in `c.json`: its bytes are not kept"),
        "{unknown:?}"
    );
}

/// Proves that commits and what is not committed are compared file by file.
#[test]
fn commits_and_uncommitted_changes_are_named() {
    let home = Home::new();
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        let done = std::process::Command::new("git")
            .current_dir(home.path())
            .args(identity)
            .args(arguments)
            .output();
        assert!(done.unwrap().status.success(), "{arguments:?}");
    };
    home.write("t.py", "import model\nprint('step 1 loss 1')\n");
    home.write("model.py", "a = 1\n");
    home.write("other.py", "b = 1\n");
    home.write("r.toml", "[run]\nname = \"r\"\ncommand = [\"python3\", \"-B\", \"t.py\"]\n");
    home.write(".gitignore", "/home\n/.trackway\n");
    git(&["init", "-q"]);
    git(&["add", "t.py", "model.py", "other.py", "r.toml", ".gitignore"]);
    git(&["commit", "-q", "-m", "first"]);
    run(&home, 0);
    home.write("model.py", "a = 1\nc = 2\n");
    git(&["commit", "-q", "-a", "-m", "second"]);
    home.write("other.py", "b = 2\n");
    run(&home, 0);
    let found = changes(&home.json(&["explain", "last"])["since_last_good"]);
    assert!(found.iter().any(|line| line.starts_with("commit commit ")), "{found:?}");
    assert!(
        found.iter().any(|line| line.starts_with("code model.py ") && line.ends_with(" +1 −0")),
        "{found:?}"
    );
    assert!(found.contains(&"uncommitted other.py as committed +1 −1 +1 −1".to_owned()), "{found:?}");
    let page = home.trackway(&["explain", "last"]).stdout;
    assert!(page.contains("other.py: +1 −1") && !page.contains("other.py: (absent)"), "{page}");
}

/// A repository with these files, all of them committed, and the first run of `r.toml` in it.
fn trained_in_git(files: &[(&str, &str)], code: i32) -> Home {
    let home = Home::new();
    for (name, text) in files {
        home.write(name, text);
    }
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        let mut git = std::process::Command::new("git");
        let done = git.current_dir(home.path()).args(identity).args(arguments).output();
        assert!(done.unwrap().status.success(), "{arguments:?}");
    };
    home.write(".gitignore", "/home\n/.trackway\n__pycache__\nlocal.json\n");
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "first"]);
    run(&home, code);
    home
}

/// Proves that a file which git ignores is compared, that without a change the rest is said not to be looked at, and
/// that a deleted file is not called absent.
#[test]
fn what_git_ignores_is_compared() {
    let script = "import json\nprint('step 1 loss', json.load(open('local.json'))['loss'])\n";
    let run_file = "[run]\nname = \"r\"\ncommand = [\"python3\", \"t.py\"]\n";
    let files =
        [("t.py", script), ("r.toml", run_file), ("gone.txt", "1\n"), ("local.json", "{\"loss\": 1}")];
    let home = trained_in_git(&files, 0);
    run(&home, 0);
    let page = home.trackway(&["explain", "last"]).stdout;
    assert!(page.contains("no difference in what can be compared"), "{page}");
    assert!(page.contains("or of installed packages: not looked at"), "{page}");
    home.write("local.json", "{\"loss\": 2}");
    run(&home, 0);
    let found = changes(&home.json(&["explain", "last"])["since_last_good"]);
    assert_eq!(found, ["file local.json: loss 1 2"]);
    std::fs::remove_file(home.path().join("gone.txt")).unwrap();
    run(&home, 0);
    let found = changes(&home.json(&["explain", "last"])["since_last_good"]);
    assert_eq!(found, ["uncommitted gone.txt as committed deleted"]);
}

/// Proves without a repository that files which a script opens and its command does not name are compared, with the
/// keys of settings and the columns and lines of tables, that outputs of a run are no change, and that repaired data
/// opens a run that it blocked while a comment and unused code do not.
#[test]
fn files_that_no_command_names_are_compared() {
    let home = Home::new();
    let script = "import csv, json\nc = json.load(open('config.json'))\n\
        rows = list(csv.DictReader(open('data/train.csv')))\n\
        open('results.json', 'a').write(json.dumps(c) + '\\n')\n\
        total = sum(float(row['x']) for row in rows)\nprint('step 1 loss', c['lr'] * total)\n";
    home.write("train.py", script);
    home.write("run.sh", "python3 -B train.py\n");
    home.write(
        "r.toml",
        "[run]\nname = \"r\"\ncommand = [\"bash\", \"run.sh\"]\n[retry]\nunknown = { attempts = 0 }\n",
    );
    let ended = |settings: &str, data: &str, code: i32| {
        home.write("config.json", settings);
        std::fs::create_dir_all(home.path().join("data")).unwrap();
        home.write("data/train.csv", data);
        run(&home, code);
        home.json(&["explain", "last"])
    };
    ended("{\"lr\": 0.1}", "x,y\n1,2\n", 0);
    let page = ended("{\"lr\": 5.0}", "x,y\n1,2\n3,4\n", 0);
    let found = changes(&page["since_last_good"]);
    assert_eq!(found, ["file config.json: lr 0.1 5.0", "file data/train.csv 2 3 lines"]);
    let page = ended("{\"lr\": 5.0}", "xx,y\n1,2\n3,4\n", 4);
    assert_eq!(page["since_last_good"]["changes"][0]["key"], "data/train.csv: header", "{page}");
    let page = ended("{\"lr\": 5.0}", "x,y\nabc,2\n", 4);
    assert_eq!(page["run"]["state"], "blocked", "{page}");
    home.write("train.py", &format!("# a comment\n{script}"));
    home.write("plot_unrelated.py", "print(1)\n");
    home.write("README.md", "one\n");
    let refused = home.trackway(&["resume", "last"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    home.write("data/train.csv", "x,y\n1,2\n");
    let opened = home.trackway(&["resume", "last"]);
    assert_eq!(opened.code, 0, "{}", opened.stderr);
    assert!(opened.stderr.contains("`data/train.csv`"), "{}", opened.stderr);
}

/// The words of an error about data, as a script ends with them.
const DATA_ERROR: &str =
    "pandas.errors.ParserError: Error tokenizing data. C error: Expected 2 fields in line 3, saw 3";

/// Proves that neither a document nor a setting opens a run that its data blocked, with what to do about the setting, and that code does,
/// with its name.
#[test]
fn documents_and_settings_open_no_blocked_run() {
    let script = "import model\nraise RuntimeError(model.why)\n";
    let run_file =
        "[run]\nname = \"r\"\ncommand = [\"python3\", \"-B\", \"t.py\"]\nenvironment = { LR = \"0.1\" }\n";
    let model = format!("why = '{DATA_ERROR}'\n");
    let files =
        [("t.py", script), ("r.toml", run_file), ("model.py", model.as_str()), ("README.md", "one\n")];
    let home = trained_in_git(&files, 4);
    assert_eq!(home.json(&["explain", "last"])["run"]["state"], "blocked");
    home.write("README.md", "two\n");
    let refused = home.trackway(&["resume", "last"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    let unchanged = "but for documents, comments and the run file";
    assert!(refused.stderr.contains(unchanged), "{}", refused.stderr);
    home.write("r.toml", &run_file.replace("0.1", "0.2"));
    let refused = home.trackway(&["resume", "last"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    for words in ["a resume keeps the settings of its run", "`run.environment.LR`", "trackway run "] {
        assert!(refused.stderr.contains(words), "{words}: {}", refused.stderr);
    }
    home.write("model.py", &model.replace("line 3", "line 4"));
    let opened = home.trackway(&["resume", "last"]);
    assert_eq!(opened.code, 4, "{}", opened.stderr);
    assert!(opened.stderr.contains("uncommitted changes (none → "), "{}", opened.stderr);
    assert!(
        opened.stderr.contains(": `model.py`)") && !opened.stderr.contains("README"),
        "{}",
        opened.stderr
    );
    assert!(
        opened.stderr.contains("it keeps its settings, and the run file has others"),
        "{}",
        opened.stderr
    );
}

/// Proves in a repository that what runs wrote, whether git lists it or the command names it, is neither a change nor a
/// repair, that a docstring is none, and that an edited file which git does not track is both.
#[test]
fn outputs_and_docstrings_open_no_blocked_run() {
    let script = "\"\"\"One.\n\nMore.\n\"\"\"\nimport sys, time\n\n\ndef read():\n    \"\"\"Reads.\"\"\"\n    return open('rows.txt').read().strip()\n\n\n\
        open(sys.argv[2], 'a').write(f'{time.time()}\\n')\nopen('metrics.json', 'w').write(f'{time.time()}')\n\
        if 'Error' in read():\n    raise RuntimeError(read())\nprint('step 1 loss 1')\n";
    let run_file = "[run]\nname = \"r\"\ncommand = [\"python3\", \"-B\", \"t.py\", \"--log\", \"log.bin\"]\n";
    let home = Home::new();
    home.write("rows.txt", "fine\n");
    home.write("t.py", script);
    home.write("r.toml", run_file);
    let done = std::process::Command::new("git").current_dir(home.path()).args(["init", "-q"]).output();
    assert!(done.unwrap().status.success());
    home.write(".gitignore", "/home\n/.trackway\n");
    run(&home, 0);
    run(&home, 0);
    let page = home.json(&["explain", "last"]);
    assert_eq!(changes(&page["since_last_good"]), Vec::<String>::new());
    home.write("rows.txt", DATA_ERROR);
    run(&home, 4);
    let page = home.json(&["explain", "last"]);
    let found = changes(&page["since_last_good"]);
    assert!(found.len() == 1 && found[0].starts_with("uncommitted rows.txt (untracked) "), "{found:?}");
    assert_eq!(page["run"]["state"], "blocked", "{page}");
    home.write("t.py", &script.replace("More.", "Else.").replace("Reads.", "Reads all."));
    let refused = home.trackway(&["resume", "last"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("written while an attempt ran: `log.bin`"), "{}", refused.stderr);
    home.write("rows.txt", "fine again\n");
    let opened = home.trackway(&["resume", "last"]);
    assert_eq!(opened.code, 0, "{}", opened.stderr);
    assert!(opened.stderr.contains(": `rows.txt`)"), "{}", opened.stderr);
}

/// Proves that settings in a text which only the script opens are compared key by key, whether git tracks it, does not, or is not there.
#[test]
fn settings_in_a_plain_text_are_compared() {
    let script =
        "lr = dict(line.strip().split('=') for line in open('cfg.txt'))['lr']\nprint('step 1 loss', lr)\n";
    let run_file = "[run]\nname = \"r\"\ncommand = [\"python3\", \"-B\", \"t.py\"]\n";
    let files = [("t.py", script), ("r.toml", run_file), ("cfg.txt", "lr=0.02\n")];
    let bare = Home::new();
    files.iter().for_each(|(name, text)| drop(bare.write(name, text)));
    run(&bare, 0);
    let untracked = trained_in_git(&files[..2], 4);
    untracked.write("cfg.txt", "lr=0.02\n");
    run(&untracked, 0);
    for (home, expected) in [
        (bare, "file cfg.txt: lr 0.02 2.4"),
        (untracked, "file cfg.txt: lr 0.02 2.4"),
        (trained_in_git(&files, 0), "uncommitted cfg.txt as committed +1 −1 +1 −1"),
    ] {
        home.write("cfg.txt", "lr=2.4\n");
        run(&home, 0);
        assert_eq!(changes(&home.json(&["explain", "last"])["since_last_good"]), [expected]);
    }
}

/// A training on `data/data.csv` whose label is out of range.
const OUT_OF_RANGE: &str = "import csv\n\
    for row in csv.DictReader(open('data/data.csv')):\n\
    \x20   if int(row['label']) > 9: raise ValueError(f\"label {row['label']} out of range [0, 9] in data/data.csv\")\n\
    print('step 1 loss 0.5')\n";

/// The command of Trackway as a line of a shell, with what is behind it there.
fn in_a_shell(home: &Home, line: &str) -> i32 {
    let mut shell = std::process::Command::new("sh");
    let trackway = home.command(&[]);
    shell
        .args(["-c", &format!("\"$0\" {line}"), crate::harness::BINARY])
        .current_dir(home.path())
        .env_clear();
    let set = trackway.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
    shell.envs(set).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().code().unwrap()
}

/// Proves that the file which a shell writes the output of a run to, by `>` and by `tee`, opens no run that its data
/// blocked, in a repository and without one, and does not count as a change since the last good run; that the same
/// bytes written again and a new file which a word of a message only resembles open it neither; and that repaired data
/// does.
#[test]
fn a_redirected_output_is_no_change() {
    for (has_git, redirect) in
        [(true, "> train.txt 2>&1"), (true, "2>&1 | tee train.txt"), (false, "> train.txt")]
    {
        let home = Home::new();
        let data = |label: u32| {
            std::fs::create_dir_all(home.path().join("data")).unwrap();
            home.write("data/data.csv", &format!("x,label\n1,{label}\n"));
        };
        home.write("t.py", OUT_OF_RANGE);
        home.write(".gitignore", "/home\n/settings\n");
        data(1);
        if has_git {
            let line =
                "-q . && git add -A && git -c user.name=a -c user.email=a@example.com commit -qm first";
            let made = std::process::Command::new("sh")
                .current_dir(home.path())
                .args(["-c", &format!("git init {line}")])
                .status();
            assert!(made.unwrap().success());
        }
        in_a_shell(&home, "run -- python3 -B t.py > good.txt");
        data(77);
        in_a_shell(&home, &format!("run -- python3 -B t.py {redirect}"));
        let page = home.json(&["explain", "last"]);
        assert_eq!(page["run"]["state"], "blocked", "{page}");
        let found = changes(&page["since_last_good"]);
        assert!(found.len() == 1 && found[0].contains("data/data.csv"), "{redirect}: {found:?}");
        let refused = home.trackway(&["resume", "last"]);
        assert_eq!(refused.code, 2, "{redirect}: {}", refused.stderr);
        data(77);
        std::fs::create_dir(home.path().join("out")).unwrap();
        home.write("out/metrics.json", "{}");
        let refused = home.trackway(&["resume", "last"]);
        assert_eq!(refused.code, 2, "{redirect}: {}", refused.stderr);
        data(2);
        let opened = home.trackway(&["resume", "last"]);
        assert_eq!(opened.code, 0, "{redirect}: {}", opened.stderr);
        assert!(opened.stderr.contains(": `data/data.csv`)"), "{}", opened.stderr);
    }
}

/// Proves that after a data error neither a document nor the run file lets a new run on the same data through, and that code does.
#[test]
fn documents_and_settings_let_no_new_run_through() {
    let run_file = "[run]\nname = \"r\"\ncommand = [\"python3\", \"-B\", \"t.py\"]\nenvironment = { LR = \"0.1\" }\n\
                    [data.train]\npath = \"t.csv\"\n";
    let model = format!("why = '{DATA_ERROR}'\n");
    let files = [
        ("t.py", "import model\nraise RuntimeError(model.why)\n"),
        ("r.toml", run_file),
        ("t.csv", "a,b\n1,2\n"),
        ("model.py", model.as_str()),
        ("README.md", "one\n"),
    ];
    let home = trained_in_git(&files, 4);
    for (name, text) in [("README.md", "two\n"), ("r.toml", run_file.replace("0.1", "0.2").as_str())] {
        home.write(name, text);
        let refused = home.trackway(&["run", home.path().join("r.toml").to_str().unwrap()]);
        assert_eq!(refused.code, 3, "{name}: {}", refused.stderr);
        let why = "neither the data nor its schema, rules or code changed since";
        assert!(refused.stderr.contains(why), "{name}: {}", refused.stderr);
    }
    home.write("model.py", &model.replace("line 3", "line 4"));
    run(&home, 4);
    assert_eq!(home.sql("select * from training_attempts").len(), 2);
}

/// Proves that what the evidence of a failure names comes first: a column that was renamed, and a value of the
/// settings, which is not taken for data; that a script without Trackway's package is not to be rehearsed; and that a
/// run which its data blocked says what it waits for.
#[test]
fn what_a_failure_names_comes_first() {
    let script = "import csv, sys\n\
        c = dict(line.strip().split(': ') for line in open(sys.argv[1]))\n\
        for row in csv.DictReader(open('d.csv')): float(row['x'])\n\
        scale = float(c['scale'])\n\
        print('step 1 loss', scale)\n";
    let run_file = "[run]\nname = \"r\"\ncommand = [\"python3\", \"t.py\", \"c.yaml\"]\n[data.train]\npath = \"d.csv\"\n\
        [retry]\nunknown = { attempts = 0 }\n";
    let home = Home::new();
    home.write("t.py", script);
    home.write("r.toml", run_file);
    let ended = |settings: &str, data: &str, code: i32| {
        home.write("c.yaml", settings);
        home.write("d.csv", data);
        let answer = home.trackway(&["run", "--skip-preflight", "--why", "a test", "r.toml"]);
        assert_eq!(answer.code, code, "{}", answer.stderr);
        home.json(&["explain", "last"])
    };
    let (settings, data) = ("scale: 0.1\n", "x,label\n1,0\n2,1\n");
    ended(settings, data, 0);
    let page = ended(settings, "xx,label\n1,0\n2,1\n", 4);
    let first = &page["since_last_good"]["changes"][0];
    assert_eq!((&first["before"], &first["after"]), (&"\"x\"".into(), &"\"xx\"".into()), "{page}");
    assert_eq!(first["fits_because"], "the evidence names it");
    assert!(!page["next_actions"].to_string().contains("trackway rehearse"), "{page}");
    let page = ended("scale: 0,1\n", data, 4);
    assert_eq!(page["termination"]["reason"], "code_error", "{page}");
    assert_eq!(page["since_last_good"]["changes"][0]["key"], "c.yaml: scale", "{page}");
    assert!(page["next_actions"].to_string().contains("correct the setting"), "{page}");
    let page = ended(settings, "x,label\nabc,0\n2,1\n", 4);
    assert_eq!(page["run"]["state"], "blocked", "{page}");
    let short = home.trackway(&["explain", "last", "--short"]).stdout;
    assert!(short.contains(": blocked (not retried until its data, its code"), "{short}");
}

/// Proves without a repository that a file which the evidence names opens a blocked run once it was repaired, though the command does not
/// name it, and that a changed setting does not.
#[test]
fn a_repaired_file_that_the_evidence_names_opens_a_blocked_run() {
    let home = Home::new();
    let script = format!(
        "text = open('table.txt').read()\nif 'bad' in text: raise RuntimeError('{DATA_ERROR} in table.txt')\n\
         print('step 1 loss 0.5')\n"
    );
    home.write("t.py", &script);
    home.write("table.txt", "bad\n");
    let run_file = "[run]\nname = \"r\"\ncommand = [\"python3\", \"t.py\"]\nenvironment = { LR = \"0.1\" }\n";
    home.write("r.toml", run_file);
    run(&home, 4);
    home.write("r.toml", &run_file.replace("0.1", "0.2"));
    let refused = home.trackway(&["resume", "last"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("`run.environment.LR`"), "{}", refused.stderr);
    home.write("table.txt", "good\n");
    let opened = home.trackway(&["resume", "last"]);
    assert_eq!(opened.code, 0, "{}", opened.stderr);
    assert!(opened.stderr.contains(": `table.txt`)"), "{}", opened.stderr);
}

/// Proves that an error of an evaluation inside the script is the training's: its code must change, and no evaluator is launched.
#[test]
fn an_evaluation_inside_the_script_is_the_training() {
    let home = Home::new();
    home.write(
        "t.py",
        "def evaluate(step):\n    raise ValueError('shapes (400,15) and (16,32) not aligned')\n\
         for step in range(1, 21):\n    print(f'step {step} loss {1 / step}')\nevaluate(20)\n",
    );
    home.write("r.toml", "[run]\nname = \"r\"\ncommand = [\"python3\", \"t.py\"]\n");
    run(&home, 4);
    let page = home.json(&["explain", "last"]);
    assert_eq!(page["termination"]["reason"], "code_error", "{}", page["termination"]);
    assert_eq!((&page["run"]["state"], page["attempts"].as_array().unwrap().len()), (&"failed".into(), 1));
    let text = home.trackway(&["explain", "last"]).stdout;
    for words in ["The evaluation failed", "the training attempt is good", "trackway eval run", "valuator"] {
        assert!(!text.contains(words), "{words}:\n{text}");
    }
}

/// Proves that the data of an attempt is what it read, and not what its run began with, wherever it is named: in its own table, `explain`,
/// `compare`, `export`, `reproduce` and the ledger that is made again.
#[test]
fn the_data_of_an_attempt_is_what_it_read() {
    let home = Home::new();
    let script =
        "if [ $(wc -l < t.csv) = 3 ]; then echo '5,6' >> t.csv; kill -9 $$; fi; echo 'step 1 loss 0.5'";
    home.write("t.csv", "a,b\n1,2\n3,4\n");
    home.write(
        "r.toml",
        &format!(
            "[run]\nname = \"d\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n[data.train]\npath = \"t.csv\"\n\
             [retry]\nunknown = {{ attempts = 1, backoff = \"0s\" }}\n"
        ),
    );
    run(&home, 0);
    let query = "select a.attempt_number, s.rows from attempt_data d join training_attempts a on a.attempt_id = d.attempt_id \
                 join data_snapshots s on s.data_sha256 = d.data_sha256 order by 1";
    let read = serde_json::json!([{ "attempt_number": 1, "rows": 2 }, { "attempt_number": 2, "rows": 3 }]);
    assert_eq!(Value::from(home.sql(query)), read);
    let page = home.json(&["explain", "last"]);
    assert_eq!((&page["data"]["sets"][0]["rows"], &page["data"]["doubt"]), (&3.into(), &Value::Null));
    let found = changes(&page["parent_diff"]);
    assert!(found.iter().any(|line| line.starts_with("data train 2 rows, ")), "{found:?}");
    let first = page["attempts"][0]["attempt_id"].as_str().unwrap();
    assert_eq!(home.json(&["explain", first])["data"]["sets"][0]["rows"], 2);
    let exported = home.json(&["export", "last", "--out", "tables"]);
    assert!(
        exported["files"].as_array().unwrap().iter().any(|file| file["table"] == "data" && file["rows"] == 2)
    );
    let attempt = page["attempt"]["attempt_id"].as_str().unwrap();
    let rebuilt = home.json(&["reproduce", attempt, "--out", "again"]);
    let missing = rebuilt["missing"].to_string();
    assert!(!missing.contains("is not what the attempt read"), "{missing}");
    let of_first = home.json(&["reproduce", first, "--out", "first"]);
    assert!(of_first["missing"].to_string().contains("is not what the attempt read"), "{of_first}");
    std::fs::remove_file(home.state().join("ledger.db")).unwrap();
    for rest in ["ledger.db-wal", "ledger.db-shm"] {
        std::fs::remove_file(home.state().join(rest)).ok();
    }
    home.json(&["doctor", "rebuild"]);
    assert_eq!(Value::from(home.sql(query)), read, "rebuilt");
}

/// Proves that the data of the next run is compared with what the good attempt read, not with what its run began with.
#[test]
fn the_last_good_data_is_that_of_the_attempt() {
    let home = Home::new();
    let rows = |value: &dyn Fn(usize) -> String| {
        (0..200).fold("a,b\n".to_owned(), |text, row| format!("{text}{},{}\n", value(row), row % 7))
    };
    let script =
        "if [ ! -e done ]; then touch done; cp other.csv t.csv; kill -9 $$; fi; echo 'step 1 loss 0.5'";
    home.write("t.csv", &rows(&|row| row.to_string()));
    home.write("other.csv", &rows(&|row| format!("{row}.5")));
    home.write(
        "r.toml",
        &format!(
            "[run]\nname = \"d\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n[data.train]\npath = \"t.csv\"\n\
             [retry]\nunknown = {{ attempts = 1, backoff = \"0s\" }}\n"
        ),
    );
    run(&home, 0);
    let report = home.json(&["preflight", home.path().join("r.toml").to_str().unwrap()]);
    let text = report.to_string();
    assert!(!text.contains("in the last good run"), "{text}");
}

/// Proves that a run which its data blocked is not resumed on the same data, code and settings, and says their digests; that repaired data
/// opens it, passes pre-flight again and lets it continue from its last commit; and that data which pre-flight blocks does not.
#[test]
fn repaired_data_opens_a_blocked_run() {
    let home = Home::new();
    let script = "import json, os, pickle\n\
        s = pickle.load(open('ck.pkl', 'rb'))['step'] if os.path.exists('ck.pkl') else 0\n\
        while s < 40:\n    s += 1\n    print(f'step {s} loss 0.5', flush=True)\n    \
        if s % 10 == 0: pickle.dump({'step': s, 'weights': [0.1], 'optimizer': [0.1]}, open('ck.pkl', 'wb'))\n    \
        if s == 30 and 'bad' in open('t.csv').read():\n        import time; time.sleep(3)\n        raise RuntimeError('pandas.errors.ParserError: Error tokenizing data. C error: Expected 2 fields in line 3, saw 3')\n";
    home.write("t.py", script);
    home.write("t.csv", "a,b\n1,2\nbad,4\n");
    home.write(
        "r.toml",
        "[run]\nname = \"r\"\ncommand = [\"python3\", \"t.py\"]\n[data.train]\npath = \"t.csv\"\nrules = [\"b < 9\"]\n[preflight]\nseverity = { \"data.schema\" = \"block\" }\n\
         [checkpoint]\nadopt = [\"ck.pkl\"]\n",
    );
    run(&home, 4);
    let page = home.json(&["explain", "last"]);
    assert_eq!(
        (&page["termination"]["reason"], &page["run"]["state"]),
        (&"data_error".into(), &"blocked".into()),
        "{page}"
    );
    let refused = home.trackway(&["resume", "last"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("did not change: data ") && refused.stderr.contains("script "),
        "{}",
        refused.stderr
    );
    home.write("t.csv", "a,b\n1,2\n3,10\n");
    let blocked = home.trackway(&["resume", "last"]);
    assert_eq!(blocked.code, 3, "{}", blocked.stderr);
    assert!(blocked.stderr.contains("not launched: pre-flight blocks it"), "{}", blocked.stderr);
    assert_eq!(home.sql("select * from training_attempts").len(), 1);
    home.write("t.csv", "a,b\n1,2\n3,4\n");
    let resumed = home.trackway(&["resume", "last"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert!(resumed.stderr.contains("changed since it ended in `data_error`: data ("), "{}", resumed.stderr);
    assert!(resumed.stderr.contains("pre-flight again"), "{}", resumed.stderr);
    let attempts =
        home.sql("select resumed_from_step, first_step from training_attempts order by attempt_number");
    assert_eq!(
        attempts[1]["resumed_from_step"],
        attempts[1]["first_step"].as_u64().unwrap() - 1,
        "{attempts:?}"
    );
    let events = home.sql("select kind from events where kind = 'preflight_repeated'");
    assert_eq!(events.len(), 2);
}

/// Proves that data which is repaired while the attempt that it stops ends lets the run continue, that data which
/// stopped an attempt before does not, and that the retry passes pre-flight again.
#[test]
fn data_that_changed_is_tried_once() {
    let end = "echo 'pandas.errors.ParserError: Error tokenizing data. C error: Expected 2 fields in line 3, saw 3' >&2; exit 1";
    let home = Home::new();
    let file = |script: &str, rules: &str| {
        format!(
            "[run]\nname = \"d\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n[data.train]\npath = \"t.csv\"\n{rules}"
        )
    };
    let repaired = format!("if grep -q 9 t.csv; then printf 'a,b\\\\n1,2\\\\n' > t.csv; {end}; fi");
    home.write("t.csv", "a,b\n1,9\n");
    home.write("r.toml", &file(&repaired, ""));
    run(&home, 0);
    let rules = |home: &Home| -> Vec<Value> {
        home.sql("select rule from retries order by at").into_iter().map(|row| row["rule"].clone()).collect()
    };
    assert_eq!(rules(&home), ["data.changed", "finished"]);
    assert_eq!(home.sql("select * from events where kind = 'preflight_repeated'").len(), 1);

    let home = Home::new();
    let back = format!(
        "if grep -q 9 t.csv; then printf 'a,b\\\\n1,2\\\\n' > t.csv; else printf 'a,b\\\\n1,9\\\\n' > t.csv; fi; {end}"
    );
    home.write("t.csv", "a,b\n1,9\n");
    home.write("r.toml", &file(&back, ""));
    run(&home, 4);
    assert_eq!(rules(&home), ["data.changed", "data.seen_before"]);

    let home = Home::new();
    let worse = format!("if grep -q 9 t.csv; then printf 'a,b\\\\n1,99\\\\n' > t.csv; {end}; fi");
    home.write("t.csv", "a,b\n1,9\n");
    home.write(
        "r.toml",
        &file(&worse, "rules = [\"b < 10\"]\n[preflight]\nseverity = { \"data.schema\" = \"block\" }\n"),
    );
    run(&home, 3);
    assert_eq!(home.sql("select * from training_attempts").len(), 1, "pre-flight blocks the retry");
}

/// Proves that a script which does not continue from its checkpoint is reported at its first steps, not at its end, and
/// is ended there where the run file wants it.
#[test]
fn a_wrong_resume_is_said_at_its_first_step() {
    let home = Home::new();
    home.write(
        "s.py",
        "import pickle, time, sys\nfor s in range(1, 121):\n    time.sleep(.05)\n    print(f'step {s} loss {1 / s}', flush=True)\n    \
         if s % 20 == 0: pickle.dump({'step': s, 'weights': [0.1], 'optimizer': [0.1]}, open('checkpoint.pkl', 'wb'))\n    \
         if s == 70 and len(sys.argv) < 2: time.sleep(4); sys.exit(1)\n",
    );
    let file = |policy: &str| {
        format!(
            "[run]\nname = \"r\"\ncommand = [\"python3\", \"s.py\"]\n[checkpoint]\nadopt = [\"checkpoint.pkl\"]\n{policy}"
        )
    };
    home.write("r.toml", &file("on_wrong_resume = \"stop\"\n"));
    run(&home, 4);
    let resumed = home.trackway(&["resume", "last"]);
    let said = "the script began with step 1, and not after step";
    assert!(resumed.stderr.contains(said), "{}", resumed.stderr);
    let last = home.sql("select last_step, termination_reason, termination_rule from training_attempts order by attempt_number desc");
    assert_eq!(last[0]["termination_rule"], "own_action.wrong_resume", "{last:?}");
    assert!(last[0]["last_step"].as_u64().unwrap() < 120, "{last:?}");
    let timeline = home.json(&["explain", "last"])["timeline"].clone();
    let at = |kind: &str| {
        timeline
            .as_array()
            .unwrap()
            .iter()
            .rposition(|event| event["kind"] == kind)
            .unwrap_or_else(|| panic!("{kind}: {timeline}"))
    };
    assert!(at("wrong_resume") < at("ended"));
}

/// Proves that a script which reads its checkpoint and begins again, and one that continues from a file which `adopt`
/// does not name, are ended at their first steps, and that one which continues is not: one that prints step 0 at each
/// start, and one that counts the batches of an evaluation before.
#[test]
fn a_resume_is_judged_by_its_first_steps_whatever_was_read() {
    let script = r#"
import os, pickle, sys, time
load = lambda path: pickle.load(open(path, "rb"))["step"]
again, s = os.path.exists("died"), 0
if again and sys.argv[1] == "again": load("checkpoint.pkl")
if again and sys.argv[1] == "elsewhere": s = load("own.bin")
if again and sys.argv[1] in ("continues", "evaluates"): s = load("checkpoint.pkl")
for batch in range(1, 14) if again and sys.argv[1] == "evaluates" else ():
    print(f"[eval] step {batch} loss {0.5 / batch}", flush=True)
    time.sleep(.5)
if sys.argv[1] == "continues": print("step 0 val_loss 1.0", flush=True)
while s < 120:
    s += 1
    time.sleep(.1 if again and sys.argv[1] != "continues" else .02)
    print(f"step {s} loss {1 / s}", flush=True)
    save = lambda path, step: pickle.dump({"step": step, "weights": [0.1], "optimizer": [0.1]}, open(path, "wb"))
    if s % 20 == 0: save("checkpoint.pkl", s)
    if s == 45 and not again:
        save("own.bin", 44)
        open("died", "w").close()
        time.sleep(4)
        sys.exit(1)
"#;
    for (kind, part) in [
        ("again", Some("and began again with step 1: it did not continue from it")),
        ("elsewhere", Some("the script began with step 45 and did not read the checkpoint of step")),
        ("continues", None),
        ("evaluates", None),
    ] {
        let home = Home::new();
        home.write("s.py", script);
        home.write(
            "r.toml",
            &format!(
                "[run]\nname = \"r\"\ncommand = [\"python3\", \"s.py\", \"{kind}\"]\n[checkpoint]\nadopt = [\"checkpoint.pkl\"]\non_wrong_resume = \"stop\"\n\
                 [retry]\nunknown = {{ attempts = 0 }}\ncode_error = {{ attempts = 0 }}\n"
            ),
        );
        run(&home, 4);
        let resumed = home.trackway(&["resume", "last"]);
        let last = home.sql("select last_step, resumed_from_step, termination_rule from training_attempts order by attempt_number desc");
        let Some(part) = part else {
            assert!(
                resumed.code == 0 && last[0]["resumed_from_step"].is_u64(),
                "{last:?} {}",
                resumed.stderr
            );
            continue;
        };
        assert!(resumed.stderr.contains(part), "{}", resumed.stderr);
        assert_eq!(last[0]["termination_rule"], "own_action.wrong_resume", "{last:?}");
        assert!(last[0]["last_step"].as_u64().unwrap() < 120, "{last:?}");
    }
}

/// Proves that a variable which the script reads and whose value is not stored is named when a resume has another one,
/// and by `explain`, and that its value is stored nowhere.
#[test]
fn a_changed_variable_is_named() {
    let home = Home::new();
    home.write(
        "t.py",
        "import os, time\nfor step in range(1, 41):\n    print(f\"step {step} loss {float(os.environ['LR']) / step}\", flush=True)\n    \
         time.sleep(60 if step == 20 and os.environ['LR'] == '0.512345' else 0.01)\n",
    );
    let with = |rate: &str, arguments: &[&str]| {
        answer(home.command(arguments).env("LR", rate).env("UNCHANGED", "1").output().unwrap())
    };
    let first = with("0.512345", &["run", "--inject", "kill@step=20", "--", "python3", "t.py"]);
    assert_eq!(first.code, 4, "{}", first.stderr);
    let resumed = with("0.1", &["resume", "last"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert!(resumed.stderr.contains("variables are not those of attempt 1: `LR`\n"), "{}", resumed.stderr);
    let events = home.sql("select message from events where kind = 'variables_changed'");
    assert_eq!(events.len(), 1, "{events:?}");
    let page = home.json(&["explain", "last"]);
    let found = changes(&page["parent_diff"]);
    let variables: Vec<&String> = found.iter().filter(|line| line.starts_with("variable ")).collect();
    assert!(matches!(variables[..], [one] if one.starts_with("variable LR ")), "{found:?}");
    let capture = home.sql("select log_directory from training_attempts order by attempt_number");
    let folder = capture[0]["log_directory"].as_str().unwrap();
    let stored = std::fs::read_to_string(format!("{folder}/capture.json")).unwrap();
    assert!(stored.contains("\"LR\"") && !stored.contains("0.512345"), "{stored}");
}

/// Proves that a script which ends at once is captured whole: its end waits until the files beside it are read.
#[test]
fn a_script_that_ends_at_once_is_captured_whole() {
    let home = Home::new();
    for number in 0..200 {
        home.write(&format!("rates{number}.yaml"), "lr: 0.1\n");
    }
    let run = answer(home.command(&["run", "--", "true"]).output().unwrap());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let attempts = home.sql("select log_directory from training_attempts");
    let folder = attempts[0]["log_directory"].as_str().unwrap();
    let stored = std::fs::read_to_string(format!("{folder}/capture.json")).unwrap();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    let files = stored["folder"]["files"].as_array().unwrap();
    let read = files.iter().filter(|file| file["path"].as_str().unwrap().contains("rates"));
    assert!(read.clone().all(|file| file["blake3"].is_string()), "{files:?}");
    assert_eq!((read.count(), stored.get("incomplete")), (200, None));
}
