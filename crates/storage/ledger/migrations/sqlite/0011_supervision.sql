-- A run is changed by compare-and-swap on its revision, and supervised by the holder of its lease.

ALTER TABLE runs ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;

CREATE TABLE supervisor_leases (
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    epoch INTEGER NOT NULL CHECK (epoch > 0),
    holder TEXT NOT NULL,
    instance TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    lock_id TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (run_id)
) STRICT;

CREATE TRIGGER supervisor_leases_epoch BEFORE UPDATE ON supervisor_leases
WHEN NEW.epoch < OLD.epoch
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: the epoch of a lease only grows');
END;

CREATE TRIGGER supervisor_leases_delete BEFORE DELETE ON supervisor_leases
BEGIN
    SELECT RAISE(ABORT, 'trackway integrity: leases are not deleted');
END;
