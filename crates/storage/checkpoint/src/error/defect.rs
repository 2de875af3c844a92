use std::io;

use trackway_formats::checkpoint_manifest::{ManifestError, ManifestFile};

/// How a checkpoint differs from what was committed.
#[derive(Debug, thiserror::Error)]
pub enum Defect {
    #[error("`{name}` is missing")]
    Missing { name: String },
    #[error("`{name}` cannot be read: {source}")]
    Unreadable { name: String, source: io::Error },
    #[error("`{name}` has {found_bytes} bytes and was committed with {expected_bytes}")]
    Size { name: String, expected_bytes: u64, found_bytes: u64 },
    #[error("`{name}` has the hash {found} and was committed with {expected}")]
    Hash { name: String, expected: String, found: String },
    /// The manifest is the committed one and still no manifest.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error("the {field} is {found} in the manifest, and {expected} in the commit")]
    Disagreement { field: &'static str, expected: String, found: String },
}

impl Defect {
    pub(crate) fn unreadable(name: &str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Unreadable { name: name.into(), source }
    }

    /// Whether the checkpoint itself is bad, rather than out of reach.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        !matches!(self, Self::Unreadable { .. })
    }
}

pub(crate) fn check_size(file: &ManifestFile, found_bytes: u64) -> Result<(), Defect> {
    if found_bytes == file.size_bytes {
        return Ok(());
    }
    Err(Defect::Size { name: file.name.clone(), expected_bytes: file.size_bytes, found_bytes })
}

pub(crate) fn check_hash(file: &ManifestFile, found: &blake3::Hash) -> Result<(), Defect> {
    let found = found.to_hex();
    if found.as_str() == file.blake3 {
        return Ok(());
    }
    Err(Defect::Hash { name: file.name.clone(), expected: file.blake3.clone(), found: found.to_string() })
}
