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

use super::blocks::{BlockReader, RecordEnd};
use super::split::{RowEnd, Splitter};
use super::*;
use crate::ReadContext;
use crate::pass::{Pass, PassObserver, UNWATCHED, scan};

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
    for (column, faults) in source.columns().iter().zip(coverage.columns) {
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
    assert!(coverage.columns.iter().all(|faults| faults.misfits == 0));
    let fixed = sampled.with_columns(vec![Column { name: "a".into(), kind: ColumnType::Int }]).unwrap();
    let (_, coverage) = scan(&mut fixed.clone(), &|_| Rows::default(), &UNWATCHED).unwrap();
    assert_eq!((coverage.columns[0].misfits, coverage.columns[0].examples[0].detail.as_str()), (1, "0.5"));
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
    assert_eq!(coverage.columns[1].absent, 1);
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
        eprintln!("skipped: no Adult data in TRACKWAY_SHARED");
        return;
    }
    for (name, rows, label) in [("adult-train.csv", 32_561, ">50K"), ("adult-test.csv", 16_281, ">50K.")] {
        let spec = DataSpec { path: name.into(), ..DataSpec::default() };
        let (read, coverage, source) = read_all(&folder, &spec).unwrap();
        assert_eq!((coverage.rows_read, coverage.rows_rejected, source.columns().len()), (rows, 0, 15));
        assert!(coverage.columns[1].missing_strings["?"] > 900);
        assert!(read.iter().any(|row| row.ends_with(&format!("|{label}"))));
    }
}

/// All rows of a text as fields, and their lines.
fn split(text: &[u8], first_line: u64) -> Vec<(u64, Vec<Vec<u8>>)> {
    let mut splitter = Splitter::new(text, b',', first_line, crate::limits::DEFAULT.columns_max);
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

    /// Proves that the cuts of blocks change no field and no line number, on texts dense in quotes and line ends.
    #[test]
    fn where_blocks_are_cut_changes_nothing(
        letters in prop::collection::vec(prop::sample::select(b"ab1,,,\"\"\n\n\r \xFF".to_vec()), 0..120),
        block_bytes in 1usize..60,
    ) {
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
        let mut reader = BlockReader::open(source, RecordEnd::Csv { delimiter: b',' }, block_bytes).unwrap();
        let mut cut = Vec::new();
        while let Some(block) = reader.next(vec![7; 3]).unwrap() {
            cut.extend(split(&block.text, block.first_line));
        }
        prop_assert_eq!(cut, split(&letters, 1));
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
