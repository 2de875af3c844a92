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
framework is imported only when one of its tensors appears or what is made for it is used, and a part of this package when it
is used; Trackway pickles nothing.
"""

from __future__ import annotations

# Type checkers know this name; `typing` itself would cost a good part of the import.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from . import augment as augment
    from . import callbacks as callbacks
    from . import checkpoint as checkpoint
    from . import compat as compat
    from . import dcp as dcp
    from . import errors as errors
    from . import lightning as lightning
    from . import orbax as orbax
    from . import scoring as scoring
    from . import transformers as transformers
    from ._data.loader import WorkerInit
    from ._data.rng import ProcessRng, seed
    from ._data.share import rung_indexes
    from ._run.reading import RunTables, read
    from ._run.run import Run, Start, attach
    from ._run.start import start_run
    from ._state.ranks import Sharded
    from ._trackway import in_rung, rung
    from .augment import AugmentationProbe, probe_augmentation
    from .errors import CheckpointError, FencedError, InputError, IntegrityError, StorageError
    from .scoring import serve_scores

    # The version of the installed package.
    __version__: str

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


# Everything is imported when it is used (PEP 562).
_MODULES = frozenset(
    ("augment", "callbacks", "checkpoint", "compat", "dcp", "errors", "lightning", "orbax", "scoring", "transformers")
)
_NAMES = {
    "_data.loader": ("WorkerInit",),
    "_data.rng": ("ProcessRng", "seed"),
    "_data.share": ("rung_indexes",),
    "_run.reading": ("RunTables", "read"),
    "_run.run": ("Run", "Start", "attach"),
    "_run.start": ("start_run",),
    "_state.ranks": ("Sharded",),
    "_trackway": ("in_rung", "rung"),
    "augment": ("AugmentationProbe", "probe_augmentation"),
    "errors": ("CheckpointError", "FencedError", "InputError", "IntegrityError", "StorageError"),
    "scoring": ("serve_scores",),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}

if not TYPE_CHECKING:  # a type checker would take every name for one of the package

    def __getattr__(name):
        if name in _MODULES:
            return _module(name)  # whose import sets the name
        if name in _MODULE_OF:
            value = getattr(_module(_MODULE_OF[name]), name)
        elif name == "__version__":
            from importlib.metadata import version

            value = version(__name__)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value

    def _module(name):
        from importlib import import_module

        return import_module(f".{name}", __name__)

    def __dir__():
        return sorted({*globals(), *_MODULES, *__all__})
