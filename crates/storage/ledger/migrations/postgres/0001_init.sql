-- Version 1 of the ledger in PostgreSQL. The same tables, columns and rules as the SQLite migration of this number.
-- `docs/ledger.md` says what each column means. Timestamps are timestamptz.

CREATE TABLE runs (
    run_id text NOT NULL,
    name text NOT NULL,
    state text NOT NULL CHECK (state IN ('planned', 'running', 'waiting', 'completed', 'failed', 'stopped', 'blocked')),
    model_family text,
    owner text,
    team text,
    config_sha256 text NOT NULL,
    data_sha256 text,
    seed bigint,
    created_at timestamptz NOT NULL,
    started_at timestamptz,
    ended_at timestamptz,
    attempt_count bigint NOT NULL,
    termination_reason text CHECK (termination_reason IN ('completed', 'early_stopped', 'cancelled', 'preempted', 'node_failure', 'host_oom', 'device_oom', 'data_error', 'schema_drift', 'code_error', 'hang', 'timeout', 'numeric_divergence', 'checkpoint_error', 'storage_error', 'network_error', 'evaluator_error', 'budget_exhausted', 'rung_rejected', 'fenced', 'superseded', 'unknown')),
    last_committed_step bigint,
    cost_usd double precision,
    gpu_seconds double precision NOT NULL,
    wall_seconds double precision NOT NULL,
    run_file_path text,
    config_json text NOT NULL,
    PRIMARY KEY (run_id),
    CHECK ((state IN ('completed', 'failed', 'stopped', 'blocked')) = (ended_at IS NOT NULL))
);

CREATE INDEX runs_by_name_created_at ON runs (name, created_at);

CREATE INDEX runs_by_created_at ON runs (created_at);

CREATE TABLE training_attempts (
    attempt_id text NOT NULL,
    run_id text NOT NULL REFERENCES runs (run_id),
    attempt_number bigint NOT NULL,
    parent_attempt_id text,
    kind text NOT NULL CHECK (kind IN ('train', 'one_batch', 'overfit', 'prove', 'evaluate')),
    rung text NOT NULL,
    state text NOT NULL CHECK (state IN ('planned', 'running', 'ended', 'sealed')),
    model_family text,
    owner text,
    team text,
    started_at timestamptz,
    ended_at timestamptz,
    wall_seconds double precision,
    gpu_seconds double precision,
    gpu_busy_seconds double precision,
    cpu_seconds double precision,
    peak_rss_bytes bigint,
    usd_per_gpu_hour double precision,
    cost_usd double precision,
    exit_code bigint,
    signal bigint,
    termination_reason text CHECK (termination_reason IN ('completed', 'early_stopped', 'cancelled', 'preempted', 'node_failure', 'host_oom', 'device_oom', 'data_error', 'schema_drift', 'code_error', 'hang', 'timeout', 'numeric_divergence', 'checkpoint_error', 'storage_error', 'network_error', 'evaluator_error', 'budget_exhausted', 'rung_rejected', 'fenced', 'superseded', 'unknown')),
    termination_rule text,
    termination_confidence text CHECK (termination_confidence IN ('certain', 'likely', 'guess')),
    termination_domain text CHECK (termination_domain IN ('workload', 'data', 'infrastructure', 'operator', 'policy', 'unknown')),
    retry_outlook text CHECK (retry_outlook IN ('retry', 'retry_changed', 'do_not_retry', 'unknown')),
    fingerprint text,
    oom_kill_delta bigint,
    epoch bigint,
    resumed_from_step bigint,
    resumed_from_manifest_sha256 text,
    first_step bigint,
    last_step bigint,
    last_committed_step bigint,
    last_committed_manifest_sha256 text,
    heartbeat_at timestamptz,
    config_sha256 text NOT NULL,
    data_sha256 text,
    container_digest text,
    environment_lock_sha256 text,
    environment_lock_source text,
    git_commit text,
    git_branch text,
    git_dirty boolean,
    git_diff_blake3 text,
    seed bigint,
    launcher text NOT NULL,
    job_id text,
    hosts text,
    devices text,
    queue text,
    host_cpu_count bigint,
    host_memory_bytes bigint,
    gpu_count bigint,
    gpu_names text,
    working_directory text NOT NULL,
    log_directory text NOT NULL,
    stdout_bytes bigint,
    stderr_bytes bigint,
    log_bytes_lost bigint,
    sealed_at timestamptz,
    receipt_sha256 text,
    command text NOT NULL,
    evaluator_versions text,
    placement_json text,
    termination_evidence text,
    termination_secondary text,
    config_json text NOT NULL,
    PRIMARY KEY (attempt_id),
    UNIQUE (run_id, attempt_number),
    CHECK (kind = 'train'),
    CHECK (attempt_number >= 1),
    CHECK ((state = 'sealed') = (sealed_at IS NOT NULL)),
    CHECK (state <> 'sealed' OR (termination_reason IS NOT NULL AND receipt_sha256 IS NOT NULL))
);

CREATE INDEX training_attempts_by_model_family_started_at ON training_attempts (model_family, started_at, termination_reason, gpu_seconds);

CREATE INDEX training_attempts_by_started_at ON training_attempts (started_at);

-- Every command asks first which attempts are still open: a handful among hundreds of thousands.
CREATE INDEX training_attempts_open ON training_attempts (attempt_id) WHERE sealed_at IS NULL;

CREATE TABLE launches (
    attempt_id text NOT NULL,
    run_id text NOT NULL REFERENCES runs (run_id),
    attempt_number bigint NOT NULL,
    parent_attempt_id text,
    kind text NOT NULL CHECK (kind IN ('train', 'one_batch', 'overfit', 'prove', 'evaluate')),
    rung text NOT NULL,
    state text NOT NULL CHECK (state IN ('planned', 'running', 'ended', 'sealed')),
    model_family text,
    owner text,
    team text,
    started_at timestamptz,
    ended_at timestamptz,
    wall_seconds double precision,
    gpu_seconds double precision,
    gpu_busy_seconds double precision,
    cpu_seconds double precision,
    peak_rss_bytes bigint,
    usd_per_gpu_hour double precision,
    cost_usd double precision,
    exit_code bigint,
    signal bigint,
    termination_reason text CHECK (termination_reason IN ('completed', 'early_stopped', 'cancelled', 'preempted', 'node_failure', 'host_oom', 'device_oom', 'data_error', 'schema_drift', 'code_error', 'hang', 'timeout', 'numeric_divergence', 'checkpoint_error', 'storage_error', 'network_error', 'evaluator_error', 'budget_exhausted', 'rung_rejected', 'fenced', 'superseded', 'unknown')),
    termination_rule text,
    termination_confidence text CHECK (termination_confidence IN ('certain', 'likely', 'guess')),
    termination_domain text CHECK (termination_domain IN ('workload', 'data', 'infrastructure', 'operator', 'policy', 'unknown')),
    retry_outlook text CHECK (retry_outlook IN ('retry', 'retry_changed', 'do_not_retry', 'unknown')),
    fingerprint text,
    oom_kill_delta bigint,
    epoch bigint,
    resumed_from_step bigint,
    resumed_from_manifest_sha256 text,
    first_step bigint,
    last_step bigint,
    last_committed_step bigint,
    last_committed_manifest_sha256 text,
    heartbeat_at timestamptz,
    config_sha256 text NOT NULL,
    data_sha256 text,
    container_digest text,
    environment_lock_sha256 text,
    environment_lock_source text,
    git_commit text,
    git_branch text,
    git_dirty boolean,
    git_diff_blake3 text,
    seed bigint,
    launcher text NOT NULL,
    job_id text,
    hosts text,
    devices text,
    queue text,
    host_cpu_count bigint,
    host_memory_bytes bigint,
    gpu_count bigint,
    gpu_names text,
    working_directory text NOT NULL,
    log_directory text NOT NULL,
    stdout_bytes bigint,
    stderr_bytes bigint,
    log_bytes_lost bigint,
    sealed_at timestamptz,
    receipt_sha256 text,
    command text NOT NULL,
    evaluator_versions text,
    placement_json text,
    termination_evidence text,
    termination_secondary text,
    config_json text NOT NULL,
    PRIMARY KEY (attempt_id),
    UNIQUE (run_id, kind, attempt_number),
    CHECK (kind <> 'train'),
    CHECK (attempt_number >= 1),
    CHECK ((state = 'sealed') = (sealed_at IS NOT NULL)),
    CHECK (state <> 'sealed' OR (termination_reason IS NOT NULL AND receipt_sha256 IS NOT NULL))
);

CREATE INDEX launches_open ON launches (attempt_id) WHERE sealed_at IS NULL;

CREATE TABLE checkpoints (
    run_id text NOT NULL REFERENCES runs (run_id),
    attempt_id text NOT NULL,
    step bigint NOT NULL,
    epoch bigint NOT NULL,
    object_prefix text NOT NULL,
    manifest_sha256 text,
    state text NOT NULL CHECK (state IN ('writing', 'committed', 'superseded', 'suspect', 'abandoned', 'retired')),
    location text NOT NULL,
    size_bytes bigint,
    verified boolean,
    committed_at timestamptz,
    metrics_json text,
    PRIMARY KEY (run_id, object_prefix),
    CHECK (state <> 'committed' OR manifest_sha256 IS NOT NULL)
);

CREATE INDEX checkpoints_by_attempt_id ON checkpoints (attempt_id);

CREATE TABLE metric_summaries (
    attempt_id text NOT NULL,
    run_id text NOT NULL REFERENCES runs (run_id),
    name text NOT NULL,
    point_count bigint NOT NULL,
    non_finite_count bigint NOT NULL,
    first_step bigint NOT NULL,
    last_step bigint NOT NULL,
    first_value double precision,
    last_value double precision,
    min_value double precision,
    max_value double precision,
    mean_value double precision,
    PRIMARY KEY (attempt_id, name)
);

CREATE INDEX metric_summaries_by_run_id ON metric_summaries (run_id);

CREATE TABLE parameters (
    attempt_id text NOT NULL,
    run_id text NOT NULL REFERENCES runs (run_id),
    name text NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (attempt_id, name)
);

CREATE TABLE record_segments (
    attempt_id text NOT NULL,
    run_id text NOT NULL REFERENCES runs (run_id),
    path text NOT NULL,
    origin text,
    size_bytes bigint NOT NULL,
    frame_count bigint NOT NULL,
    lost_frame_count bigint NOT NULL,
    dropped_frame_count bigint NOT NULL,
    torn_bytes bigint NOT NULL,
    closed boolean NOT NULL,
    parquet_path text,
    unreadable text,
    PRIMARY KEY (attempt_id, path)
);

CREATE TABLE events (
    event_id text NOT NULL,
    run_id text NOT NULL REFERENCES runs (run_id),
    attempt_id text,
    at timestamptz NOT NULL,
    kind text NOT NULL,
    step bigint,
    message text NOT NULL,
    fields_json text,
    source text NOT NULL,
    PRIMARY KEY (event_id)
);

CREATE INDEX events_by_run_id_at ON events (run_id, at);

CREATE INDEX events_by_attempt_id ON events (attempt_id);

CREATE TABLE retries (
    attempt_id text NOT NULL,
    run_id text NOT NULL REFERENCES runs (run_id),
    at timestamptz NOT NULL,
    decision text NOT NULL CHECK (decision IN ('retry', 'stop')),
    rule text NOT NULL,
    why text NOT NULL,
    delay_seconds double precision,
    budget_name text,
    budget_spent double precision,
    budget_limit double precision,
    changes_json text,
    next_attempt_id text,
    PRIMARY KEY (attempt_id)
);

CREATE INDEX retries_by_run_id ON retries (run_id);

CREATE TABLE amendments (
    amendment_id text NOT NULL,
    attempt_id text NOT NULL,
    run_id text NOT NULL REFERENCES runs (run_id),
    at timestamptz NOT NULL,
    author text NOT NULL,
    field text NOT NULL,
    old_text text,
    new_text text,
    why text NOT NULL,
    PRIMARY KEY (amendment_id)
);

CREATE INDEX amendments_by_attempt_id ON amendments (attempt_id);

CREATE TABLE costs (
    attempt_id text NOT NULL,
    run_id text NOT NULL REFERENCES runs (run_id),
    item text NOT NULL,
    quantity double precision NOT NULL,
    unit text NOT NULL,
    usd double precision,
    PRIMARY KEY (attempt_id, item)
);

CREATE TABLE data_snapshots (
    data_sha256 text NOT NULL,
    name text NOT NULL,
    path text NOT NULL,
    split text,
    file_count bigint NOT NULL,
    size_bytes bigint NOT NULL,
    rows bigint,
    first_seen_at timestamptz NOT NULL,
    schema_json text,
    notes_json text,
    PRIMARY KEY (data_sha256)
);

CREATE TABLE data_snapshot_files (
    data_sha256 text NOT NULL REFERENCES data_snapshots (data_sha256),
    path text NOT NULL,
    size_bytes bigint NOT NULL,
    blake3 text NOT NULL,
    format text NOT NULL,
    rows bigint,
    schema_json text,
    PRIMARY KEY (data_sha256, path)
);

CREATE TABLE run_data (
    run_id text NOT NULL REFERENCES runs (run_id),
    name text NOT NULL,
    path text NOT NULL,
    data_sha256 text NOT NULL REFERENCES data_snapshots (data_sha256),
    PRIMARY KEY (run_id, name)
);

CREATE INDEX run_data_by_data_sha256 ON run_data (data_sha256);

CREATE TABLE evaluations (
    evaluation_id text NOT NULL,
    run_id text NOT NULL REFERENCES runs (run_id),
    attempt_id text,
    checkpoint_manifest_sha256 text NOT NULL,
    state text NOT NULL CHECK (state IN ('running', 'completed', 'failed')),
    evaluator_name text NOT NULL,
    evaluator_digest text,
    task_set_version text,
    task_set_sha256 text,
    judge_model text,
    judge_rubric text,
    raw_outputs_location text,
    started_at timestamptz NOT NULL,
    ended_at timestamptz,
    decoding_json text,
    sampled_failures_json text,
    metrics_json text,
    slices_json text,
    gates_json text,
    PRIMARY KEY (evaluation_id),
    CHECK ((state = 'running') = (ended_at IS NULL))
);

CREATE INDEX evaluations_by_run_id ON evaluations (run_id);

CREATE INDEX evaluations_by_checkpoint_manifest_sha256 ON evaluations (checkpoint_manifest_sha256);

-- Every refusal has one function; the message comes from the trigger.
CREATE FUNCTION trackway_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'trackway integrity: %', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE FUNCTION trackway_refuse_when_sealed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    attempt text := CASE TG_OP WHEN 'INSERT' THEN NEW.attempt_id ELSE OLD.attempt_id END;
BEGIN
    IF EXISTS (SELECT 1 FROM training_attempts WHERE attempt_id = attempt AND sealed_at IS NOT NULL)
        OR EXISTS (SELECT 1 FROM launches WHERE attempt_id = attempt AND sealed_at IS NOT NULL) THEN
        RAISE EXCEPTION 'trackway integrity: the receipt is sealed; write an amendment'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END $$;

-- A receipt that is sealed does not change, and neither does what was sealed with it.

CREATE TRIGGER training_attempts_sealed BEFORE UPDATE OR DELETE ON training_attempts
    FOR EACH ROW WHEN (OLD.sealed_at IS NOT NULL) EXECUTE FUNCTION trackway_refuse('the receipt is sealed; write an amendment');

CREATE TRIGGER training_attempts_truncate BEFORE TRUNCATE ON training_attempts
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('receipts are not deleted');

CREATE TRIGGER launches_sealed BEFORE UPDATE OR DELETE ON launches
    FOR EACH ROW WHEN (OLD.sealed_at IS NOT NULL) EXECUTE FUNCTION trackway_refuse('the receipt is sealed; write an amendment');

CREATE TRIGGER launches_truncate BEFORE TRUNCATE ON launches
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('receipts are not deleted');

CREATE TRIGGER metric_summaries_sealed BEFORE INSERT OR UPDATE OR DELETE ON metric_summaries
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse_when_sealed();

CREATE TRIGGER metric_summaries_truncate BEFORE TRUNCATE ON metric_summaries
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('receipts are not deleted');

CREATE TRIGGER parameters_sealed BEFORE INSERT OR UPDATE OR DELETE ON parameters
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse_when_sealed();

CREATE TRIGGER parameters_truncate BEFORE TRUNCATE ON parameters
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('receipts are not deleted');

CREATE TRIGGER record_segments_sealed BEFORE INSERT OR UPDATE OR DELETE ON record_segments
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse_when_sealed();

CREATE TRIGGER record_segments_truncate BEFORE TRUNCATE ON record_segments
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('receipts are not deleted');

CREATE TRIGGER costs_sealed BEFORE INSERT OR UPDATE OR DELETE ON costs
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse_when_sealed();

CREATE TRIGGER costs_truncate BEFORE TRUNCATE ON costs
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('receipts are not deleted');

-- History is only added to.

CREATE TRIGGER events_append_only BEFORE UPDATE OR DELETE ON events
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('events is append-only');

CREATE TRIGGER events_truncate BEFORE TRUNCATE ON events
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('events is append-only');

CREATE TRIGGER amendments_append_only BEFORE UPDATE OR DELETE ON amendments
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('amendments is append-only');

CREATE TRIGGER amendments_truncate BEFORE TRUNCATE ON amendments
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('amendments is append-only');

CREATE TRIGGER data_snapshots_append_only BEFORE UPDATE OR DELETE ON data_snapshots
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('data_snapshots is append-only');

CREATE TRIGGER data_snapshots_truncate BEFORE TRUNCATE ON data_snapshots
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('data_snapshots is append-only');

CREATE TRIGGER data_snapshot_files_append_only BEFORE UPDATE OR DELETE ON data_snapshot_files
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('data_snapshot_files is append-only');

CREATE TRIGGER data_snapshot_files_truncate BEFORE TRUNCATE ON data_snapshot_files
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('data_snapshot_files is append-only');

CREATE TRIGGER run_data_append_only BEFORE UPDATE OR DELETE ON run_data
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('run_data is append-only');

CREATE TRIGGER run_data_truncate BEFORE TRUNCATE ON run_data
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('run_data is append-only');

CREATE TRIGGER retries_append_only_update BEFORE UPDATE OF attempt_id, run_id, at, decision, rule, why, delay_seconds, budget_name, budget_spent, budget_limit, changes_json ON retries
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('retries is append-only');

CREATE TRIGGER retries_next_attempt_once BEFORE UPDATE OF next_attempt_id ON retries
    FOR EACH ROW WHEN (OLD.next_attempt_id IS NOT NULL) EXECUTE FUNCTION trackway_refuse('the attempt that followed is already known');

CREATE TRIGGER retries_append_only_delete BEFORE DELETE ON retries
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('retries is append-only');

CREATE TRIGGER retries_truncate BEFORE TRUNCATE ON retries
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('retries is append-only');

-- What a run, a checkpoint or an evaluation is never changes; its state may.

CREATE TRIGGER runs_identity_update BEFORE UPDATE OF run_id, config_sha256, config_json, created_at, seed ON runs
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('the config of a run does not change');

CREATE TRIGGER runs_delete BEFORE DELETE ON runs
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('runs are not deleted');

CREATE TRIGGER runs_truncate BEFORE TRUNCATE ON runs
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('runs are not deleted');

CREATE TRIGGER checkpoints_identity_update BEFORE UPDATE OF run_id, attempt_id, step, epoch, object_prefix ON checkpoints
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('a checkpoint keeps its identity');

CREATE TRIGGER checkpoints_manifest_update BEFORE UPDATE OF manifest_sha256 ON checkpoints
    FOR EACH ROW WHEN (OLD.manifest_sha256 IS NOT NULL AND NEW.manifest_sha256 IS DISTINCT FROM OLD.manifest_sha256) EXECUTE FUNCTION trackway_refuse('a checkpoint keeps its manifest');

CREATE TRIGGER checkpoints_delete BEFORE DELETE ON checkpoints
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('checkpoints are retired, not deleted');

CREATE TRIGGER checkpoints_truncate BEFORE TRUNCATE ON checkpoints
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('checkpoints are retired, not deleted');

CREATE TRIGGER evaluations_ended BEFORE UPDATE OR DELETE ON evaluations
    FOR EACH ROW WHEN (OLD.state <> 'running') EXECUTE FUNCTION trackway_refuse('the evaluation has ended and does not change');

CREATE TRIGGER evaluations_truncate BEFORE TRUNCATE ON evaluations
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('evaluations are not deleted');
