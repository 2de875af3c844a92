//! The attempts of an explanation: the one that is explained, where it ran, and all of them in short.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::text::{duration, timestamp};
use trackway_core::{AttemptId, Step, TerminationReason, Timestamp};
use trackway_ledger::AttemptState;

use super::inputs::{AttemptInputs, EvaluatorVersion};
use crate::runs::attempts::EngineReport;
use crate::runs::changes::{Change, UnknownChange};

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
    #[serde(flatten)]
    pub engine: EngineReport,
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
        let instance = self.engine.engine_instance.as_deref().unwrap_or(&self.launcher);
        let engine = instance.split_once(':').map_or(instance, |(engine, _)| engine);
        if engine == self.launcher { engine.to_owned() } else { format!("{engine} ({})", self.launcher) }
    }

    /// How long the attempt was in the queue of its engine, or since when; none where it was in none. `has_ended`: the attempt has.
    #[must_use]
    pub fn queued(&self, has_ended: bool) -> Option<String> {
        let submitted_at = self.engine.submitted_at?;
        let queue = self.queue.as_deref().map(|queue| format!(" of {queue}")).unwrap_or_default();
        Some(match self.engine.queued_seconds {
            Some(seconds) => format!("{} in the queue{queue}", duration(seconds)),
            None if has_ended => format!(
                "submitted {}, it left the queue{queue} without being started",
                timestamp(submitted_at)
            ),
            None => format!("in the queue{queue}, submitted {}", timestamp(submitted_at)),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
            engine: EngineReport {
                submitted_at: Some(Timestamp::from_micros(0)),
                queued_seconds,
                ..EngineReport::default()
            },
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
}
