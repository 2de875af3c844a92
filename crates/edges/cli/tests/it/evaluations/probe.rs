//! `trackway eval probe` as a user meets it, with a model that is a few lines of shell.

use std::fmt::Write;

use crate::harness::{Home, has_frameworks};

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

pub fn home() -> Home {
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

const PROBE: [&str; 7] = ["eval", "probe", "rows.csv", "--command", "sh score.sh", "--label", "truth"];

/// Proves that importance and dependence of a model are found in a real process, and that values which it does not accept
/// are reported as refused.
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

    let shown = home.trackway(&PROBE);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    for expected in ["importance", "refused: age is missing", "300 of 300 rows used, average error 0"] {
        assert!(shown.stdout.contains(expected), "{expected}\n{}", shown.stdout);
    }
    let only = home.json(&[PROBE.as_slice(), &["--only", "importance"]].concat());
    assert_eq!(only["dependence"], serde_json::json!([]));
    assert_eq!(only["scored_rows"], 300 * 16);
}

/// Proves that mistakes are reported with what to do: a command that is not there, one that does not answer, an unknown
/// label and class.
#[test]
fn mistakes() {
    let home = home();
    let check = |arguments: &[&str], code: i32, text: &str| {
        let answer = home.trackway(&[&["eval", "probe", "rows.csv"], arguments].concat());
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

/// The probability of `yes` by age, with its gradient if requested; never uses the region.
const LOGISTIC: &str = r#"import math, os, sys

gradients = os.environ.get("TRACKWAY_SCORING_GRADIENTS") == "1"
sys.stdin.readline()
for line in sys.stdin:
    if not line.strip():
        sys.stdout.flush()
        continue
    age = line.split(",")[0]
    probability = 1 / (1 + math.exp(-(float(age or "nan") - 45) / 5))
    if probability != probability:
        probability = 0.5
    print(f"{probability!r},{probability * (1 - probability) / 5!r}," if gradients else repr(probability))
"#;

/// Proves that residuals and small steps of a model with gradients are found in a real process, and that all of it is a page
/// without references.
#[test]
fn a_model_with_gradients() {
    let home = home();
    home.write("logistic.py", LOGISTIC);
    let mut text = String::from("age,region,truth\n");
    for row in 0..400u32 {
        let age = if row == 9 { 400 } else { 20 + row * 7 % 41 };
        // In region r1 the label is never yes, which the model ignores.
        let truth = u8::from(age >= 45 && row % 4 != 1);
        writeln!(text, "{age},r{},{truth}", row % 4).unwrap();
    }
    home.write("ages.csv", &text);
    let words = ["eval", "probe", "ages.csv", "--command", "python3 logistic.py", "--label", "truth"];
    let document = home.json(&[words.as_slice(), &["--html", "probe.html"]].concat());
    let residuals = &document["residuals"];
    assert_eq!((residuals["of"].as_str(), residuals["rows"].as_u64()), (Some("probability"), Some(400)));
    let region = &residuals["by_feature"][0];
    assert_eq!(region["feature"], "region");
    let bins = region["bins"].as_array().unwrap();
    let of_r1 = bins.iter().find(|bin| bin["values"] == "r1").unwrap();
    assert!(of_r1["mean"]["high"].as_f64() < Some(-0.1), "{of_r1}");
    let sensitivity = &document["sensitivity"];
    assert_eq!(sensitivity["slopes"][0]["feature"], "age");
    assert!(
        sensitivity["check"]["relative_error"].as_f64() < Some(0.1) && document["no_sensitivity"].is_null(),
        "{sensitivity}"
    );
    let flipped = |step: usize, of: &str| sensitivity["steps"][step][of]["value"].as_f64().unwrap();
    assert!(
        flipped(4, "flipped") > flipped(4, "flipped_at_random")
            && flipped(4, "flipped") > flipped(0, "flipped")
    );

    let page = std::fs::read_to_string(home.path().join("probe.html")).unwrap();
    for expected in ["Residuals", "Importance", "Dependence", "Perturbations", "Small steps", "Slopes"] {
        assert!(page.contains(&format!("<h2>{expected}</h2>")), "{expected}");
    }
    for forbidden in ["<script", "http://", "https://", "src=", "NaN", "-inf", ">inf", " inf "] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    for (begin, end) in [("<td", "</td>"), ("<svg", "</svg>"), ("<div", "</div>")] {
        assert_eq!(page.matches(begin).count(), page.matches(end).count(), "{begin}");
    }
    let shown = home.trackway(&words);
    for expected in ["depend on", "small steps along the gradient", "slopes"] {
        assert!(shown.stdout.contains(expected), "{expected}\n{}", shown.stdout);
    }
}

/// Proves that a model without gradients is reported as such and ends nothing.
#[test]
fn a_model_without_gradients() {
    let document = home().json(&[PROBE.as_slice(), &["--only", "sensitivity,residuals"]].concat());
    assert!(document["no_sensitivity"].as_str().unwrap().contains("gives no gradients"), "{document}");
    assert_eq!(
        (document["sensitivity"].is_null(), document["residuals"]["of"].as_str()),
        (true, Some("wrong_class"))
    );
}

/// Proves with PyTorch and a stream of Arrow batches that a module served by the package returns its predictions and
/// gradients, and that both formats give the same result.
#[test]
fn the_torch_module_is_probed() {
    if !has_frameworks() {
        return;
    }
    let home = Home::new();
    home.write(
        "score.py",
        "import torch, trackway\n\n\nclass Price(torch.nn.Module):\n    def forward(self, rows):\n        return rows[:, 0] * 2 + \
         torch.sin(rows[:, 1])\n\n\ntrackway.serve_scores(Price())\n",
    );
    let mut text = String::from("size,angle,price\n");
    for row in 0..200u32 {
        let (size, angle) = (f64::from(row * 13 % 37), f64::from(row * 7 % 31) / 5.0);
        writeln!(text, "{size},{angle},{}", size * 2.0 + angle.sin() + f64::from(row % 5) / 10.0).unwrap();
    }
    home.write("prices.csv", &text);
    let asked = |batches: &str| {
        let mut document = home.json(&[
            "eval", "probe", "prices.csv", "--command", "python score.py", "--label", "price",
            "--batch-format", batches,
        ]);
        document.as_object_mut().unwrap().remove("seconds");
        document
    };
    let (csv, arrow) = (asked("csv"), asked("arrow"));
    assert_eq!(csv, arrow);
    assert_eq!(arrow["sensitivity"]["slopes"][0]["feature"], "size");
    assert!(
        arrow["sensitivity"]["check"]["relative_error"].as_f64() < Some(0.02),
        "{}",
        arrow["sensitivity"]["check"]
    );
    assert_eq!(arrow["residuals"]["of"], "value");
}
