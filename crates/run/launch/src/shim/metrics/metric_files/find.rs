//! Finds files that may have metrics, by their names.

use std::fs::DirEntry;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use trackway_formats::metric_files::{Form, HYDRA_FOLDER, folder_of_values};

use super::super::below::{each_file_below, may_have_results};

/// A file that may have metrics.
#[derive(Debug, Clone)]
pub(super) struct MetricFile {
    pub path: PathBuf,
    pub form: Form,
    /// The names of the folders down to it.
    pub way: Vec<String>,
    pub inode: u64,
    pub bytes: u64,
    pub modified_ns: i64,
}

impl MetricFile {
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
pub(super) fn files_below(root: &Path, home: &Path) -> (Vec<MetricFile>, bool) {
    let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    let is_home = |path: &Path| {
        path.file_name() == home.file_name() && path.canonicalize().is_ok_and(|path| path == home)
    };
    let is_searched = |folder: &DirEntry, name: &str| {
        (may_have_results(name) || name == HYDRA_FOLDER) && !is_home(&folder.path())
    };
    let mut found = Vec::new();
    let is_cut = each_file_below(root, is_searched, |entry, way, name| {
        let form = Form::of(way, name);
        let Some((form, file)) = form.and_then(|form| Some((form, entry.metadata().ok()?))) else { return };
        let modified_ns = file.mtime().saturating_mul(1_000_000_000).saturating_add(file.mtime_nsec());
        let (inode, bytes) = (file.ino(), file.len());
        found.push(MetricFile { path: entry.path(), form, way: way.to_owned(), inode, bytes, modified_ns });
    });
    (found, is_cut)
}
