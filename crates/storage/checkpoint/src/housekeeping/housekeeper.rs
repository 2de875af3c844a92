use std::path::Path;
use std::sync::Arc;

use trackway_core::{Clock, Ids, Step, Timestamp, UnsafeEvidence};
use trackway_store::{Disk, RealDisk, Writer};

use super::keeper::{Keeper, append, leftovers};
use crate::error::{CheckpointError, MAX_PIN_NAME_BYTES, Result};
use crate::history::entry::{Body, PinBody};
use crate::history::{CommitRecord, History, PinInfo, has_expired};
use crate::reading::view::CheckpointView;
use crate::retention::{Age, Retention, RetentionPlan, plan};

/// Housekeeping in a checkpoint root: pins, marks, deletes. It holds no epoch, fences no writer and is never fenced.
pub struct Housekeeper {
    view: CheckpointView,
    keeper: Keeper,
    clock: Arc<dyn Clock>,
}

/// What a collection of garbage did, or would do.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Collected {
    /// What stays and what goes.
    pub plan: RetentionPlan,
    /// Numbers of begun and of retired checkpoints whose left-over files are removed.
    pub orphans: Vec<u64>,
    /// Commits found not to verify on the way, and marked suspect.
    pub suspects: Vec<u64>,
    /// Why nothing was retired.
    pub refused: Option<String>,
}

impl Housekeeper {
    /// Opens a root and reads its whole log.
    pub fn open(root: &Path, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Result<Self> {
        Self::open_on(Arc::new(RealDisk), root, clock, ids)
    }

    pub(crate) fn open_on(
        disk: Arc<dyn Disk>,
        root: &Path,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> Result<Self> {
        Self::over(CheckpointView::unread(root, disk, Arc::clone(&clock), ids), clock)
    }

    pub(crate) fn over(mut view: CheckpointView, clock: Arc<dyn Clock>) -> Result<Self> {
        view.refresh()?;
        Ok(Self { view, keeper: Keeper::default(), clock })
    }

    /// The root as a reader sees it, as of the last call.
    #[must_use]
    pub fn view(&self) -> &CheckpointView {
        &self.view
    }

    #[cfg(test)]
    pub(crate) fn view_mut(&mut self) -> &mut CheckpointView {
        &mut self.view
    }

    /// Pins a commit: nothing deletes it while the pin exists. A pin of the same name moves.
    ///
    /// # Errors
    /// [`CheckpointError::NoSuchCommit`]; [`CheckpointError::NotHere`] when its files are deleted already;
    /// [`CheckpointError::PinName`].
    pub fn pin(&mut self, name: &str, number: u64, why: &str, until: Option<Timestamp>) -> Result<PinInfo> {
        let body = pin_body(name, number, why, until)?;
        self.change(number, Body::Pin(body))?;
        let pins = self.view.pins();
        let missing = || CheckpointError::NoSuchPin { root: self.view.root().into(), name: name.into() };
        pins.into_iter().find(|pin| pin.name == name).ok_or_else(missing)
    }

    /// Takes a pin away.
    ///
    /// # Errors
    /// [`CheckpointError::NoSuchPin`].
    pub fn unpin(&mut self, name: &str) -> Result<()> {
        let missing = CheckpointError::NoSuchPin { root: self.view.root().into(), name: name.into() };
        append(&mut self.view, Writer::Housekeeper, |history| {
            history.pin(name).map(|_| Body::Unpin { name: name.into() })
        })?
        .map(drop)
        .ok_or(missing)
    }

    /// Takes away the pins whose time is over, and returns them. One that is moved to a later time meanwhile stays.
    ///
    /// # Errors
    /// [`CheckpointError::Store`].
    pub fn unpin_expired(&mut self, now: Timestamp) -> Result<Vec<PinInfo>> {
        let mut gone = Vec::new();
        for pin in self.view.pins().into_iter().filter(|pin| pin.has_expired(now)) {
            let taken = append(&mut self.view, Writer::Housekeeper, |history| {
                // Decided at the entry: it may have been moved to a later time since it was listed.
                let is_over = has_expired(history.pin(&pin.name)?.body.until.as_deref(), now);
                is_over.then(|| Body::Unpin { name: pin.name.clone() })
            })?;
            gone.extend(taken.map(|_| pin));
        }
        Ok(gone)
    }

    /// Marks that a commit must not be resumed from.
    ///
    /// # Errors
    /// [`CheckpointError::NoSuchCommit`], [`CheckpointError::NotHere`].
    pub fn suspect(&mut self, number: u64, why: &str) -> Result<()> {
        self.change(number, Body::suspect(number, why))
    }

    /// Marks that what a commit holds is most likely lost. False: it is marked already, or something cleared it.
    ///
    /// # Errors
    /// [`CheckpointError::Store`].
    pub fn mark_unsafe(&mut self, number: u64, evidence: &UnsafeEvidence) -> Result<bool> {
        self.mark(number, &Body::unsafe_commit(number, evidence))
    }

    /// Marks that a commit is not unsafe any more: nothing marks it again. False: it is not unsafe.
    ///
    /// # Errors
    /// [`CheckpointError::Store`].
    pub fn clear_unsafe(&mut self, number: u64, why: &str) -> Result<bool> {
        self.mark(number, &Body::cleared(number, why))
    }

    /// Adds a mark about what a commit holds, whether its files are there or not.
    fn mark(&mut self, number: u64, mark: &Body) -> Result<bool> {
        self.view.refresh()?;
        let added = append(&mut self.view, Writer::Housekeeper, |history| {
            history.commit(number).is_some_and(|record| mark.changes(record)).then(|| mark.clone())
        })?;
        Ok(added.is_some())
    }

    /// Marks every commit of a step after `step` suspect: the run goes back to that step. Those whose bytes are only at
    /// a second place are among them. Returns their steps, ascending. Doing it again adds nothing.
    pub fn leave_after(&mut self, step: Step, why: &str) -> Result<Vec<Step>> {
        self.view.refresh()?;
        let there = |record: &CommitRecord| !record.retired || record.uploaded_to.is_some();
        let left: Vec<(u64, Step)> = self
            .view
            .history()
            .commits()
            .filter(|(_, record)| record.body.step > step && record.suspect.is_none() && there(record))
            .map(|(number, record)| (number, record.body.step))
            .collect();
        for (number, _) in &left {
            append(&mut self.view, Writer::Housekeeper, |history| {
                // Another process may have marked it since it was listed.
                let wanted = history.commit(*number).is_some_and(|record| record.suspect.is_none());
                wanted.then(|| Body::suspect(*number, why))
            })?;
        }
        let mut steps: Vec<Step> = left.into_iter().map(|(_, step)| step).collect();
        steps.sort_unstable();
        Ok(steps)
    }

    /// Records that all bytes of a commit are at a second place.
    ///
    /// # Errors
    /// [`CheckpointError::NoSuchCommit`], [`CheckpointError::NotHere`].
    pub fn uploaded(&mut self, number: u64, location: &str) -> Result<()> {
        self.change(number, Body::Uploaded { commit: number, location: location.into() })
    }

    /// Deletes what `policy` does not keep, suspect and dead checkpoints and what fenced attempts left behind when they
    /// are older than `older_than_seconds`. `dry_run` only returns what would be deleted.
    ///
    /// # Errors
    /// [`CheckpointError::Store`], [`CheckpointError::Storage`].
    pub fn collect(
        &mut self,
        policy: &Retention,
        older_than_seconds: f64,
        dry_run: bool,
    ) -> Result<Collected> {
        self.view.refresh()?;
        let now = self.clock.now();
        let age = Some(Age { now, older_than_seconds });
        let orphans = leftovers(self.view.history(), age);
        if dry_run {
            let plan = plan(self.view.history(), policy, now, age);
            return Ok(Collected { plan, orphans, ..Collected::default() });
        }
        let done = self.keeper.apply(&mut self.view, Writer::Housekeeper, policy, now, age)?;
        // A second entry: the first was written before the files went, and could not say so.
        if !done.removed.is_empty() {
            let swept = &done.removed;
            append(&mut self.view, Writer::Housekeeper, |_| {
                Some(Body::Retire { commits: Vec::new(), swept: swept.clone() })
            })?;
        }
        Ok(Collected { plan: done.plan, orphans, suspects: done.suspects, refused: done.refused })
    }

    /// Adds an entry about a commit whose files are still there.
    fn change(&mut self, number: u64, body: Body) -> Result<()> {
        let root = self.view.root().to_owned();
        self.view.log.append(Writer::Housekeeper, |history: &History| {
            // Within the decision: retention may delete the files before the entry is added.
            history.kept(&root, number)?;
            Ok::<_, CheckpointError>(Some(body.clone()))
        })?;
        Ok(())
    }
}

/// The log's entry of a pin.
///
/// # Errors
/// [`CheckpointError::PinName`].
pub(crate) fn pin_body(name: &str, commit: u64, why: &str, until: Option<Timestamp>) -> Result<PinBody> {
    if name.is_empty() || name.len() > MAX_PIN_NAME_BYTES {
        return Err(CheckpointError::PinName { name: name.into() });
    }
    let until = until.map(Timestamp::to_rfc3339);
    Ok(PinBody { name: name.into(), commit, why: why.into(), until })
}
