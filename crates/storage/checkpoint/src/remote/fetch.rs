//! Fetches a checkpoint from the remote into a folder of the caller, for reading and not for training. No log is
//! written.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use trackway_formats::checkpoint_manifest::{MANIFEST_FILE_NAME, Manifest, ManifestFile};

use super::gather::NotGathered;
use super::replica::{Replica, no_manifest};
use super::upload::Progress;
use crate::bulk::parallel::try_for_each;
use crate::error::{CheckpointError, Result};
use crate::reading::verify::check_manifest;
use crate::writing::writer::write_durably;

impl Replica {
    /// Fetches a whole checkpoint into an existing folder, from the remote alone: every byte checked on the way,
    /// durable, the manifest last. What of it is whole there already is not fetched again. A checkpoint that is deleted
    /// meanwhile is not whole: hold it before ([`Replica::pin`]).
    ///
    /// # Errors
    /// [`CheckpointError::NoSuchCommit`]; [`CheckpointError::Damaged`]; [`CheckpointError::Store`] when the remote does
    /// not answer; [`CheckpointError::Storage`]. What was fetched stays.
    pub fn fetch(&self, prefix: &str, folder: &Path, progress: &Progress<'_>) -> Result<Manifest> {
        let body = self.body_there(prefix)?;
        let damaged = |defect| CheckpointError::Damaged { step: body.step, defect };
        let bytes = self.remote_manifest_bytes(body)?.ok_or_else(|| damaged(no_manifest()))?;
        let manifest = check_manifest(&bytes, body).map_err(damaged)?;
        self.fetch_files(prefix, &manifest.files, folder, progress)?;
        let path = folder.join(MANIFEST_FILE_NAME);
        self.clear(&path)?;
        write_durably(self.view.disk().as_ref(), &path, &bytes)?;
        self.view.sync_folder(folder)?;
        Ok(manifest)
    }

    /// The same of some files of its manifest, which is not written.
    ///
    /// # Errors
    /// As [`Replica::fetch`].
    pub fn fetch_files(
        &self,
        prefix: &str,
        files: &[ManifestFile],
        folder: &Path,
        progress: &Progress<'_>,
    ) -> Result<()> {
        let body = self.body_there(prefix)?;
        let total_bytes: u64 = files.iter().map(|file| file.size_bytes).sum();
        let done_bytes = AtomicU64::new(0);
        let arrived = |bytes: u64| {
            let done_bytes = done_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
            progress(done_bytes.min(total_bytes), total_bytes);
        };
        let work = |(): &mut (), file: &ManifestFile| {
            if self.is_whole(folder, file) {
                arrived(file.size_bytes);
                return Ok(());
            }
            let damaged = |it: NotGathered| CheckpointError::Damaged { step: body.step, defect: it.defect };
            self.fetch_file(folder, body, file, &arrived)?.map_err(damaged)
        };
        try_for_each(self.files.at_once(), files, || Ok(()), work)?;
        self.view.sync_folder(folder)
    }
}
