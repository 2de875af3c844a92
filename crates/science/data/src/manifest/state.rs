//! Whether the files of data sets are unchanged since they were hashed, by their state in the file system.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use trackway_tables::files::{Identity, url_of};

use super::DataManifest;

/// Of data sets of more files so many are looked at.
const FILES_MAX: usize = 100_000;
/// Of one data set so many files are watched one by one; of more, their folders.
const WATCHED_FILES_MAX: usize = 1024;

/// The states of local files: size, times of change, inode and device. Objects at URLs are not among them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStates(Vec<FileState>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FileState {
    /// Of the run file, with the path as the manifest has it.
    set: String,
    path: String,
    file: PathBuf,
    /// None: it could not be looked at.
    identity: Option<Identity>,
}

impl FileStates {
    /// The files of these manifests as they are now; relative paths start at `base`.
    #[must_use]
    pub fn of(base: &Path, manifests: &[DataManifest]) -> Self {
        let base = std::path::absolute(base).unwrap_or_else(|_| base.to_owned());
        let files = manifests.iter().flat_map(|set| set.files.iter().map(move |file| (set, file)));
        let local = files.filter(|(_, file)| url_of(Path::new(&file.path)).is_none());
        let state = |(set, file): (&DataManifest, &crate::manifest::DataFile)| {
            let at = base.join(&file.path);
            let identity = Identity::of_local(&at).ok();
            FileState { set: set.name.clone(), path: file.path.clone(), file: at, identity }
        };
        Self(local.take(FILES_MAX).map(state).collect())
    }

    /// What to watch to see whether a data set is opened, absolute: its files, or the folders of more than 1,024. A data set of which
    /// not every file is known is left out.
    #[must_use]
    pub fn places_by_set(&self) -> BTreeMap<String, Vec<PathBuf>> {
        let mut files = BTreeMap::<String, Vec<PathBuf>>::new();
        for state in &self.0 {
            files.entry(state.set.clone()).or_default().push(state.file.clone());
        }
        if self.0.len() >= FILES_MAX
            && let Some(last) = self.0.last()
        {
            files.remove(&last.set);
        }
        for places in files.values_mut().filter(|files| files.len() > WATCHED_FILES_MAX) {
            let folders: BTreeSet<PathBuf> =
                places.iter().filter_map(|file| file.parent()).map(Path::to_owned).collect();
            *places = folders.into_iter().collect();
        }
        files
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Data set and path of every file that was written to, replaced or deleted since.
    #[must_use]
    pub fn changed(&self) -> Vec<(&str, &str)> {
        let is_changed = |state: &&FileState| Identity::of_local(&state.file).ok() != state.identity;
        self.0.iter().filter(is_changed).map(|state| (state.set.as_str(), state.path.as_str())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that few files are watched one by one and many by their folders, and that a data set of which files are missing in
    /// the list is not watched: that none of it was opened could not be known.
    #[test]
    fn many_files_are_watched_by_their_folders() {
        let states = |set: &str, count: usize| {
            let state = |number: usize| FileState {
                set: set.to_owned(),
                path: String::new(),
                file: PathBuf::from(format!("/d/{}/{number}", number % 3)),
                identity: None,
            };
            (0..count).map(state).collect::<Vec<_>>()
        };
        let places = FileStates([states("few", 2), states("many", 1_025)].concat()).places_by_set();
        assert_eq!(places["few"], [PathBuf::from("/d/0/0"), PathBuf::from("/d/1/1")]);
        assert_eq!(places["many"], ["/d/0", "/d/1", "/d/2"].map(PathBuf::from));
        let places = FileStates([states("few", 2), states("cut", FILES_MAX - 2)].concat()).places_by_set();
        assert_eq!(places.keys().collect::<Vec<_>>(), ["few"]);
    }
}
