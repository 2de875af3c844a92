//! The manifest of a data set, and how it comes about.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use trackway_core::Clock;
use trackway_formats::runfile::{DataFormat, DataSpec, nearest};

use crate::cache::{HashCache, Identity, read_as};
use crate::csv::{COLUMN_COUNT, CsvParser};
use crate::error::{DataError, did_you_mean};
use crate::infer::Column;
use crate::jsonl::JsonlParser;
use crate::scan::{Content, NoParser, Parser, ScanError, scan};
use crate::select::select;

/// The most places kept per kind of finding and file; the count goes on.
pub const MAX_EXAMPLES: usize = 5;

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
    /// Sum over the tabular files; `None` if there is none.
    pub rows: Option<u64>,
    /// All columns of the tabular files in order of appearance, with types that hold all values.
    pub schema: Option<Vec<Column>>,
    /// SHA-256 over each file's path (relative to the set's folder), size, BLAKE3 and schema, in path order.
    pub data_sha256: String,
    /// What a reader of the receipt should know, such as a check that could not be made.
    pub notes: Vec<String>,
}

/// One file of a data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// Relative to the run file's folder where it lies below it, else absolute.
    pub path: String,
    /// Its size.
    pub size_bytes: u64,
    /// BLAKE3 of its bytes, 64 hexadecimal digits.
    pub blake3: String,
    /// What it was read as.
    pub format: DataFormat,
    /// Rows without the header; `None` for [`DataFormat::Other`].
    pub rows: Option<u64>,
    /// Columns in file order; `None` for [`DataFormat::Other`].
    pub schema: Option<Vec<Column>>,
    /// CSV: whether the first row is a header.
    pub header: Option<bool>,
    /// CSV: the separator.
    pub delimiter: Option<char>,
    /// What is wrong with single rows; empty if nothing is.
    pub findings: Vec<Finding>,
}

/// Rows of one kind of fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The kind of fault.
    pub kind: FindingKind,
    /// How many rows have it.
    pub count: u64,
    /// The first [`MAX_EXAMPLES`] of them.
    pub examples: Vec<Example>,
}

/// Where a fault is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    /// The line on which the row begins, from 1.
    pub line: u64,
    /// What is there.
    pub detail: String,
}

/// What may be wrong with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Another number of fields than the header or the first row.
    RaggedRow,
    /// Bytes that are no UTF-8.
    NotUtf8,
    /// A line that is no JSON object.
    BadJson,
}

/// Collects findings; examples are made only while there is room for them.
#[derive(Debug, Default)]
pub(crate) struct Findings(Vec<Finding>);

impl Findings {
    pub(crate) fn add(&mut self, kind: FindingKind, example: impl FnOnce() -> Example) {
        let index = self.0.iter().position(|finding| finding.kind == kind).unwrap_or_else(|| {
            self.0.push(Finding { kind, count: 0, examples: Vec::new() });
            self.0.len() - 1
        });
        let finding = &mut self.0[index];
        finding.count += 1;
        if finding.examples.len() < MAX_EXAMPLES {
            finding.examples.push(example());
        }
    }

    pub(crate) fn into_list(self) -> Vec<Finding> {
        self.0
    }
}

/// Resolves data sets.
pub struct Resolver<'r> {
    /// The run file's folder; relative paths start here.
    pub base: &'r Path,
    /// Results for files that did not change; `None` reads everything.
    pub cache: Option<&'r HashCache>,
    /// Tells how fresh a file's time of change is.
    pub clock: &'r dyn Clock,
    /// Told the bytes done and the bytes in all, from several threads, about once per MiB.
    pub progress: &'r (dyn Fn(u64, u64) + Sync),
}

impl Resolver<'_> {
    /// Finds, hashes and reads all files of a data set. Files are read in parallel, each in chunks.
    ///
    /// # Errors
    /// [`DataError`]: no file, an unreadable or corrupt one, one that changes meanwhile, a named column that is not
    /// there. Faults of single rows are findings, not errors.
    pub fn resolve(&self, name: &str, spec: &DataSpec) -> Result<DataManifest, DataError> {
        let selection = select(name, spec, self.base)?;
        let total: u64 = selection.files.iter().map(|path| fs::metadata(path).map_or(0, |it| it.len())).sum();
        let done = AtomicU64::new(0);
        let advance = |bytes: u64| {
            let before = done.fetch_add(bytes, Ordering::Relaxed);
            (self.progress)(before + bytes, total.max(before + bytes));
        };
        let read = |path: &PathBuf| FileReader { set: name, spec, resolver: self, path }.read(&advance);
        let files = if let [only] = selection.files.as_slice() {
            vec![read(only)?]
        } else {
            selection.files.par_iter().map(read).collect::<Result<Vec<_>, _>>()?
        };
        let data_sha256 = digest(&selection.root, &selection.files, &files);
        let mut manifest = DataManifest {
            name: name.to_owned(),
            path: spec.path.clone(),
            size_bytes: files.iter().map(|file| file.size_bytes).sum(),
            rows: files.iter().filter_map(|file| file.rows).reduce(|sum, rows| sum + rows),
            schema: None,
            data_sha256,
            notes: Vec::new(),
            files,
        };
        manifest.merge_schemas();
        check_columns(name, spec, &mut manifest)?;
        Ok(manifest)
    }

    fn display(&self, path: &Path) -> String {
        path.strip_prefix(self.base).unwrap_or(path).to_string_lossy().into_owned()
    }
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

fn digest(root: &Path, paths: &[PathBuf], files: &[DataFile]) -> String {
    let mut hasher = Sha256::new();
    for (path, file) in paths.iter().zip(files) {
        let relative = path.strip_prefix(root).unwrap_or(path);
        let schema = serde_json::to_string(&file.schema).expect("a schema is plain text");
        hasher.update(relative.as_os_str().as_encoded_bytes());
        hasher.update(format!("\0{}\0{}\0{schema}\n", file.size_bytes, file.blake3));
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads one file of a data set.
struct FileReader<'f> {
    set: &'f str,
    spec: &'f DataSpec,
    resolver: &'f Resolver<'f>,
    path: &'f Path,
}

impl FileReader<'_> {
    fn read(&self, advance: &(dyn Fn(u64) + Sync)) -> Result<DataFile, DataError> {
        let mut file = File::open(self.path).map_err(|source| self.unreadable(source))?;
        let before = Identity::of(&file).map_err(|source| self.unreadable(source))?;
        let format = self.spec.format.unwrap_or_else(|| format_of(self.path));
        let read_as = read_as(format, self.spec);
        let path = self.resolver.display(self.path);
        if let Some(known) = self.resolver.cache.and_then(|cache| cache.get(self.path, &before, &read_as)) {
            advance(known.size_bytes);
            return Ok(DataFile { path, ..known });
        }
        let started = self.resolver.clock.now();
        let scanned = scan(&mut file, parser_for(format, self.spec), advance);
        let scanned = scanned.map_err(|error| self.scan_error(format, error))?;
        let content = match format {
            DataFormat::Parquet => crate::footer::read_footer(&file)
                .map_err(|message| self.scan_error(format, ScanError::Content(message)))?,
            _ => scanned.content,
        };
        let after = Identity::of(&file).map_err(|source| self.unreadable(source))?;
        if after != before || !after.has_size(scanned.size_bytes) {
            return Err(DataError::Changed { set: self.set.to_owned(), path });
        }
        let Content { rows, schema, header, delimiter, findings } = content;
        let (size_bytes, blake3) = (scanned.size_bytes, scanned.blake3);
        let entry = DataFile { path, size_bytes, blake3, format, rows, schema, header, delimiter, findings };
        if let Some(cache) = self.resolver.cache {
            cache.put(self.path, before, read_as, &entry, started);
        }
        Ok(entry)
    }

    fn unreadable(&self, source: std::io::Error) -> DataError {
        DataError::Unreadable { set: self.set.to_owned(), path: self.path.to_owned(), source }
    }

    fn scan_error(&self, format: DataFormat, error: ScanError) -> DataError {
        let (set, path) = (self.set.to_owned(), self.resolver.display(self.path));
        let message = match error {
            ScanError::Read(source) => return self.unreadable(source),
            ScanError::Content(message) => message,
        };
        match message.strip_prefix(COLUMN_COUNT).and_then(|found| found.parse().ok()) {
            Some(found) => DataError::ColumnCount { set, path, named: self.spec.columns.len(), found },
            None => DataError::Corrupt { set, path, format: format_name(format), message },
        }
    }
}

fn parser_for(format: DataFormat, spec: &DataSpec) -> Box<dyn Parser> {
    match format {
        DataFormat::Csv => Box::new(CsvParser::new(spec)),
        DataFormat::Jsonl => Box::new(JsonlParser::default()),
        DataFormat::Parquet | DataFormat::Other => Box::new(NoParser),
    }
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

pub(crate) fn format_name(format: DataFormat) -> &'static str {
    match format {
        DataFormat::Parquet => "Parquet file",
        DataFormat::Csv => "CSV file",
        DataFormat::Jsonl => "JSONL file",
        DataFormat::Other => "file",
    }
}
