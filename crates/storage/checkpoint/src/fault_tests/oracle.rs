//! What no log may ever contain, derived from its entries alone, by rules written here a second time.

use std::collections::{BTreeMap, BTreeSet};

use trackway_store::{Item, Log};

use crate::history::History;
use crate::history::entry::{Body, ClaimBody};

/// What is known of a log so far.
#[derive(Default)]
struct Oracle {
    claim: Option<ClaimBody>,
    prefixes: BTreeSet<String>,
    /// Commits by number: whose they are (by the epoch they count for) and their parents.
    commits: BTreeMap<u64, (u64, Option<u64>)>,
    gone: BTreeSet<u64>,
    suspect: BTreeSet<u64>,
    pins: BTreeMap<String, u64>,
    /// The newest commit of the newest epoch that made one.
    newest_of_epoch: BTreeMap<u64, u64>,
    /// Commits up to here do not count.
    truth_begins: u64,
}

/// The lines of a log without what differs from run to run, and what is wrong with them.
pub(super) fn examine(log: &Log<History>) -> (Vec<String>, Vec<String>) {
    let mut oracle = Oracle::default();
    let (mut lines, mut faults) = (Vec::new(), Vec::new());
    for number in 1.. {
        match log.read(number).unwrap() {
            None => return (lines, faults),
            Some(Item::Damaged { why, .. }) => faults.push(format!("{number} cannot be read: {why}")),
            Some(Item::Entry(entry)) => {
                lines.push(line(number, &entry.body));
                if let Some(fault) = oracle.take(number, entry.body) {
                    faults.push(format!("{number} {fault}"));
                }
            }
        }
    }
    unreachable!("numbers end")
}

fn line(number: u64, body: &Body) -> String {
    match body {
        // Says where the root is.
        Body::Abandon { begin, .. } => format!("{number} Abandon {begin}"),
        Body::Summary(_) => format!("{number} Summary"),
        body => format!("{number} {body:?}"),
    }
}

impl Oracle {
    fn take(&mut self, number: u64, body: Body) -> Option<String> {
        match body {
            Body::Claim(claim) => {
                let before = self.claim.replace(claim);
                before.is_some_and(|before| before.epoch >= claim.epoch).then(|| "claims again".into())
            }
            Body::Begin(begin) => {
                let fenced = self.fenced(begin.epoch, begin.attempt_id);
                let fresh = self.prefixes.insert(begin.object_prefix);
                fenced.or_else(|| (!fresh).then(|| "begins where another one did".into()))
            }
            Body::Commit(body) => {
                let fault = self
                    .fenced(body.epoch, body.attempt_id)
                    .or_else(|| {
                        (!self.prefixes.contains(&body.object_prefix)).then(|| "was not begun".into())
                    })
                    .or_else(|| self.wrong_parent(body.epoch, body.parent));
                self.add(number, body.epoch, body.parent);
                fault
            }
            Body::Adopt(adopt) => {
                let fenced = self.fenced(adopt.epoch, adopt.attempt_id);
                match adopt.commit {
                    None => self.truth_begins = number,
                    Some(body) => self.add(number, adopt.epoch, body.parent),
                }
                fenced
            }
            Body::Pin(pin) => {
                self.pins.insert(pin.name, pin.commit);
                self.gone.contains(&pin.commit).then(|| "pins what is gone".into())
            }
            Body::Unpin { name } => self.pins.remove(&name).is_none().then(|| "takes no pin away".into()),
            Body::Suspect { commit, .. } => {
                self.suspect.insert(commit);
                None
            }
            Body::Retire { commits, swept } => self.take_retire(&commits, &swept),
            // Not a commit that is none, nor one of which the bytes are bad.
            Body::Unsafe { .. } | Body::Cleared { .. } => None,
            Body::Abandon { .. } | Body::Round(_) | Body::Uploaded { .. } | Body::Summary(_) => None,
            Body::Unknown => Some("is of no kind".into()),
        }
    }

    fn add(&mut self, number: u64, epoch: u64, parent: Option<u64>) {
        self.commits.insert(number, (epoch, parent));
        self.newest_of_epoch.insert(epoch, number);
    }

    fn fenced(&self, epoch: u64, attempt_id: trackway_core::AttemptId) -> Option<String> {
        let holds = self.claim.is_some_and(|claim| (claim.epoch, claim.attempt_id) == (epoch, attempt_id));
        (!holds).then(|| format!("is of epoch {epoch} and the claim is {:?}", self.claim))
    }

    /// A commit follows the one before it of its epoch, or takes the place of that one when its save was not answered
    /// and was tried again; the first one follows any that counts and may be resumed from.
    fn wrong_parent(&self, epoch: u64, parent: Option<u64>) -> Option<String> {
        let right = match self.newest_of_epoch.get(&epoch) {
            Some(newest) => parent == Some(*newest) || parent == self.commits[newest].1,
            None => match parent {
                Some(parent) => {
                    self.commits.contains_key(&parent)
                        && !self.gone.contains(&parent)
                        && parent > self.truth_begins
                }
                None => self.commits.keys().all(|number| *number < self.truth_begins),
            },
        };
        (!right).then(|| format!("of epoch {epoch} has the parent {parent:?}"))
    }

    fn take_retire(&mut self, commits: &[u64], swept: &[u64]) -> Option<String> {
        let pinned = commits
            .iter()
            .find(|number| !self.gone.contains(number) && self.pins.values().any(|pinned| pinned == *number));
        let newly = commits.iter().any(|number| !self.gone.contains(number));
        self.gone.extend(commits);
        let unsaid = swept.iter().find(|it| self.commits.contains_key(it) && !self.gone.contains(it));
        let left = self.branch().into_iter().filter(|number| !self.gone.contains(number)).count();
        pinned
            .map(|number| format!("retires {number}, which is pinned"))
            .or_else(|| unsaid.map(|number| format!("sweeps {number}, which was never retired")))
            .or_else(|| (newly && left < 2).then(|| format!("leaves {left}")))
    }

    /// The commits that a resume could reach, but for suspects.
    fn branch(&self) -> Vec<u64> {
        let counted = self.commits.iter().filter(|(number, _)| **number > self.truth_begins);
        let mut next = counted.max_by_key(|(number, (epoch, _))| (*epoch, **number)).map(|it| *it.0);
        let mut branch = Vec::new();
        while let Some(number) = next {
            if !self.suspect.contains(&number) {
                branch.push(number);
            }
            next = self.commits.get(&number).and_then(|(_, parent)| *parent);
        }
        branch
    }
}
