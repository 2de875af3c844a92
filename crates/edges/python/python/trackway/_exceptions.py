"""Uncaught exceptions as structured events in the record."""

from __future__ import annotations

import sys
import threading
import traceback
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._run import Run

# Places of a traceback that are reported: the outermost and the innermost ones.
PLACES_MAX = 64

# The run that exceptions are reported to: that of the last `attach()`.
_run: Run | None = None


def watch_exceptions(run: Run) -> None:
    """Records exceptions that end the process or a thread, then calls the previous hook."""
    global _run
    if _run is None:
        _chain_main()
        _chain_threads()
    _run = run


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
    if _run is not None:
        _run.exception(error)


def tell_exception(run: Run, error: BaseException) -> None:
    """Records the exception. Never raises, however unusual the exception is."""
    try:
        run._exception(_name(type(error)), _message(error), _places(error))
    except Exception as failure:
        run._event("exception", None, {"type": type(error).__qualname__, "why_untold": type(failure).__qualname__})


def _name(kind: type[BaseException]) -> str:
    module = kind.__module__
    return kind.__qualname__ if module in ("builtins", "__main__") else f"{module}.{kind.__qualname__}"


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
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
