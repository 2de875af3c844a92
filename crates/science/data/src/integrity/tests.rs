//! Tables with one planted fault each, and clean ones.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use trackway_core::checks::{CheckResult, Severity, Verdict};
use trackway_core::{Rng, SignOff, SplitMix64, Timestamp};
use trackway_tables::pass::UNWATCHED;
use trackway_tables::{DataFormat, DataSpec, ReadContext};

use super::*;

pub(super) const ROWS: usize = 1_000;

/// A column's name and its text in each row.
pub(super) type Column<'c> = (&'c str, Box<dyn Fn(usize, &mut SplitMix64) -> String + 'c>);

pub(super) fn column<'c>(name: &'c str, cell: impl Fn(usize, &mut SplitMix64) -> String + 'c) -> Column<'c> {
    (name, Box::new(cell))
}

pub(super) fn csv(columns: &[Column<'_>], rows: usize, seed: u64) -> String {
    let mut rng = SplitMix64::new(seed);
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let mut text = names.join(",") + "\n";
    for row in 0..rows {
        let cells: Vec<String> = columns.iter().map(|(_, cell)| cell(row, &mut rng)).collect();
        writeln!(text, "{}", cells.join(",")).unwrap();
    }
    text
}

pub(super) fn source(text: &str, format: DataFormat) -> (tempfile::TempDir, Source) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), text).unwrap();
    let spec = DataSpec { path: "a".into(), format: Some(format), ..DataSpec::default() };
    let source = Source::open(folder.path(), "train", &spec, &ReadContext::default()).unwrap();
    (folder, source)
}

pub(super) fn roles(label: Option<&str>, group_by: &[&str]) -> TableRoles {
    let group_by = group_by.iter().map(|name| (*name).to_owned()).collect();
    TableRoles { label: label.map(str::to_owned), group_by, ignored: Vec::new() }
}

pub(super) fn evidence(text: &str, label: Option<&str>, group_by: &[&str]) -> TableEvidence {
    let (_folder, mut source) = source(text, DataFormat::Csv);
    TableEvidence::gather(&mut source, &roles(label, group_by), &UNWATCHED).unwrap()
}

pub(super) fn normal(rng: &mut SplitMix64) -> f64 {
    (0..12).map(|_| rng.next_unit()).sum::<f64>() - 6.0
}

pub(super) fn pick(rng: &mut SplitMix64, among: &[&str]) -> String {
    among[(rng.next_u64() % among.len() as u64) as usize].to_owned()
}

/// `kind:column` of everything found that is more than a note.
fn found(results: &[CheckResult]) -> BTreeSet<String> {
    let findings = results.iter().flat_map(|result| &result.findings);
    let telling = findings.filter(|finding| finding.severity != Severity::Note);
    telling.map(|it| format!("{}:{}", it.check, it.column.as_deref().unwrap_or_default())).collect()
}

fn all(evidence: &TableEvidence) -> Vec<CheckResult> {
    let now = Timestamp::from_micros(0);
    vec![
        columns(evidence),
        rows(evidence),
        values(evidence, None),
        label(evidence, None),
        personal(evidence, &[], now),
        representation(evidence),
    ]
}

/// Columns beside the planted ones, so that rows differ.
fn background<'c>() -> Vec<Column<'c>> {
    vec![
        column("height", |_, rng| format!("{:.3}", 170.0 + 10.0 * normal(rng))),
        column("city", |_, rng| pick(rng, &["Oslo", "Riga", "Bern"])),
    ]
}

/// Proves for each planted fault that it is found, under its name, and that nothing else is: 15 faults, all found, no
/// false alarm beside them.
#[test]
fn every_planted_fault_is_found_and_nothing_else() {
    let cases: Vec<(&str, Vec<Column<'_>>)> = vec![
        ("columns.constant:x", vec![column("x", |_, _| "7".into())]),
        ("columns.all_null:x", vec![column("x", |_, _| String::new())]),
        (
            "columns.equal:y",
            vec![
                column("x", |row, _| format!("{}", row * row % 977)),
                column("y", |row, _| format!("{}.0", row * row % 977)),
            ],
        ),
        (
            "columns.recoded:y",
            vec![
                column("x", |row, _| ["low", "middle", "high", ""][row * row % 977 % 4].into()),
                column("y", |row, _| format!("{}", [3, 5, 9, 11][row * row % 977 % 4])),
            ],
        ),
        (
            "columns.mixed_types:x",
            vec![column("x", |row, rng| {
                if row % 50 == 0 { "not yet".into() } else { format!("{}", rng.next_u64() % 900) }
            })],
        ),
        (
            "columns.mixed_types:x",
            vec![column("x", |row, rng| match row % 10 {
                0 => "12".into(),
                1 => "2024-01-01".into(),
                _ => pick(rng, &["red", "green", "blue"]),
            })],
        ),
        (
            "columns.spellings:x",
            vec![column("x", |row, rng| match row % 100 {
                0 => "\"male \"".into(),
                1 => "Male".into(),
                _ => pick(rng, &["male", "female"]),
            })],
        ),
        (
            "columns.spellings:x",
            vec![column("x", |row, rng| match row % 100 {
                0 => "cafe\u{301}".into(),
                _ => pick(rng, &["caf\u{e9}", "bar"]),
            })],
        ),
        (
            "columns.placeholder:x",
            vec![column("x", |row, rng| {
                if row % 40 == 0 { "-999".into() } else { format!("{:.2}", 50.0 + 5.0 * normal(rng)) }
            })],
        ),
        (
            "columns.placeholder:x",
            vec![column("x", |row, rng| match row % 40 {
                0 => "1900-01-01".into(),
                _ => format!(
                    "19{}-0{}-1{}",
                    50 + rng.next_u64() % 50,
                    1 + rng.next_u64() % 9,
                    rng.next_u64() % 10
                ),
            })],
        ),
        (
            "personal.found:x",
            vec![column("x", |row, rng| {
                if row % 100 == 0 {
                    format!("u{row}@example.org")
                } else {
                    pick(rng, &["no", "none", "later"])
                }
            })],
        ),
        ("personal.found:x", vec![column("x", |row, _| format!("+49 30 9018{:02}", row % 90 + 10))]),
        ("label.all_null:label", vec![column("label", |_, _| String::new())]),
        ("label.one_class:label", vec![column("label", |_, _| "yes".into())]),
        (
            "label.missing:label",
            vec![column(
                "label",
                |row, rng| if row % 9 == 0 { String::new() } else { pick(rng, &["a", "b"]) },
            )],
        ),
        (
            "label.small_class:label",
            vec![column("label", |row, rng| if row < 4 { "c".into() } else { pick(rng, &["a", "b"]) })],
        ),
    ];
    for (expected, planted) in cases {
        let mut columns = background();
        columns.extend(planted);
        let has_label = columns.iter().any(|(name, _)| *name == "label");
        let evidence = evidence(&csv(&columns, ROWS, 1), has_label.then_some("label"), &[]);
        let results = all(&evidence);
        assert_eq!(found(&results), BTreeSet::from([expected.to_owned()]), "{results:#?}");
    }
}

/// Proves that repeated and empty rows, rejected ones and cells that are no numbers are counted and shown by file and
/// line.
#[test]
fn faulty_rows_are_shown_where_they_are() {
    let mut columns = background();
    columns.push(column("weight", |_, rng| format!("{:.3}", 70.0 + 9.0 * normal(rng))));
    let mut text = csv(&columns, ROWS, 2);
    let again = text.lines().skip(2).take(30).collect::<Vec<_>>().join("\n");
    text.push_str(&format!("{again}\n,,\n,,\n1,2\n"));
    let evidence = evidence(&text, None, &[]);
    let [rows, values] = [rows(&evidence), values(&evidence, None)];
    let repeated = &rows.findings.iter().find(|it| it.check == "rows.repeated").unwrap();
    assert_eq!((repeated.count, repeated.severity), (Some(31), Severity::Warn), "{repeated:?}");
    assert_eq!(repeated.examples[0].row, Some(ROWS as u64 + 2));
    assert_eq!(repeated.examples[0].value.as_deref(), Some("= a 3"));
    let empty = rows.findings.iter().find(|it| it.check == "rows.empty").unwrap();
    assert_eq!((empty.count, empty.examples[0].row), (Some(2), Some(ROWS as u64 + 32)));
    let kinds: Vec<&str> = values.findings.iter().map(|it| it.check.as_str()).collect();
    assert!(kinds.contains(&"values.rejected"), "{values:?}");
}

/// Proves that files of a data set from which no row came are named: an empty text, a CSV with a header alone.
#[test]
fn files_without_rows_are_named() {
    for (files, spec, expected) in [
        (["a.txt", "b.txt", "c.txt"], "*.txt", "no row was read from 1 of 3 files: `b.txt`"),
        (["a.csv", "b.csv", "c.csv"], "*.csv", "no row was read from 1 of 3 files: `b.csv`"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files.iter().zip(["x,y\n1,2\n3,4\n", "", "x,y\n5,6\n"]) {
            let text = if name == &"b.csv" { "x,y\n" } else { text };
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let spec = DataSpec { path: spec.into(), ..DataSpec::default() };
        let mut source = Source::open(folder.path(), "train", &spec, &ReadContext::default()).unwrap();
        let evidence = TableEvidence::gather(&mut source, &roles(None, &[]), &UNWATCHED).unwrap();
        let rows = rows(&evidence);
        let found = rows.findings.iter().find(|it| it.check == "rows.empty_files").unwrap();
        assert!(found.message.starts_with(expected) && found.severity == Severity::Warn, "{found:?}");
    }
}

/// Proves that NaN and infinities of a float column block, with their rows, and that the same in a label does too.
#[test]
fn what_no_model_can_take_blocks() {
    let (_folder, mut source) = parquet_with_nan();
    let evidence = TableEvidence::gather(&mut source, &roles(None, &[]), &UNWATCHED).unwrap();
    let result = values(&evidence, None);
    let kinds: Vec<(&str, Option<u64>, Option<u64>)> =
        result.findings.iter().map(|it| (it.check.as_str(), it.count, it.examples[0].row)).collect();
    assert_eq!(kinds, [("values.nan", Some(2), Some(2)), ("values.infinite", Some(1), Some(6))]);
    let values_shown = result.findings.iter().map(|it| it.examples[0].value.as_deref());
    assert_eq!(values_shown.collect::<Vec<_>>(), [Some("NaN"), Some("infinite")]);
    assert_eq!(result.verdict, Verdict::Block);
    let evidence = TableEvidence::gather(&mut source, &roles(Some("x"), &[]), &UNWATCHED).unwrap();
    assert_eq!(values(&evidence, None).verdict, Verdict::Pass);
    assert_eq!(label(&evidence, None).findings[0].check, "label.nan");
}

/// One column: 0, NaN, 2, NaN, 4, infinite, 6 …
fn parquet_with_nan() -> (tempfile::TempDir, Source) {
    use arrow::array::{ArrayRef, Float64Array, RecordBatch};
    let values = (0..100).map(|row| match row {
        1 | 3 => f64::NAN,
        5 => f64::INFINITY,
        row => f64::from(row),
    });
    let array: ArrayRef = std::sync::Arc::new(Float64Array::from_iter_values(values));
    let batch = RecordBatch::try_from_iter([("x", array)]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = fs::File::create(folder.path().join("a.parquet")).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let spec = DataSpec { path: "a.parquet".into(), ..DataSpec::default() };
    let source = Source::open(folder.path(), "train", &spec, &ReadContext::default()).unwrap();
    (folder, source)
}

/// Proves that repeated rows in a table of few values are expected, reported as such and not a problem.
#[test]
fn few_values_repeat_as_expected() {
    let few: Vec<Column<'_>> = vec![
        column("a", |_, rng| pick(rng, &["x", "y", "z"])),
        column("b", |_, rng| pick(rng, &["1", "2", "3", "4"])),
    ];
    let result = rows(&evidence(&csv(&few, ROWS, 3), None, &[]));
    let finding = &result.findings[0];
    assert_eq!((result.verdict, finding.count), (Verdict::Pass, Some(ROWS as u64 - 12)));
    assert!(
        finding.message.contains("are expected with independent columns, so this means little"),
        "{}",
        finding.message
    );
}

/// Proves that repeated rows are counted in tables too large to keep every row: within 5 % of the truth.
#[test]
fn repeats_of_large_tables_are_estimated() {
    let thinning = repeats::Thinning::default();
    let mut counts = repeats::RowCounts::new(&thinning);
    let mut rng = SplitMix64::new(4);
    let keys: Vec<u64> = (0..700_000).map(|_| rng.next_u64()).collect();
    let place = |row: usize| Place { file: 0, row: row as u64 };
    counts.observe(&keys, place);
    let mut later = repeats::RowCounts::new(&thinning);
    later.observe(&keys[..100_000], place);
    counts.merge(later);
    let surplus = counts.surplus();
    assert!(!counts.is_exact() && (95_000..105_000).contains(&surplus), "{surplus}");
    assert!(
        counts.examples().iter().all(|(row, first)| row == first),
        "rows and their repetition have one number"
    );
}

/// Proves that a label written differently on the other side blocks with a hint how to fix it, that a class never shown
/// blocks, and that equal labels pass.
#[test]
fn labels_of_both_sides_are_compared() {
    let side = |names: [&'static str; 2]| {
        let mut columns = background();
        columns.push(column("income", move |_, rng| pick(rng, &names)));
        evidence(&csv(&columns, 200, 5), Some("income"), &[])
    };
    let train = side(["<=50K", ">50K"]);
    let dotted = label(&train, Some(&side(["<=50K.", ">50K."])));
    assert_eq!(dotted.verdict, Verdict::Block);
    let finding = &dotted.findings[0];
    assert!(finding.message.contains("write the label `income` differently"), "{}", finding.message);
    assert!(finding.action.as_ref().unwrap().contains("`<=50K.` as `<=50K`"), "{finding:?}");
    let unknown = label(&train, Some(&side(["<=50K", "unknown"])));
    assert_eq!(
        (unknown.verdict, unknown.findings[0].check.as_str()),
        (Verdict::Block, "label.values_differ")
    );
    assert_eq!(label(&train, Some(&side([">50K", "<=50K"]))).verdict, Verdict::Pass);
    let numbers = side(["1", "0"]);
    assert_eq!(label(&train, Some(&numbers)).verdict, Verdict::Block);
    let other_form = label(&side(["caf\u{e9}", "bar"]), Some(&side(["cafe\u{301}", "bar"])));
    let action = other_form.findings[0].action.as_ref().unwrap();
    assert!(action.contains("`cafe\\u{301}` as `caf\u{e9}`"), "{action}");
}

/// Proves that categories which the training side lacks are reported, and that the few that every sample lacks are not
/// a problem.
#[test]
fn unknown_categories_are_reported() {
    let side = |seed: u64, planted: bool| {
        let mut columns = background();
        columns.push(column("word", move |row, rng| match planted && row % 20 == 0 {
            true => "new".to_owned(),
            false => format!("w{}", (1.0 / (rng.next_unit() + 0.002)) as u64),
        }));
        evidence(&csv(&columns, 2_000, seed), None, &[])
    };
    let train = side(6, false);
    let planted = values(&train, Some(&side(7, true)));
    assert_eq!((planted.verdict, planted.findings[0].column.as_deref()), (Verdict::Warn, Some("word")));
    let clean = values(&train, Some(&side(8, false)));
    assert_eq!((clean.verdict, clean.findings.len()), (Verdict::Pass, 1), "{clean:?}");
}

/// Proves that personal data blocks until there is a sign-off for this column and kind, only as long as it is valid,
/// and that a sign-off for what does not exist is reported. No message holds an address.
#[test]
fn personal_data_needs_a_signature() {
    let columns =
        [column("mail", |row, _| format!("user{row}@example.org")), column("n", |row, _| row.to_string())];
    let evidence = evidence(&csv(&columns, 50, 9), None, &[]);
    let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
    let sign_off = |column: &str, kind: &str, until: Option<&str>| SignOff {
        column: column.into(),
        kinds: vec![kind.into()],
        approved_by: "Ada".into(),
        why: "customers agreed".into(),
        until: until.map(str::to_owned),
    };
    for (sign_offs, verdict, expected) in [
        (vec![], Verdict::Block, "e-mail"),
        (vec![sign_off("mail", "email", None)], Verdict::Pass, "Ada signed for it"),
        (vec![sign_off("mail", "email", Some("2026-11-21"))], Verdict::Pass, "until 2026-11-21"),
        (vec![sign_off("mail", "email", Some("2026-11-20"))], Verdict::Block, "ended on 2026-11-20"),
        (vec![sign_off("mail", "phone", None)], Verdict::Block, "e-mail"),
        (vec![sign_off("n", "email", None)], Verdict::Block, "e-mail"),
        (
            vec![sign_off("mail", "email", None), sign_off("mial", "email", None)],
            Verdict::Warn,
            "no such column",
        ),
        (vec![sign_off("mail", "email", None), sign_off("mail", "mail", None)], Verdict::Warn, "not a kind"),
    ] {
        let result = personal(&evidence, &sign_offs, now);
        assert_eq!(result.verdict, verdict, "{result:?}");
        assert!(result.findings[0].message.contains(expected), "{result:?}");
        assert!(!format!("{result:?}").contains("@example"), "{result:?}");
    }
    let listed = personal_columns(&evidence, &[], now);
    assert_eq!((listed.len(), listed[0].count, listed[0].signed_off), (1, 50, false));
    let shown = evidence.profile.columns[0].summary();
    assert!(!format!("{shown:?}").contains("@example"), "a profile shows no addresses: {shown:?}");
}

/// Proves that groups are counted with the rate of the label and its interval, that a planted difference is found, a
/// small group named, and that equal groups are not called different.
#[test]
fn groups_are_counted_and_compared() {
    let columns = vec![
        column("sex", |row, _| ["f", "m"][row % 2].into()),
        column("race", |row, _| if row < 20 { "rare".into() } else { ["a", "b"][row / 2 % 2].into() }),
        column("hired", |row, rng| {
            let share = if row % 2 == 0 { 0.2 } else { 0.4 };
            u8::from(rng.next_unit() < share).to_string()
        }),
    ];
    let evidence = evidence(&csv(&columns, 4_000, 10), Some("hired"), &["sex", "race"]);
    let groups = evidence.groups();
    assert_eq!(groups.len(), 2 + 3 + 6);
    let women = groups.iter().find(|group| group.values == ["f"]).unwrap();
    assert_eq!((women.rows, women.label_value.as_deref()), (2_000, Some("1")));
    assert!(women.interval.holds(0.2), "{women:?}");
    let result = representation(&evidence);
    let message = |kind: &str| result.findings.iter().find(|it| it.check == kind).unwrap().message.clone();
    assert!(message("representation.label_rate").contains("sex=m"), "{result:?}");
    assert!(message("representation.small_group").contains("race=rare (20)"), "{result:?}");
    let alike: Vec<Column<'_>> = vec![
        column("sex", |_, rng| pick(rng, &["f", "m"])),
        column("paid", |_, rng| format!("{:.2}", 1_000.0 + 100.0 * normal(rng))),
    ];
    let evidence = self::evidence(&csv(&alike, 4_000, 11), Some("paid"), &["sex"]);
    assert_eq!(representation(&evidence).verdict, Verdict::Pass);
    assert!(evidence.groups()[0].label_rate.is_some_and(|mean| (990.0..1_010.0).contains(&mean)));
}

/// Proves that of 400 clean columns of many kinds at most 1 % are called faulty.
#[test]
fn clean_columns_are_left_alone() {
    let kinds: Vec<fn(usize, &mut SplitMix64) -> String> = vec![
        |_, rng| format!("{:.4}", normal(rng)),
        |_, rng| format!("{:.3}", (2.0 * normal(rng)).exp()),
        |_, rng| (rng.next_u64() % 100).to_string(),
        |_, rng| (rng.next_u64() % 1_000).to_string(),
        |_, rng| (17 + rng.next_u64() % 74).to_string(),
        |_, rng| format!("{}", (normal(rng) * 30.0).round()),
        |_, rng| (rng.next_u64() % 3).to_string(),
        |_, rng| ((rng.next_u64() % 3) as i64 - 1).to_string(),
        |_, rng| pick(rng, &["true", "false"]),
        |_, rng| pick(rng, &["north", "south", "east", "west"]),
        |_, rng| pick(rng, &["A", "a", "B", "b"]),
        |_, rng| format!("{:08x}", rng.next_u64() as u32),
        |_, rng| format!("item-{}", rng.next_u64() % 50),
        |_, rng| {
            format!("20{}-0{}-1{}", 10 + rng.next_u64() % 15, 1 + rng.next_u64() % 9, rng.next_u64() % 10)
        },
        |row, _| format!("2024-01-01T{:02}:{:02}:{:02}Z", row / 3600 % 24, row / 60 % 60, row % 60),
        |row, _| row.to_string(),
        |_, rng| (rng.next_u64() % 100_000).to_string(),
        |_, rng| if rng.next_unit() < 0.1 { String::new() } else { format!("{:.1}", 36.0 + normal(rng)) },
        |_, rng| (1_000_000 + rng.next_u64() % 9_000_000).to_string(),
        |_, rng| format!("{}", (-(rng.next_unit() + 1e-9).ln() * 20.0) as u64),
    ];
    let mut faulty = Vec::new();
    let tables = 20;
    for seed in 0..tables {
        let names: Vec<String> = (0..kinds.len()).map(|index| format!("c{index}")).collect();
        let columns: Vec<Column<'_>> =
            names.iter().zip(&kinds).map(|(name, kind)| column(name, kind)).collect();
        let evidence = evidence(&csv(&columns, 300, 100 + seed), None, &[]);
        faulty.extend(found(&all(&evidence)).into_iter().map(|it| format!("{seed} {it}")));
    }
    let columns = tables as usize * kinds.len();
    assert!(faulty.len() * 100 <= columns, "{} of {columns} clean columns: {faulty:?}", faulty.len());
}

/// A label that follows two numbers and a category, with every `flipped`-th row given the other class.
pub(super) fn labelled(rows: usize, flipped: usize, seed: u64) -> String {
    let mut rng = SplitMix64::new(seed);
    let mut text = "x,y,city,label\n".to_owned();
    for row in 0..rows {
        let (x, y, city) = (normal(&mut rng), normal(&mut rng), pick(&mut rng, &["oslo", "riga"]));
        let is_yes = x + y * 0.5 + if city == "oslo" { 1.0 } else { -1.0 } > 0.0;
        let given = is_yes != (flipped > 0 && row % flipped == 0);
        writeln!(text, "{x:.4},{y:.4},{city},{}", if given { "yes" } else { "no" }).unwrap();
    }
    text
}

pub(super) fn noise(text: &str) -> (CheckResult, Option<LabelNoise>) {
    let (_folder, mut source) = source(text, DataFormat::Csv);
    label_noise(&mut source, "label", 0, &UNWATCHED).unwrap()
}

/// Proves on 3 % planted wrong labels that at least 70 % of what is called wrong is, that at least 80 % of what is wrong
/// is called so (of 100,000 rows more: `bench/data/label_noise.py`), each with its row and the class it should have;
/// and that a table without wrong labels has next to no suspects.
#[test]
fn wrong_labels_are_found() {
    let (result, found) = noise(&labelled(3_000, 33, 20));
    let found = found.unwrap();
    let right = found.suspects.iter().filter(|suspect| (suspect.row - 2).is_multiple_of(33)).count() as f64;
    let (precision, recall) = (right / found.suspect_count as f64, right / 91.0);
    assert!(precision >= 0.7 && recall >= 0.8, "precision {precision}, recall {recall}");
    assert_eq!((result.verdict, result.findings[0].count), (Verdict::Warn, Some(found.suspect_count)));
    assert!(
        found.suspects.iter().all(|it| it.given != it.likely && it.likely_probability > it.given_probability)
    );
    assert!(found.accuracy > 0.9 && found.majority_fraction < 0.6, "{result:?}");

    let (_, clean) = noise(&labelled(3_000, 0, 21));
    let clean = clean.unwrap();
    assert!(clean.suspect_count <= 15, "{} of 3000 clean labels", clean.suspect_count);
}

/// Proves that if the columns do not predict the label, no label is called wrong, with the reason; nor of a continuous
/// label, nor of too few rows.
#[test]
fn nothing_is_contradicted_without_knowledge() {
    let unrelated = [
        column("x", |_, rng| format!("{:.4}", normal(rng))),
        column("label", |_, rng| pick(rng, &["yes", "no"])),
    ];
    let amount = [
        column("x", |_, rng| format!("{:.4}", normal(rng))),
        column("label", |_, rng| format!("{:.4}", normal(rng))),
    ];
    for text in [csv(&unrelated, 2_000, 22), csv(&amount, 500, 23), labelled(50, 0, 24)] {
        let (result, found) = noise(&text);
        assert_eq!((result.verdict, found), (Verdict::NotApplicable, None), "{result:?}");
    }
}

/// Proves that given probabilities are used as they are, and that too few of them are no pass.
#[test]
fn given_probabilities_are_used() {
    let labels: Vec<&str> = (0..200).map(|row| if row == 7 || row % 2 == 0 { "b" } else { "a" }).collect();
    let table = format!("x,label\n{}", labels.iter().map(|label| format!("1,{label}\n")).collect::<String>());
    let said = |row: usize| if row.is_multiple_of(2) { "0.98,0.02\n" } else { "0.02,0.98\n" };
    let probabilities = |rows: usize| format!("b,a\n{}", (0..rows).map(said).collect::<String>());
    let judge = |rows: usize| {
        let (_folder, mut data) = source(&table, DataFormat::Csv);
        let (_other, mut given) = source(&probabilities(rows), DataFormat::Csv);
        label_noise_from(&mut data, &mut given, "label", &UNWATCHED).unwrap()
    };
    let (_, found) = judge(200);
    let found = found.unwrap();
    assert_eq!((found.suspects.len(), found.suspects[0].row, found.suspects[0].likely.as_str()), (1, 9, "a"));
    assert_eq!(judge(199).0.verdict, Verdict::NotRun);
}

/// Proves that a table whose columns are read in groups is checked like one whose columns are read together: duplicate
/// and empty rows, duplicate and recoded columns, groups, and values that cannot be used.
#[test]
fn columns_in_groups_tell_the_same() {
    use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray};
    use parquet::file::properties::WriterProperties;
    const COLUMNS: usize = 2_500;
    const ROWS: usize = 60;
    const EMPTY: usize = 20;
    // Row 7 repeats row 3, and row 9 repeats its features only.
    let of_row = |row: usize| if row == 7 || row == 9 { 3 } else { row };
    let number = |column: usize, row: usize| {
        let mut rng = SplitMix64::new((column * ROWS + of_row(row)) as u64);
        let value = (rng.next_u64() % 40) as f64;
        let value = if column == 1_000 && row == 30 { f64::NAN } else { value };
        Some(value).filter(|_| row != EMPTY)
    };
    let columns = (0..COLUMNS).map(|column| {
        // Two columns are equal, and a third names their values otherwise.
        let column = if column == 2_000 { 5 } else { column };
        let array: ArrayRef = match column {
            6 => {
                let texts = (0..ROWS).map(|row| number(5, row).map(|value| format!("v{value}")));
                std::sync::Arc::new(texts.collect::<StringArray>())
            }
            _ => std::sync::Arc::new((0..ROWS).map(|row| number(column, row)).collect::<Float64Array>()),
        };
        array
    });
    let text = |value: &dyn Fn(usize) -> &'static str| -> ArrayRef {
        let texts = (0..ROWS).map(|row| Some(value(row)).filter(|_| row != EMPTY));
        std::sync::Arc::new(texts.collect::<StringArray>())
    };
    let label = text(&|row| if row != 9 && of_row(row).is_multiple_of(3) { "yes" } else { "no" });
    let city = text(&|row| if of_row(row).is_multiple_of(2) { "Oslo" } else { "Riga" });
    let names = (0..COLUMNS).map(|column| format!("c{column}")).chain(["label".into(), "city".into()]);
    let batch = RecordBatch::try_from_iter_with_nullable(
        names.zip(columns.chain([label, city])).map(|(name, array)| (name, array, true)),
    )
    .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = fs::File::create(folder.path().join("a.parquet")).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(25)).build();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let spec = DataSpec { path: "a.parquet".into(), ..DataSpec::default() };
    let roles = roles(Some("label"), &["city"]);
    let reading = ColumnRoles { roles: &roles, identifiers: &[] };
    let [together, in_groups] = [at_once, wide::gather].map(|gather| {
        let mut source = Source::open(folder.path(), "train", &spec, &ReadContext::default()).unwrap();
        let read = gather(&mut source, reading, &UNWATCHED).unwrap();
        TableEvidence::of(&source, reading, read)
    });
    let repeats = in_groups.repeats();
    assert_eq!((repeats.by_features, repeats.with_label, repeats.exact), (2, 1, true));
    assert_eq!(repeats, together.repeats());
    assert_eq!(
        serde_json::to_value(in_groups.groups()).unwrap(),
        serde_json::to_value(together.groups()).unwrap()
    );
    let expected = all(&in_groups);
    assert_eq!(serde_json::to_value(&expected).unwrap(), serde_json::to_value(all(&together)).unwrap());
    let found = found(&expected);
    for kind in ["columns.equal:", "columns.recoded:", "rows.empty:", "values.nan:c1000"] {
        assert!(found.iter().any(|it| it.starts_with(kind)), "{kind} in {found:?}");
    }
}

/// Proves that columns which may be equal only since their values were rounded say so and do not block, even where one
/// is the label, and that columns whose values are exact do.
#[test]
fn columns_that_are_equal_by_rounding_only_warn() {
    let found = |ends: [&'static str; 2]| {
        let cell = |end: &'static str| {
            move |row: usize, _: &mut SplitMix64| format!("{}.{end}", row * row % 977 % 4)
        };
        let mut table = background();
        table.extend([column("copy", cell(ends[0])), column("y", cell(ends[1]))]);
        let evidence = evidence(&csv(&table, ROWS, 3), Some("y"), &[]);
        let findings = columns(&evidence).findings;
        let equal = findings.into_iter().filter(|it| it.check == "columns.equal");
        equal
            .map(|it| (it.severity, it.message.contains("some of their values were rounded")))
            .collect::<Vec<_>>()
    };
    assert_eq!(found(["12345678901234567891", "12345678901234567892"]), [(Severity::Warn, true)]);
    assert_eq!(found(["5", "50"]), [(Severity::Block, false)]);
}

/// Proves that a feature that is the label in every row blocks, that the label in other words only warns, and that two columns
/// of few rows which may be equal by coincidence do too.
#[test]
fn a_copy_of_the_label_blocks() {
    let severity = |rows: usize, cell: fn(usize) -> &'static str| {
        let mut table = background();
        table.push(column("copy", move |row, _| cell(row * row % 977).into()));
        table.push(column("y", |row, _| ["no", "yes"][row * row % 977 % 2].into()));
        let evidence = evidence(&csv(&table, rows, 3), Some("y"), &[]);
        let findings = columns(&evidence).findings;
        findings
            .iter()
            .filter(|it| it.column.as_deref() == Some("copy"))
            .map(|it| it.severity)
            .collect::<Vec<_>>()
    };
    assert_eq!(severity(ROWS, |number| ["no", "yes"][number % 2]), [Severity::Block]);
    assert_eq!(severity(ROWS, |number| ["left", "right"][number % 2]), [Severity::Warn]);
    assert_eq!(severity(25, |number| ["no", "yes"][number % 2]), [Severity::Warn], "25 rows");
}
