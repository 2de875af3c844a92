use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use serde::Deserialize;

use crate::save_reason::SaveReason;

/// The version of control lines this recorder obeys.
const CONTROL_VERSION: u32 = 1;

/// Bytes read at one poll. A supervisor writes a line of a hundred bytes now and then.
const MAX_READ_BYTES: usize = 65_536;

/// The command of a line of the control file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    /// Save a checkpoint and end.
    Stop { id: u64 },
    /// Save a checkpoint and continue.
    CheckpointNow(Asked),
    /// A command that this recorder does not support.
    Unknown { id: u64 },
    /// A line that is not a command.
    Unreadable { why: String },
}

/// A requested checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub id: u64,
    /// The reason that the requester gives.
    pub reason: SaveReason,
    /// A description.
    pub why: String,
}

#[derive(Deserialize)]
struct Line {
    version: u32,
    id: u64,
    command: String,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    why: String,
}

/// Reads the control file as it grows, from where it left off.
#[derive(Debug)]
pub(crate) struct ControlReader {
    path: PathBuf,
    position: u64,
    /// The beginning of a line whose end is not written yet.
    partial: Vec<u8>,
}

impl ControlReader {
    pub fn new(path: PathBuf) -> Self {
        Self { path, position: 0, partial: Vec::new() }
    }

    /// The commands that were added since the last call. A file that is missing or cannot be read has none.
    pub fn poll(&mut self) -> Vec<Command> {
        let size = std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len());
        if size <= self.position {
            return Vec::new();
        }
        let Ok(bytes) = self.read_new() else {
            return Vec::new();
        };
        self.position += bytes.len() as u64;
        self.partial.extend_from_slice(&bytes);
        let Some(end) = self.partial.iter().rposition(|byte| *byte == b'\n') else {
            self.partial.truncate(MAX_READ_BYTES);
            return Vec::new();
        };
        let rest = self.partial.split_off(end + 1);
        let lines = std::mem::replace(&mut self.partial, rest);
        lines.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).map(parse).collect()
    }

    fn read_new(&self) -> std::io::Result<Vec<u8>> {
        let mut file = trackway_files::open_trusted(&self.path)?;
        file.seek(SeekFrom::Start(self.position))?;
        let mut bytes = Vec::new();
        file.take(MAX_READ_BYTES as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

fn parse(line: &[u8]) -> Command {
    let line: Line = match serde_json::from_slice(line) {
        Ok(line) => line,
        Err(error) => return Command::Unreadable { why: error.to_string() },
    };
    match (line.version, line.command.as_str()) {
        (CONTROL_VERSION, "stop") => Command::Stop { id: line.id },
        (CONTROL_VERSION, "checkpoint_now") => {
            let reason = line.reason.as_deref().and_then(SaveReason::from_word).unwrap_or(SaveReason::Asked);
            Command::CheckpointNow(Asked { id: line.id, reason, why: line.why })
        }
        _ => Command::Unknown { id: line.id },
    }
}
