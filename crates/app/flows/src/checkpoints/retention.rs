//! Pins, and deleting what retention does not keep.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;

use trackway_api::checkpoints::{
    CheckpointCollection, CheckpointOrigin, CheckpointPin, CollectedPlace, KeptCheckpoint, OrphanedFiles,
    RemoteAnswer, RetiredCheckpoint,
};
use trackway_checkpoint::remote::RemoteCollected;
use trackway_checkpoint::{CheckpointInfo, Collected, PinInfo, Retention, RetentionPlan};
use trackway_core::{Step, Timestamp};
use trackway_engine::error::{AppError, ErrorKind};
use trackway_redact::Redactor;

use super::policy::{in_words, reason_in_words};
use super::remote_view::{PlacedCheckpoint, Remote};
use super::{Checkpoints, KeepChanges, Which};

/// What is deleted, and by which rules.
#[derive(Debug, Clone)]
pub struct Garbage {
    /// What a command line sets instead of the run file.
    pub keep: KeepChanges,
    /// Suspect and dead checkpoints, and what fenced attempts left behind, go when they are older than this.
    pub older_than_seconds: f64,
    /// Only return what would be deleted.
    pub dry_run: bool,
}

impl Checkpoints {
    /// Holds a checkpoint, at the remote too: nothing deletes it while the pin exists. A pin of the same name moves. Secrets in
    /// `why` are removed.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is no such checkpoint, or its files are deleted already. When the remote does
    /// not answer: then nothing is held.
    pub fn pin(
        &self,
        name: &str,
        which: Which,
        why: &str,
        until: Option<Timestamp>,
    ) -> Result<CheckpointPin, AppError> {
        if until.is_some_and(|until| until <= self.now()) {
            return Err(AppError::new(ErrorKind::Usage, "the pin would end before it begins"));
        }
        let redactor = Redactor::of_this_process();
        let why = &*redactor.text(why);
        let remote = self.demand_remote()?.map_or(Remote::None, Remote::Answers);
        let local = self.view()?.list();
        let PlacedCheckpoint { info, .. } = self.choose(&self.placed(local, &remote, false), which)?;
        let pin = match remote {
            Remote::Answers(mut there) => there.replica.pin(name, &info.object_prefix, why, until),
            _ => self.housekeeper()?.pin(name, info.number, why, until),
        };
        Ok(pinned(pin.map_err(|error| self.error(error))?, Some(info.step)))
    }

    /// Takes a pin away, at the remote too.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when no pin has that name. When the remote does not answer: then it remains.
    pub fn unpin(&self, name: &str) -> Result<CheckpointPin, AppError> {
        if let Some(mut there) = self.demand_remote()? {
            let pin = there.replica.unpin(name).map_err(|error| self.error(error))?;
            let held = there.truth.checkpoints.iter().find(|info| info.pins.contains(&pin.name));
            let step = held.map(|info| info.step);
            return Ok(pinned(pin, step));
        }
        let mut house = self.housekeeper()?;
        let pin = house.view().pins().into_iter().find(|pin| pin.name == name);
        let steps: BTreeMap<u64, Step> =
            house.view().list().into_iter().map(|info| (info.number, info.step)).collect();
        house.unpin(name).map_err(|error| self.error(error))?;
        let gone = || AppError::new(ErrorKind::NotFound, format!("no pin has the name `{name}`"));
        let pin = pin.ok_or_else(gone)?;
        let step = steps.get(&pin.commit).copied();
        Ok(pinned(pin, step))
    }

    /// Takes the pins away whose time is over, on this disk: those of the remote end there by themselves. With `dry_run` they stay.
    ///
    /// # Errors
    /// When the log of the root cannot be read or written.
    pub(crate) fn end_expired_pins(&self, dry_run: bool) -> Result<Vec<PinInfo>, AppError> {
        let now = self.now();
        let mut expired = self.view()?.pins();
        expired.retain(|pin| pin.has_expired(now));
        if dry_run || expired.is_empty() {
            return Ok(expired);
        }
        self.housekeeper()?.unpin_expired(now).map_err(|error| self.error(error))
    }

    /// Deletes what retention does not keep, or returns what would be deleted: on this disk, then at the remote. If the
    /// remote does not answer, its part of the result contains that.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when nothing was committed; when the disk refuses.
    pub fn collect(&self, garbage: &Garbage) -> Result<CheckpointCollection, AppError> {
        let policy = self.policy(&garbage.keep)?;
        let mut house = self.housekeeper()?;
        let infos: BTreeMap<u64, CheckpointInfo> =
            house.view().list().into_iter().map(|info| (info.number, info)).collect();
        if self.remote.is_none() && infos.values().all(|info| info.manifest_sha256.is_none()) {
            return Err(self.nothing_committed());
        }
        let files = self.files(&infos);
        let done = house
            .collect(&policy, garbage.older_than_seconds, garbage.dry_run)
            .map_err(|error| self.error(error))?;
        let here = self.collected_here(&policy, &infos, &files, done);
        let places = std::iter::once(here).chain(self.collect_there(&policy, garbage)).collect();
        Ok(CheckpointCollection { dry_run: garbage.dry_run, policy: in_words(&policy), places })
    }

    fn collect_there(&self, policy: &Retention, garbage: &Garbage) -> Option<CollectedPlace> {
        let (mut there, location) = match self.ask_remote() {
            Remote::None => return None,
            Remote::Silent { answer: RemoteAnswer { location, error, .. }, .. } => {
                return Some(CollectedPlace { error, ..empty(CheckpointOrigin::Remote, location) });
            }
            Remote::Answers(there) => {
                let location = there.replica.location();
                (*there, location)
            }
        };
        let done = there.replica.collect(Some(policy), Some(garbage.older_than_seconds), garbage.dry_run);
        match done {
            Err(error) => Some(CollectedPlace {
                error: Some(error.to_string()),
                ..empty(CheckpointOrigin::Remote, location)
            }),
            Ok(done) => {
                let list = there.replica.remote_list();
                let infos = list.into_iter().map(|info| (info.number, info)).collect();
                Some(collected_there(location, policy, &infos, &done))
            }
        }
    }

    fn collected_here(
        &self,
        policy: &Retention,
        infos: &BTreeMap<u64, CheckpointInfo>,
        files: &BTreeMap<u64, Vec<std::fs::Metadata>>,
        done: Collected,
    ) -> CollectedPlace {
        let (keep, retire) = fates(&done.plan, infos, policy);
        let orphans = done.orphans.iter().filter_map(|number| {
            let info = infos.get(number)?;
            let here = files.get(number).is_some_and(|files| !files.is_empty());
            here.then(|| OrphanedFiles { number: *number, step: info.step, folder: info.folder.clone() })
        });
        let going = done.plan.retire.keys().chain(&done.orphans).filter_map(|number| files.get(number));
        CollectedPlace {
            keep,
            retire,
            orphans: orphans.collect(),
            suspects: steps_of(&done.suspects, infos),
            freed_bytes: Some(freed_bytes(going.flatten())),
            refused: done.refused,
            ..empty(CheckpointOrigin::Local, self.root.display().to_string())
        }
    }

    /// The files on the disk of every checkpoint.
    fn files(&self, infos: &BTreeMap<u64, CheckpointInfo>) -> BTreeMap<u64, Vec<std::fs::Metadata>> {
        let below = |info: &CheckpointInfo| {
            let entries = std::fs::read_dir(self.root.join(&info.folder)).into_iter().flatten();
            entries.flatten().filter_map(|entry| entry.metadata().ok()).collect()
        };
        infos.iter().map(|(number, info)| (*number, below(info))).collect()
    }
}

pub(super) fn pinned(pin: PinInfo, step: Option<Step>) -> CheckpointPin {
    CheckpointPin { name: pin.name, number: pin.commit, step, why: pin.why, until: pin.until, at: pin.at }
}

fn steps_of(numbers: &[u64], infos: &BTreeMap<u64, CheckpointInfo>) -> Vec<Step> {
    numbers.iter().filter_map(|number| infos.get(number)).map(|info| info.step).collect()
}

/// What stays and what goes, newest first.
fn fates(
    plan: &RetentionPlan,
    infos: &BTreeMap<u64, CheckpointInfo>,
    policy: &Retention,
) -> (Vec<KeptCheckpoint>, Vec<RetiredCheckpoint>) {
    let step = |number: &u64| infos.get(number).map_or(0, |info| info.step);
    let size_bytes = |number: &u64| infos.get(number).and_then(|info| info.size_bytes);
    let keep = plan.keep.iter().rev().map(|(number, reasons)| KeptCheckpoint {
        number: *number,
        step: step(number),
        size_bytes: size_bytes(number),
        reasons: reasons.iter().map(|reason| reason_in_words(reason, policy)).collect(),
    });
    let retire = plan.retire.iter().rev().map(|(number, why)| RetiredCheckpoint {
        number: *number,
        step: step(number),
        size_bytes: size_bytes(number),
        why: *why,
    });
    (keep.collect(), retire.collect())
}

/// A place of which nothing is known yet.
fn empty(origin: CheckpointOrigin, location: String) -> CollectedPlace {
    CollectedPlace {
        origin,
        location,
        keep: Vec::new(),
        retire: Vec::new(),
        orphans: Vec::new(),
        suspects: Vec::new(),
        freed_bytes: None,
        removed_objects: None,
        refused: None,
        error: None,
    }
}

fn collected_there(
    location: String,
    policy: &Retention,
    infos: &BTreeMap<u64, CheckpointInfo>,
    done: &RemoteCollected,
) -> CollectedPlace {
    let (keep, retire) = fates(&done.plan, infos, policy);
    CollectedPlace {
        keep,
        retire,
        removed_objects: Some(done.removed_objects),
        suspects: steps_of(&done.suspects, infos),
        refused: done.refused.clone(),
        ..empty(CheckpointOrigin::Remote, location)
    }
}

/// What deleting files frees: of a file with several names nothing before the last one goes.
fn freed_bytes<'a>(files: impl Iterator<Item = &'a std::fs::Metadata>) -> u64 {
    let mut names_left: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let mut freed = 0;
    for file in files {
        let left = names_left.entry((file.dev(), file.ino())).or_insert(file.nlink());
        *left = left.saturating_sub(1);
        if *left == 0 {
            freed += file.size();
        }
    }
    freed
}
