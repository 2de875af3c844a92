//! What happens on a node beside its supervisor: its trainer saves, its disk deletes, it crashes.

use super::{Action, Body, Checkpoint, Id, KEEP, NODES, Node, Remote, State, Task};

impl Remote {
    pub(super) fn save(&self, state: &mut State, who: usize) {
        let id = state.checkpoints.len() as Id;
        let Node { epoch, head, .. } = state.nodes[who];
        let mut here = [false; NODES];
        here[who] = true;
        state.checkpoints.push(Checkpoint {
            node: who as u8,
            epoch,
            parent: head,
            base_in: head.map_or(id, |parent| state.checkpoint(parent).base_in),
            own_there: false,
            base_there: false,
            here,
            copied: [false; NODES],
            retired_here: [false; NODES],
        });
        state.nodes[who].head = Some(id);
        state.nodes[who].saves += 1;
    }

    /// What a node's retention deletes: all but the newest two of its trainer's branch.
    fn locally_retirable(&self, state: &State, who: usize) -> Option<Id> {
        let mut chain = Vec::new();
        let mut next = state.nodes[who].head;
        while let Some(id) = next {
            chain.push(id);
            next = state.checkpoint(id).parent;
        }
        let truth = state.truth();
        let waits = |id: Id| self.rules.waiting_spared && !truth.has(Body::Uploaded { id });
        let here: Vec<_> = chain
            .into_iter()
            .filter(|id| state.checkpoint(*id).here[who] && !state.checkpoint(*id).retired_here[who])
            .collect();
        here.into_iter().skip(KEEP).find(|id| !waits(*id))
    }

    fn may_save(&self, state: &State, who: usize) -> bool {
        let node = &state.nodes[who];
        let limit = self.saves.get(usize::from(node.epoch).saturating_sub(1)).copied().unwrap_or(0);
        node.training && node.saves < limit
    }

    pub(super) fn node_actions(&self, state: &State, who: usize, actions: &mut Vec<Action>) {
        let node = &state.nodes[who];
        let epochs_left = usize::from(state.truth().claim().0) < self.saves.len();
        if node.task == Task::Down && epochs_left {
            actions.push(Action::Start(who));
        }
        if self.may_save(state, who) {
            actions.push(Action::Save(who));
        }
        if node.task != Task::Down && state.faults.crashes > 0 {
            actions.push(Action::Crash(who));
        }
        if self.local_retention
            && node.deleting.is_none()
            && node.training
            && let Some(id) = self.locally_retirable(state, who)
        {
            actions.push(Action::LocalRetire(who, id));
        }
        actions.extend(node.deleting.map(|id| Action::LocalDelete(who, id)));
    }
}
