//! Bringing a checkpoint from the remote: into a folder that nobody reads, verified, synced, then renamed into place.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use trackway_formats::checkpoint_manifest::{MANIFEST_FILE_NAME, Manifest, ManifestFile};
use trackway_store::DiskFile;

use super::replica::{Replica, keys_of};
use crate::bulk::parallel::{lock, try_for_each};
use crate::bulk::verify_files;
use crate::entry::CommitBody;
use crate::error::CheckpointError;
use crate::verify::{Defect, check_hash, check_size};
use crate::writer::write_durably;

/// Below the root: downloads that are not finished. What a kill left there is gone on with.
const INCOMING_FOLDER: &str = "incoming";
/// How often a file is fetched whose bytes are not those of the manifest: the fault may have been on the way.
const MAX_FETCHES: u32 = 2;

impl Replica {
    /// Brings a checkpoint from the remote and returns how many bytes came over the wire. The inner error: what is
    /// there is not what was committed.
    pub(super) fn download(&self, body: &CommitBody) -> Result<Result<u64, Defect>, CheckpointError> {
        let manifest = match self.remote_manifest(body)? {
            None => return Ok(Err(Defect::Missing { name: MANIFEST_FILE_NAME.into() })),
            Some(Err(defect)) => return Ok(Err(defect)),
            Some(Ok(manifest)) => manifest,
        };
        let incoming = self.incoming_folder(&body.object_prefix)?;
        let fetched_bytes = match self.fetch_files(&incoming, body, &manifest)? {
            Ok(fetched_bytes) => fetched_bytes,
            Err(defect) => return Ok(Err(defect)),
        };
        let path = incoming.join(MANIFEST_FILE_NAME);
        self.clear(&path)?;
        // The same bytes as at the remote: their hash was checked, and a manifest is written in one way only.
        let bytes = manifest.to_bytes()?;
        if let Err(defect) = crate::verify::check_manifest(&bytes, body) {
            return Ok(Err(defect));
        }
        write_durably(self.view.disk().as_ref(), &path, &bytes)?;
        self.put_in_place(&incoming, &body.object_prefix)?;
        Ok(Ok(fetched_bytes))
    }

    /// Gets every file, several at a time, from this disk where it has them.
    fn fetch_files(
        &self,
        incoming: &Path,
        body: &CommitBody,
        manifest: &Manifest,
    ) -> Result<Result<u64, Defect>, CheckpointError> {
        let fetched = Mutex::new(Ok(0));
        let work = |(): &mut (), file: &ManifestFile| {
            if lock(&fetched).is_err() || self.is_whole(incoming, file) {
                return Ok(());
            }
            if self.take_local(incoming, body, file)? {
                return Ok(());
            }
            let outcome = self.fetch_file(incoming, body, file)?;
            let mut fetched = lock(&fetched);
            match (fetched.as_mut(), outcome) {
                (Ok(bytes), Ok(())) => *bytes += file.size_bytes,
                (Ok(_), Err(defect)) => *fetched = Err(defect),
                (Err(_), _) => {}
            }
            Ok::<_, CheckpointError>(())
        };
        try_for_each(self.files.at_once(), &manifest.files, || Ok(()), work)?;
        Ok(fetched.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn incoming_folder(&self, prefix: &str) -> Result<PathBuf, CheckpointError> {
        let disk = self.view.disk();
        let parent = self.view.root().join(INCOMING_FOLDER);
        // Epoch and ULID: unique among all prefixes.
        let folder = parent.join(prefix.rsplit('/').next().unwrap_or(prefix));
        for path in [self.view.root(), &parent, &folder] {
            disk.make_folder(path).map_err(CheckpointError::storage("make the folder", path))?;
        }
        Ok(folder)
    }

    fn is_whole(&self, folder: &Path, file: &ManifestFile) -> bool {
        verify_files(self.view.disk().as_ref(), folder, std::slice::from_ref(file)).is_ok()
    }

    /// Takes a file from a checkpoint on this disk: from the damaged copy of this one, or where it is shared with.
    fn take_local(
        &self,
        incoming: &Path,
        body: &CommitBody,
        file: &ManifestFile,
    ) -> Result<bool, CheckpointError> {
        let prefixes = [Some(body.object_prefix.as_str()), file.stored_in.as_deref()];
        let folders = prefixes.into_iter().flatten().map(|prefix| self.view.root().join(prefix));
        let Some(folder) = folders.into_iter().find(|folder| self.is_whole(folder, file)) else {
            return Ok(false);
        };
        let to = incoming.join(&file.name);
        self.clear(&to)?;
        Ok(self.view.disk().link(&folder.join(&file.name), &to).is_ok())
    }

    fn fetch_file(
        &self,
        incoming: &Path,
        body: &CommitBody,
        file: &ManifestFile,
    ) -> Result<Result<(), Defect>, CheckpointError> {
        let mut defect = Defect::Missing { name: file.name.clone() };
        for name in keys_of(&body.object_prefix, file) {
            for _ in 0..MAX_FETCHES {
                match self.fetch_object(&name, &incoming.join(&file.name), file)? {
                    None => break,
                    Some(Ok(())) => return Ok(Ok(())),
                    Some(Err(found)) => defect = found,
                }
            }
        }
        Ok(Err(defect))
    }

    /// Writes and syncs one object as it comes, hashing it on the way. `None`: it is absent.
    fn fetch_object(
        &self,
        name: &str,
        path: &Path,
        file: &ManifestFile,
    ) -> Result<Option<Result<(), Defect>>, CheckpointError> {
        self.clear(path)?;
        let made = self.view.disk().create(path, false).map_err(CheckpointError::storage("create", path))?;
        let mut sink = Sink { file: made.as_ref(), hasher: blake3::Hasher::new(), offset: 0, failed: None };
        let fetched = self.files.fetch(name, file.size_bytes, &mut |bytes| sink.take(bytes));
        if let Some(error) = sink.failed.take() {
            return Err(CheckpointError::storage("write", path)(error));
        }
        let Some(found_bytes) = fetched? else { return Ok(None) };
        let hash = sink.hasher.finalize();
        made.sync().map_err(CheckpointError::storage("sync", path))?;
        Ok(Some(check_size(file, found_bytes).and_then(|()| check_hash(file, &hash))))
    }

    fn clear(&self, path: &Path) -> Result<(), CheckpointError> {
        match self.view.disk().remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(CheckpointError::storage("remove", path)),
        }
    }

    fn put_in_place(&self, incoming: &Path, prefix: &str) -> Result<(), CheckpointError> {
        let disk = self.view.disk();
        let root = self.view.root();
        let folder = root.join(prefix);
        let step_folder = folder.parent().unwrap_or(root).to_owned();
        let sync =
            |path: &Path| disk.sync_folder(path).map_err(CheckpointError::storage("sync the folder", path));
        sync(incoming)?;
        disk.make_folder(&step_folder).map_err(CheckpointError::storage("make the folder", &step_folder))?;
        if folder.exists() {
            // The damaged copy. What was whole of it has a second name by now.
            disk.remove_folder(&folder).map_err(CheckpointError::storage("delete", &folder))?;
        }
        disk.rename(incoming, &folder).map_err(CheckpointError::storage("rename", incoming))?;
        sync(&step_folder)?;
        sync(root)
    }

    /// Removes what unfinished downloads left behind. Only in the way of room: nobody reads it.
    pub(super) fn clear_incoming(&self) {
        let folder = self.view.root().join(INCOMING_FOLDER);
        if folder.exists() {
            let _ = self.view.disk().remove_folder(&folder);
        }
    }
}

/// Where fetched bytes go.
struct Sink<'a> {
    file: &'a dyn DiskFile,
    hasher: blake3::Hasher,
    offset: u64,
    failed: Option<io::Error>,
}

impl Sink<'_> {
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_at(self.offset, bytes) {
            self.failed = Some(error);
            return Err(io::Error::other("this disk refused"));
        }
        self.hasher.update(bytes);
        self.offset += bytes.len() as u64;
        Ok(())
    }
}
