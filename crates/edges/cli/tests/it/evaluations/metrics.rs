//! `trackway eval metrics` as a user meets it.

use std::fmt::Write as _;

use crate::harness::Home;

/// Predictions for people of two kinds: those of kind `b` from 60 on are right half of the time, all others nine times
/// of ten. `shift` moves which are right, so that two of them can be compared.
pub fn table(rows: usize, shift: usize, better: bool) -> String {
    let mut text = "id,kind,age,label,prediction,score\n".to_owned();
    for row in 0..rows {
        let (kind, age) = (if row % 3 == 0 { "b" } else { "a" }, 20 + row * 7 % 60);
        let is_hard = kind == "b" && age >= 60 && !better;
        let right =
            if is_hard { (row + shift).is_multiple_of(2) } else { !(row * 13 + shift).is_multiple_of(10) };
        let label = row % 2;
        let prediction = if right { label } else { 1 - label };
        let score =
            if prediction == 1 { 0.5 + (row % 50) as f64 / 100.0 } else { 0.49 - (row % 49) as f64 / 100.0 };
        writeln!(text, "p{row},{kind},{age},{},{},{score:.2}", word(label), word(prediction)).unwrap();
    }
    text
}

fn word(class: usize) -> &'static str {
    if class == 1 { "yes" } else { "no" }
}

/// Proves that a table is evaluated without a home, with intervals, slices by SQL and fairness, as text and in JSON,
/// and that what was guessed is noted.
#[test]
fn a_table_is_judged() {
    let home = Home::new();
    home.write("p.csv", &table(3_000, 0, false));
    let slices = [
        "--slice",
        "hard=kind = 'b' and age >= 60",
        "--slice",
        "few=age = 20 and kind = 'a' and label = 'yes'",
    ];
    let words = [&["eval", "metrics", "p.csv", "--fairness", "kind"][..], &slices].concat();
    let answer = home.trackway(&words);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{}", answer.stdout);
    for expected in
        ["accuracy", "roc_auc", "worse", "inconclusive", "demographic_parity", "`yes` counts as positive"]
    {
        assert!(answer.stdout.contains(expected), "{expected}\n{}", answer.stdout);
    }
    assert!(!home.state().exists(), "no home is made");
    let document = home.json(&words);
    let accuracy = &document["metrics"]["accuracy"];
    let [low, value, high] = ["low", "value", "high"].map(|name| accuracy[name].as_f64().unwrap());
    assert!(low < value && value < high && high - low < 0.05, "{accuracy}");
    assert_eq!(accuracy["method"], "analytic");
    assert_eq!(document["metrics"]["average_precision"]["method"], "bootstrap");
    let hard = &document["slices"][0];
    assert_eq!((hard["name"].as_str(), hard["verdict"].as_str()), (Some("hard"), Some("worse")));
    let is_hard = |row: &usize| row.is_multiple_of(3) && 20 + row * 7 % 60 >= 60;
    assert_eq!(hard["support"].as_u64(), Some((0..3_000).filter(is_hard).count() as u64));
    assert_eq!(document["fairness"][0]["groups"].as_array().unwrap().len(), 2);
    assert_eq!(document, home.json(&words), "the same seed gives the same numbers");
}

/// Proves that a candidate is compared with a baseline row by row, that rows that do not match are reported, and that
/// pairing by place must be requested by name.
#[test]
fn a_candidate_is_compared() {
    let home = Home::new();
    let (old, new) = (table(3_000, 1, false), table(3_000, 1, true));
    home.write("old.csv", &old);
    let fewer: Vec<&str> = new.lines().filter(|line| !line.starts_with("p17,")).collect();
    home.write("new.csv", &fewer.join("\n"));
    let words =
        ["eval", "metrics", "new.csv", "--baseline", "old.csv", "--slice", "hard=kind = 'b' and age >= 60"];
    let document = home.json(&words);
    let comparison = &document["comparison"];
    assert_eq!(comparison["metrics"]["accuracy"]["verdict"], "better");
    assert_eq!(comparison["slices"][0]["compared"]["verdict"], "better");
    assert_eq!(
        (&comparison["pairing"]["pairs"], &comparison["pairing"]["only_baseline"]),
        (&2_999.into(), &1.into())
    );
    let answer = home.trackway(&words);
    assert!(answer.stdout.contains("not compared: 1 row only in the baseline"), "{}", answer.stdout);
    let by_order = home.trackway(&["eval", "metrics", "new.csv", "--baseline", "old.csv", "--by-order"]);
    assert_eq!(by_order.code, 2);
    assert!(by_order.stderr.contains("3000 rows and the candidate 2999"), "{}", by_order.stderr);
}

/// Proves that wrong names, predicates and files are refused with what there is and what to write.
#[test]
fn wrong_words_about_metrics() {
    let home = Home::new();
    home.write("p.csv", &table(100, 0, false));
    home.write("x.csv", "a,b\n1,2\n");
    home.write("bad.csv", "label,prediction\n1,1\n0,1,2,3\n0,0\n");
    for (words, code, expected) in [
        (&["p.csv", "--label", "lable"][..], 2, "there is no column `lable`; there are id, kind"),
        (&["p.csv", "--positive", "maybe"], 2, "has no class `maybe`; there are no, yes"),
        (&["p.csv", "--slice", "old"], 2, "a slice has a name and a predicate"),
        (&["p.csv", "--slice", "old=ago > 3"], 2, "slice `old`: `ago > 3` cannot be evaluated"),
        (&["p.csv", "--metric", "acuracy"], 2, "there is no metric `acuracy`"),
        (&["p.csv", "--confidence", "95"], 2, "the confidence level must be between 0.5 and 1"),
        (&["p.csv", "--baseline", "x.csv"], 2, "there is no column"),
        (&["x.csv"], 2, "name the columns"),
        (&["bad.csv"], 2, "1 rows of the predictions cannot be read"),
        (&["q.csv"], 6, "did you mean `p.csv`?"),
    ] {
        let answer = home.trackway(&[&["eval", "metrics"], words].concat());
        assert_eq!(answer.code, code, "{words:?}: {}{}", answer.stdout, answer.stderr);
        assert!(answer.stderr.contains(expected) && answer.stdout.is_empty(), "{words:?}: {}", answer.stderr);
    }
}

/// Proves that the page needs nothing but itself, holds what the result holds and shows data as text; and that the
/// Parquet file has a row for every number of the JSON, which `trackway eval metrics` and others can read.
#[test]
fn an_assessment_is_a_page_and_a_file() {
    let home = Home::new();
    home.write("old.csv", &table(2_000, 1, false));
    home.write("new.csv", &table(2_000, 1, true).replace(",b,", ",<b>&,"));
    let words = [
        "eval", "metrics", "new.csv", "--baseline", "old.csv", "--fairness", "kind", "--slice",
        "odd=kind = '<b>&'",
    ];
    let document =
        home.json(&[&words[..], &["--html", "page.html", "--parquet", "numbers.parquet"]].concat());
    let page = std::fs::read_to_string(home.path().join("page.html")).unwrap();
    for expected in [
        "<h2>Metrics</h2>", "<h2>Curves</h2>", "<h2>Confusion</h2>", "<h2>Residuals</h2>", "<h2>Slices</h2>",
        "Fairness by", "<polyline", "Against the baseline", "&lt;b&gt;&amp;", "better",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    for forbidden in ["<b>&", "<script", "http://", "https://", "src=", "NaN", "inf"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    assert_eq!(page.matches("<td").count(), page.matches("</td>").count());
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    let profile = home.json(&["data", "profile", "numbers.parquet"]);
    let count = |value: &serde_json::Value| value.as_object().unwrap().len();
    let classes: usize = document["classes"].as_array().unwrap().iter().map(|it| count(&it["metrics"])).sum();
    let fairness = &document["fairness"][0];
    let groups: usize = fairness["groups"].as_array().unwrap().iter().map(|it| count(&it["metrics"])).sum();
    let slice = &document["slices"][0];
    let residuals = &document["residuals"];
    let curves = residuals["by_feature"].as_array().unwrap().iter().chain([&residuals["by_prediction"]]);
    let bins: usize = curves.map(|curve| curve["bins"].as_array().unwrap().len()).sum();
    assert!(bins > 2, "{residuals}");
    let expected = count(&document["metrics"])
        + classes
        + count(&slice["metrics"])
        + 1
        + count(&fairness["measures"])
        + groups
        + bins
        + count(&document["comparison"]["metrics"])
        + 1;
    assert_eq!(profile["rows"].as_u64(), Some(expected as u64));
}
