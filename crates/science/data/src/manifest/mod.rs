//! The manifest of a data set: its files, and what is in them; and whether they are unchanged since.

mod state;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use trackway_core::text::hex;
use trackway_formats::runfile::DataFormat;
use trackway_tables::Column;
use trackway_tables::read::{ReadNote, Rejects};

pub use state::FileStates;

/// Every file of a data set and what is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataManifest {
    /// The data set's name in the run file.
    pub name: String,
    /// The path as the run file gives it.
    pub path: String,
    /// The files, sorted by path; never empty.
    pub files: Vec<DataFile>,
    /// Sum over the files.
    pub size_bytes: u64,
    /// Rows read of the tables; `None` if there is none.
    pub rows: Option<u64>,
    /// Rows of the tables that could not be read.
    pub rows_rejected: u64,
    /// All columns of the tables in order of appearance, with types that hold all values.
    pub schema: Option<Vec<Column>>,
    /// SHA-256 over each file's path (relative to the set's folder), size, BLAKE3 and schema, in path order, and over
    /// the strings that mean a missing value if they were given. The same data has the same hash everywhere.
    pub data_sha256: String,
    /// Notes for a reader of the receipt, such as a check that could not be made.
    pub notes: Vec<String>,
}

/// One file of a data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// Relative to the run file's folder if it is below it, else absolute; or a URL.
    pub path: String,
    /// Relative to the set's folder: what belongs to the set's identity.
    pub name: String,
    pub size_bytes: u64,
    /// BLAKE3 of its bytes, 64 hexadecimal digits.
    pub blake3: String,
    /// What it was read as.
    pub format: DataFormat,
    /// Rows read, without the header; `None` if it is not a table.
    pub rows: Option<u64>,
    /// Rows that could not be read; with the rows read, all there are.
    pub rows_rejected: u64,
    /// Why, with the first examples.
    pub rejects: Vec<Rejects>,
    /// Rows with bytes that are no UTF-8, read as Windows-1252.
    pub rows_recoded: u64,
    /// Columns in file order; `None` if it is not a table.
    pub schema: Option<Vec<Column>>,
    /// CSV: whether the first row is a header.
    pub header: Option<bool>,
    /// CSV: the separator.
    pub delimiter: Option<char>,
    /// What reading it did to what it holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reading: Vec<ReadNote>,
}

/// What of a file belongs to the identity of its data set.
pub(crate) struct FileIdentity<'f> {
    /// Its path relative to the set's folder, as bytes.
    pub(crate) path: &'f [u8],
    pub(crate) size_bytes: u64,
    pub(crate) blake3: &'f str,
    pub(crate) schema: Option<&'f Vec<Column>>,
}

/// The `data_sha256` of a data set: of its files in path order, and of the strings that mean a missing value.
pub(crate) fn content_sha256<'f>(
    files: impl Iterator<Item = FileIdentity<'f>>,
    missing: &[String],
) -> String {
    let mut hasher = Sha256::new();
    for FileIdentity { path, size_bytes, blake3, schema } in files {
        let schema = serde_json::to_string(&schema).expect("a schema is plain text");
        hasher.update(path);
        hasher.update(format!("\0{size_bytes}\0{blake3}\0{schema}\n"));
    }
    if !missing.is_empty() {
        hasher.update(serde_json::to_string(missing).expect("strings are JSON"));
    }
    hex(&hasher.finalize())
}

impl DataManifest {
    pub(crate) fn merge_schemas(&mut self) {
        let mut merged: Option<Vec<Column>> = None;
        let mut first_path = "";
        for file in &self.files {
            let Some(schema) = &file.schema else { continue };
            match &mut merged {
                None => {
                    merged = Some(schema.clone());
                    first_path = &file.path;
                }
                Some(merged) => {
                    if names(merged) != names(schema) && self.notes.is_empty() {
                        let note = format!("`{}` has other columns than `{first_path}`", file.path);
                        self.notes.push(note);
                    }
                    merge(merged, schema);
                }
            }
        }
        self.schema = merged;
    }
}

fn names(schema: &[Column]) -> Vec<&str> {
    schema.iter().map(|column| column.name.as_str()).collect()
}

fn merge(merged: &mut Vec<Column>, schema: &[Column]) {
    for (position, column) in schema.iter().enumerate() {
        let same_place = merged.get(position).is_some_and(|known| known.name == column.name);
        let known =
            if same_place { Some(position) } else { merged.iter().position(|it| it.name == column.name) };
        match known {
            Some(index) => merged[index].kind = merged[index].kind.join(column.kind),
            None => merged.push(column.clone()),
        }
    }
}
