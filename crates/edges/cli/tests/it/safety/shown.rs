//! What a script, a file or a name holds steers no terminal and becomes no markup: hostile letters in whatever a user
//! can name, in front of every command that shows it.

use std::fmt::Write;

use trackway_core::visible::steers_display;

use crate::evaluations::{checkpoints, evaluate, write_job};
use crate::harness::{Answer, Home};

/// Clears the screen, sets the title, rings, begins a control sequence in one letter, goes back to the beginning of the
/// line, turns the direction, is a tag, ends a cell and a code span.
const HOSTILE: &str = "x\u{1b}[2J\u{1b}]0;t\u{7}\u{9b}1m\r\u{202e}<script>alert(1)</script>|`y";

/// Runs a command, and proves that nothing in its output steers a terminal; with `--json` too.
fn ask(home: &Home, arguments: &[&str]) -> Answer {
    let json = home.trackway(&[arguments, &["--json"]].concat());
    assert_clean(&json, arguments);
    let answer = home.trackway(arguments);
    assert_clean(&answer, arguments);
    answer
}

fn assert_clean(answer: &Answer, arguments: &[&str]) {
    for text in [&answer.stdout, &answer.stderr] {
        let steers = text.find(|letter| steers_display(letter) && letter != '\n');
        assert!(steers.is_none(), "{arguments:?} at {steers:?}: {text:?}");
    }
}

/// Proves that a page has no tag but those of a report, and no letter that turns its text.
fn assert_page(home: &Home, name: &str) {
    const TAGS: &str = "!doctype html head meta title style body header main section h1 h2 h3 p div span table thead tbody details summary \
                        tr th td code b br svg desc g rect path polyline polygon circle text";
    let page = std::fs::read_to_string(home.path().join(name)).unwrap_or_else(|_| panic!("no {name}"));
    assert!(!page.contains(|letter| steers_display(letter) && letter != '\n'), "{name}");
    for part in page.split('<').skip(1) {
        let tag = part.trim_start_matches('/').split([' ', '>', '/']).next().unwrap();
        let is_own_link = part.starts_with("a href=\"#") || part.starts_with("/a>");
        assert!(is_own_link || TAGS.split_whitespace().any(|known| known == tag), "{name}: <{part}");
        // Outside of quotes an attribute is a name that this program wrote.
        let inner = part.split('>').next().unwrap();
        assert!(!inner.split('"').step_by(2).any(|text| text.contains("alert")), "{name}: <{part}");
    }
    assert!(page.contains("&lt;script&gt;"), "{name} shows the hostile text");
}

/// Proves it for names of runs, what scripts print, arguments and what is not found.
#[test]
fn names_and_logs_of_runs() {
    let home = Home::new();
    let script =
        format!("printf '%s\\n' '{HOSTILE}' 'step 1: loss 0.5' 'RuntimeError: {HOSTILE}' >&2; exit 1");
    let started = home.trackway(&["run", "--name", HOSTILE, "--", "sh", "-c", &script, HOSTILE]);
    for line in
        started.stderr.lines().filter(|line| line.starts_with("trackway:") || line.starts_with("error:"))
    {
        assert!(!line.contains(steers_display), "{line:?}");
    }
    home.run_script(&["--name", "plain"], &script);
    home.write("log.txt", &format!("{HOSTILE}\nRuntimeError: CUDA out of memory {HOSTILE}\n"));
    for arguments in [
        &["runs"][..],
        &["runs", "--columns", "name,state"],
        &["runs", "--where", &format!("`{HOSTILE}` < 1")],
        &["attempts"],
        &["explain", "last"],
        &["explain", "plain"],
        &["explain", HOSTILE],
        &["explain", HOSTILE, "--html", "explained.html"],
        &["postmortem", "last"],
        &["postmortem", HOSTILE],
        &["postmortem", HOSTILE, "--out", "postmortem.md", "--html", "postmortem.html"],
        &["logs", "last"],
        &["logs", "last", "--times"],
        &["watch", "last", "--once"],
        &["stop", HOSTILE],
        &["resume", &format!("{HOSTILE} of nothing")],
        &["compare", "last", HOSTILE],
        &["classify", "--log", "log.txt"],
        &["classify", "--log", HOSTILE],
        &["sql", &format!("select name, '{HOSTILE}' as \"{HOSTILE}\" from runs")],
        &["sql", HOSTILE],
        &["checkpoint", "ls", HOSTILE],
        &["registry", "show", HOSTILE],
        &["runs", "--limit", HOSTILE],
        &["run", HOSTILE],
        &["data", "profile", HOSTILE],
        &[HOSTILE],
    ] {
        ask(&home, arguments);
    }
    assert_page(&home, "explained.html");
    assert_page(&home, "postmortem.html");
    let text = std::fs::read_to_string(home.path().join("postmortem.md")).unwrap();
    assert!(!text.contains(|letter| steers_display(letter) && letter != '\n'), "{text:?}");
    assert!(!text.replace("\\<", "").contains("<script>"), "{text}");
}

/// A table whose columns, values and classes are hostile.
fn table() -> String {
    let mut text = format!("id,\"{HOSTILE}\",n,label,prediction,score\n");
    for row in 0..300u32 {
        let class = |yes: bool| if yes { format!("\"{HOSTILE}\"") } else { "no".into() };
        let value = if row % 3 == 0 { format!("\"{HOSTILE}\"") } else { "plain".into() };
        let (label, right) = (row % 2 == 0, row * 7 % 10 > 2);
        let score = f64::from(row % 50) / 100.0 + if label == right { 0.5 } else { 0.0 };
        writeln!(text, "{row},{value},{},{},{},{score}", row * 13 % 40, class(label), class(label == right))
            .unwrap();
    }
    text
}

/// Proves it for columns, values, classes, names of slices and files of data, and for the pages over them.
#[test]
fn columns_and_values_of_data() {
    let home = Home::new();
    home.write("t.csv", &table());
    let file = format!("{}.csv", HOSTILE.replace('/', ""));
    home.write(&file, &table());
    home.write("ragged.csv", &format!("a,b\n1,2\n{HOSTILE}\n"));
    home.write(
        "schema.toml",
        &format!(
            "version = 1\n[[column]]\nname = \"n\"\nmax = 3\n[[rule]]\nsql = \"n < 3\"\nname = {HOSTILE:?}\n"
        ),
    );
    home.write("score.sh", "read -r header\nwhile read -r row; do case $row in '') ;; '\"x'*|plain*) echo no ;; *) printf '! %s\\n' \"$row\"; while read -r rest && [ -n \"$rest\" ]; do :; done ;; esac; done\n");
    let slice = format!("few=label = '{}' and n < 9", HOSTILE);
    for arguments in [
        &["data", "profile", "t.csv", "--label", "label"][..],
        &["data", "profile", &file],
        &["data", "profile", "ragged.csv"],
        &["data", "profile", "t.csv", "--label", HOSTILE],
        &["data", "check", "t.csv", "--label", "label", "--fairness", HOSTILE],
        &["data", "validate", "t.csv", "--schema", "schema.toml"],
        &["data", "drift", "t.csv", "--reference", "ragged.csv"],
        &["data", "leakage", "--train", "t.csv", "--test", &file, "--label", "label"],
        &["data", "snapshot", &file, "--name", HOSTILE],
        &["data", "snapshot", &file, "--name", "plain"],
        &["data", "ls"],
        &["data", "diff", "plain", HOSTILE],
        &["eval", "metrics", "t.csv", "--fairness", HOSTILE, "--slice", &slice, "--html", "metrics.html"],
        &[
            "eval", "slices", "t.csv", "--label", "label", "--prediction", "prediction", "--ignore",
            "id,score",
        ],
        &[
            "eval", "probe", &file, "--command", "sh score.sh", "--label", "label", "--ignore", "id,score",
            "--html", "probe.html",
        ],
        &["eval", "score", "t.csv", "--command", "sh score.sh", "--out", "scored.csv"],
    ] {
        let answer = ask(&home, arguments);
        let makes_page = arguments.contains(&"--html");
        assert!(!makes_page || answer.code == 0, "{arguments:?}: {}", answer.stderr);
    }
    assert_page(&home, "metrics.html");
    assert_page(&home, "probe.html");
}

/// Proves it for what an evaluator leaves, for gates and for a model's card, in which a description is text.
#[test]
fn evaluations_and_cards() {
    let evaluator = format!(
        "printf 'id,label,prediction,text\\n1,a,a,x\\n2,b,a,\"%s\"\\n' '{HOSTILE}' > \"$TRACKWAY_EVALUATION_OUT/predictions.csv\"\n"
    );
    let home = Home::new();
    write_job(&home, &evaluator, "", "after = false\ngates = [\"accuracy >= 0.9\"]");
    let job = std::fs::read_to_string(home.path().join("job.toml")).unwrap();
    // A string of JSON is one of TOML.
    let family = format!("[run]\nmodel_family = {}\n", serde_json::json!(HOSTILE));
    home.write("job.toml", &job.replacen("[run]\n", &family, 1));
    assert_eq!(home.trackway(&["run", "job.toml"]).code, 0);
    assert!(!checkpoints(&home).is_empty());
    evaluate(&home, &[]);
    let description = format!("---\n<b>{HOSTILE}\n- one | two");
    let registered = home.trackway(&[
        "registry",
        "register",
        "m",
        "--run",
        "last",
        &format!("--description={description}"),
    ]);
    assert_eq!(registered.code, 0, "{}", registered.stderr);
    assert_clean(&registered, &["registry", "register"]);
    for arguments in [
        &["eval", "ls"][..],
        &["eval", "show", "last", "--html", "evaluation.html"],
        &["explain", "last"],
        &["registry", "show", "m"],
        &["registry", "card", "m", "1"],
        &["registry", "promote", "m", "1", "--why", HOSTILE],
        &["registry", "alias", "m", HOSTILE, "1"],
        &["registry", "history", "m"],
        &["gates", "judge", "last", "--gate", HOSTILE],
    ] {
        ask(&home, arguments);
    }
    assert_page(&home, "evaluation.html");
    let card = ask(&home, &["registry", "card", "m", "1"]).stdout;
    let mut parts = card.splitn(3, "---\n").skip(1);
    let (front, body) = (parts.next().unwrap(), parts.next().unwrap());
    for line in front.lines() {
        // A value of YAML on one line that is JSON, in which nothing begins a tag of a page that shows it as text.
        let (_, value) = line.split_once(": ").unwrap();
        serde_json::from_str::<serde_json::Value>(value).unwrap();
        assert!(!line.contains(['<', '>', '&']), "{line}");
    }
    let index = front.lines().find_map(|line| line.strip_prefix("model-index: ")).unwrap();
    let index: serde_json::Value = serde_json::from_str(index).unwrap();
    let family = index[0]["results"][0]["task"]["type"].as_str().unwrap();
    assert!(family.contains("<script>alert(1)</script>|`y"), "{family}");
    for markup in ["\n---\n", "<b>", "<script>", "\n- one | two"] {
        assert!(
            !body.contains(&format!("\n{markup}")) && !body.replace("\\<", "").contains(markup),
            "{markup:?} in {body}"
        );
    }
    assert!(body.contains("\\- one \\| two"), "{body}");
}

/// Proves that nothing but the printer reaches the terminal, so that all of the above holds for commands to come.
#[test]
fn only_the_printer_writes() {
    let sources = crate::harness::files_below(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(sources.len() > 50);
    for source in sources.iter().filter(|path| !path.ends_with("printer.rs")) {
        let text = std::fs::read_to_string(source).unwrap();
        for door in ["io::stdout", "io::stderr", "set_message(", "set_prefix(", "println!("] {
            assert!(!text.contains(door), "{}: {door}", source.display());
        }
    }
}

/// Four people, each in many rows, and a schema that none of them obeys.
fn people(home: &Home) {
    let mut text = "mail,phone,n,label,prediction,score\n".to_owned();
    for row in 0..400u32 {
        let (person, right) = (row % 4, row * 7 % 10 > 3);
        let (label, score) = (row % 2, f64::from(row % 50) / 100.0);
        let prediction = if right { label } else { 1 - label };
        writeln!(text, "person{person}@evil.example,+49 30 90182{person},{row},{label},{prediction},{score}")
            .unwrap();
    }
    home.write("p.csv", &text);
    home.write(
        "schema.toml",
        "version = 1\n[[column]]\nname = \"mail\"\nlength_max = 3\n[[column]]\nname = \"phone\"\nvalues = [\"x\"]\n",
    );
    home.write(
        "score.sh",
        "read -r header\nwhile read -r row; do case $row in '') ;; *person1*) echo 1 ;; *) echo 0 ;; esac; done\n",
    );
}

/// Proves that personal data in values is shown by no command and on no page by default.
#[test]
fn personal_data_is_masked() {
    let home = Home::new();
    people(&home);
    let personal = |text: &str| text.contains("@evil") || text.contains("30 9018");
    let judged = ["--label", "label", "--prediction", "prediction"];
    for arguments in [
        &["data", "profile", "p.csv"][..],
        &["data", "infer", "p.csv"],
        &["data", "validate", "p.csv", "--schema", "schema.toml"],
        &["data", "check", "p.csv", "--label", "label", "--fairness", "mail"],
        &["data", "check", "p.csv", "--label", "label", "--fairness", "mail,phone"],
        &[
            &[
                "eval",
                "metrics",
                "p.csv",
                "--fairness",
                "mail",
                "--slice",
                "one=mail = 'person1@evil.example'",
            ],
            &judged[..],
        ]
        .concat(),
        &[&["eval", "metrics", "p.csv", "--fairness", "phone", "--html", "metrics.html"], &judged[..]]
            .concat(),
        &[&["eval", "slices", "p.csv", "--ignore", "n,score"], &judged[..]].concat(),
        &[
            "eval", "probe", "p.csv", "--command", "sh score.sh", "--label", "label", "--ignore",
            "prediction,score", "--html", "probe.html",
        ],
    ] {
        for more in [&[][..], &["--json"]] {
            let answer = home.trackway(&[arguments, more].concat());
            assert!(
                !personal(&answer.stdout) && !personal(&answer.stderr),
                "{arguments:?} {}",
                answer.stdout
            );
        }
    }
    for page in ["metrics.html", "probe.html"] {
        let page = std::fs::read_to_string(home.path().join(page)).unwrap();
        let line = page.split('<').find(|part| personal(part));
        assert_eq!(line, None);
        assert!(page.contains('…'), "masked texts are shown");
    }
    let asked =
        home.trackway(&["data", "check", "p.csv", "--label", "label", "--fairness", "mail", "--show-values"]);
    assert!(asked.stdout.contains("person1@evil.example"), "{}", asked.stdout);
}
