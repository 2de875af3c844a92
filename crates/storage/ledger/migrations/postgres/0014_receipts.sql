-- What the attempt really took of what it was given: null where nothing shows it.
ALTER TABLE training_attempts ADD COLUMN first_step_at timestamptz;

ALTER TABLE training_attempts ADD COLUMN recovery_seconds double precision;

ALTER TABLE training_attempts ADD COLUMN new_committed_steps bigint;

ALTER TABLE training_attempts ADD COLUMN gpu_hours_per_committed_step double precision;

ALTER TABLE training_attempts ADD COLUMN seed_seen bigint;

ALTER TABLE training_attempts ADD COLUMN rung_rows bigint;

ALTER TABLE training_attempts ADD COLUMN rung_rows_total bigint;

ALTER TABLE training_attempts ADD COLUMN skip_batches text;

ALTER TABLE training_attempts ADD COLUMN skipped_batch_count bigint;

ALTER TABLE training_attempts ADD COLUMN warm_start_rung text;

ALTER TABLE training_attempts ADD COLUMN warm_start_step bigint;

ALTER TABLE training_attempts ADD COLUMN warm_start_manifest_sha256 text;

ALTER TABLE launches ADD COLUMN first_step_at timestamptz;

ALTER TABLE launches ADD COLUMN recovery_seconds double precision;

ALTER TABLE launches ADD COLUMN new_committed_steps bigint;

ALTER TABLE launches ADD COLUMN gpu_hours_per_committed_step double precision;

ALTER TABLE launches ADD COLUMN seed_seen bigint;

ALTER TABLE launches ADD COLUMN rung_rows bigint;

ALTER TABLE launches ADD COLUMN rung_rows_total bigint;

ALTER TABLE launches ADD COLUMN skip_batches text;

ALTER TABLE launches ADD COLUMN skipped_batch_count bigint;

ALTER TABLE launches ADD COLUMN warm_start_rung text;

ALTER TABLE launches ADD COLUMN warm_start_step bigint;

ALTER TABLE launches ADD COLUMN warm_start_manifest_sha256 text;

-- What the log of a checkpoint says of it beyond its state.
ALTER TABLE checkpoints ADD COLUMN why text;

ALTER TABLE checkpoints ADD COLUMN pins text;

ALTER TABLE checkpoints ADD COLUMN uploaded_to text;

ALTER TABLE checkpoints ADD COLUMN uploaded_at timestamptz;

-- The rows of a rung, as counted; and a verdict where nothing counted them.
ALTER TABLE rungs ADD COLUMN rows bigint;

ALTER TABLE rungs ADD COLUMN rows_total bigint;

ALTER TABLE rungs DROP CONSTRAINT rungs_verdict_check;
ALTER TABLE rungs ADD CONSTRAINT rungs_verdict_check CHECK (verdict IN ('open', 'promoted', 'rejected', 'not_proved', 'completed'));

-- The receipts as they are known now: with the newest amendment of what people sum over.
CREATE VIEW amended_attempts AS
WITH newest AS (
    SELECT attempt_id, field, new_text,
        row_number() OVER (PARTITION BY attempt_id, field ORDER BY at DESC, amendment_id DESC) AS place
    FROM amendments
)
SELECT a.attempt_id, a.run_id, a.attempt_number, a.rung, a.ended_at,
    CASE WHEN termination_reason_now.attempt_id IS NULL THEN a.termination_reason ELSE termination_reason_now.new_text END AS termination_reason,
    CASE WHEN owner_now.attempt_id IS NULL THEN a.owner ELSE owner_now.new_text END AS owner,
    CASE WHEN team_now.attempt_id IS NULL THEN a.team ELSE team_now.new_text END AS team,
    CASE WHEN gpu_seconds_now.attempt_id IS NULL THEN a.gpu_seconds ELSE CAST(gpu_seconds_now.new_text AS double precision) END AS gpu_seconds,
    CASE WHEN cost_usd_now.attempt_id IS NULL THEN a.cost_usd ELSE CAST(cost_usd_now.new_text AS double precision) END AS cost_usd,
    (SELECT count(*) FROM amendments WHERE amendments.attempt_id = a.attempt_id) AS amendment_count
FROM training_attempts a
LEFT JOIN newest termination_reason_now ON termination_reason_now.attempt_id = a.attempt_id AND termination_reason_now.field = 'termination_reason' AND termination_reason_now.place = 1
LEFT JOIN newest owner_now ON owner_now.attempt_id = a.attempt_id AND owner_now.field = 'owner' AND owner_now.place = 1
LEFT JOIN newest team_now ON team_now.attempt_id = a.attempt_id AND team_now.field = 'team' AND team_now.place = 1
LEFT JOIN newest gpu_seconds_now ON gpu_seconds_now.attempt_id = a.attempt_id AND gpu_seconds_now.field = 'gpu_seconds' AND gpu_seconds_now.place = 1
LEFT JOIN newest cost_usd_now ON cost_usd_now.attempt_id = a.attempt_id AND cost_usd_now.field = 'cost_usd' AND cost_usd_now.place = 1;
