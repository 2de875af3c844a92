"""Rehearsals: launches of kind `one_batch` and `overfit`, before a run that costs money.

The loop gets the first batch, or the first ten, again and again: the same values in the same order, until the loss
reaches its target or the steps are used up. What can be observed meanwhile is recorded as facts
(docs/formats/rehearsal.md); Trackway evaluates them. Nothing here runs in training.
"""

from __future__ import annotations

import os
import resource
import statistics
import sys
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import nullcontext
from typing import Any, TypeVar

from .._data.loader import _iterate
from .._data.rng import ProcessRng
from .._observing.batch_facts import copied, digest, leaves, number, tensor_facts, zeroed
from .._observing.observed_run import ObservedRun
from .._state import arrays as _arrays
from ..errors import InputError
from .facts import RehearsalFacts

Batch = TypeVar("Batch")

# Batches compared with each other, also where only one is repeated.
LOOKED_AT_MIN = 3
# Steps after which facts are reported already, for a process that does not reach its end.
REPORTED_STEPS = frozenset({1, 2, 5, 20})
# First steps that are no measure of how long one takes.
WARM_UP_STEPS = 3


class Rehearsal(RehearsalFacts):
    """The rehearsal of this launch. `kind` is `one_batch` or `overfit`, `batch_count` the number of repeated
    batches."""

    def __init__(self, run: ObservedRun, kind: str, batch_count: int):
        super().__init__(run)
        self.kind: str = kind
        self.batch_count: int = batch_count
        self._watch: Any = None
        self._step_seconds: list[float] = []
        self._waited: list[float] = []
        self._evaluated = False
        self._probed = False
        self._concluded = True

    # The batches

    def repeat(self, loader: Iterable[Batch], rng: Any) -> Generator[Batch, None, None]:
        """The same batches, over and over, as fresh copies, so that a loop may change them in place."""
        self._concluded = False
        kept = self._take(loader)
        if rng is not None:
            ProcessRng().load_state_dict(rng)
        self._watch = self._watching(loader)
        try:
            with self._watch or nullcontext():
                for number in range(sys.maxsize):
                    index = number % len(kept)
                    if self._watch:
                        self._watch.begin(index, kept[index])
                    began = time.perf_counter()
                    yield copied(kept[index])
                    self._step_seconds.append(time.perf_counter() - began)
                    if number + 1 in REPORTED_STEPS:
                        self._tell()
        finally:
            self.conclude()

    def _take(self, loader: Iterable[Batch]) -> list[Batch]:
        looked_at: list[Batch] = []
        began = time.perf_counter()
        for batch in _iterate(loader):
            self._waited.append(time.perf_counter() - began)
            looked_at.append(batch)
            if len(looked_at) >= max(self.batch_count, LOOKED_AT_MIN):
                break
            began = time.perf_counter()
        if not looked_at:
            raise InputError("the loader is empty: there is nothing to train on")
        kept = looked_at[: self.batch_count]
        digests = [one for one in map(digest, looked_at) if one is not None]
        self.batches: dict[str, Any] = {
            "taken": len(kept),
            "looked_at": len(digests),
            "distinct": len(set(digests)),
            "tensors": [tensor_facts(name, value) for name, value in leaves(kept[0]) if _arrays.is_tensor(value)],
        }
        self.say("loader", loader_facts(loader))
        self.say("batches", self.batches)
        return kept

    def _watching(self, loader: Any) -> Any:
        if _arrays.loaded("torch") is None:
            return None
        from .torch import Watch

        return Watch(self, loader, self.run._components)

    # Set by the run

    def saving(self, step: int, components: Mapping[str, Any]) -> None:
        """Called before a checkpoint of this step is saved."""
        if self._watch:
            self.say("saved", {"step": step, "components": sorted(components), **self._watch.state()})
        else:
            self.say("saved", {"step": step, "components": sorted(components)})

    def evaluating(self) -> bool:
        """True once: an evaluation is part of a rehearsal."""
        first, self._evaluated = not self._evaluated, True
        if first:
            self.say("evaluation", {"calls": 1})
        return first

    def probe(self, loss_of: Any, batch: Any) -> None:
        """Records the loss of a batch, and its loss with zeros instead of its floating-point inputs."""
        if self._probed:
            return
        self._probed = True
        with self._watch.aside() if self._watch else nullcontext():
            facts = {"loss": number(loss_of(copied(batch))), "zeroed": number(loss_of(zeroed(batch)))}
        self.say("probe", facts)

    def conclude(self) -> None:
        """Records what is known at the end. Never raises."""
        if not self._concluded:
            self._concluded = True
            self._tell()

    def _tell(self) -> None:
        if self._watch:
            self._watch.tell()
        self.say("resources", self._resources())

    def _resources(self) -> dict[str, Any]:
        # Linux counts in KiB, macOS in bytes.
        unit = 1 if sys.platform == "darwin" else 1024
        steps = self._step_seconds[WARM_UP_STEPS:] or self._step_seconds
        later = self._waited[1:]
        return {
            "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit,
            "step_seconds": statistics.median(steps) if steps else None,
            "first_batch_seconds": self._waited[0] if self._waited else None,
            "batch_seconds": sum(later) / len(later) if later else None,
            **device_memory(),
        }


def device_memory() -> dict[str, int]:
    """Peak memory of PyTorch's allocator on the fullest device."""
    torch = _arrays.loaded("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return {}
    devices = range(torch.cuda.device_count())
    return {
        "peak_device_bytes": max(torch.cuda.max_memory_allocated(device) for device in devices),
        "peak_device_reserved_bytes": max(torch.cuda.max_memory_reserved(device) for device in devices),
    }


def loader_facts(loader: Any) -> dict[str, Any]:
    """The settings of a loader, as far as it has those of PyTorch's DataLoader."""
    sampler = type(getattr(loader, "sampler", None)).__name__
    known = {"RandomSampler": True, "WeightedRandomSampler": True, "SequentialSampler": False}
    try:
        batch_count = len(loader)
    except TypeError:
        batch_count = None
    return {
        "class": type(loader).__name__,
        "batch_size": getattr(loader, "batch_size", None),
        "batch_count": batch_count,
        "workers": getattr(loader, "num_workers", None),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "pin_memory": getattr(loader, "pin_memory", None),
        "prefetch": getattr(loader, "prefetch_factor", None),
        "persistent_workers": getattr(loader, "persistent_workers", None),
        "shuffles": known.get(sampler),
    }
