//! What an attempt would find if it were launched now: a fetch without claiming, downloading or writing anything.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use trackway_core::{Step, Timestamp};
use trackway_formats::checkpoint_manifest::{Manifest, ManifestFile};
use trackway_store::{Entry, Fold as _, Item, Writer};

use super::fetch_target::FetchSource;
use super::replica::{Replica, by_prefix, keys_of, no_manifest};
use super::upload::Progress;
use super::walk::{Stop, Walk};
use crate::bulk::parallel::try_for_each;
use crate::error::{CheckpointError, Defect, Fallback, Result, check_hash, check_size};
use crate::history::entry::{Body, CommitBody, PinBody};
use crate::history::{Candidate, CheckpointInfo, History, PinInfo};
use crate::housekeeping::housekeeper::pin_body;
use crate::housekeeping::keeper::append;
use crate::reading::verify::{verify, verify_manifest};
use crate::retention::Retention;

/// The state according to both logs together, as of the last call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Truth {
    /// Every checkpoint of the remote's log, oldest first, as it is once what waits here was handed over. Numbers are
    /// of that log; those that wait have the next ones.
    pub checkpoints: Vec<CheckpointInfo>,
    /// Prefixes of those whose bytes are here and are to be sent.
    pub due: BTreeSet<String>,
    /// Prefixes of commits of this disk that cannot become part of it: another attempt was granted the run meanwhile.
    pub lost: BTreeSet<String>,
}

/// What an attempt would continue from.
#[derive(Debug, Clone, PartialEq)]
pub struct Foreseen {
    /// As the truth has it.
    pub info: CheckpointInfo,
    /// Where its bytes would come from. Local ones were read and verified; of those at the remote only the manifest and
    /// the sizes were looked at.
    pub source: FetchSource,
    /// Bytes that would be fetched.
    pub fetch_bytes: u64,
    /// Newer checkpoints that would be skipped, newest first, and why.
    pub fallbacks: Vec<Fallback>,
    /// Committed steps that would be trained again because of those.
    pub lost_steps: Step,
}

impl Replica {
    /// The state according to both logs together. `policy` decides what is to be sent; `None` keeps everything.
    #[must_use]
    pub fn truth(&self, policy: Option<&Retention>) -> Truth {
        let (history, lost) = self.once_handed_over();
        let due = self.due_in(&history, policy);
        let prefix = |number: u64| Some(history.commit(number)?.body.object_prefix.clone());
        Truth { checkpoints: history.checkpoints(), due: due.into_iter().filter_map(prefix).collect(), lost }
    }

    /// What an attempt would continue from if it were launched now; `None`: from nothing, because nothing was ever
    /// committed, or nothing that is not unsafe. `but` names a manifest by its SHA-256 that must not be taken, as if it were suspect.
    ///
    /// # Errors
    /// As [`Replica::fetch_target`].
    pub fn foresee(&mut self, but: Option<&str>) -> Result<Option<Foreseen>> {
        self.refresh()?;
        self.refuse_empty_remote()?;
        let (history, _) = self.once_handed_over();
        let mut fallbacks = Vec::new();
        let mut walk = Walk::along(&history);
        while let Some(stop) = self.next_stop(&mut walk, &history)? {
            let (number, body, uploaded) = match stop {
                Stop::Passed(fallback) => {
                    fallbacks.push(fallback);
                    continue;
                }
                Stop::Commit { body, .. } if but == Some(body.manifest_sha256.as_str()) => continue,
                Stop::Commit { number, body, uploaded } => (number, body, uploaded),
            };
            match self.nearest(&body, uploaded)? {
                Err(why) => fallbacks.push(Fallback::new(Some(body.step), why)),
                Ok(fetch_bytes) => {
                    let info = history.checkpoints().into_iter().find(|info| info.number == number);
                    let newest_step = walk.newest_step.unwrap_or(body.step);
                    let lost_steps = newest_step.saturating_sub(body.step);
                    let source = FetchSource::of(fetch_bytes);
                    let foreseen = |info| Foreseen { info, source, fetch_bytes, fallbacks, lost_steps };
                    return Ok(info.map(foreseen));
                }
            }
        }
        match fallbacks.is_empty() || Fallback::only_unsafe(&fallbacks) {
            true => Ok(None),
            false => Err(CheckpointError::NothingVerifies { fallbacks }),
        }
    }

    /// What a resume by the remote's log skips without reading a byte.
    #[must_use]
    pub fn skipped(&self) -> Vec<Fallback> {
        let passed = |candidate| match candidate {
            Candidate::Passed(fallback) => Some(fallback),
            Candidate::Commit { .. } => None,
        };
        self.once_handed_over().0.candidates().into_iter().map_while(passed).collect()
    }

    /// Marks that a checkpoint is not unsafe any more, at the remote and on this disk. What waits is handed over first.
    ///
    /// # Errors
    /// [`CheckpointError::Store`] when the remote does not answer.
    pub fn clear_unsafe(&mut self, prefix: &str, why: &str) -> Result<bool> {
        self.hand_over_unless_fenced()?;
        let clear = |history: &History| {
            let number = by_prefix(history).get(prefix).copied()?;
            let body = Body::cleared(number, why);
            history.commit(number).is_some_and(|record| body.changes(record)).then_some(body)
        };
        let there =
            self.log.append(Writer::Housekeeper, |history| Ok::<_, CheckpointError>(clear(history)))?;
        let here = append(&mut self.view, Writer::Housekeeper, clear)?;
        Ok(there.is_some() || here.is_some())
    }

    /// Reads every byte that the remote has of a checkpoint, by its prefix, and keeps none.
    ///
    /// # Errors
    /// [`CheckpointError::NoSuchCommit`]; [`CheckpointError::Store`] when the remote does not answer;
    /// [`CheckpointError::Damaged`].
    pub fn verify_there(&self, prefix: &str, progress: &Progress<'_>) -> Result<()> {
        let body = self.body_there(prefix)?;
        let damaged = |defect| CheckpointError::Damaged { step: body.step, defect };
        let manifest = self.manifest(prefix)?;
        let read_bytes = AtomicU64::new(0);
        let arrived = |bytes: u64| {
            progress(read_bytes.fetch_add(bytes, Ordering::SeqCst) + bytes, manifest.size_bytes());
        };
        let work = |(): &mut (), file: &ManifestFile| {
            self.read_there(body, file, &arrived)?.map_err(damaged)?;
            Ok::<_, CheckpointError>(())
        };
        try_for_each(self.files.at_once(), &manifest.files, || Ok(()), work)
    }

    /// Pins a checkpoint at the remote and on this disk: nothing deletes it there or here while the pin exists. A pin
    /// of the same name moves. What waits is handed over first.
    ///
    /// # Errors
    /// [`CheckpointError::Store`] when the remote does not answer: then nothing is held. [`CheckpointError::PinName`],
    /// [`CheckpointError::NoSuchCommit`], [`CheckpointError::NotHere`].
    pub fn pin(&mut self, name: &str, prefix: &str, why: &str, until: Option<Timestamp>) -> Result<PinInfo> {
        self.hand_over_unless_fenced()?;
        let number = by_prefix(self.remote()).get(prefix).copied().unwrap_or(0);
        let body = pin_body(name, number, why, until)?;
        let root = self.location();
        // The remote first: if it does not answer, nothing is held, and no local pin claims otherwise.
        self.log.append(Writer::Housekeeper, |history: &History| {
            history.kept(root.as_ref(), number)?;
            Ok::<_, CheckpointError>(Some(Body::Pin(body.clone())))
        })?;
        if let Some(here) = by_prefix(self.local_history()).get(prefix).copied() {
            append(&mut self.view, Writer::Housekeeper, |history| {
                let live = history.commit(here).is_some_and(|record| !record.retired);
                live.then(|| Body::Pin(PinBody { commit: here, ..body.clone() }))
            })?;
        }
        let missing = || CheckpointError::NoSuchPin { root: self.location().into(), name: name.into() };
        self.remote().pin_list().into_iter().find(|pin| pin.name == name).ok_or_else(missing)
    }

    /// Takes a pin away at the remote and on this disk.
    ///
    /// # Errors
    /// [`CheckpointError::NoSuchPin`]; [`CheckpointError::Store`].
    pub fn unpin(&mut self, name: &str) -> Result<PinInfo> {
        self.refresh()?;
        let lists = [self.remote().pin_list(), self.local_history().pin_list()];
        let pin = lists.into_iter().flatten().find(|pin| pin.name == name);
        let unpin = |history: &History| history.pin(name).map(|_| Body::Unpin { name: name.into() });
        self.log.append(Writer::Housekeeper, |history| Ok::<_, CheckpointError>(unpin(history)))?;
        append(&mut self.view, Writer::Housekeeper, unpin)?;
        pin.ok_or_else(|| CheckpointError::NoSuchPin { root: self.location().into(), name: name.into() })
    }

    /// Marks every commit of a step after `step` suspect at the remote: the run goes back to that step. What waits is
    /// handed over first. Returns their steps, ascending. Doing it again adds nothing.
    ///
    /// # Errors
    /// [`CheckpointError::Store`] when the remote does not answer.
    pub fn leave_after(&mut self, step: Step, why: &str) -> Result<Vec<Step>> {
        self.hand_over_unless_fenced()?;
        let later = self.remote().commits().filter(|(_, record)| record.body.step > step && !record.retired);
        let later: Vec<(u64, Step)> = later.map(|(number, record)| (number, record.body.step)).collect();
        let mut left = Vec::new();
        for (number, step) in later {
            if self.mark_suspect(number, why)? {
                left.push(step);
            }
        }
        left.sort_unstable();
        Ok(left)
    }

    /// What a checkpoint of the truth consists of, from this disk or from the remote.
    ///
    /// # Errors
    /// [`CheckpointError::Damaged`]; [`CheckpointError::Store`] when the remote does not answer.
    pub fn manifest(&self, prefix: &str) -> Result<Manifest> {
        let body = self.body_there(prefix)?;
        let damaged = |defect| CheckpointError::Damaged { step: body.step, defect };
        self.remote_manifest(body)?.ok_or_else(|| damaged(no_manifest()))?.map_err(damaged)
    }

    /// The newest commit of the truth of these bytes.
    pub(super) fn body_there(&self, prefix: &str) -> Result<&CommitBody> {
        let number = by_prefix(self.remote()).get(prefix).copied().unwrap_or(0);
        let missing = || CheckpointError::NoSuchCommit { root: self.location().into(), number };
        Ok(&self.remote().commit(number).ok_or_else(missing)?.body)
    }

    /// The remote's log as it is once what waits was handed over, and the prefixes of what cannot be.
    fn once_handed_over(&self) -> (History, BTreeSet<String>) {
        let mut history = self.remote().clone();
        let mut lost = BTreeSet::new();
        let mut next = self.log.position().tail;
        for number in self.waiting() {
            let Some(record) = self.local_history().commit(number) else { continue };
            let claimed = history.claimed();
            let holds = claimed.is_some_and(|claim| {
                claim.epoch == record.body.epoch && claim.attempt_id == record.body.attempt_id
            });
            if !holds {
                lost.insert(record.body.object_prefix.clone());
                continue;
            }
            let Some(body) = self.body_in(&history, number) else { continue };
            next += 1;
            let entry = Entry::new(next, String::new(), record.at.clone(), Body::Commit(body));
            history.take(Item::Entry(entry));
            if let Some(why) = &record.suspect {
                let entry = Entry::new(next + 1, String::new(), record.at.clone(), Body::suspect(next, why));
                history.take(Item::Entry(entry));
                next += 1;
            }
        }
        for (commit, mark) in self.marks_for(&history) {
            next += 1;
            let at = history.commit(commit).map(|record| record.at.clone()).unwrap_or_default();
            history.take(Item::Entry(Entry::new(next, String::new(), at, mark)));
        }
        (history, lost)
    }

    /// How many bytes of a commit must be fetched, or why they cannot be: the decision of
    /// [`Replica::gather`](super::gather) without the work.
    fn nearest(&self, body: &CommitBody, uploaded: bool) -> Result<Result<u64, String>> {
        let disk = self.view.disk().as_ref();
        let mut defect = no_manifest();
        for folder in self.copies_here(&body.object_prefix) {
            match (verify(disk, &folder, body), self.suspect_here(&body.object_prefix)) {
                (Ok(_), Some(why)) => return Ok(Err(format!("marked suspect on this disk: {why}"))),
                (Ok(_), None) => return Ok(Ok(0)),
                (Err(found), _) => defect = found,
            }
        }
        if !uploaded {
            return Ok(Err(format!("its bytes never reached the remote, and here {defect}")));
        }
        Ok(self.fetch_bytes(body)?.map_err(|defect| format!("at the remote, {defect}")))
    }

    /// Bytes that must come from the remote to make a checkpoint whole here, or what of it is not there.
    fn fetch_bytes(&self, body: &CommitBody) -> Result<Result<u64, Defect>> {
        let copies = self.copies_here(&body.object_prefix);
        let disk = self.view.disk().as_ref();
        let here = copies.iter().find_map(|folder| verify_manifest(disk, folder, body).ok());
        let manifest = match here {
            Some(manifest) => manifest,
            None => match self.remote_manifest(body)? {
                None => return Ok(Err(no_manifest())),
                Some(Err(defect)) => return Ok(Err(defect)),
                Some(Ok(manifest)) => manifest,
            },
        };
        let mut fetch_bytes = 0;
        for file in &manifest.files {
            if self.is_whole_here(&body.object_prefix, &copies, file) {
                continue;
            }
            if let Err(defect) = self.size_there(body, file)? {
                return Ok(Err(defect));
            }
            fetch_bytes += file.size_bytes;
        }
        Ok(Ok(fetch_bytes))
    }

    /// Whether the remote has a file in the size that was committed, below one of its names.
    pub(super) fn size_there(&self, body: &CommitBody, file: &ManifestFile) -> Result<Result<(), Defect>> {
        self.at_each_name(body, file, |name| {
            Ok(self.files.size_bytes(name)?.map(|found_bytes| check_size(file, found_bytes)))
        })
    }

    /// Calls `look` with each name below which a file may be at the remote, until it is whole there.
    pub(super) fn at_each_name(
        &self,
        body: &CommitBody,
        file: &ManifestFile,
        look: impl Fn(&str) -> Result<Option<Result<(), Defect>>>,
    ) -> Result<Result<(), Defect>> {
        let mut defect = Defect::Missing { name: file.name.clone() };
        for name in keys_of(&body.object_prefix, file) {
            match look(&name)? {
                None => {}
                Some(Ok(())) => return Ok(Ok(())),
                Some(Err(found)) => defect = found,
            }
        }
        Ok(Err(defect))
    }

    /// Reads one file of a checkpoint at the remote and compares its hash.
    fn read_there(
        &self,
        body: &CommitBody,
        file: &ManifestFile,
        arrived: &dyn Fn(u64),
    ) -> Result<Result<(), Defect>> {
        self.at_each_name(body, file, |name| {
            let mut hasher = blake3::Hasher::new();
            let fetched = self.files.fetch(name, file.size_bytes, &mut |bytes| {
                hasher.update(bytes);
                arrived(bytes.len() as u64);
                Ok(())
            })?;
            let checked = |found_bytes| {
                check_size(file, found_bytes).and_then(|()| check_hash(file, &hasher.finalize()))
            };
            Ok(fetched.map(checked))
        })
    }
}
