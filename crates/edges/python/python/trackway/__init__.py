"""Trackway in the training process: flight record, stop requests, and checkpoints that resume exactly.

    import trackway

    run = trackway.attach()  # records nothing outside a Trackway attempt
    start = run.resume(model=model, optimizer=optimizer)
    for step, batch in run.batches(loader, start=start, steps=10_000):
        loss = train_step(batch)
        run.log(step, loss=loss)
        run.checkpoint(step)
    run.finish()

`trackway.read("last").metrics` is what a run recorded, as a DataFrame.

`trackway.checkpoint` saves and loads checkpoints without a run; `trackway.dcp` those of PyTorch Distributed Checkpoint. A
framework is imported only when one of its tensors appears or what is made for it is used; Trackway pickles nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import callbacks, checkpoint, errors
from ._loader import WorkerInit
from ._ranks import Sharded
from ._rng import ProcessRng, seed
from ._run import Run, Start, attach
from ._share import rung_indexes
from ._start import start_run
from ._trackway import in_rung, rung
from .augment import AugmentationProbe, probe_augmentation
from .errors import CheckpointError, FencedError, InputError, IntegrityError, StorageError
from .scoring import serve_scores

if TYPE_CHECKING:
    from . import compat as compat
    from . import dcp as dcp
    from . import lightning as lightning
    from . import orbax as orbax
    from . import transformers as transformers
    from ._reading import RunTables, read

# Modules that import a framework, or that a training needs as rarely: only when they are used.
_MODULES = ("compat", "dcp", "lightning", "orbax", "transformers")
_OF_READING = ("RunTables", "read")

__all__ = [
    "AugmentationProbe",
    "CheckpointError",
    "FencedError",
    "InputError",
    "IntegrityError",
    "ProcessRng",
    "Run",
    "RunTables",
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
    "read",
    "rung",
    "rung_indexes",
    "seed",
    "serve_scores",
    "start_run",
]


def __getattr__(name: str) -> Any:
    if name in _OF_READING:
        return getattr(import_module("._reading", __name__), name)
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f".{name}", __name__)
