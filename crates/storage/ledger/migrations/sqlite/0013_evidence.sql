-- Whether a metric was NaN or infinite to its end; and a reason for what a detector ended because it was not in order.
ALTER TABLE metric_summaries ADD COLUMN non_finite_from_step INTEGER;

ALTER TABLE metric_summaries ADD COLUMN non_finite_end_count INTEGER;

-- By which a failure of the data is recognised: the script, and what the data is checked against.
ALTER TABLE training_attempts ADD COLUMN script_blake3 TEXT;

ALTER TABLE launches ADD COLUMN script_blake3 TEXT;

ALTER TABLE runs ADD COLUMN data_contract_sha256 TEXT;

-- A longer list in a CHECK changes no stored byte: SQLite documents this way for it (lang_altertable.html, "Making Other Kinds Of
-- Table Schema Changes"), and the tables keep their triggers.
PRAGMA writable_schema = ON;

UPDATE sqlite_schema SET sql = replace(sql, '''numeric_divergence'', ', '''numeric_divergence'', ''unhealthy'', ')
WHERE type = 'table' AND name IN ('runs', 'training_attempts', 'launches');

PRAGMA writable_schema = RESET;
