//! A checkpoint that is being read: chosen, held by a pin, verified; fetched from the remote if it is only there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use trackway_api::checkpoints::CheckpointStanding;
use trackway_checkpoint::{Best, CheckpointError, CheckpointInfo, CheckpointState, verify_copy};
use trackway_core::{AttemptId, CheckpointUse, Step, Unfit, Weights};
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::stored::stored_plan;
use trackway_formats::runfile::Goal;

use super::remote_view::PlacedCheckpoint;
use super::{Arriving, Checkpoints, Which};

/// The fewest digits that are taken for the beginning of a manifest's hash.
const DIGITS_MIN: usize = 6;

/// A checkpoint by what people type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CheckpointRef {
    /// The newest committed one.
    #[default]
    Latest,
    /// The earliest one that was committed and is not deleted.
    First,
    /// The one of this step.
    Step(Step),
    /// The one whose manifest's SHA-256 begins so.
    Manifest(String),
    /// The best by a metric; `None`: by that of the run file's `checkpoint.keep.best`, else of its `early_stop`.
    Best(Option<Best>),
}

/// A checkpoint that was chosen to be read.
#[derive(Debug, Clone)]
pub struct Chosen {
    pub step: Step,
    /// The attempt that wrote it.
    pub attempt_id: AttemptId,
    /// SHA-256 of its manifest.
    pub manifest_sha256: String,
    pub state: CheckpointState,
    /// Where its files are below a root.
    prefix: String,
    /// The number of its commit on this disk; none: its bytes are only at the remote.
    number: Option<u64>,
}

impl Chosen {
    /// The number of its commit on this disk; none: its bytes are only at the remote.
    pub(crate) fn number(&self) -> Option<u64> {
        self.number
    }

    /// Whether it must be fetched to be read.
    pub fn is_far(&self) -> bool {
        self.number.is_none()
    }
}

impl CheckpointRef {
    /// A run, and after `@` its checkpoint, such as `income@best`; without one the newest.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn of_run(text: &str) -> Result<(&str, Self), AppError> {
        match text.rsplit_once('@') {
            Some((run, checkpoint)) => Ok((run, Self::parse(checkpoint)?)),
            None => Ok((text, Self::Latest)),
        }
    }

    /// `latest`, `first`, `best`, `min METRIC`, `max METRIC`, a step, or at least six digits of a manifest's SHA-256; decimal digits
    /// are a step, unless there is none of that number or they begin with 0.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`].
    pub fn parse(text: &str) -> Result<Self, AppError> {
        let text = text.trim();
        if text == "latest" {
            return Ok(Self::Latest);
        }
        if text == "first" {
            return Ok(Self::First);
        }
        if text == "best" {
            return Ok(Self::Best(None));
        }
        if let Some(best) = text.split_once(' ').and_then(|_| Best::parse(text)) {
            return Ok(Self::Best(Some(best)));
        }
        let is_digest = text.starts_with('0') && text.len() >= DIGITS_MIN;
        if let (false, Ok(step)) = (is_digest, text.parse()) {
            return Ok(Self::Step(step));
        }
        let hexadecimal = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if hexadecimal && (DIGITS_MIN..=64).contains(&text.len()) {
            return Ok(Self::Manifest(text.to_lowercase()));
        }
        let message = format!("`{text}` names no checkpoint");
        Err(AppError::new(ErrorKind::Usage, message)
            .hint("name a step, `latest`, `first`, `best`, `min METRIC`, `max METRIC`, or the beginning of a manifest's SHA-256"))
    }
}

impl Checkpoints {
    /// The referenced checkpoint, which has its bytes on this disk or at the remote.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; [`ErrorKind::Usage`] when several have a manifest that begins so; [`ErrorKind::Fault`] when it is
    /// only at the remote, and that does not answer.
    pub(crate) fn chosen(&self, reference: &CheckpointRef) -> Result<Chosen, AppError> {
        self.chosen_among(reference, CheckpointUse::Keep, |_| Ok(()))
    }

    /// The same, for a purpose. An unsafe one is refused unless a person accepted it, with a reason; where one did and
    /// named none, it is the newest, unsafe or not. So is one of a broken attempt, where its weights would be given on.
    ///
    /// # Errors
    /// As [`Checkpoints::chosen`]; [`ErrorKind::Usage`] when it may not be used for that.
    pub(crate) fn chosen_for(
        &self,
        reference: &CheckpointRef,
        purpose: CheckpointUse,
        accepted: Option<&str>,
    ) -> Result<Chosen, AppError> {
        let newest = match (reference, accepted) {
            (CheckpointRef::Latest, Some(_)) => {
                let all = self.placed(self.view()?.list(), &self.ask_remote(), false);
                let newest = all.iter().filter(|one| one.info.state.is_whole());
                newest.max_by_key(|one| (one.info.epoch, one.info.number)).map(|one| one.info.step)
            }
            _ => None,
        };
        let reference = newest.map_or_else(|| reference.clone(), CheckpointRef::Step);
        self.chosen_among(&reference, purpose, |found| {
            let mut unfit = self.weights(found, accepted.is_some()).unfit_for(purpose);
            // What is not whole is refused where it is read, with what is wrong.
            unfit.retain(|unfit| *unfit != Unfit::NotWhole);
            if unfit.is_empty() { Ok(()) } else { Err(self.unfit(found, &unfit, purpose)) }
        })
    }

    fn chosen_among(
        &self,
        reference: &CheckpointRef,
        purpose: CheckpointUse,
        check: impl Fn(&PlacedCheckpoint) -> Result<(), AppError>,
    ) -> Result<Chosen, AppError> {
        let best = match reference {
            CheckpointRef::Best(best) => Some(best.clone().map_or_else(|| self.best_of_run_file(), Ok)?),
            _ => None,
        };
        let (info, is_here) = self.found(|placed| {
            let found = match reference {
                CheckpointRef::Best(_) => self.choose_best(placed, best.as_ref().expect("it was found")),
                CheckpointRef::Latest => self.choose_for(placed, Which::Latest, purpose),
                CheckpointRef::First => self.choose_first(placed),
                CheckpointRef::Step(step) => self.choose_by_step(placed, *step),
                CheckpointRef::Manifest(digits) => self.choose_by_manifest(placed, digits),
            }?;
            check(&found).map(|()| found)
        })?;
        Ok(Chosen {
            state: info.state,
            step: info.step,
            attempt_id: info.attempt_id,
            manifest_sha256: info.manifest_sha256.unwrap_or_default(),
            prefix: info.object_prefix,
            number: is_here.then_some(info.number),
        })
    }

    fn choose_first(&self, placed: &[PlacedCheckpoint]) -> Result<PlacedCheckpoint, AppError> {
        let found = placed.iter().filter(is_committed).min_by_key(|one| (one.info.step, one.info.number));
        found.cloned().ok_or_else(|| self.nothing_committed())
    }

    /// The metric by which the run file keeps the best checkpoint, or stops early.
    fn best_of_run_file(&self) -> Result<Best, AppError> {
        let plan = self.run.as_ref().map(|run| stored_plan(&run.row)).transpose()?.flatten();
        let of_plan = plan.and_then(|plan| {
            let named = plan.checkpoint.keep_best.or(plan.early_stop.map(|stop| stop.metric))?;
            Some(Best { metric: named.metric, more_is_better: named.goal == Goal::Max, count: 1 })
        });
        of_plan.ok_or_else(|| {
            let message = format!("{} names no metric of its best checkpoint", self.title());
            AppError::new(ErrorKind::Usage, message)
                .hint("name it, as `--checkpoint 'min val_loss'`, or write `keep = { best = \"min val_loss\" }` into `[checkpoint]`")
        })
    }

    /// The newest, the newest safe and the best one.
    pub(super) fn standing(&self, placed: &[PlacedCheckpoint]) -> CheckpointStanding {
        let newest = |is: fn(&CheckpointInfo) -> bool| {
            let found = placed.iter().map(|one| &one.info).filter(|info| is(info));
            found.max_by_key(|info| (info.epoch, info.number))
        };
        let latest = newest(|info| info.state.is_whole());
        let by = self.best_of_run_file().ok();
        let best = by.as_ref().and_then(|best| self.choose_best(placed, best).ok());
        CheckpointStanding {
            newest_step: latest.map(|info| info.step),
            newest_is_unsafe: latest.is_some_and(|info| info.state == CheckpointState::Unsafe),
            safe_step: newest(|info| info.state == CheckpointState::Committed).map(|info| info.step),
            best_step: best.map(|one| one.info.step),
            best_by: by
                .map(|best| format!("{} {}", if best.more_is_better { "max" } else { "min" }, best.metric)),
        }
    }

    /// The best of those that were committed and are not deleted; of equals the newest.
    fn choose_best(&self, placed: &[PlacedCheckpoint], best: &Best) -> Result<PlacedCheckpoint, AppError> {
        let value = |one: &PlacedCheckpoint| {
            let value = self.metrics_of(one).remove(&best.metric).filter(|value| value.is_finite())?;
            Some(if best.more_is_better { value } else { -value })
        };
        let known = placed.iter().filter(is_committed).filter_map(|one| Some((value(one)?, one)));
        let found = known.max_by(|(one, first), (other, second)| {
            one.total_cmp(other).then(first.info.number.cmp(&second.info.number))
        });
        found.map(|(_, one)| one.clone()).ok_or_else(|| {
            let committed = placed.iter().filter(is_committed);
            let names: BTreeSet<String> =
                committed.flat_map(|one| self.metrics_of(one).into_keys()).collect();
            let message = format!("no checkpoint of {} has a value of `{}`", self.title(), best.metric);
            let hint = match names.is_empty() {
                true => {
                    format!("record `{}` at the steps that are saved, or pass it to the save", best.metric)
                }
                false => format!("they have {}", names.into_iter().collect::<Vec<_>>().join(", ")),
            };
            AppError::new(ErrorKind::NotFound, message).hint(hint)
        })
    }

    /// What its log has of a checkpoint, and what was logged at its step.
    fn metrics_of(&self, one: &PlacedCheckpoint) -> BTreeMap<String, f64> {
        let digest = one.info.manifest_sha256.as_ref();
        let logged = self.run.as_ref().zip(digest).and_then(|(run, digest)| run.logged.get(digest));
        let mut metrics = logged.cloned().unwrap_or_default();
        metrics.extend(one.info.metrics.clone());
        metrics
    }

    /// A hash may begin with decimal digits alone.
    fn choose_by_step(&self, placed: &[PlacedCheckpoint], step: Step) -> Result<PlacedCheckpoint, AppError> {
        self.choose(placed, Which::Step(step)).or_else(|error| match step.to_string() {
            digits if digits.len() >= DIGITS_MIN => {
                self.choose_by_manifest(placed, &digits).map_err(|_| error)
            }
            _ => Err(error),
        })
    }

    fn choose_by_manifest(
        &self,
        placed: &[PlacedCheckpoint],
        digits: &str,
    ) -> Result<PlacedCheckpoint, AppError> {
        let begins = |one: &&PlacedCheckpoint| {
            one.info.manifest_sha256.as_ref().is_some_and(|hash| hash.starts_with(digits))
        };
        let mut found = placed.iter().filter(begins);
        let first = found.next().ok_or_else(|| {
            let message = format!("{} has no checkpoint whose manifest begins with {digits}", self.title());
            AppError::new(ErrorKind::NotFound, message)
        })?;
        if found.any(|other| other.info.manifest_sha256 != first.info.manifest_sha256) {
            let message = format!("several manifests begin with {digits}: use more digits");
            return Err(AppError::new(ErrorKind::Usage, message));
        }
        Ok(first.clone())
    }

    /// Holds a chosen checkpoint where it is, on this disk or at the remote, for so many seconds; a pin of the same name moves.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when its files were deleted meanwhile; when the remote does not answer.
    pub(crate) fn hold(&self, name: &str, chosen: &Chosen, why: &str, seconds: f64) -> Result<(), AppError> {
        let until = Some(self.now().plus_seconds(seconds));
        let Some(number) = chosen.number else { return self.pin_there(name, &chosen.prefix, why, until) };
        let pinned = self.housekeeper()?.pin(name, number, why, until);
        pinned.map(drop).map_err(|error| self.error(error))
    }

    /// Releases what was held. That it is not held any more is not an error.
    pub(crate) fn release(&self, name: &str) -> Result<(), AppError> {
        match self.housekeeper()?.unpin(name) {
            Ok(()) => Ok(()),
            Err(CheckpointError::NoSuchPin { .. }) => self.unpin_there(name),
            Err(error) => Err(self.error(error)),
        }
    }

    /// The folder of a chosen checkpoint, every byte of it read: its folder, or `far` for one that is fetched from the
    /// remote.
    ///
    /// # Errors
    /// [`ErrorKind::Integrity`] when it is not what was committed; when the remote does not answer or the disk refuses.
    pub(crate) fn verified_folder(
        &self,
        chosen: &Chosen,
        far: &Path,
        watch: &Arriving<'_>,
    ) -> Result<PathBuf, AppError> {
        let folder = match chosen.number {
            Some(number) => {
                self.view()?.load(number).map(|loaded| loaded.folder).map_err(|error| self.error(error))
            }
            None => self.fetch((chosen.step, &chosen.prefix), far, watch).map(|()| far.to_owned()),
        };
        self.note_read(&chosen.manifest_sha256, &folder);
        folder
    }

    /// Reads every byte of a chosen checkpoint again after its use, in its folder or in `far`. One that differs from
    /// what was committed is marked suspect, so that nothing resumes from it.
    ///
    /// # Errors
    /// [`ErrorKind::Integrity`] when it changed; when it cannot be read.
    pub(crate) fn check_unchanged(&self, chosen: &Chosen, far: &Path) -> Result<(), AppError> {
        let Some(number) = chosen.number else { return check_brought(chosen, far) };
        let read = self.view()?.verify(number).map_err(|error| self.error(error));
        self.note_read(&chosen.manifest_sha256, &read);
        let Err(error) = read else { return Ok(()) };
        if error.kind != ErrorKind::Integrity {
            return Err(error);
        }
        let why = "its files changed while an evaluator read them";
        let marked = self.housekeeper()?.suspect(number, why);
        let message = format!("step {} changed while the evaluator read it", chosen.step);
        let hint = match marked {
            Ok(()) => "it is marked suspect, and no run resumes from it; an evaluator must only read TRACKWAY_CHECKPOINT_DIR".to_owned(),
            Err(error) => format!("it could not be marked suspect: {error}"),
        };
        Err(AppError::new(ErrorKind::Integrity, message).because(error).hint(hint))
    }

    /// Gives the owner the right to write into a checkpoint's folder back, which an evaluation that was killed had taken.
    pub(crate) fn writable_again(&self, chosen: &Chosen) {
        if chosen.number.is_some()
            && let Ok(view) = self.view()
        {
            super::read_only::writable_again(&view.root().join(&chosen.prefix));
        }
    }
}

/// The same of a checkpoint that was fetched.
fn check_brought(chosen: &Chosen, folder: &Path) -> Result<(), AppError> {
    verify_copy(folder, &chosen.manifest_sha256).map_err(|defect| {
        let message = format!("step {} changed while the evaluator read it: {defect}", chosen.step);
        AppError::new(ErrorKind::Integrity, message)
            .hint("what is at the remote is as it was; an evaluator must only read TRACKWAY_CHECKPOINT_DIR")
    })
}

/// Whether a checkpoint was committed, is not deleted and nothing is known against it.
fn is_committed(one: &&PlacedCheckpoint) -> bool {
    Weights::in_state(one.info.state).may_be_used_for(CheckpointUse::Best)
}
