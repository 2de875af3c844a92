"""Checkpoints without a run: the same protocol, the same files.

    from trackway import checkpoint

    checkpoint.save("ckpt", {"model": model, "optimizer": optimizer}, step=100)
    state = checkpoint.load("ckpt")                                       # new values
    checkpoint.load("ckpt", into={"model": model, "optimizer": optimizer})  # or restored in place

A folder written by `save` belongs to one training: the process that saves last claims it, and others that keep saving
there get a FencedError.
"""

from __future__ import annotations

import builtins
import json
import operator
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._run.metrics import as_floats as _metrics
from ._state import state as _state
from ._trackway import Root, list_checkpoints, load_checkpoint, load_copy, verify_checkpoint
from .errors import InputError

Path = str | os.PathLike[str]

# The roots that this process writes to. A forked child claims its own.
_roots: dict[tuple[int, str], Root] = {}


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint of a root. `state`: writing, abandoned, committed, superseded, suspect, unsafe or retired."""

    number: int
    step: int
    epoch: int
    state: str
    object_prefix: str
    size_bytes: int | None
    at: str
    why: str | None
    run_id: str
    attempt_id: str


@dataclass(frozen=True)
class Keep:
    """What `save` keeps: the `last` N resumable checkpoints (never fewer than two), the first at or after every
    multiple of `every` steps, and the best by a metric, such as "val_loss" or "max accuracy". Anything else is deleted,
    but only after newer checkpoints were verified, and never if it is pinned."""

    last: int | None = None
    every: int | None = None
    best: str | None = None


def save(
    path: Path,
    state: Any,
    *,
    step: int,
    metrics: Mapping[str, float] | None = None,
    keep: Keep | int | None = None,
    wait: bool = True,
) -> None:
    """Saves and commits a state; when this returns, it survives power loss.

    `state`: a dict of components (models, optimizers, dicts of tensors, generators, `trackway.ProcessRng()`), or a
    single component. `wait=False` returns as soon as everything is copied, after waiting for the previous save; errors
    are raised by `wait_for(path)` and the next `save`. A tensor is copied once; it may change as soon as this returns.
    A `keep` of N keeps the last N; without it everything is kept.

    Raises InputError for a value that cannot be stored, StorageError, and FencedError if another process claimed the
    folder."""
    values = _metrics(metrics)
    root = _root(path)
    step = _step(step)
    root.wait()
    rules = Keep(last=keep) if isinstance(keep, int) else keep or Keep()
    root.keep(rules.last, rules.every, rules.best)
    draft = root.begin(step)
    _state.draft(draft, _state.split(state))
    draft.submit(values)
    if wait:
        root.wait()


def wait_for(path: Path) -> None:
    """Waits until the save started here by `save(…, wait=False)` is committed, and raises its error if it failed."""
    _root(path).wait()


def load(path: Path, *, step: int | None = None, into: Any = None, framework: str | None = None) -> Any:
    """Loads the newest checkpoint that verifies, or the one of `step`; every byte is verified.

    Without `into`: new values; tensors are views of the bytes that were read, in the framework they were saved from or
    in `framework` ("numpy", "torch", "jax"). `into` has the structure of the saved state: objects, containers and
    tensors in it are filled in place; what cannot be filled is new in the result.

    Raises InputError if there is nothing to load, or it does not fit; IntegrityError if nothing verifies."""
    return _load(path, None if step is None else _number(path, _step(step)), into, framework)


def given(*, into: Any = None, framework: str | None = None) -> Any:
    """Loads the checkpoint to be evaluated, in an evaluator or scoring command of `trackway eval run`; every byte is
    verified. It is the folder `TRACKWAY_CHECKPOINT_DIR`; `into` and `framework` as in `load`.

    Returns the state by the names with which it was saved: `given(framework="torch")["model"]`. Files that a framework
    or a library wrote are not a state: load them from `TRACKWAY_CHECKPOINT_PATH`.

    To run such a command by hand, set `TRACKWAY_CHECKPOINT_DIR` to the folder of a checkpoint in the folder of its run.

    Raises InputError outside an evaluation; IntegrityError if it is not the one that was committed."""
    _check_framework(framework)
    folder = os.environ.get("TRACKWAY_CHECKPOINT_DIR")
    if not folder:
        raise InputError("TRACKWAY_CHECKPOINT_DIR is not set: run this with `trackway eval run`")
    folder = os.path.abspath(folder)
    # An evaluation vouches for every byte by the hash of the manifest: a copy from a remote has no log beside it.
    manifest = os.environ.get("TRACKWAY_CHECKPOINT_MANIFEST_SHA256")
    if manifest:
        return _restored(_state.Stored(load_copy(folder, manifest)), into, framework)
    return _load(*_logged(folder), into, framework)


def _logged(folder: str) -> tuple[str, int]:
    """The root of the checkpoint in `folder` and its number, by the log of the root."""
    root, prefix = folder.rsplit(os.sep, 2)[0], os.sep.join(folder.rsplit(os.sep, 2)[1:])
    numbers = [found.number for found in list(root) if found.object_prefix == prefix] if os.path.isdir(root) else []
    if not numbers:
        raise InputError(
            f"no log names {folder} as a checkpoint: set TRACKWAY_CHECKPOINT_MANIFEST_SHA256 to the hash of its manifest"
        )
    return root, numbers[-1]


def _load(path: Path, number: int | None, into: Any, framework: str | None) -> Any:
    _check_framework(framework)
    loaded = load_checkpoint(os.path.abspath(path), number)
    if loaded is None:
        raise InputError(f"{os.fspath(path)} holds no committed checkpoint")
    return _restored(_state.Stored(loaded), into, framework)


def _check_framework(framework: str | None) -> None:
    if framework not in (None, "numpy", "torch", "jax"):
        raise InputError(f"invalid framework {framework!r}: expected 'numpy', 'torch' or 'jax'")


def _restored(stored: _state.Stored, into: Any, framework: str | None) -> Any:
    names = stored.names
    if not names:
        if into is not None:
            raise InputError("this checkpoint was not saved from Python; load it without `into`")
        return stored.foreign(framework or "numpy")
    if into is not None:
        return _load_into(stored, into, framework)
    values = {name: stored.restore(name, framework=framework) for name in names}
    return _joined(values)


def list(path: Path) -> builtins.list[Checkpoint]:
    """Every checkpoint of a root, in the order in which they were written."""
    fields = Checkpoint.__dataclass_fields__
    entries = json.loads(list_checkpoints(os.path.abspath(path)))
    return [Checkpoint(**{name: entry[name] for name in fields}) for entry in entries]


def verify(path: Path, *, step: int | None = None) -> dict[int, str | None]:
    """The damage of each committed checkpoint, by step; None: every byte is as committed."""
    return {
        found.step: verify_checkpoint(os.path.abspath(path), found.number)
        for found in list(path)
        if found.state in ("committed", "superseded", "suspect", "unsafe") and step in (None, found.step)
    }


def _root(path: Path) -> Root:
    key = (os.getpid(), os.path.abspath(path))
    if key not in _roots:
        _roots[key] = Root(key[1])
    return _roots[key]


def _step(step: Any) -> int:
    try:
        number = operator.index(step)
    except TypeError:
        raise InputError(f"step is {step!r}; it must be a whole number") from None
    if not 0 <= number < 1 << 63:
        raise InputError(f"step is {number}; it must not be negative")
    return number


def _number(path: Path, step: int) -> int:
    found = [one for one in list(path) if one.state in ("committed", "superseded", "unsafe")]
    numbers = [one.number for one in found if one.step == step]
    if not numbers:
        steps = ", ".join(str(one.step) for one in found) or "none"
        raise InputError(f"{os.fspath(path)} contains no committed checkpoint of step {step}; it contains {steps}")
    return numbers[-1]


def _joined(values: dict[str, Any]) -> Any:
    """Reassembles what `split` took apart."""
    rest = values.pop(_state.REST, None)
    if not values:
        return rest
    return {**values, **rest} if type(rest) is dict else values


def _load_into(stored: _state.Stored, into: Any, framework: str | None) -> Any:
    parts = _state.split(into)
    models = _state.models_in(parts)
    restored = {name: stored.restore(name, target, framework=framework, models=models) for name, target in parts.items()}
    if into is parts.get(next(iter(parts))) and len(parts) == 1:
        return next(iter(restored.values()))
    into.update({name: value for name, value in restored.items() if name in into})
    if type(rest := restored.get(_state.REST)) is dict and _state.REST not in into:
        into.update(rest)
    return into
