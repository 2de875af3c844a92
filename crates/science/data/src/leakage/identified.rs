//! Copies of rows with another identifier in each.

use std::fmt::Write as _;
use std::fs;

use trackway_core::checks::{CheckResult, Severity, Verdict};
use trackway_core::{Rng, SplitMix64};
use trackway_tables::pass::UNWATCHED;
use trackway_tables::{DataSpec, ReadContext};

use super::*;

/// Makes one cell that is different in each row: from the row's number over both sides.
type Unique = fn(u64, &mut SplitMix64) -> String;

/// A row without its first cell.
fn content(rng: &mut SplitMix64) -> String {
    let city = ["Oslo", "Riga", "Bern", "Lima"][(rng.next_u64() % 4) as usize];
    let (age, hours) = (18 + rng.next_u64() % 70, rng.next_u64() % 60);
    let height = 170.0 + 30.0 * (rng.next_unit() - 0.5);
    format!("{age},{hours},{height:.1},{city},{}", rng.next_u64() % 2)
}

const HEADER: &str = "age,hours,height,city,label\n";

/// 2,000 training rows and 600 test rows, 100 of which are copies of training rows with a fresh first cell.
fn sides(name: &str, unique: Unique) -> [String; 2] {
    let mut rng = SplitMix64::new(7);
    let contents: Vec<String> = (0..2_500).map(|_| content(&mut rng)).collect();
    let mut number = 0;
    let mut table = |rows: &[String]| {
        let mut text = format!("{name},{HEADER}");
        for row in rows {
            writeln!(text, "{},{row}", unique(number, &mut rng)).unwrap();
            number += 1;
        }
        text
    };
    let train = table(&contents[..2_000]);
    [train, table(&[&contents[2_000..], &contents[..100]].concat())]
}

fn look(files: &[(&str, &str); 2], roles: &Roles) -> (Leakage, Vec<CheckResult>) {
    let folder = tempfile::tempdir().unwrap();
    let [mut train, mut test] = files.map(|(name, text)| {
        fs::write(folder.path().join(name), text).unwrap();
        let spec = DataSpec { path: name.into(), ..DataSpec::default() };
        Source::open(folder.path(), name, &spec, &ReadContext::default()).unwrap()
    });
    let leakage = examine(&mut train, &mut test, roles, &|_| true, &UNWATCHED).unwrap();
    let results = leakage.results(roles, &train, &test);
    (leakage, results)
}

fn look_at([train, test]: &[String; 2], roles: &Roles) -> (Leakage, Vec<CheckResult>) {
    look(&[("train.csv", train), ("test.csv", test)], roles)
}

fn label() -> Roles {
    Roles { label: Some("label".into()), ..Roles::default() }
}

/// Proves that copied rows are found whatever new identifier each has: random numbers under any name, counted ones,
/// codes, UUIDs and words; that the finding says so, and that they are not called near as well.
#[test]
fn an_identifier_hides_no_copies() {
    let random: Unique = |_, rng| (10_000_000 + rng.next_u64() % 90_000_000).to_string();
    let uuid: Unique = |_, rng| {
        format!(
            "{:08x}-{:04x}-4000-8000-{:012x}",
            rng.next_u64() as u32,
            rng.next_u64() as u16,
            rng.next_u64() >> 16
        )
    };
    let cases: [(&str, Unique); 5] = [
        ("customer_no", random),
        ("customer_id", |number, _| number.to_string()),
        ("reference", |number, _| format!("C-{:06}", number * 7_919 % 1_000_000)),
        ("trace", uuid),
        ("login", |number, rng| {
            format!("{}{}", ["ana", "ben", "cleo"][(rng.next_u64() % 3) as usize], number)
        }),
    ];
    for (name, unique) in cases {
        let (leakage, results) = look_at(&sides(name, unique), &label());
        assert_eq!(leakage.overlap.rows.shared_rows, 100, "{name}");
        let finding = &results[0].findings[0];
        assert_eq!(finding.severity, Severity::Block, "{name}: {finding:?}");
        let expected = format!("without `{name}`, which is different in each row");
        assert!(finding.message.contains(&expected), "{}", finding.message);
        let near = results.iter().find(|it| it.name == "leakage.near_duplicates").unwrap();
        assert!(near.findings.is_empty(), "{name}: {near:?}");
    }
}

/// Proves that measurements count although they never repeat: decimal numbers, and prices in whole numbers, whose
/// rows are otherwise equal; and texts of several words.
#[test]
fn a_measurement_that_never_repeats_still_counts() {
    let cases: [(&str, Unique); 3] = [
        ("weight", |_, rng| format!("{:.9}", rng.next_unit() * 80.0)),
        ("price", |number, rng| ((rng.next_unit() * 14.0).exp() as u64 * 10_000 + number).to_string()),
        ("note", |number, _| format!("seen on day {number} in the morning")),
    ];
    for (name, unique) in cases {
        let (leakage, results) = look_at(&sides(name, unique), &label());
        let rows = &leakage.overlap.rows;
        assert_eq!((rows.shared_rows, rows.without.len()), (0, 0), "{name}");
        assert_eq!(results[0].verdict, Verdict::Pass, "{name}: {results:?}");
    }
}

/// Proves that identifiers count where the other columns say too little to distinguish rows: then equal rows are no
/// copies; and that nothing is claimed of a table that has identifiers only.
#[test]
fn rows_of_little_else_are_not_called_equal() {
    let table = |from: u64, rows: u64| {
        let row =
            |number: u64| format!("{number},{},{}\n", ["a", "b", "c"][(number * 7 % 3) as usize], number % 2);
        format!("id,kind,label\n{}", (from..from + rows).map(row).collect::<String>())
    };
    let (leakage, results) = look_at(&[table(0, 1_000), table(1_000, 300)], &label());
    assert_eq!((leakage.overlap.rows.shared_rows, results[0].verdict), (0, Verdict::Pass), "{results:?}");
    let only = |from: u64| {
        format!("id,label\n{}", (from..from + 200).map(|id| format!("{id},0\n")).collect::<String>())
    };
    let (leakage, _) = look_at(&[only(0), only(500)], &label());
    assert_eq!((leakage.overlap.rows.shared_rows, leakage.overlap.rows.without.len()), (0, 0));
}

/// Proves that a column whose values begin to repeat after thousands of rows counts: it names no rows.
#[test]
fn a_column_that_repeats_later_counts() {
    let mut rng = SplitMix64::new(3);
    let mut table = |rows: u64| {
        let mut text = format!("user,{HEADER}");
        (0..rows).for_each(|row| writeln!(text, "u{},{}", row % 12_000, content(&mut rng)).unwrap());
        text
    };
    let (leakage, _) = look_at(&[table(20_000), table(500)], &label());
    assert!(leakage.overlap.rows.without.is_empty(), "{:?}", leakage.overlap.rows);
}

/// Proves that exact copies of texts with another id are equal, not merely near, and so with the label in JSON lines.
#[test]
fn copied_texts_with_another_id_are_equal() {
    let mut rng = SplitMix64::new(11);
    let words = ["river", "stone", "cloud", "amber", "north", "paper", "cabin", "field", "iron", "salt"];
    let mut texts = Vec::new();
    for _ in 0..500 {
        let text: Vec<&str> = (0..14).map(|_| words[(rng.next_u64() % 10) as usize]).collect();
        texts.push(text.join(" "));
    }
    let side = |from: usize, texts: &[String]| -> String {
        let line = |(at, text): (usize, &String)| {
            format!("{{\"id\": {}, \"text\": \"{text}\", \"label\": \"x\"}}\n", from + at)
        };
        texts.iter().enumerate().map(line).collect()
    };
    let (train, test) = (side(0, &texts[..400]), side(9_000, &texts[350..]));
    let (leakage, results) = look(&[("train.jsonl", &train), ("test.jsonl", &test)], &label());
    assert_eq!((leakage.overlap.rows.shared_rows, leakage.overlap.rows.shared_with_label), (50, 50));
    assert_eq!(results[0].verdict, Verdict::Block, "{results:?}");
    let near = results.iter().find(|it| it.name == "leakage.near_duplicates").unwrap();
    assert!(near.findings.is_empty(), "{near:?}");
}

/// Proves that a column that is ignored on request does not count, that one that is not there is an error, and that
/// ignoring every column claims nothing.
#[test]
fn columns_are_ignored_on_request() {
    let tables = sides("weight", |_, rng| format!("{:.9}", rng.next_unit() * 80.0));
    let ignored =
        |names: &[&str]| Roles { ignored: names.iter().map(|name| (*name).to_owned()).collect(), ..label() };
    let (leakage, results) = look_at(&tables, &ignored(&["weight"]));
    assert_eq!((leakage.overlap.rows.shared_rows, results[0].verdict), (100, Verdict::Block));
    let all = ["weight", "age", "hours", "height", "city"];
    let (leakage, results) = look_at(&tables, &ignored(&all));
    assert_eq!((leakage.overlap.rows.shared_rows, results[0].findings.len()), (0, 1), "{results:?}");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.csv"), &tables[0]).unwrap();
    let spec = DataSpec { path: "a.csv".into(), ..DataSpec::default() };
    let open = || Source::open(folder.path(), "a", &spec, &ReadContext::default()).unwrap();
    let wrong = examine(&mut open(), &mut open(), &ignored(&["wieght"]), &|_| true, &UNWATCHED).unwrap_err();
    assert!(wrong.to_string().contains("did you mean `weight`"), "{wrong}");
}
