-- Pages of runs and the values of a name are read from indexes. Other than in SQLite, long texts are stored apart from their rows and must
-- not be in an index.
CREATE INDEX IF NOT EXISTS runs_newest ON runs (kind, created_at, run_id);

DROP INDEX IF EXISTS runs_by_name_created_at;
CREATE INDEX IF NOT EXISTS runs_by_name ON runs (name, kind, created_at, run_id);

CREATE INDEX IF NOT EXISTS runs_by_inputs ON runs (config_sha256, kind, created_at, run_id, data_sha256, seed);

CREATE INDEX IF NOT EXISTS metric_summaries_by_name ON metric_summaries (name, run_id, attempt_id) INCLUDE (first_value, last_value, min_value, max_value);

CREATE INDEX IF NOT EXISTS parameters_by_name ON parameters (name, run_id, attempt_id);

DROP INDEX tags_by_name;
CREATE INDEX tags_by_name ON tags (name, run_id, attempt_id);

CREATE INDEX IF NOT EXISTS model_versions_by_run_id ON model_versions (run_id);

-- Every command asks first which evaluations still run.
CREATE INDEX IF NOT EXISTS evaluations_running ON evaluations (started_at, evaluation_id) WHERE state = 'running';
