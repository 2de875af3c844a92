"""What the modules for scripts of other tools have in common."""

from __future__ import annotations

import json
import operator
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .._run.run import Run, attach

DOCS = 'docs/python.md, "Scripts of W&B and MLflow"'

# How deep a dict may be nested; what is deeper becomes one value.
NESTING_MAX = 20

# The lines that were printed; a loop must not print one again. Their keys are names in the source of a script.
_said: set[str] = set()
_lock = threading.Lock()
_attached: list[Run] = []
# What the names of the runs that began in this process begin with.
_prefixes: set[str] = set()


def run_of_process(tool: str) -> Run:
    """The run of this process. Outside an attempt one line says how to record it."""
    with _lock:
        if not _attached:
            _attached.append(attach())
    run = _attached[0]
    if not run.enabled:
        script = " ".join(["python", *sys.argv[:1]]) if sys.argv and sys.argv[0] not in ("", "-c") else "python SCRIPT"
        say_once("outside", tool, f"nothing is recorded; to record it: trackway run -- {script}")
    return run


def say_once(key: str, tool: str, text: str) -> None:
    """Prints one line on stderr, once for each key."""
    with _lock:
        if key in _said:
            return
        _said.add(key)
    print(f"trackway.compat.{tool}: {text}", file=sys.stderr, flush=True)


def prefix_of_next(tool: str, name: str | None) -> str:
    """What the names of the next run of the tool begin with. A process is one run of Trackway: if a script begins several
    runs of the tool in it, the names of those from the second on begin with that of the run."""
    with _lock:
        number = len(_prefixes) + 1
        prefix = f"{name or f'run-{number}'}/" if _prefixes else ""
        if prefix in _prefixes:
            prefix = f"{name}-{number}/"
        _prefixes.add(prefix)
    if not prefix:
        return prefix
    say_once("several", tool, f"this process is one run of Trackway: names of its further runs begin with theirs, as `{prefix}`")
    return prefix


def flat(values: Mapping[Any, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The leaves of nested dicts, with dots between the names."""
    for key, value in list(values.items()):
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value and depth < NESTING_MAX:
            yield from flat(value, f"{name}.", depth + 1)
        else:
            yield name, value


def number_of(value: Any) -> float | None:
    """The value as a number: numbers, and tensors of one element. None for anything else."""
    if isinstance(value, (str, bytes, bytearray, Mapping)) or value is None:
        return None
    try:
        return float(value.item() if hasattr(value, "item") else value)
    except Exception:  # noqa: BLE001 - of any object that a script may log
        return None


def step_of(value: Any) -> int | None:
    """A step that can be recorded: a whole number from 0 on."""
    try:
        step = operator.index(value.item() if hasattr(value, "item") else value)
    except Exception:  # noqa: BLE001 - a float, or an object of any kind
        number = number_of(value)
        if number is None or not number.is_integer():
            return None
        step = int(number)
    return step if 0 <= step < 1 << 64 else None


def json_text(value: Any) -> str:
    """A setting as JSON has it, without quotes around a string: what `trackway import wandb` stores."""
    if isinstance(value, str):
        return value
    if hasattr(value, "item") and (number := number_of(value)) is not None:
        value = int(number) if number.is_integer() and "int" in str(getattr(value, "dtype", "")) else number
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def as_mapping(values: Any) -> Mapping[str, Any] | None:
    """Settings as a dict: also those of `argparse`, dataclasses and other objects with attributes."""
    if isinstance(values, Mapping):
        return values
    try:
        return {name: value for name, value in vars(values).items() if not name.startswith("_")}
    except TypeError:
        return None


def keep_file(run: Run, path: str | os.PathLike[str], name: str) -> None:
    """Stores a copy of a file or folder with the attempt."""
    run.artifact(path, name=name)


def unknown(module: str, name: str, names: Iterable[str], hint: str = "") -> AttributeError:
    """The error for a name that the module of a tool does not have."""
    listed = ", ".join(sorted(one for one in names if not one.startswith("_")))
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}; it has {listed} ({DOCS})")
