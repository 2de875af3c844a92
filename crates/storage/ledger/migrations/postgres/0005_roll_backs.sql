
-- Where runs went back to, and which batches they skip since.

CREATE TABLE roll_backs (
    roll_back_id text PRIMARY KEY,
    run_id text NOT NULL REFERENCES runs (run_id),
    attempt_id text NOT NULL,
    rung text NOT NULL,
    at timestamptz NOT NULL,
    detector text,
    person text,
    first_step bigint,
    from_step bigint,
    to_step bigint,
    skip_first_batch bigint,
    skip_end_batch bigint,
    left_steps text,
    why text NOT NULL
);

CREATE INDEX roll_backs_by_run_id ON roll_backs (run_id, at);

CREATE TRIGGER roll_backs_append_only BEFORE UPDATE OR DELETE ON roll_backs
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('roll_backs is append-only');

CREATE TRIGGER roll_backs_truncate BEFORE TRUNCATE ON roll_backs
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('roll_backs is append-only');
