-- Where in the data a detection was, and what the processes did when the run stood still.

ALTER TABLE detections ADD COLUMN first_batch bigint;
ALTER TABLE detections ADD COLUMN last_batch bigint;
ALTER TABLE detections ADD COLUMN data_epoch bigint;
ALTER TABLE detections ADD COLUMN stacks_path text;
