use std::fs;

use arrow::array::{
    BooleanArray, Float64Array, Int64Array, ListArray, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::Int64Type;

use super::*;
use crate::DataSpec;
use crate::ReadContext;
use crate::pass::{UNWATCHED, scan};
use crate::read::Source;

fn batch() -> RecordBatch {
    let columns: [(&str, ArrayRef); 5] = [
        ("n", Arc::new(Int64Array::from(vec![Some(1), None, Some(-3)]))),
        ("x", Arc::new(Float64Array::from(vec![Some(0.1), Some(1e300), Some(f64::INFINITY)]))),
        ("b", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]))),
        ("t", Arc::new(StringArray::from(vec![Some("a,\"b\"\nc"), Some(""), None]))),
        ("when", Arc::new(TimestampMicrosecondArray::from(vec![Some(0), None, Some(1_500_000)]))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap()
}

fn written(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    let mut file = TableFile::create(&path, TableFormat::of(&path).unwrap(), &batch().schema()).unwrap();
    file.write(&batch()).unwrap();
    assert!(!path.exists(), "it has its name only when it is whole");
    file.finish().unwrap()
}

/// Proves the content of text files, letter by letter: quotes, missing values beside empty strings, numbers that JSON
/// does not have.
#[test]
fn texts_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let text = |name: &str| fs::read_to_string(written(folder.path(), name)).unwrap();
    assert_eq!(
        text("a.csv"),
        "n,x,b,t,when\n1,0.1,true,\"a,\"\"b\"\"\nc\",1970-01-01T00:00:00\n,1e300,false,\"\",\n-3,inf,,,1970-01-01T00:00:01.500\n"
    );
    assert!(text("a.tsv").starts_with("n\tx\tb\tt\twhen\n1\t0.1\ttrue\t\"a,"), "{}", text("a.tsv"));
    let lines: Vec<serde_json::Value> =
        text("a.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        lines[0],
        serde_json::json!({"n": 1, "x": 0.1, "b": true, "t": "a,\"b\"\nc", "when": "1970-01-01T00:00:00"})
    );
    assert_eq!(lines[1]["x"], 1e300);
    assert_eq!(
        (&lines[1]["t"], &lines[2]["x"], &lines[2]["t"]),
        (&"".into(), &serde_json::Value::Null, &serde_json::Value::Null)
    );
}

/// Proves that what is written is read again as the same rows, in each format, and that nothing else is left in the
/// folder.
#[test]
fn all_formats_hold_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.parquet", "a.csv", "a.tsv", "a.jsonl"] {
        written(folder.path(), name);
        let spec = DataSpec { path: name.into(), ..DataSpec::default() };
        let mut source = Source::open(folder.path(), "t", &spec, &ReadContext::default()).unwrap();
        let ((), coverage) = scan(&mut source, &|_: &Source| (), &UNWATCHED).unwrap();
        assert_eq!((coverage.rows_read, coverage.rows_rejected), (3, 0), "{name}");
        let kinds: Vec<ColumnType> = source.columns().iter().map(|column| column.kind).collect();
        let expected =
            [ColumnType::Int, ColumnType::Float, ColumnType::Bool, ColumnType::Text, ColumnType::Timestamp];
        assert_eq!(kinds, expected, "{name}");
        fs::remove_file(folder.path().join(name)).unwrap();
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Proves that an abandoned table leaves nothing, and that names and columns which do not fit are reported.
#[test]
fn what_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let mut file = TableFile::create(&path, TableFormat::Separated(','), &batch().schema()).unwrap();
    file.write(&batch()).unwrap();
    drop(file);
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1)])]));
    let nested = RecordBatch::try_from_iter([("l", lists)]).unwrap().schema();
    let refused = TableFile::create(&path, TableFormat::JsonLines, &nested).err().unwrap().to_string();
    assert!(
        refused.contains("column `l` contains nested values") && refused.contains(".parquet"),
        "{refused}"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(TableFormat::of(Path::new("scores.txt")).unwrap_err().to_string().contains(".jsonl"));
}
