//! Whether the files of data sets are unchanged since they were hashed, by their state in the file system.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::identity::Identity;
use crate::manifest::DataManifest;
use crate::remote::url_of;

/// Of data sets of more files so many are looked at.
const FILES_MAX: usize = 100_000;

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

    /// The files of each data set, absolute.
    #[must_use]
    pub fn files_by_set(&self) -> BTreeMap<String, Vec<PathBuf>> {
        let mut files = BTreeMap::<String, Vec<PathBuf>>::new();
        for state in &self.0 {
            files.entry(state.set.clone()).or_default().push(state.file.clone());
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
