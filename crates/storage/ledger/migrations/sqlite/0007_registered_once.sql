
-- The same weights are one version of a model. Where an older Trackway registered them more than once at the same time, all of
-- these versions stay, because approvals, aliases and stages name them; each but the lowest names the lowest.
ALTER TABLE model_versions ADD COLUMN duplicate_of INTEGER;

DROP TRIGGER model_versions_append_only_update;

UPDATE model_versions SET duplicate_of = lowest.version
FROM (
    SELECT model, checkpoint_manifest_sha256, min(version) AS version FROM model_versions
    GROUP BY model, checkpoint_manifest_sha256
) AS lowest
WHERE lowest.model = model_versions.model
    AND lowest.checkpoint_manifest_sha256 = model_versions.checkpoint_manifest_sha256
    AND model_versions.version > lowest.version;

CREATE TRIGGER model_versions_append_only_update BEFORE UPDATE ON model_versions
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: model_versions is append-only');
END;

DROP TRIGGER model_versions_append_only_replace;

CREATE TRIGGER model_versions_append_only_replace BEFORE INSERT ON model_versions
WHEN EXISTS (
    SELECT 1 FROM model_versions WHERE model = NEW.model AND version = NEW.version
    AND (run_id, attempt_id, rung, step, object_prefix, checkpoint_manifest_sha256, size_bytes, lineage_sha256, config_sha256, code_commit, environment_sha256, container_digest, data_json, signature_json, description, registered_at, registered_by, duplicate_of)
        IS NOT (NEW.run_id, NEW.attempt_id, NEW.rung, NEW.step, NEW.object_prefix, NEW.checkpoint_manifest_sha256, NEW.size_bytes, NEW.lineage_sha256, NEW.config_sha256, NEW.code_commit, NEW.environment_sha256, NEW.container_digest, NEW.data_json, NEW.signature_json, NEW.description, NEW.registered_at, NEW.registered_by, NEW.duplicate_of)
)
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: model_versions is append-only');
END;

CREATE UNIQUE INDEX model_versions_once ON model_versions (model, checkpoint_manifest_sha256) WHERE duplicate_of IS NULL;
