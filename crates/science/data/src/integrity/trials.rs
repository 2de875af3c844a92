//! What trials with published tables found: Adult with customer numbers, COMPAS, Pima, winequality-red.

use std::fs;

use trackway_core::checks::{Severity, Verdict};
use trackway_core::{Rng, SplitMix64, Timestamp};
use trackway_tables::pass::UNWATCHED;
use trackway_tables::{DataFormat, DataSpec, ReadContext};

use super::tests::{Column, ROWS, column, csv, evidence, labelled, noise, normal, pick, source};
use super::*;

/// Proves that repeated rows are found although each has another number, and said so; that a measurement which never
/// repeats counts, unless it is ignored; and that rows of little else are not called equal.
#[test]
fn rows_repeat_whatever_they_are_called() {
    let table = |name: &str, unique: fn(usize, &mut SplitMix64) -> String| {
        let rows = move |row: usize| if row.is_multiple_of(10) { 1 } else { row };
        let of = move |row: usize| SplitMix64::new(rows(row) as u64);
        let columns = [
            column(name, unique),
            column("x", move |row, _| format!("{:.4}", normal(&mut of(row)))),
            column("y", move |row, _| (of(row).next_u64() % 900).to_string()),
        ];
        csv(&columns, ROWS, 30)
    };
    let number = |_: usize, rng: &mut SplitMix64| (10_000_000 + rng.next_u64() % 90_000_000).to_string();
    let weight = |_: usize, rng: &mut SplitMix64| format!("{:.9}", rng.next_unit());
    let repeated = evidence(&table("customer_no", number), None, &[]).repeats();
    assert_eq!((repeated.by_features, repeated.without), (100, vec!["customer_no".to_owned()]));
    let result = rows(&evidence(&table("customer_no", number), None, &[]));
    assert!(result.findings[0].message.contains("(without `customer_no`, which"), "{result:?}");
    assert_eq!(result.verdict, Verdict::Warn);
    assert_eq!(evidence(&table("weight", weight), None, &[]).repeats().by_features, 0);
    let (_folder, mut source) = source(&table("weight", weight), DataFormat::Csv);
    let ignored = TableRoles { ignored: vec!["weight".into()], ..TableRoles::default() };
    let without = TableEvidence::gather(&mut source, &ignored, &UNWATCHED).unwrap();
    assert_eq!(without.repeats().by_features, 100);
    let few = [column("id", |row, _| row.to_string()), column("sex", |_, rng| pick(rng, &["f", "m"]))];
    assert_eq!(evidence(&csv(&few, ROWS, 31), None, &[]).repeats().by_features, 0);
}

/// Proves that a header with repeated names is one, where a column below it holds no words; that the later columns get
/// other names, with a warning; that words over words are data; and that a setting decides against both.
#[test]
fn a_header_may_repeat_a_name() {
    let rows: String = (0..30).map(|row| format!("Male,{row},{},{}\n", row % 10, row % 7)).collect();
    let open = |text: &str, header: Option<bool>| {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.csv"), text).unwrap();
        let spec = DataSpec { path: "a.csv".into(), header, ..DataSpec::default() };
        let mut source = Source::open(folder.path(), "a", &spec, &ReadContext::default()).unwrap();
        let evidence = TableEvidence::gather(&mut source, &TableRoles::default(), &UNWATCHED).unwrap();
        let names = evidence.profile.columns.iter().map(|column| column.name.clone());
        (names.collect::<Vec<_>>().join(" "), evidence.profile.rows, columns(&evidence), source.notes().len())
    };
    let text = format!("sex,score,count,score\n{rows}");
    let (names, count, result, notes) = open(&text, None);
    assert_eq!((names.as_str(), count, notes), ("sex score count score.1", 30, 1));
    let finding = result.findings.iter().find(|it| it.check == "columns.repeated_name").unwrap();
    assert_eq!((finding.severity, finding.column.as_deref()), (Severity::Warn, Some("score.1")));
    let (names, count, _, _) = open(&format!("a,b,a,a.1\n{}", "1,2,3,4\n".repeat(30)), None);
    assert_eq!((names.as_str(), count), ("a b a.2 a.1", 30));
    let words = "red,big,red\n".repeat(30);
    assert_eq!(open(&words, None).1, 30);
    assert_eq!((open(&words, Some(true)).1, open(&text, Some(false)).1), (29, 31));
}

/// Proves that names of persons and dates of birth are personal data: under headers in several languages, split or not,
/// and in a plain `name` of several words in a table of persons; and that names of other things, other dates, codes and
/// a `name` without persons are not.
#[test]
fn names_and_births_are_personal() {
    let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
    let first = |rng: &mut SplitMix64| {
        pick(rng, &["Miguel", "Anna", "Jean-Luc", "Søren", "mary", "O'Neil", "José", "Li"])
    };
    let full = move |row: usize, rng: &mut SplitMix64| {
        let tail: String = (0..4).map(|place| char::from(b'a' + (row >> (place * 3) & 7) as u8)).collect();
        format!("{} {}son", first(rng), tail)
    };
    let one = move |_: usize, rng: &mut SplitMix64| first(rng);
    let born = |row: usize, _: &mut SplitMix64| format!("{}-0{}-1{}", 1940 + row % 60, 1 + row % 9, row % 10);
    let slashed =
        |row: usize, _: &mut SplitMix64| format!("1{}/0{}/{}", row % 10, 1 + row % 9, 1940 + row % 60);
    let recent = |row: usize, _: &mut SplitMix64| format!("2026-0{}-1{}", 1 + row % 9, row % 10);
    let code = |row: usize, _: &mut SplitMix64| format!("item {row}");
    let age = |row: usize, _: &mut SplitMix64| (18 + row % 60).to_string();
    let cases: Vec<(Vec<Column<'_>>, &[&str])> = vec![
        (vec![column("name", full), column("age", age)], &["name:person_name"]),
        (vec![column("first", one), column("last", one)], &["first:person_name", "last:person_name"]),
        (
            vec![column("Vorname", one), column("nachname", one)],
            &["Vorname:person_name", "nachname:person_name"],
        ),
        (
            vec![column("patientName", full), column("prénom", one)],
            &["patientName:person_name", "prénom:person_name"],
        ),
        (
            vec![column("dob", born), column("date_of_birth", slashed)],
            &["dob:birth_date", "date_of_birth:birth_date"],
        ),
        (vec![column("Geburtsdatum", slashed)], &["Geburtsdatum:birth_date"]),
        (vec![column("name", full), column("price", age)], &[]),
        (vec![column("name", one), column("age", age)], &[]),
        (vec![column("product_name", full), column("age", age)], &[]),
        (vec![column("customer_name", code), column("first", one)], &[]),
        (vec![column("birth", recent), column("birth_weight", age), column("admitted", born)], &[]),
    ];
    for (columns, expected) in cases {
        let mut columns = columns;
        columns.push(column("n", |row, _| row.to_string()));
        let evidence = evidence(&csv(&columns, 500, 40), None, &[]);
        let found = personal_columns(&evidence, &[], now);
        let found: Vec<String> = found.iter().map(|it| format!("{}:{}", it.column, it.kind)).collect();
        assert_eq!(found, expected);
        let verdict = if expected.is_empty() { Verdict::Pass } else { Verdict::Block };
        assert_eq!(personal(&evidence, &[], now).verdict, verdict, "{expected:?}");
    }
}

/// Proves that zeros apart from all other values are reported: a warning where columns share the rows, as in Pima's
/// insulin, skin and blood pressure, a note where one has them alone; and that counts, columns of mostly zeros, values that
/// come near zero and values on both sides of it are left alone.
#[test]
fn zeros_that_were_not_measured() {
    let is_lost =
        |row: usize, parts: usize| SplitMix64::new(row as u64).next_u64().is_multiple_of(parts as u64);
    let pima: Vec<Column<'_>> = vec![
        column("insulin", move |row, rng| match is_lost(row, 2) && row % 20 != 3 {
            true => "0".into(),
            false => format!("{}", (14.0 + (4.6 + 0.7 * normal(rng)).exp()) as u64),
        }),
        column("skin", move |row, rng| match is_lost(row, 4) {
            true => "0".into(),
            false => format!("{}", (29.0 + 9.0 * normal(rng)).max(7.0) as u64),
        }),
        column("pressure", move |row, rng| match is_lost(row, 16) {
            true => "0".into(),
            false => format!("{}", (72.0 + 12.0 * normal(rng)).max(24.0) as u64),
        }),
    ];
    let found = |columns: Vec<Column<'_>>| -> Vec<String> {
        let result = columns_of(&columns);
        let zeros = result.findings.iter().filter(|it| it.check == "columns.zeros");
        zeros.map(|it| format!("{} {}", it.column.as_deref().unwrap(), it.severity.as_str())).collect()
    };
    assert_eq!(found(pima), ["insulin warn", "skin warn", "pressure warn"]);
    let alone = vec![
        column("balance", |row, rng| {
            if row % 3 == 0 { "0".into() } else { format!("{:.0}", 120_000.0 + 30_000.0 * normal(rng)) }
        }),
        column("pressure", |row, rng| {
            if row % 7 == 0 { "0".into() } else { format!("{:.0}", 72.0 + 12.0 * normal(rng)) }
        }),
    ];
    assert_eq!(found(alone), ["balance note", "pressure note"]);
    let legitimate = vec![
        column("capital_gain", |row, rng| {
            if row % 10 == 0 { format!("{}", 3_000 + rng.next_u64() % 9_000) } else { "0".into() }
        }),
        column("children", |_, rng| (rng.next_u64() % 30 * (rng.next_u64() % 3) / 2).to_string()),
        column("rain", |_, rng| format!("{:.1}", (rng.next_unit() * 30.0 - 8.0).max(0.0))),
        column(
            "change",
            |row, rng| if row % 4 == 0 { "0".into() } else { format!("{:.1}", 50.0 * normal(rng)) },
        ),
        column("bought", |row, _| if row % 3 == 0 { "0".into() } else { (row % 40 + 1).to_string() }),
    ];
    assert_eq!(found(legitimate), Vec::<String>::new());
}

fn columns_of(of: &[Column<'_>]) -> CheckResult {
    columns(&evidence(&csv(of, 768, 50), None, &[]))
}

/// Proves that rows which are hard to predict are not called wrong labels, with the reason: where the model is often
/// wrong, where its errors are where it is unsure, and where the classes are steps of a scale; and that wrong labels
/// are still found among many (a tenth, a fifth).
#[test]
fn hard_rows_are_not_wrong_labels() {
    let blurred = |blur: f64, seed: u64| {
        let mut rng = SplitMix64::new(seed);
        let mut text = "x,y,label\n".to_owned();
        for _ in 0..1_500 {
            let (x, y) = (normal(&mut rng), normal(&mut rng));
            let is_yes = x + 0.5 * y + blur * normal(&mut rng) > 0.0;
            text += &format!("{x:.4},{y:.4},{}\n", if is_yes { "yes" } else { "no" });
        }
        text
    };
    let scale = || {
        let mut rng = SplitMix64::new(62);
        let mut text = "x,y,label\n".to_owned();
        for _ in 0..1_600 {
            let (x, y) = (normal(&mut rng), normal(&mut rng));
            let quality = (5.5 + 0.5 * x + 0.3 * y + 0.45 * normal(&mut rng)).round().clamp(3.0, 8.0);
            text += &format!("{x:.4},{y:.4},{quality}\n");
        }
        text
    };
    for (name, text) in
        [("often wrong", scale()), ("unsure", blurred(0.8, 60)), ("more unsure", blurred(1.2, 61))]
    {
        let (result, found) = noise(&text);
        let why = result.why.clone().unwrap_or_default();
        assert_eq!((result.verdict, found), (Verdict::NotApplicable, None), "{name}: {result:?}");
        assert!(why.starts_with("cannot distinguish wrong labels from"), "{name}: {why}");
    }
    for every in [10, 5] {
        let (result, found) = noise(&labelled(3_000, every, 63));
        let found = found.unwrap_or_else(|| panic!("{every}: {result:?}"));
        let right =
            found.suspects.iter().filter(|it| (it.row as usize - 2).is_multiple_of(every)).count() as f64;
        let recall = right / (3_000 / every) as f64;
        let precision = right / found.suspect_count as f64;
        assert!(recall > 0.7 && precision > 0.7, "{every}: recall {recall}, precision {precision}");
    }
}

/// Proves that a cell among numbers that is none is shown with its row in the message itself.
#[test]
fn a_bad_cell_is_shown_with_its_row() {
    let columns =
        [column("x", |row, rng| if row == 700 { "N/A?".into() } else { format!("{:.3}", normal(rng)) })];
    let result = columns_of(&columns);
    assert!(result.findings.iter().any(|it| it.message.contains("`N/A?` in row 702")), "{result:?}");
}
