use std::hash::{DefaultHasher, Hash, Hasher as _};

use super::{Body, Entry, Number};

/// The log up to some number.
pub(super) struct History<'a>(pub &'a [Option<Entry>]);

#[derive(Debug, Clone, Copy)]
pub(super) struct Commit {
    pub number: Number,
    pub folder: u8,
    pub epoch: u8,
    pub parent: Option<Number>,
}

impl<'a> History<'a> {
    pub(super) fn bodies(&self) -> impl Iterator<Item = (Number, Body)> + use<'a> {
        (1..).zip(self.0.iter().map_while(|entry| entry.as_ref().map(|entry| entry.body)))
    }

    pub(super) fn digest_with(&self, body: Body) -> u64 {
        let mut hasher = DefaultHasher::new();
        let before = self.0.last().and_then(Option::as_ref).map_or(0, |entry| entry.digest);
        (before, body).hash(&mut hasher);
        hasher.finish()
    }

    pub(super) fn has(&self, body: Body) -> bool {
        self.bodies().any(|(_, found)| found == body)
    }

    pub(super) fn epoch(&self) -> u8 {
        let epoch = |body| if let Body::Claim { epoch } = body { epoch } else { 0 };
        self.bodies().map(|(_, body)| epoch(body)).max().unwrap_or(0)
    }

    pub(super) fn commits(&self) -> impl Iterator<Item = Commit> + use<'a> {
        self.bodies().filter_map(|(number, body)| match body {
            Body::Commit { folder, epoch, parent } => Some(Commit { number, folder, epoch, parent }),
            _ => None,
        })
    }

    pub(super) fn commit(&self, number: Number) -> Option<Commit> {
        self.commits().find(|commit| commit.number == number)
    }

    pub(super) fn retired(&self, commit: Number) -> bool {
        self.has(Body::Retire { commit })
    }

    pub(super) fn is_unsafe(&self, commit: Number) -> bool {
        self.has(Body::Unsafe { commit })
    }

    /// What a resume may take: from the newest commit of the newest epoch along the parents, but for those suspect, unsafe or retired.
    pub(super) fn chain(&self) -> Vec<Commit> {
        let mut chain = self.chain_with_unsafe();
        chain.retain(|commit| !self.is_unsafe(commit.number));
        chain
    }

    /// Unsafe commits whose files are there, newest first.
    pub(super) fn unsafe_commits(&self) -> Vec<Commit> {
        let is_kept = |commit: &Commit| self.is_unsafe(commit.number) && !self.retired(commit.number);
        let mut found: Vec<Commit> = self.commits().filter(is_kept).collect();
        found.sort_by_key(|commit| std::cmp::Reverse((commit.epoch, commit.number)));
        found
    }

    /// The same as [`Self::chain`] for a reader that does not look at these marks.
    pub(super) fn chain_with_unsafe(&self) -> Vec<Commit> {
        let mut next = self.commits().max_by_key(|commit| (commit.epoch, commit.number));
        let mut chain = Vec::new();
        while let Some(commit) = next {
            chain.push(commit);
            next = commit.parent.and_then(|parent| self.commit(parent));
        }
        chain.retain(|commit| {
            !self.retired(commit.number) && !self.has(Body::Suspect { commit: commit.number })
        });
        chain
    }
}
