-- How far each column of a run's data was from what it was compared with before the launch.

CREATE TABLE drift_results (
    run_id text NOT NULL REFERENCES runs (run_id),
    data_set text NOT NULL,
    compared_with text NOT NULL CHECK (compared_with IN ('reference', 'last_good_run', 'training_set')),
    column_name text NOT NULL,
    reference text NOT NULL,
    reference_run_id text,
    reference_rows bigint NOT NULL,
    rows bigint NOT NULL,
    role text NOT NULL,
    test text,
    statistic double precision,
    threshold double precision,
    p_value double precision,
    missing_change double precision,
    verdict text NOT NULL CHECK (verdict IN ('pass', 'warn')),
    why text,
    at timestamptz NOT NULL,
    PRIMARY KEY (run_id, data_set, compared_with, column_name)
);

CREATE TRIGGER drift_results_append_only BEFORE UPDATE OR DELETE ON drift_results
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('drift_results is append-only');

CREATE TRIGGER drift_results_truncate BEFORE TRUNCATE ON drift_results
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('drift_results is append-only');
