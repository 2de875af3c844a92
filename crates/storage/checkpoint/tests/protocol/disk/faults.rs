//! Faults of a disk.

use super::{Actor, Bytes, Disk, State, Task};

impl Disk {
    pub(super) fn sync_fails(&self, state: &mut State, who: usize) {
        // The error of a storage whose outcome is unknown. Reading back finds the entry; a power cut could still undo
        // it, so the create is repeated until its sync succeeds.
        if !self.rules.acknowledged_when_synced {
            let durable: Vec<_> = state.log.iter().flatten().map(|entry| entry.durable).collect();
            self.step(state, who);
            state.log.iter_mut().flatten().zip(durable).for_each(|(entry, durable)| entry.durable = durable);
        }
    }

    pub(super) fn power_cut(&self, state: &mut State, mut names: u8, bytes: bool) {
        for slot in &mut state.log {
            if slot.as_ref().is_some_and(|entry| !entry.durable) {
                let kept = names & 1 == 1;
                names >>= 1;
                *slot = slot.take().filter(|_| kept);
            }
            slot.iter_mut().for_each(|entry| entry.durable = true);
        }
        while state.log.last() == Some(&None) {
            state.log.pop();
        }
        for folder in &mut state.folders {
            *folder = match *folder {
                Bytes::Written | Bytes::Synced if bytes => Bytes::Durable,
                Bytes::Written => Bytes::Partial,
                Bytes::Synced => Bytes::Absent,
                other => other,
            };
        }
        let keepers = self.writers();
        for (index, actor) in
            state.actors.iter_mut().enumerate().filter(|(_, actor)| actor.task != Task::Absent)
        {
            let task = if index == keepers && self.housekeeper { Task::Idle } else { Task::Stopped };
            *actor = Actor::new(task);
        }
    }
}
