-- What was checked before a run was launched.

CREATE TABLE preflight_checks (
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    check_name TEXT NOT NULL,
    place INTEGER NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('pass', 'warn', 'block', 'not_run', 'not_applicable')),
    blocks INTEGER NOT NULL CHECK (blocks IN (0, 1)),
    seconds REAL,
    why TEXT,
    skipped_why TEXT,
    finding_count INTEGER NOT NULL,
    findings_json TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (run_id, check_name)
) STRICT;

CREATE TRIGGER preflight_checks_append_only_update BEFORE UPDATE ON preflight_checks
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: preflight_checks is append-only');
END;

CREATE TRIGGER preflight_checks_append_only_delete BEFORE DELETE ON preflight_checks
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: preflight_checks is append-only');
END;

CREATE TRIGGER preflight_checks_append_only_replace BEFORE INSERT ON preflight_checks
WHEN EXISTS (
    SELECT 1 FROM preflight_checks WHERE run_id = NEW.run_id AND check_name = NEW.check_name
    AND (place, verdict, blocks, seconds, why, skipped_why, finding_count, findings_json, at)
        IS NOT (NEW.place, NEW.verdict, NEW.blocks, NEW.seconds, NEW.why, NEW.skipped_why, NEW.finding_count, NEW.findings_json, NEW.at)
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: preflight_checks is append-only');
END;
