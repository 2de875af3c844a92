//! What an attempt does, step by step: claims, resumes, saves.

use super::{Actor, Body, Bytes, Disk, Io, State, Task};

impl Disk {
    pub(super) fn writers(&self) -> usize {
        self.saves.len()
    }

    pub(super) fn housekeeper_index(&self) -> usize {
        self.writers()
    }

    /// The folder of a writer's save; never used again.
    pub(super) fn folder(&self, writer: usize, save: u8) -> u8 {
        self.saves[..writer].iter().sum::<u8>() + save
    }

    pub(super) fn step(&self, state: &mut State, who: usize) {
        let task = state.actors[who].task;
        let next = match task {
            Task::Absent => Task::Claim(Io::Read),
            Task::Stopped => return,
            Task::Idle => self.find_work(state),
            Task::Retire(..)
            | Task::DeleteFirst(_)
            | Task::DeleteRest(_)
            | Task::Swept(..)
            | Task::Abandon(..)
            | Task::DeleteOrphan(_) => self.keep_house(state, who, task),
            Task::Pin(commit, io) => self.pin(state, who, commit, io),
            Task::MarkUnsafe(commit, io) => self.mark_unsafe(state, who, commit, io),
            _ => self.write(state, who, task),
        };
        if state.actors[who].task != Task::Stopped {
            state.actors[who].task = next;
        }
    }

    fn write(&self, state: &mut State, who: usize, task: Task) -> Task {
        let epoch = who as u8 + 1;
        let Actor { parent, saves, .. } = state.actors[who];
        let folder = self.folder(who, saves);
        let index = usize::from(folder);
        match task {
            Task::Claim(mut io) => match self.append_as_writer(state, who, &mut io, Body::Claim { epoch }) {
                Some(_) => Task::Resume,
                None => Task::Claim(io),
            },
            Task::Resume => self.resume(state, who, 0),
            Task::Mark(commit, mut io) => {
                match self.append_as_writer(state, who, &mut io, Body::Suspect { commit }) {
                    Some(_) => Task::Resume,
                    None => Task::Mark(commit, io),
                }
            }
            Task::Begin(mut io) => match self.append_as_writer(state, who, &mut io, Body::Begin { folder }) {
                Some(_) if self.rules.commit_behind_data => Task::WriteFirst,
                Some(_) => Task::Commit(Io::Read),
                None => Task::Begin(io),
            },
            Task::WriteFirst => {
                state.folders[index] = Bytes::Partial;
                Task::WriteRest
            }
            Task::WriteRest => {
                state.folders[index] = Bytes::Written;
                if self.rules.bytes_synced_before_commit { Task::SyncBytes } else { Task::Commit(Io::Read) }
            }
            Task::SyncBytes => {
                if state.folders[index] == Bytes::Written {
                    state.folders[index] = Bytes::Synced;
                }
                if self.rules.names_synced_before_commit { Task::SyncNames } else { Task::Commit(Io::Read) }
            }
            Task::SyncNames => {
                if state.folders[index] == Bytes::Synced {
                    state.folders[index] = Bytes::Durable;
                }
                if self.rules.commit_behind_data {
                    Task::Commit(Io::Read)
                } else {
                    self.next_save(state, who)
                }
            }
            Task::Commit(mut io) => {
                let body = Body::Commit { folder, epoch, parent };
                match self.append_as_writer(state, who, &mut io, body) {
                    Some(_) => self.acknowledge(state, who, folder),
                    None => Task::Commit(io),
                }
            }
            other => unreachable!("{other:?} is no writer's"),
        }
    }

    fn acknowledge(&self, state: &mut State, who: usize, folder: u8) -> Task {
        if !self.rules.commit_behind_data {
            return Task::WriteFirst;
        }
        state.acknowledged.push(folder);
        state.acknowledged.sort_unstable();
        let newest = state.now().commits().find(|commit| commit.folder == folder).map(|commit| commit.number);
        state.actors[who].parent = newest;
        self.next_save(state, who)
    }

    fn next_save(&self, state: &mut State, who: usize) -> Task {
        state.actors[who].saves += 1;
        if state.actors[who].saves == self.saves[who] { Task::Stopped } else { Task::Begin(Io::Read) }
    }

    pub(super) fn resume(&self, state: &mut State, who: usize, unreadable: u8) -> Task {
        let known = state.readable() as u8;
        state.actors[who].known = known;
        let history = state.history(known);
        let chain = if self.rules.unsafe_skipped { history.chain() } else { history.chain_with_unsafe() };
        let mut candidates = chain.iter().skip(usize::from(unreadable));
        let Some(candidate) = candidates.next() else {
            let is_gone = |commit: super::history::Commit| {
                history.is_unsafe(commit.number) || history.retired(commit.number)
            };
            let begins = history.commits().all(is_gone);
            state.actors[who].parent = None;
            return if begins { Task::Begin(Io::Read) } else { Task::Stopped };
        };
        if !state.folders[usize::from(candidate.folder)].whole() {
            return Task::Mark(candidate.number, Io::Read);
        }
        state.actors[who].parent = Some(candidate.number);
        if self.saves[who] == 0 { Task::Stopped } else { Task::Begin(Io::Read) }
    }
}
