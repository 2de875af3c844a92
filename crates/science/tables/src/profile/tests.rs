//! Tables in, profiles out: exact where promised, within bounds elsewhere, the same however the data is cut.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tempfile::TempDir;
use trackway_core::{Rng, SplitMix64};
use trackway_formats::runfile::DataSpec;

use super::*;
use crate::ReadContext;
use crate::pass::UNWATCHED;

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        fs::write(folder.path().join(path), text).unwrap();
    }
    folder
}

fn profile_of(base: &Path, path: &str, label: Option<&str>) -> Profile {
    let spec = DataSpec { path: path.into(), ..DataSpec::default() };
    let mut source = Source::open(base, "train", &spec, &ReadContext::default()).unwrap();
    Profile::of(&mut source, label, &UNWATCHED).unwrap().0
}

fn profile(text: &str, label: Option<&str>) -> Profile {
    profile_of(folder(&[("a.csv", text)]).path(), "a.csv", label)
}

fn top(column: &ColumnProfile) -> String {
    let values = column.top_values(20).into_iter().map(|it| format!("{}×{}", it.value, it.count));
    values.collect::<Vec<_>>().join(" ")
}

/// Proves every statistic of a small table against numbers worked out by hand.
#[test]
fn a_small_table_is_reported_exactly() {
    let text = "n,f,t,b,w\n3,1.5,AB-12,true,2026-01-01\n1,NaN,AB-34,false,2026-01-02T06:00:00\n2,inf,?,true,\n2,-0.0,,true,2026-01-03\noops,0,x,true,2026-01-04\n";
    // One text of five is too many for a column of numbers, so more numbers follow.
    let more: String = (0..20).map(|_| "2,0.5,AB-12,true,2026-02-01\n").collect();
    let profile = profile(&format!("{text}{more}"), None);
    let summary = |name: &str| profile.column(name).unwrap().summary();
    let n = summary("n");
    assert_eq!(
        (n.rows, n.null_count, n.faults.misfits, n.faults.examples[0].detail.as_str()),
        (25, 0, 1, "oops")
    );
    assert_eq!((n.min, n.max, n.distinct_estimate), (Some(Value::Int(1)), Some(Value::Int(3)), 3));
    assert_eq!((n.mean, n.negative_count, n.zero_count), (Some(2.0), 0, 0));
    assert!((n.stddev.unwrap() - (2.0f64 / 23.0).sqrt()).abs() < 1e-12);
    assert_eq!(top(profile.column("n").unwrap()), "2×22 1×1 3×1");
    let order = n.order.unwrap();
    assert_eq!((order.rises, order.falls, order.ties), (1, 1, 21));
    let f = summary("f");
    assert_eq!((f.nan_count, f.infinite_count, f.zero_count, f.negative_count), (1, 1, 2, 0));
    assert_eq!(top(profile.column("f").unwrap()), "0.5×20 0×2 1.5×1 inf×1");
    assert_eq!((f.min, f.max), (Some(Value::Float(0.0)), Some(Value::Float(1.5))));
    let t = summary("t");
    assert_eq!((t.null_count, t.faults.missing_strings["?"], t.faults.missing_strings[""]), (2, 1, 1));
    assert_eq!(top(profile.column("t").unwrap()), "AB-12×21 AB-34×1 x×1");
    assert_eq!(t.lengths.as_ref().map(|it| (it.min, it.median, it.max, it.empty)), Some((1, 5, 5, 0)));
    assert_eq!(t.patterns.unwrap().top[0].value, Value::Text("AA-99".into()));
    let b = summary("b");
    assert_eq!((b.mean, top(profile.column("b").unwrap())), (Some(24.0 / 25.0), "true×24 false×1".into()));
    let w = summary("w");
    assert_eq!(w.min, Some(Value::Text("2026-01-01".into())));
    assert_eq!(w.top_values[2].value, Value::Text("2026-01-02T06:00:00Z".into()));
    assert!(w.order.unwrap().falls == 0 && w.mean.is_none());
}

/// A table with a column of each kind, few and many values, missing ones, and a label.
fn table(rows: usize, seed: u64) -> Vec<String> {
    let mut random = SplitMix64::new(seed);
    let mut row = |index: usize| {
        let mut pick = |count: u64| random.next_u64() % count;
        let class = pick(3);
        let (number, share) = (pick(100_000), pick(1_000_000) as f64 / 997.0);
        let missing = if pick(10) == 0 { String::new() } else { format!("w{}", pick(40) + class) };
        format!(
            "{index},{number},{share},{},{missing},{},c{class}\n",
            class as f64 + share / 1e4,
            pick(2) == 1
        )
    };
    (0..rows).map(&mut row).collect()
}

const HEADER: &str = "id,number,share,near,word,flag,label\n";

/// What must be equal in two profiles of the same rows, however they were cut.
fn exact_part(profile: &Profile) -> String {
    let column = |column: &ColumnProfile| {
        let it = column.summary();
        let values = if it.distinct_is_exact { top(column) } else { String::new() };
        let lengths = it.lengths.map(|it| (it.min, it.max, it.median, it.empty));
        let counts =
            (it.rows, it.null_count, it.nan_count, it.zero_count, it.negative_count, it.distinct_is_exact);
        let order = it.order.map(|it| (it.rises, it.falls, it.ties));
        format!("{} {counts:?} {:?} {:?} {order:?} {lengths:?} {values}", it.name, it.min, it.max)
    };
    profile.columns.iter().map(column).collect::<Vec<_>>().join("\n")
}

fn assert_near(one: &Profile, other: &Profile) {
    for (one, other) in one.columns.iter().zip(&other.columns) {
        let (one, other) = (one.summary(), other.summary());
        for (one, other) in
            [(one.mean, other.mean), (one.stddev, other.stddev), (one.skewness, other.skewness)]
        {
            assert!(
                one.zip(other).is_none_or(|(one, other)| (one - other).abs() <= 1e-9 * (1.0 + one.abs()))
            );
        }
        let (few, many) = (
            one.distinct_estimate.min(other.distinct_estimate),
            one.distinct_estimate.max(other.distinct_estimate),
        );
        assert!(many - few <= 1 + many / 50, "{}: {few} {many}", one.name);
        let value = |association: Option<Association>| association.map_or(0.0, |it| it.value);
        assert!((value(one.label_association) - value(other.label_association)).abs() < 1e-9, "{}", one.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    /// Proves that merging the profiles of parts is profiling the whole, that a stored profile comes back as it was,
    /// and that what comes back merges like what was stored.
    #[test]
    fn merged_profiles_are_the_profile_of_the_whole(rows in 1usize..3000, cut in 0.0f64..1.0, seed in any::<u64>()) {
        let rows = table(rows, seed);
        let cut = (rows.len() as f64 * cut) as usize;
        let text = |rows: &[String]| format!("{HEADER}{}", rows.concat());
        let whole = profile(&text(&rows), Some("label"));
        let mut merged = profile(&text(&rows[..cut]), Some("label"));
        let later = profile(&text(&rows[cut..]), Some("label"));
        let stored: Vec<String> = [&merged, &later].iter().map(|it| serde_json::to_string(it).unwrap()).collect();
        merged.merge(later).unwrap();
        prop_assert_eq!(exact_part(&merged), exact_part(&whole));
        assert_near(&merged, &whole);
        prop_assert_eq!(exact_part(&Profile::from_json(&serde_json::to_string(&whole).unwrap()).unwrap()), exact_part(&whole));
        let mut back = Profile::from_json(&stored[0]).unwrap();
        back.merge(Profile::from_json(&stored[1]).unwrap()).unwrap();
        prop_assert_eq!(exact_part(&back), exact_part(&whole));
        assert_near(&back, &whole);
    }
}

/// Proves that the label's relations are found: none for noise, full for a copy, and by the right measure.
#[test]
fn relations_to_the_label_are_found() {
    let rows: String = table(5000, 3).concat();
    let profile = profile(&format!("{HEADER}{rows}"), Some("label"));
    let found = |name: &str| profile.column(name).unwrap().summary().label_association.unwrap();
    assert!(found("number").value < 0.06 && found("flag").value < 0.06);
    assert_eq!(found("near").measure, AssociationMeasure::CorrelationRatio);
    assert!(found("near").value > 0.99);
    assert_eq!((found("word").measure, found("word").value > 0.02), (AssociationMeasure::CramersV, true));
    let numeric =
        profile_of(folder(&[("a.csv", "x,y,l\n1,a,2\n2,b,4\n3,a,6\n4,b,8.5\n")]).path(), "a.csv", Some("l"));
    let x = numeric.column("x").unwrap().summary().label_association.unwrap();
    assert_eq!(x.measure, AssociationMeasure::Pearson);
    assert!(x.value > 0.99);
}

/// Proves that a column which is whole numbers in one part and floats, or strings, in another is still counted as one.
#[test]
fn parts_with_other_types_merge() {
    let mut one = profile("a\n1\n2\n2\n", None);
    one.merge(profile("a\n2\n2.5\n", None)).unwrap();
    assert_eq!(top(&one.columns[0]), "2×3 1×1 2.5×1");
    assert_eq!(one.columns[0].summary().max, Some(Value::Float(2.5)));
    one.merge(profile("a,b\nx,1\ny,1\n2,1\n", None)).unwrap();
    assert_eq!(top(&one.columns[0]), "2×4 1×1 2.5×1 x×1 y×1");
    assert_eq!((one.columns[1].rows, one.columns[1].null_count, one.rows), (8, 5, 8));
    let other_label = profile("a,b\n1,2\n", Some("b"));
    assert!(matches!(one.merge(other_label), Err(ProfileError::Label { .. })));
    let old = serde_json::to_string(&one).unwrap().replacen("\"version\":1", "\"version\":0", 1);
    assert!(matches!(Profile::from_json(&old), Err(ProfileError::Version { found: 0 })));
}

/// Proves that a stored column stays small with as many different values as rows.
#[test]
fn a_stored_column_stays_small() {
    let rows: String =
        (0..60_000).map(|row| format!("{row},{},name of row {row}\n", f64::from(row) * 1.37)).collect();
    let profile = profile(&format!("a,b,c\n{rows}"), None);
    for column in &profile.columns {
        let stored = serde_json::to_string(column).unwrap();
        assert!(stored.len() < 100_000, "{}: {}", column.name, stored.len());
        let distinct = column.summary().distinct_estimate as f64;
        assert!((distinct / 60_000.0 - 1.0).abs() < 4.0 * DISTINCT_STANDARD_ERROR);
    }
}

/// Proves on the published Adult files (if they are there) that the profiles show what is wrong: the two files' labels
/// differ, and `?` is used for missing values.
#[test]
fn the_adult_files_show_their_labels() {
    let shared = std::env::var("TRACKWAY_SHARED")
        .unwrap_or(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared").into());
    let folder = Path::new(&shared).join("data");
    if !folder.join("adult-train.csv").exists() {
        trackway_skip::skip!("no Adult data in TRACKWAY_SHARED");
        return;
    }
    let train = profile_of(&folder, "adult-train.csv", Some("column_15"));
    let test = profile_of(&folder, "adult-test.csv", Some("column_15"));
    assert_eq!(top(&train.columns[14]), "<=50K×24720 >50K×7841");
    assert_eq!(top(&test.columns[14]), "<=50K.×12435 >50K.×3846");
    let age = train.columns[0].summary();
    assert_eq!((age.min, age.max), (Some(Value::Int(17)), Some(Value::Int(90))));
    assert!(
        (age.mean.unwrap() - 38.581_646_755_32).abs() < 1e-9
            && (age.stddev.unwrap() - 13.640_432_553_58).abs() < 1e-9
    );
    assert_eq!((train.columns[1].null_count, train.columns[1].faults.missing_strings["?"]), (1836, 1836));
    assert!(train.columns[7].summary().label_association.unwrap().value > 0.4);
}

/// Proves that a table so wide that its columns are read in groups has the very profile of a narrow one in each column,
/// the label's correlations included, and that every row is accounted for once.
#[test]
fn a_wide_table_is_profiled_in_groups() {
    let rows = 120;
    let folder = tempfile::tempdir().unwrap();
    let cell = |row: usize, column: usize| ((row * 31 + column * 7) % 97) as f64;
    let write = |name: &str, columns: usize| {
        let mut text: Vec<String> = (0..columns).map(|column| format!("c{column}")).collect();
        text.push("label".into());
        let mut text = text.join(",") + "\n";
        for row in 0..rows {
            let cells: Vec<String> = (0..columns).map(|column| cell(row, column).to_string()).collect();
            text += &format!("{},{}\n", cells.join(","), ["no", "yes"][row % 2]);
        }
        text += "short\n";
        std::fs::write(folder.path().join(name), text).unwrap();
        let spec = DataSpec { path: name.into(), ..DataSpec::default() };
        let mut source = Source::open(folder.path(), "data", &spec, &ReadContext::default()).unwrap();
        Profile::of(&mut source, Some("label"), &UNWATCHED).unwrap()
    };
    let (wide, account) = write("wide.csv", 2_000);
    let (narrow, _) = write("narrow.csv", 40);
    assert_eq!((wide.rows, wide.rows_rejected, wide.columns.len()), (rows as u64, 1, 2_001));
    assert_eq!((account.rows_read, account.columns.len()), (rows as u64, 2_001));
    for index in [0, 7, 39] {
        assert_eq!(wide.columns[index].summary(), narrow.columns[index].summary());
    }
    assert_eq!(wide.columns[2_000].summary(), narrow.columns[40].summary());
    assert!(wide.columns[1_999].summary().label_association.is_some());
}

/// Proves that a column that keeps less than others, as in the widest tables, still has exact counts, bounds and
/// moments, states how exact the rest is, keeps to that, and can be stored and merged.
#[test]
fn a_finished_column_says_how_exact_it_is() {
    let rows = 50_000;
    let lines: String =
        (0..rows).map(|row| format!("{}.5,t{},{}\n", row * 7919 % rows, row % 9_000, row % 200)).collect();
    let whole = profile(&format!("n,t,few\n{lines}"), None);
    let mut less = whole.clone();
    less.columns.iter_mut().for_each(|column| column.finish(FinishedRoom::of(10_000)));
    for (whole, less) in whole.columns.iter().zip(&less.columns) {
        let (whole, less) = (whole.summary(), less.summary());
        assert_eq!((whole.min, whole.max, whole.mean), (less.min, less.max, less.mean));
        assert_eq!((whole.rows, whole.distinct_estimate), (less.rows, less.distinct_estimate));
        for quantile in &less.quantiles {
            let Value::Float(value) = quantile.value else { continue };
            let error = (value / f64::from(rows) - quantile.fraction).abs();
            assert!(error <= less.quantile_rank_error + 1.0 / f64::from(rows), "{quantile:?}");
        }
    }
    assert_eq!(less.columns[0].summary().quantile_rank_error, 4.0 * QUANTILE_RANK_ERROR);
    assert!(less.columns[2].values_are_exact() && less.columns[2].summary().distinct_is_exact);
    let stored = serde_json::to_string(&less).unwrap();
    let mut back = Profile::from_json(&stored).unwrap();
    assert_eq!(back.columns[0].summary(), less.columns[0].summary());
    back.merge(whole).unwrap();
    assert_eq!(back.columns[0].summary().quantile_rank_error, 4.0 * QUANTILE_RANK_ERROR);
}
