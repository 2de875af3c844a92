"""Shared by the tests: frameworks that may be missing, and an attempt without `trackway run` around it."""

import importlib
import os
import random
import subprocess
import sys

import pytest

ULID_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
# The modules of requirements-main.txt, and those that are always there.
MAIN = ("torch", "transformers", "accelerate", "sklearn", "xgboost", "pandas", "pyarrow", "numpy", "trackway")
# Tests change the environment: what the suite was started with counts.
REQUIRED = os.environ.get("TRACKWAY_TEST_FRAMEWORKS")
SKIPPED = os.environ.get("TRACKWAY_TEST_SKIPPED")


def is_required(module: str) -> bool:
    """Whether a test must not be skipped without this module: TRACKWAY_TEST_FRAMEWORKS is `main`, or `1` for all."""
    return REQUIRED == "1" or (REQUIRED == "main" and module.split(".")[0] in MAIN)


def need(framework: str):
    """The module of a framework. Without it a test is skipped, or fails where the module is required."""
    try:
        return importlib.import_module(framework)
    except ImportError as error:
        if is_required(framework):
            raise
        pytest.skip(f"{framework} is not installed ({error})", allow_module_level=True)


def count_skip(report) -> None:
    """Counts a test or file that was skipped in the file of TRACKWAY_TEST_SKIPPED, as tests in Rust do (scripts/skipped.py)."""
    if SKIPPED is None or not report.skipped or hasattr(report, "wasxfail"):
        return
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    test = report.nodeid.removeprefix("tests/")
    with open(SKIPPED, "a", encoding="utf-8") as file:
        file.write(f"python::{test}\t{' '.join(why.removeprefix('Skipped: ').split())}\n")


pytest_runtest_logreport = count_skip
pytest_collectreport = count_skip


def attempt_environment(folder, epoch=1, run_id=None, **more):
    """What `trackway run` sets for the script of an attempt."""
    ulid = "".join(random.SystemRandom().choices(ULID_DIGITS, k=25))
    return {
        "TRACKWAY_RUN": run_id or "run_01aaaaaaaaaaaaaaaaaaaaaaaa",
        "TRACKWAY_ATTEMPT": f"att_0{ulid}",
        "TRACKWAY_EPOCH": str(epoch),
        "TRACKWAY_RECORD": str(folder / f"record-{epoch}"),
        "TRACKWAY_CONTROL": str(folder / f"control-{epoch}"),
        "TRACKWAY_CHECKPOINTS": str(folder / "checkpoints"),
        **{name: str(value) for name, value in more.items()},
    }


@pytest.fixture
def attempt(tmp_path, monkeypatch):
    """Starts attempts in this process: `attempt(epoch=2, TRACKWAY_CHECKPOINT_EVERY_STEPS=5)` returns their run."""
    import trackway

    runs = []

    def start(epoch=1, **more):
        for run in runs:
            run._wait()  # as if the process had ended in order
        for name, value in attempt_environment(tmp_path, epoch, **more).items():
            monkeypatch.setenv(name, value)
        run = trackway.attach()
        run._sigterm_watched = True  # pytest keeps its own handling of signals
        runs.append(run)
        return run

    yield start
    for run in runs:
        run._finish()


def record_bytes(folder, epoch=1):
    """All segments of an attempt, as they are."""
    return b"".join(path.read_bytes() for path in sorted((folder / f"record-{epoch}").iterdir()))


def newest(root):
    """The folder of the newest checkpoint of a root."""
    from trackway import checkpoint

    return root / checkpoint.list(root)[-1].object_prefix


def bits(value):
    """What two tensors are compared by."""
    if hasattr(value, "untyped_storage"):
        import torch

        flat = value.detach().contiguous().view(-1)
        return bytes(flat.view(torch.uint8).numpy()) if flat.numel() else b""
    import numpy

    return numpy.ascontiguousarray(numpy.asarray(value)).tobytes()


def pytest_terminal_summary(terminalreporter):
    """Prints how long importing the package and attaching take beyond the interpreter's start. The aim is below 40 ms of a
    processor; `test_package.py` tests the import alone, because the machine may be busy."""
    code = "import time as t; w, c = t.perf_counter(), t.process_time(); import trackway; trackway.attach(); "
    code += "print(t.perf_counter() - w, t.process_time() - c)"
    taken = [
        [
            float(word)
            for word in subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.split()
        ]
        for _ in range(5)
    ]
    wall, processor = (sorted(column)[2] * 1e3 for column in zip(*taken, strict=True))
    terminalreporter.write_line(f"import trackway, attach: {wall:.0f} ms, {processor:.0f} ms of a processor (5 new processes)")
