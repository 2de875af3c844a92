//! A table of labels against the files it speaks of.

use std::collections::HashMap;
use std::path::Path;

use arrow::array::Array as _;
use arrow::datatypes::DataType;
use trackway_tables::DataError;
use trackway_tables::merge::CountedExamples;
use trackway_tables::pass::{Pass, PassObserver, scan};
use trackway_tables::read::{Chunk, Coverage, Place, Source, Texts};

use super::{MediaFile, is_image_name};
use crate::values::sampled::numbers;

/// How a table of labels matches files.
#[derive(Debug, Default, PartialEq)]
pub(super) struct LabelAccount {
    pub(super) column: String,
    pub(super) named: NamedByColumn,
    pub(super) unlabelled: Vec<usize>,
    /// Rows about a file that an earlier row spoke of.
    pub(super) repeated: u64,
}

/// Files that each column names: memory for each named file, not for each row.
struct FilesByColumn<'i> {
    index: &'i Index,
    columns: Vec<NamedByColumn>,
}

/// The files that one column names.
#[derive(Debug, Default, PartialEq)]
pub(super) struct NamedByColumn {
    pub(super) rows: u64,
    rows_of: HashMap<usize, u64>,
    /// Rows about files that are not there.
    pub(super) missing: CountedExamples<(Place, String)>,
    /// Rows about a name that several files have.
    pub(super) ambiguous: CountedExamples<(Place, String)>,
    /// Rows that name a file without its extension.
    pub(super) without_extension: u64,
    is_number: bool,
}

impl Pass for FilesByColumn<'_> {
    fn observe(&mut self, chunk: &Chunk) {
        for (named, column) in self.columns.iter_mut().zip(chunk.batch.columns()) {
            if let Some(texts) = Texts::of(column) {
                for row in 0..chunk.batch.num_rows() {
                    if let Some(name) = texts.get(row) {
                        named.add(self.index.find(name), chunk.place(row), || name.to_owned());
                    }
                }
            } else if matches!(column.data_type(), DataType::Int64 | DataType::UInt64) {
                named.is_number = true;
                let ids = numbers(column).into_iter().enumerate();
                for (row, id) in ids.filter(|(_, id)| *id >= 0.0) {
                    named.add(self.index.find_number(id as u64), chunk.place(row), || id.to_string());
                }
            }
        }
    }

    fn merge(&mut self, later: Self) {
        self.columns.iter_mut().zip(later.columns).for_each(|(named, more)| named.merge(more));
    }
}

impl NamedByColumn {
    fn add(&mut self, found: Match, place: Place, name: impl FnOnce() -> String) {
        self.rows += 1;
        match found {
            Match::File { index, is_whole } => {
                *self.rows_of.entry(index).or_default() += 1;
                self.without_extension += u64::from(!is_whole);
            }
            Match::Several => self.ambiguous.add(1, || (place, name())),
            Match::Nothing => self.missing.add(1, || (place, name())),
        }
    }

    fn merge(&mut self, later: Self) {
        self.rows += later.rows;
        self.missing.merge(later.missing);
        self.ambiguous.merge(later.ambiguous);
        self.without_extension += later.without_extension;
        self.is_number |= later.is_number;
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
        FilesByColumn { index: &index, columns }
    };
    let (named, coverage) = scan(source, &make, watch)?;
    let columns = named.columns.into_iter().zip(source.columns());
    // Any whole number may be a file's name: only where no column of texts names files.
    let best =
        columns.max_by_key(|(named, _)| (!named.rows_of.is_empty() && !named.is_number, named.rows_of.len()));
    let Some((named, column)) = best.filter(|(named, _)| !named.rows_of.is_empty()) else {
        return Ok((Err("no column names files of the folder".into()), coverage));
    };
    let account = LabelAccount {
        column: column.name.clone(),
        unlabelled: (0..files.len()).filter(|file| !named.rows_of.contains_key(file)).collect(),
        repeated: named.rows_of.values().map(|rows| rows - 1).sum(),
        named,
    };
    Ok((Ok(account), coverage))
}

/// What a table's name of a file leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Match {
    File {
        index: usize,
        /// Whether the name has the file's extension.
        is_whole: bool,
    },
    /// Several files may be meant.
    Several,
    Nothing,
}

/// Files by what a table may call them: the path below the folder, with the folder's own name before it, the file
/// name alone, each without extension, and the number that a name consists of (`139` is `000000000139.jpg`). A name of several files
/// is none: of an image and other files beside it, it is the image's.
struct Index {
    whole: HashMap<String, Option<usize>>,
    stems: HashMap<String, Option<usize>>,
    numbers: HashMap<u64, Option<usize>>,
}

impl Index {
    fn new(files: &[MediaFile]) -> Self {
        let mut whole: HashMap<String, Vec<usize>> = HashMap::new();
        let mut stems: HashMap<String, Vec<usize>> = HashMap::new();
        let mut numbers: HashMap<u64, Vec<usize>> = HashMap::new();
        for (index, file) in files.iter().enumerate() {
            let last = file.name.rsplit('/').next().unwrap_or_default();
            let is_nested = last != file.name;
            for name in std::iter::once(file.name.as_str()).chain(is_nested.then_some(last)) {
                whole.entry(name.to_owned()).or_default().push(index);
                if let Some((stem, _)) = name.rsplit_once('.').filter(|(_, end)| !end.contains('/')) {
                    stems.entry(stem.to_owned()).or_default().push(index);
                }
            }
            let stem = last.rsplit_once('.').map_or(last, |(stem, _)| stem);
            if stem.bytes().all(|byte| byte.is_ascii_digit())
                && let Ok(number) = stem.parse()
            {
                numbers.entry(number).or_default().push(index);
            }
        }
        Self {
            whole: resolved(whole, files),
            stems: resolved(stems, files),
            numbers: resolved(numbers, files),
        }
    }

    fn find(&self, name: &str) -> Match {
        let name = name.trim().trim_start_matches("./");
        // Folders before the one that was given: `data/images/a/1.png`.
        let mut rest = name;
        loop {
            let whole = self.whole.get(rest).map(|found| (*found, true));
            if let Some((found, is_whole)) =
                whole.or_else(|| self.stems.get(rest).map(|found| (*found, false)))
            {
                return found.map_or(Match::Several, |index| Match::File { index, is_whole });
            }
            match rest.split_once('/') {
                Some((_, below)) => rest = below,
                None => return Match::Nothing,
            }
        }
    }

    fn find_number(&self, number: u64) -> Match {
        match self.numbers.get(&number) {
            Some(Some(index)) => Match::File { index: *index, is_whole: false },
            Some(None) => Match::Several,
            None => Match::Nothing,
        }
    }
}

/// The one file of each name; `None` where there are several.
fn resolved<K: std::hash::Hash + Eq>(
    names: HashMap<K, Vec<usize>>,
    files: &[MediaFile],
) -> HashMap<K, Option<usize>> {
    let is_image = |index: &&usize| is_image_name(Path::new(&files[**index].name));
    let one = |indexes: &[usize]| match indexes {
        [only] => Some(*only),
        _ => {
            let mut images = indexes.iter().filter(is_image);
            images.next().copied().filter(|_| images.next().is_none())
        }
    };
    names.into_iter().map(|(name, indexes)| (name, one(&indexes))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Content;
    use super::*;

    /// Proves that names match files with and without extension and folders, that a number matches the file whose name is that
    /// number, that an image goes before the text beside it, and that a name of two images is of neither.
    #[test]
    fn names_match_one_file() {
        let names = ["a/img_001.jpg", "a/img_001.txt", "a/0017.jpg", "b/0018.jpg", "c/0018.jpg", "notes.txt"];
        let files: Vec<MediaFile> = names
            .iter()
            .map(|name| MediaFile { name: (*name).into(), path: (*name).into(), content: Content::Text })
            .collect();
        let index = Index::new(&files);
        let file = |index, is_whole| Match::File { index, is_whole };
        for (name, expected) in [
            ("img_001", file(0, false)),
            ("img_001.jpg", file(0, true)),
            ("data/a/img_001.txt", file(1, true)),
            ("./a/img_001", file(0, false)),
            ("0018.jpg", Match::Several),
            ("0018", Match::Several),
            ("b/0018", file(3, false)),
            ("notes", file(5, false)),
            ("img_002", Match::Nothing),
        ] {
            assert_eq!(index.find(name), expected, "{name}");
        }
        assert_eq!(index.find_number(17), file(2, false));
        assert_eq!([index.find_number(18), index.find_number(19)], [Match::Several, Match::Nothing]);
    }
}
