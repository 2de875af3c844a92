//! The order in which a resume tries the commits of the truth: from the newest to its ancestors. A script that writes its own checkpoints
//! cannot continue from a model that it committed beside them (`run.save_model`), so that such models come last.

use std::collections::{BTreeSet, VecDeque};

use trackway_core::Step;
use trackway_formats::checkpoint_manifest::Manifest;
use trackway_formats::checkpoint_origin::is_adopted;

use super::replica::Replica;
use crate::error::{Fallback, Result};
use crate::history::entry::CommitBody;
use crate::history::{Candidate, History};

/// At most so many of the newest commits are searched for one that the script wrote itself.
const SEARCHED_MAX: usize = 64;

/// The commits that were not tried yet.
pub(super) struct Walk {
    stops: VecDeque<Stop>,
    /// Models, which come after these.
    models: VecDeque<Stop>,
    /// What only a model was trained on, which comes last.
    rest: VecDeque<Stop>,
    way: Way,
    /// The step of the first commit on the way, whatever became of it.
    pub newest_step: Option<Step>,
}

/// Where the way leads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// From the newest commit; no model was met yet.
    Newest,
    /// The same, and a model is as good as any other: the script wrote no checkpoint itself.
    WithModels,
    /// From the newest checkpoint that the script wrote itself.
    Adopted,
}

/// One commit on the way.
pub(super) enum Stop {
    /// It may be resumed from if its bytes are available.
    Commit { number: u64, body: CommitBody, uploaded: bool },
    /// It may not, and why.
    Passed(Fallback),
}

impl Walk {
    pub fn along(history: &History) -> Self {
        let stops = stops_of(history, history.candidates());
        let (models, rest) = (VecDeque::new(), VecDeque::new());
        Self { stops, models, rest, way: Way::Newest, newest_step: None }
    }

    /// Continues from another commit; what is left of the way before comes last.
    fn turn_to(&mut self, number: u64, history: &History) {
        let turned = stops_of(history, history.ancestry(Some(number)));
        let numbers: BTreeSet<u64> = turned.iter().filter_map(Stop::number).collect();
        let left = std::mem::replace(&mut self.stops, turned).into_iter();
        self.rest.extend(left.filter(|stop| stop.number().is_some_and(|number| !numbers.contains(&number))));
    }
}

impl Stop {
    fn number(&self) -> Option<u64> {
        if let Self::Commit { number, .. } = self { Some(*number) } else { None }
    }

    fn step(&self) -> Option<Step> {
        match self {
            Self::Commit { body, .. } => Some(body.step),
            Self::Passed(fallback) => fallback.step,
        }
    }
}

fn stops_of(history: &History, candidates: Vec<Candidate<'_>>) -> VecDeque<Stop> {
    let stop = |candidate: Candidate<'_>| match candidate {
        Candidate::Passed(fallback) => Stop::Passed(fallback),
        Candidate::Commit { number, body } => {
            let uploaded = history.commit(number).is_some_and(|record| record.uploaded_to.is_some());
            Stop::Commit { number, body: body.clone(), uploaded }
        }
    };
    candidates.into_iter().map(stop).collect()
}

impl Replica {
    /// The next commit to try; none: all were.
    pub(super) fn next_stop(&self, walk: &mut Walk, history: &History) -> Result<Option<Stop>> {
        while let Some(stop) = walk.stops.pop_front() {
            if !self.comes_last(&stop, walk, history)? {
                walk.newest_step = walk.newest_step.or(stop.step());
                return Ok(Some(stop));
            }
            walk.models.push_back(stop);
        }
        Ok(walk.models.pop_front().or_else(|| walk.rest.pop_front()))
    }

    /// Whether it is a model beside checkpoints of the script. The first one turns the way to these, which the log does not call its
    /// ancestors.
    fn comes_last(&self, stop: &Stop, walk: &mut Walk, history: &History) -> Result<bool> {
        let Stop::Commit { body, uploaded, .. } = stop else { return Ok(false) };
        let is_model = |manifest: Manifest| manifest.is_model_alone();
        if walk.way == Way::WithModels || !self.manifest_of(body, *uploaded)?.is_some_and(is_model) {
            return Ok(false);
        }
        if walk.way == Way::Newest {
            let adopted = self.newest_adopted(history)?;
            walk.way = if adopted.is_some() { Way::Adopted } else { Way::WithModels };
            adopted.into_iter().for_each(|number| walk.turn_to(number, history));
        }
        Ok(walk.way == Way::Adopted)
    }

    /// The newest commit that the script wrote itself.
    fn newest_adopted(&self, history: &History) -> Result<Option<u64>> {
        for number in history.live_commits().into_iter().take(SEARCHED_MAX) {
            let Some(record) = history.commit(number) else { continue };
            let manifest = self.manifest_of(&record.body, record.uploaded_to.is_some())?;
            if manifest.is_some_and(|manifest| is_adopted(&manifest)) {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// What a commit consists of, from this disk or from the remote; none: it cannot be read.
    fn manifest_of(&self, body: &CommitBody, uploaded: bool) -> Result<Option<Manifest>> {
        let found = self.some_manifest(body, &self.copies_here(&body.object_prefix), uploaded)?;
        Ok(found.ok().map(|(manifest, _)| manifest))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trackway_core::{AttemptId, Step};
    use trackway_formats::checkpoint_origin::ORIGIN_FILE_NAME;
    use trackway_store::{Backend, MemoryBackend};

    use crate::tests::World;
    use crate::{CheckpointRoot, Kind};

    /// What `run.save_model` commits.
    fn save_model(root: &mut CheckpointRoot, step: Step) {
        root.save(step, &[], |writer| writer.file("model.ubj", Kind::Weights, b"model")).unwrap();
    }

    /// A checkpoint that the script wrote itself.
    fn save_adopted(root: &mut CheckpointRoot, step: Step) {
        root.save(step, &[], |writer| {
            writer.file("weights.bin", Kind::Weights, &step.to_le_bytes())?;
            writer.file(ORIGIN_FILE_NAME, Kind::Other, b"{}")
        })
        .unwrap();
    }

    fn target(world: &World, remote: &Arc<dyn Backend>) -> (AttemptId, Step, u64) {
        let (attempt, fetched) = world.fetch_target(remote).unwrap();
        (attempt, fetched.target.unwrap().step, fetched.lost_steps)
    }

    /// Proves that an empty machine continues from the newest checkpoint that the script wrote itself, not from a model that was
    /// committed after it, that no step counts as lost because of the model, that both were sent, and that the local log leads there too.
    #[test]
    fn a_model_beside_checkpoints_of_the_script_is_not_resumed_from() {
        let (world, remote): (_, Arc<dyn Backend>) = (World::new(), Arc::new(MemoryBackend::default()));
        let (attempt, fetched) = world.fetch_target(&remote).unwrap();
        // The process of the script and the one that copies have each their own; a model names none of the copies as its parent.
        let [mut copies, mut script] = [(); 2].map(|()| world.train(attempt, fetched.epoch));
        save_adopted(&mut copies, 20);
        save_adopted(&mut copies, 30);
        save_model(&mut script, 40);
        save_model(&mut script, 41);
        world.settle(&remote, None).unwrap();
        let other = world.other_machine();
        let sent = world
            .replica(&remote)
            .unwrap()
            .remote_list()
            .iter()
            .filter(|it| it.uploaded_to.is_some())
            .count();
        assert_eq!(sent, 4);
        let (attempt, step, lost_steps) = target(&other, &remote);
        assert_eq!((step, lost_steps), (30, 0));
        assert_eq!(other.view().resume_target().unwrap().unwrap().step, 30);
        let mut copies = other.train(attempt, other.view().epoch().unwrap());
        save_adopted(&mut copies, 50);
        other.settle(&remote, None).unwrap();
        let (_, step, _) = target(&world.other_machine(), &remote);
        assert_eq!(step, 50);
    }

    /// Proves that a model is resumed from where nothing that the script wrote itself is before it, and where none of it can be read.
    #[test]
    fn a_model_is_resumed_from_where_it_is_all_there_is() {
        let (world, remote): (_, Arc<dyn Backend>) = (World::new(), Arc::new(MemoryBackend::default()));
        let (attempt, fetched) = world.fetch_target(&remote).unwrap();
        let mut root = world.train(attempt, fetched.epoch);
        save_model(&mut root, 10);
        world.settle(&remote, None).unwrap();
        let (attempt, step, _) = target(&world, &remote);
        assert_eq!(step, 10);
        let epoch = world.view().epoch().unwrap();
        let mut root = world.train(attempt, epoch);
        save_adopted(&mut root, 20);
        save_model(&mut root, 30);
        world.settle(&remote, None).unwrap();
        let damaged = world.view().list().into_iter().find(|info| info.step == 20).unwrap().object_prefix;
        remote.replace(&format!("{damaged}/weights.bin"), b"damaged").unwrap();
        let (_, step, _) = target(&world.other_machine(), &remote);
        assert_eq!(step, 30);
    }
}
