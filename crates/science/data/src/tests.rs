//! Data sets on a real disk: bytes in, manifest or message out.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use tempfile::TempDir;
use trackway_core::{ManualClock, Timestamp};
use trackway_tables::pass::{PassObserver, UNWATCHED};
use trackway_tables::{Column, ColumnType, DataError, DataSpec, ReadContext};

use super::*;

/// A time after every file a test makes, so that the cache may trust their times of change.
fn later() -> ManualClock {
    ManualClock::at(Timestamp::from_micros(4_000_000_000_000_000))
}

fn resolve(base: &Path, spec: &DataSpec) -> Result<DataManifest, DataError> {
    Resolver { base, context: &ReadContext::default(), cache: None, clock: &later(), watch: &UNWATCHED }
        .resolve("train", spec)
}

fn spec(path: &str) -> DataSpec {
    DataSpec { path: path.into(), ..DataSpec::default() }
}

fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, bytes) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    folder
}

/// `rows | delimiter | name:type … | kind×count at line=detail …` of a single file.
fn describe(bytes: &[u8], spec: DataSpec) -> String {
    let name = if spec.path.is_empty() { "data.csv" } else { &spec.path };
    let folder = folder(&[(name, bytes)]);
    let spec = DataSpec { path: name.into(), ..spec };
    let file = match resolve(folder.path(), &spec) {
        Ok(manifest) => manifest.files.into_iter().next().unwrap(),
        Err(error) => return error.to_string(),
    };
    let columns = file.schema.unwrap_or_default().into_iter().map(|it| format!("{}:{:?}", it.name, it.kind));
    let columns: Vec<_> = columns.collect();
    let mut text = format!("{} rows, {}", file.rows.unwrap(), columns.join(" "));
    if let Some(delimiter) = file.delimiter.filter(|delimiter| *delimiter != ',') {
        text.push_str(&format!(", by {delimiter:?}"));
    }
    for rejects in file.rejects {
        let examples: Vec<_> =
            rejects.examples.iter().map(|it| format!("{}={}", it.place.row, it.detail)).collect();
        text.push_str(&format!(", {:?}×{} at {}", rejects.kind, rejects.count, examples.join("; ")));
    }
    if file.rows_recoded > 0 {
        text.push_str(&format!(", {} recoded", file.rows_recoded));
    }
    text
}

/// Proves what is read from CSV bytes: separators, headers, blanks, quotes, line ends, byte order mark, missing
/// values, ragged and undecodable rows with the line on which each begins.
#[test]
fn csv_bytes_give_rows_schema_and_faulty_lines() {
    let columns = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let cases: &[(&[u8], DataSpec, &str)] = &[
        (b"a,b\n1,x\n2,y\n", DataSpec::default(), "2 rows, a:Int b:Text"),
        (b"a,b\n1,x\n2,y", DataSpec::default(), "2 rows, a:Int b:Text"),
        (b"\xEF\xBB\xBFa;b\r\n1;2,5\r\n3;4,5\r\n", DataSpec::default(), "2 rows, a:Int b:Text, by ';'"),
        (b"a\tb\n1\ttrue\n2.5\tFALSE\n", DataSpec::default(), "2 rows, a:Float b:Bool, by '\\t'"),
        (b",day\n0,2026-11-21\n1,\n", DataSpec::default(), "2 rows, column_1:Int day:Timestamp"),
        (
            b"39, State-gov, ?\n50, ?, 7\n",
            DataSpec::default(),
            "2 rows, column_1:Int column_2:Text column_3:Int",
        ),
        (
            b"39, State-gov, ?\n50, ?, 7\n\n",
            DataSpec {
                columns: columns(&["age", "work", "n"]),
                missing: vec!["?".into()],
                ..DataSpec::default()
            },
            "2 rows, age:Int work:Text n:Int",
        ),
        (
            b"age,work\n39,x\n",
            DataSpec { columns: columns(&["age", "work"]), ..DataSpec::default() },
            "1 rows, age:Int work:Text",
        ),
        (
            b"a,b\n\"one\ntwo\",1\n3\n4,5\n",
            DataSpec::default(),
            "2 rows, a:Text b:Int, Ragged×1 at 4=1 fields instead of 2",
        ),
        (
            b"a,b\r\n\r\n1,2,3\r\n\r\n4,\xFF\r\n",
            DataSpec::default(),
            "1 rows, a:Int b:Text, Ragged×1 at 3=3 fields instead of 2, 1 recoded",
        ),
        // A table without rows, as one with a header alone: checks of its rows block.
        (b"", DataSpec::default(), "0 rows, "),
        (
            b"a,b\n1,\0\n",
            DataSpec::default(),
            "data `train`: `data.csv` is not a readable CSV file: line 2 contains a NUL byte: not a text file",
        ),
        (
            b"a,b\n1,\"open\n2,x\n",
            DataSpec::default(),
            "data `train`: `data.csv` is not a readable table: none of its 1 rows can be read: line 2: a quote is opened and never closed",
        ),
        (
            b"1,2,3\n",
            DataSpec { columns: columns(&["a", "b"]), ..DataSpec::default() },
            "data `train`: `columns` names 2 columns, but the rows of `data.csv` have 3",
        ),
    ];
    for (bytes, spec, expected) in cases {
        assert_eq!(describe(bytes, spec.clone()), *expected, "{}", String::from_utf8_lossy(bytes));
    }
}

/// Proves that rows and lines that cross chunk borders are counted once and found on the right line.
#[test]
fn rows_across_chunks_are_counted_once() {
    let mut text = String::from("id,text\n");
    for row in 0..60_000 {
        text.push_str(&format!("{row},\"line one\nline two of row {row}, with some more text in it\"\n"));
    }
    text.push_str("60000\n");
    assert!(text.len() > 3 << 20, "the file must span several chunks");
    assert_eq!(
        describe(text.as_bytes(), DataSpec::default()),
        "60000 rows, id:Int text:Text, Ragged×1 at 120002=1 fields instead of 2"
    );
    let mut lines = String::new();
    for row in 0..60_000 {
        lines.push_str(&format!(
            "{{\"id\":{row},\"text\":\"some text that makes the line a little longer\"}}\n"
        ));
    }
    lines.push_str("{\"id\":\n");
    let described = describe(lines.as_bytes(), spec("data.jsonl"));
    assert!(described.starts_with("60000 rows, id:Int text:Text, BadJson×1 at 60001=ends"), "{described}");
}

/// Proves that JSON lines give rows, the union of keys and types that hold every value, and that bad lines are
/// counted with their places.
#[test]
fn jsonl_gives_rows_keys_types_and_bad_lines() {
    let text = b"{\"id\":1,\"tags\":[1],\"at\":\"2026-11-21\"}\n\n{\"id\":2.5,\"extra\":{\"a\":1},\"at\":null}\n[1]\n{\"id\":\n{\"id\":\"x\",\"tags\":7}\n\xFF\n";
    let described = describe(text, spec("data.jsonl"));
    let expected = "3 rows, id:Text tags:Mixed at:Timestamp extra:Object, BadJson×3 at 4=a JSON value that is not an object; 5=ends in the middle of a value; 7=expected value, column 1, 1 recoded";
    assert_eq!(described, expected);
    assert_eq!(
        describe(b"[1]\n", spec("data.jsonl")),
        "data `train`: `data.jsonl` is not a readable JSONL file: no line of its beginning holds a JSON object (line 1: a JSON value that is not an object)"
    );
}

fn parquet_bytes() -> Vec<u8> {
    let schema = "message m { required int64 id; optional double score; required binary name (STRING); }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&[1, 2, 3], None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<DoubleType>().write_batch(&[0.5, 1.5], Some(&[1, 0, 1]), None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let names: Vec<ByteArray> = ["a", "b", "c"].into_iter().map(ByteArray::from).collect();
    column.typed::<ByteArrayType>().write_batch(&names, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.into_inner().unwrap()
}

/// Proves that a Parquet file written by the reference writer is read by its footer, and that a truncated one is
/// an error that names the file.
#[test]
fn parquet_is_read_by_its_footer_and_a_torn_one_is_named() {
    let bytes = parquet_bytes();
    assert_eq!(describe(&bytes, spec("data.parquet")), "3 rows, id:Int score:Float name:Text");
    let torn = describe(&bytes[..bytes.len() - 3], spec("data.parquet"));
    assert!(torn.starts_with("data `train`: `data.parquet` is not a readable Parquet file: "), "{torn}");
}

/// Proves that a folder and a glob give the same sorted files without hidden ones, that the digest follows
/// content and names inside the set but not the set's place, and that hashes are plain BLAKE3.
#[test]
fn folders_and_globs_are_sorted_and_the_digest_follows_content() {
    let files: &[(&str, &[u8])] = &[
        ("d/b.csv", b"x\n1\n"),
        ("d/a.csv", b"x\n2.5\n"),
        ("d/.hidden", b"?"),
        ("e/b.csv", b"x\n1\n"),
        ("e/a.csv", b"x\n2.5\n"),
    ];
    let folder = folder(files);
    let by_folder = resolve(folder.path(), &spec("d")).unwrap();
    let paths: Vec<_> = by_folder.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["d/a.csv", "d/b.csv"]);
    assert_eq!(by_folder.rows, Some(2));
    assert_eq!(by_folder.schema, Some(vec![Column { name: "x".into(), kind: ColumnType::Float }]));
    assert_eq!(by_folder.files[1].blake3, blake3::hash(b"x\n1\n").to_hex().to_string());
    let by_glob = resolve(folder.path(), &spec("d/*.csv")).unwrap();
    assert_eq!(by_glob.files, by_folder.files);
    assert_eq!(by_glob.data_sha256, by_folder.data_sha256);
    assert_eq!(resolve(folder.path(), &spec("e")).unwrap().data_sha256, by_folder.data_sha256);
    fs::write(folder.path().join("e/a.csv"), b"x\n3.5\n").unwrap();
    assert_ne!(resolve(folder.path(), &spec("e")).unwrap().data_sha256, by_folder.data_sha256);
}

/// Proves that every mistake in choosing data is reported with what to do about it.
#[test]
fn mistakes_in_choosing_data_are_reported_with_advice() {
    let folder = folder(&[
        ("data/train.csv", b"age,income\n1,2\n"),
        ("data/raw.csv", b"39,low\n40,high\n"),
        ("data/image.bin", b"\x00\x01"),
        ("empty/.hidden", b""),
    ]);
    let label = |path: &str, label: &str| DataSpec { label: Some(label.into()), ..spec(path) };
    let cases = [
        (spec("data/trian.csv"), "data `train`: `data/trian.csv` does not exist; did you mean `train.csv`?"),
        (spec("dat/train.csv"), "data `train`: `dat/train.csv` does not exist; did you mean `data`?"),
        (spec("data/train.csv/x"), "data `train`: `data/train.csv/x` does not exist"),
        (
            spec("data/*.parquet"),
            "data `train`: no file matches `data/*.parquet`; check the pattern against the folder's content",
        ),
        (spec("empty"), "data `train`: the folder `empty` contains no file (hidden files are ignored)"),
        (spec("s3://bucket/x"), "data `train`: cannot read `s3://bucket/x`: this program reads no URLs"),
        (
            spec("/dev/null"),
            "data `train`: `/dev/null` is a device, socket or pipe; a data set is made of local files",
        ),
        (
            label("data/train.csv", "incme"),
            "data `train`: label column `incme` is not in `data/train.csv`; did you mean `income`?",
        ),
        (
            label("data/train.csv", "zzz"),
            "data `train`: label column `zzz` is not in `data/train.csv`; its 2 columns are `age`, `income`",
        ),
        (
            label("data/raw.csv", "income"),
            "data `train`: label column `income` is not in `data/raw.csv`; its first row is data, not a header: name its columns with `columns = [...]` in `[data.train]`",
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(resolve(folder.path(), &spec).unwrap_err().to_string(), expected);
    }
    // A regular file whose read(2) fails, for root too.
    let unreadable = resolve(folder.path(), &spec("/proc/self/mem")).unwrap_err();
    assert!(matches!(unreadable, DataError::Unreadable { .. }), "{unreadable}");
    let unchecked = resolve(folder.path(), &label("data/image.bin", "income")).unwrap();
    assert_eq!(unchecked.notes, ["label column `income` was not checked: no file is Parquet, CSV or JSONL"]);
}

/// Proves that an unchanged file is not read again, that a changed one of the same size and modification time is,
/// that another way of reading is another entry, and that a file still warm is never trusted.
#[test]
fn the_cache_spares_settled_files_only() {
    let folder = folder(&[("a.csv", b"x\n1\n")]);
    let (path, cache_path) = (folder.path().join("a.csv"), folder.path().join("cache.json"));
    let moment = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let set_modified = || fs::File::options().write(true).open(&path).unwrap().set_modified(moment).unwrap();
    let was_cached = |clock: &ManualClock, spec: &DataSpec| {
        let cache = HashCache::load(&cache_path);
        let cached = is_cached(&cache, folder.path(), clock, spec);
        cache.save().unwrap();
        cached
    };
    set_modified();
    let warm = ManualClock::at(Timestamp::from_micros(1_000_001_000_000));
    assert!(
        !was_cached(&warm, &spec("a.csv")) && !was_cached(&warm, &spec("a.csv")),
        "a warm file is read each time"
    );
    assert!(!was_cached(&later(), &spec("a.csv")));
    assert!(was_cached(&later(), &spec("a.csv")), "a settled file is read once");
    let named = DataSpec { columns: vec!["x".into()], ..spec("a.csv") };
    assert!(!was_cached(&later(), &named));
    std::thread::sleep(Duration::from_millis(20));
    fs::write(&path, b"x\n2\n").unwrap();
    set_modified();
    assert!(!was_cached(&later(), &named), "same size and modification time, other time of change");
}

/// Proves that an entry of the cache in which a digit was edited is not believed: the file is read again, and what comes out is right.
#[test]
fn an_edited_cache_is_not_believed() {
    let folder = folder(&[("a.csv", b"x\n1\n"), ("b.csv", b"x\n2\n")]);
    let cache_path = folder.path().join("cache.json");
    let was_cached = |path: &str| {
        let cache = HashCache::load(&cache_path);
        let cached = is_cached(&cache, folder.path(), &later(), &spec(path));
        cache.save().unwrap();
        cached
    };
    assert!(!was_cached("a.csv") && !was_cached("b.csv") && was_cached("a.csv"));
    let text = fs::read_to_string(&cache_path).unwrap();
    let hash = |bytes: &[u8]| blake3::hash(bytes).to_hex().to_string();
    let (own, other) = (hash(b"x\n1\n"), hash(b"x\n2\n"));
    for (from, to) in [("\"rows\":", "\"rows\":1"), (own.as_str(), other.as_str())] {
        let edited = text.replace(from, to);
        assert_ne!(edited, text, "{from}");
        fs::write(&cache_path, edited).unwrap();
        assert!(!was_cached("a.csv"), "{from}");
        assert!(was_cached("a.csv"), "{from}");
    }
    assert!(was_cached("b.csv"), "the other entries stay");
}

/// Whether the file came from the cache; what comes out must equal a fresh reading either way.
fn is_cached(cache: &HashCache, base: &Path, clock: &ManualClock, spec: &DataSpec) -> bool {
    let resolver =
        Resolver { base, context: &ReadContext::default(), cache: Some(cache), clock, watch: &UNWATCHED };
    assert_eq!(resolver.resolve("train", spec).unwrap(), resolve(base, spec).unwrap());
    cache.hits() > 0
}

/// Proves on the published Adult files (if they are there) that counts, types and the header's absence are found.
#[test]
fn the_adult_files_are_read_as_published() {
    let shared = std::env::var("TRACKWAY_SHARED")
        .unwrap_or(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared").into());
    let file = Path::new(&shared).join("data/adult-train.csv");
    if !file.exists() {
        trackway_skip::skip!("no Adult data in TRACKWAY_SHARED");
        return;
    }
    let spec = DataSpec { missing: vec!["?".into()], ..spec(file.to_str().unwrap()) };
    let manifest = resolve(Path::new("/"), &spec).unwrap();
    assert_eq!((manifest.rows, manifest.files[0].header), (Some(32_561), Some(false)));
    let ints = manifest.schema.unwrap().iter().filter(|column| column.kind == ColumnType::Int).count();
    assert_eq!(ints, 6);
}

/// Proves that a file that grows while it is read is refused: its rows and its hash would belong to no state of it.
#[test]
fn a_file_that_changes_meanwhile_is_refused() {
    let folder = folder(&[("a.csv", b"x\n1\n")]);
    let path = folder.path().join("a.csv");
    let grow = |_, _| fs::write(&path, b"x\n1\n2\n").unwrap();
    let watch = PassObserver { progress: &grow, ..*UNWATCHED };
    let resolver = Resolver {
        base: folder.path(),
        context: &ReadContext::default(),
        cache: None,
        clock: &later(),
        watch: &watch,
    };
    let error = resolver.resolve("train", &spec("a.csv")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "data `train`: `a.csv` changed while it was being read; try again when nothing writes to it"
    );
}

/// One object behind URLs, and how often it was requested.
struct OneObject {
    text: &'static str,
    asked: std::sync::atomic::AtomicUsize,
}

struct Bytes(&'static str);

impl trackway_tables::read::ByteSource for Bytes {
    fn size_bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
        let rest = &self.0.as_bytes()[(offset as usize).min(self.0.len())..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }
}

impl trackway_tables::read::RemoteFiles for OneObject {
    fn list(&self, _: &str) -> std::io::Result<Vec<trackway_tables::read::RemoteFile>> {
        Ok(Vec::new())
    }

    fn head(&self, url: &str) -> std::io::Result<Option<trackway_tables::read::RemoteFile>> {
        self.asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let (url, size_bytes, version) = (url.to_owned(), self.text.len() as u64, "1".to_owned());
        Ok(Some(trackway_tables::read::RemoteFile { url, size_bytes, version }))
    }

    fn open(&self, _: &str) -> std::io::Result<Arc<dyn trackway_tables::read::ByteSource>> {
        Ok(Arc::new(Bytes(self.text)))
    }
}

/// Proves that each of two readers in one process has its limits and its remote files, at the same time.
#[test]
fn two_readers_have_limits_and_remote_files_of_their_own() {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use trackway_tables::limits::Limits;
    use trackway_tables::read::Source;

    let object = |text| Arc::new(OneObject { text, asked: AtomicUsize::new(0) });
    let (narrow, wide) = (object("a,b\n1,2\n"), object("a,b,c\n1,2,3\n"));
    let limits = |columns_max| Limits { columns_max, ..Limits::default() };
    let spec = DataSpec { path: "s3://bucket/table.csv".into(), ..DataSpec::default() };
    let open = |context: &ReadContext| Source::open(Path::new(""), "train", &spec, context);
    let (two, three) =
        (ReadContext::new(limits(2), Some(narrow.clone())), ReadContext::new(limits(3), Some(wide.clone())));
    let results = std::thread::scope(|scope| {
        let threads =
            [&two, &three].map(|context| scope.spawn(move || open(context).unwrap().columns().len()));
        threads.map(|thread| thread.join().unwrap())
    });
    assert_eq!(results, [2, 3]);
    assert!([&narrow, &wide].iter().all(|object| object.asked.load(Ordering::Relaxed) > 0));
    let error = open(&ReadContext::new(limits(2), Some(wide))).err().unwrap().to_string();
    assert!(error.contains("more than 2 columns"), "{error}");
    let error = open(&ReadContext::default()).err().unwrap().to_string();
    assert!(error.contains("reads no URLs"), "{error}");
}
