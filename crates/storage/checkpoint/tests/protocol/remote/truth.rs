use super::{Body, Checkpoint, Entry, Id, State};

/// The remote log up to some number.
pub(super) struct Truth<'a> {
    pub entries: &'a [Entry],
    pub checkpoints: &'a [Checkpoint],
}

impl<'a> Truth<'a> {
    pub(super) fn has(&self, body: Body) -> bool {
        self.entries.iter().any(|entry| entry.body == body)
    }

    pub(super) fn claim(&self) -> (u8, u8) {
        let claim = |entry: &Entry| match entry.body {
            Body::Claim { epoch, node } => Some((epoch, node)),
            _ => None,
        };
        self.entries.iter().filter_map(claim).max().unwrap_or((0, 0))
    }

    /// Commits with the epoch they count for, oldest first.
    pub(super) fn commits(&self) -> impl Iterator<Item = (Id, u8)> + use<'a> {
        self.entries.iter().filter_map(|entry| match entry.body {
            Body::Commit { id, epoch } => Some((id, epoch)),
            _ => None,
        })
    }

    pub(super) fn has_commit(&self, id: Id) -> bool {
        self.commits().any(|(found, _)| found == id)
    }

    pub(super) fn live(&self, id: Id) -> bool {
        self.has_commit(id) && !self.has(Body::Retire { id })
    }

    pub(super) fn head(&self) -> Option<(Id, u8)> {
        self.commits().zip(0..).max_by_key(|((_, epoch), index)| (*epoch, *index)).map(|(commit, _)| commit)
    }

    /// From the newest commit of the newest epoch along the parents, retired ones too.
    pub(super) fn chain(&self) -> Vec<Id> {
        let mut next = self.head().map(|(id, _)| id);
        let mut chain = Vec::new();
        while let Some(id) = next {
            chain.push(id);
            next = self.checkpoints[usize::from(id)].parent;
        }
        chain
    }

    pub(super) fn uploaded_chain(&self) -> Vec<Id> {
        let there = |id: &Id| self.live(*id) && self.has(Body::Uploaded { id: *id });
        self.chain().into_iter().filter(there).collect()
    }
}

impl State {
    pub(super) fn truth(&self) -> Truth<'_> {
        self.truth_at(self.truth.len())
    }

    pub(super) fn truth_at(&self, known: usize) -> Truth<'_> {
        Truth { entries: &self.truth[..known], checkpoints: &self.checkpoints }
    }

    pub(super) fn checkpoint(&self, id: Id) -> &Checkpoint {
        &self.checkpoints[usize::from(id)]
    }

    pub(super) fn checkpoint_mut(&mut self, id: Id) -> &mut Checkpoint {
        &mut self.checkpoints[usize::from(id)]
    }

    /// Whether all its files are in the remote storage.
    pub(super) fn whole_there(&self, id: Id) -> bool {
        let checkpoint = self.checkpoint(id);
        checkpoint.own_there && self.checkpoint(checkpoint.base_in).base_there
    }

    pub(super) fn whole_here(&self, id: Id, node: usize) -> bool {
        let checkpoint = self.checkpoint(id);
        checkpoint.copied[node] || (checkpoint.here[node] && !checkpoint.retired_here[node])
    }
}
