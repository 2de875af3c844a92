//! The page that explains an attempt, as plain data. Its field names are the JSON contract of `trackway explain`.

use serde::Serialize;
use serde_json::Value;
pub use trackway_api::checkpoints::{Checkpoint, FallBack};
use trackway_api::detections::Detection;
pub use trackway_api::evaluations::EvaluationReceipt;
pub use trackway_api::registry::ModelVersion;
use trackway_api::remote::RemoteStatus;
use trackway_api::runs::RungSummary;
use trackway_core::{AttemptId, ProofId, RunId, Step, Timestamp};
pub use trackway_flows::preflight::Recorded;
pub use trackway_tower::cadence::{Cadence, CadenceAdvice};

use super::diff::Change;
pub use super::machine::{MachineCard, MachineLine, WorkShares};
pub use super::metrics::MetricLine;
use trackway_api::progressive::ProgressiveEstimate;

/// Everything that an engineer who has not seen the attempt needs to know about it.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    /// The run the attempt belongs to.
    pub run: RunCard,
    /// The attempt that is explained; of a run, its last one. None: the run was never launched.
    pub attempt: Option<AttemptCard>,
    /// Every attempt of the run, oldest first.
    pub attempts: Vec<AttemptLine>,
    /// The rungs of the run's ladder that were launched, from the smallest; empty without `[ladder]`.
    pub rungs: Vec<RungSummary>,
    /// How the run's configuration differs from the last good run of the same name; none without such a run.
    pub config_diff: Option<Diff>,
    /// What this attempt changed against its parent attempt (a retry plan's `set`), and the data likewise.
    pub parent_diff: Option<Diff>,
    /// The data it read, and how that differs from the last good run.
    pub data: DataCard,
    /// How the data differs from the last good run of the same name; none without such a run.
    pub data_diff: Option<Diff>,
    /// What was checked before the launch; empty when nothing was.
    pub preflight: Vec<Recorded>,
    /// What detectors found while the run was running, oldest first.
    pub detections: Vec<Detection>,
    /// Where it ran.
    pub placement: Option<Placement>,
    /// What happened, oldest first.
    pub timeline: Vec<Moment>,
    /// Why it ended; none while it lives.
    pub termination: Option<Termination>,
    /// The run's checkpoints, newest first.
    pub checkpoints: Vec<Checkpoint>,
    /// The state of the run's remote; none: it has no remote.
    pub remote: Option<RemoteStatus>,
    /// What the attempt lost because newer checkpoints were skipped; none when it took the newest.
    pub fall_back: Option<FallBack>,
    /// The step a resume would continue from.
    pub resume_step: Option<Step>,
    /// The newest resume proof of the run's config; none when there is none.
    pub resume_proof: Option<ProofCard>,
    /// How often to save, from what saves cost and how often attempts fail; none before there are enough saves.
    pub cadence: Option<CadenceAdvice>,
    /// What was decided after each attempt.
    pub retries: Vec<RetryLine>,
    /// Evaluations of the run's checkpoints.
    pub evaluations: Vec<EvaluationReceipt>,
    /// Versions of models that its checkpoints became.
    pub versions: Vec<ModelVersion>,
    /// The attempt's metrics.
    pub metrics: Vec<MetricLine>,
    /// The loss on data that the model has not seen, by progressive validation, over the attempt's rung; none where nothing
    /// was recorded.
    pub progressive: Option<ProgressiveEstimate>,
    /// What the machine did meanwhile.
    pub machine: MachineCard,
    /// The attempt's tags.
    pub tags: Vec<TagLine>,
    /// The files it gave to be kept.
    pub artifacts: Vec<ArtifactLine>,
    /// Other runs with the same config, data and seed.
    pub same_inputs: Vec<SameInputs>,
    /// What it took.
    pub cost: Cost,
    /// The last lines it printed, stderr before stdout.
    pub last_lines: Vec<String>,
    /// What to do, most useful first.
    pub next_actions: Vec<String>,
}

/// The run in short.
#[derive(Debug, Clone, Serialize)]
pub struct RunCard {
    /// Its id.
    pub run_id: RunId,
    /// What people call it.
    pub name: String,
    /// `running`, `completed`, `failed` …
    pub state: String,
    /// The family it is counted with.
    pub model_family: Option<String>,
    /// The person.
    pub owner: Option<String>,
    /// The team.
    pub team: Option<String>,
    /// SHA-256 of what decides the result.
    pub config_sha256: String,
    /// The hash of the data manifest.
    pub data_sha256: Option<String>,
    /// The seed.
    pub seed: Option<u64>,
    /// When it was requested.
    pub created_at: Timestamp,
}

/// The attempt in short.
#[derive(Debug, Clone, Serialize)]
pub struct AttemptCard {
    /// Its id.
    pub attempt_id: AttemptId,
    /// Counted from 1 in the run.
    pub attempt_number: u32,
    /// The rung of the data, such as `10%`.
    pub rung: String,
    /// The attempt it follows.
    pub parent_attempt_id: Option<AttemptId>,
    /// `running`, `sealed` …
    pub state: String,
    /// The command, redacted.
    pub command: Vec<String>,
    /// Where it was started.
    pub working_directory: String,
    /// The git commit of the working directory.
    pub git_commit: Option<String>,
    /// Whether the working directory differed from the commit.
    pub git_dirty: Option<bool>,
    /// The hash of the environment's packages or lock file.
    pub environment_lock_sha256: Option<String>,
    /// Where that hash comes from.
    pub environment_lock_source: Option<String>,
    /// The container image's digest.
    pub container_digest: Option<String>,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The committed step it continued from.
    pub resumed_from_step: Option<Step>,
    /// The manifest of that checkpoint.
    pub resumed_from_manifest_sha256: Option<String>,
    /// The last step it reported.
    pub last_step: Option<Step>,
    /// The last step it committed.
    pub last_committed_step: Option<Step>,
    /// The script's own exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Its folder.
    pub folder: String,
}

/// One line about an attempt.
#[derive(Debug, Clone, Serialize)]
pub struct AttemptLine {
    /// Its id.
    pub attempt_id: AttemptId,
    /// Counted from 1 in the run.
    pub attempt_number: u32,
    /// The rung of the data, such as `10%`.
    pub rung: String,
    /// Why it ended; none while it lives.
    pub termination_reason: Option<String>,
    /// The committed step it continued from.
    pub resumed_from_step: Option<Step>,
    /// The last step it reported.
    pub last_step: Option<Step>,
    /// The last step it committed.
    pub last_committed_step: Option<Step>,
    /// Wall seconds.
    pub wall_seconds: Option<f64>,
    /// The rule that named the reason.
    pub rule: Option<String>,
}

/// A difference to something else.
#[derive(Debug, Clone, Serialize)]
pub struct Diff {
    /// To what: an attempt or run id.
    pub against: String,
    /// A description: `the last good run`, `attempt 1`.
    pub label: String,
    /// What differs; empty when nothing does.
    pub changes: Vec<Change>,
}

/// The data of the run.
#[derive(Debug, Clone, Serialize)]
pub struct DataCard {
    /// The sets by name.
    pub sets: Vec<DataSetLine>,
}

/// One data set.
#[derive(Debug, Clone, Serialize)]
pub struct DataSetLine {
    /// Its name in the run file.
    pub name: String,
    /// Its content hash.
    pub data_sha256: String,
    /// Files in it.
    pub file_count: u64,
    /// Rows in it, where the format has rows.
    pub rows: Option<u64>,
    /// Bytes in it.
    pub size_bytes: u64,
}

/// Where the attempt ran.
#[derive(Debug, Clone, Serialize)]
pub struct Placement {
    /// The launcher.
    pub launcher: String,
    /// The scheduler's job id, or the process id.
    pub job_id: Option<String>,
    /// The hosts.
    pub hosts: Option<String>,
    /// The devices.
    pub devices: Option<String>,
    /// The queue.
    pub queue: Option<String>,
    /// Processor cores of the host.
    pub cpu_count: Option<u32>,
    /// Memory of the host.
    pub memory_bytes: Option<u64>,
}

/// One thing that happened.
#[derive(Debug, Clone, Serialize)]
pub struct Moment {
    /// When.
    pub at: Timestamp,
    /// In which attempt.
    pub attempt_number: Option<u32>,
    /// What kind of thing.
    pub kind: String,
    /// At which step.
    pub step: Option<Step>,
    /// The text.
    pub text: String,
}

/// Why the attempt ended.
#[derive(Debug, Clone, Serialize)]
pub struct Termination {
    /// The reason.
    pub reason: String,
    /// The rule that named it.
    pub rule: String,
    /// `certain`, `likely` or `guess`.
    pub confidence: String,
    /// Whose matter it is.
    pub domain: String,
    /// Whether the same launch again may do better.
    pub retry_outlook: String,
    /// What decided it.
    pub evidence: Vec<Value>,
    /// Other readings, weaker or later.
    pub secondary: Vec<Value>,
    /// The cause without numbers and paths, to recognise the same one again.
    pub fingerprint: Option<String>,
}

/// What `trackway prove` found for the run's config.
#[derive(Debug, Clone, Serialize)]
pub struct ProofCard {
    /// Its id in `resume_proofs`.
    pub proof_id: ProofId,
    /// `equal`, `different`, `nondeterministic`, `not_proved` or `not_applicable`.
    pub verdict: String,
    /// An explanation, for every verdict but `equal`.
    pub why: Option<String>,
    /// When its verdict was reached.
    pub at: Timestamp,
    /// Steps of every launch.
    pub steps: Step,
    /// The step of the kill.
    pub killed_at_step: Option<Step>,
    /// The step the killed launch was resumed from.
    pub resumed_from_step: Option<Step>,
    /// What differs between the attempt and what was proved: `code`, `data`, `environment`, `seed`.
    pub changed_since: Vec<String>,
}

/// One decision.
#[derive(Debug, Clone, Serialize)]
pub struct RetryLine {
    /// After which attempt.
    pub after_attempt_number: Option<u32>,
    /// `retry` or `stop`.
    pub decision: String,
    /// The rule's name.
    pub rule: String,
    /// An explanation.
    pub why: String,
    /// The wait before the next attempt.
    pub delay_seconds: Option<f64>,
    /// The budget it spends from.
    pub budget_name: Option<String>,
    /// What is spent of it, this time included.
    pub budget_spent: Option<f64>,
    /// What there is in all.
    pub budget_limit: Option<f64>,
    /// What the next attempt changes.
    pub changes: Option<Value>,
}

/// A tag.
#[derive(Debug, Clone, Serialize)]
pub struct TagLine {
    /// Its name.
    pub name: String,
    /// Its last value.
    pub value: String,
}

/// A file that is kept with the attempt.
#[derive(Debug, Clone, Serialize)]
pub struct ArtifactLine {
    /// What the script calls it.
    pub name: String,
    /// The hash of its content, which is its name in the attempt's `artifacts` folder.
    pub blake3: String,
    /// Its bytes.
    pub size_bytes: u64,
    /// The step it was given at, if any.
    pub step: Option<Step>,
}

/// Another run with the same config, data and seed.
#[derive(Debug, Clone, Serialize)]
pub struct SameInputs {
    /// The run.
    pub run_id: RunId,
    /// How it ended.
    pub state: String,
    /// Metrics whose last value differs: name, there, here.
    pub differing_metrics: Vec<(String, f64, f64)>,
}

/// What an attempt and its run took.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Cost {
    /// Wall seconds of the attempt.
    pub wall_seconds: Option<f64>,
    /// GPUs allocated × wall seconds.
    pub gpu_seconds: Option<f64>,
    /// Processor seconds of the script and its children.
    pub cpu_seconds: Option<f64>,
    /// Money of the attempt, when the run file has a price.
    pub cost_usd: Option<f64>,
    /// Money of the run so far.
    pub run_cost_usd: Option<f64>,
    /// GPU seconds of the run so far.
    pub run_gpu_seconds: f64,
    /// Wall seconds of all attempts so far.
    pub run_wall_seconds: f64,
    /// Steps this attempt trained after its last committed step: done, paid for, and gone unless it completed.
    pub lost_steps: Option<u64>,
}
