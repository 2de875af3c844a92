-- Tags and artifacts of an attempt, sealed with it.

CREATE TABLE tags (
    attempt_id text NOT NULL,
    run_id text NOT NULL REFERENCES runs (run_id),
    name text NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (attempt_id, name)
);

CREATE INDEX tags_by_name ON tags (name, value);

CREATE TABLE artifacts (
    attempt_id text NOT NULL,
    run_id text NOT NULL REFERENCES runs (run_id),
    name text NOT NULL,
    blake3 text NOT NULL,
    size_bytes bigint NOT NULL,
    step bigint,
    at timestamptz NOT NULL,
    PRIMARY KEY (attempt_id, name, blake3)
);

CREATE INDEX artifacts_by_run_id ON artifacts (run_id);

CREATE TRIGGER tags_sealed BEFORE INSERT OR UPDATE OR DELETE ON tags
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse_when_sealed();

CREATE TRIGGER tags_truncate BEFORE TRUNCATE ON tags
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('receipts are not deleted');

CREATE TRIGGER artifacts_sealed BEFORE INSERT OR UPDATE OR DELETE ON artifacts
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse_when_sealed();

CREATE TRIGGER artifacts_truncate BEFORE TRUNCATE ON artifacts
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('receipts are not deleted');
