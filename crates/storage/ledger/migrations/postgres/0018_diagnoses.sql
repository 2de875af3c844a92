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

CREATE TRIGGER diagnoses_append_only BEFORE UPDATE OR DELETE ON diagnoses
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('diagnoses is append-only');

CREATE TRIGGER diagnoses_truncate BEFORE TRUNCATE ON diagnoses
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('diagnoses is append-only');

ALTER TABLE runs DROP CONSTRAINT runs_kind_check;
ALTER TABLE runs ADD CONSTRAINT runs_kind_check CHECK (kind IN ('train', 'one_batch', 'overfit', 'prove', 'diagnose', 'evaluate'));

-- The first of its two constraints on this column is the list of kinds.
ALTER TABLE launches DROP CONSTRAINT launches_kind_check;
ALTER TABLE launches ADD CONSTRAINT launches_kind_check CHECK (kind IN ('train', 'one_batch', 'overfit', 'prove', 'diagnose', 'evaluate'));
