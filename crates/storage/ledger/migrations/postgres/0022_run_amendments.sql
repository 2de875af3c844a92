-- The name, the note and the tags of a run, and whether lists show it, may change at any time; what they were stays beside it.
ALTER TABLE runs ADD COLUMN note text;
ALTER TABLE runs ADD COLUMN hidden_at timestamptz;

CREATE INDEX runs_hidden ON runs (run_id) WHERE hidden_at IS NOT NULL;

CREATE TABLE run_amendments (
    amendment_id text NOT NULL,
    run_id text NOT NULL REFERENCES runs (run_id),
    at timestamptz NOT NULL,
    author text NOT NULL,
    field text NOT NULL CHECK (field IN ('name', 'note', 'tag', 'hidden')),
    tag text,
    old_text text,
    new_text text,
    why text,
    PRIMARY KEY (amendment_id)
);

CREATE INDEX run_amendments_by_run_id ON run_amendments (run_id, tag, at);
CREATE INDEX run_amendments_by_tag ON run_amendments (tag, run_id);

CREATE TRIGGER run_amendments_append_only BEFORE UPDATE OR DELETE ON run_amendments
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('run_amendments is append-only');

CREATE TRIGGER run_amendments_truncate BEFORE TRUNCATE ON run_amendments
    FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('run_amendments is append-only');

-- The tags of runs as they are now. Of a tag that was amended only the newest amendment counts.
CREATE VIEW run_tags AS
SELECT sealed.run_id AS run_id, sealed.name AS name, sealed.value AS value, sealed.attempt_id AS attempt_id
FROM tags sealed
WHERE NOT EXISTS (SELECT 1 FROM run_amendments amended WHERE amended.run_id = sealed.run_id AND amended.tag = sealed.name)
UNION ALL
SELECT amended.run_id, amended.tag, amended.new_text, NULL
FROM run_amendments amended
WHERE amended.tag IS NOT NULL AND amended.new_text IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM run_amendments later
    WHERE later.run_id = amended.run_id AND later.tag = amended.tag
    AND (later.at > amended.at OR (later.at = amended.at AND later.amendment_id > amended.amendment_id))
);

-- A run that was never launched was not steered by anything.
DROP VIEW validation_sets;
CREATE VIEW validation_sets AS
SELECT d.data_sha256,
    min(d.path) AS path,
    count(DISTINCT d.run_id) AS run_count,
    count(DISTINCT r.config_sha256) AS config_count,
    min(r.created_at) AS first_used_at,
    max(r.created_at) AS last_used_at
FROM run_data d JOIN runs r ON r.run_id = d.run_id
WHERE d.role = 'validation' AND r.kind = 'train' AND r.attempt_count > 0
GROUP BY d.data_sha256;
