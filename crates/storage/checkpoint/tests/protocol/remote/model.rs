//! The actions of the model and what they lead to.

use stateright::{Model, Property};

use super::{Action, Body, Io, NODES, Node, Remote, State, Task};

impl Model for Remote {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let node = |task| Node {
            task,
            known: 0,
            given_up: 0,
            epoch: 0,
            training: false,
            head: None,
            launched_from: None,
            deleting: None,
            saves: 0,
        };
        let mut nodes = vec![node(Task::Down); NODES];
        nodes.push(node(if self.housekeeper { Task::Idle } else { Task::Down }));
        let mut state = State {
            truth: Vec::new(),
            on_its_way: None,
            checkpoints: Vec::new(),
            nodes,
            faults: self.faults,
        };
        state.nodes[0].task = Task::Claim(Io::Read);
        while state.nodes[0].task != Task::Run {
            self.step(&mut state, 0);
        }
        for id in 0..self.earlier {
            self.save(&mut state, 0);
            while !state.truth().has(Body::Uploaded { id }) {
                self.step(&mut state, 0);
            }
        }
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (who, node) in state.nodes.iter().enumerate() {
            if node.task != Task::Down {
                actions.push(Action::Step(who, node.task));
            }
            let io = match node.task {
                Task::Claim(io)
                | Task::Replay(_, io)
                | Task::Announce(_, io)
                | Task::Retire(_, io)
                | Task::Swept(_, io) => Some(io),
                _ => None,
            };
            match io {
                Some(Io::Create(entry)) if state.faults.lost_answers > 0 => {
                    actions.push(Action::AnswerLost(who, entry));
                    if state.on_its_way.is_none() {
                        actions.push(Action::Late(who, entry));
                    }
                }
                Some(Io::ReadBack(_))
                    if state.on_its_way.is_some() && state.truth.len() == usize::from(node.known) =>
                {
                    actions.push(Action::GiveUp(who));
                }
                _ => {}
            }
            if who < NODES {
                self.node_actions(state, who, actions);
            }
        }
        if state.on_its_way.is_some() {
            actions.push(Action::Arrives);
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        let set_io = |state: &mut State, who: usize, new: Io| match &mut state.nodes[who].task {
            Task::Claim(io)
            | Task::Replay(_, io)
            | Task::Announce(_, io)
            | Task::Retire(_, io)
            | Task::Swept(_, io) => {
                *io = new;
            }
            other => unreachable!("{other:?} adds nothing"),
        };
        match action {
            Action::Step(who, _) => self.step(&mut state, who),
            Action::AnswerLost(who, entry) => {
                state.faults.lost_answers -= 1;
                if state.truth.len() == usize::from(state.nodes[who].known) {
                    state.truth.push(entry);
                }
                set_io(&mut state, who, Io::ReadBack(entry));
            }
            Action::Late(who, entry) => {
                state.faults.lost_answers -= 1;
                state.on_its_way = Some((state.nodes[who].known, entry));
                set_io(&mut state, who, Io::ReadBack(entry));
            }
            Action::Arrives => {
                let (known, entry) = state.on_its_way.take()?;
                if state.truth.len() == usize::from(known) {
                    state.truth.push(entry);
                }
            }
            Action::GiveUp(who) => {
                state.nodes[who].given_up += 1;
                set_io(&mut state, who, Io::Read);
            }
            Action::Save(who) => self.save(&mut state, who),
            Action::Start(who) => state.nodes[who].task = Task::Drain,
            Action::Crash(who) => {
                state.faults.crashes -= 1;
                let node = &mut state.nodes[who];
                (node.task, node.training, node.launched_from, node.known) = (Task::Down, false, None, 0);
            }
            Action::LocalRetire(who, id) => {
                state.checkpoint_mut(id).retired_here[who] = true;
                state.nodes[who].deleting = Some(id);
            }
            Action::LocalDelete(who, id) => {
                state.checkpoint_mut(id).here[who] = false;
                state.nodes[who].deleting = None;
            }
        }
        (state != *before).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        self.promises()
    }
}
