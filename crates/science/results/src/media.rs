//! Images and texts in files.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::checks::CheckResult;

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MediaChecks {
    /// How many files of what kind.
    pub count: MediaCount,
    /// The same of the masks, where there are any.
    pub masks: Option<MediaCount>,
    /// Images by format.
    pub formats: BTreeMap<String, u64>,
    /// Images by the mode of their pixels in the file (`gray8`, `rgb8`, `cmyk8`, `palette8` …).
    pub modes: BTreeMap<String, u64>,
    /// Images that their EXIF orientation turns or mirrors.
    #[serde(default)]
    pub turned: u64,
    /// The most frequent sizes.
    pub sizes: Vec<SizeCount>,
    /// How many different sizes there are.
    pub different_sizes: usize,
    pub checks: Vec<CheckResult>,
}

/// Images of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SizeCount {
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
    /// How many images.
    pub count: u64,
}

/// How many files of what kind there are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MediaCount {
    pub files: u64,
    /// Images that were decoded.
    pub images: u64,
    /// Texts that were read.
    pub texts: u64,
    /// Files that cannot be read.
    pub broken: u64,
    /// Images that were not decoded.
    pub not_checked: u64,
    /// Files of other kinds.
    pub others: u64,
}
