//! Small tables, joined and compared.

use std::fs;
use std::path::Path;

use trackway_tables::pass::UNWATCHED;
use trackway_tables::{DataSpec, ReadContext};

use super::as_of::{AsOfPlan, AsOfReport, Tolerance, as_of};
use super::skew::{SkewPlan, SkewReport, skew};
use super::*;

fn source(folder: &Path, name: &str, text: &str) -> Source {
    fs::write(folder.join(name), text).unwrap();
    let spec = DataSpec { path: name.into(), ..DataSpec::default() };
    Source::open(folder, name, &spec, &ReadContext::default()).unwrap()
}

/// The report and the joined table.
fn joined(left: &str, right: &str, change: impl FnOnce(&mut AsOfPlan)) -> (AsOfReport, String) {
    let folder = tempfile::tempdir().unwrap();
    let (left, right) = (source(folder.path(), "left.csv", left), source(folder.path(), "right.csv", right));
    let mut plan = AsOfPlan {
        on: vec!["user".into()],
        left_time: "at".into(),
        right_time: "since".into(),
        strict: false,
        tolerance: None,
        out: folder.path().join("out.csv"),
    };
    change(&mut plan);
    let report = as_of(left, right, &plan, &UNWATCHED).unwrap();
    (report, fs::read_to_string(folder.path().join("out.csv")).unwrap())
}

const LABELS: &str = "user,at,y\na,10,1\na,5,0\nb,10,1\nc,10,0\n,10,1\na,20,1\n";
const FEATURES: &str = "user,since,spent\na,15,150\na,5,50\nb,11,110\na,5,51\nd,1,9\n,3,3\n";

/// Proves that each left row gets the latest right row that is not later, that rows without one are kept with nulls and counted,
/// that of equal times the last one counts, and that what a join with the latest row would have leaked is counted per column.
#[test]
fn a_row_gets_what_was_known_at_its_time() {
    let (report, table) = joined(LABELS, FEATURES, |_| ());
    assert_eq!(
        table,
        "user,at,y,since,spent\na,10,1,5,51\na,5,0,5,51\nb,10,1,,\nc,10,0,,\n,10,1,,\na,20,1,15,150\n"
    );
    assert_eq!((report.left_rows, report.matched), (6, 3));
    assert_eq!((report.unmatched_key, report.unmatched_time, report.left_without_key_or_time), (1, 1, 1));
    assert_eq!((report.right_rows, report.right_without_key_or_time, report.right_rows_tied), (6, 1, 1));
    assert_eq!(report.leaking_rows, 3, "a at 10 and at 5, b at 10");
    let leaks: Vec<_> = report.columns.iter().map(|it| (it.column.as_str(), it.rows_leaking)).collect();
    assert_eq!(leaks, [("since", Some(3)), ("spent", Some(3))]);
}

/// Proves that with `strict` a row of the same time is not known yet, and that a tolerance leaves out rows that are too old.
#[test]
fn strictness_and_tolerance_bound_what_is_known() {
    let (report, table) = joined(LABELS, FEATURES, |plan| plan.strict = true);
    assert!(table.contains("a,5,0,,\n") && table.contains("a,10,1,5,51\n"), "{table}");
    assert_eq!((report.matched, report.unmatched_time, report.leaking_rows), (2, 2, 3));
    let (report, table) = joined(LABELS, FEATURES, |plan| plan.tolerance = Some(Tolerance::Steps(4)));
    assert!(table.contains("a,10,1,,\n") && table.contains("a,5,0,5,51\n"), "{table}");
    assert_eq!(report.matched, 1);
}

/// Proves that timestamps are joined with a tolerance in seconds, that columns of one name stay apart, that keys of whole
/// numbers and decimals are equal by value, and that a right side without rows gives nulls.
#[test]
fn times_keys_and_names_of_both_sides() {
    let left = "user,at,v\n1,2026-01-02T00:00:00Z,x\n2,2026-03-01,y\n";
    let right = "user,since,v\n1.0,2026-01-01,old\n2.0,2026-01-01,old\n";
    let (report, table) =
        joined(left, right, |plan| plan.tolerance = Some(Tolerance::Seconds(30.0 * 86_400.0)));
    assert!(table.starts_with("user,at,v,since,v_right\n"), "{table}");
    assert_eq!((report.matched, report.unmatched_time), (1, 1));
    let (report, table) = joined("user,at\na,1\n", "user,since,spent\n", |_| ());
    assert_eq!(
        (report.matched, report.unmatched_key, table.as_str()),
        (0, 1, "user,at,since,spent\na,1,,\n")
    );
}

/// Proves that sides that cannot be compared are errors that name the column, and leave no table.
#[test]
fn what_cannot_be_joined_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.csv");
    let plan = |left_time: &str| AsOfPlan {
        on: vec!["user".into()],
        left_time: left_time.into(),
        right_time: "since".into(),
        strict: false,
        tolerance: None,
        out: out.clone(),
    };
    let join = |left: &str, plan: &AsOfPlan| {
        let (left, right) = (source(folder.path(), "l.csv", left), source(folder.path(), "r.csv", FEATURES));
        as_of(left, right, plan, &UNWATCHED).unwrap_err().to_string()
    };
    assert!(
        join("user,at\n1,1\n2,2\n", &plan("at"))
            .contains("`user` is int on the one side and text on the other")
    );
    assert!(join("user,at\na,1.5\nb,2.5\n", &plan("at")).contains("`at` is float: a time is"));
    assert!(join("user,at\na,2026-01-01\n", &plan("at")).contains("`at` is timestamp on the one side"));
    assert!(join("user,at\na,1\n", &plan("when")).contains("when"));
    let seconds = AsOfPlan { tolerance: Some(Tolerance::Seconds(5.0)), ..plan("at") };
    assert!(join("user,at\na,1\n", &seconds).contains("without a unit"));
    assert!(!out.exists());
}

fn compared(train: &str, serve: &str) -> SkewReport {
    let folder = tempfile::tempdir().unwrap();
    let (train, serve) =
        (source(folder.path(), "train.csv", train), source(folder.path(), "serve.csv", serve));
    let plan = SkewPlan { on: vec!["user".into()], tolerance: 1e-6, equal_min: 0.99 };
    skew(train, serve, &plan, &UNWATCHED).unwrap()
}

/// Proves that the values of each key are compared column by column, numbers within the tolerance, that keys which are not once
/// on the serving side are counted and not compared, and that a column with other values is skewed.
#[test]
fn features_of_one_key_are_compared() {
    let report = compared(
        "user,age,city,n,extra\na,30,Oslo,1,1\nb,40,Riga,2,1\nc,,Bern,3,1\nd,1,x,1,1\n,1,x,1,1\ne,1,x,1,1\n",
        "user,age,city,n\na,30.00000001,oslo,1\nb,40.0,Riga,\nc,,Bern,3\nd,1,x,1\nd,2,y,1\n",
    );
    assert_eq!(
        (report.rows_compared, report.only_in_train, report.ambiguous, report.without_key),
        (3, 1, 1, 1)
    );
    let column = |name: &str| report.columns.iter().find(|it| it.column == name).unwrap();
    assert_eq!((column("age").equal, column("age").skewed), (3, false));
    assert_eq!((column("city").equal, column("city").skewed, column("city").difference_max), (2, true, None));
    assert_eq!((column("n").equal, column("n").only_in_train, column("n").only_in_serve), (2, 1, 0));
    assert_eq!(
        (report.columns_only_in_train.as_slice(), report.blocks()),
        (["extra".to_owned()].as_slice(), true)
    );
    let apart = compared("user,age\na,1\n", "user,age\nb,1\n");
    assert!(apart.blocks() && apart.columns[0].equal_fraction.is_none(), "nothing was compared: {apart:?}");
}

/// Proves that keys are equal only where they are the same number or the same code, however long they are and in whatever type each
/// side has them, and that what is joined is written as its file has it.
#[test]
fn keys_are_never_equal_by_rounding() {
    for (left, right, matched) in [
        ("user,at\n18446744073709551617,9\n7,9\n", "user,since,v\n18446744073709551618,1,x\n7,1,y\n", 1),
        ("user,at\n9007199254740993,9\n2,9\n", "user,since,v\n9007199254740992.0,1,x\n2.0,1,y\n", 1),
        (
            "user,at\n18446744073709551615,9\n",
            "user,since,v\n18446744073709551615,1,x\n18446744073709551614,2,y\n",
            1,
        ),
        ("user,at\n007,9\n7,9\n", "user,since,v\n7,1,x\n8,1,y\n", 1),
    ] {
        let (report, table) = joined(left, right, |_| ());
        assert_eq!(report.matched, matched, "{table}");
    }
    let (_, table) = joined(
        "user,at,price\na,2026-01-02 03:04:05 UTC,1.50\n",
        "user,since,code\na,2026/01/01,007\n",
        |_| (),
    );
    assert_eq!(table, "user,at,price,since,code\na,2026-01-02 03:04:05 UTC,1.50,2026/01/01,007\n");
}

/// Proves that decimal numbers of Parquet keep their type and their digits through a join.
#[test]
fn decimals_keep_their_type_through_a_join() {
    use arrow::array::{ArrayRef, AsArray, Decimal128Array, Int64Array, RecordBatch};
    use arrow::datatypes::{DataType, Decimal128Type};
    use trackway_tables::write::{TableFile, TableFormat};

    let folder = tempfile::tempdir().unwrap();
    let decimal = |digits: Vec<i128>| -> ArrayRef {
        std::sync::Arc::new(Decimal128Array::from(digits).with_precision_and_scale(38, 0).unwrap())
    };
    let write = |name: &str, time: &str, keys: Vec<i128>, values: Vec<i128>| {
        let times: ArrayRef = std::sync::Arc::new(Int64Array::from(vec![5; keys.len()]));
        let columns = [("k", decimal(keys)), (time, times), ("v", decimal(values))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let path = folder.path().join(name);
        let mut file = TableFile::create(&path, TableFormat::Parquet, &batch.schema()).unwrap();
        file.write(&batch).unwrap();
        file.finish().unwrap();
        let spec = DataSpec { path: name.into(), ..DataSpec::default() };
        Source::open(folder.path(), name, &spec, &ReadContext::default()).unwrap()
    };
    let long = 9_007_199_254_740_993;
    let left = write("left.parquet", "at", vec![long, i128::from(u64::MAX) + 1], vec![1, 2]);
    let right = write("right.parquet", "since", vec![long - 1, long], vec![long - 1, long]);
    let out = folder.path().join("out.parquet");
    let plan = AsOfPlan {
        on: vec!["k".into()],
        left_time: "at".into(),
        right_time: "since".into(),
        strict: false,
        tolerance: None,
        out: out.clone(),
    };
    assert_eq!(as_of(left, right, &plan, &UNWATCHED).unwrap().matched, 1);
    let file = fs::File::open(out).unwrap();
    let mut rows = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file)
        .unwrap()
        .build()
        .unwrap();
    let batch = rows.next().unwrap().unwrap();
    for (column, digits) in [("k", long), ("v_right", long)] {
        let array = batch.column_by_name(column).unwrap();
        assert_eq!(array.data_type(), &DataType::Decimal128(38, 0), "{column}");
        assert_eq!(array.as_primitive::<Decimal128Type>().value(0), digits);
    }
}
