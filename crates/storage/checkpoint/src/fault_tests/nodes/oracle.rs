//! What the remote's log must never contain, derived from its entries alone, by rules written here a second time.

use std::collections::{BTreeMap, BTreeSet};

use trackway_store::{Item, Log};

use crate::history::History;
use crate::history::entry::{Body, ClaimBody, CommitBody};

/// A commit of the truth.
struct CommitState {
    body: CommitBody,
    uploaded: bool,
    retired: bool,
    suspect: bool,
}

/// What is known of the truth so far.
#[derive(Default)]
pub(super) struct Truth {
    pub lines: Vec<String>,
    pub faults: Vec<String>,
    pub claims: Vec<ClaimBody>,
    commits: BTreeMap<u64, CommitState>,
    pins: BTreeMap<String, u64>,
    /// For each epoch the commits that its attempt could continue from when it was claimed.
    branches: BTreeMap<u64, BTreeSet<u64>>,
    newest_of_epoch: BTreeMap<u64, u64>,
}

impl Truth {
    /// Reads a whole log.
    pub fn of(log: &Log<History>) -> Self {
        let mut truth = Self::default();
        for number in 1.. {
            match log.read(number).unwrap() {
                None => break,
                Some(Item::Damaged { why, .. }) => {
                    truth.faults.push(format!("{number} cannot be read: {why}"))
                }
                Some(Item::Entry(entry)) => {
                    let line = match &entry.body {
                        Body::Summary(_) => format!("{number} Summary"),
                        body => format!("{number} {body:?}"),
                    };
                    let fault = truth.take(number, entry.body).map(|fault| format!("{line}: {fault}"));
                    truth.lines.push(line);
                    truth.faults.extend(fault);
                }
            }
        }
        truth
    }

    /// Whether a commit with that manifest exists.
    pub fn has(&self, sha256: &str) -> bool {
        self.commits.values().any(|known| known.body.manifest_sha256 == sha256)
    }

    /// The claim of the next epoch.
    pub fn claim_after(&self, epoch: u64) -> Option<ClaimBody> {
        self.claims.iter().find(|claim| claim.epoch > epoch).copied()
    }

    /// Whether an attempt of that epoch could continue from a commit.
    pub fn could_go_on_from(&self, epoch: u64, number: u64) -> bool {
        self.branches.get(&epoch).is_some_and(|branch| branch.contains(&number))
    }

    fn take(&mut self, number: u64, body: Body) -> Option<String> {
        match body {
            Body::Claim(claim) => {
                let again = self.claims.last().is_some_and(|before| before.epoch >= claim.epoch);
                self.branches.insert(claim.epoch, self.branch().into_iter().collect());
                self.claims.push(claim);
                again.then(|| "claims an epoch that is not above the one before".into())
            }
            Body::Commit(body) => self.take_commit(number, body),
            Body::Uploaded { commit, .. } => {
                let known = self.commits.get_mut(&commit)?;
                let fault = known.retired.then(|| "uploads what is retired".into());
                known.uploaded = true;
                fault
            }
            Body::Pin(pin) => {
                let gone = self.commits.get(&pin.commit).is_none_or(|known| known.retired);
                self.pins.insert(pin.name, pin.commit);
                gone.then(|| "pins what is gone".into())
            }
            Body::Unpin { name } => {
                self.pins.remove(&name);
                None
            }
            Body::Suspect { commit, why } => {
                self.commits.get_mut(&commit)?.suspect = true;
                // No bytes decay in this simulation, so each mark of suspicion needs a reason.
                Some(format!("calls {commit} suspect: {why}"))
            }
            Body::Retire { commits, .. } => self.take_retire(&commits),
            Body::Summary(_) => None,
            other => Some(format!("{other:?} has no place in the truth")),
        }
    }

    fn take_commit(&mut self, number: u64, body: CommitBody) -> Option<String> {
        let holder = self.claims.last().map(|claim| (claim.epoch, claim.attempt_id));
        let fenced = holder != Some((body.epoch, body.attempt_id));
        let twice = self.commits.values().any(|known| known.body.object_prefix == body.object_prefix);
        let wrong_parent = !match (self.newest_of_epoch.get(&body.epoch), body.parent) {
            // A save that was tried again takes the place of the one before.
            (Some(newest), parent) => parent == Some(*newest) || parent == self.commits[newest].body.parent,
            (None, Some(parent)) => self.could_go_on_from(body.epoch, parent),
            (None, None) => self.branches.get(&body.epoch).is_some_and(BTreeSet::is_empty),
        };
        self.newest_of_epoch.insert(body.epoch, number);
        self.commits.insert(number, CommitState { body, uploaded: false, retired: false, suspect: false });
        match (fenced, twice, wrong_parent) {
            (true, ..) => Some(format!("is not of the newest claim, {holder:?}")),
            (_, true, _) => Some("was committed before".into()),
            (.., true) => Some("does not follow what its attempt could go on from".into()),
            _ => None,
        }
    }

    fn take_retire(&mut self, commits: &[u64]) -> Option<String> {
        let pinned = commits.iter().find(|number| self.pins.values().any(|pinned| pinned == *number));
        let pinned = pinned.map(|number| format!("retires {number}, which is pinned"));
        let mut newly = false;
        for number in commits {
            if let Some(known) = self.commits.get_mut(number) {
                newly |= !known.retired;
                known.retired = true;
            }
        }
        let left = self.branch().into_iter().filter(|number| {
            let known = &self.commits[number];
            known.uploaded && !known.retired && !known.suspect
        });
        let left = left.count();
        pinned.or_else(|| (newly && left < 2).then(|| format!("leaves {left} that can be had")))
    }

    /// From the newest commit of the newest epoch along the parents.
    fn branch(&self) -> Vec<u64> {
        let newest = self.commits.iter().max_by_key(|(number, known)| (known.body.epoch, **number));
        let parent = |number: &u64| self.commits.get(number).and_then(|known| known.body.parent);
        std::iter::successors(newest.map(|(number, _)| *number), parent).collect()
    }
}
