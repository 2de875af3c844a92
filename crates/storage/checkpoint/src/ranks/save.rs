use std::collections::BTreeMap;
use std::sync::Arc;

use trackway_core::Step;
use trackway_formats::checkpoint_manifest::{Manifest, ManifestFile};
use trackway_store::{Writer, new_ulid};

use crate::bulk::{DraftSave, Figures, Saved};
use crate::error::{CheckpointError, RankError, Result};
use crate::history::entry::{Begin, BeginRanks, Body, CommitBody};
use crate::history::{BeginRecord, History};
use crate::ranks::assemble::assemble;
use crate::ranks::decliner::Decliner;
use crate::ranks::root::RankedRoot;
use crate::ranks::vote::{Agreed, Ballot, Ballots, SaveVote};
use crate::ranks::wait::wait_for;
use crate::root::{Commit, commit, written_bytes};
use crate::writing::writer::CheckpointWriter;

/// How many times as long as rank 0 waits for votes the others wait for its decision: it may reach its files later than
/// they do.
const OUTCOME_WAITS: f64 = 2.0;
/// How long a rank that declined steps looks for their begins when a save is over, so that rank 0 need not wait for the
/// next save to learn it.
const LINGER_SECONDS: f64 = 1.0;

/// What one rank saves.
#[derive(Debug, Clone, Copy)]
pub struct RankedSave<'a> {
    /// The step whose end it holds; the same on every rank.
    pub step: Step,
    /// Values of metrics at that step; those of rank 0 are stored.
    pub metrics: &'a [(&'a str, f64)],
    /// Any bytes that give the position in the data of all ranks together; the same on every rank, or nothing is
    /// committed. What a rank needs for itself goes into a file.
    pub global_cursor: &'a [u8],
}

impl RankedRoot {
    /// Writes this rank's part of a checkpoint, which is committed when every rank has. All ranks call this for the
    /// same steps in the same order, also to try a step again. `fill` writes files called
    /// [`crate::RankGroup::file_name`]; those that all ranks have alike only rank 0 writes, under any other name. A
    /// rank may write none.
    ///
    /// Returns when the log has the outcome: every rank gets the same commit, or an error.
    ///
    /// # Errors
    /// [`RankError::Abandoned`]: nothing was committed, and why, with the ranks; training may continue.
    /// [`RankError::Silent`]: rank 0 did not answer within twice the time. The errors of
    /// [`crate::CheckpointRoot::save`].
    pub fn save(
        &mut self,
        save: &RankedSave<'_>,
        fill: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<()>,
    ) -> Result<Commit> {
        let started_micros = self.root.clock.monotonic_micros();
        let saved = if self.group.coordinates() {
            let saved = self.coordinate(save, fill);
            self.abandon_declined();
            saved
        } else {
            let saved = self.follow(save, fill);
            self.linger();
            saved
        };
        let (number, body, written_bytes) = saved?;
        Ok(commit(number, body, written_bytes, self.root.seconds_since(started_micros)))
    }

    /// The same for a draft: what a [`crate::bulk::BackgroundSaver`] calls.
    ///
    /// # Errors
    /// As [`RankedRoot::save`], and what `before_commit` returned, which is called when this rank's files are written.
    pub fn save_draft(
        &mut self,
        save: &DraftSave,
        before_commit: impl FnOnce() -> Result<()>,
    ) -> Result<Saved<Commit>> {
        let metrics: Vec<(&str, f64)> = save.metrics.iter().map(|(name, value)| (&**name, *value)).collect();
        let mut figures = Figures::default();
        let ranked = RankedSave { step: save.step(), metrics: &metrics, global_cursor: save.global_cursor() };
        let commit = self.save(&ranked, |writer| {
            writer.draft(save)?;
            figures = writer.figures();
            before_commit()
        })?;
        Ok(Saved { commit, figures })
    }

    /// A handle that declines steps for this rank: for a loop that skips a save because the one before is not done.
    /// Rank 0 begins and abandons what it declined when its save is over, so that no rank waits for it.
    #[must_use]
    pub fn decliner(&self) -> Decliner {
        self.declined.clone()
    }

    fn coordinate(
        &mut self,
        save: &RankedSave<'_>,
        fill: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<()>,
    ) -> Result<(u64, CommitBody, u64)> {
        let begin = self.new_begin(save.step);
        // Before any file: the entry names the folder, and the other ranks wait for it.
        let begun = self.root.append(Body::Begin(begin.clone()))?;
        let (manifest, manifest_sha256) = match self.write_with_all(begun, &begin, save, fill) {
            Ok(written) => written,
            Err(error) => return Err(self.give_up(begun, &begin.object_prefix, error.at_step(save.step))),
        };
        let body = self.root.commit_body(&manifest, manifest_sha256);
        let number = match self.root.commit(&body, &manifest) {
            Ok(number) => number,
            // The others go by the log: this rank must not fail where they find a commit.
            Err(error) => self.settle(begun, &begin.object_prefix, error)?,
        };
        let written_bytes = written_bytes(&manifest.files);
        self.root.committed(number, begin.object_prefix, manifest.files);
        // As with one process: the checkpoint is real whatever becomes of older ones.
        let _ = self.root.apply_retention();
        Ok((number, body, written_bytes))
    }

    /// Records in the log which steps rank 0 will not save. If that fails, the others learn it from the next save.
    fn abandon_declined(&mut self) {
        let steps = std::mem::take(&mut *self.declined.steps());
        for step in steps {
            let begun = self.root.append(Body::Begin(self.new_begin(step)));
            let why = format!("rank 0 did not save step {step}");
            let _ = begun.and_then(|begun| self.root.append(Body::abandon(begun, &why)));
        }
    }

    fn new_begin(&self, step: Step) -> Begin {
        let parent = self.root.parent;
        let ranks = BeginRanks { round: self.round.round, world_size: self.round.world_size, parent };
        Begin { ranks: Some(ranks), ..self.root.new_begin(step) }
    }

    fn write_with_all(
        &mut self,
        begun: u64,
        begin: &Begin,
        save: &RankedSave<'_>,
        fill: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<()>,
    ) -> Result<(Manifest, String)> {
        let files = self.write_share(&begin.object_prefix, fill)?;
        let agreed = self.agreed(begin, save);
        let ballots = Ballots::on_save(begun, &begin.object_prefix);
        // After the files are durable, which the vote promises.
        self.vote(&ballots, save.step, agreed.clone(), files)?;
        // One rank that failed decides: the others are not waited for.
        let votes = self.gather(&ballots, |vote| matches!(vote, SaveVote::Failed { .. }))?;
        let files = assemble(&agreed, votes, self.group.wait_seconds())
            .map_err(|why| RankError::Abandoned { step: save.step, why })?;
        if files.is_empty() {
            return Err(CheckpointError::Empty { step: save.step });
        }
        self.root.write_manifest(save.step, &begin.object_prefix, save.metrics, files)
    }

    /// Writes the files of this rank and makes them and their names durable.
    fn write_share(
        &self,
        object_prefix: &str,
        fill: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<()>,
    ) -> Result<Vec<ManifestFile>> {
        let files = self.root.write_files(object_prefix, fill)?;
        self.root.view.sync_folder(&self.root.view.root().join(object_prefix))?;
        Ok(files)
    }

    fn agreed(&self, begin: &Begin, save: &RankedSave<'_>) -> Agreed {
        Agreed {
            epoch: self.round.epoch,
            attempt_id: self.round.attempt_id,
            round: self.round.round,
            world_size: self.round.world_size,
            step: save.step,
            object_prefix: begin.object_prefix.clone(),
            cursor_blake3: blake3::hash(save.global_cursor).to_hex().to_string(),
            config_sha256: self.root.settings.config_sha256.clone(),
            data_sha256: self.root.settings.data_sha256.clone(),
        }
    }

    fn vote(&self, ballots: &Ballots, step: Step, agreed: Agreed, files: Vec<ManifestFile>) -> Result<()> {
        let rank = self.group.rank();
        let vote = SaveVote::Wrote { rank, agreed, files };
        if self.cast(ballots, vote.clone())? == vote {
            return Ok(());
        }
        Err(RankError::VotedAlready { rank, step }.into())
    }

    /// Casts a vote of this rank, and returns the vote that counts.
    pub(super) fn cast<B: Ballot>(&self, ballots: &Ballots, vote: B) -> Result<B> {
        let ulid = new_ulid(self.root.ids.as_ref());
        let at = self.root.clock.now().to_rfc3339();
        Ok(ballots.cast(self.root.view.log.backend().as_ref(), ulid, at, vote)?.body)
    }

    /// Waits until all ranks have voted, or one vote is such that no other matters; what is there then, by rank.
    pub(super) fn gather<B: Ballot>(
        &mut self,
        ballots: &Ballots,
        decides: impl Fn(&B) -> bool,
    ) -> Result<BTreeMap<u32, Result<B, String>>> {
        let mut votes = BTreeMap::new();
        let world_size = self.group.world_size();
        let backend = Arc::clone(self.root.view.log.backend());
        let clock = Arc::clone(&self.root.clock);
        wait_for(clock.as_ref(), self.group.wait_seconds(), || {
            self.refresh()?;
            for rank in 0..world_size {
                if !votes.contains_key(&rank)
                    && let Some(vote) = ballots.read(backend.as_ref(), rank)?
                {
                    votes.insert(rank, vote.map(|vote| vote.body));
                }
            }
            let decided = votes.values().any(|vote| vote.as_ref().map_or(true, &decides));
            Ok((decided || votes.len() == world_size as usize).then_some(()))
        })?;
        Ok(votes)
    }

    /// Records that what was begun will not be committed, then deletes its files: a process that finds the folder gone
    /// finds the reason in the log. Both may fail without harm, as with one process.
    fn give_up(&mut self, begun: u64, object_prefix: &str, error: CheckpointError) -> CheckpointError {
        let why = match &error {
            CheckpointError::Ranks(RankError::Abandoned { why, .. }) => why.clone(),
            other => format!("rank 0 failed: {other}"),
        };
        let _ = self.root.append(Body::abandon(begun, &why));
        let folder = self.root.view.root().join(object_prefix);
        if folder.exists() {
            let _ = self.root.view.remove_folder(&folder);
        }
        error
    }

    /// Finds out whether a commit exists whose answer is an error; when it does not, it never will.
    fn settle(&mut self, begun: u64, object_prefix: &str, error: CheckpointError) -> Result<u64> {
        let claim = self.root.claim.holder();
        let why = format!("rank 0 failed: {error}");
        let mut number = None;
        let abandoned = self.root.view.log.append(Writer::Trainer(&claim), |history: &History| {
            number = history.commit_below(object_prefix).map(|(number, _)| number);
            Ok::<_, CheckpointError>(number.is_none().then(|| Body::abandon(begun, &why)))
        });
        match (abandoned, number) {
            (Ok(None), Some(number)) => Ok(number),
            _ => Err(error),
        }
    }

    fn follow(
        &mut self,
        save: &RankedSave<'_>,
        fill: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<()>,
    ) -> Result<(u64, CommitBody, u64)> {
        let (begun, begin) = self.wait_for_begin(save.step)?;
        if begin.ranks.is_none_or(|ranks| ranks.parent != self.root.parent) {
            // This rank missed a commit; its unchanged files may differ from the ones that rank 0 shares with.
            self.root.parent_files = None;
        }
        let ballots = Ballots::on_save(begun, &begin.object_prefix);
        let voted = self.write_share(&begin.object_prefix, fill).and_then(|files| {
            self.vote(&ballots, save.step, self.agreed(&begin, save), files.clone())?;
            Ok(files)
        });
        let files = match voted {
            Ok(files) => files,
            Err(error) => return Err(self.fail(&ballots, &begin, error.at_step(save.step))),
        };
        self.seen = begun;
        let (number, body) = self.wait_for_outcome(begun, &begin)?;
        let written_bytes = written_bytes(&files);
        self.root.committed(number, begin.object_prefix, files);
        self.sync_log()?;
        Ok((number, body, written_bytes))
    }

    /// A commit that was read may not be durable yet: rank 0 shows it first and syncs it then. It must not be
    /// acknowledged while a power cut could still undo it.
    fn sync_log(&self) -> Result<()> {
        self.root.view.sync_folder(&self.root.view.root().join("log"))
    }

    /// Votes that this rank failed, unless the others gave up before: then that is why it did. When that vote fails
    /// too, it is cast when this rank reaches its next save.
    fn fail(&mut self, ballots: &Ballots, begin: &Begin, error: CheckpointError) -> CheckpointError {
        if let Err(given_up) = self.outcome(ballots.number, begin) {
            return given_up;
        }
        if self.cast_failed(ballots, error.to_string()) {
            self.seen = ballots.number;
        }
        error
    }

    /// Votes that this rank has no files; false: it could not.
    fn cast_failed(&self, ballots: &Ballots, why: String) -> bool {
        self.cast(ballots, SaveVote::Failed { rank: self.group.rank(), why }).is_ok()
    }

    fn wait_for_begin(&mut self, step: Step) -> Result<(u64, Begin)> {
        self.declined.steps().retain(|declined| *declined > step);
        let seconds = self.group.wait_seconds();
        let clock = Arc::clone(&self.root.clock);
        let begun = wait_for(clock.as_ref(), seconds, || self.look_for_begin(step))?;
        let what = format!("begin the checkpoint of step {step}");
        begun.ok_or_else(|| RankError::Silent { ranks: vec![0], what, seconds }.into())
    }

    /// The begin of a step that this rank has not taken part in yet. Rank 0 saves one step after the other, so a later
    /// begin means that the save is over; and when this rank is further on, it will not take part in an earlier one.
    fn look_for_begin(&mut self, step: Step) -> Result<Option<(u64, Begin)>> {
        self.refresh()?;
        let begun = self.unseen();
        self.decline(&begun, Some(step));
        let given_up = |why: String| Err(RankError::Abandoned { step, why }.into());
        if let Some((number, record)) = begun.iter().rev().find(|(_, record)| record.body.step == step) {
            let newest = begun.last().is_some_and(|(newest, _)| newest == number);
            if newest && record.abandoned.is_none() {
                return Ok(Some((*number, record.body.clone())));
            }
            self.seen = *number;
            let why = record.abandoned.clone();
            return given_up(why.unwrap_or_else(|| "rank 0 began another one since".into()));
        }
        match begun.iter().find(|(_, record)| record.body.step > step) {
            Some((_, record)) => {
                given_up(format!("rank 0 continued to step {} without it", record.body.step))
            }
            None => Ok(None),
        }
    }

    /// What was begun in this round and is not over for this rank, in the order of the log.
    fn unseen(&self) -> Vec<(u64, BeginRecord)> {
        let round = self.round;
        let mine = |record: &BeginRecord| {
            let begin = &record.body;
            begin.epoch == round.epoch && begin.ranks.is_some_and(|ranks| ranks.round == round.round)
        };
        let begun = self.root.view.history().begun();
        let unseen = begun.filter(|(number, record)| *number > self.seen && mine(record));
        unseen.map(|(number, record)| (number, record.clone())).collect()
    }

    /// Votes against begun steps that this rank will not save: those it declined, and those before the one it saves
    /// next.
    fn decline(&mut self, begun: &[(u64, BeginRecord)], next: Option<Step>) {
        for (number, record) in begun {
            let step = record.body.step;
            let passed = next.is_some_and(|next| step < next);
            if !passed && !self.declined.steps().contains(&step) {
                continue;
            }
            let ballots = Ballots::on_save(*number, &record.body.object_prefix);
            let why = format!("it did not save step {step}");
            if record.abandoned.is_some() || self.cast_failed(&ballots, why) {
                self.declined.steps().remove(&step);
                self.seen = if passed { self.seen.max(*number) } else { self.seen };
            }
        }
    }

    fn linger(&mut self) {
        if self.declined.steps().is_empty() {
            return;
        }
        let clock = Arc::clone(&self.root.clock);
        // What is not declined in this time is declined at the next save.
        let _ = wait_for(clock.as_ref(), LINGER_SECONDS, || {
            self.refresh()?;
            self.decline(&self.unseen(), None);
            Ok(self.declined.steps().is_empty().then_some(()))
        });
    }

    fn wait_for_outcome(&mut self, begun: u64, begin: &Begin) -> Result<(u64, CommitBody)> {
        let seconds = self.group.wait_seconds() * OUTCOME_WAITS;
        let clock = Arc::clone(&self.root.clock);
        let outcome = wait_for(clock.as_ref(), seconds, || self.outcome(begun, begin))?;
        let what = format!("commit or give up the checkpoint of step {}", begin.step);
        outcome.ok_or_else(|| RankError::Silent { ranks: vec![0], what, seconds }.into())
    }

    /// The outcome of a save in the log; `None`: none yet.
    fn outcome(&mut self, begun: u64, begin: &Begin) -> Result<Option<(u64, CommitBody)>> {
        self.root.view.refresh()?;
        let history = self.root.view.history();
        if let Some((number, record)) = history.commit_below(&begin.object_prefix) {
            return Ok(Some((number, record.body.clone())));
        }
        self.round.is_current(history)?;
        let abandoned =
            history.begun().find(|(number, _)| *number == begun).and_then(|it| it.1.abandoned.clone());
        let why = abandoned.or_else(|| {
            let newer = self.unseen().iter().any(|(number, _)| *number > begun);
            newer.then(|| "rank 0 began another one since".into())
        });
        why.map_or(Ok(None), |why| Err(RankError::Abandoned { step: begin.step, why }.into()))
    }
}
