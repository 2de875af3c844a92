
-- Where runs went back to, and which batches they skip since.

CREATE TABLE roll_backs (
    roll_back_id TEXT PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    attempt_id TEXT NOT NULL,
    rung TEXT NOT NULL,
    at INTEGER NOT NULL,
    detector TEXT,
    person TEXT,
    first_step INTEGER,
    from_step INTEGER,
    to_step INTEGER,
    skip_first_batch INTEGER,
    skip_end_batch INTEGER,
    left_steps TEXT,
    why TEXT NOT NULL
) STRICT;

CREATE INDEX roll_backs_by_run_id ON roll_backs (run_id, at);

CREATE TRIGGER roll_backs_append_only_update BEFORE UPDATE ON roll_backs
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: roll_backs is append-only');
END;

CREATE TRIGGER roll_backs_append_only_delete BEFORE DELETE ON roll_backs
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: roll_backs is append-only');
END;

CREATE TRIGGER roll_backs_append_only_replace BEFORE INSERT ON roll_backs
WHEN EXISTS (
    SELECT 1 FROM roll_backs WHERE roll_back_id = NEW.roll_back_id
    AND (run_id, attempt_id, rung, at, detector, person, first_step, from_step, to_step, skip_first_batch, skip_end_batch, left_steps, why)
        IS NOT (NEW.run_id, NEW.attempt_id, NEW.rung, NEW.at, NEW.detector, NEW.person, NEW.first_step, NEW.from_step, NEW.to_step, NEW.skip_first_batch, NEW.skip_end_batch, NEW.left_steps, NEW.why)
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: roll_backs is append-only');
END;
