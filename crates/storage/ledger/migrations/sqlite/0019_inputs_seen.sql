-- What an attempt opened of its data, and the samples of one update of its weights.
ALTER TABLE training_attempts ADD COLUMN data_opened TEXT;
ALTER TABLE training_attempts ADD COLUMN data_not_opened TEXT;
ALTER TABLE training_attempts ADD COLUMN effective_batch INTEGER;

ALTER TABLE launches ADD COLUMN data_opened TEXT;
ALTER TABLE launches ADD COLUMN data_not_opened TEXT;
ALTER TABLE launches ADD COLUMN effective_batch INTEGER;
