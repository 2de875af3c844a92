//! From the path of a data set to its manifest: [`Resolver`] reads its files on all cores, and [`HashCache`] spares those that did not
//! change.

mod cache;
mod examine;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use trackway_core::Clock;
use trackway_formats::runfile::{DataSpec, nearest};
use trackway_tables::files::{Identity, Selection, is_text, select};
use trackway_tables::pass::PassObserver;
use trackway_tables::profile::Profile;
use trackway_tables::{Column, DataError, ReadContext, did_you_mean};

use crate::manifest::{DataFile, DataManifest, FileIdentity, content_sha256};
use crate::snapshot::ProfileKeeper;
pub use cache::HashCache;
use examine::Examiner;

/// Resolves data sets.
pub struct Resolver<'r> {
    /// The run file's folder; relative paths start here.
    pub base: &'r Path,
    pub context: &'r ReadContext,
    /// Results for files that did not change; `None` reads everything.
    pub cache: Option<&'r HashCache>,
    /// Determines how fresh a file's time of change is.
    pub clock: &'r dyn Clock,
    /// Called with the bytes done and the bytes in all, about once per MiB, and able to end it.
    pub watch: &'r PassObserver<'r>,
}

impl Resolver<'_> {
    /// Finds, hashes and reads all files of a data set. Files are read in parallel, each in pieces.
    ///
    /// # Errors
    /// [`DataError`]: no file, an unreadable or corrupt one, one that changes meanwhile, a named column that is not
    /// there. Rows that cannot be read are counted and are no errors.
    pub fn resolve(&self, name: &str, spec: &DataSpec) -> Result<DataManifest, DataError> {
        let selection = select(name, spec, self.base, self.context)?;
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
            let one = DataSpec { path: path.clone(), ..spec.clone() };
            selections.push(select(name, &one, self.base, self.context)?);
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
            .map(|path| Identity::of(path, self.context).map_or(0, |identity| identity.size_bytes()))
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
            // A line of text is a row only if there is no real table beside it.
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

/// Checks that every tabular file has the columns that the run file names.
fn check_columns(set: &str, spec: &DataSpec, manifest: &mut DataManifest) -> Result<(), DataError> {
    let roles = [("label", &spec.label), ("group", &spec.group), ("time", &spec.time)];
    for (role, column) in roles.into_iter().filter_map(|(role, column)| Some((role, column.as_ref()?))) {
        if manifest.schema.is_none() {
            let note = format!("{role} column `{column}` was not checked: no file is Parquet, CSV or JSONL");
            manifest.notes.push(note);
        }
        for file in &manifest.files {
            // Without any column a table has no row either, which is what is reported.
            let Some(schema) = file.schema.as_ref().filter(|schema| !schema.is_empty()) else { continue };
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
    let identities = selection.files.iter().zip(files).map(|(path, file)| FileIdentity {
        path: path.strip_prefix(&selection.root).unwrap_or(path).as_os_str().as_encoded_bytes(),
        size_bytes: file.size_bytes,
        blake3: &file.blake3,
        schema: file.schema.as_ref(),
    });
    content_sha256(identities, &spec.missing)
}
