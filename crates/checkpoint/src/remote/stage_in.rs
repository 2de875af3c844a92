//! Before a launch: which attempt may write, and what it goes on from.

use trackway_core::{AttemptId, RunId, Step};
use trackway_store::{Claim, Writer};

use super::replica::{Replica, by_prefix, holder};
use crate::entry::{Adopt, Body, ClaimBody, CommitBody};
use crate::error::{CheckpointError, Fallback};
use crate::history::{Candidate, CheckpointInfo, History};
use crate::verify::{Defect, verify, verify_manifest};

/// The most commits that are adopted: the newest that is whole, and older ones on this disk to fall back on.
const MAX_ADOPTED: usize = 4;

/// Where the bytes were found that an attempt goes on from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// On this disk.
    Local,
    /// At the remote.
    Remote,
}

/// What an attempt goes on from.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Target {
    /// The step.
    pub step: Step,
    /// The SHA-256 of the manifest.
    pub manifest_sha256: String,
    /// The attempt that wrote it.
    pub attempt_id: AttemptId,
    /// Its number in the remote's log.
    pub number_there: u64,
    /// Where its bytes were found.
    pub source: Source,
    /// Bytes that came over the wire.
    pub fetched_bytes: u64,
}

/// What staging in found and did.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct StagedIn {
    /// The epoch that the attempt was granted.
    pub epoch: u64,
    /// What it goes on from; `None`: nothing was ever committed.
    pub target: Option<Target>,
    /// Newer checkpoints of the truth that were passed over, newest first, and why.
    pub fallbacks: Vec<Fallback>,
    /// Committed steps that are trained again because of those.
    pub lost_steps: Step,
    /// Commits of this disk that never became part of the truth: another attempt was granted the run meanwhile.
    pub fenced: Vec<CheckpointInfo>,
    /// Steps of training that are lost with them.
    pub fenced_steps: Step,
}

/// The first candidate whose bytes can be had, and what was found on the way.
#[derive(Default)]
struct Found {
    target: Option<Target>,
    fallbacks: Vec<Fallback>,
}

impl Replica {
    /// Puts this disk in the state that an attempt shall find: its epoch claimed there and here, and its ordinary
    /// resume leading to the newest checkpoint of the truth whose bytes can be had whole.
    ///
    /// `at_least` is the lowest epoch to claim. Calling it again for the same attempt gives the same epoch.
    ///
    /// # Errors
    /// [`CheckpointError::Store`] when the remote is out of reach: then nobody granted an epoch, and the attempt must not
    /// run. [`CheckpointError::NothingVerifies`], [`CheckpointError::RemoteEmpty`], [`CheckpointError::WrongRun`],
    /// [`CheckpointError::Storage`].
    pub fn stage_in(
        &mut self,
        run_id: RunId,
        attempt_id: AttemptId,
        at_least: u64,
    ) -> Result<StagedIn, CheckpointError> {
        self.refresh()?;
        self.refuse_empty_remote()?;
        let handed_over = self.hand_over();
        if let Err(error) = handed_over
            && !matches!(error, CheckpointError::Fenced { .. })
        {
            return Err(error);
        }
        // Higher than what was claimed on this disk too: an attempt of a time before there was a remote.
        let local_epoch = self.local_history().claimed().map_or(0, |claim| claim.epoch);
        let mine = self.local_history().claimed().is_some_and(|claim| claim.attempt_id == attempt_id);
        let at_least = at_least.max(if mine { local_epoch } else { local_epoch + 1 });
        let epoch = self.claim_remote(run_id, attempt_id, at_least)?;
        let claim = ClaimBody { epoch, run_id, attempt_id };
        self.view.log.claim(&holder(&claim), &Body::Claim(claim), |_| Ok::<_, CheckpointError>(()))?;
        // Claimed at both places: no commit of an earlier epoch can come to stand any more.
        self.refresh()?;
        let fenced = self.fenced();
        let fenced_steps = self.fenced_steps(&fenced);
        let found = self.find_target()?;
        let newest_step = self.remote().newest_step();
        let Found { target, fallbacks } = found;
        if target.is_none() && !fallbacks.is_empty() {
            return Err(CheckpointError::NothingVerifies { fallbacks });
        }
        self.adopt(&claim, target.as_ref())?;
        self.clear_incoming();
        let lost_steps =
            newest_step.zip(target.as_ref()).map_or(0, |(newest, target)| newest.saturating_sub(target.step));
        Ok(StagedIn { epoch, target, fallbacks, lost_steps, fenced, fenced_steps })
    }

    /// The truth does not begin anew under a root that has commits: that is another remote, or one that was emptied.
    fn refuse_empty_remote(&self) -> Result<(), CheckpointError> {
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

    /// Walks the truth from its newest commit to the first whose bytes can be had whole.
    fn find_target(&mut self) -> Result<Found, CheckpointError> {
        let mut found = Found::default();
        let mut candidates = Vec::new();
        for candidate in self.remote().candidates() {
            candidates.push(match candidate {
                Candidate::Passed(fallback) => Err(fallback),
                Candidate::Commit { number, body } => Ok((number, body.clone())),
            });
        }
        for candidate in candidates {
            match candidate {
                Err(fallback) => found.fallbacks.push(fallback),
                Ok((number, body)) => match self.obtain(number, &body)? {
                    Ok(target) => {
                        found.target = Some(target);
                        break;
                    }
                    Err(why) => found.fallbacks.push(Fallback { step: Some(body.step), why }),
                },
            }
        }
        Ok(found)
    }

    /// The nearest copy of a commit that verifies, or why there is none. What is bad at the remote is marked there.
    fn obtain(&mut self, number: u64, body: &CommitBody) -> Result<Result<Target, String>, CheckpointError> {
        let target = |source, fetched_bytes| Target {
            step: body.step,
            manifest_sha256: body.manifest_sha256.clone(),
            attempt_id: body.attempt_id,
            number_there: number,
            source,
            fetched_bytes,
        };
        let here = verify(self.view.disk().as_ref(), self.view.root(), body);
        if here.is_ok() {
            return Ok(match self.suspect_here(&body.object_prefix) {
                None => Ok(target(Source::Local, 0)),
                // Its bytes are those that were committed: it is the state itself that is bad, wherever it is.
                Some(why) => {
                    self.mark_suspect(number, &why)?;
                    Err(format!("marked suspect on this disk: {why}"))
                }
            });
        }
        let uploaded = self.remote().commit(number).is_some_and(|record| record.uploaded_to.is_some());
        if !uploaded {
            let here = here.err().map(|defect| defect.to_string()).unwrap_or_default();
            return Ok(Err(format!("its bytes never came to the remote, and here {here}")));
        }
        Ok(match self.download(body)? {
            Ok(fetched_bytes) => Ok(target(Source::Remote, fetched_bytes)),
            Err(defect) => {
                if defect.is_damage() {
                    self.mark_suspect(number, &format!("at the remote, {defect}"))?;
                }
                Err(format!("at the remote, {defect}"))
            }
        })
    }

    /// Why the newest local entry about these bytes calls them suspect.
    fn suspect_here(&self, prefix: &str) -> Option<String> {
        let number = by_prefix(self.local_history()).get(prefix).copied()?;
        self.local_history().commit(number)?.suspect.clone()
    }

    fn mark_suspect(&mut self, number: u64, why: &str) -> Result<(), CheckpointError> {
        self.log
            .append(Writer::Housekeeper, |history| {
                let wanted = history.commit(number).is_some_and(|it| it.suspect.is_none() && !it.retired);
                Ok::<_, CheckpointError>(wanted.then(|| Body::suspect(number, why)))
            })
            .map(drop)
    }

    /// Says in the local log what the attempt goes on from, oldest first: nothing before these entries counts.
    fn adopt(&mut self, claim: &ClaimBody, target: Option<&Target>) -> Result<(), CheckpointError> {
        let mut adopted = target.map_or_else(Vec::new, |target| self.to_adopt(target));
        adopted.reverse();
        let mine = holder(claim);
        self.add_adopt(&mine, claim, None, None)?;
        let mut parent = None;
        for (number_there, body) in adopted {
            let body = CommitBody { parent, ..body };
            parent = Some(self.add_adopt(&mine, claim, Some(body), Some(number_there))?);
        }
        self.note_uploads()
    }

    fn add_adopt(
        &mut self,
        mine: &Claim,
        claim: &ClaimBody,
        commit: Option<CommitBody>,
        number_there: Option<u64>,
    ) -> Result<u64, CheckpointError> {
        let ClaimBody { epoch, run_id, attempt_id } = *claim;
        let adopt = Adopt { epoch, run_id, attempt_id, commit, number_there };
        let number = self.view.log.append(Writer::Trainer(mine), |_: &History| {
            Ok::<_, CheckpointError>(Some(Body::Adopt(adopt.clone())))
        })?;
        Ok(number.expect("the entry is always decided"))
    }

    /// The target and older commits of the truth that this disk seems to have, newest first.
    fn to_adopt(&self, target: &Target) -> Vec<(u64, CommitBody)> {
        let chain = self.remote().live_chain();
        let from_target = chain.into_iter().skip_while(|number| *number != target.number_there);
        let body = |number| self.remote().commit(number).map(|record| (number, record.body.clone()));
        let here = |(number, body): &(u64, CommitBody)| {
            *number == target.number_there || self.seems_here(body).is_ok()
        };
        from_target.filter_map(body).filter(here).take(MAX_ADOPTED).collect()
    }

    /// Whether this disk has the manifest of a commit; the attempt itself verifies every byte that it resumes from.
    fn seems_here(&self, body: &CommitBody) -> Result<(), Defect> {
        let folder = self.view.root().join(&body.object_prefix);
        verify_manifest(self.view.disk().as_ref(), &folder, body).map(drop)
    }
}
