//! Adding an entry to the truth when answers may be lost.

use super::truth::Truth;
use super::{Body, Entry, Io, Remote, State, Task};

/// What became of adding an entry.
pub(super) enum Added {
    NotYet(Io),
    Exists,
    /// The decision was to add nothing.
    Nothing,
    Fenced,
}

impl Remote {
    pub(super) fn add(
        &self,
        state: &mut State,
        who: usize,
        io: Io,
        epoch: Option<u8>,
        decide: impl Fn(&Truth<'_>) -> Option<Body>,
    ) -> Added {
        match io {
            Io::Read => {
                let known = state.truth.len();
                state.nodes[who].known = known as u8;
                let truth = state.truth_at(known);
                let fenced = |(found, holder)| {
                    epoch.is_some_and(|epoch| found > epoch || (found == epoch && holder != who as u8))
                };
                if self.rules.fence_checked && fenced(truth.claim()) {
                    return Added::Fenced;
                }
                match decide(&truth) {
                    None => Added::Nothing,
                    Some(body) => Added::NotYet(Io::Create(Entry {
                        body,
                        ulid: (who as u8, state.nodes[who].given_up),
                    })),
                }
            }
            Io::Create(entry) if state.truth.len() == usize::from(state.nodes[who].known) => {
                state.truth.push(entry);
                Added::Exists
            }
            Io::Create(entry) => Added::NotYet(Io::ReadBack(entry)),
            Io::ReadBack(entry) => match state.truth.get(usize::from(state.nodes[who].known)) {
                None => Added::NotYet(Io::Create(entry)),
                Some(found) if *found == entry || !self.rules.ulid_compared => Added::Exists,
                Some(_) => Added::NotYet(Io::Read),
            },
        }
    }

    pub(super) fn step(&self, state: &mut State, who: usize) {
        let next = match state.nodes[who].task {
            task @ (Task::Idle
            | Task::Retire(..)
            | Task::DeleteOwn(_)
            | Task::DeleteBases(_)
            | Task::Swept(..)) => self.keep_house(state, who, task),
            task => self.supervise(state, who, task),
        };
        let fenced = next == Task::Down;
        state.nodes[who].task = next;
        if fenced {
            state.nodes[who].known = 0;
        }
    }
}
