
-- Models: their versions, what happened to them, and what gates said of them.

-- The present state of each model, computed from its changes.
CREATE TABLE models (
    model TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    change_number INTEGER NOT NULL,
    version_count INTEGER NOT NULL,
    production_version INTEGER,
    production_since INTEGER,
    stages_json TEXT NOT NULL,
    aliases_json TEXT NOT NULL,
    policy_json TEXT NOT NULL,
    PRIMARY KEY (model)
) STRICT;

CREATE TRIGGER models_delete BEFORE DELETE ON models
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: models are not deleted');
END;

-- Versions of models: exactly these weights, and where they came from.
CREATE TABLE model_versions (
    model TEXT NOT NULL,
    version INTEGER NOT NULL,
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    attempt_id TEXT,
    rung TEXT NOT NULL,
    step INTEGER,
    object_prefix TEXT NOT NULL,
    checkpoint_manifest_sha256 TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    lineage_sha256 TEXT NOT NULL,
    config_sha256 TEXT NOT NULL,
    code_commit TEXT,
    environment_sha256 TEXT,
    container_digest TEXT,
    data_json TEXT NOT NULL,
    signature_json TEXT,
    description TEXT,
    registered_at INTEGER NOT NULL,
    registered_by TEXT,
    PRIMARY KEY (model, version)
) STRICT;

CREATE TRIGGER model_versions_append_only_update BEFORE UPDATE ON model_versions
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: model_versions is append-only');
END;

CREATE TRIGGER model_versions_append_only_delete BEFORE DELETE ON model_versions
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: model_versions is append-only');
END;

CREATE TRIGGER model_versions_append_only_replace BEFORE INSERT ON model_versions
WHEN EXISTS (
    SELECT 1 FROM model_versions WHERE model = NEW.model AND version = NEW.version
    AND (run_id, attempt_id, rung, step, object_prefix, checkpoint_manifest_sha256, size_bytes, lineage_sha256, config_sha256, code_commit, environment_sha256, container_digest, data_json, signature_json, description, registered_at, registered_by)
        IS NOT (NEW.run_id, NEW.attempt_id, NEW.rung, NEW.step, NEW.object_prefix, NEW.checkpoint_manifest_sha256, NEW.size_bytes, NEW.lineage_sha256, NEW.config_sha256, NEW.code_commit, NEW.environment_sha256, NEW.container_digest, NEW.data_json, NEW.signature_json, NEW.description, NEW.registered_at, NEW.registered_by)
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: model_versions is append-only');
END;

-- What happened to models. The state of a model follows from these rows alone.
CREATE TABLE model_changes (
    model TEXT NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('register', 'promote', 'roll_back', 'set_alias', 'drop_alias', 'policy')),
    version INTEGER,
    stage TEXT CHECK (stage IN ('candidate', 'staging', 'production', 'archived')),
    alias TEXT,
    was_version INTEGER,
    gate_receipt_id TEXT,
    approvals_json TEXT,
    policy_json TEXT,
    person TEXT,
    why TEXT,
    PRIMARY KEY (model, number)
) STRICT;

CREATE TRIGGER model_changes_append_only_update BEFORE UPDATE ON model_changes
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: model_changes is append-only');
END;

CREATE TRIGGER model_changes_append_only_delete BEFORE DELETE ON model_changes
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: model_changes is append-only');
END;

CREATE TRIGGER model_changes_append_only_replace BEFORE INSERT ON model_changes
WHEN EXISTS (
    SELECT 1 FROM model_changes WHERE model = NEW.model AND number = NEW.number
    AND (at, kind, version, stage, alias, was_version, gate_receipt_id, approvals_json, policy_json, person, why)
        IS NOT (NEW.at, NEW.kind, NEW.version, NEW.stage, NEW.alias, NEW.was_version, NEW.gate_receipt_id, NEW.approvals_json, NEW.policy_json, NEW.person, NEW.why)
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: model_changes is append-only');
END;

-- What gates said of an evaluation, named by the digest of what they said.
CREATE TABLE gate_receipts (
    gate_receipt_id TEXT NOT NULL,
    evaluation_id TEXT NOT NULL,
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    checkpoint_manifest_sha256 TEXT NOT NULL,
    baseline_evaluation_id TEXT,
    baseline_manifest_sha256 TEXT,
    compares INTEGER NOT NULL CHECK (compares IN (0, 1)),
    verdict TEXT NOT NULL CHECK (verdict IN ('fail', 'inconclusive', 'pass')),
    gates_json TEXT NOT NULL,
    evidence_json TEXT NOT NULL,
    judged_at INTEGER NOT NULL,
    person TEXT,
    PRIMARY KEY (gate_receipt_id)
) STRICT;

CREATE TRIGGER gate_receipts_append_only_update BEFORE UPDATE ON gate_receipts
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: gate_receipts is append-only');
END;

CREATE TRIGGER gate_receipts_append_only_delete BEFORE DELETE ON gate_receipts
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: gate_receipts is append-only');
END;

CREATE TRIGGER gate_receipts_append_only_replace BEFORE INSERT ON gate_receipts
WHEN EXISTS (
    SELECT 1 FROM gate_receipts WHERE gate_receipt_id = NEW.gate_receipt_id
    AND (evaluation_id, run_id, checkpoint_manifest_sha256, baseline_evaluation_id, baseline_manifest_sha256, compares, verdict, gates_json, evidence_json, judged_at, person)
        IS NOT (NEW.evaluation_id, NEW.run_id, NEW.checkpoint_manifest_sha256, NEW.baseline_evaluation_id, NEW.baseline_manifest_sha256, NEW.compares, NEW.verdict, NEW.gates_json, NEW.evidence_json, NEW.judged_at, NEW.person)
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: gate_receipts is append-only');
END;

-- What gates said of models that are known to be bad.
CREATE TABLE gate_tests (
    gate_test_id TEXT NOT NULL,
    rule TEXT NOT NULL,
    fixture TEXT NOT NULL,
    fixture_sha256 TEXT NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('fail', 'inconclusive', 'pass')),
    why TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (gate_test_id)
) STRICT;

CREATE TRIGGER gate_tests_append_only_update BEFORE UPDATE ON gate_tests
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: gate_tests is append-only');
END;

CREATE TRIGGER gate_tests_append_only_delete BEFORE DELETE ON gate_tests
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: gate_tests is append-only');
END;

CREATE TRIGGER gate_tests_append_only_replace BEFORE INSERT ON gate_tests
WHEN EXISTS (
    SELECT 1 FROM gate_tests WHERE gate_test_id = NEW.gate_test_id
    AND (rule, fixture, fixture_sha256, verdict, why, at)
        IS NOT (NEW.rule, NEW.fixture, NEW.fixture_sha256, NEW.verdict, NEW.why, NEW.at)
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: gate_tests is append-only');
END;

-- Who approved which version with which evidence.
CREATE TABLE approvals (
    approval_id TEXT NOT NULL,
    model TEXT NOT NULL,
    version INTEGER NOT NULL,
    digest TEXT NOT NULL,
    gate_receipt_id TEXT NOT NULL,
    approver TEXT NOT NULL,
    at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    why TEXT,
    PRIMARY KEY (approval_id)
) STRICT;

CREATE TRIGGER approvals_append_only_update BEFORE UPDATE ON approvals
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: approvals is append-only');
END;

CREATE TRIGGER approvals_append_only_delete BEFORE DELETE ON approvals
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: approvals is append-only');
END;

CREATE TRIGGER approvals_append_only_replace BEFORE INSERT ON approvals
WHEN EXISTS (
    SELECT 1 FROM approvals WHERE approval_id = NEW.approval_id
    AND (model, version, digest, gate_receipt_id, approver, at, expires_at, why)
        IS NOT (NEW.model, NEW.version, NEW.digest, NEW.gate_receipt_id, NEW.approver, NEW.at, NEW.expires_at, NEW.why)
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: approvals is append-only');
END;

CREATE INDEX model_versions_by_checkpoint_manifest_sha256 ON model_versions (checkpoint_manifest_sha256);

CREATE INDEX gate_receipts_by_evaluation_id ON gate_receipts (evaluation_id);

CREATE INDEX gate_tests_by_rule ON gate_tests (rule);

CREATE INDEX approvals_by_model ON approvals (model, version);
