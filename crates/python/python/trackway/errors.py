"""What can go wrong with a checkpoint; each class says what the caller should do about it."""


class CheckpointError(Exception):
    """A checkpoint could not be saved or loaded. The classes below say more."""


class FencedError(CheckpointError):
    """A newer attempt owns the checkpoints: stop. Nothing this process does can be committed any more."""


class IntegrityError(CheckpointError):
    """Bytes are not those that were committed, and nothing earlier verifies: repair, or choose another checkpoint.

    Do not answer this by starting over."""


class StorageError(CheckpointError):
    """The disk refused: repair it or make room. Every checkpoint committed earlier is untouched."""


class InputError(CheckpointError, ValueError):
    """What was passed in cannot be used, or does not fit what is stored: fix the call."""
