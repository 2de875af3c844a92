-- As in PostgreSQL, where an index entry must not hold a tag's value, which may be long.
DROP INDEX tags_by_name;
CREATE INDEX tags_by_name ON tags (name);
