//! Rehearses a run with its script: one batch, or a few, learned by heart, before anything expensive starts.
//! The script is launched as usual, with a separate kind, checkpoint root and receipts;
//! [`trackway_rules::preflight::rehearsal`] evaluates what its recorder reports.
//!
//! A rehearsal is a run of kind `one_batch` or `overfit` with up to three launches: one that learns, for one batch
//! another that resumes from its checkpoint and makes a single step, and the evaluator of the run file on the last
//! checkpoint. They are in `launches` and in `trackway explain`, never among the training attempts. A launch that runs
//! out of memory is made again with the entries of the retry plan, in order, as the run itself would be.

mod record;

use std::collections::BTreeMap;

use crate::evaluation::evaluate::{EvaluationRequest, try_evaluator};
use crate::training::start::read_start;
use trackway_api::runs::rehearsal::{RehearsalLaunch, RehearsalPart, RehearsalReport};
pub use trackway_core::LaunchKind;
use trackway_core::checks::CheckResult;
pub use trackway_core::checks::{Severity, Verdict};
use trackway_core::{Clock as _, RunId, Step, TerminationReason, with_fields_of};
use trackway_engine::Context;
use trackway_engine::budgets::policy_of;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::reporter::{NotesOnly, Reporter};
use trackway_engine::run::seal::SealedAttempt;
use trackway_engine::run::{Prepared, Rehearsal, RunSource, Start, begin, rehearse as launch};
use trackway_formats::Variable;
use trackway_formats::runfile::PreflightSection;
use trackway_ledger::AttemptRow;
use trackway_rules::preflight::config_checks::TrainingConfig;
use trackway_rules::preflight::rehearsal::{
    Ending, EvaluatorTrial, LaunchEvidence, RehearsalEvidence, TARGET_SHARE, TriedEntry, check_name,
    config_of, judge, measured, next_entry,
};
use trackway_system::Cancel;

/// Steps of a rehearsal at most: a batch that is not learned by then is not going to be.
pub const STEPS_MAX: Step = 200;
/// Batches of an overfit test by default.
pub const OVERFIT_BATCHES: u64 = 10;
/// Steps of an overfit test at most: as many passes as make the batches known.
pub const OVERFIT_STEPS_MAX: Step = 500;
/// How long one launch may take.
pub const TIMEOUT_SECONDS: f64 = 600.0;
/// How long a script may take until it speaks to its recorder.
pub const HANDSHAKE_SECONDS: f64 = 60.0;
/// A launch ends early at this fraction of the loss it is measured by: well below the target, so that there is no
/// doubt.
const ENOUGH_SHARE: f64 = 0.2;

/// How a rehearsal is made.
#[derive(Debug, Clone, PartialEq)]
pub struct RehearsalSettings {
    /// Batches that are repeated, at least 1.
    pub batch_count: u64,
    /// Steps of the launch that learns, at most.
    pub steps_max: Step,
    /// How long each launch may take.
    pub timeout_seconds: f64,
    /// How long the script may take until it speaks to its recorder.
    pub handshake_seconds: f64,
    /// The loss must fall to this fraction of the best constant prediction's.
    pub target_share: f64,
    /// The same as a loss; it takes precedence over the fraction.
    pub target_loss: Option<f64>,
    /// Whether a second launch resumes from the checkpoint of the first.
    pub resume: bool,
}

impl RehearsalSettings {
    /// One batch, and a resume.
    #[must_use]
    pub fn one_batch() -> Self {
        Self {
            batch_count: 1,
            steps_max: STEPS_MAX,
            timeout_seconds: TIMEOUT_SECONDS,
            handshake_seconds: HANDSHAKE_SECONDS,
            target_share: TARGET_SHARE,
            target_loss: None,
            resume: true,
        }
    }

    /// How a rehearsal of a run file is made; none for a number of batches that it does not name.
    #[must_use]
    pub fn of(section: &PreflightSection, kind: LaunchKind) -> Option<Self> {
        let settings = match (kind, section.overfit_batches) {
            (LaunchKind::OneBatch, _) => Self { target_loss: section.target_loss, ..Self::one_batch() },
            (LaunchKind::Overfit, Some(batches)) => {
                Self { target_loss: section.target_loss, ..Self::overfit(u64::from(batches)) }
            }
            _ => return None,
        };
        let timeout_seconds = section.rehearsal_timeout_seconds.unwrap_or(settings.timeout_seconds);
        Some(Self { timeout_seconds, ..settings })
    }

    /// A few batches.
    #[must_use]
    pub fn overfit(batch_count: u64) -> Self {
        Self { batch_count, steps_max: OVERFIT_STEPS_MAX, resume: false, ..Self::one_batch() }
    }
}

/// The request of `trackway rehearse`.
#[derive(Debug, Clone)]
pub struct RehearseRequest {
    /// The run file.
    pub source: RunSource,
    /// [`LaunchKind::OneBatch`] or [`LaunchKind::Overfit`].
    pub kind: LaunchKind,
    pub settings: RehearsalSettings,
}

/// A rehearsal, and the settings that it observed in the process, for the checks of settings.
pub(crate) struct Rehearsed {
    pub report: RehearsalReport,
    pub config: TrainingConfig,
    /// The run of the evaluator's launch.
    pub evaluator_run_id: Option<RunId>,
}

/// Rehearses a run file.
///
/// # Errors
/// [`ErrorKind::Usage`] before anything is launched; a fault while launching.
pub fn rehearse(
    context: &Context,
    request: &RehearseRequest,
    reporter: &dyn Reporter,
) -> Result<RehearsalReport, AppError> {
    let start = read_start(context, &request.source, true, reporter)?;
    Ok(rehearse_start(context, &start, request.kind, &request.settings, reporter)?.report)
}

/// Rehearses a run whose source was read and whose data was resolved; the answer's `result` is the check.
///
/// # Errors
/// [`ErrorKind::Usage`] for settings that make no sense; a fault while launching and sealing. What the script does
/// wrong is not an error but a result.
pub(crate) fn rehearse_start(
    context: &Context,
    start: &Start,
    kind: LaunchKind,
    settings: &RehearsalSettings,
    reporter: &dyn Reporter,
) -> Result<Rehearsed, AppError> {
    if settings.batch_count == 0 || settings.steps_max < 2 {
        let message = "a rehearsal needs at least one batch and two steps";
        return Err(AppError::new(ErrorKind::Usage, message));
    }
    let began_micros = context.clock.monotonic_micros();
    let reporter = NotesOnly(reporter);
    let prepared = begin(context, start, kind, &reporter)?;
    let mut launches = Launches {
        context,
        settings,
        prepared: &prepared,
        reporter: &reporter,
        done: Vec::new(),
        tried: Vec::new(),
        evaluator_run_id: None,
    };
    let (row, learned) = launches.learn()?;
    let continues = learned.ending.in_order && learned.facts.sdk.is_some();
    let mut evidence = RehearsalEvidence {
        kind,
        batch_count: settings.batch_count,
        learned,
        tried: launches.tried.clone(),
        resumed: None,
        evaluator: None,
        cut_short: false,
        target_share: settings.target_share,
        target_loss: settings.target_loss,
    };
    evidence.cut_short = continues && judge(&evidence).verdict == Verdict::Block;
    if continues && !evidence.cut_short {
        if settings.resume {
            evidence.resumed = launches.resume(&row)?;
        }
        evidence.evaluator = launches.evaluate()?;
    }
    let (done, evaluator_run_id) = (launches.done, launches.evaluator_run_id);
    let mut result = answer(&evidence, settings, &context.request.cancel, &done);
    result.seconds = Some((context.clock.monotonic_micros() - began_micros) as f64 / 1e6);
    redact(context, &mut result);
    let config = config_of(&evidence.learned.facts);
    Ok(Rehearsed { report: report(context, &prepared, result, &evidence, &done), config, evaluator_run_id })
}

/// The result, but for what only the supervisor knows.
fn answer(
    evidence: &RehearsalEvidence,
    settings: &RehearsalSettings,
    cancel: &Cancel,
    done: &[FinishedLaunch],
) -> CheckResult {
    let name = check_name(evidence.kind);
    if cancel.stop_requests() > 0 {
        return CheckResult::not_run(name, format!("stopped by {}", cancel.last_signal()));
    }
    let silent = evidence.learned.facts.sdk.is_none();
    let ended = done.first().and_then(|done| done.row.termination_reason);
    if silent && ended == Some(TerminationReason::Timeout) {
        let why = format!(
            "the script did not speak to Trackway's recorder within {} s and was ended; its real run is not touched",
            settings.handshake_seconds
        );
        return CheckResult::not_applicable(name, why);
    }
    judge(evidence)
}

/// Names and messages of the script are in the findings; they are redacted like everything that is stored.
fn redact(context: &Context, result: &mut CheckResult) {
    result.why = result.why.take().map(|why| context.redactor.text(&why).into_owned());
    for finding in &mut result.findings {
        finding.message = context.redactor.text(&finding.message).into_owned();
    }
}

fn report(
    context: &Context,
    prepared: &Prepared,
    result: CheckResult,
    evidence: &RehearsalEvidence,
    done: &[FinishedLaunch],
) -> RehearsalReport {
    let rows = || done.iter().map(|done| &done.row);
    let launches = done.iter().map(|FinishedLaunch { part, row, set }| {
        with_fields_of!(
            RehearsalLaunch,
            &row,
            [attempt_id, termination_reason, resumed_from_step, last_step, last_committed_step, wall_seconds],
            part: *part,
            set: context.redactor.settings(set),
        )
    });
    let costs: Vec<f64> = rows().filter_map(|row| row.cost_usd).collect();
    RehearsalReport {
        run_id: prepared.run.run_id,
        result,
        launches: launches.collect(),
        measured: measured(&evidence.learned.facts),
        wall_seconds: rows().filter_map(|row| row.wall_seconds).sum(),
        gpu_seconds: rows().filter_map(|row| row.gpu_seconds).sum(),
        cost_usd: (!costs.is_empty()).then(|| costs.iter().sum()),
    }
}

/// A launch that was made.
struct FinishedLaunch {
    part: RehearsalPart,
    row: AttemptRow,
    /// Variables of the retry plan.
    set: BTreeMap<String, String>,
}

/// The launches of a rehearsal, done so far.
struct Launches<'a> {
    context: &'a Context,
    settings: &'a RehearsalSettings,
    prepared: &'a Prepared,
    reporter: &'a NotesOnly<'a>,
    done: Vec<FinishedLaunch>,
    /// Entries of the retry plan, since the script ran out of memory without them.
    tried: Vec<TriedEntry>,
    evaluator_run_id: Option<RunId>,
}

impl Launches<'_> {
    /// The launch that learns; after each that is out of memory another with the next entry of the retry plan.
    fn learn(&mut self) -> Result<(AttemptRow, LaunchEvidence), AppError> {
        self.reporter.note(format!("rehearsal: {} of `{}`", self.subject(), self.prepared.run.name));
        let policy = policy_of(&self.prepared.job.plan.retry);
        let environment = self.environment(self.settings.steps_max);
        let mut sealed = self.launch(RehearsalPart::Learns, None, environment.clone())?;
        loop {
            let evidence = self.evidence(&sealed);
            let continues = evidence.facts.sdk.is_some() && self.context.request.cancel.stop_requests() == 0;
            let reason = sealed.row.termination_reason.filter(|_| continues);
            let Some(entry) = reason.and_then(|reason| next_entry(&policy, reason, &self.tried)) else {
                return Ok((sealed.row, evidence));
            };
            self.reporter.note(format!(
                "rehearsal: out of memory (`{}`); again with entry {} of {} of its plan",
                entry.reason,
                entry.index + 1,
                entry.entries
            ));
            self.tried.push(entry);
            sealed = self.launch(RehearsalPart::Learns, Some(&sealed.row), environment.clone())?;
        }
    }

    /// One step after the checkpoint; none if nothing was committed.
    fn resume(&mut self, learned: &AttemptRow) -> Result<Option<LaunchEvidence>, AppError> {
        let Some(step) =
            learned.last_committed_step.filter(|_| self.context.request.cancel.stop_requests() == 0)
        else {
            return Ok(None);
        };
        self.reporter.note(format!("rehearsal: resuming from the checkpoint of step {step}"));
        let mut environment = self.environment(step + 1);
        environment.remove(Variable::RehearsalTarget.as_str());
        environment.remove(Variable::RehearsalTargetLoss.as_str());
        let sealed = self.launch(RehearsalPart::Resumes, Some(learned), environment)?;
        Ok(Some(self.evidence(&sealed)))
    }

    /// The evaluator of the run file on the last checkpoint; none without one, or if nothing was committed.
    fn evaluate(&mut self) -> Result<Option<EvaluatorTrial>, AppError> {
        let committed = self.done.iter().rev().find_map(|done| done.row.last_committed_step);
        let Some(step) = committed.filter(|_| self.context.request.cancel.stop_requests() == 0) else {
            return Ok(None);
        };
        let Some(asked) = EvaluationRequest::of(&self.prepared.job) else { return Ok(None) };
        self.reporter.note(format!("rehearsal: evaluating the checkpoint of step {step}"));
        let seconds = self.settings.timeout_seconds;
        let tried = try_evaluator(self.context, &asked, self.prepared, step, seconds, self.reporter)?;
        let (part, set) = (RehearsalPart::Evaluates, BTreeMap::new());
        self.done.push(FinishedLaunch { part, row: tried.launch, set });
        self.evaluator_run_id = Some(tried.run_id);
        Ok(Some(tried.trial))
    }

    fn subject(&self) -> String {
        match self.settings.batch_count {
            1 => "one batch".into(),
            count => format!("{count} batches"),
        }
    }

    fn environment(&self, steps_max: Step) -> BTreeMap<String, String> {
        let settings = self.settings;
        let mut environment: BTreeMap<String, String> = [
            (Variable::RehearsalBatches.as_str(), settings.batch_count.to_string()),
            (Variable::RehearsalTarget.as_str(), (settings.target_share * ENOUGH_SHARE).to_string()),
            (Variable::MaxSteps.as_str(), steps_max.to_string()),
            (Variable::CheckpointAtSteps.as_str(), steps_max.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        if let Some(loss) = settings.target_loss {
            environment.insert(Variable::RehearsalTargetLoss.as_str().into(), loss.to_string());
        }
        environment
    }

    fn launch(
        &mut self,
        part: RehearsalPart,
        previous: Option<&AttemptRow>,
        environment: BTreeMap<String, String>,
    ) -> Result<SealedAttempt, AppError> {
        let in_force = self.tried.last().map(|entry| entry.in_force.clone()).unwrap_or_default();
        let rehearsal = Rehearsal {
            environment: environment.into_iter().map(|(name, value)| (name, value.into())).collect(),
            in_force: in_force.clone(),
            handshake_seconds: Some(self.settings.handshake_seconds),
            timeout_seconds: Some(self.settings.timeout_seconds),
            ..Rehearsal::default()
        };
        let sealed = launch(self.context, self.prepared, previous, &rehearsal, self.reporter)?;
        self.done.push(FinishedLaunch { part, row: sealed.row.clone(), set: in_force.set });
        Ok(sealed)
    }

    fn evidence(&self, sealed: &SealedAttempt) -> LaunchEvidence {
        let row = &sealed.row;
        let files = self.context.home.layout.attempt(row.attempt_id);
        let reason = row.termination_reason.unwrap_or(TerminationReason::Unknown);
        let id = row.attempt_id;
        LaunchEvidence {
            last_step: row.last_step,
            committed_step: row.last_committed_step,
            resumed_from_step: row.resumed_from_step,
            ending: Ending {
                in_order: reason.is_success(),
                words: format!("ended as `{reason}` ({}; `trackway logs {id}`)", sealed.evidence),
                timed_out: reason == TerminationReason::Timeout,
            },
            ..record::read(&files.records())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the run file's bounds reach the rehearsal that it requests, and that no other one is made.
    #[test]
    fn the_run_file_is_obeyed() {
        let mut section = PreflightSection::default();
        assert_eq!(RehearsalSettings::of(&section, LaunchKind::Overfit), None);
        section.overfit_batches = Some(4);
        section.rehearsal_timeout_seconds = Some(30.0);
        section.target_loss = Some(0.1);
        let one = RehearsalSettings::of(&section, LaunchKind::OneBatch).unwrap();
        assert_eq!(
            (one.batch_count, one.timeout_seconds, one.target_loss, one.resume),
            (1, 30.0, Some(0.1), true)
        );
        let few = RehearsalSettings::of(&section, LaunchKind::Overfit).unwrap();
        assert_eq!(
            (few.batch_count, few.timeout_seconds, few.target_loss, few.resume),
            (4, 30.0, Some(0.1), false)
        );
    }
}
