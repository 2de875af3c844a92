//! Everything about an attempt that a person who never saw it needs to know.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use trackway_core::checks::{Finding, Verdict};
use trackway_core::detect::{DetectionSeverity, Detector};
use trackway_core::text::{budgeted, counted, duration, timestamp};
use trackway_core::{
    AttemptId, Confidence, Domain, Health, HealthReport, ProofId, RetryOutlook, RunId, Step,
    TerminationReason, Timestamp,
};
use trackway_ledger::{AttemptState, Decision, ProofVerdict, RunState};
use trackway_results::reading::ReadNote;
pub use trackway_rules::checkpoints::cadence::{Cadence, CadenceAdvice};

use crate::checkpoints::remote::RemoteStatus;
use crate::checkpoints::{Checkpoint, CheckpointStanding, FallBack};
use crate::models::evaluations::EvaluationReceipt;
use crate::models::registry::ModelVersion;
pub use crate::runs::changes::{Change, Diff, InputKind, LineCount, UnknownChange};
use crate::runs::compare::ComparedCurve;
use crate::runs::detections::Detection;
use crate::runs::diagnosis::AttemptDiagnosis;
use crate::runs::progressive::ProgressiveEstimate;
use crate::runs::watch::{QueuedRun, waiting_sentence};
use crate::runs::{RunAmendment, RungSummary};

/// Explains an attempt, or the last attempt of a run: what ran, why it ended, which checkpoint is valid, what to do next.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    pub run: ExplainedRun,
    /// The explanation in at most ten lines.
    #[serde(default)]
    pub short: Vec<ShortLine>,
    /// What changed since the last good run of the same name, which completed and is neither suspect nor broken; null without one.
    pub since_last_good: Option<Diff>,
    /// The attempt that is explained; of a run, its last one. Null: the run was never launched.
    pub attempt: Option<ExplainedAttempt>,
    /// All attempts of the run, oldest first.
    pub attempts: Vec<AttemptSummary>,
    /// The rungs of the run's ladder that were launched, from the smallest; empty without `[ladder]`.
    pub rungs: Vec<RungSummary>,
    /// How this attempt differs from its parent attempt.
    pub parent_diff: Option<Diff>,
    /// The data it read.
    pub data: ExplainedData,
    /// The pre-flight checks; empty if nothing was checked.
    pub preflight: Vec<RecordedCheck>,
    /// What detectors found during the run, oldest first.
    pub detections: Vec<Detection>,
    /// What diagnoses of the run's attempts showed, oldest first (`trackway diagnose`).
    pub diagnoses: Vec<AttemptDiagnosis>,
    /// Where it ran.
    pub placement: Option<AttemptPlacement>,
    /// What happened, oldest first; checkpoints that a resume skipped for one reason are one line.
    pub timeline: Vec<TimelineEvent>,
    /// Why it ended; null while it runs.
    pub termination: Option<Termination>,
    /// Whether what the attempt computed is worth something; null while it runs, and for launches that are no training.
    #[serde(default)]
    pub health: Option<ExplainedHealth>,
    /// The run's checkpoints, newest first.
    pub checkpoints: Vec<Checkpoint>,
    /// Why there is none; null if there is one, and while the attempt runs.
    pub no_checkpoint_why: Option<String>,
    /// How often the script asked whether to save, and how often nothing was; null if it never asked.
    pub save_requests: Option<SaveRequests>,
    /// What was left out between the script and the log and record of an attempt that ended: what it printed, its files
    /// of metrics, an import.
    #[serde(default)]
    pub reading: Vec<ReadNote>,
    /// The state of the run's remote; null without one.
    pub remote: Option<RemoteStatus>,
    /// What the attempt lost because it resumed from an older checkpoint than the newest; null if it did not.
    pub fall_back: Option<FallBack>,
    /// The step that a resume would continue from.
    pub resume_step: Option<Step>,
    /// The newest, the newest safe and the best checkpoint.
    #[serde(default)]
    pub standing: CheckpointStanding,
    /// The newest resume proof of the run's config.
    pub resume_proof: Option<ResumeProofSummary>,
    /// How often to save, from the cost of saves and the failure rate; null before there are enough saves.
    pub cadence: Option<CadenceAdvice>,
    /// The decision after each attempt.
    pub retries: Vec<RetryDecision>,
    /// The evaluations of the run's checkpoints.
    pub evaluations: Vec<EvaluationReceipt>,
    /// The model versions that its checkpoints became.
    pub versions: Vec<ModelVersion>,
    /// The attempt's metrics.
    pub metrics: Vec<MetricSummary>,
    /// The curves of the run over the attempt's rung, each as one series: steps that a resume made void do not count. Only for a
    /// page (`--html`), else empty.
    pub curves: Vec<ComparedCurve>,
    /// The loss on data that the model has not seen, by progressive validation, over the attempt's rung; null if it was
    /// not recorded.
    pub progressive: Option<ProgressiveEstimate>,
    /// The use of the machine.
    pub machine: MachineSummary,
    /// The attempt's parameters: those of its command, those given beside it, and those that the script reported.
    pub parameters: Vec<AttemptParameter>,
    /// The attempt's tags, with what was amended since.
    pub tags: Vec<AttemptTag>,
    /// The files that the script recorded as artifacts.
    pub artifacts: Vec<AttemptArtifact>,
    /// Other completed runs with the same config, data and seed.
    pub same_inputs: Vec<SameInputsRun>,
    pub cost: AttemptCost,
    /// The last lines it printed, stderr before stdout: at most 8 of each and 200 characters of a line, with `…` where more follow.
    pub last_lines: Vec<String>,
    /// What to do, most useful first.
    pub next_actions: Vec<String>,
}

/// The health of an attempt, with what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedHealth {
    /// Its health; null: its receipt is older than that.
    pub health: Option<Health>,
    /// What it rests on.
    pub report: HealthReport,
    /// Why a person vouches for the run all the same.
    pub blessed_because: Option<String>,
}

impl ExplainedHealth {
    /// `broken`, `unknown (older receipt)`.
    #[must_use]
    pub fn word(&self) -> String {
        match (self.health, &self.blessed_because) {
            (None, _) => "unknown (older receipt)".into(),
            (Some(health), Some(_)) if !Health::is_good(Some(health)) => format!("{health}, but blessed"),
            (Some(health), _) => health.to_string(),
        }
    }

    /// What it rests on, as lines: its findings, else what was looked at, with what detectors found in the attempt; and what is missing.
    #[must_use]
    pub fn lines(&self, detected: &[&Detection]) -> Vec<String> {
        let from = |step: Option<Step>| step.map(|step| format!(" from step {step} on")).unwrap_or_default();
        let HealthReport { findings, looked_at, missing } = &self.report;
        let mut lines: Vec<String> = findings
            .iter()
            .map(|found| format!("{}{}: {}", found.found_by, from(found.first_step), found.evidence))
            .collect();
        if findings.is_empty() && !looked_at.is_empty() {
            let found = passing(detected).unwrap_or_else(|| "nothing was found".to_owned());
            lines.push(format!("{found}; looked at: {}", looked_at.join(", ")));
        }
        lines.extend(missing.iter().cloned());
        lines.extend(self.blessed_because.iter().map(|why| format!("blessed: {why}")));
        lines
    }
}

/// What detectors found that is not held against an attempt, the first ones; none without any that a person should look at.
fn passing(detected: &[&Detection]) -> Option<String> {
    /// So many are named.
    const NAMED_MAX: usize = 2;
    let found: Vec<&&Detection> =
        detected.iter().filter(|found| found.severity != DetectionSeverity::Note).collect();
    let mut named: Vec<String> = found
        .iter()
        .take(NAMED_MAX)
        .map(|found| match found.detector {
            // Values that are not finite at the end would be findings.
            Detector::NonFinite => format!("{}, and it recovered", found.evidence),
            _ => format!("{}, which does not count at its end", found.evidence),
        })
        .collect();
    let more = found.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        named.push(format!("{more} more that do not count at its end"));
    }
    (!named.is_empty()).then(|| named.join("; "))
}

/// A line of the short explanation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShortLine {
    /// What it is about: `run`, `cause`, `evidence`, `warning`, `health`, `checkpoint`, `changed`, `cost`, `next`.
    pub name: String,
    pub text: String,
}

/// How often the script of an attempt asked whether to save, and how often nothing was saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SaveRequests {
    /// Steps at whose end it asked.
    pub asked: u64,
    /// Whether that is all of them; false while it runs and if its process was killed, when there may be up to twice as many.
    pub is_complete: bool,
    /// The first of these steps.
    pub from_step: Option<Step>,
    /// What decides when a checkpoint is due, such as `every 200 steps`.
    pub cadence: Option<String>,
    /// Steps at which none was due.
    pub not_due: u64,
    /// Steps at which a save did not fit into what was left of the grace period.
    pub no_time: u64,
    /// Steps at which the previous save was still being written.
    pub busy: u64,
}

impl SaveRequests {
    /// `the script asked 60 times whether to save (every 20 steps): 57 times none was due`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let times = |count: u64| if count == 1 { "once".to_owned() } else { format!("{count} times") };
        let at_least = if self.is_complete { "" } else { "at least " };
        let cadence = self.cadence.as_ref().map(|cadence| format!(" ({cadence})")).unwrap_or_default();
        let reasons = [
            (self.not_due, "none was due"),
            (self.busy, "the previous save was still being written"),
            (self.no_time, "a save did not fit into what was left of the grace period"),
        ];
        let reasons = reasons.into_iter().filter(|(count, _)| *count > 0);
        let reasons: Vec<String> = reasons.map(|(count, why)| format!("{} {why}", times(count))).collect();
        let unsaved = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join(", ")) };
        format!("the script asked {at_least}{} whether to save{cadence}{unsaved}", times(self.asked))
    }
}

impl Explanation {
    /// What the health of the attempt rests on, as lines; none without a health.
    #[must_use]
    pub fn health_lines(&self) -> Vec<String> {
        let of_attempt = self.attempt.as_ref().map(|attempt| attempt.attempt_id);
        let detected: Vec<&Detection> =
            self.detections.iter().filter(|found| Some(found.attempt_id) == of_attempt).collect();
        self.health.as_ref().map(|health| health.lines(&detected)).unwrap_or_default()
    }

    /// The timeline with what detectors found, oldest first.
    #[must_use]
    pub fn events(&self) -> Vec<TimelineEvent> {
        let number_of = |found: &Detection| {
            let line = self.attempts.iter().find(|line| line.attempt_id == found.attempt_id);
            line.map(|line| line.attempt_number)
        };
        let found = self.detections.iter().map(|found| TimelineEvent {
            at: found.at,
            attempt_number: number_of(found),
            kind: "detection".to_owned(),
            step: Some(found.step),
            text: format!(
                "{} ({}) at step {}: {}",
                found.detector, found.severity, found.step, found.evidence
            ),
        });
        let mut all: Vec<TimelineEvent> = self.timeline.iter().cloned().chain(found).collect();
        all.sort_by_key(|event| event.at);
        all
    }
}

/// The run of an explanation.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedRun {
    pub run_id: RunId,
    pub name: String,
    pub state: RunState,
    /// The family it is counted with.
    pub model_family: Option<String>,
    /// The person who answers for it.
    pub owner: Option<String>,
    /// The team it is charged to.
    pub team: Option<String>,
    /// SHA-256 of the config.
    pub config_sha256: String,
    /// SHA-256 over the hashes of all data sets.
    pub data_sha256: Option<String>,
    pub seed: Option<u64>,
    pub created_at: Timestamp,
    /// What a person noted about it.
    pub note: Option<String>,
    /// When it was hidden; null if it is visible.
    pub hidden_at: Option<Timestamp>,
    /// Changes of its name, note and tags and of whether lists show it, oldest first.
    pub amendments: Vec<RunAmendment>,
    /// Its wait for a place in its queue; null: it does not wait for one.
    #[serde(default)]
    pub queue: Option<QueuedRun>,
    /// Whether it waits to begin, for a place in its queue or for its next attempt, and no process supervises it: nothing happens before it
    /// is resumed.
    #[serde(default)]
    pub unsupervised: bool,
}

impl ExplainedRun {
    /// What is said of it while it waits; none while it does not.
    #[must_use]
    pub fn waiting(&self) -> Option<String> {
        waiting_sentence(self.run_id, self.queue.as_ref(), self.unsupervised)
    }
}

/// The attempt of an explanation.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedAttempt {
    pub attempt_id: AttemptId,
    /// Counted from 1 in the run.
    pub attempt_number: u32,
    /// The rung of the data, such as `10%`.
    pub rung: String,
    /// The attempt it follows.
    pub parent_attempt_id: Option<AttemptId>,
    pub state: AttemptState,
    /// The command, secrets removed.
    pub command: Vec<String>,
    /// The working directory it was started in.
    pub working_directory: String,
    /// The commit of the working directory.
    pub git_commit: Option<String>,
    /// Whether the working directory differed from the commit.
    pub git_dirty: Option<bool>,
    /// SHA-256 of the environment's packages or lock file.
    pub environment_lock_sha256: Option<String>,
    /// The source of that hash.
    pub environment_lock_source: Option<String>,
    /// The container image's digest.
    pub container_digest: Option<String>,
    /// When it began.
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// The committed step it continued from.
    pub resumed_from_step: Option<Step>,
    /// SHA-256 of that checkpoint's manifest.
    pub resumed_from_manifest_sha256: Option<String>,
    /// The last step it reported.
    pub last_step: Option<Step>,
    pub last_committed_step: Option<Step>,
    /// The script's own exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    pub folder: String,
    /// What shows that it took what it was given.
    pub inputs: AttemptInputs,
    /// What evaluates its checkpoints, as it was when the attempt began.
    pub evaluators: Vec<EvaluatorVersion>,
    /// Late facts about it, oldest first; the receipt itself never changes.
    pub amendments: Vec<Amendment>,
}

impl ExplainedAttempt {
    /// Whether it has, sealed or not.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.ended_at.is_some() || matches!(self.state, AttemptState::Ended | AttemptState::Sealed)
    }
}

/// What an attempt was given and what shows that it took it. What a script was given does not show what it did: null means that
/// nothing shows it.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct AttemptInputs {
    /// The seed of the run file.
    pub seed: Option<u64>,
    /// The seed that the script says it took.
    pub seed_seen: Option<u64>,
    /// Rows that it kept in its rung, as counted.
    pub rung_rows: Option<u64>,
    /// Rows they were kept from.
    pub rung_rows_total: Option<u64>,
    /// Batches it was to skip after a roll back, as half-open ranges.
    pub skip_batches: Option<String>,
    pub skipped_batch_count: Option<u64>,
    /// The run whose weights it started with; null: its own.
    pub warm_start_run_id: Option<RunId>,
    /// The rung whose weights it started with.
    pub warm_start_rung: Option<String>,
    /// Their step in that rung.
    pub warm_start_step: Option<Step>,
    /// SHA-256 of that checkpoint's manifest.
    pub warm_start_manifest_sha256: Option<String>,
    /// Data sets that were opened while it ran.
    #[serde(default)]
    pub data_opened: Vec<String>,
    /// Data sets whose files were watched and never opened: it did not read them. Sets in neither list could not be watched.
    #[serde(default)]
    pub data_not_opened: Vec<String>,
    /// Samples of one update of the weights, over all ranks, as its callback counted them.
    #[serde(default)]
    pub effective_batch: Option<u64>,
}

impl AttemptInputs {
    /// The weights that it began with, if it began with some.
    #[must_use]
    pub fn weights(&self) -> Option<String> {
        let (step, rung) = self.warm_start_step.zip(self.warm_start_rung.as_ref())?;
        let run = self.warm_start_run_id.map(|run_id| format!(" of {run_id}")).unwrap_or_default();
        Some(format!("weights of step {step} of {rung}{run}"))
    }

    /// The seed, and whether the script took it.
    #[must_use]
    pub fn seed_as_taken(&self) -> Option<String> {
        self.seed.map(|seed| match self.seed_seen {
            None => format!("{seed}; nothing shows that the script took it"),
            Some(seen) if seen == seed => format!("{seed}, taken by the script"),
            Some(seen) => format!("{seed}, but the script took {seen}"),
        })
    }

    /// The batches to skip, and how many the script skipped.
    #[must_use]
    pub fn batches_skipped(&self) -> Option<String> {
        self.skip_batches.as_ref().map(|ranges| match self.skipped_batch_count {
            None => format!("{ranges}; nothing shows that the script skipped them"),
            Some(count) => format!("{ranges}; {} skipped", counted(count, "batch")),
        })
    }
}

/// An evaluator, as it was when an attempt began.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct EvaluatorVersion {
    /// Its name; null if its files could not be read.
    #[serde(default)]
    pub name: Option<String>,
    /// SHA-256 over its files; null if none is known.
    #[serde(default)]
    pub digest: Option<String>,
    /// Why its files could not be read; null if they could.
    #[serde(default)]
    pub why: Option<String>,
}

/// A late fact about an attempt, beside its receipt.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Amendment {
    pub amendment_id: String,
    pub attempt_id: AttemptId,
    /// When it was written.
    pub at: Timestamp,
    /// Who wrote it.
    pub author: String,
    /// The column of the receipt that it concerns.
    pub field: String,
    /// The value in the receipt; null: there is none.
    pub old_text: Option<String>,
    /// The value as it is known now; null: it is not known.
    pub new_text: Option<String>,
    pub why: String,
}

/// An attempt in short.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AttemptSummary {
    pub attempt_id: AttemptId,
    /// Counted from 1 in the run.
    pub attempt_number: u32,
    /// The rung of the data, such as `10%`.
    pub rung: String,
    /// When it began.
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// Why it ended; null while it runs.
    pub termination_reason: Option<TerminationReason>,
    /// The cause in one sentence; null while it runs.
    pub cause: Option<String>,
    /// The section of the runbook about the reason; null while it runs.
    pub runbook: Option<String>,
    /// The committed step it continued from.
    pub resumed_from_step: Option<Step>,
    /// The last step it reported.
    pub last_step: Option<Step>,
    pub last_committed_step: Option<Step>,
    /// Steps that it trained and that do not count: the next attempt trained them again, or they came after its last
    /// committed step, if any. Null: it succeeded, runs, or reported no step.
    pub lost_steps: Option<u64>,
    /// What it had that the attempt before it did not.
    pub changes: Vec<Change>,
    /// What of it cannot be compared with the attempt before it.
    #[serde(default)]
    pub unknown: Vec<UnknownChange>,
    pub wall_seconds: Option<f64>,
    /// The rule that named the reason.
    pub rule: Option<String>,
    /// Seconds from the end of the attempt before to its first step; null: it follows none of its rung, or made no step.
    pub recovery_seconds: Option<f64>,
    /// Steps it committed that no attempt of its rung had committed before; null: it made no step.
    pub new_committed_steps: Option<u64>,
    /// GPUs × wall seconds.
    pub gpu_seconds: Option<f64>,
    /// GPU hours for each newly committed step; null: there is none.
    pub gpu_hours_per_committed_step: Option<f64>,
    /// Its cost in USD, if there is a price.
    pub cost_usd: Option<f64>,
}

impl AttemptSummary {
    /// Why it ended, or where it is before its end.
    #[must_use]
    pub fn ended_as(&self) -> &'static str {
        match (self.termination_reason, self.ended_at, self.started_at) {
            (Some(reason), _, _) => reason.as_str(),
            (None, Some(_), _) => "ended",
            (None, None, Some(_)) => "running",
            (None, None, None) => "not started",
        }
    }
}

/// The data of an attempt; of a run that was never launched, its own.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedData {
    /// The data sets by name.
    pub sets: Vec<ExplainedDataSet>,
    /// Why the sets may not be those that the attempt read; null: they are.
    #[serde(default)]
    pub doubt: Option<String>,
}

/// A data set.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedDataSet {
    /// Its name in the run file.
    pub name: String,
    /// The hash of its content.
    pub data_sha256: String,
    pub file_count: u64,
    /// Number of its rows, if the format has rows.
    pub rows: Option<u64>,
    pub size_bytes: u64,
}

/// Where an attempt ran.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AttemptPlacement {
    pub launcher: String,
    /// The scheduler's job id, or the process id.
    pub job_id: Option<String>,
    /// Host names, separated by commas.
    pub hosts: Option<String>,
    /// Devices, separated by commas.
    pub devices: Option<String>,
    /// The queue or partition.
    pub queue: Option<String>,
    /// When its engine took it into its queue; null: the engine has none, or does not say.
    #[serde(default)]
    pub submitted_at: Option<Timestamp>,
    /// Seconds in that queue; null: it waits, was in none, or ended before it was started.
    #[serde(default)]
    pub queued_seconds: Option<f64>,
    /// Its engine by the name in the settings, then `:` and the engine's name for this start of it, such as
    /// `juwels:4711`; null: this machine, without a name.
    #[serde(default)]
    pub engine_instance: Option<String>,
    /// How many of its files are here as a whole, such as `2 of 3 files`, and which are not; null: all.
    #[serde(default)]
    pub completeness: Option<String>,
    /// CPU cores of the host.
    pub cpu_count: Option<u32>,
    /// Memory of the host.
    pub memory_bytes: Option<u64>,
}

impl AttemptPlacement {
    /// What started the attempt, as it is shown: its launcher, behind the name of its engine where the settings have
    /// one, such as `juwels (slurm)`.
    #[must_use]
    pub fn started_by(&self) -> String {
        let instance = self.engine_instance.as_deref().unwrap_or(&self.launcher);
        let engine = instance.split_once(':').map_or(instance, |(engine, _)| engine);
        if engine == self.launcher { engine.to_owned() } else { format!("{engine} ({})", self.launcher) }
    }

    /// How long the attempt was in the queue of its engine, or since when; none where it was in none. `has_ended`: the attempt has.
    #[must_use]
    pub fn queued(&self, has_ended: bool) -> Option<String> {
        let submitted_at = self.submitted_at?;
        let queue = self.queue.as_deref().map(|queue| format!(" of {queue}")).unwrap_or_default();
        Some(match self.queued_seconds {
            Some(seconds) => format!("{} in the queue{queue}", duration(seconds)),
            None if has_ended => format!(
                "submitted {}, it left the queue{queue} without being started",
                timestamp(submitted_at)
            ),
            None => format!("in the queue{queue}, submitted {}", timestamp(submitted_at)),
        })
    }
}

/// An event of a run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TimelineEvent {
    /// When it happened.
    pub at: Timestamp,
    /// The attempt it belongs to.
    pub attempt_number: Option<u32>,
    /// Its kind: `queued` (by its engine), `launched`, `ended`, `decision`, or a kind of event (`docs/events.md`).
    pub kind: String,
    /// The step it belongs to.
    pub step: Option<Step>,
    /// A sentence about what happened.
    pub text: String,
}

/// Why an attempt ended.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Termination {
    pub reason: TerminationReason,
    /// The cause in one sentence.
    pub cause: String,
    /// The section of the runbook about the reason: a path in the repository with an anchor.
    pub runbook: String,
    /// The rule that named it.
    pub rule: Option<String>,
    /// Confidence in the reason.
    pub confidence: Option<Confidence>,
    /// The domain of the cause.
    pub domain: Option<Domain>,
    /// Whether a retry may succeed.
    pub retry_outlook: Option<RetryOutlook>,
    /// Evidence for the reason, the deciding one first.
    pub evidence: Vec<TerminationEvidence>,
    /// Other possible reasons, weaker or later.
    pub secondary: Vec<SecondaryReason>,
    /// The cause without numbers and paths, to recognize a repeated failure.
    pub fingerprint: Option<String>,
}

impl Termination {
    /// The frame of the user's own code that raised what decided, which is behind it; none: no traceback shows it.
    #[must_use]
    pub fn raised_at(&self) -> Option<&TerminationEvidence> {
        let [decided, next, ..] = self.evidence.as_slice() else { return None };
        let is_beside = next.source == decided.source && next.stream == decided.stream;
        (is_beside && next.text.starts_with("at ")).then_some(next)
    }
}

/// A piece of evidence for the reason of an end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TerminationEvidence {
    /// Where it was seen: as in `classify`, or the tool that a run was imported from.
    pub source: String,
    /// The stream, for a line of the output.
    #[serde(default)]
    pub stream: Option<String>,
    /// The line of the stream, from 1.
    #[serde(default)]
    pub line_number: Option<u64>,
    /// What was seen.
    pub text: String,
}

impl TerminationEvidence {
    /// Where it was seen, such as `log, stderr line 12`.
    #[must_use]
    pub fn place(&self) -> String {
        let source = self.source.replace('_', " ");
        match self.line_number {
            Some(line) => format!("{source}, {} line {line}", self.stream.as_deref().unwrap_or("log")),
            None => source,
        }
    }
}

/// How a process ended, such as `exit code 1` or `signal 9`; nothing if that is not known.
#[must_use]
pub fn exit_status(exit_code: Option<i32>, signal: Option<i32>) -> Option<String> {
    let by_signal = signal.map(|signal| format!("signal {signal}"));
    exit_code.map(|code| format!("exit code {code}")).or(by_signal)
}

/// A reason that is possible too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecondaryReason {
    pub reason: TerminationReason,
    /// The rule that names it.
    pub rule: String,
    /// What was seen.
    pub text: String,
    /// The section of the runbook about the reason.
    #[serde(default)]
    pub runbook: Option<String>,
}

/// What `trackway prove` found for the config of a run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ResumeProofSummary {
    /// Its id in the table `resume_proofs`.
    pub proof_id: ProofId,
    pub verdict: ProofVerdict,
    /// Why, for every verdict but `equal`.
    pub why: Option<String>,
    /// When it ended.
    pub at: Timestamp,
    /// Steps of each launch.
    pub steps: Step,
    pub killed_at_step: Option<Step>,
    /// The step that the killed launch was resumed from.
    pub resumed_from_step: Option<Step>,
    /// What differs between the attempt and what was proved: `code`, `data`, `environment`, `seed`.
    pub changed_since: Vec<String>,
}

/// The decision after an attempt.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RetryDecision {
    pub after_attempt_number: Option<u32>,
    pub decision: Decision,
    /// The rule that decided.
    pub rule: String,
    /// A sentence about why.
    pub why: String,
    /// Seconds before the next attempt.
    pub delay_seconds: Option<f64>,
    /// The budget that is spent from.
    pub budget_name: Option<String>,
    /// What is spent of it, this time included.
    pub budget_spent: Option<f64>,
    /// What there is in all.
    pub budget_limit: Option<f64>,
    /// What the next attempt changes: variables and their values.
    pub changes: Option<Value>,
}

impl RetryDecision {
    /// The budget that is spent from, and how far: `2 of 5`.
    #[must_use]
    pub fn budget(&self) -> Option<(&str, String)> {
        let spent = format!("{} of {}", budgeted(self.budget_spent?), budgeted(self.budget_limit?));
        Some((self.budget_name.as_deref()?, spent))
    }

    /// The settings that it changes, if there are some.
    #[must_use]
    pub fn changed_settings(&self) -> Option<String> {
        let set = self.changes.as_ref()?.get("set")?;
        set.as_object().is_some_and(|set| !set.is_empty()).then(|| set.to_string())
    }
}

/// A metric of an attempt.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MetricSummary {
    pub name: String,
    /// Number of points.
    pub count: u64,
    /// The first value; null if it is not finite.
    pub first: Option<f64>,
    /// The last value; null if it is not finite.
    pub last: Option<f64>,
    /// The smallest finite value.
    pub min: Option<f64>,
    /// The greatest finite value.
    pub max: Option<f64>,
    /// Number of points that are not finite.
    pub non_finite_count: u64,
}

/// The use of the machine during an attempt, sampled once a second.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct MachineSummary {
    /// Number of samples; 0 if the attempt ended within a second.
    pub sample_count: u64,
    /// Each value over the whole attempt, by name (`docs/telemetry.md`).
    pub values: Vec<MachineValue>,
    /// How the time of the training loop was spent; null if the script did not record `step_seconds`.
    pub work: Option<LoopTime>,
}

/// A value of the machine over an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineValue {
    pub name: String,
    /// The mean over the samples.
    pub mean: Option<f64>,
    /// The smallest.
    pub min: Option<f64>,
    /// The greatest.
    pub max: Option<f64>,
    pub last: Option<f64>,
}

/// Fractions of the time of the training loop, over all ranks; they add up to 1. The utilization that a device's driver
/// reports is not used: it counts a kernel that waits for another rank as busy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopTime {
    /// Seconds of all steps and stalls, over all ranks.
    pub loop_seconds: f64,
    /// Steps without the wait for their batches.
    pub work_fraction: f64,
    /// The exposed wait for batches.
    pub batch_wait_fraction: f64,
    /// The stalls for checkpoints.
    pub checkpoint_stall_fraction: f64,
}

/// A parameter.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AttemptParameter {
    pub name: String,
    /// Its last value.
    pub value: String,
    /// `command line` (an argument of the command), `given` (`--param`, or `[run] parameters`), or the writer of the record: `sdk`,
    /// `tensorboard`, `files`, `stdout`, `import`. Null: not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// A tag.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AttemptTag {
    pub name: String,
    /// Its last value.
    pub value: String,
}

/// A file that is kept with the attempt.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AttemptArtifact {
    /// Its name, given by the script.
    pub name: String,
    /// The hash of its content: its name in the attempt's folder `artifacts`.
    pub blake3: String,
    pub size_bytes: u64,
    /// The step it was recorded at, if any.
    pub step: Option<Step>,
}

/// Another run with the same config, data and seed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SameInputsRun {
    pub run_id: RunId,
    pub state: RunState,
    /// Metrics whose last value differs, at the same step: name, value there, value here.
    pub differing_metrics: Vec<(String, f64, f64)>,
    /// How many metrics were compared: those of both runs that end at the same step.
    #[serde(default)]
    pub compared_count: u64,
    /// Why the results cannot be compared; null if some metrics were.
    #[serde(default)]
    pub not_comparable: Option<String>,
    /// What the attempts started from beside config, data and seed, and what differs in it: `script`, `file`, `package` …
    #[serde(default)]
    pub other_inputs: Vec<InputKind>,
}

impl SameInputsRun {
    /// Whether it is not known to have started from other code, settings or data in files.
    #[must_use]
    pub fn has_same_files(&self) -> bool {
        let is_file = |kind: &InputKind| {
            use InputKind::{Code, Commit, File, Script, Uncommitted};
            matches!(kind, Script | File | Commit | Code | Uncommitted)
        };
        !self.other_inputs.iter().any(is_file)
    }

    /// `same result in 2 metrics at step 10`, and never more than was compared.
    #[must_use]
    pub fn sentence(&self) -> String {
        let metrics = counted(self.compared_count, "metric");
        let result = match (&self.not_comparable, self.differing_metrics.as_slice()) {
            (Some(why), _) => format!("not comparable: {why}"),
            (None, []) => format!("same last value of {metrics}"),
            (None, differing) => {
                let one =
                    |(name, there, here): &(String, f64, f64)| format!("{name} {there} there, {here} here");
                let list: Vec<String> = differing.iter().map(one).collect();
                format!("another result: {}", list.join("; "))
            }
        };
        let kinds: Vec<&str> = self.other_inputs.iter().map(|kind| kind.as_str()).collect();
        let other =
            if kinds.is_empty() { String::new() } else { format!("; it had another {}", kinds.join(", ")) };
        format!("{result}{other}")
    }
}

/// What an attempt and its run cost.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct AttemptCost {
    pub wall_seconds: Option<f64>,
    /// GPUs allocated × wall seconds.
    pub gpu_seconds: Option<f64>,
    /// CPU seconds of the script and its children.
    pub cpu_seconds: Option<f64>,
    /// Cost of the attempt in USD, if the run file has a price.
    pub cost_usd: Option<f64>,
    /// Cost of the run so far in USD.
    pub run_cost_usd: Option<f64>,
    /// GPU seconds of the run so far.
    pub run_gpu_seconds: f64,
    /// Wall seconds of all attempts so far.
    pub run_wall_seconds: f64,
    /// What the evaluations, diagnoses and rehearsals of the run took; null without any.
    pub beside: Option<CostBeside>,
    /// Steps of this attempt that do not count, as in `attempts`.
    pub lost_steps: Option<u64>,
    /// Such steps of all attempts of which they are known.
    #[serde(default)]
    pub run_lost_steps: Option<u64>,
    /// Wall seconds of an attempt that has not ended, so far; they are in `run_wall_seconds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_seconds: Option<f64>,
}

/// What launches for a run took that are not its attempts. They count in its budgets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostBeside {
    /// How many evaluations, diagnoses and rehearsals there were.
    pub runs: u64,
    pub wall_seconds: f64,
    /// GPUs allocated × their wall seconds.
    pub gpu_seconds: f64,
    /// Their cost in USD, if there is a price.
    pub cost_usd: Option<f64>,
}

/// A pre-flight check as the receipt has it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RecordedCheck {
    pub name: String,
    pub verdict: Verdict,
    /// Whether it forbade the launch.
    pub blocks: bool,
    /// Seconds that it took.
    pub seconds: Option<f64>,
    /// Why it did not run or does not apply; if it passed, what it checked.
    pub why: Option<String>,
    /// Why it was skipped, as given by the person who skipped it.
    pub skipped_why: Option<String>,
    /// What it found, worst first.
    pub findings: Vec<Finding>,
}

impl RecordedCheck {
    /// Whether nothing of it has to be looked at.
    #[must_use]
    pub fn passes(&self) -> bool {
        !self.blocks && matches!(self.verdict, Verdict::Pass | Verdict::NotApplicable)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trackway_core::HealthFinding;

    use super::*;

    fn detection(detector: &str, severity: &str, evidence: &str) -> Detection {
        serde_json::from_value(json!({
            "attempt_id": "att_01jz0000000000000000000002", "at": "2026-01-01T00:00:00Z", "detector": detector,
            "severity": severity, "policy": "note", "rank": 0, "first_step": 3, "step": 12, "threshold": 0.0,
            "evidence": evidence, "cause": "", "advice": "", "stacks": [],
        }))
        .expect("a detection")
    }

    /// Proves that the engine of an attempt is shown by its name in the settings with its kind, and the default engine by its kind alone.
    #[test]
    fn an_engine_is_shown_by_its_name() {
        let shown = |instance: Option<&str>| {
            let place = json!({ "launcher": "slurm", "engine_instance": instance });
            serde_json::from_value::<AttemptPlacement>(place).expect("a placement").started_by()
        };
        assert_eq!(shown(None), "slurm");
        assert_eq!(shown(Some("slurm:4711")), "slurm");
        assert_eq!(shown(Some("juwels:4711")), "juwels (slurm)");
        assert_eq!(shown(Some("juwels")), "juwels (slurm)");
    }

    /// Proves that an attempt which ended in the queue of its engine is not said to wait there, and that one which
    /// waits is not said to run.
    #[test]
    fn an_end_in_a_queue_ends_the_wait() {
        let place = |queued_seconds| AttemptPlacement {
            launcher: "fake".into(),
            job_id: None,
            hosts: None,
            devices: None,
            queue: Some("gpu".into()),
            submitted_at: Some(Timestamp::from_micros(0)),
            queued_seconds,
            engine_instance: None,
            completeness: None,
            cpu_count: None,
            memory_bytes: None,
        };
        let submitted = "submitted 1970-01-01 00:00:00";
        assert_eq!(place(None).queued(false), Some(format!("in the queue of gpu, {submitted}")));
        let left = format!("{submitted}, it left the queue of gpu without being started");
        assert_eq!(place(None).queued(true), Some(left));
        assert_eq!(place(Some(90.0)).queued(true).as_deref(), Some("1 min 30 s in the queue of gpu"));
        let attempt = |started_at: Option<&str>, ended_at: Option<&str>| -> AttemptSummary {
            serde_json::from_value(json!({
                "attempt_id": "att_01jz0000000000000000000002", "attempt_number": 1, "rung": "100%",
                "started_at": started_at, "ended_at": ended_at, "changes": [],
            }))
            .expect("an attempt")
        };
        let at = Some("2026-01-01T00:00:00Z");
        let words = [(None, None), (at, None), (None, at)].map(|(from, to)| attempt(from, to).ended_as());
        assert_eq!(words, ["not started", "running", "ended"]);
    }

    /// Proves that a health without findings names what detectors found all the same, but for notes, and says that
    /// nothing was found only where nothing was.
    #[test]
    fn what_recovered_is_not_nothing() {
        let looked_at = vec!["loss".to_owned()];
        let report = HealthReport { looked_at, ..HealthReport::default() };
        let ok = ExplainedHealth { health: Some(Health::Ok), report, blessed_because: None };
        assert_eq!(ok.lines(&[]), ["nothing was found; looked at: loss"]);
        let nan = detection("non_finite", "critical", "10 values in a row are NaN");
        let spike = detection("loss_spike", "warn", "it rose");
        let note = detection("loss_spike", "note", "it rose a little");
        assert_eq!(ok.lines(&[&note]), ["nothing was found; looked at: loss"]);
        assert_eq!(
            ok.lines(&[&nan, &spike, &spike]),
            ["10 values in a row are NaN, and it recovered; it rose, which does not count at its end; \
              1 more that do not count at its end; looked at: loss"]
        );
        let mut broken = ok;
        broken.report.findings = vec![HealthFinding {
            found_by: "non_finite".into(),
            health: Health::Broken,
            first_step: None,
            evidence: "it is NaN".into(),
        }];
        assert_eq!(broken.lines(&[&nan]), ["non_finite: it is NaN"]);
    }

    /// Proves that a script is said to have taken a seed, or to have skipped batches, only where it said so.
    #[test]
    fn what_a_script_took_is_not_claimed() {
        let seed =
            |seed, seed_seen| AttemptInputs { seed, seed_seen, ..AttemptInputs::default() }.seed_as_taken();
        assert_eq!(seed(None, Some(7)), None);
        assert_eq!(seed(Some(7), None).as_deref(), Some("7; nothing shows that the script took it"));
        assert_eq!(seed(Some(7), Some(7)).as_deref(), Some("7, taken by the script"));
        assert_eq!(seed(Some(7), Some(8)).as_deref(), Some("7, but the script took 8"));
        let skipped = |skipped_batch_count| {
            let skip_batches = Some("5..9".to_owned());
            let inputs = AttemptInputs { skip_batches, skipped_batch_count, ..AttemptInputs::default() };
            inputs.batches_skipped()
        };
        assert_eq!(skipped(None).as_deref(), Some("5..9; nothing shows that the script skipped them"));
        assert_eq!(skipped(Some(0)).as_deref(), Some("5..9; 0 batches skipped"));
        assert_eq!(skipped(Some(1)).as_deref(), Some("5..9; 1 batch skipped"));
        assert_eq!(AttemptInputs::default().batches_skipped(), None);
    }

    /// Proves that a frame is shown as the place of an error only directly behind it and from the same output, and that
    /// an end has a code before a signal, or neither.
    #[test]
    fn a_frame_is_of_the_error_before_it() {
        let seen = |stream: &str, text: &str| TerminationEvidence {
            source: "log".into(),
            stream: Some(stream.into()),
            line_number: Some(12),
            text: text.into(),
        };
        let raised_at = |evidence: Vec<TerminationEvidence>| {
            let termination = Termination {
                reason: TerminationReason::Unknown,
                cause: String::new(),
                runbook: String::new(),
                rule: None,
                confidence: None,
                domain: None,
                retry_outlook: None,
                evidence,
                secondary: Vec::new(),
                fingerprint: None,
            };
            let frame: Option<String> = termination.raised_at().map(TerminationEvidence::place);
            frame
        };
        let (error, frame) = (seen("stderr", "ValueError: x"), seen("stderr", "at train.py:3 in step"));
        let beside = raised_at(vec![error.clone(), frame.clone()]);
        assert_eq!(beside.as_deref(), Some("log, stderr line 12"));
        assert_eq!(raised_at(vec![error.clone(), seen("stdout", "at train.py:3 in step")]), None);
        assert_eq!(raised_at(vec![error.clone(), seen("stderr", "attention"), frame]), None);
        assert_eq!(raised_at(vec![error]), None);
        let nowhere = TerminationEvidence { source: "exit_code".into(), ..TerminationEvidence::default() };
        assert_eq!(nowhere.place(), "exit code");
        assert_eq!(exit_status(Some(137), Some(9)).as_deref(), Some("exit code 137"));
        assert_eq!(exit_status(None, Some(9)).as_deref(), Some("signal 9"));
        assert_eq!(exit_status(None, None), None);
    }

    /// Proves that a budget is shown only where both what is spent and what there is are known, and settings only where
    /// some change.
    #[test]
    fn a_decision_names_its_budget() {
        let decision = |budget_spent, budget_limit, changes| RetryDecision {
            after_attempt_number: Some(1),
            decision: Decision::Stop,
            rule: "rule".into(),
            why: "why".into(),
            delay_seconds: None,
            budget_name: Some("max_usd".into()),
            budget_spent,
            budget_limit,
            changes,
        };
        let known = decision(Some(2.0), Some(12.5), Some(json!({ "set": { "BATCH": "16" } })));
        assert_eq!(known.budget(), Some(("max_usd", "2 of 12.50".to_owned())));
        assert_eq!(known.changed_settings().as_deref(), Some("{\"BATCH\":\"16\"}"));
        let unlimited = decision(Some(2.0), None, Some(json!({ "set": {} })));
        assert_eq!((unlimited.budget(), unlimited.changed_settings()), (None, None));
        assert_eq!(decision(None, Some(5.0), None).budget(), None);
    }

    /// Proves that a run with the same inputs is said to have the same result only in what was compared, and that what
    /// else differed is named.
    #[test]
    fn the_same_result_is_of_what_was_compared() {
        let run = |differing_metrics: Vec<(String, f64, f64)>,
                   not_comparable: Option<&str>,
                   other_inputs: Vec<InputKind>| SameInputsRun {
            run_id: "run_00000000000000000000000001".parse().unwrap(),
            state: RunState::Completed,
            differing_metrics,
            compared_count: 2,
            not_comparable: not_comparable.map(str::to_owned),
            other_inputs,
        };
        let same = run(Vec::new(), None, Vec::new());
        assert_eq!(same.sentence(), "same last value of 2 metrics");
        let other = run(vec![("loss".into(), 0.5, 0.25)], None, vec![InputKind::Package]);
        assert_eq!(other.sentence(), "another result: loss 0.5 there, 0.25 here; it had another package");
        assert!(same.has_same_files() && other.has_same_files());
        let unknown = run(Vec::new(), Some("they end at other steps"), vec![InputKind::Script]);
        assert_eq!(unknown.sentence(), "not comparable: they end at other steps; it had another script");
        assert!(!unknown.has_same_files());
    }

    /// Proves that a check which did not run does not pass, nor one that forbade the launch.
    #[test]
    fn only_what_was_checked_passes() {
        let passes = |verdict, blocks| {
            let check = RecordedCheck {
                name: "data.rows".into(),
                verdict,
                blocks,
                seconds: None,
                why: None,
                skipped_why: None,
                findings: Vec::new(),
            };
            check.passes()
        };
        assert!(passes(Verdict::Pass, false) && passes(Verdict::NotApplicable, false));
        for verdict in [Verdict::Warn, Verdict::NotRun, Verdict::Block] {
            assert!(!passes(verdict, false), "{verdict}");
        }
        assert!(!passes(Verdict::Pass, true));
    }
}
