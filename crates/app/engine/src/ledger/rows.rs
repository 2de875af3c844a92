//! Runs and attempts by their ids.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use trackway_api::runs::attempts::{Attempt, EngineReport};
use trackway_api::runs::{Run, RunAmendment, RungSummary};
use trackway_core::{AttemptId, Clock as _, HealthReport, LaunchKind, RunId, Rung, with_fields_of};
use trackway_formats::runfile::RunSection;
use trackway_launch::{AttemptChannel, FolderChannel, Launcher, ObservedAttempt, Offer, Placement};
use trackway_ledger::{AttemptRow, AttemptState, EvaluationRow, RunAmendmentRow, RunRow, RunState, RungRow};

use super::page::{Page, Paged};
use crate::Context;
use crate::error::{AppError, ErrorKind};

impl Context {
    /// A run.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when the ledger does not have it.
    pub fn run_by_id(&self, run_id: RunId) -> Result<RunRow, AppError> {
        let unknown = || AppError::new(ErrorKind::NotFound, format!("run {run_id} is not in the ledger"));
        self.ledger_read(|ledger| ledger.run(run_id))?.ok_or_else(unknown)
    }

    /// An evaluation.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when the ledger does not have it.
    pub fn evaluation_by_id(&self, evaluation_id: &str) -> Result<EvaluationRow, AppError> {
        let unknown =
            || AppError::new(ErrorKind::NotFound, format!("evaluation {evaluation_id} is not in the ledger"));
        self.ledger_read(|ledger| ledger.evaluation(evaluation_id))?.ok_or_else(unknown)
    }

    /// The training attempts of a run, oldest first.
    pub fn attempts_of(&self, run_id: RunId) -> Result<Vec<AttemptRow>, AppError> {
        self.ledger_read(|ledger| ledger.attempts_of_run(run_id))
    }

    /// The tags of runs as they are now: those of their attempts, those given to runs whose attempts are not sealed yet, and what
    /// was amended.
    pub fn tags_of_runs(
        &self,
        runs: &[RunRow],
    ) -> Result<BTreeMap<RunId, BTreeMap<String, String>>, AppError> {
        let ids: Vec<RunId> = runs.iter().map(|run| run.run_id).collect();
        let mut tags: BTreeMap<RunId, BTreeMap<String, String>> = BTreeMap::new();
        for row in self.ledger_read(|ledger| ledger.tags_of_runs(&ids))? {
            tags.entry(row.run_id).or_default().insert(row.name, row.value);
        }
        for run in runs {
            let mut given = RunSection::of_stored(&run.config_json).tags;
            let known = tags.entry(run.run_id).or_default();
            given.retain(|name, _| !known.contains_key(name));
            if given.is_empty() {
                continue;
            }
            for amended in self.amendments_of_run(run.run_id)? {
                amended.tag.iter().for_each(|name| drop(given.remove(name)));
            }
            known.append(&mut given);
        }
        Ok(tags)
    }

    /// Changes of what a run is called or how lists show it, oldest first.
    pub fn amendments_of_run(&self, run_id: RunId) -> Result<Vec<RunAmendment>, AppError> {
        let rows = self.ledger_read(|ledger| ledger.amendments_of_run(run_id))?;
        Ok(rows.into_iter().map(run_amendment).collect())
    }

    /// The rungs of a run's ladder that were launched, from the smallest.
    pub fn rungs_of(&self, run_id: RunId) -> Result<Vec<RungSummary>, AppError> {
        let rows = self.ledger_read(|ledger| ledger.rungs_of_run(run_id))?;
        Ok(rows.into_iter().map(rung_summary).collect())
    }

    /// The launches of a run of one kind, oldest first.
    pub fn attempts_of_kind(&self, run_id: RunId, kind: LaunchKind) -> Result<Vec<AttemptRow>, AppError> {
        self.ledger_read(|ledger| ledger.attempts_of_kind(run_id, kind))
    }

    /// The last launch of a run of one kind.
    pub fn last_attempt_of_kind(
        &self,
        run_id: RunId,
        kind: LaunchKind,
    ) -> Result<Option<AttemptRow>, AppError> {
        self.ledger_read(|ledger| ledger.last_attempt_of_kind(run_id, kind))
    }

    /// The last training attempt of a run.
    pub fn last_attempt_of(&self, run_id: RunId) -> Result<Option<AttemptRow>, AppError> {
        self.last_attempt_of_kind(run_id, LaunchKind::Train)
    }

    /// A fold over the launches of one kind of a run before the number `before`, oldest first. A process takes each that is sealed once,
    /// however often this is called.
    ///
    /// # Errors
    /// When the ledger cannot be read; those of `take`.
    pub(crate) fn fold_attempts<F: Clone + Default + Any + Send + Sync>(
        &self,
        of: (RunId, LaunchKind),
        before: u32,
        mut take: impl FnMut(&mut F, &AttemptRow) -> Result<(), AppError>,
    ) -> Result<Arc<F>, AppError> {
        let (mut fold, first) = self.folds.take::<F>(of, before);
        let new = match first < before {
            true => self.ledger_read(|ledger| ledger.attempts_numbered(of, first..before))?,
            false => Vec::new(),
        };
        let is_next = |(number, row): &(u32, &AttemptRow)| {
            row.attempt_number == *number && row.state == AttemptState::Sealed
        };
        let sealed_count = (first..).zip(&new).take_while(is_next).count();
        let (sealed, open) = new.split_at(sealed_count);
        sealed.iter().try_for_each(|row| take(Arc::make_mut(&mut fold), row))?;
        self.folds.keep(of, (Arc::clone(&fold), first + sealed_count as u32));
        // Those behind one that is not sealed are taken again the next time.
        open.iter().try_for_each(|row| take(Arc::make_mut(&mut fold), row))?;
        Ok(fold)
    }

    /// A page of attempts, newest first; of one run when one is given.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when the run does not exist, or has no attempt that the page comes after.
    pub fn attempts(
        &self,
        run: Option<RunId>,
        page: &Page<AttemptId>,
    ) -> Result<Paged<AttemptRow, AttemptId>, AppError> {
        let rows = match run {
            None => self.ledger_read(|ledger| ledger.attempts_page(page.after, page.rows()))?,
            Some(run) => {
                let run = self.run_by_id(run)?;
                let before = page.after.map(|after| self.attempt_number_in(&run, after)).transpose()?;
                let of = (run.run_id, run.kind);
                self.ledger_read(|ledger| ledger.attempts_of_run_page(of, before, page.rows()))?
            }
        };
        Ok(Paged::new(rows.rows, rows.more_count, |row| row.attempt_id))
    }

    /// The number of an attempt of a run.
    fn attempt_number_in(&self, run: &RunRow, attempt_id: AttemptId) -> Result<u32, AppError> {
        let row = self.ledger_read(|ledger| ledger.attempt(attempt_id))?;
        let message = || format!("run `{}` has no attempt {attempt_id}", run.name);
        row.filter(|row| row.run_id == run.run_id)
            .map(|row| row.attempt_number)
            .ok_or_else(|| AppError::new(ErrorKind::NotFound, message()))
    }

    /// The attempt of a run that has not ended.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when none lives.
    pub fn live_attempt(&self, run: RunId) -> Result<AttemptRow, AppError> {
        let run = self.run_by_id(run)?;
        let last = self.last_attempt_of(run.run_id)?;
        let why = || format!("run `{}` is not running: its state is {}", run.name, run.state);
        last.filter(|attempt| attempt.state != AttemptState::Sealed)
            .ok_or_else(|| AppError::new(ErrorKind::NotFound, why()))
    }

    /// Changes a run as the ledger has it now.
    pub(crate) fn change_run(&self, run_id: RunId, change: impl Fn(&mut RunRow)) -> Result<RunRow, AppError> {
        self.ledger_write(|ledger| ledger.change_run(run_id, &change))
    }

    /// The same where a durable write follows at once, or the seal of the attempt computes it again.
    pub(crate) fn change_run_soon(
        &self,
        run_id: RunId,
        change: impl Fn(&mut RunRow),
    ) -> Result<RunRow, AppError> {
        self.ledger_write(|ledger| ledger.change_run_soon(run_id, &change))
    }

    /// Records that a run of another kind was for a training run, whose money it spent.
    pub fn is_for(&self, run_id: RunId, training: RunId) -> Result<(), AppError> {
        let run = self.change_run(run_id, |run| run.for_run_id = Some(training))?;
        self.keep_state(&run);
        Ok(())
    }

    /// Sets the state of a run, and the end of one that is at its end.
    pub fn set_run_state(&self, run_id: RunId, state: RunState) -> Result<(), AppError> {
        let now = self.clock.now();
        let change = |run: &mut RunRow| {
            run.state = state;
            run.ended_at = state.is_final().then_some(now);
        };
        // The attempt that is launched next is written down durably, and takes it along.
        let run = match state {
            RunState::Running => self.change_run_soon(run_id, change)?,
            _ => self.change_run(run_id, change)?,
        };
        self.keep_state(&run);
        Ok(())
    }

    /// That a run failed, for this reason. Returns the reason, or why that cannot be written down.
    pub(crate) fn fail_run(&self, run_id: RunId, why: AppError) -> AppError {
        self.set_run_state(run_id, RunState::Failed).err().unwrap_or(why)
    }

    /// Gives a run the state and the end that it had before; one that ran waits for its next attempt.
    pub(crate) fn put_back(&self, before: &RunRow) -> Result<(), AppError> {
        let state = match before.state {
            RunState::Running => RunState::Waiting,
            state => state,
        };
        let run = self.change_run(before.run_id, |run| {
            run.state = state;
            run.ended_at = before.ended_at;
        })?;
        self.keep_state(&run);
        Ok(())
    }

    /// The way to an attempt's files: where it runs, and in the home once it is sealed or when it never began.
    pub fn channel_of(&self, attempt: &AttemptRow) -> Result<Arc<dyn AttemptChannel>, AppError> {
        let placement = match attempt.state {
            AttemptState::Sealed => None,
            _ => self.placement_of(attempt)?,
        };
        match placement {
            Some(placement) => self.channel_to(&placement),
            None => Ok(Arc::new(FolderChannel::new(self.home.layout.attempt(attempt.attempt_id).folder()))),
        }
    }

    /// The way to the files of an attempt where it was put.
    pub(crate) fn channel_to(&self, placement: &Placement) -> Result<Arc<dyn AttemptChannel>, AppError> {
        let launcher = self.launchers.of(placement)?;
        let channel = launcher.channel(placement);
        channel.map_err(|error| AppError::fault("the attempt's files cannot be reached", error))
    }

    /// What its launcher sees of an attempt now.
    pub(crate) fn observe(&self, placement: &Placement) -> Result<ObservedAttempt, AppError> {
        let launcher = self.launchers.of(placement)?;
        launcher.observe(placement).map_err(|error| AppError::fault("the launcher", error))
    }

    /// What an engine can give now: one of the settings, or the default one of a kind.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for an engine that is not there; [`ErrorKind::Unavailable`] when its machines cannot be looked at now.
    pub(crate) fn offer_of(&self, engine: &str) -> Result<Offer, AppError> {
        self.offer_from(self.launchers.engine(engine)?)
    }

    /// What the engine of a launcher can give now.
    ///
    /// # Errors
    /// As for [`Self::offer_of`], of an engine that is there.
    pub(crate) fn offer_from(&self, launcher: &dyn Launcher) -> Result<Offer, AppError> {
        launcher.offer(self.home.folder()).map_err(|error| {
            let kind = if error.is_passing() { ErrorKind::Unavailable } else { ErrorKind::Fault };
            AppError::fault("what can be launched cannot be found out", error).with_kind(kind)
        })
    }

    /// Where an attempt was put that must have been launched.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when it was not.
    pub(crate) fn placement_of_launched(&self, attempt: &AttemptRow) -> Result<Placement, AppError> {
        let why = || format!("attempt {} was not launched yet", attempt.attempt_id);
        self.placement_of(attempt)?.ok_or_else(|| AppError::new(ErrorKind::NotFound, why()))
    }

    /// Where an attempt was put; none when it never got that far.
    pub fn placement_of(&self, attempt: &AttemptRow) -> Result<Option<Placement>, AppError> {
        let stored = attempt.placement_json.clone().and_then(|json| serde_json::from_value(json).ok());
        if stored.is_some() {
            return Ok(stored);
        }
        // The supervisor may have died between the launch and the note of it.
        self.launchers
            .of_attempt(attempt)?
            .find(attempt.attempt_id, self.home.layout.attempt(attempt.attempt_id).folder())
            .map_err(|error| AppError::fault("the attempt's folder cannot be read", error))
    }
}

fn rung_summary(row: RungRow) -> RungSummary {
    with_fields_of!(
        RungSummary,
        row,
        [
            run_id, rung, fraction, place, verdict, attempt_count, last_attempt_id, last_step, wall_seconds,
            gpu_seconds, cost_usd, warm_start_step, rule, why, rows, rows_total,
        ],
        values_json: row.values_json.as_ref().map(numbers_by_name),
        metrics_json: row.metrics_json.as_ref().map(numbers_by_name),
    )
}

/// The members of a stored object as numbers; null where one is not a number.
fn numbers_by_name(stored: &Value) -> BTreeMap<String, Option<f64>> {
    let members = stored.as_object().into_iter().flatten();
    members.map(|(name, value)| (name.clone(), value.as_f64())).collect()
}

/// An attempt as lists have it.
#[must_use]
pub fn listed_attempt(row: AttemptRow) -> Attempt {
    with_fields_of!(
        Attempt,
        row,
        [
            attempt_id, run_id, attempt_number, parent_attempt_id, kind, rung, state, termination_reason,
            termination_rule, termination_confidence, termination_domain, retry_outlook, exit_code, signal,
            started_at, ended_at, wall_seconds, gpu_seconds, cpu_seconds, peak_rss_bytes, cost_usd,
            resumed_from_step, last_step, last_committed_step, launcher, hosts, config_sha256, data_sha256, seed,
            receipt_sha256, health,
        ],
        health_report: health_report(&row),
        engine: engine_report(&row),
        next: None,
    )
}

/// What the engine of an attempt reported of it.
#[must_use]
pub fn engine_report(row: &AttemptRow) -> EngineReport {
    with_fields_of!(EngineReport, &row, [submitted_at, queued_seconds, engine_instance, completeness])
}

/// What the health of an attempt rests on; none in older receipts.
#[must_use]
pub fn health_report(row: &AttemptRow) -> Option<HealthReport> {
    row.health_json.clone().and_then(|stored| serde_json::from_value(stored).ok())
}

/// A run as lists have it, without values and without the next page.
#[must_use]
pub fn listed_run(row: RunRow) -> Run {
    with_fields_of!(
        Run,
        row,
        [
            run_id, name, kind, state, model_family, owner, team, project, config_sha256, data_sha256, seed,
            created_at, started_at, ended_at, attempt_count, termination_reason, last_committed_step,
            cost_usd, gpu_seconds, wall_seconds, run_file_path, note, hidden_at, health,
        ],
        queue: None,
        unsupervised: false,
        tags: BTreeMap::new(),
        values: BTreeMap::new(),
        next: None,
    )
}

/// A change of a run, as documents have it.
pub fn run_amendment(row: RunAmendmentRow) -> RunAmendment {
    with_fields_of!(RunAmendment, row, [amendment_id, at, author, field, tag, old_text, new_text, why])
}

/// The rung of an attempt.
pub fn rung_of(attempt: &AttemptRow) -> Rung {
    attempt.rung.parse().unwrap_or(Rung::FULL)
}
