-- The name of a further test set of a run file; null: the one of `[evaluate]` itself.
ALTER TABLE evaluations ADD COLUMN test_set TEXT;

-- The run whose weights an attempt started with; null: its own.
ALTER TABLE training_attempts ADD COLUMN warm_start_run_id TEXT;

ALTER TABLE launches ADD COLUMN warm_start_run_id TEXT;

-- The training run that a run of another kind evaluates, diagnoses or rehearsed.
ALTER TABLE runs ADD COLUMN for_run_id TEXT;

CREATE INDEX runs_by_for_run_id ON runs (for_run_id);

-- What each training run took, with its evaluations, diagnoses and rehearsals.
CREATE VIEW run_costs AS
SELECT r.run_id,
    r.cost_usd,
    r.gpu_seconds,
    r.wall_seconds,
    count(b.run_id) AS run_count_beside,
    sum(b.cost_usd) AS cost_usd_beside,
    coalesce(sum(b.gpu_seconds), 0.0) AS gpu_seconds_beside,
    coalesce(sum(b.wall_seconds), 0.0) AS wall_seconds_beside
FROM runs r LEFT JOIN runs b ON b.for_run_id = r.run_id
WHERE r.kind = 'train'
GROUP BY r.run_id, r.cost_usd, r.gpu_seconds, r.wall_seconds;
