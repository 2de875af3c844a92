//! `trackway data` as a user meets it.

use crate::harness::Home;

/// Proves that a dirty table is profiled without a home, that what is wrong is told by file and line, and that every
/// row is accounted for.
#[test]
fn a_dirty_table_is_profiled() {
    let home = Home::new();
    home.write("a.csv", "age, plan,paid\n31, free,yes\n45, ?,no\n52\n28, pro,yes\n");
    let answer = home.trackway(&["data", "profile", "a.csv", "--label", "paid"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
    for expected in [
        "3 rows read, 1 rejected, from 1 file",
        "1 rows rejected (ragged), the first in a.csv line 4: 1 fields instead of 3",
        "`plan`: missing values are written `?` 1 times",
    ] {
        assert!(answer.stdout.contains(expected), "{expected}\n{}", answer.stdout);
    }
    assert!(!home.state().exists(), "no home is made");
    let document = home.json(&["data", "profile", "a.csv", "--save", "kept.json"]);
    let age = &document["columns"][0];
    assert_eq!(
        (age["type"].as_str(), age["min"].as_i64(), age["max"].as_i64()),
        (Some("int"), Some(28), Some(45))
    );
    assert_eq!((document["rows"].as_u64(), document["rows_rejected"].as_u64()), (Some(3), Some(1)));
    assert!(home.path().join("kept.json").is_file());
}

/// Proves that what is not there is exit code 6, and what is no table or lacks the label is exit code 2 with advice.
#[test]
fn wrong_words_about_data() {
    let home = Home::new();
    home.write("train.csv", "age,plan\n31,free\n");
    home.write("image.png", "x");
    for (arguments, code, expected) in [
        (["trian.csv", "--label", "age"], 6, "did you mean `train.csv`?"),
        (["train.csv", "--label", "plam"], 2, "did you mean `plan`?"),
        (["image.png", "--label", "age"], 2, "is no table"),
    ] {
        let answer = home.trackway(&[["data", "profile"].as_slice(), &arguments].concat());
        assert_eq!(answer.code, code, "{}", answer.stderr);
        assert!(answer.stderr.contains(expected) && answer.stdout.is_empty(), "{}", answer.stderr);
    }
}
