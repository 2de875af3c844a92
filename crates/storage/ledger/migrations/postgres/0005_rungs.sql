-- The rungs of a ladder; and a decision that leads to the next one.

CREATE TABLE rungs (
    run_id text NOT NULL REFERENCES runs (run_id),
    rung text NOT NULL,
    fraction double precision NOT NULL,
    place bigint NOT NULL,
    verdict text NOT NULL CHECK (verdict IN ('open', 'promoted', 'rejected', 'completed')),
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
    PRIMARY KEY (run_id, rung)
);

CREATE TRIGGER rungs_verdict_update BEFORE UPDATE ON rungs
    FOR EACH ROW WHEN (OLD.verdict <> 'open' AND NEW.verdict <> OLD.verdict)
    EXECUTE FUNCTION trackway_refuse('the verdict of a rung does not change');

CREATE TRIGGER rungs_delete BEFORE DELETE ON rungs
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('rungs are not deleted');

CREATE TRIGGER rungs_truncate BEFORE TRUNCATE ON rungs
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('rungs are not deleted');

ALTER TABLE retries DROP CONSTRAINT retries_decision_check;

ALTER TABLE retries ADD CONSTRAINT retries_decision_check CHECK (decision IN ('retry', 'promote', 'stop'));
