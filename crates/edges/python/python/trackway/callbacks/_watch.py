"""Shared by all callbacks: a run, failures that are recorded and never raised, step times, and values that a device is
still computing."""

from __future__ import annotations

import functools
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from .._observing.batch_facts import leaves
from .._run.adapter import before_finish, rank_of
from .._state import arrays as _arrays

if TYPE_CHECKING:
    from .._run.run import Run

Batch = TypeVar("Batch")

# Steps whose values are on their way from a device. When that many are, those of a further step are not recorded.
FLIGHTS_MAX = 1024
# Elements of a tensor that go into the digest of a batch, and tensors of a batch that do.
DIGEST_ELEMENTS, DIGEST_TENSORS = 1024, 4
# The first steps, at each of which the memory of the device is looked at, so that a short run shows whether it grows; then the
# seconds from one look to the next. A look takes some 50 µs.
MEMORY_STEPS = 128
MEMORY_SECONDS = 1.0
# Updates since the first one during which no trained parameter has changed.
UNMOVED = "unmoved_updates"


class Flight(Protocol):
    """Values of one step that a device is still computing."""

    def landed(self) -> bool:
        """Whether `values` returns at once."""

    def values(self) -> Mapping[str, float]:
        """The values; waits until they are available."""


class Movement:
    """Whether the trained parameters have changed since the first update, by a fingerprint of them: an array of PyTorch or NumPy
    with a number for each, or None if nothing is trained. Compared until they have, which is at the first update as a rule; of
    those nothing is recorded."""

    def __init__(self) -> None:
        self.updates: int = 0
        self.is_over: bool = False
        # False: no update so far had a gradient, so that their norm is 0.
        self.has_gradients: bool = True
        self._before: Any = None
        self._was_recorded = False

    def begin(self, fingerprint: Callable[[], Any]) -> None:
        """An update comes."""
        if self._before is None:
            self._before = fingerprint()

    def end(self, fingerprint: Callable[[], Any]) -> dict[str, Any]:
        """Updates were made: how many there were, or 0 if a parameter has changed."""
        if self._before is None or not self.updates:
            return {}
        now = fingerprint()
        if now is None or now.shape != self._before.shape:  # others are trained from now on
            self._before, self.updates = now, 0
            return {}
        return {UNMOVED: (now == self._before).all() * self.updates}

    def settled(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """What to record of values that have arrived."""
        if UNMOVED not in values:
            return values
        others = {name: value for name, value in values.items() if name != UNMOVED}
        if self.is_over:
            return others
        updates = int(values[UNMOVED])
        if updates == 0:
            self.is_over, self._before = True, None
            return {**others, UNMOVED: 0} if self._was_recorded else others
        self._was_recorded = True
        return {**({} if self.has_gradients else {"grad_norm": 0.0}), **others, UNMOVED: updates}


def quiet(hook: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a framework hook: it does nothing outside an attempt, and a failure becomes an event, once per hook."""

    @functools.wraps(hook)
    def guarded(self: Watch, *arguments: Any, **named: Any) -> Any:
        try:
            return hook(self, *arguments, **named) if self.run.enabled else None
        except Exception as error:  # noqa: BLE001 - the training must not end because of what looks at it
            self.failed(hook.__name__, error)
            return None

    return guarded


class Watch:
    """Observes one training. `run` is the result of `trackway.attach()`; without it the callback attaches by itself."""

    def __init__(self, run: Run | None = None):
        self._run = run
        self._reported: set[str] = set()
        self._flights: deque[tuple[int, Flight]] = deque()
        # On the monotonic clock: when the step that is being made began. None while nothing is measured.
        self._began: float | None = None
        self._waited: float | None = None
        self._samples = 0
        # Samples since the last update of the weights, and those of the update that was recorded last.
        self._since_update = 0
        self._update_samples = 0
        self._digest: int | None = None
        self._input_digest: int | None = None
        self._memory_at = -MEMORY_SECONDS
        self._memory_looks = 0
        self.movement: Movement = Movement()

    @property
    def run(self) -> Run:
        if self._run is None:
            from .._run.run import attach

            self._run = attach()
        return self._run

    def failed(self, hook: str, error: BaseException) -> None:
        if hook not in self._reported:
            self._reported.add(hook)
            why = f"{type(error).__name__}: {error}"
            self.run.event("callback_failed", callback=type(self).__name__, hook=hook, why=why)

    # Time

    def begin(self) -> None:
        """Starts timing the step: at the start, and after anything that is not part of a step."""
        self._began = time.perf_counter()

    def pause(self) -> None:
        """What follows is not part of a step: an evaluation, a save. No time is recorded for the step around it."""
        self._began = None

    def waited(self) -> None:
        """The batch has arrived, and since `begin` or the last step the loop did nothing but wait for it."""
        if self._began is not None:
            self._waited = (self._waited or 0.0) + time.perf_counter() - self._began

    def take(self, batch: Any) -> None:
        """Counts the samples of a batch, and computes its digest."""
        found = leaves(batch)
        count = next((int(value.shape[0]) for _, value in found if getattr(value, "shape", None)), 0)
        self._samples += count
        self._since_update += count
        self._digest = digest(value for _, value in found)
        self._input_digest = digest([inputs]) if (inputs := largest(value for _, value in found)) is not None else None

    def update(self, samples: int | None = None) -> dict[str, float]:
        """The weights are updated now: `samples_per_update`, the samples since the last update in this process, if it is not
        what was recorded last. `samples`: their number, if it is not counted by `take`."""
        count, self._since_update = self._since_update if samples is None else samples, 0
        if count == 0 or count == self._update_samples:
            return {}
        self._update_samples = count
        return {"samples_per_update": count}

    def measured(self, samples: int | None = None) -> dict[str, float]:
        """The measurements of the step that ends now; the next one begins."""
        now = time.perf_counter()
        values: dict[str, float] = {}
        if self._began is not None:
            seconds = now - self._began
            values["step_seconds"] = seconds
            count = self._samples if samples is None else samples
            if count and seconds > 0:
                values["samples_per_second"] = count / seconds
        if self._waited is not None:
            values["batch_wait_seconds"] = self._waited
        if self._digest is not None:
            values["batch_digest"] = self._digest
        if self._input_digest is not None:
            values["input_digest"] = self._input_digest
        self._began, self._waited, self._samples = now, None, 0
        self._digest = self._input_digest = None
        return values

    def measured_batches(self, batches: Iterable[Batch], batch_of: Callable[[Batch], Any]) -> Iterator[Batch]:
        """The same batches; the time spent waiting for each is measured."""
        iterator = iter(batches)
        while True:
            began = time.perf_counter()
            if self._began is None or self._waited is None:
                self._began = began  # after a step: what the loop did after it is not part of the next one
            try:
                batch = next(iterator)
            except StopIteration:
                return
            self._waited = (self._waited or 0.0) + time.perf_counter() - began
            self._take_quietly(batch_of(batch))
            yield batch

    def _take_quietly(self, batch: Any) -> None:
        try:
            if self.run.enabled:
                self.take(batch)
        except Exception as error:  # noqa: BLE001 - an observer never ends the script
            self.failed("batches", error)

    def memory_is_due(self) -> bool:
        """Whether to read the memory of the device again. Asked once a step."""
        now = time.perf_counter()
        due = self._memory_looks < MEMORY_STEPS or now - self._memory_at >= MEMORY_SECONDS
        if due:
            self._memory_at = now
            self._memory_looks += 1
        return due

    # Parameters

    def updates_begin(self, fingerprint: Callable[[], Any]) -> None:
        self._look_at_parameters(self.movement.begin, fingerprint)

    def unmoved(self, fingerprint: Callable[[], Any]) -> dict[str, Any]:
        return self._look_at_parameters(self.movement.end, fingerprint) or {}

    def _look_at_parameters(self, look: Callable[..., Any], fingerprint: Callable[[], Any]) -> Any:
        """Rank 0 alone looks. Parameters that cannot be read cost no other value."""
        if self.movement.is_over or rank_of(self.run) != 0:
            return None
        try:
            return look(fingerprint)
        except Exception as error:  # noqa: BLE001 - an observer never ends the script
            self.movement.is_over = True
            self.failed(UNMOVED, error)
            return None

    # Values

    def _log(self, step: int, arrived: Mapping[str, Any]) -> None:
        if values := self.movement.settled(arrived):
            self.run.log(step, values)

    def record(self, step: int, values: Mapping[str, Any], flight: Flight | None = None) -> None:
        """Records what is known of a step, and what has become known of earlier ones."""
        self._log(step, values)
        if flight is not None:
            before_finish(self.run, self.land_all)
            if len(self._flights) < FLIGHTS_MAX:
                self._flights.append((step, flight))
            else:
                self.failed("record", OverflowError(f"values of {FLIGHTS_MAX} steps are still on the device"))
        self.land()

    def land(self) -> None:
        """Records the values that have arrived, in step order, without waiting."""
        while self._flights and self._flights[0][1].landed():
            step, flight = self._flights.popleft()
            self._log(step, flight.values())

    def land_all(self) -> None:
        """Waits for the values that are still on the device, at the end of a training."""
        while self._flights:
            step, flight = self._flights.popleft()
            try:
                self._log(step, flight.values())
            except Exception as error:  # noqa: BLE001 - an observer never ends the script
                self.failed("land_all", error)


def digest(values: Iterable[Any]) -> int | None:
    """A digest that identifies a batch: the CRC-32 of up to 1,024 elements of each of the first four tensors in host
    memory. None if there are none."""
    from zlib import crc32

    found: int | None = None
    for value in list(values)[:DIGEST_TENSORS]:
        if (sample := _sample(value)) is not None:
            found = crc32(sample, found or 0)
    return found


def largest(values: Iterable[Any]) -> Any | None:
    """The largest tensor, the first of equal ones: the model input. None unless there are others, such as labels, to
    distinguish it from."""
    tensors = [value for value in values if _arrays.is_tensor(value)][:DIGEST_TENSORS]
    return max(tensors, key=_size_bytes) if len(tensors) > 1 else None


def _size_bytes(tensor: Any) -> int:
    return int(getattr(tensor, "nbytes", 0))


def _sample(value: Any) -> bytes | None:
    if _arrays.is_torch(value):
        if value.device.type != "cpu" or not value.is_contiguous():
            return None
        flat = value.detach().reshape(-1)
        flat = flat[:: max(1, -(-len(flat) // DIGEST_ELEMENTS))].contiguous()
        return bytes(flat.view(_arrays.loaded("torch").uint8).numpy()) if len(flat) else None
    if _arrays.is_numpy(value) and value.dtype != object:
        stride = max(1, -(-value.size // DIGEST_ELEMENTS))
        flat = value.reshape(-1) if value.flags.c_contiguous else value.flat
        return bytes(flat[::stride].tobytes()) if value.size else None
    return None
