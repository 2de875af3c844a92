"""Tensors of a GPU in host memory, through two pinned buffers: the device fills one while the CPU empties the other.

A copy from a device straight into ordinary memory goes through the driver's small buffers, tensor after tensor, and
waits for the device at each. Pinned memory is written at the speed of the bus, for many tensors in one go. Pinning the
whole draft would be faster by one copy, and would keep as much memory from the system as the state has.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from . import _arrays

# Each of the two buffers. PyTorch keeps pinned memory that is freed for the next save.
BUFFER_BYTES = 32 << 20


class Piece(NamedTuple):
    """A part of a tensor, in bytes: which tensor, where the part begins in it and in the buffer, and its length."""

    tensor: int
    begin: int
    at: int
    len_bytes: int


def fills(sizes_bytes: Iterable[int], buffer_bytes: int) -> Iterator[list[Piece]]:
    """What goes into the buffer, fill by fill: the bytes of all tensors in order, each fill but the last one full."""
    fill: list[Piece] = []
    used = 0
    for tensor, size_bytes in enumerate(sizes_bytes):
        begin = 0
        while begin < size_bytes:
            len_bytes = min(size_bytes - begin, buffer_bytes - used)
            fill.append(Piece(tensor, begin, used, len_bytes))
            begin, used = begin + len_bytes, used + len_bytes
            if used == buffer_bytes:
                yield fill
                fill, used = [], 0
    if fill:
        yield fill


def fill_regions(leaves: Iterable[_arrays.Leaf], regions: Iterable[Any]) -> None:
    """Copies tensors into the regions of a draft. When this returns, every byte is there."""
    of_devices: dict[Any, list[tuple[Any, Any]]] = {}
    for leaf, region in zip(leaves, regions, strict=True):
        if _is_staged(leaf):
            of_devices.setdefault(leaf.keep.device, []).append((leaf.keep, region))
        else:
            assert leaf.fill is not None, "a tensor without an address can be written to a buffer"
            leaf.fill(region)
    for copies in of_devices.values():
        to_host(copies)


def _is_staged(leaf: _arrays.Leaf) -> bool:
    return leaf.framework == "torch" and leaf.keep.device.type == "cuda" and leaf.keep.is_contiguous()


def to_host(copies: list[tuple[Any, Any]], buffer_bytes: int = BUFFER_BYTES) -> None:
    """Copies contiguous tensors of one device, each into the buffer beside it, which has its size in bytes. What the
    current stream of the device was given before is in the copies."""
    import torch

    sources = [tensor.view(-1).view(torch.uint8) for tensor, _ in copies]
    targets = [torch.frombuffer(region, dtype=torch.uint8) for _, region in copies]
    device = sources[0].device
    is_cuda = device.type == "cuda"
    total_bytes = sum(source.numel() for source in sources)
    buffers = [torch.empty(min(buffer_bytes, total_bytes), dtype=torch.uint8, pin_memory=is_cuda) for _ in range(2)]
    with torch.cuda.device(device) if is_cuda else contextlib.nullcontext():
        begun: tuple[list[Piece], Any, Any] | None = None
        for number, fill in enumerate(fills([source.numel() for source in sources], len(buffers[0]))):
            buffer = buffers[number % 2]
            for piece in fill:
                part = sources[piece.tensor].narrow(0, piece.begin, piece.len_bytes)
                buffer.narrow(0, piece.at, piece.len_bytes).copy_(part, non_blocking=True)
            filled = torch.cuda.current_stream().record_event() if is_cuda else None
            if begun is not None:
                _empty(*begun, targets)
            begun = (fill, buffer, filled)
        if begun is not None:
            _empty(*begun, targets)


def _empty(fill: list[Piece], buffer: Any, filled: Any, targets: list[Any]) -> None:
    if filled is not None:
        filled.synchronize()
    for piece in fill:
        part = buffer.narrow(0, piece.at, piece.len_bytes)
        targets[piece.tensor].narrow(0, piece.begin, piece.len_bytes).copy_(part)
