//! A checkpoint that somebody reads: chosen, held by a pin, verified.

use std::path::PathBuf;

use trackway_checkpoint::{CheckpointInfo, State};
use trackway_core::{AttemptId, Step};

use super::{Checkpoints, Which};
use crate::error::{AppError, ErrorKind};

/// The fewest digits that are taken for the beginning of a manifest's hash.
const DIGITS_MIN: usize = 6;

/// A checkpoint by what people type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CheckpointRef {
    /// The newest committed one.
    #[default]
    Latest,
    /// The one of this step.
    Step(Step),
    /// The one whose manifest's SHA-256 begins so.
    Manifest(String),
}

/// A checkpoint that was chosen to be read.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// Its step.
    pub step: Step,
    /// Who wrote it.
    pub attempt_id: AttemptId,
    /// SHA-256 of its manifest.
    pub manifest_sha256: String,
    /// The number of its commit on this disk.
    number: u64,
}

impl CheckpointRef {
    /// `latest`, a step, or at least six digits of a manifest's SHA-256; digits alone are a step.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`].
    pub fn parse(text: &str) -> Result<Self, AppError> {
        let text = text.trim();
        if text == "latest" {
            return Ok(Self::Latest);
        }
        if let Ok(step) = text.parse() {
            return Ok(Self::Step(step));
        }
        let hexadecimal = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if hexadecimal && (DIGITS_MIN..=64).contains(&text.len()) {
            return Ok(Self::Manifest(text.to_lowercase()));
        }
        let message = format!("`{text}` names no checkpoint");
        Err(AppError::new(ErrorKind::Usage, message)
            .hint("name a step, `latest`, or the beginning of a manifest's SHA-256"))
    }
}

impl Checkpoints {
    /// The checkpoint that is meant, which has its bytes on this disk.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; [`ErrorKind::Usage`] when several have a manifest that begins so.
    pub(crate) fn chosen(&self, reference: &CheckpointRef) -> Result<Chosen, AppError> {
        let local = self.view()?.list();
        let placed = self.placed(local.clone(), &self.ask_remote(), false);
        let one = match reference {
            CheckpointRef::Latest => self.choose(&placed, Which::Latest)?,
            CheckpointRef::Step(step) => self.choose(&placed, Which::Step(*step))?,
            CheckpointRef::Manifest(digits) => {
                let begins = |info: &CheckpointInfo| {
                    info.manifest_sha256.as_ref().is_some_and(|hash| hash.starts_with(digits))
                };
                let mut found = placed.iter().filter(|one| begins(&one.info));
                let first = found.next().ok_or_else(|| {
                    let message =
                        format!("{} has no checkpoint whose manifest begins with {digits}", self.title());
                    AppError::new(ErrorKind::NotFound, message)
                })?;
                if found.any(|other| other.info.manifest_sha256 != first.info.manifest_sha256) {
                    let message = format!("several manifests begin with {digits}: give more of it");
                    return Err(AppError::new(ErrorKind::Usage, message));
                }
                first.clone()
            }
        };
        let is_here = |info: &&CheckpointInfo| {
            info.object_prefix == one.info.object_prefix
                && info.manifest_sha256.is_some()
                && info.state != State::Retired
        };
        let step = one.info.step;
        let here = local.iter().rev().find(is_here).ok_or_else(|| {
            let message = format!("the bytes of step {step} of {} are not on this disk", self.title());
            let error = AppError::new(ErrorKind::NotFound, message);
            match one.there {
                true => error.hint("they are at the remote; `trackway resume` brings the newest ones here"),
                false => error,
            }
        })?;
        Ok(Chosen {
            step,
            attempt_id: here.attempt_id,
            manifest_sha256: here.manifest_sha256.clone().unwrap_or_default(),
            number: here.number,
        })
    }

    /// Holds a chosen checkpoint on this disk for so many seconds; a pin of the same name moves.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when its files were deleted meanwhile.
    pub(crate) fn hold(&self, name: &str, chosen: &Chosen, why: &str, seconds: f64) -> Result<(), AppError> {
        let until = self.now().plus_seconds(seconds);
        let pinned = self.housekeeper()?.pin(name, chosen.number, why, Some(until));
        pinned.map(drop).map_err(|error| self.error(&error))
    }

    /// Lets go of what was held. That it is not held any more is no error.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub(crate) fn let_go(&self, name: &str) -> Result<(), AppError> {
        match self.housekeeper()?.unpin(name) {
            Err(trackway_checkpoint::CheckpointError::NoSuchPin { .. }) | Ok(()) => Ok(()),
            Err(error) => Err(self.error(&error)),
        }
    }

    /// The folder of a chosen checkpoint, every byte of it read.
    ///
    /// # Errors
    /// [`ErrorKind::Integrity`] when it is not what was committed.
    pub(crate) fn verified_folder(&self, chosen: &Chosen) -> Result<PathBuf, AppError> {
        let loaded = self.view()?.load(chosen.number).map_err(|error| self.error(&error))?;
        Ok(loaded.folder)
    }
}
