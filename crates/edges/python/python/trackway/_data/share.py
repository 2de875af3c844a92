"""The subset of the data that a rung of the ladder trains on.

Subsets are nested (what is in 1 % is in 10 %) and depend only on the seed of the run, so that every rung, every
attempt and every rank selects the same rows.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Iterator, Sequence
from typing import Any

from .. import _events
from .._state import arrays as _arrays
from .._state import tree as _tree
from .._trackway import rung, rung_mask
from ..errors import InputError

BY_ITSELF = (
    "select the rows in the script with `trackway.in_rung(key)` or `trackway.rung_indexes(count)`, and call "
    "`run.batches(loader, cut=False)`"
)


def rung_indexes(count: int) -> list[int]:
    """The indexes, out of `range(count)`, that belong to the rung, for example for `torch.utils.data.Subset(dataset,
    trackway.rung_indexes(len(dataset)))`. Outside a rung, all of them."""
    indexes = [index for index, inside in enumerate(rung_mask(count)) if inside]
    if rung() < 1:
        tell_cut("indexes", len(indexes), count)
    return indexes


def tell_cut(by: str, rows: int, rows_total: int) -> None:
    """Records how many rows of how many are part of the rung. A run climbs to the next rung only if something does."""
    _events.record("rung_cut", rung=f"{rung():.12g}", rows=rows, rows_total=rows_total, by=by)


class Share:
    """The rows of a loader that belong to the rung."""

    def __init__(self, total: int):
        self.total = total
        self.mask = rung_mask(total)
        self.kept = sum(self.mask)

    def of_sequence(self, loader: Any) -> Iterator[Any]:
        return (loader[index] for index, inside in enumerate(self.mask) if inside)

    def of_torch(self, loader: Any) -> tuple[str, Any]:
        """The attribute of a DataLoader that selects rows, and its value for the rung."""
        data = _arrays.loaded("torch.utils.data")
        batch_sampler = loader.batch_sampler
        if batch_sampler is None:
            return "sampler", self._sampler(loader.sampler)
        if type(batch_sampler) is not data.BatchSampler:
            kind = type(batch_sampler).__qualname__
            raise InputError(f"batches of a {kind} cannot be restricted to {rung():.12g} of the data; {BY_ITSELF}")
        sampler = self._sampler(batch_sampler.sampler)
        return "batch_sampler", data.BatchSampler(sampler, batch_sampler.batch_size, batch_sampler.drop_last)

    def _sampler(self, sampler: Any) -> Any:
        distributed = _arrays.loaded("torch.utils.data.distributed")
        if distributed is not None and isinstance(sampler, distributed.DistributedSampler):
            return _Dealt(sampler, [index for index, inside in enumerate(self.mask) if inside])
        return _Cut(sampler, self.mask)


class _Cut:
    """A sampler that skips rows outside the subset."""

    def __init__(self, sampler: Any, mask: bytes):
        self._sampler, self._mask = sampler, mask

    def __iter__(self) -> Iterator[Any]:
        for drawn in self._sampler:
            try:
                inside = self._mask[operator.index(drawn)]
            except (TypeError, IndexError):
                raise InputError(
                    f"the sampler draws {drawn!r}, not a row index, so it cannot be restricted; {BY_ITSELF}"
                ) from None
            if inside:
                yield drawn


class _Dealt:
    """The subset, distributed to the ranks in the way the sampler distributes all rows: equally."""

    def __init__(self, sampler: Any, indexes: list[int]):
        dealt = copy.copy(sampler)
        dealt.dataset = range(len(indexes))
        ranks = dealt.num_replicas
        whole = len(indexes) // ranks
        dealt.num_samples = whole if dealt.drop_last else -(-len(indexes) // ranks)
        dealt.total_size = dealt.num_samples * ranks
        self._dealt, self._indexes = dealt, indexes

    def __iter__(self) -> Iterator[int]:
        return (self._indexes[place] for place in self._dealt)


# Samplers that draw alike on every rank: what is left of them is alike too.
ALIKE = {"RandomSampler", "SequentialSampler", "DistributedSampler"}


def share_of(loader: Any, world_size: int) -> Share | None:
    """The rows to which a loader passed to `batches()` is restricted; None if the rung is all of the data.

    Raises InputError for a loader without indexable rows."""
    if rung() >= 1:
        return None
    if _tree.is_stateful(loader):
        raise InputError(
            f"a loader that tracks its own position cannot be restricted to {rung():.12g} of the data; {BY_ITSELF}"
        )
    data = _arrays.loaded("torch.utils.data")
    if data is not None and isinstance(loader, data.DataLoader):
        if isinstance(loader.dataset, data.IterableDataset):
            raise InputError(f"an IterableDataset has no row indexes, so it cannot be restricted; {BY_ITSELF}")
        sampler = type(getattr(loader.batch_sampler, "sampler", loader.sampler)).__qualname__
        if world_size > 1 and sampler not in ALIKE:
            raise InputError(f"with a {sampler}, ranks could get different numbers of rows; {BY_ITSELF}")
        share = Share(len(loader.dataset))
        share.of_torch(loader)
        return share
    if _is_sequence(loader):
        return Share(len(loader))
    kind = type(loader).__qualname__
    raise InputError(
        f"a {kind} has no row indexes, so it cannot be restricted to {rung():.12g} of the data; {BY_ITSELF}"
    )


def _is_sequence(loader: Any) -> bool:
    if isinstance(loader, (Sequence, dict)):
        return not isinstance(loader, (str, bytes, dict))
    return hasattr(loader, "__getitem__") and hasattr(loader, "__len__")
