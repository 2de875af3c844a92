//! Assembles the files of a checkpoint: from this disk where it has them whole, else from the remote. They go into a
//! folder that no process reads, verified and synced.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use trackway_files::if_there;
use trackway_formats::checkpoint_manifest::{MANIFEST_FILE_NAME, Manifest, ManifestFile};
use trackway_store::DiskFile;

use super::replica::{Replica, no_manifest};
use crate::bulk::parallel::{lock, try_for_each};
use crate::bulk::verify_files;
use crate::error::{CheckpointError, Defect, Result, check_hash, check_size};
use crate::history::entry::CommitBody;
use crate::reading::verify::{check_manifest, read_manifest};
use crate::writing::writer::write_durably;

/// Below the root: checkpoints that are being assembled. What a kill left there is completed.
const INCOMING_FOLDER: &str = "incoming";
/// How often a file is fetched whose bytes are not those of the manifest: the fault may have been on the way.
const MAX_FETCHES: u32 = 2;

/// An assembled checkpoint.
pub(super) struct AssembledCheckpoint {
    /// Where its files are.
    pub folder: PathBuf,
    /// Bytes that came over the wire.
    pub fetched_bytes: u64,
    /// Whether this disk had all of it in one place.
    pub whole_here: bool,
}

/// Why a checkpoint could not be assembled, and whether it is the remote's bytes that are bad.
pub(super) struct NotGathered {
    pub defect: Defect,
    pub at_remote: bool,
}

type Outcome<T> = Result<Result<T, NotGathered>>;

/// What has come of the files so far.
struct Tally {
    fetched_bytes: u64,
    whole_here: bool,
    failed: Option<NotGathered>,
}

impl Replica {
    /// Puts a checkpoint together; with `from_remote`, what this disk does not have whole is fetched.
    pub(super) fn gather(&self, body: &CommitBody, from_remote: bool) -> Outcome<AssembledCheckpoint> {
        let copies = self.copies_here(&body.object_prefix);
        let (manifest, bytes) = match self.some_manifest(body, &copies, from_remote)? {
            Ok(found) => found,
            Err(missing) => return Ok(Err(missing)),
        };
        let folder = self.incoming_folder(&body.object_prefix)?;
        let tally = self.gather_files(&folder, body, &manifest, &copies, from_remote)?;
        if let Some(failed) = tally.failed {
            return Ok(Err(failed));
        }
        // The manifest last: a folder without one is never taken for a checkpoint.
        let path = folder.join(MANIFEST_FILE_NAME);
        self.clear(&path)?;
        write_durably(self.view.disk().as_ref(), &path, &bytes)?;
        self.view.sync_folder(&folder)?;
        let Tally { fetched_bytes, whole_here, .. } = tally;
        Ok(Ok(AssembledCheckpoint { folder, fetched_bytes, whole_here }))
    }

    /// The manifest and its very bytes, from this disk or from the remote.
    pub(super) fn some_manifest(
        &self,
        body: &CommitBody,
        copies: &[PathBuf],
        from_remote: bool,
    ) -> Outcome<(Manifest, Vec<u8>)> {
        let checked = |bytes: Vec<u8>| check_manifest(&bytes, body).map(|manifest| (manifest, bytes));
        let mut defect = no_manifest();
        for folder in copies {
            match read_manifest(self.view.disk().as_ref(), folder).and_then(checked) {
                Ok(manifest) => return Ok(Ok(manifest)),
                Err(found) => defect = found,
            }
        }
        if !from_remote {
            return Ok(Err(NotGathered { defect, at_remote: false }));
        }
        let found = self.remote_manifest_bytes(body)?;
        let found = found.ok_or_else(no_manifest);
        Ok(found.and_then(checked).map_err(|defect| NotGathered { defect, at_remote: true }))
    }

    /// Gets every file, several at a time.
    fn gather_files(
        &self,
        folder: &Path,
        body: &CommitBody,
        manifest: &Manifest,
        copies: &[PathBuf],
        from_remote: bool,
    ) -> Result<Tally> {
        let tally = Mutex::new(Tally { fetched_bytes: 0, whole_here: true, failed: None });
        let work = |(): &mut (), file: &ManifestFile| {
            if lock(&tally).failed.is_some() {
                return Ok(());
            }
            let place = self.take_local(folder, file, copies)?;
            let mut fetched = Ok(());
            if place.is_none() && !self.is_whole(folder, file) {
                fetched = match from_remote {
                    true => self.fetch_file(folder, body, file, &|_| {})?,
                    false => {
                        let defect = Defect::Missing { name: file.name.clone() };
                        Err(NotGathered { defect, at_remote: false })
                    }
                };
                let mut tally = lock(&tally);
                tally.fetched_bytes += if fetched.is_ok() { file.size_bytes } else { 0 };
            }
            let mut tally = lock(&tally);
            tally.whole_here &= place == Some(0);
            if let Err(failed) = fetched {
                tally.failed.get_or_insert(failed);
            }
            Ok::<_, CheckpointError>(())
        };
        try_for_each(self.files.at_once(), &manifest.files, || Ok(()), work)?;
        Ok(tally.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn incoming_folder(&self, prefix: &str) -> Result<PathBuf> {
        let folder = self.incoming_path(prefix);
        for path in [self.view.root(), &self.view.root().join(INCOMING_FOLDER), &folder] {
            self.view.make_folder(path)?;
        }
        Ok(folder)
    }

    fn incoming_path(&self, prefix: &str) -> PathBuf {
        // Epoch and ULID: unique among all prefixes.
        self.view.root().join(INCOMING_FOLDER).join(prefix.rsplit('/').next().unwrap_or(prefix))
    }

    pub(super) fn is_whole(&self, folder: &Path, file: &ManifestFile) -> bool {
        verify_files(self.view.disk().as_ref(), folder, std::slice::from_ref(file)).is_ok()
    }

    /// Whether this disk has a file of the checkpoint below `prefix` whole: in one of `copies`, where it is shared
    /// with, or in what an unfinished download left.
    pub(super) fn is_whole_here(&self, prefix: &str, copies: &[PathBuf], file: &ManifestFile) -> bool {
        let shared = file.stored_in.as_ref().map(|prefix| self.copies_here(prefix)).unwrap_or_default();
        let incoming = [self.incoming_path(prefix)];
        copies.iter().chain(&shared).chain(&incoming).any(|folder| self.is_whole(folder, file))
    }

    /// Links a file from the first place on this disk that has it whole, and returns which: one of `copies`, else where
    /// the file is shared with.
    fn take_local(&self, incoming: &Path, file: &ManifestFile, copies: &[PathBuf]) -> Result<Option<usize>> {
        let shared = file.stored_in.as_ref().map(|prefix| self.copies_here(prefix)).unwrap_or_default();
        let to = incoming.join(&file.name);
        for (place, from) in copies.iter().chain(&shared).enumerate() {
            // Linked first: a process that deletes the other name meanwhile cannot undo it.
            self.clear(&to)?;
            let linked = self.view.disk().link(&from.join(&file.name), &to).is_ok();
            if linked && self.is_whole(incoming, file) {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Fetches a file into a folder, below one of its names; `arrived` hears of its bytes.
    pub(super) fn fetch_file(
        &self,
        folder: &Path,
        body: &CommitBody,
        file: &ManifestFile,
        arrived: &(dyn Fn(u64) + Sync),
    ) -> Outcome<()> {
        let found = self.at_each_name(body, file, |name| {
            let mut fetched = None;
            for _ in 0..MAX_FETCHES {
                fetched = self.fetch_object(name, &folder.join(&file.name), file, arrived)?.or(fetched);
                if !matches!(fetched, Some(Err(_))) {
                    break;
                }
            }
            Ok(fetched)
        })?;
        Ok(found.map_err(|defect| NotGathered { defect, at_remote: true }))
    }

    /// Writes and syncs one object as it comes, hashing it on the way. `None`: it is absent.
    fn fetch_object(
        &self,
        name: &str,
        path: &Path,
        file: &ManifestFile,
        arrived: &(dyn Fn(u64) + Sync),
    ) -> Result<Option<Result<(), Defect>>> {
        // It may be a link to a file of another checkpoint, which a write would change.
        self.clear(path)?;
        let made = self.view.disk().create(path, false).map_err(CheckpointError::storage("create", path))?;
        let mut sink = Sink { file: made.as_ref(), hasher: blake3::Hasher::new(), offset: 0, failed: None };
        let fetched = self.files.fetch(name, file.size_bytes, &mut |bytes| {
            arrived(bytes.len() as u64);
            sink.take(bytes)
        });
        if let Some(error) = sink.failed.take() {
            return Err(CheckpointError::storage("write", path)(error));
        }
        let Some(found_bytes) = fetched? else { return Ok(None) };
        let hash = sink.hasher.finalize();
        made.sync().map_err(CheckpointError::storage("sync", path))?;
        Ok(Some(check_size(file, found_bytes).and_then(|()| check_hash(file, &hash))))
    }

    pub(super) fn clear(&self, path: &Path) -> Result<()> {
        let removed = if_there(self.view.disk().remove_file(path));
        removed.map(drop).map_err(CheckpointError::storage("remove", path))
    }

    /// Moves what was assembled to its place, durably. No process knows the place yet.
    pub(super) fn put_in_place(&self, gathered: &Path, prefix: &str) -> Result<()> {
        let root = self.view.root();
        let folder = root.join(prefix);
        let step_folder = folder.parent().unwrap_or(root).to_owned();
        self.view.make_folder(&step_folder)?;
        // By one rename: after a kill all of it is there, or nothing.
        self.view.disk().rename(gathered, &folder).map_err(CheckpointError::storage("rename", gathered))?;
        self.view.sync_folder(&step_folder)?;
        self.view.sync_folder(root)
    }

    /// Removes what unfinished downloads left behind. They only use space: no process reads them.
    pub(super) fn clear_incoming(&self) {
        let folder = self.view.root().join(INCOMING_FOLDER);
        if folder.exists() {
            let _ = self.view.remove_folder(&folder);
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
            // Kept apart: a full disk here is not a fault of the remote.
            self.failed = Some(error);
            return Err(io::Error::other("this disk refused"));
        }
        self.hasher.update(bytes);
        self.offset += bytes.len() as u64;
        Ok(())
    }
}
