//! What was read of files to find out what they are. No file is read again before it changes: the kernel reports reads of checkpoints, and
//! those of the shim would look like the script's.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use trackway_layouts::{Folder, Listing, Source};

/// So much is remembered. What comes after it is read at every look.
const REMEMBERED_BYTES_MAX: usize = 64 << 20;

/// Parts of files by path, each with the state of the file that it was read from.
#[derive(Debug, Default)]
pub(crate) struct Reads(Mutex<ReadCache>);

#[derive(Debug, Default)]
struct ReadCache {
    bytes: usize,
    files: HashMap<String, Parts>,
}

/// Of one state of a file: what was read, by offset and length.
#[derive(Debug, Default)]
struct Parts {
    state: State,
    read: BTreeMap<(u64, usize), Vec<u8>>,
}

/// Size and the time of the last write in nanoseconds since 1970.
type State = (u64, i64);

impl ReadCache {
    fn get(&self, path: &str, state: State, part: (u64, usize)) -> Option<Vec<u8>> {
        self.files.get(path).filter(|known| known.state == state)?.read.get(&part).cloned()
    }

    fn put(&mut self, path: &str, state: State, part: (u64, usize), bytes: &[u8]) {
        if self.files.get(path).is_some_and(|known| known.state != state)
            && let Some(old) = self.files.remove(path)
        {
            self.bytes -= old.read.values().map(Vec::len).sum::<usize>();
        }
        if self.bytes + bytes.len() > REMEMBERED_BYTES_MAX {
            return;
        }
        let known = self.files.entry(path.to_owned()).or_insert_with(|| Parts { state, ..Parts::default() });
        if known.read.insert(part, bytes.to_owned()).is_none() {
            self.bytes += bytes.len();
        }
    }

    /// Forgets files that are gone.
    fn keep(&mut self, states: &HashMap<&str, State>) {
        self.files.retain(|path, _| states.contains_key(path.as_str()));
        self.bytes = self.files.values().flat_map(|known| known.read.values()).map(Vec::len).sum();
    }
}

/// The files of a listing, of which each part is read once.
pub(crate) struct Remembering<'r> {
    folder: Folder,
    states: HashMap<&'r str, State>,
    reads: &'r Reads,
}

impl<'r> Remembering<'r> {
    pub fn new(folder: &Path, listing: &'r Listing, reads: &'r Reads) -> Self {
        let states: HashMap<&str, State> =
            listing.files().iter().map(|file| (file.path.as_str(), (file.size, file.modified_ns))).collect();
        reads.0.lock().unwrap_or_else(PoisonError::into_inner).keep(&states);
        Self { folder: Folder::new(folder), states, reads }
    }
}

impl Source for Remembering<'_> {
    fn read_at(&self, path: &str, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let Some(state) = self.states.get(path).copied() else {
            return self.folder.read_at(path, offset, length);
        };
        let mut remembered = self.reads.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = remembered.get(path, state, (offset, length)) {
            return Ok(bytes);
        }
        let bytes = self.folder.read_at(path, offset, length)?;
        remembered.put(path, state, (offset, length), &bytes);
        Ok(bytes)
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the folder is of the test")]
mod tests {
    use std::fs;

    use trackway_layouts::list;

    use super::*;

    /// Proves that a part is read once for each state of its file, and forgotten with the file.
    #[test]
    fn a_file_is_read_again_when_it_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let reads = Reads::default();
        let look = |length| {
            let listing = list(folder.path()).unwrap();
            let source = Remembering::new(folder.path(), &listing, &reads);
            source.read_at("a", 1, length).map(|bytes| String::from_utf8(bytes).unwrap())
        };
        fs::write(&path, "first").unwrap();
        let written = fs::metadata(&path).unwrap().modified().unwrap();
        assert_eq!(look(3).unwrap(), "irs");
        fs::write(&path, "other").unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(written).unwrap();
        assert_eq!(look(3).unwrap(), "irs", "it seems not to have changed");
        assert_eq!(look(2).unwrap(), "th", "another part");
        fs::write(&path, "longer").unwrap();
        assert_eq!(look(3).unwrap(), "ong");
        fs::remove_file(&path).unwrap();
        assert_eq!(look(3).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(reads.0.lock().unwrap().bytes, 0);
    }
}
