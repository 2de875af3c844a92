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
    advice text NOT NULL
);

CREATE INDEX detections_by_run_id ON detections (run_id, at);
CREATE INDEX detections_by_attempt_id ON detections (attempt_id, at);

CREATE TRIGGER detections_append_only BEFORE UPDATE OR DELETE ON detections
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('detections is append-only');

CREATE TRIGGER detections_truncate BEFORE TRUNCATE ON detections
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('detections is append-only');
