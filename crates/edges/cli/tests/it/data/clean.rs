//! `trackway data clean`, `as-of` and `skew` as a user meets them.

use std::fmt::Write as _;

use crate::harness::Home;

/// A hundred users with an address, a few faults among them.
fn users() -> String {
    let mut text = "id,mail,age\n".to_owned();
    for id in 0..100 {
        writeln!(text, "{id},user{id}@example.org,{}", 20 + id % 50).unwrap();
    }
    text + "7,user7@example.org,27\n100,user100@example.org,999\n101,user101@example.org,old\n102,user102@example.org\n"
}

/// Proves that a table is cleaned with an account that adds up, that faulty rows are in the quarantine with their reasons, that
/// personal data that is found is hashed in both files with a key that no file or output has, and that the clean table passes
/// the check that the raw one does not.
#[test]
fn a_table_is_cleaned_with_an_account_of_every_row() {
    let home = Home::new();
    home.write("users.csv", &users());
    home.write("hash.key", "a secret of the data team, 32 b.\n");
    assert_eq!(home.trackway(&["data", "check", "users.csv", "--only", "data.personal"]).code, 3);
    let clean = [
        "data", "clean", "users.csv", "--out", "clean.csv", "--rule", "age < 120", "--personal", "hash",
        "--key-file", "hash.key",
    ];
    let answer = home.json(&clean);
    let count = |name: &str| answer[name].as_u64().unwrap();
    assert_eq!(
        (count("rows"), count("rows_written"), count("duplicates_dropped")),
        (104, 100, 1),
        "{answer:#}"
    );
    assert_eq!((count("rows_quarantined"), count("rows_unreadable")), (3, 1), "{answer:#}");
    assert_eq!(
        count("rows"),
        count("rows_written") + count("duplicates_dropped") + count("rows_quarantined")
    );
    assert_eq!(
        (answer["protected"][0]["column"].as_str(), answer["protected"][0]["kinds"][0].as_str()),
        (Some("mail"), Some("email"))
    );
    let read = |name: &str| std::fs::read_to_string(home.path().join(name)).unwrap();
    let (table, aside) = (read("clean.csv"), read("clean.quarantine.csv"));
    assert_eq!((table.lines().count(), aside.lines().count()), (101, 4));
    for hidden in ["@", "a secret"] {
        assert!(
            !table.contains(hidden) && !aside.contains(hidden) && !answer.to_string().contains(hidden),
            "{hidden}"
        );
    }
    for reason in ["not `age < 120`", "`age` is of another type", "wrong number of fields"] {
        assert!(aside.contains(reason), "{reason}\n{aside}");
    }
    assert_eq!(home.trackway(&["data", "check", "clean.csv", "--only", "data.personal"]).code, 0);
    let shown = home.trackway(&clean);
    assert!(shown.stdout.contains("104 = 100 + 1 + 3: every row is accounted for"), "{}", shown.stdout);
    assert_eq!(read("clean.csv"), table, "the same again");

    let parquet =
        ["data", "clean", "users.csv", "--out", "clean.parquet", "--drop", "mail", "--duplicates", "keep"];
    let answer = home.json(&parquet);
    assert_eq!(
        (answer["rows_written"].as_u64(), answer["duplicates_kept"].as_u64()),
        (Some(102), Some(1)),
        "{answer:#}"
    );
    let profile = home.json(&["data", "profile", "clean.parquet"]);
    assert_eq!((profile["rows"].as_u64(), profile["columns"].as_array().map(Vec::len)), (Some(102), Some(2)));
}

/// Proves that no row which differs from the earlier ones in a digit is left out, and that what is written has the digits of the file:
/// whole numbers beyond 64 bits, codes with zeros in front, fractions with more digits than floats have.
#[test]
fn digits_are_what_they_are() {
    let home = Home::new();
    let rows = [
        "18446744073709551617,007,0.1234567890123456789",
        "18446744073709551616,007,0.1234567890123456789",
        "18446744073709551616,7,0.1234567890123456789",
        "18446744073709551616,7,0.1234567890123456788",
        "18446744073709551616,7,0.50",
        "18446744073709551616,7,0.5",
    ];
    let table = format!("id,code,share\n{}\n{}\n", rows.join("\n"), rows[2]);
    home.write("a.csv", &table);
    let answer = home.json(&["data", "clean", "a.csv", "--out", "clean.csv"]);
    assert_eq!(
        (answer["rows_written"].as_u64(), answer["duplicates_dropped"].as_u64()),
        (Some(6), Some(1)),
        "{answer:#}"
    );
    let written = std::fs::read_to_string(home.path().join("clean.csv")).unwrap();
    assert_eq!(written, format!("id,code,share\n{}\n", rows.join("\n")));
    let profile = home.json(&["data", "profile", "a.csv"]);
    let column = |index: usize| {
        let column = &profile["columns"][index];
        let distinct = (column["distinct_estimate"].as_u64(), column["distinct_is_exact"].as_bool());
        (column["type"].as_str().unwrap(), distinct)
    };
    assert_eq!(column(0), ("text", (Some(2), Some(true))));
    assert_eq!(column(1), ("text", (Some(2), Some(true))));
    assert_eq!(column(2), ("float", (Some(2), Some(false))), "two of the fractions are rounded to one");
}

/// Proves that an input is never overwritten, that hashing needs a key of some length which is not on the command line, and that
/// a refused command leaves no file.
#[test]
fn what_would_lose_data_or_secrets_is_refused() {
    let home = Home::new();
    home.write("users.csv", &users());
    home.write("short.key", "short\n");
    for (arguments, said) in [
        (vec!["--out", "users.csv"], "is an input"),
        (vec!["--out", "clean.csv", "--quarantine", "./users.csv"], "is the input"),
        (vec!["--out", "clean.csv", "--quarantine", "clean.csv"], "both the table and its quarantine"),
        (vec!["--out", "clean.csv", "--hash", "mail"], "hashing needs a key"),
        (vec!["--out", "clean.csv", "--hash", "mail", "--key-file", "short.key"], "the key has 5 bytes"),
        (
            vec!["--out", "clean.csv", "--hash", "mail", "--key-variable", "NO_SUCH_KEY"],
            "`NO_SUCH_KEY` is not set",
        ),
        (vec!["--out", "clean.csv", "--hash", "mail", "--mask", "mail"], "named twice"),
        (vec!["--out", "clean.csv", "--mask", "nosuch"], "nosuch"),
        (vec!["--out", "clean.xlsx"], "unknown format"),
        (vec!["--out", "clean.csv", "--rule", "nosuch > 1"], "nosuch"),
    ] {
        let answer = home.trackway(&[["data", "clean", "users.csv"].as_slice(), &arguments].concat());
        assert!(
            answer.code == 2 && answer.stderr.contains(said),
            "{arguments:?}: {} {}",
            answer.code,
            answer.stderr
        );
    }
    let gone =
        ["data", "clean", "users.csv", "--out", "clean.csv", "--hash", "mail", "--key-file", "gone.key"];
    let gone = home.trackway(&gone);
    assert!(gone.code == 6 && gone.stderr.contains("`gone.key` does not exist"), "{}", gone.stderr);
    let left: Vec<_> = std::fs::read_dir(home.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name == "users.csv" || name == "short.key" || name == "home"), "{left:?}");
    assert_eq!(std::fs::read_to_string(home.path().join("users.csv")).unwrap(), users());
}

/// Proves that each label gets the features that were known at its time, that the rows and features which a plain join would
/// have leaked are counted, and that features which differ between training and serving are exit code 3 and named.
#[test]
fn features_are_joined_as_of_and_compared() {
    let home = Home::new();
    home.write("labels.csv", "user,at,y\na,2026-01-10,1\na,2026-03-10,0\nb,2026-01-01,1\n");
    home.write(
        "features.csv",
        "user,updated,spent\na,2026-01-01,10\na,2026-02-01,20\na,2026-04-01,30\nb,2026-01-01T12:00:00,5\n",
    );
    let join = [
        "data", "as-of", "--left", "labels.csv", "--right", "features.csv", "--on", "user", "--left-time",
        "at", "--right-time", "updated",
    ];
    let answer = home.json(&[join.as_slice(), &["--max-age", "30d", "--out", "joined.csv"]].concat());
    assert_eq!(
        (answer["matched"].as_u64(), answer["unmatched_time"].as_u64()),
        (Some(1), Some(2)),
        "{answer:#}"
    );
    let shown = home.trackway(&[join.as_slice(), &["--out", "joined.csv"]].concat());
    assert!(shown.stdout.contains("leaked into 3 rows and 2 features"), "{}", shown.stdout);
    let joined = std::fs::read_to_string(home.path().join("joined.csv")).unwrap();
    let spent: Vec<&str> = joined.lines().map(|line| line.rsplit(',').next().unwrap()).collect();
    assert_eq!(spent, ["spent", "10", "20", ""]);
    let clash = home.trackway(&[join.as_slice(), &["--out", "labels.csv"]].concat());
    assert!(clash.code == 2 && clash.stderr.contains("is an input"), "{} {}", clash.code, clash.stderr);
    let unit = home.trackway(&[join.as_slice(), &["--max-age", "30", "--out", "joined.csv"]].concat());
    assert!(unit.code == 2 && unit.stderr.contains("with a unit"), "{} {}", unit.code, unit.stderr);

    home.write("served.csv", "user,updated,spent\na,2026-01-01,10\na,2026-02-01,25\na,2026-04-01,30\n");
    let skew = [
        "data", "skew", "--train", "features.csv", "--serve", "served.csv", "--on", "user", "--time",
        "updated",
    ];
    let found = home.trackway(&[skew.as_slice(), &["--json"]].concat());
    let report: serde_json::Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!((found.code, report["rows_compared"].as_u64()), (3, Some(3)), "{report:#}");
    assert_eq!(
        (report["columns"][0]["equal"].as_u64(), report["columns"][0]["skewed"].as_bool()),
        (Some(2), Some(true))
    );
    let lenient = home.trackway(&[skew.as_slice(), &["--equal-min", "0.6"]].concat());
    assert!(lenient.code == 0 && lenient.stdout.contains("66.67 %"), "{} {}", lenient.code, lenient.stdout);
}
