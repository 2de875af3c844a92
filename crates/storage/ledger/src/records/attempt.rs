use serde_json::Value as Json;
use trackway_core::{
    AttemptId, Confidence, Domain, Health, LaunchKind, RetryOutlook, RunId, Step, TerminationReason,
    Timestamp, with_fields_of,
};

use crate::value::{ColumnKind, Record, Table, Value, record, words};

words!(
    /// The state of an attempt.
    AttemptState, "attempt state", {
        /// Its row exists; the process may or may not.
        Planned = "planned",
        /// It waits in the queue of its engine.
        Queued = "queued",
        /// The launcher has started it.
        Running = "running",
        /// Its exit record exists; the receipt is not sealed yet.
        Ended = "ended",
        /// The receipt is complete and can no longer change.
        Sealed = "sealed",
    }
);

record!(
    /// One launch of a run's training script: the receipt. Holds kind `train` only; sealed rows cannot change.
    AttemptRow, "training_attempts" or Self::table_of, key ["attempt_id"], {
        /// The attempt.
        attempt_id: AttemptId,
        /// The run it belongs to.
        run_id: RunId,
        /// Counted from 1 within the run and kind.
        attempt_number: u32,
        /// The attempt it follows.
        parent_attempt_id: Option<AttemptId>,
        /// What the launch was for: train, one_batch, overfit, prove or evaluate.
        kind: LaunchKind,
        /// The rung of the ladder, such as `100%`.
        rung: String,
        /// Its state: planned, queued, running, ended or sealed.
        state: AttemptState,
        /// The family it is counted with.
        model_family: Option<String>,
        /// The person responsible for it.
        owner: Option<String>,
        /// The team it is charged to.
        team: Option<String>,
        /// When the launcher was called to start it; where it waited in the queue of an engine, when it started.
        started_at: Option<Timestamp>,
        /// When its process had ended.
        ended_at: Option<Timestamp>,
        /// Seconds from its start to the end of its script, or of the work that this left running; cost and budgets count them.
        wall_seconds: Option<f64>,
        /// `gpu_count` × wall seconds.
        gpu_seconds: Option<f64>,
        /// GPU seconds in which a kernel ran, where available.
        gpu_busy_seconds: Option<f64>,
        /// CPU seconds of the script and its children.
        cpu_seconds: Option<f64>,
        /// Peak resident memory of the script's processes.
        peak_rss_bytes: Option<u64>,
        /// The price from the run file.
        usd_per_gpu_hour: Option<f64>,
        /// GPU seconds × price.
        cost_usd: Option<f64>,
        /// The script's own exit code; null when a signal ended it.
        exit_code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
        /// Why it ended; `docs/termination-reasons.md` explains each value.
        termination_reason: Option<TerminationReason>,
        /// The rule that named the reason.
        termination_rule: Option<String>,
        /// Confidence in the reason: certain, likely or guess.
        termination_confidence: Option<Confidence>,
        /// The domain of the cause: workload, data, infrastructure, operator, policy or unknown.
        termination_domain: Option<Domain>,
        /// Whether a retry may succeed: retry, retry_changed, do_not_retry or unknown.
        retry_outlook: Option<RetryOutlook>,
        /// The cause without numbers and paths, to recognize a repeated failure.
        fingerprint: Option<String>,
        /// Processes of the control group that the kernel killed for memory during the attempt.
        oom_kill_delta: Option<u64>,
        /// The writer epoch of its checkpoints.
        epoch: Option<u64>,
        /// The committed step it continued from; null: from the beginning.
        resumed_from_step: Option<Step>,
        /// SHA-256 of that checkpoint's manifest.
        resumed_from_manifest_sha256: Option<String>,
        /// The first step it reported.
        first_step: Option<Step>,
        /// The last step it reported.
        last_step: Option<Step>,
        /// The last step it committed.
        last_committed_step: Option<Step>,
        /// SHA-256 of that checkpoint's manifest.
        last_committed_manifest_sha256: Option<String>,
        /// Time of the last sign of life of the training process.
        heartbeat_at: Option<Timestamp>,
        /// SHA-256 of the config, including changes from a retry plan.
        config_sha256: String,
        /// SHA-256 over the hashes of all data sets.
        data_sha256: Option<String>,
        /// The container image's digest.
        container_digest: Option<String>,
        /// SHA-256 of the environment's packages or lock file.
        environment_lock_sha256: Option<String>,
        /// The source of that hash.
        environment_lock_source: Option<String>,
        /// The commit of the working directory.
        git_commit: Option<String>,
        /// Its branch.
        git_branch: Option<String>,
        /// Whether the working directory differed from the commit.
        git_dirty: Option<bool>,
        /// BLAKE3 of that difference, untracked files included.
        git_diff_blake3: Option<String>,
        /// The seed the script was given.
        seed: Option<u64>,
        /// The launcher: local, slurm, kubernetes or ray.
        launcher: String,
        /// The scheduler's job id, or the process id.
        job_id: Option<String>,
        /// Host names, separated by commas.
        hosts: Option<String>,
        /// Devices it had, as seen, separated by commas; null: nothing shows which.
        devices: Option<String>,
        /// The queue or partition of its engine, such as Slurm's; null: the engine has none. Not the queue of `trackway run --queue`.
        queue: Option<String>,
        /// CPU cores of the host.
        host_cpu_count: Option<u32>,
        /// Memory of the host.
        host_memory_bytes: Option<u64>,
        /// GPUs it had, as seen; those of the run file where nothing shows them.
        gpu_count: Option<u32>,
        /// Their names, separated by commas.
        gpu_names: Option<String>,
        /// The working directory it was started in.
        working_directory: String,
        /// The folder with its logs, exit record and flight record.
        log_directory: String,
        /// Bytes the script wrote to standard output.
        stdout_bytes: Option<u64>,
        /// Bytes the script wrote to standard error.
        stderr_bytes: Option<u64>,
        /// Bytes of both that could not be stored.
        log_bytes_lost: Option<u64>,
        /// When the receipt was sealed.
        sealed_at: Option<Timestamp>,
        /// SHA-256 over the sealed row and the rows sealed with it.
        receipt_sha256: Option<String>,
        /// The command as an array, secrets removed.
        command: Vec<String>,
        /// Names and digests of its evaluators.
        evaluator_versions: Option<Json>,
        /// Placement details, as the launcher reported them.
        placement_json: Option<Json>,
        /// Evidence for the reason, earliest first.
        termination_evidence: Option<Json>,
        /// Other possible reasons, weaker or later.
        termination_secondary: Option<Json>,
        /// The plan as launched, secrets removed.
        config_json: Json,
        /// BLAKE3 of the script that the command names; null when it names none that can be read.
        script_blake3: Option<String>,
        /// When it recorded its first step.
        first_step_at: Option<Timestamp>,
        /// Seconds from the end of the attempt before to this one's first step; null: it follows none of its rung, or made none.
        recovery_seconds: Option<f64>,
        /// Steps it committed beyond what the attempts of its rung before it had; null: it made no step.
        new_committed_steps: Option<u64>,
        /// GPU hours for each of them; null: there is none.
        gpu_hours_per_committed_step: Option<f64>,
        /// The seed the script says it took; null: nothing shows that it took one.
        seed_seen: Option<u64>,
        /// Rows that it kept of those of its rung's data, as counted; null: nothing counted them.
        rung_rows: Option<u64>,
        /// Rows of all of that data.
        rung_rows_total: Option<u64>,
        /// Batches it was to skip after a roll back: half-open ranges such as `40-60`.
        skip_batches: Option<String>,
        /// Batches it says it skipped; null: nothing shows that it skipped any.
        skipped_batch_count: Option<u64>,
        /// The rung whose weights it started with.
        warm_start_rung: Option<String>,
        /// Their step in that rung.
        warm_start_step: Option<Step>,
        /// SHA-256 of that checkpoint's manifest.
        warm_start_manifest_sha256: Option<String>,
        /// The run whose weights it started with; null: its own.
        warm_start_run_id: Option<RunId>,
        /// Data sets that were opened while it ran, separated by commas; null: nothing shows that one was.
        data_opened: Option<String>,
        /// Data sets that were watched and never opened, separated by commas.
        data_not_opened: Option<String>,
        /// Samples of one update of the weights, over all ranks, as its callback counted them.
        effective_batch: Option<u64>,
        /// Whether what it computed is worth something: ok, suspect, broken or unknown; null in older receipts.
        health: Option<Health>,
        /// What that rests on: findings, the metrics that were looked at, what is missing.
        health_json: Option<Json>,
        /// When its engine, such as Slurm, took it into its queue; null: the engine has none, or does not say. Not that of
        /// `trackway run --queue`.
        submitted_at: Option<Timestamp>,
        /// Seconds from `submitted_at` until it started; the wait of `trackway run --queue` is before both.
        queued_seconds: Option<f64>,
        /// Its engine by the name in the settings, then `:` and the engine's name for this start of it, such as
        /// `juwels:4711`; null: this machine, without a name.
        engine_instance: Option<String>,
        /// How many of its files are here as a whole, such as `2 of 3 files`, and which are not; null: all.
        completeness: Option<String>,
    }
);

/// The launches that train nothing for good: the same columns, for every kind but `train`.
pub const LAUNCHES: &Table = &Table {
    name: "launches",
    doc: " One launch of another kind (rehearsal, proof, evaluation), with the columns of `training_attempts`.",
    key: AttemptRow::TABLE.key,
    columns: AttemptRow::TABLE.columns,
};

impl AttemptRow {
    /// An attempt that is about to be launched for `run`; every field that the run does not determine is empty.
    #[must_use]
    pub fn planned(
        attempt_id: AttemptId,
        attempt_number: u32,
        kind: LaunchKind,
        run: &super::RunRow,
    ) -> Self {
        with_fields_of!(
            Self,
            &run,
            [run_id, model_family, owner, team, config_sha256, config_json, data_sha256, seed],
            attempt_id,
            attempt_number,
            kind,
            rung: "100%".into(),
            state: AttemptState::Planned,
            launcher: "local".into(),
            ..Self::blank()
        )
    }

    /// The columns of a receipt with their kinds, in the order of the table.
    pub fn columns() -> impl Iterator<Item = (&'static str, ColumnKind)> {
        Self::TABLE.columns.iter().map(|column| (column.name, column.kind))
    }

    /// The value of a column as text; `None` where it is null and for a name that no column has.
    #[must_use]
    pub fn text_of(&self, column: &str) -> Option<String> {
        let place = Self::TABLE.columns.iter().position(|known| known.name == column)?;
        match self.values().into_iter().nth(place)? {
            Value::Null => None,
            Value::Text(text) => Some(text),
            Value::Integer(number) => Some(number.to_string()),
            Value::Real(number) => Some(number.to_string()),
            Value::Boolean(truth) => Some(truth.to_string()),
            Value::Timestamp(moment) => Some(moment.to_string()),
        }
    }

    /// The table that holds launches of this kind.
    pub(crate) fn table_of(kind: LaunchKind) -> &'static Table {
        if kind == LaunchKind::Train { Self::TABLE } else { LAUNCHES }
    }
}
