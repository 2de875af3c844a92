use std::fmt::Write as _;
use std::fs;

use proptest::prelude::*;
use trackway_core::{Rng, SplitMix64};
use trackway_tables::pass::UNWATCHED;
use trackway_tables::read::Source;
use trackway_tables::{DataSpec, ReadContext};

use super::*;
use crate::model::{Cells, Frame, FrameColumn};

/// The profile of a CSV text, label or not.
fn profile(text: &str) -> Profile {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.csv"), text).unwrap();
    let spec = DataSpec { path: "a.csv".into(), ..DataSpec::default() };
    let mut source = Source::open(folder.path(), "train", &spec, &ReadContext::default()).unwrap();
    Profile::of(&mut source, None, &UNWATCHED).unwrap().0
}

fn normal(rng: &mut SplitMix64) -> f64 {
    (0..12).map(|_| rng.next_unit()).sum::<f64>() - 6.0
}

/// Rows of one column made by `value`, with another one beside it: a line of nothing would be no row.
fn column(seed: u64, rows: usize, value: impl Fn(&mut SplitMix64) -> String) -> Profile {
    let mut rng = SplitMix64::new(seed);
    let mut text = "v,w\n".to_owned();
    (0..rows).for_each(|_| writeln!(text, "{},1", value(&mut rng)).unwrap());
    profile(&text)
}

fn drift(before: &Profile, after: &Profile) -> ColumnDrift {
    let report = compare(before, after, None);
    report.columns.into_iter().next().unwrap()
}

fn shifted(mean: f64, deviation: f64) -> impl Fn(&mut SplitMix64) -> String {
    move |rng| format!("{:.6}", mean + deviation * normal(rng))
}

fn chosen(shares: &'static [(&'static str, f64)]) -> impl Fn(&mut SplitMix64) -> String {
    move |rng| {
        let mut unit = rng.next_unit();
        let found = shares.iter().find(|(_, share)| {
            unit -= share;
            unit < 0.0
        });
        found.unwrap_or(&shares[0]).0.to_owned()
    }
}

/// Proves that planted shifts of numbers are found, in small and in large samples, by the test for the size.
#[test]
fn shifted_numbers() {
    for (rows, test) in [(2_000, DriftTest::KolmogorovSmirnov), (60_000, DriftTest::Wasserstein)] {
        let before = column(1, rows, shifted(10.0, 2.0));
        for (mean, deviation) in [(11.0, 2.0), (10.0, 3.0), (9.2, 2.0)] {
            let found = drift(&before, &column(2, rows, shifted(mean, deviation)));
            assert_eq!((found.test, found.drifted), (test, true), "{found:?}");
            assert!(found.adjusted_p_value < 1e-6 && found.noise < 0.1);
        }
        let found = drift(&before, &column(3, rows, shifted(10.0, 2.0)));
        assert!(!found.drifted && found.new_values.is_empty(), "{found:?}");
    }
    let (before, after) = (column(1, 60_000, shifted(10.0, 2.0)), column(4, 60_000, shifted(10.08, 2.0)));
    let found = drift(&before, &after);
    assert!(!found.drifted && found.p_value < 0.01, "no chance, but too small to matter: {found:?}");
}

/// Proves that planted shifts of categories are found, that new and gone values are reported, and that a rare new value
/// alone is not drift of a feature.
#[test]
fn shifted_categories() {
    let before = column(1, 5_000, chosen(&[("a", 0.6), ("b", 0.3), ("c", 0.1)]));
    let found = drift(&before, &column(2, 5_000, chosen(&[("a", 0.4), ("b", 0.3), ("d", 0.3)])));
    assert_eq!((found.test, found.drifted), (DriftTest::JensenShannon, true));
    let summary = |values: &[trackway_tables::profile::ValueCount]| {
        values.iter().map(|it| it.value.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(
        (summary(&found.new_values), summary(&found.removed_values)),
        (vec!["d".to_owned()], vec!["c".to_owned()])
    );
    let found =
        drift(&before, &column(3, 5_000, chosen(&[("a", 0.598), ("b", 0.3), ("c", 0.1), ("d", 0.002)])));
    assert_eq!((found.drifted, summary(&found.new_values)), (false, vec!["d".to_owned()]));
    let small = column(4, 300, chosen(&[("a", 0.2), ("b", 0.3), ("c", 0.5)]));
    let found = drift(&before, &small);
    assert_eq!((found.test, found.drifted), (DriftTest::CramersV, true));
}

/// Proves that many values are compared by the frequent ones, and that numbers with few values are categories.
#[test]
fn many_and_few_values() {
    let many = |seed, popular: f64| {
        column(seed, 50_000, move |rng| match rng.next_unit() < popular {
            true => "popular".to_owned(),
            false => format!("user{}", rng.next_u64() % 800),
        })
    };
    let found = drift(&many(1, 0.1), &many(2, 0.2));
    assert_eq!((found.test, found.drifted), (DriftTest::LInfinity, true), "{found:?}");
    assert!(!drift(&many(1, 0.1), &many(3, 0.1)).drifted);
    let dice = |seed, sides: u64| column(seed, 5_000, move |rng| (rng.next_u64() % sides).to_string());
    let found = drift(&dice(1, 6), &dice(2, 8));
    assert_eq!((found.test, found.drifted, found.new_values.len()), (DriftTest::JensenShannon, true, 2));
    assert!(!drift(&dice(1, 6), &dice(3, 6)).drifted);
}

/// Proves that a sample of the rows leads to the same verdicts as all of them, that its size is reported, and that
/// missing values, NaN among them, and strings are counted in every row.
#[test]
fn a_sample_of_the_rows() {
    let rows = 40_000;
    let folder = tempfile::tempdir().unwrap();
    let read = |seed: u64, shift: f64, sampled: Option<u64>| {
        let mut rng = SplitMix64::new(seed);
        let mut text = "same,shifted,some,dice,plan\n".to_owned();
        for row in 0..rows {
            let some = [normal(&mut rng).to_string(), "nan".into(), String::new()][row % 10 % 3].clone();
            let (dice, plan) = (rng.next_u64() % 6, if row == 7 { "rare" } else { "usual" });
            let (same, shifted) = (normal(&mut rng), shift + normal(&mut rng));
            writeln!(text, "{same},{shifted},{some},{dice},{plan}").unwrap();
        }
        let name = format!("{seed}.csv");
        fs::write(folder.path().join(&name), text).unwrap();
        let spec = DataSpec { path: name, ..DataSpec::default() };
        let mut source = Source::open(folder.path(), "train", &spec, &ReadContext::default()).unwrap();
        match sampled {
            None => Profile::of(&mut source, None, &UNWATCHED).unwrap().0,
            Some(rows_min) => Profile::sampled(&mut source, rows_min, &UNWATCHED).unwrap(),
        }
    };
    for (shift, drifted) in [(0.0, 0), (0.3, 1)] {
        let verdicts = |sampled| {
            let report = compare(&read(1, 0.0, sampled), &read(2, shift, sampled), None);
            assert_eq!((report.reference_rows, report.current_rows), (rows as u64, rows as u64));
            let summary: Vec<_> = report.columns.iter().map(|it| (it.name.clone(), it.drifted)).collect();
            (report.drifted_features, summary, report.reference_rows_sampled)
        };
        let (all, some) = (verdicts(None), verdicts(Some(3_000)));
        assert_eq!((all.0, &all.1, all.2), (drifted, &some.1, None));
        assert!(some.2.is_some_and(|looked_at| (3_000..rows as u64 / 2).contains(&looked_at)), "{some:?}");
    }
    let (all, some) = (read(1, 0.0, None), read(1, 0.0, Some(3_000)));
    for name in ["same", "some", "dice", "plan"] {
        let (all, some) = (all.column(name).unwrap(), some.column(name).unwrap());
        assert_eq!((all.null_count, all.nan_count()), (some.null_count, some.nan_count()), "{name}");
    }
    assert_eq!(all.column("plan"), some.column("plan"));
    let shares =
        |profile: &Profile| profile.column("same").unwrap().quantile_sketch().unwrap().at(&[0.1, 0.5, 0.9]);
    let pairs = shares(&all).unwrap().into_iter().zip(shares(&some).unwrap());
    pairs.for_each(|(all, some)| assert!((all - some).abs() < 0.06, "{all} {some}"));
    assert_eq!(read(1, 0.0, Some(3_000)), some, "chance is seeded");
}

/// Proves that missing values are compared separately, NaN and infinity among them.
#[test]
fn missing_values() {
    let with_missing =
        |seed, share: f64, text: &'static str| {
            column(seed, 3_000, move |rng| {
                if rng.next_unit() < share { text.into() } else { format!("{:.4}", normal(rng)) }
            })
        };
    let before = with_missing(1, 0.05, "");
    for text in ["", "NaN", "inf"] {
        let found = drift(&before, &with_missing(2, 0.15, text));
        assert!(found.missing.drifted && found.drifted && found.statistic < found.threshold, "{found:?}");
    }
    assert!(!drift(&before, &with_missing(3, 0.05, "")).drifted);
}

/// Proves that a label with a value that is not in the training data has drifted, and that a mere full stop is called
/// spelling.
#[test]
fn labels() {
    let before = profile("age,y\n1,<=50K\n2,>50K\n3,<=50K\n");
    let after = profile("age,y\n1,<=50K.\n2,>50K.\n3,<=50K.\n");
    let report = compare(&before, &after, Some("y"));
    assert_eq!((report.label_drifted, report.drifted_features), (Some(true), 0));
    assert!(report.columns[1].only_spelling && report.columns[1].role == Role::Label);
}

/// Proves that columns of one side only, and of another type, are reported; and that neither numbers that are not whole nor
/// a side without a value are another type.
#[test]
fn changed_schemas() {
    let before = profile("a,b,c,e\n1,x,,1\n2,y,,2\n");
    let after = profile("a,c,d,e\nx,5,1,1.5\ny,6,2,2\n");
    let report = compare(&before, &after, None);
    let summary: Vec<_> =
        report.schema_changes.iter().map(|it| (it.name.as_str(), it.reference, it.current)).collect();
    let (text, int) = (Some(ColumnType::Text), Some(ColumnType::Int));
    assert_eq!(summary, [("a", int, text), ("b", text, None), ("d", None, int)]);
    let came = report.columns.iter().find(|column| column.name == "c").unwrap();
    assert_eq!((came.test, came.statistic), (DriftTest::MissingFraction, 1.0));
    assert_eq!(report.blocked_by, ["1 column is gone", "1 column changed its type"]);
}

/// Proves that a column without a value on both sides is unchanged, whatever its type, that one that lost all its values
/// has drifted and blocks, and that one that got some has only drifted: none of them changed its type.
#[test]
fn columns_without_values() {
    let table = |empty: &str, lost: &str| -> Profile {
        let row = |row: usize| format!("{},{empty},{lost}\n", row % 7);
        profile(&format!("a,empty,lost\n{}", (0..200).map(row).collect::<String>()))
    };
    for nothing in ["", "NaN"] {
        let (one, other) = (table(nothing, "x"), table(nothing, "x"));
        let report = compare(&one, &other, None);
        assert_eq!((report.verdict, report.schema_changes.len()), (trackway_core::checks::Verdict::Pass, 0));
        let apart: Vec<_> = report.set_apart.iter().map(|it| (it.name.as_str(), it.reason)).collect();
        assert_eq!(apart, [("empty", ApartReason::NoValues)], "{nothing}");
    }
    let (with, without) = (table("", "x"), table("", ""));
    let lost = compare(&with, &without, None);
    assert_eq!(lost.blocked_by[0], "1 column lost all its values", "{lost:?}");
    assert!(lost.schema_changes.is_empty());
    let found = lost.columns.iter().find(|column| column.name == "lost").unwrap();
    assert!(found.is_emptied() && found.drifted && !found.values_drifted(), "{found:?}");
    let got = compare(&without, &with, None);
    let found = got.columns.iter().find(|column| column.name == "lost").unwrap();
    assert!(found.drifted && !found.is_emptied() && got.schema_changes.is_empty(), "{found:?}");
}

/// Proves that categories that were all replaced drift, few or many, in few or many rows, with the fraction of rows and how many
/// values there are; and that a fifth that was replaced does too, where no single fraction changed much.
#[test]
fn replaced_categories() {
    let of = |name: &'static str, values: u64| {
        move |rng: &mut SplitMix64| format!("{name}{}", rng.next_u64() % values)
    };
    for (values, before, after) in [(30, 300, 100), (60, 5_000, 5_000), (150, 4_000, 4_000)] {
        let found = drift(&column(1, before, of("old", values)), &column(2, after, of("new", values)));
        let unknown = found.unknown.unwrap();
        assert!(found.drifted && unknown.drifted && unknown.fraction == 1.0, "{found:?}");
        assert!(found.new_value_count > 10 && found.new_values.len() == 10, "{found:?}");
        let same = drift(&column(1, before, of("old", values)), &column(2, after, of("old", values)));
        assert!(!same.drifted, "{same:?}");
    }
    let partly = |seed| {
        column(seed, 5_000, move |rng| match rng.next_unit() < 0.2 {
            true => format!("new{}", rng.next_u64() % 40),
            false => format!("old{}", rng.next_u64() % 60),
        })
    };
    let found = drift(&column(1, 5_000, of("old", 60)), &partly(2));
    assert!(found.unknown_drifted() && (0.18..0.22).contains(&found.unknown.unwrap().fraction), "{found:?}");
}

/// Proves that more values than are kept are found to be replaced too, by sketches of which there are, and that the same
/// values are not.
#[test]
fn very_many_replaced_categories() {
    let of = |name: &'static str| move |rng: &mut SplitMix64| format!("{name}{}", rng.next_u64() % 2_500);
    let before = column(1, 40_000, of("old"));
    let found = drift(&before, &column(2, 40_000, of("new")));
    let unknown = found.unknown.unwrap();
    assert!(found.drifted && !unknown.is_exact && unknown.fraction > 0.9, "{found:?}");
    let same = drift(&before, &column(3, 40_000, of("old")));
    assert!(!same.drifted && same.unknown.is_none(), "{same:?}");
}

/// Proves that identifiers, times and free texts are set apart with the reason, that nothing of them blocks, and that a
/// birth date and prices are compared.
#[test]
fn what_is_set_apart() {
    let table = |seed: u64, start: usize, rows: usize| -> Profile {
        let mut rng = SplitMix64::new(seed);
        let mut text = "id,code,customer_id,seen,born_on,note,price,x\n".to_owned();
        for row in start..start + rows {
            let (year, day) = (1950 + rng.next_u64() % 50, 1 + rng.next_u64() % 28);
            let customer = start / 2 + (rng.next_u64() % 80) as usize;
            let price = 1_000 + (row * 7_919) % 100_003 * 11;
            writeln!(
                text,
                "{row},K-{:05},{customer},2026-{:02}-{:02}T{:02}:00:00Z,{year}-06-{day:02},a text {} of {seed},{price},{}",
                row * 3,
                1 + row / 300,
                1 + row % 300 / 12,
                row % 12,
                rng.next_u64(),
                rng.next_u64() % 5
            )
            .unwrap();
        }
        profile(&text)
    };
    let report = compare(&table(1, 0, 600), &table(2, 600, 600), None);
    let apart: Vec<_> = report.set_apart.iter().map(|it| (it.name.as_str(), it.reason)).collect();
    let expected = [
        ("id", ApartReason::Identifier),
        ("code", ApartReason::Identifier),
        ("customer_id", ApartReason::Identifier),
        ("seen", ApartReason::Time),
        ("note", ApartReason::FreeText),
    ];
    assert_eq!(apart, expected, "{:#?}", report.set_apart);
    assert_eq!(report.verdict, trackway_core::checks::Verdict::Pass, "{report:#?}");
    let compared: Vec<&str> = report.columns.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(compared, ["born_on", "price", "x"]);
    let why = |name: &str| &report.set_apart.iter().find(|it| it.name == name).unwrap().why;
    assert_eq!(why("id"), "every row has a different value (its name, numbers without gaps, its order)");
    assert!(
        why("seen").contains("its order") && why("customer_id").starts_with("named like an identifier"),
        "{report:?}"
    );
}

/// Proves that columns are left out on request, on whichever side they are, and by their role in a run file.
#[test]
fn columns_that_are_known() {
    let rows = |shift: usize| {
        (0..300).map(|row| format!("{},{},{}\n", row % 50 + shift, row % 9, row % 4)).collect::<String>()
    };
    let (before, after) = (profile(&format!("a,b,c\n{}", rows(0))), profile(&format!("a,b,d\n{}", rows(40))));
    let skip = ["a".to_owned(), "c".to_owned(), "d".to_owned()];
    let known = KnownColumns { skip: &skip, ..KnownColumns::default() };
    let report = compare_known(&before, &after, known);
    assert_eq!(report.verdict, trackway_core::checks::Verdict::Pass, "{report:?}");
    assert_eq!(report.set_apart.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["a", "c", "d"]);
    let timed = compare_known(&before, &after, KnownColumns { time: Some("a"), ..KnownColumns::default() });
    assert_eq!((timed.set_apart[0].name.as_str(), timed.set_apart[0].reason), ("a", ApartReason::Time));
    assert_eq!(timed.blocked_by, ["1 column is gone"]);
    assert_eq!(compare(&before, &after, None).blocked_by, ["1 column is gone", "1 of 2 features drifted"]);
}

/// Proves that of columns that did not change at most one in a hundred is called drifted: 1,200 columns of several
/// distributions and sizes.
#[test]
fn few_false_alarms() {
    let table = |seed: u64, rows: usize| {
        let mut rng = SplitMix64::new(seed);
        let mut text = (0..40).map(|index| format!("c{index}")).collect::<Vec<_>>().join(",") + "\n";
        for _ in 0..rows {
            let cell = |index: usize| match index % 4 {
                0 => format!("{:.4}", normal(&mut rng)),
                1 => format!("{:.4}", normal(&mut rng).exp()),
                2 => format!("v{}", (rng.next_unit().powi(3) * 12.0) as u64),
                _ => (rng.next_u64() % 1_000).to_string(),
            };
            text += &(0..40).map(cell).collect::<Vec<_>>().join(",");
            text.push('\n');
        }
        profile(&text)
    };
    let (mut columns, mut alarms) = (0, Vec::new());
    for (round, rows) in [100, 100, 400, 400, 1_500, 3_000].into_iter().cycle().take(30).enumerate() {
        let seed = round as u64 * 2;
        let report = compare(&table(seed, rows), &table(seed + 1, rows * 2 / 3), None);
        columns += report.columns.len();
        alarms.extend(
            report.columns.into_iter().filter(|it| it.drifted).map(|it| (rows, it.name, it.statistic)),
        );
    }
    assert!(columns == 1_200 && alarms.len() <= 12, "{} of {columns}: {alarms:?}", alarms.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// Proves that no pair of small tables makes the comparison panic, and that a table never drifts from itself.
    #[test]
    fn any_tables(one in "[a-c],[x-z]\n([0-9.-]{0,5},[a-zé ]{0,3}\n){0,12}", other in "[a-c],[x-z]\n([0-9.-]{0,5},[a-zé ]{0,3}\n){0,12}") {
        let (one, other) = (profile(&one), profile(&other));
        let _ = compare(&one, &other, Some("x"));
        let same = compare(&one, &one, Some("x"));
        prop_assert!(same.columns.iter().all(|column| !column.drifted));
    }
}

/// Rows of two numbers that depend on each other (or not), a category and a time that continues from `start`.
fn rows_of(seed: u64, rows: usize, together: f64, start: i64) -> Frame {
    let mut rng = SplitMix64::new(seed);
    let x: Vec<f64> = (0..rows).map(|_| normal(&mut rng)).collect();
    let y = x.iter().map(|x| together * x + (1.0 - together * together).sqrt() * normal(&mut rng)).collect();
    let city: Vec<&str> =
        (0..rows).map(|_| ["oslo", "riga", "bern"][(rng.next_u64() % 3) as usize]).collect();
    let time = (0..rows as i64).map(|row| (start + row) as f64).collect();
    let column = |name: &str, kind, cells| FrameColumn { name: name.into(), kind, cells };
    Frame::of_columns(vec![
        column("x", ColumnType::Float, Cells::Numbers(x)),
        column("y", ColumnType::Float, Cells::Numbers(y)),
        column("city", ColumnType::Text, Cells::of_texts(city.into_iter().map(Some))),
        column("seen_at", ColumnType::Int, Cells::Numbers(time)),
    ])
}

fn joint(before: &Frame, after: &Frame) -> JointDrift {
    joint_drift_of(before, after, KnownColumns::default(), &[]).unwrap()
}

/// Proves that a change in how columns depend on each other is found though each column is as before, that the columns
/// which show it are named, and that a time which separates the sides by itself is left out and named.
#[test]
fn a_joint_shift_is_found() {
    let found = joint(&rows_of(1, 2_000, 0.9, 0), &rows_of(2, 2_000, 0.0, 2_000));
    assert!(
        found.drifted && found.area > 0.7 && found.interval.low > 0.65 && found.interval.low < found.area,
        "{found:?}"
    );
    let names: Vec<&str> = found.columns.iter().map(|it| it.name.as_str()).collect();
    assert!(names.contains(&"x") && names.contains(&"y") && !names.contains(&"seen_at"), "{names:?}");
    assert!(found.skipped[0].contains("`seen_at` alone"), "{:?}", found.skipped);
}

/// Proves that a column which names rows is left out and named, though its values are others on both sides.
#[test]
fn identifiers_are_no_joint_shift() {
    let folder = tempfile::tempdir().unwrap();
    let source = |name: &str, seed: u64, series: &[&str]| {
        let mut rng = SplitMix64::new(seed);
        let mut text = "x,order\n".to_owned();
        for row in 0..800 {
            let (x, series) = (normal(&mut rng), series[row % series.len()]);
            writeln!(text, "{x},{series}-{:08x}", rng.next_u64() as u32).unwrap();
        }
        fs::write(folder.path().join(name), text).unwrap();
        let spec = DataSpec { path: name.into(), ..DataSpec::default() };
        Source::open(folder.path(), "train", &spec, &ReadContext::default()).unwrap()
    };
    let (mut before, mut after) = (source("a.csv", 1, &["ax", "bx"]), source("b.csv", 2, &["bx", "cx"]));
    let found = joint_drift(&mut before, &mut after, KnownColumns::default(), &UNWATCHED).unwrap();
    assert!(!found.drifted, "{found:?}");
    assert_eq!(found.skipped, ["`order` is different in each row"]);
}

/// Proves that rows of one distribution are not separated, in 24 pairs of samples, small ones included; and that too
/// few rows are refused.
#[test]
fn equal_distributions_do_not_drift() {
    for seed in 0..24 {
        let rows = [150, 400, 1_000][seed as usize % 3];
        let found = joint(&rows_of(100 + seed, rows, 0.5, 0), &rows_of(200 + seed, rows, 0.5, rows as i64));
        assert!(!found.drifted, "{seed}: {found:?}");
    }
    let few = joint_drift_of(&rows_of(1, 50, 0.0, 0), &rows_of(2, 500, 0.0, 0), KnownColumns::default(), &[]);
    assert!(matches!(few, Err(JointError::TooLittle(_))));
}

/// Proves the verdicts: nothing changed passes; a drifted feature of three warns; a column that is gone or of another
/// type, a label with new values, and half of the features blocks; a new column only warns.
#[test]
fn a_verdict_says_whether_the_data_still_fits() {
    use trackway_core::checks::Verdict;
    let table = |shift: [i64; 3], label: &str| -> String {
        let row = |row: i64| {
            let of = |at: usize| row * [37, 53, 71][at] % 101 + shift[at];
            format!("{},{},{},{}\n", of(0), of(1), of(2), if row % 2 == 0 { "yes" } else { label })
        };
        format!("a,b,c,y\n{}", (0..1_000).map(row).collect::<String>())
    };
    let before = profile(&table([0; 3], "no"));
    let verdict = |text: &str| compare(&before, &profile(text), Some("y")).verdict;
    let same = table([0; 3], "no");
    let without: String = same.lines().map(|line| format!("{}\n", line.split_once(',').unwrap().1)).collect();
    let with: String = same.lines().map(|line| format!("{line},7\n")).collect();
    assert_eq!(verdict(&same), Verdict::Pass);
    assert_eq!(verdict(&table([40, 0, 0], "no")), Verdict::Warn);
    assert_eq!(verdict(&table([40, 40, 0], "no")), Verdict::Block);
    assert_eq!(verdict(&table([0; 3], "no.")), Verdict::Block);
    assert_eq!(verdict(&without), Verdict::Block);
    assert_eq!(verdict(&with.replacen("y,7", "y,z", 1)), Verdict::Warn);
}
