use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trackway_core::Ids;

use crate::backend::{Backend, Created};
use crate::disk::{Disk, RealDisk};
use crate::error::StoreError;

/// Objects as files below a folder of a local disk.
///
/// A create writes and syncs the bytes under a name that no reader looks at (`.new-ULID`), links that to its name and
/// syncs the folder: whoever sees the name sees all of it, and after the call it survives a power cut.
pub struct LocalBackend {
    root: PathBuf,
    disk: Arc<dyn Disk>,
    ids: Arc<dyn Ids>,
}

impl LocalBackend {
    /// Objects below `root`, which need not exist yet. Does nothing.
    pub fn new(root: &Path, ids: Arc<dyn Ids>) -> Self {
        Self::on_disk(root, Arc::new(RealDisk), ids)
    }

    /// The same on a given disk.
    pub fn on_disk(root: &Path, disk: Arc<dyn Disk>, ids: Arc<dyn Ids>) -> Self {
        Self { root: root.to_owned(), disk, ids }
    }

    fn folder_of(path: &Path) -> &Path {
        path.parent().unwrap_or(path)
    }

    /// Writes and syncs bytes under a name that nobody reads, in the folder of `path`.
    fn write_aside(&self, path: &Path, bytes: &[u8]) -> Result<PathBuf, StoreError> {
        self.make_folders(Self::folder_of(path))?;
        let ulid = ulid::Ulid(self.ids.next_ulid()).to_string().to_lowercase();
        let aside = path.with_file_name(format!(".new-{ulid}"));
        let file = self.disk.create(&aside, false).map_err(StoreError::io("create", &aside))?;
        let written = file.write_at(0, bytes).and_then(|()| file.sync());
        if let Err(error) = written {
            let _ = self.disk.remove_file(&aside);
            return Err(StoreError::io("write", &aside)(error));
        }
        Ok(aside)
    }

    /// Makes every missing folder on the way, durably.
    fn make_folders(&self, folder: &Path) -> Result<(), StoreError> {
        let missing: Vec<_> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
        for folder in missing.into_iter().rev() {
            self.disk.make_folder(folder).map_err(StoreError::io("make the folder", folder))?;
            if let Some(parent) = folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                self.sync_folder(parent)?;
            }
        }
        Ok(())
    }

    fn sync_folder(&self, folder: &Path) -> Result<(), StoreError> {
        self.disk.sync_folder(folder).map_err(StoreError::io("sync the folder", folder))
    }
}

impl Backend for LocalBackend {
    fn location(&self) -> String {
        self.root.display().to_string()
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<Created, StoreError> {
        let path = self.root.join(name);
        let aside = self.write_aside(&path, bytes)?;
        let linked = self.disk.link(&aside, &path);
        // Not waited for and not required: a left-over name costs a few bytes and is read by nobody.
        let _ = self.disk.remove_file(&aside);
        let created = match linked {
            Ok(()) => Created::New,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Created::Exists,
            Err(error) => return Err(StoreError::io("write", &path)(error)),
        };
        // Also when it exists: its creator may not have come to sync it yet, and what is built on it must not outlive it.
        self.sync_folder(Self::folder_of(&path))?;
        Ok(created)
    }

    fn read(&self, name: &str, max_bytes: usize) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.root.join(name);
        let file = match self.disk.open(&path, false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            result => result.map_err(StoreError::io("open", &path))?,
        };
        let size = file.size_bytes().map_err(StoreError::io("read", &path))?;
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(usize::MAX).min(max_bytes + 1)];
        let count = file.read_at(0, &mut bytes).map_err(StoreError::io("read", &path))?;
        bytes.truncate(count);
        Ok(Some(bytes))
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.root.join(name);
        let aside = self.write_aside(&path, bytes)?;
        self.disk.rename(&aside, &path).map_err(StoreError::io("write", &path))?;
        self.sync_folder(Self::folder_of(&path))
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        let path = self.root.join(name);
        match self.disk.remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result.map_err(StoreError::io("remove", &path)),
        }
    }
}
