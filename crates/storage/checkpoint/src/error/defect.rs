use std::io;

use trackway_formats::checkpoint_manifest::ManifestError;

/// How a checkpoint differs from what was committed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message names its variant and fields")]
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
    /// Whether the checkpoint itself is bad, rather than out of reach.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        !matches!(self, Self::Unreadable { .. })
    }
}
