//! Finds files that may have metrics, by their names.

use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use trackway_formats::metric_files::{Form, HYDRA_FOLDER, folder_of_values};

use super::super::events::{DEPTH_MAX, is_looked_into};

/// At most so many entries are looked at in one look, those near the working directory first.
pub(super) const ENTRIES_MAX: usize = 20_000;

/// A file that may have metrics.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub path: PathBuf,
    pub form: Form,
    /// The names of the folders down to it.
    pub way: Vec<String>,
    pub inode: u64,
    pub bytes: u64,
    pub modified_ns: i64,
}

impl Found {
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The names of the folders down to the one whose values it has.
    pub fn way_of_values(&self) -> &[String] {
        folder_of_values(&self.way, self.form)
    }

    /// The folder whose values it has.
    pub fn folder_of_values(&self, root: &Path) -> PathBuf {
        self.way_of_values().iter().fold(root.to_owned(), |folder, name| folder.join(name))
    }
}

/// Such files below a folder, but not in Trackway's home, and whether there are more entries than are looked at.
pub(super) fn files_below(root: &Path, home: &Path) -> (Vec<Found>, bool) {
    let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    let is_home = |path: &Path| {
        path.file_name() == home.file_name() && path.canonicalize().is_ok_and(|path| path == home)
    };
    let (mut found, mut seen) = (Vec::new(), 0);
    let mut folders: VecDeque<(PathBuf, Vec<String>)> = VecDeque::from([(root.to_owned(), Vec::new())]);
    while let Some((folder, way)) = folders.pop_front() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            seen += 1;
            if seen > ENTRIES_MAX {
                return (found, true);
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => {
                    let is_deeper = is_looked_into(&name) || name == HYDRA_FOLDER;
                    if is_deeper && way.len() < DEPTH_MAX && !is_home(&entry.path()) {
                        folders.push_back((entry.path(), [way.clone(), vec![name]].concat()));
                    }
                }
                Ok(kind) if kind.is_file() => {
                    let form = Form::of(&way, &name);
                    let Some((form, file)) = form.zip(entry.metadata().ok()) else { continue };
                    let modified_ns =
                        file.mtime().saturating_mul(1_000_000_000).saturating_add(file.mtime_nsec());
                    let (inode, bytes) = (file.ino(), file.len());
                    found.push(Found {
                        path: entry.path(),
                        form,
                        way: way.clone(),
                        inode,
                        bytes,
                        modified_ns,
                    });
                }
                _ => {}
            }
        }
    }
    (found, false)
}
