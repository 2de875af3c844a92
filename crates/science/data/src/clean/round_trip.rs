//! A table that is read and written again is equal, value by value, or the difference is in a note on reading.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampNanosecondArray, UInt64Array,
};
use arrow::util::display::array_value_to_string;
use proptest::prelude::*;
use trackway_core::text::csv_field;
use trackway_tables::pass::{Pass, UNWATCHED, scan};
use trackway_tables::read::{Chunk, Source};
use trackway_tables::write::{TableFile, TableFormat};
use trackway_tables::{ColumnType, DataSpec, ReadContext};

use super::{CleanPlan, Duplicates, clean};

/// Cells as they were read, or as the file has them; nothing for a missing one.
struct Cells {
    as_written: bool,
    rows: Vec<Vec<Option<String>>>,
}

impl Pass for Cells {
    fn observe(&mut self, chunk: &Chunk) {
        let batch = if self.as_written { chunk.originals() } else { &chunk.batch };
        for row in 0..batch.num_rows() {
            let cell = |array: &ArrayRef| {
                let is_null = array.logical_nulls().is_some_and(|nulls| nulls.is_null(row));
                (!is_null).then(|| array_value_to_string(array, row).unwrap())
            };
            self.rows.push(batch.columns().iter().map(cell).collect());
        }
    }

    fn merge(&mut self, later: Self) {
        self.rows.extend(later.rows);
    }
}

fn spec(name: &str) -> DataSpec {
    let is_csv = name.ends_with("csv");
    DataSpec {
        path: name.into(),
        header: is_csv.then_some(true),
        delimiter: is_csv.then_some(','),
        ..DataSpec::default()
    }
}

fn open(folder: &Path, name: &str) -> Source {
    Source::open(folder, "data", &spec(name), &ReadContext::default()).unwrap()
}

fn cells(folder: &Path, name: &str, as_written: bool) -> (Vec<Vec<Option<String>>>, Source) {
    let mut source = open(folder, name).with_originals();
    let make = |_: &Source| Cells { as_written, rows: Vec::new() };
    let (cells, _) = scan(&mut source, &make, &UNWATCHED).unwrap();
    (cells.rows, source)
}

/// Writes a table again without changing it; how many rows were set aside.
fn write_again(folder: &Path, from: &str, to: &str) -> u64 {
    let plan = CleanPlan {
        schema: None,
        compile: &|_| Err("there are no rules".to_owned()),
        duplicates: Duplicates::Keep,
        protected: Vec::new(),
        key: None,
        out: folder.join(to),
        quarantine: folder.join("aside.csv"),
    };
    clean(&open(folder, from), &plan, &UNWATCHED).unwrap().account.rows_quarantined
}

/// Values that readers of other tools change.
fn hard_text() -> impl Strategy<Value = String> {
    let usual = [
        "",
        "NA",
        "a",
        " a ",
        " ",
        "a,b",
        "say \"x\"",
        "\\",
        "\\\"",
        "a\nb",
        "é",
        "1",
        "01",
        "1.0",
        "+7",
        "+4915112345678",
        "18446744073709551615",
        "18446744073709551617",
        "-9007199254740993",
        "9007199254740992",
        "100000000000000000000",
        "0.1",
        "0.1234567890123456789",
        "0.33333333333333333333",
        "1e400",
        "1e-400",
        "-0.0",
        "NaN",
        "inf",
        "1_000",
        "true",
        "FALSE",
        "2024-01-02",
        "2024-01-02 03:04:05 UTC",
        "2024/01/02 03:04:05",
        "2024-01-02T03:04:05.123456789Z",
        "31/12/2024",
        "12/31/2024",
        "1/2/2024",
        "2024-02-30",
        "#x",
    ];
    prop_oneof![
        prop::sample::select(usual.map(str::to_owned).to_vec()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| number.to_string()),
        "[-+0-9./: ]{0,12}",
    ]
}

/// Columns of which each has values of one or two kinds, as real ones do.
fn hard_columns() -> impl Strategy<Value = Vec<Vec<String>>> {
    let column = prop::collection::vec(hard_text(), 1..4);
    (prop::collection::vec(column, 3), prop::collection::vec(any::<prop::sample::Index>(), 3..36)).prop_map(
        |(kinds, picks)| {
            let rows = picks.chunks_exact(3);
            rows.map(|row| row.iter().zip(&kinds).map(|(pick, kinds)| pick.get(kinds).clone()).collect())
                .collect()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Proves that a CSV file comes out as it is: as CSV with the same strings, and as Parquet with the values that were read, which
    /// are again those of the strings wherever no note on reading names the column.
    #[test]
    fn csv_comes_out_as_it_is(rows in hard_columns()) {
        let folder = tempfile::tempdir().unwrap();
        let line = |row: &Vec<String>| {
            let fields: Vec<_> = row.iter().map(|field| csv_field(field, ',').into_owned()).collect();
            fields.join(",") + "\n"
        };
        let text = format!("a,b,c\n{}", rows.iter().map(line).collect::<String>());
        fs::write(folder.path().join("in.csv"), text).unwrap();
        let aside = write_again(folder.path(), "in.csv", "out.csv");
        let (before, source) = cells(folder.path(), "in.csv", true);
        let (after, _) = cells(folder.path(), "out.csv", true);
        prop_assert_eq!(after.len() as u64 + aside, before.len() as u64);
        if aside == 0 {
            prop_assert_eq!(&before, &after);
        }
        let written = |cell: &Option<String>| cell.clone().unwrap_or_default();
        let (typed, _) = cells(folder.path(), "in.csv", false);
        for ((row, strings), values) in rows.iter().zip(&before).zip(&typed) {
            prop_assert_eq!(row, &strings.iter().map(written).collect::<Vec<_>>());
            for ((string, value), column) in strings.iter().zip(values).zip(source.columns()) {
                let is_named = source.reading().iter().any(|note| note.column.as_deref() == Some(&column.name));
                let is_equal = match (string.as_deref().unwrap_or_default(), value.as_deref()) {
                    // Blanks alone are a value of strings only.
                    (string, _) if string.trim().is_empty() => true,
                    (string, Some(value)) => column.kind != ColumnType::Text || string == value,
                    (_, None) => false,
                };
                prop_assert!(is_equal || is_named, "`{}`: {string:?} {value:?}", column.name);
            }
        }
        if write_again(folder.path(), "in.csv", "out.parquet") == 0 {
            let (parquet, _) = cells(folder.path(), "out.parquet", false);
            let (typed, _) = cells(folder.path(), "in.csv", false);
            prop_assert_eq!(parquet, typed);
        }
    }

    /// Proves that different strings of one column are never read as one value, but for other notations of the same number, time or
    /// boolean, unless a note on reading names the column.
    #[test]
    fn different_strings_are_different_values(rows in hard_columns()) {
        let folder = tempfile::tempdir().unwrap();
        let line = |row: &Vec<String>| {
            let fields: Vec<_> = row.iter().map(|field| csv_field(field, ',').into_owned()).collect();
            fields.join(",") + "\n"
        };
        let text = format!("a,b,c\n{}", rows.iter().map(line).collect::<String>());
        fs::write(folder.path().join("in.csv"), text).unwrap();
        let (typed, source) = cells(folder.path(), "in.csv", false);
        for (index, column) in source.columns().iter().enumerate() {
            let is_named = source.reading().iter().any(|note| {
                note.kind.is_loss() && note.column.as_deref() == Some(&column.name)
            });
            let whole = |text: &str| text.parse::<i128>().ok();
            for (one, other) in (0..rows.len()).flat_map(|one| (0..one).map(move |other| (one, other))) {
                let (texts, values) = ([&rows[one][index], &rows[other][index]], [&typed[one][index], &typed[other][index]]);
                let (Some(first), Some(second)) = (whole(texts[0]), whole(texts[1])) else { continue };
                // Whole numbers: equal values only where they are the same number.
                let is_rounded = values[0].is_some() && values[0] == values[1] && first != second;
                prop_assert!(!is_rounded || is_named, "`{}`: {texts:?} {values:?}", column.name);
            }
        }
    }

    /// Proves that a Parquet file comes out as it is: as Parquet with the same types and values, and as CSV with the same values.
    #[test]
    fn parquet_comes_out_as_it_is(
        ints in prop::collection::vec(prop::option::of(any::<i64>()), 1..12),
        seed in any::<u64>(),
        texts in prop::collection::vec(prop::option::of(hard_text()), 12),
    ) {
        let rows = ints.len();
        let digits = |row: usize| i128::from(seed.wrapping_mul(row as u64 + 1)).wrapping_mul(i128::from(seed >> (row % 60)));
        let decimal = |scale: i8| -> ArrayRef {
            let values = (0..rows).map(|row| (row % 4 > 0).then(|| digits(row) % 10i128.pow(37)));
            Arc::new(values.collect::<Decimal128Array>().with_precision_and_scale(38, scale).unwrap())
        };
        let floats = (0..rows).map(|row| f64::from_bits(seed.rotate_left(row as u32 * 7)));
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("int", Arc::new(Int64Array::from(ints.clone())) as ArrayRef, true),
            ("unsigned", Arc::new((0..rows).map(|row| Some(seed.rotate_right(row as u32))).collect::<UInt64Array>()) as ArrayRef, true),
            ("id", decimal(0), true),
            ("wei", decimal(18), true),
            ("float", Arc::new(floats.filter(|it| it.is_finite()).chain(std::iter::repeat(0.5)).take(rows).map(Some).collect::<Float64Array>()) as ArrayRef, true),
            ("text", Arc::new(texts[..rows].iter().map(|it| it.as_deref()).collect::<StringArray>()) as ArrayRef, true),
            ("at", Arc::new((0..rows).map(|row| Some((seed >> 3) as i64 / (row as i64 + 1))).collect::<TimestampNanosecondArray>()) as ArrayRef, true),
        ])
        .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut file = TableFile::create(&folder.path().join("in.parquet"), TableFormat::Parquet, &batch.schema()).unwrap();
        file.write(&batch).unwrap();
        file.finish().unwrap();
        prop_assert_eq!(write_again(folder.path(), "in.parquet", "out.parquet"), 0);
        let (before, _) = cells(folder.path(), "in.parquet", true);
        prop_assert_eq!(&before, &cells(folder.path(), "out.parquet", true).0);
        let (one, other) = (open(folder.path(), "in.parquet"), open(folder.path(), "out.parquet"));
        for name in ["int", "unsigned", "id", "wei", "float", "text", "at"] {
            prop_assert_eq!(one.stored_type(name), other.stored_type(name));
        }
        prop_assert_eq!(write_again(folder.path(), "in.parquet", "out.csv"), 0);
        let (after, _) = cells(folder.path(), "out.csv", true);
        // An empty text is a pair of quotes there, which is read as a missing value.
        let plain = |rows: &[Vec<Option<String>>]| -> Vec<Vec<String>> {
            rows.iter().map(|row| row.iter().map(|cell| cell.clone().unwrap_or_default()).collect()).collect()
        };
        prop_assert_eq!(plain(&before), plain(&after));
    }
}
