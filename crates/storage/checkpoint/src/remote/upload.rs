//! Sending the bytes of a commit.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use trackway_core::{CheckpointUse, Step};
use trackway_formats::checkpoint_manifest::{MANIFEST_FILE_NAME, Manifest, ManifestFile};
use trackway_store::{StoreError, Writer};

use super::replica::{Replica, by_prefix, key};
use crate::bulk::parallel::{lock, try_for_each};
use crate::error::{CheckpointError, Result};
use crate::history::History;
use crate::history::entry::{Body, CommitBody};
use crate::housekeeping::keeper::append;
use crate::reading::verify::verify;
use crate::retention::{Retention, plan};

/// What became of an upload.
#[derive(Debug, Clone, PartialEq)]
pub enum Uploaded {
    /// All of its bytes are at the remote.
    Done {
        step: Step,
        /// Bytes that were sent; the rest was held there already.
        sent_bytes: u64,
    },
    /// It was retired at the remote meanwhile; what was sent is removed again.
    Retired,
    /// Its bytes are not whole on this disk any more; `why`.
    NotHere {
        /// Its number at the remote.
        number: u64,
        why: String,
    },
}

/// Hears of the bytes that are done, of all; from several threads.
pub type Progress<'a> = dyn Fn(u64, u64) + Sync + 'a;

/// The parent of what is being sent, when its files may be relied on.
struct SentParent {
    prefix: String,
    manifest: Manifest,
}

impl Replica {
    /// Sends the newest commit whose bytes should be at the remote and are not. `None`: there is none.
    ///
    /// What `policy` would delete at once is not sent; `None` keeps everything. `progress` hears of sent and of all
    /// bytes of the checkpoint, from several threads.
    ///
    /// # Errors
    /// [`CheckpointError::Store`]: try again later; what was sent is not sent again.
    pub fn upload_next(
        &mut self,
        policy: Option<&Retention>,
        progress: &Progress<'_>,
    ) -> Result<Option<Uploaded>> {
        self.refresh()?;
        match self.due_uploads(policy).first() {
            None => Ok(None),
            Some(number) => self.upload(*number, progress).map(Some),
        }
    }

    /// Numbers at the remote of commits that should be sent and can be, newest first.
    pub(super) fn due_uploads(&self, policy: Option<&Retention>) -> Vec<u64> {
        self.due_in(self.remote(), policy)
    }

    /// The same in what the remote's log will be.
    pub(super) fn due_in(&self, remote: &History, policy: Option<&Retention>) -> Vec<u64> {
        let keep = policy.map(|policy| plan(remote, policy, self.clock.now(), None).keep);
        let here = by_prefix(self.local_history());
        let due = |number: &u64| {
            let Some(record) = remote.commit(*number).filter(|it| it.uploaded_to.is_none()) else {
                return false;
            };
            let wanted = keep.as_ref().is_none_or(|keep| keep.contains_key(number));
            let local = here.get(record.body.object_prefix.as_str());
            let local = local.and_then(|number| self.local_history().commit(*number));
            wanted && local.is_some_and(|record| record.may_be_used_for(CheckpointUse::Keep))
        };
        remote.live_of_newest_epoch().into_iter().filter(due).collect()
    }

    /// Sends a commit, by its number at the remote.
    pub(super) fn upload(&mut self, number: u64, progress: &Progress<'_>) -> Result<Uploaded> {
        let Some(body) = self.remote().commit(number).map(|record| record.body.clone()) else {
            return Err(CheckpointError::NoSuchCommit { root: self.location().into(), number });
        };
        let Some(folder) = self.copies_here(&body.object_prefix).into_iter().next() else {
            return Ok(Uploaded::NotHere { number, why: "its files are deleted".into() });
        };
        // Read before it is sent: the remote may become the only copy.
        let manifest = match verify(self.view.disk().as_ref(), &folder, &body) {
            Ok(manifest) => manifest,
            Err(defect) if defect.is_damage() => {
                let why = defect.to_string();
                self.mark_local_suspect(&body.object_prefix, &why)?;
                return Ok(Uploaded::NotHere { number, why });
            }
            Err(defect) => return Err(CheckpointError::Damaged { step: body.step, defect }),
        };
        // The manifest first: a collection at the remote finds by it what is being sent.
        self.send_manifest(&folder, &body)?;
        // After the manifest is there: a process that deletes from now on sees it, or is seen here.
        self.log.refresh()?;
        let held = self.held(&body)?;
        let sent = Mutex::new(Vec::new());
        let sending = self.send_files(&folder, &manifest, held.as_ref(), &sent, progress);
        if let Err(error) = sending {
            // Retention on this disk may have let it go meanwhile.
            return match folder.exists() {
                true => Err(error),
                false => {
                    Ok(Uploaded::NotHere { number, why: "its files were deleted in the meantime".into() })
                }
            };
        }
        let sent = std::mem::take(&mut *lock(&sent));
        self.conclude(number, &body, &sent)
    }

    /// Sends what is not held at the remote, several files at a time, and notes what was sent and how much of it.
    fn send_files(
        &self,
        folder: &Path,
        manifest: &Manifest,
        held: Option<&SentParent>,
        sent: &Mutex<Vec<(String, u64)>>,
        progress: &Progress<'_>,
    ) -> Result<()> {
        let done_bytes = AtomicU64::new(0);
        let arrived = |bytes| {
            progress(done_bytes.fetch_add(bytes, Ordering::SeqCst) + bytes, manifest.size_bytes());
        };
        let work = |(): &mut (), file: &ManifestFile| {
            if self.is_held(held, file)? {
                arrived(file.size_bytes);
                return Ok(());
            }
            let name = key(&manifest.object_prefix, &file.name);
            let sent_bytes = self.send_file(&name, folder, file, &arrived)?;
            lock(sent).push((name, sent_bytes));
            Ok(())
        };
        try_for_each(self.files.at_once(), &manifest.files, || Ok(()), work)
    }

    fn mark_local_suspect(&mut self, prefix: &str, why: &str) -> Result<()> {
        let Some(number) = by_prefix(self.local_history()).get(prefix).copied() else { return Ok(()) };
        append(&mut self.view, Writer::Housekeeper, |history| {
            let wanted = history.commit(number).is_some_and(|it| it.suspect.is_none() && !it.retired);
            wanted.then(|| Body::suspect(number, why))
        })
        .map(drop)
    }

    fn send_manifest(&self, folder: &Path, body: &CommitBody) -> Result<()> {
        let path = folder.join(MANIFEST_FILE_NAME);
        let bytes = std::fs::read(&path).map_err(CheckpointError::storage("read", &path))?;
        Ok(self.log.backend().replace(&key(&body.object_prefix, MANIFEST_FILE_NAME), &bytes)?)
    }

    /// The parent of a commit, when it is all at the remote and may not be deleted without regard to this commit.
    fn held(&self, body: &CommitBody) -> Result<Option<SentParent>> {
        let parent = body.parent.and_then(|parent| self.remote().commit(parent));
        let Some(parent) = parent.filter(|it| it.uploaded_to.is_some() && !it.retired) else {
            return Ok(None);
        };
        let prefix = parent.body.object_prefix.clone();
        let manifest = self.remote_manifest(&parent.body)?.and_then(Result::ok);
        Ok(manifest.map(|manifest| SentParent { prefix, manifest }))
    }

    /// Whether a file is at the remote already, where the manifest places it, and stays there.
    fn is_held(&self, held: Option<&SentParent>, file: &ManifestFile) -> Result<bool, StoreError> {
        let (Some(held), Some(stored_in)) = (held, &file.stored_in) else { return Ok(false) };
        let same = held.manifest.files.iter().find(|found| found.same_content(file));
        let Some(same) = same.filter(|it| it.stored_in.as_ref().unwrap_or(&held.prefix) == stored_in) else {
            return Ok(false);
        };
        // A parent that has the file below its own prefix does not rely on the other place.
        let relies =
            *stored_in == held.prefix || self.files.size_bytes(&key(&held.prefix, &same.name))?.is_none();
        Ok(relies && self.has(&key(stored_in, &file.name), file.size_bytes)?)
    }

    fn has(&self, name: &str, size_bytes: u64) -> Result<bool, StoreError> {
        Ok(self.files.size_bytes(name)? == Some(size_bytes))
    }

    /// Sends a file unless an earlier try did, and returns how many bytes went over the wire.
    fn send_file(
        &self,
        name: &str,
        folder: &Path,
        file: &ManifestFile,
        arrived: &dyn Fn(u64),
    ) -> Result<u64> {
        let size_bytes = file.size_bytes;
        if self.has(name, size_bytes)? {
            arrived(size_bytes);
            return Ok(0);
        }
        let mut reported_bytes = 0;
        self.files.send(name, &folder.join(&file.name), &mut |bytes| {
            arrived(bytes.saturating_sub(reported_bytes));
            reported_bytes = reported_bytes.max(bytes);
        })?;
        // Looked at there: only what arrived counts as sent.
        let found_bytes = self.files.size_bytes(name)?;
        if found_bytes == Some(size_bytes) {
            return Ok(size_bytes);
        }
        let found = found_bytes.map_or_else(|| "nothing".into(), |bytes| format!("{bytes} bytes"));
        let why = format!("{size_bytes} bytes were sent and {found} arrived");
        Err(CheckpointError::Store(StoreError::Backend {
            kind: trackway_store::ErrorKind::Unavailable,
            action: "send",
            location: format!("{}/{name}", self.location()),
            source: why.into(),
        }))
    }

    /// Records in both logs that all bytes are there, unless the commit was retired meanwhile.
    fn conclude(&mut self, number: u64, body: &CommitBody, sent: &[(String, u64)]) -> Result<Uploaded> {
        let location = self.location();
        self.log.append(Writer::Housekeeper, |history| {
            let wanted = history.commit(number).is_some_and(|it| !it.retired && it.uploaded_to.is_none());
            Ok::<_, CheckpointError>(
                wanted.then(|| Body::Uploaded { commit: number, location: location.clone() }),
            )
        })?;
        // The collection that retired it may have swept before these files came.
        if self.remote().commit(number).is_none_or(|record| record.retired) {
            for (name, _) in sent {
                self.files.remove(name)?;
            }
            self.files.remove(&key(&body.object_prefix, MANIFEST_FILE_NAME))?;
            return Ok(Uploaded::Retired);
        }
        self.seen_whole.insert(number);
        self.note_uploads()?;
        Ok(Uploaded::Done { step: body.step, sent_bytes: sent.iter().map(|(_, bytes)| bytes).sum() })
    }
}
