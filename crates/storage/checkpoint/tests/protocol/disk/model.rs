//! The actions of the model and what they lead to.

use stateright::{Model, Property};

use super::{Action, Actor, Bytes, Disk, Io, State, Task};

impl Model for Disk {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let folders = usize::from(self.saves.iter().sum::<u8>());
        let mut actors = vec![Actor::new(Task::Absent); self.writers()];
        actors.push(Actor::new(if self.housekeeper { Task::Idle } else { Task::Stopped }));
        actors.push(Actor::new(if self.pinner || self.marker { Task::Idle } else { Task::Stopped }));
        let mut state = State {
            log: Vec::new(),
            folders: vec![Bytes::Absent; folders],
            actors,
            acknowledged: Vec::new(),
            faults: self.faults,
        };
        while state.acknowledged.len() < usize::from(self.earlier) {
            self.step(&mut state, 0);
        }
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let busy = |actor: &Actor| !matches!(actor.task, Task::Stopped | Task::Absent | Task::Idle);
        for (who, actor) in state.actors.iter().enumerate() {
            let is_pinner = who == self.writers() + 1;
            if actor.task == Task::Stopped {
                continue;
            }
            if is_pinner && actor.task == Task::Idle {
                let history = state.now();
                let live = history.commits().filter(|commit| !history.retired(commit.number));
                actions.extend(live.map(|commit| match self.marker {
                    true => Action::UnsafeStart(commit.number),
                    false => Action::PinStart(commit.number),
                }));
                continue;
            }
            actions.push(Action::Step(who, actor.task));
            let syncing = matches!(
                actor.task,
                Task::Claim(Io::Sync(_))
                    | Task::Commit(Io::Sync(_))
                    | Task::Retire(_, Io::Sync(_))
                    | Task::Pin(_, Io::Sync(_))
                    | Task::MarkUnsafe(_, Io::Sync(_))
            );
            if syncing && state.faults.failed_syncs > 0 {
                actions.push(Action::SyncFails(who));
            }
            if busy(actor) && state.faults.kills > 0 {
                actions.push(Action::Kill(who));
            }
            if actor.task == Task::Resume && state.faults.unreadable > 0 {
                actions.extend([1, 2].map(|count| Action::Unreadable(who, count)));
            }
        }
        if state.faults.power_cuts > 0 {
            let names = state.log.iter().flatten().filter(|entry| !entry.durable).count();
            for names in 0..1 << names {
                actions.extend([false, true].map(|bytes| Action::PowerCut { names, bytes }));
            }
        }
        if state.faults.rots > 0 {
            let durable = (0..).zip(&state.folders).filter(|(_, bytes)| **bytes == Bytes::Durable);
            actions.extend(durable.map(|(folder, _)| Action::Rot(folder)));
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Step(who, _) => self.step(&mut state, who),
            Action::PinStart(commit) => state.actors[self.writers() + 1].task = Task::Pin(commit, Io::Read),
            Action::UnsafeStart(commit) => {
                state.actors[self.writers() + 1].task = Task::MarkUnsafe(commit, Io::Read);
            }
            Action::SyncFails(who) => {
                state.faults.failed_syncs -= 1;
                self.sync_fails(&mut state, who);
            }
            Action::Kill(who) => {
                state.faults.kills -= 1;
                state.actors[who].stop();
                if who == self.housekeeper_index() {
                    state.actors[who].task = Task::Idle;
                }
            }
            Action::PowerCut { names, bytes } => {
                state.faults.power_cuts -= 1;
                self.power_cut(&mut state, names, bytes);
            }
            Action::Rot(folder) => {
                state.faults.rots -= 1;
                state.folders[usize::from(folder)] = Bytes::Rotten;
            }
            Action::Unreadable(who, count) => {
                state.faults.unreadable -= 1;
                state.actors[who].task = self.resume(&mut state, who, count);
            }
        }
        (state != *before).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        self.promises()
    }
}
