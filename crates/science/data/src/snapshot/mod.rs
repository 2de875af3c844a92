//! Snapshots: the contents of a data set at one time, kept for good.
//!
//! A snapshot is named by its content: its id is the `data_sha256` that a run over the same data records. It holds no
//! time, no absolute path and nothing of the machine, so the same data gives the same bytes everywhere. Beside the
//! manifest is the profile, so that later comparisons read no data.
//!
//! ```text
//! snapshots/ID/manifest.json        the files, the schema, the account of the rows
//! snapshots/ID/profile.json         statistics; profile-LABEL.json where made with a label
//! snapshots/ID/bytes.json           the bytes of every file of it are kept
//! objects/XX/BLAKE3                 bytes of files, by their hash
//! names/NAME.jsonl                  where a name points, and pointed before; the last line counts
//! profiles/KEY.json                 statistics of single files, for the next snapshot
//! run-profiles/ID.json              statistics of data that a run read, for the next run
//! ```
//!
//! **Crashes.** A snapshot is written into a folder of another name, synced, and renamed; it is there whole or not at
//! all. What a crash leaves behind (`snapshots/.….part-…`) is never read. An incomplete line of a name is skipped. Bytes of
//! a file are written under another name, compared with the hash, synced and renamed; `bytes.json` is written when the bytes
//! of all files are there.

mod bytes;
mod diff;
mod keeper;
mod masking;
mod store;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use trackway_core::with_fields_of;
use trackway_formats::runfile::DataFormat;
use trackway_tables::Column;
use trackway_tables::read::Rejects;

use crate::manifest::{DataManifest, FileIdentity, content_sha256};
pub use bytes::{Collected, RestoredBytes, VerifiedBytes};
pub use diff::diff;
pub use keeper::ProfileKeeper;
pub use masking::{KEY_BYTES, Mask};
pub use store::{RUN_PROFILE_BYTES_MAX, SHORT_ID_LENGTH, SnapshotError, SnapshotId, SnapshotStore};
pub use trackway_results::snapshot::{
    BytesFault, BytesProblem, FilesDiff, KeptBytes, Moved, NameEntry, NamedSnapshot, SchemaChange,
    SnapshotDiff,
};

/// The version of a stored snapshot. A reader refuses others.
pub const SNAPSHOT_VERSION: u32 = 1;

/// What a data set consisted of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub version: u32,
    /// Its id, 64 hexadecimal digits: the hash of the content, as receipts of runs have it.
    pub data_sha256: String,
    /// Sum over the files.
    pub size_bytes: u64,
    /// Rows read of the tables; `None` if there is none.
    pub rows: Option<u64>,
    /// Rows that could not be read.
    pub rows_rejected: u64,
    /// All columns of the tables, with types that hold all values.
    pub schema: Option<Vec<Column>>,
    /// Strings that mean a missing value, if they were given.
    pub missing: Vec<String>,
    /// Notes for a reader.
    pub notes: Vec<String>,
    /// The files, sorted by path; never empty.
    pub files: Vec<SnapshotFile>,
}

/// One file of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotFile {
    /// Relative to the set's folder.
    pub path: String,
    pub size_bytes: u64,
    /// BLAKE3 of its bytes, 64 hexadecimal digits.
    pub blake3: String,
    /// What it was read as.
    pub format: DataFormat,
    /// Rows read; `None` if it is not a table.
    pub rows: Option<u64>,
    /// Rows that could not be read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rows_rejected: u64,
    /// Why, with the first examples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejects: Vec<Rejects>,
    /// Rows with bytes that are no UTF-8, read as Windows-1252.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rows_recoded: u64,
    /// Its columns, where they are not those of the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Vec<Column>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Snapshot {
    /// A stored snapshot.
    ///
    /// # Errors
    /// A sentence: it is not understood, of another version or of another id, or what it says is not what its id is the hash of.
    pub fn from_json(bytes: &[u8], id: &str) -> Result<Self, String> {
        let snapshot: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if snapshot.version != SNAPSHOT_VERSION || snapshot.data_sha256 != id {
            return Err(format!("version {}, id {}", snapshot.version, snapshot.data_sha256));
        }
        if snapshot.content_sha256().is_some_and(|sha256| sha256 != id) {
            return Err("its paths, sizes, hashes and schemas do not hash to its id: it was changed".into());
        }
        let mut sizes = snapshot.files.iter().map(|file| file.size_bytes);
        if sizes.try_fold(0, u64::checked_add) != Some(snapshot.size_bytes) {
            return Err("its size is not the sum of those of its files: it was changed".into());
        }
        Ok(snapshot)
    }

    /// The hash of what its id is made of; `None` where a path is not UTF-8: the hash has the bytes of the path, and the snapshot a
    /// replacement for them.
    #[must_use]
    pub fn content_sha256(&self) -> Option<String> {
        if self.files.iter().any(|file| file.path.contains(char::REPLACEMENT_CHARACTER)) {
            return None;
        }
        let identities = self.files.iter().map(|file| FileIdentity {
            path: file.path.as_bytes(),
            size_bytes: file.size_bytes,
            blake3: &file.blake3,
            // Only a table has rows and columns, and those of the whole are not repeated.
            schema: file.schema.as_ref().or(self.schema.as_ref().filter(|_| file.rows.is_some())),
        });
        Some(content_sha256(identities, &self.missing))
    }

    /// Of a data set that was read, with the strings that mean missing values if they were given.
    #[must_use]
    pub fn of(manifest: &DataManifest, missing: &[String]) -> Self {
        let file = |file: &crate::DataFile| {
            with_fields_of!(
                SnapshotFile,
                &file,
                [size_bytes, blake3, format, rows, rows_rejected, rejects, rows_recoded],
                path: file.name.clone(),
                schema: file.schema.clone().filter(|schema| Some(schema) != manifest.schema.as_ref()),
            )
        };
        with_fields_of!(
            Self,
            &manifest,
            [data_sha256, size_bytes, rows, rows_rejected, schema, notes],
            version: SNAPSHOT_VERSION,
            missing: missing.to_vec(),
            files: manifest.files.iter().map(file).collect(),
        )
    }
}
