//! A table of labels against the files it speaks of.

use std::collections::HashMap;

use super::MediaFile;
use crate::error::DataError;
use crate::merge::Found;
use crate::pass::{Pass, PassObserver, scan};
use crate::read::{Chunk, Coverage, Place, Source, Texts};

/// How a table of labels matches files.
#[derive(Debug, Default, PartialEq)]
pub(super) struct LabelAccount {
    pub(super) column: String,
    pub(super) rows: u64,
    /// Rows about files that are not there.
    pub(super) missing: Found<(Place, String)>,
    pub(super) unlabelled: Vec<usize>,
    /// Rows about a file that an earlier row spoke of.
    pub(super) repeated: u64,
}

/// Files that each column names: memory for each named file, not for each row.
struct Named<'i> {
    index: &'i Index,
    columns: Vec<NamedByColumn>,
}

#[derive(Default)]
struct NamedByColumn {
    rows: u64,
    rows_of: HashMap<usize, u64>,
    missing: Found<(Place, String)>,
}

impl Pass for Named<'_> {
    fn observe(&mut self, chunk: &Chunk) {
        for (named, column) in self.columns.iter_mut().zip(chunk.batch.columns()) {
            let Some(texts) = Texts::of(column) else { continue };
            for row in 0..chunk.batch.num_rows() {
                if let Some(name) = texts.get(row) {
                    named.add(self.index, chunk.place(row), name);
                }
            }
        }
    }

    fn merge(&mut self, later: Self) {
        self.columns.iter_mut().zip(later.columns).for_each(|(named, more)| named.merge(more));
    }
}

impl NamedByColumn {
    fn add(&mut self, index: &Index, place: Place, name: &str) {
        self.rows += 1;
        match index.find(name) {
            Some(file) => *self.rows_of.entry(file).or_default() += 1,
            None => self.missing.add(1, || (place, name.to_owned())),
        }
    }

    fn merge(&mut self, later: Self) {
        self.rows += later.rows;
        self.missing.merge(later.missing);
        later.rows_of.into_iter().for_each(|(file, rows)| *self.rows_of.entry(file).or_default() += rows);
    }
}

/// Finds the column that names most files, and compares it with them. `Ok(Err)`: why there is none.
pub(super) fn account(
    source: &mut Source,
    files: &[MediaFile],
    watch: &PassObserver<'_>,
) -> Result<(Result<LabelAccount, String>, Coverage), DataError> {
    let index = Index::new(files);
    let make = |source: &Source| {
        let columns = source.columns().iter().map(|_| NamedByColumn::default()).collect();
        Named { index: &index, columns }
    };
    let (named, coverage) = scan(source, &make, watch)?;
    let columns = named.columns.into_iter().zip(source.columns());
    let best = columns.max_by_key(|(named, _)| named.rows_of.len());
    let Some((named, column)) = best.filter(|(named, _)| !named.rows_of.is_empty()) else {
        return Ok((Err("no column names files of the folder".into()), coverage));
    };
    let account = LabelAccount {
        column: column.name.clone(),
        rows: named.rows,
        missing: named.missing,
        unlabelled: (0..files.len()).filter(|file| !named.rows_of.contains_key(file)).collect(),
        repeated: named.rows_of.values().map(|rows| rows - 1).sum(),
    };
    Ok((Ok(account), coverage))
}

/// Files by what a table may call them: the path below the folder, with the folder's own name before it, the file
/// name alone, and each without extension.
struct Index {
    by_name: HashMap<String, usize>,
}

impl Index {
    fn new(files: &[MediaFile]) -> Self {
        let mut by_name = HashMap::new();
        for (index, file) in files.iter().enumerate() {
            let last = file.name.rsplit('/').next().unwrap_or_default();
            for name in [file.name.as_str(), last] {
                by_name.entry(name.to_owned()).or_insert(index);
                if let Some((stem, _)) = name.rsplit_once('.') {
                    by_name.entry(stem.to_owned()).or_insert(index);
                }
            }
        }
        Self { by_name }
    }

    fn find(&self, name: &str) -> Option<usize> {
        let name = name.trim().trim_start_matches("./");
        // Folders before the one that was given: `data/images/a/1.png`.
        let mut rest = name;
        loop {
            if let Some(file) = self.by_name.get(rest) {
                return Some(*file);
            }
            rest = rest.split_once('/')?.1;
        }
    }
}
