//! Snapshots of data sets: their names, their kept bytes, and what changed between two.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::Timestamp;

use crate::reading::ColumnType;

/// The target of a name from a given time on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NameEntry {
    /// The snapshot.
    pub data_sha256: String,
    pub at: Timestamp,
    /// The paths the data was found under.
    pub paths: Vec<String>,
}

/// A name with its history, newest last; never empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamedSnapshot {
    pub name: String,
    /// Where it points and pointed.
    pub history: Vec<NameEntry>,
}

/// What is different in the second of two snapshots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotDiff {
    /// Whether both are the same snapshot.
    pub same: bool,
    pub files: FilesDiff,
    /// Columns that came, went, or have another type.
    pub schema: Vec<SchemaChange>,
    /// Rows of the first and of the second; `None` where it holds no table.
    pub rows: [Option<u64>; 2],
    /// Rows that could not be read, of both.
    pub rows_rejected: [u64; 2],
    /// Bytes of both.
    pub size_bytes: [u64; 2],
}

/// Files by what became of them, by path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilesDiff {
    /// The same path and content.
    pub unchanged: u64,
    /// The same path, other content.
    pub changed: Vec<String>,
    /// The same content under another path.
    pub moved: Vec<Moved>,
    /// Only in the second.
    pub added: Vec<String>,
    /// Only in the first.
    pub removed: Vec<String>,
}

/// A file whose content is at another path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MovedFile")]
pub struct Moved {
    /// Where it was.
    pub from: String,
    /// Where it is.
    pub to: String,
}

/// A column that is not as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ColumnTypeChange")]
pub struct SchemaChange {
    pub column: String,
    /// Its type in the first; `None`: it was not there.
    pub before: Option<ColumnType>,
    /// Its type in the second; `None`: it is gone.
    pub after: Option<ColumnType>,
}

/// What was kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptBytes {
    /// Files whose bytes were not kept before.
    pub files_added: u64,
    pub bytes_added: u64,
    /// Those of them that share the blocks of the original (reflink) and take no further space.
    pub files_cloned: u64,
}

/// A file of a snapshot whose bytes are not what was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SnapshotBytesFault")]
pub struct BytesFault {
    /// Its path in the snapshot.
    pub path: String,
    /// BLAKE3 of the bytes that were kept.
    pub blake3: String,
    /// What is wrong.
    pub problem: BytesProblem,
}

/// What is wrong with kept bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BytesProblem {
    /// There is no such file.
    Missing,
    /// There are other bytes than those that were kept.
    Different,
}

impl std::fmt::Display for BytesProblem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Missing => "missing",
            Self::Different => "different from what was kept",
        })
    }
}
