//! `trackway probe` as a user meets it, with a model that is a few lines of shell.

use std::fmt::Write;

use crate::harness::Home;

/// Answers `yes` from age 50 on, and in retail from 40 on; refuses rows without an age; never looks at the region.
const MODEL: &str = r#"read -r header
while IFS=, read -r age sector region; do
  case "$age,$sector" in
    ,) ;;
    ,*) echo "! age is missing"; while read -r rest && [ -n "$rest" ]; do :; done ;;
    *.*) echo no ;;
    *,retail) if [ "$age" -ge 40 ]; then echo yes; else echo no; fi ;;
    *) if [ "$age" -ge 50 ]; then echo yes; else echo no; fi ;;
  esac
done
"#;

fn home() -> Home {
    let home = Home::new();
    home.write("score.sh", MODEL);
    let mut text = String::from("age,sector,region,truth\n");
    for row in 0..300u32 {
        let (age, sector) = (20 + row * 7 % 41, ["retail", "care", "office"][(row / 41 % 3) as usize]);
        let truth = if age >= 50 || sector == "retail" && age >= 40 { "yes" } else { "no" };
        writeln!(text, "{age},{sector},r{},{truth}", row % 4).unwrap();
    }
    home.write("rows.csv", &text);
    home
}

const PROBE: [&str; 6] = ["probe", "rows.csv", "--command", "sh score.sh", "--label", "truth"];

/// Proves that what the model needs, what it makes of changed values and what would change its mind are found in a real
/// process, and that values which it does not take are told as refused.
#[test]
fn a_model_in_a_process() {
    let home = home();
    let document = home.json(&PROBE);
    assert_eq!(document["loss"], "zero_one");
    assert_eq!(document["error"]["value"], 0.0);
    let importance = document["importance"].as_array().unwrap();
    let names: Vec<&str> = importance.iter().map(|it| it["feature"].as_str().unwrap()).collect();
    assert_eq!(names, ["age", "sector", "region"]);
    assert!(importance[0]["increase"]["low"].as_f64() > Some(0.2), "{document}");
    assert_eq!(importance[2]["increase"]["value"], 0.0);
    let missing = document["perturbations"].as_array().unwrap();
    let missing = missing.iter().find(|it| it["feature"] == "age" && it["kind"] == "missing").unwrap();
    assert_eq!(missing["refused"], "age is missing");
    let ages = document["dependence"].as_array().unwrap().iter().find(|it| it["feature"] == "age").unwrap();
    let yes = ages["curves"].as_array().unwrap().iter().find(|it| it["class"] == "yes").unwrap();
    let mean = yes["mean"].as_array().unwrap();
    assert_eq!((mean[0].as_f64(), mean[mean.len() - 1].as_f64()), (Some(0.0), Some(1.0)));
    let changed = document["counterfactuals"].as_array().unwrap();
    assert_eq!(changed.len(), 20);
    for one in changed {
        assert_ne!(one["before"], one["after"]);
        assert_eq!(one["changes"].as_array().unwrap().len(), 1, "{one}");
        assert_ne!(one["changes"][0][0], "region");
    }

    let shown = home.trackway(&PROBE);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    for expected in
        ["importance", "refused: age is missing", "smallest changes", "300 of 300 rows, error 0 on average"]
    {
        assert!(shown.stdout.contains(expected), "{expected}\n{}", shown.stdout);
    }
    let only = home.json(&[PROBE.as_slice(), &["--only", "importance"]].concat());
    assert_eq!(only["dependence"], serde_json::json!([]));
    assert_eq!(only["scored_rows"], 300 * 16);
}

/// Proves that mistakes are told with what to do: a command that is not there, one that does not answer, an unknown label
/// and class.
#[test]
fn mistakes() {
    let home = home();
    let check = |arguments: &[&str], code: i32, text: &str| {
        let answer = home.trackway(&[&["probe", "rows.csv"], arguments].concat());
        assert!(
            answer.code == code && answer.stderr.contains(text),
            "{arguments:?}: {}\n{}",
            answer.code,
            answer.stderr
        );
        assert_eq!(answer.stdout, "");
    };
    check(&["--command", "no-such-program-here"], 2, "exit status: 127");
    check(&["--command", "true"], 2, "docs/scoring.md");
    check(&["--command", "sh score.sh", "--label", "trooth"], 2, "truth");
    check(
        &["--command", "sh score.sh", "--label", "truth", "--positive", "maybe"],
        2,
        "no row's `truth` is `maybe`",
    );
    check(&["--command", "sh score.sh", "--rows", "0"], 2, "at least 1");
    check(&[], 2, "--command <COMMAND>");
}
