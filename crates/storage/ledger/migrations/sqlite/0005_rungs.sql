-- The rungs of a ladder; and a decision that leads to the next one.

CREATE TABLE rungs (
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    rung TEXT NOT NULL,
    fraction REAL NOT NULL,
    place INTEGER NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('open', 'promoted', 'rejected', 'completed')),
    attempt_count INTEGER NOT NULL,
    last_attempt_id TEXT NOT NULL,
    last_step INTEGER,
    wall_seconds REAL NOT NULL,
    gpu_seconds REAL NOT NULL,
    cost_usd REAL,
    warm_start_step INTEGER,
    rule TEXT,
    why TEXT,
    values_json TEXT,
    metrics_json TEXT,
    PRIMARY KEY (run_id, rung)
) STRICT;

CREATE TRIGGER rungs_verdict_update BEFORE UPDATE ON rungs
WHEN OLD.verdict <> 'open' AND NEW.verdict <> OLD.verdict
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the verdict of a rung does not change');
END;

CREATE TRIGGER rungs_verdict_replace BEFORE INSERT ON rungs
WHEN EXISTS (
    SELECT 1 FROM rungs WHERE run_id = NEW.run_id AND rung = NEW.rung
    AND verdict <> 'open' AND NEW.verdict <> verdict
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the verdict of a rung does not change');
END;

CREATE TRIGGER rungs_delete BEFORE DELETE ON rungs
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: rungs are not deleted');
END;

-- SQLite changes no CHECK: the table is created again, with its rows and its rules.

ALTER TABLE retries RENAME TO retries_of_version_4;

DROP INDEX retries_by_run_id;

CREATE TABLE retries (
    attempt_id TEXT NOT NULL,
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    at INTEGER NOT NULL,
    decision TEXT NOT NULL CHECK (decision IN ('retry', 'promote', 'stop')),
    rule TEXT NOT NULL,
    why TEXT NOT NULL,
    delay_seconds REAL,
    budget_name TEXT,
    budget_spent REAL,
    budget_limit REAL,
    changes_json TEXT,
    next_attempt_id TEXT,
    PRIMARY KEY (attempt_id)
) STRICT;

CREATE INDEX retries_by_run_id ON retries (run_id);

INSERT INTO retries (attempt_id, run_id, at, decision, rule, why, delay_seconds, budget_name, budget_spent, budget_limit, changes_json, next_attempt_id)
SELECT attempt_id, run_id, at, decision, rule, why, delay_seconds, budget_name, budget_spent, budget_limit, changes_json, next_attempt_id FROM retries_of_version_4;

DROP TABLE retries_of_version_4;

CREATE TRIGGER retries_append_only_update BEFORE UPDATE OF attempt_id, run_id, at, decision, rule, why, delay_seconds, budget_name, budget_spent, budget_limit, changes_json ON retries
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: retries is append-only');
END;

CREATE TRIGGER retries_next_attempt_once BEFORE UPDATE OF next_attempt_id ON retries
WHEN OLD.next_attempt_id IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the attempt that followed is already known');
END;

CREATE TRIGGER retries_append_only_delete BEFORE DELETE ON retries
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: retries is append-only');
END;

CREATE TRIGGER retries_append_only_replace BEFORE INSERT ON retries
WHEN EXISTS (
    SELECT 1 FROM retries WHERE attempt_id = NEW.attempt_id
    AND (run_id, at, decision, rule, why, delay_seconds, budget_name, budget_spent, budget_limit, changes_json)
        IS NOT (NEW.run_id, NEW.at, NEW.decision, NEW.rule, NEW.why, NEW.delay_seconds, NEW.budget_name, NEW.budget_spent, NEW.budget_limit, NEW.changes_json)
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: retries is append-only');
END;
