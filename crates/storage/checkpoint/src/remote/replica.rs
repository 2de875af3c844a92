use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trackway_core::{AttemptId, CheckpointUse, Clock, Ids, RunId, Step};
use trackway_formats::checkpoint_manifest::{MANIFEST_FILE_NAME, MAX_MANIFEST_BYTES, Manifest, ManifestFile};
use trackway_store::{Backend, Disk, Log, RealDisk};

use super::files::RemoteFiles;
use crate::error::{CheckpointError, Defect, Result};
use crate::history::entry::{Body, ClaimBody, CommitBody};
use crate::history::{CheckpointInfo, CommitRecord, History, PinInfo};
use crate::reading::verify::check_manifest;
use crate::reading::view::CheckpointView;

/// How often another claim of the same epoch is answered with a higher one.
const MAX_CLAIM_TRIES: u32 = 16;

/// A local root and the remote with its authoritative log. Holds no state beyond both logs.
pub struct Replica {
    pub(super) view: CheckpointView,
    pub(super) log: Log<History>,
    pub(super) files: Arc<dyn RemoteFiles>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ids: Arc<dyn Ids>,
    /// Numbers of remote commits whose objects this process has seen, with their sizes.
    pub(super) seen_whole: BTreeSet<u64>,
}

/// How far the remote lags, as far as is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct RemoteLag {
    /// Local commits that are not in the remote's log.
    pub waiting_commits: u64,
    /// The newest step among them.
    pub waiting_step: Option<Step>,
    /// Commits of the remote's log whose bytes are here and should be there.
    pub waiting_uploads: u64,
    /// The newest step whose bytes are all at the remote and that is not unsafe.
    pub uploaded_step: Option<Step>,
    /// Local commits newer than all that are at the remote whose only copy was deleted here all the same: no rule keeps
    /// them, and [`MAX_ONLY_COPIES`](crate::MAX_ONLY_COPIES) newer ones stay.
    pub dropped_uploads: u64,
}

impl Replica {
    /// Opens both logs at their newest summaries.
    ///
    /// # Errors
    /// [`CheckpointError::Store`] when either does not answer.
    pub fn open(
        root: &Path,
        backend: Arc<dyn Backend>,
        files: Arc<dyn RemoteFiles>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> Result<Self> {
        Self::open_on(Arc::new(RealDisk), root, backend, files, clock, ids)
    }

    /// The same through a given disk, so that its owner can watch what is read.
    ///
    /// # Errors
    /// As [`Replica::open`].
    pub fn open_on(
        disk: Arc<dyn Disk>,
        root: &Path,
        backend: Arc<dyn Backend>,
        files: Arc<dyn RemoteFiles>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> Result<Self> {
        let view = CheckpointView::at_summary(root, disk, Arc::clone(&clock), Arc::clone(&ids))?;
        let log = Log::open(backend, Arc::clone(&clock), Arc::clone(&ids))?;
        Ok(Self { view, log, files, clock, ids, seen_whole: BTreeSet::new() })
    }

    /// Where the remote is, for messages.
    #[must_use]
    pub fn location(&self) -> String {
        self.log.backend().location()
    }

    /// Reads what was added to both logs since.
    pub fn refresh(&mut self) -> Result<()> {
        self.view.refresh()?;
        Ok(self.log.refresh()?)
    }

    /// Reads what was added to the local log alone.
    pub fn refresh_local(&mut self) -> Result<()> {
        self.view.refresh()
    }

    /// How many local commits are not at the remote, and the newest step among them, as of the last call.
    #[must_use]
    pub fn waiting_commits(&self) -> (u64, Option<Step>) {
        let waiting = self.waiting();
        let step = |number: &u64| self.local_history().commit(*number).map(|record| record.body.step);
        (waiting.len() as u64, waiting.iter().filter_map(step).max())
    }

    /// Whether nothing was ever written to the remote's log.
    #[must_use]
    pub fn remote_is_empty(&self) -> bool {
        self.log.position().tail == 0
    }

    /// The newest claim at the remote as of the last call: epoch and attempt.
    #[must_use]
    pub fn remote_claim(&self) -> Option<(u64, AttemptId)> {
        self.remote().claimed().map(|claim| (claim.epoch, claim.attempt_id))
    }

    /// The local root, as of the last call.
    #[must_use]
    pub fn local(&self) -> &CheckpointView {
        &self.view
    }

    /// Every checkpoint of the remote's log, as of the last call. Those deleted long ago may be left out.
    #[must_use]
    pub fn remote_list(&self) -> Vec<CheckpointInfo> {
        self.remote().checkpoints()
    }

    /// Every pin at the remote, by name, as of the last call.
    #[must_use]
    pub fn pins(&self) -> Vec<PinInfo> {
        self.remote().pin_list()
    }

    /// The claim of the newest epoch at the remote, when it is newer than that of an attempt: the attempt is fenced.
    pub fn fenced_by(&mut self, epoch: u64, attempt_id: AttemptId) -> Result<Option<(u64, AttemptId)>> {
        self.log.refresh()?;
        let newer = |claim: &ClaimBody| {
            claim.epoch > epoch || (claim.epoch == epoch && claim.attempt_id != attempt_id)
        };
        Ok(self.remote().claimed().filter(newer).map(|claim| (claim.epoch, claim.attempt_id)))
    }

    /// Folders on this disk that have files of a checkpoint according to the log, newest first.
    pub(super) fn copies_here(&self, prefix: &str) -> Vec<PathBuf> {
        let copies = self.local_history().commits().filter(|(_, it)| it.body.object_prefix == prefix);
        let live = copies.filter(|(_, it)| !it.retired);
        let mut folders: Vec<PathBuf> = live.map(|(_, it)| self.view.root().join(it.folder())).collect();
        folders.reverse();
        folders
    }

    pub(super) fn remote(&self) -> &History {
        self.log.state()
    }

    pub(super) fn local_history(&self) -> &History {
        self.view.history()
    }

    /// Claims an epoch at the remote: at least `at_least`, and higher than every one before. The same attempt gets the
    /// same epoch again.
    pub(super) fn claim_remote(
        &mut self,
        run_id: RunId,
        attempt_id: AttemptId,
        at_least: u64,
    ) -> Result<u64> {
        let location = self.location();
        let own_run = |history: &History| history.check_run(location.as_ref(), run_id);
        let mut tries = 0;
        loop {
            tries += 1;
            self.log.refresh()?;
            let epoch = match self.remote().claimed() {
                Some(claim) if claim.attempt_id == attempt_id && claim.epoch >= at_least => claim.epoch,
                Some(claim) => at_least.max(claim.epoch + 1),
                None => at_least,
            };
            let body = ClaimBody { epoch, run_id, attempt_id };
            match self.log.claim(&body.holder(), &Body::Claim(body), own_run) {
                Ok(()) => return Ok(epoch),
                // Another process was faster: the next epoch is above its.
                Err(CheckpointError::Fenced { .. }) if tries < MAX_CLAIM_TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The manifest of a commit, from the remote; `None`: it was never sent, or is deleted.
    pub(super) fn remote_manifest(&self, body: &CommitBody) -> Result<Option<Result<Manifest, Defect>>> {
        Ok(self.remote_manifest_bytes(body)?.map(|bytes| check_manifest(&bytes, body)))
    }

    pub(super) fn remote_manifest_bytes(&self, body: &CommitBody) -> Result<Option<Vec<u8>>> {
        let name = key(&body.object_prefix, MANIFEST_FILE_NAME);
        Ok(self.log.backend().read(&name, MAX_MANIFEST_BYTES)?)
    }

    /// The state according to both logs when they were read last.
    #[must_use]
    pub fn standing(&self, policy: Option<&crate::Retention>) -> RemoteLag {
        let (waiting_commits, waiting_step) = self.waiting_commits();
        let is_good = |it: &CommitRecord| it.uploaded_to.is_some() && it.may_be_used_for(CheckpointUse::Keep);
        let uploaded = self.remote().commits().filter(|(_, it)| is_good(it));
        RemoteLag {
            waiting_commits,
            waiting_step,
            waiting_uploads: self.due_uploads(policy).len() as u64,
            uploaded_step: uploaded.map(|(_, record)| record.body.step).max(),
            dropped_uploads: self.dropped_uploads(),
        }
    }

    /// How many commits retention on this disk deleted before a copy of them, or of a newer one, was at the remote.
    #[must_use]
    pub fn dropped_uploads(&self) -> u64 {
        let history = self.local_history();
        let own: Vec<_> = history.commits().filter(|(number, _)| *number > history.truth_begins()).collect();
        let unsent = own.iter().rev().take_while(|(_, record)| record.uploaded_to.is_none());
        let is_missed = |it: &CommitRecord| {
            it.retired && it.number_there.is_none() && it.was_fit_for(CheckpointUse::Keep)
        };
        unsent.filter(|(_, record)| is_missed(record)).count() as u64
    }
}

/// Numbers of commits by the prefix of their files. Of several of one prefix (adopted ones) the newest.
pub(super) fn by_prefix(history: &History) -> BTreeMap<&str, u64> {
    history.commits().map(|(number, record)| (record.body.object_prefix.as_str(), number)).collect()
}

/// The name of a file's object.
pub(super) fn key(prefix: &str, name: &str) -> String {
    format!("{prefix}/{name}")
}

/// Where a file of a checkpoint may be: below its own prefix, then below that of the checkpoint it is shared with.
pub(super) fn keys_of(prefix: &str, file: &ManifestFile) -> Vec<String> {
    let prefixes = [Some(prefix), file.stored_in.as_deref()];
    prefixes.into_iter().flatten().map(|prefix| key(prefix, &file.name)).collect()
}

pub(super) fn no_manifest() -> Defect {
    Defect::Missing { name: MANIFEST_FILE_NAME.into() }
}
