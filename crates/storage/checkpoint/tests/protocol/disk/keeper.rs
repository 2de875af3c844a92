//! The actions of the housekeeper, which deletes, and of the actor that pins.

use super::history::{Commit, History};
use super::{Body, Bytes, Disk, Io, KEEP, Number, State, Task};

impl Disk {
    /// What the housekeeper may retire now, according to `history` and the disk.
    fn retirable(&self, state: &State, history: &History<'_>) -> Option<Number> {
        let head_epoch = history.commits().map(|commit| commit.epoch).max().unwrap_or(0);
        let (chain, lost) = match self.rules.safe_kept {
            true => (history.chain(), history.unsafe_commits()),
            false => (history.chain_with_unsafe(), Vec::new()),
        };
        if self.rules.newest_epoch_awaited && head_epoch != history.epoch() {
            return None;
        }
        let verified = |commit: &&Commit| state.folders[usize::from(commit.folder)].whole();
        let kept = if self.rules.two_verified_kept { KEEP } else { 1 };
        let kept_of = |commits: &[Commit]| commits.iter().take(kept).copied().collect::<Vec<_>>();
        let staying = [kept_of(&chain), kept_of(&lost)].concat();
        if staying.iter().take(kept).filter(verified).count() < kept {
            return None;
        }
        let pinned = |commit: Number| self.rules.pins_respected && history.has(Body::Pin { commit });
        let kept: Vec<_> = staying.iter().map(|commit| commit.number).collect();
        let gone = |number| kept.contains(&number) || pinned(number) || history.retired(number);
        history.commits().map(|commit| commit.number).find(|number| !gone(*number))
    }

    fn orphan(&self, history: &History<'_>) -> Option<u8> {
        let newest_epoch = history.epoch();
        let is_orphan = |folder: &u8| {
            let older = self.epoch_of(*folder) < newest_epoch || !self.rules.orphans_of_older_epochs;
            let committed = history.commits().any(|commit| commit.folder == *folder);
            older && !committed && !history.has(Body::Abandon { folder: *folder })
        };
        history.bodies().find_map(|(_, body)| match body {
            Body::Begin { folder } if is_orphan(&folder) => Some(folder),
            _ => None,
        })
    }

    fn epoch_of(&self, folder: u8) -> u8 {
        (0..self.writers()).filter(|writer| self.folder(*writer, 0) <= folder).count() as u8
    }

    pub(super) fn find_work(&self, state: &mut State) -> Task {
        let history = state.now();
        let unswept = history.bodies().find_map(|(_, body)| match body {
            Body::Retire { commit } if !history.has(Body::Swept { commit }) => Some(commit),
            _ => None,
        });
        if let Some(commit) = unswept {
            if self.rules.settled_before_delete {
                state.settle(state.readable() as u8);
            }
            return Task::DeleteFirst(commit);
        }
        match (self.retirable(state, &history), self.orphan(&history)) {
            (Some(commit), _) if self.rules.retired_before_delete => Task::Retire(commit, Io::Read),
            (Some(commit), _) => Task::DeleteFirst(commit),
            (None, Some(folder)) => Task::Abandon(folder, Io::Read),
            (None, None) => Task::Idle,
        }
    }

    pub(super) fn keep_house(&self, state: &mut State, who: usize, task: Task) -> Task {
        let folder_of =
            |state: &State, commit| state.now().commit(commit).map(|commit| usize::from(commit.folder));
        match task {
            Task::Retire(commit, mut io) => {
                let decide = |state: &State, history: &History<'_>| {
                    (self.retirable(state, history) == Some(commit)).then_some(Body::Retire { commit })
                };
                match self.append(state, who, &mut io, decide) {
                    Some(true) => Task::DeleteFirst(commit),
                    Some(false) => Task::Idle,
                    None => Task::Retire(commit, io),
                }
            }
            Task::DeleteFirst(commit) => {
                if let Some(folder) = folder_of(state, commit)
                    && state.folders[folder] != Bytes::Absent
                {
                    state.folders[folder] = Bytes::Partial;
                }
                Task::DeleteRest(commit)
            }
            Task::DeleteRest(commit) => {
                if let Some(folder) = folder_of(state, commit) {
                    state.folders[folder] = Bytes::Absent;
                }
                Task::Swept(commit, Io::Read)
            }
            Task::Swept(commit, mut io) => {
                let body = Body::Swept { commit };
                match self.append(state, who, &mut io, |_, history| (!history.has(body)).then_some(body)) {
                    Some(_) => Task::Idle,
                    None => Task::Swept(commit, io),
                }
            }
            Task::Abandon(folder, mut io) => {
                let decide = |_: &State, history: &History<'_>| {
                    (self.orphan(history) == Some(folder)).then_some(Body::Abandon { folder })
                };
                match self.append(state, who, &mut io, decide) {
                    Some(true) => Task::DeleteOrphan(folder),
                    Some(false) => Task::Idle,
                    None => Task::Abandon(folder, io),
                }
            }
            Task::DeleteOrphan(folder) => {
                state.folders[usize::from(folder)] = Bytes::Absent;
                Task::Idle
            }
            other => unreachable!("{other:?} is no housekeeper's"),
        }
    }

    pub(super) fn mark_unsafe(&self, state: &mut State, who: usize, commit: Number, mut io: Io) -> Task {
        let body = Body::Unsafe { commit };
        match self.append(state, who, &mut io, |_, history| (!history.has(body)).then_some(body)) {
            Some(_) => {
                state.actors[who].saves += 1;
                if state.actors[who].saves == KEEP as u8 { Task::Stopped } else { Task::Idle }
            }
            None => Task::MarkUnsafe(commit, io),
        }
    }

    pub(super) fn pin(&self, state: &mut State, who: usize, commit: Number, mut io: Io) -> Task {
        let decide =
            |_: &State, history: &History<'_>| (!history.retired(commit)).then_some(Body::Pin { commit });
        match self.append(state, who, &mut io, decide) {
            Some(_) => Task::Stopped,
            None => Task::Pin(commit, io),
        }
    }
}
