//! What a supervisor does: drains, claims, walks, fetches, replays, uploads.

use super::adding::Added;
use super::{Body, Checkpoint, Id, Io, Remote, State, Task};

impl Remote {
    pub(super) fn supervise(&self, state: &mut State, who: usize, task: Task) -> Task {
        let epoch = state.nodes[who].epoch;
        match task {
            Task::Down => Task::Down,
            Task::Drain => match self.waiting(state, who) {
                Some(id)
                    if self.rules.drained_before_claim && state.truth().claim() == (epoch, who as u8) =>
                {
                    Task::Replay(id, Io::Read)
                }
                _ => Task::Claim(Io::Read),
            },
            Task::Claim(io) => self.claim(state, who, io),
            Task::Walk if self.rules.fence_seen_on_the_walk && state.truth().claim().0 > epoch => Task::Down,
            Task::Walk => match self.nearest(state, who) {
                _ if !self.rules.launched_on_truth => Task::Adopt(self.newest_here(state, who)),
                Some(id) if !state.whole_here(id, who) => Task::Fetch(id),
                found => Task::Adopt(found),
            },
            Task::Fetch(id) => {
                // Whatever is missing by now is found by verifying: it is walked again.
                if !state.whole_there(id) {
                    return Task::Walk;
                }
                let new_prefix = self.rules.fetched_to_new_prefix;
                let checkpoint = state.checkpoint_mut(id);
                if new_prefix {
                    checkpoint.copied[who] = true;
                } else {
                    checkpoint.here[who] = true;
                    checkpoint.retired_here[who] = false;
                }
                Task::Adopt(Some(id))
            }
            Task::Adopt(found) => {
                let node = &mut state.nodes[who];
                (node.training, node.head, node.launched_from, node.saves) = (true, found, found, 0);
                Task::Run
            }
            Task::Run => self.next_job(state, who),
            Task::Replay(id, io) => self.replay(state, who, id, io),
            Task::UploadOwn(id) => {
                state.checkpoint_mut(id).own_there = true;
                Task::UploadBase(id)
            }
            Task::UploadBase(id) => {
                let checkpoint = state.checkpoint(id);
                if checkpoint.base_in == id {
                    state.checkpoint_mut(id).base_there = true;
                }
                Task::Announce(id, Io::Read)
            }
            Task::Announce(id, io) => {
                let body = Body::Uploaded { id };
                match self
                    .add(state, who, io, None, |truth| (truth.live(id) && !truth.has(body)).then_some(body))
                {
                    Added::NotYet(io) => Task::Announce(id, io),
                    Added::Exists if !self.rules.uploads_before_announcing => Task::UploadOwn(id),
                    _ => Task::Run,
                }
            }
            other => unreachable!("{other:?} is no supervisor's"),
        }
    }

    fn claim(&self, state: &mut State, who: usize, io: Io) -> Task {
        let node = who as u8;
        let added =
            self.add(state, who, io, None, |truth| Some(Body::Claim { epoch: truth.claim().0 + 1, node }));
        match added {
            Added::NotYet(io) => Task::Claim(io),
            Added::Exists => {
                let claimed = state.truth.iter().filter_map(|entry| match entry.body {
                    Body::Claim { epoch, node } if usize::from(node) == who => Some(epoch),
                    _ => None,
                });
                state.nodes[who].epoch = claimed.max().unwrap_or(u8::MAX);
                Task::Walk
            }
            Added::Nothing | Added::Fenced => Task::Down,
        }
    }

    /// The oldest checkpoint of this node's newest attempt that the truth does not have.
    fn waiting(&self, state: &State, who: usize) -> Option<Id> {
        let truth = state.truth();
        let epoch = state.nodes[who].epoch;
        let mine = |checkpoint: &Checkpoint| {
            usize::from(checkpoint.node) == who
                && (checkpoint.epoch == epoch || !self.rules.replayed_under_its_epoch)
        };
        let mut ids = (0..).zip(&state.checkpoints).filter(|(_, checkpoint)| mine(checkpoint));
        ids.find(|(id, _)| !truth.has_commit(*id)).map(|(id, _)| id)
    }

    fn nearest(&self, state: &State, who: usize) -> Option<Id> {
        let truth = state.truth();
        let to_be_had = |id: &Id| {
            truth.live(*id) && (state.whole_here(*id, who) || truth.has(Body::Uploaded { id: *id }))
        };
        truth.chain().into_iter().find(to_be_had)
    }

    fn newest_here(&self, state: &State, who: usize) -> Option<Id> {
        (0..state.checkpoints.len() as u8).rev().find(|id| state.checkpoint(*id).here[who])
    }

    fn next_job(&self, state: &State, who: usize) -> Task {
        if let Some(id) = self.waiting(state, who) {
            return Task::Replay(id, Io::Read);
        }
        let truth = state.truth();
        let unsent = |id: &Id| {
            truth.live(*id) && !truth.has(Body::Uploaded { id: *id }) && state.checkpoint(*id).here[who]
        };
        match (0..state.checkpoints.len() as u8).find(unsent) {
            Some(id) if self.rules.uploads_before_announcing => Task::UploadOwn(id),
            Some(id) => Task::Announce(id, Io::Read),
            None => Task::Run,
        }
    }

    fn replay(&self, state: &mut State, who: usize, id: Id, io: Io) -> Task {
        let epoch = state.nodes[who].epoch;
        let once = self.rules.replayed_once;
        let claiming = !state.nodes[who].training;
        let added = self.add(state, who, io, Some(epoch), |truth| {
            (!once || !truth.has_commit(id)).then_some(Body::Commit { id, epoch })
        });
        match added {
            Added::NotYet(io) => Task::Replay(id, io),
            Added::Exists | Added::Nothing if claiming => Task::Drain,
            Added::Exists | Added::Nothing => Task::Run,
            Added::Fenced if claiming => Task::Claim(Io::Read),
            Added::Fenced => {
                state.nodes[who].training = false;
                state.nodes[who].launched_from = None;
                Task::Down
            }
        }
    }
}
