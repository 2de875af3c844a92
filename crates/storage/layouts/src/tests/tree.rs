//! Files in memory.

use std::collections::BTreeMap;
use std::io;

use crate::listing::{Entry, Listing};
use crate::source::Source;

/// A tree of files in memory. Every change is a second later than the one before.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    files: BTreeMap<String, (Vec<u8>, i64)>,
    folders: BTreeMap<String, i64>,
    now_ns: i64,
}

impl Tree {
    /// Adds a file, or replaces its content.
    pub fn add(&mut self, path: &str, bytes: impl Into<Vec<u8>>) -> &mut Self {
        self.now_ns += 1_000_000_000;
        if self.files.insert(path.to_owned(), (bytes.into(), self.now_ns)).is_none() {
            self.changed(path);
        }
        self
    }

    /// Cuts a file, without a change of its time.
    pub fn shorten(&mut self, path: &str, length: u64) -> &mut Self {
        if let Some((bytes, _)) = self.files.get_mut(path) {
            bytes.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        }
        self
    }

    /// Removes a file.
    pub fn remove(&mut self, path: &str) -> &mut Self {
        self.now_ns += 1_000_000_000;
        if self.files.remove(path).is_some() {
            self.changed(path);
        }
        self
    }

    /// An entry of the folder of this path was added or removed now; folders above it that are new, too.
    fn changed(&mut self, path: &str) {
        let mut folder = path;
        while !folder.is_empty() {
            folder = folder.rsplit_once('/').map_or("", |(parent, _)| parent);
            if self.folders.insert(folder.to_owned(), self.now_ns).is_some() {
                break;
            }
        }
    }

    /// The listing of these files.
    pub fn listing(&self) -> Listing {
        let files = self.files.iter().enumerate().map(|(at, (path, (bytes, modified_ns)))| Entry {
            path: path.clone(),
            size: bytes.len() as u64,
            modified_ns: *modified_ns,
            inode: at as u64,
            device: 1,
            links: 1,
        });
        Listing::new(files.collect(), Vec::new()).with_folders(self.folders.clone())
    }
}

impl Source for Tree {
    fn read_at(&self, path: &str, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let (bytes, _) = self.files.get(path).ok_or(io::ErrorKind::NotFound)?;
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let to = from.saturating_add(length).min(bytes.len());
        Ok(bytes[from..to].to_vec())
    }
}
