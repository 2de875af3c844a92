"""The run as a training script sees it."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from . import _state
from ._exceptions import tell_exception, watch_exceptions
from ._loader import Cursor
from ._metrics import as_floats
from ._ranks import FilesOf, Kept, OwnFiles, Sharded, put, rejoined, unwrap
from ._rehearsal import Rehearsal
from ._rng import ProcessRng
from ._share import share_of
from ._stacks import dump_stacks_on_signal
from ._trackway import Loaded, Recorder, Stage, stage
from .errors import InputError

Batch = TypeVar("Batch")

# Components that every checkpoint of a run has, and that no other may be called.
RNG, CURSOR = "rng", "cursor"
# The event that says which batch, counted from 0 over all epochs, the steps from one on train on.
DATA_CURSOR_EVENT = "data_cursor"


class Place(NamedTuple):
    """The batch that a step trains on; no epoch: none was said."""

    step: int
    epoch: int | None
    batch: int


class Start(int):
    """The step to go on with, and what the resume brought back. An `int`: 1 when nothing was resumed.

    `resumed`: whether there was a checkpoint. `warm_start`: the step of the stage before whose weights were taken.
    `state`: the restored value of each component that is no object and no dict (those are filled in place):
    `params = start.state["params"]`. `metrics`: the values saved with the checkpoint. `fallbacks`: newer checkpoints that were passed over, as `(step or None, why)`."""

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
    """A training process and its flight record, control file and checkpoints. Made by `trackway.attach()`.

    Outside a Trackway attempt nothing is recorded or saved, and the loop runs the same."""

    def __init__(self) -> None:
        self._components: dict[str, Any] = {}
        self._cursor = Cursor()
        self._next_step = 1
        # What the generators of the process must be before the next batch; set by a resume.
        self._rng_to_come: Any = None
        self._last_step: int | None = None
        self._saved_step: int | None = None
        self._prepared = False
        self._rank, self._world_size = self._ranks
        plan = self._rehearsal_plan
        # What this launch rehearses; None in training and outside an attempt.
        self.rehearsal: Rehearsal | None = Rehearsal(self, *plan) if plan else None
        # An attempt may have no place for checkpoints.
        self._saves = self.enabled and bool(os.environ.get("TRACKWAY_CHECKPOINTS"))
        self._sigterm_watched = False
        self._share_told = False
        self._seen_before_told = False
        self._told_error: BaseException | None = None
        self._endings: list[Callable[[], None]] = []
        self._process = os.getpid()
        if self.enabled:
            atexit.register(self._at_exit)
            watch_exceptions(self)
            dump_stacks_on_signal()
        else:
            # Outside an attempt the loop should pay next to nothing.
            self.log = self.event = self.param = self.heartbeat = _nothing  # type: ignore[method-assign]
            self.tag = self.progressive = self.artifact = self.exception = _nothing  # type: ignore[method-assign]

    # The record: never raises for a value, never waits for anything but one write

    def log(self, step: int, values: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        """Records the values of metrics at a step; one to two microseconds for a few of them. Names that are no
        identifiers go into `values`, a dict. A value is a number or a tensor of one element; what is none is passed
        over, and an event `value_unusable` says so once per name. NaN and infinities are kept.

        A tensor on a device is waited for, as `float(tensor)` would: log such values every few steps."""
        self._log(step, values, named)

    def event(self, kind: str, /, *, step: int | None = None, **fields: Any) -> None:
        """Records something that happened, such as `epoch_finished`; the fields are written as text."""
        self._event(kind, step, fields)

    def param(self, name: str, value: Any, /) -> None:
        """Records a parameter of the run; the value is written as text."""
        self._param(name, value)

    def tag(self, name: str, value: Any, /) -> None:
        """Tags the run: what it is found and sorted by. The value is written as text; the last one of a name holds."""
        self._tag(name, value)

    def progressive(self, step: int, loss: Any, /) -> None:
        """Records as `progressive_loss` the loss of a batch from before the model is trained on it: an estimate of
        how it does on what it has not seen. From the second pass of `batches()` on it is none; then nothing is
        recorded, which an event `progressive_seen_before` says once."""
        if self.epoch == 0:
            self._log(step, {"progressive_loss": loss}, {})
        elif not self._seen_before_told:
            self._seen_before_told = True
            self._event("progressive_seen_before", step, {"epoch": self.epoch})

    def artifact(self, path: str | os.PathLike[str], /, *, name: str | None = None, step: int | None = None) -> None:
        """Keeps a copy of a file, or of all files in a folder, with the attempt, under the hash of its content.

        The file is opened now and copied behind the loop: it may be deleted or replaced, but should not be changed in
        place. Equal content is stored once. What cannot be kept is an event `artifact_failed`; nothing is raised.
        `name` is its file name unless another one is given; of a folder each file is called `NAME/PLACE`."""
        try:
            place = os.path.abspath(os.fspath(path))
            self._artifact(name if name is not None else os.path.basename(place), place, step)
        except Exception as error:  # of a path that is none
            self._event("artifact_failed", None, {"name": name or path, "why": error})

    def exception(self, error: BaseException, /) -> None:
        """Records an exception: type, message, the places it came through and a digest of type and places, by which the
        same failure is found again. Of one that nothing catches this is done by itself."""
        if error is not self._told_error:
            self._told_error = error
            tell_exception(self, error)

    def heartbeat(self, step: int, /) -> None:
        """Says that the process is alive and at this step, where nothing is logged for long."""
        self._heartbeat(step)

    # Resuming

    def resume(self, *, loader: Iterable[Any] | None = None, **components: Any) -> Start:
        """Brings back the newest checkpoint that verifies, and remembers what every later checkpoint consists of.

        A component may be a PyTorch module, optimizer, scheduler or scaler, a random generator, any object with
        `state_dict()` and `load_state_dict()`, or a dict or list of tensors (NumPy, PyTorch, JAX) and plain values.
        Objects, dicts, lists and the tensors of PyTorch and NumPy in them are filled in place. Everything else, such
        as a pytree of JAX, is in `state` of the result, and is handed to `checkpoint(step, state={…})` again, since
        the program makes a new one at each step.

        The random generators of Python, NumPy and PyTorch, and the place in the data of `batches()`, are kept without
        being named. A `loader` is only needed here when it keeps its own place and is not given to `batches()`.

        Of several ranks all call this with the same names. A component that each rank has a part of is wrapped in
        `Sharded`; all others are the same everywhere, and rank 0 saves them. Each rank gets its own generators and
        place in the data back; when there are as many as at the save, else an event says that they begin anew.

        Returns the step to go on with: 1 when nothing was ever committed, and outside an attempt. Steps count from 1;
        a checkpoint of step N holds the state after N updates.

        Raises IntegrityError when checkpoints were committed and none verifies, FencedError when a newer attempt owns
        them, InputError when a component does not fit, or one that is in none of them is asked for."""
        for name in components:
            if _state.check_name(name) in (RNG, CURSOR):
                raise InputError(f"`{name}` is kept without being named; choose another name for this component")
        self._components = dict(components)
        if loader is not None:
            self._cursor.attend(loader)
        loaded = self._resume()
        if loaded is None:
            return self._begin_warm(components)
        source = Kept(loaded)
        stored = _state.Stored(FilesOf(source, self._rank))
        kept = self._restore(components, loaded, source)
        self._restore_place(stored, source, loaded)
        self._next_step = loaded.step + 1
        self._note_unused(stored, components, loaded.step)
        return Start(
            self._next_step, resumed=True, state=kept, metrics=dict(loaded.metrics), fallbacks=list(loaded.fallbacks)
        )

    def _begin_warm(self, components: Mapping[str, Any]) -> Start:
        """At step 1, with the weights of the stage before where the run file says `warm_start`: its optimizer, schedule,
        generators and place in the data are those of another training."""
        loaded = self._warm_start()
        if loaded is None:
            return Start(1)
        weights = {
            name: value for name, value in components.items() if _state.kind_of(name, unwrap(value)) == "weights"
        }
        if not weights:
            raise InputError("`warm_start` takes the weights of the stage before, and none of the components is a model")
        state = self._restore(weights, loaded, Kept(loaded))
        return Start(1, warm_start=loaded.step, state=state)

    def _restore(self, components: Mapping[str, Any], loaded: Loaded, source: Kept) -> dict[str, Any]:
        """Fills the components; what cannot be filled in place is returned."""
        stored = _state.Stored(FilesOf(source, self._rank))
        models = _models_in(components)
        restored = {}
        for name, target in components.items():
            if isinstance(target, Sharded) and loaded.world_size != self._world_size:
                parts = [_state.Stored(FilesOf(source, rank)).restore(name) for rank in range(loaded.world_size)]
                part = rejoined(name, target, parts, self._rank, self._world_size)
                restored[name] = put(target.value, part, name)
            else:
                restored[name] = stored.restore(name, unwrap(target), models=models)
        return {name: value for name, value in restored.items() if value is not unwrap(components[name])}

    def _restore_place(self, stored: _state.Stored, source: Kept, loaded: Loaded) -> None:
        # Where the checkpoint does not tell, a step was a batch.
        self._cursor.taken = loaded.step
        if loaded.world_size != self._world_size:
            return self._begin_epoch_anew(_state.Stored(FilesOf(source, 0)), loaded)
        names = stored.names
        if CURSOR in names:
            stored.restore(CURSOR, self._cursor)
        if RNG in names:
            self._rng_to_come = stored.restore(RNG)
            ProcessRng().load_state_dict(self._rng_to_come)
        return None

    def _begin_epoch_anew(self, first: _state.Stored, loaded: Loaded) -> None:
        """Another number of ranks deals the data otherwise: no place within an epoch is one for them."""
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
        """Numbers and batches of the steps that are still to be done; ends early when `should_stop()` says so.

        `start` is what `resume()` returned (and may be left out). `steps`: the last step. `epochs`: after how many
        passes through the loader the training is done, those before the resume included; as many as needed when only
        `steps` is given. When neither is given, the rest of this pass: for a loop of its own over
        `range(run.epoch, epochs)`. Steps are numbered on from call to call.

        After a resume in the middle of an epoch, the batches that were taken are loaded again and thrown away, which
        gives bit-equal batches whatever the data set does. `replay=False` passes over their indexes only: as exact
        where loading an item draws no random numbers, and much faster. A loader that keeps its own place
        (`state_dict()`) is not replayed.

        In a stage of the ladder (`[stages]`) only the rows come that belong to it: those of a DataLoader's data set, or
        the items of a sequence. Loaders without rows by number are refused, unless the script cuts them itself and says
        `cut=False`. A loader that validates is not given to `batches()` and stays whole.

        In a rehearsal the first batch, or the first few, come again and again, until the loss is at its target or the
        steps of the rehearsal are done; `steps`, `epochs` and `replay` do not count then.

        Raises InputError when the loader is empty or shorter than it was, or cannot be cut."""
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
        batches = self._cursor.batches(loader, epochs=epochs, replay=replay, rng=self._rng_to_come)
        self._rng_to_come = None
        if self.should_stop():
            return
        told = Place(step, None, 0)
        for batch in batches:
            told = self._tell_place(step, told)
            self._begin_step(step)
            self._next_step = step + 1
            yield step, batch
            if step == steps or self._stop_asked():
                return
            step += 1

    def _tell_place(self, step: int, told: Place) -> Place:
        """Says which batch a step trains on, where that does not follow from what was said before; answers with what
        was said last. A batch costs nothing as long as each step takes the next one of the same epoch."""
        batch = self._cursor.taken - 1
        if told.epoch == self.epoch and step - told.step == batch - told.batch:
            return told
        self._event(DATA_CURSOR_EVENT, step, {"batch": batch, "epoch": self.epoch})
        return Place(step, self.epoch, batch)

    def _note_share(self) -> None:
        """Says once how much of the data a stage trains on."""
        share = self._cursor.share
        if share is not None and not self._share_told:
            self._share_told = True
            self.event("stage_cut", stage=f"{stage():.12g}", rows=share.kept, rows_total=share.total)

    def _rehearse(
        self, rehearsal: Rehearsal, loader: Iterable[Batch], step: int, steps: int | None
    ) -> Iterator[tuple[int, Batch]]:
        self._watch_sigterm()
        if self._stop_asked():
            return  # a loop over epochs comes here again
        rehearsal.first_step, rehearsal.total_steps = step, steps
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
        """Whether to evaluate at the end of this step: at each multiple of `every`. In a rehearsal at the first step
        that asks, and then not again, so that the evaluation is tried however short the rehearsal is."""
        if self.rehearsal is not None:
            return self.rehearsal.evaluating()
        return step % every == 0

    def probe(self, loss_of: Callable[[Any], Any], batch: Any) -> None:
        """In a rehearsal: records once what `loss_of(batch)` gives for this batch and for one whose inputs are zeros,
        which a model that looks at its input must beat. Does nothing otherwise. `loss_of` must change nothing."""
        if self.rehearsal is not None:
            self.rehearsal.probe(loss_of, batch)

    @property
    def epoch(self) -> int:
        """Passes through the loader that are finished."""
        return self._cursor.epoch

    def should_stop(self) -> bool:
        """Whether to save a checkpoint and end: asked for by Trackway or by SIGTERM, or a newer attempt took over.

        From the first call on (and from the first of `batches()`), SIGTERM no longer ends the process inside an
        attempt, but is answered here."""
        self._watch_sigterm()
        return self._stop_asked()

    def _watch_sigterm(self) -> None:
        if self._sigterm_watched or not self.enabled:
            return
        self._sigterm_watched = True
        # A script with a handler of its own knows why.
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
        """Saves a checkpoint when it is time to: by the cadence of the run file, when Trackway asks for one, before a
        stop, at the last step of `batches(steps=…)`, or by `force`. Call it at the end of each step.

        Of several ranks all call it, at the same steps. They save together or not at all; when a rank skips, the
        checkpoint is given up and an event says so.

        Tensors are copied before this returns; they may change right after. `state` adds components to those given
        to `resume()`, or replaces them. `metrics` are kept in the checkpoint. `wait` returns after the commit.

        Returns whether a checkpoint was begun: False when it was not time, outside an attempt, or when the one before
        is still being written (an event says so). `force`, `wait` and the last step wait for the one before instead.

        Raises InputError for a state that cannot be stored, FencedError when the process must stop, StorageError when
        the disk refused this checkpoint or the one before."""
        if not self._saves:
            return False
        components = {**self._components, **(state or {})}
        if not self._prepared:
            # Now the optimizer has its state. What cannot be stored is told at the first step, not at the first save.
            self._prepared = True
            shared, own = self._shares(components)
            self._prepare(_state.size_bytes({**shared, **own}, _models_in(components)))
        due = self._checkpoint_due(step)
        last = step == self._last_step
        if not (due or force or last) or step == self._saved_step:
            return False
        if force or last or wait:
            self._wait(True)
        values = as_floats(metrics)
        if self.rehearsal is not None:
            self.rehearsal.saving(step, components)
        stage = self._begin(step)
        if stage is None:
            return False
        self._stage(stage, components)
        stage.submit(values)
        self._saved_step = step
        if wait:
            self._wait()
        return True

    def _stage(self, stage: Stage, components: Mapping[str, Any]) -> None:
        models = _models_in(components)
        shared, own = self._shares(components)
        _state.stage(stage, shared, models)
        if own:
            _state.stage(OwnFiles(stage, self._rank), own, models)
        stage.global_cursor(f"epoch {self._cursor.epoch} batch {self._cursor.index}".encode())

    def _shares(self, components: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """What this rank saves for all, and what it saves as its own."""
        place = {CURSOR: self._cursor, RNG: ProcessRng()}
        if self._world_size == 1:
            return {name: unwrap(value) for name, value in {**components, **place}.items()}, {}
        own = {name: unwrap(value) for name, value in components.items() if isinstance(value, Sharded)}
        shared = {name: value for name, value in components.items() if name not in own}
        return shared if self._rank == 0 else {}, {**own, **place}

    # The end

    def finish(self) -> None:
        """Waits for a checkpoint that is being written and ends the record in order. Also done when the interpreter
        exits; recording afterwards begins another segment.

        Raises what went wrong with the checkpoint."""
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
        """Has something told before the record ends, once; it must not raise."""
        if conclude not in self._endings:
            self._endings.append(conclude)

    def _conclude(self) -> None:
        while self._endings:
            self._endings.pop()()
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


def _models_in(components: Mapping[str, Any]) -> list[Any]:
    return _state.models_in({name: unwrap(value) for name, value in components.items()})


def _nothing(*_arguments: Any, **_named: Any) -> None:
    pass


def attach() -> Run:
    """The run of this process. Outside a Trackway attempt one that records nothing. Never fails."""
    return Run()
