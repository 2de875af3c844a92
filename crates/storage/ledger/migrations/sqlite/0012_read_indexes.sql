-- Pages of runs are read from indexes: a row of `runs` holds its plan, which may be long, before the columns that lists show.
CREATE INDEX IF NOT EXISTS runs_newest ON runs (kind, created_at, run_id, name, state, model_family, seed, started_at, ended_at, attempt_count, termination_reason, last_committed_step, cost_usd, gpu_seconds, wall_seconds);

DROP INDEX IF EXISTS runs_by_name_created_at;
CREATE INDEX IF NOT EXISTS runs_by_name ON runs (name, kind, created_at, run_id, state);

CREATE INDEX IF NOT EXISTS runs_by_inputs ON runs (config_sha256, kind, created_at, run_id, data_sha256, seed);

CREATE INDEX IF NOT EXISTS metric_summaries_by_name ON metric_summaries (name, run_id, attempt_id, first_value, last_value, min_value, max_value);

CREATE INDEX IF NOT EXISTS parameters_by_name ON parameters (name, run_id, attempt_id, value);

DROP INDEX tags_by_name;
CREATE INDEX tags_by_name ON tags (name, run_id, attempt_id, value);

-- With what is counted of the ends of attempts of a family.
DROP INDEX training_attempts_by_model_family_started_at;
CREATE INDEX training_attempts_by_model_family_started_at ON training_attempts (model_family, started_at, termination_reason, gpu_seconds, launcher, termination_domain, wall_seconds);

CREATE INDEX IF NOT EXISTS model_versions_by_run_id ON model_versions (run_id);

-- Every command asks first which evaluations still run.
CREATE INDEX IF NOT EXISTS evaluations_running ON evaluations (started_at, evaluation_id) WHERE state = 'running';
