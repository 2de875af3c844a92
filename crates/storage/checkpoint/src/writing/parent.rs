//! The files of the commit that a save continues from.

use std::path::PathBuf;

use trackway_formats::checkpoint_manifest::ManifestFile;

use crate::bulk::Parent;

/// The files of the commit that training continues from: those that did not change are shared with it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ParentFiles {
    pub folder: PathBuf,
    pub object_prefix: String,
    pub files: Vec<ManifestFile>,
}

impl ParentFiles {
    pub fn borrow(&self) -> Parent<'_> {
        Parent { folder: &self.folder, object_prefix: &self.object_prefix, files: &self.files }
    }
}
