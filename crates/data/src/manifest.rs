//! The manifest of a data set, and how it comes about.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use trackway_core::Clock;
use trackway_core::text::hex;
use trackway_formats::runfile::{DataFormat, DataSpec, nearest};

use crate::cache::{HashCache, Identity};
use crate::error::{DataError, did_you_mean};
use crate::examine::Examiner;
use crate::infer::Column;
use crate::pass::Watch;
use crate::profile::Profile;
use crate::read::{Rejects, is_text};
use crate::select::{Selection, select};
use crate::snapshot::ProfileKeeper;

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
    /// the texts that stand for a missing value where they were given. The same data has the same hash everywhere.
    pub data_sha256: String,
    /// What a reader of the receipt should know, such as a check that could not be made.
    pub notes: Vec<String>,
}

/// One file of a data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// Relative to the run file's folder where it lies below it, else absolute; or a URL.
    pub path: String,
    /// Relative to the set's folder: what belongs to the set's identity.
    pub name: String,
    /// Its size.
    pub size_bytes: u64,
    /// BLAKE3 of its bytes, 64 hexadecimal digits.
    pub blake3: String,
    /// What it was read as.
    pub format: DataFormat,
    /// Rows read, without the header; `None` if it is no table.
    pub rows: Option<u64>,
    /// Rows that could not be read; with the rows read, all there are.
    pub rows_rejected: u64,
    /// Why, with the first examples.
    pub rejects: Vec<Rejects>,
    /// Rows with bytes that are no UTF-8, read as Windows-1252.
    pub rows_recoded: u64,
    /// Columns in file order; `None` if it is no table.
    pub schema: Option<Vec<Column>>,
    /// CSV: whether the first row is a header.
    pub header: Option<bool>,
    /// CSV: the separator.
    pub delimiter: Option<char>,
}

/// Resolves data sets.
pub struct Resolver<'r> {
    /// The run file's folder; relative paths start here.
    pub base: &'r Path,
    /// Results for files that did not change; `None` reads everything.
    pub cache: Option<&'r HashCache>,
    /// Tells how fresh a file's time of change is.
    pub clock: &'r dyn Clock,
    /// Told the bytes done and the bytes in all, about once per MiB, and able to end it.
    pub watch: &'r Watch<'r>,
}

impl Resolver<'_> {
    /// Finds, hashes and reads all files of a data set. Files are read in parallel, each in pieces.
    ///
    /// # Errors
    /// [`DataError`]: no file, an unreadable or corrupt one, one that changes meanwhile, a named column that is not
    /// there. Rows that cannot be read are counted and are no errors.
    pub fn resolve(&self, name: &str, spec: &DataSpec) -> Result<DataManifest, DataError> {
        let selection = select(name, spec, self.base)?;
        Ok(self.resolve_selection(name, spec, &selection, None)?.0)
    }

    /// As [`Resolver::resolve`], of several paths together, with the profile of all tables; `None` if there is none.
    ///
    /// # Errors
    /// As [`Resolver::resolve`].
    pub fn resolve_with_profile(
        &self,
        name: &str,
        spec: &DataSpec,
        paths: &[String],
        keeper: &ProfileKeeper<'_>,
    ) -> Result<(DataManifest, Option<Profile>), DataError> {
        let mut selections = Vec::with_capacity(paths.len());
        for path in paths {
            selections.push(select(name, &DataSpec { path: path.clone(), ..spec.clone() }, self.base)?);
        }
        self.resolve_selection(name, spec, &together(selections), Some(keeper))
    }

    fn resolve_selection(
        &self,
        name: &str,
        spec: &DataSpec,
        selection: &Selection,
        keeper: Option<&ProfileKeeper<'_>>,
    ) -> Result<(DataManifest, Option<Profile>), DataError> {
        let total: u64 = selection
            .files
            .par_iter()
            .map(|path| Identity::of(path).map_or(0, |identity| identity.size_bytes()))
            .sum();
        let done = AtomicU64::new(0);
        let advance = |bytes: u64| {
            let before = done.fetch_add(bytes, Ordering::Relaxed);
            (self.watch.progress)(before + bytes, total.max(before + bytes));
        };
        let examiner = Examiner {
            set: name,
            spec,
            resolver: self,
            root: &selection.root,
            keeper,
            // A line of text is a row only where no real table stands beside it.
            text_is_table: selection.files.iter().all(|path| is_text(path)),
            advance: &advance,
        };
        let (files, profile) = examiner.read_all(&selection.files, self.watch)?;
        let mut manifest = DataManifest {
            name: name.to_owned(),
            path: spec.path.clone(),
            size_bytes: files.iter().map(|file| file.size_bytes).sum(),
            rows: files.iter().filter_map(|file| file.rows).reduce(|sum, rows| sum + rows),
            rows_rejected: files.iter().map(|file| file.rows_rejected).sum(),
            schema: None,
            data_sha256: digest(selection, &files, spec),
            notes: Vec::new(),
            files,
        };
        manifest.merge_schemas();
        check_columns(name, spec, &mut manifest)?;
        Ok((manifest, profile))
    }

    pub(crate) fn display(&self, path: &Path) -> String {
        path.strip_prefix(self.base).unwrap_or(path).to_string_lossy().into_owned()
    }
}

/// Several selections as one: each file once, sorted, below the folder they have in common.
fn together(mut selections: Vec<Selection>) -> Selection {
    let mut whole = selections.pop().expect("there is a path at least");
    for more in selections {
        let common = whole.root.components().zip(more.root.components());
        whole.root = common.take_while(|(one, other)| one == other).map(|(one, _)| one).collect();
        whole.files.extend(more.files);
    }
    whole.files.sort();
    whole.files.dedup();
    whole
}

impl DataManifest {
    fn merge_schemas(&mut self) {
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

/// Checks that every tabular file has the columns that the run file names.
fn check_columns(set: &str, spec: &DataSpec, manifest: &mut DataManifest) -> Result<(), DataError> {
    let roles = [("label", &spec.label), ("group", &spec.group), ("time", &spec.time)];
    for (role, column) in roles.into_iter().filter_map(|(role, column)| Some((role, column.as_ref()?))) {
        if manifest.schema.is_none() {
            let note = format!("{role} column `{column}` was not checked: no file is Parquet, CSV or JSONL");
            manifest.notes.push(note);
        }
        for file in &manifest.files {
            let Some(schema) = &file.schema else { continue };
            if schema.iter().all(|known| known.name != *column) {
                let advice = column_advice(set, column, file, schema);
                let (set, column) = (set.to_owned(), column.clone());
                return Err(DataError::NoColumn { set, role, column, path: file.path.clone(), advice });
            }
        }
    }
    Ok(())
}

/// Names shown when none is like the wanted one.
const MAX_NAMES_SHOWN: usize = 20;

fn column_advice(set: &str, column: &str, file: &DataFile, schema: &[Column]) -> String {
    if file.header == Some(false) {
        return format!(
            "; its first row is data, not a header: name its columns with `columns = [...]` in `[data.{set}]`"
        );
    }
    match nearest(column, schema.iter().map(|known| known.name.as_str())) {
        Some(nearest) => did_you_mean(Some(nearest)),
        None => {
            let shown: Vec<_> =
                schema.iter().take(MAX_NAMES_SHOWN).map(|known| format!("`{}`", known.name)).collect();
            format!(
                "; its {} columns are {}{}",
                schema.len(),
                shown.join(", "),
                if schema.len() > shown.len() { ", …" } else { "" }
            )
        }
    }
}

fn digest(selection: &Selection, files: &[DataFile], spec: &DataSpec) -> String {
    let mut hasher = Sha256::new();
    for (path, file) in selection.files.iter().zip(files) {
        let relative = path.strip_prefix(&selection.root).unwrap_or(path);
        let schema = serde_json::to_string(&file.schema).expect("a schema is plain text");
        hasher.update(relative.as_os_str().as_encoded_bytes());
        hasher.update(format!("\0{}\0{}\0{schema}\n", file.size_bytes, file.blake3));
    }
    if !spec.missing.is_empty() {
        hasher.update(serde_json::to_string(&spec.missing).expect("texts are JSON"));
    }
    hex(&hasher.finalize())
}

pub(crate) fn format_of(path: &Path) -> DataFormat {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    match extension.as_deref() {
        Some("parquet" | "pq") => DataFormat::Parquet,
        Some("csv" | "tsv") => DataFormat::Csv,
        Some("jsonl" | "ndjson") => DataFormat::Jsonl,
        _ => DataFormat::Other,
    }
}
