
-- Models: their versions, what happened to them, and what gates said of them.

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

CREATE TRIGGER models_delete BEFORE DELETE ON models
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('models are not deleted');

CREATE TRIGGER models_truncate BEFORE TRUNCATE ON models
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('models are not deleted');

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
    PRIMARY KEY (model, version)
);

CREATE TRIGGER model_versions_append_only BEFORE UPDATE OR DELETE ON model_versions
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('model_versions is append-only');

CREATE TRIGGER model_versions_truncate BEFORE TRUNCATE ON model_versions
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('model_versions is append-only');

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

CREATE TRIGGER model_changes_append_only BEFORE UPDATE OR DELETE ON model_changes
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('model_changes is append-only');

CREATE TRIGGER model_changes_truncate BEFORE TRUNCATE ON model_changes
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('model_changes is append-only');

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

CREATE TRIGGER gate_receipts_append_only BEFORE UPDATE OR DELETE ON gate_receipts
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('gate_receipts is append-only');

CREATE TRIGGER gate_receipts_truncate BEFORE TRUNCATE ON gate_receipts
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('gate_receipts is append-only');

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

CREATE TRIGGER gate_tests_append_only BEFORE UPDATE OR DELETE ON gate_tests
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('gate_tests is append-only');

CREATE TRIGGER gate_tests_truncate BEFORE TRUNCATE ON gate_tests
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('gate_tests is append-only');

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

CREATE TRIGGER approvals_append_only BEFORE UPDATE OR DELETE ON approvals
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('approvals is append-only');

CREATE TRIGGER approvals_truncate BEFORE TRUNCATE ON approvals
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('approvals is append-only');

CREATE INDEX model_versions_by_checkpoint_manifest_sha256 ON model_versions (checkpoint_manifest_sha256);

CREATE INDEX gate_receipts_by_evaluation_id ON gate_receipts (evaluation_id);

CREATE INDEX gate_tests_by_rule ON gate_tests (rule);

CREATE INDEX approvals_by_model ON approvals (model, version);
