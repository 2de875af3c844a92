"""The pieces of DTensors: each rank stores its own."""

from __future__ import annotations

from typing import Any

from ..errors import InputError
from . import arrays as _arrays


class Piece:
    """The piece of a tensor that one rank has: its values, the size of the whole, and where in it the piece begins."""

    def __init__(self, value: Any, size: tuple[int, ...], offsets: tuple[int, ...]):
        self.value, self.size, self.offsets = value, size, offsets


def is_distributed(value: object) -> bool:
    """Whether it is a DTensor."""
    return _arrays.is_torch(value) and hasattr(value, "device_mesh") and hasattr(value, "placements")


def place_of(tensor: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of this rank's piece of a DTensor, and where in the whole it begins.

    Raises InputError if that cannot be known; the message begins with the kind of tensor."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    for placement in tensor.placements:
        if type(placement) not in (Replicate, Shard):
            why = "a sum over ranks that was not done" if placement.is_partial() else "an order that is not known"
            raise InputError(f"a DTensor with {placement}, {why}; redistribute it first, or use trackway.dcp")
    shape, offsets = compute_local_shape_and_global_offset(tensor.shape, tensor.device_mesh, tensor.placements)
    if len(offsets) != len(tensor.shape):
        raise InputError("a DTensor of a mesh that this rank is not part of; leave it out here")
    return tuple(shape), tuple(offsets)
