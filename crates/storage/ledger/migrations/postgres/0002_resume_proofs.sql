-- Resume proofs, and runs that exist only for one.

ALTER TABLE runs ADD COLUMN kind text NOT NULL DEFAULT 'train' CHECK (kind IN ('train', 'one_batch', 'overfit', 'prove', 'evaluate'));

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

CREATE TRIGGER resume_proofs_append_only BEFORE UPDATE OR DELETE ON resume_proofs
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('resume_proofs is append-only');

CREATE TRIGGER resume_proofs_truncate BEFORE TRUNCATE ON resume_proofs
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('resume_proofs is append-only');

CREATE TRIGGER runs_kind_update BEFORE UPDATE OF kind ON runs
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('the kind of a run does not change');
