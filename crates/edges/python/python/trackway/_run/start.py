"""Runs of a notebook or a REPL: this process is the attempt, although Trackway did not launch it.

A detached supervisor launches a small process in its place, which waits for it and ends as it does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from ..errors import InputError
from .run import Run, attach

# Seconds until the supervisor has launched the attempt.
LAUNCH_SECONDS = 60.0
# Seconds until the attempt has given its variables, or has read how the process ended.
ANSWER_SECONDS = 10.0
_TURN_SECONDS = 0.02
# The end of a traceback that is recorded.
ERROR_CHARACTERS_MAX = 32_000
# The exit code of a process that Ctrl-C ended.
_INTERRUPTED = 130

_started: StartedRun | None = None


class StartedRun(Run):
    """A run that `start_run` began; a context manager. Its end is that of the `with` block, of `finish()`, or of the process."""

    def __init__(self, folder: str, before: Mapping[str, str | None]) -> None:
        super().__init__()
        self._folder = folder
        self._before = before
        self._has_ended = False

    def finish(self) -> None:
        """Closes the record and ends the run as completed. Recording afterwards has no effect.

        Raises the error of the last checkpoint, if it failed; the run has failed then."""
        code = 1
        try:
            super().finish()
            code = 0 if self._reported_error is None else 1
        finally:
            self._end(code)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is not None:
                self.exception(error)
            Run.finish(self)
        except BaseException:
            self._end(1)
            raise
        self._end(_code_of(error), "".join(traceback.format_exception(error))[-ERROR_CHARACTERS_MAX:] if error else "")

    def _at_exit(self) -> None:
        super()._at_exit()
        if os.getpid() == self._process:
            self._end(0 if self._reported_error is None else 1)

    def _end(self, code: int, error: str = "") -> None:
        global _started
        if self._has_ended:
            return
        self._has_ended = True
        path = os.path.join(self._folder, "result.json")
        with open(path + ".part", "w", encoding="utf-8") as file:
            json.dump({"code": code, "error": error}, file)
        os.replace(path + ".part", path)
        _exists_within(os.path.join(self._folder, "taken"), ANSWER_SECONDS)
        shutil.rmtree(self._folder, ignore_errors=True)
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if _started is self:
            _started = None


def start_run(
    *,
    name: str | None = None,
    params: Mapping[str, Any] | None = None,
    tags: Mapping[str, Any] | None = None,
    home: str | os.PathLike[str] | None = None,
) -> Run:
    """Begins a run in a notebook or a REPL: this process is its attempt.

        with trackway.start_run(name="probe", params={"lr": 3e-4}) as run:
            for step in range(1, 101):
                run.log(step, loss=train_step())

    Its end is recorded also if the process is killed. Under `trackway run` it is `attach()` with these parameters and tags: the
    script works both ways. Needs the command `trackway` in PATH. What the process prints is not recorded.

    Raises `InputError` if a run of this process has not ended, or the run cannot be launched."""
    global _started
    if os.environ.get("TRACKWAY_ATTEMPT") and _started is None:
        return _described(attach(), params, tags)
    if _started is not None:
        raise InputError("the run of this process has not ended: call its finish(), or leave its `with` block")
    folder = tempfile.mkdtemp(prefix="trackway-run-")
    try:
        _launch(folder, name, params or {}, tags or {}, home)
        environment = _environment(os.path.join(folder, "environment.json"))
    except BaseException:
        # The attempt ends with this: it waits for a result.
        _give_up(folder)
        raise
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    run = StartedRun(folder, before)
    run.event("process_attached", pid=os.getpid(), executable=sys.executable)
    _started = run
    return run


def _described(run: Run, params: Mapping[str, Any] | None, tags: Mapping[str, Any] | None) -> Run:
    for name, value in (params or {}).items():
        run.param(name, value)
    for name, value in (tags or {}).items():
        run.tag(name, value)
    return run


def _launch(
    folder: str,
    name: str | None,
    params: Mapping[str, Any],
    tags: Mapping[str, Any],
    home: str | os.PathLike[str] | None,
) -> None:
    program = shutil.which("trackway")
    if program is None:
        raise InputError("the command `trackway` is not in PATH: start_run needs it to supervise the run")
    words = [program, "run", "--detach", "--json", "--name", name or "notebook"]
    if home is not None:
        words += ["--home", os.fspath(home)]
    for option, pairs in (("--param", params), ("--tag", tags)):
        for key, value in pairs.items():
            words += [option, f"{key}={value}"]
    words += ["--", program, "__await", str(os.getpid()), str(_start_ticks()), folder]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=LAUNCH_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise InputError(f"the run was not launched within {LAUNCH_SECONDS:.0f} s: see `trackway runs`") from None
    if done.returncode != 0:
        raise InputError(f"the run was not launched: {done.stderr.strip()}")


def _start_ticks() -> int:
    """When this process started, in clock ticks since boot: with it the process is known although its number is reused."""
    try:
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
            # The name may hold blanks and parentheses; the start is the 22nd field, and the state after the name the third.
            return int(file.read().rsplit(") ", 1)[1].split()[19])
    except OSError:
        raise InputError("start_run needs /proc, as Linux has it: use `trackway run` here") from None


def _environment(path: str) -> dict[str, str]:
    if not _exists_within(path, ANSWER_SECONDS):
        raise InputError(f"the attempt did not answer within {ANSWER_SECONDS:.0f} s: see `trackway explain last`")
    with open(path, encoding="utf-8") as file:
        variables: dict[str, str] = json.load(file)
    return variables


def _give_up(folder: str) -> None:
    with open(os.path.join(folder, "result.json"), "w", encoding="utf-8") as file:
        json.dump({"code": 1}, file)
    if _exists_within(os.path.join(folder, "environment.json"), 0.0):
        _exists_within(os.path.join(folder, "taken"), ANSWER_SECONDS)
    shutil.rmtree(folder, ignore_errors=True)


def _exists_within(path: str, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not os.path.exists(path):
        if time.monotonic() >= until:
            return False
        time.sleep(_TURN_SECONDS)
    return True


def _code_of(error: BaseException | None) -> int:
    if error is None:
        return 0
    if isinstance(error, KeyboardInterrupt):
        return _INTERRUPTED
    if isinstance(error, SystemExit):
        return 0 if error.code is None else error.code & 0xFF if isinstance(error.code, int) else 1
    return 1
