-- Runs in the order of a value, or with a value in a range, are read from an index in that order, no further than a page goes.
DROP INDEX IF EXISTS metric_summaries_by_name;
CREATE INDEX IF NOT EXISTS metric_summaries_by_first ON metric_summaries (name, first_value, run_id);
CREATE INDEX IF NOT EXISTS metric_summaries_by_last ON metric_summaries (name, last_value, run_id);
CREATE INDEX IF NOT EXISTS metric_summaries_by_min ON metric_summaries (name, min_value, run_id);
CREATE INDEX IF NOT EXISTS metric_summaries_by_max ON metric_summaries (name, max_value, run_id);

DROP INDEX IF EXISTS parameters_by_name;
CREATE INDEX parameters_by_name ON parameters (name, value, run_id);

DROP INDEX IF EXISTS tags_by_name;
CREATE INDEX tags_by_name ON tags (name, value, run_id);

-- The values of the runs of a page.
DROP INDEX IF EXISTS metric_summaries_by_run_id;
CREATE INDEX metric_summaries_by_run_id ON metric_summaries (run_id, name);
CREATE INDEX IF NOT EXISTS parameters_by_run_id ON parameters (run_id, name);
CREATE INDEX IF NOT EXISTS tags_by_run_id ON tags (run_id, name);

-- The newest run comes first among equals.
CREATE INDEX IF NOT EXISTS runs_by_run_id ON runs (run_id, created_at);
CREATE INDEX IF NOT EXISTS runs_by_kind_name ON runs (kind, name, created_at DESC, run_id DESC);
CREATE INDEX IF NOT EXISTS runs_by_ended_at ON runs (kind, ended_at, created_at DESC, run_id DESC);
CREATE INDEX IF NOT EXISTS runs_by_wall_seconds ON runs (kind, wall_seconds, created_at DESC, run_id DESC);
CREATE INDEX IF NOT EXISTS runs_by_gpu_seconds ON runs (kind, gpu_seconds, created_at DESC, run_id DESC);
CREATE INDEX IF NOT EXISTS runs_by_cost_usd ON runs (kind, cost_usd, created_at DESC, run_id DESC);
