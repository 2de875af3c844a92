-- Version 26: events and leases of any subject, projects, charges, the change feed, duties and the outbox. Closed lists are checked by the program alone since
-- then: `src/backend/migrate.rs` takes them out of the tables, so that a new state needs no migration.

-- Of a run, where it is known.
ALTER TABLE runs ADD COLUMN project text;
ALTER TABLE runs ADD COLUMN criticality text;
ALTER TABLE models ADD COLUMN project text;
ALTER TABLE data_snapshots ADD COLUMN project text;
CREATE INDEX runs_by_project ON runs (project, kind, created_at, run_id);
CREATE INDEX models_by_project ON models (project, model);
CREATE INDEX data_snapshots_by_project ON data_snapshots (project, data_sha256);

-- What engines with a queue say of a launch.
ALTER TABLE training_attempts ADD COLUMN submitted_at timestamptz;
ALTER TABLE training_attempts ADD COLUMN queued_seconds double precision;
ALTER TABLE training_attempts ADD COLUMN engine_instance text;
ALTER TABLE training_attempts ADD COLUMN completeness text;
ALTER TABLE launches ADD COLUMN submitted_at timestamptz;
ALTER TABLE launches ADD COLUMN queued_seconds double precision;
ALTER TABLE launches ADD COLUMN engine_instance text;
ALTER TABLE launches ADD COLUMN completeness text;

-- What happened to subjects. The view `events` has what happened to runs.
CREATE TABLE subject_events (
    event_id text NOT NULL,
    subject_kind text NOT NULL,
    subject_id text NOT NULL,
    attempt_id text,
    at timestamptz NOT NULL,
    kind text NOT NULL,
    step bigint,
    message text NOT NULL,
    fields_json text,
    source text NOT NULL,
    PRIMARY KEY (event_id)
);

INSERT INTO subject_events SELECT event_id, 'run', run_id, attempt_id, at, kind, step, message, fields_json, source FROM events;
DROP TABLE events;
CREATE INDEX subject_events_by_subject ON subject_events (subject_kind, subject_id, at);
-- With the kind of subject, by which the view filters: else the index above would be taken, for all runs.
CREATE INDEX subject_events_by_attempt_id ON subject_events (attempt_id, subject_kind);

CREATE VIEW events AS
SELECT event_id, subject_id AS run_id, attempt_id, at, kind, step, message, fields_json, source
FROM subject_events WHERE subject_kind = 'run';

-- Who writes about a subject. The view `supervisor_leases` has those of runs.
CREATE TABLE leases (
    subject_kind text NOT NULL,
    subject_id text NOT NULL,
    epoch bigint NOT NULL CHECK (epoch > 0),
    holder text NOT NULL,
    instance text NOT NULL,
    boot_id text NOT NULL,
    lock_id text NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (subject_kind, subject_id)
);

INSERT INTO leases SELECT 'run', run_id, epoch, holder, instance, boot_id, lock_id, expires_at FROM supervisor_leases;
DROP TABLE supervisor_leases;

CREATE VIEW supervisor_leases AS
SELECT subject_id AS run_id, epoch, holder, instance, boot_id, lock_id, expires_at
FROM leases WHERE subject_kind = 'run';

-- Money, in integers. Those of receipts from before follow from their costs; `src/charges.rs` says how.
CREATE TABLE charges (
    charge_id text NOT NULL,
    attempt_id text,
    run_id text REFERENCES runs (run_id),
    project text,
    at timestamptz NOT NULL,
    kind text NOT NULL,
    item text NOT NULL,
    quantity bigint NOT NULL,
    unit text NOT NULL,
    amount_nano_usd bigint,
    PRIMARY KEY (charge_id)
);

CREATE INDEX charges_by_attempt_id ON charges (attempt_id);
CREATE INDEX charges_by_run_id ON charges (run_id, at);
CREATE INDEX charges_by_project ON charges (project, at);

CREATE TEMPORARY TABLE charged_26 AS
SELECT attempt_id, run_id, sealed_at, cost_usd FROM training_attempts WHERE sealed_at IS NOT NULL
UNION ALL SELECT attempt_id, run_id, sealed_at, cost_usd FROM launches WHERE sealed_at IS NOT NULL;

INSERT INTO charges
SELECT c.attempt_id || ':' || c.item, c.attempt_id, c.run_id, NULL, a.sealed_at, 'usage', c.item,
-- postgres:     CAST(floor(least(greatest(c.quantity, 0) * CASE WHEN right(c.unit, 8) = '_seconds' THEN 1000.0 ELSE 1.0 END, 9e18) + 0.5) AS bigint),
-- postgres:     CASE WHEN right(c.unit, 8) = '_seconds' THEN left(c.unit, length(c.unit) - 8) || '_milliseconds' ELSE c.unit END,
-- postgres:     CASE WHEN c.usd IS NULL THEN NULL ELSE CAST(floor(least(greatest(c.usd, 0), 9e9) * 1e9 + 0.5) AS bigint) END
-- sqlite:     CAST(min(max(c.quantity, 0) * CASE WHEN substr(c.unit, -8) = '_seconds' THEN 1000.0 ELSE 1.0 END, 9e18) + 0.5 AS INTEGER),
-- sqlite:     CASE WHEN substr(c.unit, -8) = '_seconds' THEN substr(c.unit, 1, length(c.unit) - 8) || '_milliseconds' ELSE c.unit END,
-- sqlite:     CAST(min(max(c.usd, 0), 9e9) * 1e9 + 0.5 AS INTEGER)
FROM costs c JOIN charged_26 a ON a.attempt_id = c.attempt_id;

INSERT INTO charges
SELECT a.attempt_id || ':rest', a.attempt_id, a.run_id, NULL, a.sealed_at, 'usage', 'rest', 1, 'attempts',
-- postgres:     CAST(floor(least(greatest(a.cost_usd, 0), 9e9) * 1e9 + 0.5) AS bigint) - coalesce((SELECT CAST(sum(h.amount_nano_usd) AS bigint) FROM charges h WHERE h.attempt_id = a.attempt_id), 0)
-- sqlite:     CAST(min(max(a.cost_usd, 0), 9e9) * 1e9 + 0.5 AS INTEGER) - coalesce((SELECT sum(h.amount_nano_usd) FROM charges h WHERE h.attempt_id = a.attempt_id), 0)
FROM charged_26 a WHERE a.cost_usd IS NOT NULL AND
-- postgres:     CAST(floor(least(greatest(a.cost_usd, 0), 9e9) * 1e9 + 0.5) AS bigint) <> coalesce((SELECT CAST(sum(h.amount_nano_usd) AS bigint) FROM charges h WHERE h.attempt_id = a.attempt_id), 0);
-- sqlite:     CAST(min(max(a.cost_usd, 0), 9e9) * 1e9 + 0.5 AS INTEGER) <> coalesce((SELECT sum(h.amount_nano_usd) FROM charges h WHERE h.attempt_id = a.attempt_id), 0);

DROP TABLE charged_26;

-- What was written, in the order of the commits: who read up to a number reads what is new by it.
CREATE TABLE changes (
    number bigint NOT NULL,
    at timestamptz NOT NULL,
    kind text NOT NULL,
    subject_kind text NOT NULL,
    subject_id text NOT NULL,
    project text,
    PRIMARY KEY (number)
);

CREATE INDEX changes_by_subject ON changes (subject_kind, subject_id, number);
CREATE INDEX changes_by_project ON changes (project, number);

CREATE INDEX checkpoints_pinned ON checkpoints (run_id) WHERE pins IS NOT NULL;

-- What has to be done from time to time, and by which process it is done now.
CREATE TABLE duties (
    name text NOT NULL,
    subject_kind text NOT NULL,
    subject_id text NOT NULL,
    due_at timestamptz NOT NULL,
    bound_seconds bigint NOT NULL,
    holder text,
    held_until timestamptz,
    last_at timestamptz,
    last_failure text,
    PRIMARY KEY (name, subject_kind, subject_id)
);

-- What people are to hear, and how far that is.
CREATE TABLE notices (
    notice_id text NOT NULL,
    subject_kind text NOT NULL,
    subject_id text NOT NULL,
    project text,
    at timestamptz NOT NULL,
    about text NOT NULL,
    document_json text NOT NULL,
    PRIMARY KEY (notice_id)
);

CREATE INDEX notices_by_subject ON notices (subject_kind, subject_id, at);

CREATE TABLE outbox (
    notice_id text NOT NULL REFERENCES notices (notice_id),
    state text NOT NULL,
    tries bigint NOT NULL,
    next_try_at timestamptz NOT NULL,
    last_failure text,
    PRIMARY KEY (notice_id)
);

CREATE INDEX outbox_waiting ON outbox (next_try_at) WHERE state = 'waiting';
