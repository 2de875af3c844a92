-- Where a parameter comes from: `command line`, `given`, or the writer of the record; null: not recorded.
ALTER TABLE parameters ADD COLUMN origin TEXT;
