//! Before a launch: which attempt may write, and what it continues from.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use trackway_core::{AttemptId, RunId, Step};
use trackway_store::Writer;

use super::gather::NotGathered;
use super::replica::{Replica, by_prefix};
use super::walk::{Stop, Walk};
use crate::error::{CheckpointError, Fallback, Result};
use crate::history::entry::{Adopt, Body, ClaimBody, CommitBody};
use crate::history::{Candidate, CheckpointInfo};
use crate::housekeeping::keeper::append;
use crate::retention::Retention;

/// The most commits that are adopted: the newest that is whole, and older ones on this disk to fall back on.
const MAX_ADOPTED: usize = 4;

/// Where the bytes were found that an attempt continues from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FetchSource {
    /// On this disk.
    Local,
    /// At the remote.
    Remote,
}

impl FetchSource {
    /// Where they are, of which so many come over the wire.
    pub(super) fn of(fetched_bytes: u64) -> Self {
        if fetched_bytes == 0 { Self::Local } else { Self::Remote }
    }
}

/// The checkpoint that an attempt continues from.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Target {
    pub step: Step,
    /// The SHA-256 of the manifest.
    pub manifest_sha256: String,
    /// The attempt that wrote it.
    pub attempt_id: AttemptId,
    /// Its number in the remote's log.
    pub number_there: u64,
    /// Where its bytes were found.
    pub source: FetchSource,
    /// Bytes that came over the wire.
    pub fetched_bytes: u64,
}

/// What the fetch found and did.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Fetched {
    /// The epoch that the attempt was granted.
    pub epoch: u64,
    /// What it continues from; `None`: nothing was ever committed, or nothing that is not unsafe.
    pub target: Option<Target>,
    /// Newer checkpoints of the remote that were skipped, newest first, and why.
    pub fallbacks: Vec<Fallback>,
    /// Committed steps that are trained again because of those.
    pub lost_steps: Step,
    /// Commits of this disk that never became part of the truth: another attempt was granted the run meanwhile.
    pub fenced: Vec<CheckpointInfo>,
    /// Steps of training that are lost with them.
    pub fenced_steps: Step,
}

/// The first candidate whose bytes are available, and what was found on the way.
#[derive(Default)]
struct TargetSearch {
    /// With the folder in which its files were assembled.
    target: Option<(Target, PathBuf)>,
    fallbacks: Vec<Fallback>,
    newest_step: Option<Step>,
}

/// A commit of the truth whose files have their place here.
struct PlacedCommit {
    number_there: u64,
    body: CommitBody,
    folder: String,
}

impl Replica {
    /// Prepares this disk for an attempt: its epoch claimed there and here, and its ordinary resume leading to the
    /// newest checkpoint of the remote whose bytes are available completely.
    ///
    /// `at_least` is the lowest epoch to claim. Calling it again for the same attempt gives the same epoch. Unless
    /// everything is kept (no `policy`), copies on this disk of which there is another are retired; the attempt's own
    /// retention deletes them.
    ///
    /// # Errors
    /// [`CheckpointError::Store`] when the remote is out of reach: then no epoch was granted, and the attempt must not
    /// run. [`CheckpointError::NothingVerifies`], [`CheckpointError::RemoteEmpty`], [`CheckpointError::WrongRun`],
    /// [`CheckpointError::Storage`].
    pub fn fetch_target(
        &mut self,
        run_id: RunId,
        attempt_id: AttemptId,
        at_least: u64,
        policy: Option<&Retention>,
    ) -> Result<Fetched> {
        self.refresh()?;
        self.refuse_empty_remote()?;
        self.hand_over_unless_fenced()?;
        // Higher than what was claimed on this disk too: an attempt of a time before there was a remote.
        let local_epoch = self.local_history().claimed().map_or(0, |claim| claim.epoch);
        let mine = self.local_history().claimed().is_some_and(|claim| claim.attempt_id == attempt_id);
        let at_least = at_least.max(if mine { local_epoch } else { local_epoch + 1 });
        // The remote before this disk: it decides between machines, and grants the epoch.
        let epoch = self.claim_remote(run_id, attempt_id, at_least)?;
        let claim = ClaimBody { epoch, run_id, attempt_id };
        self.view.log.claim(&claim.holder(), &Body::Claim(claim), |_| Ok::<_, CheckpointError>(()))?;
        // Claimed at both places: no commit of an earlier epoch can be added any more.
        self.refresh()?;
        let fenced = self.fenced();
        let fenced_steps = self.fenced_steps(&fenced);
        let TargetSearch { target, fallbacks, newest_step } = self.find_target()?;
        if target.is_none() && !fallbacks.is_empty() && !Fallback::only_unsafe(&fallbacks) {
            return Err(CheckpointError::NothingVerifies { fallbacks });
        }
        let adopted = self.put_adopted_in_place(&claim, target.as_ref())?;
        // Another attempt may have been granted the run while bytes were fetched; then this one must not begin.
        if let Some((found_epoch, found_attempt)) = self.fenced_by(epoch, attempt_id)? {
            return Err(CheckpointError::Fenced { epoch, found_epoch, found_attempt });
        }
        // After the files have their place: from these entries on a resume relies on them.
        self.adopt(&claim, adopted)?;
        if policy.is_some() {
            self.retire_other_copies()?;
        }
        // Last: what was assembled there is in its place now.
        self.clear_incoming();
        let target = target.map(|(target, _)| target);
        let lost_steps =
            newest_step.zip(target.as_ref()).map_or(0, |(newest, target)| newest.saturating_sub(target.step));
        Ok(Fetched { epoch, target, fallbacks, lost_steps, fenced, fenced_steps })
    }

    /// The remote's log cannot begin under a root that has commits: that is another remote, or one that was emptied.
    ///
    /// # Errors
    /// [`CheckpointError::RemoteEmpty`].
    pub fn refuse_empty_remote(&self) -> Result<()> {
        let committed = self.local_history().commits().any(|(_, record)| !record.retired);
        if !self.remote_is_empty() || !committed {
            return Ok(());
        }
        Err(CheckpointError::RemoteEmpty { location: self.location(), root: self.view.root().into() })
    }

    /// Local commits that can never become part of the truth.
    fn fenced(&self) -> Vec<CheckpointInfo> {
        let waiting = self.waiting();
        let lost = |info: &CheckpointInfo| waiting.contains(&info.number);
        self.view.list().into_iter().filter(lost).collect()
    }

    /// Steps from where the lost branch left the truth to its end.
    fn fenced_steps(&self, fenced: &[CheckpointInfo]) -> Step {
        let Some(newest) = fenced.iter().map(|info| info.step).max() else { return 0 };
        let parent = fenced.first().and_then(|info| info.parent);
        let left_at = parent.and_then(|parent| self.local_history().commit(parent));
        newest.saturating_sub(left_at.map_or(0, |record| record.body.step))
    }

    /// Walks the remote's log from its newest commit to the first whose bytes are available completely.
    fn find_target(&mut self) -> Result<TargetSearch> {
        let mut found = TargetSearch::default();
        let mut walk = Walk::along(self.remote());
        while let Some(stop) = self.next_stop(&mut walk, self.remote())? {
            found.newest_step = walk.newest_step;
            match stop {
                Stop::Passed(fallback) => found.fallbacks.push(fallback),
                Stop::Commit { number, body, uploaded } => match self.obtain(number, &body, uploaded)? {
                    Ok(target) => {
                        found.target = Some(target);
                        break;
                    }
                    Err(why) => found.fallbacks.push(Fallback::new(Some(body.step), why)),
                },
            }
        }
        Ok(found)
    }

    /// Assembles a commit from the nearest copies that verify, or returns why that is not possible. What is bad at the
    /// remote is marked there.
    fn obtain(
        &mut self,
        number: u64,
        body: &CommitBody,
        uploaded: bool,
    ) -> Result<Result<(Target, PathBuf), String>> {
        let gathered = match self.gather(body, uploaded)? {
            Ok(gathered) => gathered,
            Err(NotGathered { defect, at_remote: false }) => {
                return Ok(Err(format!("its bytes never reached the remote, and here {defect}")));
            }
            Err(NotGathered { defect, at_remote: true }) => {
                let why = format!("at the remote, {defect}");
                if defect.is_damage() {
                    self.mark_suspect(number, &why)?;
                }
                return Ok(Err(why));
            }
        };
        if gathered.whole_here
            && let Some(why) = self.suspect_here(&body.object_prefix)
        {
            // Its bytes are those that were committed: it is the state itself that is bad, wherever it is.
            self.mark_suspect(number, &why)?;
            return Ok(Err(format!("marked suspect on this disk: {why}")));
        }
        let target = Target {
            step: body.step,
            manifest_sha256: body.manifest_sha256.clone(),
            attempt_id: body.attempt_id,
            number_there: number,
            source: FetchSource::of(gathered.fetched_bytes),
            fetched_bytes: gathered.fetched_bytes,
        };
        Ok(Ok((target, gathered.folder)))
    }

    /// Why the newest local entry about these bytes calls them suspect.
    pub(super) fn suspect_here(&self, prefix: &str) -> Option<String> {
        let number = by_prefix(self.local_history()).get(prefix).copied()?;
        self.local_history().commit(number)?.suspect.clone()
    }

    /// Calls a commit suspect at the remote, unless it is or its files may be gone; whether it did.
    pub(super) fn mark_suspect(&mut self, number: u64, why: &str) -> Result<bool> {
        let marked = self.log.append(Writer::Housekeeper, |history| {
            let wanted = history.commit(number).is_some_and(|it| it.suspect.is_none() && !it.retired);
            Ok::<_, CheckpointError>(wanted.then(|| Body::suspect(number, why)))
        });
        Ok(marked?.is_some())
    }

    /// Gives the target, and older commits of the truth that this disk has, folders of this epoch; oldest first.
    fn put_adopted_in_place(
        &mut self,
        claim: &ClaimBody,
        target: Option<&(Target, PathBuf)>,
    ) -> Result<Vec<PlacedCommit>> {
        let Some((target, gathered)) = target else { return Ok(Vec::new()) };
        let ancestry = self.remote().ancestry(Some(target.number_there));
        let chain: Vec<u64> = ancestry.iter().filter_map(Candidate::number).collect();
        let mut placed = Vec::new();
        for number in chain {
            if placed.len() == MAX_ADOPTED {
                break;
            }
            let Some(body) = self.remote().commit(number).map(|record| record.body.clone()) else { continue };
            let folder = match number == target.number_there {
                true => gathered.clone(),
                // An older one to fall back on is taken when this disk has all of it, and not fetched.
                false => match self.gather(&body, false)? {
                    Ok(older) => older.folder,
                    Err(_) => continue,
                },
            };
            placed.push(self.place(claim, number, body, &folder)?);
        }
        // Oldest first: an entry names its parent by a number that is there.
        placed.reverse();
        Ok(placed)
    }

    /// `begin` comes first: what a crash leaves in the new place is found by it.
    fn place(
        &mut self,
        claim: &ClaimBody,
        number_there: u64,
        body: CommitBody,
        gathered: &Path,
    ) -> Result<PlacedCommit> {
        let begin = claim.begin(body.step, self.ids.as_ref());
        append(&mut self.view, Writer::Trainer(&claim.holder()), |_| Some(Body::Begin(begin.clone())))?;
        self.put_in_place(gathered, &begin.object_prefix)?;
        Ok(PlacedCommit { number_there, body, folder: begin.object_prefix })
    }

    /// Records in the local log what the attempt continues from, oldest first: nothing before these entries counts.
    fn adopt(&mut self, claim: &ClaimBody, placed: Vec<PlacedCommit>) -> Result<()> {
        let ClaimBody { epoch, run_id, attempt_id } = *claim;
        let mut left = placed.len();
        let adopt = |complete| Adopt {
            epoch,
            run_id,
            attempt_id,
            commit: None,
            folder: None,
            number_there: None,
            complete,
        };
        self.add_adopt(claim, adopt(left == 0))?;
        let mut parent = None;
        for PlacedCommit { number_there, body, folder } in placed {
            left -= 1;
            parent = Some(self.add_adopt(
                claim,
                Adopt {
                    commit: Some(CommitBody { parent, ..body }),
                    folder: Some(folder),
                    number_there: Some(number_there),
                    ..adopt(left == 0)
                },
            )?);
        }
        self.note_uploads()
    }

    /// Retires commits of earlier epochs whose files are also in a folder of this epoch, or are at the remote, or were
    /// deleted there. What is the only copy, lost work among it, stays until it is old.
    fn retire_other_copies(&mut self) -> Result<()> {
        let there = by_prefix(self.remote());
        let elsewhere = |prefix: &str| {
            let record = there.get(prefix).and_then(|number| self.remote().commit(*number));
            record.is_some_and(|record| record.uploaded_to.is_some() || record.retired)
        };
        let commits: Vec<u64> = {
            let history = self.view.history();
            let before = history.truth_begins();
            let adopted: BTreeSet<&str> = history
                .commits()
                .filter(|(number, _)| *number > before)
                .map(|(_, record)| record.body.object_prefix.as_str())
                .collect();
            let old = history.commits().filter(|(number, record)| *number < before && !record.retired);
            let copied = |prefix: &str| adopted.contains(prefix) || elsewhere(prefix);
            old.filter(|(_, record)| copied(&record.body.object_prefix)).map(|(number, _)| number).collect()
        };
        append(&mut self.view, Writer::Housekeeper, |history| {
            let unpinned = |number: &&u64| history.pins().all(|pin| pin.body.commit != **number);
            let commits: Vec<u64> = commits.iter().filter(unpinned).copied().collect();
            (!commits.is_empty()).then_some(Body::Retire { commits, swept: Vec::new() })
        })
        .map(drop)
    }

    fn add_adopt(&mut self, claim: &ClaimBody, adopt: Adopt) -> Result<u64> {
        let body = Body::Adopt(adopt);
        let number = append(&mut self.view, Writer::Trainer(&claim.holder()), |_| Some(body.clone()))?;
        Ok(number.expect("the entry is always decided"))
    }
}
