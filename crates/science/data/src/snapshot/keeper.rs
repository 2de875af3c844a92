//! Profiles of single files, kept so that a file that did not change is not read again. Losing them costs time only.

use std::fs;
use std::path::{Path, PathBuf};

use trackway_files::TempFile;
use trackway_tables::profile::Profile;

use super::masking::Mask;
use crate::manifest::DataFile;

/// Keeps the profiles of files by their content and by how they were read. All that it gives and keeps are masked, so that they can be
/// merged.
#[derive(Debug, Clone, Copy)]
pub struct ProfileKeeper<'k> {
    /// Where; made when it is first needed.
    pub folder: &'k Path,
    /// The column that others are compared with.
    pub label: Option<&'k str>,
    /// Masks what is kept.
    pub mask: &'k Mask,
}

impl ProfileKeeper<'_> {
    pub(crate) fn get(&self, file: &DataFile, read_as: &str) -> Option<Profile> {
        let text = fs::read_to_string(self.path(file, read_as)).ok()?;
        let profile = Profile::from_json(&text).ok()?;
        // What another key marked cannot be merged with the rest.
        if profile.masked_with.as_ref().is_some_and(|name| *name != self.mask.name()) {
            return None;
        }
        let is_masked = profile.masked_with.is_some();
        let profile = self.mask.masked(profile);
        if !is_masked {
            self.put(file, read_as, &profile);
        }
        Some(profile)
    }

    /// Written beside and renamed, so that a reader never sees half of one. A full disk only costs the next reading.
    pub(crate) fn put(&self, file: &DataFile, read_as: &str, profile: &Profile) {
        let path = self.path(file, read_as);
        let Ok(bytes) = serde_json::to_vec(profile) else { return };
        let _ = fs::create_dir_all(self.folder).and_then(|()| TempFile::write_cache(&path, &bytes));
    }

    fn path(&self, file: &DataFile, read_as: &str) -> PathBuf {
        let key = serde_json::to_string(&(&file.blake3, read_as, self.label)).expect("strings are JSON");
        self.folder.join(format!("{}.json", &blake3::hash(key.as_bytes()).to_hex()[..32]))
    }
}
