//! Parquet files.

use arrow::array::{
    ArrayRef, Float64Array, Int32Array, LargeStringArray, RecordBatch, StringArray, UInt64Array,
};
use arrow::datatypes::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

use crate::pass::{Pass, UNWATCHED, scan};

use super::*;

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
