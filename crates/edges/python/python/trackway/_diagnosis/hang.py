"""Diagnoses of a hang: which operations of all ranks this rank entered, from PyTorch's flight recorder.

A thread looks at the recorder while the script runs. Once nothing changes for a while, the last operations of each process
group are recorded as the facts `collectives`, and Trackway compares those of all ranks: docs/diagnosis.md.
"""

from __future__ import annotations

import json
import os
import pickle
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from .._state import arrays as _arrays
from .facts import DiagnosisFacts

# Seconds between two looks at the recorder.
LOOK_SECONDS = 1.0
# Process groups, and operations of each, that are recorded at most.
GROUPS_MAX = 8
OPERATIONS_MAX = 100
# Characters of all of them: less than facts may have.
CHARACTERS_MAX = 15_000


class Collectives:
    """Watches the operations of this rank. `still_seconds`: after so long without a change they are recorded."""

    def __init__(self, diagnosis: DiagnosisFacts, still_seconds: float):
        self._diagnosis = diagnosis
        self._still_seconds = still_seconds
        self._ended = threading.Event()
        self._seen: Any = None
        self._still_for = 0.0
        # A daemon: the interpreter must not wait for it where the main thread never returns.
        threading.Thread(target=self._watch, name="trackway-collectives", daemon=True).start()

    def begin(self, step: int, observes: bool) -> None:
        """A step begins."""

    def conclude(self) -> None:
        """The training ends: what was entered until now is recorded, since nothing can be recorded later."""
        self._ended.set()
        self._record(recorded(), finished=True)

    def _watch(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            try:
                self._look()
            except Exception as error:  # noqa: BLE001 - an observer never ends the script
                self._diagnosis.blind("collectives", error)
                return

    def _look(self) -> None:
        entries = recorded()
        newest = entries[-OPERATIONS_MAX:]
        seen = (self._diagnosis.step, [(group_of(entry), _number(entry), is_done(entry)) for entry in newest])
        if seen != self._seen:
            self._seen, self._still_for = seen, 0.0
            return
        before, self._still_for = self._still_for, self._still_for + LOOK_SECONDS
        if before < self._still_seconds <= self._still_for:
            self._record(entries, finished=False)

    def _record(self, entries: list[dict[str, Any]], finished: bool) -> None:
        if entries:
            facts = {"rank": self._diagnosis.rank, "finished": finished, "groups": groups_of(entries)}
            self._diagnosis.say("collectives", facts)


def has_recorder() -> bool:
    """Whether this PyTorch records the operations of every library: Gloo's too."""
    return hasattr(_arrays.loaded("torch")._C._distributed_c10d, "_dump_fr_trace")


def recorded() -> list[dict[str, Any]]:
    """The operations that PyTorch has recorded, oldest first; none without a recorder."""
    module = _arrays.loaded("torch")._C._distributed_c10d
    entries: list[dict[str, Any]] = []
    for name in ("_dump_nccl_trace", "_dump_fr_trace"):
        dump: Callable[..., bytes] | None = getattr(module, name, None)
        if dump is not None:
            # The bytes come from this process.
            entries += pickle.loads(dump(True, True, False)).get("entries", [])
    return [entry for entry in entries if not entry.get("is_p2p")]


def groups_of(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The last operations of each group, as facts: as many of them as fit."""
    groups: dict[str, dict[str, Any]] = {}
    for entry in entries:
        name, description = group_of(entry), entry["process_group"][1]
        group = groups.setdefault(name, {"name": name, "description": description, "operations": []})
        group["operations"].append(operation_of(entry))
    kept = list(groups.values())[:GROUPS_MAX]
    count = OPERATIONS_MAX
    while True:
        for group in kept:
            group["operations"] = sorted(group["operations"], key=lambda operation: operation["number"])[-count:]
        if count == 1 or len(json.dumps(kept)) <= CHARACTERS_MAX:
            return kept
        count //= 2


def group_of(entry: dict[str, Any]) -> str:
    """The name of a group and of the library: each library of a group counts its operations."""
    return f"{entry['process_group'][0]} {entry['profiling_name'].partition(':')[0]}"


def operation_of(entry: dict[str, Any]) -> dict[str, Any]:
    """An operation as facts."""
    return {
        "number": _number(entry),
        "name": entry["profiling_name"].rpartition(":")[2],
        "sizes": entry.get("input_sizes") or [],
        "done": is_done(entry),
        "at": place_of(entry.get("frames") or []),
    }


def is_done(entry: dict[str, Any]) -> bool:
    """Whether the operation has ended: NCCL's are seen to complete, Gloo's are retired."""
    return entry.get("state") == "completed" or bool(entry.get("retired"))


def place_of(frames: list[dict[str, Any]]) -> str | None:
    """The innermost line outside PyTorch from which the operation was entered."""
    package = os.path.dirname(_arrays.loaded("torch").__file__)
    for frame in frames:
        if not frame["filename"].startswith(package):
            return f"{os.path.basename(frame['filename'])}:{frame['line']} in {frame['name']}"
    return None


def _number(entry: dict[str, Any]) -> int:
    return int(entry.get("collective_seq_id", entry.get("seq_id", 0)))


def shorten_barriers(diagnosis: DiagnosisFacts, seconds: float) -> None:
    """Collective operations of process groups that are created from now on fail after a shorter time, so that the ranks
    that wait report it."""
    distributed = _arrays.loaded("torch").distributed
    if distributed.is_initialized():
        diagnosis.blind("barriers", "the process group exists already: its time-out is not changed")
        return
    limit = timedelta(seconds=seconds)
    original = distributed.init_process_group

    def init_process_group(*arguments: Any, **named: Any) -> Any:
        given = named.get("timeout")
        if len(arguments) < 3:  # else the time-out is given by its place
            named["timeout"] = limit if given is None else min(given, limit)
        return original(*arguments, **named)

    for module in (distributed, distributed.distributed_c10d):
        module.init_process_group = init_process_group


def compare_each_operation() -> None:
    """Lets PyTorch compare the operations of all ranks as they are entered, where none are recorded. Not where they are: with it
    DistributedDataParallel of PyTorch 2.15 ends with a segmentation fault."""
    distributed = _arrays.loaded("torch").distributed
    distributed.set_debug_level(distributed.DebugLevel.DETAIL)
