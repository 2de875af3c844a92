"""Orbax's way to save and restore, through Trackway: `trackway.orbax.checkpoint_manager` in place of
`orbax.checkpoint.CheckpointManager`, with the same arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import jax
import orbax.checkpoint as ocp

from . import checkpoint
from ._run.adapter import SaveSession, committed_in, load_step
from ._run.run import CURSOR, RNG, Run, attach
from ._state import arrays as _arrays
from ._state import state as _state
from ._state.ranks import FilesOf, Kept
from .errors import InputError

__all__ = ["RunCheckpointManager", "checkpoint_manager"]


def checkpoint_manager(directory: Any, *arguments: Any, run: Run | None = None, **options: Any) -> Any:
    """What saves and restores: in an attempt a manager of the run's checkpoints, which ignores the other arguments since
    the run file decides when to save and what to keep; outside of one `orbax.checkpoint.CheckpointManager` with the same
    arguments.

        manager = trackway.orbax.checkpoint_manager("ckpt", options=options)
        if (step := manager.latest_step()) is not None:
            state = manager.restore(step, args=ocp.args.StandardRestore(state))
        ...
            manager.save(step, args=ocp.args.StandardSave(state))
        manager.close()
    """
    run = run or attach()
    return RunCheckpointManager(run) if SaveSession(run).saves else ocp.CheckpointManager(directory, *arguments, **options)


class RunCheckpointManager:
    """The part of Orbax's CheckpointManager that a training loop uses, for the checkpoints of a run.

    A save returns when everything is copied; it is written and committed in the background, with the random generators
    of the process. Steps are restored only if every byte verifies."""

    def __init__(self, run: Run):
        self.run = run
        self._session = SaveSession(run)
        # The checkpoint that `latest_step` read for `restore`.
        self._read: Kept | None = None
        self._asked = False

    @property
    def directory(self) -> Path:
        """The root of the run's checkpoints."""
        return self._session.root

    def all_steps(self, read: bool = False) -> Sequence[int]:
        """The committed steps, sorted."""
        return sorted({one.step for one in committed_in(self.directory)})

    def latest_step(self) -> int | None:
        """The newest step: at first that which the attempt resumes, of which every byte was verified; later the newest
        that is committed. None if there is none.

        Raises IntegrityError if steps were committed but none verifies."""
        if not self._asked and self._session.saved_step is None:
            self._asked = True
            self._read = self._session.newest()
            return None if self._read is None else self._read.loaded.step
        steps = self.all_steps()
        return steps[-1] if steps else None

    def should_save(self, step: int) -> bool:
        """Whether `save(step)` would save: by the cadence of the run file, on request, or before a stop."""
        return self.run.checkpoint_due(step)

    def reached_preemption(self, step: int) -> bool:
        """Whether to save and exit: Trackway or a SIGTERM requested it."""
        return self.run.should_stop()

    def save(
        self, step: int, *, args: Any, metrics: Mapping[str, float] | None = None, force: bool = False
    ) -> bool:
        """Saves `StandardSave`, `PyTreeSave` or `JsonSave`, or a `Composite` of them, if a checkpoint is due or with
        `force`. Returns whether a save was started.

        Raises InputError for what cannot be stored, and the error of the save before."""
        return self.run.checkpoint(step, state=_components(args), metrics=metrics, force=force)

    def restore(self, step: int | None = None, *, args: Any = None) -> Any:
        """The state of a step, by default the newest. `StandardRestore(template)` gives it the structure, and arrays the
        sharding, of the template, whose leaves are arrays or `jax.ShapeDtypeStruct`; without a template it is of dicts,
        lists and arrays. For a `Composite` a `Composite` is returned.

        Raises InputError if the step was not committed, or it does not fit; IntegrityError if it does not verify."""
        source = self._source(step)
        stored = _state.Stored(FilesOf(source, 0))
        if isinstance(args, ocp.args.Composite):
            names = {name: getattr(inner, "item", None) for name, inner in args.items()}
            found = {name: _placed(stored.restore(name, _fresh(item)), item, name) for name, item in names.items()}
            return ocp.args.Composite(**found)
        template = getattr(args, "item", None)
        names_there = [name for name in stored.names if name not in (RNG, CURSOR)]
        parts = {} if template is None else _parts(template)
        values = {name: stored.restore(name, _fresh(parts.get(name))) for name in names_there}
        if parts and parts.keys() != values.keys():
            raise InputError(f"step {source.loaded.step} has {sorted(values)}, and the template has {sorted(parts)}")
        return _placed(checkpoint._joined(values), template, "state")

    def wait_until_finished(self) -> None:
        """Waits until the last save is committed, and raises its error if it failed."""
        self._session.wait()

    def check_for_errors(self) -> None:
        """The error of a save is raised by the next one and by `wait_until_finished()`."""

    def close(self) -> None:
        """Waits for the last save."""
        self.wait_until_finished()

    def __enter__(self) -> RunCheckpointManager:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _source(self, step: int | None) -> Kept:
        step = self.latest_step() if step is None else step
        read, self._read = self._read, None
        if read is not None and read.loaded.step == step:
            self._session.restore_place(read)
            return read
        kept = None if step is None else load_step(self.directory, step)
        if kept is None:
            steps = ", ".join(map(str, self.all_steps())) or "none"
            raise InputError(f"{self.directory} contains no committed checkpoint of step {step}; it contains {steps}")
        return kept


def _components(args: Any) -> dict[str, Any]:
    if isinstance(args, ocp.args.Composite):
        return {name: _item_of(inner, name) for name, inner in args.items()}
    return _parts(_item_of(args, "state"))


def _item_of(args: Any, name: str) -> Any:
    if not hasattr(args, "item"):
        raise InputError(f"`{name}` is saved with {type(args).__name__}; use StandardSave, PyTreeSave or JsonSave")
    return args.item


def _parts(item: Any) -> dict[str, Any]:
    """The components of a state: the entries of a dict, unless their names are taken."""
    parts = _state.split(item)
    return {_state.REST: item} if {RNG, CURSOR} & parts.keys() else parts


def _fresh(template: Any) -> Any:
    """A template whose containers and NumPy arrays may be filled without changing those of the program."""
    return jax.tree_util.tree_map(lambda leaf: None if _arrays.is_numpy(leaf) else leaf, template)


def _placed(value: Any, template: Any, name: str) -> Any:
    """The value, in which arrays are as the template describes them."""
    if template is None:
        return value

    def place(path: Any, wanted: Any, found: Any) -> Any:
        if not (isinstance(wanted, jax.ShapeDtypeStruct) or _arrays.is_numpy(wanted)):
            return found
        where = f"{name}{jax.tree_util.keystr(path)}"
        if not _arrays.is_tensor(found):
            raise InputError(f"{where} is an array here and {type(found).__name__} in the checkpoint")
        if (tuple(found.shape), found.dtype) != (tuple(wanted.shape), wanted.dtype):
            there, here = f"{found.dtype} {tuple(found.shape)}", f"{wanted.dtype} {tuple(wanted.shape)}"
            raise InputError(f"{where} is {there} in the checkpoint and {here} here")
        sharding = getattr(wanted, "sharding", None)
        return found if sharding is None else jax.device_put(found, sharding)

    return jax.tree_util.tree_map_with_path(place, template, value)
