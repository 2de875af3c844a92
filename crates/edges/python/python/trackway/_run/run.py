"""The run, as seen by a training script."""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from .. import _events
from .._data.loader import Cursor, Ranges, skipped_batches
from .._data.rng import ProcessRng
from .._data.share import share_of, tell_cut
from .._observing.gradients import tell_gradients
from .._state import state as _state
from .._state.joining import has_pieces, joined
from .._state.model_files import Paths, model_files, refuse_names_of
from .._state.ranks import FilesOf, Kept, OwnFiles, Sharded, put, rejoined, unwrap
from .._trackway import Draft, Loaded, Recorder, path_text, take_rung_keys
from ..errors import CheckpointError, InputError
from .exceptions import tell_exception, watch_exceptions
from .metrics import as_floats
from .stacks import dump_stacks_on_signal

if TYPE_CHECKING:
    from pathlib import Path

    from .._diagnosis.diagnosis import Diagnosis
    from .._rehearsal.rehearsal import Rehearsal

Batch = TypeVar("Batch")

# Components that every checkpoint of a run has, and that no other may be called.
RNG, CURSOR = "rng", "cursor"
# The event with the batch, counted from 0 over all epochs, that the steps from one on train on.
DATA_CURSOR_EVENT = "data_cursor"
NO_EPOCHS = (
    "`checkpoint.every` of the run file counts epochs, and the script has not reported how many are finished: take the batches "
    "from run.batches(), or call run.epochs_finished(0) before the first step and run.epochs_finished(n) after the nth epoch"
)


class Place(NamedTuple):
    """The batch that a step trains on; `epoch` is None if none was recorded."""

    step: int
    epoch: int | None
    batch: int


class Start(int):
    """The step to continue with, and what was restored. An `int`: 1 if nothing was resumed.

    `resumed`: whether there was a checkpoint. `warm_start`: the step of the previous rung whose weights were loaded.
    `state`: the restored value of each component that is neither an object nor a dict (those are filled in place):
    `params = start.state["params"]`. `metrics`: the values saved with the checkpoint. `fallbacks`: newer checkpoints
    that were skipped, as `(step or None, why)`."""

    resumed: bool
    warm_start: int | None
    state: dict[str, Any]
    metrics: dict[str, float]
    fallbacks: list[tuple[int | None, str]]

    def __new__(
        cls,
        step: int,
        *,
        resumed: bool = False,
        warm_start: int | None = None,
        state: dict[str, Any] | None = None,
        metrics: dict[str, float] | None = None,
        fallbacks: list[tuple[int | None, str]] | None = None,
    ) -> Start:
        start = super().__new__(cls, step)
        start.resumed, start.warm_start, start.state = resumed, warm_start, state or {}
        start.metrics, start.fallbacks = metrics or {}, fallbacks or []
        return start


class Run(Recorder):
    """A training process and its flight record, control file and checkpoints. Created by `trackway.attach()`.

    Outside a Trackway attempt nothing is recorded or saved, and the loop runs the same."""

    def __init__(self) -> None:
        self._components: dict[str, Any] = {}
        self._cursor = Cursor()
        self._next_step = 1
        # What the generators of the process must be before the next batch; set by a resume.
        self._rng_to_come: Any = None
        self._last_step: int | None = None
        self._saved_step: int | None = None
        # The number and the folder of the checkpoint that was resumed.
        self._resumed: tuple[int, Path] | None = None
        self._prepared = False
        self._rank, self._world_size = self._ranks
        # What this launch rehearses; None in training and outside an attempt.
        self.rehearsal: Rehearsal | None = self._rehearsing()
        # What this launch observes for an earlier attempt; None in training.
        self._diagnosis: Diagnosis | None = self._diagnosing()
        self._gradients_reported = False
        # An attempt may have no place for checkpoints.
        self._saves = self.enabled and bool(os.environ.get("TRACKWAY_CHECKPOINTS"))
        self._sigterm_watched = False
        self._share_reported = False
        self._seen_before_reported = False
        self._reported_error: BaseException | None = None
        self._endings: list[Callable[[], None]] = []
        self._process = os.getpid()
        if self.enabled:
            atexit.register(self._at_exit)
            watch_exceptions(self.exception)
            dump_stacks_on_signal()
            _events.attach(self)
        else:
            # Outside an attempt the loop should pay next to nothing.
            self.log = self.event = self.param = self.heartbeat = _nothing  # type: ignore[method-assign]
            self.tag = self.progressive = self.artifact = self.exception = _nothing  # type: ignore[method-assign]
            self.epochs_finished = _nothing  # type: ignore[method-assign]
        if self._diagnosis is not None and self._diagnosis.kind == "hang":
            # Before the script creates its process groups, where it has imported PyTorch already.
            self._diagnosis.install()

    def _rehearsing(self) -> Rehearsal | None:
        plan = self._rehearsal_plan
        if plan is None:
            return None
        from .._rehearsal.rehearsal import Rehearsal

        return Rehearsal(self, *plan)

    def _diagnosing(self) -> Diagnosis | None:
        kind = os.environ.get("TRACKWAY_DIAGNOSIS") if self.enabled else None
        if kind not in ("numeric", "throughput", "hang"):
            return None
        from .._diagnosis.diagnosis import Diagnosis

        return Diagnosis(self, kind)

    # The record: never raises for a value, never waits for anything but one write

    def log(self, step: int, values: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        """Records metric values at a step; takes one to two microseconds for a few of them. Names that are not valid
        identifiers are passed in `values`, a dict. A value is a number or a one-element tensor; any other value is
        skipped, with one event `value_unusable` per name. NaN and infinities are kept.

        A tensor on a device is waited for, as with `float(tensor)`: log such values only every few steps.

        At the first loss or gradient norm that is NaN or infinite, an event `nonfinite_gradients` names the parameters
        with such gradients, if a PyTorch model was passed to `resume()`."""
        metric = self._log(step, values, named)
        if metric is not None and not self._gradients_reported:
            self._tell_gradients(step, metric)
        if self._diagnosis is not None:
            self._diagnosis.logged(step)

    def _tell_gradients(self, step: int, metric: str) -> None:
        self._gradients_reported = True
        try:
            tell_gradients(self, self._components, step, metric)
        except Exception as error:  # noqa: BLE001 - the training must not end because of what looks at it
            self._event("callback_failed", step, {"callback": "log", "hook": "gradients", "why": error})

    def event(self, kind: str, /, *, step: int | None = None, **fields: Any) -> None:
        """Records an event, such as `epoch_finished`; the fields are stored as strings."""
        self._event(kind, step, fields)

    def data(self, name: str, /, default: str | None = None) -> str:
        """The path of a data set of the run file by its name, such as `train`: a cross-validation puts the rows of a fold
        there. Without Trackway, or for a name that the run file does not have, the default.

        Raises `KeyError` for such a name without a default."""
        path: str | None = json.loads(os.environ.get("TRACKWAY_DATA") or "{}").get(name, default)
        if path is None:
            raise KeyError(f"the run file has no `[data.{name}]`, and no default was given")
        self.event("data_path_taken", name=name)
        return path

    def param(self, name: str, value: Any, /) -> None:
        """Records a parameter of the run; the value is stored as a string."""
        self._param(name, value)

    def tag(self, name: str, value: Any, /) -> None:
        """Tags the run, for filtering and sorting. The value is stored as a string; the last value of a name wins."""
        self._tag(name, value)

    def progressive(self, step: int, loss: Any, /) -> None:
        """Records the loss of a batch before the model is trained on it as `progressive_loss`: an estimate of the loss
        on unseen data. From the second epoch of `batches()` on, the batches have been seen; then nothing is recorded,
        which one event `progressive_seen_before` reports."""
        if self.epoch == 0:
            self._log(step, {"progressive_loss": loss}, {})
        elif not self._seen_before_reported:
            self._seen_before_reported = True
            self._event("progressive_seen_before", step, {"epoch": self.epoch})

    def artifact(self, path: str | os.PathLike[str], /, *, name: str | None = None, step: int | None = None) -> None:
        """Stores a copy of a file, or of all files in a folder, with the attempt, addressed by the hash of its
        content.

        The file is opened now and copied in the background: it may be deleted or replaced, but should not be modified
        in place. Equal content is stored once. A failure is recorded as an event `artifact_failed`; nothing is raised.
        `name` defaults to the file name; the files of a folder are named `NAME/PATH`."""
        try:
            if not os.fspath(path):  # which is the working directory to abspath
                raise ValueError("the path is empty")
            place = os.path.abspath(os.fspath(path))
            self._artifact(name if name is not None else os.path.basename(place), place, step)
        except Exception as error:  # noqa: BLE001 - of a path that is none
            self._event("artifact_failed", None, {"name": name or path, "why": error})

    def exception(self, error: BaseException, /) -> None:
        """Records an exception: type, message, traceback locations, and a digest of type and locations that identifies
        the same failure in other attempts. Uncaught exceptions are recorded automatically."""
        if error is not self._reported_error:
            self._reported_error = error
            tell_exception(self, error)

    def heartbeat(self, step: int, /) -> None:
        """Reports that the process is alive and at this step; for long phases in which nothing is logged."""
        self._heartbeat(step)

    # Resuming

    def resume(self, *, loader: Iterable[Any] | None = None, **components: Any) -> Start:
        """Restores the newest checkpoint that verifies, and remembers the components of which later checkpoints
        consist.

        A component may be a PyTorch module, optimizer, scheduler or scaler, a random generator, any object with
        `state_dict()` and `load_state_dict()`, or a dict or list of tensors (NumPy, PyTorch, JAX) and plain values.
        Objects, dicts, lists and the PyTorch and NumPy tensors in them are filled in place. Everything else, such as a
        JAX pytree, is returned in `state` of the result, and must be passed to `checkpoint(step, state={…})` again,
        since the program creates a new one at each step.

        The random generators of Python, NumPy and PyTorch, and the position of `batches()` in the data, are saved
        automatically. A `loader` is only needed here if it tracks its own position and is not passed to `batches()`.

        With several ranks, all of them call this with the same names. Wrap a component of which each rank has its own
        part in `Sharded`; all others are the same everywhere, and rank 0 saves them. If the number of ranks is the same
        as at the save, each rank gets its own generators and position in the data back; otherwise these start over, and
        an event reports it.

        Returns the step to continue with: 1 if nothing was ever committed, and outside an attempt. Steps are numbered
        from 1; a checkpoint of step N holds the state after N updates.

        Raises IntegrityError if checkpoints were committed but none verifies, FencedError if a newer attempt owns them,
        and InputError if a component does not fit, or is requested but not in the checkpoint."""
        self._remember(components, loader)
        return self._resume_with(components, self._resume_files())

    def _remember(self, components: Mapping[str, Any], loader: Iterable[Any] | None = None) -> None:
        """Takes the components of which later checkpoints consist."""
        for name in components:
            if _state.check_name(name) in (RNG, CURSOR):
                raise InputError(f"`{name}` is saved automatically; choose another name for this component")
        self._components = dict(components)
        if self._diagnosis is not None:
            self._diagnosis.install()
        if loader is not None:
            self._cursor.attend(loader)

    def _resume_with(self, components: Mapping[str, Any], source: Kept | None) -> Start:
        if source is None:
            return self._begin_warm(components)
        kept = self._restore(components, source)
        self._restore_place(source)
        loaded = source.loaded
        self._note_unused(_state.Stored(FilesOf(source, self._rank)), components, loaded.step)
        return Start(
            self._next_step, resumed=True, state=kept, metrics=dict(loaded.metrics), fallbacks=list(loaded.fallbacks)
        )

    def _resume_files(self, *, mapped: bool = False) -> Kept | None:
        """The files of the checkpoint to resume, in memory, or mapped after they were verified; None if nothing was ever
        committed."""
        loaded = self._resume_target() if mapped else self._resume()
        self._resumed = None if loaded is None else (loaded.number, loaded.folder)
        return None if loaded is None else Kept(loaded, mapped=mapped)

    def _begin_warm(self, components: Mapping[str, Any]) -> Start:
        """Starts at step 1, with the weights of the previous rung if the run file sets `warm_start`: its optimizer,
        schedule, generators and position in the data belong to another training."""
        loaded = self._warm_start()
        if loaded is None:
            return Start(1)
        weights = {
            name: value for name, value in components.items() if _state.kind_of(name, unwrap(value)) == "weights"
        }
        if not weights:
            raise InputError("`warm_start` loads weights of the previous rung, but none of the components is a model")
        state = self._restore(weights, Kept(loaded))
        return Start(1, warm_start=loaded.step, state=state)

    def _restore(self, components: Mapping[str, Any], source: Kept) -> dict[str, Any]:
        """Fills the components; returns what cannot be filled in place."""
        stored = _state.Stored(FilesOf(source, self._rank))
        models = _models_in(components)
        restored = {}
        for name, target in components.items():
            if isinstance(target, Sharded):
                restored[name] = self._restore_part(name, target, source, models)
            else:
                restored[name] = stored.restore(name, target, models=models)
        return {name: value for name, value in restored.items() if value is not unwrap(components[name])}

    def _restore_part(self, name: str, target: Sharded, source: Kept, models: list[Any]) -> Any:
        """Fills this rank's part of a component."""
        own = _state.Stored(FilesOf(source, self._rank))
        if source.loaded.world_size == self._world_size:
            part = own.part(name)
            if not has_pieces(part):
                return own.restore(name, target.value, models=models)
            return put(target.value, joined(name, target.value, [part]), name)
        ranks = range(source.loaded.world_size)
        parts = [_state.Stored(FilesOf(source, rank)).part(name) for rank in ranks]
        return put(target.value, rejoined(name, target, parts, self._rank, self._world_size), name)

    def _restore_place(self, source: Kept) -> None:
        """Restores the generators and the position in the data."""
        loaded, stored = source.loaded, _state.Stored(FilesOf(source, self._rank))
        self._next_step = loaded.step + 1
        # If the checkpoint does not have it, a step was a batch.
        self._cursor.taken = loaded.step
        if loaded.world_size != self._world_size:
            return self._begin_epoch_again(_state.Stored(FilesOf(source, 0)), loaded)
        names = stored.names
        if CURSOR in names:
            stored.restore(CURSOR, self._cursor)
        if RNG in names:
            self._rng_to_come = stored.restore(RNG)
            ProcessRng().load_state_dict(self._rng_to_come)
        return None

    def _begin_epoch_again(self, first: _state.Stored, loaded: Loaded) -> None:
        """A different number of ranks distributes the data differently: no position within an epoch is valid for it."""
        if CURSOR not in first.names:
            return
        place = first.restore(CURSOR)
        self._cursor.begin_epoch(place["epoch"], place.get("taken", loaded.step) - place["index"])
        if self._rank == 0:
            why = f"saved by {loaded.world_size} and resumed by {self._world_size} ranks"
            self.event("resume_without_place", step=loaded.step, epoch=self.epoch, why=why)

    def _note_unused(self, stored: _state.Stored, components: Mapping[str, Any], step: int) -> None:
        if unused := [name for name in stored.names if name not in {*components, RNG, CURSOR}]:
            self.event("resume_left_out", step=step, components=", ".join(unused))

    # The loop

    def batches(
        self,
        loader: Iterable[Batch],
        *,
        start: int | None = None,
        steps: int | None = None,
        epochs: int | None = None,
        replay: bool = True,
        cut: bool = True,
    ) -> Iterator[tuple[int, Batch]]:
        """Yields `(step, batch)` for the remaining steps; ends early if `should_stop()` becomes true.

        `start` is the result of `resume()` (optional). `steps`: the last step. `epochs`: the total number of epochs,
        including those before the resume; as many as needed if only `steps` is given. If neither is given, the rest of
        this epoch: for a script with its own loop over `range(run.epoch, epochs)`. Step numbers continue from call to
        call.

        After a resume in the middle of an epoch, the batches already consumed are loaded again and discarded, which
        gives bit-identical batches whatever the data set does. `replay=False` only skips their indexes: equally exact
        if loading an item draws no random numbers, and much faster. A loader that tracks its own position
        (`state_dict()`) is not replayed.

        In a rung of the ladder (`[ladder]`) only the rows of that rung are used: those of a DataLoader's data set, or
        the items of a sequence. Loaders without indexable rows are rejected, unless the script selects the rows itself
        and passes `cut=False`. Do not pass a validation loader to `batches()`; it stays whole.

        In a rehearsal the first batch, or the first few, are repeated until the loss reaches its target or the steps of
        the rehearsal are done; `steps`, `epochs` and `replay` are ignored.

        Batches that the run skips since it was rolled back are loaded and discarded; they do not count as steps.

        Raises InputError if the loader is empty, shorter than it was, or cannot be restricted to the rung."""
        step = max(self._next_step, int(start or 1))
        if self.rehearsal is not None:
            yield from self._rehearse(self.rehearsal, loader, step, steps)
            return
        if epochs is None and steps is not None:
            epochs = sys.maxsize
        self._last_step = steps
        self._watch_sigterm()
        if steps is not None and step > steps:
            return
        self._cursor.share = share_of(loader, self._world_size) if cut else None
        self._note_share()
        batches = self._cursor.batches(
            loader, epochs=epochs, replay=replay, rng=self._rng_to_come, skipped=self.skipped_batches
        )
        self._rng_to_come = None
        if self.should_stop():
            return
        reported = Place(step, None, 0)
        self.epochs_finished(self.epoch)
        length = _length(loader) if self._cursor.share is None else None
        diagnosis = self._diagnosis
        for batch in batches if diagnosis is None else diagnosis.loaded(batches):
            reported = self._tell_place(step, reported)
            self._begin_step(step)
            self._next_step = step + 1
            self.epochs_finished(self.epoch + (self._cursor.index == length))
            if diagnosis is not None:
                diagnosis.begin(step, batch, self._cursor.taken - 1)
                if diagnosis.enough:
                    return
            yield step, batch
            if step == steps or self._stop_asked():
                return
            step += 1
        self.epochs_finished(self.epoch)

    def _tell_place(self, step: int, reported: Place) -> Place:
        """Records which batch a step trains on, if that does not follow from the last record; returns the last record.
        A batch costs nothing as long as each step takes the next batch of the same epoch."""
        batch = self._cursor.taken - 1
        if reported.epoch == self.epoch and step - reported.step == batch - reported.batch:
            return reported
        self._event(DATA_CURSOR_EVENT, step, {"batch": batch, "epoch": self.epoch})
        return Place(step, self.epoch, batch)

    def _note_share(self) -> None:
        """Records once how much of the data a rung trains on."""
        share = self._cursor.share
        if share is not None and not self._share_reported:
            self._share_reported = True
            tell_cut("loader", share.kept, share.total)

    def _rehearse(
        self, rehearsal: Rehearsal, loader: Iterable[Batch], step: int, steps: int | None
    ) -> Iterator[tuple[int, Batch]]:
        self._watch_sigterm()
        if self._stop_asked():
            return  # a loop over epochs comes here again
        rehearsal.first_step, rehearsal.total_steps = step, steps
        self.epochs_finished(self.epoch)
        with closing(rehearsal.repeat(loader, self._rng_to_come)) as batches:
            self._rng_to_come = None
            for batch in batches:
                self._begin_step(step)
                self._next_step = step + 1
                yield step, batch
                if self._stop_asked():
                    return
                step += 1

    def evaluating(self, step: int, *, every: int) -> bool:
        """Whether to evaluate at the end of this step: at each multiple of `every`. In a rehearsal, only at the first
        call, so that the evaluation is tested however short the rehearsal is."""
        if self.rehearsal is not None:
            return self.rehearsal.evaluating()
        return step % every == 0

    def probe(self, loss_of: Callable[[Any], Any], batch: Any) -> None:
        """In a rehearsal: records once the result of `loss_of(batch)` for this batch and for one with zeros as inputs,
        which a model that uses its input must beat. Does nothing otherwise. `loss_of` must not have side effects."""
        if self.rehearsal is not None:
            self.rehearsal.probe(loss_of, batch)

    @property
    def skipped_batches(self) -> Ranges:
        """The batches that the run skips since it was rolled back: half-open ranges, numbered from 0 across all epochs.
        `batches()` skips them by itself; this is for loops that read their data in another way. Empty outside an
        attempt and in a rehearsal.

        Raises InputError if `TRACKWAY_SKIP_BATCHES` cannot be parsed."""
        return skipped_batches() if self.enabled and self.rehearsal is None else ()

    @property
    def epoch(self) -> int:
        """The number of finished epochs."""
        return self._cursor.epoch

    def epochs_finished(self, epochs: int, /) -> None:
        """Reports how many epochs are finished, for `checkpoint.every = { epochs = N }` in the run file: before the first step
        the number of those that are done already, then at the end of each epoch, before `checkpoint(step)`. `batches()` and
        the callbacks of the frameworks do it by themselves."""
        self._epochs_finished(epochs)

    def should_stop(self) -> bool:
        """Whether to save a checkpoint and exit: Trackway or a SIGTERM requested it, or a newer attempt took over.

        From the first call on (and from the first call of `batches()`), SIGTERM no longer ends the process inside an
        attempt, but makes this return True."""
        self._watch_sigterm()
        return self._stop_asked() or (self._diagnosis is not None and self._diagnosis.enough)

    def _watch_sigterm(self) -> None:
        if self._sigterm_watched or not self.enabled:
            return
        self._sigterm_watched = True
        # A script with a handler has its reasons.
        if signal.getsignal(signal.SIGTERM) in (signal.SIG_DFL, None):
            self.stop_on_sigterm()

    # Checkpoints

    def checkpoint(
        self,
        step: int,
        *,
        state: Mapping[str, Any] | None = None,
        metrics: Mapping[str, float] | None = None,
        force: bool = False,
        wait: bool = False,
    ) -> bool:
        """Saves a checkpoint if one is due: by the cadence of the run file, on request by Trackway, before a stop, at
        the last step of `batches(steps=…)`, or with `force`. Call it at the end of each step. Without a cadence each
        call saves, unless it is called at each step: then a default cadence applies (docs/run-file.md).

        With several ranks, all of them call it, at the same steps. They save together or not at all; if a rank skips,
        the checkpoint is abandoned, and an event reports it.

        Tensors are copied before this returns; they may change right after. `state` adds to or replaces the components
        passed to `resume()`. `metrics` are stored in the checkpoint. `wait` returns after the commit.

        Returns whether a checkpoint was started: False if none was due, outside an attempt, or if the previous one
        is still being written (an event reports it). `force`, `wait` and the last step wait for the previous one
        instead.

        Raises InputError for a state that cannot be stored, FencedError if the process must stop, and StorageError if
        writing this or the previous checkpoint failed."""
        components = {**self._components, **(state or {})}
        if not self._due(step, components, force):
            return False
        values = as_floats(metrics)
        draft = self._open(step, components, waiting=force or wait)
        if draft is None:
            return False
        self._draft(draft, components)
        self._submit(draft, step, values, wait)
        return True

    def save_model(
        self,
        paths: Paths,
        /,
        *,
        step: int | None = None,
        name: str | None = None,
        state: Mapping[str, Any] | None = None,
        metrics: Mapping[str, float] | None = None,
    ) -> bool:
        """Commits files of a model that a library wrote itself as a checkpoint, for `trackway eval` and the registry: a file
        (`joblib.dump`, `booster.save_model`), several, or a folder (`save_pretrained`).

        They are copied before this returns, in chunks or by sharing their blocks, whatever their size; afterwards they may
        be changed or deleted. `step` defaults to the last one that was recorded, 0 if there was none. In the checkpoint a
        file has its own name, or `name`, with which the names of several files begin; `/` in a path below a folder
        becomes `-`.

        All these files count as weights. The components passed to `resume()`, and `state`, are saved with them, so that
        training can continue from the checkpoint; without any it is incomplete: it can be evaluated and not resumed.

        With several ranks, all of them call it; rank 0 saves the files.

        Returns whether it was committed: False outside an attempt. Raises InputError for a path or name that cannot be
        saved, CheckpointError if a file changes meanwhile, and what `checkpoint()` raises."""
        if not self._saves or self._diagnosis is not None:
            return False
        files = model_files(paths, name) if self._rank == 0 else []
        values = as_floats(metrics)
        components = {**self._components, **(state or {})}
        if components:
            refuse_names_of([*components, RNG, CURSOR], files)
        at = max(self._next_step - 1, self._reached_step) if step is None else step
        draft = self._open(at, components, waiting=True)
        if draft is None:
            raise CheckpointError(f"step {at}: another thread is saving a checkpoint of this run")
        try:
            if components or self._world_size > 1:
                self._draft(draft, components)
            for stored_name, path in files:
                draft.file(stored_name, "weights", path)
        except BaseException:
            draft.drop()
            raise
        self._submit(draft, at, values, True)
        return True

    def wrote_checkpoint(self, path: str | os.PathLike[str], /, *, step: int | None = None) -> None:
        """Reports that the script has finished writing a checkpoint with its framework's own means, such as Accelerate's
        `save_state`: a file or a folder. With `[checkpoint] adopt`, or if it is found by what it is, it is committed at once,
        with this step if its content has none. The callbacks of the frameworks report theirs. Never raises."""
        try:
            folder, name = os.path.split(os.path.abspath(os.fspath(path)))
            path = path_text(os.path.join(os.path.realpath(folder), name))
            self.event("checkpoint_written", step=step, path=path)
        except (TypeError, ValueError, OSError) as error:
            self.event("callback_failed", callback="wrote_checkpoint", hook="path", why=error)

    def checkpoint_due(self, step: int) -> bool:
        """Whether `checkpoint(step)` would save now: for what saves in another way, such as `trackway.dcp`. Call it at
        the end of each step, on every rank. False outside an attempt."""
        return self._due(step, self._components, False)

    def _due(self, step: int, components: Mapping[str, Any], force: bool) -> bool:
        if not self._saves or self._diagnosis is not None:
            return False
        if not self._prepared:
            # Now the optimizer has its state. What cannot be stored is reported at the first step, not at the first save.
            self._prepared = True
            if self._lacks_epochs:
                raise InputError(NO_EPOCHS)
            shared, own = self._shares(components)
            pieces = _sharded_in(components)
            self._prepare(_state.size_bytes({**shared, **own}, _models_in(components), pieces=pieces))
        due = self._checkpoint_due(step)
        return (due or force or step == self._last_step) and step != self._saved_step

    def _open(self, step: int, components: Mapping[str, Any], *, waiting: bool) -> Draft | None:
        """Begins a checkpoint. None if the previous one is still being written, and this one need not wait for it."""
        if waiting or step == self._last_step:
            self._wait(True)
        if self.rehearsal is not None:
            self.rehearsal.saving(step, components)
        return self._begin(step)

    def _submit(self, draft: Draft, step: int, metrics: list[tuple[str, float]], wait: bool) -> None:
        draft.submit(metrics)
        self._saved_step = step
        if wait:
            self._wait()

    def _draft(self, draft: Draft, components: Mapping[str, Any]) -> None:
        models = _models_in(components)
        shared, own = self._shares(components)
        pieces = _sharded_in(components)
        _state.draft(draft, shared, models, pieces=pieces)
        if own:
            _state.draft(OwnFiles(draft, self._rank), own, models, pieces=pieces)
        draft.global_cursor(f"epoch {self._cursor.epoch} batch {self._cursor.index}".encode())

    def _shares(self, components: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The components that rank 0 saves for all ranks, and those that this rank saves for itself."""
        place = {CURSOR: self._cursor, RNG: ProcessRng()}
        if self._world_size == 1:
            return {name: unwrap(value) for name, value in {**components, **place}.items()}, {}
        own = {name: unwrap(value) for name, value in components.items() if isinstance(value, Sharded)}
        shared = {name: value for name, value in components.items() if name not in own}
        return shared if self._rank == 0 else {}, {**own, **place}

    # The end

    def finish(self) -> None:
        """Waits for a checkpoint that is being written and closes the record. Also done at interpreter exit; recording
        afterwards starts a new segment.

        Raises the error of the checkpoint, if it failed."""
        self._conclude()
        try:
            self._wait()
        finally:
            self._finish()

    def _at_exit(self) -> None:
        if os.getpid() == self._process:
            self._conclude()
            self._finish()

    def _before_finish(self, conclude: Callable[[], None]) -> None:
        """Registers a function that records something before the record is closed; called once, it must not raise."""
        if conclude not in self._endings:
            self._endings.append(conclude)

    def _conclude(self) -> None:
        while self._endings:
            self._endings.pop()()
        keys, kept = take_rung_keys()
        if keys:
            tell_cut("keys", kept, keys)
        if self.rehearsal is not None:
            self.rehearsal.conclude()

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.exception(error)
        self.finish()


def _sharded_in(components: Mapping[str, Any]) -> set[str]:
    return {name for name, value in components.items() if isinstance(value, Sharded)}


def _models_in(components: Mapping[str, Any]) -> list[Any]:
    return _state.models_in({name: unwrap(value) for name, value in components.items()})


def _length(loader: Iterable[Any]) -> int | None:
    """The batches of an epoch; None if the loader does not know."""
    try:
        return len(loader)  # type: ignore[arg-type]
    except TypeError:
        return None


def _nothing(*_arguments: Any, **_named: Any) -> None:
    pass


def attach() -> Run:
    """The run of this process. Outside a Trackway attempt, one that records nothing. Never fails."""
    return Run()
