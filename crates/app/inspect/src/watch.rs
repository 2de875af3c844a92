//! A running run, seen from another process.

use std::collections::BTreeMap;

use serde::Serialize;
use trackway_core::{AttemptId, Clock as _, RunId};
use trackway_engine::Context;
use trackway_engine::budgets::Budget;
use trackway_engine::error::AppError;
use trackway_engine::reporter::Progress;
pub use trackway_engine::run::curves::LiveCurve;
use trackway_engine::run::detect::{Detection, detections_of};
use trackway_engine::run::ladder::Ladder;
use trackway_engine::run::live_record::LiveRecord;
use trackway_engine::run::remote::RemoteStatus;
use trackway_ledger::{AttemptRow, RungRow};

use crate::progressive::{ProgressiveCard, ProgressiveEstimate, attempts_beside, card, window_of};

/// The least time over which a rate is measured.
const RATE_SECONDS_MIN: f64 = 0.5;

/// Curves that are shown.
const CURVES_SHOWN: usize = 6;
/// Detections that are shown.
const DETECTIONS_SHOWN: usize = 10;

/// One look at a run. Field names are the JSON contract of `trackway watch`.
#[derive(Debug, Clone, Serialize)]
pub struct View {
    /// The run.
    pub run_id: RunId,
    /// Its name.
    pub name: String,
    /// `running`, `completed` …
    pub state: String,
    /// The newest attempt.
    pub attempt_id: Option<AttemptId>,
    /// Its number in the run.
    pub attempt_number: Option<u32>,
    /// Whether the run file has a ladder of rungs.
    pub has_ladder: bool,
    /// The rung of the data that it trains on, such as `10%`.
    pub rung: Option<String>,
    /// The rungs of the run's ladder that were launched, from the smallest; empty without `[ladder]`.
    pub rungs: Vec<RungRow>,
    /// `running`, `sealed` …
    pub attempt_state: String,
    /// How long it has been running, or ran.
    pub running_seconds: Option<f64>,
    /// How far it is.
    pub progress: Progress,
    /// How many steps it means to make, when the script said so.
    pub total_steps: Option<u64>,
    /// Seconds left at the present rate.
    pub eta_seconds: Option<f64>,
    /// The last values of the metric in `progress`, oldest first.
    pub curve: Vec<f64>,
    /// The last values of the metrics that people look at first, that one among them.
    pub curves: Vec<LiveCurve>,
    /// The loss on data that the model has not seen, by progressive validation, over this attempt.
    pub progressive: Option<ProgressiveCard>,
    /// What the machine did in the last second, by name (`docs/telemetry.md`); empty in the first one.
    pub machine: BTreeMap<String, f64>,
    /// Budgets that were spent from.
    pub budgets: Vec<Budget>,
    /// What detectors found, oldest first; the last ones.
    pub detections: Vec<Detection>,
    /// How its remote stands; it has none.
    pub remote: Option<RemoteStatus>,
    /// Nothing more will change.
    pub ended: bool,
}

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
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn look(&mut self) -> Result<View, AppError> {
        let run = self.context.run_by_id(self.run_id)?;
        let attempts = self.context.attempts_of(self.run_id)?;
        let budgets = trackway_engine::budgets::budgets_of(self.context, &run)?;
        let has_ladder = Ladder::of(&run)?.named;
        let mut view = View {
            run_id: run.run_id,
            name: run.name,
            ended: run.state.is_final(),
            state: run.state.to_string(),
            attempt_id: None,
            attempt_number: None,
            has_ladder,
            rung: None,
            rungs: self.context.rungs_of(self.run_id)?,
            attempt_state: String::new(),
            running_seconds: None,
            progress: Progress::default(),
            total_steps: None,
            eta_seconds: None,
            curve: Vec::new(),
            curves: Vec::new(),
            progressive: None,
            machine: BTreeMap::new(),
            budgets,
            detections: detections_of(self.context, self.run_id)?,
            remote: RemoteStatus::read(&self.context.home.layout.run(self.run_id)),
        };
        let Some(attempt) = attempts.last() else { return Ok(view) };
        let now = self.context.clock.now();
        view.attempt_id = Some(attempt.attempt_id);
        view.attempt_number = Some(attempt.attempt_number);
        view.rung = Some(attempt.rung.clone());
        view.running_seconds = attempt
            .wall_seconds
            .or_else(|| attempt.started_at.map(|started| now.seconds_since(started).max(0.0)));
        view.attempt_state = attempt.state.to_string();
        let estimate = self.follow(attempt, &mut view)?;
        view.progressive = card(estimate, &view.detections, &attempts_beside(attempt, &attempts));
        view.detections.drain(..view.detections.len().saturating_sub(DETECTIONS_SHOWN));
        Ok(view)
    }

    fn follow(
        &mut self,
        attempt: &AttemptRow,
        view: &mut View,
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
        view.progress = record.progress(self.steps_per_second);
        view.total_steps = facts.total_steps;
        view.curves = record.curves(CURVES_SHOWN);
        view.curve =
            view.curves.first().map(|curve| curve.values.iter().copied().collect()).unwrap_or_default();
        view.machine.clone_from(record.machine());
        let left = facts.total_steps.zip(facts.last_step).map(|(total, step)| total.saturating_sub(step));
        view.eta_seconds = left
            .zip(self.steps_per_second.filter(|rate| *rate > 0.0))
            .map(|(left, rate)| left as f64 / rate)
            .filter(|_| !view.ended);
        Ok(record.progressive())
    }
}
