//! Damaged files, made from good ones by a seeded generator: every one is read with all rows accounted for, or refused.
//!
//! `TRACKWAY_FUZZ_MUTANTS` sets how many of each format there are; the few of a usual run take some seconds.
//! `TRACKWAY_FUZZ_KEEP` names a folder in which those are kept at which a decoder panicked.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int64Array, ListArray, RecordBatch, StringArray,
    StructArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{Field, Int32Type, Int64Type};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::{WriterProperties, WriterVersion};
use rayon::prelude::*;
use trackway_core::boundary::contained;
use trackway_core::{Rng as _, SplitMix64};

use super::*;
use crate::pass::UNWATCHED;
use crate::profile::Profile;
use crate::{DecimalMark, ReadContext};

/// Mutants of each format by default.
const USUAL_MUTANTS: u64 = 700;

const ROWS: i64 = 120;

fn table() -> RecordBatch {
    let texts = || (0..ROWS).map(|row| (row % 7 > 0).then(|| format!("word {}", row % 11)));
    let lists = (0..ROWS).map(|row| (row % 5 > 0).then(|| (0..row % 4).map(Some)));
    let inner: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS));
    let pair = StructArray::from(vec![(Arc::new(Field::new("x", inner.data_type().clone(), true)), inner)]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..ROWS))),
        (
            "rate",
            Arc::new(Float64Array::from_iter((0..ROWS).map(|row| (row % 3 > 0).then_some(row as f64 / 7.0)))),
        ),
        ("word", Arc::new(StringArray::from_iter(texts()))),
        (
            "key",
            Arc::new(
                texts()
                    .map(|text| text.unwrap_or_default())
                    .collect::<Vec<_>>()
                    .iter()
                    .map(|it| Some(it.as_str()))
                    .collect::<DictionaryArray<Int32Type>>(),
            ),
        ),
        (
            "when",
            Arc::new(TimestampMicrosecondArray::from_iter_values((0..ROWS).map(|row| row * 86_400_000_000))),
        ),
        ("flag", Arc::new(BooleanArray::from_iter((0..ROWS).map(|row| Some(row % 2 == 0))))),
        ("list", Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists))),
        ("pair", Arc::new(pair)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn parquet(compression: Compression, version: WriterVersion) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_writer_version(version)
        .set_max_row_group_row_count(Some(70))
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, table().schema(), Some(properties)).unwrap();
    writer.write(&table()).unwrap();
    writer.close().unwrap();
    bytes
}

fn csv() -> Vec<u8> {
    let row = |row: i64| {
        format!("{row},{}.5,\"a \"\"word\"\", {row}\",2024-01-0{}T00:00:00Z,,true\r\n", row % 9, row % 9 + 1)
    };
    let rows: String = (0..ROWS).map(row).collect();
    format!("id,rate,word,when,empty,flag\r\n{rows}").into_bytes()
}

/// Quotes escaped by backslashes, comments, a separator at the end of each row; numbers of many digits, codes, dates in another order.
fn odd_csv() -> Vec<u8> {
    let row = |row: i64| {
        let comment = if row % 9 == 3 { "# a \"comment\n" } else { "" };
        let number = 18_446_744_073_709_551_000 + u128::from(row.unsigned_abs());
        format!(
            "{comment}{number},0{row},\"say \\\"{row}\\\", so\",{}/1/2024 03:04:05 PM,0.12345678901234567{row},\n",
            row % 30 + 1
        )
    };
    let rows: String = (0..ROWS).map(row).collect();
    format!("id,code,word,when,rate,\n{rows}").into_bytes()
}

fn json_lines() -> Vec<u8> {
    let row = |row: i64| {
        format!(
            "{{\"id\":{row},\"rate\":{row}e-2,\"word\":\"\\u00e9 {row}\",\"list\":[1,{{\"x\":null}}],\"flag\":true,\"loss\":NaN,\"key {}\":{}}}\n",
            row % 6,
            "9".repeat(1 + row.unsigned_abs() as usize % 30)
        )
    };
    (0..ROWS).map(row).collect::<String>().into_bytes()
}

/// Changes a good file in one to three places: bits, bytes, numbers of some width, pieces left out, doubled or moved.
fn mutate(good: &[u8], random: &mut SplitMix64) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for _ in 0..=random.next_u64() % 3 {
        if bytes.is_empty() {
            return bytes;
        }
        // Every fourth change is near the end, where a Parquet file has its metadata.
        let length = bytes.len() as u64;
        let span = if !random.next_u64().is_multiple_of(4) { length } else { length.min(2048) };
        let at = (length - span + random.next_u64() % span) as usize;
        let to = (at + 1 + random.next_u64() as usize % 64).min(bytes.len());
        match random.next_u64() % 9 {
            0 => bytes[at] ^= 1 << (random.next_u64() % 8),
            1 => bytes[at] = random.next_u64() as u8,
            2 => {
                let letters = [0x00, 0x7f, 0x80, 0xff, b'"', b'\n', b'{', b',', b'\\', b'#'];
                bytes[at] = letters[random.next_u64() as usize % letters.len()];
            }
            3 => bytes[at..to].fill(random.next_u64() as u8),
            4 => drop(bytes.drain(at..to)),
            5 => bytes.truncate(at),
            6 => bytes.extend_from_within(at..to),
            7 => {
                let piece = bytes[at..to].to_vec();
                let there = random.next_u64() as usize % bytes.len();
                bytes.splice(there..there, piece);
            }
            _ => {
                let number =
                    [u64::MAX, 1 << 31, 1 << 20, 0, u64::from(u32::MAX)][random.next_u64() as usize % 5];
                let number = &number.to_le_bytes()[..(to - at).min(8)];
                bytes[at..at + number.len()].copy_from_slice(number);
            }
        }
    }
    bytes
}

/// Reads a mutant; whether it was read. What must hold of the account is asserted.
fn read(path: &Path, seed: u64) -> Result<(), DataError> {
    let spec = DataSpec {
        path: path.file_name().unwrap().to_string_lossy().into_owned(),
        comment: (seed % 4 == 1).then_some('#'),
        skip_lines: if seed % 8 == 3 { 2 } else { 0 },
        trailing_separator: seed % 4 == 1,
        decimal: (seed % 4 == 2).then_some(DecimalMark::Comma),
        ..DataSpec::default()
    };
    let mut source = Source::open(path.parent().unwrap(), "mutant", &spec, &ReadContext::default())?;
    let (profile, coverage) = Profile::of(&mut source, None, &UNWATCHED)?;
    assert_eq!(profile.rows, coverage.rows_read);
    assert_eq!(coverage.rejects.iter().map(|rejects| rejects.count).sum::<u64>(), coverage.rows_rejected);
    for column in &profile.columns {
        assert_eq!(column.rows, coverage.rows_read);
        assert!(column.null_count + column.faults.misfits <= column.rows);
    }
    assert!(source.reading().iter().all(|note| !note.message.is_empty()));
    Ok(())
}

#[derive(Default)]
struct Counts {
    read: AtomicU64,
    refused: AtomicU64,
    contained: AtomicU64,
}

fn check(folder: &Path, format: &str, good: &[u8], seed: u64, counts: &Counts) {
    let path = folder.join(format!("{seed}.{format}"));
    fs::write(&path, mutate(good, &mut SplitMix64::new(seed))).unwrap();
    match contained(|| read(&path, seed)) {
        Err(panic) => panic!("mutant {seed} of {format}: {panic}"),
        Ok(Err(DataError::Fault { panic, .. })) => panic!("mutant {seed} of {format}: {panic}"),
        Ok(Err(error)) => {
            let by_boundary = error.to_string().contains("decoding it failed");
            if let Some(folder) = std::env::var_os("TRACKWAY_FUZZ_KEEP").filter(|_| by_boundary) {
                fs::copy(&path, Path::new(&folder).join(format!("mutant-{seed}.{format}"))).unwrap();
            }
            let counter = if by_boundary { &counts.contained } else { &counts.refused };
            counter.fetch_add(1, Ordering::Relaxed)
        }
        Ok(Ok(())) => counts.read.fetch_add(1, Ordering::Relaxed),
    };
    fs::remove_file(&path).unwrap();
}

/// Proves that no damage to a Parquet, CSV or JSON lines file makes reading it panic, and that what is read keeps to
/// the account of rows.
#[test]
fn mutants_are_read_or_refused() {
    let asked = std::env::var("TRACKWAY_FUZZ_MUTANTS").ok().and_then(|count| count.parse().ok());
    let mutants: u64 = asked.unwrap_or(USUAL_MUTANTS);
    let files = [
        vec![
            parquet(Compression::UNCOMPRESSED, WriterVersion::PARQUET_1_0),
            parquet(Compression::SNAPPY, WriterVersion::PARQUET_2_0),
            parquet(Compression::ZSTD(Default::default()), WriterVersion::PARQUET_1_0),
        ],
        vec![csv(), odd_csv()],
        vec![json_lines()],
    ];
    for (format, good) in ["parquet", "csv", "jsonl"].into_iter().zip(&files) {
        let folder = tempfile::tempdir().unwrap();
        let counts = Counts::default();
        (0..mutants).into_par_iter().for_each(|seed| {
            check(folder.path(), format, &good[seed as usize % good.len()], seed, &counts);
        });
        let [read, refused, contained] =
            [&counts.read, &counts.refused, &counts.contained].map(|count| count.load(Ordering::Relaxed));
        println!("{format}: {read} read, {refused} refused, {contained} of which the decoder panicked");
        assert_eq!(read + refused + contained, mutants);
        assert!(read > 0, "mutants of {format} damage too much");
    }
}
