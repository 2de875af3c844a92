"""`trackway.read`: what `trackway export` wrote, as tables of a framework. The command is one of these tests."""

import gc
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import need

import trackway
from trackway._run import reading as _reading

METRICS = {"name": ["loss", "loss"], "step": [1, 2], "value": [0.5, float("nan")]}
# Answers as `trackway export` does, from the tables of `tables.json`, and keeps its arguments.
COMMAND = """
#!{python}
import json, pathlib, sys
import pyarrow, pyarrow.parquet
here = pathlib.Path(__file__).parent
arguments = sys.argv[1:]
(here / "arguments.json").write_text(json.dumps(arguments))
if arguments[-1] == "absent":
    print("error: no run is called `absent`", file=sys.stderr)
    sys.exit(6)
if arguments[-1] == "broken":
    print("error: the ledger is damaged", file=sys.stderr)
    sys.exit(7)
out = pathlib.Path(arguments[arguments.index("--out") + 1])
out.mkdir()
files = []
for number, (table, evaluation, columns) in enumerate(json.loads((here / "tables.json").read_text())):
    path = f"{{number}}.parquet"
    pyarrow.parquet.write_table(pyarrow.table(columns), out / path)
    rows = len(next(iter(columns.values())))
    files.append({{"table": table, "evaluation_id": evaluation, "path": path, "rows": rows, "size_bytes": 1, "sha256": ""}})
print(json.dumps({{"run_id": "run_1", "name": "income", "folder": str(out), "format": "parquet", "files": files}}))
"""


@pytest.fixture
def command(tmp_path, monkeypatch):
    """A folder in PATH with a command `trackway`; only that one is found."""
    need("pyarrow")
    place = tmp_path / "bin"
    place.mkdir()
    (place / "trackway").write_text(textwrap.dedent(COMMAND).lstrip().format(python=sys.executable))
    (place / "trackway").chmod(0o755)
    tables = [
        ["metrics", None, METRICS],
        ["parameters", None, {"name": ["lr"], "value": ["0.1"]}],
        ["predictions", "evl_1", {"prediction": ["a"]}],
        ["predictions", "evl_2", {"prediction": ["b", "c"]}],
    ]
    (place / "tables.json").write_text(json.dumps(tables))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "elsewhere" / "python"))
    monkeypatch.setenv("PATH", str(place))
    return place


def test_tables_are_data_frames_of_pandas(command):
    """Proves that every table is a DataFrame with the exported columns and values, that one which was not exported is empty, that
    predictions are those of the newest evaluation, and that each is opened once."""
    pandas = need("pandas")
    tables = trackway.read("income", home="/some/home")
    assert (tables.run_id, tables.name) == ("run_1", "income")
    pandas.testing.assert_frame_equal(tables.metrics, pandas.DataFrame(METRICS))
    assert tables.metrics is tables.metrics and tables.parameters["value"].tolist() == ["0.1"]
    assert tables.predictions["prediction"].tolist() == ["b", "c"]
    assert tables.predictions_of("evl_1")["prediction"].tolist() == ["a"]
    with pytest.raises(KeyError, match="evl_3"):
        tables.predictions_of("evl_3")
    assert tables.attempts.empty and tables.checkpoints.empty and tables.evaluations.empty and tables.tags.empty
    assert "metrics (2)" in repr(tables)
    arguments = json.loads((command / "arguments.json").read_text())
    assert arguments[:4] == ["export", "--json", "--home", "/some/home"] and arguments[-2:] == ["--", "income"]


@pytest.mark.parametrize("framework", ["polars", "pyarrow"])
def test_other_frameworks_on_request(command, framework):
    """Proves that the same tables come as those of Polars and PyArrow."""
    module = need(framework)
    tables = trackway.read()
    found = tables.polars() if framework == "polars" else tables.arrow()
    kind = module.DataFrame if framework == "polars" else module.Table
    assert isinstance(found.metrics, kind) and found.metrics.shape == (2, 3)
    assert isinstance(found.tags, kind) and found.tags.shape[0] == 0
    assert json.loads((command / "arguments.json").read_text())[-1] == "last"


def test_the_files_go_with_the_last_table(command):
    """Proves that the temporary folder exists as long as something may read it, and no longer."""
    tables = trackway.read()
    folder = tables._folder
    other = tables.arrow()
    del tables
    gc.collect()
    assert folder.is_dir() and other.metrics.num_rows == 2
    del other
    gc.collect()
    assert not folder.parent.exists()


def test_errors_say_what_the_command_reported(command, monkeypatch):
    """Proves that an unknown run, another error and a missing command raise errors that say what was reported."""
    with pytest.raises(LookupError, match="no run is called `absent`"):
        trackway.read("absent")
    with pytest.raises(RuntimeError, match="the ledger is damaged"):
        trackway.read("broken")
    monkeypatch.setenv("PATH", str(command / "none"))
    with pytest.raises(FileNotFoundError, match="install it"):
        trackway.read()


def test_the_command_of_the_installation_comes_first(command, tmp_path, monkeypatch):
    """Proves that a command beside the interpreter is preferred to another one in PATH."""
    place = tmp_path / "elsewhere"
    place.mkdir()
    (place / "trackway").write_text("#!/bin/sh\nexit 6\n")
    (place / "trackway").chmod(0o755)
    assert _reading._command() == str(place / "trackway")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere" / "python"))
    assert Path(_reading._command()) == command / "trackway"


def test_reading_imports_a_framework_only_when_it_is_used(command):
    """Proves that reading a run without opening a table imports neither pandas, Polars nor PyArrow."""
    code = "import sys, trackway; trackway.read(); print(sorted({'pandas', 'polars', 'pyarrow'} & set(sys.modules)))"
    python = os.path.realpath(os.path.join(sys.prefix, "bin", "python"))
    path = [str(command), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path[1:]), "PATH": path[0]}
    done = subprocess.run([python, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr
