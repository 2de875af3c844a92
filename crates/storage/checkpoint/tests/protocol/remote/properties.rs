//! What must hold in every state, and what must come true in one.

use stateright::Property;

use super::{Body, KEEP, NODES, Node, Remote, State};

impl Remote {
    pub(super) fn promises(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always("no commit behind the claim of a higher epoch", |_, state: &State| {
                let mut newest = 0;
                state.truth.iter().all(|entry| match entry.body {
                    Body::Claim { epoch, .. } => {
                        newest = newest.max(epoch);
                        true
                    }
                    Body::Commit { epoch, .. } => epoch == newest,
                    _ => true,
                })
            }),
            Property::always("an epoch is claimed once", |_, state: &State| {
                let epochs = state.truth.iter().filter_map(|entry| match entry.body {
                    Body::Claim { epoch, .. } => Some(epoch),
                    _ => None,
                });
                epochs.eq(1..=state.truth().claim().0)
            }),
            Property::always("whoever trains holds an epoch of its own", |_, state: &State| {
                let holds = |(who, node): (usize, &Node)| {
                    let node_number = who as u8;
                    !node.training || state.truth().has(Body::Claim { epoch: node.epoch, node: node_number })
                };
                state.nodes.iter().enumerate().take(NODES).all(holds)
            }),
            Property::always("what is uploaded and not retired is whole there", |_, state: &State| {
                let truth = state.truth();
                let intact =
                    |id: u8| !truth.live(id) || !truth.has(Body::Uploaded { id }) || state.whole_there(id);
                (0..state.checkpoints.len() as u8).all(intact)
            }),
            Property::always("a checkpoint is committed once, behind its parent", |_, state: &State| {
                let ids: Vec<_> = state.truth().commits().map(|(id, _)| id).collect();
                ids.iter().enumerate().all(|(index, id)| {
                    let parent = state.checkpoint(*id).parent;
                    !ids[..index].contains(id) && parent.is_none_or(|parent| ids[..index].contains(&parent))
                })
            }),
            Property::always(
                "an attempt goes on along the branch of the epoch before",
                |_, state: &State| {
                    state.checkpoints.iter().all(|checkpoint| {
                        let claimed = state.truth.iter().position(
                        |entry| matches!(entry.body, Body::Claim { epoch, .. } if epoch == checkpoint.epoch),
                    );
                        let before = state.truth_at(claimed.unwrap_or(0)).chain();
                        let from = checkpoint
                            .parent
                            .filter(|parent| state.checkpoint(*parent).epoch != checkpoint.epoch);
                        from.is_none_or(|from| before.contains(&from))
                    })
                },
            ),
            Property::always("a commit counts for the epoch that trained it", |_, state: &State| {
                state.truth().commits().all(|(id, epoch)| state.checkpoint(id).epoch == epoch)
            }),
            Property::always("work is lost only to another node", |_, state: &State| {
                let truth = state.truth();
                (0..).zip(&state.checkpoints).all(|(id, checkpoint)| {
                    let next = state.truth.iter().find_map(|entry| match entry.body {
                        Body::Claim { epoch, node } if epoch == checkpoint.epoch + 1 => Some(node),
                        _ => None,
                    });
                    truth.has_commit(id) || next != Some(checkpoint.node)
                })
            }),
            Property::always("what was launched from stays whole while it is needed", |_, state: &State| {
                let intact = |(who, node): (usize, &Node)| {
                    let Some(from) = node.launched_from.filter(|from| node.head == Some(*from)) else {
                        return true;
                    };
                    state.checkpoint(from).copied[who] || state.checkpoint(from).here[who]
                };
                state.nodes.iter().enumerate().take(NODES).all(intact)
            }),
            Property::always("two are left there wherever one was retired", |_, state: &State| {
                let truth = state.truth();
                let any = truth.entries.iter().any(|entry| matches!(entry.body, Body::Retire { .. }));
                !any || truth.uploaded_chain().len() >= KEEP
            }),
            Property::always("bytes are somewhere until they are retired there", |_, state: &State| {
                let truth = state.truth();
                (0..).zip(&state.checkpoints).all(|(id, checkpoint)| {
                    !truth.live(id) || state.whole_there(id) || checkpoint.here != [false; NODES]
                })
            }),
            Property::sometimes("work that waited is fenced", |_, state: &State| {
                let truth = state.truth();
                (0..)
                    .zip(&state.checkpoints)
                    .any(|(id, it)| it.epoch < truth.claim().0 && !truth.has_commit(id))
            }),
        ];
        if self.saves.len() > 2 {
            properties.push(Property::sometimes(
                "a node comes back to the other's work",
                |_, state: &State| {
                    state.nodes.iter().enumerate().take(NODES).any(|(who, node)| {
                        node.epoch == 3
                            && node.training
                            && node
                                .launched_from
                                .is_some_and(|id| usize::from(state.checkpoint(id).node) != who)
                    })
                },
            ));
        }
        if self.housekeeper {
            properties.push(Property::sometimes("retired and swept", |_, state: &State| {
                state.truth.iter().any(|entry| matches!(entry.body, Body::Swept { .. }))
            }));
        }
        if self.faults.lost_answers > 0 {
            properties.push(Property::sometimes("a create arrives late", |_, state: &State| {
                state.nodes.iter().any(|node| node.given_up > 0) && state.on_its_way.is_none()
            }));
        }
        properties
    }
}
