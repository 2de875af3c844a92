//! Files in, rows and the account out.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use arrow::array::{Float64Array, Int32Array, LargeStringArray, RecordBatch, StringArray, UInt64Array};
use arrow::util::display::array_value_to_string;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;
use tempfile::TempDir;

use super::text::blocks::{BlockReader, RecordEnd};
use super::text::split::{Dialect, LinesLeftOut, RowEnd, Splitter};
use super::*;
use crate::pass::{Pass, PassObserver, UNWATCHED, head, scan};
use crate::{DecimalMark, ReadContext};

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

fn parquet_file(row_group_rows: usize) -> Vec<u8> {
    let ids: Vec<u64> = (0..5000).map(|row| u64::MAX - row).collect();
    let labels: Vec<Option<&str>> = (0..5000).map(|row| [Some("low"), Some("high"), None][row % 3]).collect();
    let unlike: Vec<String> = (0..5000).map(|row| format!("row {row}")).collect();
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(UInt64Array::from(ids)) as ArrayRef, false),
        (
            "small",
            Arc::new(Int32Array::from_iter((0..5000).map(|row| (row % 7 > 0).then_some(row)))) as ArrayRef,
            true,
        ),
        (
            "share",
            Arc::new(Float64Array::from_iter((0..5000).map(|row| Some(f64::from(row) / 4.0)))) as ArrayRef,
            true,
        ),
        ("label", Arc::new(StringArray::from(labels)) as ArrayRef, true),
        ("name", Arc::new(LargeStringArray::from_iter_values(unlike)) as ArrayRef, false),
    ])
    .unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(row_group_rows))
        .set_column_dictionary_enabled("name".into(), false)
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

/// Proves that Parquet rows come whole and in order whatever the row groups, dictionaries as such where there are any,
/// and that columns can be chosen.
#[test]
fn parquet_is_read_in_order_with_dictionaries() {
    for row_group_rows in [5000, 1234] {
        let folder = folder(&[("a.parquet", &parquet_file(row_group_rows))]);
        let spec = DataSpec { path: "a.parquet".into(), ..DataSpec::default() };
        let (rows, coverage, source) = read_all(folder.path(), &spec).unwrap();
        assert_eq!(types(&source), "id:Int small:Int share:Float label:Text name:Text");
        assert_eq!(coverage.rows_read, 5000);
        assert_eq!(rows[0], "0.1: 18446744073709551615|∅|0.0|low|row 0");
        assert_eq!(rows[4999], "0.5000: 18446744073709546616|4999|1249.75|high|row 4999");
        let mut chosen = source.select(&["name", "label"]).unwrap();
        let dictionary =
            |chunk: &Chunk| matches!(Texts::of(chunk.batch.column(1)), Some(Texts::Dictionary(..)));
        struct AllKeys(bool, fn(&Chunk) -> bool);
        impl Pass for AllKeys {
            fn observe(&mut self, chunk: &Chunk) {
                self.0 &= (self.1)(chunk) && Texts::of(chunk.batch.column(0)).unwrap().get(0).is_some();
            }
            fn merge(&mut self, later: Self) {
                self.0 &= later.0;
            }
        }
        let (all, _) = scan(&mut chosen, &|_| AllKeys(true, dictionary), &UNWATCHED).unwrap();
        assert!(all.0);
    }
}

/// Proves that Parquet of every codec that writers use is read.
#[test]
#[cfg(feature = "parquet-extra")]
fn parquet_of_every_codec_is_read() {
    use parquet::basic::Compression;
    let batch = RecordBatch::try_from_iter([(
        "number",
        Arc::new(Int32Array::from_iter_values((0..5000).map(|row| row % 100))) as ArrayRef,
    )])
    .unwrap();
    for codec in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::BROTLI(Default::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(Default::default()),
    ] {
        let properties = WriterProperties::builder().set_compression(codec).build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        let folder = folder(&[("a.parquet", &writer.into_inner().unwrap())]);
        let spec = DataSpec { path: "a.parquet".into(), ..DataSpec::default() };
        let (rows, ..) = read_all(folder.path(), &spec).unwrap();
        assert_eq!((rows.len(), rows[4999].as_str()), (5000, "0.5000: 99"), "{codec:?}");
    }
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

/// Proves that a Parquet file cut anywhere, or with any byte changed, ends in an error that names it or in rows that
/// add up, never in a panic.
#[test]
fn damaged_parquet_is_an_error() {
    let whole = parquet_file(2000);
    let mut failed = 0;
    let mut positions: Vec<usize> = (0..whole.len()).step_by(997).collect();
    positions.extend(whole.len().saturating_sub(600)..whole.len());
    for at in positions {
        let cut = story("a.parquet", &whole[..at], DataSpec::default());
        assert!(
            cut.starts_with("data `train`: `a.parquet` is not a readable Parquet file: "),
            "cut at {at}: {cut}"
        );
        let mut changed = whole.clone();
        changed[at] ^= 0x5A;
        failed += usize::from(story("a.parquet", &changed, DataSpec::default()).starts_with("data `train`"));
    }
    assert!(failed > 100, "{failed}");
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

/// All rows of a text as fields, and their lines.
fn split(text: &[u8], first_line: u64) -> Vec<(u64, Vec<Vec<u8>>)> {
    let dialect = Dialect { delimiter: b',', has_backslashes: false, comment: None };
    split_as(dialect, text, first_line)
}

fn split_as(dialect: Dialect, text: &[u8], first_line: u64) -> Vec<(u64, Vec<Vec<u8>>)> {
    let mut splitter = Splitter::new(text, dialect, first_line, crate::limits::DEFAULT.columns_max);
    let mut rows = Vec::new();
    loop {
        let mut spans = Vec::new();
        match splitter.next_row(&mut spans) {
            RowEnd::Row { line } => {
                rows.push((
                    line,
                    spans.iter().map(|span| span.get(text, &mut Vec::new()).to_vec()).collect(),
                ));
            }
            RowEnd::OpenQuote { line } => rows.push((line, Vec::new())),
            RowEnd::End => return rows,
        }
    }
}

/// The lines of a text that are not rows.
fn left_out(dialect: Dialect, text: &[u8]) -> LinesLeftOut {
    let mut splitter = Splitter::new(text, dialect, 1, crate::limits::DEFAULT.columns_max);
    while splitter.next_row(&mut Vec::new()) != RowEnd::End {}
    splitter.left_out()
}

/// The rows as the library used for the manifest reads them; `None` if a quote is left open.
fn reference(text: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut reader = csv_core::Reader::new();
    let (mut record, mut ends) = (vec![0; text.len() + 8], vec![0; text.len() + 8]);
    let mut rows = Vec::new();
    let mut rest = text;
    loop {
        let (result, read, _, count) = reader.read_record(rest, &mut record, &mut ends);
        rest = &rest[read..];
        match result {
            csv_core::ReadRecordResult::Record => {
                let starts = std::iter::once(0).chain(ends.iter().copied());
                let fields =
                    starts.zip(&ends[..count]).map(|(from, to)| record[from..*to].trim_ascii().to_vec());
                rows.push(fields.collect());
            }
            csv_core::ReadRecordResult::InputEmpty => {
                // An empty input marks the end, which flushes the last row.
                let (result, _, _, count) = reader.read_record(&[], &mut record[..], &mut ends[..]);
                if matches!(result, csv_core::ReadRecordResult::Record) {
                    rows.push(vec![Vec::new(); count]);
                }
                return rows;
            }
            _ => return rows,
        }
    }
}

/// Proves that a file that grows while it is scanned is refused: a count would be of no state of it.
#[test]
fn a_file_that_changes_while_it_is_scanned_is_refused() {
    let folder = folder(&[("a.csv", b"x\n1\n")]);
    let path = folder.path().join("a.csv");
    let grow = |_, _| fs::write(&path, b"x\n1\n2\n").unwrap();
    let watch = PassObserver { progress: &grow, ..*UNWATCHED };
    let spec = DataSpec { path: "a.csv".into(), ..DataSpec::default() };
    let mut source = Source::open(folder.path(), "train", &spec, &ReadContext::default()).unwrap();
    let error = scan(&mut source, &|_| Rows::default(), &watch).err().unwrap();
    assert!(matches!(error, DataError::Changed { .. }), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Proves that the cuts of blocks change no field, no line number and no count of what is left out, on texts dense
    /// in quotes and line ends.
    #[test]
    fn where_blocks_are_cut_changes_nothing(
        letters in prop::collection::vec(prop::sample::select(b"ab1,,,\"\"\n\n\r \xFF\\#".to_vec()), 0..120),
        block_bytes in 1usize..60,
        has_backslashes in any::<bool>(),
        comment in prop::option::of(Just(b'#')),
    ) {
        let dialect = Dialect { delimiter: b',', has_backslashes, comment };
        struct Memory(Vec<u8>);
        impl ByteSource for Memory {
            fn size_bytes(&self) -> u64 {
                self.0.len() as u64
            }
            fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
                let rest = self.0.get(offset as usize..).unwrap_or_default();
                let length = rest.len().min(buffer.len());
                buffer[..length].copy_from_slice(&rest[..length]);
                Ok(length)
            }
        }
        let source: Arc<dyn ByteSource> = Arc::new(Memory(letters.clone()));
        let mut reader = BlockReader::open(source, RecordEnd::Csv(dialect), block_bytes).unwrap();
        let (mut cut, mut empty, mut comments) = (Vec::new(), 0, 0);
        while let Some(block) = reader.next(vec![7; 3]).unwrap() {
            cut.extend(split_as(dialect, &block.text, block.first_line));
            let left_out = left_out(dialect, &block.text);
            (empty, comments) = (empty + left_out.empty.0, comments + left_out.comments.0);
        }
        prop_assert_eq!(cut, split_as(dialect, &letters, 1));
        let whole = left_out(dialect, &letters);
        prop_assert_eq!((empty, comments), (whole.empty.0, whole.comments.0));
    }

    /// Proves that fields are those that the library used for the manifest finds, so that both count the same rows. Two
    /// things differ on purpose and are kept out: blanks before a quote, and a quote that is never closed.
    #[test]
    fn fields_are_those_of_the_reference_reader(text in "[ab1,\n\r]{0,20}(\"([ab,\n]|\"\"){0,5}\"[,\n][ab1,\n]{0,8}){0,4}") {
        let text = format!("\n{text}\n");
        prop_assume!(split(text.as_bytes(), 1).iter().all(|(_, fields)| !fields.is_empty()));
        let ours: Vec<_> = split(text.as_bytes(), 1).into_iter().map(|(_, fields)| fields).collect();
        prop_assert_eq!(ours, reference(text.as_bytes()));
    }

}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Proves that no bytes make a reader panic, and that rows read and rejected are all the rows there are.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), format in 0usize..3) {
        let name = ["a.csv", "a.jsonl", "a.txt"][format];
        let folder = folder(&[(name, &bytes)]);
        let spec = DataSpec { path: name.into(), ..DataSpec::default() };
        if let Ok((_, coverage, source)) = read_all(folder.path(), &spec) {
            prop_assert!(coverage.rows_read + coverage.rows_rejected > 0 || source.columns().is_empty() || format == 0);
        }
    }
}

/// Proves that a page whose header claims 2 GiB is refused before memory is allocated, with the name of the limit,
/// whatever the footer claims.
#[test]
fn a_page_that_claims_too_much_is_refused() {
    let batch = RecordBatch::try_from_iter([(
        "a",
        Arc::new(StringArray::from_iter_values((0..100).map(|row| format!("value {row}")))) as ArrayRef,
    )])
    .unwrap();
    let properties = WriterProperties::builder()
        .set_compression(parquet::basic::Compression::SNAPPY)
        .set_dictionary_enabled(false);
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    let whole = writer.into_inner().unwrap();
    // The first page follows the magic number: its type (field 1), and what it claims (field 2).
    assert_eq!(whole[4..7], [0x15, 0, 0x15]);
    let old = whole[7..].iter().position(|byte| *byte < 128).unwrap() + 1;
    let claim = [0xfe, 0xff, 0xff, 0xff, 0x0f];
    let forged = [&whole[..7], &claim, &whole[7 + old..]].concat();
    let folder = folder(&[("whole.parquet", &whole), ("forged.parquet", &forged)]);
    assert_eq!(
        read_all(folder.path(), &DataSpec { path: "whole.parquet".into(), ..DataSpec::default() })
            .unwrap()
            .0
            .len(),
        100
    );
    let refused = read_all(folder.path(), &DataSpec { path: "forged.parquet".into(), ..DataSpec::default() })
        .err()
        .unwrap()
        .to_string();
    assert!(refused.contains("a page claims 2147483647 bytes"), "{refused}");
    assert!(refused.contains("TRACKWAY_PAGE_MIB_MAX"), "{refused}");
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

/// Proves that whatever a reader leaves out, cuts, renames or reads as something else is counted with its first line, and that a file
/// which is read as it is written has no note.
#[test]
fn what_reading_changes_is_counted() {
    let plain = |bytes: &[u8]| notes("a.csv", bytes, DataSpec::default());
    assert_eq!(plain(b"a,b\n1,x\n2,\" y \"\n"), Vec::<String>::new());
    assert_eq!(plain(b"a,b\n1, x\n2,y\n"), ["trimmed×1 at 2"]);
    assert_eq!(plain(b"a,b\n1,x\n\n2,y\n\n"), ["empty_lines×1 at 3"]);
    assert_eq!(plain(b"a,b\r\n1,x\r\n\r\n2,y\r\n\r\n"), ["empty_lines×1 at 3"]);
    assert_eq!(plain(b"a,b\r\n1,x\r\n2,y\r\n"), Vec::<String>::new());
    assert_eq!(plain(b"a,b\r1,x\r2,y\r"), Vec::<String>::new());
    assert_eq!(plain(b"a,a\n1,2\n"), ["renamed_column×1"]);
    assert_eq!(plain(b"a,b\n1,x\n2\n"), ["rejected_rows×1 at 3"]);
    assert_eq!(plain(b"a,b\n1,x\n2,\xFF\n"), ["recoded×1 at 3"]);
    assert_eq!(plain(b"a,b\n1,x\n2,NA\n"), ["missing_texts×1"]);
    assert_eq!(plain(b"a,b\n0.5,x\n0.33333333333333333333,y\n"), ["rounded×1 at 3"]);
    assert_eq!(plain(b"t,b\n2024-01-02 03:04:05.123456789,1\n2024-01-02,2\n"), ["rounded×1 at 2"]);
    assert_eq!(plain(b"a,b\n1,x\n02,y\n"), ["kept_as_text×1 at 3"]);
    assert_eq!(plain(b"a,b\n1/2/2024,x\n31/1/2024,y\n"), ["date_order×1 at 3"]);
    let numbers: String = (0..40).map(|row| format!("{row}\n")).collect();
    assert_eq!(plain(format!("a\n{numbers}oops\n").as_bytes()), ["misfits×1 at 42"]);
    let given = DataSpec { missing: vec!["NA".to_owned()], ..DataSpec::default() };
    assert_eq!(notes("a.csv", b"a,b\n1,x\n2,NA\n", given), Vec::<String>::new());
    let json = |bytes: &[u8]| notes("a.jsonl", bytes, DataSpec::default());
    assert_eq!(json(b"{\"a\":1,\"a\":2}\n{\"a\":3}\n"), ["renamed_column×1"]);
    assert_eq!(json(b"{\"a\":1}\n{\n"), ["rejected_rows×1 at 2"]);
    assert_eq!(json(b"{\"a\":0.1234567890123456789}\n"), ["rounded×1 at 1"]);
    assert_eq!(json(b"{\"a\":\"1\"}\n{\"a\":1}\n{\"a\":null}\n"), ["retyped×1 at 2"]);
    assert_eq!(json(b"{\"a\":18446744073709551617}\n{\"a\":1}\n"), ["kept_as_text×1"]);
    assert_eq!(plain(b",b\n1,x\n2,y\n"), ["renamed_column×1"]);
    assert_eq!(plain(b"t,b\n2016-12-31 23:59:60,1\n2024-01-02,2\n"), ["rounded×1 at 2"]);
    assert_eq!(plain(b"sep=;\na;b\n1;x\n"), ["layout×1"]);
}

/// Proves that halves of letters in UTF-16, which are no text, are counted, and that two different ones stay apart.
#[test]
fn halves_of_letters_are_counted_and_stay_apart() {
    let units = [0xFEFF, 0x61, 0x2C, 0x62, 0x0A, 0x31, 0x2C, 0xD800, 0x0A, 0x31, 0x2C, 0xD801, 0x0A];
    let bytes: Vec<u8> = units.iter().flat_map(|unit: &u16| unit.to_le_bytes()).collect();
    assert_eq!(notes("halves.csv", &bytes, DataSpec::default()), ["recoded×2 at 2"]);
    let folder = folder(&[("halves.csv", &bytes)]);
    let (rows, ..) = read_all(folder.path(), &spec_of("halves.csv")).unwrap();
    let values: Vec<&str> = rows.iter().filter_map(|row| row.split('|').nth(1)).collect();
    assert!(matches!(values.as_slice(), [one, other] if one != other), "{values:?}");
}

/// Proves that a header of years beside words, or of places behind an empty field, is one, and that rows of data of that form are not.
#[test]
fn headers_of_numbers_are_headers() {
    check(
        "years.csv",
        b"country,2019,2020\nDE,1,2\nFR,3,4\n",
        "country:Text 2019:Int 2020:Int\n0.2: DE|1|2\n0.3: FR|3|4",
    );
    check(
        "frame.csv",
        b",0,1\n0,2.5,x\n1,3.5,y\n",
        "column_1:Int 0:Float 1:Text\n0.2: 0|2.5|x\n0.3: 1|3.5|y",
    );
    check(
        "data.csv",
        b"DE,2019,2020\nFR,2018,2021\n",
        "column_1:Text column_2:Int column_3:Int\n0.1: DE|2019|2020\n0.2: FR|2018|2021",
    );
}

/// Proves that comments are counted over all parts of a file.
#[test]
fn comments_of_all_parts_are_counted() {
    let one = |row| {
        let comment_lines = Occurrences { count: 1, first: Some(Place { file: 0, row }) };
        Coverage { comment_lines, ..Coverage::default() }
    };
    let mut coverage = one(3);
    coverage.merge(one(9));
    assert_eq!(coverage.comment_lines, Occurrences { count: 2, first: Some(Place { file: 0, row: 3 }) });
}

/// Proves that of many columns with blanks around their strings there is one sentence, with all values and the first line.
#[test]
fn blanks_in_many_columns_are_one_sentence() {
    let sentences = |text: &[u8]| {
        let folder = folder(&[("a.csv", text)]);
        let (_, _, source) = read_all(folder.path(), &spec_of("a.csv")).unwrap();
        (source.reading().len(), source.notes())
    };
    let (notes, shown) = sentences(b"a,b,c,d\nv, v, v,v\nx, x, x, x\ny, y, y, y\n");
    let expected =
        "3 columns, such as `b`: 8 values are read without the blanks around, the first in line 2 of `a.csv`";
    assert_eq!((notes, shown), (3, vec![expected.to_owned()]));
    let (notes, shown) = sentences(b"a,b,c\nx, x, x\n");
    assert_eq!((notes, shown.len()), (2, 2));
}

/// Proves that a strict reading ends with what would have been changed, and that one without a change does not.
#[test]
fn a_strict_reading_ends_with_what_would_be_changed() {
    let folder = folder(&[("a.csv", b"a,b\n1,x\n2\n"), ("b.csv", b"a,b\n01,x\n2,y\n")]);
    let read = |name: &str| {
        let context = ReadContext::default().strict(true);
        let mut source = Source::open(folder.path(), "train", &spec_of(name), &context).unwrap();
        scan(&mut source, &|_| Rows::default(), &UNWATCHED).map(|(rows, _)| rows.0.len())
    };
    let refused = read("a.csv").unwrap_err();
    assert!(
        matches!(&refused, DataError::NotAsWritten { what, .. } if what.contains("line 3 of `a.csv`")),
        "{refused}"
    );
    assert_eq!(read("b.csv").unwrap(), 2);
}

/// Proves that a title, comments and a separator at the end of each row are read by the options that the note on such a file names, and
/// that all rows are refused without them.
#[test]
fn odd_layouts_are_read_by_an_option() {
    for (text, spec, option) in [
        (
            &b"Report, of, May\na,b\n1,x\n2,y\n3,z\n"[..],
            DataSpec { skip_lines: 1, ..DataSpec::default() },
            "--skip-lines 1",
        ),
        (
            b"# made by x\na,b\n1,x\n# middle, \"odd\n2,y\n3,z\n",
            DataSpec { comment: Some('#'), ..DataSpec::default() },
            "--comment '#'",
        ),
        (
            b"a,b\n1,x,\n2,y,\n3,z,\n",
            DataSpec { trailing_separator: true, ..DataSpec::default() },
            "--trailing-separator",
        ),
        (
            b"a,b,\n1,x,\n2,y,\n3,z,\n",
            DataSpec { trailing_separator: true, ..DataSpec::default() },
            "--trailing-separator",
        ),
    ] {
        let found = story("a.csv", text, spec);
        let rows: Vec<&str> =
            found.lines().map(|line| line.split_once(": ").map_or(line, |(_, row)| row)).collect();
        assert_eq!(rows, ["a:Int b:Text", "1|x", "2|y", "3|z"], "{found}");
        let folder = folder(&[("a.csv", text)]);
        let source =
            Source::open(folder.path(), "train", &spec_of("a.csv"), &ReadContext::default()).unwrap();
        let layout = source.reading().into_iter().find(|note| note.kind == ReadNoteKind::Layout);
        let message = layout.map(|note| note.message).unwrap_or_default();
        assert!(message.contains(option), "{message}");
    }
}

/// Proves that numbers with a decimal comma are text with a note that names the option, and numbers with it whatever the separator; that
/// lists have no note, that a comma which may be one of thousands is noted as such, and that points are noted beside the option.
#[test]
fn a_decimal_comma_is_read_by_an_option() {
    let comma = || DataSpec { decimal: Some(DecimalMark::Comma), ..DataSpec::default() };
    let none = Vec::<String>::new();
    for text in [
        &b"id;price\n1;47,00\n2;1.234,50\n3;-0,5\n4;12\n5;7,25\n"[..],
        b"id,price\n1,\"47,00\"\n2,\"1.234,50\"\n3,\"-0,5\"\n4,12\n5,\"7,25\"\n",
    ] {
        assert!(story("a.csv", text, DataSpec::default()).starts_with("id:Int price:Text\n0.2: 1|47,00\n"));
        assert_eq!(notes("a.csv", text, DataSpec::default()), ["decimal_mark×4 at 2"]);
        assert_eq!(
            story("a.csv", text, comma()),
            "id:Int price:Float\n0.2: 1|47.0\n0.3: 2|1234.5\n0.4: 3|-0.5\n0.5: 4|12.0\n0.6: 5|7.25"
        );
        assert_eq!(notes("a.csv", text, comma()), none);
    }
    let message = |text: &[u8], spec: DataSpec| {
        let folder = folder(&[("a.csv", text)]);
        let (_, _, source) = read_all(folder.path(), &DataSpec { path: "a.csv".into(), ..spec }).unwrap();
        source.notes().join("; ")
    };
    let clear = message(b"id;price\n1;47,00\n2;1,5\n3;2,5\n4;3,5\n5;4,5\n", DataSpec::default());
    assert_eq!(
        clear,
        "`price` is read as text: its numbers have a decimal comma, the first in line 2 of `a.csv`: --decimal , reads them \
         (`decimal = \",\"` in a run file)"
    );
    let thousands = b"id;n\n1;1,234\n2;2,345\n3;3,456\n4;4,567\n5;5,678\n";
    let unclear = message(thousands, DataSpec::default());
    assert!(unclear.contains("of decimals or of thousands") && unclear.contains("--decimal ,"), "{unclear}");
    assert!(story("a.csv", thousands, comma()).starts_with("id:Int n:Float\n0.2: 1|1.234\n"));
    let points = b"id;x;n\n1;1.5;1.234\n2;2.5;12.345\n3;3.5;7\n4;4.5;8\n5;5.5;1.234.567\n";
    assert!(story("a.csv", points, comma()).starts_with("id:Int x:Text n:Int\n0.2: 1|1.5|1234\n"));
    let beside = message(points, comma());
    assert!(
        beside.starts_with("`x` is read as text: its numbers have a decimal point, the first in line 2"),
        "{beside}"
    );
    let lists = b"id;tags\n1;1,2,3\n2;1,2\n3;4,5,6\n4;1\n5;2,3,4\n";
    assert_eq!(notes("a.csv", lists, DataSpec::default()), none);
    assert!(story("a.csv", lists, comma()).starts_with("id:Int tags:Text\n0.2: 1|1,2,3\n0.3: 2|1,2\n"));
}

/// Proves that of several columns of one name in a Parquet file, or of several equal keys in a JSON object, each is read, the later ones
/// under another name.
#[test]
fn repeated_names_are_separate_columns() {
    let fields = ["x", "y", "x"].map(|name| Field::new(name, DataType::Int32, false));
    let columns: Vec<ArrayRef> = [[1, 2], [3, 4], [5, 6]]
        .into_iter()
        .map(|values| Arc::new(Int32Array::from(values.to_vec())) as ArrayRef)
        .collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), columns).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    let bytes = writer.into_inner().unwrap();
    check("dup.parquet", &bytes, "x:Int y:Int x.1:Int\n0.1: 1|3|5\n0.2: 2|4|6");
    assert_eq!(notes("dup.parquet", &bytes, DataSpec::default()), ["renamed_column×1"]);
    check(
        "dup.jsonl",
        b"{\"x\":1,\"x\":2,\"y\":3}\n{\"x\":4}\n",
        "x:Int x.1:Int y:Int\n0.1: 1|2|3\n0.2: 4|∅|∅",
    );
}

/// Proves that decimal numbers of Parquet are whole numbers or floats while these hold each of them exactly, and text otherwise.
#[test]
fn decimals_of_parquet_keep_their_digits() {
    let decimal = |digits: Vec<i128>, scale: i8| -> ArrayRef {
        Arc::new(arrow::array::Decimal128Array::from(digits).with_precision_and_scale(38, scale).unwrap())
    };
    let batch = RecordBatch::try_from_iter([
        ("small", decimal(vec![1, 2], 0)),
        ("long", decimal(vec![9_007_199_254_740_993, 18_446_744_073_709_551_617], 0)),
        ("price", decimal(vec![150, 275], 2)),
        ("wei", decimal(vec![1_234_567_890_123_456_789, 1], 18)),
    ])
    .unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    check(
        "a.parquet",
        &writer.into_inner().unwrap(),
        "small:Int long:Text price:Float wei:Text\n\
         0.1: 1|9007199254740993|1.5|1.234567890123456789\n0.2: 2|18446744073709551617|2.75|0.000000000000000001",
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
