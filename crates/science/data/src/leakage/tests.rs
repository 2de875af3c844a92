use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use tempfile::TempDir;
use trackway_tables::pass::UNWATCHED;
use trackway_tables::read::Source;
use trackway_tables::{DataError, DataSpec, ReadContext};

use super::duplicates::DuplicateCounts;
use super::overlap::{Lookup, OverlapMatches, TestRows};
use super::*;

fn folder(train: &str, test: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("train.csv"), train).unwrap();
    fs::write(folder.path().join("test.csv"), test).unwrap();
    folder
}

fn overlap(base: &Path, files: [&str; 2], roles: &Roles) -> Result<Overlap, DataError> {
    let open = |file: &str| {
        Source::open(
            base,
            file,
            &DataSpec { path: file.into(), ..DataSpec::default() },
            &ReadContext::default(),
        )
    };
    let (mut train, mut test) = (open(files[0])?, open(files[1])?);
    let columns = Columns::of(&train, &test, roles)?;
    let (seen, test_coverage) =
        scan(&mut test, &|source| TestRows::new(columns.places_in(source)), &UNWATCHED)?;
    let lookup = Lookup::of(&seen);
    let met = |source: &Source| OverlapMatches::new(columns.places_in(source), &lookup);
    let (met, train_coverage) = scan(&mut train, &met, &UNWATCHED)?;
    Ok(Overlap::of(&seen, &met, &columns, [train_coverage, test_coverage]))
}

fn roles(label: &str, group: &str, time: &str) -> Roles {
    let role = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    Roles { label: role(label), group: role(group), time: role(time), ignored: Vec::new() }
}

/// Proves that shared rows are found with and without the label, and shown with their places.
#[test]
fn rows_on_both_sides() {
    let folder = folder(
        "a,b,y\n1,x,0\n2,y,1\n2,y,0\n3,,1\n1,x,0\n",
        "b,a,y,extra\nx,1.0,0,9\ny,2,7,9\n,3,1,9\nz,4,1,9\n",
    );
    let found = overlap(folder.path(), ["train.csv", "test.csv"], &roles("y", "", "")).unwrap();
    let rows = &found.rows;
    assert_eq!((rows.test_rows, rows.shared_rows, rows.shared_with_label), (4, 3, 2));
    let examples: Vec<_> =
        rows.examples.iter().map(|it| (it.test.row, it.train.row, it.same_label)).collect();
    assert_eq!(examples, [(2, 2, true), (3, 3, false), (4, 5, true)]);
    assert_eq!((rows.train_duplicates.share, rows.train_duplicates.surplus_rows), (0.8, 2));
    assert_eq!((rows.train_duplicates.conflicting_share, rows.test_duplicates.conflicting_share), (0.4, 0.0));
    assert_eq!((found.groups, found.time, found.not_compared.len()), (None, None, 0));
    assert_eq!((found.train.rows_read, found.test.rows_read), (5, 4));
}

/// Proves that groups and timestamps on both sides are counted, that equal timestamps count, and that rows without
/// either count to none.
#[test]
fn groups_and_moments_on_both_sides() {
    let folder = folder(
        "user,at,v\nana,2024-01-01,1\nben,2024-01-02,2\n,2024-01-03,3\n",
        "user,at,v\nben,2024-01-03,4\nben,2024-01-04,5\ncem,2024-01-02,6\n,,7\n",
    );
    let found = overlap(folder.path(), ["train.csv", "test.csv"], &roles("", "user", "at")).unwrap();
    let groups = found.groups.unwrap();
    assert_eq!((groups.test_groups, groups.shared_groups, groups.test_rows_in_shared), (2, 1, 2));
    let time = found.time.unwrap();
    assert_eq!((time.test_rows_not_after, time.test_rows_equal, time.test_rows_timed), (2, 1, 3));
    assert!(time.train_last > time.test_first);
    assert_eq!(found.rows.shared_rows, 0);
}

/// Proves that formats do not matter, that columns of other types are left out and named, and that a column that is
/// not there is an error.
#[test]
fn columns_that_differ() {
    let folder = folder("k,v,w\n1,a,5\n2,b,6\n", "");
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("k", Arc::new(Float64Array::from(vec![2.0, 9.0]))),
        ("v", Arc::new(StringArray::from(vec!["b", "c"]))),
        ("w", Arc::new(StringArray::from(vec!["6", "7"]))),
        ("z", Arc::new(Int64Array::from(vec![0, 0]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = fs::File::create(folder.path().join("test.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let found = overlap(folder.path(), ["train.csv", "test.parquet"], &Roles::default()).unwrap();
    assert_eq!(found.rows.shared_rows, 1);
    assert_eq!(found.not_compared, ["`w` is int on one side and text on the other"]);
    let error = overlap(folder.path(), ["train.csv", "test.parquet"], &roles("vv", "", "")).unwrap_err();
    assert!(error.to_string().contains("label column `vv` is not in"), "{error}");
}

/// Proves that thinned counts of duplicates stay near the true ones, and that merged counts are those of the whole.
#[test]
fn duplicates_of_large_tables() {
    let key = trackway_formats::hash::hash_number;
    let fingerprints: Vec<u64> =
        (0..1_200_000u64).map(|row| key(if row < 600_000 { row / 2 } else { row })).collect();
    let mut whole = DuplicateCounts::default();
    whole.observe(&fingerprints, &[]);
    let (mut first, mut second) = (DuplicateCounts::default(), DuplicateCounts::default());
    first.observe(&fingerprints[..500_000], &[]);
    second.observe(&fingerprints[500_000..], &[]);
    first.merge(second);
    let (whole, merged) = (whole.duplicates(), first.duplicates());
    assert_eq!(whole, merged);
    assert!(!whole.exact && (whole.share - 0.5).abs() < 0.01, "{whole:?}");
    assert!((290_000..310_000).contains(&whole.surplus_rows), "{whole:?}");
}

/// Proves on the Adult files as published that common rows are found as a comparison of the strings finds them: 26 rows
/// have equal features, and no label agrees because the test file writes it with a full stop.
#[test]
fn adult_as_published() {
    let Some(shared) = std::env::var_os("TRACKWAY_SHARED") else {
        trackway_skip::skip!("TRACKWAY_SHARED is not set");
        return;
    };
    let base = Path::new(&shared).join("data");
    let found = overlap(&base, ["adult-train.csv", "adult-test.csv"], &roles("column_15", "", "")).unwrap();
    assert_eq!((found.train.rows_read, found.test.rows_read), (32_561, 16_281));
    assert_eq!((found.rows.shared_rows, found.rows.shared_with_label), (26, 0));
    assert_eq!(found.rows.train_duplicates.surplus_rows, 25);
}
