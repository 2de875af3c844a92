-- Where in the data a detection was, and what the processes did when the run stood still.

ALTER TABLE detections ADD COLUMN first_batch INTEGER;
ALTER TABLE detections ADD COLUMN last_batch INTEGER;
ALTER TABLE detections ADD COLUMN data_epoch INTEGER;
ALTER TABLE detections ADD COLUMN stacks_path TEXT;

DROP TRIGGER detections_append_only_replace;

CREATE TRIGGER detections_append_only_replace BEFORE INSERT ON detections
WHEN EXISTS (
    SELECT 1 FROM detections WHERE detection_id = NEW.detection_id
    AND (run_id, attempt_id, at, detector, severity, policy, rank, first_step, step, metric, value, threshold, batch_digest, last_committed_step, evidence, cause, advice, first_batch, last_batch, data_epoch, stacks_path)
        IS NOT (NEW.run_id, NEW.attempt_id, NEW.at, NEW.detector, NEW.severity, NEW.policy, NEW.rank, NEW.first_step, NEW.step, NEW.metric, NEW.value, NEW.threshold, NEW.batch_digest, NEW.last_committed_step, NEW.evidence, NEW.cause, NEW.advice, NEW.first_batch, NEW.last_batch, NEW.data_epoch, NEW.stacks_path)
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: detections is append-only');
END;
