//! Files in, rows and the account out.

mod notes;
mod parquet_files;
mod splitting;

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use arrow::array::ArrayRef;
use arrow::util::display::array_value_to_string;
use tempfile::TempDir;

use crate::ReadContext;
use crate::pass::{Pass, PassObserver, UNWATCHED, head, scan};

use super::*;

/// Every row as `place: value|value`.
#[derive(Default)]
struct Rows(Vec<String>);

impl Pass for Rows {
    fn observe(&mut self, chunk: &Chunk) {
        for row in 0..chunk.batch.num_rows() {
            let columns = chunk.batch.columns().iter();
            let value =
                |column: &ArrayRef| match column.logical_nulls().is_some_and(|nulls| nulls.is_null(row)) {
                    true => "∅".to_owned(),
                    false => array_value_to_string(column, row).unwrap(),
                };
            let values: Vec<_> = columns.map(value).collect();
            let Place { file, row } = chunk.place(row);
            self.0.push(format!("{file}.{row}: {}", values.join("|")));
        }
    }

    fn merge(&mut self, later: Self) {
        self.0.extend(later.0);
    }
}

fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, bytes) in files {
        fs::write(folder.path().join(path), bytes).unwrap();
    }
    folder
}

fn read_all(base: &Path, spec: &DataSpec) -> Result<(Vec<String>, Coverage, Source), DataError> {
    let mut source = Source::open(base, "train", spec, &ReadContext::default())?;
    let (rows, coverage) = scan(&mut source, &|_| Rows::default(), &UNWATCHED)?;
    assert_eq!(rows.0.len() as u64, coverage.rows_read);
    assert_eq!(coverage.file_rows.values().sum::<u64>(), coverage.rows_read);
    Ok((rows.0, coverage, source))
}

fn types(source: &Source) -> String {
    let columns = source.columns().iter().map(|it| format!("{}:{:?}", it.name, it.kind));
    columns.collect::<Vec<_>>().join(" ")
}

/// Types, rows, then what is wrong, one per line.
fn story(name: &str, bytes: &[u8], spec: DataSpec) -> String {
    let folder = folder(&[(name, bytes)]);
    let (rows, coverage, source) = match read_all(folder.path(), &DataSpec { path: name.into(), ..spec }) {
        Ok(read) => read,
        Err(error) => return error.to_string(),
    };
    let mut lines = vec![types(&source)];
    lines.extend(rows);
    for rejects in coverage.rejects {
        for fault in rejects.examples {
            lines.push(format!(
                "rejected {:?}×{} line {}: {}",
                rejects.kind, rejects.count, fault.place.row, fault.detail
            ));
        }
    }
    for (column, tally) in source.columns().iter().zip(coverage.columns) {
        let faults = tally.faults;
        for fault in faults.examples {
            lines.push(format!(
                "misfit {}×{} line {}: {}",
                column.name, faults.misfits, fault.place.row, fault.detail
            ));
        }
        for (text, count) in faults.missing_strings {
            lines.push(format!("missing {}×{count}: {text:?}", column.name));
        }
    }
    if let Some(place) = coverage.first_recoded {
        lines.push(format!("recoded {} from line {}", coverage.rows_recoded, place.row));
    }
    lines.join("\n")
}

fn check(name: &str, bytes: &[u8], expected: &str) {
    assert_eq!(story(name, bytes, DataSpec::default()), expected, "{}", String::from_utf8_lossy(bytes));
}

/// `kind×count at line` of each note on reading.
fn notes(name: &str, bytes: &[u8], spec: DataSpec) -> Vec<String> {
    let folder = folder(&[(name, bytes)]);
    let (_, _, source) = read_all(folder.path(), &DataSpec { path: name.into(), ..spec }).unwrap();
    let shown = |note: ReadNote| {
        let place = note.row.map_or(String::new(), |row| format!(" at {row}"));
        format!("{}×{}{place}", note.kind, note.count)
    };
    source.reading().into_iter().map(shown).collect()
}

/// Proves that a dirty CSV file is read as published: each kind of dirt by itself, with the account of it.
#[test]
fn dirty_csv_is_read_as_published() {
    check("a.csv", b"a,b\n1,x\n2,y\n", "a:Int b:Text\n0.2: 1|x\n0.3: 2|y");
    check("bom.csv", b"\xEF\xBB\xBFa,b\r\n1,x\r\n\r\n2,y", "a:Int b:Text\n0.2: 1|x\n0.4: 2|y");
    check(
        "blanks.csv",
        b"1, x, 2.5\n2, ?, NA\n",
        "column_1:Int column_2:Text column_3:Float\n0.1: 1|x|2.5\n0.2: 2|∅|∅\nmissing column_2×1: \"?\"\nmissing column_3×1: \"NA\"",
    );
    check(
        "quotes.csv",
        b"a,b\n1,\"x, \"\"y\"\"\nz\"\n2, \"p, q\"\n3,5\" pipe\n",
        "a:Int b:Text\n0.2: 1|x, \"y\"\nz\n0.4: 2|p, q\n0.5: 3|5\" pipe",
    );
    check(
        "ragged.csv",
        b"a,b\n1,2\n3\n4,5,6\n7,8\n",
        "a:Int b:Int\n0.2: 1|2\n0.5: 7|8\nrejected Ragged×2 line 3: 1 fields instead of 2\nrejected Ragged×2 line 4: 3 fields instead of 2",
    );
    check(
        "open.csv",
        b"a,b\n1,2\n3,\"4\n5,6\n",
        "a:Int b:Int\n0.2: 1|2\nrejected OpenQuote×1 line 3: a quote is opened and never closed",
    );
    check(
        "latin.csv",
        b"a,b\n1,caf\xE9\n2,\x80\n3,caf\xC3\xA9\n",
        "a:Int b:Text\n0.2: 1|café\n0.3: 2|€\n0.4: 3|café\nrecoded 2 from line 2",
    );
    check("mac.csv", b"a,b\r1,2\r3,4\r", "a:Int b:Int\n0.2: 1|2\n0.3: 3|4");
    check("blank name.tsv", b"\tb\n1\tx\n", "column_1:Int b:Text\n0.2: 1|x");
    check("null.csv", b"a,b\n,1\n,2\n", "a:Null b:Int\n0.2: ∅|1\n0.3: ∅|2\nmissing a×2: \"\"");
    check(
        "time.csv",
        b"t,ok\n2026-11-21,true\n2026-11-21T01:00:00Z,False\n",
        "t:Timestamp ok:Bool\n0.2: 2026-11-21T00:00:00|true\n0.3: 2026-11-21T01:00:00|false",
    );
    for (name, order) in [("le.csv", u16::to_le_bytes as fn(u16) -> [u8; 2]), ("be.csv", u16::to_be_bytes)] {
        let utf16: Vec<u8> = "\u{FEFF}a,b\n1,né𝄞\n".encode_utf16().flat_map(order).collect();
        check(name, &utf16, "a:Int b:Text\n0.2: 1|né𝄞");
        check(name, &utf16[2..], "a:Int b:Text\n0.2: 1|né𝄞");
    }
}

/// Proves that dirt among numbers is a misfit, and that a column of strings is not: a fraction decides.
#[test]
fn a_few_texts_among_numbers_are_misfits() {
    let mut text = String::from("a\n");
    (0..99).for_each(|number| text.push_str(&format!("{number}\n")));
    text.push_str("oops\n");
    let content = story("a.csv", text.as_bytes(), DataSpec::default());
    assert!(content.starts_with("a:Int\n"), "{content}");
    assert!(content.ends_with("0.101: ∅\nmisfit a×1 line 101: oops"), "{content}");
    check("b.csv", b"a\n1\n2\noops\n", "a:Text\n0.2: 1\n0.3: 2\n0.4: oops");
}

/// Proves that a value wider than the sample promised widens the column for all rows, wherever it is: no row has a type
/// that depends on the sample.
#[test]
fn types_widen_when_the_file_demands_it() {
    let mut text = String::from("a,b\n");
    (0..400_000).for_each(|number| text.push_str(&format!("{number},\n")));
    // After the beginning, and not at a place that is sampled.
    let at = text.len() / 16 * 9;
    let at = at + text[at..].find('\n').unwrap() + 1;
    text.insert_str(at, "0.5,7\n");
    let folder = folder(&[("a.csv", text.as_bytes())]);
    let spec = DataSpec { path: "a.csv".into(), ..DataSpec::default() };
    let sampled = Source::open(folder.path(), "train", &spec, &ReadContext::default()).unwrap();
    assert_eq!(types(&sampled), "a:Int b:Null");
    let (rows, coverage, source) = read_all(folder.path(), &spec).unwrap();
    assert_eq!(types(&source), "a:Float b:Int");
    assert_eq!((rows[0].as_str(), coverage.rows_read), ("0.2: 0.0|∅", 400_001));
    assert!(coverage.columns.iter().all(|tally| tally.faults.misfits == 0));
    let fixed = sampled.with_columns(vec![Column { name: "a".into(), kind: ColumnType::Int }]).unwrap();
    let (_, coverage) = scan(&mut fixed.clone(), &|_| Rows::default(), &UNWATCHED).unwrap();
    let faults = &coverage.columns[0].faults;
    assert_eq!((faults.misfits, faults.examples[0].detail.as_str()), (1, "0.5"));
}

/// Proves that JSON lines become rows by key, nested values text, and broken lines rejections.
#[test]
fn json_lines_are_rows_by_key() {
    check(
        "a.jsonl",
        b"{\"a\":1,\"b\":\"x\"}\n\n{\"b\":\"\\u00e9\",\"a\":2.5,\"c\":[1,{\"d\":null}]}\n{\"a\":\n[1]\n{\"a\":null}\n",
        "a:Float b:Text c:List\n0.1: 1.0|x|∅\n0.3: 2.5|é|[1,{\"d\":null}]\n0.6: ∅|∅|∅\nrejected BadJson×2 line 4: ends in the middle of a value\nrejected BadJson×2 line 5: a JSON value that is not an object",
    );
    check(
        "b.jsonl",
        b"[1]\n",
        "data `train`: `b.jsonl` is not a readable JSONL file: no line of its beginning holds a JSON object (line 1: a JSON value that is not an object)",
    );
}

/// Proves that plain text is lines, empty ones too, and that a file that is not a table is skipped and noted.
#[test]
fn text_is_lines_and_the_rest_is_noted() {
    check("a.txt", b"one\r\n\ntwo", "line:Text\n0.1: one\n0.2: \n0.3: two");
    let folder =
        folder(&[("a.csv", b"x,y\n1,2\n"), ("b.csv", b"x\n3\n"), ("c.png", b"\x89"), ("empty.csv", b"")]);
    let (rows, coverage, source) =
        read_all(folder.path(), &DataSpec { path: "".into(), ..DataSpec::default() }).unwrap();
    assert_eq!(rows, ["0.2: 1|2", "1.2: 3|∅"]);
    assert_eq!(source.notes()[0], "`c.png` was skipped (not a table)");
    assert_eq!(coverage.columns[1].faults.absent, 1);
    let error = Source::open(
        folder.path(),
        "train",
        &DataSpec { path: "c.png".into(), ..DataSpec::default() },
        &ReadContext::default(),
    );
    assert!(matches!(error, Err(DataError::NotATable { .. })));
}

/// Proves that a packed text file is refused, or skipped beside tables, with what to do about it.
#[test]
fn compressed_text_is_refused_with_advice() {
    let folder = folder(&[("a.csv.gz", b"\x1f\x8b"), ("b.csv", b"x\n1\n")]);
    let error = |path: &str| Source::open(folder.path(), "train", &spec_of(path), &ReadContext::default());
    let refused = error("a.csv.gz").err().unwrap().to_string();
    assert!(
        refused.contains("is not a table") && refused.ends_with("which compresses internally"),
        "{refused}"
    );
    let beside = error("*").unwrap();
    assert!(beside.notes()[0].contains("(not a table); a compressed file"), "{:?}", beside.notes());
}

fn spec_of(path: &str) -> DataSpec {
    DataSpec { path: path.into(), ..DataSpec::default() }
}

/// Proves that the result does not depend on the number of threads, and that a scan can be cancelled.
#[test]
fn threads_change_nothing_and_a_scan_can_be_cancelled() {
    let lines: String = (0..30_000).map(|row| format!("{row},{}\n", row % 13)).collect();
    let files: Vec<(String, String)> = (0..7).map(|file| (format!("{file}.csv"), lines.clone())).collect();
    let files: Vec<(&str, &[u8])> =
        files.iter().map(|(name, text)| (name.as_str(), text.as_bytes())).collect();
    let folder = folder(&files);
    let spec = DataSpec { path: "".into(), ..DataSpec::default() };
    let with_threads = |count: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(count).build().unwrap();
        pool.install(|| read_all(folder.path(), &spec)).map(|(rows, coverage, _)| (rows, coverage)).unwrap()
    };
    assert_eq!(with_threads(1), with_threads(5));
    let cancelled = AtomicBool::new(true);
    let watch = PassObserver { cancelled: &cancelled, ..*UNWATCHED };
    let mut source = Source::open(folder.path(), "train", &spec, &ReadContext::default()).unwrap();
    let error = scan(&mut source, &|_| Rows::default(), &watch).map(|(_, coverage)| coverage).unwrap_err();
    assert!(matches!(error, DataError::Cancelled { .. }), "{error}");
}

/// Proves on the published Adult files (if they are there) that all rows are read, that missing values are known by
/// their text, and that the test file's labels differ by a full stop.
#[test]
fn the_adult_files_are_read_as_published() {
    let shared = std::env::var("TRACKWAY_SHARED")
        .unwrap_or(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared").into());
    let folder = Path::new(&shared).join("data");
    if !folder.join("adult-train.csv").exists() {
        trackway_skip::skip!("no Adult data in TRACKWAY_SHARED");
        return;
    }
    for (name, rows, label) in [("adult-train.csv", 32_561, ">50K"), ("adult-test.csv", 16_281, ">50K.")] {
        let spec = DataSpec { path: name.into(), ..DataSpec::default() };
        let (read, coverage, source) = read_all(&folder, &spec).unwrap();
        assert_eq!((coverage.rows_read, coverage.rows_rejected, source.columns().len()), (rows, 0, 15));
        assert!(coverage.columns[1].faults.missing_strings["?"] > 900);
        assert!(read.iter().any(|row| row.ends_with(&format!("|{label}"))));
    }
}

/// Proves that whole numbers of any length, decimals among them, and digits with zeros in front are never equal by rounding: what no
/// number of 64 bits holds is text, with the digits that the file has.
#[test]
fn no_number_becomes_another() {
    check(
        "long.csv",
        b"k,y\n18446744073709551617,a\n18446744073709551618,a\n7,a\n",
        "k:Text y:Text\n0.2: 18446744073709551617|a\n0.3: 18446744073709551618|a\n0.4: 7|a",
    );
    check(
        "unsigned.csv",
        b"k\n18446744073709551615\n18446744073709551614\n1\n",
        "k:Int\n0.2: 18446744073709551615\n0.3: 18446744073709551614\n0.4: 1",
    );
    check(
        "among_floats.csv",
        b"k\n9007199254740993\n9007199254740992\n1.5\n",
        "k:Text\n0.2: 9007199254740993\n0.3: 9007199254740992\n0.4: 1.5",
    );
    check("codes.csv", b"zip,y\n01,a\n001,a\n1,a\n", "zip:Text y:Text\n0.2: 01|a\n0.3: 001|a\n0.4: 1|a");
    check(
        "phones.csv",
        b"p,n\n+4915112345678,1\n4915112345678,2\n",
        "p:Text n:Int\n0.2: +4915112345678|1\n0.3: 4915112345678|2",
    );
    check("beyond.csv", b"x\n1.5\n1e400\n", "x:Text\n0.2: 1.5\n0.3: 1e400");
    check(
        "long.jsonl",
        b"{\"k\":18446744073709551617,\"u\":18446744073709551615}\n{\"k\":18446744073709551618,\"u\":1}\n",
        "k:Text u:Int\n0.1: 18446744073709551617|18446744073709551615\n0.2: 18446744073709551618|1",
    );
}

/// Proves that the usual forms of times are timestamps: those of BigQuery, a zone after a blank, slashes; and dates with the day
/// first where a day above 12 shows it, while dates that could be both stay text.
#[test]
fn usual_forms_of_times_are_timestamps() {
    check(
        "forms.csv",
        b"bq,bqms,z,slash,eu,either\n2024-01-02 21:34:02 UTC,2024-01-02 21:34:02.123456 UTC,2024-01-02 21:34:02 +0000,2024/01/02 21:34:02,31/12/2024,1/2/2024\n,,,,1/2/2024,3/4/2024\n",
        "bq:Timestamp bqms:Timestamp z:Timestamp slash:Timestamp eu:Timestamp either:Text\n\
         0.2: 2024-01-02T21:34:02|2024-01-02T21:34:02.123456|2024-01-02T21:34:02|2024-01-02T21:34:02|2024-12-31T00:00:00|1/2/2024\n\
         0.3: ∅|∅|∅|∅|2024-02-01T00:00:00|3/4/2024\n\
         missing bq×1: \"\"\nmissing bqms×1: \"\"\nmissing z×1: \"\"\nmissing slash×1: \"\"",
    );
    check(
        "none.csv",
        b"t,n\n2024-02-30,1\n2024-01-01,2\n",
        "t:Text n:Int\n0.2: 2024-02-30|1\n0.3: 2024-01-01|2",
    );
}

/// Proves that a value which no sample shows decides as well: a code, a number beyond 64 bits with a sign, a long whole number among
/// floats, a date with the month first.
#[test]
fn what_no_sample_shows_decides_as_well() {
    let read = |usual: &dyn Fn(usize) -> String, odd: &str| {
        let mut text = String::from("a,b\n");
        (0..300_000).for_each(|row| text.push_str(&format!("{},{row}\n", usual(row))));
        // After the beginning, and not at a place that is sampled.
        let at = text.len() / 16 * 9;
        let at = at + text[at..].find('\n').unwrap() + 1;
        text.insert_str(at, &format!("{odd},7\n"));
        let folder = folder(&[("a.csv", text.as_bytes())]);
        let (rows, coverage, source) = read_all(folder.path(), &spec_of("a.csv")).unwrap();
        assert_eq!((coverage.rows_read, coverage.columns[0].faults.misfits), (300_001, 0));
        let found = rows.iter().any(|row| row.contains(&format!(": {odd}|7")));
        (types(&source), found)
    };
    let number = |row: usize| (row + 1).to_string();
    assert_eq!(read(&number, "007"), ("a:Text b:Int".to_owned(), true));
    assert_eq!(read(&number, "18446744073709551615"), ("a:Int b:Int".to_owned(), true));
    assert_eq!(read(&number, "18446744073709551617"), ("a:Text b:Int".to_owned(), true));
    let long = |row: usize| (9_007_199_254_740_993 + row as u64).to_string();
    assert_eq!(read(&long, "0.5"), ("a:Text b:Int".to_owned(), true));
    let day_first = |row: usize| format!("{}/1/2024", row % 28 + 1);
    assert_eq!(read(&day_first, "1/31/2024"), ("a:Text b:Int".to_owned(), true));
}

/// Proves that quotes escaped by a backslash are read as quotes where the file shows that it has them, separators between them
/// included, and that text behind a closing quote is counted with its line otherwise.
#[test]
fn backslashes_escape_quotes_where_the_file_shows_it() {
    check(
        "escaped.csv",
        b"a,b\n1,\"he said \\\"hi\\\" and, then, left\"\n2,\"C:\\\\\"\n3,\"plain\"\n",
        "a:Int b:Text\n0.2: 1|he said \"hi\" and, then, left\n0.3: 2|C:\\\n0.4: 3|plain",
    );
    check(
        "malformed.csv",
        b"a,b\n1,\"x\"y\n2,\"say \\\"hi\\\"\" z\n3,\"plain\"\n",
        "a:Int b:Text\n0.2: 1|xy\n0.3: 2|say \\hi\\\"\" z\n0.4: 3|plain",
    );
    assert_eq!(
        notes("malformed.csv", b"a,b\n1,\"x\"y\n2,\"z\"\n", DataSpec::default()),
        ["malformed_quotes×1 at 2"]
    );
}

/// Proves that two sides whose values were read in different types get one: codes on one side are strings on the other too, and dates
/// that could be both have the order that the other side shows.
#[test]
fn two_sides_agree_on_a_type() {
    let folder = folder(&[
        ("codes.csv", b"zip,when,n\n00501,1/2/2024,1\n10001,3/4/2024,2\n"),
        ("numbers.csv", b"zip,when,n\n10001,31/1/2024,1\n20002,1/1/2024,2\n"),
        ("words.csv", b"zip,when,n\nx,y,z\n"),
    ]);
    let open =
        |name: &str| Source::open(folder.path(), name, &spec_of(name), &ReadContext::default()).unwrap();
    let (mut one, mut other) = (open("codes.csv"), open("numbers.csv"));
    assert_eq!(
        (types(&one), types(&other)),
        ("zip:Text when:Text n:Int".into(), "zip:Int when:Timestamp n:Int".into())
    );
    assert!(agree(&mut one, &mut other, &|_| true));
    let expected = "zip:Text when:Timestamp n:Int";
    assert_eq!((types(&one), types(&other)), (expected.to_owned(), expected.to_owned()));
    assert!(!agree(&mut one, &mut other, &|_| true));
    // Words are not numbers that were kept as they are.
    let (mut one, mut other) = (open("words.csv"), open("numbers.csv"));
    assert!(!agree(&mut one, &mut other, &|name| name == "n"));
}

/// Proves that the head of a table has the named columns of its first rows, in their order, and nothing where none is named.
#[test]
fn the_head_has_the_first_rows() {
    let folder = folder(&[("a.csv", b"a,b,c\n1,x,2\n3,y,4\n")]);
    let open = || Source::open(folder.path(), "data", &spec_of("a.csv"), &ReadContext::default()).unwrap();
    let mut rows = Rows::default();
    assert!(head(&open(), &[2, 0], 1, |chunk| rows.observe(chunk)));
    assert!(rows.0[0].ends_with(": 2|1"), "{:?}", rows.0);
    assert!(head(&open(), &[], 1, |_| panic!("no column, no rows")));
}
