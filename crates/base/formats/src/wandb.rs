//! Weights & Biases' offline run files (`run-ID.wandb`): LevelDB log blocks of Protocol Buffers records.
//!
//! Source: `wandb_internal.proto` and the data store of the client; LevelDB's log format. A file begins with `:W&B`,
//! two bytes of magic and a version byte. Blocks of 32 KiB hold chunks: CRC-32 of type and data, length, type (1 whole,
//! 2 first, 3 middle, 4 last), data. What a crash tore is the end.

use serde_json::Value as Json;

use crate::tensorboard::protobuf::Fields;

const IDENT: [u8; 7] = [b':', b'W', b'&', b'B', 0xe1, 0xbe, 0];
const BLOCK_BYTES: usize = 32 * 1024;
const CHUNK_HEADER_BYTES: usize = 7;
/// A record larger than this is damage.
const RECORD_BYTES_MAX: usize = 256 << 20;
/// Objects are taken apart this deep.
const DEPTH_MAX: usize = 8;

/// The contents of a run file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WandbRun {
    /// The run's id, unique in its project.
    pub run_id: String,
    /// The project.
    pub project: String,
    /// The name people see.
    pub name: String,
    /// The group.
    pub group: String,
    /// The host.
    pub host: String,
    /// The commit of the working directory.
    pub git_commit: String,
    /// Labels.
    pub labels: Vec<String>,
    /// When it began: seconds since 1970 UTC.
    pub started_seconds: Option<f64>,
    /// The configuration as leaves, dots between the levels.
    pub config: Vec<(String, Json)>,
    /// What was logged, in order.
    pub history: Vec<WandbRow>,
    /// The script's exit code; none when the file was cut off.
    pub exit_code: Option<i64>,
    /// Seconds the run took, as the client counted them.
    pub runtime_seconds: Option<i64>,
    /// Bytes at the end that are no whole record.
    pub torn_bytes: u64,
}

/// One call of `log`.
#[derive(Debug, Clone, PartialEq)]
pub struct WandbRow {
    /// The step.
    pub step: u64,
    /// When: seconds since 1970 UTC.
    pub seconds: Option<f64>,
    /// The numbers in it, dots between the levels.
    pub values: Vec<(String, f64)>,
}

/// Reads a run file; `None` when it is none. Damage ends the reading and is counted, not an error.
#[must_use]
pub fn read_run(file: &[u8]) -> Option<WandbRun> {
    if !file.starts_with(&IDENT) {
        return None;
    }
    let mut run = WandbRun::default();
    let mut records = Records { file, at: IDENT.len(), whole_until: IDENT.len() };
    while let Some(record) = records.next_record() {
        run.take(&record);
    }
    run.torn_bytes = (file.len() - records.whole_until) as u64;
    Some(run)
}

struct Records<'a> {
    file: &'a [u8],
    at: usize,
    /// The end of the last whole record.
    whole_until: usize,
}

impl Records<'_> {
    fn next_record(&mut self) -> Option<Vec<u8>> {
        let mut record = Vec::new();
        loop {
            let left_in_block = BLOCK_BYTES - self.at % BLOCK_BYTES;
            if left_in_block < CHUNK_HEADER_BYTES {
                self.at += left_in_block;
            }
            let header = self.file.get(self.at..self.at + CHUNK_HEADER_BYTES)?;
            let check = u32::from_le_bytes(header[..4].try_into().ok()?);
            let length = usize::from(u16::from_le_bytes(header[4..6].try_into().ok()?));
            let data = self.at + CHUNK_HEADER_BYTES;
            // The check covers the type, which is the header's last byte, and the data after it.
            let checked = self.file.get(data - 1..data + length)?;
            if crc_fast::crc32_iso_hdlc(checked) != check || record.len() + length > RECORD_BYTES_MAX {
                return None;
            }
            record.extend_from_slice(&checked[1..]);
            self.at = data + length;
            match header[6] {
                1 | 4 => {
                    self.whole_until = self.at;
                    return Some(record);
                }
                2 | 3 => {}
                _ => return None,
            }
        }
    }
}

impl WandbRun {
    /// `Record { history = 2, config = 5, run = 17, exit = 18 }`.
    fn take(&mut self, record: &[u8]) {
        for (number, value) in Fields::of(record) {
            match (number, value.bytes()) {
                (2, Some(history)) => self.take_history(history),
                (5, Some(config)) => self.take_config(config),
                (17, Some(run)) => self.take_run(run),
                (18, Some(exit)) => {
                    self.exit_code = Some(int(exit, 1).unwrap_or(0));
                    self.runtime_seconds = int(exit, 2);
                }
                _ => {}
            }
        }
    }

    /// `RunRecord { run_id = 1, project = 3, config = 4, run_group = 6, display_name = 8, tags = 10, host = 13,
    /// start_time = 17 { seconds = 1, nanos = 2 }, git = 21 { commit = 2 } }`.
    fn take_run(&mut self, run: &[u8]) {
        self.labels.clear();
        for (number, value) in Fields::of(run) {
            let text = || value.text().unwrap_or_default();
            match number {
                1 => self.run_id = text(),
                3 => self.project = text(),
                4 => self.take_config(value.bytes().unwrap_or_default()),
                6 => self.group = text(),
                8 => self.name = text(),
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
    fn take_history(&mut self, history: &[u8]) {
        let mut row = WandbRow {
            step: self.history.last().map_or(0, |row| row.step.saturating_add(1)),
            seconds: None,
            values: Vec::new(),
        };
        for (number, value) in Fields::of(history) {
            let bytes = value.bytes().unwrap_or_default();
            match number {
                1 => row.take(Item::of(bytes)),
                2 => row.step = u64::try_from(int(bytes, 1).unwrap_or(0)).unwrap_or(0),
                _ => {}
            }
        }
        if !row.values.is_empty() {
            self.history.push(row);
        }
    }
}

impl WandbRow {
    fn take(&mut self, item: Item) {
        match &*item.name {
            "_step" => self.step = item.value.as_u64().unwrap_or(self.step),
            "_timestamp" => self.seconds = item.value.as_f64(),
            name if name.starts_with('_') => {}
            name => {
                let mut found = Vec::new();
                leaves(name, item.value, 0, &mut found);
                let number = |value: &Json| value.as_f64().or_else(|| non_finite(value.as_str()?));
                self.values
                    .extend(found.iter().filter_map(|(name, value)| Some((name.clone(), number(value)?))));
            }
        }
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
        let config: Vec<String> = run.config.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(config, ["lr=0.1", "optimizer=\"adam\"", "model.layers=2"]);
        assert_eq!(run.exit_code, Some(0));
        let steps: Vec<u64> = run.history.iter().map(|row| row.step).collect();
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

    proptest! {
        /// Proves that no bytes make the reader panic, and that changed bytes of a real file do not either.
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..2048), at in any::<prop::sample::Index>()) {
            let _ = read_run(&[&IDENT[..], &bytes].concat());
            WandbRun::default().take(&bytes);
            let mut real = vector("run-abc0.wandb");
            let at = at.index(real.len());
            real[at] ^= 0x55;
            let _ = read_run(&real);
        }
    }
}
