-- Version 27: old changes, and notices that ended, are removed; a project of a data set that was not known is filled in. The rules of tables follow
-- from the program (`src/backend/rules.rs`).

CREATE INDEX outbox_ended ON outbox (next_try_at) WHERE state <> 'waiting';
