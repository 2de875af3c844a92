//! Weights & Biases' offline run files (`run-ID.wandb`): LevelDB log blocks of Protocol Buffers records.
//!
//! Source: `wandb_internal.proto` and the data store of the client; LevelDB's log format. A file begins with `:W&B`,
//! two bytes of magic and a version byte. Blocks of 32 KiB hold chunks: CRC-32 of type and data, length, type (1 whole,
//! 2 first, 3 middle, 4 last), data. What a crash tore is the end. After damage the next chunk that holds is searched for: within the
//! block, else in the next one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use trackway_core::MetricStep;

use super::tensorboard::protobuf::Fields;

const IDENT: [u8; 7] = [b':', b'W', b'&', b'B', 0xe1, 0xbe, 0];
const BLOCK_BYTES: usize = 32 * 1024;
const CHUNK_HEADER_BYTES: usize = 7;
/// A record larger than this is damage.
const RECORD_BYTES_MAX: usize = 256 << 20;
/// Objects are taken apart this deep.
const DEPTH_MAX: usize = 8;
/// After damage a chunk is looked for at so many places, which may all be sums over a block.
const LOOKS_MAX: u32 = 1 << 16;
/// So many names of a summary are taken.
const SUMMARY_NAMES_MAX: usize = 10_000;
/// So many kinds of objects are counted apart.
const OBJECT_KINDS_MAX: usize = 100;
/// The field that names what an object of the client is, such as `image-file`.
const OBJECT_TYPE: &str = "_type";

/// The contents of a run file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WandbRun {
    /// The run's id, unique in its project.
    pub run_id: String,
    pub project: String,
    /// The name people see.
    pub name: String,
    pub group: String,
    pub host: String,
    /// The commit of the working directory.
    pub git_commit: String,
    pub labels: Vec<String>,
    /// When it began: seconds since 1970 UTC.
    pub started_seconds: Option<f64>,
    /// The configuration as leaves, dots between the levels.
    pub config: Vec<(String, Json)>,
    /// What was logged, in order.
    pub history: Vec<WandbRow>,
    /// Numbers of the summary that were not logged: those that the script set itself.
    pub summary: Vec<(String, f64)>,
    /// How many values that are no numbers were logged or set, by what they are: `text`, `image-file`.
    pub objects: BTreeMap<String, u64>,
    /// The script's exit code; none when the file was cut off.
    pub exit_code: Option<i64>,
    /// Seconds the run took, as the client counted them.
    pub runtime_seconds: Option<i64>,
    /// Bytes at the end that are no whole record.
    pub torn_bytes: u64,
    /// Bytes between records that are none.
    pub damage: Vec<WandbDamage>,
    /// Records that are not what the client writes, although their checksums hold. What could be read of them was taken.
    pub malformed_count: u64,
}

/// Bytes of a run file that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WandbDamage {
    /// Where the first of them is: bytes from the beginning of the file.
    pub offset: u64,
    /// How many there are.
    pub bytes: u64,
}

/// One call of `log`.
#[derive(Debug, Clone, PartialEq)]
pub struct WandbRow {
    pub step: MetricStep,
    /// When: seconds since 1970 UTC.
    pub seconds: Option<f64>,
    /// The numbers in it, dots between the levels.
    pub values: Vec<(String, f64)>,
}

/// Reads a run file; `None` when it is none. Damage costs the records that it touches, and is named.
#[must_use]
pub fn read_run(file: &[u8]) -> Option<WandbRun> {
    if !file.starts_with(&IDENT) {
        return None;
    }
    let mut run = WandbRun::default();
    let mut summary = Summary::default();
    let mut records = Records { file, at: IDENT.len(), looks_left: LOOKS_MAX };
    let mut whole_until = IDENT.len();
    while let Some((record, from)) = records.next_record() {
        let expected = chunk_place(whole_until);
        if from > expected {
            let bytes = (from - expected) as u64;
            run.damage.push(WandbDamage { offset: expected as u64, bytes });
        }
        whole_until = records.at;
        run.take(&record, &mut summary);
    }
    run.torn_bytes = (file.len() - whole_until) as u64;
    run.take_summary(summary);
    Some(run)
}

struct Records<'a> {
    file: &'a [u8],
    at: usize,
    /// So often a chunk may still be looked for within a block.
    looks_left: u32,
}

/// A chunk whose check holds.
#[derive(Clone, Copy)]
struct Chunk<'a> {
    kind: u8,
    data: &'a [u8],
    /// Where the next one begins.
    end: usize,
}

impl Records<'_> {
    /// The next whole record, and where it begins.
    fn next_record(&mut self) -> Option<(Vec<u8>, usize)> {
        let mut record: Option<(Vec<u8>, usize)> = None;
        loop {
            let from = chunk_place(self.at);
            let Some(chunk) = chunk_at(self.file, from) else {
                // Damage, or the end.
                record = None;
                self.at = self.next_chunk(from)?;
                continue;
            };
            self.at = chunk.end;
            let begun = record.take().filter(|(before, _)| {
                matches!(chunk.kind, 3 | 4) && before.len() + chunk.data.len() <= RECORD_BYTES_MAX
            });
            let (mut bytes, begun_at) = match (begun, chunk.kind) {
                (Some(begun), _) => begun,
                (None, 1 | 2) => (Vec::new(), from),
                // The beginning of its record is lost.
                (None, _) => continue,
            };
            bytes.extend_from_slice(chunk.data);
            if matches!(chunk.kind, 1 | 4) {
                return Some((bytes, begun_at));
            }
            record = Some((bytes, begun_at));
        }
    }

    /// Where the next chunk that holds begins: after this place in its block, or at the beginning of a later block.
    fn next_chunk(&mut self, from: usize) -> Option<usize> {
        let block_end = from - from % BLOCK_BYTES + BLOCK_BYTES;
        for at in from + 1..block_end.min(self.file.len()) {
            if self.looks_left == 0 {
                break;
            }
            if kind_at(self.file, at).is_some() {
                self.looks_left -= 1;
                if chunk_at(self.file, at).is_some() {
                    return Some(at);
                }
            }
        }
        (block_end < self.file.len()).then_some(block_end)
    }
}

/// Where a chunk begins from here on: too few bytes for a header are left empty at the end of a block.
fn chunk_place(at: usize) -> usize {
    let left_in_block = BLOCK_BYTES - at % BLOCK_BYTES;
    if left_in_block < CHUNK_HEADER_BYTES { at + left_in_block } else { at }
}

/// The kind in the header at this place, if there is one of that kind.
fn kind_at(file: &[u8], at: usize) -> Option<u8> {
    file.get(at + CHUNK_HEADER_BYTES - 1).copied().filter(|kind| (1..=4).contains(kind))
}

/// The chunk at this place, if its check holds.
fn chunk_at(file: &[u8], at: usize) -> Option<Chunk<'_>> {
    let (kind, header) = (kind_at(file, at)?, file.get(at..at + CHUNK_HEADER_BYTES)?);
    let length = usize::from(u16::from_le_bytes(header[4..6].try_into().ok()?));
    let (data, end) = (at + CHUNK_HEADER_BYTES, at + CHUNK_HEADER_BYTES + length);
    if end > at - at % BLOCK_BYTES + BLOCK_BYTES {
        return None;
    }
    // The check covers the type, which is the header's last byte, and the data after it.
    let checked = file.get(data - 1..end)?;
    let check = u32::from_le_bytes(header[..4].try_into().ok()?);
    (crc_fast::crc32_iso_hdlc(checked) == check).then_some(Chunk { kind, data: &checked[1..], end })
}

impl WandbRun {
    /// `Record { history = 2, summary = 3, config = 5, run = 17, exit = 18 }`.
    fn take(&mut self, record: &[u8], summary: &mut Summary) {
        let mut fields = Fields::of(record);
        for (number, value) in fields.by_ref() {
            match (number, value.bytes()) {
                (2, Some(history)) => self.take_history(history, summary),
                (3, Some(changes)) => summary.change(changes),
                (5, Some(config)) => self.take_config(config),
                (17, Some(run)) => self.take_run(run),
                (18, Some(exit)) => {
                    self.exit_code = Some(int(exit, 1).unwrap_or(0));
                    self.runtime_seconds = int(exit, 2);
                }
                _ => {}
            }
        }
        self.malformed_count += u64::from(!fields.rest().is_empty());
    }

    /// The client sets the summary to what was logged last; the rest is the script's.
    fn take_summary(&mut self, summary: Summary) {
        let logged: BTreeSet<&str> =
            self.history.iter().flat_map(|row| &row.values).map(|(name, _)| name.as_str()).collect();
        let mut set = Values::default();
        for (name, value) in summary.values {
            set.take(&name, value, 0);
        }
        set.numbers.retain(|(name, _)| !logged.contains(name.as_str()));
        self.summary = set.numbers;
        set.objects.retain(|(name, _)| !summary.logged_objects.contains(name));
        self.count_objects(set.objects);
    }

    fn count_objects(&mut self, objects: Vec<(String, String)>) {
        for (_, kind) in objects {
            self.count_object(kind);
        }
    }

    fn count_object(&mut self, kind: String) {
        if self.objects.len() < OBJECT_KINDS_MAX || self.objects.contains_key(&kind) {
            *self.objects.entry(kind).or_default() += 1;
        }
    }

    /// Counts what a run has once, however often its record is written.
    fn set_object(&mut self, kind: &str, is_there: bool) {
        self.objects.remove(kind);
        if is_there {
            self.count_object(kind.to_owned());
        }
    }

    /// `RunRecord { run_id = 1, project = 3, config = 4, run_group = 6, display_name = 8, tags = 10, host = 13,
    /// start_time = 17 { seconds = 1, nanos = 2 }, git = 21 { commit = 2 } }`; notes = 9 and job_type = 7 are counted.
    fn take_run(&mut self, run: &[u8]) {
        self.labels.clear();
        for (number, value) in Fields::of(run) {
            let text = || value.text().unwrap_or_default();
            match number {
                1 => self.run_id = text(),
                3 => self.project = text(),
                4 => self.take_config(value.bytes().unwrap_or_default()),
                6 => self.group = text(),
                7 => self.set_object("job type", !text().is_empty()),
                8 => self.name = text(),
                9 => self.set_object("notes", !text().is_empty()),
                10 => self.labels.push(text()),
                13 => self.host = text(),
                17 => {
                    let time = value.bytes().unwrap_or_default();
                    let nanos = int(time, 2).unwrap_or(0) as f64;
                    self.started_seconds = int(time, 1).map(|seconds| seconds as f64 + nanos / 1e9);
                }
                21 => self.git_commit = field(value.bytes().unwrap_or_default(), 2).unwrap_or_default(),
                _ => {}
            }
        }
    }

    /// `ConfigRecord { update = 1 { key = 1, nested_key = 2, value_json = 16 }, remove = 2 }`.
    fn take_config(&mut self, config: &[u8]) {
        for (number, item) in Fields::of(config) {
            let item = Item::of(item.bytes().unwrap_or_default());
            // The client's notes are under one key.
            if item.name.is_empty() || item.name == "_wandb" || item.name.starts_with("_wandb.") {
                continue;
            }
            let below = format!("{}.", item.name);
            self.config.retain(|(name, _)| *name != item.name && !name.starts_with(&below));
            if number == 1 {
                leaves(&item.name, item.value, 0, &mut self.config);
            }
        }
    }

    /// `HistoryRecord { item = 1, step = 2 { num = 1 } }`.
    fn take_history(&mut self, history: &[u8], summary: &mut Summary) {
        let step = self.history.last().map_or(0, |row| row.step.saturating_add(1));
        let mut row = WandbRow { step, seconds: None, values: Vec::new() };
        let mut values = Values::default();
        for (number, value) in Fields::of(history) {
            let bytes = value.bytes().unwrap_or_default();
            match number {
                1 => row.take(Item::of(bytes), &mut values),
                2 => row.step = int(bytes, 1).unwrap_or(0),
                _ => {}
            }
        }
        summary.see_logged(&values);
        self.count_objects(values.objects);
        row.values = values.numbers;
        if !row.values.is_empty() {
            self.history.push(row);
        }
    }
}

/// The summary while the file is read, and the names of the objects that were logged, which the client copies there.
#[derive(Default)]
struct Summary {
    values: BTreeMap<String, Json>,
    logged_objects: BTreeSet<String>,
}

impl Summary {
    /// `SummaryRecord { update = 1 { key = 1, nested_key = 2, value_json = 16 }, remove = 2 }`.
    fn change(&mut self, changes: &[u8]) {
        for (number, item) in Fields::of(changes) {
            let item = Item::of(item.bytes().unwrap_or_default());
            if item.name.is_empty() || item.name.starts_with('_') {
                continue;
            }
            match number {
                1 if self.values.len() < SUMMARY_NAMES_MAX || self.values.contains_key(&item.name) => {
                    self.values.insert(item.name, item.value);
                }
                2 => drop(self.values.remove(&item.name)),
                _ => {}
            }
        }
    }

    fn see_logged(&mut self, values: &Values) {
        for (name, _) in &values.objects {
            if self.logged_objects.len() < SUMMARY_NAMES_MAX && !self.logged_objects.contains(name) {
                self.logged_objects.insert(name.clone());
            }
        }
    }
}

impl WandbRow {
    fn take(&mut self, item: Item, values: &mut Values) {
        match &*item.name {
            "_step" => self.step = item.value.as_i64().unwrap_or(self.step),
            "_timestamp" => self.seconds = item.value.as_f64(),
            name if name.starts_with('_') => {}
            name => values.take(name, item.value, 0),
        }
    }
}

/// What was logged, taken apart.
#[derive(Default)]
struct Values {
    /// Dots between the levels.
    numbers: Vec<(String, f64)>,
    /// The others, and what they are.
    objects: Vec<(String, String)>,
}

impl Values {
    fn take(&mut self, name: &str, value: Json, depth: usize) {
        let kind = match value {
            Json::Object(members) => match members.get(OBJECT_TYPE).map(Json::as_str) {
                Some(kind) => kind.unwrap_or("object").chars().take(64).collect(),
                None if depth < DEPTH_MAX => {
                    let below = |key: &str| format!("{name}.{key}");
                    return members.into_iter().for_each(|(key, it)| self.take(&below(&key), it, depth + 1));
                }
                None => "object".to_owned(),
            },
            Json::Number(number) => {
                return self.numbers.extend(number.as_f64().map(|number| (name.to_owned(), number)));
            }
            Json::String(text) => match non_finite(&text) {
                Some(number) => return self.numbers.push((name.to_owned(), number)),
                None => "text".to_owned(),
            },
            Json::Bool(_) => "boolean".to_owned(),
            Json::Array(_) => "list".to_owned(),
            Json::Null => "null".to_owned(),
        };
        self.objects.push((name.to_owned(), kind));
    }
}

/// `HistoryItem { key = 1, nested_key = 2, boolean = 4, integer = 5, number = 6, text = 7, json = 8, value_json = 16
/// }`.
struct Item {
    name: String,
    value: Json,
}

impl Item {
    fn of(item: &[u8]) -> Self {
        let (mut key, mut nested, mut value) = (String::new(), Vec::new(), Json::Null);
        for (number, field) in Fields::of(item) {
            match number {
                1 => key = field.text().unwrap_or_default(),
                2 => nested.extend(field.text()),
                4 => value = Json::from(field.int() == Some(1)),
                // `sint64`: zigzag.
                5 => {
                    value = field
                        .int()
                        .map_or(Json::Null, |bits| Json::from((bits as u64 >> 1) as i64 ^ -(bits & 1)))
                }
                6 => value = field.double().map_or(Json::Null, from_number),
                7 => value = field.text().map_or(Json::Null, Json::from),
                8 | 16 => value = field.text().map_or(Json::Null, |text| from_text(&text)),
                _ => {}
            }
        }
        let name = if nested.is_empty() { key } else { nested.join(".") };
        Self { name, value }
    }
}

/// JSON as Python writes it: a bare `NaN` or `Infinity` is a text here.
fn from_text(text: &str) -> Json {
    serde_json::from_str(text).unwrap_or_else(|_| Json::from(text.trim()))
}

fn from_number(number: f64) -> Json {
    serde_json::Number::from_f64(number).map_or_else(|| Json::from(number.to_string()), Json::Number)
}

fn non_finite(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" | "inf" => Some(f64::INFINITY),
        "-Infinity" | "-inf" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

fn leaves(name: &str, value: Json, depth: usize, found: &mut Vec<(String, Json)>) {
    match value {
        Json::Object(members) if depth < DEPTH_MAX => {
            for (key, member) in members {
                leaves(&format!("{name}.{key}"), member, depth + 1, found);
            }
        }
        leaf => found.push((name.to_owned(), leaf)),
    }
}

fn field(message: &[u8], number: u32) -> Option<String> {
    Fields::first(message, number)?.text()
}

fn int(message: &[u8], number: u32) -> Option<i64> {
    Fields::first(message, number)?.int()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn vector(name: &str) -> Vec<u8> {
        let path = format!("{}/tests/vectors/wandb/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read(path).unwrap()
    }

    /// Proves that a file of the real client gives its run, config, history with NaN and infinities, and end.
    #[test]
    fn a_file_of_the_client() {
        let run = read_run(&vector("run-abc0.wandb")).unwrap();
        assert_eq!((&*run.run_id, &*run.project, &*run.name), ("abc0", "income", "sweep-0"));
        assert_eq!((&*run.group, &run.labels[..]), ("g", &["search".to_owned(), "nightly".to_owned()][..]));
        assert!(run.started_seconds.is_some_and(|seconds| seconds > 1.7e9) && run.torn_bytes == 0);
        assert_eq!((&run.damage[..], run.malformed_count, &run.summary[..]), (&[][..], 0, &[][..]));
        assert_eq!(run.objects, BTreeMap::from([("notes".to_owned(), 1), ("text".to_owned(), 5)]));
        let config: Vec<String> = run.config.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(config, ["lr=0.1", "optimizer=\"adam\"", "model.layers=2"]);
        assert_eq!(run.exit_code, Some(0));
        let steps: Vec<i64> = run.history.iter().map(|row| row.step).collect();
        assert_eq!(steps, [0, 1, 2, 3, 4, 5, 20]);
        let names =
            |row: usize| run.history[row].values.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        let mut first = names(0);
        first.sort();
        assert_eq!(first, ["loss", "nested.a", "val/acc"]);
        let value = |row: usize, name: &str| {
            run.history[row].values.iter().find(|(found, _)| found == name).unwrap().1
        };
        assert_eq!((value(4, "loss"), value(6, "sparse")), (0.2, 1.5));
        assert!(value(5, "loss").is_nan() && value(5, "big") == f64::INFINITY);
        assert!(run.history[0].seconds.is_some_and(|seconds| seconds > 1.7e9));
    }

    /// Proves that a file that is cut off anywhere gives what is complete before the cut, and how much is torn.
    #[test]
    fn torn_files_give_what_is_whole() {
        let bytes = vector("run-abc1.wandb");
        assert_eq!(read_run(&bytes).unwrap().exit_code, Some(1));
        let mut rows = 0;
        for end in IDENT.len()..bytes.len() {
            let run = read_run(&bytes[..end]).unwrap();
            assert!(run.history.len() >= rows, "{end}");
            rows = run.history.len();
        }
        assert_eq!(rows, 7);
        assert!(read_run(&bytes[..bytes.len() - 1]).unwrap().torn_bytes > 0);
        assert_eq!(read_run(b"not a run file"), None);
    }

    fn chunk(kind: u8, data: &[u8]) -> Vec<u8> {
        let checked = [&[kind], data].concat();
        let check = crc_fast::crc32_iso_hdlc(&checked).to_le_bytes();
        [&check[..], &(data.len() as u16).to_le_bytes(), &checked].concat()
    }

    fn bytes_field(number: u8, content: &[u8]) -> Vec<u8> {
        assert!(content.len() < 128);
        [&[number << 3 | 2, content.len() as u8][..], content].concat()
    }

    fn history_item(name: &str, value: &str) -> Vec<u8> {
        let value = [&[0x82, 0x01, value.len() as u8][..], value.as_bytes()].concat();
        bytes_field(1, &[bytes_field(2, name.as_bytes()), value].concat())
    }

    /// A file with a row for each of these steps, in chunks of one record each.
    fn rows(steps: std::ops::Range<u8>) -> (Vec<u8>, Vec<usize>) {
        let (mut file, mut places) = (IDENT.to_vec(), Vec::new());
        for step in steps {
            places.push(file.len());
            let loss = history_item("loss", &format!("0.{step}"));
            file.extend(chunk(1, &bytes_field(2, &[loss, bytes_field(2, &[8, step])].concat())));
        }
        (file, places)
    }

    fn steps_of(run: &WandbRun) -> Vec<i64> {
        run.history.iter().map(|row| row.step).collect()
    }

    /// Proves that damage within a file costs the records that it touches: they are named with their place and size, and those after it are
    /// read, whether the length is right or not.
    #[test]
    fn damage_costs_what_it_touches() {
        let (whole, places) = rows(0..6);
        let run = read_run(&whole).unwrap();
        assert_eq!((steps_of(&run), run.damage.len(), run.torn_bytes), (vec![0, 1, 2, 3, 4, 5], 0, 0));
        let record = places[3] - places[2];
        for at in [places[2], places[2] + 4, places[2] + 6, places[3] - 1] {
            let mut file = whole.clone();
            file[at] ^= 0xff;
            let run = read_run(&file).unwrap();
            assert_eq!(steps_of(&run), [0, 1, 3, 4, 5], "{at}");
            let lost = WandbDamage { offset: places[2] as u64, bytes: record as u64 };
            assert_eq!((&run.damage[..], run.torn_bytes), (&[lost][..], 0));
        }
        let last = places[5];
        let run = read_run(&whole[..last + 9]).unwrap();
        assert_eq!((steps_of(&run), run.damage.len(), run.torn_bytes), (vec![0, 1, 2, 3, 4], 0, 9));
    }

    /// Proves that a record in several chunks of which one is damaged is left out as a whole, and that the next block is read.
    #[test]
    fn a_record_is_whole_or_left_out() {
        let (mut file, _) = rows(0..1);
        let begun = file.len();
        file.extend(chunk(2, b"first"));
        let middle = file.len();
        file.extend(chunk(3, b"middle"));
        file.extend(chunk(4, b"last"));
        let end = file.len();
        file[middle + 8] ^= 1;
        file.resize(BLOCK_BYTES, 0);
        file.extend(&rows(7..8).0[IDENT.len()..]);
        let run = read_run(&file).unwrap();
        assert_eq!(steps_of(&run), [0, 7]);
        let lost = WandbDamage { offset: begun as u64, bytes: (BLOCK_BYTES - begun) as u64 };
        assert!(run.damage == [lost] && end < BLOCK_BYTES);
    }

    /// Proves that numbers which a script sets in the summary are taken, that what the client copies there is not taken twice, and that
    /// pictures and texts are counted and their sizes are no metrics.
    #[test]
    fn summaries_and_objects() {
        let image = r#"{"_type":"image-file","size":9}"#;
        let logged = [history_item("loss", "0.5"), history_item("img", image), history_item("ok", "true")];
        let set = [history_item("loss", "0.5"), history_item("best", "0.25"), history_item("note", "\"x\"")];
        let records = [bytes_field(2, &logged.concat()), bytes_field(3, &set.concat())];
        let file = records.iter().fold(IDENT.to_vec(), |file, record| [file, chunk(1, record)].concat());
        let run = read_run(&file).unwrap();
        assert_eq!(run.history[0].values, [("loss".to_owned(), 0.5)]);
        assert_eq!(run.summary, [("best".to_owned(), 0.25)]);
        let objects: Vec<(&str, u64)> = run.objects.iter().map(|(kind, count)| (&**kind, *count)).collect();
        assert_eq!(objects, [("boolean", 1), ("image-file", 1), ("text", 1)]);
    }

    /// Proves that the notes and the job type of a run are counted once, however often its record is written, and empty ones are not.
    #[test]
    fn notes_are_counted() {
        let run = |notes: &str, job: &str| {
            let fields =
                [bytes_field(1, b"r1"), bytes_field(9, notes.as_bytes()), bytes_field(7, job.as_bytes())];
            let record = fields.concat();
            chunk(1, &[&[0x8a, 0x01, record.len() as u8][..], &record].concat())
        };
        let objects = |records: &[Vec<u8>]| {
            read_run(&[&IDENT[..], &records.concat()].concat())
                .unwrap()
                .objects
                .into_iter()
                .collect::<Vec<_>>()
        };
        let counted = objects(&[run("", ""), run("hello", "train"), run("hello", "train")]);
        assert_eq!(counted, [("job type".to_owned(), 1), ("notes".to_owned(), 1)]);
        assert_eq!(objects(&[run("", "")]), []);
    }

    proptest! {
        /// Proves that no bytes make the reader panic, and that changed bytes of a real file do not either.
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..2048), at in any::<prop::sample::Index>()) {
            let _ = read_run(&[&IDENT[..], &bytes].concat());
            WandbRun::default().take(&bytes, &mut Summary::default());
            let mut real = vector("run-abc0.wandb");
            let at = at.index(real.len());
            real[at] ^= 0x55;
            let _ = read_run(&real);
        }
    }
}
