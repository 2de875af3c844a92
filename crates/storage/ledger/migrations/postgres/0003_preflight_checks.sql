-- What was checked before a run was launched.

CREATE TABLE preflight_checks (
    run_id text NOT NULL REFERENCES runs (run_id),
    check_name text NOT NULL,
    place bigint NOT NULL,
    verdict text NOT NULL CHECK (verdict IN ('pass', 'warn', 'block', 'not_run', 'not_applicable')),
    blocks boolean NOT NULL,
    seconds double precision,
    why text,
    skipped_why text,
    finding_count bigint NOT NULL,
    findings_json text,
    at timestamptz NOT NULL,
    PRIMARY KEY (run_id, check_name)
);

CREATE TRIGGER preflight_checks_append_only BEFORE UPDATE OR DELETE ON preflight_checks
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('preflight_checks is append-only');

CREATE TRIGGER preflight_checks_truncate BEFORE TRUNCATE ON preflight_checks
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('preflight_checks is append-only');
