//! Faults planted in generated tables: each must be found, and nothing else.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use trackway_core::checks::{CheckResult, Severity, Verdict};
use trackway_core::{Rng, SplitMix64};
use trackway_tables::pass::UNWATCHED;
use trackway_tables::{DataSpec, ReadContext};

use super::*;

/// A table in the making: named columns.
#[derive(Clone, Default)]
struct Table(Vec<(String, Column)>);

#[derive(Clone)]
enum Column {
    Numbers(Vec<f64>),
    Whole(Vec<i64>),
    Texts(Vec<String>),
}

impl Table {
    fn with(mut self, name: &str, column: Column) -> Self {
        self.0.push((name.to_owned(), column));
        self
    }

    fn write(&self, path: &Path) {
        let array = |column: &Column| -> ArrayRef {
            match column {
                Column::Numbers(values) => Arc::new(Float64Array::from(values.clone())),
                Column::Whole(values) => Arc::new(Int64Array::from(values.clone())),
                Column::Texts(values) => Arc::new(StringArray::from(values.clone())),
            }
        };
        let batch =
            RecordBatch::try_from_iter(self.0.iter().map(|(name, column)| (name, array(column)))).unwrap();
        let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }
}

fn normal(rng: &mut SplitMix64) -> f64 {
    let (radius, angle) = (rng.next_unit().max(1e-300), rng.next_unit());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

fn below(rng: &mut SplitMix64, bound: u64) -> usize {
    (rng.next_u64() % bound) as usize
}

/// `numbers` columns of noise and some categories, and a label that depends in part on three of them.
fn clean(seed: u64, rows: usize, numbers: usize) -> Table {
    let mut rng = SplitMix64::new(seed);
    let mut table = Table::default();
    let columns: Vec<Vec<f64>> =
        (0..numbers).map(|_| (0..rows).map(|_| normal(&mut rng)).collect()).collect();
    let label = (0..rows)
        .map(|row| {
            let logit = columns[0][row] + 0.7 * columns[1][row] - 0.5 * columns[2][row] + normal(&mut rng);
            i64::from(logit > 0.0)
        })
        .collect();
    for (index, column) in columns.into_iter().enumerate() {
        table = table.with(&format!("x{index}"), Column::Numbers(column));
    }
    let plans = ["free", "basic", "pro", "team"];
    let plan = (0..rows).map(|_| plans[below(&mut rng, 4)].to_owned()).collect();
    let city = (0..rows).map(|_| format!("city {}", below(&mut rng, 300))).collect();
    let age = (0..rows).map(|_| 18 + below(&mut rng, 60) as i64).collect();
    table
        .with("plan", Column::Texts(plan))
        .with("city", Column::Texts(city))
        .with("age", Column::Whole(age))
        .with("y", Column::Whole(label))
}

fn look(train: &Table, test: &Table, roles: &Roles) -> (Leakage, Vec<CheckResult>) {
    let folder = tempfile::tempdir().unwrap();
    train.write(&folder.path().join("train.parquet"));
    test.write(&folder.path().join("test.parquet"));
    look_in(folder.path(), ["train.parquet", "test.parquet"], roles)
}

fn look_in(base: &Path, files: [&str; 2], roles: &Roles) -> (Leakage, Vec<CheckResult>) {
    let open = |file: &str| {
        Source::open(
            base,
            file,
            &DataSpec { path: file.into(), ..DataSpec::default() },
            &ReadContext::default(),
        )
        .unwrap()
    };
    let (mut train, mut test) = (open(files[0]), open(files[1]));
    let leakage = examine(&mut train, &mut test, roles, &|_| true, &UNWATCHED).unwrap();
    let results = leakage.results(roles, &train, &test);
    (leakage, results)
}

fn y() -> Roles {
    Roles { label: Some("y".into()), ..Roles::default() }
}

fn result<'r>(results: &'r [CheckResult], name: &str) -> &'r CheckResult {
    results.iter().find(|result| result.name == name).unwrap()
}

/// Columns that a check warns of.
fn warned(results: &[CheckResult], name: &str) -> Vec<String> {
    let findings = &result(results, name).findings;
    let warned = findings.iter().filter(|finding| finding.severity > Severity::Note);
    warned.filter_map(|finding| finding.column.clone()).collect()
}

fn numbers(table: &mut Table, column: usize) -> &mut Vec<f64> {
    match &mut table.0[column].1 {
        Column::Numbers(values) => values,
        _ => panic!("a column of numbers"),
    }
}

fn labels(table: &Table) -> Vec<i64> {
    match &table.0.last().unwrap().1 {
        Column::Whole(values) => values.clone(),
        _ => panic!("the label comes last"),
    }
}

/// Proves on clean tables of several sizes that at most one column in a hundred has a warning, by all checks together,
/// and that checks that need a role do not apply.
#[test]
fn clean_data_raises_no_alarm() {
    let (mut columns, mut alarms) = (0, Vec::new());
    for (seed, train_rows, test_rows) in [(1, 300, 100), (2, 1000, 400), (3, 1000, 1000), (4, 3000, 200)] {
        let (train, test) = (clean(seed, train_rows, 40), clean(seed + 100, test_rows, 40));
        let (_, results) = look(&train, &test, &y());
        columns += train.0.len();
        for result in &results {
            let findings = result.findings.iter().filter(|finding| finding.severity > Severity::Note);
            alarms.extend(findings.map(|finding| finding.message.clone()));
        }
        assert_eq!(result(&results, "leakage.groups").verdict, Verdict::NotApplicable);
        assert_eq!(result(&results, "leakage.time").verdict, Verdict::NotApplicable);
    }
    assert!(alarms.len() * 100 <= columns, "{alarms:?}");
}

/// Copies rows of the training side to the test side and changes them by `change`.
fn plant(train: &Table, test: &mut Table, copies: usize, change: impl Fn(&mut Table, usize)) {
    for row in 0..copies {
        let from = row * 7;
        for ((_, column), (_, source)) in test.0.iter_mut().zip(&train.0) {
            match (column, source) {
                (Column::Numbers(to), Column::Numbers(values)) => to[row] = values[from],
                (Column::Whole(to), Column::Whole(values)) => to[row] = values[from],
                (Column::Texts(to), Column::Texts(values)) => to[row] = values[from].clone(),
                _ => panic!("both sides have the same columns"),
            }
        }
        change(test, row);
    }
}

/// Proves that copies with three of twenty columns changed, and copies with a little noise in every number, are found
/// (at least 97 of 100) and that other rows are not, and that the control within the training side stays empty.
#[test]
fn near_rows_are_found() {
    let train = clean(11, 3000, 17);
    let edit: &dyn Fn(&mut Table, usize) = &|table, row| {
        for column in 0..3 {
            numbers(table, (row + column * 5) % 17)[row] += 3.0;
        }
    };
    let jitter: &dyn Fn(&mut Table, usize) = &|table, row| {
        let mut rng = SplitMix64::new(row as u64);
        (0..17).for_each(|column| numbers(table, column)[row] += 0.007 * normal(&mut rng));
    };
    for change in [edit, jitter] {
        let mut test = clean(12, 1000, 17);
        plant(&train, &mut test, 400, change);
        let (leakage, results) = look(&train, &test, &y());
        let near = &leakage.near.unwrap().found[0];
        assert!((388..=400).contains(&near.near_rows), "{near:?}");
        assert_eq!((near.test_rows, near.control_near_rows), (1000, 0));
        assert!(near.examples.iter().all(|pair| pair.train.row == (pair.test.row - 1) * 7 + 1), "{near:?}");
        let near = result(&results, "leakage.near_duplicates");
        assert_eq!(near.verdict, Verdict::Warn, "{near:?}");
        assert_eq!(result(&results, "leakage.rows").verdict, Verdict::Pass);
    }
}

/// Proves that data whose rows come in near pairs is reported as such: then a random split is expected to have as many
/// in common; and that rows with too little information are not compared, with the reason.
#[test]
fn near_duplicates_are_compared_with_expectation() {
    let half = clean(21, 4000, 10);
    let mut all = half.clone();
    let mut rng = SplitMix64::new(5);
    for ((_, column), (_, more)) in all.0.iter_mut().zip(&half.0) {
        match (column, more) {
            (Column::Numbers(to), Column::Numbers(more)) => {
                to.extend(more.iter().map(|value| value + 0.001 * normal(&mut rng)));
            }
            (Column::Whole(to), Column::Whole(more)) => to.extend(more),
            (Column::Texts(to), Column::Texts(more)) => to.extend(more.clone()),
            _ => unreachable!("the same columns"),
        }
    }
    let part = |is_test: bool| {
        let mut rng = SplitMix64::new(6);
        let chosen: Vec<bool> = (0..8000).map(|_| (below(&mut rng, 4) == 0) == is_test).collect();
        let mut table = all.clone();
        for (_, column) in &mut table.0 {
            let mut chosen = chosen.iter();
            match column {
                Column::Numbers(values) => values.retain(|_| *chosen.next().unwrap()),
                Column::Whole(values) => values.retain(|_| *chosen.next().unwrap()),
                Column::Texts(values) => values.retain(|_| *chosen.next().unwrap()),
            }
        }
        table
    };
    let (_, results) = look(&part(false), &part(true), &y());
    let near = result(&results, "leakage.near_duplicates");
    assert!(near.findings[0].message.contains("a random split would overlap as much"), "{near:?}");

    let texts = |seed| {
        let mut rng = SplitMix64::new(seed);
        let column =
            |rng: &mut SplitMix64| Column::Texts((0..500).map(|_| below(rng, 3).to_string()).collect());
        (0..6).fold(Table::default(), |table, index| table.with(&format!("c{index}"), column(&mut rng)))
    };
    let (_, results) = look(&texts(1), &texts(2), &Roles::default());
    let near = result(&results, "leakage.near_duplicates");
    assert_eq!(near.verdict, Verdict::NotApplicable);
    assert!(
        near.why.as_ref().unwrap().contains("to distinguish a near-duplicate from a coincidence"),
        "{near:?}"
    );
}

/// Proves that texts with some words changed are found by their pieces, whatever their case, and other texts are not.
#[test]
fn near_texts_are_found() {
    let mut rng = SplitMix64::new(31);
    let mut text = |words: usize| {
        let word = |rng: &mut SplitMix64| format!("word{}", below(rng, 2000));
        (0..words).map(|_| word(&mut rng)).collect::<Vec<_>>()
    };
    let train: Vec<Vec<String>> = (0..2000).map(|row| text(70 + row % 150)).collect();
    let mut test: Vec<Vec<String>> = (0..500).map(|_| text(80)).collect();
    for (row, words) in test.iter_mut().enumerate().take(100) {
        words.clone_from(&train[row * 3 + 60]);
        // One word of about a hundred is in as many of the pieces as a piece has words.
        words[row % 20] = "changed".into();
    }
    let joined = |texts: &[Vec<String>], separator: &str| {
        Column::Texts(texts.iter().map(|words| words.join(separator)).collect())
    };
    let numbered = |count: usize| Column::Whole((0..count as i64).map(|row| row * 37 % 11).collect());
    let train = Table::default().with("text", joined(&train, " ")).with("y", numbered(2000));
    let test = Table::default().with("text", joined(&test, ", ")).with("y", numbered(500));
    let (leakage, results) = look(&train, &test, &y());
    let near = leakage.near.unwrap();
    assert_eq!(near.found.len(), 1, "{near:?}");
    let near = &near.found[0];
    assert!((97..=100).contains(&near.near_rows), "{near:?}");
    assert_eq!((near.column.as_deref(), near.control_near_rows), (Some("text"), 0));
    assert!(near.control_rows > 1000);
    assert_eq!(warned(&results, "leakage.near_duplicates"), ["text"]);
}

/// Proves that of a test side with few labels it is said that nothing was measured there, and of one with enough nothing.
#[test]
fn few_test_labels_are_said() {
    for (rows, is_said) in [(30, true), (400, false)] {
        let (_, results) = look(&clean(41, 400, 6), &clean(42, rows, 6), &y());
        let why = result(&results, "leakage.target").why.clone().unwrap();
        assert_eq!(why.contains("where fewer than 50 rows have a label"), is_said, "{why}");
    }
}

/// Proves that short texts with one word changed, left out or added are found, whatever their length, and that other texts are not, though
/// they are made of the same few words.
#[test]
fn short_near_texts_are_found() {
    let mut rng = SplitMix64::new(32);
    // Few words, some of them frequent, as in short texts of one subject.
    let mut text = |words: usize| {
        let word = |rng: &mut SplitMix64| format!("w{}", below(rng, 400).min(below(rng, 400)));
        (0..words).map(|_| word(&mut rng)).collect::<Vec<_>>()
    };
    let lengths = [10, 12, 15, 18, 19, 20, 29, 30, 40, 48, 49, 60];
    for change in ["changed", "left out", "added"] {
        let train: Vec<Vec<String>> = (0..3000).map(|row| text(lengths[row % lengths.len()])).collect();
        let mut test: Vec<Vec<String>> = (0..1500).map(|row| text(lengths[row % lengths.len()])).collect();
        for (row, words) in test.iter_mut().enumerate().take(120) {
            words.clone_from(&train[row]);
            let place = words.len() / 2;
            match change {
                "changed" => words[place] = "other".into(),
                "added" => words.insert(place, "other".into()),
                // Nine words are too few.
                _ if words.len() > 10 => drop(words.remove(place)),
                _ => words[place] = "other".into(),
            }
        }
        let joined = |texts: &[Vec<String>]| Column::Texts(texts.iter().map(|it| it.join(" ")).collect());
        let numbered = |count: usize| Column::Whole((0..count as i64).map(|row| row * 37 % 11).collect());
        let train = Table::default().with("text", joined(&train)).with("y", numbered(3000));
        let test = Table::default().with("text", joined(&test)).with("y", numbered(1500));
        let near = look(&train, &test, &y()).0.near.unwrap().found.remove(0);
        assert!((110..=120).contains(&near.near_rows), "{change}: {near:?}");
        assert_eq!(near.control_near_rows, 0, "{near:?}");
        assert!(near.examples.iter().all(|pair| pair.test.row == pair.train.row), "{change}: {near:?}");
    }
}

/// Proves that a feature that is the label blocks, that one that predicts it too well, a pair that does, and one that
/// does only on the training side have warnings, and that honest features have none.
#[test]
fn features_that_know_the_label() {
    let build = |seed: u64, rows: usize, is_train: bool| {
        let table = clean(seed, rows, 6);
        let label = labels(&table);
        let mut rng = SplitMix64::new(seed + 1000);
        let recoded = label.iter().map(|it| if *it == 1 { "yes" } else { "no" }.to_owned()).collect();
        let noisy = label.iter().map(|it| if rng.next_unit() < 0.04 { 1 - it } else { *it } as f64).collect();
        let one: Vec<f64> = (0..rows).map(|_| normal(&mut rng)).collect();
        // The sign of the product of the two is the label.
        let other = one
            .iter()
            .zip(&label)
            .map(|(one, label)| normal(&mut rng).abs() * one.signum() * (2 * label - 1) as f64)
            .collect();
        let gap = label
            .iter()
            .map(|it| if is_train && rng.next_unit() < 0.7 { *it as f64 } else { below(&mut rng, 2) as f64 })
            .collect();
        let mut planted = table;
        let label = planted.0.pop().unwrap();
        let mut planted = planted
            .with("recoded", Column::Texts(recoded))
            .with("noisy", Column::Numbers(noisy))
            .with("one", Column::Numbers(one))
            .with("other", Column::Numbers(other))
            .with("gap", Column::Numbers(gap));
        planted.0.push(label);
        planted
    };
    let (train, test) = (build(41, 6000, true), build(42, 2000, false));
    let (leakage, results) = look(&train, &test, &y());
    let power = leakage.target.unwrap();
    let found = result(&results, "leakage.target");
    assert_eq!((found.verdict, found.findings[0].severity), (Verdict::Block, Severity::Block));
    assert_eq!(found.findings[0].column.as_deref(), Some("recoded"));
    assert_eq!(warned(&results, "leakage.target"), ["recoded", "noisy", "gap", "one"], "{power:?}");
    assert!(power.pairs[0].train > 0.8 && power.pairs[0].better_alone < 0.1, "{power:?}");
    assert!((0.05..0.6).contains(&power.of("x0").unwrap()), "{power:?}");
    assert!(power.of("x5").unwrap() < 0.02, "{power:?}");

    // A label of numbers: the label in other units blocks, the label with noise is warned of.
    let numbers = |seed: u64, rows: usize| {
        let mut rng = SplitMix64::new(seed);
        let x: Vec<f64> = (0..rows).map(|_| normal(&mut rng)).collect();
        let y: Vec<f64> = x.iter().map(|x| (x + normal(&mut rng)).exp()).collect();
        let cents = y.iter().map(|y| y * -100.0).collect();
        let close = y.iter().map(|y| y * (1.0 + 0.02 * normal(&mut rng))).collect();
        Table::default()
            .with("x", Column::Numbers(x))
            .with("cents", Column::Numbers(cents))
            .with("close", Column::Numbers(close))
            .with("y", Column::Numbers(y))
    };
    let (_, results) = look(&numbers(1, 3000), &numbers(2, 1000), &y());
    assert_eq!(warned(&results, "leakage.target"), ["cents", "close"]);
    assert_eq!(result(&results, "leakage.target").verdict, Verdict::Block);
}

/// Proves that a feature that alone predicts as well as all is reported, with the power of all features.
#[test]
fn a_golden_feature() {
    let build = |seed: u64, rows: usize| {
        let mut table = clean(seed, rows, 4);
        let Some((_, Column::Whole(label))) = table.0.pop() else { panic!("the label comes last") };
        let mut rng = SplitMix64::new(seed);
        let leaked =
            label.iter().map(|it| if rng.next_unit() < 0.15 { 1 - it } else { *it } as f64).collect();
        // What the label depends on is gone but for the one feature.
        table.0.drain(0..3);
        table.with("leaked", Column::Numbers(leaked)).with("y", Column::Whole(label))
    };
    let (leakage, results) = look(&build(71, 3000), &build(72, 1000), &y());
    let golden = leakage.target.unwrap().golden.unwrap();
    assert_eq!(golden.column, "leaked");
    assert!((0.6..0.8).contains(&golden.alone) && golden.all < golden.alone * 1.1, "{golden:?}");
    assert_eq!(warned(&results, "leakage.target"), ["leaked"]);
}

/// Proves that identifiers are recognised by name, form, density and order, that one whose order predicts the label has
/// a warning, and that numbers, measurements and repeated keys are not taken for one.
#[test]
fn identifiers_are_distinguished_from_amounts() {
    let build = |seed: u64, rows: usize| {
        let mut table = clean(seed, rows, 4);
        let Some((_, Column::Whole(mut label))) = table.0.pop() else { panic!("the label comes last") };
        label.sort_unstable();
        let mut rng = SplitMix64::new(seed);
        let hash = (0..rows).map(|_| format!("{:016x}", rng.next_u64() | 0x10)).collect();
        let code = (0..rows).map(|row| format!("C-{:06}", (row as u64 * 7919 + seed) % 1_000_000)).collect();
        let amount = (0..rows).map(|_| (rng.next_u64() % 1_000_000_000_000) as i64).collect();
        table
            .with("account_id", Column::Whole((0..rows as i64).collect()))
            .with("trace", Column::Texts(hash))
            .with("customer", Column::Texts(code))
            .with("amount", Column::Whole(amount))
            .with("userId", Column::Whole((0..rows as i64).map(|row| row / 3 * 11 % 1009).collect()))
            .with("y", Column::Whole(label))
    };
    let (leakage, results) = look(&build(51, 4000), &build(52, 1000), &y());
    let found: Vec<&str> = leakage.identifiers.found.iter().map(|it| it.column.as_str()).collect();
    assert_eq!(found, ["account_id", "trace", "customer"]);
    assert_eq!(leakage.identifiers.groups, ["userId"]);
    assert_eq!(
        leakage.identifiers.found[0].evidence,
        [IdentifierEvidence::Name, IdentifierEvidence::Dense, IdentifierEvidence::Ordered]
    );
    assert_eq!(warned(&results, "leakage.identifiers"), ["account_id"]);
}

/// Proves that columns that were scaled before the split are found for three scalers, that scaling each side by itself
/// is found, and that scaling by the training side, raw columns and flags are not.
#[test]
fn columns_scaled_before_the_split() {
    let (train_rows, rows) = (3000, 4000);
    let mut rng = SplitMix64::new(61);
    let mut raw = || -> Vec<f64> { (0..rows).map(|_| 40.0 + 12.0 * normal(&mut rng)).collect() };
    let standardized = |values: &[f64], by: &[f64]| -> Vec<f64> {
        let mean = by.iter().sum::<f64>() / by.len() as f64;
        let variance = by.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / by.len() as f64;
        values.iter().map(|value| (value - mean) / variance.sqrt()).collect()
    };
    let ranged = |values: &[f64], by: &[f64]| -> Vec<f64> {
        let (low, high) = preprocessing::range(by);
        values.iter().map(|value| (value - low) / (high - low)).collect()
    };
    let ranked = |values: &[f64]| -> Vec<f64> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let rank = |value: &f64| sorted.partition_point(|other| other < value) as f64;
        values.iter().map(|value| rank(value) / (values.len() - 1) as f64).collect()
    };
    let largest_last = |mut values: Vec<f64>| {
        values[rows - 1] = 100.0;
        values[rows - 2] = -30.0;
        values
    };
    let halves = |values: Vec<f64>| -> Vec<f64> {
        let (train, test) = values.split_at(train_rows);
        [standardized(train, train), standardized(test, test)].concat()
    };
    let (one, two, three, four, five, six) = (raw(), raw(), raw(), raw(), raw(), raw());
    let columns = [
        ("raw", raw()),
        ("standard", standardized(&one, &one)),
        ("standard_of_train", standardized(&two, &two[..train_rows])),
        ("apart", halves(three)),
        ("range", {
            let it = largest_last(four);
            ranged(&it, &it)
        }),
        ("range_two", {
            let it = largest_last(five);
            ranged(&it, &it)
        }),
        ("ranks", ranked(&six)),
        ("noise", raw().iter().map(|value| (value - 40.0) / 12.0).collect()),
        ("flag", raw().iter().map(|value| f64::from(u8::from(*value > 40.0)) + 0.0).collect()),
        ("even", raw().iter().map(|value| (value * 1e5).fract().abs()).collect()),
    ];
    let side = |range: std::ops::Range<usize>| {
        columns.iter().fold(Table::default(), |table, (name, values)| {
            table.with(name, Column::Numbers(values[range.clone()].to_vec()))
        })
    };
    let (leakage, results) = look(&side(0..train_rows), &side(train_rows..rows), &Roles::default());
    let found: Vec<(&str, Fit)> = leakage.fitted.iter().map(|it| (it.column.as_str(), it.fit)).collect();
    let expected = [
        ("standard", Fit::StandardizedOnBoth),
        ("apart", Fit::StandardizedApart),
        ("range", Fit::RangeOfBoth),
        ("range_two", Fit::RangeOfBoth),
        ("ranks", Fit::RanksOfBoth),
    ];
    assert_eq!(found, expected);
    assert_eq!(warned(&results, "leakage.preprocessing").len(), 5);
}

/// Proves that conflicting labels are counted within each side and across, and that missing labels conflict with none.
#[test]
fn labels_that_conflict() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.csv"), "a,b,y\n1,x,0\n1,x,1\n2,y,1\n2,y,\n3,z,1\n").unwrap();
    std::fs::write(folder.path().join("b.csv"), "a,b,y\n3,z,0\n4,w,1\n4,w,1\n").unwrap();
    let (leakage, results) = look_in(folder.path(), ["a.csv", "b.csv"], &y());
    let rows = &leakage.overlap.rows;
    assert_eq!((rows.train_duplicates.conflicting_share, rows.test_duplicates.conflicting_share), (0.4, 0.0));
    let conflicts = result(&results, "leakage.conflicts");
    let counts: Vec<_> = conflicts.findings.iter().map(|finding| finding.count.unwrap()).collect();
    assert_eq!((conflicts.verdict, counts.as_slice()), (Verdict::Warn, [1, 2].as_slice()));
}

/// Proves that groups and rows are compared by what the files have: ids beyond 64 bits and codes are never equal by rounding, the same
/// codes are found where one side alone shows that they are codes, and times in whole numbers are not rounded.
#[test]
fn sides_are_compared_by_what_the_files_have() {
    let folder = tempfile::tempdir().unwrap();
    let shared = |train: &str, test: &str| {
        let rows = |values: &str| -> String { values.split(' ').map(|it| format!("{it},{it}\n")).collect() };
        std::fs::write(folder.path().join("a.csv"), format!("g,v\n{}", rows(train))).unwrap();
        std::fs::write(folder.path().join("b.csv"), format!("g,v\n{}", rows(test))).unwrap();
        let roles = Roles { group: Some("g".into()), time: Some("v".into()), ..Roles::default() };
        let (leakage, _) = look_in(folder.path(), ["a.csv", "b.csv"], &roles);
        let overlap = leakage.overlap;
        let later = overlap.time.map(|time| (time.test_rows_not_after, time.test_rows_equal));
        (overlap.groups.unwrap().shared_groups, overlap.rows.shared_rows, later)
    };
    let long = "18446744073709551617 18446744073709551618";
    assert_eq!(shared(long, "18446744073709551619 18446744073709551620"), (0, 0, None));
    assert_eq!(shared(long, "7 18446744073709551618"), (1, 1, None));
    assert_eq!(shared("18446744073709551617 7", "7 8"), (1, 1, None));
    assert_eq!(shared("007 10", "10 11"), (1, 1, None));
    assert_eq!(shared("007 10", "7 11"), (0, 0, None));
    assert_eq!(shared("9007199254740992 1", "9007199254740993 2"), (0, 0, Some((1, 0))));
}

/// Proves that equal rows, and other labels of them, are a note where columns of few values show as many if they are independent, and
/// a warning where they show more.
#[test]
fn what_independent_columns_explain_is_a_note() {
    let few = |seed: u64, rows: usize, values: u64, is_copied: bool| {
        let mut rng = SplitMix64::new(seed);
        let mut column =
            |count: u64| -> Vec<i64> { (0..rows).map(|_| below(&mut rng, count) as i64).collect() };
        let columns: Vec<Vec<i64>> = (0..4).map(|_| column(values)).collect();
        // The label of a row is that of the row 20 before, whose features it has where they are copied.
        let label = column(2);
        let copied = |values: &[i64]| -> Vec<i64> {
            (0..rows)
                .map(|row| values[if is_copied && row >= 20 && row % 3 == 0 { row - 20 } else { row }])
                .collect()
        };
        let table = Table::default().with("y", Column::Whole(label));
        (0..4).fold(table, |table, index| {
            table.with(["a", "b", "c", "d"][index], Column::Whole(copied(&columns[index])))
        })
    };
    let severities = |train: &Table, test: &Table| -> Vec<Severity> {
        let (_, results) = look(train, test, &y());
        let wanted =
            results.iter().filter(|it| matches!(it.name.as_str(), "leakage.rows" | "leakage.conflicts"));
        let findings = wanted.flat_map(|it| &it.findings);
        findings
            .filter(|it| matches!(it.check.as_str(), "leakage.rows" | "leakage.conflicts"))
            .map(|it| it.severity)
            .collect()
    };
    let found = severities(&few(1, 3_000, 5, false), &few(2, 600, 5, false));
    assert_eq!(
        found,
        [Severity::Note; 4],
        "rows, and labels across, within the training and within the test side"
    );
    let copied = severities(&few(3, 3_000, 40, true), &few(4, 600, 40, true));
    assert!(copied.contains(&Severity::Warn), "{copied:?}");
}

/// Proves on the Adult files as published that the two halves of an honest split raise no alarm about near rows,
/// features, identifiers and scales.
#[test]
fn adult_is_clean() {
    let Some(shared) = std::env::var_os("TRACKWAY_SHARED") else {
        trackway_skip::skip!("TRACKWAY_SHARED is not set");
        return;
    };
    let base = Path::new(&shared).join("data");
    let roles = Roles { label: Some("column_15".into()), ..Roles::default() };
    let (leakage, results) = look_in(&base, ["adult-train.csv", "adult-test.csv"], &roles);
    for name in ["leakage.target", "leakage.identifiers", "leakage.preprocessing", "leakage.near_duplicates"]
    {
        assert!(warned(&results, name).is_empty(), "{:?}", result(&results, name));
    }
    let near = leakage.near.unwrap();
    assert!(near.found.iter().all(|it| it.near_rows * 100 <= it.test_rows), "{near:?}");
}

/// Proves that the label as a feature, a recoded label, a test side of which every row is a training row and one of which a third
/// is block, the certain ones under their own name; and that a test side of few categories does not.
#[test]
fn what_leaves_no_doubt_has_its_own_name() {
    let of = |train: &Table, test: &Table| -> Vec<String> {
        let (_, results) = look(train, test, &y());
        let findings = results.iter().flat_map(|result| &result.findings);
        findings.filter(|it| it.severity == Severity::Block).map(|it| it.check.clone()).collect()
    };
    let with_copy = |seed: u64, rows: usize, recode: fn(i64) -> i64| {
        let mut table = clean(seed, rows, 4);
        let copied = labels(&table).iter().map(|it| recode(*it)).collect();
        table.0.insert(0, ("target".into(), Column::Whole(copied)));
        table
    };
    let copies = (with_copy(1, 900, |it| it), with_copy(2, 300, |it| it));
    assert_eq!(of(&copies.0, &copies.1), ["leakage.label_copy"]);
    let recoded = (with_copy(1, 900, |it| 1 - it), with_copy(2, 300, |it| 1 - it));
    assert_eq!(of(&recoded.0, &recoded.1), ["leakage.target"]);

    let part = |table: &Table, rows: std::ops::Range<usize>| {
        let column = |column: &Column| match column {
            Column::Numbers(values) => Column::Numbers(values[rows.clone()].to_vec()),
            Column::Whole(values) => Column::Whole(values[rows.clone()].to_vec()),
            Column::Texts(values) => Column::Texts(values[rows.clone()].to_vec()),
        };
        Table(table.0.iter().map(|(name, values)| (name.clone(), column(values))).collect())
    };
    let all = clean(3, 1_000, 4);
    assert_eq!(of(&all, &part(&all, 100..300)), ["leakage.all_rows"]);
    assert_eq!(of(&part(&all, 0..800), &part(&all, 700..1_000)), ["leakage.rows"], "100 of 300 rows");
    let few = |seed: u64, rows: usize| {
        let mut rng = SplitMix64::new(seed);
        let mut drawn = |count| (0..rows).map(|_| below(&mut rng, count) as i64).collect();
        Table::default()
            .with("a", Column::Whole(drawn(3)))
            .with("b", Column::Whole(drawn(2)))
            .with("y", Column::Whole(drawn(2)))
    };
    assert_eq!(of(&few(1, 1_000), &few(2, 300)), Vec::<String>::new(), "every combination is on both sides");
}
