use std::path::Path;
use std::sync::Arc;

use trackway_core::{AttemptId, Clock, Ids, RunId};
use trackway_store::{Disk, RealDisk, Writer};

use crate::error::{CheckpointError, RankError, Result};
use crate::group::RankGroup;
use crate::history::entry::{Body, ClaimBody, RoundBody};
use crate::history::{CheckpointInfo, History};
use crate::ranks::decliner::Decliner;
use crate::ranks::notice::Notices;
use crate::ranks::vote::resume_folder;
use crate::ranks::wait::wait_for;
use crate::reading::view::CheckpointView;
use crate::root::CheckpointRoot;
use crate::settings::Settings;

/// A checkpoint root as one of several ranks sees it that train together in one attempt. May be handed to another
/// thread, such as the one that saves in the background.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use trackway_checkpoint::{CheckpointError, Kind, RankGroup, RankedRoot, RankedSave};
/// # fn train(
/// #     run_id: trackway_core::RunId,
/// #     attempt_id: trackway_core::AttemptId,
/// #     clock: Arc<dyn trackway_core::Clock>,
/// #     ids: Arc<dyn trackway_core::Ids>,
/// # ) -> Result<(), CheckpointError> {
/// let group = RankGroup::from_environment()?; // as torchrun, srun and other launchers say
/// let mut root = RankedRoot::open("/shared/checkpoints".as_ref(), 1, run_id, attempt_id, group, clock, ids)?;
/// let shard = group.file_name("weights.bin"); // `rank-0003-weights.bin`
/// let (first_step, mut weights) = match root.resume_target()? {
///     Some(checkpoint) => (checkpoint.step + 1, checkpoint.read(&shard)?),
///     None => (1, vec![0; 4]),
/// };
/// for step in first_step..=100 {
///     weights[0] = weights[0].wrapping_add(1);
///     let global_cursor = format!("sample {}", step * 32);
///     let save = RankedSave { step, metrics: &[], global_cursor: global_cursor.as_bytes() };
///     root.save(&save, |writer| {
///         if group.coordinates() {
///             writer.file("cursor.txt", Kind::DataCursor, global_cursor.as_bytes())?;
///         }
///         writer.file(&shard, Kind::Weights, &weights)
///     })?;
/// }
/// # Ok(())
/// # }
/// ```
pub struct RankedRoot {
    pub(super) root: CheckpointRoot,
    pub(super) group: RankGroup,
    pub(super) round: RoundBody,
    /// Begins up to this number are over for this rank.
    pub(super) seen: u64,
    pub(super) declined: Decliner,
}

impl RankedRoot {
    /// Opens a root. Rank 0 claims `epoch` in it, which fences every writer with a lower one, and begins the round; the
    /// others wait for that.
    ///
    /// # Errors
    /// [`CheckpointError::Fenced`], [`CheckpointError::WrongRun`], [`CheckpointError::Store`] as
    /// [`CheckpointRoot::open`]; [`RankError::Silent`] when rank 0 does not come within the time;
    /// [`RankError::Overtaken`], [`RankError::WorldSize`].
    pub fn open(
        path: &Path,
        epoch: u64,
        run_id: RunId,
        attempt_id: AttemptId,
        group: RankGroup,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> Result<Self> {
        let claim = ClaimBody { epoch, run_id, attempt_id };
        Self::open_on(Arc::new(RealDisk), path, claim, Settings::from_environment(), group, clock, ids)
    }

    pub(crate) fn open_on(
        disk: Arc<dyn Disk>,
        path: &Path,
        claim: ClaimBody,
        settings: Settings,
        group: RankGroup,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> Result<Self> {
        let settings = Settings { world_size: group.world_size(), ..settings };
        let ClaimBody { epoch, run_id, attempt_id } = claim;
        let (round, world_size) = (group.round(), group.world_size());
        let round = RoundBody { epoch, run_id, attempt_id, round, world_size };
        let open = if group.coordinates() { CheckpointRoot::open_on } else { CheckpointRoot::unclaimed_on };
        let root = open(disk, path, claim, settings, clock, ids)?;
        let mut ranked = Self { root, group, round, seen: 0, declined: Decliner::default() };
        if group.coordinates() { ranked.begin_round() } else { ranked.wait_for_round() }?;
        (ranked.root.round, ranked.root.group) = (Some(round), Some(group));
        // What was begun before this round is of ranks that are gone.
        ranked.seen = ranked.root.view.history().round().map_or(0, |record| record.number);
        Ok(ranked)
    }

    fn begin_round(&mut self) -> Result<()> {
        let older = self.root.view.history().round().map(|record| (record.number, record.body));
        let claim = self.root.claim.holder();
        let round = self.round;
        let begun = self.root.view.log.append(Writer::Trainer(&claim), |history: &History| {
            if let Some(epoch) = history.adopting() {
                return Err(CheckpointError::HalfAdopted { epoch });
            }
            Ok((!round.is_current(history)?).then_some(Body::Round(round)))
        })?;
        if let (Some(_), Some((number, body))) = (begun, older) {
            // A process that still votes there is fenced. What is left costs a few small files.
            let folder = self.root.view.root().join(resume_folder(number));
            let _ = self.root.view.remove_folder(&folder);
            Notices::new(self.root.view.root(), body.attempt_id, body.round).clear();
        }
        Ok(())
    }

    fn wait_for_round(&mut self) -> Result<()> {
        let (round, run_id) = (self.round, self.round.run_id);
        let seconds = self.group.wait_seconds();
        let (clock, view) = (Arc::clone(&self.root.clock), &mut self.root.view);
        let is_current = wait_for(clock.as_ref(), seconds, || {
            view.refresh()?;
            view.history().check_run(view.root(), run_id)?;
            Ok(round.is_current(view.history())?.then_some(()))
        })?;
        let what = "begin a round of this attempt".to_owned();
        is_current.ok_or_else(|| RankError::Silent { ranks: vec![0], what, seconds }.into())
    }

    /// Which rank this is.
    #[must_use]
    pub fn group(&self) -> RankGroup {
        self.group
    }

    /// The root as a reader sees it, as of the last call.
    #[must_use]
    pub fn view(&self) -> &CheckpointView {
        self.root.view()
    }

    /// As [`CheckpointRoot::list`].
    pub fn list(&mut self) -> Result<Vec<CheckpointInfo>> {
        self.root.list()
    }

    /// Reads what was added to the log, and stops a rank that is fenced or overtaken.
    pub(super) fn refresh(&mut self) -> Result<()> {
        self.root.view.refresh()?;
        self.round.is_current(self.root.view.history()).map(drop)
    }
}
