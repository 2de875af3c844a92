//! The control file: requests of the supervisor to the training process (`docs/formats/control-file.md`).

use serde::{Deserialize, Serialize};
use trackway_core::Timestamp;

use crate::SaveReason;

/// The version of the lines that are written, and the only one that is obeyed.
pub const CONTROL_VERSION: u32 = 1;

/// A longer line is unreadable, whatever it contains.
pub const LINE_BYTES_MAX: usize = 65_536;

/// The longest `why` that is written. Escaped as JSON it still fits into a line.
pub const WHY_BYTES_MAX: usize = 8_192;

/// What is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Save a checkpoint and end.
    Stop,
    /// Save a checkpoint at the end of this step and continue, for this reason.
    CheckpointNow(SaveReason),
}

const STOP: &str = "stop";
const CHECKPOINT_NOW: &str = "checkpoint_now";

/// What a line of the control file says to a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A request to carry out.
    Request {
        /// Acknowledgements name it.
        id: u64,
        /// What is requested.
        command: Command,
        /// By whom and why; may be empty.
        why: String,
    },
    /// A command or a version that this reader does not know.
    Unknown {
        /// Acknowledgements name it.
        id: u64,
    },
    /// Not a line of this format.
    Unreadable {
        /// The error of the parser.
        why: String,
    },
}

#[derive(Serialize)]
struct WrittenLine<'a> {
    version: u32,
    id: u64,
    at: String,
    command: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<SaveReason>,
    why: &'a str,
}

#[derive(Deserialize)]
struct ReadLine {
    version: u32,
    id: u64,
    command: String,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    why: String,
}

/// The line of a request, with the newline that ends it; at most [`LINE_BYTES_MAX`] bytes without it. `why` is truncated to
/// [`WHY_BYTES_MAX`] bytes.
#[must_use]
pub fn line(id: u64, at: Timestamp, command: Command, why: &str) -> String {
    let (word, reason) = match command {
        Command::Stop => (STOP, None),
        Command::CheckpointNow(reason) => (CHECKPOINT_NOW, Some(reason)),
    };
    let why = &why[..why.floor_char_boundary(WHY_BYTES_MAX)];
    let written =
        WrittenLine { version: CONTROL_VERSION, id, at: at.to_rfc3339(), command: word, reason, why };
    let mut line = serde_json::to_string(&written).expect("numbers and strings are JSON");
    line.push('\n');
    line
}

/// The id of the next request in a file with these bytes: requests are counted from 1.
#[must_use]
pub fn next_id(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64 + 1
}

/// Reads the lines of a control file as it grows. How its bytes are cut into pieces does not matter.
#[derive(Debug, Default)]
pub struct LineReader {
    /// The beginning of a line whose end is not written yet: one byte more than a line may have, at most.
    partial: Vec<u8>,
}

impl LineReader {
    /// The lines that these bytes, the next of the file, complete.
    pub fn read(&mut self, bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_complete) = piece.strip_suffix(b"\n").map_or((piece, false), |text| (text, true));
            let room = LINE_BYTES_MAX + 1 - self.partial.len();
            self.partial.extend_from_slice(&text[..text.len().min(room)]);
            if is_complete {
                let line = std::mem::take(&mut self.partial);
                lines.extend((!line.trim_ascii().is_empty()).then(|| parsed(&line)));
            }
        }
        lines
    }
}

fn parsed(line: &[u8]) -> Line {
    if line.len() > LINE_BYTES_MAX {
        return Line::Unreadable { why: format!("the line is longer than {LINE_BYTES_MAX} bytes") };
    }
    let ReadLine { version, id, command, reason, why } = match serde_json::from_slice(line) {
        Ok(line) => line,
        Err(error) => return Line::Unreadable { why: error.to_string() },
    };
    let command = match (version, &*command) {
        (CONTROL_VERSION, STOP) => Command::Stop,
        (CONTROL_VERSION, CHECKPOINT_NOW) => {
            let reason = reason.and_then(|word| word.parse().ok());
            Command::CheckpointNow(reason.unwrap_or(SaveReason::Asked))
        }
        _ => return Line::Unknown { id },
    };
    Line::Request { id, command, why }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn all_lines(bytes: &[u8]) -> Vec<Line> {
        LineReader::default().read(bytes)
    }

    /// A line as the test vectors show it. The words of an error are not part of the format.
    fn shown(line: &Line) -> Value {
        match line {
            Line::Request { id, command: Command::Stop, why } => {
                json!({"id": id, "command": "stop", "why": why})
            }
            Line::Request { id, command: Command::CheckpointNow(reason), why } => {
                json!({"id": id, "command": "checkpoint_now", "reason": reason, "why": why})
            }
            Line::Unknown { id } => json!({"id": id, "unknown": true}),
            Line::Unreadable { .. } => json!({"unreadable": true}),
        }
    }

    fn published(name: &str) -> PathBuf {
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/formats/vectors/control-file"))
            .join(name)
    }

    fn requests() -> String {
        let at = |second: i64| Timestamp::from_micros(1_795_244_400_000_000 + second * 1_000_000);
        [
            line(1, at(0), Command::CheckpointNow(SaveReason::Asked), "before maintenance"),
            line(2, at(1), Command::CheckpointNow(SaveReason::Anomaly), "the loss doubled\nat step 40"),
            line(3, at(2), Command::Stop, "trackway stop of „größe“ \u{0}"),
            line(4, at(3), Command::Stop, ""),
        ]
        .concat()
    }

    /// Proves that this writer writes exactly the published lines, and that they and the lines of other writers are read as published.
    #[test]
    fn the_published_lines_hold() {
        if std::env::var_os("TRACKWAY_WRITE_VECTORS").is_some() {
            std::fs::write(published("requests.jsonl"), requests()).unwrap();
            for name in ["requests", "other-writers"] {
                let bytes = std::fs::read(published(&format!("{name}.jsonl"))).unwrap();
                let read: Vec<Value> = all_lines(&bytes).iter().map(shown).collect();
                let text = serde_json::to_string_pretty(&read).unwrap() + "\n";
                std::fs::write(published(&format!("{name}.json")), text).unwrap();
            }
        }
        assert_eq!(std::fs::read_to_string(published("requests.jsonl")).unwrap(), requests());
        for name in ["requests", "other-writers"] {
            let bytes = std::fs::read(published(&format!("{name}.jsonl"))).unwrap();
            let expected: Value =
                serde_json::from_slice(&std::fs::read(published(&format!("{name}.json"))).unwrap()).unwrap();
            let read: Value = all_lines(&bytes).iter().map(shown).collect();
            assert_eq!(read, expected, "{name}");
        }
    }

    /// Proves that a line that is too long is refused as a whole, and that the line after it is read.
    #[test]
    fn long_lines_are_unreadable() {
        let mut bytes = line(1, Timestamp::from_micros(0), Command::Stop, "").into_bytes();
        bytes.pop();
        bytes.resize(LINE_BYTES_MAX, b' ');
        bytes.push(b'\n');
        assert!(matches!(all_lines(&bytes)[..], [Line::Request { id: 1, .. }]));
        bytes.insert(LINE_BYTES_MAX, b' ');
        bytes.extend_from_slice(line(2, Timestamp::from_micros(0), Command::Stop, "").as_bytes());
        let lines = all_lines(&bytes);
        assert!(
            matches!(&lines[..], [Line::Unreadable { why }, Line::Request { id: 2, .. }] if why.contains("65536")),
            "{lines:?}"
        );
        assert_eq!(next_id(&bytes), 3);
    }

    fn commands() -> impl Strategy<Value = Command> {
        let reasons = prop::sample::select(SaveReason::ALL);
        prop_oneof![Just(Command::Stop), reasons.prop_map(Command::CheckpointNow)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Proves that every request is one line of bounded length that reads as it was written.
        #[test]
        fn requests_are_read_as_written(id: u64, command in commands(), why: String) {
            let written = line(id, Timestamp::from_micros(0), command, &why);
            prop_assert!(written.ends_with('\n') && written.matches('\n').count() == 1);
            prop_assert_eq!(all_lines(written.as_bytes()), vec![Line::Request { id, command, why }]);
        }

        /// Proves that a long reason is truncated, whatever its letters.
        #[test]
        fn long_reasons_fit(letter: char, count in WHY_BYTES_MAX / 4..WHY_BYTES_MAX * 2) {
            let why = letter.to_string().repeat(count);
            let written = line(u64::MAX, Timestamp::from_micros(i64::MAX), Command::Stop, &why);
            prop_assert!(written.len() <= LINE_BYTES_MAX, "{}", written.len());
            let [Line::Request { why: read, .. }] = &all_lines(written.as_bytes())[..] else {
                return Err(TestCaseError::fail("not one request"));
            };
            prop_assert!(why.starts_with(read.as_str()));
        }

        /// Proves that it does not matter how the bytes are cut into pieces.
        #[test]
        fn pieces_do_not_matter(
            bytes in proptest::collection::vec(prop::sample::select(b"\n {}\"1:,idvcr".to_vec()), 0..300),
            size in 1_usize..20,
        ) {
            let mut reader = LineReader::default();
            let pieces: Vec<Line> = bytes.chunks(size).flat_map(|piece| reader.read(piece)).collect();
            prop_assert_eq!(pieces, all_lines(&bytes));
        }
    }
}
