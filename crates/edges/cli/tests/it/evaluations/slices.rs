//! `trackway eval slices` as a user meets it.

use std::fmt::Write;

use crate::harness::Home;

/// Predictions of `rows` rows: people under 30 in `retail` are predicted wrongly half of the time by `new`, all others
/// one time in ten; `old` is wrong two times in ten everywhere.
pub fn predictions(rows: usize) -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut text = String::from("id,age,sector,region,truth,new,old\n");
    for row in 0..rows {
        let (age, sector, region) = (20 + next(40), next(4), next(3));
        let sector = ["retail", "care", "office", "crafts"][sector as usize];
        let truth = next(2);
        let wrong = next(100) < if age < 30 && sector == "retail" { 50 } else { 10 };
        let (new, old) = (truth ^ u64::from(wrong), truth ^ u64::from(next(100) < 20));
        let label = |it: u64| if it == 1 { "yes" } else { "no" };
        let (truth, new, old) = (label(truth), label(new), label(old));
        writeln!(text, "{row},{age},{sector},r{region},{truth},{new},{old}").unwrap();
    }
    text
}

const FIND: [&str; 8] =
    ["eval", "slices", "predictions.csv", "--label", "truth", "--prediction", "new", "--ignore=id,old"];

/// Proves that a planted bad slice is the first one, with the edges of its bin, and is confirmed by held-out rows; that
/// the document has the fields of the contract; and that a repeated search gives the same.
#[test]
fn a_planted_blind_spot() {
    let home = Home::new();
    home.write("predictions.csv", &predictions(6000));
    let answer = home.trackway(&[FIND.as_slice(), &["--bins", "4"]].concat());
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{}", answer.stdout);
    let first = answer.stdout.lines().nth(1).unwrap();
    assert!(first.starts_with("age [20, 30) · sector retail"), "{}", answer.stdout);
    assert!(first.ends_with("confirmed") && !first.contains("not confirmed"), "{first}");
    assert!(answer.stdout.contains("rows held out"), "{}", answer.stdout);

    let document = home.json(&[FIND.as_slice(), &["--bins", "4"]].concat());
    let slice = &document["slices"][0];
    assert_eq!(slice["predicate"], serde_json::json!({ "age": "[20, 30)", "sector": "retail" }));
    assert_eq!(
        (slice["verdict"].as_str(), slice["test"].as_str()),
        (Some("confirmed"), Some("hypergeometric"))
    );
    for number in ["size", "average_error", "score", "p_value", "adjusted_p_value"] {
        assert!(slice[number].is_number(), "{number} of {slice}");
    }
    let estimate = &slice["held_out"]["average_error"];
    assert!(estimate["low"].as_f64() < estimate["value"].as_f64(), "{estimate}");
    for number in ["evaluated", "pruned", "seconds", "rows"] {
        assert!(document[number].is_number(), "{number}");
    }
    assert_eq!(document["loss"], "zero_one");
    let mut again = home.json(&[FIND.as_slice(), &["--bins", "4"]].concat());
    again["seconds"] = document["seconds"].clone();
    assert_eq!(again, document);
}

/// Proves that no slice is made of what the model said of a row in the table that `eval score` writes, unless `--features` names it.
#[test]
fn what_a_model_said_is_no_slice() {
    let home = Home::new();
    // The model is unsure where it is wrong, which is what a score shows best.
    let scored = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        match cells[0] {
            "id" => format!("{line},score"),
            row => {
                let number: u32 = row.parse().unwrap();
                let score = if cells[4] == cells[5] { 70 + number % 29 } else { 50 + number % 10 };
                format!("{line},0.{score}")
            }
        }
    };
    let table: Vec<String> = predictions(4000).lines().map(scored).collect();
    home.write("predictions.csv", &table.join("\n"));
    let found = |more: &[&str]| home.trackway(&[FIND.as_slice(), more].concat()).stdout;
    let slices = found(&["--bins", "4"]);
    assert!(slices.lines().nth(1).unwrap().starts_with("age [20, 30) · sector retail"), "{slices}");
    assert!(!slices.contains("score ["), "{slices}");
    let named = [&FIND[..7], &["--features", "score,age"]].concat();
    let named = home.trackway(&named).stdout;
    assert!(named.lines().nth(1).unwrap().starts_with("score [0.5"), "{named}");
}

/// Proves that slices with the rows of one above are one finding with it, and that they are listed on request, or the exact ones left out.
#[test]
fn the_same_rows_in_other_words() {
    let home = Home::new();
    let twice = |line: &str| format!("{line},{}", line.split(',').nth(2).unwrap());
    let table: Vec<String> = predictions(4000).lines().map(twice).collect();
    home.write("predictions.csv", &table.join("\n").replacen("old,sector", "old,branch", 1));
    let merged = home.json(&[FIND.as_slice(), &["--top", "3", "--bins", "4"]].concat());
    let first = &merged["slices"][0];
    assert_eq!(first["also_described_by"][0]["overlap"], 1.0, "{first}");
    let described = home.trackway(&[FIND.as_slice(), &["--top", "3", "--bins", "4"]].concat());
    assert!(described.stdout.contains(" is also described by "), "{}", described.stdout);
    let all = home.trackway(&[FIND.as_slice(), &["--top", "3", "--repeats"]].concat());
    assert!(all.stdout.contains("with the same rows as a slice above"), "{}", all.stdout);
    let distinct = home.json(&[FIND.as_slice(), &["--top", "3", "--distinct"]].concat());
    let slices = distinct["slices"].as_array().unwrap();
    assert_eq!(slices.len(), 3);
    for slice in slices {
        assert!(slice["same_rows_as"].is_null(), "{slice}");
        let names = slice["predicate"].as_object().unwrap();
        assert!(!(names.contains_key("sector") && names.contains_key("branch")), "{slice}");
    }
}

/// Proves that the slice where a candidate is worse than its baseline is found though it is better on the whole, and
/// that a result without held-out rows gives no p-values and contains the reason.
#[test]
fn worse_than_the_baseline() {
    let home = Home::new();
    home.write("predictions.csv", &predictions(6000));
    let find =
        ["eval", "slices", "predictions.csv", "--label", "truth", "--prediction", "new", "--ignore", "id"];
    let paired = home.json(&[find.as_slice(), &["--worse-than", "old", "--bins", "4"]].concat());
    assert_eq!(paired["slices"][0]["predicate"]["sector"], "retail");
    assert_eq!(paired["slices"][0]["test"], "sign");
    assert!(paired["held_out"]["average_error"].as_f64() < Some(0.0), "{paired}");
    assert!(paired["features"].as_array().unwrap().iter().all(|feature| feature["name"] != "old"));

    let all = home.trackway(&[find.as_slice(), &["--no-holdout"]].concat());
    assert_eq!(all.code, 0);
    assert!(
        all.stdout.contains("no rows were held out") && !all.stdout.contains("verdict"),
        "{}",
        all.stdout
    );
    let all = home.json(&[find.as_slice(), &["--no-holdout"]].concat());
    assert_eq!(
        (&all["slices"][0]["p_value"], &all["held_out"]),
        (&serde_json::Value::Null, &serde_json::Value::Null)
    );
    assert_eq!(all["slices"][0]["verdict"], "inconclusive");
}

/// Proves that an earlier result is used as a start and compared with: a slice that was fixed is gone.
#[test]
fn since_an_earlier_answer() {
    let home = Home::new();
    home.write("predictions.csv", &predictions(6000));
    let before = home.trackway(&[FIND.as_slice(), &["--bins", "4", "--top", "1", "--json"]].concat());
    home.write("before.json", &before.stdout);
    let with = |prediction: &'static str| {
        let find = ["eval", "slices", "predictions.csv", "--label", "truth", "--prediction", prediction];
        [find.as_slice(), &["--features=age,sector,region", "--top", "1", "--since", "before.json"]].concat()
    };
    let same = home.json(&with("new"));
    assert_eq!(same["slices"][0]["change"], "same");
    let other = home.trackway(&with("old"));
    assert!(other.stdout.contains("no longer found:"), "{}", other.stdout);
    assert!(
        other
            .stdout
            .lines()
            .any(|line| line.starts_with("age [20, 30) · sector retail") && line.ends_with("resolved"))
    );
    let missing = home.trackway(&[FIND.as_slice(), &["--since", "none.json"]].concat());
    assert_eq!(missing.code, 6, "{}", missing.stderr);
    home.write("other.json", "{\"a\": 1}");
    let other = home.trackway(&[FIND.as_slice(), &["--since", "other.json"]].concat());
    assert_eq!(other.code, 2);
    assert!(other.stderr.contains("is not the output of `trackway eval slices --json`"), "{}", other.stderr);
}

/// Proves that mistakes are reported with what to do: no error column, an unknown column, a column that is not an
/// error, a table that is not there, too few rows.
#[test]
fn mistakes() {
    let home = Home::new();
    home.write("predictions.csv", &predictions(100));
    let reported = |arguments: &[&str]| {
        let answer = home.trackway(&[&["eval", "slices"], arguments].concat());
        assert_eq!(answer.stdout, "", "{arguments:?}");
        (answer.code, answer.stderr)
    };
    let check = |arguments: &[&str], code: i32, text: &str| {
        let (found, stderr) = reported(arguments);
        assert!(found == code && stderr.contains(text), "{arguments:?}: {found}\n{stderr}");
    };
    check(&["predictions.csv"], 2, "--error <COLUMN>");
    check(&["predictions.csv", "--error", "agee"], 2, "age");
    check(&["predictions.csv", "--error", "sector"], 2, "column `sector` is not numeric");
    check(&["predictions.csv", "--label", "truth", "--prediction", "age"], 2, "cannot be compared");
    check(&["none.csv", "--error", "age"], 6, "none.csv");
    check(&["predictions.csv", "--error", "age", "--support-min", "90"], 2, "too few");
    check(&["predictions.csv", "--error", "age", "--alpha", "2"], 2, "alpha is 2");
    check(&["predictions.csv", "--error", "age", "--ignore", "nothing"], 2, "nothing");
}
