-- Diagnoses of attempts, and runs that exist only for one.
CREATE TABLE diagnoses (
    diagnosis_run_id TEXT NOT NULL,
    attempt_id TEXT NOT NULL,
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    launch_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('numeric', 'throughput', 'hang')),
    why TEXT NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('found', 'not_reproduced', 'not_observed', 'incomplete')),
    finding TEXT NOT NULL,
    from_step INTEGER,
    until_step INTEGER NOT NULL,
    step INTEGER,
    batch INTEGER,
    facts_json TEXT,
    at INTEGER NOT NULL,
    wall_seconds REAL NOT NULL,
    gpu_seconds REAL NOT NULL,
    cost_usd REAL,
    PRIMARY KEY (diagnosis_run_id)
) STRICT;

CREATE INDEX diagnoses_by_run_id ON diagnoses (run_id, at);

CREATE TRIGGER diagnoses_append_only_update BEFORE UPDATE ON diagnoses
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: diagnoses is append-only');
END;

CREATE TRIGGER diagnoses_append_only_delete BEFORE DELETE ON diagnoses
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: diagnoses is append-only');
END;

CREATE TRIGGER diagnoses_append_only_replace BEFORE INSERT ON diagnoses
WHEN EXISTS (
    SELECT 1 FROM diagnoses WHERE diagnosis_run_id = NEW.diagnosis_run_id
    AND (attempt_id, run_id, launch_id, kind, why, verdict, finding, from_step, until_step, step, batch, facts_json, at, wall_seconds, gpu_seconds, cost_usd)
        IS NOT (NEW.attempt_id, NEW.run_id, NEW.launch_id, NEW.kind, NEW.why, NEW.verdict, NEW.finding, NEW.from_step, NEW.until_step, NEW.step, NEW.batch, NEW.facts_json, NEW.at, NEW.wall_seconds, NEW.gpu_seconds, NEW.cost_usd)
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: diagnoses is append-only');
END;

-- As in 0013: a longer list in a CHECK.
PRAGMA writable_schema = ON;

UPDATE sqlite_schema SET sql = replace(sql, '''prove'', ''evaluate''', '''prove'', ''diagnose'', ''evaluate''')
WHERE type = 'table' AND name IN ('runs', 'training_attempts', 'launches');

PRAGMA writable_schema = RESET;
