use serde_json::Value as Json;
use trackway_core::{AttemptId, DiagnosisKind, DiagnosisVerdict, RunId, Step, Timestamp};

use crate::value::record;

record!(
    /// A diagnosis of an attempt (`trackway diagnose`): a short launch that observes the cause of a symptom, and what it showed.
    /// Evidence of the attempt, beside its receipt. Append-only.
    DiagnosisRow, "diagnoses", key ["diagnosis_run_id"], {
        /// The run that it launched, of kind `diagnose`.
        diagnosis_run_id: RunId,
        /// The attempt that was diagnosed.
        attempt_id: AttemptId,
        /// Its run.
        run_id: RunId,
        /// The launch of the diagnosis.
        launch_id: AttemptId,
        /// numeric, throughput or hang.
        kind: DiagnosisKind,
        /// The symptom.
        why: String,
        /// found, not_reproduced, not_observed or incomplete.
        verdict: DiagnosisVerdict,
        /// What was found, in a sentence, or why nothing was.
        finding: String,
        /// The committed step that it continued from; null: it started from the beginning.
        from_step: Option<Step>,
        /// The last step that it was to make.
        until_step: Step,
        /// The step of the finding.
        step: Option<Step>,
        /// The batch of that step, counted from 0 over all passes through the data.
        batch: Option<u64>,
        /// What was observed, as the script recorded it.
        facts_json: Option<Json>,
        /// When it ended.
        at: Timestamp,
        /// Wall seconds of the launch.
        wall_seconds: f64,
        /// GPUs allocated × wall seconds.
        gpu_seconds: f64,
        /// GPU seconds × price.
        cost_usd: Option<f64>,
    }
);
