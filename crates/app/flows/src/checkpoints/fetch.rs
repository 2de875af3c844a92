//! Checkpoints whose bytes are only at the remote: found, held and checked there, or fetched into a folder to be read.

use std::path::Path;

use trackway_checkpoint::remote::Replica;
use trackway_checkpoint::{CheckpointInfo, CheckpointState};
use trackway_core::{Step, Timestamp};
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::run::remote::{Patience, remote_error};
use trackway_formats::checkpoint_manifest::{Manifest, ManifestFile};

use super::Checkpoints;
use super::remote_view::{PlacedCheckpoint, Remote, is_held};

/// Called with the bytes that arrived and those there are in all; from several threads.
pub(crate) type Arriving<'a> = dyn Fn(u64, u64) + Sync + 'a;

impl Checkpoints {
    /// The commit that `pick` picks among those of this disk and of the remote, and whether its bytes are on this disk.
    ///
    /// # Errors
    /// The errors of `pick`; [`ErrorKind::NotFound`] when its bytes are nowhere; [`ErrorKind::Fault`] when they are not
    /// here, and the remote does not answer.
    pub(super) fn found(
        &self,
        pick: impl FnOnce(&[PlacedCheckpoint]) -> Result<PlacedCheckpoint, AppError>,
    ) -> Result<(CheckpointInfo, bool), AppError> {
        let local = self.view()?.list();
        let remote = self.ask_remote();
        let picked = match pick(&self.placed(local.clone(), &remote, false)) {
            Err(error) if error.kind != ErrorKind::NotFound => return Err(error),
            picked => picked,
        };
        let same = |info: &&CheckpointInfo, one: &PlacedCheckpoint| {
            info.object_prefix == one.info.object_prefix
                && info.manifest_sha256.is_some()
                && info.state != CheckpointState::Retired
        };
        let here = picked.as_ref().ok().and_then(|one| local.iter().rev().find(|info| same(info, one)));
        match (here, picked, remote) {
            (Some(here), _, _) => Ok((here.clone(), true)),
            (None, picked, Remote::Silent { answer, .. }) => {
                let what =
                    picked.map_or("the requested checkpoint".into(), |one| format!("step {}", one.info.step));
                Err(self.silent(&what, &answer.error.unwrap_or_default()))
            }
            (None, Ok(one), _) if !one.there => {
                let message =
                    format!("the bytes of step {} of {} are nowhere any more", one.info.step, self.title());
                Err(AppError::new(ErrorKind::NotFound, message))
            }
            (None, picked, _) => picked.map(|one| (one.info, false)),
        }
    }

    /// The checkpoint that the remote holds with this manifest; none if there is no remote, or it holds none.
    ///
    /// # Errors
    /// [`ErrorKind::Fault`] when the remote does not answer.
    pub(super) fn held_there(&self, manifest_sha256: &str) -> Result<Option<CheckpointInfo>, AppError> {
        match self.ask_remote() {
            Remote::None => Ok(None),
            Remote::Silent { answer, .. } => {
                let why = answer.error.unwrap_or_default();
                Err(self.silent(&format!("the one with manifest {manifest_sha256}"), &why))
            }
            Remote::Answers(there) => {
                let meant = |info: &CheckpointInfo| info.manifest_sha256.as_deref() == Some(manifest_sha256);
                let mut all = there.truth.checkpoints;
                Ok(all.iter().rposition(|info| is_held(info) && meant(info)).map(|at| all.swap_remove(at)))
            }
        }
    }

    /// The error that a checkpoint is not here, and that it is unknown whether the remote has it.
    pub(super) fn silent(&self, what: &str, why: &str) -> AppError {
        let message = format!(
            "{} has its checkpoints at a remote that does not answer ({why}): {what} is not on this disk",
            self.title()
        );
        AppError::new(ErrorKind::Fault, message).hint("try again when the remote responds")
    }

    /// Holds what is at the remote, there.
    pub(super) fn pin_there(
        &self,
        name: &str,
        prefix: &str,
        why: &str,
        until: Option<Timestamp>,
    ) -> Result<(), AppError> {
        let missing = || self.silent("a checkpoint", "it no longer exists");
        let mut there = self.demand_remote()?.ok_or_else(missing)?;
        there.replica.pin(name, prefix, why, until).map(drop).map_err(|error| self.error(error))
    }

    /// Removes a pin that is only at the remote. A missing pin is not an error.
    pub(super) fn unpin_there(&self, name: &str) -> Result<(), AppError> {
        let Some(mut there) = self.demand_remote()? else { return Ok(()) };
        if there.replica.pins().iter().all(|pin| pin.name != name) {
            return Ok(());
        }
        there.replica.unpin(name).map(drop).map_err(|error| self.error(error))
    }

    /// Reads every byte of a checkpoint at the remote, and keeps none.
    ///
    /// # Errors
    /// [`ErrorKind::Integrity`] when it is not what was committed.
    pub(super) fn check_there(
        &self,
        info: &CheckpointInfo,
        watch: &Arriving<'_>,
    ) -> Result<Manifest, AppError> {
        let prefix = &info.object_prefix;
        self.transfer(info.step, |replica| {
            replica.verify_there(prefix, watch)?;
            replica.manifest(prefix)
        })
    }

    /// What a checkpoint at the remote consists of; no other file is read.
    ///
    /// # Errors
    /// As [`Checkpoints::check_there`].
    pub(super) fn manifest_there(&self, info: &CheckpointInfo) -> Result<Manifest, AppError> {
        self.transfer(info.step, |replica| replica.manifest(&info.object_prefix))
    }

    /// Fetches a whole checkpoint into a folder, every byte checked.
    ///
    /// # Errors
    /// As [`Checkpoints::check_there`]; when the disk refuses. What was fetched stays, and is not fetched again.
    pub(super) fn fetch(
        &self,
        (step, prefix): (Step, &str),
        folder: &Path,
        watch: &Arriving<'_>,
    ) -> Result<(), AppError> {
        make_folder(folder)?;
        self.transfer(step, |replica| replica.fetch(prefix, folder, watch)).map(drop)
    }

    /// Fetches some of its files.
    ///
    /// # Errors
    /// As [`Checkpoints::fetch`].
    pub(crate) fn fetch_files(
        &self,
        (step, prefix): (Step, &str),
        files: &[ManifestFile],
        folder: &Path,
        watch: &Arriving<'_>,
    ) -> Result<(), AppError> {
        make_folder(folder)?;
        self.transfer(step, |replica| replica.fetch_files(prefix, files, folder, watch))
    }

    /// As patiently as a supervisor: a large file on a slow line takes longer than a person waits for an answer.
    fn transfer<T: Send>(
        &self,
        step: Step,
        work: impl FnOnce(&Replica) -> Result<T, trackway_checkpoint::CheckpointError> + Send,
    ) -> Result<T, AppError> {
        let missing = || self.silent(&format!("step {step}"), "it no longer exists");
        let plan = self.remote.as_ref().ok_or_else(missing)?;
        let done = plan.interruptibly(|cancelled| work(&plan.open(Patience::Long, cancelled)?));
        done.map_err(|error| {
            let failure =
                remote_error(format!("step {step} cannot be brought from {}", plan.location()), error);
            match failure.kind {
                ErrorKind::Integrity => failure
                    .hint(format!("see what is wrong with: trackway checkpoint doctor {}", self.subject)),
                _ => failure,
            }
        })
    }
}

fn make_folder(folder: &Path) -> Result<(), AppError> {
    std::fs::create_dir_all(folder).map_err(|error| AppError::file("make", folder, error))
}
