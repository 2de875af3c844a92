"""Distributed training: which rank saves which part of a checkpoint."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .._trackway import Loaded
from ..errors import InputError
from . import arrays as _arrays
from . import joining as _joining
from . import state as _state
from . import tree as _tree
from .state import Sink, Source

if TYPE_CHECKING:
    from pathlib import Path

# What the names of one rank's files begin with, in front of its number.
PREFIX = "rank-"


class Sharded:
    """A component of which each rank has its own part, such as a shard of the model: every rank saves its part and gets
    it back. Everything else that is passed to `resume()` must be the same on all ranks, and is saved once.

    A model, optimizer or dict with DTensors (FSDP2, HSDP, tensor parallelism) is put together from its pieces when the
    number of ranks has changed since the save, in the layout that it has then; what is not distributed in it must have
    been the same on all ranks. For anything else `rejoin(parts, rank, world_size)` builds this rank's part from the parts
    of all former ranks, in rank order; where neither is possible such a resume raises InputError. With a single process,
    its part is the whole."""

    def __init__(self, value: Any, *, rejoin: Callable[[list[Any], int, int], Any] | None = None):
        self.value = value
        self.rejoin = rejoin


def unwrap(value: Any) -> Any:
    return value.value if isinstance(value, Sharded) else value


def file_name(rank: int, name: str) -> str:
    return f"{PREFIX}{rank:04}-{name}"


class OwnFiles:
    """Files that only this rank writes: a sink that prefixes each name with the rank."""

    def __init__(self, sink: Sink, rank: int):
        self._sink = sink
        self._rank = rank

    def bytes(self, name: str, kind: str, content: bytes) -> None:
        self._sink.bytes(file_name(self._rank, name), kind, content)

    def pin(self, size_bytes: int) -> bool:
        return self._sink.pin(size_bytes)

    def tensors(self, stem: str, kind: str, metadata: dict[str, str], given: list[Any]) -> list[Any]:
        return self._sink.tensors(file_name(self._rank, stem), kind, metadata, given)

    def drop(self) -> None:
        self._sink.drop()


class Kept:
    """The files of a checkpoint, each of which may be read more than once. `mapped`: they were verified without being
    read into memory, and only what is used of them is loaded, from their folder."""

    def __init__(self, loaded: Loaded, *, mapped: bool = False):
        self.files: list[tuple[str, str]] = loaded.files
        self.loaded = loaded
        self._mapped = mapped
        self._taken: dict[str, Any] = {}

    def take(self, name: str) -> Any:
        if name not in self._taken:
            self._taken[name] = mapped(self.loaded.folder / name) if self._mapped else self.loaded.take(name)
        return self._taken[name]


def mapped(path: Path) -> Any:
    """The bytes of a file, of which only what is used is loaded. Those that are written to are private copies: PyTorch
    wants a buffer that can be written to."""
    if path.stat().st_size == 0:
        return bytearray()
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)


class FilesOf:
    """A checkpoint as one rank saved it: its own files, without the rank prefix, and the shared ones."""

    def __init__(self, source: Source, rank: int):
        own = file_name(rank, "")
        self._source = source
        self._files = {
            name.removeprefix(own): (name, kind)
            for name, kind in source.files
            if name.startswith(own) or not _is_of_rank(name)
        }

    @property
    def files(self) -> list[tuple[str, str]]:
        return [(name, kind) for name, (_, kind) in self._files.items()]

    def take(self, name: str) -> Any:
        return self._source.take(self._files[name][0])


def _is_of_rank(name: str) -> bool:
    number = name.removeprefix(PREFIX).split("-", 1)[0]
    return name.startswith(PREFIX) and len(number) >= 4 and number.isdigit()


def rejoined(name: str, target: Sharded, parts: list[Any], rank: int, world_size: int) -> Any:
    """This rank's part, built from the parts of the ranks that saved."""
    if target.rejoin is not None:
        return target.rejoin([_joining.locals_of(part) for part in parts], rank, world_size)
    if not any(map(_joining.has_pieces, parts)):
        raise InputError(
            f"`{name}` was saved in {len(parts)} parts, but there are {world_size} ranks now; "
            "pass `Sharded` a function `rejoin` that combines them"
        )
    return _joining.joined(name, target.value, parts)


def put(target: Any, value: Any, name: str) -> Any:
    """The value in place of `target`, as far as the target can be filled."""
    if _state.is_module(target):
        _state._restore_module(target, value, name)
        return target
    if _tree.is_stateful(target):
        _tree.load_state(target, value, (name,))
        return target
    if type(target) is not dict or not isinstance(value, Mapping):
        return value
    for key in target.keys() - value.keys():
        del target[key]
    for key, part in value.items():
        both = _arrays.is_tensor(part) and _arrays.is_tensor(target.get(key))
        target[key] = _arrays.copy_into(target[key], part) if both else part
    return target
