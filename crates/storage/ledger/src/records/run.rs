use serde_json::Value as Json;
use trackway_core::name::Name;
use trackway_core::{Criticality, Health, LaunchKind, RunId, Step, TerminationReason, Timestamp};

use crate::value::{Record, record, words};

words!(
    /// The state of a run.
    RunState, "run state", {
        /// The plan is stored; nothing was launched yet.
        Planned = "planned",
        /// An attempt lives, or its receipt is being sealed.
        Running = "running",
        /// Between two attempts.
        Waiting = "waiting",
        /// The last attempt did what it was launched for.
        Completed = "completed",
        /// The last attempt failed and no budget allows another one.
        Failed = "failed",
        /// A person or a rule ended it; it may be resumed.
        Stopped = "stopped",
        /// Pre-flight or a policy refused to launch it.
        Blocked = "blocked",
    }
);

impl RunState {
    /// Whether nothing more happens to the run unless it is resumed.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Stopped | Self::Blocked)
    }
}

record!(
    /// One intent: this config on this data. Config, seed and creation time never change.
    RunRow, "runs", key ["run_id"], {
        /// The run.
        run_id: RunId,
        /// Its name; several runs may have the same.
        name: String,
        /// Its state: planned, running, waiting, completed, failed, stopped or blocked.
        state: RunState,
        /// The family it is counted with.
        model_family: Option<String>,
        /// The person responsible for it.
        owner: Option<String>,
        /// The team it is charged to.
        team: Option<String>,
        /// SHA-256 of the config.
        config_sha256: String,
        /// SHA-256 over the hashes of all data sets as they were when the run was planned; `training_attempts` has it for each attempt,
        /// which may be resumed on other data.
        data_sha256: Option<String>,
        /// The seed.
        seed: Option<u64>,
        /// When it was created.
        created_at: Timestamp,
        /// When its first attempt began.
        started_at: Option<Timestamp>,
        /// When it ended; set exactly while the state is final.
        ended_at: Option<Timestamp>,
        /// Attempts of the run's own kind so far.
        attempt_count: u32,
        /// Why the last attempt ended.
        termination_reason: Option<TerminationReason>,
        /// The step a resume continues from.
        last_committed_step: Option<Step>,
        /// Cost of all sealed attempts in USD.
        cost_usd: Option<f64>,
        /// GPUs allocated × wall seconds, over all sealed attempts.
        gpu_seconds: f64,
        /// Wall seconds of all sealed attempts.
        wall_seconds: f64,
        /// The run file; null for `trackway run -- COMMAND`.
        run_file_path: Option<String>,
        /// The plan with secrets removed.
        config_json: Json,
        /// What the run is for: train; prove for a resume proof, one_batch or overfit for a rehearsal. Never changes.
        kind: LaunchKind,
        /// Number of changes to this row so far: a change of a row that was read before another change is refused.
        revision: u64,
        /// SHA-256 of the schemas and rules that its data must meet; null without any.
        data_contract_sha256: Option<String>,
        /// The training run that it evaluates, diagnoses or rehearsed; null for a training.
        for_run_id: Option<RunId>,
        /// What a person noted about it (`trackway amend RUN --note`).
        note: Option<String>,
        /// When it was hidden (`trackway amend RUN --hide`); null if it is visible.
        hidden_at: Option<Timestamp>,
        /// The health of its last attempt: ok, suspect, broken or unknown; null in older receipts.
        health: Option<Health>,
        /// The project it belongs to: `[run] project`, or the name of the folder of its run file; null: stored before version 26.
        project: Option<String>,
        /// What depends on it: experiment, standard or release; null: the run file does not say.
        criticality: Option<Criticality>,
    }
);

record!(
    /// What each training run took, and beside it what its evaluations, diagnoses and rehearsals took. A view over `runs`.
    RunCostRow, "run_costs", key ["run_id"], {
        /// The training run.
        run_id: RunId,
        /// Cost of its attempts in USD.
        cost_usd: Option<f64>,
        /// GPUs allocated × wall seconds of its attempts.
        gpu_seconds: f64,
        /// Wall seconds of its attempts.
        wall_seconds: f64,
        /// Number of its evaluations, diagnoses and rehearsals.
        run_count_beside: u64,
        /// Their cost in USD.
        cost_usd_beside: Option<f64>,
        /// GPUs allocated × their wall seconds.
        gpu_seconds_beside: f64,
        /// Their wall seconds.
        wall_seconds_beside: f64,
    }
);

impl RunRow {
    /// A run of which only the plan is known; every other field is empty.
    #[must_use]
    pub fn planned(run_id: RunId, name: &Name, config_sha256: &str, config: Json, now: Timestamp) -> Self {
        Self {
            run_id,
            name: name.to_string(),
            state: RunState::Planned,
            config_sha256: config_sha256.into(),
            config_json: config,
            created_at: now,
            ..Self::blank()
        }
    }
}
