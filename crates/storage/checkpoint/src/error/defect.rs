use std::io;

use trackway_formats::checkpoint_manifest::ManifestError;

/// How a checkpoint differs from what was committed.
#[derive(Debug, thiserror::Error)]
pub enum Defect {
    /// A file is gone.
    #[error("`{name}` is missing")]
    Missing {
        /// The file.
        name: String,
    },
    /// A file cannot be read at present; its bytes may be intact.
    #[error("`{name}` cannot be read: {source}")]
    Unreadable {
        /// The file.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// A file is longer or shorter.
    #[error("`{name}` has {found_bytes} bytes and was committed with {expected_bytes}")]
    Size {
        /// The file.
        name: String,
        /// As committed.
        expected_bytes: u64,
        /// As found.
        found_bytes: u64,
    },
    /// A file has other bytes.
    #[error("`{name}` has the hash {found} and was committed with {expected}")]
    Hash {
        /// The file.
        name: String,
        /// As committed.
        expected: String,
        /// As found.
        found: String,
    },
    /// The manifest is the committed one and still no manifest.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Manifest and commit entry are about different checkpoints.
    #[error("the {field} is {found} in the manifest, and {expected} in the commit")]
    Disagreement {
        /// The field in which they differ.
        field: &'static str,
        /// By the commit entry.
        expected: String,
        /// By the manifest.
        found: String,
    },
}

impl Defect {
    /// Whether the checkpoint itself is bad, rather than out of reach.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        !matches!(self, Self::Unreadable { .. })
    }
}
