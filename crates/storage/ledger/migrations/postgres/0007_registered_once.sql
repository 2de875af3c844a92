
-- The same weights are one version of a model. Where an older Trackway registered them more than once at the same time, all of
-- these versions stay, because approvals, aliases and stages name them; each but the lowest names the lowest.
ALTER TABLE model_versions ADD COLUMN duplicate_of bigint;

DROP TRIGGER model_versions_append_only ON model_versions;

UPDATE model_versions SET duplicate_of = lowest.version
FROM (
    SELECT model, checkpoint_manifest_sha256, min(version) AS version FROM model_versions
    GROUP BY model, checkpoint_manifest_sha256
) AS lowest
WHERE lowest.model = model_versions.model
    AND lowest.checkpoint_manifest_sha256 = model_versions.checkpoint_manifest_sha256
    AND model_versions.version > lowest.version;

CREATE TRIGGER model_versions_append_only BEFORE UPDATE OR DELETE ON model_versions
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('model_versions is append-only');

CREATE UNIQUE INDEX model_versions_once ON model_versions (model, checkpoint_manifest_sha256) WHERE duplicate_of IS NULL;
