-- An index entry of PostgreSQL holds 2,704 bytes at most, and a tag's value may be longer.
DROP INDEX tags_by_name;
CREATE INDEX tags_by_name ON tags (name);
