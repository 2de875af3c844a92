//! What the entries of a log mean together. Pure: it reads nothing.

use std::collections::BTreeMap;

use trackway_core::{AttemptId, RunId, Step};

use crate::entry::{Begin, Body, CommitBody, Entry};
use crate::error::Fallback;
use crate::log::LogItem;

/// Where a checkpoint stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Bytes may exist; no reader uses them.
    Writing,
    /// Writing, by a writer that is fenced since: it can never be committed.
    Abandoned,
    /// The newest committed one: what a resume takes.
    Committed,
    /// Committed, and a newer one is too.
    Superseded,
    /// Committed, and found not to verify.
    Suspect,
    /// Its files are deleted.
    Retired,
}

impl State {
    /// The word used in JSON and in tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Writing => "writing",
            Self::Abandoned => "abandoned",
            Self::Committed => "committed",
            Self::Superseded => "superseded",
            Self::Suspect => "suspect",
            Self::Retired => "retired",
        }
    }
}

/// One checkpoint of a root.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct CheckpointInfo {
    /// The number of its commit in the log, or of its begin while it has none.
    pub number: u64,
    /// The run.
    pub run_id: RunId,
    /// The attempt that wrote it.
    pub attempt_id: AttemptId,
    /// The step whose end it holds.
    pub step: Step,
    /// The epoch of its writer.
    pub epoch: u64,
    /// Where its files are, below the root.
    pub object_prefix: String,
    /// The SHA-256 of its manifest, once committed.
    pub manifest_sha256: Option<String>,
    /// Where it stands.
    pub state: State,
    /// Bytes of its files, once committed.
    pub size_bytes: Option<u64>,
    /// The digest of the training state it holds, once committed.
    pub state_digest: Option<String>,
    /// The number of the commit it was trained on from.
    pub parent: Option<u64>,
    /// When it was committed, or begun while it has no commit; RFC 3339.
    pub at: String,
    /// Why it is suspect.
    pub why: Option<String>,
}

/// The newest claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    pub epoch: u64,
    pub run_id: RunId,
    pub attempt_id: AttemptId,
}

#[derive(Debug, Clone)]
struct CommitRecord {
    at: String,
    body: CommitBody,
    suspect: Option<String>,
    retired: bool,
}

/// The log so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    last_number: u64,
    claim: Option<Claim>,
    begun: BTreeMap<u64, (String, Begin)>,
    commits: BTreeMap<u64, CommitRecord>,
    damaged: BTreeMap<u64, String>,
}

/// One stop on the way from the newest commit to its ancestors.
pub(crate) enum Candidate<'a> {
    /// A commit that may be resumed from if it verifies.
    Commit { number: u64, body: &'a CommitBody },
    /// One that may not, and why.
    Passed(Fallback),
}

impl History {
    /// The number the next entry must have.
    pub fn next_number(&self) -> u64 {
        self.last_number + 1
    }

    pub fn claim(&self) -> Option<Claim> {
        self.claim
    }

    pub fn commit(&self, number: u64) -> Option<&CommitBody> {
        self.commits.get(&number).map(|record| &record.body)
    }

    /// Takes in what stands under the next number.
    pub fn take(&mut self, item: LogItem) {
        self.last_number += 1;
        match item {
            LogItem::Entry(entry) => self.take_entry(entry),
            LogItem::Damaged { number, why } => {
                self.damaged.insert(number, why);
            }
        }
    }

    fn take_entry(&mut self, entry: Entry) {
        let Entry { number, at, body, .. } = entry;
        match body {
            Body::Claim { epoch, run_id, attempt_id } => self.take_claim(Claim { epoch, run_id, attempt_id }),
            Body::Begin(begin) => {
                self.begun.insert(number, (at, begin));
            }
            Body::Commit(body) => {
                self.begun.retain(|_, (_, begin)| begin.object_prefix != body.object_prefix);
                self.commits.insert(number, CommitRecord { at, body, suspect: None, retired: false });
            }
            Body::Suspect { commit, why } => {
                if let Some(record) = self.commits.get_mut(&commit) {
                    record.suspect.get_or_insert(why);
                }
            }
            Body::Retire { commit } => {
                if let Some(record) = self.commits.get_mut(&commit) {
                    record.retired = true;
                }
            }
            Body::Unknown => {}
        }
    }

    /// The first claim of an epoch stands; writers never create a second one or a lower one.
    fn take_claim(&mut self, claim: Claim) {
        if self.claim.is_none_or(|known| claim.epoch > known.epoch) {
            self.claim = Some(claim);
        }
    }

    /// The way a resume goes: from the newest commit of the newest epoch along its parents, so that a branch that
    /// was left (a suspect commit and what was trained on it) is never chosen. Entries behind the newest commit
    /// that cannot be read are reported first: one of them may have been a newer commit.
    pub fn candidates(&self) -> Vec<Candidate<'_>> {
        let mut next = self.head();
        let mut candidates: Vec<_> = self
            .damaged
            .range(next.unwrap_or(0) + 1..)
            .rev()
            .map(|(number, why)| Candidate::Passed(unreadable_entry(*number, why)))
            .collect();
        while let Some(number) = next {
            let Some(record) = self.commits.get(&number) else {
                let why = self.damaged.get(&number).map_or("it is no commit", String::as_str);
                candidates.push(Candidate::Passed(unreadable_entry(number, why)));
                break;
            };
            candidates.push(candidate(number, record));
            // A parent is always older; anything else would be a loop.
            next = record.body.parent.filter(|parent| *parent < number);
        }
        candidates
    }

    fn head(&self) -> Option<u64> {
        let newest = self.commits.iter().max_by_key(|(number, record)| (record.body.epoch, **number))?;
        Some(*newest.0)
    }

    /// The numbers of commits that a resume could take, newest first.
    pub fn live_chain(&self) -> Vec<u64> {
        let live = |candidate| match candidate {
            Candidate::Commit { number, .. } => Some(number),
            Candidate::Passed(_) => None,
        };
        self.candidates().into_iter().filter_map(live).collect()
    }

    /// Every checkpoint, in the order of the log.
    pub fn checkpoints(&self) -> Vec<CheckpointInfo> {
        let newest = self.live_chain().first().copied();
        let committed = self.commits.iter().map(|(number, record)| committed_info(*number, record, newest));
        let begun = self.begun.iter().map(|(number, (at, begin))| self.begun_info(*number, at, begin));
        let mut all: Vec<_> = committed.chain(begun).collect();
        all.sort_by_key(|info| info.number);
        all
    }

    fn begun_info(&self, number: u64, at: &str, begin: &Begin) -> CheckpointInfo {
        let fenced = self.claim.is_some_and(|claim| claim.epoch > begin.epoch);
        CheckpointInfo {
            number,
            run_id: begin.run_id,
            attempt_id: begin.attempt_id,
            step: begin.step,
            epoch: begin.epoch,
            object_prefix: begin.object_prefix.clone(),
            manifest_sha256: None,
            state: if fenced { State::Abandoned } else { State::Writing },
            size_bytes: None,
            state_digest: None,
            parent: None,
            at: at.to_owned(),
            why: None,
        }
    }
}

fn candidate(number: u64, record: &CommitRecord) -> Candidate<'_> {
    let passed = |why: String| Candidate::Passed(Fallback { step: Some(record.body.step), why });
    match (&record.suspect, record.retired) {
        (_, true) => passed("its files were deleted by retention".into()),
        (Some(why), _) => passed(format!("marked suspect earlier: {why}")),
        (None, false) => Candidate::Commit { number, body: &record.body },
    }
}

fn unreadable_entry(number: u64, why: &str) -> Fallback {
    Fallback { step: None, why: format!("log entry {number} cannot be used: {why}") }
}

fn committed_info(number: u64, record: &CommitRecord, newest: Option<u64>) -> CheckpointInfo {
    let state = match (record.retired, &record.suspect) {
        (true, _) => State::Retired,
        (_, Some(_)) => State::Suspect,
        _ if newest == Some(number) => State::Committed,
        _ => State::Superseded,
    };
    let body = &record.body;
    CheckpointInfo {
        number,
        run_id: body.run_id,
        attempt_id: body.attempt_id,
        step: body.step,
        epoch: body.epoch,
        object_prefix: body.object_prefix.clone(),
        manifest_sha256: Some(body.manifest_sha256.clone()),
        state,
        size_bytes: Some(body.size_bytes),
        state_digest: Some(body.state_digest.clone()),
        parent: body.parent,
        at: record.at.clone(),
        why: record.suspect.clone(),
    }
}
