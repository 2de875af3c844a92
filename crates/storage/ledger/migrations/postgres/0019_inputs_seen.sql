-- What an attempt opened of its data, and the samples of one update of its weights.
ALTER TABLE training_attempts ADD COLUMN data_opened text;
ALTER TABLE training_attempts ADD COLUMN data_not_opened text;
ALTER TABLE training_attempts ADD COLUMN effective_batch bigint;

ALTER TABLE launches ADD COLUMN data_opened text;
ALTER TABLE launches ADD COLUMN data_not_opened text;
ALTER TABLE launches ADD COLUMN effective_batch bigint;
