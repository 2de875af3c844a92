//! `trackway data check` as a user meets it.

use crate::data::{COLUMNS, adult};
use crate::harness::Home;

const ADDRESSES: &str = "mail,n,paid\nana@example.org,1,yes\nbo@example.org,2,no\ncy@example.org,3,yes\n";

/// Proves that personal data ends with 3 until there is a sign-off, that addresses are shown nowhere, and the errors
/// for wrong names of checks and sign-offs.
#[test]
fn personal_data_blocks_without_a_signature() {
    let home = Home::new();
    home.write("a.csv", ADDRESSES);
    let sign = |kind: &str| {
        format!(
            "[[personal]]\ncolumn = \"mail\"\nkinds = [\"{kind}\"]\napproved_by = \"Ada\"\nwhy = \"agreed\"\n"
        )
    };
    home.write("signed.toml", &sign("email"));
    home.write("other.toml", &sign("phone"));
    home.write("broken.toml", "[[personal]]\ncolumn = \"mail\"\n");
    let blocked = home.trackway(&["data", "check", "a.csv", "--label", "paid"]);
    assert_eq!(blocked.code, 3, "{}", blocked.stdout);
    assert!(
        blocked.stdout.contains("3 e-mail addresses") && !blocked.stdout.contains("@example"),
        "{}",
        blocked.stdout
    );
    let profile = home.trackway(&["data", "profile", "a.csv", "--json"]);
    assert!(!profile.stdout.contains("ana@example"), "{}", profile.stdout);
    for (arguments, code, expected) in [
        (["--sign-off", "signed.toml"], 0, "Ada signed for it: agreed"),
        (["--sign-off", "other.toml"], 3, "3 e-mail addresses"),
        (["--skip", "data.personal"], 0, "skipped on request"),
        (["--only", "data.columns"], 0, "data.columns"),
        (["--sign-off", "broken.toml"], 2, "invalid sign-offs"),
        (["--sign-off", "gone.toml"], 6, "gone.toml"),
        (["--only", "data.colums"], 2, "there is no check `data.colums`"),
    ] {
        let answer = home.trackway(&[["data", "check", "a.csv"].as_slice(), &arguments].concat());
        assert_eq!(answer.code, code, "{arguments:?} {} {}", answer.stdout, answer.stderr);
        let said = format!("{}{}", answer.stdout, answer.stderr);
        assert!(said.contains(expected), "{arguments:?} {said}");
    }
}

/// Proves that a truncated file is a finding that blocks, with all other checks not run, and that a file that is not
/// there is exit code 6.
#[test]
fn a_damaged_file_blocks() {
    let home = Home::new();
    home.write("a.parquet", "PAR1 and then nothing more");
    let document = home.trackway(&["data", "check", "a.parquet", "--json"]);
    assert_eq!(document.code, 3, "{}", document.stderr);
    let answer: serde_json::Value = serde_json::from_str(&document.stdout).unwrap();
    let checks = answer["checks"].as_array().unwrap();
    let verdict = |name: &str| checks.iter().find(|it| it["name"] == name).unwrap()["verdict"].clone();
    assert_eq!(
        (verdict("data.values").as_str(), verdict("data.rows").as_str()),
        (Some("block"), Some("not_run"))
    );
    assert_eq!(home.trackway(&["data", "check", "b.parquet"]).code, 6);
}

/// Proves on the Adult files as published that differing labels are reported, with the fix; that groups have intervals;
/// and that the one-to-one columns are found.
#[test]
fn adult_is_checked() {
    let Some([train, test]) = adult() else { return };
    let home = Home::new();
    let arguments =
        ["data", "check", &train, "--against", &test, "--column-names", COLUMNS, "--label", "income"];
    // The quick model over 32,561 rows takes minutes in a test build; its own tests are in the data crate.
    let more = ["--fairness", "sex,race", "--skip", "data.label_noise", "--json"];
    let answer = home.trackway(&[arguments.as_slice(), &more].concat());
    assert_eq!(answer.code, 3, "{}", answer.stderr);
    let document: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    let findings: Vec<&serde_json::Value> = document["checks"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|it| it["findings"].as_array().unwrap())
        .collect();
    let output =
        |kind: &str| findings.iter().find(|it| it["check"] == kind).unwrap_or_else(|| panic!("{kind}"));
    let labels = output("label.values_differ");
    assert_eq!((labels["severity"].as_str(), labels["count"].as_u64()), (Some("block"), Some(16_281)));
    assert!(labels["action"].as_str().unwrap().contains("`<=50K.` as `<=50K`"), "{labels}");
    assert!(output("columns.recoded")["message"].as_str().unwrap().contains("`education`, `education_num`"));
    assert_eq!(output("columns.placeholder")["column"].as_str(), Some("capital_gain"));
    assert!(output("representation.label_rate")["message"].as_str().unwrap().contains("sex=Female 10.9 %"));
    let blocking = findings.iter().filter(|it| it["severity"] == "block").count();
    assert_eq!(blocking, 1, "{findings:#?}");
    let women = document["groups"].as_array().unwrap().iter().find(|it| it["values"][0] == "Female").unwrap();
    assert_eq!(women["rows"].as_u64(), Some(10_771));
}

/// Proves that a joint shift is reported if rows are compared, and refused for a saved profile.
#[test]
fn a_joint_shift_needs_rows() {
    let home = Home::new();
    // Each column is as before; before they rise together, now one falls.
    let rows = |y: fn(i64) -> i64| {
        let x = (0..400).map(|row| row * 37 % 101);
        x.map(|x| format!("{x},{}\n", y(x))).collect::<String>()
    };
    home.write("a.csv", &format!("x,y\n{}", rows(|x| x)));
    home.write("b.csv", &format!("x,y\n{}", rows(|x| 100 - x)));
    let drift = home.json(&["data", "drift", "--reference", "a.csv", "--current", "b.csv", "--joint"]);
    assert_eq!(
        (drift["drifted_features"].as_u64(), drift["joint"]["drifted"].as_bool()),
        (Some(0), Some(true))
    );
    let shown = home.trackway(&["data", "drift", "--reference", "a.csv", "--current", "b.csv", "--joint"]);
    let words = "0 of 2 features drifted by itself, their joint distribution did";
    assert!(shown.stdout.contains(words), "{}", shown.stdout);
    home.json(&["data", "profile", "a.csv", "--out", "a.json"]);
    let refused = home.trackway(&["data", "drift", "--reference", "a.json", "--current", "b.csv", "--joint"]);
    assert_eq!(refused.code, 2, "{}", refused.stdout);
    assert!(refused.stderr.contains("needs the rows of both data sets"), "{}", refused.stderr);
}
