//! What a resume would take.

use trackway_adopt::resumed_from;
use trackway_api::checkpoints::{
    Checkpoint, CheckpointListing, CheckpointOrigin, ResumeTarget, SkippedCheckpoint,
};
use trackway_checkpoint::remote::FetchSource;
use trackway_checkpoint::{CheckpointView, Fallback};
use trackway_engine::checkpoints::{Pace, fall_back_cost};
use trackway_engine::error::AppError;
use trackway_engine::run::remote::remote_error;

use super::Checkpoints;
use super::reading::{BytesProgress, ReadProgress};
use super::remote_view::{PlacedCheckpoint, Remote, RemoteView};

impl Checkpoints {
    /// The checkpoint a resume would take, every byte of it read that is on this disk, what was skipped, and what that
    /// costs. With a remote that answers it is the nearest copy according to the remote's log.
    ///
    /// # Errors
    /// [`trackway_engine::error::ErrorKind::NotFound`] when nothing was committed, `Integrity` when nothing verifies.
    pub fn resume_target(&self, watch: &BytesProgress) -> Result<ResumeTarget, AppError> {
        let infos = self.view()?.list();
        let newest = infos.iter().rev().find(|info| info.on_branch);
        let reading = ReadProgress::new(watch, newest.and_then(|info| info.size_bytes).unwrap_or(0));
        match self.ask_remote_through(reading.disk()) {
            Remote::Answers(there) => self.target_of_truth(*there),
            silent => self.target_of_this_disk(&reading, &silent),
        }
    }

    fn target_of_this_disk(&self, reading: &ReadProgress, remote: &Remote) -> Result<ResumeTarget, AppError> {
        let view = reading.view(&self.root)?;
        let found = view.resume_target().map_err(|error| self.error(error))?;
        let Some(mut found) = found else {
            return self.begins_again_target(&view, view.skipped(), remote);
        };
        let (skipped_newer, lost_steps) = (std::mem::take(&mut found.fallbacks), found.lost_steps);
        let target = resumed_from(&view, found);
        let placed = self.placed(vec![target.info], remote, true);
        let listing = self.listing(&view, placed, remote)?;
        Ok(ResumeTarget {
            checkpoints: verified(listing.checkpoints),
            standing: listing.standing,
            source: CheckpointOrigin::Local,
            fetch_bytes: 0,
            skipped: skipped(skipped_newer),
            cost: fall_back_cost(lost_steps, Pace::measured(self.attempts())),
            lost: Vec::new(),
            remote: listing.remote,
        })
    }

    /// Checkpoints were committed, and none is safe.
    fn begins_again_target(
        &self,
        view: &CheckpointView,
        fallbacks: Vec<Fallback>,
        remote: &Remote,
    ) -> Result<ResumeTarget, AppError> {
        if !Fallback::only_unsafe(&fallbacks) {
            return Err(self.nothing_committed());
        }
        let steps = fallbacks.iter().filter_map(|one| one.step).max().unwrap_or(0);
        Ok(ResumeTarget {
            checkpoints: Vec::new(),
            standing: self.standing(&self.placed(view.list(), remote, false)),
            source: CheckpointOrigin::Local,
            fetch_bytes: 0,
            skipped: skipped(fallbacks),
            cost: fall_back_cost(steps, Pace::measured(self.attempts())),
            lost: Vec::new(),
            remote: remote.answer(),
        })
    }

    fn target_of_truth(&self, mut there: RemoteView) -> Result<ResumeTarget, AppError> {
        let view = self.view()?;
        let foreseen = there.replica.foresee(None).map_err(|error| match error.kind() {
            trackway_checkpoint::ErrorKind::Integrity => self.error(error),
            _ => remote_error("the remote could not be read", error),
        })?;
        let Some(target) = foreseen else {
            let skipped = there.replica.skipped();
            return self.begins_again_target(&view, skipped, &Remote::Answers(Box::new(there)));
        };
        let lost = |prefix: &String| view.list().into_iter().find(|info| info.object_prefix == *prefix);
        let lost = there.truth.lost.iter().filter_map(lost).map(|info| info.step).collect();
        let remote = Remote::Answers(Box::new(there));
        let mut placed = self.placed(view.list(), &remote, false);
        placed.retain(|one| one.info.object_prefix == target.info.object_prefix);
        if placed.is_empty() {
            placed.push(PlacedCheckpoint { info: target.info, here: false, there: true, waits: false });
        }
        let CheckpointListing { checkpoints, standing, remote } = self.listing(&view, placed, &remote)?;
        Ok(ResumeTarget {
            checkpoints: if target.source == FetchSource::Local {
                verified(checkpoints)
            } else {
                checkpoints
            },
            standing,
            source: match target.source {
                FetchSource::Local => CheckpointOrigin::Local,
                FetchSource::Remote => CheckpointOrigin::Remote,
            },
            fetch_bytes: target.fetch_bytes,
            skipped: skipped(target.fallbacks),
            cost: fall_back_cost(target.lost_steps, Pace::measured(self.attempts())),
            lost,
            remote,
        })
    }
}

fn verified(mut entries: Vec<Checkpoint>) -> Vec<Checkpoint> {
    entries.iter_mut().for_each(|entry| entry.verified = Some(true));
    entries
}

fn skipped(fallbacks: Vec<Fallback>) -> Vec<SkippedCheckpoint> {
    fallbacks.into_iter().map(|it| SkippedCheckpoint { step: it.step, why: it.why }).collect()
}
