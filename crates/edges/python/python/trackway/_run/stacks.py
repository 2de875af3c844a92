"""The stacks of all threads, dumped on request by Trackway if the run hangs."""

from __future__ import annotations

import atexit
import faulthandler
import os
import signal
from typing import IO, Any

# A real-time signal that nothing else is known to use (SIGRTMIN + 7 with glibc); the supervisor sends it to processes that
# catch it only.
STACK_SIGNAL = 41

# Kept open, because it is written to in a signal handler.
_file: IO[Any] | None = None


def dump_stacks_on_signal() -> None:
    """From now on `STACK_SIGNAL` dumps the stacks of all threads to `TRACKWAY_STACKS/PID.txt`, with the interpreter's
    own handler, which needs no lock and works even if the interpreter hangs. An existing handler of the script is
    called as well. Does nothing if the variable is not set, and never raises."""
    global _file
    folder = os.environ.get("TRACKWAY_STACKS")
    if _file is not None or not folder:
        return
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        _file = open(os.path.join(folder, f"{os.getpid()}.txt"), "ab", buffering=0)  # noqa: SIM115
        # The default action of this signal is the end of the process: it must not be called as well.
        chain = signal.getsignal(STACK_SIGNAL) not in (signal.SIG_DFL, signal.SIG_IGN)
        faulthandler.register(STACK_SIGNAL, file=_file, all_threads=True, chain=chain)
        atexit.register(_remove_empty, _file.name, os.getpid())
    except (OSError, RuntimeError, ValueError):
        pass  # the training is worth more than its stacks


def _remove_empty(path: str, process: int) -> None:
    try:
        if os.getpid() == process and os.path.getsize(path) == 0:
            os.remove(path)
    except OSError:
        pass
