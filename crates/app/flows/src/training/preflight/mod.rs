//! Everything that can be known before a run costs anything: checks of data, settings, memory, cost and storage, planned
//! from the run file, done side by side, answered in one verdict.
//!
//! `plan` is pure: it decides from facts which steps apply, what they need and what they read. `graph` runs the
//! steps on a few threads. A step is a line of `steps::STEPS` and a function in `steps`; what it answers are
//! [`CheckResult`]s, and nothing else is believed: what could not run is *not run*, never *passed*.

mod charts;
mod facts;
mod graph;
mod history;
pub mod last_good;
mod plan;
mod quote;
mod record;
mod select;
mod sets;
mod steps;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::training::start::read_start;
use trackway_api::runs::preflight::{PreflightReport, Quote, Skipped};
use trackway_core::Clock as _;
use trackway_core::checks::Example;
pub use trackway_core::checks::{CheckResult, Finding, Severity, Verdict};
use trackway_engine::Context;
use trackway_engine::capture::Capture;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::reporter::Reporter;
use trackway_engine::run::{Job, RunSource, Start, offered};

pub use self::facts::OFFER;
pub use self::record::{record, recorded};
pub use self::select::Selection;
use self::sets::DataSets;
use self::steps::{RehearsalResults, Shared, Work};

/// The request of `trackway preflight`.
#[derive(Debug, Clone)]
pub struct PreflightRequest {
    /// The run file.
    pub source: RunSource,
    /// Which of its checks.
    pub selection: Selection,
}

/// What happens during pre-flight.
#[derive(Debug, Clone)]
pub enum PreflightEvent<'t> {
    /// What it is going to read.
    Quote(&'t Quote),
    /// A step begins.
    Began {
        /// What it does, as a phrase.
        title: &'static str,
    },
    /// A step reads: bytes done of bytes in all.
    Reading {
        /// What it does.
        title: &'static str,
        done_bytes: u64,
        /// Bytes in all.
        total_bytes: u64,
    },
    /// All of them ended, and the run is launched or not.
    Judged(&'t PreflightReport),
    /// A step ended with these answers.
    Ended {
        /// What it did.
        title: &'static str,
        /// What it answers.
        results: &'t [CheckResult],
    },
}

/// Where pre-flight reports to, beside what any launch reports.
pub trait PreflightReporter: Reporter {
    /// Pre-flight began, moved on, or found something. Called from several threads.
    fn preflight(&self, _event: &PreflightEvent<'_>) {}
}

impl PreflightReporter for trackway_engine::reporter::Unheard {}

/// Runs the checks that a run file requests, without launching the run.
///
/// # Errors
/// [`trackway_engine::error::ErrorKind::Usage`] and `NotFound` for a run file, a name of a check or data that make no sense.
/// What a check finds, or why it could not run, is in the report.
pub fn preflight(
    context: &Context,
    request: &PreflightRequest,
    reporter: &dyn PreflightReporter,
) -> Result<PreflightReport, AppError> {
    let job = Job::read(&request.source, &context.redactor)?;
    job.check_own_command()?;
    let capture = trackway_engine::run::capture_surroundings(context, &job);
    let overfits = job.plan.preflight.as_ref().is_some_and(|section| section.overfit_batches.is_some());
    // What the launcher refuses is not rehearsed: the report says what that is.
    let is_given = match offered(context, &job.plan) {
        Ok(offered) => offered.refused.is_empty(),
        Err(error) if error.kind == ErrorKind::Usage => return Err(error),
        // The check says why that is not known.
        Err(_) => false,
    };
    if is_given && (overfits || steps::rehearses_one_batch(context, &job, &capture)?.is_ok()) {
        // A rehearsal is a launch, and starts from what a launch starts from.
        let start = read_start(context, &request.source, true, reporter)?;
        return check(context, (&start.job, &start.capture, Some(&start)), &request.selection, reporter);
    }
    check(context, (&job, &capture, None), &request.selection, reporter)
}

/// Plans and does the checks of a job. Without a start nothing is rehearsed.
pub(crate) fn check(
    context: &Context,
    (job, capture, start): (&Job, &Capture, Option<&Start>),
    selection: &Selection,
    reporter: &dyn PreflightReporter,
) -> Result<PreflightReport, AppError> {
    let began = context.clock.monotonic_micros();
    let sets = DataSets::open(job, &context.read_context)?;
    let policy = select::Policy::of(&job.plan, selection, &steps::names())?;
    let one_batch = steps::rehearses_one_batch(context, job, capture)?;
    let before = one_batch.as_ref().err().map(|not| RehearsalResults::before(context, not)).transpose()?;
    let one_batch = one_batch.map_err(|not| not.why);
    let planned = plan::plan(steps::STEPS, &sets.facts(&job.plan, one_batch), &policy);
    let quote = quote::quote(&planned, &sets);
    reporter.preflight(&PreflightEvent::Quote(&quote));
    let cancelled: &AtomicBool = context.request.cancel.is_stopped();
    let shared = Shared { rehearsed: Mutex::new(before.unwrap_or_default()), ..Shared::default() };
    let work = Work { context, job, capture, start, sets: &sets, shared: &shared, cancelled, reporter };
    let results = graph::execute(&planned, &|step| steps::run(&work, step.spec));
    let clean = |text: String| context.redactor.text(&text).into_owned();
    let checks: Vec<_> = policy
        .judge(planned.iter().map(|step| step.spec.checks), results)
        .into_iter()
        .map(|it| with_texts(it, &clean))
        .collect();
    let stopped = cancelled.load(Ordering::Relaxed);
    if let Some(start) = start {
        record::keep_profiles(context, start, &sets.profiles(&shared.evidence))?;
    }
    let profiles = charts::in_order(sets.profiles(&shared.evidence));
    Ok(PreflightReport {
        name: job.plan.run.name.clone(),
        verdict: policy.verdict(&checks),
        stopped,
        checks,
        skipped: policy.skipped().into_iter().map(|it| Skipped { why: clean(it.why), ..it }).collect(),
        required: policy.required(),
        quote,
        cost: shared.cost.into_inner(),
        drift: shared.drift.into_inner().unwrap_or_else(PoisonError::into_inner),
        imbalance: shared.imbalance.into_inner(),
        memory: shared.memory.into_inner(),
        rehearsals: shared.rehearsed.into_inner().unwrap_or_else(PoisonError::into_inner).runs,
        charts: charts::charts(&profiles, context.clock.now()),
        seconds: (context.clock.monotonic_micros() - began) as f64 / 1e6,
    })
}

/// The same with every text put through `clean`: reasons come from run files and command lines, findings from data.
fn with_texts(mut check: CheckResult, clean: &dyn Fn(String) -> String) -> CheckResult {
    check.why = check.why.map(clean);
    check.reworded(|finding| Finding {
        message: clean(finding.message),
        action: finding.action.map(clean),
        examples: finding
            .examples
            .into_iter()
            .map(|example| Example { value: example.value.map(clean), ..example })
            .collect(),
        ..finding
    })
}
