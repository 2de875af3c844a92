-- `stage` is where a version of a model is; the part of the data that it was trained on is its rung.
ALTER TABLE model_versions RENAME COLUMN stage TO rung;
