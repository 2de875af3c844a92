-- Tags and artifacts of an attempt, sealed with it.

CREATE TABLE tags (
    attempt_id TEXT NOT NULL,
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (attempt_id, name)
) STRICT;

CREATE INDEX tags_by_name ON tags (name, value);

CREATE TABLE artifacts (
    attempt_id TEXT NOT NULL,
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    name TEXT NOT NULL,
    blake3 TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    step INTEGER,
    at INTEGER NOT NULL,
    PRIMARY KEY (attempt_id, name, blake3)
) STRICT;

CREATE INDEX artifacts_by_run_id ON artifacts (run_id);

CREATE TRIGGER tags_sealed_insert BEFORE INSERT ON tags
WHEN EXISTS (
    SELECT 1 FROM training_attempts WHERE attempt_id = NEW.attempt_id AND sealed_at IS NOT NULL
    UNION ALL SELECT 1 FROM launches WHERE attempt_id = NEW.attempt_id AND sealed_at IS NOT NULL
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the receipt is sealed; write an amendment');
END;

CREATE TRIGGER tags_sealed_update BEFORE UPDATE ON tags
WHEN EXISTS (
    SELECT 1 FROM training_attempts WHERE attempt_id = OLD.attempt_id AND sealed_at IS NOT NULL
    UNION ALL SELECT 1 FROM launches WHERE attempt_id = OLD.attempt_id AND sealed_at IS NOT NULL
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the receipt is sealed; write an amendment');
END;

CREATE TRIGGER tags_sealed_delete BEFORE DELETE ON tags
WHEN EXISTS (
    SELECT 1 FROM training_attempts WHERE attempt_id = OLD.attempt_id AND sealed_at IS NOT NULL
    UNION ALL SELECT 1 FROM launches WHERE attempt_id = OLD.attempt_id AND sealed_at IS NOT NULL
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the receipt is sealed; write an amendment');
END;

CREATE TRIGGER artifacts_sealed_insert BEFORE INSERT ON artifacts
WHEN EXISTS (
    SELECT 1 FROM training_attempts WHERE attempt_id = NEW.attempt_id AND sealed_at IS NOT NULL
    UNION ALL SELECT 1 FROM launches WHERE attempt_id = NEW.attempt_id AND sealed_at IS NOT NULL
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the receipt is sealed; write an amendment');
END;

CREATE TRIGGER artifacts_sealed_update BEFORE UPDATE ON artifacts
WHEN EXISTS (
    SELECT 1 FROM training_attempts WHERE attempt_id = OLD.attempt_id AND sealed_at IS NOT NULL
    UNION ALL SELECT 1 FROM launches WHERE attempt_id = OLD.attempt_id AND sealed_at IS NOT NULL
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the receipt is sealed; write an amendment');
END;

CREATE TRIGGER artifacts_sealed_delete BEFORE DELETE ON artifacts
WHEN EXISTS (
    SELECT 1 FROM training_attempts WHERE attempt_id = OLD.attempt_id AND sealed_at IS NOT NULL
    UNION ALL SELECT 1 FROM launches WHERE attempt_id = OLD.attempt_id AND sealed_at IS NOT NULL
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the receipt is sealed; write an amendment');
END;
