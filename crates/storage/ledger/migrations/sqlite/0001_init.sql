-- Version 1 of the ledger in SQLite. The same tables, columns and rules as the PostgreSQL migration of this number.
-- `docs/ledger.md` says what each column means. Timestamps are microseconds since 1970-01-01 UTC.

CREATE TABLE runs (
    run_id TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('planned', 'running', 'waiting', 'completed', 'failed', 'stopped', 'blocked')),
    model_family TEXT,
    owner TEXT,
    team TEXT,
    config_sha256 TEXT NOT NULL,
    data_sha256 TEXT,
    seed INTEGER,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    ended_at INTEGER,
    attempt_count INTEGER NOT NULL,
    termination_reason TEXT CHECK (termination_reason IN ('completed', 'early_stopped', 'cancelled', 'preempted', 'node_failure', 'host_oom', 'device_oom', 'data_error', 'schema_drift', 'code_error', 'hang', 'timeout', 'numeric_divergence', 'checkpoint_error', 'storage_error', 'network_error', 'evaluator_error', 'budget_exhausted', 'rung_rejected', 'fenced', 'superseded', 'unknown')),
    last_committed_step INTEGER,
    cost_usd REAL,
    gpu_seconds REAL NOT NULL,
    wall_seconds REAL NOT NULL,
    run_file_path TEXT,
    config_json TEXT NOT NULL,
    PRIMARY KEY (run_id),
    CHECK ((state IN ('completed', 'failed', 'stopped', 'blocked')) = (ended_at IS NOT NULL))
) STRICT;

CREATE INDEX runs_by_name_created_at ON runs (name, created_at);

CREATE INDEX runs_by_created_at ON runs (created_at);

CREATE TABLE training_attempts (
    attempt_id TEXT NOT NULL,
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    attempt_number INTEGER NOT NULL,
    parent_attempt_id TEXT,
    kind TEXT NOT NULL CHECK (kind IN ('train', 'one_batch', 'overfit', 'prove', 'evaluate')),
    rung TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('planned', 'running', 'ended', 'sealed')),
    model_family TEXT,
    owner TEXT,
    team TEXT,
    started_at INTEGER,
    ended_at INTEGER,
    wall_seconds REAL,
    gpu_seconds REAL,
    gpu_busy_seconds REAL,
    cpu_seconds REAL,
    peak_rss_bytes INTEGER,
    usd_per_gpu_hour REAL,
    cost_usd REAL,
    exit_code INTEGER,
    signal INTEGER,
    termination_reason TEXT CHECK (termination_reason IN ('completed', 'early_stopped', 'cancelled', 'preempted', 'node_failure', 'host_oom', 'device_oom', 'data_error', 'schema_drift', 'code_error', 'hang', 'timeout', 'numeric_divergence', 'checkpoint_error', 'storage_error', 'network_error', 'evaluator_error', 'budget_exhausted', 'rung_rejected', 'fenced', 'superseded', 'unknown')),
    termination_rule TEXT,
    termination_confidence TEXT CHECK (termination_confidence IN ('certain', 'likely', 'guess')),
    termination_domain TEXT CHECK (termination_domain IN ('workload', 'data', 'infrastructure', 'operator', 'policy', 'unknown')),
    retry_outlook TEXT CHECK (retry_outlook IN ('retry', 'retry_changed', 'do_not_retry', 'unknown')),
    fingerprint TEXT,
    oom_kill_delta INTEGER,
    epoch INTEGER,
    resumed_from_step INTEGER,
    resumed_from_manifest_sha256 TEXT,
    first_step INTEGER,
    last_step INTEGER,
    last_committed_step INTEGER,
    last_committed_manifest_sha256 TEXT,
    heartbeat_at INTEGER,
    config_sha256 TEXT NOT NULL,
    data_sha256 TEXT,
    container_digest TEXT,
    environment_lock_sha256 TEXT,
    environment_lock_source TEXT,
    git_commit TEXT,
    git_branch TEXT,
    git_dirty INTEGER CHECK (git_dirty IN (0, 1)),
    git_diff_blake3 TEXT,
    seed INTEGER,
    launcher TEXT NOT NULL,
    job_id TEXT,
    hosts TEXT,
    devices TEXT,
    queue TEXT,
    host_cpu_count INTEGER,
    host_memory_bytes INTEGER,
    gpu_count INTEGER,
    gpu_names TEXT,
    working_directory TEXT NOT NULL,
    log_directory TEXT NOT NULL,
    stdout_bytes INTEGER,
    stderr_bytes INTEGER,
    log_bytes_lost INTEGER,
    sealed_at INTEGER,
    receipt_sha256 TEXT,
    command TEXT NOT NULL,
    evaluator_versions TEXT,
    placement_json TEXT,
    termination_evidence TEXT,
    termination_secondary TEXT,
    config_json TEXT NOT NULL,
    PRIMARY KEY (attempt_id),
    UNIQUE (run_id, attempt_number),
    CHECK (kind = 'train'),
    CHECK (attempt_number >= 1),
    CHECK ((state = 'sealed') = (sealed_at IS NOT NULL)),
    CHECK (state <> 'sealed' OR (termination_reason IS NOT NULL AND receipt_sha256 IS NOT NULL))
) STRICT;

CREATE INDEX training_attempts_by_model_family_started_at ON training_attempts (model_family, started_at, termination_reason, gpu_seconds);

CREATE INDEX training_attempts_by_started_at ON training_attempts (started_at);

-- Every command asks first which attempts are still open: a handful among hundreds of thousands.
CREATE INDEX training_attempts_open ON training_attempts (attempt_id) WHERE sealed_at IS NULL;

CREATE TABLE launches (
    attempt_id TEXT NOT NULL,
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    attempt_number INTEGER NOT NULL,
    parent_attempt_id TEXT,
    kind TEXT NOT NULL CHECK (kind IN ('train', 'one_batch', 'overfit', 'prove', 'evaluate')),
    rung TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('planned', 'running', 'ended', 'sealed')),
    model_family TEXT,
    owner TEXT,
    team TEXT,
    started_at INTEGER,
    ended_at INTEGER,
    wall_seconds REAL,
    gpu_seconds REAL,
    gpu_busy_seconds REAL,
    cpu_seconds REAL,
    peak_rss_bytes INTEGER,
    usd_per_gpu_hour REAL,
    cost_usd REAL,
    exit_code INTEGER,
    signal INTEGER,
    termination_reason TEXT CHECK (termination_reason IN ('completed', 'early_stopped', 'cancelled', 'preempted', 'node_failure', 'host_oom', 'device_oom', 'data_error', 'schema_drift', 'code_error', 'hang', 'timeout', 'numeric_divergence', 'checkpoint_error', 'storage_error', 'network_error', 'evaluator_error', 'budget_exhausted', 'rung_rejected', 'fenced', 'superseded', 'unknown')),
    termination_rule TEXT,
    termination_confidence TEXT CHECK (termination_confidence IN ('certain', 'likely', 'guess')),
    termination_domain TEXT CHECK (termination_domain IN ('workload', 'data', 'infrastructure', 'operator', 'policy', 'unknown')),
    retry_outlook TEXT CHECK (retry_outlook IN ('retry', 'retry_changed', 'do_not_retry', 'unknown')),
    fingerprint TEXT,
    oom_kill_delta INTEGER,
    epoch INTEGER,
    resumed_from_step INTEGER,
    resumed_from_manifest_sha256 TEXT,
    first_step INTEGER,
    last_step INTEGER,
    last_committed_step INTEGER,
    last_committed_manifest_sha256 TEXT,
    heartbeat_at INTEGER,
    config_sha256 TEXT NOT NULL,
    data_sha256 TEXT,
    container_digest TEXT,
    environment_lock_sha256 TEXT,
    environment_lock_source TEXT,
    git_commit TEXT,
    git_branch TEXT,
    git_dirty INTEGER CHECK (git_dirty IN (0, 1)),
    git_diff_blake3 TEXT,
    seed INTEGER,
    launcher TEXT NOT NULL,
    job_id TEXT,
    hosts TEXT,
    devices TEXT,
    queue TEXT,
    host_cpu_count INTEGER,
    host_memory_bytes INTEGER,
    gpu_count INTEGER,
    gpu_names TEXT,
    working_directory TEXT NOT NULL,
    log_directory TEXT NOT NULL,
    stdout_bytes INTEGER,
    stderr_bytes INTEGER,
    log_bytes_lost INTEGER,
    sealed_at INTEGER,
    receipt_sha256 TEXT,
    command TEXT NOT NULL,
    evaluator_versions TEXT,
    placement_json TEXT,
    termination_evidence TEXT,
    termination_secondary TEXT,
    config_json TEXT NOT NULL,
    PRIMARY KEY (attempt_id),
    UNIQUE (run_id, kind, attempt_number),
    CHECK (kind <> 'train'),
    CHECK (attempt_number >= 1),
    CHECK ((state = 'sealed') = (sealed_at IS NOT NULL)),
    CHECK (state <> 'sealed' OR (termination_reason IS NOT NULL AND receipt_sha256 IS NOT NULL))
) STRICT;

CREATE INDEX launches_open ON launches (attempt_id) WHERE sealed_at IS NULL;

CREATE TABLE checkpoints (
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    attempt_id TEXT NOT NULL,
    step INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    object_prefix TEXT NOT NULL,
    manifest_sha256 TEXT,
    state TEXT NOT NULL CHECK (state IN ('writing', 'committed', 'superseded', 'suspect', 'abandoned', 'retired')),
    location TEXT NOT NULL,
    size_bytes INTEGER,
    verified INTEGER CHECK (verified IN (0, 1)),
    committed_at INTEGER,
    metrics_json TEXT,
    PRIMARY KEY (run_id, object_prefix),
    CHECK (state <> 'committed' OR manifest_sha256 IS NOT NULL)
) STRICT;

CREATE INDEX checkpoints_by_attempt_id ON checkpoints (attempt_id);

CREATE TABLE metric_summaries (
    attempt_id TEXT NOT NULL,
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    name TEXT NOT NULL,
    point_count INTEGER NOT NULL,
    non_finite_count INTEGER NOT NULL,
    first_step INTEGER NOT NULL,
    last_step INTEGER NOT NULL,
    first_value REAL,
    last_value REAL,
    min_value REAL,
    max_value REAL,
    mean_value REAL,
    PRIMARY KEY (attempt_id, name)
) STRICT;

CREATE INDEX metric_summaries_by_run_id ON metric_summaries (run_id);

CREATE TABLE parameters (
    attempt_id TEXT NOT NULL,
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (attempt_id, name)
) STRICT;

CREATE TABLE record_segments (
    attempt_id TEXT NOT NULL,
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    path TEXT NOT NULL,
    origin TEXT,
    size_bytes INTEGER NOT NULL,
    frame_count INTEGER NOT NULL,
    lost_frame_count INTEGER NOT NULL,
    dropped_frame_count INTEGER NOT NULL,
    torn_bytes INTEGER NOT NULL,
    closed INTEGER NOT NULL CHECK (closed IN (0, 1)),
    parquet_path TEXT,
    unreadable TEXT,
    PRIMARY KEY (attempt_id, path)
) STRICT;

CREATE TABLE events (
    event_id TEXT NOT NULL,
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    attempt_id TEXT,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    step INTEGER,
    message TEXT NOT NULL,
    fields_json TEXT,
    source TEXT NOT NULL,
    PRIMARY KEY (event_id)
) STRICT;

CREATE INDEX events_by_run_id_at ON events (run_id, at);

CREATE INDEX events_by_attempt_id ON events (attempt_id);

CREATE TABLE retries (
    attempt_id TEXT NOT NULL,
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    at INTEGER NOT NULL,
    decision TEXT NOT NULL CHECK (decision IN ('retry', 'stop')),
    rule TEXT NOT NULL,
    why TEXT NOT NULL,
    delay_seconds REAL,
    budget_name TEXT,
    budget_spent REAL,
    budget_limit REAL,
    changes_json TEXT,
    next_attempt_id TEXT,
    PRIMARY KEY (attempt_id)
) STRICT;

CREATE INDEX retries_by_run_id ON retries (run_id);

CREATE TABLE amendments (
    amendment_id TEXT NOT NULL,
    attempt_id TEXT NOT NULL,
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    at INTEGER NOT NULL,
    author TEXT NOT NULL,
    field TEXT NOT NULL,
    old_text TEXT,
    new_text TEXT,
    why TEXT NOT NULL,
    PRIMARY KEY (amendment_id)
) STRICT;

CREATE INDEX amendments_by_attempt_id ON amendments (attempt_id);

CREATE TABLE costs (
    attempt_id TEXT NOT NULL,
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    item TEXT NOT NULL,
    quantity REAL NOT NULL,
    unit TEXT NOT NULL,
    usd REAL,
    PRIMARY KEY (attempt_id, item)
) STRICT;

CREATE TABLE data_snapshots (
    data_sha256 TEXT NOT NULL,
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    split TEXT,
    file_count INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    rows INTEGER,
    first_seen_at INTEGER NOT NULL,
    schema_json TEXT,
    notes_json TEXT,
    PRIMARY KEY (data_sha256)
) STRICT;

CREATE TABLE data_snapshot_files (
    data_sha256 TEXT NOT NULL REFERENCES data_snapshots (data_sha256),
    path TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    blake3 TEXT NOT NULL,
    format TEXT NOT NULL,
    rows INTEGER,
    schema_json TEXT,
    PRIMARY KEY (data_sha256, path)
) STRICT;

CREATE TABLE run_data (
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    data_sha256 TEXT NOT NULL REFERENCES data_snapshots (data_sha256),
    PRIMARY KEY (run_id, name)
) STRICT;

CREATE INDEX run_data_by_data_sha256 ON run_data (data_sha256);

CREATE TABLE evaluations (
    evaluation_id TEXT NOT NULL,
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    attempt_id TEXT,
    checkpoint_manifest_sha256 TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'completed', 'failed')),
    evaluator_name TEXT NOT NULL,
    evaluator_digest TEXT,
    task_set_version TEXT,
    task_set_sha256 TEXT,
    judge_model TEXT,
    judge_rubric TEXT,
    raw_outputs_location TEXT,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    decoding_json TEXT,
    sampled_failures_json TEXT,
    metrics_json TEXT,
    slices_json TEXT,
    gates_json TEXT,
    PRIMARY KEY (evaluation_id),
    CHECK ((state = 'running') = (ended_at IS NULL))
) STRICT;

CREATE INDEX evaluations_by_run_id ON evaluations (run_id);

CREATE INDEX evaluations_by_checkpoint_manifest_sha256 ON evaluations (checkpoint_manifest_sha256);

-- A receipt that is sealed does not change, and neither does what was sealed with it.
-- `INSERT OR REPLACE` deletes without firing DELETE triggers, so inserting is guarded too.

CREATE TRIGGER training_attempts_sealed_update BEFORE UPDATE ON training_attempts
WHEN OLD.sealed_at IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the receipt is sealed; write an amendment');
END;

CREATE TRIGGER training_attempts_sealed_delete BEFORE DELETE ON training_attempts
WHEN OLD.sealed_at IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the receipt is sealed; write an amendment');
END;

CREATE TRIGGER training_attempts_sealed_replace BEFORE INSERT ON training_attempts
WHEN EXISTS (
    SELECT 1 FROM training_attempts WHERE sealed_at IS NOT NULL AND (attempt_id = NEW.attempt_id OR (run_id = NEW.run_id AND attempt_number = NEW.attempt_number))
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the receipt is sealed; write an amendment');
END;

CREATE TRIGGER launches_sealed_update BEFORE UPDATE ON launches
WHEN OLD.sealed_at IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the receipt is sealed; write an amendment');
END;

CREATE TRIGGER launches_sealed_delete BEFORE DELETE ON launches
WHEN OLD.sealed_at IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the receipt is sealed; write an amendment');
END;

CREATE TRIGGER launches_sealed_replace BEFORE INSERT ON launches
WHEN EXISTS (
    SELECT 1 FROM launches WHERE sealed_at IS NOT NULL AND (attempt_id = NEW.attempt_id OR (run_id = NEW.run_id AND attempt_number = NEW.attempt_number AND kind = NEW.kind))
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the receipt is sealed; write an amendment');
END;

CREATE TRIGGER metric_summaries_sealed_insert BEFORE INSERT ON metric_summaries
WHEN EXISTS (
    SELECT 1 FROM training_attempts WHERE attempt_id = NEW.attempt_id AND sealed_at IS NOT NULL
    UNION ALL SELECT 1 FROM launches WHERE attempt_id = NEW.attempt_id AND sealed_at IS NOT NULL
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the receipt is sealed; write an amendment');
END;

CREATE TRIGGER metric_summaries_sealed_update BEFORE UPDATE ON metric_summaries
WHEN EXISTS (
    SELECT 1 FROM training_attempts WHERE attempt_id = OLD.attempt_id AND sealed_at IS NOT NULL
    UNION ALL SELECT 1 FROM launches WHERE attempt_id = OLD.attempt_id AND sealed_at IS NOT NULL
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the receipt is sealed; write an amendment');
END;

CREATE TRIGGER metric_summaries_sealed_delete BEFORE DELETE ON metric_summaries
WHEN EXISTS (
    SELECT 1 FROM training_attempts WHERE attempt_id = OLD.attempt_id AND sealed_at IS NOT NULL
    UNION ALL SELECT 1 FROM launches WHERE attempt_id = OLD.attempt_id AND sealed_at IS NOT NULL
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the receipt is sealed; write an amendment');
END;

CREATE TRIGGER parameters_sealed_insert BEFORE INSERT ON parameters
WHEN EXISTS (
    SELECT 1 FROM training_attempts WHERE attempt_id = NEW.attempt_id AND sealed_at IS NOT NULL
    UNION ALL SELECT 1 FROM launches WHERE attempt_id = NEW.attempt_id AND sealed_at IS NOT NULL
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the receipt is sealed; write an amendment');
END;

CREATE TRIGGER parameters_sealed_update BEFORE UPDATE ON parameters
WHEN EXISTS (
    SELECT 1 FROM training_attempts WHERE attempt_id = OLD.attempt_id AND sealed_at IS NOT NULL
    UNION ALL SELECT 1 FROM launches WHERE attempt_id = OLD.attempt_id AND sealed_at IS NOT NULL
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the receipt is sealed; write an amendment');
END;

CREATE TRIGGER parameters_sealed_delete BEFORE DELETE ON parameters
WHEN EXISTS (
    SELECT 1 FROM training_attempts WHERE attempt_id = OLD.attempt_id AND sealed_at IS NOT NULL
    UNION ALL SELECT 1 FROM launches WHERE attempt_id = OLD.attempt_id AND sealed_at IS NOT NULL
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the receipt is sealed; write an amendment');
END;

CREATE TRIGGER record_segments_sealed_insert BEFORE INSERT ON record_segments
WHEN EXISTS (
    SELECT 1 FROM training_attempts WHERE attempt_id = NEW.attempt_id AND sealed_at IS NOT NULL
    UNION ALL SELECT 1 FROM launches WHERE attempt_id = NEW.attempt_id AND sealed_at IS NOT NULL
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the receipt is sealed; write an amendment');
END;

CREATE TRIGGER record_segments_sealed_update BEFORE UPDATE ON record_segments
WHEN EXISTS (
    SELECT 1 FROM training_attempts WHERE attempt_id = OLD.attempt_id AND sealed_at IS NOT NULL
    UNION ALL SELECT 1 FROM launches WHERE attempt_id = OLD.attempt_id AND sealed_at IS NOT NULL
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the receipt is sealed; write an amendment');
END;

CREATE TRIGGER record_segments_sealed_delete BEFORE DELETE ON record_segments
WHEN EXISTS (
    SELECT 1 FROM training_attempts WHERE attempt_id = OLD.attempt_id AND sealed_at IS NOT NULL
    UNION ALL SELECT 1 FROM launches WHERE attempt_id = OLD.attempt_id AND sealed_at IS NOT NULL
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the receipt is sealed; write an amendment');
END;

CREATE TRIGGER costs_sealed_insert BEFORE INSERT ON costs
WHEN EXISTS (
    SELECT 1 FROM training_attempts WHERE attempt_id = NEW.attempt_id AND sealed_at IS NOT NULL
    UNION ALL SELECT 1 FROM launches WHERE attempt_id = NEW.attempt_id AND sealed_at IS NOT NULL
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the receipt is sealed; write an amendment');
END;

CREATE TRIGGER costs_sealed_update BEFORE UPDATE ON costs
WHEN EXISTS (
    SELECT 1 FROM training_attempts WHERE attempt_id = OLD.attempt_id AND sealed_at IS NOT NULL
    UNION ALL SELECT 1 FROM launches WHERE attempt_id = OLD.attempt_id AND sealed_at IS NOT NULL
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the receipt is sealed; write an amendment');
END;

CREATE TRIGGER costs_sealed_delete BEFORE DELETE ON costs
WHEN EXISTS (
    SELECT 1 FROM training_attempts WHERE attempt_id = OLD.attempt_id AND sealed_at IS NOT NULL
    UNION ALL SELECT 1 FROM launches WHERE attempt_id = OLD.attempt_id AND sealed_at IS NOT NULL
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the receipt is sealed; write an amendment');
END;

-- History is only added to. Adding the same thing twice changes nothing.

CREATE TRIGGER events_append_only_update BEFORE UPDATE ON events
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: events is append-only');
END;

CREATE TRIGGER events_append_only_delete BEFORE DELETE ON events
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: events is append-only');
END;

CREATE TRIGGER events_append_only_replace BEFORE INSERT ON events
WHEN EXISTS (
    SELECT 1 FROM events WHERE event_id = NEW.event_id
    AND (run_id, attempt_id, at, kind, step, message, fields_json, source)
        IS NOT (NEW.run_id, NEW.attempt_id, NEW.at, NEW.kind, NEW.step, NEW.message, NEW.fields_json, NEW.source)
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: events is append-only');
END;

CREATE TRIGGER amendments_append_only_update BEFORE UPDATE ON amendments
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: amendments is append-only');
END;

CREATE TRIGGER amendments_append_only_delete BEFORE DELETE ON amendments
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: amendments is append-only');
END;

CREATE TRIGGER amendments_append_only_replace BEFORE INSERT ON amendments
WHEN EXISTS (
    SELECT 1 FROM amendments WHERE amendment_id = NEW.amendment_id
    AND (attempt_id, run_id, at, author, field, old_text, new_text, why)
        IS NOT (NEW.attempt_id, NEW.run_id, NEW.at, NEW.author, NEW.field, NEW.old_text, NEW.new_text, NEW.why)
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: amendments is append-only');
END;

CREATE TRIGGER data_snapshots_append_only_update BEFORE UPDATE ON data_snapshots
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: data_snapshots is append-only');
END;

CREATE TRIGGER data_snapshots_append_only_delete BEFORE DELETE ON data_snapshots
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: data_snapshots is append-only');
END;

CREATE TRIGGER data_snapshots_append_only_replace BEFORE INSERT ON data_snapshots
WHEN EXISTS (
    SELECT 1 FROM data_snapshots WHERE data_sha256 = NEW.data_sha256
    AND (name, path, split, file_count, size_bytes, rows, first_seen_at, schema_json, notes_json)
        IS NOT (NEW.name, NEW.path, NEW.split, NEW.file_count, NEW.size_bytes, NEW.rows, NEW.first_seen_at, NEW.schema_json, NEW.notes_json)
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: data_snapshots is append-only');
END;

CREATE TRIGGER data_snapshot_files_append_only_update BEFORE UPDATE ON data_snapshot_files
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: data_snapshot_files is append-only');
END;

CREATE TRIGGER data_snapshot_files_append_only_delete BEFORE DELETE ON data_snapshot_files
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: data_snapshot_files is append-only');
END;

CREATE TRIGGER data_snapshot_files_append_only_replace BEFORE INSERT ON data_snapshot_files
WHEN EXISTS (
    SELECT 1 FROM data_snapshot_files WHERE data_sha256 = NEW.data_sha256 AND path = NEW.path
    AND (size_bytes, blake3, format, rows, schema_json)
        IS NOT (NEW.size_bytes, NEW.blake3, NEW.format, NEW.rows, NEW.schema_json)
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: data_snapshot_files is append-only');
END;

CREATE TRIGGER run_data_append_only_update BEFORE UPDATE ON run_data
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: run_data is append-only');
END;

CREATE TRIGGER run_data_append_only_delete BEFORE DELETE ON run_data
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: run_data is append-only');
END;

CREATE TRIGGER run_data_append_only_replace BEFORE INSERT ON run_data
WHEN EXISTS (
    SELECT 1 FROM run_data WHERE run_id = NEW.run_id AND name = NEW.name
    AND (path, data_sha256)
        IS NOT (NEW.path, NEW.data_sha256)
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: run_data is append-only');
END;

CREATE TRIGGER retries_append_only_update BEFORE UPDATE OF attempt_id, run_id, at, decision, rule, why, delay_seconds, budget_name, budget_spent, budget_limit, changes_json ON retries
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: retries is append-only');
END;

CREATE TRIGGER retries_next_attempt_once BEFORE UPDATE OF next_attempt_id ON retries
WHEN OLD.next_attempt_id IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the attempt that followed is already known');
END;

CREATE TRIGGER retries_append_only_delete BEFORE DELETE ON retries
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: retries is append-only');
END;

CREATE TRIGGER retries_append_only_replace BEFORE INSERT ON retries
WHEN EXISTS (
    SELECT 1 FROM retries WHERE attempt_id = NEW.attempt_id
    AND (run_id, at, decision, rule, why, delay_seconds, budget_name, budget_spent, budget_limit, changes_json)
        IS NOT (NEW.run_id, NEW.at, NEW.decision, NEW.rule, NEW.why, NEW.delay_seconds, NEW.budget_name, NEW.budget_spent, NEW.budget_limit, NEW.changes_json)
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: retries is append-only');
END;

-- What a run, a checkpoint or an evaluation is never changes; its state may.

CREATE TRIGGER runs_identity_update BEFORE UPDATE OF run_id, config_sha256, config_json, created_at, seed ON runs
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the config of a run does not change');
END;

CREATE TRIGGER runs_delete BEFORE DELETE ON runs
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: runs are not deleted');
END;

CREATE TRIGGER checkpoints_identity_update BEFORE UPDATE OF run_id, attempt_id, step, epoch, object_prefix ON checkpoints
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: a checkpoint keeps its identity');
END;

CREATE TRIGGER checkpoints_manifest_update BEFORE UPDATE OF manifest_sha256 ON checkpoints
WHEN OLD.manifest_sha256 IS NOT NULL AND NEW.manifest_sha256 IS NOT OLD.manifest_sha256
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: a checkpoint keeps its manifest');
END;

CREATE TRIGGER checkpoints_delete BEFORE DELETE ON checkpoints
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: checkpoints are retired, not deleted');
END;

CREATE TRIGGER evaluations_ended_update BEFORE UPDATE ON evaluations
WHEN OLD.state <> 'running'
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the evaluation has ended and does not change');
END;

CREATE TRIGGER evaluations_ended_delete BEFORE DELETE ON evaluations
WHEN OLD.state <> 'running'
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the evaluation has ended and does not change');
END;

CREATE TRIGGER evaluations_ended_replace BEFORE INSERT ON evaluations
WHEN EXISTS (
    SELECT 1 FROM evaluations WHERE evaluation_id = NEW.evaluation_id AND state <> 'running'
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the evaluation has ended and does not change');
END;
