-- From how many of the rows that it should cover a metric was computed. Of what ended before it was not stored: null is not known.
ALTER TABLE evaluation_metrics ADD COLUMN rows_used bigint;

ALTER TABLE evaluation_metrics ADD COLUMN rows_expected bigint;
