"""Distributed training: which rank saves which part of a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import _arrays, _tree
from ._state import Sink, Source
from .errors import InputError

# What the names of one rank's files begin with, in front of its number.
PREFIX = "rank-"


class Sharded:
    """A component of which each rank has its own part, such as a shard of the model: every rank saves its part and gets
    it back. Everything else that is passed to `resume()` must be the same on all ranks, and is saved once.

    `rejoin(parts, rank, world_size)` builds this rank's part from the parts of all former ranks, in rank order, if the
    number of ranks has changed since the save; without it such a resume raises InputError. With a single process, its
    part is the whole."""

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

    def tensors(self, stem: str, kind: str, metadata: dict[str, str], given: list[Any]) -> list[Any]:
        return self._sink.tensors(file_name(self._rank, stem), kind, metadata, given)

    def drop(self) -> None:
        self._sink.drop()


class Kept:
    """The files of a checkpoint, each of which may be read more than once."""

    def __init__(self, source: Source):
        self.files = source.files
        self._source = source
        self._taken: dict[str, Any] = {}

    def take(self, name: str) -> Any:
        if name not in self._taken:
            self._taken[name] = self._source.take(name)
        return self._taken[name]


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
    if target.rejoin is None:
        raise InputError(
            f"`{name}` was saved in {len(parts)} parts, but there are {world_size} ranks now; "
            "pass `Sharded` a function `rejoin` that combines them"
        )
    return target.rejoin(parts, rank, world_size)


def put(target: Any, value: Any, name: str) -> Any:
    """The value in place of `target`, as far as the target can be filled."""
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
