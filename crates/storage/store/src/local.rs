use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trackway_core::Ids;
use trackway_files::if_there;

use crate::backend::{Backend, Created};
use crate::disk::{Disk, RealDisk};
use crate::error::{ErrorKind, StoreError};
use crate::log::new_ulid;

/// Objects as files below a folder of a local disk.
///
/// A create writes and syncs the bytes under a name that no reader looks at (`.new-ULID`), syncs the folder, links the
/// file to its name and syncs the folder again: a reader that sees the name sees all of it, after the call it survives
/// a power cut, and no power cut leaves it without the entries it was decided on.
pub struct LocalBackend {
    root: PathBuf,
    disk: Arc<dyn Disk>,
    ids: Arc<dyn Ids>,
    /// Folders whose names this backend knows to be durable.
    durable_folders: Mutex<BTreeSet<PathBuf>>,
}

impl LocalBackend {
    /// Objects below `root`, which need not exist yet. Does nothing.
    pub fn new(root: &Path, ids: Arc<dyn Ids>) -> Self {
        Self::on_disk(root, Arc::new(RealDisk), ids)
    }

    /// The same on a given disk.
    pub fn on_disk(root: &Path, disk: Arc<dyn Disk>, ids: Arc<dyn Ids>) -> Self {
        Self { root: root.to_owned(), disk, ids, durable_folders: Mutex::default() }
    }

    fn folder_of(path: &Path) -> &Path {
        path.parent().unwrap_or(path)
    }

    /// Writes and syncs bytes under a name that no process reads, in the folder of `path`.
    fn write_aside(&self, path: &Path, bytes: &[u8]) -> Result<PathBuf, StoreError> {
        self.make_folders(Self::folder_of(path))?;
        let ulid = new_ulid(self.ids.as_ref());
        let aside = path.with_file_name(format!(".new-{ulid}"));
        let file = self.disk.create(&aside, false).map_err(StoreError::io("create", &aside))?;
        let written = file.write_at(0, bytes).and_then(|()| file.sync());
        if let Err(error) = written {
            let _ = self.disk.remove_file(&aside);
            return Err(StoreError::io("write", &aside)(error));
        }
        Ok(aside)
    }

    /// Makes every missing folder on the way, durably. An existing one may be another process's that has not synced it
    /// yet, so every folder from the root down is synced once, including the root's name.
    fn make_folders(&self, folder: &Path) -> Result<(), StoreError> {
        if self.durable_folders().contains(folder) && folder.exists() {
            return Ok(());
        }
        let missing = folder.ancestors().take_while(|folder| !folder.exists()).count();
        let from_root = folder.ancestors().take_while(|folder| folder.starts_with(&self.root)).count();
        let mut on_the_way: Vec<_> = folder.ancestors().take(missing.max(from_root)).collect();
        on_the_way.reverse();
        for folder in on_the_way {
            self.make_folder(folder)?;
        }
        self.durable_folders().insert(folder.to_owned());
        Ok(())
    }

    fn make_folder(&self, folder: &Path) -> Result<(), StoreError> {
        let was_there = folder.exists();
        self.disk.make_folder(folder).map_err(StoreError::io("make the folder", folder))?;
        let Some(parent) = folder.parent().filter(|parent| !parent.as_os_str().is_empty()) else {
            return Ok(());
        };
        match self.sync_folder(parent) {
            // A root that another process made where this one has no access.
            Err(error) if was_there && folder == self.root && error.kind() == ErrorKind::Refused => Ok(()),
            synced => synced,
        }
    }

    fn durable_folders(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.durable_folders.lock().unwrap_or_else(PoisonError::into_inner)
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
        // What its writer read may not be durable yet, and must not be lost while this is kept.
        let linked =
            self.disk.sync_folder(Self::folder_of(&path)).and_then(|()| self.disk.link(&aside, &path));
        // Not waited for and not required: a left-over name costs a few bytes and is never read.
        let _ = self.disk.remove_file(&aside);
        let created = match linked {
            Ok(()) => Created::New,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Created::Exists,
            // The errors of Linux for a file system without hard links.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EPERM | libc::EOPNOTSUPP)) => {
                return Err(StoreError::io("link", &path)(io::ErrorKind::Unsupported.into()));
            }
            Err(error) => return Err(StoreError::io("write", &path)(error)),
        };
        // Also when it exists: its creator may not have synced it yet, and entries decided on it must not outlive it.
        // When the sync fails, for any reason, the name is there and a power cut may remove it.
        self.sync_folder(Self::folder_of(&path)).map_err(StoreError::outcome_unknown)?;
        Ok(created)
    }

    fn read(&self, name: &str, max_bytes: usize) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.root.join(name);
        let opened = if_there(self.disk.open(&path, false)).map_err(StoreError::io("open", &path))?;
        let Some(file) = opened else { return Ok(None) };
        let size = file.size_bytes().map_err(StoreError::io("read", &path))?;
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(usize::MAX).min(max_bytes.saturating_add(1))];
        let count = file.read_at(0, &mut bytes).map_err(StoreError::io("read", &path))?;
        bytes.truncate(count);
        Ok(Some(bytes))
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.root.join(name);
        let aside = self.write_aside(&path, bytes)?;
        if let Err(error) = self.disk.rename(&aside, &path) {
            let _ = self.disk.remove_file(&aside);
            return Err(StoreError::io("write", &path)(error));
        }
        self.sync_folder(Self::folder_of(&path))
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        let path = self.root.join(name);
        if_there(self.disk.remove_file(&path)).map(drop).map_err(StoreError::io("remove", &path))
    }
}
