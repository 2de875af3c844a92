//! Diagnoses of attempts: short launches that observe the cause of a symptom.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use trackway_core::{AttemptId, DiagnosisKind, DiagnosisVerdict, RunId, Step, Timestamp};

/// What a diagnosis of an attempt showed (`docs/diagnosis.md`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptDiagnosis {
    /// The run that it launched, of kind `diagnose`.
    pub diagnosis_run_id: RunId,
    /// Its launch: `trackway logs` and `trackway explain` show it.
    pub launch_id: AttemptId,
    /// The attempt that was diagnosed.
    pub attempt_id: AttemptId,
    pub run_id: RunId,
    /// What was observed.
    pub kind: DiagnosisKind,
    /// The symptom.
    pub why: String,
    pub verdict: DiagnosisVerdict,
    /// What was found, in a sentence, or why nothing was.
    pub finding: String,
    /// The committed step that it continued from; null: it started from the beginning.
    pub from_step: Option<Step>,
    /// The last step that it was to make.
    pub until_step: Step,
    /// The step of the finding.
    pub step: Option<Step>,
    /// The batch of that step, counted from 0 over all passes through the data.
    pub batch: Option<u64>,
    /// What the script recorded, by topic; each topic is a list with an object for each rank.
    pub facts: Value,
    /// Files that it kept, such as a trace: paths on this machine.
    pub files: Vec<String>,
    /// When it ended.
    pub at: Timestamp,
    /// Wall seconds of the launch.
    pub wall_seconds: f64,
    /// GPUs allocated × wall seconds.
    pub gpu_seconds: f64,
    /// GPU seconds × price.
    pub cost_usd: Option<f64>,
}
