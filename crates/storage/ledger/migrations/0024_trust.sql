-- Why a checkpoint is unsafe: what it holds is most likely lost, though its bytes are whole. Null: it is not, or was cleared.
ALTER TABLE checkpoints ADD COLUMN unsafe_because text;
