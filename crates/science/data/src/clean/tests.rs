//! Tables with faults in, an account that adds up out.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float32Array, Int32Array,
    RecordBatch, StringArray, TimestampNanosecondArray,
};
use arrow::datatypes::Int8Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use trackway_tables::pass::UNWATCHED;
use trackway_tables::write::{TableFile, TableFormat};
use trackway_tables::{ColumnType, DataSpec, DecimalMark, ReadContext};

use super::duplicates::find_within;
use super::*;

/// A table named `in.EXTENSION` in a folder, opened.
fn source(folder: &Path, extension: &str, text: &str) -> Source {
    let name = format!("in.{extension}");
    fs::write(folder.join(&name), text).unwrap();
    opened(folder, &name)
}

fn opened(folder: &Path, name: &str) -> Source {
    let spec = DataSpec { path: name.to_owned(), ..DataSpec::default() };
    Source::open(folder, "data", &spec, &ReadContext::default()).unwrap()
}

/// `a` is larger than this number.
struct Above(i64);

impl RowRule for Above {
    fn holds(&self, batch: &RecordBatch) -> Result<BooleanArray, String> {
        use arrow::array::AsArray as _;
        let column = batch.column_by_name("a").ok_or("no column `a`")?;
        let numbers =
            column.as_primitive_opt::<arrow::datatypes::Int64Type>().ok_or("`a` is not a whole number")?;
        Ok(numbers.iter().map(|number| number.map(|number| number > self.0)).collect())
    }
}

fn compile(rule: &SqlRule) -> Result<Box<dyn RowRule>, String> {
    rule.sql
        .parse()
        .map(|bound| Box::new(Above(bound)) as Box<dyn RowRule>)
        .map_err(|_| "not a number".to_owned())
}

fn plan<'p>(folder: &Path, schema: Option<&'p Schema>, protected: &[(&str, Protection)]) -> CleanPlan<'p> {
    CleanPlan {
        schema,
        compile: &compile,
        duplicates: Duplicates::Drop,
        protected: protected.iter().map(|(name, how)| ((*name).to_owned(), *how)).collect(),
        key: Some(HashKey::new(b"a key of more than sixteen bytes").unwrap()),
        out: folder.join("out.csv"),
        quarantine: folder.join("out.quarantine.csv"),
    }
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

/// Proves that every row is in the account and in one of the files with its reason: duplicates, cells of another type, values
/// out of bounds, broken conditions, too few fields; and that a row is never a duplicate of one that is set aside.
#[test]
fn every_row_is_accounted_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "a,b\n1,x\n2,y\n1,x\noops,x\n,x\n,x\n3\n99,y\n-5,x\n".to_owned();
    // Enough numbers, so that `oops` does not make a text of the column.
    (10..50).for_each(|number| text.push_str(&format!("{number},z\n")));
    let source = source(folder.path(), "csv", &text);
    let toml = "version = 1\n[table]\nrows_min = 3\n[[column]]\nname = \"a\"\ntype = \"int\"\nmax = 60\nunique = true\n\
                [[rule]]\nsql = \"0\"\nname = \"positive\"\n";
    let schema = Schema::from_toml(toml).unwrap();
    let account = clean(&source, &plan(folder.path(), Some(&schema), &[]), &UNWATCHED).unwrap().account;
    assert_eq!((account.rows, account.rows_written), (49, 43));
    assert_eq!((account.duplicates_dropped, account.rows_quarantined, account.rows_unreadable), (2, 4, 1));
    assert_eq!(account.rows, account.rows_written + account.duplicates_dropped + account.rows_quarantined);
    let written = read(folder.path(), "out.csv");
    assert!(written.starts_with("a,b\n1,x\n2,y\n,x\n10,z\n"), "{written}");
    assert_eq!(written.lines().count(), 44);
    let quarantined = read(folder.path(), "out.quarantine.csv");
    for expected in [
        "in.csv,5,`a` is of another type,\"{\"\"a\"\":\"\"oops\"\",\"\"b\"\":\"\"x\"\"}\"",
        "in.csv,8,wrong number of fields: 1 fields instead of 2,3",
        "in.csv,9,`a` is above the largest value allowed,",
        "in.csv,10,not `positive`,",
    ] {
        assert!(quarantined.contains(expected), "{expected}\n{quarantined}");
    }
    assert_eq!(account.rules_not_applied, ["`a`: unique", "table: rows_min"]);
    assert_eq!(account.readings, 2);
    let reasons: u64 = account.reasons.iter().map(|it| it.rows).sum();
    assert_eq!(reasons, 4);
}

/// Proves that a string among the numbers, timestamps or booleans of a small table is quarantined with its line, and neither
/// makes a text of the column nor disappears; and that half a column of strings stays text.
#[test]
fn a_wrong_cell_of_a_small_table_is_quarantined() {
    let folder = tempfile::tempdir().unwrap();
    let check = |extension: &str, text: &str, written: &str, aside: &[&str]| {
        let source = source(folder.path(), extension, text);
        let account = clean(&source, &plan(folder.path(), None, &[]), &UNWATCHED).unwrap().account;
        assert_eq!(read(folder.path(), "out.csv"), written);
        let quarantine = read(folder.path(), "out.quarantine.csv");
        assert_eq!(account.rows_quarantined, aside.len() as u64, "{quarantine}");
        assert_eq!(account.rows, account.rows_written + account.rows_quarantined);
        aside.iter().for_each(|row| assert!(quarantine.contains(row), "{row}\n{quarantine}"));
    };
    let wrong = ["in.csv,4,`age` is of another type,"];
    check("csv", "id,age\n1,34\n2,41\n3,abc\n4,29\n", "id,age\n1,34\n2,41\n4,29\n", &wrong);
    check("csv", "age\nabc\n34\n41\n", "age\n34\n41\n", &["in.csv,2,`age` is of another type,"]);
    let json = "{\"age\":34}\n{\"age\":\"abc\"}\n{\"age\":20}\n{\"age\":21}\n";
    check("jsonl", json, "age\n34\n20\n21\n", &["in.jsonl,2,`age` is of another type,"]);
    let ten = "a\n1\n2\n3\nx\n5\n6\ny\n8\n9\n10\n";
    check("csv", ten, "a\n1\n2\n3\n5\n6\n8\n9\n10\n", &["in.csv,5,", "in.csv,8,"]);
    check("csv", "id,a\n1,7\n2,x\n3,8\n4,y\n", "id,a\n1,7\n2,x\n3,8\n4,y\n", &[]);
}

/// Proves that what is not cleaned is written as the strings of the input: dates, whole numbers among decimals, zeros and signs
/// in front, strings that mean a missing value; in JSON lines as the same values, and in Parquet in the types that were read.
#[test]
fn strings_come_out_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let text = "day,amount,code,flag\n2024-01-03,900,007,True\n2024-01-04 10:00,12.50,+8,false\n,NA,9,\n2024-01-05,1e3,10,true\n";
    let csv = source(folder.path(), "csv", text);
    let written = |source: &Source, name: &str| {
        let plan = CleanPlan { out: folder.path().join(name), ..plan(folder.path(), None, &[]) };
        let account = clean(source, &plan, &UNWATCHED).unwrap().account;
        assert_eq!((account.rows, account.rows_written), (4, 4));
    };
    written(&csv, "out.csv");
    assert_eq!(read(folder.path(), "out.csv"), text);
    written(&csv, "out.jsonl");
    let lines = [
        r#"{"day":"2024-01-03","amount":900,"code":"007","flag":true}"#,
        r#"{"day":"2024-01-04 10:00","amount":12.50,"code":"+8","flag":false}"#,
        r#"{"day":null,"amount":null,"code":"9","flag":null}"#,
        r#"{"day":"2024-01-05","amount":1e3,"code":"10","flag":true}"#,
    ];
    assert_eq!(read(folder.path(), "out.jsonl").lines().collect::<Vec<_>>(), lines);
    let json = "{\"day\":\"2024-01-03\",\"amount\":900,\"tags\":[1,\"a\"]}\n{\"day\":null,\"amount\":12.5,\"tags\":null}\n\
                {\"day\":\"2024-01-04\",\"amount\":900.0,\"tags\":[]}\n{\"day\":\"NA\",\"amount\":NaN,\"tags\":[-Infinity]}\n";
    written(&source(folder.path(), "jsonl", json), "again.jsonl");
    assert_eq!(read(folder.path(), "again.jsonl"), json);
    written(&csv, "out.parquet");
    let kinds: Vec<ColumnType> =
        opened(folder.path(), "out.parquet").columns().iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [ColumnType::Timestamp, ColumnType::Float, ColumnType::Text, ColumnType::Bool]);
}

/// Proves that numbers with a decimal comma are written to CSV as the strings of the input, and to JSON lines as numbers.
#[test]
fn decimal_commas_come_out_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("in.csv"), "id;price\n1;47,00\n2;1.234,50\n3;\n").unwrap();
    let spec =
        DataSpec { path: "in.csv".to_owned(), decimal: Some(DecimalMark::Comma), ..DataSpec::default() };
    let source = Source::open(folder.path(), "data", &spec, &ReadContext::default()).unwrap();
    for (name, expected) in [
        ("out.csv", "id,price\n1,\"47,00\"\n2,\"1.234,50\"\n3,\n"),
        ("out.jsonl", "{\"id\":1,\"price\":47.0}\n{\"id\":2,\"price\":1234.5}\n{\"id\":3,\"price\":null}\n"),
    ] {
        let plan = CleanPlan { out: folder.path().join(name), ..plan(folder.path(), None, &[]) };
        clean(&source, &plan, &UNWATCHED).unwrap();
        assert_eq!(read(folder.path(), name), expected, "{name}");
    }
}

/// Proves that the columns of a Parquet file keep their types in Parquet, and that a date or a short float is not written as
/// another value in a text file.
#[test]
fn parquet_columns_keep_their_types() {
    let folder = tempfile::tempdir().unwrap();
    let day = Date32Array::from(vec![Some(19_725), None, Some(19_726)]);
    let categories: DictionaryArray<Int8Type> = ["a", "b", "a"].into_iter().collect();
    let cents = Decimal128Array::from(vec![90_000, 5, 1_250]).with_precision_and_scale(12, 2).unwrap();
    let batch = RecordBatch::try_from_iter([
        ("day", Arc::new(day) as ArrayRef),
        ("count", Arc::new(Int32Array::from(vec![Some(900), None, Some(3)])) as ArrayRef),
        ("rate", Arc::new(Float32Array::from(vec![0.1, 900.0, 2.5])) as ArrayRef),
        ("cents", Arc::new(cents) as ArrayRef),
        ("at", Arc::new(TimestampNanosecondArray::from(vec![1, 2, 3]).with_timezone("+02:00")) as ArrayRef),
        ("category", Arc::new(categories) as ArrayRef),
    ])
    .unwrap();
    let mut file =
        TableFile::create(&folder.path().join("in.parquet"), TableFormat::Parquet, &batch.schema()).unwrap();
    file.write(&batch).unwrap();
    file.finish().unwrap();
    let source = opened(folder.path(), "in.parquet");
    let to = |name: &str| {
        let plan = CleanPlan { out: folder.path().join(name), ..plan(folder.path(), None, &[]) };
        clean(&source, &plan, &UNWATCHED).unwrap();
    };
    to("out.parquet");
    let file = fs::File::open(folder.path().join("out.parquet")).unwrap();
    let mut written = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    assert_eq!(written.next().unwrap().unwrap().columns(), batch.columns());
    to("out.csv");
    let rows = read(folder.path(), "out.csv");
    assert!(rows.contains("\n2024-01-03,900,0.1,900.00,"), "{rows}");
    to("out.jsonl");
    let rows = read(folder.path(), "out.jsonl");
    assert!(
        rows.starts_with("{\"day\":\"2024-01-03\",\"count\":900,\"rate\":0.1,\"cents\":900.00,"),
        "{rows}"
    );
}

/// Proves that duplicates can be kept and are counted then, and that JSON lines with an invalid one are cleaned too, with the
/// line in the quarantine.
#[test]
fn duplicates_can_be_kept() {
    let folder = tempfile::tempdir().unwrap();
    let source = source(folder.path(), "jsonl", "{\"a\":1}\n{\"a\":1}\n{broken\n{\"a\":2,\"b\":\"x\"}\n");
    let plan = CleanPlan { duplicates: Duplicates::Keep, ..plan(folder.path(), None, &[]) };
    let account = clean(&source, &plan, &UNWATCHED).unwrap().account;
    assert_eq!((account.rows, account.rows_written, account.duplicates_kept), (4, 3, 1));
    assert_eq!((account.rows_quarantined, account.rows_unreadable), (1, 1));
    assert_eq!(read(folder.path(), "out.csv"), "a,b\n1,\n1,\n2,x\n");
    assert!(read(folder.path(), "out.quarantine.csv").contains("{broken"));
}

/// Proves that protected columns are masked, hashed or absent in the table and in the quarantine alike, that equal values have
/// equal hashes, and that a row that cannot be read is not quoted then.
#[test]
fn protected_columns_are_nowhere_in_the_clear() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "ana@example.org,Ana,7,1\nben@example.org,Ben,8,2\nana@example.org,Ann,9,3\nana@example.org,Eve,9,oops\n";
    let mut text = format!("mail,name,phone,a\n{rows}zoe@example.org\n");
    (10..50).for_each(|number| text.push_str(&format!("x{number}@example.org,Xi,{number},{number}\n")));
    let source = source(folder.path(), "csv", &text);
    let protected = [("mail", Protection::Hash), ("name", Protection::Mask), ("phone", Protection::Drop)];
    let account = clean(&source, &plan(folder.path(), None, &protected), &UNWATCHED).unwrap().account;
    assert_eq!((account.rows_written, account.rows_quarantined), (43, 2));
    let (written, aside) = (read(folder.path(), "out.csv"), read(folder.path(), "out.quarantine.csv"));
    for text in [&written, &aside] {
        assert!(!text.contains('@') && !text.contains("Ana") && !text.contains("Eve"), "{text}");
    }
    let rows: Vec<Vec<&str>> = written.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0], ["mail", "name", "a"]);
    assert_eq!((rows[1][0], rows[1][1]), (rows[3][0], "A…"));
    assert_ne!(rows[1][0], rows[2][0]);
    assert!(
        rows[1][0].len() == 64 && aside.contains(rows[1][0]),
        "the hash is in the quarantine too: {aside}"
    );
    let without_key = CleanPlan { key: None, ..plan(folder.path(), None, &protected) };
    assert!(matches!(clean(&source, &without_key, &UNWATCHED), Err(CleanError::NoKey)));
}

/// Proves that duplicates are the same ones however few digests fit into memory, and that more readings are made for it.
#[test]
fn duplicates_are_found_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..2_000).map(|row| format!("{},{}\n", row % 700, row % 7)).collect();
    let mut source = source(folder.path(), "csv", &format!("a,b\n{rows}"));
    let judge = Judge::new(&source, &plan(folder.path(), None, &[])).unwrap();
    let mut found = |digests_max| {
        let found = find_within(&mut source, &judge, digests_max, &UNWATCHED).unwrap();
        ((0..2_000).filter(|row| found.is_duplicate(*row)).collect::<Vec<u64>>(), found.readings)
    };
    let (at_once, readings) = found(DIGESTS_MAX);
    assert_eq!((at_once.len(), readings, at_once[0]), (1_300, 1, 700));
    let (in_parts, readings) = found(100);
    assert_eq!(in_parts, at_once);
    assert!(readings >= 8, "{readings} readings");
}

/// Proves that a condition that cannot be evaluated, and a required column that is not there, are errors that leave no file.
#[test]
fn what_cannot_be_checked_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let source = source(folder.path(), "csv", "b\nx\n");
    for toml in [
        "version = 1\n[[rule]]\nsql = \"5\"\n",
        "version = 1\n[[rule]]\nsql = \"five\"\n",
        "version = 1\n[[column]]\nname = \"a\"\ntype = \"int\"\n",
    ] {
        let schema = Schema::from_toml(toml).unwrap();
        let error = clean(&source, &plan(folder.path(), Some(&schema), &[]), &UNWATCHED).unwrap_err();
        assert!(matches!(error, CleanError::Rule(_)), "{error}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the input alone");
}

/// Proves that a number, a boolean, a list and an object of JSON beside a string with the same letters stay what they are and are no
/// duplicates of it, a key that an object has twice included.
#[test]
fn values_of_json_stay_apart_from_strings() {
    let folder = tempfile::tempdir().unwrap();
    let rows = [
        r#"{"a":1,"b":"7"}"#,
        r#"{"a":"1","b":7}"#,
        r#"{"a":"1","b":"7"}"#,
        r#"{"a":true,"b":"7"}"#,
        r#"{"a":"true","b":"7"}"#,
        r#"{"a":[1,2],"b":"x"}"#,
        r#"{"a":"[1,2]","b":"x"}"#,
        r#"{"a":{"c":1,"c":2},"b":"x"}"#,
        r#"{"a":{"c":2},"b":"NA"}"#,
        r#"{"a":null,"b":"x"}"#,
        r#"{"a":"null","b":"x"}"#,
    ];
    let text = format!("{}\n{}\n{}\n", rows.join("\n"), rows[0], rows[6]);
    let plan = CleanPlan { out: folder.path().join("out.jsonl"), ..plan(folder.path(), None, &[]) };
    let account = clean(&source(folder.path(), "jsonl", &text), &plan, &UNWATCHED).unwrap().account;
    assert_eq!((account.rows_written, account.duplicates_dropped), (11, 2));
    assert_eq!(read(folder.path(), "out.jsonl"), rows.join("\n") + "\n");
}

/// Proves that a number of one Parquet file and the string of another one that is written alike are no duplicates.
#[test]
fn numbers_and_strings_of_several_files_stay_apart() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("in")).unwrap();
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(1)]));
    let strings: ArrayRef = Arc::new(StringArray::from(vec![Some("1"), Some("x"), Some("1")]));
    for (name, column) in [("in/a.parquet", numbers), ("in/b.parquet", strings)] {
        let batch = RecordBatch::try_from_iter_with_nullable([("k", column, true)]).unwrap();
        let mut file =
            TableFile::create(&folder.path().join(name), TableFormat::Parquet, &batch.schema()).unwrap();
        file.write(&batch).unwrap();
        file.finish().unwrap();
    }
    let account = clean(&opened(folder.path(), "in"), &plan(folder.path(), None, &[]), &UNWATCHED);
    let account = account.unwrap().account;
    assert_eq!((account.rows_written, account.duplicates_dropped), (4, 2));
}

/// Proves that rows are not duplicates where they differ in what reading leaves out: blanks around a field, a quote with text behind
/// it, and the quotes of a string that means a missing value; quotes alone are no difference.
#[test]
fn what_reading_leaves_out_still_differs() {
    let folder = tempfile::tempdir().unwrap();
    let text = "a,b\nx ,1\nx,1\n\"x\",1\n\"x\"y,1\nxy,1\nNA,1\n\"NA\",1\nx ,1\n";
    let csv = source(folder.path(), "csv", text);
    let account = clean(&csv, &plan(folder.path(), None, &[]), &UNWATCHED).unwrap().account;
    assert_eq!((account.rows_written, account.duplicates_dropped), (6, 2));
    assert_eq!(read(folder.path(), "out.csv"), "a,b\nx,1\nx,1\nxy,1\nxy,1\nNA,1\nNA,1\n");
}

/// Proves that no row that differs is left out: codes with zeros in front, numbers beyond 64 bits, decimals, floats that round to one,
/// numbers in several notations, and nanoseconds; and that rows which are equal in every cell are.
#[test]
fn no_row_that_differs_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let rows = [
        "01,18446744073709551617,0.1234567890123456789,1",
        "1,18446744073709551617,0.1234567890123456789,1",
        "01,18446744073709551618,0.1234567890123456789,1",
        "01,18446744073709551617,0.1234567890123456788,1",
        "01,18446744073709551617,0.1234567890123456789,1.0",
        "01,18446744073709551617,0.1234567890123456789,NA",
        "01,18446744073709551617,0.1234567890123456789,",
    ];
    let text = format!("code,id,x,n\n{}\n{}\n", rows.join("\n"), rows[0]);
    let csv = source(folder.path(), "csv", &text);
    let cleaned = |source: &Source, name: &str| {
        let plan = CleanPlan { out: folder.path().join(name), ..plan(folder.path(), None, &[]) };
        let account = clean(source, &plan, &UNWATCHED).unwrap().account;
        (account.rows_written, account.duplicates_dropped)
    };
    assert_eq!(cleaned(&csv, "out.csv"), (7, 1));
    assert_eq!(read(folder.path(), "out.csv"), format!("code,id,x,n\n{}\n", rows.join("\n")));
    let json: String = [1_u64, 2, 1].map(|end| format!("{{\"id\":1844674407370955161{end}00}}\n")).concat();
    assert_eq!(cleaned(&source(folder.path(), "jsonl", &json), "out.jsonl"), (2, 1));
    assert_eq!(
        read(folder.path(), "out.jsonl"),
        "{\"id\":1844674407370955161100}\n{\"id\":1844674407370955161200}\n"
    );

    let decimal = |digits: Vec<i128>, scale: i8| -> ArrayRef {
        Arc::new(Decimal128Array::from(digits).with_precision_and_scale(38, scale).unwrap())
    };
    let long = 9_007_199_254_740_992;
    let batch = RecordBatch::try_from_iter([
        ("id", decimal(vec![long, long + 1, long, long], 0)),
        ("wei", decimal(vec![long, long, long + 1, long], 18)),
        ("at", Arc::new(TimestampNanosecondArray::from(vec![1, 1, 1, 1])) as ArrayRef),
    ])
    .unwrap();
    let write = |name: &str, batch: &RecordBatch| {
        let mut file =
            TableFile::create(&folder.path().join(name), TableFormat::Parquet, &batch.schema()).unwrap();
        file.write(batch).unwrap();
        file.finish().unwrap();
    };
    write("in.parquet", &batch);
    assert_eq!(cleaned(&opened(folder.path(), "in.parquet"), "out.parquet"), (3, 1));
    let nanos = Arc::new(TimestampNanosecondArray::from(vec![1, 2, 1]));
    write("nanos.parquet", &RecordBatch::try_from_iter([("at", nanos as ArrayRef)]).unwrap());
    assert_eq!(cleaned(&opened(folder.path(), "nanos.parquet"), "out.parquet"), (2, 1));
}
