"""Diagnoses: launches of kind `diagnose`, which observe the cause of a symptom of an earlier attempt.

Trackway launches the script again for a few steps and sets `TRACKWAY_DIAGNOSIS`. What is observed is recorded as facts
(docs/diagnosis.md); nothing is saved, and nothing here runs in training. Failures in here are recorded, never raised.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from . import _arrays
from ._rehearsal import _finite, leaves, tensor_facts

if TYPE_CHECKING:
    from ._run import Run

Batch = TypeVar("Batch")

# Characters of the facts of one topic; the least important parts of larger ones are left out.
FACTS_CHARACTERS_MAX = 16_384
# Tensors of a batch, or of the input of a layer or an operation, that are described.
TENSORS_MAX = 8
# A rank's operations are recorded once nothing changed for this part of the time after which collective operations fail.
STILL_FRACTION = 0.1


class Diagnosis:
    """The diagnosis of this launch. `kind` is `numeric`, `throughput` or `hang`."""

    def __init__(self, run: Run, kind: str):
        self.kind = kind
        self.run = run
        # Whether everything was seen, so that the loop may end.
        self.enough = False
        # The step that is being made, and its batch; the step is None before the first one.
        self.step: int | None = None
        self.batch: Any = None
        self.batch_number: int | None = None
        # Seconds that the loop waited for each batch since the last look.
        self.waited: list[float] = []
        self._observes_from = _number("TRACKWAY_DIAGNOSIS_FROM_STEP") or 1
        self.last_step = _number("TRACKWAY_MAX_STEPS")
        self._watch: Any = None
        self._by_batches = False
        self._blind: set[str] = set()

    # Set by the run

    def install(self) -> None:
        """Starts to observe, as soon as there is something to observe."""
        if self._watch is not None:
            return
        try:
            self._watch = self._watching()
            if self._watch is not None:
                self.run._before_finish(self.conclude)
        except Exception as error:  # noqa: BLE001
            self.blind("install", error)

    def _watching(self) -> Any:
        torch = _arrays.loaded("torch")
        if self.kind == "throughput":
            from ._diagnosis_profile import Profile

            return Profile(self)
        if torch is None:
            return None
        if self.kind == "hang":
            return self._watching_ranks(torch)
        from ._diagnosis_numeric import Watch

        watch = Watch(self, self.run._components)
        self.say("observed", {"framework": "torch", "version": torch.__version__, "rank": self.run._rank})
        return watch

    def _watching_ranks(self, torch: Any) -> Any:
        seconds = _number("TRACKWAY_DIAGNOSIS_BARRIER_SECONDS")
        self.say("observed", {"framework": "torch", "rank": self.run._rank})
        if seconds is None or not torch.distributed.is_available():
            return Nothing()
        from . import _diagnosis_hang as hang

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
        except Exception as error:  # noqa: BLE001
            self.blind("begin", error)

    def conclude(self) -> None:
        """Records what is known at the end. Never raises."""
        watch, self._watch = self._watch, Nothing()
        try:
            if watch is not None:
                watch.conclude()
        except Exception as error:  # noqa: BLE001
            self.blind("conclude", error)

    # For what observes

    def say(self, about: str, facts: dict[str, Any]) -> None:
        """Records facts about a topic, without non-finite values, which JSON cannot represent."""
        facts = _finite(facts)
        text = json.dumps(facts, separators=(",", ":"), default=str)
        for part in ("batch_tensors", "outputs", "inputs", "top"):
            if len(text) > FACTS_CHARACTERS_MAX and part in facts:
                facts = {name: value for name, value in facts.items() if name != part}
                text = json.dumps(facts, separators=(",", ":"), default=str)
        if len(text) <= FACTS_CHARACTERS_MAX:
            self.run._event("diagnosis_facts", self.step, {"about": about, "facts": text})

    def blind(self, where: str, error: BaseException | str) -> None:
        """Records once what could not be observed."""
        if where not in self._blind:
            self._blind.add(where)
            why = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
            self.run._event("diagnosis_blind", self.step, {"where": where, "why": why})

    def place(self) -> dict[str, Any]:
        """Where the training is, as facts."""
        return {"rank": self.run._rank, "step": self.step, "batch": self.batch_number, "epoch": self.run.epoch}

    def batch_tensors(self) -> list[dict[str, Any]]:
        """The tensors of the batch in numbers."""
        tensors = [(name, value) for name, value in leaves(self.batch) if _arrays.is_tensor(value)]
        return [tensor_facts(name, value) for name, value in tensors[:TENSORS_MAX]]


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
