//! Reading the log and adding to it.

use super::history::History;
use super::rules::Rules;
use super::{Body, Disk, Entry, Io, State};

impl State {
    pub(super) fn readable(&self) -> usize {
        self.log.iter().take_while(|entry| entry.is_some()).count()
    }

    pub(super) fn history(&self, known: u8) -> History<'_> {
        History(&self.log[..usize::from(known)])
    }

    pub(super) fn now(&self) -> History<'_> {
        History(&self.log[..self.readable()])
    }

    pub(super) fn settle(&mut self, known: u8) {
        self.log.iter_mut().take(usize::from(known)).flatten().for_each(|entry| entry.durable = true);
    }
}

impl Disk {
    /// One I/O step of adding an entry. `None`: not done yet; `Some(true)`: the entry exists; `Some(false)`: it never
    /// will.
    pub(super) fn append(
        &self,
        state: &mut State,
        who: usize,
        io: &mut Io,
        decide: impl Fn(&State, &History<'_>) -> Option<Body>,
    ) -> Option<bool> {
        match *io {
            Io::Read => {
                let known = state.readable() as u8;
                state.actors[who].known = known;
                match decide(state, &state.history(known)) {
                    None => return Some(false),
                    Some(body) => *io = Io::Link(body),
                }
                if self.rules.settled_before_link {
                    state.settle(known);
                }
            }
            Io::Link(body) => {
                let index = usize::from(state.actors[who].known);
                let taken = state.log.get(index).is_some_and(Option::is_some);
                if taken && self.rules.decided_again {
                    *io = Io::Read;
                } else if taken {
                    state.actors[who].known += 1;
                } else {
                    let digest = state.history(index as u8).digest_with(body);
                    let entry = Some(Entry { body, digest, durable: false });
                    if index < state.log.len() {
                        state.log[index] = entry
                    } else {
                        state.log.push(entry)
                    }
                    *io = Io::Sync(body);
                }
            }
            Io::Sync(_) => {
                state.log.iter_mut().flatten().for_each(|entry| entry.durable = true);
                state.actors[who].known = state.readable() as u8;
                return Some(true);
            }
        }
        None
    }

    /// Adds an entry for a writer, which stops when fenced.
    pub(super) fn append_as_writer(
        &self,
        state: &mut State,
        who: usize,
        io: &mut Io,
        body: Body,
    ) -> Option<bool> {
        let epoch = who as u8 + 1;
        let Rules { fence_checked, abandoned_seen, .. } = self.rules;
        let done = self.append(state, who, io, |_, history| {
            let fenced = fence_checked && history.epoch() > epoch;
            let abandoned = abandoned_seen
                && matches!(body, Body::Commit { folder, .. } if history.has(Body::Abandon { folder }));
            (!fenced && !abandoned).then_some(body)
        });
        if done == Some(false) {
            state.actors[who].stop();
        }
        done.filter(|is_added| *is_added)
    }
}
