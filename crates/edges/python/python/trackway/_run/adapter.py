"""A run as an adapter sees it. An adapter is a module that saves or records for a framework; it uses this and the public
methods of a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .. import checkpoint
from .._state.ranks import Kept
from .._trackway import Draft, load_checkpoint
from ..errors import InputError
from .run import Run, Start


class SaveSession:
    """Makes what a framework saves a checkpoint of the run. It has no state beside that of the run: there may be several.

    For a framework that saves in one call there is `save`. Where it saves in several, `open` begins a draft, the adapter adds
    files to it, and `submit` or `Draft.drop` ends it. Both `save` and `open` wait until the previous checkpoint is written,
    and raise its error."""

    def __init__(self, run: Run):
        self.run = run

    @property
    def saves(self) -> bool:
        """Whether what the framework saves becomes a checkpoint of the run. Otherwise (outside an attempt, or if it has no
        place for checkpoints) the framework saves as it does without Trackway."""
        return self.run._saves

    @property
    def only_observes(self) -> bool:
        """Whether this launch is a diagnosis: neither the run nor the framework saves anything in it."""
        return self.run._diagnosis is not None

    @property
    def rank(self) -> int:
        return rank_of(self.run)

    @property
    def world_size(self) -> int:
        """The number of processes that save together."""
        return self.run._world_size

    @property
    def root(self) -> Path:
        """The folder of the run's checkpoints. Only if `saves`."""
        return Path(os.path.abspath(os.environ["TRACKWAY_CHECKPOINTS"]))

    @property
    def saved_step(self) -> int | None:
        """The step of the last checkpoint that this process submitted; None before the first one."""
        return self.run._saved_step

    # Saving

    def due(self, step: int, *, force: bool = False) -> bool:
        """Whether to save now: `run.checkpoint_due(step)`, or `force` for a step that is not saved yet."""
        return self.run._due(step, self.run._components, force)

    def save(
        self,
        step: int,
        components: Mapping[str, Any],
        *,
        files: Mapping[str, bytes] | None = None,
        wait: bool = False,
    ) -> None:
        """Saves these components, those passed to `run.resume()`, generators and position, and `files` by their names. Returns
        when everything is copied, or with `wait` after the commit. On every rank, each with what it has."""
        draft = self.open(step, components)
        try:
            for name, content in (files or {}).items():
                draft.bytes(name, "other", content)
        except BaseException:
            draft.drop()
            raise
        self.submit(draft, step, wait=wait)

    def open(self, step: int, components: Mapping[str, Any] | None = None) -> Draft:
        """Begins a checkpoint with these components, those passed to `run.resume()`, generators and position.

        Raises InputError if another thread is saving."""
        whole = {**self.run._components, **(components or {})}
        draft = self.run._open(step, whole, waiting=True)
        if draft is None:
            raise InputError(f"step {step}: another thread is saving a checkpoint of this run")
        try:
            self.run._draft(draft, whole)
        except BaseException:
            draft.drop()
            raise
        return draft

    def submit(
        self, draft: Draft, step: int, *, metrics: list[tuple[str, float]] | None = None, wait: bool = False
    ) -> None:
        """Hands a complete draft over: it is written and committed in the background."""
        self.run._submit(draft, step, metrics or [], wait)

    def wait(self) -> None:
        """Waits until the last save is committed, and raises its error if it failed."""
        self.run._wait()

    # Resuming

    def newest(self) -> Kept | None:
        """The checkpoint that the attempt resumes: the newest of which every byte verifies, for all ranks the same. None if
        nothing was ever committed.

        Raises IntegrityError if checkpoints were committed but none verifies."""
        return self.run._resume_files()

    def restore_place(self, source: Kept) -> None:
        """Restores the random generators and the position in the data."""
        self.run._restore_place(source)

    def resume(self, components: Mapping[str, Any]) -> Start:
        """As `run.resume(**components)`; the files are verified and mapped, so that the framework reads its part of them
        itself."""
        self.run._remember(components)
        return self.run._resume_with(components, self.run._resume_files(mapped=True))

    def resumed_folder(self) -> Path | None:
        """The folder of the checkpoint that the attempt resumes, which is verified if it was not yet; None if nothing was ever
        committed."""
        if self.run._resumed is None:
            self.resume(self.run._components)
        return None if self.run._resumed is None else self.run._resumed[1]

    def begins_with(self, source: Kept) -> bool:
        """Whether this is the checkpoint that the attempt resumes, and none was saved since."""
        return self.saved_step is None and self.run._resumed == (source.loaded.number, source.loaded.folder)


def committed_in(root: Path) -> list[checkpoint.Checkpoint]:
    """The checkpoints of a root that can be loaded, oldest first."""
    return [one for one in checkpoint.list(root) if one.state in ("committed", "superseded")]


def load_number(root: Path, number: int) -> Kept | None:
    """A checkpoint of which every byte was verified; None if it is not committed."""
    loaded = load_checkpoint(str(root), number)
    return None if loaded is None else Kept(loaded)


def load_step(root: Path, step: int) -> Kept | None:
    """The last checkpoint of a step, of which every byte was verified; None if none is committed."""
    numbers = [one.number for one in committed_in(root) if one.step == step]
    return load_number(root, numbers[-1]) if numbers else None


def rank_of(run: Run) -> int:
    """The number of this process, from 0."""
    return run._rank


def before_finish(run: Run, conclude: Callable[[], None]) -> None:
    """Registers a function that records something before the record is closed; called once, it must not raise."""
    run._before_finish(conclude)
