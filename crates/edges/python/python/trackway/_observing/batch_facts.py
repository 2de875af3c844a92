"""Batches of any form: their tensors, copies and digests, and facts about them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from typing import Any

from .._state import arrays as _arrays

# Elements of a tensor that its statistics are made of.
STATISTICS_ELEMENTS_MAX = 1 << 22
# Leaves of one batch that are looked at.
LEAVES_MAX = 64


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


def finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(one) for one in value]
    return value
