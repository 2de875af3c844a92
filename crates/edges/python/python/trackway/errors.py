"""Errors of checkpoints; each class determines what the caller should do."""


class CheckpointError(Exception):
    """A checkpoint could not be saved or loaded. See the subclasses."""


class FencedError(CheckpointError):
    """A newer attempt owns the checkpoints: stop. Nothing this process does can be committed any more."""


class IntegrityError(CheckpointError):
    """The bytes differ from what was committed, and nothing earlier verifies: repair, or choose another checkpoint.

    Do not handle this by starting over."""


class StorageError(CheckpointError):
    """Writing to storage failed: repair it or free space. Checkpoints committed earlier are untouched."""


class InputError(CheckpointError, ValueError):
    """An argument is invalid or does not match the stored state: fix the call."""
