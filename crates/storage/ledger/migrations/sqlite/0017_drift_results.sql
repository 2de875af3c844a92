-- How far each column of a run's data was from what it was compared with before the launch.

CREATE TABLE drift_results (
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    data_set TEXT NOT NULL,
    compared_with TEXT NOT NULL CHECK (compared_with IN ('reference', 'last_good_run', 'training_set')),
    column_name TEXT NOT NULL,
    reference TEXT NOT NULL,
    reference_run_id TEXT,
    reference_rows INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    role TEXT NOT NULL,
    test TEXT,
    statistic REAL,
    threshold REAL,
    p_value REAL,
    missing_change REAL,
    verdict TEXT NOT NULL CHECK (verdict IN ('pass', 'warn')),
    why TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (run_id, data_set, compared_with, column_name)
) STRICT;

CREATE TRIGGER drift_results_append_only_update BEFORE UPDATE ON drift_results
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: drift_results is append-only');
END;

CREATE TRIGGER drift_results_append_only_delete BEFORE DELETE ON drift_results
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: drift_results is append-only');
END;

CREATE TRIGGER drift_results_append_only_replace BEFORE INSERT ON drift_results
WHEN EXISTS (
    SELECT 1 FROM drift_results WHERE run_id = NEW.run_id AND data_set = NEW.data_set AND compared_with = NEW.compared_with AND column_name = NEW.column_name
    AND (reference, reference_run_id, reference_rows, rows, role, test, statistic, threshold, p_value, missing_change, verdict, why, at)
        IS NOT (NEW.reference, NEW.reference_run_id, NEW.reference_rows, NEW.rows, NEW.role, NEW.test, NEW.statistic, NEW.threshold, NEW.p_value, NEW.missing_change, NEW.verdict, NEW.why, NEW.at)
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: drift_results is append-only');
END;
