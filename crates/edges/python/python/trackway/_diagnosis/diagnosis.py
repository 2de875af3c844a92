"""Diagnoses: launches of kind `diagnose`, which observe the cause of a symptom of an earlier attempt.

Trackway launches the script again for a few steps and sets `TRACKWAY_DIAGNOSIS`. What is observed is recorded as facts
(docs/diagnosis.md); nothing is saved, and nothing here runs in training. Failures in here are recorded, never raised.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from .._observing.observed_run import ObservedRun
from .._state import arrays as _arrays
from .facts import DiagnosisFacts

Batch = TypeVar("Batch")

# A rank's operations are recorded once nothing changed for this part of the time after which collective operations fail.
STILL_FRACTION = 0.1


class Diagnosis(DiagnosisFacts):
    """The diagnosis of this launch. `kind` is `numeric`, `throughput` or `hang`."""

    def __init__(self, run: ObservedRun, kind: str):
        super().__init__(run, _number("TRACKWAY_MAX_STEPS"))
        self.kind = kind
        self._observes_from = _number("TRACKWAY_DIAGNOSIS_FROM_STEP") or 1
        self._watch: Any = None
        self._by_batches = False

    # Set by the run

    def install(self) -> None:
        """Starts to observe, as soon as there is something to observe."""
        if self._watch is not None:
            return
        try:
            self._watch = self._watching()
            if self._watch is not None:
                self.run._before_finish(self.conclude)
        except Exception as error:  # noqa: BLE001 - an observer never ends the script
            self.blind("install", error)

    def _watching(self) -> Any:
        torch = _arrays.loaded("torch")
        if self.kind == "throughput":
            from .diagnosis_profile import Profile

            return Profile(self)
        if torch is None:
            return None
        if self.kind == "hang":
            return self._watching_ranks(torch)
        from .numeric import Watch

        watch = Watch(self, self.run._components)
        self.say("observed", {"framework": "torch", "version": torch.__version__, "rank": self.rank})
        return watch

    def _watching_ranks(self, torch: Any) -> Any:
        seconds = _number("TRACKWAY_DIAGNOSIS_BARRIER_SECONDS")
        self.say("observed", {"framework": "torch", "rank": self.rank})
        if seconds is None or not torch.distributed.is_available():
            return Nothing()
        from . import hang

        hang.shorten_barriers(self, seconds)
        if not hang.has_recorder():
            hang.compare_each_operation()
        return hang.Collectives(self, still_seconds=seconds * STILL_FRACTION)

    def loaded(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The same batches; the time spent waiting for each is measured."""
        self._by_batches = True
        iterator = iter(batches)
        while True:
            began = time.perf_counter()
            try:
                batch = next(iterator)
            except StopIteration:
                return
            self.waited.append(time.perf_counter() - began)
            yield batch

    def begin(self, step: int, batch: Any, number: int) -> None:
        """The loop is about to make this step on this batch."""
        self.install()
        self.batch, self.batch_number = batch, number
        self._begin(step)

    def logged(self, step: Any) -> None:
        """A value of this step was recorded. Without `batches()` this is all that is known of the steps."""
        if self._by_batches or not isinstance(step, int) or step + 1 == self.step:
            return
        self.install()
        self._begin(step + 1)

    def _begin(self, step: int) -> None:
        self.step = step
        if self._watch is None:
            return
        try:
            self._watch.begin(step, step >= self._observes_from)
        except Exception as error:  # noqa: BLE001 - an observer never ends the script
            self.blind("begin", error)

    def conclude(self) -> None:
        """Records what is known at the end. Never raises."""
        watch, self._watch = self._watch, Nothing()
        try:
            if watch is not None:
                watch.conclude()
        except Exception as error:  # noqa: BLE001 - an observer never ends the script
            self.blind("conclude", error)


class Nothing:
    """Observes nothing."""

    def begin(self, step: int, observes: bool) -> None:
        """A step begins."""

    def conclude(self) -> None:
        """The training ends."""


def _number(name: str) -> int | None:
    try:
        return int(os.environ.get(name, ""))
    except ValueError:
        return None
