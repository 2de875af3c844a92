-- The tables, indexes and views of a ledger, in the dialect of PostgreSQL; `src/backend/dialect.rs` makes of it what SQLite runs.
-- What follows `-- postgres:` or `-- sqlite:` in a line is for that database alone. The rules of tables are in `src/backend/rules.rs`;
-- `docs/ledger.md` has the meaning of each column.

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
    termination_reason text CHECK (termination_reason IN ('completed', 'early_stopped', 'cancelled', 'preempted', 'node_failure', 'host_oom', 'device_oom', 'data_error', 'schema_drift', 'code_error', 'hang', 'timeout', 'numeric_divergence', 'unhealthy', 'checkpoint_error', 'storage_error', 'network_error', 'evaluator_error', 'budget_exhausted', 'rung_rejected', 'fenced', 'superseded', 'unknown')),
    last_committed_step bigint,
    cost_usd double precision,
    gpu_seconds double precision NOT NULL,
    wall_seconds double precision NOT NULL,
    run_file_path text,
    config_json text NOT NULL,
    kind text NOT NULL DEFAULT 'train' CHECK (kind IN ('train', 'one_batch', 'overfit', 'prove', 'diagnose', 'evaluate')),
    revision bigint NOT NULL DEFAULT 0,
    data_contract_sha256 text,
    for_run_id text,
    note text,
    hidden_at timestamptz,
    PRIMARY KEY (run_id),
    CHECK ((state IN ('completed', 'failed', 'stopped', 'blocked')) = (ended_at IS NOT NULL))
);

CREATE INDEX runs_by_created_at ON runs (created_at);
-- Pages of runs and the values of a name are read from indexes. Other than in SQLite, long texts are stored apart from their rows and must
-- not be in an index.
-- postgres: CREATE INDEX runs_newest ON runs (kind, created_at, run_id);
-- sqlite: CREATE INDEX runs_newest ON runs (kind, created_at, run_id, name, state, model_family, seed, started_at, ended_at, attempt_count, termination_reason, last_committed_step, cost_usd, gpu_seconds, wall_seconds);
-- postgres: CREATE INDEX runs_by_name ON runs (name, kind, created_at, run_id);
-- sqlite: CREATE INDEX runs_by_name ON runs (name, kind, created_at, run_id, state);
CREATE INDEX runs_by_inputs ON runs (config_sha256, kind, created_at, run_id, data_sha256, seed);
CREATE INDEX runs_by_for_run_id ON runs (for_run_id);
-- The newest run comes first among equals.
CREATE INDEX runs_by_run_id ON runs (run_id, created_at);
CREATE INDEX runs_by_kind_name ON runs (kind, name COLLATE "C", created_at DESC, run_id DESC);
CREATE INDEX runs_by_ended_at ON runs (kind, ended_at, created_at DESC, run_id DESC);
CREATE INDEX runs_by_wall_seconds ON runs (kind, wall_seconds, created_at DESC, run_id DESC);
CREATE INDEX runs_by_gpu_seconds ON runs (kind, gpu_seconds, created_at DESC, run_id DESC);
CREATE INDEX runs_by_cost_usd ON runs (kind, cost_usd, created_at DESC, run_id DESC);
CREATE INDEX runs_hidden ON runs (run_id) WHERE hidden_at IS NOT NULL;

CREATE TABLE training_attempts (
    attempt_id text NOT NULL,
    run_id text NOT NULL REFERENCES runs (run_id),
    attempt_number bigint NOT NULL,
    parent_attempt_id text,
    kind text NOT NULL CHECK (kind IN ('train', 'one_batch', 'overfit', 'prove', 'diagnose', 'evaluate')),
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
    termination_reason text CHECK (termination_reason IN ('completed', 'early_stopped', 'cancelled', 'preempted', 'node_failure', 'host_oom', 'device_oom', 'data_error', 'schema_drift', 'code_error', 'hang', 'timeout', 'numeric_divergence', 'unhealthy', 'checkpoint_error', 'storage_error', 'network_error', 'evaluator_error', 'budget_exhausted', 'rung_rejected', 'fenced', 'superseded', 'unknown')),
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
    script_blake3 text,
    first_step_at timestamptz,
    recovery_seconds double precision,
    new_committed_steps bigint,
    gpu_hours_per_committed_step double precision,
    seed_seen bigint,
    rung_rows bigint,
    rung_rows_total bigint,
    skip_batches text,
    skipped_batch_count bigint,
    warm_start_rung text,
    warm_start_step bigint,
    warm_start_manifest_sha256 text,
    warm_start_run_id text,
    data_opened text,
    data_not_opened text,
    effective_batch bigint,
    PRIMARY KEY (attempt_id),
    UNIQUE (run_id, attempt_number),
    CHECK (kind = 'train'),
    CHECK (attempt_number >= 1),
    CHECK ((state = 'sealed') = (sealed_at IS NOT NULL)),
    CHECK (state <> 'sealed' OR (termination_reason IS NOT NULL AND receipt_sha256 IS NOT NULL))
);

-- postgres: CREATE INDEX training_attempts_by_model_family_started_at ON training_attempts (model_family, started_at, termination_reason, gpu_seconds);
-- sqlite: CREATE INDEX training_attempts_by_model_family_started_at ON training_attempts (model_family, started_at, termination_reason, gpu_seconds, launcher, termination_domain, wall_seconds);
CREATE INDEX training_attempts_by_started_at ON training_attempts (started_at);
-- Every command asks first which attempts are still open: a handful among hundreds of thousands.
CREATE INDEX training_attempts_open ON training_attempts (attempt_id) WHERE sealed_at IS NULL;

CREATE TABLE launches (
    attempt_id text NOT NULL,
    run_id text NOT NULL REFERENCES runs (run_id),
    attempt_number bigint NOT NULL,
    parent_attempt_id text,
    kind text NOT NULL CHECK (kind IN ('train', 'one_batch', 'overfit', 'prove', 'diagnose', 'evaluate')),
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
    termination_reason text CHECK (termination_reason IN ('completed', 'early_stopped', 'cancelled', 'preempted', 'node_failure', 'host_oom', 'device_oom', 'data_error', 'schema_drift', 'code_error', 'hang', 'timeout', 'numeric_divergence', 'unhealthy', 'checkpoint_error', 'storage_error', 'network_error', 'evaluator_error', 'budget_exhausted', 'rung_rejected', 'fenced', 'superseded', 'unknown')),
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
    script_blake3 text,
    first_step_at timestamptz,
    recovery_seconds double precision,
    new_committed_steps bigint,
    gpu_hours_per_committed_step double precision,
    seed_seen bigint,
    rung_rows bigint,
    rung_rows_total bigint,
    skip_batches text,
    skipped_batch_count bigint,
    warm_start_rung text,
    warm_start_step bigint,
    warm_start_manifest_sha256 text,
    warm_start_run_id text,
    data_opened text,
    data_not_opened text,
    effective_batch bigint,
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
    why text,
    pins text,
    uploaded_to text,
    uploaded_at timestamptz,
    verified_at timestamptz,
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
    non_finite_from_step bigint,
    non_finite_end_count bigint,
    PRIMARY KEY (attempt_id, name)
);

CREATE INDEX metric_summaries_by_first ON metric_summaries (name, first_value, run_id);
CREATE INDEX metric_summaries_by_last ON metric_summaries (name, last_value, run_id);
CREATE INDEX metric_summaries_by_min ON metric_summaries (name, min_value, run_id);
CREATE INDEX metric_summaries_by_max ON metric_summaries (name, max_value, run_id);
CREATE INDEX metric_summaries_by_run_id ON metric_summaries (run_id, name);

CREATE TABLE parameters (
    attempt_id text NOT NULL,
    run_id text NOT NULL REFERENCES runs (run_id),
    name text NOT NULL,
    value text NOT NULL,
    origin text,
    PRIMARY KEY (attempt_id, name)
);

-- postgres: CREATE INDEX parameters_by_name ON parameters (name, run_id, attempt_id);
-- sqlite: CREATE INDEX parameters_by_name ON parameters (name, value, run_id);
CREATE INDEX parameters_by_run_id ON parameters (run_id, name);

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
    decision text NOT NULL CHECK (decision IN ('retry', 'promote', 'stop')),
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
    role text,
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
    origin text NOT NULL DEFAULT 'trackway',
    step bigint,
    launch_run_id text REFERENCES runs (run_id),
    launch_attempt_id text,
    launch_count bigint NOT NULL DEFAULT 0,
    failure text,
    seed bigint,
    raw_outputs_sha256 text,
    raw_outputs_rows bigint,
    environment_lock_sha256 text,
    container_digest text,
    baseline_evaluation_id text,
    spec_json text,
    fairness_json text,
    comparison_json text,
    assessment_json text,
    notes_json text,
    receipt_sha256 text,
    test_set text,
    PRIMARY KEY (evaluation_id),
    CHECK ((state = 'running') = (ended_at IS NULL))
);

CREATE INDEX evaluations_by_run_id ON evaluations (run_id);
CREATE INDEX evaluations_by_checkpoint_manifest_sha256 ON evaluations (checkpoint_manifest_sha256);
-- Every command asks first which evaluations still run.
CREATE INDEX evaluations_running ON evaluations (started_at, evaluation_id) WHERE state = 'running';

CREATE TABLE resume_proofs (
    proof_id text NOT NULL,
    name text NOT NULL,
    model_family text,
    verdict text NOT NULL CHECK (verdict IN ('equal', 'different', 'nondeterministic', 'not_proved', 'not_applicable')),
    why text,
    differing_kinds text,
    steps bigint NOT NULL,
    killed_at_step bigint,
    resumed_from_step bigint,
    config_sha256 text NOT NULL,
    data_sha256 text,
    seed bigint,
    git_commit text,
    git_dirty boolean,
    git_diff_blake3 text,
    environment_lock_sha256 text,
    container_digest text,
    control_run_id text NOT NULL REFERENCES runs (run_id),
    repeated_run_id text REFERENCES runs (run_id),
    resumed_run_id text REFERENCES runs (run_id),
    control_state_digest text,
    repeated_state_digest text,
    resumed_state_digest text,
    started_at timestamptz NOT NULL,
    ended_at timestamptz NOT NULL,
    wall_seconds double precision NOT NULL,
    gpu_seconds double precision NOT NULL,
    cost_usd double precision,
    digests_json text,
    PRIMARY KEY (proof_id),
    CHECK (steps >= 1)
);

CREATE INDEX resume_proofs_by_config_sha256 ON resume_proofs (config_sha256, started_at);

-- What was checked before a run was launched.
CREATE TABLE preflight_checks (
    run_id text NOT NULL REFERENCES runs (run_id),
    check_name text NOT NULL,
    place bigint NOT NULL,
    verdict text NOT NULL CHECK (verdict IN ('pass', 'warn', 'block', 'not_run', 'not_applicable')),
    blocks boolean NOT NULL,
    seconds double precision,
    why text,
    skipped_why text,
    finding_count bigint NOT NULL,
    findings_json text,
    at timestamptz NOT NULL,
    PRIMARY KEY (run_id, check_name)
);

-- What detectors found while an attempt ran.
CREATE TABLE detections (
    detection_id text PRIMARY KEY,
    run_id text NOT NULL REFERENCES runs (run_id),
    attempt_id text NOT NULL,
    at timestamptz NOT NULL,
    detector text NOT NULL,
    severity text NOT NULL CHECK (severity IN ('note', 'warn', 'critical')),
    policy text NOT NULL,
    rank bigint NOT NULL,
    first_step bigint NOT NULL,
    step bigint NOT NULL,
    metric text,
    value double precision,
    threshold double precision NOT NULL,
    batch_digest bigint,
    last_committed_step bigint,
    evidence text NOT NULL,
    cause text NOT NULL,
    advice text NOT NULL,
    first_batch bigint,
    last_batch bigint,
    data_epoch bigint,
    stacks_path text
);

CREATE INDEX detections_by_run_id ON detections (run_id, at);
CREATE INDEX detections_by_attempt_id ON detections (attempt_id, at);

-- Tags and artifacts of an attempt, sealed with it.
CREATE TABLE tags (
    attempt_id text NOT NULL,
    run_id text NOT NULL REFERENCES runs (run_id),
    name text NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (attempt_id, name)
);

-- postgres: CREATE INDEX tags_by_name ON tags (name, run_id, attempt_id);
-- sqlite: CREATE INDEX tags_by_name ON tags (name, value, run_id);
CREATE INDEX tags_by_run_id ON tags (run_id, name);

CREATE TABLE artifacts (
    attempt_id text NOT NULL,
    run_id text NOT NULL REFERENCES runs (run_id),
    name text NOT NULL,
    blake3 text NOT NULL,
    size_bytes bigint NOT NULL,
    step bigint,
    at timestamptz NOT NULL,
    PRIMARY KEY (attempt_id, name, blake3)
);

CREATE INDEX artifacts_by_run_id ON artifacts (run_id);

-- Where runs went back to, and which batches they skip since.
CREATE TABLE roll_backs (
    roll_back_id text PRIMARY KEY,
    run_id text NOT NULL REFERENCES runs (run_id),
    attempt_id text NOT NULL,
    rung text NOT NULL,
    at timestamptz NOT NULL,
    detector text,
    person text,
    first_step bigint,
    from_step bigint,
    to_step bigint,
    skip_first_batch bigint,
    skip_end_batch bigint,
    left_steps text,
    why text NOT NULL
);

CREATE INDEX roll_backs_by_run_id ON roll_backs (run_id, at);

-- The rungs of a ladder.
CREATE TABLE rungs (
    run_id text NOT NULL REFERENCES runs (run_id),
    rung text NOT NULL,
    fraction double precision NOT NULL,
    place bigint NOT NULL,
    verdict text NOT NULL CHECK (verdict IN ('open', 'promoted', 'rejected', 'not_proved', 'completed')),
    attempt_count bigint NOT NULL,
    last_attempt_id text NOT NULL,
    last_step bigint,
    wall_seconds double precision NOT NULL,
    gpu_seconds double precision NOT NULL,
    cost_usd double precision,
    warm_start_step bigint,
    rule text,
    why text,
    values_json text,
    metrics_json text,
    rows bigint,
    rows_total bigint,
    PRIMARY KEY (run_id, rung)
);

CREATE TABLE evaluation_metrics (
    evaluation_id text NOT NULL REFERENCES evaluations (evaluation_id),
    slice text NOT NULL,
    metric text NOT NULL,
    value double precision,
    low double precision,
    high double precision,
    support bigint,
    method text NOT NULL CHECK (method IN ('analytic', 'bootstrap', 'clustered', 'none')),
    rows_used bigint,
    rows_expected bigint,
    PRIMARY KEY (evaluation_id, slice, metric)
);

CREATE INDEX evaluation_metrics_by_metric ON evaluation_metrics (metric, slice);

CREATE TABLE evaluation_slices (
    evaluation_id text NOT NULL REFERENCES evaluations (evaluation_id),
    slice text NOT NULL,
    predicate text NOT NULL,
    support bigint NOT NULL,
    verdict text,
    PRIMARY KEY (evaluation_id, slice)
);

CREATE TABLE test_set_uses (
    evaluation_id text NOT NULL REFERENCES evaluations (evaluation_id),
    task_set_sha256 text NOT NULL,
    task_set_version text,
    run_id text NOT NULL REFERENCES runs (run_id),
    checkpoint_manifest_sha256 text NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (evaluation_id)
);

CREATE INDEX test_set_uses_by_task_set_sha256 ON test_set_uses (task_set_sha256);

-- The present state of each model, computed from its changes.
CREATE TABLE models (
    model text NOT NULL,
    created_at timestamptz NOT NULL,
    change_number bigint NOT NULL,
    version_count bigint NOT NULL,
    production_version bigint,
    production_since timestamptz,
    stages_json text NOT NULL,
    aliases_json text NOT NULL,
    policy_json text NOT NULL,
    PRIMARY KEY (model)
);

-- Versions of models: exactly these weights, and where they came from.
CREATE TABLE model_versions (
    model text NOT NULL,
    version bigint NOT NULL,
    run_id text NOT NULL REFERENCES runs (run_id),
    attempt_id text,
    rung text NOT NULL,
    step bigint,
    object_prefix text NOT NULL,
    checkpoint_manifest_sha256 text NOT NULL,
    size_bytes bigint NOT NULL,
    lineage_sha256 text NOT NULL,
    config_sha256 text NOT NULL,
    code_commit text,
    environment_sha256 text,
    container_digest text,
    data_json text NOT NULL,
    signature_json text,
    description text,
    registered_at timestamptz NOT NULL,
    registered_by text,
    duplicate_of bigint,
    PRIMARY KEY (model, version)
);

CREATE INDEX model_versions_by_checkpoint_manifest_sha256 ON model_versions (checkpoint_manifest_sha256);
CREATE UNIQUE INDEX model_versions_once ON model_versions (model, checkpoint_manifest_sha256) WHERE duplicate_of IS NULL;
CREATE INDEX model_versions_by_run_id ON model_versions (run_id);

-- What happened to models. The state of a model follows from these rows alone.
CREATE TABLE model_changes (
    model text NOT NULL,
    number bigint NOT NULL,
    at timestamptz NOT NULL,
    kind text NOT NULL CHECK (kind IN ('register', 'promote', 'roll_back', 'set_alias', 'drop_alias', 'policy')),
    version bigint,
    stage text CHECK (stage IN ('candidate', 'staging', 'production', 'archived')),
    alias text,
    was_version bigint,
    gate_receipt_id text,
    approvals_json text,
    policy_json text,
    person text,
    why text,
    PRIMARY KEY (model, number)
);

-- What gates said of an evaluation, named by the digest of what they said.
CREATE TABLE gate_receipts (
    gate_receipt_id text NOT NULL,
    evaluation_id text NOT NULL,
    run_id text NOT NULL REFERENCES runs (run_id),
    checkpoint_manifest_sha256 text NOT NULL,
    baseline_evaluation_id text,
    baseline_manifest_sha256 text,
    compares boolean NOT NULL,
    verdict text NOT NULL CHECK (verdict IN ('fail', 'inconclusive', 'pass')),
    gates_json text NOT NULL,
    evidence_json text NOT NULL,
    judged_at timestamptz NOT NULL,
    person text,
    PRIMARY KEY (gate_receipt_id)
);

CREATE INDEX gate_receipts_by_evaluation_id ON gate_receipts (evaluation_id);

-- What gates said of models that are known to be bad.
CREATE TABLE gate_tests (
    gate_test_id text NOT NULL,
    rule text NOT NULL,
    fixture text NOT NULL,
    fixture_sha256 text NOT NULL,
    verdict text NOT NULL CHECK (verdict IN ('fail', 'inconclusive', 'pass')),
    why text NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (gate_test_id)
);

CREATE INDEX gate_tests_by_rule ON gate_tests (rule);

-- Who approved which version with which evidence.
CREATE TABLE approvals (
    approval_id text NOT NULL,
    model text NOT NULL,
    version bigint NOT NULL,
    digest text NOT NULL,
    gate_receipt_id text NOT NULL,
    approver text NOT NULL,
    at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    why text,
    PRIMARY KEY (approval_id)
);

CREATE INDEX approvals_by_model ON approvals (model, version);

CREATE TABLE supervisor_leases (
    run_id text NOT NULL REFERENCES runs (run_id),
    epoch bigint NOT NULL CHECK (epoch > 0),
    holder text NOT NULL,
    instance text NOT NULL,
    boot_id text NOT NULL,
    lock_id text NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (run_id)
);

-- How far each column of a run's data was from what it was compared with before the launch.
CREATE TABLE drift_results (
    run_id text NOT NULL REFERENCES runs (run_id),
    data_set text NOT NULL,
    compared_with text NOT NULL CHECK (compared_with IN ('reference', 'last_good_run', 'training_set')),
    column_name text NOT NULL,
    reference text NOT NULL,
    reference_run_id text,
    reference_rows bigint NOT NULL,
    rows bigint NOT NULL,
    role text NOT NULL,
    test text,
    statistic double precision,
    threshold double precision,
    p_value double precision,
    missing_change double precision,
    verdict text NOT NULL CHECK (verdict IN ('pass', 'warn')),
    why text,
    at timestamptz NOT NULL,
    PRIMARY KEY (run_id, data_set, compared_with, column_name)
);

-- Diagnoses of attempts, and runs that exist only for one.
CREATE TABLE diagnoses (
    diagnosis_run_id text NOT NULL,
    attempt_id text NOT NULL,
    run_id text NOT NULL REFERENCES runs (run_id),
    launch_id text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('numeric', 'throughput', 'hang')),
    why text NOT NULL,
    verdict text NOT NULL CHECK (verdict IN ('found', 'not_reproduced', 'not_observed', 'incomplete')),
    finding text NOT NULL,
    from_step bigint,
    until_step bigint NOT NULL,
    step bigint,
    batch bigint,
    facts_json text,
    at timestamptz NOT NULL,
    wall_seconds double precision NOT NULL,
    gpu_seconds double precision NOT NULL,
    cost_usd double precision,
    PRIMARY KEY (diagnosis_run_id)
);

CREATE INDEX diagnoses_by_run_id ON diagnoses (run_id, at);

CREATE TABLE run_amendments (
    amendment_id text NOT NULL,
    run_id text NOT NULL REFERENCES runs (run_id),
    at timestamptz NOT NULL,
    author text NOT NULL,
    field text NOT NULL CHECK (field IN ('name', 'note', 'tag', 'hidden')),
    tag text,
    old_text text,
    new_text text,
    why text,
    PRIMARY KEY (amendment_id)
);

CREATE INDEX run_amendments_by_run_id ON run_amendments (run_id, tag, at);
CREATE INDEX run_amendments_by_tag ON run_amendments (tag, run_id);

CREATE VIEW test_sets AS
SELECT task_set_sha256,
    max(task_set_version) AS task_set_version,
    count(*) AS use_count,
    count(DISTINCT checkpoint_manifest_sha256) AS checkpoint_count,
    count(DISTINCT run_id) AS run_count,
    min(at) AS first_used_at,
    max(at) AS last_used_at
FROM test_set_uses GROUP BY task_set_sha256;

-- The receipts as they are known now: with the newest amendment of what people sum over.
CREATE VIEW amended_attempts AS
WITH newest AS (
    SELECT attempt_id, field, new_text,
        row_number() OVER (PARTITION BY attempt_id, field ORDER BY at DESC, amendment_id DESC) AS place
    FROM amendments
)
SELECT a.attempt_id, a.run_id, a.attempt_number, a.rung, a.ended_at,
    CASE WHEN termination_reason_now.attempt_id IS NULL THEN a.termination_reason ELSE termination_reason_now.new_text END AS termination_reason,
    CASE WHEN owner_now.attempt_id IS NULL THEN a.owner ELSE owner_now.new_text END AS owner,
    CASE WHEN team_now.attempt_id IS NULL THEN a.team ELSE team_now.new_text END AS team,
    CASE WHEN gpu_seconds_now.attempt_id IS NULL THEN a.gpu_seconds ELSE CAST(gpu_seconds_now.new_text AS double precision) END AS gpu_seconds,
    CASE WHEN cost_usd_now.attempt_id IS NULL THEN a.cost_usd ELSE CAST(cost_usd_now.new_text AS double precision) END AS cost_usd,
    (SELECT count(*) FROM amendments WHERE amendments.attempt_id = a.attempt_id) AS amendment_count
FROM training_attempts a
LEFT JOIN newest termination_reason_now ON termination_reason_now.attempt_id = a.attempt_id AND termination_reason_now.field = 'termination_reason' AND termination_reason_now.place = 1
LEFT JOIN newest owner_now ON owner_now.attempt_id = a.attempt_id AND owner_now.field = 'owner' AND owner_now.place = 1
LEFT JOIN newest team_now ON team_now.attempt_id = a.attempt_id AND team_now.field = 'team' AND team_now.place = 1
LEFT JOIN newest gpu_seconds_now ON gpu_seconds_now.attempt_id = a.attempt_id AND gpu_seconds_now.field = 'gpu_seconds' AND gpu_seconds_now.place = 1
LEFT JOIN newest cost_usd_now ON cost_usd_now.attempt_id = a.attempt_id AND cost_usd_now.field = 'cost_usd' AND cost_usd_now.place = 1;

-- What each training run took, with its evaluations, diagnoses and rehearsals.
CREATE VIEW run_costs AS
SELECT r.run_id,
    r.cost_usd,
    r.gpu_seconds,
    r.wall_seconds,
    count(b.run_id) AS run_count_beside,
    sum(b.cost_usd) AS cost_usd_beside,
    coalesce(sum(b.gpu_seconds), 0.0) AS gpu_seconds_beside,
    coalesce(sum(b.wall_seconds), 0.0) AS wall_seconds_beside
FROM runs r LEFT JOIN runs b ON b.for_run_id = r.run_id
WHERE r.kind = 'train'
GROUP BY r.run_id, r.cost_usd, r.gpu_seconds, r.wall_seconds;

-- The tags of runs as they are now. Of a tag that was amended only the newest amendment counts.
CREATE VIEW run_tags AS
SELECT sealed.run_id AS run_id, sealed.name AS name, sealed.value AS value, sealed.attempt_id AS attempt_id
FROM tags sealed
WHERE NOT EXISTS (SELECT 1 FROM run_amendments amended WHERE amended.run_id = sealed.run_id AND amended.tag = sealed.name)
UNION ALL
SELECT amended.run_id, amended.tag, amended.new_text, NULL
FROM run_amendments amended
WHERE amended.tag IS NOT NULL AND amended.new_text IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM run_amendments later
    WHERE later.run_id = amended.run_id AND later.tag = amended.tag
    AND (later.at > amended.at OR (later.at = amended.at AND later.amendment_id > amended.amendment_id))
);

CREATE VIEW validation_sets AS
SELECT d.data_sha256,
    min(d.path) AS path,
    count(DISTINCT d.run_id) AS run_count,
    count(DISTINCT r.config_sha256) AS config_count,
    min(r.created_at) AS first_used_at,
    max(r.created_at) AS last_used_at
FROM run_data d JOIN runs r ON r.run_id = d.run_id
WHERE d.role = 'validation' AND r.kind = 'train' AND r.attempt_count > 0
GROUP BY d.data_sha256;
