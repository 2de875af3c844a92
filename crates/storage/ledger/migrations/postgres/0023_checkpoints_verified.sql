-- When the bytes of a checkpoint were last read and compared.
ALTER TABLE checkpoints ADD COLUMN verified_at timestamptz;

-- Where a root is, from the home: a home that was moved or copied still has its checkpoints.
UPDATE checkpoints SET location = substr(location, strpos(location, '/checkpoints/' || run_id || '/') + 1)
WHERE location LIKE '/%' AND strpos(location, '/checkpoints/' || run_id || '/') > 0;
