"""PyTorch Distributed Checkpoint (DCP) through Trackway: DTensor, FSDP2 and HSDP states, saved by each rank in its own
files, committed together or not at all, verified, and loaded with any number of ranks.

    import trackway.dcp

    run = trackway.attach()
    state = {"training": trackway.dcp.Training(model, optimizer)}
    start = trackway.dcp.resume(run, state)
    for step, batch in run.batches(loader, start=start, steps=10_000):
        loss = train_step(batch)
        trackway.dcp.save(run, step, state)

or, where a program calls DCP already, with one argument instead of a path:

    dcp.save(state, storage_writer=trackway.dcp.StorageWriter(run, step))
    dcp.load(state, storage_reader=trackway.dcp.StorageReader(run))

Every rank calls these, at the same steps. Tensors are stored as safetensors files, the metadata of DCP as JSON. Values
that are not tensors are serialised by DCP's planner (`torch.save`) and loaded by it, as with any other storage.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed
from torch.distributed._shard._utils import narrow_tensor_by_index
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.state_dict_loader import load as dcp_load
from torch.distributed.checkpoint.state_dict_saver import save as dcp_save
from torch.distributed.checkpoint.storage import StorageReader as AnyStorageReader
from torch.distributed.checkpoint.storage import StorageWriter as AnyStorageWriter
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

from ._run.adapter import SaveSession, committed_in
from ._run.metrics import as_floats
from ._run.run import Run, Start
from ._state import arrays as _arrays
from ._state import state as _state
from ._state import tree as _tree
from ._state.ranks import file_name, mapped
from ._trackway import Draft, verify_checkpoint
from .errors import InputError, IntegrityError

__all__ = ["StorageReader", "StorageWriter", "Training", "resume", "save"]

# The file with DCP's metadata: which tensors there are, and which piece of each is in which file.
METADATA_FILE = "dcp.json"
FORMAT = "trackway.dcp"
FORMAT_VERSION = 1


class Training:
    """A model and its optimizers as one value of a DCP state, in the form that any number of ranks can load:
    parameters by name, without the wrappers of FSDP, DDP and `torch.compile`."""

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer | Iterable[torch.optim.Optimizer] = ()):
        self._model = model
        self._optimizers = [optimizer] if isinstance(optimizer, torch.optim.Optimizer) else list(optimizer)

    def state_dict(self) -> dict[str, Any]:
        model, optimizer = get_state_dict(self._model, self._optimizers)
        return {"model": model, "optimizer": optimizer}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        set_state_dict(
            self._model, self._optimizers, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
        )


def resume(
    run: Run,
    state: dict[str, Any],
    *,
    planner: LoadPlanner | None = None,
    process_group: torch.distributed.ProcessGroup | None = None,
    **components: Any,
) -> Start:
    """Loads the newest checkpoint that verifies on every rank into a DCP state, if there is one. `components` are those
    of `run.resume()`, for what DCP does not hold, such as a scheduler; the generators and the position in the data are
    restored too.

    Returns the step to continue with: 1 if nothing was ever committed, and outside an attempt.

    Raises the errors of `run.resume()`, and `CheckpointException` of DCP if the state does not fit."""
    start = SaveSession(run).resume(components)
    if start.resumed:
        dcp_load(state, storage_reader=StorageReader(run), planner=planner, process_group=process_group)
    return start


def save(
    run: Run,
    step: int,
    state: dict[str, Any],
    *,
    metrics: Mapping[str, float] | None = None,
    force: bool = False,
    wait: bool = False,
    planner: SavePlanner | None = None,
    process_group: torch.distributed.ProcessGroup | None = None,
) -> bool:
    """Saves a DCP state if a checkpoint is due, as `run.checkpoint(step)` does: by the cadence of the run file, on
    request, before a stop, at the last step, or with `force`. Call it at the end of each step, on every rank.

    Returns whether a checkpoint was started. Raises `CheckpointException` of DCP with the errors of all ranks, of which
    nothing is saved then."""
    session = SaveSession(run)
    if not session.due(step, force=force):
        return False
    writer = StorageWriter(run, step, metrics=metrics)
    writer._submits = False
    try:
        dcp_save(state, storage_writer=writer, planner=planner, process_group=process_group)
        writer._submit()  # now that every rank has its part
    finally:
        writer._drop()
    if wait:
        session.wait()
    return True


# Saving


class StorageWriter(AnyStorageWriter):
    """Makes `dcp.save` one checkpoint of the run: `dcp.save(state, storage_writer=trackway.dcp.StorageWriter(run, step))`.

    Each rank copies its tensors and returns; hashing, writing and committing happen in the background, and the commit
    needs the parts of all ranks. A rank that fails or dies leaves the previous checkpoint in place. With `wait`, the
    save returns after the commit; otherwise its error is raised by the next save or `run.finish()`. The components
    passed to `run.resume()`, the random generators and the position in the data are saved too.

    Without a `step`, it is the number at the end of DCP's `checkpoint_id`, as in `step-1000`. `metrics` are stored with
    the checkpoint. Outside an attempt nothing is saved.

    Raises InputError if the ranks of `torch.distributed` are not those of the run, and for a save without collectives;
    DCP passes it on as `CheckpointException`."""

    def __init__(
        self,
        run: Run,
        step: int | None = None,
        *,
        metrics: Mapping[str, float] | None = None,
        wait: bool = False,
    ):
        self._session = SaveSession(run)
        self._step = step
        self._metrics = as_floats(metrics)
        self._wait = wait
        self._checkpoint_id: str | os.PathLike[str] | None = None
        self._coordinates = True
        self._draft: Draft | None = None
        # Whether a rank's part is handed over as soon as it is complete, before it is known whether that of each rank is.
        self._submits = True

    @property
    def checkpoint_id(self) -> str | os.PathLike[str] | None:
        return self._checkpoint_id

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        self._checkpoint_id = checkpoint_id
        self._drop()

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        if not kwargs.get("use_collectives", True):
            raise InputError("a checkpoint of Trackway is committed by all ranks together: leave `use_collectives` on")
        _check_ranks(self._session)
        self._coordinates = is_coordinator

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        return plans

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        results = self._write(plan, planner) if self._session.saves and not self._session.only_observes else []
        done: Future[list[WriteResult]] = Future()
        done.set_result(results)
        return done

    def _write(self, plan: SavePlan, planner: SavePlanner) -> list[WriteResult]:
        self._draft = self._session.open(self._step_now())
        try:
            results = list(self._draft_items(self._draft, plan.items, planner))
        except BaseException:
            self._drop()
            raise
        if self._submits and not self._coordinates:
            # Nothing is committed before the part of the coordinator is complete, which comes last.
            self._submit()
        return results

    def _draft_items(self, draft: Draft, items: list[WriteItem], planner: SavePlanner) -> Iterator[WriteResult]:
        by_kind: dict[str, list[WriteItem]] = {}
        for item in items:
            by_kind.setdefault(_kind_of(item), []).append(item)
        leaves = {id(item): _arrays.leaf(_tensor_of(item, planner)) for item in items}
        _state.pin_for(draft, list(leaves.values()), len(by_kind))
        for kind, of_kind in by_kind.items():
            stem = f"dcp_{kind}" if self._session.world_size == 1 else file_name(self._session.rank, f"dcp_{kind}")
            encoder = _tree.Encoder()
            encoder.leaves = {_name_of(item): leaves[id(item)] for item in of_kind}
            if len(encoder.leaves) < len(of_kind):
                raise InputError(f"rank {self._session.rank} was given the same piece of a tensor twice by DCP's planner")
            sizes = [leaf.len_bytes for leaf in encoder.leaves.values()]
            _state._draft_tensors(draft, stem, kind, encoder)
            for item, size_bytes in zip(of_kind, sizes, strict=True):
                yield WriteResult(item.index, size_bytes, Place(stem, _name_of(item)))

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        if self._draft is None:
            return  # outside an attempt
        places = {result.index: result.storage_data for of_rank in results for result in of_rank}
        try:
            self._draft.bytes(METADATA_FILE, "other", _state._to_json(_to_document(metadata, places)))
        except BaseException:
            self._drop()
            raise
        if self._submits:
            self._submit(wait=self._wait)

    def _submit(self, *, wait: bool = False) -> None:
        if self._draft is not None:
            self._session.submit(self._take(), self._step_now(), metrics=self._metrics, wait=wait)

    def _step_now(self) -> int:
        if self._step is not None:
            return self._step
        digits = re.search(r"(\d+)\D*$", os.fspath(self._checkpoint_id or ""))
        if digits is None:
            raise InputError(
                f"the step is not known: pass StorageWriter(run, step), or a `checkpoint_id` that ends with it; "
                f"it is {self._checkpoint_id!r}"
            )
        return int(digits[1])

    def _take(self) -> Draft:
        draft, self._draft = self._draft, None
        assert draft is not None, "a draft is submitted once"
        return draft

    def _drop(self) -> None:
        if self._draft is not None:
            self._take().drop()

    def storage_meta(self) -> StorageMeta | None:
        return StorageMeta(checkpoint_id=self._checkpoint_id)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        return True


class Place(NamedTuple):
    """Where a piece of a tensor is: the beginning of the names of its files, and its name in one of them."""

    stem: str
    name: str


def _check_ranks(session: SaveSession) -> None:
    if not session.saves:
        return
    there = torch.distributed.is_available() and torch.distributed.is_initialized()
    found = (torch.distributed.get_rank(), torch.distributed.get_world_size()) if there else (0, 1)
    if found != (session.rank, session.world_size):
        raise InputError(
            f"torch.distributed has rank {found[0]} of {found[1]}, and Trackway rank {session.rank} of {session.world_size}: "
            "call `init_process_group` first, and start all ranks with one launcher (docs/environment.md)"
        )


def _kind_of(item: WriteItem) -> str:
    """The kind of a value by the first two parts of its name, such as `training.optimizer`."""
    for part in item.index.fqn.split(".")[:2]:
        matching = [kind for prefix, kind in _state.KIND_OF_PREFIX.items() if part.startswith(prefix)]
        if matching:
            return matching[0]
    return "other" if item.type == WriteItemType.BYTE_IO else "weights"


def _name_of(item: WriteItem) -> str:
    """The name in a file: that of the tensor, for a piece with its place in the whole."""
    data = item.tensor_data
    if data is None or data.chunk.sizes == data.size:
        return item.index.fqn
    return f"{item.index.fqn}[{','.join(map(str, data.chunk.offsets))}]"


def _tensor_of(item: WriteItem, planner: SavePlanner) -> torch.Tensor:
    value = planner.resolve_data(item)
    if isinstance(value, io.BytesIO):
        content = bytearray(value.getbuffer())
        return torch.frombuffer(content, dtype=torch.uint8) if content else torch.empty(0, dtype=torch.uint8)
    return value.detach()


def _to_document(metadata: Metadata, places: Mapping[MetadataIndex, Place]) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for fqn, entry in metadata.state_dict_metadata.items():
        if isinstance(entry, BytesStorageMetadata):
            entries[fqn] = {"bytes": list(places[MetadataIndex(fqn)])}
            continue
        pieces = [
            [list(chunk.offsets), list(chunk.sizes), *places[MetadataIndex(fqn, chunk.offsets)]]
            for chunk in entry.chunks
        ]
        dtype = str(entry.properties.dtype).removeprefix("torch.")
        entries[fqn] = {"dtype": dtype, "size": list(entry.size), "pieces": pieces}
    planner_data = _tree.Encoder(inline=True).encode(metadata.planner_data, ("planner_data",))
    return {"format": FORMAT, "version": FORMAT_VERSION, "entries": entries, "planner_data": planner_data}


# Loading


class StorageReader(AnyStorageReader):
    """Loads a checkpoint of Trackway: `dcp.load(state, storage_reader=trackway.dcp.StorageReader(run))`.

    `source` is a run, for the checkpoint that it resumes (`run.resume()` is called if it was not), or the path of a
    checkpoint root, for the newest checkpoint there that verifies, or that of `step`. The number of ranks may differ
    from that of the save. Files are verified before anything is loaded; then each rank reads the pieces it needs.

    Raises InputError if there is nothing to load, or the checkpoint was not saved through DCP, and IntegrityError if it
    does not verify; DCP passes them on as `CheckpointException`."""

    def __init__(self, source: Run | str | os.PathLike[str], *, step: int | None = None):
        self._source = source
        self._step = step
        self._folder: Path | None = None
        self._document: dict[str, Any] = {}
        self._files: _Files | None = None

    @property
    def checkpoint_id(self) -> str | None:
        return None if self._folder is None else str(self._folder)

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        self._folder = self._files = None

    def read_metadata(self) -> Metadata:
        self._folder = _folder_of(self._source, self._step)
        self._document = _read_document(self._folder)
        self._files = _Files(self._folder)
        return _to_metadata(self._document, self._folder)

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        pass

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        for item in plan.items:
            self._read(item, planner)
        self._files = None
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def _read(self, item: ReadItem, planner: LoadPlanner) -> None:
        assert self._files is not None, "DCP reads the metadata first"
        fqn = item.storage_index.fqn
        entry = self._document["entries"][fqn]
        if item.type == LoadItemType.BYTE_IO:
            content = self._files.tensor(Place(*entry["bytes"]), "uint8", None)
            planner.load_bytes(item, io.BytesIO(content.numpy().tobytes()))
            return
        sizes, place = _piece_at(entry, item.storage_index.offset)
        stored = self._files.tensor(place, entry["dtype"], sizes)
        part = narrow_tensor_by_index(stored, item.storage_offsets, item.lengths)
        target = planner.resolve_tensor(item).detach()
        if target.size() != part.size():
            raise InputError(f"`{fqn}` has a piece of {tuple(part.size())} for one of {tuple(target.size())} here")
        target.copy_(part)
        planner.commit_tensor(item, target)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        return True


def _folder_of(source: Run | str | os.PathLike[str], step: int | None) -> Path:
    """The folder of a checkpoint of which every file was verified: by this process, or, in a run, by all ranks together."""
    if isinstance(source, Run):
        folder = SaveSession(source).resumed_folder()
        if folder is None:
            raise InputError("this run has no committed checkpoint yet: load only if `run.resume()` has `resumed` set")
        return folder
    return _verified_in(Path(source), step)


def _verified_in(root: Path, step: int | None) -> Path:
    found = committed_in(root)
    wanted = [one for one in reversed(found) if step in (None, one.step)]
    if not wanted:
        steps = ", ".join(str(one.step) for one in found) or "none"
        asked = "" if step is None else f" of step {step}; it contains {steps}"
        raise InputError(f"{root} holds no committed checkpoint{asked}")
    defects = []
    for one in wanted:
        defect = verify_checkpoint(os.path.abspath(root), one.number)
        if defect is None:
            return root / one.object_prefix
        defects.append(defect)
    raise IntegrityError(f"no checkpoint of {root} verifies: {'; '.join(defects)}")


def _read_document(folder: Path) -> dict[str, Any]:
    try:
        document = json.loads((folder / METADATA_FILE).read_bytes())
    except FileNotFoundError:
        raise InputError(f"{folder} was not saved through `trackway.dcp`: it has no {METADATA_FILE}") from None
    if document.get("version") != FORMAT_VERSION:
        raise InputError(f"{METADATA_FILE} has version {document.get('version')}, this trackway reads {FORMAT_VERSION}")
    return dict(document)


def _to_metadata(document: Mapping[str, Any], folder: Path) -> Metadata:
    entries = {
        fqn: BytesStorageMetadata() if "bytes" in entry else _tensor_metadata(entry)
        for fqn, entry in document["entries"].items()
    }
    planner_data = _tree.Decoder().decode(document["planner_data"])
    meta = StorageMeta(checkpoint_id=str(folder))
    return Metadata(entries, planner_data=planner_data, storage_data={}, storage_meta=meta)


def _tensor_metadata(entry: Mapping[str, Any]) -> TensorStorageMetadata:
    chunks = [ChunkStorageMetadata(torch.Size(offsets), torch.Size(sizes)) for offsets, sizes, *_ in entry["pieces"]]
    properties = TensorProperties(dtype=getattr(torch, entry["dtype"]))
    return TensorStorageMetadata(properties, torch.Size(entry["size"]), chunks)


def _piece_at(entry: Mapping[str, Any], offset: torch.Size | None) -> tuple[tuple[int, ...], Place]:
    wanted = list(offset) if offset is not None else [0] * len(entry["size"])
    for offsets, sizes, stem, name in entry["pieces"]:
        if offsets == wanted:
            return tuple(sizes), Place(stem, name)
    raise InputError(f"the checkpoint has no piece of a tensor at {wanted}")


class _Files:
    """The tensors in the files of a verified checkpoint. Only what is read is loaded."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._names = sorted(os.listdir(folder))
        self._known: dict[str, dict[str, _arrays.Stored]] = {}

    def tensor(self, place: Place, dtype: str, sizes: tuple[int, ...] | None) -> torch.Tensor:
        """A tensor as a view of the file; `sizes` None: as they are there."""
        if place.stem not in self._known:
            self._known[place.stem] = self._of_stem(place.stem)
        stored = self._known[place.stem].get(place.name)
        if stored is None:
            raise IntegrityError(f"no file `{place.stem}….safetensors` in {self._folder} holds `{place.name}`")
        shape = stored.shape if sizes is None else sizes
        built: torch.Tensor = _arrays.build("torch", _arrays.Stored(stored.buffer, stored.begin, dtype, shape, {}))
        return built

    def _of_stem(self, stem: str) -> dict[str, _arrays.Stored]:
        pattern = _state.files_of(stem)
        found: dict[str, _arrays.Stored] = {}
        for name in filter(pattern.fullmatch, self._names):
            found |= _state.tensors_in(name, mapped(self._folder / name))
        return found
