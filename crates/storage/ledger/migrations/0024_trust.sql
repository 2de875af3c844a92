-- Version 24: what each attempt read. Attempts of version 23 have the hash of their data only; `run_data` has the sets of their run.

CREATE TABLE attempt_data (
    attempt_id text NOT NULL,
    run_id text NOT NULL REFERENCES runs (run_id),
    name text NOT NULL,
    path text NOT NULL,
    data_sha256 text NOT NULL REFERENCES data_snapshots (data_sha256),
    role text,
    PRIMARY KEY (attempt_id, name)
);

CREATE INDEX attempt_data_by_run_id ON attempt_data (run_id);
CREATE INDEX attempt_data_by_data_sha256 ON attempt_data (data_sha256);

-- Why a checkpoint is unsafe: what it holds is most likely lost, though its bytes are whole. Null: it is not, or was cleared.
ALTER TABLE checkpoints ADD COLUMN unsafe_because text;

-- Whether what an attempt computed is worth something, and what that rests on. Null: the receipt is older than this.
ALTER TABLE training_attempts ADD COLUMN health text;
ALTER TABLE training_attempts ADD COLUMN health_json text;
ALTER TABLE launches ADD COLUMN health text;
ALTER TABLE launches ADD COLUMN health_json text;

-- The health of its last attempt.
ALTER TABLE runs ADD COLUMN health text;
