"""The position of a training loop in its data, and how it is restored.

A loader that tracks its own position (`state_dict()` and `load_state_dict()`) restores itself. For any other loader the
position is the epoch, the number of batches consumed in it, and the state of the random generators at the start of the
epoch: iterating again from there gives the same batches, and those already consumed are skipped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from .._state import arrays as _arrays
from .._state import tree as _tree
from .._trackway import outlive_sigterm_of_others
from ..errors import InputError
from .rng import ProcessRng
from .share import Share

# Half-open ranges of batches, counted from 0 over all epochs.
Ranges = Sequence[tuple[int, int]]


def skipped_batches() -> Ranges:
    """The batches that the run skips since it was rolled back: `TRACKWAY_SKIP_BATCHES`, as `120..340,500..620`.

    Raises InputError if it cannot be parsed: training on the batches that broke the run would be worse."""
    text = os.environ.get("TRACKWAY_SKIP_BATCHES", "")
    try:
        ranges = [part.split("..") for part in text.split(",") if part.strip()]
        return [(int(first), int(end)) for first, end in ranges]
    except ValueError:
        raise InputError(f"invalid TRACKWAY_SKIP_BATCHES {text!r}: expected ranges such as 120..340,500..620") from None


class Cursor:
    """The position in one loader. What `state_dict()` returns depends only on the training so far, never on the
    clock."""

    def __init__(self) -> None:
        # Epochs finished, and batches taken from the one that is open.
        self.epoch = 0
        self.index = 0
        # Batches taken in all epochs together: the next one has this number, counted from 0.
        self.taken = 0
        self._epoch_began: dict[str, Any] | None = None
        self._loader: Any = None
        self._stateful: Any = None
        self._resumed = False
        # The rows of the loader that belong to the rung; None: all.
        self.share: Share | None = None

    # A component of a checkpoint

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {"epoch": self.epoch, "index": self.index, "taken": self.taken}
        state |= {"epoch_began": self._epoch_began, "loader": self._stateful}
        if _tree.is_stateful(self._loader):
            state["loader"] = self._loader.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.epoch, self.index = state["epoch"], state["index"]
        # A checkpoint of an earlier version does not have it.
        self.taken = state.get("taken", self.taken)
        self._epoch_began, self._stateful = state["epoch_began"], state["loader"]
        self._resumed = True

    def begin_epoch(self, epoch: int, taken: int) -> None:
        """Iterates the loader from its start, as in that epoch, after this many batches in total."""
        self.epoch, self.index, self.taken = epoch, 0, taken

    def attend(self, loader: Any) -> None:
        """Tracks the position of this loader, if it has one."""
        self._loader = loader

    # Iterating

    def batches(
        self, loader: Iterable[Any], *, epochs: int | None, replay: bool, rng: Any, skipped: Ranges = ()
    ) -> Iterator[Any]:
        """The batches from here on, without those in `skipped`: to the end of the epoch if `epochs` is None, else until
        that many epochs are finished. Skipped batches count as consumed. `rng` is the state that the generators of the
        process must have before the first new batch; None if nothing was resumed."""
        self._loader = loader
        if self.index and not self._resumed:
            self._finish_epoch()  # it was left in the middle: a new iteration begins from the start
        last = self.epoch + 1 if epochs is None else epochs
        while self.epoch < last:
            for batch in self._open(loader, replay, rng):
                self.index, self.taken = self.index + 1, self.taken + 1
                if not any(first < self.taken <= end for first, end in skipped):
                    yield batch
            rng = None
            if self.index == 0:
                raise InputError(_nothing_in(self.share))
            self._finish_epoch()
            if isinstance(loader, Iterator):
                return

    def _finish_epoch(self) -> None:
        self.epoch, self.index, self._epoch_began = self.epoch + 1, 0, None

    def _open(self, loader: Any, replay: bool, rng: Any) -> Iterator[Any]:
        """Starts the epoch, or continues in the middle of it."""
        taken = self.index if self._resumed else 0
        self._resumed = False
        _tell_epoch(loader, self.epoch)
        if self._stateful is not None and _tree.is_stateful(loader):
            _tree.load_state(loader, self._stateful, ("loader",))
            self._stateful = None
            iterator = _iterate(loader, self.share)
        else:
            iterator = self._rewound(loader, taken, replay)
        if rng is not None:
            ProcessRng().load_state_dict(rng)
        return iterator

    def _rewound(self, loader: Any, taken: int, replay: bool) -> Iterator[Any]:
        own = _own_generators(loader)
        if taken and self._epoch_began is not None:
            _set_generators(own, self._epoch_began)
        else:
            self._epoch_began = _generators(own)
        if taken and not replay and _has_indexes(loader):
            return _iterate(loader, self.share, taken)
        iterator = _iterate(loader, self.share)
        for index in range(taken):
            try:
                next(iterator)
            except StopIteration:
                raise InputError(
                    f"the loader ended after {index} batches, but the checkpoint was saved after {taken} of this "
                    "epoch: its data or batch size changed"
                ) from None
        return iterator


def _nothing_in(share: Share | None) -> str:
    if share is None:
        return "the loader is empty: there is nothing to train on"
    return (
        f"the rung has {share.kept} of {share.total} rows, too few for a whole batch: "
        "start the ladder higher, or keep the last batch (`drop_last=False`)"
    )


def _tell_epoch(loader: Any, epoch: int) -> None:
    """Samplers for several ranks, and some data sets, shuffle by epoch number."""
    for attribute in ("sampler", "batch_sampler", "dataset"):
        if callable(set_epoch := getattr(getattr(loader, attribute, None), "set_epoch", None)):
            set_epoch(epoch)


def _own_generators(loader: Any) -> list[Any]:
    """The generators given to a loader and its samplers, each once, in a fixed order."""
    batch_sampler = getattr(loader, "batch_sampler", None)
    holders = [loader, getattr(loader, "sampler", None), batch_sampler, getattr(batch_sampler, "sampler", None)]
    found: list[Any] = []
    for holder in holders:
        generator = getattr(holder, "generator", None)
        if _tree.is_generator(generator) and all(generator is not known for known in found):
            found.append(generator)
    return found


def _generators(own: list[Any]) -> dict[str, Any]:
    encoder = _tree.Encoder(inline=True)
    return {"process": ProcessRng().state_dict(), "own": [encoder.encode(generator) for generator in own]}


def _set_generators(own: list[Any], began: dict[str, Any]) -> None:
    if len(own) != len(began["own"]):
        raise InputError(f"the loader has {len(own)} generators, and had {len(began['own'])} when saved")
    ProcessRng().load_state_dict(began["process"])
    decoder = _tree.Decoder()
    for generator, state in zip(own, began["own"], strict=True):
        decoder.decode(state, generator, ("loader", "generator"))


def _is_torch_loader(loader: Any) -> bool:
    data = _arrays.loaded("torch.utils.data")
    return data is not None and isinstance(loader, data.DataLoader)


def _has_indexes(loader: Any) -> bool:
    return _is_torch_loader(loader) and not isinstance(
        loader.dataset, _arrays.loaded("torch.utils.data").IterableDataset
    )


class WorkerInit:
    """`worker_init_fn` of a DataLoader: its worker processes survive a SIGTERM sent to the whole process group, so that
    the training can save a checkpoint. Then calls the script's own function, if there is one.

    `run.batches()` sets it by itself; pass `worker_init_fn=trackway.WorkerInit()` to other loaders."""

    def __init__(self, inner: Callable[[int], None] | None = None):
        self._inner = inner

    def __call__(self, worker: int) -> None:
        outlive_sigterm_of_others()
        if self._inner is not None:
            self._inner(worker)


class _Later:
    """A sampler without its first draws: they are drawn, but nothing is loaded for them."""

    def __init__(self, sampler: Any, passed: int):
        self._sampler, self._passed = sampler, passed
        self._draws: Iterator[Any] = iter(())

    def __iter__(self) -> Iterator[Any]:
        self._draws = iter(self._sampler)
        return self

    def __next__(self) -> Any:
        self.pass_over()
        return next(self._draws)

    def __len__(self) -> int:
        return len(self._sampler)

    def pass_over(self) -> None:
        while self._passed:
            self._passed -= 1
            next(self._draws, None)


def _iterate(loader: Any, share: Share | None = None, passed: int = 0) -> Iterator[Any]:
    """Starts to iterate over the subset of the rung, after the skipped batches."""
    if not _is_torch_loader(loader):
        return iter(loader) if share is None else share.of_sequence(loader)
    # A DataLoader's sampler cannot be replaced, but it is looked up again for each iteration.
    name = "batch_sampler" if loader.batch_sampler is not None else "sampler"
    sampler = loader.__dict__[name] if share is None else share.of_torch(loader)[1]
    later = _Later(sampler, passed) if passed else sampler
    exchanged = {name: later, "worker_init_fn": WorkerInit(loader.worker_init_fn)}
    kept = {name: loader.__dict__[name] for name in exchanged}
    loader.__dict__.update(exchanged)
    try:
        iterator: Iterator[Any] = iter(loader)
    finally:
        loader.__dict__.update(kept)
    if passed:
        # Now, and not at the first batch: the random numbers for it are those of the beginning of the epoch.
        later.pass_over()
    return iterator
