//! A running run, seen from another process.

use std::collections::BTreeMap;

use trackway_api::runs::watch::{LiveCurve, Progress, RunSample};
use trackway_core::{AttemptId, Clock as _, RunId, Timestamp};
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_engine::reporter;
use trackway_engine::run::curves::LiveCurve as RecordedCurve;
use trackway_engine::run::detect::detections_of;
use trackway_engine::run::ladder::Ladder;
use trackway_engine::run::live_record::LiveRecord;
use trackway_engine::run::queue::{Waiting, waiting};
use trackway_engine::run::remote::read_status;
use trackway_formats::arguments::total_steps_of;
use trackway_ledger::{AttemptRow, AttemptState};
use trackway_rules::early_stop::progressive::ProgressiveEstimate;

use crate::progressive::{card, window_of};

/// The least time over which a rate is measured.
const RATE_SECONDS_MIN: f64 = 0.5;

const CURVES_SHOWN: usize = 6;
const DETECTIONS_SHOWN: usize = 10;

/// Looks at one run again and again.
pub struct Watcher<'a> {
    context: &'a Context,
    run_id: RunId,
    window: u64,
    followed: Option<(AttemptId, LiveRecord)>,
    rate_from: Option<(i64, u64)>,
    steps_per_second: Option<f64>,
}

/// Watches a run.
///
/// # Errors
/// [`trackway_engine::error::ErrorKind::NotFound`] when there is no such run.
pub fn watch(context: &Context, run: RunId) -> Result<Watcher<'_>, AppError> {
    let run = context.run_by_id(run)?;
    Ok(Watcher {
        context,
        run_id: run.run_id,
        window: window_of(&run)?,
        followed: None,
        rate_from: None,
        steps_per_second: None,
    })
}

impl Watcher<'_> {
    /// Looks once.
    pub fn look(&mut self) -> Result<RunSample, AppError> {
        let run = self.context.run_by_id(self.run_id)?;
        let attempts = self.context.attempts_of(self.run_id)?;
        let Waiting { queue, unsupervised, resume_refused } = waiting(self.context, &run)?;
        let budgets = trackway_engine::budgets::budgets_of(self.context, &run)?;
        let has_ladder = Ladder::of(&run)?.named;
        let mut view = RunSample {
            run_id: run.run_id,
            name: run.name,
            project: run.project,
            unsupervised,
            resume_refused,
            ended: run.state.is_final(),
            state: run.state,
            attempt_id: None,
            attempt_number: None,
            has_ladder,
            rung: None,
            rungs: self.context.rungs_of(self.run_id)?,
            attempt_state: None,
            running_seconds: None,
            queue,
            progress: Progress::default(),
            total_steps: None,
            eta_seconds: None,
            curve: Vec::new(),
            curves: Vec::new(),
            progressive: None,
            machine: BTreeMap::new(),
            budgets,
            detections: detections_of(self.context, self.run_id)?,
            remote: read_status(&self.context.home.layout.run(self.run_id)),
        };
        let Some(attempt) = attempts.last() else { return Ok(view) };
        view.attempt_id = Some(attempt.attempt_id);
        view.attempt_number = Some(attempt.attempt_number);
        view.rung = Some(attempt.rung.clone());
        view.running_seconds = running_seconds(attempt, self.context.clock.now());
        view.attempt_state = Some(attempt.state);
        let estimate = self.follow(attempt, &mut view)?;
        view.progressive = card(estimate, &view.detections, attempt, &attempts);
        view.detections.drain(..view.detections.len().saturating_sub(DETECTIONS_SHOWN));
        Ok(view)
    }

    fn follow(
        &mut self,
        attempt: &AttemptRow,
        view: &mut RunSample,
    ) -> Result<Option<ProgressiveEstimate>, AppError> {
        if self.followed.as_ref().is_none_or(|(followed, _)| *followed != attempt.attempt_id) {
            let record = LiveRecord::with_window(self.context.channel_of(attempt)?, self.window);
            self.followed = Some((attempt.attempt_id, record));
            self.rate_from = None;
        }
        let now_micros = self.context.clock.monotonic_micros();
        let Some((_, record)) = self.followed.as_mut() else { return Ok(None) };
        record.look();
        let facts = &record.facts;
        if let Some(step) = facts.last_step {
            let (since_micros, since_step) = *self.rate_from.get_or_insert((now_micros, step));
            let seconds = (now_micros - since_micros) as f64 / 1e6;
            if seconds >= RATE_SECONDS_MIN {
                self.steps_per_second = Some(step.saturating_sub(since_step) as f64 / seconds);
                self.rate_from = Some((now_micros, step));
            }
        }
        view.progress = progress(record.progress(self.steps_per_second));
        // The record of another home, or one that was deleted, is not here; what the ledger has is.
        view.progress.step = view.progress.step.or(attempt.last_step);
        // What an earlier attempt committed stays committed.
        let known = attempt.last_committed_step.or(attempt.resumed_from_step);
        view.progress.last_committed_step = view.progress.last_committed_step.or(known);
        view.progress.heartbeat_at = view.progress.heartbeat_at.or(attempt.heartbeat_at);
        view.total_steps = facts.total_steps.or_else(|| total_steps_of(&attempt.command));
        view.curves = record.curves(CURVES_SHOWN).into_iter().map(curve).collect();
        view.curve = view.curves.first().map(|curve| curve.values.clone()).unwrap_or_default();
        view.machine.clone_from(&record.machine);
        let left = view.total_steps.zip(facts.last_step).map(|(total, step)| total.saturating_sub(step));
        view.eta_seconds = left
            .zip(self.steps_per_second.filter(|rate| *rate > 0.0))
            .map(|(left, rate)| left as f64 / rate)
            .filter(|_| !view.ended);
        Ok(record.progressive())
    }
}

/// Seconds for which an attempt runs or ran, or for which it waits in the queue of its engine; none of one that ended there.
fn running_seconds(attempt: &AttemptRow, now: Timestamp) -> Option<f64> {
    let has_ended = matches!(attempt.state, AttemptState::Ended | AttemptState::Sealed);
    let since = attempt.started_at.or(attempt.submitted_at.filter(|_| !has_ended));
    let until = attempt.ended_at.unwrap_or(now);
    attempt.wall_seconds.or_else(|| Some(until.seconds_since(since?).max(0.0)))
}

fn progress(seen: reporter::Progress) -> Progress {
    let reporter::Progress { step, steps_per_second, loss, last_committed_step, heartbeat_at } = seen;
    let loss = loss.map(|(name, value)| (name, finite(value)));
    Progress { step, steps_per_second, loss, last_committed_step, heartbeat_at }
}

fn curve(recorded: RecordedCurve) -> LiveCurve {
    let RecordedCurve { name, last_step, values } = recorded;
    LiveCurve { name, last_step, values: values.into_iter().map(finite).collect() }
}

fn finite(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite())
}
