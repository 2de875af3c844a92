use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use trackway_core::{AttemptId, Clock, Ids, RunId, Step, with_fields_of};
use trackway_formats::checkpoint_manifest::{
    MANIFEST_FILE_NAME, MANIFEST_VERSION, Manifest, ManifestFile, state_digest,
};
use trackway_formats::sha256_hex;
use trackway_store::{Disk, RealDisk, Writer};

use crate::bulk::{DraftSave, Figures, FileWriter, LoadedFile, Saved};
use crate::error::{CheckpointError, Result};
use crate::group::RankGroup;
use crate::history::entry::{Begin, Body, ClaimBody, CommitBody, RoundBody, commit_metrics};
use crate::history::{CheckpointInfo, History, check_round};
use crate::housekeeping::keeper::{Keeper, append};
use crate::reading::load::LoadedCheckpoint;
use crate::reading::view::{CheckpointView, Search, VerifiedCheckpoint};
use crate::reading::weights::{SameTensors, have_same_weights};
use crate::retention::Retention;
use crate::settings::Settings;
use crate::writing::parent::ParentFiles;
use crate::writing::writer::{CheckpointWriter, write_durably};

/// A checkpoint that was committed.
#[derive(Debug, Clone, PartialEq)]
pub struct Commit {
    /// The number of the commit in the log.
    pub number: u64,
    pub run_id: RunId,
    pub attempt_id: AttemptId,
    /// The step whose end it holds.
    pub step: Step,
    /// The epoch of the writer.
    pub epoch: u64,
    /// Where its files are, below the root.
    pub object_prefix: String,
    /// The SHA-256 of its manifest, in lower-case hex.
    pub manifest_sha256: String,
    /// The digest of the training state it holds.
    pub state_digest: String,
    /// Bytes of its files.
    pub size_bytes: u64,
    /// Bytes of them that had to be written; the others are shared with the parent. On a rank other than 0: of its
    /// files.
    pub written_bytes: u64,
    /// How long writing and committing took.
    pub seconds: f64,
    /// The number of the commit it was trained on from.
    pub parent: Option<u64>,
}

/// Commits that are kept while retention waits.
const HELD_MAX: usize = 64;

/// A checkpoint root as its writer sees it: one attempt, holding one epoch.
pub struct CheckpointRoot {
    pub(crate) view: CheckpointView,
    pub(crate) claim: ClaimBody,
    pub(crate) settings: Settings,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    files: FileWriter,
    keeper: Keeper,
    /// Whether retention waits, up to a limit.
    holds: bool,
    /// Whether some older ones stay, whatever is set.
    spaces: bool,
    same_tensors: SameTensors,
    /// The commit this attempt continues from.
    pub(crate) parent: Option<u64>,
    /// Its files, when they are whole as far as this process knows.
    pub(crate) parent_files: Option<ParentFiles>,
    /// The round of the ranks that save together; `None`: there is one process.
    pub(crate) round: Option<RoundBody>,
    /// Which of them this is.
    pub(crate) group: Option<RankGroup>,
}

impl CheckpointRoot {
    /// Opens a root for writing and claims `epoch` in it, which fences every writer with a lower one. The same
    /// attempt may open its root again.
    ///
    /// # Errors
    /// [`CheckpointError::Fenced`] when the epoch, or a higher one, is another attempt's;
    /// [`CheckpointError::WrongRun`]; [`CheckpointError::Store`].
    pub fn open(
        path: &Path,
        epoch: u64,
        run_id: RunId,
        attempt_id: AttemptId,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> Result<Self> {
        let claim = ClaimBody { epoch, run_id, attempt_id };
        Self::open_on(Arc::new(RealDisk), path, claim, Settings::from_environment(), clock, ids)
    }

    pub(crate) fn open_on(
        disk: Arc<dyn Disk>,
        path: &Path,
        claim: ClaimBody,
        settings: Settings,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> Result<Self> {
        let mut root = Self::unclaimed_on(disk, path, claim, settings, clock, ids)?;
        root.claim()?;
        Ok(root)
    }

    /// Claims the epoch in a root that is open for reading.
    #[cfg(test)]
    pub(crate) fn open_over(
        view: CheckpointView,
        claim: ClaimBody,
        settings: Settings,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> Result<Self> {
        let mut root = Self::unclaimed_over(view, claim, settings, clock, ids);
        root.claim()?;
        Ok(root)
    }

    /// A root whose epoch another process claims for this attempt.
    pub(crate) fn unclaimed_on(
        disk: Arc<dyn Disk>,
        path: &Path,
        claim: ClaimBody,
        settings: Settings,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> Result<Self> {
        let view = CheckpointView::at_summary(path, disk, Arc::clone(&clock), Arc::clone(&ids))?;
        Ok(Self::unclaimed_over(view, claim, settings, clock, ids))
    }

    fn unclaimed_over(
        view: CheckpointView,
        claim: ClaimBody,
        settings: Settings,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> Self {
        let files = FileWriter::new(Arc::clone(view.disk()), Arc::clone(&clock));
        let files = files.sharing_from(settings.share_bytes_min);
        let (keeper, parent, parent_files, round, group) = (Keeper::default(), None, None, None, None);
        Self {
            view,
            claim,
            settings,
            clock,
            ids,
            files,
            keeper,
            holds: false,
            spaces: false,
            same_tensors: |_, _, _| false,
            parent,
            parent_files,
            round,
            group,
        }
    }

    fn claim(&mut self) -> Result<()> {
        let (root, claim) = (self.view.root().to_owned(), self.claim);
        let own_run = |history: &History| history.check_run(&root, claim.run_id);
        self.view.log.claim(&claim.holder(), &Body::Claim(claim), own_run)
    }

    /// What later commits keep, instead of what the environment sets; `None`: everything.
    pub fn set_retention(&mut self, keep: Option<Retention>) {
        self.settings.keep = keep;
    }

    /// What later commits keep if the environment sets nothing; `None`: everything.
    pub fn keep_by_default(&mut self, keep: Option<Retention>) {
        self.settings.keep_by_default = keep;
    }

    /// Whether later commits delete nothing until what is committed at once was judged, as at the end of a script; with
    /// more than a few commits they do all the same.
    pub fn hold_retention(&mut self, holds: bool) {
        self.holds = holds;
    }

    /// Whether later commits keep some older ones too, whatever is set ([`Retention::spaced`]): until an attempt has
    /// ended, what it lost may not be known.
    pub fn space_out(&mut self, spaces: bool) {
        self.spaces = spaces;
    }

    /// By what it is known of later commits that their weights are those of their parents where the bytes of the files differ.
    pub fn compare_tensors(&mut self, same_tensors: SameTensors) {
        self.same_tensors = same_tensors;
    }

    /// Later commits continue from this one, whose bytes are not read: another process resumed from it.
    ///
    /// # Errors
    /// [`CheckpointError::NoSuchCommit`], or [`CheckpointError::Damaged`] when its manifest is.
    pub fn continue_from(&mut self, number: u64) -> Result<()> {
        let manifest = self.view.manifest(number)?;
        self.committed(number, manifest.object_prefix, manifest.files);
        Ok(())
    }

    /// The root as a reader sees it, as of the last call.
    #[must_use]
    pub fn view(&self) -> &CheckpointView {
        &self.view
    }

    #[cfg(test)]
    pub(crate) fn view_mut(&mut self) -> &mut CheckpointView {
        &mut self.view
    }

    /// Every checkpoint, in the order of the log. Those deleted long ago may be left out: [`CheckpointView::open`]
    /// reads the whole log.
    pub fn list(&mut self) -> Result<Vec<CheckpointInfo>> {
        self.view.refresh()?;
        Ok(self.view.list())
    }

    /// The checkpoint to continue from: the newest committed one that verifies, along the parents of the newest epoch.
    /// Those that do not verify are marked suspect and explained in [`LoadedCheckpoint::fallbacks`]. `None`: nothing
    /// was ever committed. Later commits have the returned one as their parent.
    ///
    /// # Errors
    /// [`CheckpointError::NothingVerifies`] when checkpoints were committed and none can be used;
    /// [`CheckpointError::Fenced`]; [`CheckpointError::Store`].
    pub fn resume_target(&mut self) -> Result<Option<LoadedCheckpoint>> {
        self.check_may_resume()?;
        let search = self.view.search();
        Ok(self.settle(search)?.map(|(target, _)| target))
    }

    /// The same, with all its files in memory: every byte is read once, and checked while it is read.
    ///
    /// # Errors
    /// As [`CheckpointRoot::resume_target`].
    pub fn resume_read(&mut self) -> Result<Option<(LoadedCheckpoint, Vec<LoadedFile>)>> {
        self.check_may_resume()?;
        let search = self.view.search_reading();
        self.settle(search)
    }

    fn check_may_resume(&mut self) -> Result<()> {
        // Before any byte is read: what a fenced attempt trains could never be committed.
        self.check_fence()?;
        self.view.check_adopted()
    }

    /// Marks what was found damaged, and continues from what was found intact.
    fn settle(&mut self, search: Search) -> Result<Option<VerifiedCheckpoint>> {
        for damage in &search.damage {
            // A full disk must not keep a run from resuming: the answer reports the damage, marked or not.
            if let Err(error @ CheckpointError::Fenced { .. }) =
                self.append(Body::suspect(damage.number, &damage.why))
            {
                return Err(error);
            }
        }
        let found = search.outcome()?;
        self.go_on_from(found.as_ref().map(|(target, _)| target));
        Ok(found)
    }

    /// Later commits name this one as their parent and share unchanged files with it.
    pub(crate) fn go_on_from(&mut self, target: Option<&LoadedCheckpoint>) {
        self.parent = target.map(|target| target.info.number);
        self.parent_files = target.map(|target| ParentFiles {
            folder: target.folder.clone(),
            object_prefix: target.info.object_prefix.clone(),
            files: target.manifest.files.clone(),
        });
    }

    /// Writes a checkpoint and commits it. `fill` writes its files; when it returns an error nothing is committed.
    ///
    /// When this returns `Ok`, the checkpoint survives power loss. When it returns an error, every checkpoint
    /// committed earlier is untouched, and this one is either committed as a whole or not at all.
    ///
    /// # Errors
    /// [`CheckpointError::Fenced`]: stop. [`CheckpointError::Store`], [`CheckpointError::Storage`]: saving may be tried
    /// again. What `fill` returned.
    pub fn save(
        &mut self,
        step: Step,
        metrics: &[(&str, f64)],
        fill: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<()>,
    ) -> Result<Commit> {
        let started_micros = self.clock.monotonic_micros();
        let begin = self.new_begin(step);
        let prefix = begin.object_prefix.clone();
        // Before the first file: what a killed save leaves is found by this entry and swept.
        let number = self.append(Body::Begin(begin))?;
        let (manifest, manifest_sha256) = match self.write_objects(step, &prefix, metrics, fill) {
            Ok(written) => written,
            Err(error) => return Err(self.give_up(number, &prefix, error.at_step(step))),
        };
        let body = self.commit_body(&manifest, manifest_sha256);
        let written_bytes = written_bytes(&manifest.files);
        // After every file is durable: this entry makes them a checkpoint.
        let number = match self.commit(&body, &manifest) {
            // No other process may look for it any more: it may count as swept since before its folder was made.
            Err(error @ CheckpointError::Fenced { .. }) => return Err(self.give_up(number, &prefix, error)),
            // Any other error leaves open whether the entry is there: the files stay.
            committed => committed?,
        };
        self.committed(number, prefix, manifest.files);
        // The checkpoint is real whatever becomes of older ones. A fence met here is met again by the next save, and
        // files that could not be deleted are part of no live checkpoint.
        let _ = self.apply_retention();
        Ok(commit(number, body, written_bytes, self.seconds_since(started_micros)))
    }

    /// Commits a checkpoint of another root in this one, with the same files: they are linked where both are on one file system, else
    /// copied. Its root is only read, and deleting it does not change this one.
    ///
    /// # Errors
    /// As [`CheckpointRoot::save`]; [`CheckpointError::Damaged`] when a file is not what was committed.
    pub fn save_copy(&mut self, source: &LoadedCheckpoint) -> Result<Commit> {
        let metrics: Vec<(&str, f64)> =
            source.manifest.metrics.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        // The ranks that saved it together.
        self.settings.world_size = source.manifest.world_size;
        self.save(source.step, &metrics, |writer| writer.copy(source))
    }

    /// The same as [`CheckpointRoot::save`] for a draft: what a [`crate::bulk::BackgroundSaver`] calls.
    ///
    /// # Errors
    /// As [`CheckpointRoot::save`], and what `before_commit` returned, which is called when the files are written.
    pub fn save_draft(
        &mut self,
        save: &DraftSave,
        before_commit: impl FnOnce() -> Result<()>,
    ) -> Result<Saved<Commit>> {
        let metrics: Vec<(&str, f64)> = save.metrics.iter().map(|(name, value)| (&**name, *value)).collect();
        let mut figures = Figures::default();
        let commit = self.save(save.step(), &metrics, |writer| {
            writer.draft(save)?;
            figures = writer.figures();
            before_commit()
        })?;
        Ok(Saved { commit, figures })
    }

    /// The next commit continues from this one.
    pub(crate) fn committed(&mut self, number: u64, object_prefix: String, files: Vec<ManifestFile>) {
        let folder = self.view.root().join(&object_prefix);
        self.parent = Some(number);
        self.parent_files = Some(ParentFiles { folder, object_prefix, files });
    }

    pub(crate) fn seconds_since(&self, started_micros: i64) -> f64 {
        (self.clock.monotonic_micros() - started_micros) as f64 / 1e6
    }

    pub(crate) fn new_begin(&self, step: Step) -> Begin {
        self.claim.begin(step, self.ids.as_ref())
    }

    /// Deletes the files at once and records that what was begun will not be committed. Both may fail without harm:
    /// what stays is never read, because it has no commit, and is swept later.
    pub(crate) fn give_up(&mut self, begin: u64, prefix: &str, error: CheckpointError) -> CheckpointError {
        let folder = self.view.root().join(prefix);
        if folder.exists() {
            let _ = self.view.remove_folder(&folder);
        }
        let _ = self.append(Body::abandon(begin, &error.to_string()));
        error
    }

    /// Adds the commit. What it shares with its parent must still be kept there, according to the log at that point.
    pub(crate) fn commit(&mut self, body: &CommitBody, manifest: &Manifest) -> Result<u64> {
        let shares = manifest.files.iter().any(|file| file.stored_in.is_some());
        let claim = self.claim.holder();
        let round = self.round;
        let number = self.view.log.append(Writer::Trainer(&claim), |history: &History| {
            check_round(history, round)?;
            let parent = body.parent.and_then(|parent| history.commit(parent));
            if shares && parent.is_none_or(|parent| parent.retired) {
                return Err(CheckpointError::ParentRetired { step: body.step });
            }
            Ok(Some(Body::Commit(body.clone())))
        });
        if let Err(CheckpointError::ParentRetired { .. }) = number {
            // The next save shares nothing, and so depends on nothing that may go.
            self.parent_files = None;
        }
        Ok(number?.expect("a commit is always decided"))
    }

    pub(crate) fn commit_body(&self, manifest: &Manifest, manifest_sha256: String) -> CommitBody {
        with_fields_of!(
            CommitBody,
            &manifest,
            [epoch, run_id, attempt_id, step, object_prefix, state_digest],
            parent: self.parent,
            manifest_sha256,
            size_bytes: manifest.size_bytes(),
            metrics: commit_metrics(&manifest.metrics),
            same_weights: self.has_weights_of_parent(manifest),
        )
    }

    /// Whether the weights of the attempt are still those of its first checkpoint. Once they were not, nothing is compared any more.
    fn has_weights_of_parent(&self, manifest: &Manifest) -> bool {
        let own = |number: Option<u64>| {
            let record = number.and_then(|number| self.view.history().commit(number))?;
            (record.body.attempt_id == self.claim.attempt_id).then_some(&record.body)
        };
        let Some((parent, held)) = own(self.parent).zip(self.parent_files.as_ref()) else { return false };
        let folder = self.view.root().join(&manifest.object_prefix);
        (parent.same_weights || own(parent.parent).is_none())
            && have_same_weights((&held.folder, &held.files), (&folder, &manifest.files), self.same_tensors)
    }

    /// Writes the files and the manifest under a new prefix and makes them and all names on the way durable.
    fn write_objects(
        &self,
        step: Step,
        prefix: &str,
        metrics: &[(&str, f64)],
        fill: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<()>,
    ) -> Result<(Manifest, String)> {
        let files = self.write_files(prefix, fill)?;
        if files.is_empty() {
            return Err(CheckpointError::Empty { step });
        }
        self.write_manifest(step, prefix, metrics, files)
    }

    /// Makes the folders and writes the files into them, each synced; the folders are not.
    pub(crate) fn write_files(
        &self,
        prefix: &str,
        fill: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<()>,
    ) -> Result<Vec<ManifestFile>> {
        let folder = self.view.root().join(prefix);
        if let Some(step_folder) = folder.parent() {
            self.view.make_folder(step_folder)?;
        }
        self.view.make_folder(&folder)?;
        let mut writer = CheckpointWriter::new(&self.files, folder, self.parent_files.as_ref(), self.group);
        fill(&mut writer)?;
        Ok(writer.into_files())
    }

    /// Writes the manifest of these files and makes it and all names on the way durable.
    pub(crate) fn write_manifest(
        &self,
        step: Step,
        prefix: &str,
        metrics: &[(&str, f64)],
        files: Vec<ManifestFile>,
    ) -> Result<(Manifest, String)> {
        let folder = self.view.root().join(prefix);
        let manifest = self.manifest(step, prefix, metrics, files);
        let bytes = manifest.to_bytes()?;
        write_durably(self.view.disk().as_ref(), &folder.join(MANIFEST_FILE_NAME), &bytes)?;
        let step_folder = folder.parent().unwrap_or(self.view.root());
        // From the inside out: a name is durable only once what is behind it is.
        for folder in [folder.as_path(), step_folder, self.view.root()] {
            self.view.sync_folder(folder)?;
        }
        Ok((manifest, sha256_hex(&bytes)))
    }

    fn manifest(
        &self,
        step: Step,
        prefix: &str,
        metrics: &[(&str, f64)],
        files: Vec<ManifestFile>,
    ) -> Manifest {
        Manifest {
            version: MANIFEST_VERSION,
            run_id: self.claim.run_id,
            attempt_id: self.claim.attempt_id,
            step,
            epoch: self.claim.epoch,
            created_at: self.clock.now(),
            object_prefix: prefix.to_owned(),
            world_size: self.settings.world_size,
            metrics: metrics
                .iter()
                .map(|(name, value)| ((*name).to_owned(), *value))
                .collect::<BTreeMap<_, _>>(),
            config_sha256: self.settings.config_sha256.clone(),
            data_sha256: self.settings.data_sha256.clone(),
            state_digest: state_digest(&files),
            files,
        }
    }

    /// Deletes what retention no longer keeps. When the newest turns out not to verify, nothing is shared with it.
    pub(crate) fn apply_retention(&mut self) -> Result<()> {
        let Some(policy) = self.settings.keep.as_ref().or(self.settings.keep_by_default.as_ref()) else {
            return Ok(());
        };
        if self.holds && self.view.list().iter().filter(|info| info.state.is_whole()).count() <= HELD_MAX {
            return Ok(());
        }
        let policy = Retention { spaced: self.spaces, ..policy.clone() };
        let now = self.clock.now();
        let claim = self.claim.holder();
        // Without an age: a writer that does not know yet that it is fenced may still be at its files.
        let done = self.keeper.apply(&mut self.view, Writer::Trainer(&claim), &policy, now, None)?;
        if self.parent.is_some_and(|parent| done.suspects.contains(&parent)) {
            self.parent_files = None;
        }
        Ok(())
    }

    /// Adds an entry under the next number that is free, unless a higher epoch is found on the way.
    pub(crate) fn append(&mut self, body: Body) -> Result<u64> {
        let claim = self.claim.holder();
        let number = append(&mut self.view, Writer::Trainer(&claim), |_| Some(body.clone()))?;
        Ok(number.expect("the entry is always decided"))
    }

    pub(crate) fn check_fence(&mut self) -> Result<()> {
        let claim = self.claim.holder();
        append(&mut self.view, Writer::Trainer(&claim), |_| None).map(drop)
    }
}

pub(crate) fn commit(number: u64, body: CommitBody, written_bytes: u64, seconds: f64) -> Commit {
    with_fields_of!(
        Commit,
        body,
        [run_id, attempt_id, step, epoch, object_prefix, manifest_sha256, state_digest, size_bytes, parent,],
        number,
        written_bytes,
        seconds,
    )
}

/// Bytes of files that are not shared with the parent.
pub(crate) fn written_bytes(files: &[ManifestFile]) -> u64 {
    files.iter().filter(|file| file.stored_in.is_none()).map(|file| file.size_bytes).sum()
}
