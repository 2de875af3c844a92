//! What must hold in every state, and what must come true in one.

use stateright::Property;

use super::history::{Commit, History};
use super::{Body, Bytes, Disk, Entry, KEEP, Number, State};

impl Disk {
    pub(super) fn promises(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always("a commit that is not retired is whole", |_, state: &State| {
                let history = state.now();
                let intact = |commit: Commit| {
                    let bytes = state.folders[usize::from(commit.folder)];
                    bytes.whole() || bytes == Bytes::Rotten || history.retired(commit.number)
                };
                history.commits().all(intact)
            }),
            Property::always("what was acknowledged is in the log", |_, state: &State| {
                let history = state.now();
                state
                    .acknowledged
                    .iter()
                    .all(|folder| history.commits().any(|commit| commit.folder == *folder))
            }),
            Property::always("no commit behind the claim of a higher epoch", |_, state: &State| {
                let mut newest = 0;
                state.now().bodies().all(|(_, body)| match body {
                    Body::Claim { epoch } => {
                        newest = newest.max(epoch);
                        true
                    }
                    Body::Commit { epoch, .. } => epoch >= newest,
                    _ => true,
                })
            }),
            Property::always("every entry was decided on all before it", |_, state: &State| {
                let follows = |(index, entry): (usize, &Option<Entry>)| {
                    let before = History(&state.log[..index]);
                    entry.as_ref().is_none_or(|entry| entry.digest == before.digest_with(entry.body))
                };
                state.log[..state.readable()].iter().enumerate().all(follows)
            }),
            Property::always("nothing pinned is retired", |_, state: &State| {
                let history = state.now();
                history.bodies().all(|(_, body)| match body {
                    Body::Pin { commit } => !history.retired(commit),
                    _ => true,
                })
            }),
            Property::always("two are left wherever one was retired", |_, state: &State| {
                let history = state.now();
                let any_retired = history.bodies().any(|(_, body)| matches!(body, Body::Retire { .. }));
                let suspects =
                    history.bodies().filter(|(_, body)| matches!(body, Body::Suspect { .. })).count();
                !any_retired || history.chain().len() + history.unsafe_commits().len() + suspects >= KEEP
            }),
            Property::always("nothing continues from what was unsafe before it began", |_, state: &State| {
                let history = state.now();
                let marked_at = |commit| history.bodies().find(|(_, body)| *body == Body::Unsafe { commit });
                let claimed_at = |epoch| history.bodies().find(|(_, body)| *body == Body::Claim { epoch });
                history.commits().all(|commit| {
                    let of_earlier = |parent: &Number| {
                        history.commit(*parent).is_some_and(|parent| parent.epoch < commit.epoch)
                    };
                    let Some(parent) = commit.parent.filter(of_earlier) else { return true };
                    match (marked_at(parent), claimed_at(commit.epoch)) {
                        (Some((marked, _)), Some((claimed, _))) => marked > claimed,
                        _ => true,
                    }
                })
            }),
            Property::always("the newest safe one is not retired", |_, state: &State| {
                let mut retired = state.now().bodies().filter_map(|(number, body)| match body {
                    Body::Retire { commit } => Some((number, commit)),
                    _ => None,
                });
                retired.all(|(number, commit)| {
                    let before = History(&state.log[..usize::from(number) - 1]);
                    before.chain().first().is_none_or(|newest| newest.number != commit)
                })
            }),
            Property::always("one folder is committed once", |_, state: &State| {
                let history = state.now();
                history.commits().all(|one| {
                    history.commits().all(|other| one.number == other.number || one.folder != other.folder)
                })
            }),
            Property::sometimes("the last writer commits", |model: &Self, state: &State| {
                let last = model.writers() as u8;
                state.now().commits().any(|commit| commit.epoch == last)
            }),
        ];
        if self.housekeeper {
            properties.push(Property::sometimes("retired and swept", |_, state: &State| {
                state.now().bodies().any(|(_, body)| matches!(body, Body::Swept { .. }))
            }));
        }
        if self.pinner && self.housekeeper {
            properties.push(Property::sometimes(
                "a pin saves a commit that others of its age do not outlive",
                |_, state: &State| {
                    let history = state.now();
                    history.bodies().any(|(_, body)| match body {
                        Body::Pin { commit } => history
                            .commits()
                            .any(|other| other.number > commit && history.retired(other.number)),
                        _ => false,
                    })
                },
            ));
        }
        if self.marker {
            properties.push(Property::sometimes("a resume passes an unsafe one", |_, state: &State| {
                let history = state.now();
                let passed = |commit: Commit| {
                    let older = |number: Number| commit.parent.is_some_and(|parent| parent < number);
                    history.unsafe_commits().iter().any(|one| one.epoch < commit.epoch && older(one.number))
                };
                history.commits().any(passed)
            }));
        }
        if self.faults.rots > 0 {
            properties.push(Property::sometimes("a resume falls back", |_, state: &State| {
                let history = state.now();
                history.commits().any(|commit| {
                    commit.epoch > 1
                        && commit
                            .parent
                            .is_some_and(|parent| history.has(Body::Suspect { commit: parent + 2 }))
                })
            }));
        }
        properties
    }
}
