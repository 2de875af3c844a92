"""Lightning's checkpoints through Trackway: `Trainer(plugins=[trackway.lightning.TrackwayCheckpointIO()])`."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from . import checkpoint
from ._run.adapter import SaveSession, committed_in, load_number
from ._run.run import Run, attach
from ._state import state as _state
from ._state import tree as _tree
from ._state.ranks import FilesOf, Kept
from .errors import InputError

if not TYPE_CHECKING and ("lightning.pytorch" in sys.modules or "lightning" in sys.modules):
    from lightning.fabric.plugins import CheckpointIO, TorchCheckpointIO
else:
    from lightning_fabric.plugins import CheckpointIO, TorchCheckpointIO

__all__ = ["TrackwayCheckpointIO"]

# What the components of a checkpoint are called, by the keys of Lightning's dictionary. The other keys are in `trainer`.
COMPONENTS = {"state_dict": "model", "optimizer_states": "optimizers", "lr_schedulers": "schedulers"}
TRAINER = "trainer"
# Values that only pickle can store, such as hyperparameters that are objects; written by `torch.save`.
FOREIGN_FILE = "foreign.pt"
# What a tree would give back as something else than it was.
LOSSY = {"stateful", "namedtuple", "pytree"}

POINTER_FORMAT = "trackway.pointer"
# The longest file that can be a pointer, in bytes.
POINTER_BYTES_MAX = 64 << 10


class TrackwayCheckpointIO(CheckpointIO):
    """Saves and loads Lightning's checkpoints as checkpoints of the run.

        io = trackway.lightning.TrackwayCheckpointIO()
        trainer = Trainer(plugins=[io], callbacks=[trackway.callbacks.LightningCallback()])
        trainer.fit(model, ckpt_path=io.newest)

    A save returns when everything is copied; it is written and committed in the background (`wait=True`: before it
    returns). At the path that Lightning chose, a small file points to the checkpoint, so that its names, links and
    `ckpt_path="last"` work. Removing a checkpoint removes that file; the data is retained by the `keep` of the run file.
    Random generators are saved and restored as well, which Lightning does not do.

    With `LightningCallback` checkpoints are also saved by the cadence of the run file, on request and before a stop.
    Several processes need that callback, and a launcher that sets their ranks (torchrun, srun). FSDP, DeepSpeed and
    ModelParallel strategies do not use such a plugin.

    Weights alone (`save_weights_only`) are written as a plain file, since training cannot be resumed from them. Outside
    an attempt every checkpoint is.

    The errors of a save in the background are raised by the next save and at the end of the training: StorageError,
    FencedError. Raises IntegrityError if nothing verifies, and InputError for a path that cannot be loaded."""

    def __init__(self, run: Run | None = None, *, wait: bool = False):
        super().__init__()
        self._run = run
        self._wait = wait
        self._plain = TorchCheckpointIO()
        # The checkpoint that `newest` read for `load_checkpoint`.
        self._read: tuple[str, Kept] | None = None
        # Whether the callback makes the other ranks take part.
        self._accompanied = False

    @property
    def run(self) -> Run:
        if self._run is None:
            self._run = attach()
        return self._run

    @property
    def session(self) -> SaveSession:
        """What saves for Lightning in this run."""
        return SaveSession(self.run)

    def join(self, run: Run | None) -> Run:
        """The run of both this and the callback: the one that was given to either."""
        self._run = self._run or run
        return self.run

    @property
    def newest(self) -> str | None:
        """The folder of the newest checkpoint that verifies, for `ckpt_path`; None if nothing was ever committed, so
        that the training begins at the start. With several processes, all of them need to ask.

        Raises IntegrityError if checkpoints were committed but none verifies."""
        if not self.session.saves:
            return None
        source = self.session.newest()
        if source is None:
            self._read = None
            return None
        self._read = (str(source.loaded.folder), source)
        return self._read[0]

    # What Lightning calls

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | os.PathLike[str], storage_options: Any | None = None
    ) -> None:
        """Lightning's hook, on the first process."""
        session = self.session
        if not session.saves or "optimizer_states" not in checkpoint:
            self._plain.save_checkpoint(checkpoint, os.fspath(path), storage_options)
            return
        if session.world_size > 1 and not self._accompanied:
            raise InputError(
                f"{session.world_size} processes save together: add trackway.callbacks.LightningCallback() to the callbacks "
                "of the Trainer"
            )
        if not session.only_observes:
            step = int(checkpoint["global_step"])
            components, foreign = _parted(checkpoint)
            session.save(step, components, files=_foreign_file(foreign), wait=self._wait)
            if self.run.rehearsal is None:  # whose checkpoints are gone when the training looks at the path
                _point(Path(path), session.root, step)

    def load_checkpoint(
        self, path: str | os.PathLike[str], map_location: Any | None = None, weights_only: bool | None = None
    ) -> dict[str, Any]:
        """Lightning's hook, on every process: the checkpoint that a path names, or a plain file."""
        source = self._source_of(Path(path))
        if source is None:
            given = {} if map_location is None else {"map_location": map_location}
            return dict(self._plain.load_checkpoint(os.fspath(path), weights_only=weights_only, **given))
        found = _joined(source, map_location, weights_only)
        if self.session.begins_with(source):
            self.session.restore_place(source)
        return found

    def remove_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Removes the file that points to a checkpoint, or a plain one. The run file decides what is retained."""
        self._plain.remove_checkpoint(os.fspath(path))

    def teardown(self) -> None:
        """Waits for the last save, and raises its error."""
        if self.session.saves:
            self.session.wait()

    # Saving

    def accompany(self, step: int) -> None:
        """On every process, in the order of Lightning's hooks before a save: those that Lightning does not let save
        store what each has for itself."""
        self._accompanied = True
        session = self.session
        if session.saves and session.rank > 0 and not session.only_observes:
            session.save(step, {}, wait=self._wait)

    # Loading

    def _source_of(self, path: Path) -> Kept | None:
        """The files of the checkpoint at a path; None if there is a plain file."""
        read, self._read = self._read, None
        if read is not None and str(path) == read[0]:
            return read[1]
        if (path / "manifest.json").is_file():
            root, prefix = path.parent.parent, f"{path.parent.name}/{path.name}"
            numbers = [one.number for one in checkpoint.list(root) if one.object_prefix == prefix]
            return _loaded(root, numbers[-1] if numbers else None, path)
        pointed = _pointed(path)
        return None if pointed is None else self._behind(path, *pointed)

    def _behind(self, path: Path, root: Path, step: int) -> Kept:
        """What a pointer names. A process may have ended before that was committed: then it is the newest one of the run."""
        session, there = self.session, committed_in(root)
        numbers = [one.number for one in there if one.step == step]
        begins = session.saves and session.saved_step is None
        # An attempt that goes by an older path, or that of another run, has had no time to write its own.
        if begins and (root != session.root or all(one.step <= step for one in there)):
            newest = session.newest()
            if newest is not None:
                return newest
        if not numbers:
            steps = ", ".join(str(one.step) for one in there) or "none"
            raise InputError(f"{path} names step {step}, which {root} does not hold; it holds {steps}")
        return _loaded(root, numbers[-1], path)


def _loaded(root: Path, number: int | None, path: Path) -> Kept:
    kept = None if number is None else load_number(root, number)
    if kept is None:
        raise InputError(f"{path} is not a committed checkpoint of {root}")
    return kept


def _point(path: Path, root: Path, step: int) -> None:
    """Writes a file that names a checkpoint, in place of what was there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"format": POINTER_FORMAT, "version": 1, "root": str(root), "step": step})
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    draft.write_text(text + "\n")
    os.replace(draft, path)


def _pointed(path: Path) -> tuple[Path, int] | None:
    """The root and the step that a pointer names; None if the file is something else."""
    try:
        with path.open("rb") as file:
            content = file.read(POINTER_BYTES_MAX + 1)
        found = json.loads(content) if content.startswith(b"{") and len(content) <= POINTER_BYTES_MAX else {}
    except (OSError, ValueError):
        return None
    if found.get("format") != POINTER_FORMAT:
        return None
    if found.get("version") != 1:
        raise InputError(f"{path} has version {found.get('version')}, but this trackway reads 1")
    return Path(found["root"]), int(found["step"])


def _parted(checkpoint: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The components of Lightning's dictionary, and what only pickle can store."""
    foreign = {key: value for key, value in checkpoint.items() if not _is_storable(value)}
    stored = {key: value for key, value in checkpoint.items() if key not in foreign}
    components = {name: stored.pop(key) for key, name in COMPONENTS.items() if key in stored}
    return {**components, TRAINER: stored}, foreign


def _foreign_file(foreign: dict[str, Any]) -> dict[str, bytes]:
    """The file of what only pickle can store, if there is any."""
    if not foreign:
        return {}
    content = io.BytesIO()
    torch.save(foreign, content)
    return {FOREIGN_FILE: content.getvalue()}


def _is_storable(value: Any) -> bool:
    """Whether a value can be stored without pickle and comes back as it was."""
    try:
        return not _has_lossy(_tree.Encoder().encode(value))
    except InputError:
        return False


def _has_lossy(node: Any) -> bool:
    if isinstance(node, list):
        return any(_has_lossy(item) for item in node)
    if not isinstance(node, dict):
        return False
    return node.get(_tree.TAG) in LOSSY or any(_has_lossy(item) for item in node.values())


def _joined(source: Kept, map_location: Any, weights_only: bool | None) -> dict[str, Any]:
    """Lightning's dictionary."""
    files = FilesOf(source, 0)
    stored = _state.Stored(files)
    if TRAINER not in stored.names:
        raise InputError(f"the checkpoint of step {source.loaded.step} was not saved by Lightning through Trackway")
    found: dict[str, Any] = dict(stored.restore(TRAINER))
    for key, name in COMPONENTS.items():
        if name in stored.names:
            found[key] = stored.restore(name)
    if FOREIGN_FILE in [name for name, _ in files.files]:
        content = io.BytesIO(bytes(memoryview(files.take(FOREIGN_FILE))))
        found |= torch.load(content, map_location=map_location or "cpu", weights_only=bool(weights_only))
    if isinstance(map_location, (str, torch.device)):
        found = {key: _moved(value, map_location) for key, value in found.items()}
    return found


def _moved(value: Any, device: str | torch.device) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return type(value)((key, _moved(item, device)) for key, item in value.items())
    return [_moved(item, device) for item in value] if type(value) is list else value
