"""What a run recorded, as tables: `trackway export` reads it, and a framework shows it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

COMMAND = "trackway"


class RunTables:
    """The tables of a run, as DataFrames of pandas; `polars()` and `arrow()` give the same in another framework. A table
    without rows is empty, without columns. A framework is imported when a table is used."""

    def __init__(self, report: dict[str, Any], folder: Path, open_table: Callable[[Path | None], Any]):
        self._report, self._folder, self._open = report, folder, open_table
        self._opened: dict[str, Any] = {}
        # Of whichever framework: the files are needed until the last of these objects is gone.
        self._kept: object = None

    @property
    def run_id(self) -> str:
        return str(self._report["run_id"])

    @property
    def name(self) -> str:
        return str(self._report["name"])

    @property
    def metrics(self) -> Any:
        """Every value that counts: `name`, `step`, `value`, `recorded_at`, `origin`, and the attempt. Steps that were trained
        again after a resume are there once."""
        return self._table("metrics")

    @property
    def parameters(self) -> Any:
        """`name`, `value` (a string) and `origin`, of each attempt."""
        return self._table("parameters")

    @property
    def tags(self) -> Any:
        """`name` and `value`, of each attempt."""
        return self._table("tags")

    @property
    def attempts(self) -> Any:
        """The receipts, a row for each attempt."""
        return self._table("attempts")

    @property
    def checkpoints(self) -> Any:
        """The checkpoints, with step, state and manifest."""
        return self._table("checkpoints")

    @property
    def evaluations(self) -> Any:
        """The evaluations, oldest first."""
        return self._table("evaluations")

    @property
    def predictions(self) -> Any:
        """The rows of the newest evaluation that stored them."""
        return self._table("predictions")

    def predictions_of(self, evaluation_id: str) -> Any:
        """The rows of an evaluation.

        Raises KeyError if it stored none."""
        paths = self._paths("predictions", evaluation_id)
        if not paths:
            raise KeyError(f"the evaluation {evaluation_id} of {self.run_id} has no stored rows")
        return self._open(paths[-1])

    def polars(self) -> RunTables:
        """The same tables as DataFrames of Polars."""
        return self._in(_polars)

    def arrow(self) -> RunTables:
        """The same tables as tables of PyArrow."""
        return self._in(_arrow)

    def _in(self, open_table: Callable[[Path | None], Any]) -> RunTables:
        other = RunTables(self._report, self._folder, open_table)
        other._kept = self._kept
        return other

    def _table(self, table: str) -> Any:
        if table not in self._opened:
            paths = self._paths(table)
            self._opened[table] = self._open(paths[-1] if paths else None)
        return self._opened[table]

    def _paths(self, table: str, evaluation_id: str | None = None) -> list[Path]:
        return [
            self._folder / file["path"]
            for file in self._report["files"]
            if file["table"] == table and evaluation_id in (None, file["evaluation_id"])
        ]

    def __repr__(self) -> str:
        held = ", ".join(f"{file['table']} ({file['rows']})" for file in self._report["files"])
        return f"<{self.name} {self.run_id}: {held or 'nothing recorded'}>"


def read(run: str = "last", *, home: str | os.PathLike[str] | None = None) -> RunTables:
    """The metrics, parameters, attempts and predictions of a run: by id, part of an id, name, or `last`.

        tables = trackway.read("income")
        tables.metrics.pivot_table(index="step", columns="name", values="value")
        tables.polars().metrics

    `home` is the folder with Trackway's state, else that of the command. Needs the command `trackway`, beside the
    interpreter or in PATH, which writes them to a temporary folder (`trackway export`); it is deleted with the result.

    Raises LookupError for an unknown run, FileNotFoundError without the command, RuntimeError for what it reports."""
    folder = tempfile.mkdtemp(prefix="trackway-read-")
    kept = _Folder()
    weakref.finalize(kept, shutil.rmtree, folder, ignore_errors=True)
    out = Path(folder) / "export"
    of_home = [] if home is None else ["--home", os.fspath(home)]
    command = [_command(), "export", "--json", *of_home, "--out", str(out), "--", run]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        error = LookupError if done.returncode == 6 else RuntimeError
        raise error(done.stderr.strip() or f"{COMMAND} ended with code {done.returncode}")
    tables = RunTables(json.loads(done.stdout), out, _pandas)
    tables._kept = kept
    return tables


class _Folder:
    """A temporary folder, which goes with its last user."""


def _command() -> str:
    """The command of the same installation, else the one in PATH."""
    places = [os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)]
    found = shutil.which(COMMAND, path=os.pathsep.join(filter(None, places)))
    if found is None:
        raise FileNotFoundError(f"the command `{COMMAND}` is neither beside {sys.executable} nor in PATH: install it to read runs")
    return found


def _pandas(path: Path | None) -> Any:
    import pandas

    return pandas.DataFrame() if path is None else pandas.read_parquet(path)


def _polars(path: Path | None) -> Any:
    import polars

    return polars.DataFrame() if path is None else polars.read_parquet(path)


def _arrow(path: Path | None) -> Any:
    import pyarrow
    import pyarrow.parquet

    return pyarrow.table({}) if path is None else pyarrow.parquet.read_table(path)
