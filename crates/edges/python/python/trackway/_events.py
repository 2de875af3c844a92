"""What functions of the module did, for the record of the run: they may be called before `trackway.attach()`."""

from __future__ import annotations

import weakref
from typing import Any

# Most that waits for a run.
_WAITING_MAX = 64

_waiting: list[tuple[str, dict[str, Any]]] = []
_attached: list[weakref.ref[Any]] = []


def record(kind: str, **fields: Any) -> None:
    """Records an event in the attached run, or in the one that is attached next."""
    run = _attached[-1]() if _attached else None
    if run is not None:
        run.event(kind, **fields)
    elif len(_waiting) < _WAITING_MAX:
        _waiting.append((kind, fields))


def attach(run: Any) -> None:
    """Records in this run from now on, and what waited for it."""
    _attached[:] = [weakref.ref(run)]
    waiting, _waiting[:] = list(_waiting), []
    for kind, fields in waiting:
        run.event(kind, **fields)
