-- Receipts of evaluations: what a checkpoint was judged by, what came out, and how often a task set was looked at.

ALTER TABLE evaluations ADD COLUMN origin TEXT NOT NULL DEFAULT 'trackway';

ALTER TABLE evaluations ADD COLUMN step INTEGER;

ALTER TABLE evaluations ADD COLUMN launch_run_id TEXT REFERENCES runs (run_id);

ALTER TABLE evaluations ADD COLUMN launch_attempt_id TEXT;

ALTER TABLE evaluations ADD COLUMN launch_count INTEGER NOT NULL DEFAULT 0;

ALTER TABLE evaluations ADD COLUMN failure TEXT;

ALTER TABLE evaluations ADD COLUMN seed INTEGER;

ALTER TABLE evaluations ADD COLUMN raw_outputs_sha256 TEXT;

ALTER TABLE evaluations ADD COLUMN raw_outputs_rows INTEGER;

ALTER TABLE evaluations ADD COLUMN environment_lock_sha256 TEXT;

ALTER TABLE evaluations ADD COLUMN container_digest TEXT;

ALTER TABLE evaluations ADD COLUMN baseline_evaluation_id TEXT;

ALTER TABLE evaluations ADD COLUMN spec_json TEXT;

ALTER TABLE evaluations ADD COLUMN fairness_json TEXT;

ALTER TABLE evaluations ADD COLUMN comparison_json TEXT;

ALTER TABLE evaluations ADD COLUMN assessment_json TEXT;

ALTER TABLE evaluations ADD COLUMN notes_json TEXT;

ALTER TABLE evaluations ADD COLUMN receipt_sha256 TEXT;

CREATE TABLE evaluation_metrics (
    evaluation_id TEXT NOT NULL REFERENCES evaluations (evaluation_id),
    slice TEXT NOT NULL,
    metric TEXT NOT NULL,
    value REAL,
    low REAL,
    high REAL,
    support INTEGER,
    method TEXT NOT NULL CHECK (method IN ('analytic', 'bootstrap', 'clustered', 'none')),
    PRIMARY KEY (evaluation_id, slice, metric)
) STRICT;

CREATE INDEX evaluation_metrics_by_metric ON evaluation_metrics (metric, slice);

CREATE TABLE evaluation_slices (
    evaluation_id TEXT NOT NULL REFERENCES evaluations (evaluation_id),
    slice TEXT NOT NULL,
    predicate TEXT NOT NULL,
    support INTEGER NOT NULL,
    verdict TEXT,
    PRIMARY KEY (evaluation_id, slice)
) STRICT;

CREATE TABLE test_set_uses (
    evaluation_id TEXT NOT NULL REFERENCES evaluations (evaluation_id),
    task_set_sha256 TEXT NOT NULL,
    task_set_version TEXT,
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    checkpoint_manifest_sha256 TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (evaluation_id)
) STRICT;

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

CREATE TRIGGER evaluation_metrics_update BEFORE UPDATE ON evaluation_metrics
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: evaluation_metrics is append-only');
END;

CREATE TRIGGER evaluation_metrics_delete BEFORE DELETE ON evaluation_metrics
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: evaluation_metrics is append-only');
END;

CREATE TRIGGER evaluation_metrics_insert BEFORE INSERT ON evaluation_metrics
WHEN NOT EXISTS (SELECT 1 FROM evaluations WHERE evaluation_id = NEW.evaluation_id AND state = 'running')
    OR EXISTS (SELECT 1 FROM evaluation_metrics WHERE evaluation_id = NEW.evaluation_id AND slice = NEW.slice AND metric = NEW.metric)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the evaluation has ended, or evaluation_metrics would change');
END;

CREATE TRIGGER evaluation_slices_update BEFORE UPDATE ON evaluation_slices
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: evaluation_slices is append-only');
END;

CREATE TRIGGER evaluation_slices_delete BEFORE DELETE ON evaluation_slices
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: evaluation_slices is append-only');
END;

CREATE TRIGGER evaluation_slices_insert BEFORE INSERT ON evaluation_slices
WHEN NOT EXISTS (SELECT 1 FROM evaluations WHERE evaluation_id = NEW.evaluation_id AND state = 'running')
    OR EXISTS (SELECT 1 FROM evaluation_slices WHERE evaluation_id = NEW.evaluation_id AND slice = NEW.slice)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the evaluation has ended, or evaluation_slices would change');
END;

CREATE TRIGGER test_set_uses_update BEFORE UPDATE ON test_set_uses
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: test_set_uses is append-only');
END;

CREATE TRIGGER test_set_uses_delete BEFORE DELETE ON test_set_uses
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: test_set_uses is append-only');
END;

CREATE TRIGGER test_set_uses_replace BEFORE INSERT ON test_set_uses
WHEN EXISTS (SELECT 1 FROM test_set_uses WHERE evaluation_id = NEW.evaluation_id)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: test_set_uses is append-only');
END;
