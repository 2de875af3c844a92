//! What the entries of a log mean together. Pure: it reads nothing and has no clock.

pub(crate) mod entry;
mod info;
mod listing;
mod numbered;
mod round;
pub(crate) mod summary;

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use trackway_core::{CheckpointUse, RunId, Step, UnsafeEvidence, Weights};
use trackway_store::{Claim, Entry, Fold, Item};

use crate::error::{CheckpointError, Fallback, FallbackKind, Result};
use entry::{Adopt, Begin, Body, ClaimBody, CommitBody, PinBody, RoundBody};
pub(crate) use info::has_expired;
pub use info::{CheckpointInfo, PinInfo};
pub(crate) use round::{RoundRecord, Stop, check_round};
use summary::Summary;
pub use trackway_core::CheckpointState;

/// The log so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct History {
    claim: Option<ClaimBody>,
    #[serde(with = "numbered")]
    begun: BTreeMap<u64, BeginRecord>,
    #[serde(with = "numbered")]
    commits: BTreeMap<u64, CommitRecord>,
    pins: BTreeMap<String, PinRecord>,
    #[serde(with = "numbered")]
    damaged: BTreeMap<u64, String>,
    /// Commits up to here do not count, according to the remote's log.
    #[serde(default)]
    truth_begins: u64,
    /// The epoch whose adoption was begun and is not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    adopting: Option<u64>,
    /// The newest round of ranks that start together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    round: Option<RoundRecord>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct BeginRecord {
    pub at: String,
    pub body: Begin,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abandoned: Option<String>,
    /// Its files are gone.
    #[serde(default, skip_serializing_if = "is_false")]
    pub swept: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CommitRecord {
    pub at: String,
    pub body: CommitBody,
    /// The epoch it counts for: its writer's, or that of the attempt that adopted it.
    pub branch_epoch: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspect: Option<String>,
    /// Why what it holds is most likely lost; who uses it asks [`Self::may_be_used_for`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unsafe_evidence: Option<UnsafeEvidence>,
    /// Why that does not hold any more: nothing marks it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleared: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub retired: bool,
    /// Its files are gone.
    #[serde(default, skip_serializing_if = "is_false")]
    pub swept: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uploaded_to: Option<String>,
    /// When that was recorded first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uploaded_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number_there: Option<u64>,
    /// Where its files are, when not below its own prefix: it was adopted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopted_into: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PinRecord {
    pub at: String,
    pub body: PinBody,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// One stop on the way from the newest commit to its ancestors.
pub(crate) enum Candidate<'a> {
    /// A commit that may be resumed from if it verifies.
    Commit { number: u64, body: &'a CommitBody },
    /// One that may not, and why.
    Passed(Fallback),
}

impl Candidate<'_> {
    /// Of one that may be resumed from.
    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Commit { number, .. } => Some(*number),
            Self::Passed(_) => None,
        }
    }
}

impl Fold for History {
    type Body = Body;

    fn take(&mut self, item: Item<Body>) {
        match item {
            Item::Entry(entry) => match entry.body.broken_rule() {
                None => self.take_entry(entry),
                Some(why) => drop(self.damaged.insert(entry.number, why)),
            },
            // Remembered: it may have been a newer commit, or a pin.
            Item::Damaged { number, why } => drop(self.damaged.insert(number, why)),
        }
    }

    fn claim(&self) -> Option<Claim> {
        self.claim.map(|claim| claim.holder())
    }

    fn summary(&self) -> Body {
        Body::Summary(Box::new(Summary::of(self)))
    }

    fn restore(body: &Body) -> Option<Self> {
        match body {
            Body::Summary(summary) => Some(summary.history()),
            _ => None,
        }
    }

    fn summary_items(&self) -> u64 {
        (self.commits.len() + self.begun.len() + self.pins.len()) as u64
    }
}

impl History {
    pub fn claimed(&self) -> Option<ClaimBody> {
        self.claim
    }

    /// Refuses the log of another run; `root` is where it is.
    pub fn check_run(&self, root: &Path, expected: RunId) -> Result<()> {
        match self.claim.map(|claim| claim.run_id) {
            Some(found) if found != expected => {
                Err(CheckpointError::WrongRun { root: root.into(), expected, found })
            }
            _ => Ok(()),
        }
    }

    /// A commit whose files are not deleted; `root` is where the log is.
    pub fn kept(&self, root: &Path, number: u64) -> Result<&CommitRecord> {
        let missing = || CheckpointError::NoSuchCommit { root: root.into(), number };
        let record = self.commit(number).ok_or_else(missing)?;
        if record.retired {
            return Err(CheckpointError::NotHere { step: record.body.step, state: "retired" });
        }
        Ok(record)
    }

    pub fn round(&self) -> Option<&RoundRecord> {
        self.round.as_ref()
    }

    pub fn commit(&self, number: u64) -> Option<&CommitRecord> {
        self.commits.get(&number)
    }

    /// The number of the entry up to which commits do not count, because the truth is kept elsewhere.
    #[cfg(any(test, feature = "remote"))]
    pub fn truth_begins(&self) -> u64 {
        self.truth_begins
    }

    pub fn commits(&self) -> impl Iterator<Item = (u64, &CommitRecord)> {
        self.commits.iter().map(|(number, record)| (*number, record))
    }

    /// The commit whose files are below that prefix, by its writer.
    pub fn commit_below(&self, object_prefix: &str) -> Option<(u64, &CommitRecord)> {
        self.commits().find(|(_, record)| record.body.object_prefix == object_prefix)
    }

    /// What was begun and not committed.
    pub fn begun(&self) -> impl Iterator<Item = (u64, &BeginRecord)> {
        self.begun.iter().map(|(number, record)| (*number, record))
    }

    pub fn pin(&self, name: &str) -> Option<&PinRecord> {
        self.pins.get(name)
    }

    pub fn pins(&self) -> impl Iterator<Item = &PinRecord> {
        self.pins.values()
    }

    /// Numbers that hold no entry, and why.
    pub fn damaged(&self) -> &BTreeMap<u64, String> {
        &self.damaged
    }

    /// Whether what was begun can never be committed: given up, or by an epoch or a round that is fenced since.
    pub fn is_abandoned(&self, record: &BeginRecord) -> bool {
        let begin = &record.body;
        let overtaken = |round: &RoundRecord| {
            let older = begin.ranks.is_some_and(|ranks| ranks.round < round.body.round);
            older && begin.epoch == round.body.epoch
        };
        record.abandoned.is_some()
            || self.claim.is_some_and(|claim| claim.epoch > begin.epoch)
            || self.round.as_ref().is_some_and(overtaken)
    }

    fn take_entry(&mut self, entry: Entry<Body>) {
        let Entry { number, at, body, .. } = entry;
        match body {
            Body::Claim(claim) => self.take_claim(claim),
            Body::Round(round) => self.take_round(number, round),
            Body::Begin(body) => {
                self.begun.insert(number, BeginRecord { at, body, abandoned: None, swept: false });
            }
            Body::Commit(body) => {
                // Left there, its files would count as abandoned once its epoch is fenced.
                self.begun.retain(|_, begun| begun.body.object_prefix != body.object_prefix);
                let branch_epoch = body.epoch;
                self.commits.insert(number, CommitRecord::new(at, body, branch_epoch));
            }
            Body::Abandon { begin, why } => {
                if let Some(record) = self.begun.get_mut(&begin) {
                    record.abandoned.get_or_insert(why);
                }
            }
            Body::Adopt(adopt) => self.take_adopt(number, at, adopt),
            Body::Pin(body) => {
                self.pins.insert(body.name.clone(), PinRecord { at, body });
            }
            Body::Unpin { name } => {
                self.pins.remove(&name);
            }
            Body::Uploaded { commit, location } => self.mark(commit, |it| {
                it.uploaded_to = Some(location);
                it.uploaded_at.get_or_insert(at);
            }),
            Body::Suspect { commit, why } => {
                self.mark(commit, |it| it.suspect = it.suspect.take().or(Some(why)))
            }
            Body::Unsafe { commit, evidence } => self.mark(commit, |it| {
                if it.may_be_marked_unsafe() {
                    it.unsafe_evidence = Some(evidence);
                }
            }),
            Body::Cleared { commit, why } => self.mark(commit, |it| {
                if it.unsafe_evidence.take().is_some() {
                    it.cleared = Some(why);
                }
            }),
            Body::Retire { commits, swept } => self.take_retire(&commits, &swept),
            Body::Summary(_) | Body::Unknown => {}
        }
    }

    fn mark(&mut self, commit: u64, change: impl FnOnce(&mut CommitRecord)) {
        if let Some(record) = self.commits.get_mut(&commit) {
            change(record);
        }
    }

    /// The first claim of an epoch counts; writers never create a second one or a lower one.
    fn take_claim(&mut self, claim: ClaimBody) {
        if self.claim.is_none_or(|known| claim.epoch > known.epoch) {
            self.claim = Some(claim);
        }
    }

    /// A round counts for the attempt that holds the epoch, and ends the one before it. What it resumes is settled
    /// here, so that every reader of this entry gets the same answer whatever was added since.
    fn take_round(&mut self, number: u64, body: RoundBody) {
        let holds = self.claim.is_some_and(|claim| body.is_of(claim));
        let newer = self.round.as_ref().is_none_or(|known| body.is_newer_than(&known.body));
        if holds && newer {
            let stops = Stop::all(self.candidates());
            self.round = Some(RoundRecord { number, body, stops, newest_step: self.newest_step() });
        }
    }

    fn take_adopt(&mut self, number: u64, at: String, adopt: Adopt) {
        self.adopting = (!adopt.complete).then_some(adopt.epoch);
        let Some(body) = adopt.commit else {
            self.truth_begins = number;
            return;
        };
        self.begun.retain(|_, begun| Some(&begun.body.object_prefix) != adopt.folder.as_ref());
        let mut record = CommitRecord::new(at, body, adopt.epoch);
        record.number_there = adopt.number_there;
        record.adopted_into = adopt.folder;
        self.commits.insert(number, record);
    }

    fn take_retire(&mut self, commits: &[u64], swept: &[u64]) {
        for number in commits {
            self.mark(*number, |record| record.retired = true);
        }
        for number in swept {
            self.mark(*number, |record| record.swept = true);
            if let Some(record) = self.begun.get_mut(number) {
                record.swept = true;
            }
        }
    }

    /// The way a resume goes: from the newest commit of the newest epoch along its parents, so that a branch that was
    /// left (a suspect commit and what was trained on it) is never chosen. Entries after the newest commit that cannot
    /// be read are reported first: one of them may have been a newer commit.
    pub fn candidates(&self) -> Vec<Candidate<'_>> {
        let head = self.head();
        let behind = head.unwrap_or(0).max(self.truth_begins);
        let damaged = self.damaged.range(behind + 1..).rev();
        let damaged = damaged.map(|(number, why)| Candidate::Passed(unreadable_entry(*number, why)));
        damaged.chain(self.ancestry(head)).collect()
    }

    /// A commit and what it was trained on, newest first.
    pub fn ancestry(&self, from: Option<u64>) -> Vec<Candidate<'_>> {
        let (mut next, mut candidates) = (from, Vec::new());
        while let Some(number) = next {
            let Some(record) = self.commits.get(&number) else {
                candidates.push(Candidate::Passed(self.missing_entry(number)));
                break;
            };
            candidates.push(candidate(number, record));
            // A parent is always older; anything else would be a loop.
            next = record.body.parent.filter(|parent| *parent < number);
        }
        candidates
    }

    /// The epoch for which only a part of what it continues from was recorded, because the writer died. It must not
    /// begin.
    pub fn adopting(&self) -> Option<u64> {
        self.adopting
    }

    /// Whether the newest epoch has shown which checkpoint it continues from, by a commit or an adopted one. Before
    /// that no other process knows it.
    pub fn newest_epoch_is_committed(&self) -> bool {
        let head_epoch = self.head().and_then(|number| self.commit(number)).map(|record| record.branch_epoch);
        self.claim.is_none_or(|claim| head_epoch >= Some(claim.epoch))
    }

    fn head(&self) -> Option<u64> {
        let counted = self.commits.range(self.truth_begins + 1..);
        counted.max_by_key(|(number, record)| (record.branch_epoch, **number)).map(|(number, _)| *number)
    }

    fn missing_entry(&self, number: u64) -> Fallback {
        match self.damaged.get(&number) {
            Some(why) => unreadable_entry(number, why),
            // Left out of the summary this reader began with.
            None => Fallback {
                kind: FallbackKind::Deleted,
                ..Fallback::new(None, format!("commit {number} was deleted by retention"))
            },
        }
    }

    /// The numbers of commits whose bytes are there and whose content is unsafe, newest first.
    pub fn unsafe_commits(&self) -> Vec<u64> {
        self.newest_first(|record| record.state() == CheckpointState::Unsafe)
    }

    fn newest_first(&self, is_wanted: impl Fn(&CommitRecord) -> bool) -> Vec<u64> {
        let counted = self.commits.range(self.truth_begins + 1..);
        let mut found: Vec<_> = counted.filter(|(_, record)| is_wanted(record)).collect();
        found.sort_by_key(|(number, record)| std::cmp::Reverse((record.branch_epoch, **number)));
        found.into_iter().map(|(number, _)| *number).collect()
    }

    /// The numbers of commits that a resume could take, newest first.
    pub fn live_chain(&self) -> Vec<u64> {
        self.candidates().iter().filter_map(Candidate::number).collect()
    }

    /// Every commit that may be resumed from, also of branches that were left, newest first.
    #[cfg(any(test, feature = "remote"))]
    pub fn live_commits(&self) -> Vec<u64> {
        self.newest_first(|record| record.may_be_used_for(CheckpointUse::Resume))
    }

    /// Those of them that a resume could take, and the others of the newest epoch: the process of a script and the one that copies its
    /// checkpoints do not name each other's commits as parents.
    #[cfg(any(test, feature = "remote"))]
    pub fn live_of_newest_epoch(&self) -> Vec<u64> {
        let chain: std::collections::BTreeSet<u64> = self.live_chain().into_iter().collect();
        let epoch_of = |number: u64| self.commit(number).map(|record| record.branch_epoch);
        let newest = self.head().and_then(epoch_of);
        let mut live = self.live_commits();
        live.retain(|number| chain.contains(number) || epoch_of(*number) == newest);
        live
    }

    /// The newest step that was ever committed on the branch a resume goes along, whatever became of it.
    pub fn newest_step(&self) -> Option<Step> {
        self.head().and_then(|number| self.commit(number)).map(|record| record.body.step)
    }

    /// Prefixes whose files must stay: those of commits that are not retired, of what is being written, and those
    /// that a commit which stays shares its folder with.
    pub fn prefix_is_live(&self, prefix: &str) -> bool {
        let committed = self.commits.values().any(|record| !record.retired && record.folder() == prefix);
        committed || self.begun.values().any(|it| it.body.object_prefix == prefix && !self.is_abandoned(it))
    }
}

impl CommitRecord {
    fn new(at: String, body: CommitBody, branch_epoch: u64) -> Self {
        Self {
            at,
            body,
            branch_epoch,
            suspect: None,
            unsafe_evidence: None,
            cleared: None,
            retired: false,
            swept: false,
            uploaded_to: None,
            uploaded_at: None,
            number_there: None,
            adopted_into: None,
        }
    }

    /// What its content is, also once its files are deleted.
    fn content(&self) -> CheckpointState {
        match (&self.suspect, &self.unsafe_evidence) {
            (Some(_), _) => CheckpointState::Suspect,
            (None, Some(_)) => CheckpointState::Unsafe,
            (None, None) => CheckpointState::Superseded,
        }
    }

    /// Its state, whether or not it is the newest.
    pub fn state(&self) -> CheckpointState {
        if self.retired { CheckpointState::Retired } else { self.content() }
    }

    /// Whether it may be used for `purpose` if it verifies, by what the log has of it.
    pub fn may_be_used_for(&self, purpose: CheckpointUse) -> bool {
        Weights::in_state(self.state()).may_be_used_for(purpose)
    }

    /// Whether that would be so with its files.
    #[cfg(any(test, feature = "remote"))]
    pub fn was_fit_for(&self, purpose: CheckpointUse) -> bool {
        Weights::in_state(self.content()).may_be_used_for(purpose)
    }

    /// Why it is unsafe, also once its files are deleted: for messages.
    pub fn unsafe_because(&self) -> Option<&str> {
        self.unsafe_evidence.as_ref().map(|found| found.why.as_str())
    }

    /// What another log, where it has a number and is known so, must be given: that it is unsafe, or not any more.
    #[cfg(any(test, feature = "remote"))]
    pub fn mark_for(&self, number: u64, known: &Self) -> Option<Body> {
        match (&self.unsafe_evidence, &self.cleared) {
            (Some(evidence), _) if known.may_be_marked_unsafe() => {
                Some(Body::unsafe_commit(number, evidence))
            }
            (None, Some(why)) if known.unsafe_evidence.is_some() => Some(Body::cleared(number, why)),
            _ => None,
        }
    }

    /// Whether it can be marked: it is not marked already, and nothing cleared it.
    pub fn may_be_marked_unsafe(&self) -> bool {
        self.unsafe_evidence.is_none() && self.cleared.is_none()
    }

    /// Where its files are, below the root.
    pub fn folder(&self) -> &str {
        self.adopted_into.as_deref().unwrap_or(&self.body.object_prefix)
    }
}

fn candidate(number: u64, record: &CommitRecord) -> Candidate<'_> {
    if record.may_be_used_for(CheckpointUse::Resume) {
        return Candidate::Commit { number, body: &record.body };
    }
    let (kind, why) = match (record.retired, &record.suspect, record.unsafe_because()) {
        (true, _, Some(why)) => (FallbackKind::Unsafe, format!("unsafe, and deleted by retention: {why}")),
        (true, _, None) => (FallbackKind::Deleted, "its files were deleted by retention".into()),
        (false, Some(why), _) => (FallbackKind::Defect, format!("marked suspect earlier: {why}")),
        (false, None, why) => (FallbackKind::Unsafe, format!("unsafe: {}", why.unwrap_or_default())),
    };
    Candidate::Passed(Fallback { step: Some(record.body.step), why, kind })
}

fn unreadable_entry(number: u64, why: &str) -> Fallback {
    Fallback::new(None, format!("log entry {number} cannot be used: {why}"))
}
