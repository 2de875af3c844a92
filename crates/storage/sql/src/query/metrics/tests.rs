//! Damaged closed records, made from a good one by a seeded generator: each is read or refused.
//!
//! `TRACKWAY_FUZZ_MUTANTS` sets how many there are; the few of a usual run take seconds.

use arrow::datatypes::{DataType, Float64Type};
use parquet::arrow::ArrowWriter;
use trackway_core::{Rng as _, SplitMix64};
use trackway_records::{UTC, parquet_properties};

use super::*;

/// Mutants by default.
const USUAL_MUTANTS: u64 = 300;
/// Rows of the good record.
const ROWS: i64 = 400;

/// A column of the good record.
fn array_of(kind: &DataType) -> ArrayRef {
    match kind {
        DataType::Utf8 => {
            Arc::new(StringArray::from_iter_values((0..ROWS).map(|row| format!("loss_{}", row % 3))))
        }
        DataType::Int64 => Arc::new(Int64Array::from_iter_values(0..ROWS)),
        DataType::Boolean => Arc::new(BooleanArray::from_iter((0..ROWS).map(|row| Some(row % 2 == 0)))),
        DataType::Timestamp(..) => {
            Arc::new(TimestampMicrosecondArray::from_iter_values(0..ROWS).with_timezone(UTC))
        }
        _ => Arc::new(Float64Array::from_iter_values((0..ROWS).map(|row| 1.0 / (row + 1) as f64))),
    }
}

/// A record as closing writes it.
fn good_record() -> Vec<u8> {
    let schema = schema_of(METRIC_COLUMNS);
    let arrays = schema.fields().iter().map(|field| array_of(field.data_type())).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, Some(parquet_properties())).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

/// Changes a good file in one to three places: bits, bytes, pieces filled, left out, doubled, and the end.
fn mutate(good: &[u8], random: &mut SplitMix64) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for _ in 0..=random.next_u64() % 3 {
        if bytes.is_empty() {
            break;
        }
        let at = random.next_u64() as usize % bytes.len();
        let to = (at + 1 + random.next_u64() as usize % 64).min(bytes.len());
        match random.next_u64() % 6 {
            0 => bytes[at] ^= 1 << (random.next_u64() % 8),
            1 => bytes[at] = random.next_u64() as u8,
            2 => bytes[at..to].fill(random.next_u64() as u8),
            3 => drop(bytes.drain(at..to)),
            4 => bytes.extend_from_within(at..to),
            _ => bytes.truncate(at),
        }
    }
    bytes
}

/// The rows of a record, and the sum of its values, so that each of them is looked at.
fn read(path: &Path) -> Result<(usize, f64), String> {
    let void = Void { after_step: None, restarts: Vec::new(), origins: None };
    let needed = Needed::of(Rows::All, None, &[], &void);
    let (mut rows, mut sum) = (0, 0.0);
    let file = File::open(path).map_err(|error| error.to_string())?;
    read_closed(file, &needed, &mut |batch| {
        rows += batch.num_rows();
        if let Some(values) = batch.column_by_name("value") {
            sum += values.as_primitive::<Float64Type>().iter().flatten().sum::<f64>();
        }
        Ok(())
    })?;
    Ok((rows, sum))
}

/// Proves that no damage to a closed record makes reading it panic, also where it is only looked which writer counts, and
/// that a good one is read whole.
#[test]
fn mutants_of_closed_records_are_read_or_refused() {
    let given = std::env::var("TRACKWAY_FUZZ_MUTANTS").ok().and_then(|count| count.parse().ok());
    let mutants: u64 = given.unwrap_or(USUAL_MUTANTS);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.parquet");
    let good = good_record();
    std::fs::write(&path, &good).unwrap();
    let whole = read(&path).unwrap();
    assert_eq!(whole.0, ROWS as usize);
    let (mut as_good, mut refused) = (0, 0);
    for seed in 0..mutants {
        std::fs::write(&path, mutate(&good, &mut SplitMix64::new(seed))).unwrap();
        let found = contained(|| read(&path)).unwrap_or_else(|panic| panic!("mutant {seed}: {panic}"));
        as_good += u64::from(found.as_ref() == Ok(&whole));
        refused += u64::from(found.is_err());
        let file = File::open(&path).unwrap();
        drop(contained(|| origins::of_closed(file)));
    }
    assert!(as_good > 0 && refused > 0, "mutants of closed records damage too much or too little");
}
