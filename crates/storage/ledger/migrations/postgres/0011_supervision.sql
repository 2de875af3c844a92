-- A run is changed by compare-and-swap on its revision, and supervised by the holder of its lease.

ALTER TABLE runs ADD COLUMN revision bigint NOT NULL DEFAULT 0;

CREATE TABLE supervisor_leases (
    run_id text NOT NULL REFERENCES runs (run_id),
    epoch bigint NOT NULL CHECK (epoch > 0),
    holder text NOT NULL,
    instance text NOT NULL,
    boot_id text NOT NULL,
    lock_id text NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (run_id)
);

CREATE TRIGGER supervisor_leases_epoch BEFORE UPDATE ON supervisor_leases
    FOR EACH ROW WHEN (NEW.epoch < OLD.epoch)
    EXECUTE FUNCTION trackway_refuse('the epoch of a lease only grows');

CREATE TRIGGER supervisor_leases_delete BEFORE DELETE ON supervisor_leases
    FOR EACH ROW EXECUTE FUNCTION trackway_refuse('leases are not deleted');
