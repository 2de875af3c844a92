-- The name, the note and the tags of a run, and whether lists show it, may change at any time; what they were stays beside it.
ALTER TABLE runs ADD COLUMN note TEXT;
ALTER TABLE runs ADD COLUMN hidden_at INTEGER;

CREATE INDEX runs_hidden ON runs (run_id) WHERE hidden_at IS NOT NULL;

CREATE TABLE run_amendments (
    amendment_id TEXT NOT NULL,
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    at INTEGER NOT NULL,
    author TEXT NOT NULL,
    field TEXT NOT NULL CHECK (field IN ('name', 'note', 'tag', 'hidden')),
    tag TEXT,
    old_text TEXT,
    new_text TEXT,
    why TEXT,
    PRIMARY KEY (amendment_id)
) STRICT;

CREATE INDEX run_amendments_by_run_id ON run_amendments (run_id, tag, at);
CREATE INDEX run_amendments_by_tag ON run_amendments (tag, run_id);

CREATE TRIGGER run_amendments_append_only_update BEFORE UPDATE ON run_amendments
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: run_amendments is append-only');
END;

CREATE TRIGGER run_amendments_append_only_delete BEFORE DELETE ON run_amendments
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: run_amendments is append-only');
END;

CREATE TRIGGER run_amendments_append_only_replace BEFORE INSERT ON run_amendments
WHEN EXISTS (
    SELECT 1 FROM run_amendments WHERE amendment_id = NEW.amendment_id
    AND (run_id, at, author, field, tag, old_text, new_text, why)
        IS NOT (NEW.run_id, NEW.at, NEW.author, NEW.field, NEW.tag, NEW.old_text, NEW.new_text, NEW.why)
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: run_amendments is append-only');
END;

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
