"""Trackway in the training process: flight record, stop requests, and checkpoints that resume exactly.

    import trackway

    run = trackway.attach()  # records nothing outside a Trackway attempt
    start = run.resume(model=model, optimizer=optimizer)
    for step, batch in run.batches(loader, start=start, steps=10_000):
        loss = train_step(batch)
        run.log(step, loss=loss)
        run.checkpoint(step)
    run.finish()

`trackway.checkpoint` saves and loads checkpoints without a run. A framework is imported only when one of its tensors
appears, and nothing is ever pickled.
"""

from . import callbacks, checkpoint, errors
from ._loader import WorkerInit
from ._ranks import Sharded
from ._rng import ProcessRng, seed
from ._run import Run, Start, attach
from ._share import rung_indexes
from ._trackway import in_rung, rung
from .augment import AugmentationProbe, probe_augmentation
from .errors import CheckpointError, FencedError, InputError, IntegrityError, StorageError
from .scoring import serve_scores

__all__ = [
    "AugmentationProbe",
    "CheckpointError",
    "FencedError",
    "InputError",
    "IntegrityError",
    "ProcessRng",
    "Run",
    "Sharded",
    "Start",
    "StorageError",
    "WorkerInit",
    "attach",
    "callbacks",
    "checkpoint",
    "errors",
    "in_rung",
    "probe_augmentation",
    "rung",
    "rung_indexes",
    "seed",
    "serve_scores",
]
