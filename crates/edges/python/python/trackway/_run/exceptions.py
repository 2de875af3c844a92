"""Uncaught exceptions as structured events in the record."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from types import TracebackType

from .._trackway import Recorder

# Places of a traceback that are reported: the outermost and the innermost ones.
PLACES_MAX = 64

# What records an exception: the run of the last `attach()`.
_record: Callable[[BaseException], None] | None = None


def watch_exceptions(record: Callable[[BaseException], None]) -> None:
    """Passes exceptions that end the process or a thread to `record`, then calls the previous hook."""
    global _record
    if _record is None:
        _chain_main()
        _chain_threads()
    _record = record


def _chain_main() -> None:
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        _tell(error)
        before(kind, error, trace)

    sys.excepthook = hook


def _chain_threads() -> None:
    before = threading.excepthook

    def hook(raised: threading.ExceptHookArgs, /) -> None:
        if raised.exc_value is not None:
            _tell(raised.exc_value)
        before(raised)

    threading.excepthook = hook


def _tell(error: BaseException) -> None:
    if _record is not None:
        _record(error)


def tell_exception(recorder: Recorder, error: BaseException) -> None:
    """Records the exception. Never raises, however unusual the exception is."""
    try:
        recorder._exception(_name(type(error)), _message(error), _places(error))
    except Exception as failure:  # noqa: BLE001 - an exception of any class, whose methods may fail
        recorder._event("exception", None, {"type": type(error).__qualname__, "why_untold": type(failure).__qualname__})


def _name(kind: type[BaseException]) -> str:
    module = kind.__module__
    return kind.__qualname__ if module in ("builtins", "__main__") else f"{module}.{kind.__qualname__}"


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - its `__str__` is code of the script
        return "a message that cannot be converted to a string"


def _places(error: BaseException) -> list[str]:
    """File name, line and function of each frame, then the cause; source lines are left out, they may contain
    secrets."""
    frames = traceback.extract_tb(error.__traceback__)
    if len(frames) > PLACES_MAX:
        frames = traceback.StackSummary.from_list([*frames[: PLACES_MAX // 2], *frames[-PLACES_MAX // 2 :]])
    places = [f"{_file(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames]
    if (cause := error.__cause__ or error.__context__) is not None:
        places.insert(0, f"caused by {_name(type(cause))}")
    return places


def _file(path: str) -> str:
    """The file name and two parent folders: enough to find the file, and the same on every machine."""
    return "/".join(path.replace("\\", "/").split("/")[-3:])
