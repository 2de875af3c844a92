//! What the housekeeper of the remote storage does.

use super::adding::Added;
use super::truth::Truth;
use super::{Body, Id, Io, KEEP, Remote, State, Task};

impl Remote {
    fn retirable(&self, state: &State, truth: &Truth<'_>) -> Option<Id> {
        let (_, head_epoch) = truth.head()?;
        if self.rules.newest_epoch_awaited && head_epoch != truth.claim().0 {
            return None;
        }
        let counted = if self.rules.uploaded_count { truth.uploaded_chain() } else { truth.chain() };
        let newest = *counted.iter().filter(|id| truth.live(**id)).nth(KEEP - 1)?;
        let intact = counted.iter().take(KEEP).all(|id| !self.rules.uploaded_count || state.whole_there(*id));
        let chain = truth.chain();
        let older = chain.iter().skip_while(|id| **id != newest).skip(1);
        older.copied().filter(|_| intact).find(|id| truth.live(*id) && truth.has(Body::Uploaded { id: *id }))
    }

    pub(super) fn keep_house(&self, state: &mut State, who: usize, task: Task) -> Task {
        match task {
            Task::Idle => match self.retirable(state, &state.truth()) {
                Some(id) => Task::Retire(id, Io::Read),
                None => Task::Idle,
            },
            Task::Retire(id, io) => {
                let snapshot = state.clone();
                let decide = |truth: &Truth<'_>| {
                    (self.retirable(&snapshot, truth) == Some(id)).then_some(Body::Retire { id })
                };
                match self.add(state, who, io, None, decide) {
                    Added::NotYet(io) => Task::Retire(id, io),
                    Added::Exists => Task::DeleteOwn(id),
                    Added::Nothing | Added::Fenced => Task::Idle,
                }
            }
            Task::DeleteOwn(id) => {
                state.checkpoint_mut(id).own_there = false;
                Task::DeleteBases(id)
            }
            Task::DeleteBases(id) => {
                // As of the retire entry; whatever was added since can only reach what was live then.
                let retired_at = state.truth.iter().position(|entry| entry.body == Body::Retire { id });
                let truth = state.truth_at(retired_at.map_or(0, |index| index + 1));
                let reached = |base: Id| {
                    truth.commits().any(|(id, _)| truth.live(id) && state.checkpoint(id).base_in == base)
                };
                let base = state.checkpoint(id).base_in;
                if !self.rules.shared_spared || !reached(base) {
                    state.checkpoint_mut(base).base_there = false;
                }
                Task::Swept(id, Io::Read)
            }
            Task::Swept(id, io) => {
                let body = Body::Swept { id };
                match self.add(state, who, io, None, |truth| (!truth.has(body)).then_some(body)) {
                    Added::NotYet(io) => Task::Swept(id, io),
                    _ => Task::Idle,
                }
            }
            other => unreachable!("{other:?} is no housekeeper's"),
        }
    }
}
