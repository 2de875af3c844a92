//! Which folders and files of a listing are checkpoints.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::layout::{LayoutConfidence, Recognised};
use crate::listing::{Entry, Listing};
use crate::marker::{DEEPSPEED_TRACKER, MEGATRON_TRACKER};
use crate::names::{self, base, join, parent};
use crate::recognise::recognise;
use crate::source::{Source, small_text};

/// What was found in a listing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundCheckpoints {
    /// The checkpoints, by path. Whether they are whole is another question.
    pub checkpoints: Vec<Recognised>,
    /// What a framework or script names so while it writes it.
    pub unfinished: Vec<Unfinished>,
    /// Files that name the newest checkpoint.
    pub trackers: Vec<Tracker>,
}

/// A file or folder under a temporary name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfinished {
    /// The path below the root of the listing.
    pub path: String,
    /// What shows that it is not finished.
    pub why: String,
}

/// A file that names the newest checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tracker {
    /// The path below the root of the listing.
    pub path: String,
    /// What it says, without spaces around it.
    pub names: String,
    /// The step that it says.
    pub step: Option<u64>,
}

/// The checkpoints of a listing. A file whose format could hold a checkpoint, and of which nothing says that it does
/// ([`LayoutConfidence::Guess`]: arrays of data, a pickled dictionary), is not among them; [`recognise`] accepts it by its path.
#[must_use]
pub fn find(listing: &Listing, source: &dyn Source) -> FoundCheckpoints {
    let mut search = Search { listing, source, found: FoundCheckpoints::default(), claimed: BTreeSet::new() };
    for folder in folders(listing) {
        search.folder(folder);
    }
    for file in listing.files() {
        search.file(file);
    }
    search.found
}

/// Every folder that has files somewhere below it; a folder comes before those in it.
fn folders(listing: &Listing) -> BTreeSet<&str> {
    let mut folders = BTreeSet::from([""]);
    for file in listing.files() {
        let mut folder = parent(&file.path);
        while folders.insert(folder) {
            folder = parent(folder);
        }
    }
    folders
}

struct Search<'a> {
    listing: &'a Listing,
    source: &'a dyn Source,
    found: FoundCheckpoints,
    /// Folders whose files belong to what was found, or to another tool.
    claimed: BTreeSet<&'a str>,
}

impl<'a> Search<'a> {
    fn is_claimed(&self, path: &str) -> bool {
        let mut above = path;
        loop {
            if self.claimed.contains(above) {
                return true;
            }
            if above.is_empty() {
                return false;
            }
            above = parent(above);
        }
    }

    fn folder(&mut self, folder: &'a str) {
        if self.is_claimed(folder) {
            return;
        }
        let name = base(folder);
        if names::is_other_folder(name) {
            self.claimed.insert(folder);
        } else if let Some(why) = names::temporary(name) {
            self.claimed.insert(folder);
            self.found.unfinished.push(Unfinished { path: folder.to_owned(), why: why.to_owned() });
        } else if let Some(checkpoint) = recognise(self.listing, self.source, folder).filter(is_likely) {
            self.claimed.insert(folder);
            self.found.checkpoints.push(checkpoint);
        }
    }

    fn file(&mut self, file: &Entry) {
        let path = file.path.as_str();
        if self.is_claimed(parent(path)) {
            return;
        }
        if let Some(why) = names::temporary(base(path)) {
            self.found.unfinished.push(Unfinished { path: path.to_owned(), why: why.to_owned() });
        } else if let Some(tracker) = self.tracker(path) {
            self.found.trackers.push(tracker);
        } else if let Some(checkpoint) = recognise(self.listing, self.source, path).filter(is_likely) {
            self.found.checkpoints.push(checkpoint);
        }
    }

    /// A tracker, if its text is a number or names something beside it.
    fn tracker(&self, path: &str) -> Option<Tracker> {
        if ![DEEPSPEED_TRACKER, MEGATRON_TRACKER, "last_checkpoint"].contains(&base(path)) {
            return None;
        }
        let text = small_text(self.source, self.listing, path)?;
        let names = text.trim().to_owned();
        let number = names.parse().ok();
        let beside = !names.is_empty() && !self.listing.below(&join(parent(path), &names)).is_empty();
        (beside || number.is_some()).then(|| Tracker {
            path: path.to_owned(),
            step: number.or_else(|| names::step(&names)),
            names,
        })
    }
}

fn is_likely(checkpoint: &Recognised) -> bool {
    checkpoint.confidence > LayoutConfidence::Guess
}
