//! What an attempt is shown to have written: what a later attempt of its run may move.

use std::collections::BTreeMap;

use trackway_formats::writers::{OwnCheckpoint, OwnFile, ShownBy};

use crate::find::candidate::{Candidate, born_ns};
use crate::find::patterns::CANDIDATES_MAX;

/// Files of one checkpoint that are remembered.
const FILES_MAX: usize = 64;

/// The newest state of each path.
#[derive(Debug, Default)]
pub(crate) struct OwnCheckpoints {
    by_path: BTreeMap<String, OwnCheckpoint>,
    has_changed: bool,
}

impl OwnCheckpoints {
    /// This state of it is the attempt's.
    pub fn put(&mut self, shown: String, by: ShownBy, candidate: &Candidate) {
        let files = own_files(candidate);
        if self.by_path.get(&shown).is_some_and(|known| known.files == files) {
            return;
        }
        if self.by_path.len() >= CANDIDATES_MAX {
            self.by_path.pop_first();
        }
        self.by_path.insert(shown.clone(), OwnCheckpoint { path: shown, by, files });
        self.has_changed = true;
    }

    /// Another state of it is not shown to be the attempt's.
    pub fn drop_changed(&mut self, shown: &str, candidate: &Candidate) {
        if self.by_path.get(shown).is_some_and(|known| known.files != own_files(candidate)) {
            self.by_path.remove(shown);
            self.has_changed = true;
        }
    }

    /// All of them, if that changed since the last call.
    pub fn if_changed(&mut self) -> Option<Vec<OwnCheckpoint>> {
        std::mem::take(&mut self.has_changed).then(|| self.by_path.values().cloned().collect())
    }
}

/// The first files of a checkpoint, with what distinguishes them from others.
pub(crate) fn own_files(candidate: &Candidate) -> Vec<OwnFile> {
    let own = |file: &trackway_layouts::Entry| OwnFile {
        path: candidate.below(file).to_owned(),
        device: file.device,
        inode: file.inode,
        born_ns: born_ns(&candidate.place(file)),
        size_bytes: file.size,
        modified_ns: file.modified_ns,
    };
    candidate.files().iter().take(FILES_MAX).map(own).collect()
}

/// Whether a file that is there is one that was recorded: the same file on the disk, not written to after the attempt
/// had ended, or one of the same size and time of the last write.
pub(crate) fn is_same(known: &OwnFile, there: &OwnFile, lived_until_ns: i64) -> bool {
    let is_file = (known.device, known.inode, known.born_ns) == (there.device, there.inode, there.born_ns);
    let is_state = (&known.path, known.size_bytes, known.modified_ns)
        == (&there.path, there.size_bytes, there.modified_ns);
    is_file && there.modified_ns <= lived_until_ns || is_state
}
