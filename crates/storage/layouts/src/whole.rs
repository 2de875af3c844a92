//! Whether a checkpoint is whole: the framework's last file first, then the structure of each file.

use serde::{Deserialize, Serialize};

use crate::formats::{self, FileCheck};
use crate::layout::Recognised;
use crate::listing::{Entry, Listing};
use crate::marker::{self, Marker};
use crate::names;
use crate::source::Source;

/// Whether a checkpoint, or a file, is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "whole")]
pub enum Wholeness {
    Whole {
        /// What proves it.
        by: By,
    },
    /// The framework has not finished it: a file is missing, or the last one is of an earlier save.
    Unfinished {
        /// What is missing.
        what: String,
    },
    /// A file is damaged or ends early.
    Torn {
        /// The file, below the root of the listing.
        file: String,
        /// What is wrong with it.
        what: String,
    },
    /// The files do not show it.
    CannotTell {
        /// What cannot be checked.
        why: String,
    },
}

/// What proves that a checkpoint is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The file that the framework writes last is there and agrees; no file is torn.
    Marker(String),
    /// Every file whose format says its length has it. The framework could still add files.
    Structure,
}

/// Whether one file is whole, by its content alone.
#[must_use]
pub fn file_wholeness(source: &dyn Source, file: &Entry) -> Wholeness {
    match formats::check(source, file) {
        FileCheck::Whole => Wholeness::Whole { by: By::Structure },
        FileCheck::Torn(what) => Wholeness::Torn { file: file.path.clone(), what },
        FileCheck::CannotTell(why) => Wholeness::CannotTell { why: format!("`{}`: {why}", file.path) },
        FileCheck::NoFormat => {
            Wholeness::CannotTell { why: format!("`{}` has no format that can be checked", file.path) }
        }
    }
}

/// Whether a checkpoint is whole. `listing` and `source` are those it was recognised in.
#[must_use]
pub fn wholeness(listing: &Listing, source: &dyn Source, checkpoint: &Recognised) -> Wholeness {
    let files = listing.below(&checkpoint.path);
    if files.is_empty() {
        return Wholeness::Unfinished { what: format!("`{}` has no files", checkpoint.path) };
    }
    let structure = structure(listing, source, checkpoint, files);
    if matches!(structure, Wholeness::Torn { .. }) {
        return structure;
    }
    match marker::marker(listing, source, checkpoint) {
        Marker::Missing(what) => Wholeness::Unfinished { what },
        Marker::Agrees(file) => Wholeness::Whole { by: By::Marker(file) },
        Marker::None => begun(files).map_or(structure, |what| Wholeness::Unfinished { what }),
    }
}

/// A file under a temporary name that nothing is newer than: the save that it belongs to did not end.
fn begun(files: &[Entry]) -> Option<String> {
    let newest = files.iter().max_by_key(|file| file.modified_ns)?;
    let why = names::temporary(names::base(&newest.path))?;
    (files.len() > 1).then(|| format!("`{}` is its newest file: {why}", newest.path))
}

/// The structure of every file: torn if one is, whole if at least one has a format and all that have one are whole.
fn structure(listing: &Listing, source: &dyn Source, checkpoint: &Recognised, files: &[Entry]) -> Wholeness {
    let mut unknown = None;
    let mut whole = false;
    // What is under a temporary name belongs to a save that is under way, or was.
    for file in files.iter().filter(|file| names::temporary(names::base(&file.path)).is_none()) {
        match formats::check(source, file) {
            FileCheck::Torn(what) => return Wholeness::Torn { file: file.path.clone(), what },
            FileCheck::Whole => whole = true,
            FileCheck::CannotTell(why) => unknown = unknown.or(Some(format!("`{}`: {why}", file.path))),
            FileCheck::NoFormat => {}
        }
    }
    if let Some(link) = listing.links_below(&checkpoint.path).find(|link| link.leaves) {
        unknown = Some(format!("`{}` is a link to `{}`, outside of the folder", link.path, link.target));
    }
    match unknown {
        Some(why) => Wholeness::CannotTell { why },
        None if whole => Wholeness::Whole { by: By::Structure },
        None => Wholeness::CannotTell { why: "no file has a format that can be checked".to_owned() },
    }
}
