"""Rehearsals: launches of kind `one_batch` and `overfit`, before a run that costs money.

The loop gets the first batch, or the first ten, again and again: the same values in the same order, until the loss
reaches its target or the steps are used up. What can be observed meanwhile is recorded as facts
(docs/formats/rehearsal.md); Trackway evaluates them. Nothing here runs in training.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import resource
import statistics
import sys
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from . import _arrays
from ._loader import _iterate
from ._rng import ProcessRng
from .errors import InputError

if TYPE_CHECKING:
    from ._run import Run

Batch = TypeVar("Batch")

# Batches compared with each other, also where only one is repeated.
LOOKED_AT_MIN = 3
# Elements of a tensor that its statistics are made of.
STATISTICS_ELEMENTS_MAX = 1 << 22
# Leaves of one batch that are looked at.
LEAVES_MAX = 64
# Steps after which facts are reported already, for a process that does not reach its end.
REPORTED_STEPS = frozenset({1, 2, 5, 20})
# First steps that are no measure of how long one takes.
WARM_UP_STEPS = 3


class Rehearsal:
    """The rehearsal of this launch. `kind` is `one_batch` or `overfit`, `batch_count` the number of repeated
    batches."""

    def __init__(self, run: Run, kind: str, batch_count: int):
        self.kind, self.batch_count = kind, batch_count
        # The first step of this launch, and how many the script means to make.
        self.first_step = 1
        self.total_steps: int | None = None
        self.batches: dict[str, Any] = {}
        self._run = run
        self._watch: Any = None
        self._step_seconds: list[float] = []
        self._waited: list[float] = []
        self._evaluated = False
        self._probed = False
        self._concluded = True
        self._said: dict[str, str] = {}

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
        self.batches = {
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
        from ._rehearsal_torch import Watch

        return Watch(self, loader, self._run._components)

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

    def say(self, about: str, facts: Any) -> None:
        """Records facts about a topic, without non-finite values, which JSON cannot represent."""
        text = json.dumps(_finite(facts), separators=(",", ":"), default=str)
        if self._said.get(about) == text:
            return
        self._said[about] = text
        self._run._event("rehearsal_facts", None, {"about": about, "facts": text})


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


# Batches of any form


def leaves(batch: Any, name: str = "") -> list[tuple[str, Any]]:
    """The tensors and plain values of a batch with their paths, such as `0` or `inputs.pixel_values`."""
    if isinstance(batch, Mapping):
        parts: Iterable[tuple[Any, Any]] = batch.items()
    elif isinstance(batch, (list, tuple)):
        parts = enumerate(batch)
    elif _arrays.is_tensor(batch) or isinstance(batch, (bool, int, float, str, bytes)):
        return [(name or "0", batch)]
    else:
        return []
    found: list[tuple[str, Any]] = []
    for key, value in parts:
        found += leaves(value, f"{name}.{key}" if name else str(key))
        if len(found) >= LEAVES_MAX:
            break
    return found[:LEAVES_MAX]


def _changed(value: Any, change: Any) -> Any:
    """The batch with each tensor replaced. Anything that is not a tensor, dict, list or tuple is returned unchanged."""
    if _arrays.is_tensor(value):
        return change(value)
    if type(value) is dict:
        return {key: _changed(one, change) for key, one in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_changed(one, change) for one in value))
    if type(value) in (list, tuple):
        return type(value)(_changed(one, change) for one in value)
    return value


def copied(batch: Any) -> Any:
    """The batch with a copy of each tensor."""

    def copy(tensor: Any) -> Any:
        if _arrays.is_torch(tensor):
            return tensor.clone()
        return tensor.copy() if _arrays.is_numpy(tensor) else tensor

    return _changed(batch, copy)


def zeroed(batch: Any) -> Any:
    """The batch with zeros for its floating-point tensors of two or more dimensions: labels are not among them."""

    def zero(tensor: Any) -> Any:
        return tensor * 0 if "float" in str(tensor.dtype) and tensor.ndim >= 2 else copied(tensor)

    return _changed(batch, zero)


def as_numpy(tensor: Any) -> Any:
    """A tensor of any framework as a NumPy array; bfloat16 and smaller floats as float32."""
    import numpy

    if _arrays.is_torch(tensor):
        tensor = tensor.detach().cpu()
        is_narrow = tensor.is_floating_point() and tensor.element_size() < 4
        return (tensor.float() if is_narrow else tensor).numpy()
    return numpy.asarray(tensor)


def digest(batch: Any) -> str | None:
    """A digest that identifies a batch; None if nothing in the batch can be inspected."""
    found = leaves(batch)
    if not found:
        return None
    hasher = hashlib.blake2b(digest_size=16)
    for name, value in found:
        content = as_numpy(value).tobytes() if _arrays.is_tensor(value) else repr(value).encode()
        hasher.update(name.encode() + len(content).to_bytes(8, "little") + content)
    return hasher.hexdigest()


def tensor_facts(name: str, tensor: Any) -> dict[str, Any]:
    """Summary statistics of a tensor."""
    import numpy

    dtype = str(tensor.dtype).removeprefix("torch.")
    facts: dict[str, Any] = {"name": name, "dtype": dtype, "shape": list(map(int, tensor.shape))}
    if "complex" in dtype or 0 in facts["shape"]:
        return facts
    values = as_numpy(tensor).reshape(-1)
    stride = max(1, -(-len(values) // STATISTICS_ELEMENTS_MAX))
    values = values[::stride].astype("float64")
    finite = values[numpy.isfinite(values)]
    facts |= {"nan_count": int(numpy.isnan(values).sum()), "infinite_count": int(numpy.isinf(values).sum())}
    if len(finite):
        facts |= {
            "mean": float(finite.mean()), "stddev": float(finite.std()),
            "min": float(finite.min()), "max": float(finite.max()),
        }  # fmt: skip
    return facts


def number(value: Any) -> float | None:
    """A finite float, or None."""
    try:
        value = float(value)
    except (TypeError, ValueError, RuntimeError):
        return None
    return value if math.isfinite(value) else None


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return value
