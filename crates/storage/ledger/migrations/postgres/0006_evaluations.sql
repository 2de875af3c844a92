-- Receipts of evaluations: what a checkpoint was judged by, what came out, and how often a task set was looked at.

ALTER TABLE evaluations ADD COLUMN origin text NOT NULL DEFAULT 'trackway';

ALTER TABLE evaluations ADD COLUMN step bigint;

ALTER TABLE evaluations ADD COLUMN launch_run_id text REFERENCES runs (run_id);

ALTER TABLE evaluations ADD COLUMN launch_attempt_id text;

ALTER TABLE evaluations ADD COLUMN launch_count bigint NOT NULL DEFAULT 0;

ALTER TABLE evaluations ADD COLUMN failure text;

ALTER TABLE evaluations ADD COLUMN seed bigint;

ALTER TABLE evaluations ADD COLUMN raw_outputs_sha256 text;

ALTER TABLE evaluations ADD COLUMN raw_outputs_rows bigint;

ALTER TABLE evaluations ADD COLUMN environment_lock_sha256 text;

ALTER TABLE evaluations ADD COLUMN container_digest text;

ALTER TABLE evaluations ADD COLUMN baseline_evaluation_id text;

ALTER TABLE evaluations ADD COLUMN spec_json text;

ALTER TABLE evaluations ADD COLUMN fairness_json text;

ALTER TABLE evaluations ADD COLUMN comparison_json text;

ALTER TABLE evaluations ADD COLUMN assessment_json text;

ALTER TABLE evaluations ADD COLUMN notes_json text;

ALTER TABLE evaluations ADD COLUMN receipt_sha256 text;

CREATE TABLE evaluation_metrics (
    evaluation_id text NOT NULL REFERENCES evaluations (evaluation_id),
    slice text NOT NULL,
    metric text NOT NULL,
    value double precision,
    low double precision,
    high double precision,
    support bigint,
    method text NOT NULL CHECK (method IN ('analytic', 'bootstrap', 'clustered', 'none')),
    PRIMARY KEY (evaluation_id, slice, metric)
);

CREATE INDEX evaluation_metrics_by_metric ON evaluation_metrics (metric, slice);

CREATE TABLE evaluation_slices (
    evaluation_id text NOT NULL REFERENCES evaluations (evaluation_id),
    slice text NOT NULL,
    predicate text NOT NULL,
    support bigint NOT NULL,
    verdict text,
    PRIMARY KEY (evaluation_id, slice)
);

CREATE TABLE test_set_uses (
    evaluation_id text NOT NULL REFERENCES evaluations (evaluation_id),
    task_set_sha256 text NOT NULL,
    task_set_version text,
    run_id text NOT NULL REFERENCES runs (run_id),
    checkpoint_manifest_sha256 text NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (evaluation_id)
);

CREATE INDEX test_set_uses_by_task_set_sha256 ON test_set_uses (task_set_sha256);

CREATE VIEW test_sets AS
SELECT task_set_sha256,
    max(task_set_version) AS task_set_version,
    count(*) AS use_count,
    count(DISTINCT checkpoint_manifest_sha256) AS checkpoint_count,
    count(DISTINCT run_id) AS run_count,
    min(at) AS first_used_at,
    max(at) AS last_used_at
FROM test_set_uses GROUP BY task_set_sha256;

CREATE FUNCTION trackway_refuse_when_evaluated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM evaluations WHERE evaluation_id = NEW.evaluation_id AND state = 'running') THEN
        RAISE EXCEPTION 'trackway integrity: the evaluation has ended, or there is none' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END;
$$;

CREATE TRIGGER evaluation_metrics_append_only BEFORE UPDATE OR DELETE ON evaluation_metrics
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('evaluation_metrics is append-only');

CREATE TRIGGER evaluation_metrics_truncate BEFORE TRUNCATE ON evaluation_metrics
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('evaluation_metrics is append-only');

CREATE TRIGGER evaluation_metrics_insert BEFORE INSERT ON evaluation_metrics
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse_when_evaluated();

CREATE TRIGGER evaluation_slices_append_only BEFORE UPDATE OR DELETE ON evaluation_slices
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('evaluation_slices is append-only');

CREATE TRIGGER evaluation_slices_truncate BEFORE TRUNCATE ON evaluation_slices
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('evaluation_slices is append-only');

CREATE TRIGGER evaluation_slices_insert BEFORE INSERT ON evaluation_slices
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse_when_evaluated();

CREATE TRIGGER test_set_uses_append_only BEFORE UPDATE OR DELETE ON test_set_uses
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('test_set_uses is append-only');

CREATE TRIGGER test_set_uses_truncate BEFORE TRUNCATE ON test_set_uses
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('test_set_uses is append-only');
