//! A table of labels against the files it speaks of.

use std::collections::HashMap;

use super::MediaFile;
use crate::error::DataError;
use crate::pass::{Pass, Watch, scan};
use crate::read::{Chunk, Coverage, Place, Source, Texts};

/// The most rows that are kept of what is wrong.
const EXAMPLES_MAX: usize = 5;

/// What a table of labels says about files.
#[derive(Debug, Default, PartialEq)]
pub(super) struct LabelAccount {
    pub(super) column: String,
    pub(super) rows: u64,
    pub(super) missing_files: u64,
    pub(super) missing_examples: Vec<(Place, String)>,
    pub(super) unlabelled: Vec<usize>,
    /// Rows about a file that an earlier row spoke of.
    pub(super) repeated: u64,
}

/// Names of the rows of every text column that could be one of paths.
struct Names {
    columns: Vec<Vec<(Place, String)>>,
}

impl Pass for Names {
    fn observe(&mut self, chunk: &Chunk) {
        for (names, column) in self.columns.iter_mut().zip(chunk.batch.columns()) {
            let Some(texts) = Texts::of(column) else { continue };
            let rows =
                (0..chunk.batch.num_rows()).filter_map(|row| Some((chunk.place(row), texts.get(row)?)));
            names.extend(rows.map(|(place, text)| (place, text.to_owned())));
        }
    }

    fn merge(&mut self, later: Self) {
        self.columns.iter_mut().zip(later.columns).for_each(|(names, more)| names.extend(more));
    }
}

/// Finds the column that names most files, and compares it with them. `Ok(Err)` says why there is none.
pub(super) fn account(
    source: &mut Source,
    files: &[MediaFile],
    watch: &Watch<'_>,
) -> Result<(Result<LabelAccount, String>, Coverage), DataError> {
    let make = |source: &Source| Names { columns: source.columns().iter().map(|_| Vec::new()).collect() };
    let (names, coverage) = scan(source, &make, watch)?;
    let index = Index::new(files);
    let met =
        |names: &Vec<(Place, String)>| names.iter().filter(|(_, name)| index.find(name).is_some()).count();
    let best =
        names.columns.iter().enumerate().max_by_key(|(column, names)| (met(names), usize::MAX - column));
    let Some((column, names)) = best.filter(|(_, names)| met(names) > 0) else {
        return Ok((Err("no column names files of the folder".into()), coverage));
    };
    let mut account =
        LabelAccount { column: source.columns()[column].name.clone(), ..LabelAccount::default() };
    let mut rows_of = vec![0u64; files.len()];
    for (place, name) in names {
        account.rows += 1;
        match index.find(name) {
            Some(file) => {
                account.repeated += u64::from(rows_of[file] > 0);
                rows_of[file] += 1;
            }
            None => {
                account.missing_files += 1;
                if account.missing_examples.len() < EXAMPLES_MAX {
                    account.missing_examples.push((*place, name.clone()));
                }
            }
        }
    }
    account.unlabelled = (0..files.len()).filter(|file| rows_of[*file] == 0).collect();
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
