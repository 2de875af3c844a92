-- What a run used a data set for, so that uses of a validation set can be counted.
ALTER TABLE run_data ADD COLUMN role text;

-- How many runs were steered by each validation set.
CREATE VIEW validation_sets AS
SELECT d.data_sha256,
    min(d.path) AS path,
    count(DISTINCT d.run_id) AS run_count,
    count(DISTINCT r.config_sha256) AS config_count,
    min(r.created_at) AS first_used_at,
    max(r.created_at) AS last_used_at
FROM run_data d JOIN runs r ON r.run_id = d.run_id
WHERE d.role = 'validation' AND r.kind = 'train'
GROUP BY d.data_sha256;
