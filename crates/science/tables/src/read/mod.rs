//! Any table as a stream of Arrow batches, with an account of every row.
//!
//! A [`Source`] is the files of one data set, opened: formats, CSV dialects and column types are decided, from
//! footers and samples. [`crate::pass::scan`] reads it in units of work, in parallel, and hands [`Chunk`]s to a
//! [`crate::pass::Pass`].
//!
//! **The account.** Every row of every file either reaches the pass or is rejected; rejected rows are counted, by
//! reason, with the first examples. A cell that does not fit its column's type is a *misfit*: counted, shown, null in
//! the batch; its row stays. All of that is the [`Coverage`].
//!
//! **Types** of CSV and JSON columns come from samples. If the whole file holds something wider (a first `2.5` after a
//! million whole numbers), the scan reports it, widens the type and begins again, so that what a pass sees never
//! depends on the sample. [`Source::with_columns`] fixes the types instead; whatever does not fit them is then a
//! misfit.
//!
//! A type never makes two values equal that differ: whole numbers beyond 64 bits, decimal numbers that no float holds, and
//! digits with zeros in front are text. Where floats are rounded (more than 17 digits), and wherever else something is not read
//! as it is written, a [`ReadNote`] says how much and where; a strict [`ReadContext`] makes an error of it.

mod agree;
mod bytes;
mod chunk;
mod coverage;
mod mixed;
#[cfg(test)]
mod mutants;
mod notes;
mod numbers;
mod opener;
mod parquet_file;
mod positions;
mod retype;
mod sample;
mod sink;
mod tally;
#[cfg(test)]
mod tests;
mod text;
mod units;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::DataType;
use rayon::prelude::*;
use trackway_core::boundary::contained;
use trackway_formats::runfile::{DataSpec, nearest};

use crate::error::{DataError, did_you_mean};
use crate::files::context::ReadContext;
use crate::files::identity::Identity;
pub use crate::files::remote::{ByteSource, RemoteFile, RemoteFiles};
use crate::files::select::select;
use crate::types::infer::{Style, form_of};
pub use agree::agree;
pub use bytes::{open, read_full};
pub use chunk::{Chunk, Marks, Texts};
pub(crate) use coverage::merge_faults;
pub use coverage::{CellTally, Coverage, MAX_FAULT_EXAMPLES, MAX_SHOWN_BYTES, RejectedRow};
pub use mixed::MixedColumn;
pub use notes::{losses, sentences};
use opener::{Opener, table_format};
use parquet_file::ParquetFile;
use positions::Positions;
pub(crate) use sink::{ChunkSink, Stop};
use tally::{StringLimit, Tally};
pub use text::blocks::MAX_RECORD_BYTES;
use text::cells::Missing;
pub use text::cells::USUAL_MISSING;
use text::csv::CsvLayout;
pub use text::lines::LINE_COLUMN;
pub use trackway_results::reading::{
    CellFaults, Fault, Occurrences, Place, ReadNote, ReadNoteKind, RejectKind, Rejects,
};
pub(crate) use units::{Unit, Units};

use crate::types::{Column, ColumnType};

/// The files of one data set, opened for reading.
#[derive(Clone)]
pub struct Source {
    set: String,
    files: Vec<SourceFile>,
    columns: Vec<Column>,
    /// Values seen per column while types were inferred.
    tallies: Vec<Tally>,
    string_limit: StringLimit,
    types_are_fixed: bool,
    columns_are_chosen: bool,
    keeps_originals: bool,
    missing: Missing,
    /// Whether the strings that mean a missing value were named.
    missing_is_given: bool,
    /// What the beginning of the files shows.
    opening: Vec<ReadNote>,
    /// What the last scan found.
    scanned: Vec<ReadNote>,
    context: ReadContext,
}

/// How a column is read from a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Which column of the file it is; nothing where the file does not have it.
    pub(crate) field: Option<usize>,
    pub(crate) kind: ColumnType,
    pub(crate) style: Style,
    /// Whether the type was given: then digits with zeros in front are a number too, and floats round whole numbers.
    pub(crate) is_given: bool,
    /// Whether it is text only because its numbers or dates are kept as they are written.
    pub(crate) is_kept: bool,
}

/// One file of a source.
#[derive(Clone)]
pub struct SourceFile {
    /// As it is shown: relative to the base folder if it is below it.
    pub path: String,
    /// Its size when it was opened.
    pub size_bytes: u64,
    /// Where it is, and its state when it was opened; nothing for a URL, which is read as one version.
    opened: Option<(PathBuf, Identity)>,
    bytes: Arc<dyn ByteSource>,
    kind: FileKind,
    /// The file's columns, in its order. Shared, because a source of wide files is cloned for each group of columns.
    columns: Arc<[Column]>,
    /// Columns without a name, or with that of an earlier one, as the file has it and as they are called.
    renamed: Arc<[(String, String)]>,
    /// The option that reads the file, where its rows do not fit its first one.
    advice: Option<String>,
}

/// The files of one source that are, byte by byte, files of another one: both paths.
pub fn same_files(one: &Source, other: &Source) -> Result<Vec<(String, String)>, DataError> {
    let mut same = Vec::new();
    for there in &other.files {
        for here in one.files.iter().filter(|here| here.size_bytes == there.size_bytes && here.size_bytes > 0)
        {
            let is_same = here.has_bytes_of(there).map_err(|source| DataError::Unreadable {
                set: one.set.clone(),
                path: here.path.clone().into(),
                source,
            })?;
            if is_same {
                same.push((here.path.clone(), there.path.clone()));
                break;
            }
        }
    }
    Ok(same)
}

/// Bytes of two files compared at a time.
const COMPARED_BYTES: usize = 1 << 20;

impl SourceFile {
    fn has_bytes_of(&self, other: &Self) -> std::io::Result<bool> {
        let mut buffers = [vec![0; COMPARED_BYTES], vec![0; COMPARED_BYTES]];
        let mut offset = 0;
        loop {
            let [one, two] = &mut buffers;
            let length = read_full(self.bytes.as_ref(), offset, one)?;
            if read_full(other.bytes.as_ref(), offset, two)? != length || one[..length] != two[..length] {
                return Ok(false);
            }
            if length == 0 {
                return Ok(true);
            }
            offset += length as u64;
        }
    }

    /// CSV: whether the first row is a header, and the separator.
    #[must_use]
    pub fn dialect(&self) -> Option<(bool, char)> {
        match &self.kind {
            FileKind::Csv(layout) => Some((layout.has_header, char::from(layout.dialect.delimiter))),
            _ => None,
        }
    }

    /// Whether it stores a column as strings: a Parquet file has types, while the values of a text file have theirs.
    #[must_use]
    pub fn stores_as_text(&self, column: &str) -> bool {
        let is_text = |it: &Column| it.name == column && it.kind == ColumnType::Text;
        matches!(self.kind, FileKind::Parquet(_)) && self.columns.iter().any(is_text)
    }

    /// Whether its numbers are read with a decimal comma.
    fn has_decimal_comma(&self) -> bool {
        matches!(&self.kind, FileKind::Csv(layout) if layout.has_decimal_comma)
    }

    /// Whether it has no byte.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self.kind, FileKind::Empty)
    }
}

#[derive(Clone)]
pub(crate) enum FileKind {
    Parquet(ParquetFile),
    Csv(CsvLayout),
    Json,
    Lines,
    /// A text file without a byte.
    Empty,
}

impl Source {
    /// Finds and opens the files of a data set; relative paths start at `base`. Of text files, samples are read.
    ///
    /// Hidden files of a folder and files that are not tables (by extension) are skipped; the latter are noted.
    ///
    /// # Errors
    /// [`DataError`]: no file, none that is a table, an unreadable or corrupt one, `columns` that do not fit.
    pub fn open(base: &Path, set: &str, spec: &DataSpec, context: &ReadContext) -> Result<Self, DataError> {
        Self::open_files(base, set, spec, select(set, spec, base, context)?.files, context)
    }

    /// As [`Source::open`], with several paths, each a file, a glob or a folder, in place of the one of `spec`.
    ///
    /// # Errors
    /// As [`Source::open`].
    pub fn open_paths(
        base: &Path,
        set: &str,
        spec: &DataSpec,
        paths: &[String],
        context: &ReadContext,
    ) -> Result<Self, DataError> {
        let mut files = Vec::new();
        for path in paths {
            let one = DataSpec { path: path.clone(), ..spec.clone() };
            files.extend(select(set, &one, base, context)?.files);
        }
        Self::open_files(base, set, spec, files, context)
    }

    /// These files of a data set, opened.
    ///
    /// # Errors
    /// As [`Source::open`].
    pub fn open_files(
        base: &Path,
        set: &str,
        spec: &DataSpec,
        paths: Vec<PathBuf>,
        context: &ReadContext,
    ) -> Result<Self, DataError> {
        let missing = Missing::new(&spec.missing);
        let (tables, others): (Vec<_>, Vec<_>) =
            paths.iter().partition(|path| table_format(path, spec).is_some());
        if tables.is_empty() {
            let path = display(base, others.first().expect("a selection is never empty"));
            return Err(DataError::NotATable { set: set.to_owned(), path });
        }
        let sample_bytes = sample::bytes_per_file(tables.len());
        let opener = Opener { base, set, spec, missing: &missing, sample_bytes, context };
        let open = |path: &&PathBuf| {
            contained(|| opener.open(path)).unwrap_or_else(|panic| Err(opener.fault(path, panic)))
        };
        let opened: Vec<_> = tables.par_iter().map(open).collect::<Result<_, _>>()?;
        let mut source = Self {
            set: set.to_owned(),
            files: Vec::with_capacity(opened.len()),
            columns: Vec::new(),
            tallies: Vec::new(),
            string_limit: StringLimit::default(),
            types_are_fixed: false,
            columns_are_chosen: false,
            keeps_originals: false,
            missing,
            missing_is_given: !spec.missing.is_empty(),
            opening: notes::left_out_files(base, &others),
            scanned: Vec::new(),
            context: context.clone(),
        };
        for (file, tallies) in opened {
            source.add(file, tallies)?;
        }
        Ok(source)
    }

    fn add(&mut self, file: SourceFile, tallies: Vec<Tally>) -> Result<(), DataError> {
        let mut extra: Vec<String> = Vec::new();
        let mut fresh = HashMap::new();
        let known = Positions::of(&self.columns);
        let places = file.columns.iter().enumerate().map(|(place, column)| known.find(&column.name, place));
        let places: Vec<Option<usize>> = places.collect();
        for ((column, tally), place) in file.columns.iter().zip(tallies).zip(places) {
            match place.or_else(|| fresh.get(column.name.as_str()).copied()) {
                Some(index) => self.tallies[index].merge(&tally),
                None => {
                    extra.push(column.name.clone());
                    fresh.insert(column.name.as_str(), self.columns.len());
                    self.columns.push(column.clone());
                    self.tallies.push(tally);
                }
            }
        }
        drop(fresh);
        let limits = self.context.limits();
        if self.columns.len() > limits.columns_max {
            return Err(DataError::Corrupt {
                set: self.set.clone(),
                path: file.path,
                format: "part of one table",
                message: limits.too_many("columns, with those of the files before"),
            });
        }
        if let (Some(first), Some(name)) = (self.files.first(), extra.first()) {
            let more = if extra.len() > 1 { format!(" and {} more", extra.len() - 1) } else { String::new() };
            let message = format!("`{}` has no column `{name}`{more}, `{}` has", first.path, file.path);
            let note = ReadNote::new(ReadNoteKind::AbsentColumns, extra.len() as u64, message);
            self.opening.push(ReadNote { column: Some(name.clone()), ..note.in_file(&first.path) });
        }
        let known = notes::of_file(&file);
        // Files of one kind have the same names.
        let is_new = |note: &ReadNote| {
            let is_renamed =
                |it: &ReadNote| it.kind == ReadNoteKind::RenamedColumn && it.column == note.column;
            note.kind != ReadNoteKind::RenamedColumn || !self.opening.iter().any(is_renamed)
        };
        let new: Vec<ReadNote> = known.into_iter().filter(is_new).collect();
        self.opening.extend(new);
        self.files.push(file);
        self.retype();
        Ok(())
    }

    fn retype(&mut self) {
        for (column, tally) in self.columns.iter_mut().zip(&self.tallies) {
            column.kind = tally.decide(self.string_limit).kind;
        }
    }

    /// Reads these columns, with these types, and nothing else. A value that does not fit is a misfit.
    ///
    /// # Errors
    /// [`DataError::NoColumn`] for a column that no file has.
    pub fn with_columns(mut self, columns: Vec<Column>) -> Result<Self, DataError> {
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        self = self.select(&names)?;
        self.columns = columns;
        self.types_are_fixed = true;
        Ok(self)
    }

    /// Chunks also have their cells as the file has them: the strings of a text file, with those that mean a missing value (an
    /// empty one is null), and the types of a Parquet file.
    #[must_use]
    pub fn with_originals(mut self) -> Self {
        self.keeps_originals = true;
        self
    }

    /// The type that every file stores a column in; `None` if one of them is a text file, or they differ.
    #[must_use]
    pub fn stored_type(&self, name: &str) -> Option<DataType> {
        let mut stored = None;
        for file in self.files.iter().filter(|file| !file.is_empty()) {
            let FileKind::Parquet(parquet) = &file.kind else { return None };
            let place = file.columns.iter().position(|column| column.name == name);
            match (place.and_then(|place| parquet.stored_type(place)), &stored) {
                (Some(found), None) => stored = Some(found.clone()),
                (Some(found), Some(known)) if found != known => return None,
                _ => {}
            }
        }
        stored
    }

    /// Reads these columns only, in this order.
    ///
    /// # Errors
    /// [`DataError::NoColumn`] for a column that no file has.
    pub fn select(mut self, names: &[&str]) -> Result<Self, DataError> {
        let mut chosen = Vec::with_capacity(names.len());
        for name in names {
            chosen.push(self.index_of(name, "chosen")?);
        }
        self.columns = chosen.iter().map(|index| self.columns[*index].clone()).collect();
        self.columns_are_chosen = true;
        self.tallies = chosen.iter().map(|index| self.tallies[*index].clone()).collect();
        Ok(self)
    }

    /// The index of a column. `role` names in an error what the column was to be (`label`, `group` …).
    ///
    /// # Errors
    /// [`DataError::NoColumn`], with the nearest name.
    pub fn index_of(&self, name: &str, role: &'static str) -> Result<usize, DataError> {
        let index = self.columns.iter().position(|column| column.name == name);
        index.ok_or_else(|| {
            let names = self.columns.iter().map(|column| column.name.as_str());
            let is_nameless = matches!(&self.files[0].kind, FileKind::Csv(layout) if !layout.has_header)
                && self.columns.first().is_some_and(|column| column.name == "column_1");
            let advice = match is_nameless {
                true => "; its first row is data, not a header: name its columns with --column-names (`columns` in a run file)"
                    .to_owned(),
                false => did_you_mean(nearest(name, names)),
            };
            DataError::NoColumn {
                set: self.set.clone(),
                role,
                column: name.to_owned(),
                path: self.files[0].path.clone(),
                advice,
            }
        })
    }

    /// The data set's name.
    #[must_use]
    pub fn set(&self) -> &str {
        &self.set
    }

    /// The columns that a scan reads, with the types it reads them as.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The files, sorted by path.
    #[must_use]
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// Columns that share their name with an earlier one of a file, as it has them and as they are called.
    #[must_use]
    pub fn renamed(&self) -> Vec<(String, String)> {
        let mut renamed: Vec<_> = self.files.iter().flat_map(|file| file.renamed.to_vec()).collect();
        renamed.retain(|(given, _)| !given.is_empty());
        renamed.sort();
        renamed.dedup();
        renamed
    }

    /// Whether a scan may find that a column needs a wider type: always of text files; of Parquet where decimal numbers may have
    /// more digits than a number of 64 bits, or files store a column in different types.
    #[must_use]
    pub fn may_widen(&self) -> bool {
        let kinds: HashMap<&str, ColumnType> =
            self.columns.iter().map(|column| (column.name.as_str(), column.kind)).collect();
        let is_open = |file: &SourceFile| match &file.kind {
            FileKind::Empty => false,
            FileKind::Parquet(parquet) => file.columns.iter().enumerate().any(|(place, column)| {
                let is_decimal = parquet.stored_type(place).is_some_and(DataType::is_decimal);
                is_decimal || kinds.get(column.name.as_str()).is_some_and(|kind| *kind != column.kind)
            }),
            FileKind::Csv(_) | FileKind::Json | FileKind::Lines => true,
        };
        self.files.iter().any(is_open)
    }

    /// Sum over the files.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size_bytes).sum()
    }

    /// Rows, if footers have them: known only if every file is Parquet.
    #[must_use]
    pub fn rows(&self) -> Option<u64> {
        let rows = |file: &SourceFile| match &file.kind {
            FileKind::Parquet(parquet) => Some(parquet.rows()),
            FileKind::Empty => Some(0),
            _ => None,
        };
        self.files.iter().map(rows).sum()
    }

    /// About how many rows there are: exact if footers have it, else a low guess from the files' size.
    #[must_use]
    pub fn about_rows(&self) -> u64 {
        const LONG_CELL_BYTES: u64 = 24;
        let guess = || self.size_bytes() / (LONG_CELL_BYTES * self.columns.len().max(1) as u64);
        self.rows().unwrap_or_else(guess)
    }

    /// How it is read.
    #[must_use]
    pub fn context(&self) -> &ReadContext {
        &self.context
    }

    /// The first file that is not what it was when it was opened: written to, replaced or gone.
    pub(crate) fn changed_file(&self) -> Option<&SourceFile> {
        let is_changed = |file: &&SourceFile| match &file.opened {
            Some((path, identity)) => Identity::of_local(path).map_or(true, |now| now != *identity),
            None => false,
        };
        self.files.iter().find(is_changed)
    }

    /// How a scan can divide its work and its memory.
    pub(crate) fn layout(&self) -> Layout {
        let mut layout = Layout { open_bytes: vec![0; self.columns.len()], units: Some(0), by_column: true };
        let index: HashMap<&str, usize> =
            self.columns.iter().enumerate().map(|(index, column)| (column.name.as_str(), index)).collect();
        for file in &self.files {
            match &file.kind {
                FileKind::Parquet(parquet) => {
                    layout.units = layout.units.map(|units| units + parquet.ranges().len());
                    for (column, bytes) in file.columns.iter().zip(parquet.open_bytes()) {
                        if let Some(index) = index.get(column.name.as_str()) {
                            layout.open_bytes[*index] = layout.open_bytes[*index].max(bytes);
                        }
                    }
                }
                FileKind::Empty => {}
                // A key may turn up that is not a column yet.
                FileKind::Json => (layout.units, layout.by_column) = (None, false),
                FileKind::Csv(_) | FileKind::Lines => layout.units = None,
            }
        }
        layout
    }

    /// The same files with these columns only.
    #[must_use]
    pub fn only(&self, columns: &[usize]) -> Self {
        let mut only = self.clone();
        only.columns = columns.iter().map(|index| self.columns[*index].clone()).collect();
        only.tallies = columns.iter().map(|index| self.tallies[*index].clone()).collect();
        only.columns_are_chosen = true;
        only
    }

    /// Takes over the types that a scan of these columns needed.
    pub(crate) fn adopt(&mut self, columns: &[usize], scanned: &Self) {
        for (from, to) in columns.iter().enumerate() {
            self.columns[*to] = scanned.columns[from].clone();
            self.tallies[*to] = scanned.tallies[from].clone();
        }
    }

    /// Types that hold what a scan met, if those of the source do not; never when types are fixed.
    pub(crate) fn wider(&self, coverage: &Coverage) -> Option<Self> {
        if self.types_are_fixed {
            return None;
        }
        let mut wider = self.clone();
        for (index, tally) in coverage.columns.iter().enumerate() {
            let faults = &tally.faults;
            if faults.misfits == 0 {
                continue;
            }
            let missing: u64 = faults.missing_strings.values().sum();
            let fitting = coverage.rows_read.saturating_sub(faults.misfits + missing + faults.absent);
            let kind = self.columns[index].kind;
            let mut tally = self.tallies[index].after(kind, fitting, &tally.misfit_forms);
            for fault in &faults.examples {
                tally.name(form_of(fault.detail.as_bytes()), || fault.detail.as_str().into());
            }
            wider.columns[index].kind = tally.decide(self.string_limit).kind.join(kind);
            wider.tallies[index] = tally;
        }
        if !self.columns_are_chosen {
            let columns_max = self.context.limits().columns_max;
            for key in coverage.unknown_keys.keys().take(columns_max - self.columns.len()) {
                wider.columns.push(Column { name: key.clone(), kind: ColumnType::Null });
                wider.tallies.push(Tally::default());
            }
        }
        let style = |source: &Self, index: usize| source.tallies[index].style(source.columns[index].kind);
        let is_wider = wider.columns != self.columns
            || (0..self.columns.len()).any(|index| style(&wider, index) != style(self, index));
        is_wider.then_some(wider)
    }

    /// Whether numbers of its text files are read with a decimal comma.
    pub(crate) fn has_decimal_comma(&self) -> bool {
        self.files.iter().any(SourceFile::has_decimal_comma)
    }

    /// Whether each of its rows is one of JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.files.iter().all(|file| matches!(file.kind, FileKind::Json | FileKind::Empty))
            && self.files.iter().any(|file| matches!(file.kind, FileKind::Json))
    }
}

/// What a plan for a scan needs from a source.
pub(crate) struct Layout {
    /// About how many bytes each column takes while it is read; 0 where all columns are read together anyway.
    pub(crate) open_bytes: Vec<u64>,
    /// Units of work; unknown for text files, which are cut while they are read.
    pub(crate) units: Option<usize>,
    /// Whether some columns can be read without the others.
    pub(crate) by_column: bool,
}

fn display(base: &Path, path: &Path) -> String {
    path.strip_prefix(base).unwrap_or(path).to_string_lossy().into_owned()
}
