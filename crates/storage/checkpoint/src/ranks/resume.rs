use trackway_core::Step;
use trackway_formats::checkpoint_manifest::{Manifest, ManifestFile};

use crate::bulk::{LoadedFile, read_files, verify_files};
use crate::error::{CheckpointError, Defect, Fallback, RankError, Result};
use crate::history::entry::Body;
use crate::history::{RoundRecord, Stop};
use crate::ranks::root::RankedRoot;
use crate::ranks::vote::{Ballots, ResumeVote};
use crate::reading::load::LoadedCheckpoint;
use crate::reading::verify::verify_manifest;

impl RankedRoot {
    /// The checkpoint that all ranks continue from: the newest one committed when the round began for which every rank
    /// verified its files. Every rank calls this and gets the same answer; rank 0 marks what does not verify as
    /// suspect. `None`: nothing was ever committed, or nothing that is not unsafe. With another world size than that of
    /// the checkpoint, files are distributed over the ranks for verification.
    ///
    /// It may be called again, also by a rank that was started again, until the ranks have committed something.
    ///
    /// # Errors
    /// [`RankError::Silent`] with the ranks that did not vote: no rank resumes. [`RankError::RoundIsOver`].
    /// [`CheckpointError::NothingVerifies`] and others as [`crate::CheckpointRoot::resume_target`].
    pub fn resume_target(&mut self) -> Result<Option<LoadedCheckpoint>> {
        Ok(self.resume_by(false)?.map(|(target, _)| target))
    }

    /// The same, with the files that this rank needs in memory: its own, and those that all ranks have alike; with
    /// another world size than that of the checkpoint, all files. Every byte is read once, and checked while it is
    /// read.
    ///
    /// # Errors
    /// As [`RankedRoot::resume_target`]; [`CheckpointError::Damaged`] when this rank voted before it was started again,
    /// and what it voted for does not verify any more.
    pub fn resume_read(&mut self) -> Result<Option<(LoadedCheckpoint, Vec<LoadedFile>)>> {
        self.resume_by(true)
    }

    fn resume_by(&mut self, reading: bool) -> Result<Option<(LoadedCheckpoint, Vec<LoadedFile>)>> {
        // As it was when the round began: every rank must try the same commits in the same order.
        let record = self.round_record()?;
        let mut fallbacks = Vec::new();
        for stop in &record.stops {
            let number = match stop {
                Stop::Commit(number) => *number,
                Stop::Passed(fallback) => {
                    fallbacks.push(fallback.clone());
                    continue;
                }
            };
            let ballots = Ballots::on_resume(record.number, number);
            let read = self.vote_on(&ballots, number, reading)?;
            match self.agree_on(&ballots, number)? {
                None => {
                    let target = self.load(number)?;
                    let files = match read {
                        Some(files) => files,
                        None if reading => self.read_again(number, target.step)?,
                        None => Vec::new(),
                    };
                    self.root.go_on_from(Some(&target));
                    let newest_step = record.newest_step.unwrap_or(target.step);
                    let lost_steps = newest_step.saturating_sub(target.step);
                    return Ok(Some((LoadedCheckpoint { fallbacks, lost_steps, ..target }, files)));
                }
                Some(why) => fallbacks.push(Fallback::new(self.step_of(number), why)),
            }
        }
        self.root.go_on_from(None);
        match fallbacks.is_empty() || Fallback::only_unsafe(&fallbacks) {
            true => Ok(None),
            false => Err(CheckpointError::NothingVerifies { fallbacks }),
        }
    }

    /// The round, unless its ranks have already continued from what it resumed.
    fn round_record(&mut self) -> Result<RoundRecord> {
        self.refresh()?;
        let history = self.root.view.history();
        let record = history.round().expect("a root is open only in a round, and rounds are never forgotten");
        let since = history.commits().find(|(number, commit)| {
            *number > record.number && commit.body.attempt_id == self.round.attempt_id
        });
        match since {
            Some((_, commit)) => Err(RankError::RoundIsOver { step: commit.body.step }.into()),
            None => Ok(record.clone()),
        }
    }

    fn step_of(&self, number: u64) -> Option<Step> {
        self.root.view.history().commit(number).map(|record| record.body.step)
    }

    /// Why not all ranks can resume a commit; `None`: they can.
    fn agree_on(&mut self, ballots: &Ballots, number: u64) -> Result<Option<String>> {
        let votes = self.gather(ballots, |_: &ResumeVote| false)?;
        let missing: Vec<u32> =
            (0..self.group.world_size()).filter(|rank| !votes.contains_key(rank)).collect();
        let mut defects = Vec::new();
        let mut damaged_by_any = false;
        for (rank, vote) in votes {
            match vote {
                Ok(ResumeVote::Sound { .. }) => {}
                Ok(ResumeVote::Defect { damaged, why, .. }) => {
                    damaged_by_any |= damaged;
                    defects.push(format!("rank {rank}: {why}"));
                }
                Err(why) => return Err(RankError::DamagedVote { name: ballots.name(rank), why }.into()),
            }
        }
        if !missing.is_empty() {
            let step = self.step_of(number).unwrap_or_default();
            let what = format!("report whether the checkpoint of step {step} verifies");
            let seconds = self.group.wait_seconds();
            return Err(RankError::Silent { ranks: missing, what, seconds }.into());
        }
        let why = (!defects.is_empty()).then(|| defects.join("; "));
        // Files that one rank cannot reach are not damaged: only what is bad for all is marked.
        if let Some(why) = why.as_deref().filter(|_| damaged_by_any) {
            self.suspect(number, why)?;
        }
        Ok(why)
    }

    /// Rank 0 marks a commit. As with one process, a full disk must not keep a run from resuming.
    fn suspect(&mut self, number: u64, why: &str) -> Result<()> {
        let marked = self.root.view.history().commit(number).is_none_or(|record| record.suspect.is_some());
        if !self.group.coordinates() || marked {
            return Ok(());
        }
        match self.root.append(Body::suspect(number, why)) {
            Err(error @ CheckpointError::Fenced { .. }) => Err(error),
            _ => Ok(()),
        }
    }

    /// Votes once and for all whether this rank's files of a commit verify. An earlier vote counts. Returns the files
    /// if they were read for it.
    fn vote_on(&self, ballots: &Ballots, commit: u64, reading: bool) -> Result<Option<Vec<LoadedFile>>> {
        let rank = self.group.rank();
        let backend = self.root.view.log.backend();
        if ballots.read::<ResumeVote>(backend.as_ref(), rank)?.is_some() {
            return Ok(None);
        }
        let checked = if reading { self.read_share(commit).map(Some) } else { self.verify_share(commit) };
        let (vote, files) = match checked {
            Ok(files) => (ResumeVote::Sound { rank, commit }, files),
            Err(defect) => {
                let (damaged, why) = (defect.is_damage(), defect.to_string());
                (ResumeVote::Defect { rank, commit, damaged, why }, None)
            }
        };
        self.cast(ballots, vote)?;
        Ok(files)
    }

    fn read_again(&self, number: u64, step: Step) -> Result<Vec<LoadedFile>> {
        self.read_share(number).map_err(|defect| CheckpointError::Damaged { step, defect })
    }

    /// Reads what this rank needs. The rest belongs to other ranks, which read it; when the world size differs it
    /// belongs to none, and then all read everything.
    fn read_share(&self, number: u64) -> Result<Vec<LoadedFile>, Defect> {
        let (folder, manifest) = self.manifest(number)?;
        let same_ranks = manifest.world_size == self.group.world_size();
        let rank = self.group.rank();
        let needed = |file: &&ManifestFile| !same_ranks || file.rank.is_none_or(|owner| owner == rank);
        let files: Vec<ManifestFile> = manifest.files.iter().filter(needed).cloned().collect();
        read_files(self.root.view.disk().as_ref(), &folder, &files)
    }

    fn verify_share(&self, number: u64) -> Result<Option<Vec<LoadedFile>>, Defect> {
        let (folder, manifest) = self.manifest(number)?;
        let share: Vec<ManifestFile> = self.share_of(&manifest).cloned().collect();
        verify_files(self.root.view.disk().as_ref(), &folder, &share).map(|()| None)
    }

    fn manifest(&self, number: u64) -> Result<(std::path::PathBuf, Manifest), Defect> {
        let view = &self.root.view;
        let missing = || Defect::Missing { name: format!("commit {number}") };
        let record = view.history().commit(number).ok_or_else(missing)?;
        let folder = view.root().join(record.folder());
        let manifest = verify_manifest(view.disk().as_ref(), &folder, &record.body)?;
        Ok((folder, manifest))
    }

    /// The files this rank verifies: its own, and of those that have no owner among these ranks every n-th.
    fn share_of<'a>(&self, manifest: &'a Manifest) -> impl Iterator<Item = &'a ManifestFile> + use<'a> {
        let (rank, world_size) = (self.group.rank(), self.group.world_size());
        let same_ranks = manifest.world_size == world_size;
        let dealt = move |index: usize| (index % world_size as usize) as u32;
        let files = manifest.files.iter().enumerate();
        files
            .filter(move |(index, file)| file.rank.filter(|_| same_ranks).unwrap_or(dealt(*index)) == rank)
            .map(|(_, file)| file)
    }

    /// Opens a commit that all ranks verified.
    fn load(&self, number: u64) -> Result<LoadedCheckpoint> {
        let step = self.root.view.commit_step(number)?;
        let loaded = self.manifest(number).and_then(|(_, manifest)| self.root.view.loaded(number, manifest));
        loaded.map_err(|defect| CheckpointError::Damaged { step, defect })
    }
}
