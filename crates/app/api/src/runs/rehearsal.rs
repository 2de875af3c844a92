//! Rehearsals and proofs of resume: short launches of a script before it trains.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::checks::CheckResult;
use trackway_core::{AttemptId, ProofId, RunId, Step, TerminationReason, closed_list};
use trackway_formats::checkpoint_manifest::Kind;
use trackway_ledger::ProofVerdict;
use trackway_rules::preflight::rehearsal::Measured;

/// The result of a rehearsal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RehearsalReport {
    /// Its run, of kind `one_batch` or `overfit`.
    pub run_id: RunId,
    /// The check `rehearsal.one_batch` or `rehearsal.overfit`.
    #[serde(flatten)]
    pub result: CheckResult,
    /// The launches, in order.
    pub launches: Vec<RehearsalLaunch>,
    /// Memory and time of a step.
    pub measured: Measured,
    /// Wall seconds of all launches.
    pub wall_seconds: f64,
    /// GPUs allocated × wall seconds.
    pub gpu_seconds: f64,
    /// GPU seconds × price.
    pub cost_usd: Option<f64>,
}

closed_list!(
    /// What a launch of a rehearsal is for.
    RehearsalPart, "part of a rehearsal", {
        /// It trains on its batches until it has memorised them.
        Learns = "learns",
        /// It resumes from the checkpoint of the first launch.
        Resumes = "resumes",
        /// The evaluator of the run file, on the last checkpoint.
        Evaluates = "evaluates",
    }
);

/// One launch of a rehearsal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RehearsalLaunch {
    /// What it is for.
    pub part: RehearsalPart,
    /// Variables that entries of the retry plan set, after a launch that ran out of memory.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
    pub attempt_id: AttemptId,
    /// Why it ended.
    pub termination_reason: Option<TerminationReason>,
    /// The committed step it continued from.
    pub resumed_from_step: Option<Step>,
    /// The last step it reported.
    pub last_step: Option<Step>,
    pub last_committed_step: Option<Step>,
    pub wall_seconds: Option<f64>,
}

/// The result of a proof of resume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    pub proof_id: ProofId,
    /// The name of the run file's run.
    pub name: String,
    pub verdict: ProofVerdict,
    /// Why, for every verdict but `equal`.
    pub why: Option<String>,
    /// Steps of every launch.
    pub steps: Step,
    /// The step at or after which SIGKILL was sent.
    pub killed_at_step: Option<Step>,
    /// The committed step that the killed launch was resumed from.
    pub resumed_from_step: Option<Step>,
    /// A digest for each kind of state.
    pub digests: BTreeMap<Kind, Digests>,
    /// The digest over all of them.
    pub state_digest: Digests,
    /// Files that differ: between control and repeated if those do, else between control and resumed.
    pub differences: Vec<Difference>,
    /// SHA-256 of the config.
    pub config_sha256: String,
    /// The hash of the data manifest.
    pub data_sha256: Option<String>,
    /// The git commit of the working directory.
    pub git_commit: Option<String>,
    /// Whether the working directory differed from the commit.
    pub git_dirty: Option<bool>,
    /// The launches, in order.
    pub launches: Vec<ProofLaunch>,
    /// Wall seconds of all launches.
    pub wall_seconds: f64,
    /// GPUs allocated × wall seconds.
    pub gpu_seconds: f64,
    /// GPU seconds × price.
    pub cost_usd: Option<f64>,
}

/// The same digest of each run; null if the run did not get that far, or has no such kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Digests {
    /// Of the undisturbed run.
    pub control: Option<String>,
    /// Of its repetition.
    pub repeated: Option<String>,
    /// Of the run that was killed and resumed.
    pub resumed: Option<String>,
}

/// A file of the training state that differs between two checkpoints of the same step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    pub kind: Kind,
    pub name: String,
    /// How it differs, as text.
    pub what: String,
}

closed_list!(
    /// What a launch of a proof is for.
    ProofPart, "part of a proof", {
        /// The undisturbed run.
        Control = "control",
        /// Its repetition.
        Repeated = "repeated",
        /// The run that is killed.
        Killed = "killed",
        /// Its resume.
        Resumed = "resumed",
    }
);

/// One launch of a proof.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofLaunch {
    /// What it is for.
    pub part: ProofPart,
    /// Its run, of kind `prove`.
    pub run_id: RunId,
    pub attempt_id: AttemptId,
    /// Why it ended.
    pub termination_reason: Option<TerminationReason>,
    /// The committed step it continued from.
    pub resumed_from_step: Option<Step>,
    /// The last step it reported.
    pub last_step: Option<Step>,
    pub last_committed_step: Option<Step>,
    pub wall_seconds: Option<f64>,
}
