//! `trackway data` as a user meets it. The larger of its commands have one module each.

mod check;
mod clean;
mod leakage;
mod sets;

use crate::harness::Home;

/// Proves that a dirty table is profiled without a home, that what is wrong is reported by file and line, and that
/// every row is accounted for.
#[test]
fn a_dirty_table_is_profiled() {
    let home = Home::new();
    home.write("a.csv", "age, plan,paid\n31, free,yes\n45, ?,no\n52\n28, pro,yes\n");
    let answer = home.trackway(&["data", "profile", "a.csv", "--label", "paid"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
    for expected in [
        "3 rows read, 1 rejected, from 1 file",
        "1 row rejected (ragged), the first in a.csv line 4: 1 fields instead of 3",
        "`plan`: missing values are written `?` (1 row)",
    ] {
        assert!(answer.stdout.contains(expected), "{expected}\n{}", answer.stdout);
    }
    assert!(!home.state().exists(), "no home is made");
    let document = home.json(&["data", "profile", "a.csv", "--out", "kept.json"]);
    let age = &document["columns"][0];
    assert_eq!(
        (age["type"].as_str(), age["min"].as_i64(), age["max"].as_i64()),
        (Some("int"), Some(28), Some(45))
    );
    assert_eq!((document["rows"].as_u64(), document["rows_rejected"].as_u64()), (Some(3), Some(1)));
    assert!(home.path().join("kept.json").is_file());
}

/// Proves that a table of which every row is rejected ends with 3 and names the option that reads it, that this option reads it, and
/// that lines which are left out on request are noted with their number.
#[test]
fn a_layout_is_read_with_the_option_that_is_named() {
    let home = Home::new();
    for (name, text, option, note) in [
        (
            "comment.csv",
            "# made by x\nn,word\n1,a\n2,b\n3,c\n",
            &["--comment", "#"][..],
            Some(("comments", 1)),
        ),
        (
            "title.csv",
            "Report of May\n\nn,word\n1,a\n2,b\n3,c\n",
            &["--skip-lines", "2"],
            Some(("skipped_lines", 2)),
        ),
        ("trailing.csv", "n,word\n1,a,\n2,b,\n3,c,\n", &["--trailing-separator"], None),
    ] {
        home.write(name, text);
        let refused = home.trackway(&["data", "profile", name]);
        assert_eq!(refused.code, 3, "{name}: {}{}", refused.stdout, refused.stderr);
        assert!(refused.stdout.contains(option[0]), "{name}: {}", refused.stdout);
        let refused = home.trackway(&["data", "drift", "--reference", name, "--current", name]);
        assert!(refused.code == 3 && refused.stderr.contains(option[0]), "{name}: {}", refused.stderr);
        let read = [&["data", "profile", name, "--strict"], option].concat();
        assert_eq!(home.trackway(&read).code, 0, "{name}");
        let profile = home.json(&read);
        assert_eq!(
            (profile["rows"].as_u64(), profile["rows_rejected"].as_u64()),
            (Some(3), Some(0)),
            "{name}"
        );
        assert_eq!(
            (profile["columns"][0]["type"].as_str(), profile["columns"][0]["max"].as_u64()),
            (Some("int"), Some(3))
        );
        let notes = profile["reading"].as_array().unwrap();
        let notes: Vec<_> =
            notes.iter().map(|it| (it["kind"].as_str().unwrap(), it["count"].as_u64().unwrap())).collect();
        assert_eq!(notes, Vec::from_iter(note), "{name}");
    }
}

/// Proves that numbers with a decimal comma are noted with the option that reads them, which a strict reading allows as it does each choice
/// of a type, and that the option makes them numbers.
#[test]
fn a_decimal_comma_is_read_with_the_option_that_is_named() {
    let home = Home::new();
    home.write("prices.csv", "id;price\n1;47,00\n2;1.234,50\n3;0,5\n4;12\n5;7,25\n");
    let noted = home.json(&["data", "profile", "prices.csv", "--strict"]);
    let note = &noted["reading"][0];
    assert_eq!(
        (note["kind"].as_str(), note["column"].as_str(), note["row"].as_u64()),
        (Some("decimal_mark"), Some("price"), Some(2)),
        "{note}"
    );
    assert!(note["message"].as_str().unwrap().contains("--decimal ,"), "{note}");
    let read = home.json(&["data", "profile", "prices.csv", "--decimal", ","]);
    let price = &read["columns"][1];
    assert_eq!((price["type"].as_str(), price["max"].as_f64()), (Some("float"), Some(1234.5)), "{price}");
    assert_eq!(read["reading"].as_array().map(Vec::len), Some(0));
}

/// Proves that each thing which reading leaves out, cuts, renames or reads as something else is in the answer with its count and its first
/// line, and that a strict reading ends with 3 because of it and writes nothing.
#[test]
fn what_reading_changed_is_said_and_strictly_an_error() {
    let home = Home::new();
    for (name, text, kind, count, line) in [
        ("blanks.csv", "n,word\n1,a\n2, b\n3, c\n", "trimmed", 2, 3),
        ("ragged.csv", "n,word\n1,a\n2\n3,c\n", "rejected_rows", 1, 3),
        ("digits.csv", "n,word\n0.5,a\n0.1234567890123456789,b\n0.1234567890123456788,c\n", "rounded", 2, 3),
        ("quotes.csv", "n,word\n1,\"a\"b\n2,c\n", "malformed_quotes", 1, 2),
        ("lines.csv", "n,word\n1,a\n\n2,b\n", "empty_lines", 1, 3),
    ] {
        home.write(name, text);
        let profile = home.json(&["data", "profile", name]);
        let notes = profile["reading"].as_array().unwrap();
        assert_eq!(notes.len(), 1, "{name}: {notes:?}");
        let note = &notes[0];
        assert_eq!(
            (note["kind"].as_str(), note["count"].as_u64(), note["row"].as_u64(), note["file"].as_str()),
            (Some(kind), Some(count), Some(line), Some(name)),
            "{note}"
        );
        for command in [
            &["data", "profile", name, "--strict"][..],
            &["data", "check", name, "--strict"],
            &["data", "clean", name, "--out", "clean.csv", "--strict"],
            &["data", "infer", name, "--out", "schema.toml", "--strict"],
            &[
                "data", "split", name, "--strategy", "hash", "--parts", "a=0.5,b=0.5", "--out", "parts",
                "--strict",
            ],
        ] {
            let refused = home.trackway(command);
            assert_eq!(refused.code, 3, "{command:?}: {}{}", refused.stdout, refused.stderr);
            assert!(refused.stderr.contains("--strict"), "{command:?}: {}", refused.stderr);
        }
        for written in ["clean.csv", "clean.quarantine.csv", "schema.toml", "parts"] {
            assert!(!home.path().join(written).exists(), "{name}: {written}");
        }
    }
    home.write("plain.csv", "n,word\n1,a\n2,b\n");
    let plain = home.trackway(&["data", "profile", "plain.csv", "--strict"]);
    assert_eq!((plain.code, plain.stderr.as_str()), (0, ""), "{}", plain.stdout);
}

/// Proves that a missing path is exit code 6, and a file that is not a table or lacks the label is exit code 2 with
/// advice.
#[test]
fn wrong_words_about_data() {
    let home = Home::new();
    home.write("train.csv", "age,plan\n31,free\n");
    home.write("image.png", "x");
    for (arguments, code, expected) in [
        (["trian.csv", "--label", "age"], 6, "did you mean `train.csv`?"),
        (["train.csv", "--label", "plam"], 2, "did you mean `plan`?"),
        (["image.png", "--label", "age"], 2, "is not a table"),
    ] {
        let answer = home.trackway(&[["data", "profile"].as_slice(), &arguments].concat());
        assert_eq!(answer.code, code, "{}", answer.stderr);
        assert!(answer.stderr.contains(expected) && answer.stdout.is_empty(), "{}", answer.stderr);
    }
}

pub const COLUMNS: &str = "age,workclass,fnlwgt,education,education_num,marital_status,occupation,relationship,race,sex,capital_gain,capital_loss,hours_per_week,native_country,income";

/// The two Adult files as published; `None` if they are not at hand: the test is skipped.
pub fn adult() -> Option<[String; 2]> {
    let Some(shared) = std::env::var_os("TRACKWAY_SHARED") else {
        trackway_skip::skip!("TRACKWAY_SHARED is not set");
        return None;
    };
    let file =
        |name: &str| std::path::Path::new(&shared).join("data").join(name).to_string_lossy().into_owned();
    Some([file("adult-train.csv"), file("adult-test.csv")])
}

/// Proves on the Adult files as published that a schema inferred from one shows what is wrong with the other's labels,
/// that drift and leakage report it too, and the exit codes of each.
#[test]
fn adult_is_inferred_checked_and_compared() {
    let Some([train, test]) = adult() else { return };
    let home = Home::new();
    let inferred =
        home.trackway(&["data", "infer", &train, "--column-names", COLUMNS, "--out", "schema.toml"]);
    assert_eq!((inferred.code, inferred.stdout.as_str()), (0, ""), "{}", inferred.stderr);
    let again = home.trackway(&["data", "infer", &train, "--column-names", COLUMNS, "--out", "schema.toml"]);
    assert_eq!(again.code, 2, "a schema somebody edited is not overwritten");
    let rule = "\n[[rule]]\nsql = \"hours_per_week <= 98 or capital_gain = 0\"\nseverity = \"block\"\n";
    let schema = std::fs::read_to_string(home.path().join("schema.toml")).unwrap();
    home.write("strict.toml", &format!("{schema}{rule}"));

    let checked = |data: &str, schema: &str| {
        home.trackway(&["data", "validate", data, "--column-names", COLUMNS, "--schema", schema, "--json"])
    };
    let own = checked(&train, "schema.toml");
    assert_eq!(own.code, 0, "{}", own.stdout);
    assert!(own.stdout.contains("\"findings\": []"), "{}", own.stdout);
    let strict = checked(&train, "strict.toml");
    assert_eq!(strict.code, 3, "{}", strict.stdout);
    let document: serde_json::Value = serde_json::from_str(&strict.stdout).unwrap();
    let finding = &document["findings"][0];
    assert_eq!(
        (finding["check"].as_str(), finding["severity"].as_str()),
        (Some("schema.rule"), Some("block"))
    );
    assert_eq!(finding["count"].as_u64(), Some(count_long_weeks_with_gain(&train)));
    let others = checked(&test, "schema.toml");
    assert!(others.stdout.contains("16281 of 16281 values of `income`"), "{}", others.stdout);

    let drift = home.json(&[
        "data", "drift", "--reference", &train, "--current", &test, "--column-names", COLUMNS, "--label",
        "income",
    ]);
    assert_eq!((drift["drifted_features"].as_u64(), drift["label_drifted"].as_bool()), (Some(0), Some(true)));
    let income = drift["columns"].as_array().unwrap().iter().find(|it| it["name"] == "income").unwrap();
    assert_eq!(income["only_spelling"].as_bool(), Some(true));

    let leakage = home.trackway(&[
        "data", "leakage", "--train", &train, "--test", &test, "--column-names", COLUMNS, "--label", "income",
    ]);
    assert_eq!(leakage.code, 0, "{}", leakage.stderr);
    assert!(
        leakage.stdout.contains("26 of 16281 test rows (0.16 %) also appear in the training data"),
        "{}",
        leakage.stdout
    );
    assert!(
        leakage.stdout.contains("check that both sides encode the label the same way"),
        "{}",
        leakage.stdout
    );
    let by_group = home.trackway(&[
        "data", "leakage", "--train", &train, "--test", &test, "--column-names", COLUMNS, "--group-by",
        "fnlwgt",
    ]);
    assert_eq!(by_group.code, 3, "{}", by_group.stdout);
}

fn count_long_weeks_with_gain(path: &str) -> u64 {
    let text = std::fs::read_to_string(path).unwrap();
    let broken = text.lines().filter(|line| {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let number = |index: usize| fields.get(index).and_then(|field| field.parse::<i64>().ok());
        matches!((number(12), number(10)), (Some(hours), Some(gain)) if hours > 98 && gain != 0)
    });
    broken.count() as u64
}

/// Proves that a comparison with a kept profile reads no data, that a planted shift is reported, and that a file that
/// is not a profile is refused.
#[test]
fn drift_from_a_kept_profile() {
    let home = Home::new();
    let rows = |shift: usize| {
        (0..2_000).map(|row| format!("{},{}\n", row % 100 + shift, row * 7 % 13)).collect::<String>()
    };
    home.write("before.csv", &format!("a,b\n{}", rows(0)));
    home.write("after.csv", &format!("a,b\n{}", rows(40)));
    assert_eq!(home.trackway(&["data", "profile", "before.csv", "--out", "before.json"]).code, 0);
    std::fs::remove_file(home.path().join("before.csv")).unwrap();
    let answer = home.trackway(&["data", "drift", "--reference", "before.json", "--current", "after.csv"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (3, ""), "half of the features drifted");
    assert!(
        answer.stdout.contains("1 of 2 features drifted (2000 rows before, 2000 now)"),
        "{}",
        answer.stdout
    );
    home.write("other.json", "{}");
    let answer = home.trackway(&["data", "drift", "--reference", "other.json", "--current", "after.csv"]);
    assert_eq!(answer.code, 2, "{}", answer.stderr);
    assert!(answer.stderr.contains("`other.json`: not a valid profile"), "{}", answer.stderr);
}

/// Proves that drift of a few columns is a warning with exit code 0, on request one with 3, and that data without drift
/// passes either way.
#[test]
fn drift_ends_with_the_verdict_that_was_asked_for() {
    let home = Home::new();
    let rows = |shift: usize| {
        let row = |row: usize| format!("{},{},{}\n", row % 100 + shift, row * 7 % 13, row * 11 % 53);
        format!("a,b,c\n{}", (0..1_000).map(row).collect::<String>())
    };
    home.write("before.csv", &rows(0));
    home.write("after.csv", &rows(40));
    let drift = |current: &str, fail_on: &str| {
        let answer = home.trackway(&[
            "data", "drift", "--reference", "before.csv", "--current", current, "--fail-on", fail_on,
        ]);
        (answer.code, answer.stdout.lines().last().unwrap_or_default().split(':').next().unwrap().to_owned())
    };
    assert_eq!(drift("after.csv", "block"), (0, "warn".to_owned()));
    assert_eq!(drift("after.csv", "warn"), (3, "warn".to_owned()));
    assert_eq!(drift("before.csv", "warn"), (0, "pass".to_owned()));
}

/// Proves through the commands that a customer's number in each row hides no copied rows, that a column is ignored on
/// request, and that a header which repeats a name is read as one, or as data if so said.
#[test]
fn rows_are_compared_without_what_names_them() {
    let home = Home::new();
    let row =
        |row: u64| format!("{},{}.{:02},{}", 20 + row * 7 % 60, 100 + row * 13 % 90, row % 97, row * 3 % 41);
    let table = |rows: &[u64], first: u64| {
        let number = |at: usize| 10_000_000 + (first + at as u64) * 48_271 % 2_147_483 * 37;
        let lines =
            rows.iter().enumerate().map(|(at, it)| format!("{},{},{}\n", number(at), row(*it), it % 2));
        format!("customer_no,age,height,hours,label\n{}", lines.collect::<String>())
    };
    home.write("train.csv", &table(&(0..1_000).collect::<Vec<_>>(), 1));
    home.write("test.csv", &table(&(900..1_200).collect::<Vec<_>>(), 5_000));
    let sides = ["data", "leakage", "--train", "train.csv", "--test", "test.csv", "--label", "label"];
    let found = home.trackway(&sides);
    assert_eq!(found.code, 3, "{}", found.stdout);
    assert!(found.stdout.contains("100 of 300 test rows (33.33 %) also appear"), "{}", found.stdout);
    assert!(
        found.stdout.contains("(without `customer_no`, which is different in each row)"),
        "{}",
        found.stdout
    );
    let ignored = home.trackway(&[&sides[..], &["--ignore", "hours", "--ignore", "height"]].concat());
    assert!(ignored.stdout.contains("test rows"), "{}", ignored.stdout);
    let wrong = home.trackway(&["data", "check", "train.csv", "--ignore", "hour"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("did you mean `hours`"), "{}", wrong.stderr);

    home.write("double.csv", &format!("sex,score,score\n{}", "Male,3,4\nFemale,5,6\n".repeat(20)));
    let names = |options: &[&str]| {
        let profile = home.json(&[&["data", "profile", "double.csv"], options].concat());
        let columns = profile["columns"].as_array().unwrap().iter();
        let names: Vec<String> = columns.map(|it| it["name"].as_str().unwrap().to_owned()).collect();
        (names.join(" "), profile["rows"].as_u64())
    };
    assert_eq!(names(&[]), ("sex score score.1".to_owned(), Some(40)));
    assert_eq!(names(&["--header", "no"]), ("column_1 column_2 column_3".to_owned(), Some(41)));
}

/// Proves that a requested check that could not run never looks like a pass: exit code 3 and a message.
#[test]
fn what_could_not_be_checked_blocks() {
    let home = Home::new();
    home.write("a.csv", "user,at\nana,x\nben,y\n");
    home.write("b.csv", "user,at\ncem,x\ndan,z\n");
    home.write(
        "schema.toml",
        "version = 1\n[table]\nother_columns = \"allow\"\n[[rule]]\nsql = \"uzer = 'ana'\"\n",
    );
    let answer = home.trackway(&["data", "validate", "a.csv", "--schema", "schema.toml"]);
    assert_eq!(answer.code, 3, "{}", answer.stdout);
    assert!(answer.stdout.contains("not run `uzer = 'ana'`"), "{}", answer.stdout);
    let answer = home.trackway(&["data", "leakage", "--train", "a.csv", "--test", "b.csv", "--time", "at"]);
    assert_eq!(answer.code, 3, "{}", answer.stdout);
    assert!(answer.stdout.contains("the order was not checked"), "{}", answer.stdout);
}

/// Proves that identifiers and times are set apart with the reason, that a column is left out on request, that the verdict names what
/// blocks, that replaced categories drift with the fraction of unknown values, and that an unknown column is refused.
#[test]
fn drift_says_what_is_compared_and_what_blocks() {
    let home = Home::new();
    let table = |start: usize, plan: &str, spent: &str| {
        let row = |row: usize| {
            let (day, hour) = (1 + row / 24 % 28, row % 24);
            format!(
                "{row},2026-0{}-{day:02}T{hour:02}:00:00Z,{plan}{},{},{spent}\n",
                1 + row / 672,
                row % 40,
                row % 7
            )
        };
        format!("id,at,plan,n,spent\n{}", (start..start + 600).map(row).collect::<String>())
    };
    home.write("old.csv", &table(0, "old", "3"));
    home.write("new.csv", &table(600, "new", "lots"));
    let drift = |more: &[&str]| {
        home.trackway(&[&["data", "drift", "--reference", "old.csv", "--current", "new.csv"], more].concat())
    };
    let shown = drift(&[]);
    assert_eq!(shown.code, 3, "{}", shown.stderr);
    assert!(shown.stdout.contains("set apart: `id`: every row has a different value"), "{}", shown.stdout);
    assert!(shown.stdout.contains("set apart: `at`: says when a row came about"), "{}", shown.stdout);
    let replaced = "`plan`: 100 % of the current values are unknown to the reference, 0 % expected";
    assert!(shown.stdout.contains(replaced), "{}", shown.stdout);
    assert!(
        shown.stdout.contains("block: 1 column changed its type, 2 of 3 features drifted ("),
        "{}",
        shown.stdout
    );
    let skipped = drift(&["--ignore", "spent,plan"]);
    assert_eq!(skipped.code, 0, "{}", skipped.stdout);
    assert!(skipped.stdout.contains("pass: 0 of 1 feature drifted"), "{}", skipped.stdout);
    assert!(skipped.stdout.contains("set apart: `spent`: skipped on request"), "{}", skipped.stdout);
    let unknown = drift(&["--ignore", "spend"]);
    assert!(
        unknown.code == 2 && unknown.stderr.contains("neither side has the skipped column `spend`"),
        "{}",
        unknown.stderr
    );
}

/// Proves that drift of texts lists a few beginnings of them, and of masked values one, with how many more there are.
#[test]
fn drift_of_texts_is_short() {
    let home = Home::new();
    let table = |side: &str| {
        let row = |row: usize| {
            let text =
                format!("{side} a long text of many words that nobody wants to read here {}", row % 12);
            format!("{},{text},{side}{}@example.org\n", row % 7, row % 12)
        };
        format!("n,text,mail\n{}", (0..600).map(row).collect::<String>())
    };
    home.write("old.csv", &table("old"));
    home.write("new.csv", &table("new"));
    let shown = home.trackway(&["data", "drift", "--reference", "old.csv", "--current", "new.csv"]).stdout;
    let of = |column: &str| {
        let found = shown.lines().find(|line| line.contains(&format!("`{column}` has new values")));
        found.unwrap_or_else(|| panic!("{column}: {shown}")).to_owned()
    };
    assert!(of("text").contains("` and 11 more and no longer `"), "{}", of("text"));
    assert!(of("text").contains('…') && !of("text").contains("read here"), "{}", of("text"));
    assert_eq!(
        of("mail").matches('`').count(),
        6,
        "the name of the column and one mask on each side: {}",
        of("mail")
    );
}
