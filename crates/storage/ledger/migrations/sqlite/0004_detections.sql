-- What detectors found while an attempt ran.

CREATE TABLE detections (
    detection_id TEXT PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    attempt_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    detector TEXT NOT NULL,
    severity TEXT NOT NULL CHECK (severity IN ('note', 'warn', 'critical')),
    policy TEXT NOT NULL,
    rank INTEGER NOT NULL,
    first_step INTEGER NOT NULL,
    step INTEGER NOT NULL,
    metric TEXT,
    value REAL,
    threshold REAL NOT NULL,
    batch_digest INTEGER,
    last_committed_step INTEGER,
    evidence TEXT NOT NULL,
    cause TEXT NOT NULL,
    advice TEXT NOT NULL
) STRICT;

CREATE INDEX detections_by_run_id ON detections (run_id, at);
CREATE INDEX detections_by_attempt_id ON detections (attempt_id, at);

CREATE TRIGGER detections_append_only_update BEFORE UPDATE ON detections
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: detections is append-only');
END;

CREATE TRIGGER detections_append_only_delete BEFORE DELETE ON detections
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: detections is append-only');
END;

CREATE TRIGGER detections_append_only_replace BEFORE INSERT ON detections
WHEN EXISTS (
    SELECT 1 FROM detections WHERE detection_id = NEW.detection_id
    AND (run_id, attempt_id, at, detector, severity, policy, rank, first_step, step, metric, value, threshold, batch_digest, last_committed_step, evidence, cause, advice)
        IS NOT (NEW.run_id, NEW.attempt_id, NEW.at, NEW.detector, NEW.severity, NEW.policy, NEW.rank, NEW.first_step, NEW.step, NEW.metric, NEW.value, NEW.threshold, NEW.batch_digest, NEW.last_committed_step, NEW.evidence, NEW.cause, NEW.advice)
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: detections is append-only');
END;
