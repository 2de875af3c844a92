//! Who wrote where an attempt has its checkpoints, as far as that was seen: `writers.json` in the attempt's folder
//! (`docs/formats/attempt-folder.md`).
//!
//! A later attempt moves only what is shown to be its run's own, and this is what shows it.

use serde::{Deserialize, Serialize};
use trackway_core::closed_list;

/// The version that is written, and the highest that is read.
pub const WRITERS_VERSION: u32 = 1;
/// A longer file is not read.
const BYTES_MAX: usize = 16 << 20;

closed_list!(
    /// What shows that an attempt wrote a checkpoint, the strongest first.
    ShownBy, "evidence of a writer", {
        /// The script or a callback in it reported the save.
        Report = "report",
        /// The kernel named a process of the attempt as the writer.
        Kernel = "kernel",
        /// A process of the attempt was seen with a file of it open for writing.
        Open = "open",
        /// No other process that works where it is wrote anything at that time.
        Alone = "alone",
        /// The run file names its path, and nothing contradicts that.
        Claim = "claim",
    }
);

/// What was seen of the writers beside an attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WritersRecord {
    pub version: u32,
    /// Until when the processes of the machine were looked at, in nanoseconds since 1970; none if they cannot be.
    pub looked_until_ns: Option<i64>,
    /// The newest state of each checkpoint that the attempt is shown to have written, whole or not.
    pub own: Vec<OwnCheckpoint>,
    /// When processes wrote there that do not belong to the attempt.
    pub others: Vec<OthersTime>,
}

/// A checkpoint that an attempt wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnCheckpoint {
    /// Where it is: relative to the working directory of the script, else absolute.
    pub path: String,
    /// What shows it.
    pub by: ShownBy,
    /// Its files, at most 64 of them.
    pub files: Vec<OwnFile>,
}

/// One file, and what shows whether the one that is there is the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnFile {
    /// Its path below the checkpoint; empty for one that is one file.
    pub path: String,
    pub device: u64,
    /// Its number on the device.
    pub inode: u64,
    /// When it was made, in nanoseconds since 1970; none where the file system does not say.
    pub born_ns: Option<i64>,
    pub size_bytes: u64,
    /// When it was last written to, in nanoseconds since 1970.
    pub modified_ns: i64,
}

/// A time in which a process outside of the attempt wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OthersTime {
    /// The process.
    pub who: String,
    /// From then on, in nanoseconds since 1970.
    pub from_ns: i64,
    /// Until then.
    pub until_ns: i64,
}

impl WritersRecord {
    /// Reads a record.
    ///
    /// # Errors
    /// Why it is none: too large, not the JSON it must be, or of a later version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > BYTES_MAX {
            return Err(format!("it has {} bytes; at most {BYTES_MAX} are read", bytes.len()));
        }
        let record: Self =
            serde_json::from_slice(bytes).map_err(|error| format!("it is not valid: {error}"))?;
        match record.version > WRITERS_VERSION {
            true => {
                Err(format!("it has version {}; this program reads up to {WRITERS_VERSION}", record.version))
            }
            false => Ok(record),
        }
    }

    /// The bytes to store.
    ///
    /// # Panics
    /// Never: a record is plain data.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a record is plain data")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a record is the same after it was written and read, and that one of a later version and what is none are refused.
    #[test]
    fn a_record_is_read_or_refused() {
        let file = OwnFile {
            path: String::new(),
            device: 1,
            inode: 2,
            born_ns: None,
            size_bytes: 3,
            modified_ns: 4,
        };
        let own = OwnCheckpoint { path: "out/ckpt.pt".into(), by: ShownBy::Open, files: vec![file] };
        let others = vec![OthersTime { who: "python (7)".into(), from_ns: 1, until_ns: 2 }];
        let record =
            WritersRecord { version: WRITERS_VERSION, looked_until_ns: Some(3), own: vec![own], others };
        assert_eq!(WritersRecord::from_bytes(&record.to_bytes()), Ok(record.clone()));
        let later = WritersRecord { version: WRITERS_VERSION + 1, ..record };
        assert!(WritersRecord::from_bytes(&later.to_bytes()).is_err_and(|why| why.contains("version")));
        assert!(WritersRecord::from_bytes(b"{").is_err_and(|why| why.contains("not valid")));
    }
}
