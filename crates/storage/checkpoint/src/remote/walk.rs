//! The order in which a resume tries the commits of the truth: from the newest to its ancestors. A script that writes its own checkpoints
//! cannot continue from a model that it committed beside them (`run.save_model`), so that such models come last.

use std::collections::VecDeque;

use trackway_core::Step;
use trackway_formats::checkpoint_manifest::Manifest;
use trackway_formats::checkpoint_origin::is_adopted;

use super::replica::Replica;
use crate::error::{CheckpointError, Fallback};
use crate::history::entry::CommitBody;
use crate::history::{Candidate, History};

/// At most so many older commits are searched for one that the script wrote itself.
const SEARCHED_MAX: usize = 64;

/// The commits that were not tried yet.
pub(super) struct Walk {
    stops: VecDeque<Stop>,
    /// Models, newest first, from the first one before which the script wrote a checkpoint itself.
    models: VecDeque<Stop>,
    /// The newest step from which a resume could be meant to continue, whatever became of it.
    pub newest_step: Option<Step>,
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
        let stop = |candidate: Candidate<'_>| match candidate {
            Candidate::Passed(fallback) => Stop::Passed(fallback),
            Candidate::Commit { number, body } => {
                let uploaded = history.commit(number).is_some_and(|record| record.uploaded_to.is_some());
                Stop::Commit { number, body: body.clone(), uploaded }
            }
        };
        let stops = history.candidates().into_iter().map(stop).collect();
        Self { stops, models: VecDeque::new(), newest_step: None }
    }
}

impl Stop {
    fn step(&self) -> Option<Step> {
        match self {
            Self::Commit { body, .. } => Some(body.step),
            Self::Passed(fallback) => fallback.step,
        }
    }
}

impl Replica {
    /// The next commit to try; none: all were.
    pub(super) fn next_stop(&self, walk: &mut Walk) -> Result<Option<Stop>, CheckpointError> {
        while let Some(stop) = walk.stops.pop_front() {
            let is_model = self.manifest_of(&stop)?.is_some_and(|manifest| manifest.is_model_alone());
            if is_model && (!walk.models.is_empty() || self.has_adopted(&walk.stops)?) {
                walk.models.push_back(stop);
                continue;
            }
            walk.newest_step = walk.newest_step.or(stop.step());
            return Ok(Some(stop));
        }
        Ok(walk.models.pop_front())
    }

    /// Whether one of these was written by the script itself.
    fn has_adopted(&self, stops: &VecDeque<Stop>) -> Result<bool, CheckpointError> {
        for stop in stops.iter().take(SEARCHED_MAX) {
            if self.manifest_of(stop)?.is_some_and(|manifest| is_adopted(&manifest)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What a commit consists of, from this disk or from the remote; none: it cannot be read.
    fn manifest_of(&self, stop: &Stop) -> Result<Option<Manifest>, CheckpointError> {
        let Stop::Commit { body, uploaded, .. } = stop else { return Ok(None) };
        let found = self.some_manifest(body, &self.copies_here(&body.object_prefix), *uploaded)?;
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

    /// Proves that an empty machine continues from the newest checkpoint that the script wrote itself, not from a model that was committed after
    /// it, that no step counts as lost because of the model, and that the local log leads there too.
    #[test]
    fn a_model_beside_checkpoints_of_the_script_is_not_resumed_from() {
        let (world, remote): (_, Arc<dyn Backend>) = (World::new(), Arc::new(MemoryBackend::default()));
        let (attempt, fetched) = world.fetch_target(&remote).unwrap();
        let mut root = world.train(attempt, fetched.epoch);
        save_adopted(&mut root, 20);
        save_adopted(&mut root, 30);
        save_model(&mut root, 40);
        save_model(&mut root, 41);
        world.settle(&remote, None).unwrap();
        let other = world.other_machine();
        let (_, step, lost_steps) = target(&other, &remote);
        assert_eq!((step, lost_steps), (30, 0));
        assert_eq!(other.view().resume_target().unwrap().unwrap().step, 30);
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
        remote.replace(&format!("{damaged}/weights.bin"), b"damaged!").unwrap();
        let (_, step, _) = target(&world.other_machine(), &remote);
        assert_eq!(step, 30);
    }
}
