-- Resume proofs, and runs that exist only for one.

ALTER TABLE runs ADD COLUMN kind TEXT NOT NULL DEFAULT 'train' CHECK (kind IN ('train', 'one_batch', 'overfit', 'prove', 'evaluate'));

CREATE TABLE resume_proofs (
    proof_id TEXT NOT NULL,
    name TEXT NOT NULL,
    model_family TEXT,
    verdict TEXT NOT NULL CHECK (verdict IN ('equal', 'different', 'nondeterministic', 'not_proved', 'not_applicable')),
    why TEXT,
    differing_kinds TEXT,
    steps INTEGER NOT NULL,
    killed_at_step INTEGER,
    resumed_from_step INTEGER,
    config_sha256 TEXT NOT NULL,
    data_sha256 TEXT,
    seed INTEGER,
    git_commit TEXT,
    git_dirty INTEGER CHECK (git_dirty IN (0, 1)),
    git_diff_blake3 TEXT,
    environment_lock_sha256 TEXT,
    container_digest TEXT,
    control_run_id TEXT NOT NULL REFERENCES runs (run_id),
    repeated_run_id TEXT REFERENCES runs (run_id),
    resumed_run_id TEXT REFERENCES runs (run_id),
    control_state_digest TEXT,
    repeated_state_digest TEXT,
    resumed_state_digest TEXT,
    started_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    wall_seconds REAL NOT NULL,
    gpu_seconds REAL NOT NULL,
    cost_usd REAL,
    digests_json TEXT,
    PRIMARY KEY (proof_id),
    CHECK (steps >= 1)
) STRICT;

CREATE INDEX resume_proofs_by_config_sha256 ON resume_proofs (config_sha256, started_at);

CREATE TRIGGER resume_proofs_append_only_update BEFORE UPDATE ON resume_proofs
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: resume_proofs is append-only');
END;

CREATE TRIGGER resume_proofs_append_only_delete BEFORE DELETE ON resume_proofs
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: resume_proofs is append-only');
END;

CREATE TRIGGER resume_proofs_append_only_replace BEFORE INSERT ON resume_proofs
WHEN EXISTS (
    SELECT 1 FROM resume_proofs WHERE proof_id = NEW.proof_id
    AND (name, model_family, verdict, why, differing_kinds, steps, killed_at_step, resumed_from_step, config_sha256, data_sha256, seed, git_commit, git_dirty, git_diff_blake3, environment_lock_sha256, container_digest, control_run_id, repeated_run_id, resumed_run_id, control_state_digest, repeated_state_digest, resumed_state_digest, started_at, ended_at, wall_seconds, gpu_seconds, cost_usd, digests_json)
        IS NOT (NEW.name, NEW.model_family, NEW.verdict, NEW.why, NEW.differing_kinds, NEW.steps, NEW.killed_at_step, NEW.resumed_from_step, NEW.config_sha256, NEW.data_sha256, NEW.seed, NEW.git_commit, NEW.git_dirty, NEW.git_diff_blake3, NEW.environment_lock_sha256, NEW.container_digest, NEW.control_run_id, NEW.repeated_run_id, NEW.resumed_run_id, NEW.control_state_digest, NEW.repeated_state_digest, NEW.resumed_state_digest, NEW.started_at, NEW.ended_at, NEW.wall_seconds, NEW.gpu_seconds, NEW.cost_usd, NEW.digests_json)
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: resume_proofs is append-only');
END;

CREATE TRIGGER runs_kind_update BEFORE UPDATE OF kind ON runs
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the kind of a run does not change');
END;
